"""The page of an experiment: what was done, figures, and tables of errors and coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from .summary import COSTS

if TYPE_CHECKING:
    from .runner import Finished

__all__ = ["coverage_table", "efficiency_table", "markdown", "write_page"]


def markdown(table: pd.DataFrame) -> str:
    """Return a table of texts in Markdown."""
    head = "| " + " | ".join(map(str, table.columns)) + " |\n|" + " --- |" * len(table.columns)
    lines = ["| " + " | ".join(map(str, line)) + " |" for line in table.itertuples(index=False)]
    return "\n".join([head, *lines])


def write_page(finished: Finished, command: str) -> None:
    """Write ``README.md`` into the folder of the experiment."""
    description, folder = finished.description, finished.folder
    texts = [f"# {description.title}", description.about.strip(), _how(finished, command)]
    for spec in description.figures:
        pictures = [f"![{spec.title}]({name}.png)" for name in spec.files.values()]
        texts += [f"## {spec.title or spec.name}", *pictures, spec.words.strip()]
    if len(finished.efficiency):
        texts += ["## Rows needed at equal root mean squared error", _EFFICIENCY, markdown(efficiency_table(finished))]
    texts += ["## Errors and coverage", _COVERAGE]
    for target in COSTS:
        texts += [f"### {target.capitalize()} cost", markdown(coverage_table(finished, target))]
    if warned := _support(finished):
        texts += ["## Support", warned]
    (folder / "README.md").write_text("\n\n".join(text for text in texts if text) + "\n", encoding="utf-8")


_EFFICIENCY = (
    "How many times fewer rows an estimator needs than `ipw-miss` (with a true propensity: than `ipw-miss-gt`) for the same root "
    "mean squared error, with the range of 95 % of bootstrap replicates. *never*: the estimator is known to "
    "be biased, or its bias at the largest size exceeds four Monte Carlo errors; more rows do not remove a bias. The ratio of a "
    "run with one size and few data sets is rough."
)
_COVERAGE = (
    "*complete* is the cost of the drawn rows without gaps, which the paper calls J. Bias is the mean difference from it or from "
    "J over the data sets, whichever varies less. *bias / its error* is the bias divided by its Monte Carlo error; beyond about "
    "4 it is not chance. *covered* counts the data sets whose 95 % interval contains J."
)


def _how(finished: Finished, command: str) -> str:
    description = finished.description
    train = f"{100 * description.train:.0f} %"
    runs = "; ".join(
        f"*{run.name}*: {run.draws} data sets of {', '.join(f'{n:,}' for n in run.rows)} rows"
        for run in description.runs
    )
    made = f"Made by `{command}`. " if command else ""
    quick = "This is a quick run, far too small for conclusions. " if description.quick else ""
    whole = [f"*{run.name}*" for run in description.runs if not run.replace]
    split = [f"*{run.name}*" for run in description.runs if run.split]
    frozen = [f"*{run.name}*" for run in description.runs if run.frozen]
    odd = [
        *([f"{', '.join(whole)}: every row is drawn at most once."] if whole else []),
        *(
            [f"{', '.join(split)}: nuisances are learned from a part of the rows, and the others are averaged."]
            if split
            else []
        ),
        *([f"{', '.join(frozen)}: intervals come from a bootstrap that learns nothing again."] if frozen else []),
    ]
    return (
        f"{quick}{made}Classifier and agents are trained once, on {train} of the rows, with gaps; the other rows, complete, are "
        "the population. Data sets are drawn from it with replacement, and values are hidden anew each time. J, the cost on the "
        "whole population, is the exact value of the estimand (with more than six groups, from 64 trajectories per row). The "
        f"mechanism leaves {100 * finished.complete_share:.0f} % of the rows complete. Nuisances are cross-fitted"
        f"{', with exceptions. ' if odd else '. '}{' '.join(odd)} Sizes: {runs}. `results.parquet` has every estimate (also "
        "`results.csv`, if kept), `summary.csv` has the numbers of this page, `manifest.json` has versions and times."
    )


def efficiency_table(finished: Finished) -> pd.DataFrame:
    """Return the data efficiency as texts."""
    lines = []
    for line in finished.efficiency.to_dict("records"):
        found = "never" if line["biased"] else f"{line['ratio']:.1f} ({line['lower']:.1f} to {line['upper']:.1f})"
        lines.append(
            {
                "run": line["run"],
                "target": line["target"],
                "agent": line["agent"],
                "estimator": line["estimator"],
                "against": line["against"],
                "times fewer rows": found,
            }
        )
    return pd.DataFrame(lines)


def coverage_table(finished: Finished, target: str = "total") -> pd.DataFrame:
    """Return bias and coverage of a cost as texts, at the largest size of each run."""
    total = finished.summary[finished.summary["target"] == target]
    total = total[total["rows"] == total.groupby("run")["rows"].transform("max")]
    lines = []
    for line in total.to_dict("records"):
        covered = f"{line['covered']} of {line['intervals']}" if line["intervals"] else "no interval"
        none = line["answered"] == 0
        lines.append(
            {
                "run": line["run"],
                "agent": line["agent"],
                "estimator": line["estimator"],
                "J": f"{line['truth']:.3f}",
                "bias": "no estimate" if none else f"{line['bias']:+.3f}",
                "bias / its error": "" if none or line["biased"] != line["biased"] else f"{line['biased']:+.1f}",
                "rmse": "" if none else f"{line['rmse']:.3f}",
                "covered": "" if none else covered,
            }
        )
    return pd.DataFrame(lines)


def _support(finished: Finished) -> str:
    """Return sentences on the warnings of the support check by agent, and on the bounds."""
    results = finished.results
    flagged = results[(results["target"] == "total") & (results["support"] != "")]
    if flagged.empty:
        return ""
    words = []
    for agent, own in flagged.groupby("agent", sort=False):
        of = results[(results["agent"] == agent) & (results["target"] == "total")]
        sets, every = own[["run", "rows", "draw"]].drop_duplicates(), of[["run", "rows", "draw"]].drop_duplicates()
        share = 100 * float(own["unsupported"].mean())
        kinds = sorted({kind for text in own["support"] for kind in text.split("; ")})
        reasons = [
            *(["sets that are rarely recorded"] if "support" in kinds else []),
            *([f"runs into sets without any support ({share:.1f} % on average)"] if share >= 0.05 else []),
            *(["estimates that depend on a few rows with large weights"] if "heavy" in kinds else []),
        ]
        words.append(f"- {agent}: {len(sets)} of {len(every)} data sets, because of {' and '.join(reasons)}.")
    text = "The support check of `afape.evaluate` warned on these data sets:\n\n" + "\n".join(words)
    bounded = results[results["bound_lower"].notna() & (results["target"] == "total")]
    if len(bounded):
        lines = bounded.groupby("agent", sort=False)[["truth", "bound_lower", "bound_upper"]].mean()
        bounds = "; ".join(
            f"{agent} {line['bound_lower']:.2f} to {line['bound_upper']:.2f} (J {line['truth']:.2f})"
            for agent, line in lines.iterrows()
        )
        text += (
            "\n\nWithout support no single number is right, so `evaluate` returns bounds by default. Mean bounds of `ipw-semi`: "
            f"{bounds}. In the other runs bounds are switched off, so that errors can be measured."
        )
    return text
