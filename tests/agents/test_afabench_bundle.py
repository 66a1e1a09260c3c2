"""AFABench objects in one call: costs, errors and CSV files are those of its evaluation loop."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from afabench_protocol import N_CLASSES, N_FEATURES, Dataset, Drawing, Greedy, Pairs, Start, Static, evaluated, network
from numpy.testing import assert_allclose, assert_array_equal

import afape
from afape.agents import CostBudget, from_afabench_bundle

COLUMNS = """prev_selections_performed action_performed builtin_predicted_class external_predicted_class true_class
    accumulated_cost idx forced_stop eval_seed eval_hard_budget""".split()  # noqa: SIM905


class Separate:
    """A separate classifier that returns logits and says so."""

    output_kind = "logits"

    def __init__(self, seed):
        self.inner = network(2 * N_FEATURES, N_CLASSES, seed)

    def __call__(self, masked_features, feature_mask, label=None, feature_shape=None):
        return self.inner(torch.cat([masked_features, feature_mask.float()], dim=1))


@pytest.mark.parametrize("hard_budget", [None, 1.1])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["greedy", "greedy in groups", "static"])
def test_costs_and_errors_are_those_of_the_loop(kind, seed, hard_budget):
    dataset = Dataset(seed=seed)
    unmasker = Pairs() if kind == "greedy in groups" else None
    method = Static(seed) if kind == "static" else Greedy(seed, n_selections=3 if unmasker else N_FEATURES)
    separate = None if kind == "static" else Separate(seed)
    bundle = from_afabench_bundle(method, dataset, separate, unmasker=unmasker)
    policy = bundle.policy if hard_budget is None else CostBudget(bundle.policy, hard_budget)
    paid, wrong, steps = evaluated(method, dataset, separate or method.predict, unmasker, hard_budget=hard_budget)
    truth = afape.true_cost(bundle.data, policy, bundle.classifier)
    assert truth["acquisition"].value == pytest.approx(paid.mean(), rel=1e-6)
    assert truth["misclassification"].value == pytest.approx(wrong.mean(), rel=1e-9)
    assert len(set(paid)) > 1 or kind == "static" or hard_budget or seed == 1
    found = bundle.episodes(hard_budget)
    assert list(found.columns) == COLUMNS
    column = "builtin_predicted_class" if separate is None else "external_predicted_class"
    theirs = pd.DataFrame(steps, columns=["idx", "before", "action", "predicted", "paid", "forced"])
    assert_array_equal(found["idx"], theirs["idx"])
    assert_array_equal(found["action_performed"], theirs["action"])
    assert_array_equal(found[column].astype(int), theirs["predicted"])
    assert_allclose(found["accumulated_cost"], theirs["paid"], rtol=1e-6, atol=1e-9)
    assert_array_equal(found["forced_stop"], theirs["forced"])
    assert [sorted(done) for done in found["prev_selections_performed"]] == theirs["before"].tolist()


def test_static_methods_get_batches_of_one_size():
    method, dataset = Static(), Dataset(30)
    bundle = from_afabench_bundle(method, dataset)
    policy = bundle.policy.bind(bundle.problem)
    acquired = np.zeros((30, N_FEATURES), dtype=bool)
    acquired[10:, 3] = acquired[20:, 0] = True
    values = np.where(acquired, bundle.data.values, np.nan)
    assert_array_equal(policy.probabilities(values, acquired).argmax(axis=1), np.repeat([3, 0, 4], 10))
    one_by_one = [bundle.classifier.predict(values[i : i + 1], acquired[i : i + 1])[0] for i in range(30)]
    assert_array_equal(bundle.classifier.predict(values, acquired), one_by_one)


@pytest.mark.parametrize("seed", range(3))
def test_features_known_from_the_start_are_free_or_paid_again(seed):
    dataset, method = Dataset(seed=seed), Greedy(seed)
    paid, wrong, _ = evaluated(method, dataset, method.predict, initial=[1, 3])
    again = from_afabench_bundle(method, dataset, initial=Start(1, 3), free="again")
    truth = afape.true_cost(again.data, again.policy, again.classifier)
    assert truth["acquisition"].value == pytest.approx(paid.mean(), rel=1e-6)
    assert truth["misclassification"].value == pytest.approx(wrong.mean(), rel=1e-9)
    done = from_afabench_bundle(method, dataset, initial=[1, 3])
    assert_array_equal(done.problem.free, [False, True, False, True, False])
    assert afape.true_cost(done.data, done.policy, done.classifier)["acquisition"].value < paid.mean()


@pytest.mark.parametrize("seed", range(3))
def test_a_method_that_draws_costs_what_its_probabilities_cost(seed):
    dataset, method = Dataset(60, seed), Drawing(seed)
    separate = Separate(seed)
    bundle = from_afabench_bundle(method, dataset, separate)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        truth = afape.true_cost(bundle.data, bundle.policy, bundle.classifier)
    torch.manual_seed(seed)
    paid, wrong, _ = evaluated(method, dataset, separate, n_runs=8)
    total = paid + wrong
    # Runs of one row are drawn independently, so the error of their mean is that within rows.
    within = total.reshape(-1, 8).std(axis=1, ddof=1)
    error = np.sqrt((within**2 / 8).sum()) / len(within)
    assert abs(total.mean() - truth["total"].value) < 4 * error
    values, acquired = bundle.data.values, np.zeros((60, N_FEATURES), dtype=bool)
    p = bundle.policy.bind(bundle.problem).probabilities(np.full_like(values, np.nan), acquired)
    nothing = {"feature_mask": torch.zeros(1, N_FEATURES), "selection_mask": torch.zeros(1, N_FEATURES).bool()}
    with torch.no_grad():
        exact = method.action_probabilities(torch.zeros(1, N_FEATURES), **nothing)[0].numpy()
    assert_allclose(p[0], np.roll(exact, -1), atol=1e-6)


def test_a_file_can_be_read_as_theirs(tmp_path):
    bundle = from_afabench_bundle(Greedy(), Dataset(20))
    bundle.episodes(1.1, path=tmp_path / "eval.csv")
    read = pd.read_csv(tmp_path / "eval.csv", na_values=["null"], keep_default_na=False)
    assert list(read.columns) == COLUMNS
    assert read["external_predicted_class"].isna().all()
    assert set(read["eval_hard_budget"]) == {1.1}
    assert read.groupby("idx")["action_performed"].last().eq(0).all()


def test_names_classes_and_gaps():
    dataset = Dataset(40)
    dataset.feature_names = ["e", "d", "c", "b", "a"]
    recorded = np.random.default_rng(0).random((40, N_FEATURES)) < 0.7
    recorded[:, [3, 2]] = recorded[:, [0, 1]]
    bundle = from_afabench_bundle(
        Greedy(n_selections=3),
        dataset,
        unmasker=Pairs(),
        classes=["z", "y", "x"],
        recorded=recorded,
        misclassification_cost=9.0,
    )
    assert bundle.problem.group_names == ("selection 0", "a", "selection 2")
    assert bundle.data.columns == ("e", "b", "a", "d", "c")
    assert bundle.data.classes.tolist() == ["z", "y", "x"]
    assert_array_equal(bundle.data.labels, dataset.labels.argmax(dim=1).numpy())
    assert_array_equal(bundle.data.recorded[:, 1], recorded[:, 4])
    found = afape.evaluate(
        bundle.data, bundle.policy, bundle.classifier, missingness=afape.MCAR(), estimators=["blocking"]
    )
    assert np.isfinite(found["blocking"]["total"].value)
    with pytest.raises(ValueError, match=r"'data' must be complete for episodes, but \d+ of 40 rows have gaps"):
        bundle.episodes()


def test_features_of_more_than_one_axis_keep_their_shape():
    class Flat(Greedy):
        def act(self, masked_features, feature_mask, **given):
            assert masked_features.shape[1:] == feature_mask.shape[1:] == given["feature_shape"] == (N_FEATURES, 1)
            return super().act(masked_features, feature_mask, **given)

    square, line = Dataset(30, shape=(N_FEATURES, 1)), Dataset(30)
    square.costs = line.costs[:, None]
    made = [from_afabench_bundle(m, d) for m, d in ((Flat(), square), (Greedy(), line))]
    first, second = (afape.true_cost(b.data, b.policy, b.classifier)["total"].value for b in made)
    assert first == second


def test_a_soft_budget_is_swept_over_one_method():
    bundle = from_afabench_bundle(Greedy(), Dataset(40))

    def family(threshold):
        return from_afabench_bundle(bundle.policy.method, Dataset(40), cost_param=threshold).policy

    curve = afape.budget_curve(bundle.data, family, bundle.classifier, [0.0, 1.04, 5.0], kind="soft")
    paid = curve["acquisition"]["estimate"]
    assert paid[0] == pytest.approx(bundle.problem.prices.sum())
    assert paid[0] > paid[1] > paid[2] == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"dataset": 3}, TypeError, r"'dataset' must be an object with get_all_data"),
        ({"initial": [9]}, ValueError, r"'initial' must hold numbers of features from 0 to 4"),
        ({"initial": [0], "unmasker": Pairs()}, ValueError, r"holds some of selection 0"),
        ({"prices": [1.0]}, ValueError, r"'prices' must have one number above 0 per selection, 5"),
        ({"prices": [0.0] * 5}, ValueError, r"name it in 'initial'"),
        ({"unmasker": 3}, TypeError, r"'unmasker' must have a method unmask"),
        ({"classes": ["a"]}, ValueError, r"'classes' must name 3 classes or more"),
        ({"recorded": np.ones((3, 5))}, ValueError, r"'recorded' must hold True or False"),
        ({"free": "open"}, ValueError, r"'free' must be one of"),
        ({"method": Drawing()}, ValueError, r"'classifier' must be given, because Drawing has no classifier"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        from_afabench_bundle(**{"method": Greedy(), "dataset": Dataset(20)} | arguments)


def test_initializers_that_differ_between_rows_and_overlapping_selections_are_refused():
    class Random:
        def initialize(self, features, label=None, feature_shape=None):
            return torch.rand(features.shape) < 0.5

    with pytest.raises(ValueError, match=r"the same features in every row, but Random does not"):
        from_afabench_bundle(Greedy(), Dataset(20), initial=Random())
    overlapping = Pairs()
    overlapping.held = ((0, 3), (4, 0), (1, 2))
    with pytest.raises(ValueError, match=r"feature 0 is revealed by 2 of 3"):
        from_afabench_bundle(Greedy(), Dataset(20), unmasker=overlapping)
