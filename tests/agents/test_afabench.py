"""Methods written to the published protocol of AFABench."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from classics import Knower, telling_world
from numpy.testing import assert_allclose, assert_array_equal

import afape
from afape.agents import StepBudget, classifier_from_afabench, from_afabench


class Method:
    """Acquires b (selection 1) where a = 1 and it is not observed; keeps what it was given."""

    def act(self, masked_features, feature_mask, selection_mask=None, label=None, feature_shape=None):
        self.given = (masked_features, feature_mask, selection_mask, label, feature_shape)
        wants = (masked_features[:, 0] == 1) & ~feature_mask[:, 1]
        return torch.where(wants, 2, 0)[:, None]

    def predict(self, masked_features, feature_mask, label=None, feature_shape=None):
        assert label is None
        both = masked_features[:, 0] * masked_features[:, 1]
        return torch.stack([1 - both, both], dim=1)


class Selecting:
    """Older spelling of the same protocol, without a classifier."""

    def select(self, masked_features, feature_mask, selection_mask=None, label=None, feature_shape=None):
        return Method().act(masked_features, feature_mask)


class Answering:
    """Answers the same whatever it is asked."""

    def __init__(self, answer):
        self.answer = answer

    def act(self, masked_features, feature_mask, selection_mask=None, label=None, feature_shape=None):
        return self.answer(len(masked_features))


class Network(torch.nn.Module):
    """Drops out, as torch modules do in training mode."""

    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout(0.5)

    def act(self, masked_features, feature_mask, selection_mask=None, label=None, feature_shape=None):
        return (self.dropout(torch.ones(len(masked_features), 1)) > 0).long() * 3


START = np.array([[True, False, False]])


ABC = ["a", "b", "c"]
NAMED = {"selections": ABC, "features": ABC}


def states(n=40, start=START):
    data = telling_world(n)
    acquired = np.repeat(start, n, axis=0)
    return np.where(acquired[:, data.column_group], data.values, np.nan), acquired


def ask(method, n=40, **arguments):
    bound = from_afabench(method, **NAMED | arguments).bind(telling_world(n).problem)
    return bound.probabilities(*states(n))


def classifier_of(method, **arguments):
    return classifier_from_afabench(method, telling_world(40), **{"features": ABC} | arguments)


@pytest.mark.parametrize("method", [Method(), Selecting()], ids=["act", "select"])
def test_selections_become_actions(method):
    p = ask(method)
    assert_array_equal(p.argmax(axis=1), np.where(telling_world(40).values[:, 0] == 1, 1, 3))
    assert_array_equal(p.max(axis=1), 1.0)


def test_the_method_sees_zeros_and_masks_and_never_the_label():
    method = Method()
    ask(method)
    features, mask, selected, label, shape = method.given
    a = telling_world(40).values[:, 0]
    assert features.dtype == torch.float32
    assert_array_equal(features.numpy(), np.column_stack([a, np.zeros((40, 2))]))
    assert_array_equal(mask.numpy(), np.repeat(START, 40, axis=0))
    assert_array_equal(selected.numpy(), np.repeat(START, 40, axis=0))
    assert label is None
    assert tuple(shape) == (3,)


def test_true_cost_with_its_own_classifier():
    complete = telling_world()
    complete = complete.take(complete.complete)
    method = Method()
    adapted = afape.true_cost(complete, from_afabench(method, **NAMED), classifier_of(method))
    a = complete.values[:, 0]
    assert adapted["acquisition"].value == pytest.approx(a.mean(), rel=1e-12)
    assert adapted["misclassification"].value == 0.0
    budget = afape.true_cost(complete, StepBudget(from_afabench(method, **NAMED), 0), classifier_of(method))
    assert budget["acquisition"].value == 0.0
    assert budget["misclassification"].value == pytest.approx(10 * complete.labels.mean(), rel=1e-12)
    result = afape.evaluate(
        telling_world(), from_afabench(method, **NAMED), Knower(), missingness=afape.MCAR(), estimators=["blocking"]
    )
    assert result["blocking"]["acquisition"].value < adapted["acquisition"].value


def test_a_separate_classifier_is_called():
    values, acquired = np.array([[1.0, 1.0, np.nan], [1.0, 0.0, np.nan]]), np.array([[True, True, False]] * 2)

    def separate(masked_features, feature_mask, label=None, feature_shape=None):
        return Method().predict(masked_features, feature_mask, label, feature_shape)

    assert_array_equal(classifier_from_afabench(separate).predict(values, acquired), [1, 0])
    with pytest.raises(
        ValueError, match=r"scores of shape \(batch, n_classes\), here \(2, n_classes\), but returned \(2,\)"
    ):
        classifier_from_afabench(lambda **given: torch.zeros(2)).predict(values, acquired)
    with pytest.raises(TypeError, match=r"'classifier' must have predict or be callable"):
        classifier_from_afabench(3)


def test_selections_can_be_mapped_to_groups():
    third = Answering(lambda n: torch.full((n, 1), 3))
    assert_array_equal(ask(third).argmax(axis=1), 2)
    assert_array_equal(ask(third, selections=["a", "c", "b"]).argmax(axis=1), 1)
    assert_array_equal(ask(third, selections=[0, 2, 1, 1]).argmax(axis=1), 1)
    with pytest.raises(
        ValueError, match=r"'selections' must name groups, but 'd' is not a group. The groups are \['a', 'b', 'c'\]"
    ):
        ask(third, selections=["a", "b", "d"])
    with pytest.raises(ValueError, match=r"'selections' must name groups, but 3 is not a group"):
        ask(third, selections=[0, 1, 3])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda n: torch.full((n, 1), 4),
            "0 to stop or 1 to 3 for a selection, but returned 4, which is outside this range",
        ),
        (lambda n: torch.full((n, 1), -1), "but returned -1"),
        (
            lambda n: torch.full((n,), 1),
            r"whole numbers of shape \(batch, 1\), here \(16, 1\), but returned int64 of shape \(16,\)",
        ),
        (lambda n: torch.ones(n, 1), "whole numbers of shape .* but returned float32"),
        (
            lambda n: torch.full((n, 1), 1),
            "must not select an acquired group, but selects 'a' again in 40 of 40 states",
        ),
    ],
)
def test_refuses_answers_outside_the_protocol(answer, message):
    with pytest.raises(ValueError, match=message):
        ask(Answering(answer))


def test_what_is_selected_again_may_mean_to_stop():
    assert_array_equal(ask(Answering(lambda n: torch.full((n, 1), 1)), repeated="stop").argmax(axis=1), 3)


def test_calls_that_disagree_are_told():
    rng = np.random.default_rng(0)
    drawing = Answering(lambda n: torch.as_tensor(rng.integers(0, 2, (n, 1)) * 2))
    with pytest.warns(
        afape.warnings.StochasticMethodWarning, match=r"Answering with the same tensors disagree in .* n_draws=32"
    ) as told:
        ask(drawing)
    assert len(told) == 1
    assert "training mode" not in str(told[0].message)


def test_training_mode_is_named_as_a_reason():
    torch.manual_seed(0)
    with pytest.warns(afape.warnings.StochasticMethodWarning, match=r"The method is in training mode; call eval\(\)"):
        ask(Network())

    class Holding(Answering):
        def __init__(self):
            self.network = Network()
            super().__init__(lambda n: self.network.act(torch.zeros(n, 3), None))

    with pytest.warns(afape.warnings.StochasticMethodWarning, match=r"Its 'network' is in training mode"):
        ask(Holding())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(ask(Network().eval()).argmax(axis=1), 2)


def test_several_draws_become_probabilities():
    rng = np.random.default_rng(0)
    drawing = Answering(lambda n: torch.as_tensor((rng.random((n, 1)) < 0.25) * 2))
    p = ask(drawing, n_draws=400)  # no warning: probabilities are what was asked for
    assert_array_equal(p[:, [0, 2]], 0.0)
    assert abs(p[:, 1] - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 400)


def test_refuses_bad_arguments():
    with pytest.raises(TypeError, match=r"'method' must be an object with a method act or select"):
        from_afabench(3)
    with pytest.raises(TypeError, match=r"'method' must be an object"):
        from_afabench(Method)
    with pytest.raises(ValueError, match=r"'repeated' must be one of .*'raise', 'stop'.*, but is 'skip'"):
        from_afabench(Method(), repeated="skip")
    with pytest.raises(ValueError, match=r"'n_draws' must be a whole number of at least 1, but is 0"):
        from_afabench(Method(), n_draws=0)


def telling_classes(classes):
    """Records with three labels that are written in this order, and the columns a and b."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    names = np.array(["zero", "one", "two"])
    frame = pd.DataFrame({"a": y.astype(float), "b": rng.normal(size=60), "y": names[y]})
    problem = afape.Problem({"b": ["b"], "a": ["a"]}, {"a": 1.0}, "y", 20.0, classes)
    return afape.Retrospective(frame, problem)


def reading_a(masked_features, feature_mask, label=None, feature_shape=None):
    """Logits of zero, one, two; expects the features a, b."""
    return 5.0 * torch.nn.functional.one_hot(masked_features[:, 0].clamp(0, 2).long(), 3)


ALL = afape.AcquireAll()
ORDERS = [None, ["zero", "one", "two"], ["two", "zero", "one"]]


@pytest.mark.parametrize("order", ORDERS)
def test_named_classes_and_features_are_put_in_the_order_of_the_data(order):
    data = telling_classes(order)
    named = {"classes": ["zero", "one", "two"], "features": ["a", "b"]}
    judge = classifier_from_afabench(reading_a, data, **named)
    assert afape.true_cost(data, ALL, judge)["misclassification"].value == 0.0
    everything = data.values, data.recorded
    p = judge.predict_proba(*everything)
    assert_allclose(p[np.arange(60), data.labels], np.exp(5) / (np.exp(5) + 2), rtol=1e-6)
    assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    found = afape.true_parts(data, ALL, judge, outcomes={"brier": afape.brier(judge)})
    assert found.outcomes["brier"].value == pytest.approx(((p - np.eye(3)[data.labels]) ** 2).sum(axis=1).mean())


def test_an_assumed_order_is_told():
    data = telling_classes(None)  # the labels are sorted: one, two, zero
    by_number = classifier_from_afabench(reading_a, features=[1, 0])
    with pytest.warns(
        afape.warnings.AssumedOrderWarning, match=r"scores as the labels \['one', 'two', 'zero'\]"
    ) as told:
        wrong = afape.true_cost(data, ALL, by_number)["misclassification"].value
    assert wrong == 20.0
    assert "features" not in str(told[0].message).split("In this order")[1]
    with pytest.warns(afape.warnings.AssumedOrderWarning, match=r"features as the columns \['b', 'a'\]"):
        afape.true_cost(data, ALL, classifier_from_afabench(reading_a))
    plain = classifier_from_afabench(reading_a, classes=["zero", "one", "two"])
    with pytest.raises(ValueError, match=r"has the labels \['zero', 'one', 'two'\], but the data have"):
        afape.true_cost(data, ALL, plain)
    with pytest.warns(afape.warnings.AssumedOrderWarning) as told:
        from_afabench(Method()).bind(telling_world(40).problem)
    text = str(told[0].message)
    assert "its selections as the groups ['a', 'b', 'c']" in text
    assert "its features as the columns ['a', 'b', 'c']" in text


def test_the_number_of_classes_and_selections_is_checked():
    data = telling_classes(ORDERS[1])
    two = classifier_from_afabench(lambda **given: torch.zeros(len(given["feature_mask"]), 2), features=[0, 1])
    with pytest.raises(ValueError, match=r"must return one score per label, 3 here, but returns 2"):
        afape.true_cost(data, ALL, two)
    with pytest.raises(ValueError, match=r"'classes' must be the labels of the data.*\['one', 'two', 'zero'\]"):
        classifier_from_afabench(reading_a, telling_classes(None), classes=["zero", "one"])
    method = Method()
    method.n_selections = 7
    with pytest.raises(ValueError, match=r"Method has 7 selections, but the problem has 3 groups"):
        from_afabench(method, features=ABC).bind(telling_world(40).problem)


def test_features_in_another_order_give_the_same_answers():
    class Turned(Method):
        """Expects c, a, b."""

        def act(self, masked_features, feature_mask, selection_mask=None, label=None, feature_shape=None):
            wants = (masked_features[:, 1] == 1) & ~feature_mask[:, 2]
            return torch.where(wants, 1, 0)[:, None]  # its first selection acquires b

    turned = ask(Turned(), features=["c", "a", "b"], selections=["b", "c", "a"])
    assert_array_equal(turned, ask(Method()))
    assert_array_equal(ask(Turned(), features=[2, 0, 1], selections=[1, 2, 0]), turned)
    with pytest.raises(ValueError, match=r"'features' must name columns, but 'd' is not one"):
        ask(Method(), features=["a", "b", "d"])
    with pytest.raises(ValueError, match=r"'features' must name each column once"):
        ask(Method(), features=["a", "b", "b"])


@pytest.mark.parametrize(
    ("scores", "kind", "expected"),
    [
        ([[0.2, 0.8], [0.5, 0.5]], None, [[0.2, 0.8], [0.5, 0.5]]),
        ([[0.0, 0.0], [0.0, np.log(3)]], None, [[0.5, 0.5], [0.25, 0.75]]),
        ([[0.2, 0.8]], "logits", [[1 / (1 + np.exp(0.6)), 1 / (1 + np.exp(-0.6))]]),
    ],
)
def test_scores_become_probabilities(scores, kind, expected):
    judge = classifier_from_afabench(lambda **given: torch.tensor(scores), output_kind=kind)
    values = np.zeros((len(scores), 1))
    assert_allclose(judge.predict_proba(values, np.ones((len(scores), 1), dtype=bool)), expected, rtol=1e-6)


def test_scores_that_may_be_either_must_be_declared():
    mixed = classifier_from_afabench(lambda **given: torch.tensor([[0.2, 0.8], [3.0, -1.0]]))
    state = np.zeros((2, 1)), np.ones((2, 1), dtype=bool)
    with pytest.raises(ValueError, match=r"sum to 1 in 1 of 2 states only.*Pass output_kind="):
        mixed.predict_proba(*state)
    declared = classifier_from_afabench(lambda **given: torch.tensor([[2.0, 0.8]] * 2), output_kind="probabilities")
    with pytest.raises(ValueError, match=r"says that its scores are probabilities, but in 2 of 2 states"):
        declared.predict_proba(*state)

    class Saying:
        output_kind = "logits"

        def predict(self, **given):
            return torch.tensor([[0.2, 0.8]] * 2)

    assert classifier_from_afabench(Saying()).predict_proba(*state)[0, 1] == pytest.approx(1 / (1 + np.exp(-0.6)))
    broken = classifier_from_afabench(lambda **given: torch.full((2, 2), torch.nan))
    with pytest.raises(ValueError, match=r"must return finite scores"):
        broken.predict(*state)


def test_a_method_that_needs_the_label_is_refused_by_name():
    class Cheating(Method):
        def act(self, masked_features, feature_mask, selection_mask=None, label=None, feature_shape=None):
            return 1 + label.argmax(dim=-1, keepdim=True)

    with pytest.raises(TypeError, match=r"Cheating needs the true label, which an agent in use does not have"):
        ask(Cheating())

    def oracle(masked_features, feature_mask, label=None, feature_shape=None):
        assert label is not None, "label required"

    with pytest.raises(TypeError, match=r"oracle needs the true label"):
        classifier_from_afabench(oracle).predict(*states())

    class Broken(Method):
        def act(self, **given):
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        ask(Broken())


def test_answers_with_gradients_are_detached():
    class Learning(Method):
        weight = torch.ones(1, requires_grad=True)

        def action_probabilities(self, masked_features, feature_mask, **given):
            with torch.enable_grad():
                return torch.tensor([[0.25, 0.0, 0.75, 0.0]]).repeat(len(feature_mask), 1) * self.weight

        def predict(self, masked_features, feature_mask, label=None, feature_shape=None):
            with torch.enable_grad():
                return super().predict(masked_features, feature_mask) * self.weight

    assert_array_equal(ask(Learning()), np.tile([0.0, 0.75, 0.0, 0.25], (40, 1)))
    assert classifier_of(Learning()).predict(*states()).shape == (40,)


def test_the_calls_that_are_repeated_have_a_limit():
    class Counting(Method):
        calls = 0

        def act(self, *args, **given):
            Counting.calls += 1
            return super().act(*args, **given)

    bound = from_afabench(Counting(), **NAMED).bind(telling_world(40).problem)
    for _ in range(42):
        bound.probabilities(*states())
    assert Counting.calls == 42 + 8


def test_free_groups_are_shown_as_done_or_open():
    method = Method()
    ask(method, free="open")
    assert_array_equal(method.given[2].numpy(), np.zeros((40, 3), dtype=bool))
    ask(method)
    assert_array_equal(method.given[2].numpy(), np.repeat(START, 40, axis=0))


def test_device_and_shape_of_the_tensors():
    class Placed(Method):
        device = torch.device("meta")

        def act(self, masked_features, feature_mask, **given):
            self.seen = masked_features.device, masked_features.shape, given["feature_shape"]
            return torch.zeros((len(masked_features), 1), dtype=torch.long)

    method = Placed()
    ask(method)
    assert method.seen[0].type == "meta"
    ask(method, device="cpu", feature_shape=(3, 1))
    assert method.seen[0].type == "cpu"
    assert method.seen[1][1:] == method.seen[2] == (3, 1)
    with pytest.raises(ValueError, match=r"'feature_shape' must have as many entries as there are features, 3"):
        ask(method, feature_shape=[2, 2])
    with pytest.raises(ValueError, match=r"'device' must be a torch device.*'nowhere'"):
        from_afabench(method, device="nowhere")


def test_given_probabilities_and_bad_ones():
    def uniform(masked_features, feature_mask, selection_mask=None, label=None, feature_shape=None):
        closed = torch.nn.functional.pad(selection_mask, (1, 0))
        p = (~closed).float()
        return p / p.sum(dim=1, keepdim=True)

    assert_allclose(ask(Method(), probabilities=uniform), np.tile([0, 1 / 3, 1 / 3, 1 / 3], (40, 1)), rtol=1e-6)
    with pytest.raises(ValueError, match=r"must have shape \(batch, 1 \+ selections\), here \(40, 4\)"):
        ask(Method(), probabilities=lambda **given: torch.ones(40, 3))
    with pytest.raises(ValueError, match=r"must not be negative and sum to 1"):
        ask(Method(), probabilities=lambda **given: torch.ones(40, 4))
    again = torch.tensor([[0.4, 0.6, 0.0, 0.0]])
    with pytest.raises(ValueError, match=r"selects 'a' again in 40 of 40 states"):
        ask(Method(), probabilities=lambda **given: again.repeat(40, 1))
    stopped = ask(Method(), probabilities=lambda **given: again.repeat(40, 1), repeated="stop")
    assert_allclose(stopped[:, 3], 1.0)


def test_a_soft_budget_is_set_before_each_answer():
    class Soft(Method):
        def set_cost_param(self, cost_param):
            self.cost_param = cost_param

        def act(self, masked_features, feature_mask, **given):
            return torch.full((len(masked_features), 1), 2 if self.cost_param < 1 else 0)

    method = Soft()
    cheap, dear = (from_afabench(method, **NAMED, cost_param=c).bind(telling_world(40).problem) for c in (0.5, 2.0))
    for _ in range(2):
        assert_array_equal(cheap.probabilities(*states()).argmax(axis=1), 1)
        assert_array_equal(dear.probabilities(*states()).argmax(axis=1), 3)
    with pytest.raises(TypeError, match=r"'cost_param' must be left out: Method has no method set_cost_param"):
        from_afabench(Method(), cost_param=1.0)


def test_a_saved_method_comes_back_with_the_same_answers(tmp_path):
    data = telling_world(40)
    for thing in (from_afabench(Method(), **NAMED), classifier_of(Method())):
        afape.save(thing, tmp_path / "thing", data.problem, unsafe=True)
        back = afape.load(tmp_path / "thing", data.problem, unsafe=True)
        name = "predict" if hasattr(thing, "predict") else "probabilities"
        first, second = (t.bind(data.problem) if hasattr(t, "bind") else t for t in (thing, back))
        assert_array_equal(getattr(first, name)(*states()), getattr(second, name)(*states()))
    with pytest.raises(afape.files.StorageError):
        afape.load(tmp_path / "thing", data.problem)
