"""Errors of learned action values in influence values: derivatives in row weights, with designs and penalties held fixed."""

from dataclasses import replace

import by_hand
import numpy as np
import pytest
from by_hand import walked
from numpy.testing import assert_allclose
from worlds import World

import afape
from afape.action_values.depth_model import DepthModel, Features
from afape.action_values.induction import InducedValues, Lessons
from afape.action_values.learning_errors import ValueSlopes
from afape.action_values.models import LearnedValues, ValueRegressor
from afape.action_values.ridge import PooledRidge, QuadraticRidge
from afape.estimators.dm import direct_method
from afape.estimators.drl import doubly_robust
from afape.missingness.assumptions import Conditioning
from afape.propensity.chain import ChainPropensity
from afape.propensity.known import BoundKnownPropensity
from afape.walk.columns import CostColumns
from afape.walk.tariff import Tariff

WORLD = World(31, n_groups=4, n_levels=3, n_free=1, given=(0,))
STEP = 1e-3


class FixedDesigns:
    """Ridge regressions, solved with an intercept; after `hold`, fits repeat earlier centres, scales and penalties in order."""

    def __init__(self, monkeypatch):
        self.designs, self.place, self.plain = [], None, QuadraticRidge.fit
        monkeypatch.setattr(QuadraticRidge, "fit", lambda ridge, *args, **kwargs: self.fit(ridge, *args, **kwargs))

    def hold(self):
        self.place = 0

    def fit(self, ridge, X, y, sample_weight=None, by=None, keep=False):
        if self.place is None:
            self.plain(ridge, X, y, sample_weight, by, keep)
            self.designs.append((ridge.centre_, ridge.scale_, ridge.alpha_))
            return ridge
        ridge.centre_, ridge.scale_, ridge.alpha_ = self.designs[self.place]
        self.place += 1
        Z = np.column_stack([np.ones(len(X)), ridge._expand(X)])
        w = np.ones(len(X)) if sample_weight is None else sample_weight
        penalty = np.diag([0.0, *np.full(Z.shape[1] - 1, ridge.alpha_)])
        solution = np.linalg.solve(Z.T @ (w[:, None] * Z) + penalty, Z.T @ (w[:, None] * y))
        ridge.intercept_, ridge.coef_, ridge.offset_ = solution[0], solution[1:], np.zeros(Z.shape[1] - 1)
        return ridge


def slopes_in_weights(value, weight, rows):
    """Derivatives of a function of row weights in the logarithms of some weights, by central differences; (len(rows), P)."""
    out = []
    for row in rows:
        moved = []
        for sign in (1, -1):
            changed = weight.copy()
            changed[row] *= 1 + sign * STEP
            moved.append(value(changed))
        out.append((moved[0] - moved[1]) / (2 * STEP))
    return np.array(out)


@pytest.fixture
def plain_residuals(monkeypatch):
    """Residuals that are not corrected for leverage, as in derivatives."""
    monkeypatch.setattr("afape.action_values.depth_model._MAX_LEVERAGE", 0.0)


def test_residuals_are_corrected_for_leverage():
    """The derivative of a prediction in its own target, and what that does to the error of a single prediction."""
    rng = np.random.default_rng(2)
    X, y, w, step = rng.normal(size=(30, 2)), rng.normal(size=(30, 1)), rng.uniform(0.5, 2, 30), np.eye(30)[:, :, None]
    fit = QuadraticRidge(0.5).fit(X, y, w, keep=True)
    moved = [QuadraticRidge(0.5).fit(X, y + step[j], w).predict(X)[j, 0] - fit.predict(X)[j, 0] for j in range(30)]
    assert_allclose(fit.leverage_, moved, rtol=1e-9)
    nothing, action = np.zeros((30, 0)), np.ones((30, 1), dtype=bool)
    features, unit = Features(X, nothing.astype(bool), nothing), np.zeros(1, dtype=bool)
    spec = ValueRegressor(QuadraticRidge(0.5), pooled=False, multi_output=True)
    model = DepthModel(spec, features, action, y, w, np.zeros(2, dtype=bool), unit, keep=True)
    slopes, _ = model.slopes(features, action, np.eye(30)[3])
    share, errors = model.errors(features, action, w, slopes, np.array([0]))
    assert_allclose(errors, share[:, None] * fit.residual_ / np.sqrt(1 - fit.leverage_)[:, None], rtol=1e-9)


@pytest.mark.parametrize("ridge", [QuadraticRidge, PooledRidge])
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("q", [3, 32])
def test_ridge_gives_the_derivatives_of_its_predictions(ridge, stored, q, monkeypatch):
    monkeypatch.setattr("afape.action_values.ridge._MAX_STORED", 10**6 if stored else 0)
    rng = np.random.default_rng(0)
    X, y, w, amount = rng.normal(size=(80, q)), rng.normal(size=(80, 2)), rng.uniform(0.5, 2, 80), rng.normal(size=20)
    new = rng.normal(size=(20, q))
    if ridge is PooledRidge:
        X[rng.random(X.shape) < 0.2] = np.nan
    fixed = FixedDesigns(monkeypatch)
    model = ridge(2.0).fit(X, y, w, keep=True)
    share = model.shares(X, w, model.slopes(new, amount))
    assert_allclose(model.residual_, y - model.predict(X), atol=1e-10)

    def value(weight, target=y):
        fixed.hold()
        return amount @ ridge(2.0).fit(X, target, weight).predict(new)

    rows = np.arange(0, 80, 7)
    found = slopes_in_weights(value, w, rows)
    assert_allclose(share[rows, None] * model.residual_[rows], found, rtol=1e-4, atol=1e-6)
    for row in rows:
        one = np.zeros((80, 1))
        one[row] = 1.0
        assert_allclose(value(w, one), share[row], rtol=1e-6, atol=1e-9)


@pytest.mark.usefixtures("plain_residuals")
@pytest.mark.parametrize("label", [True, False])
@pytest.mark.parametrize("preset", ["quadratic", "pooled"])
@pytest.mark.parametrize("n_folds", [1, 3])
@pytest.mark.parametrize("ended", [True, False])
def test_errors_are_derivatives_of_any_sum_of_action_values(label, preset, n_folds, ended, monkeypatch):
    """Also where sets are so rare that fallbacks are used, and where runs end early."""
    n, rng = 45 if n_folds == 1 else 16, np.random.default_rng(1)
    data = WORLD.draw(n, 0)
    table, tariff = walked(data, WORLD.policy, WORLD.classifier), Tariff.of(data)
    lost = (table.edge_group == 3) & ended
    columns = CostColumns(tariff, data.labels, True if ended else None)
    slopes = ValueSlopes(rng.normal(size=len(table.edge_state)), rng.normal(size=len(table.row)))
    averaged, fixed = rng.random(n) < 0.8, FixedDesigns(monkeypatch)

    def learned(weight):
        fold, recipe, keep = np.arange(n) % n_folds, LearnedValues(preset, label), fixed.place is None
        lessons = Lessons(np.array([0]), fold, recipe, weight, averaged, keep=keep)
        return InducedValues(data, table, lessons, (columns,), tariff, lost if ended else None, True if ended else None)

    def value(weight):
        fixed.hold()
        values = learned(weight).within(0)
        stops = values.stops(np.arange(len(table.row)))
        total = slopes.edges @ values.edges(np.arange(len(table.edge_state)))
        return total if stops is None else total + slopes.stops @ stops

    weight = rng.uniform(0.5, 2, n)
    base = learned(weight)
    if (preset, n_folds) == ("quadratic", 3):
        assert base.fallbacks > 0
    rows = np.arange(0, n, 3)
    expected, found = slopes_in_weights(value, weight, rows), base.within(0).errors(slopes)
    assert_allclose(found.sum(axis=0), 0.0, atol=1e-9)
    assert_same_but_constant(found[rows] / weight[rows, None], expected / weight[rows, None])


def assert_same_but_constant(found, expected):
    """Influence values hold the sum of the weights fixed, which subtracts a constant per unit of weight."""
    found, expected = found[1:] - found[0], expected[1:] - expected[0]
    assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def booked_by(reduction, columns):
    """What a method books in these columns."""
    return getattr(reduction, "weighted", reduction).booked(columns)


def bound(kind, data, on, n_folds):
    """A known or a learned propensity, with folds."""
    linear = afape.LearnedPropensity(form="linear", min_propensity=0.0)
    fold = np.arange(len(data)) % n_folds
    if kind == "learned":
        return ChainPropensity(data, on, fold, linear)
    propensity = BoundKnownPropensity(WORLD.known_propensity(), data)
    propensity.fold = fold
    return propensity


@pytest.mark.usefixtures("plain_residuals")
@pytest.mark.parametrize("method", [doubly_robust, direct_method])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("n_folds", [1, 3])
@pytest.mark.parametrize(("kind", "label"), [("known", True), ("known", False), ("learned", False)])
def test_influence_is_the_derivative_of_the_estimate_in_row_weights(
    method, normalize, n_folds, kind, label, monkeypatch
):
    """With a learned propensity: the errors of the values alone, because those of the propensity are tested elsewhere."""
    data, fixed = WORLD.draw(200, 1), FixedDesigns(monkeypatch)
    first = np.arange(4) == 0
    on = Conditioning(first, label=False, gaps=np.zeros_like(first))
    propensity, values = bound(kind, data, on, n_folds), LearnedValues(augment_label=label)
    seen = by_hand.evidence(WORLD, data, propensity, on, normalize=normalize, values=values)
    columns = seen.cost_columns
    if kind == "learned":
        monkeypatch.setattr(propensity, "refit", lambda drawn: propensity)

    def value(weight):
        fixed.hold()
        again = seen.fitted.refit(weight)
        if kind == "learned":
            again = replace(again, drawn=np.ones(len(data)))
        return booked_by(method(again.evidence(seen.key, True)), columns).values

    rows = np.arange(0, 200, 28)
    booked = booked_by(method(seen), columns)
    influence = booked.errors if kind == "learned" else booked.whole
    assert_same_but_constant(influence[rows], 200 * slopes_in_weights(value, np.ones(200), rows))
