"""Support in words: what is below a threshold, and what can be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..arrays import Bools, every
from ..data import Retrospective
from ..support import SupportMap, SupportThresholds, Violation
from ..support.regions import rows_needed
from .support import UNDECIDED_COLUMNS, VIOLATION_COLUMNS

__all__ = [
    "ThinSet",
    "advice_on",
    "balance_words",
    "findings_on",
    "heavy_words",
    "leaning_words",
    "normalizer_words",
    "percent",
    "thin_words",
    "undecided_table",
    "violation_table",
]

_TOLD = 4  # violations told in one warning
_CHANCE = 1e-3  # a difference that is less probable than this by chance is told


def violation_table(data: Retrospective, unsupported: SupportMap, columns: Sequence[str]) -> pd.DataFrame:
    """One line per violation, the one that most runs meet first."""
    lines = [
        {
            "set": v.name(data),
            "where": _where(v, columns) or "all rows",
            "rows": int(v.rows.sum()),
            "rows_recorded": v.n_recorded,
            "unsupported": v.share,
        }
        for v in sorted((*unsupported.violations, *unsupported.minor), key=lambda v: -v.share)
    ]
    return pd.DataFrame(lines, columns=VIOLATION_COLUMNS)


def undecided_table(
    data: Retrospective, undecided: SupportMap, healthy: float, columns: Sequence[str]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """One line per region in which too few rows tell whether a set can be recorded, and the same in words."""
    lines, told = [], []
    for v in sorted(undecided.violations, key=lambda v: -v.share):
        rows, place, needed = int(v.rows.sum()), v.where(columns), rows_needed(v.n_recorded, healthy)
        lines.append((v.name(data), place, rows, v.n_recorded, needed, v.share))
        told.append(
            f"{v.name(data)!r} is recorded in {v.n_recorded} of {rows} rows with {place}, where {percent(v.share)} of runs want "
            f"it, and more often beside them. {_unclear(rows, needed)} Estimates take it as recorded there by chance."
        )
    return pd.DataFrame(lines, columns=UNDECIDED_COLUMNS), tuple(told[:_TOLD])


def _unclear(rows: int, needed: int) -> str:
    if rows < needed:
        return f"Fewer than {needed} rows are there: not testable whether it can be recorded."
    return "Whether it can be recorded there is not decided."


def percent(share: float) -> str:
    """A share in words."""
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"


def _where(violation: Violation, columns: Sequence[str]) -> str:
    if violation.known and not violation.rows.all():
        return "a known propensity below the threshold"
    return violation.where(columns)


def findings_on(
    data: Retrospective,
    sets: pd.DataFrame,
    unsupported: SupportMap,
    share: float,
    columns: Sequence[str],
) -> tuple[str, ...]:
    """What is not supported, and by how many runs it is wanted."""
    told = []
    if share > 0 and (unsupported or not unsupported.minor):
        what = _unsupported_sets(data, sets, unsupported, columns)
        told.append(f"An estimated {percent(share)} of the policy's runs want a set of groups that {what}.")
    if unsupported.minor:
        ignored = percent(sum(v.share for v in unsupported.minor))
        what = _unsupported_sets(data, sets, SupportMap(unsupported.minor), columns)
        told.append(
            f"An estimated {ignored} of the policy's runs want a set of groups that {what}. Estimates ignore them."
        )
    return tuple(told)


class ThinSet(NamedTuple):
    """A set that few rows represent."""

    name: str
    wanted: float  # share of the runs that want it
    rows: int  # that have it
    ess: float  # what these are worth after weighting
    heavy: float  # largest share of one row in its weight
    small: float  # of the rows that want it and do not have it, the share in which the model calls it too improbable


def thin_words(thin: Sequence[tuple[str, ThinSet]], thresholds: SupportThresholds) -> tuple[str, ...]:
    """Thin sets in words, by what is wrong with them."""
    told = []
    for kind, found in thin:
        if kind == "rows":
            told.append(
                f"{percent(found.wanted)} of runs want {found.name!r}, but no more than {found.rows} rows have it where "
                "the policy wants it."
            )
        elif kind == "effective":
            told.append(
                f"The rows that have {found.name!r} are worth no more than {found.ess:.1f} rows after weighting."
            )
        elif kind == "heavy":
            told.append(f"One row has {percent(found.heavy)} of the weight of {found.name!r}.")
        else:
            told.append(
                f"The propensity model calls {found.name!r} less probable than {thresholds.propensity:g} in "
                f"{percent(found.small)} of the rows that want it and do not have it."
            )
    return tuple(told)


def heavy_words(carried: tuple[int, float, float, float], n_rows: int, heaviest: pd.DataFrame) -> tuple[str, ...]:
    """Which rows carry the estimates, with which set, and what can be done."""
    rows, ess, ten, largest = carried
    by_set = heaviest.groupby("set")["share"].sum()
    worst = str(by_set.idxmax())
    listed = ", ".join(str(r) for r in heaviest.loc[heaviest["set"] == worst, "row"][:_TOLD])
    where = "at the start" if worst.startswith("(") else f"with {worst!r}"
    way = "" if worst.startswith("(") else f"Let the policy leave out {worst!r} for rows like these, or restrict"
    return (
        f"A few rows carry the estimates: after weighting, the {rows} of {n_rows} rows that stand for the policy's runs are "
        f"worth {ess:.3g} rows, and the ten heaviest have {percent(ten)} of the squared weights. The largest weight is "
        f"{largest:.3g}, and most of it comes {where} (rows {listed}; see support.heaviest). {way or 'Restrict'} the "
        "population to rows that are recorded more often.",
    )


def leaning_words(estimators: pd.DataFrame, heavy: Sequence[str]) -> str:
    """Which estimators a few rows carry, and which leans on them least."""
    lines = {str(line["estimator"]): line for line in estimators.to_dict("records")}
    shares = {name: float(line["ten_heaviest"]) for name, line in lines.items() if not np.isnan(line["ten_heaviest"])}
    parts = []
    for name in heavy:
        of_variance = f", the ten heaviest have {percent(shares[name])} of its variance" if name in shares else ""
        parts.append(f"{name} ({lines[name]['ess']:.3g} effective rows{of_variance})")
    told = ", ".join(parts)
    text = f"A few rows carry {told}."
    if len(shares) > 1:
        least = min(shares, key=lambda name: shares[name])
        text += f" {least} leans on the heaviest rows least ({percent(shares[least])} of its variance)."
    return text


def balance_words(balance: pd.DataFrame, limit: float) -> str:
    """Columns in which weighted rows still differ from all rows by more than chance; "" where there are none."""
    after = balance["after"].abs()
    worse = balance[(after > limit) & (balance["p_value"] < _CHANCE)]
    if len(worse) == 0:
        return ""
    told = "; ".join(
        f"{line['column']} by {line['after']:.2g} standard deviations in rows that have {line['set']!r} "
        f"({line['before']:.2g} before)"
        for line in worse.head(_TOLD).to_dict("records")
    )
    return (
        f"After weighting, rows still differ from all rows by more than {limit:g} standard deviations in {len(worse)} of "
        f"{len(balance)} comparisons: {told}. Recording depends on it in a way that the propensity does not know: give it "
        "(afape.MAR(given=..., label=...)), or let another model learn the propensity. See result.support.balance."
    )


def normalizer_words(name: str, mean: float, error: float) -> str:
    """What a mean weight far from 1 means."""
    more = "more" if mean > 1 else "less"
    text = (
        f"{name}: the mean weight is {mean:.3g} (standard error {error:.2g}), far from 1: what the policy wants is recorded "
        f"{more} often than the propensity says. "
    )
    if abs(mean - 1) <= 3 * error:
        return text + (
            "Its own error is so large that chance may explain it: a few heavy rows decide, and the estimate is as uncertain. "
            "See result.support."
        )
    return text + (
        "Chance does not explain it: either the policy wants sets that are hardly ever recorded, or the propensity model "
        "is wrong. Dividing by the mean weight does not repair that. See result.support.balance."
    )


def _unsupported_sets(data: Retrospective, sets: pd.DataFrame, unsupported: SupportMap, columns: Sequence[str]) -> str:
    """Which sets are unsupported, and where."""
    regional = []
    for v in sorted(unsupported.violations, key=lambda v: -v.share):
        if v.n_recorded == 0 and v.rows.all() and not v.known:
            continue
        place = _where(v, columns)
        regional.append(
            f"{v.name(data)!r} ({percent(v.share)} of runs; recorded in {v.n_recorded} of {int(v.rows.sum())} rows"
            f"{f' with {place}' if place else ''})"
        )
    whole = [v.name(data) for v in unsupported.violations if v.n_recorded == 0 and v.rows.all() and not v.known]
    if not unsupported:
        whole = list(sets["set"][sets["rows_recorded"] == 0])
    parts = []
    if whole:
        parts.append(
            f"no row has recorded ({', '.join(map(repr, whole[:_TOLD]))}{', ...' if len(whole) > _TOLD else ''})"
        )
    if regional:
        more = f" and {len(regional) - _TOLD} more" if len(regional) > _TOLD else ""
        parts.append(f"the records do not support: {', '.join(regional[:_TOLD])}{more}")
    return ", or that ".join(parts) or "the records do not support"


def advice_on(
    data: Retrospective, unsupported: SupportMap, views: pd.DataFrame, columns: Sequence[str], adjust: Bools
) -> tuple[str, ...]:
    """What can be done; ``adjust`` are the groups that the view adds to every set."""
    out = []
    violations = unsupported.violations
    *most, last = (f"{base}-semi{'-miss' if adjust.any() else ''}" for base in ("eff", "drl", "dm", "ipw"))
    names = f"{', '.join(most)} and {last}"
    if violations:
        out.append(_drop(data, violations, adjust))
        out += _together(data, violations, columns)
        out += [_restrict(data, v, columns) for v in violations if v.terms][:_TOLD]
        out.append(f"Or read the bounds: {names} give them in place of an estimate.")
    by_view = views.set_index("view").to_dict("index")
    miss = by_view.pop("missing-data", {"holds": True})
    if all(view["holds"] for view in by_view.values()) and not miss["holds"]:
        out.append(
            f"Complete rows cannot represent {_some(miss['unsupported'])} of the rows, so ipw-miss and cc are no "
            f"use; {names} need only the sets that the policy wants, and these are supported."
        )
    return tuple(out)


def _some(share: float) -> str:
    return "some" if np.isnan(share) else percent(share)


def _drop(data: Retrospective, violations: Sequence[Violation], adjust: Bools) -> str:
    """Groups without which every violation is gone: one by one the group that most runs meet."""
    names = data.problem.group_names
    left = list(violations)
    dropped: list[str] = []
    while left:
        blame = np.sum([v.required * max(v.share, 1e-12) for v in left], axis=0) * ~(data.problem.free | adjust)
        if not blame.any():
            what = "Groups to adjust for" if adjust.any() else "Free groups"
            return f"{what} are not recorded where the policy needs them: restrict the population to regions in which they are."
        worst = int(np.argmax(blame))
        dropped.append(repr(names[worst]))
        left = [v for v in left if not v.required[worst]]
    word = "group" if len(dropped) == 1 else "groups"
    return (
        f"Drop {word} {' and '.join(dropped)} from the policy and the rest is supported, as far as it has been reached."
    )


def _together(data: Retrospective, violations: Sequence[Violation], columns: Sequence[str]) -> list[str]:
    """Groups that are recorded, but not with each other."""
    out = []
    for v in violations:
        place = v.where(columns)
        groups = np.flatnonzero(v.required)
        apart = data.recorded[v.rows][:, groups].any(axis=0).all()
        if len(groups) > 1 and v.n_recorded == 0 and apart:
            listed = " and ".join(repr(data.problem.group_names[g]) for g in groups)
            out.append(
                f"{listed} are recorded, but never all of them in one row{f' with {place}' if place else ''}: let the policy "
                "choose among them, or, where they are one test under several names, merge them into one group."
            )
    return out[:_TOLD]


def _restrict(data: Retrospective, violation: Violation, columns: Sequence[str]) -> str:
    """The population in which the set is supported."""
    outside = ~violation.rows
    rest = f"{100 * float(outside.mean()):.0f} % of the rows, {int(every(data.recorded[outside][:, violation.required]).sum())}"
    words = violation.where(columns)
    return (
        f"Or restrict the population: leave out rows with {words}; the others ({rest} of them with "
        f"{violation.name(data)!r} recorded) support it."
    )
