"""The study of rates, metrics, scores and the area under the ROC curve: how often their intervals contain the truth."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from afape._arrays import Bools, Floats, Ints
from afape.agents.builtin import DecisionRule
from afape.benchmark.draws import run_draws
from afape.benchmark.identity import checksum_of_records
from afape.benchmark.page import markdown
from afape.benchmark.synthetic import SyntheticProblem, synthetic_mar
from afape.classifiers import ImputedClassifier
from afape.data.retrospective import Retrospective
from afape.evaluation import evaluate, true_parts
from afape.missingness.assumptions import MCAR
from afape.results.metrics import metrics_of
from afape.results.parts import Parts
from afape.walk.outcomes import brier, log_loss, score
from afape.warnings import AfapeWarning
from studies.simulation import Task, summarise

__all__ = ["OutcomeWorld", "make_outcome_world", "outcome_records", "outcomes_study"]

_ESTIMATOR = "eff-semi"


@dataclass(frozen=True, eq=False)
class OutcomeWorld:
    """Complete rows that data sets are drawn from, with policy, classifier, outcomes, and the truth by quantity."""

    problem: SyntheticProblem
    population: Retrospective
    policy: DecisionRule
    classifier: ImputedClassifier
    outcomes: Mapping[str, Any]
    truth: Mapping[str, float]


def make_outcome_world(n_population: int = 150_000) -> OutcomeWorld:
    """Train a logistic regression on a fifth of the rows, and compute the truth on the other rows."""
    problem = synthetic_mar(n_population)
    train, _ = problem.mechanism.hide(problem.complete, 0).split([0.2, 0.8], 0)
    _, population = problem.complete.split([0.2, 0.8], 0)
    classifier, policy = ImputedClassifier(LogisticRegression()).fit(train), DecisionRule(_rule)
    outcomes = {"brier": brier(classifier), "log loss": log_loss(classifier), "risk": score(classifier)}
    parts = true_parts(population, policy, classifier, outcomes=outcomes)
    complete = evaluate(  # without gaps all weights are 1
        population, policy, classifier, missingness=MCAR(), estimators=["ipw-semi"], outcomes={"risk": outcomes["risk"]}
    )
    truth = {name: value for name, value, *_ in _quantities(parts)} | {"AUC": complete.auc("risk").value}
    return OutcomeWorld(problem, population, policy, classifier, outcomes, truth)


def _rule(values: Floats, acquired: Bools) -> Ints:
    """Acquire x1 where x0 is near 0, and x2 where x1 or x0 is low; action 3 stops."""
    first, second = values[:, 0], np.nan_to_num(values[:, 1])
    near = (np.abs(first) < 1.2) & ~acquired[:, 1] & ~acquired[:, 2]
    low = ~acquired[:, 2] & np.where(acquired[:, 1], second < 0.5, first <= -1.2)
    return np.where(near, 1, np.where(low, 2, 3))


def outcome_records(world: OutcomeWorld, n_rows: int, k: int) -> list[dict[str, Any]]:
    """Draw data set k and return one record per quantity."""
    rng = np.random.default_rng([11, k])
    complete = world.population.take(rng.integers(len(world.population), size=n_rows))
    data = world.problem.mechanism.hide(complete, random_state=int(rng.integers(2**32)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AfapeWarning)  # the study measures how clipped or large weights affect errors
        result = evaluate(
            data,
            world.policy,
            world.classifier,
            missingness=world.problem.missingness,
            estimators=[_ESTIMATOR],
            outcomes=world.outcomes,
        )
        area = result.auc("risk")
    found = [*_quantities(result.parts(_ESTIMATOR)), ("AUC", area.value, area.std_error, *area.interval())]
    return [
        {
            "quantity": name,
            "truth": world.truth[name],
            "estimate": value,
            "std_error": error,
            "covered": low <= world.truth[name] <= high,
        }
        for name, value, error, low, high in found
    ]


def _quantities(parts: Parts) -> Iterator[tuple[str, float, float, float, float]]:
    """Give name, value, standard error and interval of everything that follows from the parts."""
    named = {f"rate of {group}": estimate for group, estimate in parts.rates.items()}
    named |= {f"{k} acquisitions": estimate for k, estimate in parts.counts.items()}
    named |= {f"true {true}, predicted {code}": estimate for (true, code), estimate in parts.confusion.items()}
    for name, estimate in named.items():
        yield name, estimate.value, estimate.std_error, *estimate.interval()
    for metric in metrics_of(parts):
        low, high, _ = metric.interval(parts.confidence)
        assert metric.estimate is not None
        yield metric.name, metric.estimate.value, metric.estimate.std_error, low, high
    for name, estimate in parts.outcomes.items():
        yield name, estimate.value, estimate.std_error, *estimate.interval()


def outcomes_study(task: Task) -> pd.DataFrame:
    """Measure intervals of rates, sensitivity, predictive values, Brier score and AUC."""
    world = make_outcome_world()
    draws = run_draws(
        partial(outcome_records, world, task.n_rows),
        task.n_draws,
        task.out / f"draws-{task.n_rows}",
        f"outcomes by {_ESTIMATOR}; {task.n_rows} rows; {checksum_of_records(world.population)}",
        n_jobs=task.n_jobs,
        progress=task.progress,
    )
    summary = summarise(draws, ["quantity"]).drop(columns="rmse")
    summary.to_csv(task.out / "summary.csv", index=False)
    _write_page(summary, task)
    return summary


def _write_page(summary: pd.DataFrame, task: Task) -> None:
    lines = [
        {
            "quantity": line["quantity"],
            "truth": f"{line['truth']:.4g}",
            "bias": f"{line['bias']:.2g}",
            "bias / MC error": "exact"
            if line["bias_mc_error"] < 1e-12
            else f"{line['bias'] / line['bias_mc_error']:+.1f}",
            "spread": f"{line['std_deviation']:.3g}",
            "mean standard error": f"{line['mean_std_error']:.3g}",
            "coverage %": f"{100 * line['coverage']:.1f}",
            "±": f"{100 * line['coverage_mc_error']:.1f}",
        }
        for line in summary.to_dict("records")
    ]
    (task.out / "README.md").write_text(
        "# Coverage of rates, metrics and scores\n\n"
        f"Made by `python -m studies outcomes --draws {task.n_draws} --rows {task.n_rows}`: {task.n_draws:,} data sets of "
        f"{task.n_rows:,} rows, drawn with replacement from the evaluation rows of the synthetic MAR problem; values are hidden "
        "anew each time. The truth comes from all evaluation rows, without gaps. The policy acquires x1 where x0 is near 0, and "
        "x2 where x1 or x0 is low; the classifier is a logistic regression. The AUC is estimated from weighted pairs, all "
        f"other quantities by `{_ESTIMATOR}`. Intervals are 95 % intervals: on the logit scale for metrics and AUC, plain for "
        f"the others. `summary.csv` has all numbers.\n\n{markdown(pd.DataFrame(lines))}\n"
    )
