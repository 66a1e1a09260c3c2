"""Studies of learned nuisances: the correction for learned propensities, and regressors for action values."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from afape.action_values.models import LearnedValues
from afape.benchmark.page import markdown
from afape.benchmark.synthetic import saturated_mar, synthetic_mar
from afape.propensity.learned import LearnedPropensity
from studies.coverage import SEMI
from studies.pages import made_by
from studies.simulation import Setting, Task, population_of, simulate

__all__ = ["correction_study", "values_study"]


def correction_study(task: Task) -> pd.DataFrame:
    """Measure how standard errors change if they account for a learned propensity."""
    settings = [
        Setting(name, ["ipw-semi"], options={"propensity": LearnedPropensity(stacked=stacked)})
        for name, stacked in (("stacked", True), ("as if known", False))
    ]
    tables = []
    for problem in (saturated_mar(), synthetic_mar()):
        population = population_of(problem, ["Random 10 %", "Random 50 %", "Random 90 %"])
        found = simulate(replace(task, out=task.out / problem.name), population, settings)
        tables.append(found.assign(problem=problem.name))
    summary = pd.concat(tables, ignore_index=True)
    summary.to_csv(task.out / "summary.csv", index=False, float_format="%.6g")
    _write_correction_page(summary, task)
    return summary


def _write_correction_page(summary: pd.DataFrame, task: Task) -> None:
    """Write standard errors with and without the correction, beside the standard deviation of the estimates."""
    lines = []
    costs = summary[summary["target"] != "total"]
    for (problem, policy, target), own in costs.groupby(["problem", "policy", "target"], sort=False):
        errors = own.set_index("setting")
        spread = errors["std_deviation"].iloc[0]
        lines.append(
            {
                "problem": problem,
                "policy": policy,
                "target": target,
                "spread of ipw-semi": f"{spread:.3g}",
                "stacked error / spread": f"{errors.loc['stacked', 'mean_std_error'] / spread:.2f}",
                "error as if known / spread": f"{errors.loc['as if known', 'mean_std_error'] / spread:.2f}",
            }
        )
    (task.out / "README.md").write_text(
        f"# What learning the propensity does to standard errors\n\n{made_by('correction', task, 'two problems')}"
        "A learned propensity makes `ipw-semi` *more* precise than the true one, because it removes chance imbalances. A "
        "standard error that treats the propensity as known misses that; stacked estimating equations do not. In "
        "`saturated-mar` recording depends on one binary column, so the logistic model is exact. There the acquisition cost "
        "has no error of first order. Its error is of second order, which no such standard error describes.\n\n"
        f"{markdown(pd.DataFrame(lines))}\n"
    )


def values_study(task: Task) -> pd.DataFrame:
    """Compare regressors for action values, with and without the label."""
    settings = [
        Setting(
            f"{preset}, {'with' if label else 'without'} label", SEMI, options={"values": LearnedValues(preset, label)}
        )
        for preset in ("quadratic", "boosting")
        for label in (True, False)
    ]
    summary = simulate(task, population_of(synthetic_mar()), settings, batch=4)
    _write_values_page(summary, task)
    return summary


def _write_values_page(summary: pd.DataFrame, task: Task) -> None:
    """Write root mean squared errors by regressor and label, relative to `ipw-semi`."""
    costs = summary[summary["target"] == "misclassification"]
    base = costs[costs["estimator"] == "ipw-semi"].groupby("policy")["rmse"].first()
    lines = []
    others = costs[costs["estimator"] != "ipw-semi"]
    for (estimator, setting), own in others.groupby(["estimator", "setting"], sort=False):
        ratios = {policy: f"{r / base[policy]:.3f}" for policy, r in zip(own["policy"], own["rmse"], strict=True)}
        lines.append({"estimator": estimator, "values": setting, **ratios})
    (task.out / "README.md").write_text(
        f"# How action values are best learned\n\n{made_by('values', task)}Root mean squared error of the misclassification "
        "cost, divided by that of `ipw-semi` on the same data sets; smaller is better.\n\n"
        f"{markdown(pd.DataFrame(lines))}\n"
    )
