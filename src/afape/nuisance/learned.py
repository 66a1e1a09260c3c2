"""How a propensity is to be learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from ..arrays import Bools, Floats, Ints
from ..data import Retrospective
from ..support import SupportMap
from .autoregressive import MAX_GROUPS, AutoregressivePropensity
from .chain import ChainPropensity, canonical_order
from .conditioning import Conditioning

__all__ = ["BoundPropensity", "LearnedPropensity"]


_METHODS = ("auto", "chain", "autoregressive", "independent")
_MANY_FACTORS = 64  # more models a fold than this, and one model of all indicators is cheaper


class BoundPropensity(Protocol):
    """P(R >= S | given) on given records."""

    learned: bool
    min_propensity: float

    def probability(self, rows: Ints, sets: Bools, index: Ints) -> Floats:
        """P(R >= sets[index] | given) in these rows, before any clipping."""
        ...

    def refit(self, row_weight: Floats) -> BoundPropensity:
        """The same, learned with these row weights."""
        ...

    def excluding(self, unsupported: SupportMap) -> BoundPropensity:
        """The same, learned from rows in which sets are supported."""
        ...


@dataclass(frozen=True)
class LearnedPropensity:
    """Learn P(R >= S | given), cross-fitted.

    Parameters
    ----------
    estimator : scikit-learn classifier with ``predict_proba``, optional
        Default: unpenalised logistic regression on standardised columns, whose score also corrects the
        standard errors for having been learned.
    method : {"auto", "chain", "autoregressive", "independent"}
        "chain" fits P(R_g | given, earlier groups recorded) along each set; "autoregressive" fits one model of
        all indicators, for policies that reach very many sets; "auto" takes the first unless it would need
        more than 64 models a fold; "independent" takes groups as independent, for those who know that they are.
    min_propensity : float
        Smaller probabilities are raised to this, counted, and warned of.
    stacked : bool
        Whether standard errors account for the learning, where the model has a score. False treats the propensity as if
        it had been known, which makes intervals too wide.
    """

    estimator: Any = None
    method: str = "auto"
    min_propensity: float = 1e-3
    stacked: bool = True

    def __post_init__(self) -> None:
        if self.method not in _METHODS:
            raise ValueError(f"'method' must be one of {list(_METHODS)}, but is {self.method!r}.")
        if not 0 <= self.min_propensity < 1:
            raise ValueError(f"'min_propensity' must lie in [0, 1), but is {self.min_propensity!r}.")
        if self.estimator is not None:
            lacking = [m for m in ("fit", "predict_proba") if not hasattr(self.estimator, m)]
            if lacking:
                raise TypeError(
                    f"'estimator' must be a scikit-learn classifier with fit and predict_proba, but "
                    f"{type(self.estimator).__name__} lacks {lacking[0]}."
                )
            if self.method == "autoregressive":
                raise ValueError(
                    "'method' autoregressive comes with logistic regression only: another model would have to be asked "
                    "about every pattern in every row. Leave 'estimator' out, or use method='chain'."
                )

    def bind(self, data: Retrospective, given: Conditioning, fold: Ints, asked: Bools) -> BoundPropensity:
        """Learn from these records; ``asked`` are sets that the policy reaches, to choose the method by."""
        method = self.method
        if method == "auto":
            method = "autoregressive" if self._too_many(data, asked) and not given.gaps.any() else "chain"
        if method == "autoregressive" and given.gaps.any():
            raise ValueError(
                "'method' autoregressive needs everything that recording depends on to be always recorded. Under this graph "
                "use method='chain'."
            )
        if method == "autoregressive":
            return AutoregressivePropensity(data, given, fold, self.min_propensity)
        independent = method == "independent"
        chain = ChainPropensity(data, given, fold, self.estimator, independent, self.min_propensity)
        chain.stacked = self.stacked and self.estimator is None
        return chain

    def _too_many(self, data: Retrospective, asked: Bools) -> bool:
        order = canonical_order(data)
        if self.estimator is not None or len(order) > MAX_GROUPS:
            return False
        prefixes = {
            tuple(row[: j + 1])
            for required in asked
            for row in [[g for g in order if required[g]]]
            for j in range(len(row))
        }
        return len(prefixes) > _MANY_FACTORS
