"""The study of the efficient estimator: error, bias, coverage and time beside other estimators."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from afape.benchmark.draws import run_draws
from afape.benchmark.identity import checksum_of_records
from afape.benchmark.page import markdown
from afape.comparison import compare
from afape.data.retrospective import Retrospective
from afape.missingness.assumptions import MAR
from afape.propensity.learned import LearnedPropensity
from afape.support.thresholds import SupportThresholds
from afape.warnings import AfapeWarning
from studies.problems import StudyProblem, study_problems
from studies.simulation import error_statistics, true_costs

__all__ = ["SIZES", "efficiency_study", "rmse_ratio"]

SIZES = (2000, 1000, 8000)
_TIMED = (["ipw-semi", "drl-semi"], ["eff-semi"], ["mi"])  # timed together
_OTHERS = ("ipw-semi", "drl-semi", "mi")
_COLUMNS = [
    "policy", "estimator", "target", "truth", "rmse", "bias", "bias_mc_error", "std_deviation", "mean_std_error", "coverage",
    "effective_rows", "seconds", "draws", "eff_over_this", "ratio_mc_error",
]  # fmt: skip


def _records(
    problem: StudyProblem, truth: Mapping[str, Mapping[str, float]], n_rows: int, k: int
) -> list[dict[str, Any]]:
    """Draw data set k and return one record per policy, estimator and target."""
    data = problem.draw(n_rows, k)
    return [record for names in _TIMED for record in _timed_records(problem, truth, data, names, k)]


def _timed_records(
    problem: StudyProblem, truth: Mapping[str, Mapping[str, float]], data: Retrospective, names: list[str], k: int
) -> list[dict[str, Any]]:
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AfapeWarning)  # the study is about large weights
        found = compare(
            data,
            problem.policies,
            problem.classifier,
            missingness=MAR([problem.given]),
            estimators=names,
            propensity=LearnedPropensity(form=problem.form),
            imputer=problem.imputer if "mi" in names else None,
            n_imputations=5 if "mi" in names else None,
            thresholds=SupportThresholds(share=0.5),  # estimates in place of bounds, because errors are measured
            random_state=k,
        )
    seconds, records = (time.process_time() - began) / len(problem.policies), []
    for policy, result in found.evaluations.items():
        for line in result.table.to_dict("records"):
            if line["estimator"] in result:
                true = truth[policy][line["target"]]
                records.append(
                    {
                        "policy": policy,
                        "estimator": line["estimator"],
                        "target": line["target"],
                        "truth": true,
                        "estimate": line["estimate"],
                        "std_error": line["std_error"],
                        "covered": float(line["lower"] - 1e-9 <= true <= line["upper"] + 1e-9),
                        "effective_rows": line["ess"],
                        "seconds": seconds,
                    }
                )
    return records


def efficiency_study(
    out: Path,
    *,
    n_draws: int,
    real_draws: int,
    sizes: tuple[int, ...] = SIZES,
    folder: Path | None = None,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Run the study and write its page, anew after every problem and size.

    Parameters
    ----------
    out : Path
        Folder of the results; draws found there are not repeated.
    n_draws, real_draws : int
        Data sets of synthetic and of real rows, for up to 2,000 rows. Larger sizes get proportionally fewer, at least four.
    sizes : tuple of int
        Rows of a data set.
    folder : Path, optional
        Folder with ``heloc.csv`` and ``income.csv``, for real rows.
    n_jobs : int
        Number of processes.
    progress : callable, optional
        Called as ``progress(done, total)``.
    """
    problems = study_problems(folder)
    truths = [true_costs(p.population, p.policies, p.classifier) for p in problems]
    summary = pd.DataFrame()
    steps = [(n_rows, problem, truth) for n_rows in sizes for problem, truth in zip(problems, truths, strict=True)]
    for done, (n_rows, problem, truth) in enumerate(steps, 1):
        place = f"draws-{problem.name.replace(', ', '-').replace(' ', '-')}-n{n_rows}"
        many = max(round((real_draws if problem.real else n_draws) * min(1.0, 2000 / n_rows)), 4)
        draw, study = (
            partial(_records, problem, truth, n_rows),
            f"efficiency; {problem.name}; {n_rows} rows; {checksum_of_records(problem.population)}",
        )
        draws = run_draws(draw, many, out / place, study, n_jobs=n_jobs, batch=5)
        summary = pd.concat([summary, _summary(draws).assign(problem=problem.name, rows=n_rows)], ignore_index=True)
        summary.to_csv(out / "summary.csv", index=False, float_format="%.6g")
        (out / "README.md").write_text(_page(summary, n_draws, real_draws))
        if progress is not None:
            progress(done, len(steps))
    return summary


def _summary(draws: pd.DataFrame) -> pd.DataFrame:
    """Return errors per policy, estimator and target, and the ratio of the error of `eff-semi` to each."""
    lines = []
    draws = draws.assign(square=(draws["estimate"] - draws["truth"]) ** 2)
    efficient = draws[draws["estimator"] == "eff-semi"]
    for (policy, estimator, target), own in draws.groupby(["policy", "estimator", "target"], sort=False):
        ours = efficient[(efficient["policy"] == policy) & (efficient["target"] == target)]
        ratio, ratio_error = rmse_ratio(*(some.set_index("draw")["square"] for some in (ours, own)))
        lines.append(
            {
                "policy": policy,
                "estimator": estimator,
                "target": target,
                **error_statistics(own),
                "effective_rows": float(own["effective_rows"].dropna().median()),
                "seconds": float(own["seconds"].mean()),
                "draws": int(own["estimate"].notna().sum()),
                "eff_over_this": ratio,
                "ratio_mc_error": ratio_error,
            }
        )
    return pd.DataFrame(lines)[_COLUMNS]


def rmse_ratio(ours: pd.Series[float], theirs: pd.Series[float]) -> tuple[float, float]:
    """Return the ratio of two root mean squared errors and its Monte Carlo error.

    Both series hold squared errors by draw; draws in which one of them has no answer are left out.
    """
    both = pd.concat([ours, theirs], axis=1, join="inner").dropna().to_numpy()
    mean = both.mean(axis=0)
    if len(both) < 2 or not (mean > 0).all():
        return float("nan"), float("nan")
    ratio = float(np.sqrt(mean[0] / mean[1]))
    relative = both[:, 0] / mean[0] - both[:, 1] / mean[1]
    return ratio, ratio * float(relative.std(ddof=1)) / (2 * np.sqrt(len(both)))


def _ratio_table(total: pd.DataFrame) -> str:
    lines = []
    for (problem, rows, policy), part in total.groupby(["problem", "rows", "policy"], sort=False):
        by_name = {str(line["estimator"]): line for line in part.to_dict("records")}
        own = by_name.get("eff-semi")
        if own is None:
            continue
        ratios = {f"over `{name}`": "" for name in _OTHERS} | {
            f"over `{name}`": f"{by_name[name]['eff_over_this']:.2f} ± {by_name[name]['ratio_mc_error']:.2f}"
            for name in _OTHERS
            if name in by_name
        }
        lines.append(
            {
                "problem": problem,
                "rows": f"{rows:,}",
                "policy": policy,
                **ratios,
                "bias / std error": f"{own['bias'] / own['mean_std_error']:+.2f}",
                "coverage": f"{100 * own['coverage']:.1f} %",
                "effective rows": f"{own['effective_rows']:,.0f}",
            }
        )
    return markdown(pd.DataFrame(lines))


def _table(total: pd.DataFrame) -> str:
    lines = [
        {
            "problem": r["problem"],
            "rows": f"{r['rows']:,}",
            "policy": r["policy"],
            "estimator": f"`{r['estimator']}`",
            "rmse": f"{r['rmse']:.3f}",
            "bias / MC error": f"{r['bias'] / r['bias_mc_error'] if r['bias_mc_error'] > 0 else 0.0:+.1f}",
            "coverage": f"{100 * r['coverage']:.1f} %",
            "effective rows": f"{r['effective_rows']:,.0f}",
            "seconds": f"{r['seconds']:.2f}",
            "draws": r["draws"],
        }
        for r in total.to_dict("records")
    ]
    return markdown(pd.DataFrame(lines))


def _page(summary: pd.DataFrame, n_draws: int, real_draws: int) -> str:
    total = summary[summary["target"] == "total"]
    sizes = " ".join(f"--rows {rows}" for rows in total["rows"].unique())
    return f"""# How precise the efficient estimator is

Made by `python -m studies efficiency --draws {n_draws} --real-draws {real_draws} {sizes} --data FOLDER`: data sets are drawn \
with replacement from complete rows, and values are hidden anew each time; the truth is the cost on all complete rows. The \
tables show, for the total cost, the root mean squared error (rmse), the bias divided by its Monte Carlo error, the coverage of \
95 % intervals, the effective rows of the weights (median), and seconds of one core per policy (`ipw-semi` and `drl-semi` \
together; `mi` with five imputations; policies compared in one call).

*mild* and *heavy* mechanisms are logistic in the first group. Under *heavy* one row in seven has all groups with a probability \
below 1 in 2,000, so the records say almost nothing about acquiring all groups in such rows. *nonlinear* is a mechanism that a \
linear propensity model does not fit: the default form detects that, and under *wrong propensity* the model is kept linear. In \
*parabola* the imputer of `mi` is linear and wrong. Draws in which an estimator gives no answer are left out (column draws).

## eff-semi beside the others

The rmse of `eff-semi` divided by that of the others, plus or minus the Monte Carlo error of the ratio; the bias of `eff-semi` \
divided by its standard error.

{_ratio_table(total)}

## All numbers

{_table(total)}
"""
