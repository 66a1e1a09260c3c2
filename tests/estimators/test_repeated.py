"""Repeats with other folds and donors: means of single evaluations, which depend less on the seed."""

from dataclasses import replace

import numpy as np
import pytest
from by_hand import fitted_by
from numpy.testing import assert_allclose, assert_array_equal
from small_records import Above, Look, frame, records

import afape
from afape.estimators.catalogue import METHODS
from afape.estimators.estimate import TARGETS
from afape.run.options import Options
from afape.run.plan import make_plan
from afape.run.reduce import reduced

GRAPH = "a -> R_b; a, b -> R_c"
every_method = pytest.mark.parametrize("name", list(METHODS))


def assumption(name):
    return afape.MNAR(GRAPH) if METHODS[name].view == "hybrid" else afape.MAR(given=["a"])


def run(name, data, **options):
    options = {"missingness": assumption(name), "estimators": [name], **options}
    return afape.evaluate(data, Look(), Above(), **options)


@every_method
def test_repeats_are_averaged(name):
    data = records(frame())
    plan = make_plan(data, Above(), assumption(name), Options(estimators=[name], n_repeats=3))
    singles = [replace(one, repeats=()) for one in (plan, *plan.repeats)]
    if METHODS[name].needs & {"values", "components"}:
        assert len({one.recipe.fold.tobytes() for one in singles}) == len({one.donors.seed for one in singles}) == 3
    answers = [reduced(plan.choices[0], [fitted_by(one, Look())]).answer() for one in singles]
    found, parts = run(name, data, n_repeats=3), [one.parts.amounts.values for one in answers]
    for target in TARGETS:
        alone = [one.estimates[target] for one in answers]
        assert_allclose(found[name][target].value, np.mean([one.value for one in alone]), rtol=1e-9, atol=1e-12)
        if all(one.influence is not None for one in alone):
            mean = np.mean([one.influence for one in alone], axis=0)
            assert_allclose(found[name][target].influence, mean, rtol=1e-9, atol=1e-9)
    again = found.reprice({"b": 3.0})[name]["acquisition"].value
    assert np.isfinite(again)
    assert np.mean(parts, axis=0).shape == parts[0].shape


@every_method
def test_one_repeat_is_the_default(name):
    one, other = (run(name, records(frame()), **options) for options in ({}, {"n_repeats": 1}))
    for target in TARGETS:
        assert one[name][target].value == other[name][target].value


@pytest.mark.parametrize("name", ["drl-semi", "eff-semi"])
def test_replicates_are_averaged_too(name):
    found = run(name, records(frame()), n_repeats=2, bootstrap=3, random_state=1)
    again = run(name, records(frame()), n_repeats=2, bootstrap=3, random_state=1)
    assert found[name]["total"].replicates.shape == (3,)
    assert_array_equal(found[name]["total"].replicates, again[name]["total"].replicates)


def test_repeats_are_noted():
    found = run("drl-semi", records(frame()), n_repeats=2)
    assert "Estimates are means over 2 repeats with other folds and donors." in found.assumption
    assert not any("repeats" in note for note in run("drl-semi", records(frame())).assumption)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["drl-semi", "eff-semi"])
def test_answers_depend_less_on_the_seed(name):
    """With four repeats, the standard deviation over seeds is half; 0.8 leaves room for twelve seeds."""
    data = records(frame(300))
    spread = [
        np.std([run(name, data, n_repeats=r, random_state=s)[name]["total"].value for s in range(12)]) for r in (1, 4)
    ]
    assert spread[1] < 0.8 * spread[0]


def test_repeats_and_split_exclude_each_other():
    with pytest.raises(ValueError, match="'n_repeats' and 'split' exclude each other"):
        run("drl-semi", records(frame()), n_repeats=2, split=0.5)
    with pytest.raises(ValueError, match="'n_repeats' must be a whole number of at least 1"):
        run("drl-semi", records(frame()), n_repeats=0)
