"""Support in words: what is below a threshold, and what can be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..arrays import Bools, every
from ..data import Retrospective
from ..support import SupportMap, SupportThresholds, Violation
from .support import VIOLATION_COLUMNS

__all__ = ["ThinSet", "advice_on", "findings_on", "percent", "thin_words", "violation_table"]

_TOLD = 4  # violations told in one warning


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
                f"{percent(found.wanted)} of runs want {found.name!r}, but no more than {found.rows} rows have it."
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
    names = " and ".join(f"{base}-semi{'-miss' if adjust.any() else ''}" for base in ("ipw", "dm", "drl"))
    names = names.replace(" and ", ", ", 1)
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
