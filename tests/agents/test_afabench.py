"""Methods written to the published protocol of AFABench."""

import warnings

import numpy as np
import pytest
import torch
from classics import Knower, telling_world
from numpy.testing import assert_array_equal

import afape
from afape.agents.afabench import classifier_from_afabench, from_afabench
from afape.agents.builtin import StepBudget


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


def ask(method, n=40, **arguments):
    data = telling_world(n)
    acquired = np.repeat(START, n, axis=0)
    values = np.where(acquired[:, data.column_group], data.values, np.nan)
    return from_afabench(method, **arguments).bind(data.problem).probabilities(values, acquired)


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
    adapted = afape.true_cost(complete, from_afabench(method), classifier_from_afabench(method))
    a = complete.values[:, 0]
    assert adapted["acquisition"].value == pytest.approx(a.mean(), rel=1e-12)
    assert adapted["misclassification"].value == 0.0
    budget = afape.true_cost(complete, StepBudget(from_afabench(method), 0), classifier_from_afabench(method))
    assert budget["acquisition"].value == 0.0
    assert budget["misclassification"].value == pytest.approx(10 * complete.labels.mean(), rel=1e-12)
    result = afape.evaluate(
        telling_world(), from_afabench(method), Knower(), missingness=afape.MCAR(), estimators=["blocking"]
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
            r"whole numbers of shape \(batch, 1\), here \(40, 1\), but returned int64 of shape \(40,\)",
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
