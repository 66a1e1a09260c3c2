"""The page of an experiment: its figures with a few sentences, and the figures behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from .runner import Finished

__all__ = ["coverage_table", "efficiency_table", "markdown", "write_page"]


def markdown(table: pd.DataFrame) -> str:
    """A table of texts in Markdown."""
    head = "| " + " | ".join(map(str, table.columns)) + " |\n|" + " --- |" * len(table.columns)
    lines = ["| " + " | ".join(map(str, line)) + " |" for line in table.itertuples(index=False)]
    return "\n".join([head, *lines])


def write_page(finished: Finished, command: str) -> None:
    """``README.md`` of the folder."""
    description, folder = finished.description, finished.folder
    parts = [f"# {description.title}", description.about.strip(), _how(finished, command)]
    for spec in description.figures:
        parts += [f"## {spec.title or spec.name}", f"![{spec.title}]({spec.name}.png)", spec.words.strip()]
    if len(finished.efficiency):
        parts += ["## Rows needed at equal root mean squared error", _EFFICIENCY, markdown(efficiency_table(finished))]
    parts += ["## Errors and coverage of the total cost", _COVERAGE, markdown(coverage_table(finished))]
    if warned := _support(finished):
        parts += ["## Support", warned]
    (folder / "README.md").write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")


_EFFICIENCY = (
    "How many times fewer rows an estimator needs than `ipw-miss` (those with a true propensity: than `ipw-miss-gt`) for the "
    "same root mean squared error of the total cost, with the range of 95 % of bootstrap replicates. *never*: known to be "
    "biased, or with a bias beyond four Monte Carlo errors at the largest size, which no number of rows takes away. Of a run "
    "of one size and few data sets the ratio is rough."
)
_COVERAGE = (
    "*complete* is the cost of the same rows without gaps, what the paper calls J. Bias is the mean difference from it or from J "
    "over the data sets, whichever varies less, and *bias / its error* is in units of its Monte Carlo error: beyond about 4, "
    "bias is no accident. *Covered* counts the data sets whose 95 % interval contains J."
)


def _how(finished: Finished, command: str) -> str:
    description = finished.description
    train = f"{100 * description.train:.0f} %"
    runs = "; ".join(
        f"*{run.name}*: {run.draws} data sets of {', '.join(f'{n:,}' for n in run.rows)} rows"
        for run in description.runs
    )
    made = f"Made by `{command}`. " if command else ""
    quick = "This is a quick run, far too small to conclude anything from. " if description.quick else ""
    return (
        f"{quick}{made}Classifier and agents are trained once, on {train} of the rows, with gaps; the other rows, complete, are "
        "the population. Data sets are drawn from it with replacement and hidden anew each time, and J is the cost on all of it, "
        "so that J is the exact value of what is estimated (beyond six groups, by 64 trajectories per row). The mechanism leaves "
        f"{100 * finished.complete_share:.0f} % of the rows complete. Nuisances are cross-fitted, where the paper splits the "
        f"rows once. {runs}. `results.parquet` has every estimate (`results.csv`, where kept, the same), `summary.csv` what is "
        "shown here, `manifest.json` versions and times."
    )


def efficiency_table(finished: Finished) -> pd.DataFrame:
    """Data efficiency in words."""
    lines = []
    for line in finished.efficiency.to_dict("records"):
        found = "never" if line["biased"] else f"{line['ratio']:.1f} ({line['lower']:.1f} to {line['upper']:.1f})"
        lines.append(
            {
                "run": line["run"],
                "agent": line["agent"],
                "estimator": line["estimator"],
                "against": line["against"],
                "times fewer rows": found,
            }
        )
    return pd.DataFrame(lines)


def coverage_table(finished: Finished) -> pd.DataFrame:
    """Bias and coverage of the total cost, the largest size of each run."""
    total = finished.summary[finished.summary["target"] == "total"]
    total = total[total["rows"] == total.groupby("run")["rows"].transform("max")]
    lines = []
    for line in total.to_dict("records"):
        hit = f"{line['covered']} of {line['intervals']}" if line["intervals"] else "no interval"
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
                "covered": "" if none else hit,
            }
        )
    return pd.DataFrame(lines)


def _support(finished: Finished) -> str:
    """What the support check said, by agent, and the bounds that follow."""
    results = finished.results
    flagged = results[(results["target"] == "total") & (results["support"] != "")]
    if flagged.empty:
        return ""
    words = []
    for agent, part in flagged.groupby("agent", sort=False):
        of = results[(results["agent"] == agent) & (results["target"] == "total")]
        sets, every = part[["run", "rows", "draw"]].drop_duplicates(), of[["run", "rows", "draw"]].drop_duplicates()
        share = 100 * float(part["unsupported"].mean())
        kinds = sorted({kind for text in part["support"] for kind in text.split("; ")})
        told = [
            *(["sets that are hardly ever recorded"] if "support" in kinds else []),
            *([f"runs into sets without any support ({share:.1f} % on average)"] if share >= 0.05 else []),
            *(["estimates that a few heavy rows carry"] if "heavy" in kinds else []),
        ]
        words.append(f"- {agent}: warned on {len(sets)} of {len(every)} data sets, about {' and '.join(told)}.")
    text = "The support check of `afape.evaluate` warned:\n\n" + "\n".join(words)
    bounded = results[results["bound_lower"].notna() & (results["target"] == "total")]
    if len(bounded):
        lines = bounded.groupby("agent", sort=False)[["truth", "bound_lower", "bound_upper"]].mean()
        bounds = "; ".join(
            f"{agent} {line['bound_lower']:.2f} to {line['bound_upper']:.2f} (J {line['truth']:.2f})"
            for agent, line in lines.iterrows()
        )
        text += (
            "\n\nWhat follows: a single number would be false there, and left to itself `evaluate` answers with bounds in its "
            f"place. Mean bounds of `ipw-semi`: {bounds}. In the other runs bounds were switched off, so that errors can be "
            "measured."
        )
    return text
