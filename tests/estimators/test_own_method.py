"""A new method is one file and one line: a made-up one goes through everything."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from small_records import Above, Look, frame, records

import afape
from afape.estimators.booking import FINAL, PLAIN, Booking, Lines
from afape.estimators.catalogue import METHODS, Method
from afape.estimators.weighted import Weighted


class HalfNormalised:
    """Prices as plain means, misclassification divided by the mean final weight."""

    def lines(self, table, flows, columns):
        states = np.arange(len(table.row))
        plain, final = np.full(len(states), PLAIN), np.full(len(states), FINAL)
        yield Lines(columns.decisions(table), (Booking(flows.decided, states, plain),))
        yield Lines(columns.stops(table, states), (Booking(flows.own, states, final),))
        for left, stop, at, flow in (*flows.lost(columns), *flows.whole(columns)):
            yield Lines(left, (Booking(flow, at, plain[at]),))
            yield Lines(stop, (Booking(flow, at, final[at]),))


def half_normalised(evidence):
    return Weighted(evidence, HalfNormalised())


@pytest.fixture
def half(monkeypatch):
    method = Method("half", "semi-offline", "recorded", frozenset({"propensity"}), False, 0, half_normalised)
    monkeypatch.setitem(METHODS, method.name, method)
    return method


NAMES = ["ipw-semi", "half"]


def test_evaluate(half):
    data = records(frame())
    options = {"missingness": afape.MAR(["a"]), "estimators": NAMES}
    plain, normalised = (afape.evaluate(data, Look(), Above(), normalize=flag, **options) for flag in (False, True))
    for result in (plain, normalised):
        for target, twin in (("acquisition", plain), ("misclassification", normalised)):
            assert_allclose(result["half"][target].value, twin["ipw-semi"][target].value, rtol=1e-12)
        assert_allclose(result["half"]["acquisition"].influence, plain["ipw-semi"]["acquisition"].influence)
        assert "half" in set(result.support.estimators["estimator"])


def test_parts_metrics_and_prices(half):
    data = records(frame())
    options = {"missingness": afape.MAR(["a"]), "estimators": NAMES}
    plain, result = (afape.evaluate(data, Look(), Above(), normalize=flag, **options) for flag in (False, True))
    parts = result.parts("half")
    for group, rate in parts.rates.items():
        assert_allclose(rate.value, plain.parts("ipw-semi").rates[group].value, rtol=1e-12)
    for pair, share in parts.confusion.items():
        assert_allclose(share.influence, result.parts("ipw-semi").confusion[pair].influence, atol=1e-12)
    assert_allclose(result.metrics("half")["estimate"], result.metrics("ipw-semi")["estimate"])
    dearer = {name: 2 * price for name, price in zip(parts.tariff.groups, parts.tariff.prices, strict=True)}
    again = result.reprice(dearer)["half"]["acquisition"]
    assert_allclose(again.value, 2 * result["half"]["acquisition"].value)
    assert_allclose(again.std_error, 2 * result["half"]["acquisition"].std_error)


def test_it_is_among_the_defaults_and_has_a_twin(half):
    known = afape.KnownPropensity(lambda values, required: np.full(len(values), 0.5))
    with pytest.warns(afape.warnings.NormalizerWarning):
        result = afape.evaluate(
            records(frame()), Look(), Above(), missingness=afape.MAR(["a"]), propensity=[None, known], n_imputations=2
        )
    assert {"half", "half-gt"} <= set(result.answers)


def test_compare(half):
    policies = {"look": Look(), "none": afape.AcquireNone()}
    found = afape.compare(records(frame()), policies, Above(), missingness=afape.MAR(["a"]), estimators=NAMES)
    assert found.best_estimator == "half"
    assert len(found.differences()) == 1
    assert set(found.ranking()["policy"]) == set(policies)


def test_bootstrap(half):
    options = {"missingness": afape.MAR(["a"]), "estimators": NAMES, "bootstrap": 20}
    result = afape.evaluate(records(frame()), Look(), Above(), **options)
    error = result["half"]["total"]
    assert 0.5 < error.bootstrap_std_error / error.std_error < 2
    twin = result["ipw-semi"]["misclassification"].replicates
    assert_allclose(result["half"]["misclassification"].replicates, twin, rtol=1e-12)


def test_bounds(half):
    table = frame(1500)
    table.loc[table["a"] < -0.7, "b"] = np.nan  # never recorded there
    with pytest.warns(afape.warnings.SupportWarning):
        result = afape.evaluate(
            records(table), Look(), Above(), missingness=afape.MAR(["a"]), estimators=NAMES, bootstrap=3
        )
    found, twin = result["half"]["misclassification"], result["ipw-semi"]["misclassification"]
    assert isinstance(found, afape.Bounds)
    assert found.bound_lower == twin.bound_lower < found.bound_upper == twin.bound_upper
    assert_allclose(found.interval(kind="bootstrap-normal"), twin.interval(kind="bootstrap-normal"))
