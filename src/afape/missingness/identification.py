"""Whether recorded data identify the propensity that a policy needs, by a missingness graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .factorisation import Factorisation
from .factors import Block, in_order, probability

if TYPE_CHECKING:
    from .graph import MGraph

__all__ = ["Identification", "Separation", "identify"]

Separation = Callable[[frozenset[str], frozenset[str], frozenset[str]], bool]


@dataclass(frozen=True)
class Identification:
    """What a graph decides for the groups that a policy wants.

    Attributes
    ----------
    kind : {"MCAR", "MAR", "MNAR"}
        Missing completely at random, at random given groups that are always recorded (and the label), or not.
    given : tuple of str
        Groups (and the label) that some recording depends on.
    adjust : tuple of str
        The smallest set of groups such that everything on which the recording of a wanted group, or of one in this set,
        depends is in it. Weights are given these.
    label : str or None
        The label, where recording depends on it.
    blocks : tuple of Block
        Factors of P(R_adj = 1 | x_adj); empty where all of ``adjust`` is always recorded.
    identified : bool
        Whether P(R >= S + adj | x_adj) can be learned from what is recorded, for every set S of wanted groups.
    cut_short : bool
        Whether the graph is too large for all factorisations to be tried: then a "no" is not proven.
    views : dict
        For "semi-offline", "hybrid" and "missing-data": whether it applies.
    full_law : bool
        Whether even the law of all values and indicators is identified; more than any estimator here needs.
    reasons : tuple of str
        All of this in words.
    """

    kind: str
    given: tuple[str, ...]
    wanted: tuple[str, ...]
    adjust: tuple[str, ...]
    label: str | None
    blocks: tuple[Block, ...]
    identified: bool
    cut_short: bool
    views: dict[str, bool]
    full_law: bool
    reasons: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def gaps(self) -> tuple[str, ...]:
        """Groups to adjust for that are not always recorded."""
        return tuple(g for g in self.adjust if g in self.missing)

    @property
    def beside(self) -> tuple[str, ...]:
        """Groups not adjusted for whose being recorded the weights depend on."""
        used = {g for block in self.blocks for term in block.terms for g in term.indicators}
        return tuple(g for g in self.missing if g in used and g not in self.adjust)

    @property
    def formula(self) -> str:
        """P(R >= wanted + adj | x_adj), factor by factor."""
        if not self.identified:
            return "no factorisation found" if self.cut_short else "not identified"
        factors = [str(block) for block in self.blocks]
        given = [*self.adjust, *([self.label] if self.label else [])]
        earlier = list(self.gaps)
        for group in self.wanted:
            if group in self.missing and group not in earlier:
                factors.append(probability([group], given, earlier))
                earlier.append(group)
        return " ".join(factors) or "1"

    def __str__(self) -> str:
        return "\n".join([f"{self.kind}: {self.formula}", *self.reasons])


def identify(graph: MGraph, wanted: list[str], label: str | None) -> Identification:
    """Decide kind, adjustment set, factorisation and views."""
    missing = graph.missing
    given = set().union(*(graph.causes(g) for g in missing))
    kind = "MNAR" if given & set(missing) else "MAR" if given else "MCAR"
    adjust = _closure(graph, wanted)
    everything = _closure(graph, list(graph.variables))
    searched = Factorisation(graph, adjust)
    whole = searched if everything == adjust else Factorisation(graph, everything)
    blocks = searched.blocks
    always = not adjust & set(missing)
    offences = _offences(graph)
    ordered = [v for v in graph.variables if v in adjust and v != label]
    views = {"semi-offline": always, "hybrid": blocks is not None, "missing-data": whole.blocks is not None}
    found = Identification(
        kind=kind,
        given=tuple(v for v in graph.variables if v in given),
        wanted=tuple(wanted),
        adjust=tuple(ordered),
        label=label if label in adjust else None,
        blocks=blocks or (),
        identified=blocks is not None,
        cut_short=searched.cut,
        views=views,
        full_law=not offences,
        reasons=(),
        missing=missing,
    )
    reasons = _reasons(graph, found, offences)
    return Identification(**{**found.__dict__, "reasons": tuple(reasons)})


def _closure(graph: MGraph, wanted: list[str]) -> set[str]:
    """Smallest set of values that holds the causes of all recordings in it or wanted."""
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        for cause in graph.causes(waiting.pop()):
            if cause not in found:
                found.add(cause)
                waiting.append(cause)
    return found


def _offences(graph: MGraph) -> list[str]:
    """What keeps the full law from being identified (Nabi, Bhattacharya and Shpitser 2020), in words."""
    out = []
    for group in graph.missing:
        own = "R_" + group
        others = frozenset(graph.variables) - {group} | {"R_" + g for g in graph.missing if g != group}
        if graph.separation(frozenset({own}), frozenset({group}), others):
            continue
        if (group, own) in graph.directed:
            out.append(f"{group} -> {own} (self-censoring)")
            continue
        through = [
            r
            for a, r in graph.directed
            if a == group and not graph.separation(frozenset({r}), frozenset({own}), others - {r})
        ]
        out += [f"{group} -> {r} with {r} tied to {own} (a colluder)" for r in through]
    return out


def _reasons(graph: MGraph, found: Identification, offences: list[str]) -> list[str]:
    words = [_why_kind(found)]
    if found.adjust or found.label:
        who = ", ".join([*found.adjust, *([f"{found.label} (the label)"] if found.label else [])])
        words.append(
            f"Adjust for {who}: the recording of what the policy wants depends on it, directly or by way of others."
        )
    else:
        words.append("The recording of what the policy wants depends on no value: nothing to adjust for.")
    if not found.identified:
        words += _why_not(graph, found)
    elif found.gaps:
        words.append(f"Weights can be computed in rows that have {', '.join(found.gaps)} recorded.")
    for block in in_order(found.blocks):
        words += block.words()
    if beside := found.beside:
        words.append(
            f"The weights also depend on whether {', '.join(beside)} is recorded, with mean one given the values; factors of "
            "further groups are fitted on rows weighted by them."
        )
    views = [name for name, applies in found.views.items() if applies]
    words.append(f"Views that apply: {', '.join(views) or 'none'}.")
    if offences:
        words.append(
            f"The law of all values and indicators is not identified ({'; '.join(offences)}); estimates need less."
        )
    else:
        words.append("The law of all values and indicators is identified.")
    return words


def _why_kind(found: Identification) -> str:
    if found.kind == "MCAR":
        return "Missing completely at random: no recording depends on a value."
    if found.kind == "MAR":
        return f"Missing at random: recordings depend on {', '.join(found.given)} only, always recorded."
    hidden = [g for g in found.given if g in found.missing]
    return f"Missing not at random: recordings depend on {', '.join(hidden)}, not always recorded."


def _why_not(graph: MGraph, found: Identification) -> list[str]:
    needed = {*found.wanted, *found.adjust} & set(graph.missing)
    selfish = [g for g in graph.missing if g in needed and (g, "R_" + g) in graph.directed]
    words = [
        f"Not identified: whether {g!r} is recorded depends on its own value (self-censoring), and nothing recorded can "
        f"tell how. A policy that does not want {g!r}"
        + (", nor groups whose recording depends on it," if g in found.adjust else "")
        + " can be evaluated; afape.sensitivity shows how strong the dependence would have to be to matter."
        for g in selfish
    ]
    if not selfish and found.cut_short:
        words.append(
            f"No factorisation found of P(R = 1 for {', '.join(found.gaps)}) given their values whose factors can be learned "
            "from recorded rows. The graph is too large to try them all, so this is no proof that there is none. "
            "Leave groups out of the policy, or an edge out of the graph if it can be defended."
        )
    elif not selfish:
        words.append(
            f"Not identified: P(R = 1 for {', '.join(found.gaps)}) given their values has no factorisation whose factors can be "
            "learned from recorded rows: values and indicators depend on each other in a circle. Leave groups out of the "
            "policy, or an edge out of the graph if it can be defended."
        )
    return words
