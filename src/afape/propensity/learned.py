"""The user's settings of a learned propensity. Modules `chain` and `autoregressive` learn it; `binding` chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._arguments import check_choice, check_flag, check_number
from .forms import FORMS

__all__ = ["DEFAULT_PROPENSITY", "LearnedPropensity"]

_METHODS = ("auto", "chain", "autoregressive", "independent")


@dataclass(frozen=True)
class LearnedPropensity:
    """Learn P(R >= S | given), cross-fitted.

    Parameters
    ----------
    estimator : scikit-learn classifier with ``predict_proba``, optional
        Default: logistic regression on standardised columns, in the form that ``form`` names. Its score corrects the
        standard errors for the learning.
    method : {"auto", "chain", "autoregressive", "independent"}
        "chain" fits P(R_g | given, earlier groups recorded) along each set. "autoregressive" fits one model of all
        indicators, for policies that reach very many sets. "auto" is "chain", unless that needs more than 64 models per
        fold. "independent" assumes that groups are recorded independently given what is given.
    min_propensity : float
        Smaller probabilities are raised to this value and counted, with a warning.
    stacked : bool
        True if standard errors account for the learning, which needs logistic models. False treats the propensity as
        known, which makes intervals too wide.
    form : {"auto", "linear", "spline", "boosting"}
        Form of the default model. "linear" and "spline" (additive natural cubic splines) are logistic regressions.
        "boosting" uses trees; it has no score, and standard errors treat it as known. "auto" is "linear" for a group, unless
        another form has a clearly higher likelihood on rows that it was not fitted on; with many columns it shrinks
        coefficients. ``result.propensity`` shows the chosen forms and their calibration. Under a graph, groups to adjust
        for have linear models.
    """

    estimator: Any = None
    method: str = "auto"
    min_propensity: float = 1e-3
    stacked: bool = True
    form: str = "auto"

    def __post_init__(self) -> None:
        check_choice("method", self.method, _METHODS)
        check_choice("form", self.form, ("auto", *FORMS))
        check_number("min_propensity", self.min_propensity, "lie in [0, 1)", lambda v: 0 <= v < 1)
        check_flag("stacked", self.stacked)
        if self.method == "autoregressive" and self.form == "boosting":
            raise ValueError(
                "'form' boosting needs method='chain': 'autoregressive' would evaluate the trees at every recording pattern."
            )
        if self.estimator is not None:
            self._check_estimator()

    def _check_estimator(self) -> None:
        if isinstance(self.estimator, type):
            raise TypeError(f"'estimator' must be an instance, but is the class {self.estimator.__name__}.")
        if self.form != "auto":
            raise ValueError("'form' applies to the default model only: leave out 'estimator' or 'form'.")
        lacking = [m for m in ("fit", "predict_proba") if not hasattr(self.estimator, m)]
        if lacking:
            raise TypeError(
                f"'estimator' must be a scikit-learn classifier with fit and predict_proba, but "
                f"{type(self.estimator).__name__} lacks {lacking[0]}."
            )
        if self.method == "autoregressive":
            raise ValueError(
                "'method' autoregressive works with logistic regression only: another model would have to be evaluated at "
                "every recording pattern in every row. Leave 'estimator' out, or use method='chain'."
            )


DEFAULT_PROPENSITY = LearnedPropensity()
