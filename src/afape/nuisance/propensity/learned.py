"""How a propensity is to be learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from ...arguments import check_flag, check_number
from ...arrays import Bools, Floats, Ints
from ...support import SupportMap
from .answer import Answer
from .chain import StackedScores
from .factor import FORMS

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

    def scores(self, row_weight: Floats) -> StackedScores | None:
        """What standard errors have to know of the learning; None where there is nothing, or no score."""
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
        Default: logistic regression on standardised columns, whose score also corrects the standard errors for having been
        learned, or what ``form`` says.
    method : {"auto", "chain", "autoregressive", "independent"}
        "chain" fits P(R_g | given, earlier groups recorded) along each set; "autoregressive" fits one model of
        all indicators, for policies that reach very many sets; "auto" takes the first unless it would need
        more than 64 models per fold; "independent" takes groups as independent, for those who know that they are.
    min_propensity : float
        Smaller probabilities are raised to this, counted, and warned of.
    stacked : bool
        Whether standard errors account for the learning, where the model has a score, as logistic models of either method
        have. False treats the propensity as if
        it had been known, which makes intervals too wide.
    form : {"auto", "linear", "spline", "boosting"}
        Form of the default model. "linear" and "spline" (natural cubic splines that add up) are logistic regressions;
        "boosting" has trees, no score, and standard errors as if it had been known. "auto" keeps "linear" for a group unless
        another form is clearly more likely on rows that it has not seen, and shrinks where columns are many. What was
        chosen, and how well it is calibrated, stands in ``result.propensity``. Under a graph, groups to adjust for have
        linear models.
    """

    estimator: Any = None
    method: str = "auto"
    min_propensity: float = 1e-3
    stacked: bool = True
    form: str = "auto"

    def __post_init__(self) -> None:
        if self.method not in _METHODS:
            raise ValueError(f"'method' must be one of {list(_METHODS)}, but is {self.method!r}.")
        if self.form not in ("auto", *FORMS):
            raise ValueError(f"'form' must be one of {['auto', *FORMS]}, but is {self.form!r}.")
        check_number("min_propensity", self.min_propensity, "lie in [0, 1)", lambda v: 0 <= v < 1)
        check_flag("stacked", self.stacked)
        if self.method == "autoregressive" and self.form == "boosting":
            raise ValueError(
                "'form' boosting goes with method='chain' only: trees would have to be asked about every pattern."
            )
        if self.estimator is not None:
            if isinstance(self.estimator, type):
                raise TypeError(f"'estimator' must be an instance, but is the class {self.estimator.__name__}.")
            if self.form != "auto":
                raise ValueError("'form' is that of the default model: leave 'estimator' out, or leave 'form' out.")
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
