"""What to change in an assumption that the records contradict, in Python and in the words of a problem file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ..data.row_counts import Records, RowCounts
from ..missingness.assumptions import MAR, MCAR, MNAR

__all__ = ["Suggestion", "suggestion_from"]

_INDICATOR = "R_"
_FEW_GAPS = 0.95  # share of rows that record a group from which rows without it may be dropped
_SHOWN = 12  # terms of a graph that are named


@dataclass(frozen=True)
class Suggestion:
    """One change of the assumption.

    Attributes
    ----------
    reason : str
        What the records say.
    assumption : MAR or MNAR, optional
        The assumption to use instead; None if a graph is needed.
    edges : tuple of str
        Edges to draw in a graph.
    in_graph : bool
        True if there is a graph already.
    """

    reason: str
    assumption: MAR | MNAR | None = None
    edges: tuple[str, ...] = ()
    in_graph: bool = False

    @property
    def python(self) -> str:
        """The change for a user of Python."""
        if self.assumption is not None:
            kind, key, names, more = _parts(self.assumption)
            options = "".join(f", {name}=True" for name in more)
            return f"{self.reason} Use afape.{kind}({key}={names!r}{options}), and check again."
        if self.in_graph:
            return f"{self.reason} Add {self._listed} to the graph."
        return (
            f"{self.reason} A report (to_html) says if dependences of this size could change the order of the policies. If so, "
            f"use afape.MNAR(graph=...) with {self._listed} in the graph."
        )

    @property
    def toml(self) -> str:
        """The change for a user of problem files."""
        if self.assumption is not None:
            kind, key, names, more = _parts(self.assumption)
            lines = [f'assumption = "{kind}"', f"{key} = {json.dumps(names, ensure_ascii=False)}"]
            lines += [f"{name} = true" for name in more]
            return f"{self.reason} In the problem file, under [missingness], write\n    " + "\n    ".join(lines)
        if self.in_graph:
            return f"{self.reason} Add {self._listed} to 'graph' in the problem file."
        return (
            f"{self.reason} afape compare with --report says if dependences of this size could change the order of the policies. "
            'If so, write under [missingness] in the problem file assumption = "MNAR" and a graph with '
            f"{self._listed}."
        )

    @property
    def _listed(self) -> str:
        lines = _joined(self.edges)
        more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
        return f'"{"; ".join(lines[:_SHOWN])}"{more}'


def _parts(assumption: MAR | MNAR) -> tuple[str, str, list[str], list[str]]:
    """Kind, name of its list, the list, and its options that are True."""
    if isinstance(assumption, MNAR):
        return "MNAR", "adjust", list(assumption.adjust or ()), ["label"] if assumption.label else []
    options = [name for name in ("label", "drop_gaps") if getattr(assumption, name)]
    return "MAR", "given", list(assumption.given), options


def suggestion_from(missingness: MCAR | MAR | MNAR, data: Records, rejected: pd.DataFrame) -> Suggestion | None:
    """Return the change that explains most: first groups without gaps, then groups with few, the label, and a graph."""
    label, names = data.problem.label, list(data.problem.group_names)
    lines = rejected.sort_values("p_value", kind="stable").to_dict("records")
    if isinstance(missingness, MNAR) and missingness.graph is not None:
        return _more_edges(data, lines)
    share = dict(zip(names, _shares(data), strict=True))
    groups = [g for g in dict.fromkeys(line["of"] for line in lines) if g in names]
    whole = [g for g in groups if share[g] == 1.0]
    if whole:  # these groups may explain the other dependences
        return Suggestion(f"Recording depends on {_quoted(whole)}.", _widened(missingness, whole))
    gappy = _label_with_gaps(data)
    nearly = [g for g in groups if share[g] >= _FEW_GAPS and g != gappy]
    if nearly and not isinstance(missingness, MNAR):
        lost = data.without([names.index(g) for g in nearly])
        reason = (
            f"Recording depends on {_quoted(nearly)}, which {lost} of {len(data)} rows lack. Dropping these rows makes it a "
            "condition; the answer is then about rows like the others."
        )
        wider = _widened(missingness, nearly)
        assert isinstance(wider, MAR)
        return Suggestion(reason, replace(wider, drop_gaps=True))
    if label != gappy and label in {line["of"] for line in lines}:
        return Suggestion(f"Recording depends on the label {label!r}.", replace(_widened(missingness, []), label=True))
    if not lines:
        return None
    worst = lines[0]
    what = "the label, which has gaps," if worst["of"] == gappy else "groups with many gaps,"
    reason = f"Recording also depends on {what} which 'given' cannot hold; the clearest is: {worst['words']}."
    return Suggestion(reason, edges=_edges(lines))


def _label_with_gaps(data: Records) -> str | None:
    """Return the label if it has gaps, so that no list can hold it; else None."""
    if data.original is not None:
        return str(data.original.problem.label)
    return str(data.problem.label) if isinstance(data, RowCounts) and data.unlabelled else None


def _shares(data: Records) -> list[float]:
    """Share of the rows that have each group; 1 only if every row has it."""
    return (1 - data.gaps / len(data)).tolist()  # type: ignore[no-any-return]


def _more_edges(data: Records, lines: Sequence[dict[Any, Any]]) -> Suggestion | None:
    """Return edges of one kind to add to a graph: each kind may explain the dependences of the following ones."""
    gappy = _label_with_gaps(data)
    share = dict(zip(data.problem.group_names, _shares(data), strict=True))
    kinds: list[tuple[str, Callable[[str], bool]]] = [
        ("Recording depends on groups that every row has.", lambda of: share.get(of) == 1.0),
        ("Groups are recorded together.", lambda of: of.startswith(_INDICATOR)),
        ("{lost}", lambda of: share.get(of, 0.0) >= _FEW_GAPS and of != gappy),
        (f"Recording depends on the label {data.problem.label!r}.", lambda of: of == data.problem.label),
        ("Recording depends on groups with many gaps.", lambda of: True),
    ]
    for reason, fits in kinds:
        mine = [line for line in lines if fits(line["of"])]
        if mine:
            groups = list(dict.fromkeys(line["of"] for line in mine))
            words = _lost_words(data, groups) if reason == "{lost}" else reason
            return Suggestion(words, edges=_edges(mine), in_graph=True)
    return None


def _lost_words(data: Records, groups: Sequence[str]) -> str:
    names = data.problem.group_names
    lost = data.without([names.index(g) for g in groups])
    return (
        f"Recording depends on {_quoted(groups)}, which only {lost} of {len(data)} rows lack. Without these rows in the data, it "
        "would be a group that every row has, and the answer would be about rows like the others."
    )


def _widened(missingness: MCAR | MAR | MNAR, more: Sequence[str]) -> MAR | MNAR:
    """Return the assumption with more groups that recording depends on."""
    if isinstance(missingness, MNAR):
        return replace(missingness, adjust=(*(missingness.adjust or ()), *more))
    given = missingness.given if isinstance(missingness, MAR) else ()
    return replace(missingness, given=(*given, *more)) if isinstance(missingness, MAR) else MAR((*given, *more))


def _quoted(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names))


def _edges(lines: Sequence[dict[Any, Any]]) -> tuple[str, ...]:
    edges = (
        f"{line['of']} {'<->' if line['of'].startswith(_INDICATOR) else '->'} {_INDICATOR}{line['recording']}"
        for line in lines
    )
    return tuple(dict.fromkeys(edges))


def _joined(edges: Sequence[str]) -> list[str]:
    """Return terms of a graph that join arrows: those of one start, then those with equal ends."""
    ends: dict[str, list[str]] = {}
    for edge in edges:
        if " -> " in edge:
            start, end = edge.split(" -> ")
            ends.setdefault(start, []).append(end)
    starts: dict[str, list[str]] = {}
    for start, found in ends.items():
        starts.setdefault(", ".join(sorted(found)), []).append(start)
    arrows = [f"{', '.join(found)} -> {end}" for end, found in starts.items()]
    return [*arrows, *(edge for edge in edges if " <-> " in edge)]
