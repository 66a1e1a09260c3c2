"""What a missingness graph lets recorded data say about the propensity that a policy needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .graph import MGraph

__all__ = ["Block", "Identification", "Separation", "Term", "identify"]

Separation = Callable[[frozenset[str], frozenset[str], frozenset[str]], bool]

_LARGEST_BLOCK = 4  # indicators that an odds-ratio form may join


class Term(NamedTuple):
    """Log odds of a set of groups being recorded rather than missing, the other groups of the block recorded."""

    groups: tuple[str, ...]
    regressors: tuple[str, ...]
    rows: tuple[str, ...]  # groups recorded in the rows that it is fitted on


class Block(NamedTuple):
    r"""P(R_B = 1 | x, R_E = 1), one factor of the propensity.

    With a single term it is a regression. Otherwise it is the odds-ratio form (Nabi, Bhattacharya and Shpitser 2020): for
    the indicators K of the block and :math:`w_D(x) = P(R_D = 0, R_{K \setminus D} = 1 | x) / P(R_K = 1 | x)`,

    .. math:: \log w_D(x) = -\sum_{\emptyset \ne D' \subseteq D} \eta_{D'}(x), \qquad
       P(R_B = 1 \mid x) = \frac{\sum_{D \subseteq K \setminus B} w_D(x)}{\sum_{D \subseteq K} w_D(x)}

    If every :math:`R_k` is independent of :math:`X_k` given all else in the block, :math:`\eta_D` is free of
    :math:`x_D`, and thus learned from rows in which all of K but D is recorded.
    """

    groups: tuple[str, ...]  # B
    together: tuple[str, ...]  # K
    earlier: tuple[str, ...]  # E
    terms: tuple[Term, ...]

    def __str__(self) -> str:
        if len(self.terms) == 1:
            term = self.terms[0]
            return _probability(term.groups, term.regressors, term.rows)
        inner = sorted({r for term in self.terms for r in term.regressors})
        form = _probability(self.groups, inner, self.earlier)
        if len(self.together) == 2 and (words := _as_ratio(self)):
            return f"[{form} where {words}]"
        return f"[{form} by odds ratios of {', '.join('R_' + g for g in self.together)}]"


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
    views: dict[str, bool]
    full_law: bool
    reasons: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def gaps(self) -> tuple[str, ...]:
        """Groups to adjust for that are not always recorded."""
        return tuple(g for g in self.adjust if g in self.missing)

    @property
    def formula(self) -> str:
        """P(R >= wanted + adj | x_adj), factor by factor."""
        if not self.identified:
            return "not identified"
        factors = [str(block) for block in self.blocks]
        given = [*self.adjust, *([self.label] if self.label else [])]
        earlier = list(self.gaps)
        for group in self.wanted:
            if group in self.missing and group not in earlier:
                factors.append(_probability([group], given, earlier))
                earlier.append(group)
        return " ".join(factors) or "1"

    def __str__(self) -> str:
        return "\n".join([f"{self.kind}: {self.formula}", *self.reasons])


def _probability(groups: Iterable[str], given: Iterable[str], recorded: Iterable[str]) -> str:
    left = ", ".join(f"R_{g}" for g in groups)
    right = ", ".join([*sorted(given), *(f"R_{g} = 1" for g in recorded)])
    return f"P({left} | {right})" if right else f"P({left})"


def _as_ratio(block: Block) -> str:
    """The form of two indicators in which one, k, takes no value of the other group: P(R_l | ..) / P(R_k | R_l)."""
    single = {term.groups[0]: term for term in block.terms if len(term.groups) == 1}
    for k, leads in ((block.together[1], block.together[0]), (block.together[0], block.together[1])):
        if leads not in single[k].regressors:
            top = _probability([f"{leads}=r"], single[leads].regressors, single[leads].rows)
            low = f"P(R_{k} = 1 | {', '.join([*single[k].regressors, f'R_{leads} = r'])})"
            return f"P(R_{leads}=r | {', '.join(single[leads].regressors)}) proportional to {top} / {low}"
    return ""


def identify(graph: MGraph, wanted: list[str], label: str | None) -> Identification:
    """Decide kind, adjustment set, factorisation and views."""
    missing = graph.missing
    given = set().union(*(graph.causes(g) for g in missing))
    kind = "MNAR" if given & set(missing) else "MAR" if given else "MCAR"
    adjust = _closure(graph, wanted)
    everything = _closure(graph, list(graph.values))
    blocks, whole = _factorise(graph, adjust), _factorise(graph, everything)
    always = not adjust & set(missing)
    offences = _offences(graph)
    ordered = [v for v in graph.values if v in adjust and v != label]
    views = {"semi-offline": always, "hybrid": blocks is not None, "missing-data": whole is not None}
    found = Identification(
        kind=kind,
        given=tuple(v for v in graph.values if v in given),
        wanted=tuple(wanted),
        adjust=tuple(ordered),
        label=label if label in adjust else None,
        blocks=blocks or (),
        identified=blocks is not None,
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


def _factorise(graph: MGraph, adjust: set[str]) -> tuple[Block, ...] | None:
    """Blocks whose product is P(R_adj = 1 | x_adj), or None where none is found."""
    target = [g for g in graph.missing if g in adjust]
    evaluable = adjust | set(graph.values) - set(graph.missing)
    dead: set[frozenset[str]] = set()

    def search(earlier: frozenset[str]) -> tuple[Block, ...] | None:
        left = [g for g in target if g not in earlier]
        if not left:
            return ()
        if earlier in dead:
            return None
        for block in _steps(graph, left, earlier):
            if any(set(term.regressors) - evaluable for term in block.terms):
                continue  # it would need values that rows with all of adj recorded may lack
            rest = search(earlier | set(block.groups))
            if rest is not None:
                return (block, *rest)
        dead.add(earlier)
        return None

    return search(frozenset())


def _steps(graph: MGraph, left: list[str], earlier: frozenset[str]) -> Iterator[Block]:
    """Factors that can be learned next, the simplest first."""
    open_groups = [g for g in graph.missing if g not in earlier]
    for extra in range(_LARGEST_BLOCK):  # regressions, on rows that have as few further groups as will do
        for group in left:
            for rows in combinations([g for g in open_groups if g != group], extra):
                if (term := _regression(graph, group, rows, earlier)) is not None:
                    yield Block((group,), (group,), _sorted(graph, earlier), (term,))
    for size in range(2, _LARGEST_BLOCK + 1):
        for together in combinations(open_groups, size):
            groups = tuple(g for g in together if g in left)
            if groups and (terms := _odds_ratios(graph, together, earlier)) is not None:
                yield Block(groups, together, _sorted(graph, earlier), terms)


def _regression(graph: MGraph, group: str, rows: tuple[str, ...], earlier: frozenset[str]) -> Term | None:
    """The recording of a group on rows that have the earlier groups and ``rows``, if these tell the truth about all.

    It must be independent of the indicators of ``rows`` and of all values that are not recorded there.
    """
    known = frozenset({*earlier, *rows})
    values = _known_values(graph, known)
    unknown = frozenset(graph.values) - values
    indicators = _indicators(earlier)
    free = frozenset({"R_" + group})
    if not graph.separation(free, unknown | _indicators(rows), values | indicators):
        return None
    regressors = _pruned(graph, group, values, indicators, unknown | _indicators(rows))
    return Term((group,), regressors, _sorted(graph, known))


def _odds_ratios(graph: MGraph, together: tuple[str, ...], earlier: frozenset[str]) -> tuple[Term, ...] | None:
    """Terms of the odds-ratio form, if each indicator is independent of its own value given all else in the block."""
    values = _known_values(graph, frozenset({*earlier, *together}))
    beyond = frozenset(graph.values) - values
    single: dict[str, frozenset[str]] = {}
    for group in together:
        others = _indicators({*earlier, *together} - {group})
        unknown = beyond | {group}
        if not graph.separation(frozenset({"R_" + group}), unknown, (values - {group}) | others):
            return None
        single[group] = frozenset(_pruned(graph, group, values - {group}, others, unknown))
    terms = []
    for size in range(1, len(together) + 1):
        for groups in combinations(together, size):
            if any(_unrelated(graph, pair, together, earlier, values) for pair in combinations(groups, 2)):
                continue
            shared = frozenset.intersection(*(single[g] for g in groups))
            rows = frozenset({*earlier, *together}) - set(groups)
            terms.append(Term(groups, _sorted(graph, shared), _sorted(graph, rows)))
    return tuple(terms)


def _unrelated(
    graph: MGraph, pair: tuple[str, str], together: tuple[str, ...], earlier: frozenset[str], values: frozenset[str]
) -> bool:
    others = _indicators({*earlier, *together} - set(pair))
    return graph.separation(frozenset({"R_" + pair[0]}), frozenset({"R_" + pair[1]}), values | others)


def _pruned(
    graph: MGraph, group: str, values: frozenset[str], indicators: frozenset[str], irrelevant: frozenset[str]
) -> tuple[str, ...]:
    """Values that the recording of a group still depends on, the indicators given."""
    kept = values
    for value in _sorted(graph, values):
        if graph.separation(frozenset({"R_" + group}), irrelevant | {value}, (kept - {value}) | indicators):
            kept, irrelevant = kept - {value}, irrelevant | {value}
    return _sorted(graph, kept)


def _known_values(graph: MGraph, recorded: frozenset[str]) -> frozenset[str]:
    return frozenset(v for v in graph.values if v not in graph.missing or v in recorded)


def _indicators(groups: Iterable[str]) -> frozenset[str]:
    return frozenset("R_" + g for g in groups)


def _sorted(graph: MGraph, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=graph.values.index))


def _offences(graph: MGraph) -> list[str]:
    """What keeps the full law from being identified (Nabi, Bhattacharya and Shpitser 2020), in words."""
    out = []
    for group in graph.missing:
        own = "R_" + group
        others = frozenset(graph.values) - {group} | _indicators(set(graph.missing) - {group})
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
    words += [
        f"Fit {block} on rows with {_rows(block.terms[0].rows)}." for block in found.blocks if len(block.terms) == 1
    ]
    for block in found.blocks:
        if len(block.terms) > 1:
            words.append(f"No regression gives the next factor; {block}.")
            words += [f"  odds of {'+'.join(t.groups)}: rows with {_rows(t.rows)}" for t in block.terms]
    views = [name for name, applies in found.views.items() if applies]
    words.append(f"Views that apply: {', '.join(views) or 'none'}.")
    if offences:
        words.append(
            f"The law of all values and indicators is not identified ({'; '.join(offences)}); estimates need less."
        )
    else:
        words.append("The law of all values and indicators is identified.")
    return words


def _rows(groups: tuple[str, ...]) -> str:
    return f"{', '.join(groups)} recorded" if groups else "anything recorded (all rows)"


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
    if not selfish:
        words.append(
            f"Not identified: P(R = 1 for {', '.join(found.gaps)}) given their values has no factorisation whose factors can be "
            "learned from recorded rows: values and indicators depend on each other in a circle. Leave groups out of the "
            "policy, or an edge out of the graph if it can be defended."
        )
    return words
