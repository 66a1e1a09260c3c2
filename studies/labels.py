"""The study of labels with gaps: weighed, or the rows without a label left out."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from afape.benchmark.synthetic import SyntheticProblem, synthetic_mar
from afape.missingness.mechanisms import LogisticMechanism
from studies.coverage import SEMI
from studies.pages import formatted, in_mc_errors, made_by, table_of
from studies.simulation import Setting, Task, population_of, simulate

__all__ = ["labels_study"]

_DROPPED = 100  # data sets from which rows are dropped, at most: its bias is many Monte Carlo errors


def labels_study(task: Task) -> pd.DataFrame:
    """Hide labels by the free group, and compare both ways to deal with it."""
    plain = synthetic_mar()
    groups = plain.mechanism
    assert isinstance(groups, LogisticMechanism)
    mechanism = LogisticMechanism({**groups.intercepts, "Y": 0.2}, {**groups.weights, "Y": {"X0": 0.8}})
    problem = SyntheticProblem("synthetic-mar with hidden labels", plain.complete, mechanism, plain.missingness)
    estimators = [*SEMI, "eff-semi"]
    population = population_of(problem, ("Random 50 %", "Adaptive"))
    settings = {
        "weighed": (Setting("weighed", estimators), task.n_draws),
        "dropped": (Setting("dropped", estimators, drop_unlabelled=True), min(task.n_draws, _DROPPED)),
    }
    found = [
        simulate(replace(task, out=task.out / f"draws-{name}", n_draws=n), population, [setting])
        for name, (setting, n) in settings.items()
    ]
    summary = pd.concat(found, ignore_index=True)
    summary.to_csv(task.out / "summary.csv", index=False, float_format="%.6g")
    _write_page(summary, task)
    return summary


def _write_page(summary: pd.DataFrame, task: Task) -> None:
    shown = summary[summary["target"] == "misclassification"]
    columns = ["setting", "policy", "estimator", "truth", "bias", "bias / MC error", "rmse", "coverage %", "±"]
    table = shown.assign(
        **{
            "bias / MC error": in_mc_errors(shown),
            "coverage %": formatted(100 * shown["coverage"], "{:.1f}"),
            "±": formatted(100 * shown["coverage_mc_error"], "{:.1f}"),
        }
    )
    task.out.mkdir(parents=True, exist_ok=True)
    (task.out / "README.md").write_text(
        f"# Labels with gaps\n\n{made_by('labels', task)}About half of the labels are hidden, more often where the free feature "
        'is small. *Weighed* is `missing_labels="weigh"`; *dropped* leaves out the rows without a label, as if labels were '
        f"missing completely at random (in the first {min(task.n_draws, _DROPPED)} data sets). "
        "Propensities and action values are learned.\n\n"
        f"{table_of(table, columns)}\n"
    )
