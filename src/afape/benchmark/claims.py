"""The claims of the paper's section on results, each with the measured numbers and a verdict by rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from .page import markdown
from .runner import Finished

__all__ = ["Verdict", "verdicts", "write_claims"]

_BASELINES = ("imp-mean", "blocking", "cc")
_SOUND = ("ipw-semi", "drl-semi", "eff-semi")
_SIGNIFICANT = 4.0  # Monte Carlo errors
_MATTERS = 0.02  # of J


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, the measured numbers, and the verdict on their agreement."""

    claim: str
    measured: str
    verdict: str


def _total(finished: Finished, run: str) -> pd.DataFrame:
    """Return the total costs of a run at its largest size."""
    found = finished.summary[(finished.summary["run"] == run) & (finished.summary["target"] == "total")]
    largest: pd.DataFrame = found[found["rows"] == found["rows"].max()]
    return largest


def _ratio(finished: Finished, agent: str, estimator: str) -> tuple[float, str]:
    """Return how many times fewer rows an estimator needs, as a number and with its interval as text."""
    lines = finished.efficiency
    own = (lines["run"] == "convergence") & (lines["agent"] == agent) & (lines["estimator"] == estimator)
    line = lines[own].iloc[0]
    if line["biased"]:
        return float("nan"), "never (biased)"
    return float(line["ratio"]), f"{line['ratio']:.1f} ({line['lower']:.1f} to {line['upper']:.1f})"


def _off(line: Mapping[Any, Any]) -> bool:
    """Return True if a bias exceeds four Monte Carlo errors and 2 % of J."""
    return bool(abs(line["biased"]) > _SIGNIFICANT and abs(line["bias"]) > _MATTERS * abs(line["truth"]))


def _agree(holds: bool) -> str:
    return "agrees" if holds else "**disagrees**"


def _baselines(done: Mapping[str, Finished]) -> Verdict:
    """List the cases in which each biased baseline has a bias beyond four Monte Carlo errors."""
    where: dict[str, list[str]] = {name: [] for name in _BASELINES}
    kept: dict[str, list[str]] = {name: [] for name in _BASELINES}
    for name, finished in done.items():
        run = "convergence" if name.startswith("synthetic") else "all estimators"
        if name == "double-robustness":
            continue
        for line in _total(finished, run).to_dict("records"):
            if line["estimator"] in where:
                off = abs(line["biased"]) > _SIGNIFICANT
                text = f"{name} {line['agent']} {line['bias']:+.2f}"
                (where if off else kept)[line["estimator"]].append(text)
    measured = ". ".join(
        f"`{b}` has a bias of more than four Monte Carlo errors in {len(where[b])} of {len(where[b]) + len(kept[b])} cases "
        f"({'; '.join(where[b])})" + (f", but not in {'; '.join(kept[b])}" if kept[b] else "")
        for b in _BASELINES
    )
    every, some = not any(kept.values()), all(where.values())
    verdict = "agrees" if every else "agrees in most cases" if some else "**disagrees**"
    return Verdict(
        "Mean imputation, blocking and complete cases are biased and do not converge to J.", measured + ".", verdict
    )


def _miss_converges(done: Mapping[str, Finished]) -> Verdict:
    words, fine = [], True
    for name in ("synthetic-mar", "synthetic-mnar"):
        lines = _total(done[name], "convergence")
        lines = lines[lines["estimator"] == "ipw-miss-gt"]
        worst = lines.sort_values("biased", key=abs).to_dict("records")[-1]
        fine &= not _off(worst)
        words.append(
            f"{name}: at {int(worst['rows']):,} rows the largest bias of `ipw-miss-gt` is {worst['bias']:+.3f}, "
            f"{worst['biased']:+.1f} Monte Carlo errors ({worst['agent']})"
        )
    ratio, text = _ratio(done["synthetic-mar"], "Random 10 %", "ipw-semi-gt")
    words.append(f"`ipw-semi-gt` needs {text} times fewer rows for Random 10 %")
    return Verdict("`ipw-miss` converges to J, but slowly.", "; ".join(words) + ".", _agree(fine and ratio > 2))


def _semi_gain(done: Mapping[str, Finished]) -> Verdict:
    mar = done["synthetic-mar"]
    few, few_text = _ratio(mar, "Random 10 %", "ipw-semi")
    many, many_text = _ratio(mar, "Random 90 %", "ipw-semi")
    gt, gt_text = _ratio(mar, "Random 10 %", "ipw-semi-gt")
    _, gt_many = _ratio(mar, "Random 90 %", "ipw-semi-gt")
    others = "; ".join(f"{agent} {_ratio(mar, agent, 'ipw-semi')[1]}" for agent in ("Random 50 %", "DQN"))
    measured = (
        f"For equal error `ipw-semi` needs fewer rows than `ipw-miss`, by these factors: Random 10 % {few_text}, with "
        f"true propensities {gt_text}; Random 90 % {many_text}, with true propensities {gt_many}; {others}."
    )
    holds = few >= 8 and gt >= 8 and many <= 2
    return Verdict(
        "`ipw-semi` is much more data efficient than `ipw-miss` for the 10 % agent, about the same for the 90 % agent.",
        measured,
        _agree(holds),
    )


def _mnar_gain(done: Mapping[str, Finished]) -> Verdict:
    mar, _ = _ratio(done["synthetic-mar"], "Random 10 %", "ipw-semi-gt")
    mnar, text = _ratio(done["synthetic-mnar"], "Random 10 %", "ipw-semi-miss-gt")
    naive = done["synthetic-mnar"].summary
    naive = naive[(naive["run"] == "as if at random") & (naive["target"] == "total")]
    worst = naive[naive["rows"] == naive["rows"].max()].sort_values("biased", key=abs).iloc[-1]
    measured = (
        f"Random 10 %: {mar:.1f} times fewer rows under MAR, {text} under MNAR. `ipw-semi`, which assumes MAR, has a "
        f"bias of {worst['bias']:+.3f} for {worst['agent']} at {int(worst['rows']):,} rows "
        f"({worst['biased']:+.1f} Monte Carlo errors)."
    )
    return Verdict(
        "The gain is smaller under MNAR, where weights need further values to be recorded.",
        measured,
        _agree(1 < mnar < mar),
    )


def _synthetic_agree(done: Mapping[str, Finished]) -> Verdict:
    covered, text = _pairs(done["synthetic-mar"])
    return Verdict(
        "All semi-offline estimators approximate J well on the synthetic problem (Figure 3A).",
        text,
        _agree(covered >= 0.9),
    )


def _pairs(finished: Finished) -> tuple[float, str]:
    """Return the smallest share of intervals that contain J among `_SOUND` estimators, and the counts as text."""
    lines = _total(finished, "all estimators")
    shares, words = [], []
    for name in _SOUND:
        own = lines[lines["estimator"] == name]
        covered, of = int(own["covered"].sum()), int(own["intervals"].sum())
        shares.append(covered / max(of, 1))
        each = ", ".join(f"{a} {c}/{i}" for a, c, i in zip(own["agent"], own["covered"], own["intervals"], strict=True))
        words.append(f"`{name}` {covered} of {of} ({100 * shares[-1]:.0f} %; {each})")
    return min(shares), "95 % intervals that contain J, over agents and data sets: " + "; ".join(words) + "."


def _robust(done: Mapping[str, Finished]) -> Verdict:
    finished, words, fine = done["double-robustness"], [], True
    for run in ("both right", "propensity wrong", "values wrong", "both wrong"):
        lines = _total(finished, run)
        biases = []
        for line in lines.to_dict("records"):
            if line["estimator"] == "drl-semi":
                biases.append(f"{line['agent']} {line['bias']:+.3f} ({line['biased']:+.1f} errors)")
                fine &= not _off(line) or run == "both wrong"
        words.append(f"{run}: {', '.join(biases)}")
    return Verdict(
        "`drl-semi` is approximately right if only one nuisance is wrong (Figure 3B).",
        "Bias of `drl-semi`: " + "; ".join(words) + ".",
        _agree(fine),
    )


def _real(done: Mapping[str, Finished]) -> Verdict:
    income, text = _pairs(done["income"])
    heloc, other = _pairs(done["heloc"])
    verdict = f"{_agree(income >= 0.9)} on Income; Heloc: {'agrees' if heloc >= 0.9 else 'agrees in some cases'}"
    why = (
        " On Heloc, two fifths of the rows are complete with a probability below 0.1 %: positivity almost fails, the support "
        "check warns, and the weighted estimates depend on a few rows with large weights."
    )
    return Verdict(
        "Semi-offline estimators agree with J on Heloc and Income.", f"Income: {text} Heloc: {other}{why}", verdict
    )


def _direct(done: Mapping[str, Finished]) -> Verdict:
    """A bias within Monte Carlo error neither confirms nor refutes the claim."""
    words, off = [], False
    for name in ("heloc", "income"):
        for run in ("all estimators", "the paper's network"):
            lines = _total(done[name], run)
            for line in lines[lines["estimator"] == "dm-semi"].to_dict("records"):
                off |= _off(line)
                mark = f"{line['biased']:+.1f} errors" if line["biased"] == line["biased"] else "one data set"
                words.append(f"{name}, {run}, {line['agent']} {line['bias']:+.2f} of {line['truth']:.2f} ({mark})")
    return Verdict(
        "`dm-semi` has a slight bias on Heloc and Income.",
        "Bias of `dm-semi`: " + "; ".join(words) + ".",
        "agrees" if off else "not confirmed: the bias is within Monte Carlo error",
    )


_CLAIMS: tuple[Callable[[Mapping[str, Finished]], Verdict], ...] = (
    _baselines,
    _miss_converges,
    _semi_gain,
    _mnar_gain,
    _synthetic_agree,
    _robust,
    _real,
    _direct,
)


def verdicts(done: list[Finished]) -> list[Verdict]:
    """Return the verdict on every claim, from all five experiments."""
    by_name = {finished.description.name: finished for finished in done}
    return [claim(by_name) for claim in _CLAIMS]


def write_claims(done: list[Finished], folder: Path) -> None:
    """Write the page about all experiments."""
    table = pd.DataFrame([vars(v) for v in verdicts(done)]).set_axis(
        ["the paper's claim", "measured", "verdict"], axis=1
    )
    links = [f"- [{f.description.title}]({f.folder.name}/README.md)" for f in done]
    quick = "**A quick run, far too small for conclusions.**\n\n" if done[0].description.quick else ""
    figures = [
        f"![{spec.title}]({f.folder.name}/{spec.name}.png)\n\n{spec.words.strip()}"
        for f in done
        for spec in f.description.figures
    ]
    text = "\n\n".join(
        [
            "# The paper's experiments",
            f"{quick}H. von Kleist, A. Zamanian, I. Shpitser, N. Ahmidi, *Evaluation of Active Feature Acquisition Methods for "
            "Static Feature Settings* (2023), section Experiments, reproduced with afape. Verdicts follow from rules in "
            "`afape.benchmark.claims`. A bias counts as real beyond four Monte Carlo errors. It matters if it also exceeds 2 % "
            "of J. It is the mean difference from J, or from the cost of the drawn rows without gaps, whichever varies less; "
            "the means in the figures are not corrected in this way.",
            "\n".join(links),
            "## Claims",
            markdown(table),
            "## Where this differs from the paper",
            _DIFFERENCES,
            "## Figures",
            *figures,
        ]
    )
    (folder / "README.md").write_text(text + "\n", encoding="utf-8")


_DIFFERENCES = """\
- Many data sets with known truth are drawn from rows that nothing was trained on; the paper shows one. Agents and
  classifiers are trained once per experiment, on the same records with gaps.
- Expectations over the policy are exact (on Heloc and Income averages over four trajectories per row); the paper simulates
  one trajectory. A price has the weight before the decision. Nuisances are cross-fitted. Runs named *the paper's network*
  follow the paper: its network, one split, no label.
- Action values on Heloc and Income come from one ridge regression per depth (`values="pooled"`): nine or ten groups give
  hundreds of sets, too many for one regression per set.
- The paper's intervals come from a bootstrap without refitting. Ours come from influence values and account for learned
  propensities.
- The paper states 35,562 rows for Heloc. The public file has 10,459 rows, and 9,871 of them contain more than a label.
- Income: the paper does not say how its two blocks of groups are drawn. One draw per block gives the share of complete rows
  that it states; independent draws per group would give at most 34 %."""
