"""Columns of costs and of parts say the same, line by line; the label as a group; small parts of the table."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from worlds import WORLDS, World

import afape
from afape.data.label_group import with_label_group
from afape.walk.columns import CostColumns, PartColumns, dense
from afape.walk.ground import FREE, Ground
from afape.walk.labelled import on_label_group, outcomes_on_label_group, policy_on_label_group
from afape.walk.outcomes import OwnOutcomes
from afape.walk.table import WalkTable
from afape.walk.tariff import Tariff
from afape.walk.walker import WalkOptions, exact_walk, walk


class Half:
    """An outcome of the user with limits."""

    limits = (-1.0, 4.0)

    def __call__(self, values, acquired, labels):
        return 1 + np.nan_to_num(values).sum(axis=1) / 100 + labels


OWN = OwnOutcomes({"half": Half(), "taken": lambda values, acquired, labels: acquired.sum(axis=1)})


def labelled_world(gaps):
    world = World(4, n_groups=4, n_levels=3, n_classes=3)
    data = world.draw(200, 0)
    if not gaps:
        return world, data
    keep = np.column_stack([data.recorded, np.arange(len(data)) % 3 > 0])
    return world, with_label_group(data.hide(keep))


def ground_of(world, data, own=OWN):
    return Ground.recorded(
        data,
        policy_on_label_group(world.policy, data),
        on_label_group(world.classifier, data),
        predicts=True,
        outcomes=outcomes_on_label_group(own, data),
    )


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("gaps", [False, True], ids=["every label", "labels with gaps"])
def test_parts_at_their_prices_are_costs_line_by_line(gaps, largest):
    world, data = labelled_world(gaps)
    table = WalkTable.concatenate(list(walk(ground_of(world, data))))
    tariff = Tariff.of(data, outcomes_on_label_group(OWN, data))
    costs, parts = CostColumns(tariff, data.labels, largest), PartColumns.of(data, len(OWN), open=True)
    price = parts.priced(tariff, largest)
    states, edges, rows = np.arange(len(table.row)), np.arange(len(table.edge_state)), np.array([3, 1, 3])
    for broken_down, plain in (
        (parts.decisions(table), costs.decisions(table)),
        (parts.taken(table, edges), costs.taken(table, edges)),
        (parts.stops(table, states), costs.stops(table, states)),
        *zip(parts.lost(table, edges), costs.lost(table, edges), strict=True),
        *zip(parts.whole(rows), costs.whole(rows), strict=True),
    ):
        assert_allclose(dense(broken_down) @ price, plain, atol=1e-12)
        assert np.abs(plain).max() > 0 or not largest
    stops = dense(parts.stops(table, states))
    assert not stops[:, ~parts.at_stop].any()
    assert parts.at_stop.sum() == 9 + len(parts.costly) + 1 + len(OWN)
    asked = table.predicted >= 0
    assert_array_equal(stops[asked][:, parts.cells].sum(axis=1), 1.0)
    count = table.acquired[:, parts.costly].sum(axis=1)
    assert_array_equal(stops[asked][:, parts.counts].argmax(axis=1), count[asked])


@pytest.mark.parametrize("largest", [False, True])
def test_runs_into_unsupported_sets_cost_what_is_left(largest):
    world, data = labelled_world(False)
    table = WalkTable.concatenate(list(walk(ground_of(world, data))))
    edges = np.flatnonzero(table.edge_group != FREE)[::7]
    ahead, stop = CostColumns(Tariff.of(data), data.labels, largest).lost(table, edges)
    choose = np.max if largest else np.min
    for k, edge in enumerate(edges):
        state = table.edge_state[edge]
        left = ~table.acquired[state] & (np.arange(4) != table.edge_group[edge])
        assert_allclose(ahead[k, 0], world.prices[left].sum() if largest else 0.0)
        assert_allclose(stop[k, 1], choose(world.costs[data.labels[table.row[state]]]))


def test_a_label_with_gaps_is_acquired_where_the_policy_stops():
    """The classifier sees no label; where a run stops, the code is K times the true label plus the prediction."""
    world, data = labelled_world(True)
    labels, n_columns = data.original.labels, data.original.values.shape[1]
    ground = ground_of(world, data)
    table = WalkTable.concatenate(list(walk(ground)))
    stops = np.flatnonzero(table.stop_flow > 0)
    assert len(stops) > 50
    assert table.acquired[stops, -1].all()
    assert (labels[table.row[stops]] >= 0).all()
    own = table.acquired[stops, :-1]
    seen = np.where(own[:, data.original.column_group], data.original.values[table.row[stops]], np.nan)
    predicted = world.classifier.predict(seen, own)
    assert_array_equal(table.predicted[stops], 3 * labels[table.row[stops]] + predicted)
    expected = 1 + np.nan_to_num(seen).sum(axis=1) / 100 + labels[table.row[stops]]
    assert_allclose(table.outcomes[stops], np.column_stack([expected, own.sum(axis=1)]))
    half = outcomes_on_label_group(OWN, data).functions["half"]
    assert half.limits == Half.limits
    unknown = np.full((2, n_columns + 3), np.nan)
    unknown[1, n_columns:] = [0.0, 0.0, 1.0]
    assert_array_equal(half(unknown, np.zeros((2, 5), dtype=bool), np.zeros(2, dtype=int)), [0.0, 3.0])


def test_tables_are_joined_and_rows_left_out():
    world = WORLDS[1]
    ground = Ground.recorded(world.draw(60, 0), world.policy, world.classifier)
    pieces = list(walk(ground, None, WalkOptions(chunk_lines=20)))
    whole = WalkTable.concatenate(pieces)
    assert len(pieces) > 2
    assert_array_equal(whole.row[whole.edge_state], np.concatenate([p.row[p.edge_state] for p in pieces]))
    inside = whole.edge_child >= 0
    assert_array_equal(inside, np.concatenate([p.edge_child >= 0 for p in pieces]))
    assert_array_equal(whole.depth[whole.edge_child[inside]], whole.depth[whole.edge_state[inside]] + 1)
    assert_array_equal(whole.row[whole.edge_child[inside]], whole.row[whole.edge_state[inside]])
    assert whole.without(np.array([], dtype=int)) is whole
    rest = whole.without(np.array([0, 5]))
    assert set(whole.row) - set(rest.row) == {0, 5}
    assert_allclose(rest.reach.sum(), whole.reach[~np.isin(whole.row, [0, 5])].sum())
    kept = rest.edge_child >= 0
    assert_array_equal(rest.row[rest.edge_child[kept]], rest.row[rest.edge_state[kept]])


@pytest.mark.parametrize("most", [1, 2, 5, 9])
def test_an_exact_walk_leaves_rows_with_too_many_states_out(most):
    world = World(4, n_groups=4, n_levels=3)
    ground = Ground.recorded(world.draw(120, 0), world.policy, world.classifier)
    rows = np.arange(120)
    whole, none = exact_walk(ground, rows, 10**6, 10**9)
    states = np.bincount(whole.row, minlength=120)
    assert len(none) == 0
    table, lost = exact_walk(ground, rows, most, 10**9)
    assert_array_equal(np.sort(lost), np.flatnonzero(states > most))
    assert_array_equal(np.bincount(table.row, minlength=120), np.where(states > most, 0, states))
    expected = whole.without(lost)
    for column in ("row", "depth", "reach", "stop_flow", "edge_state", "edge_group", "edge_flow", "edge_child"):
        assert_array_equal(getattr(table, column), getattr(expected, column), err_msg=column)
    for row in np.flatnonzero(states > most)[:20]:  # a row alone has fewer edges than the limit of states
        assert exact_walk(ground, np.array([row]), int(states[row]) - 1, 10**9)[1].tolist() == [row]


class FewColumns:
    def __init__(self, n):
        self.n = n

    def predict_proba(self, values, acquired):
        return np.full((len(values), self.n), 1.0 / self.n)


@pytest.mark.parametrize(("n", "label"), [(1, None), (2, 2), (1, 1)])
def test_a_score_needs_a_column_for_every_class(n, label):
    scored = dataclasses.replace(afape.brier(FewColumns(n)), label=label)
    with pytest.raises(ValueError, match=f"must have one column per class, but has {n}"):
        scored(np.zeros((2, 1)), np.ones((2, 1), dtype=bool), np.array([0, 1]))
    enough = dataclasses.replace(afape.brier(FewColumns(3)), label=label)
    assert np.isfinite(enough(np.zeros((2, 1)), np.ones((2, 1), dtype=bool), np.array([0, 1]))).all()
