"""Influence values of donors against estimates from which the deviations of one donor are taken out."""

from dataclasses import replace

import numpy as np
import pytest
from by_hand import fitted_by
from numpy.testing import assert_allclose
from small_records import Above, Look, frame, records

import afape
from afape.estimators.eff import conditional_means
from afape.run.options import Options
from afape.run.plan import make_plan
from afape.run.reduce import reduced


def efficient(fitted, plan):
    return reduced(plan.choices[0], [fitted])


@pytest.fixture(scope="module", params=["mar", "graph"])
def found(request):
    assumption = afape.MAR(given=["a"]) if request.param == "mar" else afape.MNAR("a -> R_b; a, b -> R_c")
    name = "eff-semi" if request.param == "mar" else "eff-semi-miss"
    plan = make_plan(records(frame(200)), Above(), assumption, Options(estimators=[name]))
    fitted = fitted_by(plan, Look())
    return plan, fitted, efficient(fitted, plan)


def without(found, donor):
    """Amounts whose means lack what the completions of one donor deviate from them."""
    if found.draws is None:
        return found
    draws, amount = found.draws, found.amount.toarray()
    single = np.zeros((len(draws.row), len(found.row), amount.shape[1]))
    np.add.at(single, (draws.draw, draws.line), draws.amount.toarray())
    for completion in np.flatnonzero(draws.donor == donor):
        mine = np.flatnonzero(found.row == draws.row[completion])
        amount[mine] -= single[completion, mine] - found.amount.toarray()[mine] * draws.share[completion]
    return found._replace(amount=type(found.amount)(amount))


def test_influence_values_of_donors_are_what_their_deviations_change(found):
    plan, fitted, whole = found
    ((key, components),) = fitted.components.items()
    lenders = {int(j) for one in components.amounts if one.draws is not None for j in one.draws.donor}
    n = len(plan.data)
    assert len(lenders - {-1}) > n / 4
    values = np.array([one.booked(whole.columns).values for one in whole._composed])
    errors = np.array([whole._mean_errors(split) for split in whole.splits])
    assert np.abs(errors).max() > 0.01
    for donor in sorted(lenders - {-1})[::40]:
        amounts = tuple(without(one, donor) for one in components.amounts)
        changed = replace(fitted, components={key: replace(components, amounts=amounts)})
        other = efficient(changed, plan)
        moved = values - np.array([one.booked(other.columns).values for one in other._composed])
        assert_allclose(errors[:, donor] / n, moved, rtol=1e-7, atol=1e-12)


def test_deviations_of_all_donors_cancel(found):
    *_, whole = found
    for split in whole.splits:
        errors = whole._mean_errors(split)
        assert_allclose(errors.sum(axis=0), 0, atol=1e-9 * np.abs(errors).sum())


def test_standard_errors_say_that_means_were_learned(monkeypatch):
    data = records(frame(200))
    given = {"missingness": afape.MAR(given=["a"]), "estimators": ["eff-semi"]}
    result = afape.evaluate(data, Look(), Above(), **given)
    assert result.table["error_method"].tolist() == ["stacked"] * 3
    monkeypatch.setattr(conditional_means, "_KEPT", 10)  # as if there were too many completions
    other = afape.evaluate(data, Look(), Above(), **given)
    assert other.table["error_method"].tolist() == ["conditional means as known"] * 3
    assert other["eff-semi"]["total"].value == result["eff-semi"]["total"].value
    assert other["eff-semi"]["total"].std_error != result["eff-semi"]["total"].std_error
