"""The answer of an estimator: amounts in columns and figures about its weights, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.linalg import block_diag

from .._arrays import Floats
from ..walk.columns import PartColumns
from ..walk.tariff import Tariff
from .amounts import Amounts, ReplicatedAmounts, Replicates, Sample
from .estimate import Bounds, Estimate, certain, limits_of_sum

__all__ = ["Answer", "Costs", "PartAmounts", "Reduction", "sample_of"]


def _estimate(
    amounts: Amounts, unsupported: float | None, least: Floats, largest: Floats, limits: tuple[float, float]
) -> Estimate:
    """Estimate a linear combination of the columns; `Bounds` if ``unsupported`` is not None.

    Columns after those of both bounds are those of the extrapolated estimate: the first columns of a bound.
    """
    if unsupported is None:
        return replace(amounts.combine(least), limits=limits)
    width = len(amounts.values)
    blocks = (0, least), (len(least), largest), (2 * len(least), least[: width - 2 * len(least)])
    low, high, *further = (
        replace(amounts.combine(_padded(start, block, width)), limits=limits) for start, block in blocks if len(block)
    )
    return Bounds.between(low, high, unsupported, further[0] if further else None)


def _padded(start: int, coefficients: Floats, width: int) -> Floats:
    """Coefficients of a block of columns among all columns, (width,)."""
    out = np.zeros(width)
    out[start : start + len(coefficients)] = coefficients
    return out


@dataclass(frozen=True, eq=False)
class Costs:
    """Estimated acquisition cost, misclassification cost and outcomes of the user, by one estimator.

    Attributes
    ----------
    amounts : Amounts
        Values of the columns of `CostColumns`. For bounds: columns of the least cost, then columns of the largest cost, then
        columns of the extrapolated cost, if there is one.
    tariff : Tariff
        Names and limits of the targets.
    unsupported : float or None
        Share of the policy's runs that want unsupported sets; None if there are no bounds.
    """

    amounts: Amounts
    tariff: Tariff
    unsupported: float | None = None

    def estimate(self, target: str) -> Estimate:
        """Return the estimate of a target, or `Bounds` if runs want unsupported sets."""
        limits = self._limits(target)
        if self.unsupported is not None and not np.isfinite(limits).all():  # an outcome without limits
            low, high = (Estimate(end, None, limits=limits) for end in limits)
            return Bounds.between(low, high, self.unsupported)
        coefficients = self.tariff.coefficients(target)
        return _estimate(self.amounts, self.unsupported, coefficients, coefficients, limits)

    def _limits(self, target: str) -> tuple[float, float]:
        """Return the least and the largest possible cost; acquisitions of a fixed policy are certain."""
        limits = self.tariff.limits
        if self.tariff.fixed and self.unsupported is None and target in ("acquisition", "total"):
            paid = certain(self.amounts.combine(self.tariff.coefficients("acquisition")))
            if paid.limits[0] == paid.limits[1]:
                return (
                    paid.limits
                    if target == "acquisition"
                    else limits_of_sum(paid.limits, limits["misclassification"], 1)
                )
        return limits[target]


@dataclass(frozen=True, eq=False)
class PartAmounts:
    """Estimated parts of the costs, by one estimator.

    Attributes
    ----------
    amounts : Amounts
        Values of ``columns``. For bounds: columns of the least cost, then columns of the largest cost, then those of the
        extrapolated cost, if there is one.
    columns : PartColumns
        Meaning of the columns.
    unsupported : float or None
        Share of the policy's runs that want unsupported sets; None if there are no bounds.
    """

    amounts: Amounts
    columns: PartColumns
    unsupported: float | None = None

    def estimate(self, least: Floats, largest: Floats, limits: tuple[float, float]) -> Estimate:
        """Estimate a linear combination of the columns, with these limits.

        ``least`` and ``largest`` are the coefficients of the lower and the upper bound; without bounds, ``least`` is used.
        """
        return _estimate(self.amounts, self.unsupported, least, largest, limits)

    def priced(self, tariff: Tariff) -> Costs:
        """Return the costs of these parts under a tariff."""
        matrix = self.columns.priced(tariff)
        if self.unsupported is not None:
            blocks = [matrix, self.columns.priced(tariff, largest=True)]
            if len(self.amounts.values) > 2 * self.columns.width:
                blocks.append(replace(self.columns, open=False).priced(tariff))
            matrix = block_diag(*blocks)
        return Costs(self.amounts.mapped(matrix), tariff, self.unsupported)


class Reduction(Protocol):
    """A method applied to the evidence."""

    def answer(self) -> Answer:
        """Return costs and figures, or the reason why there are none."""
        ...

    def parts(self) -> PartAmounts | None:
        """Return the parts of the costs; None if they are not known."""
        ...


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer of an estimator.

    Attributes
    ----------
    costs : Costs or None
        Estimated costs; None if there is no answer.
    reason : str
        Why there is no answer; empty if there is one.
    ess : float
        Effective sample size.
    normalizer, normalizer_error : float
        Mean final weight and its standard error, including the error of learned propensities. The mean is about 1 if
        positivity holds and the propensity is right.
    normalizers : tuple of float
        Mean weight before each decision, and last the mean final weight.
    clipped : int
        Number of propensities that were raised to ``min_propensity``.
    largest_weight : float
        Largest weight of a state.
    error_method : str
        How the standard error was computed: "influence" (nothing was learned), "stacked" (it includes the errors of all that
        was learned), "... as known" (it leaves out the errors of these), "rubin", "refitting bootstrap", "frozen bootstrap",
        or "none without bootstrap".
    caveat : str
        Note on what the estimate depends on, apart from the assumption.
    replicates, lost : int
        Number of bootstrap replicates, and of those without an estimate (a set or class that it needs was not drawn).
    unsupported : float
        Share of the policy's runs that want unsupported sets.
    reduction : Reduction or None
        Computes the parts when they are first needed, because influence values of all parts need much memory.
    """

    costs: Costs | None = None
    reason: str = ""
    ess: float = float("nan")
    normalizer: float = float("nan")
    normalizer_error: float = 0.0
    normalizers: tuple[float, ...] = ()
    clipped: int = 0
    largest_weight: float = float("nan")
    error_method: str = "influence"
    caveat: str = ""
    replicates: int = 0
    lost: int = 0
    unsupported: float = 0.0
    reduction: Reduction | None = None
    part_replicates: Replicates | None = None  # replicates of the parts, if they give the standard errors
    computed: PartAmounts | None = None  # the parts, if they were computed before

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Estimate of every target; empty if there is no answer."""
        return {} if self.costs is None else {t: self.costs.estimate(t) for t in self.costs.tariff.targets}

    @cached_property
    def parts(self) -> PartAmounts | None:
        """Parts of the costs; None if there is no answer, or if the parts are not known."""
        if self.computed is not None:
            return self.computed
        found = None if self.reduction is None or self.costs is None else self.reduction.parts()
        if found is None or self.part_replicates is None:
            return found
        sample = sample_of(self.estimates["total"])
        return replace(found, amounts=ReplicatedAmounts(found.amounts.values, sample, self.part_replicates))

    def priced(self, tariff: Tariff) -> Answer:
        """Return the answer under another tariff."""
        if self.reason:
            return self
        if self.parts is None:
            return replace(self, costs=None, reason="other prices need the parts of the costs, which are not known")
        return replace(self, costs=self.parts.priced(tariff), computed=self.parts)

    def __getstate__(self) -> dict[str, Any]:
        # A copy in a file or in another process has the parts, but not the walk that they are computed from.
        return {**self.__dict__, "computed": self.parts, "estimates": self.estimates, "reduction": None}


def sample_of(estimate: Estimate) -> Sample:
    """Return the rows of an estimate."""
    estimate = estimate.least if isinstance(estimate, Bounds) else estimate
    return Sample(estimate.cluster, estimate.rows, estimate.confidence, estimate.concentration)
