"""Nuisances brought along: arrays and objects in place of what afape would learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from worlds import WORLDS, ExactValues

import afape
from afape.benchmark.synthetic import synthetic_mar


@pytest.fixture(scope="module")
def parts():
    experiment = synthetic_mar(3000)
    return (*experiment.prepare(), experiment)


def run(parts, **options):
    classifier, data, _, experiment = parts
    return afape.evaluate(data, afape.RandomSubset(0.5), classifier, missingness=experiment.missingness, **options)


def arrays_of(parts, **changes):
    p = parts[3].mechanism.probabilities(parts[1])
    return {"x1": p[:, 1], ("x2",): p[:, 2], ("x2", "x1"): p[:, 1] * p[:, 2], **changes}


def test_propensity_arrays_are_the_function(parts):
    a = run(parts, propensity=afape.KnownPropensity.from_arrays(arrays_of(parts)), estimators=["ipw-semi"])
    b = run(parts, propensity=parts[3].mechanism.propensity(parts[1]), estimators=["ipw-semi"])
    assert_allclose(a["ipw-semi"]["total"].influence, b["ipw-semi"]["total"].influence)


def test_propensity_arrays_are_checked(parts):
    short = afape.KnownPropensity.from_arrays(arrays_of(parts, x1=np.ones(3)))
    with pytest.raises(ValueError, match=r"for \('x1',\) one number per row.*shape is \(3,\)"):
        run(parts, propensity=short)
    with pytest.raises(ValueError, match=r"must cover every set.*lack \['x1', 'x2'\]"):
        run(
            parts,
            propensity=afape.KnownPropensity.from_arrays(
                {k: v for k, v in arrays_of(parts).items() if k != ("x2", "x1")}
            ),
        )
    with pytest.raises(ValueError, match="'arrays' must name groups, but 'x9' is not a group"):
        run(parts, propensity=afape.KnownPropensity.from_arrays({"x9": np.ones(3)}))
    with pytest.raises(TypeError, match="'arrays' must be a mapping"):
        afape.KnownPropensity.from_arrays([1.0])


@pytest.mark.filterwarnings("ignore::afape.warnings.NormalizerWarning")
def test_value_arrays_are_the_function():
    world = WORLDS[1]
    data, _, _ = world.everything()
    exact = ExactValues(world, True)
    options = {
        "missingness": afape.MAR(given=["g0"]),
        "propensity": world.known_propensity(),
        "estimators": ["dm-semi", "drl-semi"],
    }
    b = afape.evaluate(data, world.policy, world.classifier, values=afape.KnownValues(exact.function), **options)
    arrays = {}
    for mask in range(8):
        names = tuple(f"g{g + 1}" for g in range(3) if mask >> g & 1)
        acquired = np.array([[True, *(bool(mask >> g & 1) for g in range(3))]] * len(data))
        has = (data.recorded | ~acquired).all(axis=1)
        known = acquired[:, data.column_group] | (data.column_group == 0)
        seen = np.where(known, data.values, np.nan)
        q = np.full((len(data), 5, 2), np.nan)
        q[has] = exact.function(seen[has], acquired[has], data.labels[has])
        arrays[names] = q
    a = afape.evaluate(data, world.policy, world.classifier, values=afape.KnownValues.from_arrays(arrays), **options)
    for name in ("dm-semi", "drl-semi"):
        assert_allclose(a[name]["total"].value, b[name]["total"].value, rtol=1e-12)
    with pytest.raises(ValueError, match="'arrays' must have shape"):
        afape.evaluate(
            data, world.policy, world.classifier, values=afape.KnownValues.from_arrays({(): np.ones(3)}), **options
        )
    with pytest.raises(ValueError, match="must cover every set"):
        afape.evaluate(
            data, world.policy, world.classifier, values=afape.KnownValues.from_arrays({(): arrays[()]}), **options
        )


class Sign:
    def predict(self, values, acquired):
        return (np.nansum(values, axis=1) > 0).astype(int)


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")  # many draws of a heavy-tailed world
def test_treating_a_learned_propensity_as_known_is_too_cautious():
    """Over many draws the stacked error is the spread of the estimates; the other one is several times too large."""
    experiment = synthetic_mar(20_000)
    found, stacked, naive = [], [], []
    for seed in range(120):
        rows = np.random.default_rng([3, seed]).integers(20_000, size=1500)
        data = experiment.mechanism.hide(experiment.complete.take(rows), random_state=seed)
        for errors, option in ((stacked, True), (naive, False)):
            result = afape.evaluate(
                data,
                afape.RandomSubset(0.5),
                Sign(),
                missingness=experiment.missingness,
                propensity=afape.LearnedPropensity(stacked=option, form="linear"),
                estimators=["ipw-semi"],
            )
            errors.append(result["ipw-semi"]["acquisition"].std_error)
        found.append(result["ipw-semi"]["acquisition"].value)
    assert set(result.table["error_method"]) == {"propensity as known"}
    spread = np.std(found, ddof=1)
    assert abs(np.mean(stacked) / spread - 1) < 4 / np.sqrt(2 * len(found))
    assert np.mean(naive) > 3 * spread
