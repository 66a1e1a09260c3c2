"""Sentences about support: what is below a threshold, and what the user can do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from .._arrays import Bools, every
from ..data.retrospective import Retrospective
from ..propensity.unsupported import SupportMap, Violation
from .tables import place_of
from .thresholds import SupportThresholds

__all__ = [
    "advice_on",
    "balance_words",
    "dominated_words",
    "findings_on",
    "heavy_words",
    "normalizer_words",
    "percent",
    "thin_words",
    "undecided_words",
]

_NAMED = 4  # violations, rows or columns named in one warning
_CHANCE = 1e-3  # p-value below which a difference is reported


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"


def findings_on(
    data: Retrospective, sets: pd.DataFrame, unsupported: SupportMap, share: float, columns: Sequence[str]
) -> tuple[str, ...]:
    """Which sets are unsupported, and which ``share`` of the runs wants them; ``columns`` are the names of X_o."""
    out = []
    if share > 0 and (unsupported or not unsupported.minor):
        what = _unsupported_sets(data, sets, unsupported, columns)
        out.append(f"An estimated {percent(share)} of the policy's runs want a set of groups that {what}.")
    if unsupported.minor:
        ignored = percent(sum(v.share for v in unsupported.minor))
        what = _unsupported_sets(data, sets, SupportMap(unsupported.minor), columns)
        out.append(
            f"An estimated {ignored} of the policy's runs want a set of groups that {what}. Estimates ignore these runs."
        )
    return tuple(out)


def _unsupported_sets(data: Retrospective, sets: pd.DataFrame, unsupported: SupportMap, columns: Sequence[str]) -> str:
    """Relative clause that names the unsupported sets and their regions."""
    never = [v for v in unsupported.violations if v.n_recorded == 0 and v.rows.all() and not v.known]
    whole = [v.name(data) for v in never] if unsupported else list(sets["set"][sets["rows_recorded"] == 0])
    regional = []
    for v in sorted((v for v in unsupported.violations if v not in never), key=lambda v: -v.share):
        place = place_of(v, columns)
        regional.append(
            f"{v.name(data)!r} ({percent(v.share)} of runs; recorded in {v.n_recorded} of {int(v.rows.sum())} rows"
            f"{f' with {place}' if place else ''})"
        )
    clauses = []
    if whole:
        more = ", ..." if len(whole) > _NAMED else ""
        clauses.append(f"is not recorded in any row ({', '.join(map(repr, whole[:_NAMED]))}{more})")
    if regional:
        more = f" and {len(regional) - _NAMED} more" if len(regional) > _NAMED else ""
        clauses.append(f"the records do not support: {', '.join(regional[:_NAMED])}{more}")
    return ", or that ".join(clauses) or "the records do not support"


def undecided_words(undecided: pd.DataFrame) -> tuple[str, ...]:
    """Sentences about the regions with too few rows to decide if a set is supported."""
    out = []
    for line in undecided.head(_NAMED).to_dict("records"):
        name, rows, needed = line["set"], line["rows"], line["rows_needed"]
        test = f"These rows do not decide if {name!r} can be recorded there."
        if rows < needed:
            test = f"These rows are too few to test if {name!r} can be recorded there: {needed} are needed."
        out.append(
            f"{name!r} is recorded in {line['rows_recorded']} of {rows} rows with {line['where']}, but more often in "
            f"neighbouring rows; {percent(line['wanted'])} of runs want it there. {test} Estimates assume that it can."
        )
    return tuple(out)


def thin_words(
    name: str, wanted: float, rows: int, ess: float, heavy: float, small: float, limits: SupportThresholds
) -> str:
    """What is wrong with the ``rows`` that have a set and want it; "" if nothing is.

    ``wanted`` is the share of runs that want the set, ``ess`` its effective sample size, ``heavy`` the largest share of one
    row in its weight, ``small`` the share of small propensities among the rows that want it and do not have it.
    """
    if rows < limits.rows:
        return (
            f"{percent(wanted)} of runs want {name!r}, but it is recorded in only {rows} of the rows in which the policy "
            "wants it."
        )
    if 0 < ess < limits.effective_rows:
        return f"After weighting, the rows that have {name!r} have an effective sample size of only {ess:.1f}."
    if heavy > limits.weight:
        return f"A single row has {percent(heavy)} of the total weight of {name!r}."
    if small > limits.small:
        return (
            f"The learned propensity of {name!r} is below {limits.propensity:g} in {percent(small)} of the rows in which the "
            "policy wants it and it is not recorded."
        )
    return ""


def heavy_words(
    rows: int, n_rows: int, ess: float, ten: float, largest: float, heaviest: pd.DataFrame, label: str | None = None
) -> str:
    """How much few rows dominate the estimates, with which set, and what the user can do; ``label`` if it is a group."""
    by_set = heaviest.groupby("set")["share"].sum()
    worst = str(by_set.idxmax())
    at_start = worst.startswith("(") or worst == label
    where = "arise at the start of the runs" if at_start else f"belong to {worst!r}"
    skipped = worst if label is None else worst.removesuffix(f" + {label}")
    way = "Restrict" if at_start else f"Let the policy skip {skipped!r} in rows like these, or restrict"
    return (
        f"A few rows dominate the estimates. After weighting, the {rows} of {n_rows} rows that represent the policy's runs "
        f"have an effective sample size of {ess:.3g}, and the ten heaviest rows have {percent(ten)} of the sum of squared "
        f"weights. The largest weight is {largest:.3g}; most of the large weights {where} (see "
        f"support.heaviest). {way} the population to rows that are recorded more often."
    )


def dominated_words(estimators: pd.DataFrame, heavy: Sequence[str]) -> str:
    """Which estimators a few rows dominate, and which estimator depends least on its heaviest rows."""
    lines = {str(line["estimator"]): line for line in estimators.to_dict("records")}
    shares = {name: float(line["ten_heaviest"]) for name, line in lines.items() if not np.isnan(line["ten_heaviest"])}
    named = []
    for name in heavy:
        variance = f"; the ten heaviest rows have {percent(shares[name])} of its variance" if name in shares else ""
        named.append(f"{name} (effective sample size {lines[name]['ess']:.3g}{variance})")
    text = f"A few rows dominate {', '.join(named)}."
    if len(shares) > 1:
        least = min(shares, key=lambda name: shares[name])
        text += f" {least} depends least on its heaviest rows ({percent(shares[least])} of its variance)."
    return text


def balance_words(balance: pd.DataFrame, limit: float) -> str:
    """Columns in which weighted rows still differ from all rows by more than chance; "" if there are none."""
    worse = balance[(balance["after"].abs() > limit) & (balance["p_value"] < _CHANCE)]
    if len(worse) == 0:
        return ""
    named = "; ".join(
        f"{line['column']} by {line['after']:.2g} standard deviations in rows that have {line['set']!r} "
        f"({line['before']:.2g} before weighting)"
        for line in worse.head(_NAMED).to_dict("records")
    )
    return (
        f"After weighting, rows that have a set still differ from all rows by more than {limit:g} standard deviations in "
        f"{len(worse)} of {len(balance)} comparisons: {named}. Recording depends on these columns in a way that the "
        "propensity does not model. Add them to the assumption (afape.MAR(given=..., label=...)), or use another model "
        "('propensity'). See result.support.balance."
    )


def normalizer_words(name: str, mean: float, error: float) -> str:
    """Meaning of a mean weight far from 1; ``error`` is its standard error."""
    text = (
        f"{name}: the mean weight is {mean:.3g} (standard error {error:.2g}), but it should be near 1. The sets that the policy "
        f"wants are recorded {'more' if mean > 1 else 'less'} often than the propensity predicts. "
    )
    if abs(mean - 1) <= 3 * error:
        return text + (
            "The standard error is so large that chance may explain this: a few rows with large weights dominate, and "
            "the estimate is as uncertain as this mean. See result.support."
        )
    return text + (
        "Chance does not explain this: either the policy wants sets that are hardly ever recorded, or the propensity model "
        "is wrong. Dividing by the mean weight does not correct this. See result.support.balance."
    )


def advice_on(
    data: Retrospective, unsupported: SupportMap, views: pd.DataFrame, columns: Sequence[str], adjust: Bools
) -> tuple[str, ...]:
    """What the user can do; ``adjust`` (G,) are the groups that the view adds to every set."""
    out = []
    violations = unsupported.violations
    *most, last = (f"{base}-semi{'-miss' if adjust.any() else ''}" for base in ("eff", "drl", "dm", "ipw"))
    names = f"{', '.join(most)} and {last}"
    if violations:
        out.append(_drop_groups(data, violations, adjust))
        out += _never_together(data, violations, columns)
        out += [_restrict(data, v, columns) for v in violations if v.ranges][:_NAMED]
        out.append(f"Or use the bounds: {names} give bounds instead of an estimate.")
    by_view = views.set_index("view").to_dict("index")
    miss = by_view.pop("missing-data", {"holds": True})
    if all(view["holds"] for view in by_view.values()) and not miss["holds"]:
        some = "some" if np.isnan(miss["unsupported"]) else percent(miss["unsupported"])
        out.append(
            f"Complete rows cannot represent {some} of the rows, so do not use ipw-miss and cc. Use {names}: they need only "
            "the sets that the policy wants, and these are supported."
        )
    return tuple(out)


def _drop_groups(data: Retrospective, violations: Sequence[Violation], adjust: Bools) -> str:
    """Advice to drop groups, so that no violation is left: in each step the group whose violations most runs meet."""
    left = list(violations)
    dropped: list[str] = []
    while left:
        blame = np.sum([v.required * max(v.share, 1e-12) for v in left], axis=0) * (data.problem.costly & ~adjust)
        if not blame.any() and data.original is not None:
            return (
                f"Collect labels: in some rows {data.original.problem.label!r} is not recorded together with what the policy "
                "wants, so costs of errors have bounds only."
            )
        if not blame.any():
            what = "Groups to adjust for" if adjust.any() else "Free groups"
            return (
                f"{what} are not recorded in some rows in which the policy needs them. Restrict the population to regions in "
                "which they are recorded."
            )
        worst = int(np.argmax(blame))
        dropped.append(repr(data.problem.group_names[worst]))
        left = [v for v in left if not v.required[worst]]
    word = "group" if len(dropped) == 1 else "groups"
    return f"Drop {word} {' and '.join(dropped)} from the policy: the other sets that it reaches are supported."


def _never_together(data: Retrospective, violations: Sequence[Violation], columns: Sequence[str]) -> list[str]:
    """Groups that are recorded, but never together."""
    out = []
    for v in violations:
        place = v.where(columns)
        groups = np.flatnonzero(v.required)
        each = data.recorded[v.rows][:, groups].any(axis=0).all()
        if len(groups) > 1 and v.n_recorded == 0 and each:
            listed = " and ".join(repr(data.problem.group_names[g]) for g in groups)
            out.append(
                f"{listed} are recorded, but never all of them in one row{f' with {place}' if place else ''}. Let the policy "
                "choose among them; or merge them into one group if they are the same test under different names."
            )
    return out[:_NAMED]


def _restrict(data: Retrospective, violation: Violation, columns: Sequence[str]) -> str:
    """The population in which the set is supported."""
    outside = ~violation.rows
    n_recorded = int(every(data.recorded[outside][:, violation.required]).sum())
    return (
        f"Or restrict the population: leave out rows with {violation.where(columns)}. The other "
        f"{100 * float(outside.mean()):.0f} % of the rows support {violation.name(data)!r} (recorded in {n_recorded} of them)."
    )
