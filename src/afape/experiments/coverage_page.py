"""The page of the coverage study: a figure and a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

__all__ = ["write_page"]


def write_page(summary: pd.DataFrame, out: Path, *, n_draws: int, n_rows: int) -> None:
    """Write ``README.md`` and ``coverage.svg`` beside the summary."""
    _figure(summary, out / "coverage.svg")
    shown = summary.assign(
        **{
            "bias / MC error": (summary["bias"] / summary["bias_mc_error"]).map("{:+.1f}".format),
            "coverage %": (100 * summary["coverage"]).map("{:.1f}".format),
            "± ": (100 * summary["coverage_mc_error"]).map("{:.1f}".format),
        }
    )
    for column in ("truth", "bias", "rmse", "mean_std_error"):
        shown[column] = shown[column].map("{:.4g}".format)
    columns = ["policy", "estimator", "target", "truth", "bias", "bias / MC error", "rmse", "mean_std_error"]
    columns += ["coverage %", "± "]
    head = "| " + " | ".join(columns) + " |\n" + "|" + " --- |" * len(columns)
    body = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in shown[columns].itertuples(index=False))
    (out / "README.md").write_text(
        "# Coverage of the intervals\n\n"
        f"Made by `afape study coverage --draws {n_draws} --rows {n_rows}` (`make study`): {n_draws:,} data sets of "
        f"{n_rows:,} rows, drawn with replacement from the evaluation part of the synthetic MAR problem and hidden anew "
        "each time. The truth is the cost on that whole part, without gaps. Learned propensities are cross-fitted "
        "logistic regressions; `-gt` uses the true ones. Intervals are 95 % normal intervals. `imp-mean`, `blocking` and "
        "`cc` are here to be seen failing. `summary.csv` has all figures.\n\n"
        "![Coverage by policy and estimator](coverage.svg)\n\n"
        f"{head}\n{body}\n"
    )


def _figure(summary: pd.DataFrame, file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    policies = list(dict.fromkeys(summary["policy"]))
    estimators = list(dict.fromkeys(summary["estimator"]))[::-1]
    targets = ["acquisition", "misclassification", "total"]
    figure, axes = plt.subplots(
        1, len(policies), figsize=(3.2 * len(policies), 0.42 * len(estimators) + 1.6), sharey=True, layout="constrained"
    )
    for axis, policy in zip(np.atleast_1d(axes), policies, strict=True):
        axis.axvspan(93, 97, color="0.9", zorder=0)
        axis.axvline(95, color="0.6", lw=0.8, zorder=1)
        for j, target in enumerate(targets):
            part = summary[(summary["policy"] == policy) & (summary["target"] == target)].set_index("estimator")
            part = part.reindex(estimators)
            axis.errorbar(
                100 * part["coverage"],
                np.arange(len(estimators)) + 0.22 * (1 - j),
                xerr=196 * part["coverage_mc_error"],
                fmt="osD"[j],
                ms=4,
                lw=1,
                label=target,
            )
        axis.set_title(policy, fontsize=10)
        axis.set_xlim(-4, 104)
        axis.set_xlabel("coverage (%)")
    np.atleast_1d(axes)[0].set_yticks(np.arange(len(estimators)), estimators)
    np.atleast_1d(axes)[-1].legend(fontsize=8, loc="lower left")
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
