"""Cost of a policy if recording also depends on variables that the assumption leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..estimators.estimate import Estimate
from ..estimators.evidence import Fitted
from ..estimators.ipw import inverse_probability
from ..missingness.assumptions import MAR, MCAR, MNAR
from ..propensity.binding import PropensitySpec
from ..propensity.learned import DEFAULT_PROPENSITY
from ..propensity.weights import View
from .fit import bind_propensities
from .plan import choices_under
from .run import PolicyRun

__all__ = ["shift_under", "widened"]


def widened(missingness: MCAR | MAR | MNAR, more: Sequence[str], label: bool) -> MCAR | MAR | MNAR | None:
    """Return the assumption in which recording also depends on these always recorded groups, and perhaps on the label.

    None if the assumption is a graph, which does not tell where to add them.
    """
    if isinstance(missingness, MNAR):
        if missingness.adjust is None:
            return None
        new = [g for g in more if g not in missingness.adjust]
        return replace(missingness, adjust=(*new, *missingness.adjust), label=missingness.label or label)
    given = list(missingness.given) if isinstance(missingness, MAR) else []
    new = [g for g in more if g not in given]
    return MAR([*given, *new], label=label or (isinstance(missingness, MAR) and missingness.label))


def shift_under(run: PolicyRun, missingness: MCAR | MAR | MNAR) -> Estimate | None:
    """Estimate how much the total cost changes under another assumption, by IPW in the rows that have what a run wants.

    Both costs come from the same walk, with default models of the propensity. None if one of the two has no estimate.
    """
    before, after = _weighted(run, run.plan.missingness), _weighted(run, missingness)
    return None if before is None or after is None else after - before


def _weighted(run: PolicyRun, missingness: MCAR | MAR | MNAR) -> Estimate | None:
    specs: dict[str, PropensitySpec] = {"learned": DEFAULT_PROPENSITY}
    choices = [c for c in choices_under(missingness, specs) if not c.method.complete_rows]
    plan = replace(
        run.plan, missingness=missingness, propensities=specs, choices=choices, asked=False, bootstrap=None, levels=None
    )
    propensities = bind_propensities(plan, [run.walked])
    given, key = propensities.conditioning, ("sets", "learned")
    view = View(propensities.of_sets["learned"], plan.data.recorded, given.gaps)
    fitted = Fitted(plan.data, plan.recipe, given, run.walked.tables, {}, {key: view}, ())
    answer = inverse_probability(fitted.evidence(key)).answer()
    return None if answer.reason else answer.estimates["total"]
