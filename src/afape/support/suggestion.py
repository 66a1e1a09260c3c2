"""What to change in an assumption that the records contradict, in Python and in the words of a problem file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from ..data.retrospective import Retrospective
from ..missingness.assumptions import MAR, MCAR, MNAR

__all__ = ["Suggestion", "suggestion_from"]

_INDICATOR = "R_"
_FEW_GAPS = 0.95  # share of rows that record a group from which rows without it may be dropped
_SHOWN = 4  # edges named


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
            return f"Add {self._listed} to the graph."
        return f"{self.reason} Use afape.MNAR(graph=...) with {self._listed} in the graph."

    @property
    def toml(self) -> str:
        """The change for a user of problem files."""
        if self.assumption is not None:
            kind, key, names, more = _parts(self.assumption)
            lines = [f'assumption = "{kind}"', f"{key} = {json.dumps(names, ensure_ascii=False)}"]
            lines += [f"{name} = true" for name in more]
            return f"{self.reason} In the problem file, under [missingness], write\n    " + "\n    ".join(lines)
        if self.in_graph:
            return f"Add {self._listed} to 'graph' in the problem file."
        return f'{self.reason} In the problem file, under [missingness], use assumption = "MNAR" and a graph with {self._listed}.'

    @property
    def _listed(self) -> str:
        more = f" and {len(self.edges) - _SHOWN} more" if len(self.edges) > _SHOWN else ""
        return "; ".join(self.edges[:_SHOWN]) + more


def _parts(assumption: MAR | MNAR) -> tuple[str, str, list[str], list[str]]:
    """Kind, name of its list, the list, and its options that are True."""
    if isinstance(assumption, MNAR):
        return "MNAR", "adjust", list(assumption.adjust or ()), ["label"] if assumption.label else []
    options = [name for name in ("label", "drop_gaps") if getattr(assumption, name)]
    return "MAR", "given", list(assumption.given), options


def suggestion_from(missingness: MCAR | MAR | MNAR, data: Retrospective, rejected: pd.DataFrame) -> Suggestion | None:
    """Return the change that explains most: first groups without gaps, then groups with few, the label, and a graph."""
    label, names = data.problem.label, list(data.problem.group_names)
    lines = rejected.sort_values("p_value", kind="stable").to_dict("records")
    edges = tuple(dict.fromkeys(_edge(line["recording"], line["of"]) for line in lines))
    if isinstance(missingness, MNAR) and missingness.graph is not None:
        return Suggestion("", edges=edges, in_graph=True) if edges else None
    share = dict(zip(names, data.recorded.mean(axis=0).tolist(), strict=True))
    groups = [g for g in dict.fromkeys(line["of"] for line in lines) if g in names]
    whole = [g for g in groups if share[g] == 1.0]
    if whole:  # these groups may explain the other dependences
        return Suggestion(f"Recording depends on {_quoted(whole)}.", _widened(missingness, whole))
    nearly = [g for g in groups if share[g] >= _FEW_GAPS]
    if nearly and not isinstance(missingness, MNAR):
        lost = int((~data.recorded[:, [names.index(g) for g in nearly]].all(axis=1)).sum())
        reason = (
            f"Recording depends on {_quoted(nearly)}, which {lost} of {len(data)} rows lack. Dropping these rows makes it a "
            "condition; the answer is then about rows like the others."
        )
        wider = _widened(missingness, nearly)
        assert isinstance(wider, MAR)
        return Suggestion(reason, replace(wider, drop_gaps=True))
    if label in {line["of"] for line in lines}:
        return Suggestion(f"Recording depends on the label {label!r}.", replace(_widened(missingness, []), label=True))
    return Suggestion("Groups with many gaps cannot be in 'given'.", edges=edges) if edges else None


def _widened(missingness: MCAR | MAR | MNAR, more: Sequence[str]) -> MAR | MNAR:
    """Return the assumption with more groups that recording depends on."""
    if isinstance(missingness, MNAR):
        return replace(missingness, adjust=(*(missingness.adjust or ()), *more))
    given = missingness.given if isinstance(missingness, MAR) else ()
    return replace(missingness, given=(*given, *more)) if isinstance(missingness, MAR) else MAR((*given, *more))


def _quoted(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names))


def _edge(recording: str, of: str) -> str:
    return f"{of} {'<->' if of.startswith(_INDICATOR) else '->'} {_INDICATOR}{recording}"
