"""Assumptions about why values are missing, and the groups that the propensity is conditional on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arguments import check_flag, check_texts, positions_of, shown
from .._arrays import Bools, Floats, Ints, every
from ..data.label_group import with_label_group
from ..data.retrospective import Retrospective, check_records
from ..data.row_counts import Records
from ..warnings import DroppedRowsWarning, warn
from .factors import FactorBlock, OddsBlock, OddsTerm, OddsWeight
from .graph import MGraph, graph_of
from .identification import Identification, needing_label

__all__ = ["MAR", "MCAR", "MNAR", "Conditioning", "regressors"]


@dataclass(frozen=True, eq=False)
class Conditioning:
    """Groups X_adj (X_o if always recorded) and perhaps the label. Given these, recording is independent of all else.

    Attributes
    ----------
    groups : ndarray of bool, shape (G,)
        Groups that recording depends on.
    label : bool
        True if recording also depends on the label.
    gaps : ndarray of bool, shape (G,)
        Those of the groups that are not always recorded.
    blocks : tuple of OddsBlock
        Factors of P(R_gaps = 1 | given). If they also depend on other indicators (``beside``), the inverse of their product
        still has mean 1 given the groups, where rows without the gaps count as 0.
    """

    groups: Bools
    label: bool
    gaps: Bools
    blocks: tuple[OddsBlock, ...] = ()

    @property
    def beside(self) -> bool:
        """True if the blocks also depend on indicators of other groups."""
        return any(not self.gaps[g] for block in self.blocks for term in block.terms for g in term.indicators)

    def columns(self, data: Retrospective) -> Ints:
        """Return the positions of the columns of the given groups."""
        return np.flatnonzero(self.groups[data.column_group])

    def matrix(self, data: Retrospective) -> Floats:
        """Columns to condition on, one row per record: the given groups, then indicators of all classes but the first."""
        return regressors(data, self.groups, self.label)

    def searched(self, data: Retrospective) -> tuple[tuple[str, ...], Floats]:
        """Names and columns that describe regions: as `matrix`, but with indicators of all classes if there are over two."""
        names = [data.columns[j] for j in self.columns(data)]
        values = regressors(data, self.groups, False)
        if self.label:
            codes = np.arange(1 if len(data.classes) == 2 else 0, len(data.classes))
            names += [f"{data.problem.label}={data.classes[c]}" for c in codes]
            values = np.column_stack([values, data.labels[:, None] == codes])
        return tuple(names), values

    def without(self, group: int | None) -> Conditioning:
        """Return a copy without one group (None: without the label) as a regressor; ``gaps`` stay the same."""
        groups = self.groups.copy()
        if group is not None:
            groups[group] = False
        blocks = tuple(_without(block, group) for block in self.blocks)
        return Conditioning(groups, self.label and group is not None, self.gaps, blocks)

    def usable(self, data: Retrospective) -> Bools | None:
        """True for rows that have all given groups recorded, shape (n,); None if no group has gaps."""
        return every(data.recorded[:, self.gaps]) if self.gaps.any() else None


def _without(block: OddsBlock, group: int | None) -> OddsBlock:
    terms = tuple(
        term._replace(
            regressors=tuple(g for g in term.regressors if g != group), label=term.label and group is not None
        )
        for term in block.terms
    )
    weights = tuple(weight._replace(block=_without(weight.block, group)) for weight in block.weights)
    return block._replace(terms=terms, weights=weights)


def regressors(data: Retrospective, groups: Bools, label: bool) -> Floats:
    """Columns of the groups and, with ``label``, indicators of all classes but the first; one row per record."""
    columns = data.values[:, np.flatnonzero(groups[data.column_group])]
    if not label:
        return columns
    return np.column_stack([columns, data.labels[:, None] == np.arange(1, len(data.classes))])


@dataclass(frozen=True)
class MCAR:
    """Missing completely at random: recording depends on nothing."""

    def conditioning(self, data: Retrospective, wanted: Bools) -> Conditioning:
        """Return an empty conditioning."""
        return Conditioning(_none(data), False, _none(data))

    def reasons(self, data: Retrospective, wanted: Bools) -> tuple[str, ...]:
        """Describe the assumption in words."""
        return ("Assumption: missing completely at random. No recording depends on a value or on the label.",)

    def graph_on(self, data: Records) -> MGraph:
        """Return the assumption as a graph on these records: indicators depend only on each other."""
        return _joined((), data)


@dataclass(frozen=True)
class MAR:
    """Missing at random given groups that are always recorded.

    Given these groups, R is independent of all other values and, unless ``label`` is True, of the label. The policy
    need not acquire these groups.

    Parameters
    ----------
    given : sequence of str
        Names of groups; every row must have them recorded.
    label : bool
        True if recording may also depend on the label. Then propensities are conditional on the label too.
    drop_gaps : bool
        True to drop rows that lack a given group, with a warning. Estimates are then about rows like the remaining ones; if
        many rows are dropped, use a graph instead.
    """

    given: Sequence[str]
    label: bool = False
    drop_gaps: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "given", tuple(check_texts("given", self.given, "group names")))
        check_flag("label", self.label)
        check_flag("drop_gaps", self.drop_gaps)

    def rows(self, data: Retrospective) -> Retrospective:
        """Return the records to evaluate on: with ``drop_gaps``, without the rows that lack a given group."""
        if not self.drop_gaps:
            return data
        groups = positions_of(self.given, data.problem.group_names, "given")
        whole = every(data.recorded[:, groups])
        if whole.all():
            return data
        warn(
            f"{int((~whole).sum())} of {len(data)} rows lack one of {list(self.given)} and are dropped. Estimates are about "
            "rows like the remaining ones.",
            DroppedRowsWarning,
        )
        if not whole.any():
            raise ValueError(f"'drop_gaps' must leave some rows, but no row has all of {list(self.given)} recorded.")
        return data.take(np.flatnonzero(whole))

    def conditioning(self, data: Retrospective, wanted: Bools) -> Conditioning:
        """Return the given groups, whatever the policy wants; raise an error if one has gaps."""
        groups = positions_of(self.given, data.problem.group_names, "given")
        if len(groups) == 0 and not self.label:
            raise ValueError("'given' must name at least one group; for none, use afape.MCAR().")
        for g in groups:
            gaps = int((~data.recorded[:, g]).sum())
            if gaps:
                raise ValueError(
                    f"'given' groups must always be recorded, but {data.problem.group_names[g]!r} is missing in {gaps} "
                    f"of {len(data)} rows. If these rows are few, drop them with afape.MAR(..., drop_gaps=True). If missingness "
                    "depends on a group with gaps, the data are missing not at random: use afape.MNAR(graph=...)."
                )
        return Conditioning(_mask(data, groups), self.label, _none(data))

    def __repr__(self) -> str:
        flags = [f", {name}=True" for name in ("label", "drop_gaps") if getattr(self, name)]
        return f"MAR(given={list(self.given)!r}{''.join(flags)})"

    def reasons(self, data: Retrospective, wanted: Bools) -> tuple[str, ...]:
        """Describe the assumption in words."""
        given = ", ".join([*self.given, *(["the label"] if self.label else [])])
        return (f"Assumption: missing at random. Recordings depend only on {given}, which every row has.",)

    def graph_on(self, data: Records) -> MGraph:
        """Return the assumption as a graph on these records: indicators depend on the given groups and on each other."""
        return _joined([*self.given, *([data.problem.label] if self.label else [])], data)


@dataclass(frozen=True)
class MNAR:
    """Missing not at random, according to a missingness graph.

    Parameters
    ----------
    graph : MGraph or str
        Shows what recording depends on: groups, indicators and perhaps the label. The adjustment set and the factors of
        the propensity follow from the graph and from the groups that the policy wants (`MGraph.identify`).
    adjust : sequence of str
        Instead of a graph: the groups to adjust for. List groups with gaps in the order in which they were recorded.
        Recording of each of these may depend on the ones before it and on the listed groups without gaps. Recording of all
        other groups may depend on all listed groups. The records cannot show that the order is wrong.
    label : bool
        With ``adjust``: True if recording may also depend on the label.
    """

    graph: MGraph | str | None = None
    adjust: Sequence[str] | None = None
    label: bool = False

    def __post_init__(self) -> None:
        check_flag("label", self.label)
        if (self.graph is None) == (self.adjust is None):
            raise ValueError("MNAR needs either 'graph' or 'adjust': a missingness graph, or the groups to adjust for.")
        if self.graph is not None and self.label:
            raise ValueError("'label' needs 'adjust'; in a graph, draw an edge from the label to an indicator.")
        if self.graph is not None:
            object.__setattr__(self, "graph", graph_of(self.graph))
        if self.adjust is not None:
            object.__setattr__(self, "adjust", tuple(check_texts("adjust", self.adjust, "group names")))
        if self.adjust is not None and len(self.adjust) == 0 and not self.label:
            raise ValueError("'adjust' must name at least one group; for none, use afape.MCAR().")

    def graph_on(self, data: Records) -> MGraph:
        """Return the graph on these records; ``adjust`` is converted to a graph."""
        if isinstance(self.graph, MGraph):
            return _on_records(self.graph, data)
        gaps = [g for g in self.adjust or () if g in _with_gaps(data)]
        always = [g for g in self.adjust or () if g not in gaps]
        always += [data.problem.label] if self.label else []
        rest = [g for g in _with_gaps(data) if g not in gaps]
        edges = [(v, f"R_{g}", "->") for j, g in enumerate(gaps) for v in (*always, *gaps[:j])]
        edges += [(f"R_{e}", f"R_{g}", "->") for j, g in enumerate(gaps) for e in gaps[:j]]
        edges += [(v, f"R_{g}", "->") for g in rest for v in (*always, *gaps, *(f"R_{e}" for e in gaps))]
        return _on_records(MGraph([*edges, *_together(rest)], [f"R_{g}" for g in (*gaps, *rest)]), data)

    def identify(self, data: Retrospective, wanted: Bools | None = None) -> Identification:
        """Identification on these records, for a policy that wants these groups (default: all)."""
        if not isinstance(self.graph, MGraph):
            raise ValueError("'identify' needs a graph, but MNAR(adjust=...) has none. Pass MNAR(graph=...).")
        plain, data = check_records(data), with_label_group(data)
        problem = plain.problem
        graph = _on_records(self.graph, data)
        chosen = np.ones(problem.n_groups, dtype=bool) if wanted is None else wanted
        if not isinstance(chosen, np.ndarray) or chosen.shape != (problem.n_groups,) or chosen.dtype != bool:
            raise ValueError(f"'wanted' must be an array of {problem.n_groups} booleans, but is {shown(wanted)}.")
        names = [g for g, one in zip(problem.group_names, chosen, strict=True) if one]
        if data is not plain:  # every stop needs the label
            names.append(problem.label)
        found = graph.identify(names, label=data.problem.label)
        return found if data.original is None else needing_label(found, str(data.original.problem.label))

    def conditioning(self, data: Retrospective, wanted: Bools) -> Conditioning:
        """Return the groups to adjust for and the factors of their propensity; raise an error if it is not identified."""
        if self.graph is None:
            return self._ordered(data)
        found = self.identify(data, wanted)
        if not found.identified:
            raise ValueError(f"'graph' must identify the propensity that the policy needs, but does not.\n{found}")
        names = data.problem.group_names
        groups = _mask(data, [names.index(g) for g in found.adjust])
        blocks = tuple(_indexed(block, data) for block in found.blocks)
        return Conditioning(groups, found.label is not None, groups & ~data.always_recorded, blocks)

    def reasons(self, data: Retrospective, wanted: Bools) -> tuple[str, ...]:
        """Describe the assumption in words."""
        if isinstance(self.graph, MGraph):
            names = data.problem.group_names
            full = [f"R_{g}" for j, g in enumerate(names) if data.always_recorded[j] and g in self.graph.missing]
            unused = [f"Edges of {', '.join(full)} are ignored, because every row has these groups."] if full else []
            return (f"Assumption: the graph {self.graph}.", *unused, *self.identify(data, wanted).reasons)
        given = ", ".join([*(self.adjust or ()), *(["the label"] if self.label else [])])
        return (
            f"Assumption: missing not at random. Recordings depend on {given or 'nothing'}; among these, recording of a group "
            "with gaps depends only on the groups listed before it.",
        )

    def _ordered(self, data: Retrospective) -> Conditioning:
        index = [int(g) for g in data.problem.group_index(list(self.adjust or ()), "adjust")]
        always = tuple(g for g in index if data.always_recorded[g])
        blocks, earlier = [], ()  # type: list[OddsBlock], tuple[int, ...]
        for g in index:
            if g not in always:
                blocks.append(OddsBlock((g,), (g,), (OddsTerm((g,), (*always, *earlier), self.label, earlier),)))
                earlier = (*earlier, g)
        groups = _mask(data, index)
        return Conditioning(groups, self.label, groups & ~data.always_recorded, tuple(blocks))

    def __repr__(self) -> str:
        if self.graph is not None:
            return f"MNAR(graph={str(self.graph)!r})"
        return f"MNAR(adjust={list(self.adjust or ())!r}{', label=True' if self.label else ''})"


def _joined(given: Sequence[str], data: Records) -> MGraph:
    """Return a graph in which every indicator depends on the given groups and, through hidden causes, on the others."""
    gaps = _with_gaps(data)
    edges = [(v, f"R_{g}", "->") for v in given for g in gaps]
    return _on_records(MGraph([*edges, *_together(gaps)], [f"R_{g}" for g in gaps]), data)


def _together(groups: Sequence[str]) -> list[tuple[str, str, str]]:
    return [(f"R_{a}", f"R_{b}", "<->") for i, a in enumerate(groups) for b in groups[:i]]


def _with_gaps(data: Records) -> list[str]:
    return [data.problem.group_names[g] for g in np.flatnonzero(~data.always_recorded)]


def _on_records(graph: MGraph, data: Records) -> MGraph:
    """Return the graph over all groups of the problem, with indicators of the groups that have gaps."""
    problem = data.problem
    # In this order, so that equal records give equal texts.
    nodes = (*problem.group_names, problem.label) if data.original is None else problem.group_names
    if odd := [g for g in problem.group_names if g.startswith("R_")]:
        raise ValueError(f"In a graph, names of indicators start with 'R_', but {odd[0]!r} is a group. Rename it.")
    if unknown := [v for v in graph.variables if v not in nodes]:
        raise ValueError(
            f"'graph' must name groups, 'R_<group>' and the label {(data.original or data).problem.label!r}, but {unknown[0]!r} "
            f"is not a group. The groups are {list((data.original or data).problem.group_names)}."
        )
    if problem.label in graph.missing and not data.weighs_labels:
        raise ValueError(
            f"'graph' must have no indicator of the label {problem.label!r}, because it is always recorded. Remove the node "
            f"R_{problem.label}."
        )
    gaps = data.gaps
    for g in np.flatnonzero(gaps):
        name = problem.group_names[g]
        if name not in graph.missing:
            raise ValueError(
                f"'graph' contradicts the records: {name!r} is missing in {int(gaps[g])} of {len(data)} rows, but the graph "
                f"has no node R_{name}. Add its edges, or 'R_{name}' alone if it depends on nothing."
            )
    return graph.keeping(_with_gaps(data), nodes)


def _indexed(block: FactorBlock, data: Retrospective) -> OddsBlock:
    names, label = data.problem.group_names, data.problem.label

    def index(groups: Iterable[str]) -> tuple[int, ...]:
        return tuple(names.index(g) for g in groups if g != label)

    terms = tuple(
        OddsTerm(
            index(t.groups), index(t.regressors), label in t.regressors, index(t.rows),
            index(t.indicators), index(t.absent), index(t.having), index(t.lacking),
        )
        for t in block.terms
    )  # fmt: skip
    weights = tuple(OddsWeight(_indexed(w.block, data), w.inverse, w.everyone) for w in block.weights)
    return OddsBlock(index(block.groups), index(block.together), terms, weights)


def _none(data: Retrospective) -> Bools:
    return np.zeros(data.problem.n_groups, dtype=bool)


def _mask(data: Retrospective, groups: Any) -> Bools:
    out = _none(data)
    out[groups] = True
    return out
