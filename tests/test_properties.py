"""Properties that hold whatever the world."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from worlds import World

import afape

# Small samples of arbitrary worlds clip, wobble and lack sets; that is what the warnings are for.
pytestmark = pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])

worlds = st.builds(
    World,
    seed=st.integers(0, 10_000),
    n_groups=st.integers(2, 4),
    n_levels=st.integers(2, 3),
    n_classes=st.integers(2, 3),
    n_free=st.integers(0, 1),
    free_gaps=st.just(False),
)


WEIGHTED = ["imp-mean", "blocking", "cc", "ipw-miss", "ipw-semi"]


def run(world, data, known=True, **options):
    # learned values depend on folds, and so on the order of rows; they have tests of their own
    options.setdefault("estimators", WEIGHTED)
    return afape.evaluate(
        data,
        options.pop("policy", world.policy),
        world.classifier,
        missingness=afape.MAR(given=["g0"]),
        propensity=world.known_propensity() if known else None,
        **options,
    )


def values_of(result):
    return {
        (name, target): (e.value, e.std_error)
        for name in result.answers
        if name in result
        for target, e in result[name].items()
    }


@quick
@given(world=worlds, normalize=st.booleans(), known=st.booleans(), chunk_lines=st.integers(1, 200))
@example(world=World(2648, n_groups=4, n_levels=3, n_classes=3, n_free=1), normalize=False, known=False, chunk_lines=1)
def test_chunk_size_never_matters(world, normalize, known, chunk_lines):
    data = world.draw(150, 0)
    a = values_of(run(world, data, known, normalize=normalize))
    b = values_of(run(world, data, known, normalize=normalize, walk=afape.WalkOptions(chunk_lines=chunk_lines)))
    assert a.keys() == b.keys()
    for key in a:
        assert a[key][0] == b[key][0]
        # derivatives in the propensity's parameters are summed chunk by chunk, so errors agree to rounding
        assert_allclose(a[key][1], b[key][1], rtol=1e-9, atol=1e-13)


@quick
@given(world=worlds, normalize=st.booleans())
def test_row_order_does_not_matter_with_a_known_propensity(world, normalize):
    data = world.draw(120, 0)
    order = np.random.default_rng(0).permutation(120)
    a, b = (values_of(run(world, d, normalize=normalize)) for d in (data, data.take(order)))
    for key in a:
        assert_allclose(a[key], b[key], rtol=1e-10, atol=1e-12)


@quick
@given(world=worlds, normalize=st.booleans())
def test_group_order_does_not_matter_with_a_known_propensity(world, normalize):
    data = world.draw(120, 0)
    names = list(world.group_columns)
    order = np.random.default_rng(world.seed).permutation(len(names))
    back = np.argsort(order)
    columns = list(data.columns)
    frame = pd.DataFrame(data.values, columns=columns).assign(y=data.labels)
    problem = afape.Problem(
        {names[g]: world.group_columns[names[g]] for g in order},
        world.problem.costs,
        "y",
        world.costs,
        classes=list(range(world.n_classes)),
    )
    turned = afape.Retrospective(frame, problem)
    place = [turned.columns.index(c) for c in columns]
    known = world.known_propensity().function

    class Turned:
        def probabilities(self, values, acquired):
            p = world.policy.probabilities(values[:, place], acquired[:, back])
            return np.column_stack([p[:, :-1][:, order], p[:, -1]])

        def predict(self, values, acquired):
            return world.classifier.predict(values[:, place], acquired[:, back])

    a = values_of(run(world, data, normalize=normalize))
    b = values_of(
        afape.evaluate(
            turned,
            Turned(),
            Turned(),
            missingness=afape.MAR(given=["g0"]),
            estimators=WEIGHTED,
            propensity=afape.KnownPropensity(lambda v, s: known(v[:, place], s[:, back])),
            normalize=normalize,
        )
    )
    for key in a:
        assert_allclose(a[key], b[key], rtol=1e-10, atol=1e-12)


@quick
@given(world=worlds, factor=st.floats(0.1, 20), known=st.booleans())
def test_scaling_costs_scales_estimates(world, factor, known):
    data = world.draw(150, 0)
    scaled = World(**{f: getattr(world, f) for f in world.__dataclass_fields__})
    scaled.prices, scaled.costs = factor * world.prices, factor * world.costs
    more = scaled.draw(150, 0)
    a, b = values_of(run(world, data, known)), values_of(run(scaled, more, known))
    for key in a:
        assert_allclose(np.multiply(a[key], factor), b[key], rtol=1e-9, atol=1e-12)


@quick
@given(world=worlds, known=st.booleans(), normalize=st.booleans())
def test_influence_has_mean_zero_and_total_is_the_sum(world, known, normalize):
    names = [*WEIGHTED, "drl-semi"]
    result = run(world, world.draw(150, 0), known, normalize=normalize, estimators=names)
    for name in result.answers:
        if name not in result:
            continue
        parts = result[name]
        assert_allclose(parts["total"].value, parts["acquisition"].value + parts["misclassification"].value)
        halves = [(e.least, e.largest) if isinstance(e, afape.Bounds) else (e,) for e in parts.values()]
        for estimate in (e for both in halves for e in both):
            scale = np.abs(estimate.influence).max() + 1e-12
            # a learned propensity adds scores that sum to zero over the rows of each fit, up to the solver's tolerance
            assert abs(estimate.influence.mean()) < 1e-5 * scale + 1e-12


@quick
@given(world=worlds, p=st.floats(0, 1))
def test_random_subset_costs_p_times_the_prices(world, p):
    """Every group is bought with probability p whatever the values, so the cost is known; Blocking misses it."""
    data = world.draw(200, 0)
    policy = afape.RandomSubset(p)
    truth = p * world.prices.sum()
    exact = afape.true_cost(world.complete(), policy, world.classifier)["acquisition"].value
    assert_allclose(exact, truth, rtol=1e-9, atol=1e-12)
    result = run(world, data, policy=policy, normalize=False, estimators=["blocking", "ipw-semi"])
    found = result["ipw-semi"]["acquisition"]
    assert abs(found.value - truth) <= 5 * found.std_error + 1e-9
    blocked = result["blocking"]["acquisition"].value
    if p > 0.05 and not data.recorded[:, world.costly].all():
        # mostly too little; too much where a dear group takes the place of a cheap one that is not recorded
        assert abs(blocked - truth) > 1e-6


@quick
@given(world=worlds, seed=st.integers(0, 100))
def test_deterministic_policies_have_weights_zero_or_at_least_one(world, seed):
    data = world.draw(150, seed)
    policy = afape.FixedOrder(list(world.group_columns)[::-1][: 1 + seed % world.n_groups])
    result = run(world, data, policy=policy, estimators=["ipw-semi"], normalize=False)
    assert (result.support.sets["largest_weight"] >= 1).all()
    assert result.support.n_rows == 150
