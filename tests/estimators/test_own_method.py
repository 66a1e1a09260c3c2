"""A new method is one file and one line: a made-up one goes through everything."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from small_records import Above, Look, frame, records

import afape
from afape.estimators import METHODS, Method
from afape.estimators.ipw import InverseProbability
from afape.estimators.weighted import weighted_sums


class HalfNormalised:
    """Prices as plain means, misclassification divided by the mean weight."""

    n_quantities = 4

    def __init__(self):
        self.plain, self.normalised = InverseProbability(normalize=False), InverseProbability(normalize=True)

    def quantities(self, table, flows):
        return self.plain.quantities(table, flows)

    def linearise(self, mean):
        plain, normalised = self.plain.linearise(mean), self.normalised.linearise(mean)
        out = []
        for a, b in zip(plain, normalised, strict=True):
            parts = {"acquisition": a["acquisition"], "misclassification": b["misclassification"]}
            out.append({**parts, "total": parts["acquisition"] + parts["misclassification"]})
        return out[0], out[1]


def half_normalised(evidence):
    return weighted_sums(evidence, HalfNormalised())


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
        assert result["half"]["acquisition"].value == plain["ipw-semi"]["acquisition"].value
        assert result["half"]["misclassification"].value == normalised["ipw-semi"]["misclassification"].value
        assert_allclose(result["half"]["acquisition"].influence, plain["ipw-semi"]["acquisition"].influence)
        assert "half" in set(result.support.estimators["estimator"])


def test_it_is_among_the_defaults_and_has_a_twin(half):
    known = afape.KnownPropensity(lambda values, required: np.full(len(values), 0.5))
    with pytest.warns(afape.NormalizerWarning):
        result = afape.evaluate(
            records(frame()), Look(), Above(), missingness=afape.MAR(["a"]), propensity=[None, known], n_imputations=2
        )
    assert {"half", "half-gt"} <= set(result.outcomes)


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
    with pytest.warns(afape.SupportWarning):
        result = afape.evaluate(
            records(table), Look(), Above(), missingness=afape.MAR(["a"]), estimators=NAMES, bootstrap=3
        )
    found, twin = result["half"]["misclassification"], result["ipw-semi"]["misclassification"]
    assert isinstance(found, afape.Bounds)
    assert found.bound_lower == twin.bound_lower < found.bound_upper == twin.bound_upper
    assert_allclose(found.interval(kind="bootstrap-normal"), twin.interval(kind="bootstrap-normal"))
