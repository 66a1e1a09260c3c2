"""The study of double robustness: propensity or action values wrong on purpose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier, DummyRegressor

from afape.action_values.models import LearnedValues, ValueRegressor
from afape.benchmark.synthetic import synthetic_mar
from afape.propensity.learned import LearnedPropensity
from studies.coverage import SEMI as FAST
from studies.pages import figure_axes, formatted, in_mc_errors, made_by, save_figure, table_of
from studies.simulation import Setting, Task, population_of, simulate

__all__ = ["robustness_study"]

SEMI = [*FAST, "eff-semi"]


def robustness_study(task: Task) -> pd.DataFrame:
    """Make the propensity, the action values or both constant: Figure 3B of the paper."""
    propensity = LearnedPropensity(DummyClassifier(strategy="prior"))
    values = LearnedValues(ValueRegressor(DummyRegressor(), pooled=True, multi_output=True), augment_label=False)
    settings = [
        Setting("both right", SEMI),
        Setting("propensity constant", SEMI, options={"propensity": propensity}),
        Setting("values constant", SEMI, options={"values": values}),
        Setting("both constant", SEMI, options={"propensity": propensity, "values": values}),
    ]
    summary = simulate(task, population_of(synthetic_mar()), settings, batch=4)
    _write_page(summary, task)
    return summary


def _write_page(summary: pd.DataFrame, task: Task) -> None:
    shown = summary[summary["target"] == "misclassification"]
    _draw(shown, task.out / "robustness.svg")
    columns = ["setting", "policy", "estimator", "truth", "bias", "bias / MC error", "rmse", "coverage %", "±"]
    table = shown.assign(
        **{
            "bias / MC error": in_mc_errors(shown),
            "coverage %": formatted(100 * shown["coverage"], "{:.1f}"),
            "±": formatted(100 * shown["coverage_mc_error"], "{:.1f}"),
        }
    )
    (task.out / "README.md").write_text(
        f"# Double robustness\n\n{made_by('robustness', task)}A wrong propensity or action value is a constant here. "
        "`drl-semi` needs one of the two to be right; `eff-semi` needs the propensity, or its imputation model (nearly right "
        "here) and the action values. "
        "Standard errors include the error of action values if these are learned by ridge regression, as in the first two "
        "settings, and of the conditional means of `eff-semi`. Points are biases; bars cover 95 % of the data sets.\n\n"
        f"![Errors](robustness.svg)\n\n{table_of(table, columns)}\n"
    )


def _draw(summary: pd.DataFrame, file: Path) -> None:
    policies, settings = list(dict.fromkeys(summary["policy"])), list(dict.fromkeys(summary["setting"]))[::-1]
    figure, axes = figure_axes(policies, settings, 2.6)
    for axis, policy in zip(axes, policies, strict=True):
        axis.axvline(0, color="0.6", lw=0.8)
        for j, estimator in enumerate(dict.fromkeys(summary["estimator"])):
            own = summary[(summary["policy"] == policy) & (summary["estimator"] == estimator)]
            own = own.set_index("setting").reindex(settings)
            place, error = np.arange(len(settings)) + 0.22 * (1 - j), 1.96 * own["std_deviation"]
            axis.errorbar(own["bias"], place, xerr=error, fmt="osD^v"[j % 5], ms=4, lw=1, label=estimator)
        axis.set_xlabel("error of misclassification cost")
    save_figure(figure, file)
