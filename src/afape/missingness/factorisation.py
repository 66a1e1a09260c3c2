"""Search for factors of a propensity that can be learned from the recorded rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, permutations
from typing import TYPE_CHECKING, NamedTuple

import networkx as nx

from .factors import FactorBlock, FactorTerm, FactorWeight

if TYPE_CHECKING:
    from .graph import MGraph

__all__ = ["Factorisation"]

Names = frozenset[str]

_LARGEST_BLOCK = 4  # largest number of indicators in an odds-ratio form
_QUERIES = 20_000  # largest number of independence tests in a search
_EMPTY: Names = frozenset()


class _SearchError(Exception):
    """The search exceeded its limit."""


class _State(NamedTuple):
    """State of the search. All later factors are conditional on R_earlier = 1 and on the indicators ``beside``."""

    earlier: Names = _EMPTY  # E
    beside: Names = _EMPTY  # Z, outside the target
    peeled: tuple[FactorBlock, ...] = ()  # rows that have these groups, inversely weighted, represent all rows
    dropped: Names = _EMPTY  # indicators that can no longer be used because of these weights

    @property
    def reweighted(self) -> Names:
        return frozenset(g for block in self.peeled for g in block.groups)

    @property
    def known(self) -> Names:
        return self.earlier | self.reweighted

    @property
    def weights(self) -> tuple[FactorWeight, ...]:
        return tuple(FactorWeight(block, inverse=True, everyone=True) for block in self.peeled)

    def after(self, groups: Iterable[str]) -> _State:
        return self._replace(earlier=self.earlier | frozenset(groups))


class Factorisation:
    r"""Blocks whose product is P(R_T = 1 | x), for the groups T with gaps in the adjustment set.

    The search tries these steps in turn, conditional on :math:`R_E = 1`:

    - a regression of :math:`R_b` on rows that have further groups C, if :math:`R_b` is independent of :math:`R_C` and
      of all values not recorded there;
    - an odds-ratio form of several indicators;
    - peeling: a regression of :math:`R_b` on the recorded values *and on other indicators at any value*. Rows with b,
      weighted by the inverse, then represent all rows, and later factors are not conditional on :math:`R_b = 1`;
    - an indicator outside T becomes a regressor of all later factors;
    - comparison: if all factors after :math:`R_b = 1` are identified, so is the law of x there, and rows without b but with S
      are compared with it: :math:`P(R_b = 0 | x) / P(R_b = 1 | x)`, a function of :math:`x_S`, is
      :math:`p(x_S, R_S = 1, R_b = 0) / \sum p(x, R_b = 1) P(R_S = 1 | R_b = 0, x)`.

    Every step is valid, so a factorisation that is found is correct. Enumeration of small graphs showed that the search
    misses none; this is not proved for all graphs.

    Attributes
    ----------
    blocks : tuple of FactorBlock, or None
        The factors; None if none were found.
    cut : bool
        True if not all factorisations were tried.
    """

    def __init__(self, graph: MGraph, adjust: set[str]) -> None:
        self.graph = graph
        self.target: Names = frozenset(adjust & set(graph.missing))
        self.always: Names = frozenset(adjust - self.target)
        self.open: Names = self.target | self._above()
        self.cut = False
        self._asked = 0
        self._dead: set[tuple[Names, Names, Names, Names]] = set()
        self.blocks = self._found()

    def _found(self) -> tuple[FactorBlock, ...] | None:
        if any((g, "R_" + g) in self.graph.directed for g in self.target):
            return None  # self-censoring
        try:
            found = self._solve(_State())
        except _SearchError:
            found, self.cut = None, True
        self.cut |= found is None and len(self.open) > _LARGEST_BLOCK
        return found

    def _above(self) -> Names:
        """Groups outside the target whose indicators affect recordings in it; other indicators are not needed."""
        arrows: nx.DiGraph[str] = nx.DiGraph()
        arrows.add_nodes_from(self.graph.indicators)
        arrows.add_edges_from(e for e in self.graph.directed if e[0] in self.graph.indicators)
        above = set().union(*(nx.ancestors(arrows, "R_" + g) for g in self.target))
        return frozenset(node.removeprefix("R_") for node in above)

    def _solve(self, state: _State) -> tuple[FactorBlock, ...] | None:
        left = self._left(state)
        key = state.earlier, state.beside, state.reweighted, state.dropped
        if not left:
            return ()
        if key in self._dead:
            return None
        for block, after in self._steps(state, left):
            later = self._solve(after)
            if later is not None:
                return later if block is None else (block, *later)
        if (compared := self._compare(state, left)) is not None:
            return compared
        self._dead.add(key)
        return None

    def _left(self, state: _State) -> list[str]:
        return self._sorted(self.target - state.known)

    def _rest(self, state: _State) -> Names:
        return self.open - state.known - state.beside - state.dropped

    def _steps(self, state: _State, left: list[str]) -> Iterator[tuple[FactorBlock | None, _State]]:
        """Yield factors that can be learned next, with the state after them, simplest first."""
        for block in chain(self._regressions(state, left, left), self._odds_ratios(state, left)):
            yield block, state.after(block.groups)
        for block, dropped in self._peel(state, left):
            yield block, state._replace(peeled=(*state.peeled, block), dropped=state.dropped | dropped)
        for group in self._sorted(self._rest(state) - self.target):
            yield None, state._replace(beside=state.beside | {group})

    def _regressions(self, state: _State, groups: Iterable[str], left: list[str]) -> Iterator[FactorBlock]:
        """Yield regressions, those on rows with the fewest further groups first."""
        for extra in range(_LARGEST_BLOCK):
            for group in groups:
                for rows in combinations([g for g in left if g != group], extra):
                    if (term := self._regression(group, frozenset(rows), state)) is not None:
                        yield self._block([group], [group], state, [term])

    def _regression(self, group: str, rows: Names, state: _State, absent: Names = _EMPTY) -> FactorTerm | None:
        """Regression of the indicator of a group on rows that have the earlier groups and ``rows``; None if not valid.

        The indicator must be independent of the indicators of ``rows`` and of all values that are not recorded there.
        """
        known = state.known | rows
        unknown = self.target - known
        given, fixed = known | self.always, _indicators(state.earlier | absent)
        foreign = unknown | _indicators(rows)
        if not self._separated(group, foreign, given | fixed | _indicators(state.beside)):
            return None
        regressors, indicators = map(self._tuple, self._needed(group, given, state.beside, fixed, foreign))
        return FactorTerm((group,), regressors, self._tuple(known), indicators, self._tuple(absent))

    def _odds_ratios(self, state: _State, left: list[str]) -> Iterator[FactorBlock]:
        rest = self._sorted(self._rest(state))
        for size in range(2, _LARGEST_BLOCK + 1):
            for together in combinations(rest, size):
                others = [g for g in left if g not in together]
                for extra in range(_LARGEST_BLOCK + 1 - size):
                    for rows in combinations(others, extra):
                        if (block := self._joint(together, frozenset(rows), state)) is not None:
                            yield block

    def _joint(self, together: tuple[str, ...], rows: Names, state: _State) -> FactorBlock | None:
        """Odds-ratio form, if each indicator is independent of its own value given all else in the block, else None.

        Given all values, the indicators of the block must not depend on the indicators of ``rows``.
        """
        groups = [g for g in together if g in self.target and self._unmoved(g, rows, state)]
        if not groups:
            return None
        fixed = state.earlier | rows | set(together)
        known = fixed | state.reweighted
        values = (self.target & known) | self.always
        single: dict[str, tuple[Names, Names]] = {}
        for group in together:
            others, unknown = _indicators(fixed - {group}), self.target - (known - {group})
            if not self._separated(group, unknown, (values - {group}) | others | _indicators(state.beside)):
                return None
            single[group] = self._needed(group, values - {group}, state.beside, others, unknown)
        terms = []
        for subset in _subsets(together):
            if not any(self._unrelated(pair, fixed, values, state) for pair in combinations(subset, 2)):
                regressors, beside = (frozenset.intersection(*(single[g][i] for g in subset)) for i in (0, 1))
                terms.append(
                    FactorTerm(subset, self._tuple(regressors), self._tuple(known - set(subset)), self._tuple(beside))
                )
        return self._block(groups, together, state, terms)

    def _unmoved(self, group: str, others: Iterable[str], state: _State) -> bool:
        """Return True if, given all values, the indicator of a group is independent of those of others."""
        given = self.target | self.always | _indicators(state.earlier | state.beside)
        return self._separated(group, _indicators(others), given)

    def _unrelated(self, pair: tuple[str, ...], fixed: Names, values: Names, state: _State) -> bool:
        given = values | _indicators((fixed - set(pair)) | state.beside)
        return self._separated(pair[0], _indicators(pair[1:]), given)

    def _peel(self, state: _State, left: list[str]) -> Iterator[tuple[FactorBlock, Names]]:
        """Yield regressions on indicators at any value, with the indicators that can no longer be used."""
        unknown, rest = self.target - state.known, self._rest(state)
        given, fixed = state.known | self.always, _indicators(state.earlier)
        outside = self._sorted(rest - self.target)
        for group in left:
            for dropped in map(frozenset, _subsets(outside, least=0)):
                keep = (rest - dropped - {group}) | state.beside
                if self._separated(group, unknown, given | fixed | _indicators(keep)):
                    regressors, indicators = map(self._tuple, self._needed(group, given, keep, fixed, unknown))
                    term = FactorTerm((group,), regressors, self._tuple(state.known), indicators)
                    yield self._block([group], [group], state, [term]), dropped

    def _compare(self, state: _State, left: list[str]) -> tuple[FactorBlock, ...] | None:
        """Factor of a group, by comparison of rows without it with rows that have it.

        The later factors of the rows that have it must be identified.
        """
        for group in left:
            later = self._solve(state.after([group]))
            others = [g for g in left if g != group] if later is not None else []
            for seen in _subsets(others):
                block = self._comparison(group, frozenset(seen), state, left, later or ())
                if block is not None:
                    return (block, *(later or ()))
        return None

    def _comparison(
        self, group: str, seen: Names, state: _State, left: list[str], later: tuple[FactorBlock, ...]
    ) -> FactorBlock | None:
        unknown = self.target - state.known - seen
        given, fixed = state.known | self.always | seen, _indicators(state.earlier)
        if not self._separated(group, unknown, given | fixed | _indicators(state.beside)):
            return None
        without = self._without(group, seen, state, left)
        if without is None:
            return None
        regressors, indicators = map(self._tuple, self._needed(group, given, state.beside, fixed, unknown))
        everyone, lacking = self._tuple(self.target), self._tuple(seen)
        rows = self._tuple(state.known)
        term = FactorTerm((group,), regressors, rows, indicators, having=everyone, lacking=lacking)
        both = set(without) & set(later)  # cancel
        weights = (
            *state.weights,
            *(FactorWeight(block, inverse=False, everyone=False) for block in without if block not in both),
            *(FactorWeight(block, inverse=True, everyone=False) for block in later if block not in both),
        )
        return self._block([group], [group], state, [term])._replace(weights=weights)

    def _without(self, group: str, seen: Names, state: _State, left: list[str]) -> tuple[FactorBlock, ...] | None:
        """P(R_seen = 1 | x) among rows without the group: fitted there, or equal to that among rows with it."""
        for order in permutations(self._sorted(seen)):
            found: list[FactorBlock] = []
            at = state
            for one in order:
                block = self._as_with(group, one, at, left) or self._fitted_without(group, one, at, left)
                if block is None:
                    break
                found.append(block)
                at = at.after([one])
            else:
                return tuple(found)
        return None

    def _as_with(self, group: str, one: str, state: _State, left: list[str]) -> FactorBlock | None:
        if not self._unmoved(one, [group], state):
            return None
        at = state.after([group])
        others = [g for g in left if g not in at.earlier]
        for block in chain(self._regressions(at, [one], others), self._odds_ratios(at, others)):
            if one in block.groups:
                return block._replace(groups=(one,))
        return None

    def _fitted_without(self, group: str, one: str, state: _State, left: list[str]) -> FactorBlock | None:
        others = [g for g in left if g not in state.earlier and g not in (group, one)]
        for extra in range(_LARGEST_BLOCK):
            for rows in combinations(others, extra):
                term = self._regression(one, frozenset(rows), state, absent=frozenset([group]))
                if term is not None:
                    return self._block([one], [one], state, [term])
        return None

    def _block(
        self, groups: Iterable[str], together: Iterable[str], state: _State, terms: Iterable[FactorTerm]
    ) -> FactorBlock:
        earlier = self._tuple(state.earlier)
        return FactorBlock(self._tuple(groups), self._tuple(together), earlier, tuple(terms), state.weights)

    def _separated(self, group: str, others: Names, given: Names) -> bool:
        self._asked += 1
        if self._asked > _QUERIES:
            raise _SearchError
        return self.graph.separation(frozenset({"R_" + group}), others, given)

    def _needed(
        self, group: str, values: Names, indicators: Names, fixed: Names, irrelevant: Names
    ) -> tuple[Names, Names]:
        """Return the values, and the groups of the indicators, that the indicator of a group depends on."""
        kept = values | _indicators(indicators)
        for name in [*self._sorted(values), *("R_" + g for g in self._sorted(indicators))]:
            if self._separated(group, irrelevant | {name}, (kept - {name}) | fixed):
                kept, irrelevant = kept - {name}, irrelevant | {name}
        return kept & values, frozenset(g for g in indicators if "R_" + g in kept)

    def _sorted(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=self.graph.variables.index)

    def _tuple(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(self._sorted(names))


def _subsets(names: Sequence[str], least: int = 1) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, n) for n in range(least, len(names) + 1))


def _indicators(groups: Iterable[str]) -> Names:
    return frozenset("R_" + g for g in groups)
