"""How a propensity is to be learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from ...arrays import Bools, Floats, Ints
from ...support import SupportMap
from .chain import Answer

__all__ = ["DEFAULT_PROPENSITY", "BoundPropensity", "LearnedPropensity"]


_METHODS = ("auto", "chain", "autoregressive", "independent")


class BoundPropensity(Protocol):
    """P(R >= S | given) on given records."""

    learned: bool
    min_propensity: float

    def probability(self, rows: Ints, sets: Bools, index: Ints) -> Floats:
        """P(R >= sets[index] | given) in these rows, before any clipping."""
        ...

    def answer(self, rows: Ints, sets: Bools, lines: list[Ints]) -> Answer:
        """The same where ``lines`` says which rows go with each set, with what the probabilities are made of."""
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
        more than 64 models per fold; "independent" takes groups as independent, for those who know that they are.
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


DEFAULT_PROPENSITY = LearnedPropensity()
