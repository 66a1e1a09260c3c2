"""The study of the efficient estimator: error, bias, coverage and time beside all others, on synthetic and real rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..comparison import compare
from ..data import Retrospective
from ..missingness import MAR
from ..notices import AfapeWarning
from ..nuisance import LearnedPropensity
from ..support import SupportThresholds
from .study import run_draws
from .study_problems import StudyProblem, study_problems

__all__ = ["efficiency_study"]

_TIMED = (["ipw-semi", "drl-semi"], ["eff-semi"], ["mi"])


@dataclass(frozen=True, eq=False)
class _Draw:
    problem: StudyProblem
    n_rows: int

    def __call__(self, k: int) -> list[dict[str, Any]]:
        """Records of draw k: one per policy, estimator and target."""
        data = self.problem.draw(self.n_rows, k)
        return [record for names in _TIMED for record in self._records(data, names, k)]

    def _records(self, data: Retrospective, names: list[str], k: int) -> list[dict[str, Any]]:
        problem = self.problem
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AfapeWarning)  # heavy weights are what the study is about
            found = compare(
                data,
                problem.policies,
                problem.classifier,
                missingness=MAR([problem.given]),
                estimators=names,
                propensity=LearnedPropensity(form=problem.form),
                imputer=problem.imputer if "mi" in names else None,
                n_imputations=5 if "mi" in names else None,
                thresholds=SupportThresholds(share=0.5),  # estimates, not bounds: their errors are measured
                random_state=k,
            )
        seconds, records = (time.process_time() - began) / len(problem.policies), []
        for policy, result in found.evaluations.items():
            truth = problem.truth[policy]
            for name, outcome in result.outcomes.items():
                for target, estimate in outcome.estimates.items():
                    low, high = estimate.interval()
                    covered = low - 1e-9 <= truth[target] <= high + 1e-9
                    line: dict[str, Any] = {
                        "policy": policy,
                        "estimator": name,
                        "target": target,
                        "truth": truth[target],
                    }
                    figures = {
                        "estimate": estimate.value,
                        "std_error": estimate.std_error,
                        "covered": float(covered),
                    }
                    records.append({**line, **figures, "effective_rows": outcome.ess, "seconds": seconds})
        return records


def efficiency_study(
    out: Path,
    *,
    n_draws: int = 200,
    real_draws: int = 40,
    sizes: tuple[int, ...] = (2000, 1000, 8000),
    folder: Path | None = None,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Run the study and write its page; ``folder`` holds ``heloc.csv`` and ``income.csv``.

    The numbers of draws are those of 2,000 rows and fewer; more rows get fewer draws in proportion, at least four. The page
    is written after every part, so that a study that is stopped leaves what it has finished.
    """
    out.mkdir(parents=True, exist_ok=True)
    parts: list[pd.DataFrame] = []
    problems = study_problems(folder)
    for n_rows in sizes:
        for problem in problems:
            place = out / f"draws-{problem.name.replace(', ', '-').replace(' ', '-')}-n{n_rows}"
            problem.truth  # noqa: B018 (cached before processes share it)
            asked = real_draws if problem.real else n_draws
            many = max(round(asked * min(1.0, 2000 / n_rows)), 4)
            draws = run_draws(_Draw(problem, n_rows), many, place, n_jobs=n_jobs, batch=5)
            parts.append(_summary(draws).assign(problem=problem.name, rows=n_rows))
            _write(out, pd.concat(parts, ignore_index=True), n_draws, real_draws)
            if progress is not None:
                progress(len(parts), len(problems) * len(sizes))
    return pd.concat(parts, ignore_index=True)


def _write(out: Path, summary: pd.DataFrame, n_draws: int, real_draws: int) -> None:
    summary.to_csv(out / "summary.csv", index=False, float_format="%.6g")
    (out / "README.md").write_text(_page(summary, n_draws, real_draws))


def _summary(draws: pd.DataFrame) -> pd.DataFrame:
    lines = []
    draws = draws.assign(square=(draws["estimate"] - draws["truth"]) ** 2)
    own = draws[draws["estimator"] == "eff-semi"]
    for (policy, estimator, target), part in draws.groupby(["policy", "estimator", "target"], sort=False):
        error = part["estimate"] - part["truth"]
        ours = own[(own["policy"] == policy) & (own["target"] == target)]
        ratio, ratio_error = _ratio(*(some.set_index("draw")["square"] for some in (ours, part)))
        lines.append(
            {
                "policy": policy,
                "estimator": estimator,
                "target": target,
                "truth": part["truth"].iloc[0],
                "rmse": float(np.sqrt((error**2).mean())),
                "bias": float(error.mean()),
                "bias_mc_error": float(error.std(ddof=1) / np.sqrt(len(part))),
                "std_deviation": float(error.std(ddof=1)),
                "mean_std_error": float(part["std_error"].mean()),
                "coverage": float(part["covered"].mean()),
                "effective_rows": float(part["effective_rows"].dropna().median()),
                "seconds": float(part["seconds"].mean()),
                "draws": int(part["estimate"].notna().sum()),
                "eff_over_this": ratio,
                "ratio_mc_error": ratio_error,
            }
        )
    return pd.DataFrame(lines)


def _ratio(ours: pd.Series, theirs: pd.Series) -> tuple[float, float]:
    """Root mean squared error over another one, draws in which both have an answer, and its Monte Carlo error."""
    both = pd.concat([ours, theirs], axis=1, join="inner").dropna().to_numpy()
    mean = both.mean(axis=0)
    if len(both) < 2 or not (mean > 0).all():
        return float("nan"), float("nan")
    ratio = float(np.sqrt(mean[0] / mean[1]))
    relative = both[:, 0] / mean[0] - both[:, 1] / mean[1]
    return ratio, ratio * float(relative.std(ddof=1)) / (2 * np.sqrt(len(both)))


def _ratios(total: pd.DataFrame) -> list[str]:
    others = ["ipw-semi", "drl-semi", "mi"]
    lines = [
        f"| problem | rows | policy | {' | '.join(f'over `{name}`' for name in others)} | bias / std error | coverage | "
        "effective rows |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (problem, rows, policy), part in total.groupby(["problem", "rows", "policy"], sort=False):
        figures = {str(line["estimator"]): line for line in part.to_dict("records")}
        own = figures.get("eff-semi")
        if own is None:
            continue
        ratios = [
            f"{figures[name]['eff_over_this']:.2f} ± {figures[name]['ratio_mc_error']:.2f}" if name in figures else ""
            for name in others
        ]
        lines.append(
            f"| {problem} | {rows:,} | {policy} | {' | '.join(ratios)} | {own['bias'] / own['mean_std_error']:+.2f} | "
            f"{100 * own['coverage']:.1f} % | {own['effective_rows']:,.0f} |"
        )
    return lines


def _page(summary: pd.DataFrame, n_draws: int, real_draws: int) -> str:
    total = summary[summary["target"] == "total"]
    sizes = " ".join(f"--rows {rows}" for rows in total["rows"].unique())
    lines = [
        "# How precise the efficient estimator is",
        "",
        f"Made by `afape study efficiency --draws {n_draws} --real-draws {real_draws} {sizes} --data FOLDER`: data sets "
        "drawn with replacement from complete rows and hidden "
        "anew each time; the truth is the cost on all complete rows. Total cost. Root mean squared error (rmse), bias in units "
        "of its Monte Carlo error, coverage of 95 % intervals, effective rows of the weights (median), seconds of one core "
        "per policy (`ipw-semi` and `drl-semi` together; `mi` with five imputations), policies compared in one call.",
        "",
        "*mild* and *heavy* mechanisms are logistic in the first group; under *heavy* one row in seven has a probability below "
        "1 in 2,000 of having all groups, so that records say next to nothing of acquiring all in such rows. *nonlinear* is not "
        "what a linear propensity model assumes: the default form finds that out, under *wrong propensity* the model is kept "
        "linear. In *parabola* the imputer of `mi` is linear and wrong. Draws in which an estimator gave no answer are left out "
        "(column draws).",
        "",
        "## eff-semi beside the others",
        "",
        "Its rmse over theirs, plus or minus the Monte Carlo error of the ratio; its bias over its standard error.",
        "",
        *_ratios(total),
        "",
        "## All figures",
        "",
        "| problem | rows | policy | estimator | rmse | bias / MC error | coverage | effective rows | seconds | draws |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for r in total.to_dict("records"):
        bias = r["bias"] / r["bias_mc_error"] if r["bias_mc_error"] > 0 else 0.0
        lines.append(
            f"| {r['problem']} | {r['rows']:,} | {r['policy']} | `{r['estimator']}` | {r['rmse']:.3f} | {bias:+.1f} | "
            f"{100 * r['coverage']:.1f} % | {r['effective_rows']:,.0f} | {r['seconds']:.2f} | {r['draws']} |"
        )
    return "\n".join(lines) + "\n"
