"""The page about all experiments of the paper: verdicts, sizes, differences, numbers of trajectories, figures."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from .claims import RULES, verdicts
from .page import markdown
from .runner import Finished
from .trajectories import count_table, shares_table

__all__ = ["claims_table", "write_claims"]

_PAPER = {  # rows for nuisances and for estimates in the paper
    "synthetic-mar": "60,000 + 60,000",
    "synthetic-mnar": "60,000 + 60,000",
    "double-robustness": "60,000 + 60,000",
    "heloc": "10,669 + 10,669 (of 35,562 stated; the public file allows 3,138 + 3,137)",
    "income": "9,768 + 9,768",
}
_TARGETS = {"misclassification": "J", "total": "J_total"}


def claims_table(done: list[Finished]) -> pd.DataFrame:
    """Return claims, targets, measured numbers and verdicts as texts; verdicts other than *agrees* are bold."""
    lines = []
    for found in verdicts(done):
        verdict = found.verdict if found.verdict == "agrees" else f"**{found.verdict}**"
        lines.append(
            {
                "the paper's claim": found.claim,
                "target": _TARGETS[found.target],
                "measured": found.measured,
                "verdict": verdict,
            }
        )
    return pd.DataFrame(lines)


def _sizes(done: list[Finished]) -> pd.DataFrame:
    lines = []
    for finished in done:
        drawn = finished.results.groupby(["run", "rows"], sort=False)["draw"].nunique().reset_index()
        for run, own in drawn.groupby("run", sort=False):
            lines.append(
                {
                    "experiment": finished.description.name,
                    "run": run,
                    "rows of a data set": ", ".join(f"{n:,}" for n in own["rows"]),
                    "data sets": ", ".join(dict.fromkeys(str(n) for n in own["draw"])),
                    "rows in the paper": _PAPER.get(finished.description.name, ""),
                }
            )
    return pd.DataFrame(lines)


def write_claims(done: list[Finished], folder: Path) -> None:
    """Write the page about all experiments."""
    links = [f"- [{f.description.title}]({f.folder.name}/README.md)" for f in done]
    quick = "**A quick run, far too small for conclusions.**\n\n" if done[0].description.quick else ""
    figures = []
    for f in done:
        for spec in f.description.figures:
            pictures = [
                f"![{spec.title}, {_TARGETS.get(target, target)}]({f.folder.name}/{name}.png)"
                for target, name in spec.files.items()
            ]
            figures += [*pictures, spec.words.strip()]
    shares = {f.description.name: f.recorded_shares for f in done if f.recorded_shares}
    text = "\n\n".join(
        [
            "# The paper's experiments",
            f"{quick}H. von Kleist, A. Zamanian, I. Shpitser, N. Ahmidi, *Evaluation of Active Feature Acquisition Methods for "
            "Static Feature Settings* (2023), section Experiments, reproduced with afape. J is the misclassification cost, as in "
            "the paper. J_total adds the prices of the acquired groups.",
            "\n".join(links),
            "## Claims",
            RULES,
            markdown(claims_table(done)),
            "## Sizes",
            _SIZES,
            markdown(_sizes(done)),
            "## Where this differs from the paper",
            _DIFFERENCES,
            "## Trajectories and sets",
            _TRAJECTORIES,
            markdown(count_table()),
            *([_SHARES, markdown(shares_table(shares))] if shares else []),
            "## Figures",
            *figures,
        ]
    )
    (folder / "README.md").write_text(text + "\n", encoding="utf-8")


_SIZES = """\
Runs named *as the paper* have one data set: all rows that nothing was trained on, each once, half of them for the nuisances
and half for the estimates. They use the paper's network, one simulated trajectory per row, the weight of a price after the
decision, and the frozen bootstrap. One data set has no Monte Carlo error, so these runs have figures but no verdicts.
Verdicts come from the other runs, which repeat smaller data sets. Runs named *the paper's settings* repeat the paper's
procedure. All other runs cross-fit, so all rows of a data set serve both purposes. `afape reproduce all --full` repeats
data sets of the paper's sizes, which takes days on two cores; it can be interrupted and continues where it stopped."""
_TRAJECTORIES = """\
A row with n groups recorded allows sum over i of i! C(n, i) ordered acquisitions. Cost and later decisions depend only on
the set of acquired groups, so afape walks sets and needs no simulation. A policy without chance reaches at most n + 1 sets."""
_SHARES = """\
Mean numbers per row in the experiments. The missing-data view can use complete rows only; the semi-offline view can use
every row."""
_DIFFERENCES = """\
All runs:

- **Repetition.** Many data sets with known truth are drawn with replacement from rows that nothing was trained on, and
  values are hidden anew in each. The paper shows one data set. Agents and classifiers are trained once per experiment, on
  the same records with gaps, so the results hold for these agents.
- **J.** The paper estimates J from rows without gaps. Here it is the cost on the whole population: exact on the synthetic
  problems, from 64 trajectories per row on Heloc and Income. The line *complete* of the tables is the paper's J.
- **Rows.** See *Sizes*. The paper states 35,562 rows for Heloc, but the public file has 10,459.
- **Cross-fitting** in place of one split, five folds. Runs *as the paper* and *the paper's settings* split.
- **Labels.** Action values condition on the label (except on *Double robustness*, in *as the paper* and in *the paper's
  settings*).
- **Price weight.** A price has the weight before the decision, because it is known then. Runs with the paper's settings use
  the weight after the decision. This concerns J_total only.
- **Expectation over the policy.** On the synthetic problems it is exact. On Heloc and Income one trajectory per row is
  simulated, as in the paper (four in the run with bounds).
- **Action values.** Quadratic ridge regression, one per set and action; on Heloc and Income one ridge regression per depth,
  because nine or ten groups give hundreds of sets. Runs with the paper's settings use two layers of 16 units with ReLU and
  learning rate 0.001, but one network *per depth* (backward induction), trained for at most 200 epochs on standardised
  inputs. The paper does not say whether one network serves all depths, nor how it is trained.
- **Intervals** from influence values, which account for the learned propensity. Runs *as the paper*, and *the
  paper's settings* on the synthetic problem, use a normal interval with the standard deviation of 30 replicates of a
  bootstrap that learns nothing again. The paper states neither the kind of interval nor the number of replicates.
- **Propensities.** Logistic regression without penalty. On Heloc and Income the paper does not say whether it learns one
  model per group or one for all; here P(R >= S) is learned jointly, because groups may be recorded together.
- **DQN.** The agent learns on blocked records (`targets="recorded"`), as in the paper, with the paper's network and
  learning rate. The paper does not state episodes, batches, exploration or the number of steps; ours are 40,000 steps with
  the defaults of `afape.agents.Training`. So the agent acquires other groups than the paper's, and its J differs.
- **Classifier.** Random forest on mean-imputed values, trained on the records and on one copy in which each costly group is
  dropped with probability one half, as in the paper. The number of copies is not stated there.
- **`eff-semi` and `mi`** are not in the paper's experiments. They are shown for comparison and enter no verdict.

Synthetic problem:

- **Features.** The paper names scikit-learn's `make_classification` without its arguments. Here it has four informative
  features and otherwise defaults. The mechanisms then leave 24 % (MAR) and 23 % (MNAR) of the rows complete; the paper
  states 24 % and 22 %.

Heloc:

- **Codes.** All 10,459 rows are kept, and the codes -7, -8 and -9 are replaced by the mean of their column. With z the
  standardised ExternalRiskEstimate, the mechanism then leaves 36 % of the rows complete; the paper states 35 %. Without the
  588 rows that contain only codes it leaves 37 %. The paper does not say what it does with codes.
- **Scale.** The paper does not say in which units ExternalRiskEstimate enters the mechanism. Standardising it is our
  choice, because the raw value leaves all rows complete, and standardising gives the share that the paper states.
- **Price of group 0.** The paper's table gives all nine groups the price 1, also the one that recording depends on. So no
  group is free here.

Income:

- **Blocks.** The paper does not say how its two blocks of groups are drawn. One draw per block leaves 56 % of the rows
  complete (the paper states 57 %); independent draws per group would leave at most 34 %.
- **Scales.** Male is standardised and age is scaled to [0, 1]: our choice, because it gives the stated share.
- **Levels.** "?" in workclass and occupation is a level of its own, *not stated*. All levels are columns; the paper's list
  leaves out some levels, among them "?", and puts the levels of relationship into the group marital-status.
  `fnlwgt` and `native-country` are in no group, as in the paper.
- **Price of sex and age.** The paper's table gives all ten groups the price 1, also those that are always recorded. So no
  group is free here."""
