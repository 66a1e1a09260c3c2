"""Doubts: what a reader must know before trusting the answer, the most important first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtr

from ..agents.policy import training_rows_in
from ..data.row_counts import RowCounts
from ..estimators.constant_answer import dearer_than_constant
from ..estimators.estimate import Bounds, Estimate
from ..estimators.unseen import ENOUGH_ROWS
from ..missingness.assumptions import MAR, MCAR, MNAR
from ..run.alternative import shift_under, widened
from ..run.run import PolicyRun
from ..support.implications import INDICATOR
from ..support.wording import percent

if TYPE_CHECKING:
    from .evaluation import Evaluation

__all__ = ["FEW_ROWS", "Doubt", "doubts_of"]

_MOST = 5
FEW_ROWS, _FEW_OF_A_CLASS = 100, 10
_FAR_TOO_FEW = 25.0  # effective rows below which a doubt is grave
_NORMAL = 3.0  # normal influence values of n rows have n / 3 degrees of freedom
_APART, _FAR_APART = 0.25, 0.5  # standard deviations after weighting
_LEVEL = 0.01  # level of every test, after adjustment for the number of tests
_SHIFT, _LARGE_SHIFT = 0.5, 1.0  # standard errors by which the cost moves
_ODDS, _LARGE_ODDS = 1.25, 2.0  # odds ratios, where the shift is unknown


class Doubt(NamedTuple):
    """A reason to doubt the answer.

    Attributes
    ----------
    kind : str
        "classifier", "training rows", "tiny", "assumption", "support", "rows", "balance" or "estimators".
    grave : bool
        True if no policy should be called the cheapest.
    text : str
        One or two sentences.
    """

    kind: str
    grave: bool
    text: str


def doubts_of(evaluations: Mapping[str, Evaluation], estimators: Mapping[str, str]) -> tuple[Doubt, ...]:
    """Return at most five doubts about these policies on the same rows, grave ones first.

    ``estimators`` gives the estimator of the answer by policy. Results that were read from a file have no policies and no
    classifier, so their training rows, and the shift of the cost under another assumption, are unknown.
    """
    first = next(iter(evaluations.values())).origin
    if first is None:
        return ()
    found = [
        *_tiny(first.counts),
        *_classifier(evaluations),
        *_training_rows(evaluations),
        *_assumption(evaluations, estimators),
        *_support(evaluations, estimators),
        *_effective_rows(evaluations, estimators),
        *_balance(evaluations),
        *_estimators(evaluations, estimators),
    ]
    return tuple(sorted(found, key=lambda doubt: not doubt.grave)[:_MOST])


def _tiny(data: RowCounts) -> Iterator[Doubt]:
    counts = data.label_counts
    if len(data) < FEW_ROWS:
        yield Doubt("tiny", True, f"There are only {len(data)} rows. An answer needs at least {FEW_ROWS}.")
    elif counts.min() < _FEW_OF_A_CLASS:
        rare = data.classes[int(counts.argmin())]
        yield Doubt(
            "tiny",
            True,
            f"Fewer than {_FEW_OF_A_CLASS} rows have the label {str(rare)!r}. An answer needs more.",
        )


def _classifier(evaluations: Mapping[str, Evaluation]) -> Iterator[Doubt]:
    for name, e in evaluations.items():
        if (
            e.tariff is None or e.origin is None or e.origin.label_shares is None
        ):  # the cost of a constant answer is not known
            continue
        found = dearer_than_constant(e.answers, e.choices, e.origin.label_shares, e.tariff)
        if found is not None:
            text = (
                f"Under {name!r} the errors of the classifier cost {found.wrong.value:.4g} per run, but always predicting "
                f"{str(found.label)!r} would cost {found.constant.value:.4g}."
            )
            yield Doubt("classifier", True, text)
            return  # one sentence is enough


def _training_rows(evaluations: Mapping[str, Evaluation]) -> Iterator[Doubt]:
    runs = _runs(evaluations)
    if not runs:
        return
    plan = next(iter(runs.values())).plan
    data = plan.data.original or plan.data
    counts = {f"The policy {name!r}": training_rows_in(run.policy, data) for name, run in runs.items()}
    seen = getattr(plan.classifier, "seen", None)
    counts = {"The classifier": seen(data) if callable(seen) else 0, **counts}
    for name, count in counts.items():
        if count:
            text = f"{name} was trained on {count} of the {len(data)} rows, so its costs look too low."
            yield Doubt("training rows", True, text)


def _assumption(evaluations: Mapping[str, Evaluation], estimators: Mapping[str, str]) -> Iterator[Doubt]:
    """Report rejected implications about groups that the policies want, if the cost may move."""
    origin = next(iter(evaluations.values())).origin
    assert origin is not None
    data, missingness = origin.counts, origin.missingness
    groups = pd.concat([e.support.groups for e in evaluations.values()])
    wanted = set(groups.loc[groups["wanted"] > 0, "group"].astype(str))
    table = origin.tested(wanted)
    rejected = table[table["p_adjusted"] < _LEVEL]
    if len(rejected) == 0:
        return
    # That groups are recorded together moves no cost alone.
    by_values = rejected[~rejected["of"].str.startswith(INDICATOR)]
    tested = int(table["p_value"].notna().sum())
    head = (
        f"{len(rejected)} of {tested} tests about groups that the policies acquire contradict the assumption at level "
        f"{_LEVEL:g}: "
        f"{next(iter(by_values['words']), rejected['words'].iloc[0])}."
    )
    names, label = list(data.problem.group_names), data.problem.label
    always = [v for v in dict.fromkeys(rejected["of"]) if v in names and data.always_recorded[names.index(v)]]
    by_label = (
        [label] if label in set(rejected["of"]) and not data.unlabelled else []
    )  # with gaps, only a graph can hold it
    other = widened(missingness, always, bool(by_label))
    moved = None if other is None or other == missingness else _largest_shift(evaluations, estimators, other)
    unknown = by_values if moved is None else by_values[~by_values["of"].isin([*always, *by_label])]
    odds = float(np.exp(np.abs(np.log(unknown["odds_ratio"].to_numpy(dtype=float))).max(initial=0.0)))
    sentences, grave = [head], odds > _LARGE_ODDS
    if moved is not None and moved[2] > _SHIFT:
        policy, shift, size = moved
        grave |= size > _LARGE_SHIFT
        what = " and ".join(map(repr, [*always, *by_label]))
        sentences.append(
            f"If recording depends on {what}, the cost of {policy!r} moves by {shift:.3g} ({size:.1f} standard errors)."
        )
    if odds > _ODDS:
        sentences.append(
            "Groups with gaps predict recording as strongly as an unmeasured reason that changes its odds by a factor of "
            f"{odds:.2g}."
        )
    if len(sentences) > 1:
        yield Doubt("assumption", bool(grave), " ".join(sentences))


def _largest_shift(
    evaluations: Mapping[str, Evaluation], estimators: Mapping[str, str], missingness: MCAR | MAR | MNAR
) -> tuple[str, float, float] | None:
    """Policy whose cost moves most under another assumption, the shift, and the shift in standard errors; None if unknown."""
    runs = _runs(evaluations)
    if len(runs) < len(evaluations):
        return None
    moved = []
    for name, run in runs.items():
        total, shift = _total(evaluations[name], estimators[name]), shift_under(run, missingness)
        if shift is None or total is None or isinstance(total, Bounds) or not np.isfinite(total.std_error):
            return None
        moved.append((name, shift.value, abs(shift.value) / max(total.std_error, 1e-300)))
    return max(moved, key=lambda line: line[2])


def _support(evaluations: Mapping[str, Evaluation], estimators: Mapping[str, str]) -> Iterator[Doubt]:
    for name, e in evaluations.items():
        total = _total(e, estimators[name])
        if isinstance(total, Bounds):
            text = (
                f"{percent(total.unsupported)} of the runs of {name!r} want groups that similar records do not have. There are "
                "only bounds on its cost."
            )
            yield Doubt("support", True, text)


def _effective_rows(evaluations: Mapping[str, Evaluation], estimators: Mapping[str, str]) -> Iterator[Doubt]:
    worst = {}
    for name, e in evaluations.items():
        total = _total(e, estimators[name])
        if total is None or isinstance(total, Bounds) or total.std_error == 0:
            continue
        worst[name] = min(_answer_ess(e, estimators[name]), _NORMAL * total.degrees_of_freedom)
    if worst:
        name = min(worst, key=lambda policy: worst[policy])
        if worst[name] < ENOUGH_ROWS:
            text = (
                f"The cost of {name!r} rests on {worst[name]:.0f} effective rows. An answer needs about {ENOUGH_ROWS}."
            )
            yield Doubt("rows", worst[name] < _FAR_TOO_FEW, text)


def _balance(evaluations: Mapping[str, Evaluation]) -> Iterator[Doubt]:
    worst: pd.Series | None = None
    for e in evaluations.values():
        table = e.support.balance
        certain = table[table["p_value"] * len(table) < _LEVEL] if len(table) else table
        if len(certain) and (worst is None or abs(certain["after"].iloc[0]) > abs(worst["after"])):
            worst = certain.iloc[0]
    if worst is not None and abs(worst["after"]) > _APART:
        text = (
            f"After weighting, rows that have {worst['set']!r} differ from all rows by {abs(worst['after']):.2g} standard "
            f"deviations in {worst['column']!r}."
        )
        yield Doubt("balance", abs(worst["after"]) > _FAR_APART, text)


def _estimators(evaluations: Mapping[str, Evaluation], estimators: Mapping[str, str]) -> Iterator[Doubt]:
    """Report unbiased estimators that differ by more than their errors explain."""
    pairs = []
    for policy, e in evaluations.items():
        best = _total(e, estimators[policy])
        if best is None or isinstance(best, Bounds):
            continue
        for choice in e.choices:
            other = None if choice.method.biased else _total(e, choice.name)
            if other is not None and not isinstance(other, Bounds) and choice.name != estimators[policy]:
                pairs.append((_p_value(best, other), policy, choice, best, other))
    if not pairs:
        return
    p, policy, choice, best, other = min(pairs, key=lambda pair: pair[0])
    gap = abs(other.value - best.value)
    if p * len(pairs) < _LEVEL and gap > _SHIFT * best.std_error:
        text = (
            f"Estimators that should agree do not: {choice.name} gives {other.value:.4g} for {policy!r}, {estimators[policy]} "
            f"{best.value:.4g}, which their errors do not explain."
        )
        yield Doubt("estimators", gap > 2 * best.std_error, text)


def _p_value(a: Estimate, b: Estimate) -> float:
    """p-value of the difference; errors that are not paired are added as if independent."""
    error = (a - b).std_error if a.pairs_with(b) else float(np.hypot(a.std_error, b.std_error))
    gap = abs(a.value - b.value)
    if not error > 0:
        return 1.0
    freedom = min(a.degrees_of_freedom, b.degrees_of_freedom)
    return float(2 * stdtr(freedom, -gap / error))


def _runs(evaluations: Mapping[str, Evaluation]) -> dict[str, PolicyRun]:
    """Return the runs that are known; results from a file have none."""
    return {name: e.origin.run for name, e in evaluations.items() if e.origin is not None and e.origin.run is not None}


def _total(evaluation: Evaluation, estimator: str) -> Estimate | None:
    return evaluation[estimator]["total"] if estimator in evaluation else None


def _answer_ess(evaluation: Evaluation, estimator: str) -> float:
    found = evaluation.answers[estimator].ess
    return found if found == found else float("inf")
