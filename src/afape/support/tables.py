"""Tables of the support of a policy: sets, groups, pairs, views, violations and heavy rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from .._arrays import Bools, count_supersets, mean_of
from ..data.problem import Problem
from ..data.retrospective import Retrospective
from ..propensity.unsupported import SupportMap, Violation
from ..propensity.weights import View
from .criterion import rows_needed
from .sums import SetSums, WalkSums

__all__ = [
    "group_table",
    "heaviest_table",
    "pair_table",
    "place_of",
    "set_table",
    "undecided_table",
    "view_table",
    "violation_table",
]

_SET_COLUMNS = [
    "set", "wanted", "rows_recorded", "share_recorded", "rows_wanting", "smallest_propensity", "largest_weight", "ess",
    "ten_heaviest",
]  # fmt: skip


def set_table(data: Retrospective, sums: WalkSums, adjust: Bools) -> tuple[pd.DataFrame, SetSums]:
    """One line per set, the most wanted first, and the sums of the sets in this order."""
    problem, found = data.problem, sums.sets
    # Depth of the first decision.
    first = 0 if not problem.free.any() or data.always_recorded[problem.free].all() else 1
    needed = found.sets | adjust
    rows = count_supersets(data.recorded, needed).astype(int)
    share = rows / len(data)
    if data.weight is not None:
        share = count_supersets(data.recorded, needed, data.weight) / data.weight.sum()
    size = (found.sets & ~problem.free).sum(axis=1)
    # The weights before the decision that leads to a set have a mean near 1; dividing by it gives a probability.
    wanted = np.minimum(found.wanted / sums.before[size - 1 + first], 1.0)
    finite = (found.squares > 0) & np.isfinite(found.squares)  # an infinite weight has no effective sample size
    squares = np.where(finite, found.squares, 1.0)
    columns = (
        [_set_name(problem, s) for s in found.sets],
        np.where(size == 0, 1.0, wanted),
        rows,
        share,
        found.rows.astype(int),
        np.where((rows > 0) & np.isfinite(found.smallest), found.smallest, 0.0),
        np.where(found.largest > 0, found.largest, np.inf),
        np.where(finite, found.amount**2 / squares, 0.0),
        np.where(finite, (found.top**2).sum(axis=1) / squares, 0.0),
    )
    table = pd.DataFrame(dict(zip(_SET_COLUMNS, columns, strict=True)))
    table = table.sort_values(["wanted", "set"], ascending=[False, True])
    return table.reset_index(drop=True), found.take(table.index.to_numpy())


def _set_name(problem: Problem, acquired: Bools) -> str:
    """Names of the groups with a price, joined by plus signs."""
    named = np.array(problem.group_names, dtype=object)[acquired & ~problem.free]
    return " + ".join(named) or ("(free groups)" if acquired.any() else "(nothing)")


def group_table(data: Retrospective, sums: WalkSums, sets: pd.DataFrame, groups_of: Bools) -> pd.DataFrame:
    """One line per group with a price; ``groups_of`` (u, G) are the groups of the lines of ``sets``."""
    wanted = np.minimum((sums.acquired / sums.before[:, None]).sum(axis=0), 1.0)
    rows, share = data.recorded.sum(axis=0), data.recorded_share
    lines = []
    for g in np.flatnonzero(~data.problem.free):
        mine = sets[groups_of[:, g]]
        lines.append(
            {
                "group": data.problem.group_names[g],
                "wanted": wanted[g],
                "rows_recorded": rows[g],
                "share_recorded": share[g],
                "rows_wanting": sums.rows_wanting[g],
                "smallest_propensity": mine["smallest_propensity"].min() if len(mine) else np.nan,
                "largest_weight": mine["largest_weight"].max() if len(mine) else np.nan,
                "ess": mine["ess"].min() if len(mine) else np.nan,
            }
        )
    return pd.DataFrame(lines)


def pair_table(data: Retrospective, sets: Bools) -> pd.DataFrame:
    """Pairs of groups that are never recorded together; ``sets`` (u, G) are those that the policy wants."""
    names, counts = data.problem.group_names, data.recorded.astype(float)
    together = counts.T @ counts
    lines = [
        (names[a], names[b], bool((sets[:, a] & sets[:, b]).any()))
        for a, b in combinations(range(len(names)), 2)
        if together[a, b] == 0
    ]
    return pd.DataFrame(lines, columns=["group", "and", "both_wanted"])


def view_table(
    data: Retrospective, sums: WalkSums, semi: View, complete: View | None, unsupported: float
) -> pd.DataFrame:
    """One line per view; ``complete`` is None if the probability of a complete row is not identified."""
    name = "hybrid" if semi.adjust.any() else "semi-offline"
    holds = unsupported == 0 and not semi.refusal
    followed = float(mean_of(sums.followed, data.weight))
    lines = [(name, holds, unsupported, int((sums.followed > 0).sum()), followed)]
    if complete is not None:
        usable, share = data.complete, float(not data.complete.any())
        if complete.refusal:
            share = float("nan")
        elif complete.unsupported:
            full = np.ones(data.problem.n_groups, dtype=bool)
            lacks = complete.unsupported.lacking(full)
            usable, share = usable & ~lacks, float(mean_of(lacks, data.weight))
        lines.append(("missing-data", share == 0, share, int(usable.sum()), float(mean_of(usable, data.weight))))
    return pd.DataFrame(lines, columns=["view", "holds", "unsupported", "rows_usable", "trajectories_usable"])


def heaviest_table(data: Retrospective, sums: WalkSums) -> pd.DataFrame:
    """Stops of the largest weights, with their shares in the sum of squared weights."""
    total = max(float((sums.final**2).sum()), 1e-300)
    lines = [
        (h.row, _set_name(data.problem, h.acquired), h.weight, h.amount**2 / total)
        for h in sums.heaviest
        if h.amount > 0
    ]
    return pd.DataFrame(lines, columns=["row", "set", "weight", "share"])


def violation_table(data: Retrospective, unsupported: SupportMap, columns: Sequence[str]) -> pd.DataFrame:
    """One line per violation, the one that most runs meet first; ``columns`` are the names of X_o."""
    found = sorted((*unsupported.violations, *unsupported.minor), key=lambda v: -v.share)
    lines = [
        (v.name(data), place_of(v, columns) or "all rows", int(v.rows.sum()), v.n_recorded, v.share) for v in found
    ]
    return pd.DataFrame(lines, columns=["set", "where", "rows", "rows_recorded", "unsupported"])


def undecided_table(data: Retrospective, undecided: SupportMap, healthy: float, columns: Sequence[str]) -> pd.DataFrame:
    """One line per region with too few rows to decide if a set is supported, the most wanted first."""
    lines = [
        (v.name(data), v.where(columns), int(v.rows.sum()), v.n_recorded, rows_needed(v.n_recorded, healthy), v.share)
        for v in sorted(undecided.violations, key=lambda v: -v.share)
    ]
    return pd.DataFrame(lines, columns=["set", "where", "rows", "rows_recorded", "rows_needed", "wanted"])


def place_of(violation: Violation, columns: Sequence[str]) -> str:
    """Text that says which rows a violation concerns; "" for all rows."""
    if violation.known and not violation.rows.all():
        return "a known propensity below the threshold"
    return violation.where(columns)
