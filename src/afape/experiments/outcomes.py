"""The study of parts: how often intervals of rates, metrics, scores and the area under the ROC curve contain the truth."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from ..agents import DecisionRule
from ..arrays import Bools, Floats, Ints
from ..classifiers import ImputedClassifier
from ..evaluation import evaluate, true_parts
from ..metrics import metrics_of
from ..missingness import MCAR
from ..notices import AfapeWarning
from ..outcomes import brier, log_loss, score
from ..parts import Parts
from .study import run_draws
from .synthetic import synthetic_mar

__all__ = ["OutcomeDraw", "outcome_rule", "outcomes_study", "summary_of"]

ESTIMATOR = "eff-semi"


def outcome_rule(values: Floats, acquired: Bools) -> Ints:
    """x1 where x0 leaves a doubt, x2 where x1 or x0 is low."""
    first, second = values[:, 0], np.nan_to_num(values[:, 1])
    doubt = (np.abs(first) < 1.2) & ~acquired[:, 1] & ~acquired[:, 2]
    low = ~acquired[:, 2] & np.where(acquired[:, 1], second < 0.5, first <= -1.2)
    return np.where(doubt, 1, np.where(low, 2, 3))


class OutcomeDraw:
    """Draws data sets from the synthetic problem and estimates everything that is known of its population.

    Parameters
    ----------
    n_rows : int
        Rows of a data set.
    n_population : int
        Rows of the whole problem, a fifth of which trains the classifier.
    """

    def __init__(self, n_rows: int, n_population: int = 150_000) -> None:
        self.n_rows, self.experiment = n_rows, synthetic_mar(n_population)
        hidden = self.experiment.mechanism.hide(self.experiment.complete, 0)
        train, _ = hidden.split([0.2, 0.8], 0)
        _, self.population = self.experiment.complete.split([0.2, 0.8], 0)
        self.classifier = ImputedClassifier(LogisticRegression()).fit(train)
        self.policy = DecisionRule(outcome_rule)
        self.own = {
            "brier": brier(self.classifier),
            "log loss": log_loss(self.classifier),
            "risk": score(self.classifier),
        }
        self.truth = {name: value for name, value, *_ in _found(self._true_parts())} | {"AUC": self._true_auc()}

    def _true_parts(self) -> Parts:
        return true_parts(self.population, self.policy, self.classifier, outcomes=self.own)

    def _true_auc(self) -> float:
        """All weights are 1 where nothing is missing."""
        found = evaluate(
            self.population,
            self.policy,
            self.classifier,
            missingness=MCAR(),
            estimators=["ipw-semi"],
            outcomes={"risk": self.own["risk"]},
        )
        return found.auc("risk").value

    @property
    def study(self) -> str:
        """What the draws are of, so that those of another study are not taken for them."""
        return f"outcomes by {ESTIMATOR}; {self.n_rows} rows"

    def __call__(self, k: int) -> list[dict[str, Any]]:
        """Records of draw k, one per quantity."""
        rng = np.random.default_rng([11, k])
        complete = self.population.take(rng.integers(len(self.population), size=self.n_rows))
        data = self.experiment.mechanism.hide(complete, random_state=int(rng.integers(2**32)))
        with warnings.catch_warnings():
            # A small sample may clip a weight or lean on few rows; what that does to the estimate is what the study measures.
            warnings.simplefilter("ignore", AfapeWarning)
            result = evaluate(
                data,
                self.policy,
                self.classifier,
                missingness=self.experiment.missingness,
                estimators=[ESTIMATOR],
                outcomes=self.own,
            )
            area = result.auc("risk")
        found = [*_found(result.parts(ESTIMATOR)), ("AUC", area.value, area.std_error, *area.interval())]
        return [
            {
                "quantity": name,
                "truth": self.truth[name],
                "estimate": value,
                "std_error": error,
                "covered": low <= self.truth[name] <= high,
            }
            for name, value, error, low, high in found
        ]


def _found(parts: Parts) -> Iterator[tuple[str, float, float, float, float]]:
    """Name, value, standard error and interval of all that parts say."""
    for group, estimate in parts.rates.items():
        yield f"rate of {group}", estimate.value, estimate.std_error, *estimate.interval()
    for k, estimate in parts.counts.items():
        yield f"{k} acquisitions", estimate.value, estimate.std_error, *estimate.interval()
    for (true, predicted), estimate in parts.confusion.items():
        yield f"true {true}, predicted {predicted}", estimate.value, estimate.std_error, *estimate.interval()
    for metric in metrics_of(parts):
        low, high, _ = metric.interval(parts.confidence)
        assert metric.estimate is not None
        yield metric.name, metric.estimate.value, metric.estimate.std_error, low, high
    for name, estimate in parts.outcomes.items():
        yield name, estimate.value, estimate.std_error, *estimate.interval()


def summary_of(draws: pd.DataFrame) -> pd.DataFrame:
    """Bias, spread, mean standard error and coverage of every quantity, in the order of the first draw."""
    lines = []
    for name in dict.fromkeys(draws["quantity"]):
        mine = draws[draws["quantity"] == name]
        gap = mine["estimate"] - mine["truth"]
        n, spread = len(mine), float(mine["estimate"].std())
        covered = float(mine["covered"].mean())
        lines.append(
            {
                "quantity": name,
                "truth": float(mine["truth"].iloc[0]),
                "bias": float(gap.mean()),
                "bias_mc_error": spread / np.sqrt(n),
                "spread": spread,
                "mean_std_error": float(mine["std_error"].mean()),
                "coverage": covered,
                "coverage_mc_error": float(np.sqrt(max(covered * (1 - covered), 0.25 / n) / n)),
                "draws": n,
            }
        )
    return pd.DataFrame(lines)


def outcomes_study(
    out: Path,
    *,
    n_draws: int = 1000,
    n_rows: int = 2000,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Run the study, or what is left of it, and write its page."""
    draws = run_draws(OutcomeDraw(n_rows), n_draws, out / f"draws-{n_rows}", n_jobs=n_jobs, progress=progress)
    summary = summary_of(draws)
    summary.to_csv(out / "summary.csv", index=False)
    (out / "README.md").write_text(_page(summary, n_draws, n_rows))
    return summary


def _page(summary: pd.DataFrame, n_draws: int, n_rows: int) -> str:
    lines = [
        "# Coverage of rates, metrics and scores",
        "",
        f"Made by `afape study outcomes --draws {n_draws} --rows {n_rows}`: {n_draws:,} data sets of {n_rows:,} rows, drawn with "
        "replacement from the evaluation part of the synthetic MAR problem and hidden anew each time. The truth is that of the "
        "whole part, without gaps. The policy acquires x1 where x0 leaves a doubt, and x2 where x1 or x0 is low; the classifier "
        f"is a logistic regression. All but the AUC, which comes from weighted pairs, are estimated by `{ESTIMATOR}`, the "
        "recommended estimator. Intervals are 95 % intervals: of metrics and AUC on the logit scale, of the others plain. "
        "`summary.csv` has all figures.",
        "",
        "| quantity | truth | bias | bias / MC error | spread | mean standard error | coverage % | ± |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for line in summary.to_dict("records"):
        exact = line["bias_mc_error"] < 1e-12
        ratio = "exact" if exact else f"{line['bias'] / line['bias_mc_error']:+.1f}"
        lines.append(
            f"| {line['quantity']} | {line['truth']:.4g} | {line['bias']:.2g} | {ratio} | {line['spread']:.3g} | "
            f"{line['mean_std_error']:.3g} | {100 * line['coverage']:.1f} | {100 * line['coverage_mc_error']:.1f} |"
        )
    return "\n".join(lines) + "\n"
