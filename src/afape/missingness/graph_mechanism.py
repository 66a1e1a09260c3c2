"""A mechanism defined by a missingness graph: every indicator has a logistic model of its parents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit, logit

from .._arguments import check_between, check_mapping, check_numbers, check_seed, check_weights, positions_of, shown
from .._arrays import Bools, Floats, Ints, lines_of, unique_sets
from ..data.retrospective import Retrospective, check_records
from .assumptions import MNAR
from .graph import MGraph, graph_of
from .known_propensity import KnownPropensity

__all__ = ["GraphMechanism"]

_PAIRS = "from pairs of groups to numbers"
_DIGITS = 9  # sums of coins that agree to so many decimals are equal
_ROWS = 4096  # rows at a time
_MAX_CELLS = 2**25  # largest number of probabilities that are held


class GraphMechanism:
    r"""Record groups according to a missingness graph.

    .. math:: P(R_g = 1 \mid x, y, r, u) = \sigma\Big(b_g + \sum_c w_{gc} x_c + v_g y + \sum_a w_{ga} r_a +
       \sum_h s_h u_h\Big)

    with columns c of the parent groups, the label code y, parent indicators a, and for each ``R_g <-> R_b`` a hidden
    common variable :math:`u_h = \pm 1` of both indicators.

    Parameters
    ----------
    graph : MGraph or str
        The graph; groups without an indicator are never hidden. ``R_<label>`` hides labels.
    intercepts : mapping from group name to b_g
        Default: 0.
    weights : mapping from group name to a mapping from parent to weight
        Parents are columns of parent groups, ``R_<group>``, or the label. A parent without a weight has no effect. A weight
        of a node that is not a parent raises an error.
    hidden : mapping from pair of groups to s_h
        Strength of each ``R_a <-> R_b``. Default: 1.

    Examples
    --------
    >>> mechanism = GraphMechanism("x1 -> R_x2; R_x1", {"x1": 0.85, "x2": -1.5}, {"x2": {"X1": 1.0}})
    """

    def __init__(
        self,
        graph: MGraph | str,
        intercepts: Mapping[str, float] | None = None,
        weights: Mapping[str, Mapping[str, float]] | None = None,
        hidden: Mapping[tuple[str, str], float] | None = None,
    ) -> None:
        self.graph = graph_of(graph)
        self.intercepts = check_numbers("intercepts", intercepts, "from groups to numbers", optional=True)
        self.weights = check_weights("weights", weights, "from groups to mappings from parents to numbers")
        pairs = _checked_pairs(hidden)
        self.hidden = {pair: pairs.pop(frozenset(_groups(pair)), 1.0) for pair in self.graph.bidirected}
        for argument, named in (("intercepts", self.intercepts), ("weights", self.weights)):
            if unknown := [g for g in named if g not in self.graph.missing]:
                raise ValueError(
                    f"{argument!r} must name groups with an indicator in the graph, {list(self.graph.missing)}, but "
                    f"{unknown[0]!r} has none."
                )
        if pairs:
            raise ValueError(
                f"'hidden' must name pairs joined by '<->', but {sorted(next(iter(pairs)))} are not joined."
            )
        parents = {
            r: [a for a, b in self.graph.directed if b == r and a.startswith("R_")] for r in self.graph.indicators
        }
        self._order = [r.removeprefix("R_") for r in TopologicalSorter(parents).static_order()]

    @classmethod
    def random(
        cls, graph: MGraph | str, data: Retrospective, random_state: int | None = 0, *, strength: float = 1.0
    ) -> GraphMechanism:
        """Draw weights uniformly in ± ``strength``; intercepts give a recorded share of about 2/3.

        The weight of a column is per standard deviation, that of an indicator or of the label code per unit.
        """
        drawn, rng = graph_of(graph), np.random.default_rng(check_seed(random_state))
        check_records(data)
        check_between("strength", strength, 0)
        problem, names = data.problem, list(data.columns)
        weights: dict[str, dict[str, float]] = {}
        intercepts: dict[str, float] = {}
        for group in drawn.missing:
            by: dict[str, float] = {}
            centre = 0.0
            for parent in sorted(a for a, b in drawn.directed if b == f"R_{group}"):
                if parent in problem.group_names:
                    of = problem.group_names.index(parent)
                    for j in np.flatnonzero(data.column_group == of):
                        spread = float(np.nanstd(data.values[:, j])) or 1.0
                        by[names[j]] = rng.uniform(-strength, strength) / spread
                        centre += by[names[j]] * float(np.nanmean(data.values[:, j]))
                else:
                    by[parent] = rng.uniform(-strength, strength)
                    centre += by[parent] * (float(data.labels.mean()) if parent == problem.label else 2 / 3)
            weights[group] = by
            intercepts[group] = float(logit(2 / 3) + rng.uniform(-0.5, 0.5) - centre)
        return cls(drawn, intercepts, weights)

    def hide(self, data: Retrospective, random_state: int | None = 0) -> Retrospective:
        """Hide groups at random; the columns with weights must be complete."""
        rng = np.random.default_rng(check_seed(random_state))
        self._check(check_records(data))
        coins = {pair: rng.choice([-1.0, 1.0], size=len(data)) for pair in self.hidden}
        names = self._names(data)
        keep = np.ones((len(data), len(names)), dtype=bool)
        chosen: dict[str, Bools] = {}
        for group in self._order:
            odds = self._odds(data, data.values, data.labels, group)
            chosen[group] = rng.random(len(data)) < expit(odds + self._from_indicators(group, chosen, coins))
            keep[:, names.index(group)] = chosen[group]
        return data.hide(keep)

    def superset(self, data: Retrospective, values: Floats, required: Bools, labels: Ints) -> Floats:
        """The true P(R >= required | values, label), shape (m,); ``data`` gives the names of the columns.

        Sums over the hidden variables and over the indicators that the required ones depend on.
        """
        out = np.ones(len(values))
        kinds, index = unique_sets(required)
        for kind, lines in zip(kinds, lines_of(index, len(kinds)), strict=True):
            every_name = (*data.problem.group_names, data.problem.label)
            names = {every_name[g] for g in np.flatnonzero(kind)} & set(self.graph.missing)
            if names:
                for some in np.split(lines, range(_ROWS, len(lines), _ROWS)):
                    out[some] = self._all_recorded(data, values[some], labels[some], names)
        return out

    def propensity(self, data: Retrospective) -> KnownPropensity:
        """The true P(R >= S | given)."""
        check_records(data)

        label = data.problem.label

        def without_label(values: Floats, required: Bools) -> Floats:
            return self.superset(data, values, required, np.zeros(len(values), dtype=np.intp))

        if label in self.graph.missing and not any(a == label for a, _ in self.graph.directed):
            return KnownPropensity(without_label)

        def sum_over_patterns(values: Floats, required: Bools, labels: Ints) -> Floats:
            return self.superset(data, values, required, labels)

        return KnownPropensity(sum_over_patterns, labels=True)

    @property
    def missingness(self) -> MNAR:
        """The assumption that holds for data hidden by this mechanism."""
        return MNAR(graph=self.graph)

    def _all_recorded(self, data: Retrospective, values: Floats, labels: Ints, names: set[str]) -> Floats:
        needed = self._upstream(names)
        odds = {group: self._odds(data, values, labels, group) for group in needed}
        total = np.zeros(len(values))
        for pattern in self._patterns(needed, names):
            given = {group: odds[group] + self._from_indicators(group, pattern, {}) for group in needed}
            total += self._over_coins(given, pattern)
        return total

    def _over_coins(self, odds: Mapping[str, Floats], pattern: Mapping[str, bool]) -> Floats:
        """Probability of a pattern, (m,), summed over the hidden coins; ``odds`` are the log-odds without them.

        An indicator depends on the sum of its coins only. So the groups are taken one after the other, and what is kept is the
        probability of the indicators so far, together with each possible value of the sums of the groups to come: of eight
        groups that are all joined in pairs there are at most 1,024, while their coins have 2^28 values.
        """
        groups = list(odds)
        states: dict[tuple[float, ...], Floats] = {(0.0,) * len(groups): np.ones(len(next(iter(odds.values()))))}
        for k, group in enumerate(groups):
            known: dict[float, Floats] = {}
            found: dict[tuple[float, ...], Floats] = {}
            draws = self._coins_of(group, groups[k:], groups[:k])
            for sums, p in states.items():
                for coins, share in draws.items():
                    own = round(sums[0] + coins[0], _DIGITS)
                    if own not in known:
                        one = expit(odds[group] + own)
                        known[own] = one if pattern[group] else 1 - one
                    later = tuple(round(a + b, _DIGITS) for a, b in zip(sums[1:], coins[1:], strict=True))
                    more = p * (share * known[own])
                    found[later] = found[later] + more if later in found else more
                    if len(found) * len(p) > _MAX_CELLS:
                        raise ValueError(
                            "'graph' joins too many indicators by '<->' to sum over the hidden variables of "
                            f"{len(groups)} groups. Join fewer, or give them equal strengths in 'hidden'."
                        )
            states = found
        return states[()]

    def _coins_of(self, group: str, here: list[str], before: list[str]) -> dict[tuple[float, ...], float]:
        """What the coins of a group add to its sum and to those of the groups after it in ``here``, and their shares.

        Coins with groups ``before`` it were drawn with these. Coins with other groups only count for the group itself.
        """
        out = {(0.0,) * len(here): 1.0}
        for pair, strength in self.hidden.items():
            if group not in (ends := _groups(pair)):
                continue
            other = ends[0] if ends[1] == group else ends[1]
            if other in before:
                continue
            new: dict[tuple[float, ...], float] = {}
            for sums, share in out.items():
                for coin in (-strength, strength):
                    moved = [round(s + coin * (g in (group, other)), _DIGITS) for s, g in zip(sums, here, strict=True)]
                    new[tuple(moved)] = new.get(tuple(moved), 0.0) + share / 2
            out = new
        return out

    @staticmethod
    def _patterns(needed: list[str], names: set[str]) -> Iterator[dict[str, bool]]:
        other = [g for g in needed if g not in names]
        for bits in product([False, True], repeat=len(other)):
            yield {**dict.fromkeys(names, True), **dict(zip(other, bits, strict=True))}

    def _upstream(self, names: set[str]) -> list[str]:
        """Return the named groups and all groups whose indicators theirs depend on."""
        found = set(names)
        for group in reversed(self._order):
            if group in found:
                found |= {
                    a.removeprefix("R_") for a, b in self.graph.directed if b == f"R_{group}" and a.startswith("R_")
                }
        return [g for g in self._order if g in found]

    def _from_indicators(
        self, group: str, recorded: Mapping[str, Bools | bool], coins: Mapping[tuple[str, str], Floats | float]
    ) -> Floats:
        out = np.asarray(0.0)
        for parent, weight in self.weights.get(group, {}).items():
            if parent.startswith("R_"):
                out = out + weight * np.asarray(recorded[parent.removeprefix("R_")], dtype=float)
        for pair, coin in coins.items():
            if f"R_{group}" in pair:
                out = out + self.hidden[pair] * np.asarray(coin)
        return out

    def _odds(self, data: Retrospective, values: Floats, labels: Ints, group: str) -> Floats:
        """Log odds (m,) from intercept, values and label."""
        odds = np.full(len(values), self.intercepts.get(group, 0.0))
        for parent, weight in self.weights.get(group, {}).items():
            if parent == data.problem.label:
                odds += weight * np.where(labels >= 0, labels, np.nan)  # NaN: not known without the label
            elif not parent.startswith("R_"):
                odds += weight * values[:, data.columns.index(parent)]
        return odds

    def _names(self, data: Retrospective) -> tuple[str, ...]:
        """Names of what may be hidden: the groups, and the label if the graph has its indicator."""
        label = data.problem.label
        return (*data.problem.group_names, label) if label in self.graph.missing else data.problem.group_names

    def _check(self, data: Retrospective) -> None:
        positions_of(list(self.graph.missing), self._names(data), "graph")
        for group, by in self.weights.items():
            for parent in by:
                owner = parent
                if parent in data.columns:
                    j = data.columns.index(parent)
                    owner = data.problem.group_names[data.column_group[j]]
                    gaps = int(np.isnan(data.values[:, j]).sum())
                    if gaps:
                        raise ValueError(
                            f"'weights' must name columns without gaps, but {parent!r} is missing in {gaps} of {len(data)} "
                            "rows. Use complete data."
                        )
                if (owner, f"R_{group}") not in self.graph.directed:
                    raise ValueError(
                        f"'weights' of {group!r} must name columns of its parents in the graph, parent indicators or the label, "
                        f"but {parent!r} is not one of them: the graph {str(self.graph)!r} has no edge {owner} -> R_{group}."
                    )

    def __repr__(self) -> str:
        return f"GraphMechanism({str(self.graph)!r}, {self.intercepts}, {self.weights})"


def _checked_pairs(hidden: Any) -> dict[frozenset[str], float]:
    """Return the strength of each pair of groups."""
    named = {} if hidden is None else check_mapping("hidden", hidden, _PAIRS, empty=True, texts=False)
    if odd := [p for p in named if not isinstance(p, tuple) or len(p) != 2 or not all(isinstance(g, str) for g in p)]:
        raise TypeError(f"'hidden' must be a mapping {_PAIRS}, but one of the pairs is {shown(odd[0])}.")
    strengths = check_numbers("hidden", {" <-> ".join(pair): s for pair, s in named.items()}, _PAIRS)
    return {frozenset(_groups(pair)): s for pair, s in zip(named, strengths.values(), strict=True)}


def _groups(pair: tuple[str, str]) -> tuple[str, str]:
    return pair[0].removeprefix("R_"), pair[1].removeprefix("R_")
