"""Factors of a propensity: regressors, rows and weights. FactorBlock has group names, OddsBlock their positions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

__all__ = [
    "FactorBlock",
    "FactorTerm",
    "FactorWeight",
    "OddsBlock",
    "OddsTerm",
    "OddsWeight",
    "in_order",
    "probability",
]


class FactorTerm(NamedTuple):
    """Log odds that all groups of a set are recorded rather than all missing: a binary regression."""

    groups: tuple[str, ...]
    regressors: tuple[str, ...]
    rows: tuple[str, ...]  # groups recorded in the rows of the fit
    indicators: tuple[str, ...] = ()  # groups whose indicators are regressors
    absent: tuple[str, ...] = ()  # groups missing in the rows of the fit
    having: tuple[str, ...] = ()  # groups also recorded in rows that have ``groups``
    lacking: tuple[str, ...] = ()  # groups also recorded in rows that lack ``groups``


class FactorWeight(NamedTuple):
    """Weight of the rows of a fit: the probability of a block, or its inverse."""

    block: FactorBlock
    inverse: bool
    everyone: bool  # False: only rows that have the groups of the term


class FactorBlock(NamedTuple):
    r"""P(R_B = 1 | x, R_E = 1), one factor of the propensity.

    With a single term it is a regression. Otherwise it is the odds-ratio form (Nabi, Bhattacharya and Shpitser 2020): for
    the indicators K of the block and :math:`w_D(x) = P(R_D = 0, R_{K \setminus D} = 1 | x) / P(R_K = 1 | x)`,

    .. math:: \log w_D(x) = -\sum_{\emptyset \ne D' \subseteq D} \eta_{D'}(x), \qquad
       P(R_B = 1 \mid x) = \frac{\sum_{D \subseteq K \setminus B} w_D(x)}{\sum_{D \subseteq K} w_D(x)}

    If every :math:`R_k` is independent of :math:`X_k` given all else in the block, :math:`\eta_D` does not depend on
    :math:`x_D`, so it can be learned from rows in which all of K except D is recorded.

    Rows that have the groups of a block, weighted by its inverse, represent all rows. A block may also be conditional on
    indicators of groups outside the adjustment set. The product is then :math:`P(R_{adj} = 1 \mid x, R_Z)`, and its inverse
    still has mean 1 given x among all rows, where rows without adj count as 0.
    """

    groups: tuple[str, ...]  # B
    together: tuple[str, ...]  # K
    earlier: tuple[str, ...]  # E
    terms: tuple[FactorTerm, ...]
    weights: tuple[FactorWeight, ...] = ()

    @property
    def compared(self) -> bool:
        """True if rows without the group are compared with rows that have it."""
        return bool(self.terms[0].having)

    def __str__(self) -> str:
        return self.text()

    def text(self, value: str = "") -> str:
        """Return the block in symbols; ``value`` follows the indicators of a regression, such as " = 1"."""
        if len(self.terms) == 1:
            term = self.terms[0]
            peeled = {g for w in self.weights if w.everyone for g in w.block.groups}
            inside = [g for g in term.rows if g not in peeled]
            left = [g + value for g in term.groups]
            return probability(left, term.regressors, inside, term.indicators, term.absent)
        inner = sorted({r for term in self.terms for r in term.regressors})
        beside = sorted({g for term in self.terms for g in term.indicators})
        form = probability(self.groups, inner, self.earlier, beside)
        if len(self.together) == 2 and not beside and (words := self._as_ratio()):
            return f"[{form} where {words}]"
        return f"[{form} by odds ratios of {', '.join('R_' + g for g in self.together)}]"

    def _as_ratio(self) -> str:
        """Describe two indicators if one, k, does not depend on the other group's value: P(R_l | ..) / P(R_k | R_l)."""
        single = {term.groups[0]: term for term in self.terms if len(term.groups) == 1}
        for k, leads in ((self.together[1], self.together[0]), (self.together[0], self.together[1])):
            if leads not in single[k].regressors:
                top = probability([f"{leads}=r"], single[leads].regressors, single[leads].rows)
                low = f"P(R_{k} = 1 | {', '.join([*single[k].regressors, f'R_{leads} = r'])})"
                return f"P(R_{leads}=r | {', '.join(single[leads].regressors)}) proportional to {top} / {low}"
        return ""

    def words(self) -> list[str]:
        """Describe in words how the block is learned."""
        peeled = [w.block.text(" = 1") for w in self.weights if w.everyone]
        weighted = f", weighted by 1 / {_product(peeled)}" if peeled else ""
        term = self.terms[0]
        if len(self.terms) > 1:
            words = [f"No regression gives the next factor; {self}{weighted}."]
            return words + [f"  odds of {'+'.join(t.groups)}: rows with {_rows(t.rows)}" for t in self.terms]
        if self.compared:
            return [self._comparison() + weighted + "."]
        missing = f", {', '.join(term.absent)} missing" if term.absent else ""
        return [f"Fit {self} on rows with {_rows(term.rows)}{missing}{weighted}."]

    def _comparison(self) -> str:
        term = self.terms[0]
        once = [w for w in self.weights if not w.everyone]
        above, below = ([w.block.text(" = 1") for w in once if w.inverse == inverse] for inverse in (False, True))
        weight = f"{_product(above)} / {_product(below)}" if below else _product(above)
        seen = ", ".join(dict.fromkeys([*term.rows, *term.lacking]))
        return (
            f"No regression gives the next factor; {self} compares rows with {seen} recorded, {term.groups[0]} missing, "
            f"with rows with {', '.join(term.having)} recorded, weighted by {weight}"
        )


class OddsTerm(NamedTuple):
    """`FactorTerm` with positions of groups; ``label`` is True if the label is a regressor."""

    groups: tuple[int, ...]
    regressors: tuple[int, ...]
    label: bool
    rows: tuple[int, ...]
    indicators: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()
    having: tuple[int, ...] = ()
    lacking: tuple[int, ...] = ()


class OddsWeight(NamedTuple):
    """`FactorWeight` with positions of groups."""

    block: OddsBlock
    inverse: bool
    everyone: bool


class OddsBlock(NamedTuple):
    """`FactorBlock` with positions of groups: a regression (one term), or odds ratios of the indicators ``together``."""

    groups: tuple[int, ...]
    together: tuple[int, ...]
    terms: tuple[OddsTerm, ...]
    weights: tuple[OddsWeight, ...] = ()


def _product(factors: list[str]) -> str:
    return f"[{' '.join(factors)}]" if len(factors) > 1 else "".join(factors) or "1"


def in_order(blocks: Iterable[FactorBlock]) -> list[FactorBlock]:
    """Return all blocks to learn; each follows the blocks that its weights need."""
    found: dict[FactorBlock, None] = {}
    for block in blocks:
        found |= dict.fromkeys(in_order(weight.block for weight in block.weights))
        found[block] = None
    return list(found)


def probability(
    groups: Iterable[str],
    given: Iterable[str],
    recorded: Iterable[str],
    indicators: Iterable[str] = (),
    absent: Iterable[str] = (),
) -> str:
    """Return the text P(R_groups | given values, indicators, R_recorded = 1, R_absent = 0)."""
    left = ", ".join(f"R_{g}" for g in groups)
    beside = [*(f"R_{g}" for g in indicators), *(f"R_{g} = 1" for g in recorded), *(f"R_{g} = 0" for g in absent)]
    right = ", ".join([*sorted(given), *beside])
    return f"P({left} | {right})" if right else f"P({left})"


def _rows(groups: Iterable[str]) -> str:
    return f"{names} recorded" if (names := ", ".join(groups)) else "anything recorded (all rows)"
