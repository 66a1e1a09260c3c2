"""The lattice engine: exact, sampled, in chunks."""

import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from worlds import WORLDS, TablePolicy, World

import afape
from afape._arrays import count_supersets, merge, pack, unique_sets
from afape.agents.policy import bind
from afape.walk.ground import Ground
from afape.walk.walker import WalkOptions, walk


def totals(ground, options, seed=0, n_jobs=None):
    """Per-row sums that do not depend on how lines are cut into tables."""
    n = len(ground.available)
    out = np.zeros((n, 5))
    lines = 0
    for table in walk(ground, None, options, seed, n_jobs):
        lines += len(table.row)
        cost = np.where(table.stop_flow > 0, table.stop_flow * table.cost, 0.0)
        blocked = np.where(table.blocked_stop_flow > 0, table.blocked_stop_flow * table.cost, 0.0)
        for j, part in enumerate((table.reach, table.stop_flow, cost, table.reach * table.price, blocked)):
            out[:, j] += np.bincount(table.row, weights=part, minlength=n)
    return out, lines


def ground_of(world, n=400, seed=0):
    return Ground.recorded(world.draw(n, seed), world.policy, world.classifier)


@pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"world{w.seed}")
@pytest.mark.parametrize("max_states", [4096, 3, 0], ids=["exact", "some sampled", "all sampled"])
def test_chunks_and_threads_change_nothing(world, max_states):
    ground = ground_of(world)
    expected, lines = totals(ground, WalkOptions(max_states=max_states))
    for chunk_lines in (1, 7, 100):
        got, n = totals(ground, WalkOptions(max_states=max_states, chunk_lines=chunk_lines))
        assert_array_equal(got, expected)
        assert n == lines
    assert_array_equal(totals(ground, WalkOptions(max_states=max_states, chunk_lines=50), n_jobs=2)[0], expected)


def test_overflowing_rows_are_sampled_and_the_others_stay_exact():
    world = World(4, n_groups=4, n_levels=3)
    ground = ground_of(world)
    exact, _ = totals(ground, WalkOptions())
    states = np.zeros(len(exact))
    for table in walk(ground):
        states += np.bincount(table.row, minlength=len(exact))
    sampled = np.concatenate([t.sampled for t in walk(ground, None, WalkOptions(max_states=4))])
    assert_array_equal(np.sort(sampled), np.flatnonzero(states > 4))
    mixed, _ = totals(ground, WalkOptions(max_states=4))
    assert_array_equal(mixed[states <= 4], exact[states <= 4])
    assert 0 < len(sampled) < len(exact)


@pytest.mark.parametrize("world", [WORLDS[1], WORLDS[2], WORLDS[6]], ids=lambda w: f"world{w.seed}")
@pytest.mark.parametrize("own", [False, True], ids=["blocked policy", "own simulation"])
def test_sampled_walk_is_unbiased(world, own):
    ground = ground_of(world, n=60)
    simulation = TablePolicy(99, world.n_groups, zeros=0.0) if own else None
    exact, _ = totals(ground, WalkOptions())
    draws = np.array(
        [
            totals(ground, WalkOptions(max_states=0, n_trajectories=20, simulation=simulation), seed=s)[0]
            for s in range(200)
        ]
    )
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    off = np.abs(draws.mean(axis=0) - exact)
    # 300 comparisons: 4.5 errors; cells without spread have to agree to rounding
    assert (off <= 4.5 * error + 1e-12).all()
    assert (draws.std(axis=0).max(axis=0)[[1, 2, 3, 4]] > 0).all()


def test_sampling_more_trajectories_approaches_the_exact_walk():
    ground = ground_of(WORLDS[1], n=50)
    exact, _ = totals(ground, WalkOptions())
    error = [np.abs(totals(ground, WalkOptions(max_states=0, n_trajectories=m))[0] - exact).mean() for m in (10, 1000)]
    assert error[1] < error[0] / 4  # ten times the trajectories' root is about 10


def test_simulation_must_cover_the_policy():
    world = WORLDS[0]
    options = WalkOptions(max_states=0, simulation=afape.AcquireNone())
    with pytest.raises(ValueError, match=r"'simulation' must give positive probability.*AcquireNone gives 0"):
        totals(ground_of(world), options)


def test_simulation_may_do_more_than_the_policy():
    """Trajectories that leave the policy's ways carry nothing and end; what stays is unbiased."""
    world = WORLDS[1]
    data = world.draw(40, 0)
    uniform = TablePolicy(5, world.n_groups, zeros=0.0)
    options = WalkOptions(max_states=0, n_trajectories=4000, simulation=uniform)
    for policy in (bind(afape.AcquireNone(), data.problem), bind(afape.AcquireAll(), data.problem)):
        ground = Ground.recorded(data, policy, world.classifier)
        for table in walk(ground, None, options):
            assert (ground.available[table.row] | ~table.acquired).all()
        exact, sampled = totals(ground, WalkOptions())[0], totals(ground, options, seed=3)[0]
        assert_allclose(sampled.mean(axis=0), exact.mean(axis=0), rtol=0.1)


@pytest.mark.filterwarnings("ignore::afape.warnings.SupportWarning", "ignore::afape.warnings.NormalizerWarning")
def test_every_row_of_a_chunk_may_overflow():
    data = wide_problem(5, 30)
    result = afape.evaluate(
        data,
        afape.RandomSubset(0.5),
        Majority(),
        missingness=afape.MCAR(),
        estimators=["ipw-semi"],
        n_folds=2,
        walk=WalkOptions(max_states=1),
    )
    recorded_some = (data.recorded[:, 1:].any(axis=1)).sum()
    assert result.support.sampled == recorded_some
    assert np.isfinite(result["ipw-semi"]["total"].value)


def wide_problem(n_groups, n_rows, share=0.7, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n_rows, n_groups))
    values[:, 1:][rng.random((n_rows, n_groups - 1)) > share] = np.nan
    names = [f"g{i}" for i in range(n_groups)]
    frame = pd.DataFrame(values, columns=names).assign(y=rng.integers(0, 2, n_rows))
    problem = afape.Problem({n: [n] for n in names}, dict.fromkeys(names[1:], 1.0), "y", 5.0)
    return afape.Retrospective(frame, problem)


class Majority:
    def predict(self, values, acquired):
        return (np.nansum(values, axis=1) > 0).astype(int)


def test_25_groups_and_a_deterministic_policy_are_exact_and_quick():
    data = wide_problem(25, 5000, share=0.95)
    began = time.process_time()
    result = afape.evaluate(
        data, afape.AcquireAll(), Majority(), missingness=afape.MCAR(), estimators=["blocking", "ipw-semi"]
    )
    assert time.process_time() - began < 20
    assert result.support.sampled == 0
    ground = Ground.recorded(data, bind(afape.AcquireAll(), data.problem), Majority())
    states = sum(len(table.row) for table in walk(ground))
    assert states <= 26 * len(data)


def test_10_groups_and_a_random_policy_are_exact():
    data = wide_problem(10, 300)
    ground = Ground.recorded(data, bind(afape.RandomSubset(0.5), data.problem), Majority())
    tables = list(walk(ground))
    # every subset of the recorded costly groups is a state, once
    expected = (2 ** data.recorded[:, 1:].sum(axis=1)).sum()
    assert sum(len(t.row) for t in tables) == expected
    assert all(len(t.sampled) == 0 for t in tables)


def test_one_policy_call_a_depth():
    data = wide_problem(6, 500)

    class Counting(afape.RandomSubset):
        calls = 0

        def bind(self, problem):
            inner = super().bind(problem)
            outer = self

            class Bound:
                def probabilities(self, values, acquired):
                    outer.calls += 1
                    return inner.probabilities(values, acquired)

            return Bound()

    policy = Counting(0.5)
    afape.evaluate(data, policy, Majority(), missingness=afape.MCAR(), estimators=["ipw-semi"])
    assert policy.calls <= 2 * 6  # the probe's rows and the one chunk: depths 0 to 5


def test_more_than_64_groups():
    data = wide_problem(70, 200, share=0.97)
    order = [f"g{i}" for i in (69, 3, 66)]
    policy = afape.FixedOrder(order)
    result = afape.evaluate(data, policy, Majority(), missingness=afape.MCAR(), estimators=["ipw-semi"])
    rows = data.recorded[:, [69, 3, 66]].all(axis=1)
    predicted = np.nansum(data.values[:, [0, 69, 3, 66]], axis=1) > 0
    wrong = 5.0 * (predicted != data.labels)
    assert_allclose(result["ipw-semi"]["acquisition"].value, 3.0, rtol=1e-9)
    # constant propensities cancel in the normalised estimate, up to the folds' own rates
    assert_allclose(result["ipw-semi"]["misclassification"].value, wrong[rows].mean(), rtol=0.02)


def test_policy_and_classifier_see_only_what_is_acquired():
    world = WORLDS[6]
    data = world.draw(200, 0)

    class Watching(TablePolicy):
        def probabilities(self, values, acquired):
            assert_array_equal(np.isnan(values), ~acquired[:, world.column_group])
            return super().probabilities(values, acquired)

    policy = Watching(world.seed, world.n_groups)
    afape.evaluate(data, policy, world.classifier, missingness=afape.MAR(given=["g2"]))


def test_sets_pack_and_merge():
    rng = np.random.default_rng(0)
    for n_groups in (3, 64, 65, 130):
        sets = rng.random((500, n_groups)) < 0.5
        sets[250:] = sets[:250]
        distinct, index = unique_sets(sets)
        assert_array_equal(distinct[index], sets)
        assert len(distinct) == len(np.unique(sets, axis=0))
        assert pack(sets).shape == (500, -(-n_groups // 64))
        rows = rng.integers(0, 5, 500)
        first, inverse = merge(rows, sets)
        assert_array_equal(rows[first][inverse], rows)
        assert_array_equal(sets[first][inverse], sets)
        assert len(first) == len(np.unique(np.column_stack([rows, sets]), axis=0))


@pytest.mark.parametrize("n_groups", [1, 5, 16, 17, 63, 64, 65, 130])
def test_sets_are_told_apart_and_rows_that_have_them_counted(n_groups):
    """By counting where sets are few, by sorting where they are many; in pieces too."""
    rng = np.random.default_rng(n_groups)
    rows = rng.random((40, n_groups)) < 0.9
    sets = np.repeat(rng.random((15, n_groups)) < 2 / n_groups, 2, axis=0)
    found, index = unique_sets(sets)
    np.testing.assert_array_equal(found[index], sets)
    assert len(found) == len({s.tobytes() for s in sets})
    expected = [int((rows | ~s).all(axis=1).sum()) for s in sets]
    assert count_supersets(rows, sets).tolist() == expected
    assert count_supersets(rows, sets, at_once=100).tolist() == expected
