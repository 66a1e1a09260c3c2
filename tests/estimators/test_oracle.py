"""The package against brute force: every trajectory, every missingness pattern."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from worlds import WORLDS, hajek

import afape
from afape.run.plan import choices_under

pytestmark = [
    pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"world{w.seed}"),
    # Rows that enumerate a world are no sample of it: mean weights need not be near 1, nor rows balanced.
    pytest.mark.filterwarnings("ignore::afape.warnings.NormalizerWarning"),
    pytest.mark.filterwarnings(
        "ignore::afape.warnings.HeavyWeightsWarning",
        "ignore::afape.warnings.BalanceWarning",
        "ignore::afape.warnings.AssumptionWarning",
    ),
]


def run(world, data, **options):
    return afape.evaluate(
        data,
        world.policy,
        world.classifier,
        missingness=afape.MAR(given=[f"g{i}" for i in world.given]),
        propensity=world.known_propensity(),
        **options,
    )


def row_terms(estimate):
    """Per-row terms of a plain average."""
    return estimate.influence + estimate.value


def test_true_cost_enumerates_every_trajectory(world):
    costs = afape.true_cost(world.complete(), world.policy, world.classifier)
    acquisition, misclassification = world.true_costs()
    # The complete table has each cell once; weight the rows by their probability.
    assert_allclose(row_terms(costs["acquisition"]) @ world.cell_mass, acquisition, rtol=1e-9)
    assert_allclose(row_terms(costs["misclassification"]) @ world.cell_mass, misclassification, rtol=1e-9)
    assert_allclose(row_terms(costs["total"]) @ world.cell_mass, acquisition + misclassification, rtol=1e-9)


@pytest.mark.parametrize("acquisition_weight", ["before", "after"])
@pytest.mark.parametrize("estimator", ["ipw-semi", "ipw-miss"])
def test_plain_weighting_equals_truth_over_every_pattern(world, estimator, acquisition_weight):
    data, _, mass = world.everything()
    result = run(world, data, normalize=False, estimators=[estimator], acquisition_weight=acquisition_weight)
    for target, truth in zip(("acquisition", "misclassification"), world.true_costs(), strict=True):
        assert_allclose(row_terms(result[estimator][target]) @ mass, truth, rtol=1e-9)


@pytest.mark.parametrize("acquisition_weight", ["before", "after"])
def test_every_estimator_equals_its_slow_twin(world, acquisition_weight):
    data, levels, _ = world.everything()
    everything = np.ones(world.n_groups, dtype=bool)

    def semi(i):
        return lambda s: 1 / world.superset(levels[i], s & ~data.always_recorded)

    def miss(i):
        return lambda s: data.complete[i] / world.superset(levels[i], everything)

    def complete_case(i):
        return lambda s: float(data.complete[i])

    options = {"acquisition_weight": acquisition_weight, "estimators": ["ipw-semi", "ipw-miss", "cc", "blocking"]}
    plain = run(world, data, normalize=False, **options)
    normal = run(world, data, normalize=True, **options)
    for name, weight in (("ipw-semi", semi), ("ipw-miss", miss)):
        rows = [
            world.weighted_row(world.values(levels[i]), data.labels[i], data.recorded[i], weight(i), acquisition_weight)
            for i in range(len(data))
        ]
        assert_allclose(row_terms(plain[name]["acquisition"]), [r["price"].sum() for r in rows], rtol=1e-9, atol=1e-12)
        assert_allclose(
            row_terms(plain[name]["misclassification"]), [r["cost"].sum() for r in rows], rtol=1e-9, atol=1e-12
        )
        acquisition, misclassification = hajek(rows)
        assert_allclose(normal[name]["acquisition"].value, acquisition, rtol=1e-9)
        assert_allclose(normal[name]["misclassification"].value, misclassification, rtol=1e-9)
    cc = [
        world.weighted_row(world.values(levels[i]), data.labels[i], data.recorded[i], complete_case(i))
        for i in range(len(data))
    ]
    acquisition, misclassification = hajek(cc)
    assert_allclose(normal["cc"]["acquisition"].value, acquisition, rtol=1e-9)
    assert_allclose(normal["cc"]["misclassification"].value, misclassification, rtol=1e-9)
    blocked = np.array(
        [world.blocked_row(world.values(levels[i]), data.labels[i], data.recorded[i]) for i in range(len(data))]
    )
    assert_allclose(row_terms(normal["blocking"]["acquisition"]), blocked[:, 0], rtol=1e-9, atol=1e-12)
    assert_allclose(row_terms(normal["blocking"]["misclassification"]), blocked[:, 1], rtol=1e-9, atol=1e-12)


def test_imputed_means_walk_the_completed_row(world):
    data, _, _ = world.everything()
    result = run(world, data, estimators=["imp-mean"])
    means = np.nanmean(data.values, axis=0)
    completed = np.where(np.isnan(data.values), means, data.values)
    everything = np.ones(world.n_groups, dtype=bool)

    total = np.zeros(2)
    for row, label in zip(completed, data.labels, strict=True):
        for probability, steps in world.trajectories(row, ~world.costly, everything):
            total[0] += probability * sum(world.prices[a] for _, a in steps[:-1])
            total[1] += probability * world.stop_cost(row, label, steps[-1][0])
    assert_allclose(result["imp-mean"]["acquisition"].value, total[0] / len(data), rtol=1e-9)
    assert_allclose(result["imp-mean"]["misclassification"].value, total[1] / len(data), rtol=1e-9)


def test_nothing_missing_every_estimator_is_the_truth(world):
    data = world.complete()
    truth = afape.true_cost(data, world.policy, world.classifier)
    result = afape.evaluate(
        data,
        world.policy,
        world.classifier,
        missingness=afape.MCAR(),
        propensity=[None, world.known_propensity()],
    )
    assert list(result.answers) == [c.name for c in choices_under(afape.MCAR(), {"learned": None, "known": None})]
    for name in result.answers:
        if name == "dm-semi":  # a regression, exact only where it can be
            continue
        for target, estimate in truth.items():
            assert_allclose(result[name][target].value, estimate.value, rtol=1e-9)
            if name == "mi":  # influence values in every table
                assert_allclose(result[name][target].influences, np.tile(estimate.influence, (10, 1)), atol=1e-9)
            else:
                assert_allclose(result[name][target].influence, estimate.influence, atol=1e-9)
