"""Doubly robust and direct estimates against brute force: right, and wrong in every way they promise to survive."""

import numpy as np
import pytest
from by_hand import state_values, walked
from numpy.testing import assert_allclose
from sklearn.tree import DecisionTreeRegressor
from worlds import WORLDS, ExactValues, World

import afape
from afape.action_values.induction import InducedValues, Lessons
from afape.action_values.models import LearnedValues, ValueRegressor
from afape.walk.columns import CostColumns
from afape.walk.tariff import Tariff

pytestmark = [  # rows that enumerate a world are no sample of it, and some propensities here are wrong on purpose
    pytest.mark.filterwarnings(
        "ignore::afape.warnings.NormalizerWarning", "ignore::afape.warnings.HeavyWeightsWarning"
    ),
    pytest.mark.filterwarnings("ignore::afape.warnings.BalanceWarning", "ignore::afape.warnings.AssumptionWarning"),
]

worlds = pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"world{w.seed}")
labels = pytest.mark.parametrize("label", [False, True], ids=["without label", "with label"])


def wrong_values(values, acquired, labels):
    """An arbitrary function of what Q may depend on."""
    base = np.nansum(values, axis=1) + acquired @ np.arange(1.0, acquired.shape[1] + 1)
    return 3 + 2 * np.sin(base[:, None, None] + np.arange(acquired.shape[1] + 1)[None, :, None] * [[[1.0, 2.0]]])


def wrong_root(values, labels):
    return np.column_stack([1 + np.nansum(values, axis=1), np.full(len(values), 2.0)])


def wrong_propensity(world):
    right = world.known_propensity().function
    return afape.KnownPropensity(lambda v, s: 0.3 + 0.5 * np.sin(7 * right(v, s)) ** 2)


def drl_terms(world, data, values, propensity):
    """Per-row terms of the plain doubly robust estimate, both targets."""
    result = afape.evaluate(
        data, world.policy, world.classifier, missingness=afape.MAR(given=[f"g{i}" for i in world.given]),
        propensity=propensity, values=values, normalize=False, estimators=["drl-semi"],
    )["drl-semi"]  # fmt: skip
    return np.column_stack([result[t].influence + result[t].value for t in ("acquisition", "misclassification")])


@worlds
@labels
def test_doubly_robust_survives_one_wrong_nuisance(world, label):
    data, _, mass = world.everything()
    exact = ExactValues(world, label)
    right_q, wrong_q = afape.KnownValues(exact.function, exact.root), afape.KnownValues(wrong_values, wrong_root)
    right_p, wrong_p = world.known_propensity(), wrong_propensity(world)
    truth = world.true_costs()
    for values, propensity in ((right_q, right_p), (wrong_q, right_p), (right_q, wrong_p)):
        assert_allclose(mass @ drl_terms(world, data, values, propensity), truth, rtol=1e-9)
    if not data.complete.all():  # with gaps, two wrongs make no right
        both_wrong = mass @ drl_terms(world, data, wrong_q, wrong_p)
        assert np.abs(both_wrong - truth).max() > 1e-3


@worlds
@labels
def test_direct_method_with_exact_values_is_the_truth(world, label):
    data, _, mass = world.everything()
    exact = ExactValues(world, label)
    table = walked(data, world.policy, world.classifier)
    given = np.flatnonzero(np.isin(data.column_group, world.given))
    columns = CostColumns(Tariff.of(data), data.labels)
    values = afape.KnownValues(exact.function, exact.root).bind(data, table, given, columns, None)
    roots = np.flatnonzero(table.depth == 0)
    weights = mass[table.row[roots]]
    assert_allclose(weights @ state_values(values, table, columns)[roots], world.true_costs(), rtol=1e-9)


@pytest.mark.parametrize("world", [WORLDS[0], WORLDS[4], WORLDS[5]], ids=lambda w: f"world{w.seed}")
@pytest.mark.parametrize("normalize", [False, True])
def test_influence_of_drl_is_the_derivative_in_row_weights(world, normalize):
    """Doubling a row moves the estimate as its influence value says, normalisers included."""
    data, _, _ = world.everything()
    options = {
        "missingness": afape.MAR(given=[f"g{i}" for i in world.given]),
        "propensity": world.known_propensity(),
        "values": afape.KnownValues(wrong_values, wrong_root),
        "normalize": normalize,
        "estimators": ["drl-semi"],
    }
    n, copies = len(data), 30
    base = afape.evaluate(data, world.policy, world.classifier, **options)["drl-semi"]
    for i in range(0, n, n // 3):
        rows = np.concatenate([np.tile(np.arange(n), copies), [i]])
        more = afape.evaluate(data.take(rows), world.policy, world.classifier, **options)["drl-semi"]
        for target in ("acquisition", "misclassification", "total"):
            moved = (copies * n + 1) * (more[target].value - base[target].value)
            scale = np.abs(base[target].influence).max()
            assert_allclose(moved, base[target].influence[i], atol=0.02 * scale + 1e-6)


@pytest.mark.parametrize("label", [False, True])
@pytest.mark.parametrize("world", [WORLDS[1], WORLDS[2], WORLDS[6]], ids=lambda w: f"world{w.seed}")
def test_learned_values_converge_to_the_exact_ones(world, label):
    regressor = ValueRegressor(DecisionTreeRegressor(min_samples_leaf=1, random_state=0), pooled=False)
    exact = ExactValues(world, label)
    errors = []
    for n in (300, 12_000):
        data = world.draw(n, 0)
        table = walked(data, world.policy, world.classifier)
        given = np.flatnonzero(np.isin(data.column_group, world.given))
        fold = np.arange(n) % 2
        tariff = Tariff.of(data)
        columns, lessons = CostColumns(tariff, data.labels), Lessons(given, fold, LearnedValues(regressor, label))
        learned = InducedValues(data, table, lessons, (columns,), tariff).within(0)
        sample = np.arange(0, len(table.row), max(len(table.row) // 400, 1))
        known = table.acquired[sample][:, data.column_group] | np.isin(np.arange(len(data.columns)), given)
        seen = np.where(known, data.values[table.row[sample]], np.nan)
        y = data.labels[table.row[sample]]
        inner = table.depth[sample] >= (table.edge_group.min() == -1)  # a forced root asks nobody
        v = np.array(
            [
                exact.v(exact.known(known_values), tuple(bool(b) for b in acquired), label_code)
                for known_values, acquired, label_code in zip(
                    seen[inner], table.acquired[sample[inner]], y[inner], strict=True
                )
            ]
        )
        sample = sample[inner]
        errors.append(np.sqrt(((state_values(learned, table, columns)[sample] - v) ** 2).mean()))
    assert errors[1] < errors[0] / 2
    assert errors[1] < 0.25


def test_label_augmentation_changes_no_expectation():
    """Both versions of Q give the same J; with the label, the rows vary less."""
    world = World(31, n_groups=3, n_levels=3)
    data, _, mass = world.everything()
    spread = []
    for label in (False, True):
        exact = ExactValues(world, label)
        terms = drl_terms(world, data, afape.KnownValues(exact.function, exact.root), world.known_propensity())
        total = terms.sum(axis=1)
        assert_allclose(mass @ total, sum(world.true_costs()), rtol=1e-9)
        spread.append(mass @ (total - mass @ total) ** 2)
    assert spread[1] < spread[0]
