"""Identification of the propensity that a policy needs, from a missingness graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .factorisation import Factorisation
from .factors import FactorBlock, in_order, probability

if TYPE_CHECKING:
    from .graph import MGraph

__all__ = ["Identification", "Separation", "identify", "needing_label"]

Separation = Callable[[frozenset[str], frozenset[str], frozenset[str]], bool]


@dataclass(frozen=True)
class Identification:
    """Result of the identification for the groups that a policy wants.

    Attributes
    ----------
    kind : {"MCAR", "MAR", "MNAR"}
        Missing completely at random, at random given groups that are always recorded (and the label), or not at random.
    given : tuple of str
        Groups (and the label) that some recording depends on.
    wanted : tuple of str
        Groups that the policy wants.
    adjust : tuple of str
        The adjustment set: all groups that the recording of a wanted group depends on, then all groups that the recording
        of these depends on, and so on. Weights are conditional on it.
    label : str or None
        The label, if recording depends on it.
    blocks : tuple of FactorBlock
        Factors of P(R_adj = 1 | x_adj); empty if all groups of ``adjust`` are always recorded.
    identified : bool
        True if P(R >= S + adj | x_adj) can be learned from the records, for every set S of wanted groups.
    cut_short : bool
        True if the graph is too large to try all factorisations; then ``identified`` may be False although one exists.
    views : dict from str to bool
        True for each of "semi-offline", "hybrid" and "missing-data" that applies.
    full_law : bool
        True if the law of all values and indicators is identified. No estimator here needs this.
    reasons : tuple of str
        The result in words.
    missing : tuple of str
        Groups with an indicator.
    """

    kind: str
    given: tuple[str, ...]
    wanted: tuple[str, ...]
    adjust: tuple[str, ...]
    label: str | None
    blocks: tuple[FactorBlock, ...]
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
        """Groups outside ``adjust`` whose indicators the weights depend on."""
        used = {g for block in self.blocks for term in block.terms for g in term.indicators}
        return tuple(g for g in self.missing if g in used and g not in self.adjust)

    @property
    def formula(self) -> str:
        """P(R >= wanted + adj | x_adj) as a product of factors, in text."""
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
    """Find the kind of missingness, the adjustment set, a factorisation and the views."""
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
    return replace(found, reasons=tuple(_reasons(graph, found, offences)))


def _closure(graph: MGraph, wanted: list[str]) -> set[str]:
    """Return the smallest set that contains the causes of the recordings of the wanted groups and of its own groups."""
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        for cause in graph.causes(waiting.pop()):
            if cause not in found:
                found.add(cause)
                waiting.append(cause)
    return found


def _offences(graph: MGraph) -> list[str]:
    """Describe why the full law is not identified (Nabi, Bhattacharya and Shpitser 2020)."""
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
        out += [f"{group} -> {r} with {r} dependent on {own} (a colluder)" for r in through]
    return out


def _reasons(graph: MGraph, found: Identification, offences: list[str]) -> list[str]:
    words = [_why_kind(found)]
    if found.adjust or found.label:
        who = ", ".join([*found.adjust, *([f"{found.label} (the label)"] if found.label else [])])
        words.append(f"Adjust for {who}: the recording of the wanted groups depends on these, directly or indirectly.")
    else:
        words.append("The recording of groups that the policy wants depends on no value: no adjustment is needed.")
    if not found.identified:
        words += _why_not(graph, found)
    elif found.gaps:
        words.append(f"Weights can be computed in rows that have {', '.join(found.gaps)} recorded.")
    for block in in_order(found.blocks):
        words += block.words()
    if beside := found.beside:
        words.append(
            f"The weights also depend on whether {', '.join(beside)} is recorded; their mean given the values is 1. "
            "Factors of further groups are fitted on rows weighted by them."
        )
    views = [name for name, applies in found.views.items() if applies]
    words.append(f"Views that apply: {', '.join(views) or 'none'}.")
    if offences:
        words.append(
            f"The law of all values and indicators is not identified ({'; '.join(offences)}). Estimates do not need it."
        )
    else:
        words.append("The law of all values and indicators is identified.")
    return words


def _why_kind(found: Identification) -> str:
    if found.kind == "MCAR":
        return "Missing completely at random: no recording depends on a value."
    if found.kind == "MAR":
        return f"Missing at random: recordings depend only on {', '.join(found.given)} (always recorded)."
    hidden = [g for g in found.given if g in found.missing]
    return f"Missing not at random: recordings depend on {', '.join(hidden)} (not always recorded)."


def _why_not(graph: MGraph, found: Identification) -> list[str]:
    needed = {*found.wanted, *found.adjust} & set(graph.missing)
    selfish = [g for g in graph.missing if g in needed and (g, "R_" + g) in graph.directed]
    words = [
        f"Not identified: recording of {g!r} depends on its own value (self-censoring), and the records do not show how. A "
        f"policy that does not want {g!r}"
        + (", nor groups whose recording depends on it," if g in found.adjust else "")
        + " can be evaluated; afape.sensitivity shows how strong the dependence must be to change the result."
        for g in selfish
    ]
    if not selfish and found.cut_short:
        words.append(
            f"The search found no factors of P(R = 1 for {', '.join(found.gaps)}), given their values, that can "
            "be learned from recorded rows. The graph is too large to try all factorisations, so one may exist. Leave "
            "groups out of the policy, or an edge out of the graph if you can justify it."
        )
    elif not selfish:
        words.append(
            f"Not identified: P(R = 1 for {', '.join(found.gaps)}) given their values has no factorisation whose factors can be "
            "learned from recorded rows: values and indicators depend on each other in a cycle. Leave groups out of the "
            "policy, or an edge out of the graph if you can justify it."
        )
    return words


def needing_label(found: Identification, label: str) -> Identification:
    """Return the identification in words for a label with gaps, which no policy can do without."""
    own = (
        f"Not identified: recording of {label!r} depends on its own value (self-censoring), and the records do not show how. "
        f"No cost of errors can do without the label. Leave out the arrow {label} -> R_{label}, and ask afape.sensitivity "
        "how strong it must be to change the result."
    )
    about = f"Not identified: recording of {label!r} depends on its own value"
    return replace(found, reasons=tuple(own if text.startswith(about) else text for text in found.reasons))
