"""Known propensities of some sets, the choice of the model of learned ones, and small parts of both."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from small_propensities import given

import afape
from afape.missingness import KnownPropensity
from afape.propensity.binding import _bound, _has_many_factors, _method
from afape.propensity.factor import Crossfit
from afape.propensity.forms import Form, Forms
from afape.propensity.known import BoundKnownPropensity
from afape.propensity.logistic import limit_far_values, spline_columns


def records(n=30, groups="abc"):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, len(groups))), columns=list(groups)).assign(y=np.arange(n) % 2)
    for j, name in enumerate(groups[1:]):
        frame.loc[j::3, name] = np.nan
    return afape.Retrospective(frame, afape.Problem({g: [g] for g in groups}, dict.fromkeys(groups[1:], 1.0), "y", 1.0))


def sets(*texts):
    return np.array([[g in text for g in "abc"] for text in texts])


def test_a_known_propensity_covers_the_sets_that_it_was_given():
    data = records()
    some = BoundKnownPropensity(KnownPropensity.from_arrays({"b": np.full(30, 0.5)}), data)
    assert [some.covers(required) for required in sets("", "a", "b", "ab", "c", "bc")] == [True] * 4 + [False] * 2
    every = BoundKnownPropensity(KnownPropensity(lambda values, required: np.full(len(values), 0.5)), data)
    assert all(every.covers(required) for required in sets("", "a", "bc"))


def test_probabilities_of_what_is_not_recorded_may_be_small_or_unknown_but_not_impossible():
    data, answer = records(), {}
    known = BoundKnownPropensity(KnownPropensity(lambda values, required: answer["p"].copy()), data)
    rows, index = np.array([0, 1, 2, 3]), np.array([0, 1, 0, 1])
    answer["p"] = np.array([0.001, np.nan])  # asked about the two rows of the set {b} alone
    assert_array_equal(known.impossible(rows, sets("b", "a"), index, 0.01), [True, False, False, False])
    for bad in ([1.5, 0.5], [0.5, -0.1], [1.5, np.nan]):
        answer["p"] = np.array(bad)
        with pytest.raises(ValueError, match=r"must lie in \[0, 1\], but 1 of 2 values do not"):
            known.impossible(rows, sets("b", "a"), index, 0.01)
    assert not known.impossible(rows, sets("a", ""), index, 0.01).any()


def test_a_known_propensity_must_take_the_label_if_recording_depends_on_it():
    data, asked = records(), sets("b")
    labelled = SimpleNamespace(label=True)
    plain, full = (
        KnownPropensity(lambda values, required: values[:, 0]),
        KnownPropensity(lambda v, r, y: y / 2, labels=True),
    )
    with pytest.raises(ValueError, match="must use the label, because recording depends on it"):
        _bound("ipw-semi", plain, data, labelled, np.zeros(30, dtype=int), asked, {})
    assert not _bound("ipw-semi", full, data, labelled, np.zeros(30, dtype=int), asked, {}).learned
    assert not _bound("ipw-semi", plain, data, SimpleNamespace(label=False), np.zeros(30, dtype=int), asked, {}).learned


def wide(n_groups):
    rng = np.random.default_rng(1)
    names = [f"x{i}" for i in range(n_groups)]
    x = np.where(rng.random((20, n_groups)) < 0.5, np.nan, 1.0)
    x[0], x[1] = np.nan, 1.0
    frame = pd.DataFrame(x, columns=names).assign(y=np.arange(20) % 2)
    return afape.Retrospective(frame, afape.Problem({g: [g] for g in names}, dict.fromkeys(names, 1.0), "y", 1.0))


@pytest.mark.parametrize(("n_groups", "many"), [(64, False), (65, True)])
def test_one_model_replaces_a_chain_of_more_than_64(n_groups, many):
    """The chain of one set has a model for each of its groups."""
    data, asked, spec = wide(n_groups), np.ones((1, n_groups), dtype=bool), afape.LearnedPropensity()
    assert _has_many_factors(spec, data, asked) is many
    assert not _has_many_factors(afape.LearnedPropensity(form="boosting"), data, asked)
    assert _method(spec, data, given(data), asked) == ("autoregressive" if many else "chain")
    gaps = SimpleNamespace(gaps=np.arange(n_groups) == 1)
    assert _method(spec, data, gaps, asked) == "chain"
    with pytest.raises(ValueError, match="needs all given groups to be always recorded"):
        _method(afape.LearnedPropensity(method="autoregressive"), data, gaps, asked)


def test_row_weights_of_fits_are_weights_times_draws():
    fold, drawn, weight = np.zeros(4, dtype=int), np.array([0.0, 1, 2, 1]), np.array([1.0, 3, 0.5, 2])
    assert Crossfit(fold).row_weight is None
    assert_array_equal(Crossfit(fold, drawn).row_weight, drawn)
    assert_array_equal(Crossfit(fold, weight=weight).row_weight, weight)
    assert_array_equal(Crossfit(fold, drawn, None, weight).row_weight, [0, 3, 1, 2])
    assert Crossfit(fold).cases_of(np.array([1, 2])) is None
    assert_array_equal(Crossfit(fold, weight=weight).cases_of(np.array([1, 2])), [3, 0.5])


def test_shrunk_models_are_tried_if_either_answer_is_rare():
    forms = SimpleNamespace(form="auto", _cases=np.ones(2000), columns=np.zeros((2000, 30)))
    rare = np.arange(2000) < 6
    for y in (rare, ~rare):
        kinds = Forms._others(forms, Form(), y)
        assert any(form.ridge for form in kinds)
        assert "spline" not in {form.kind for form in kinds if not form.ridge}
    forms.columns = np.zeros((2000, 2))
    assert not any(form.ridge for form in Forms._others(forms, Form(), rare))


@pytest.mark.parametrize(("gain", "better"), [(1.4, True), (0.9, False), (-2.0, False)])
def test_a_form_is_better_if_its_gain_is_two_standard_errors(gain, better):
    forms = SimpleNamespace(_cases=np.ones(4), unit=np.arange(4), rows=np.arange(4), _mean=lambda values: values.mean())
    assert Forms._clearly_better(forms, gain + np.array([1.0, -1.0, 1.0, -1.0])) == better


def test_far_values_of_both_ends_are_moved_to_the_limits():
    """With 5 % of far values, none is a single exception."""
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.normal(size=200), rng.normal(size=200), rng.normal(size=200)])
    x[:10, 0], x[10:20, 0], x[:10, 2], x[30, 2] = 1e6, -1e6, 1e5, np.nan
    before = x.copy()
    limited, count = limit_far_values(x)
    assert_array_equal(x, before)
    assert count.tolist() == [20, 0, 10]
    for j in (0, 2):
        known = np.sort(x[~np.isnan(x[:, j]), j])
        centre = known[(len(known) - 1) // 2]
        distance = np.sort(np.abs(known - centre))
        distance = distance[distance > 0]
        limit = 100 * distance[(len(distance) - 1) // 2]
        assert_allclose(limited[:10, j], centre + limit)
        assert_array_equal(limited[30:, j], x[30:, j])
    assert_allclose(limited[10:20, 0], 2 * np.sort(x[:, 0])[99] - limited[0, 0])
    assert limit_far_values(before[20:, :2])[0].base is None or not limit_far_values(before[20:, :2])[1].any()


def test_limits_with_whole_number_weights_are_those_of_repeated_rows():
    rng = np.random.default_rng(3)
    x, weight = rng.normal(size=(101, 1)), rng.integers(1, 5, 101).astype(float)
    x[:9], x[9:16] = 3e4, -2e4
    repeated = np.repeat(np.arange(101), weight.astype(int))
    limited, count = limit_far_values(x, weight)
    assert count[0] == 16
    assert_allclose(limited[repeated], limit_far_values(x[repeated])[0])


def test_splines_are_cubic_between_knots_and_linear_beyond():
    rng = np.random.default_rng(4)
    x = np.sort(rng.normal(size=300))
    curves = spline_columns(x[:, None])
    assert curves.shape == (300, 4)
    assert_array_equal(curves[:, 0], x)
    knots = np.quantile(x, [0.05, 0.275, 0.5, 0.725, 0.95])
    for at in (x > knots[-1], x < knots[0]):
        for curve in curves[at, 1:].T:
            line = np.polyval(np.polyfit(x[at], curve, 1), x[at])
            assert_allclose(curve, line, atol=1e-9)
    u, k = (x - knots[0]) / (knots[-1] - knots[0]), (knots - knots[0]) / (knots[-1] - knots[0])
    for j in range(3):
        cube = [np.maximum(u - k[i], 0) ** 3 for i in (j, 3, 4)]
        expected = cube[0] - (k[4] - k[j]) / (k[4] - k[3]) * cube[1] + (k[3] - k[j]) / (k[4] - k[3]) * cube[2]
        assert_allclose(curves[:, 1 + j], expected, atol=1e-9)
