"""Pages of the studies: a few words, a figure and a table each."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

__all__ = [
    "require_matplotlib",
    "write_correction_page",
    "write_coverage_page",
    "write_robustness_page",
    "write_values_page",
]

_TARGETS = ("acquisition", "misclassification", "total")
_MNAR = (
    "Whether x2 is recorded depends on x1, which has gaps itself. Under *the graph* weights adjust for x1 in rows that have "
    "it; *as if MAR* conditions on x0 alone, as one would who does not know better, and `ipw-semi` and `drl-semi` are here to "
    "be seen failing. `-gt` uses the true propensities.\n\n"
)


def require_matplotlib() -> None:
    """Refuse to start a study whose figures could not be drawn at its end."""
    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            "Studies draw figures with matplotlib, which is not installed: pip install 'afape[plot]'."
        )


def _made_by(command: str, n_draws: int, n_rows: int, problem: str = "synthetic MAR problem") -> str:
    return (
        f"Made by `afape study {command} --draws {n_draws} --rows {n_rows}`: {n_draws:,} data sets of {n_rows:,} rows, drawn "
        f"with replacement from the evaluation part of the {problem} and hidden anew each time. The truth is "
        "the cost on that whole part, without gaps. `summary.csv` has all figures.\n\n"
    )


def write_coverage_page(
    summary: pd.DataFrame, out: Path, command: str, *, n_draws: int, n_rows: int, replicates: int = 0
) -> None:
    """Coverage by policy, estimator and target."""
    _coverage_figure(summary, out / "coverage.svg")
    if replicates:
        words = (
            f"{replicates} replicates a data set. *refitting* learns propensities and action values again in every "
            "replicate, *frozen* keeps them, as the paper did. For `ipw-semi` and `drl-semi` influence values do the "
            "same for the price of one evaluation.\n\n"
        )
    else:
        words = (
            "Propensities and action values are learned and cross-fitted; `-gt` uses the true propensities. Intervals are "
            "95 % intervals from influence values; `dm-semi` has none without bootstrap. `imp-mean`, `blocking` and "
            "`cc` are here to be seen failing.\n\n"
        )
    shown = summary.assign(
        **{
            "bias / MC error": _format(summary["bias"] / summary["bias_mc_error"], "{:+.1f}"),
            "coverage %": _format(100 * summary["coverage"], "{:.1f}"),
            "±": _format(100 * summary["coverage_mc_error"], "{:.1f}"),
        }
    )
    # An estimate that is exact has a bias of rounding, and a Monte Carlo error of rounding too.
    exact = summary["rmse"] < 1e-9 * summary["truth"].abs()
    shown.loc[exact, "bias / MC error"] = "exact"
    columns = ["policy", "estimator", "target", "truth", "bias", "bias / MC error", "rmse", "mean_std_error"]
    columns = [*(["setting", "interval"] if replicates else []), *columns, "coverage %", "±"]
    title = "Coverage of the bootstrap" if replicates else "Coverage of the intervals"
    problem = "synthetic MAR problem"
    if command == "mnar":
        title, problem, words, columns = "Missing not at random", "synthetic MNAR problem", _MNAR, ["setting", *columns]
    (out / "README.md").write_text(
        f"# {title}\n\n{_made_by(command, n_draws, n_rows, problem)}{words}![Coverage](coverage.svg)\n\n"
        f"{_table(shown, columns)}\n"
    )


def write_robustness_page(summary: pd.DataFrame, out: Path, *, n_draws: int, n_rows: int) -> None:
    """Bias with right and wrong nuisances."""
    part = summary[(summary["target"] == "misclassification")]
    figure, axes = _axes(list(dict.fromkeys(part["policy"])), 2.6)
    settings = list(dict.fromkeys(part["setting"]))[::-1]
    for axis, (policy, lines) in zip(axes, part.groupby("policy", sort=False), strict=True):
        axis.axvline(0, color="0.6", lw=0.8)
        for j, (estimator, own) in enumerate(lines.groupby("estimator", sort=False)):
            own = own.set_index("setting").reindex(settings)
            place = np.arange(len(settings)) + 0.22 * (1 - j)
            axis.errorbar(
                own["bias"], place, xerr=1.96 * own["std_deviation"], fmt="osD^v"[j % 5], ms=4, lw=1, label=estimator
            )
        axis.set_title(str(policy), fontsize=10)
        axis.set_xlabel("error of misclassification cost")
    axes[0].set_yticks(np.arange(len(settings)), settings)
    axes[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    _save(figure, out / "robustness.svg")
    shown = part.assign(**{"bias / MC error": _format(part["bias"] / part["bias_mc_error"], "{:+.1f}")})
    columns = ["setting", "policy", "estimator", "truth", "bias", "bias / MC error", "rmse"]
    (out / "README.md").write_text(
        "# Double robustness\n\n"
        + _made_by("robustness", n_draws, n_rows)
        + "A propensity or action value that is wrong here is a constant. `drl-semi` needs one of the two to be right. Points "
        "are biases, bars reach over 95 % of the data sets.\n\n![Errors](robustness.svg)\n\n"
        f"{_table(shown, columns)}\n"
    )


def write_values_page(summary: pd.DataFrame, out: Path, *, n_draws: int, n_rows: int) -> None:
    """Root mean squared error by regressor and label."""
    part = summary[(summary["target"] == "misclassification") & (summary["estimator"] != "ipw-semi")]
    weighted = summary[(summary["target"] == "misclassification") & (summary["estimator"] == "ipw-semi")]
    base = weighted.groupby("policy")["rmse"].first()
    lines = []
    for (estimator, setting), own in part.groupby(["estimator", "setting"], sort=False):
        ratios = {policy: f"{r / base[policy]:.3f}" for policy, r in zip(own["policy"], own["rmse"], strict=True)}
        lines.append({"estimator": estimator, "values": setting, **ratios})
    table = pd.DataFrame(lines)
    (out / "README.md").write_text(
        "# How action values are best learned\n\n"
        + _made_by("values", n_draws, n_rows)
        + "Root mean squared error of the misclassification cost over that of `ipw-semi` on the same data sets; less is "
        f"better.\n\n{_table(table, list(table.columns))}\n"
    )


def write_correction_page(summary: pd.DataFrame, out: Path, *, n_draws: int, n_rows: int) -> None:
    """Standard errors with and without the correction, beside the true spread."""
    lines = []
    for (problem, policy, target), part in summary.groupby(["problem", "policy", "target"], sort=False):
        if target == "total":
            continue
        errors = part.set_index("setting")
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
    table = pd.DataFrame(lines)
    (out / "README.md").write_text(
        "# What learning the propensity does to standard errors\n\n"
        + _made_by("correction", n_draws, n_rows).replace("the synthetic MAR problem", "two problems")
        + "A learned propensity makes `ipw-semi` *more* precise than the true one, because it takes chance imbalances away. "
        "An error that treats it as known misses that; stacked estimating equations do not. In `saturated-mar` "
        "missingness depends on one binary column, so the logistic model holds whatever the truth; there the acquisition cost "
        "has no error of first order at all, and what is left is of second order, which no such error describes.\n\n"
        f"{_table(table, list(table.columns))}\n"
    )


def _format(values: pd.Series[Any], pattern: str) -> pd.Series[Any]:
    return values.map(lambda v: "" if np.isnan(v) else pattern.format(v))


def _table(shown: pd.DataFrame, columns: Sequence[str]) -> str:
    shown = shown.copy()
    for column in ("truth", "bias", "rmse", "mean_std_error"):
        if column in columns:
            shown[column] = _format(shown[column], "{:.4g}")
    head = "| " + " | ".join(columns) + " |\n" + "|" + " --- |" * len(columns)
    lines = shown[list(columns)].itertuples(index=False)
    return head + "\n" + "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _axes(titles: list[Any], height: float) -> tuple[Any, list[Any]]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(titles), figsize=(3.2 * len(titles), height), sharey=True, layout="constrained", squeeze=False
    )
    return figure, list(axes[0])


def _save(figure: Any, file: Path) -> None:
    import matplotlib.pyplot as plt

    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def _coverage_figure(summary: pd.DataFrame, file: Path) -> None:
    names = summary["estimator"]
    for what in ("setting", "interval"):
        if summary[what].nunique() > 1:
            names = names + ", " + summary[what].str.replace("bootstrap-", "")
    summary = summary.assign(name=names)
    policies = list(dict.fromkeys(summary["policy"]))
    rows = list(dict.fromkeys(summary["name"]))[::-1]
    figure, axes = _axes(policies, 0.42 * len(rows) + 1.4)
    for axis, policy in zip(axes, policies, strict=True):
        axis.axvspan(93, 97, color="0.9", zorder=0)
        axis.axvline(95, color="0.6", lw=0.8, zorder=1)
        for j, target in enumerate(_TARGETS):
            part = summary[(summary["policy"] == policy) & (summary["target"] == target)]
            part = part.set_index("name").reindex(rows)
            axis.errorbar(
                100 * part["coverage"],
                np.arange(len(rows)) + 0.22 * (1 - j),
                xerr=196 * part["coverage_mc_error"],
                fmt="osD^v"[j % 5],
                ms=4,
                lw=1,
                label=target,
            )
        axis.set_title(policy, fontsize=10)
        axis.set_xlim(-4, 104)
        axis.set_xlabel("coverage (%)")
    axes[0].set_yticks(np.arange(len(rows)), rows)
    axes[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    _save(figure, file)
