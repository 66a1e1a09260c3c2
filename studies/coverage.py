"""Studies of intervals: how often they contain the truth, by influence values, graphs and bootstrap."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from afape.benchmark.synthetic import synthetic_mar, synthetic_mnar
from afape.estimators.catalogue import Choice
from afape.missingness.assumptions import MAR, MNAR
from afape.run.bootstrap import Bootstrap
from afape.run.plan import choices_under
from studies.pages import figure_axes, formatted, in_mc_errors, made_by, save_figure, table_of
from studies.simulation import Setting, Task, population_of, simulate

__all__ = ["COVERED", "SEMI", "bootstrap_study", "coverage_study", "mnar_study"]


def _quick(missingness: MAR | MNAR) -> list[Choice]:
    """Return the estimators with learned and known propensities, except those on completed rows, which are slow."""
    choices = choices_under(missingness, {"learned": None, "known": None})
    return [c for c in choices if not c.method.imputes and not c.method.composed]


COVERED = [c.name for c in _quick(MAR(["x0"]))]
_LEARNED = [c.method for c in _quick(MAR(["x0"])) if c.method.semi_offline and c.name == c.method.name]
SEMI = [method.name for method in _LEARNED]


def coverage_study(task: Task) -> pd.DataFrame:
    """Measure intervals from influence values, with learned and true propensities."""
    settings = [Setting("default", [*COVERED, "eff-semi"], known=True)]
    summary = simulate(task, population_of(synthetic_mar()), settings)
    words = (
        "Propensities and action values are learned and cross-fitted; `-gt` uses the true propensities. Intervals are 95 % "
        "intervals from influence values. `imp-mean`, `blocking` and `cc` are shown "
        "because they are biased.\n\n"
    )
    _write_page(summary, task.out, f"# Coverage of the intervals\n\n{made_by('coverage', task)}{words}", [])
    return summary


def mnar_study(task: Task) -> pd.DataFrame:
    """Analyse the synthetic MNAR problem by its graph, and as if it were MAR."""
    problem = synthetic_mnar()
    weighting = [c for c in _quick(problem.missingness) if c.method.weighs and not c.method.semi_offline]
    settings = [
        Setting("the graph", [*(c.name for c in weighting), "eff-semi-miss"], known=True),
        Setting("as if MAR", [m.name for m in _LEARNED if m.weighs], missingness=MAR(["x0"])),
    ]
    summary = simulate(task, population_of(problem), settings)
    words = (
        "Recording x2 depends on x1, which has gaps. Under *the graph* weights adjust for x1 in rows that have it; *as if MAR* "
        "conditions on x0 only, so `ipw-semi` and `drl-semi` are biased. `-gt` uses the true propensities.\n\n"
    )
    head = f"# Missing not at random\n\n{made_by('mnar', task, 'the synthetic MNAR problem')}{words}"
    _write_page(summary, task.out, head, ["setting"])
    return summary


def bootstrap_study(task: Task, n_replicates: int = 60) -> pd.DataFrame:
    """Compare the refitting bootstrap with the frozen bootstrap of the paper."""
    settings = [
        Setting(name, SEMI, options={"bootstrap": Bootstrap(n_replicates, refit=refit)})
        for name, refit in (("refitting", True), ("frozen", False))
    ]
    population = population_of(synthetic_mar(), ["Random 10 %", "Random 50 %", "Adaptive"])
    summary = simulate(task, population, settings, ("bootstrap-normal", "bootstrap-percentile"), batch=4)
    words = (
        f"{n_replicates} replicates per data set. *refitting* learns propensities and action values again in every replicate, "
        "*frozen* keeps them, like the paper. For `ipw-semi` and `drl-semi` influence values give the same for the price of "
        "one evaluation.\n\n"
    )
    head = f"# Coverage of the bootstrap\n\n{made_by('bootstrap', task)}{words}"
    _write_page(summary, task.out, head, ["setting", "interval"])
    return summary


def _write_page(summary: pd.DataFrame, out: Path, head: str, first: list[str]) -> None:
    """Write ``README.md`` and ``coverage.svg``; ``first`` names the columns before the policy."""
    _draw(summary, out / "coverage.svg")
    shown = summary.assign(
        **{
            "bias / MC error": in_mc_errors(summary),
            "coverage %": formatted(100 * summary["coverage"], "{:.1f}"),
            "±": formatted(100 * summary["coverage_mc_error"], "{:.1f}"),
        }
    )
    # An exact estimate has a bias and a Monte Carlo error of rounding.
    shown.loc[summary["rmse"] < 1e-9 * summary["truth"].abs(), "bias / MC error"] = "exact"
    columns = ["policy", "estimator", "target", "truth", "bias", "bias / MC error", "rmse", "mean_std_error"]
    table = table_of(shown, [*first, *columns, "coverage %", "±"])
    (out / "README.md").write_text(f"{head}![Coverage](coverage.svg)\n\n{table}\n")


def _draw(summary: pd.DataFrame, file: Path) -> None:
    names = summary["estimator"]
    for column in ("setting", "interval"):
        if summary[column].nunique() > 1:
            names = names + ", " + summary[column].str.replace("bootstrap-", "")
    summary = summary.assign(name=names)
    policies, rows = list(dict.fromkeys(summary["policy"])), list(dict.fromkeys(names))[::-1]
    figure, axes = figure_axes(policies, rows, 0.42 * len(rows) + 1.4)
    for axis, policy in zip(axes, policies, strict=True):
        axis.axvspan(93, 97, color="0.9", zorder=0)
        axis.axvline(95, color="0.6", lw=0.8, zorder=1)
        for j, target in enumerate(dict.fromkeys(summary["target"])):
            own = summary[(summary["policy"] == policy) & (summary["target"] == target)].set_index("name").reindex(rows)
            place = np.arange(len(rows)) + 0.22 * (1 - j)
            error = 196 * own["coverage_mc_error"]
            axis.errorbar(100 * own["coverage"], place, xerr=error, fmt="osD^v"[j % 5], ms=4, lw=1, label=target)
        axis.set_xlim(-4, 104)
        axis.set_xlabel("coverage (%)")
    save_figure(figure, file)
