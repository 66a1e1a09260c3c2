"""Joint learning: a double Q network that also classifies, with an order-free encoding of what was acquired."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Bools, Floats, Ints
from .classifying import ClassifyingAgent
from .training import Training

__all__ = ["JointDQN"]


class JointDQN(ClassifyingAgent):
    r"""Joint active feature acquisition and classification (Shim, Hwang and Yang 2018).

    One network with a shared encoder has two heads: action values Q of the groups and of stopping, and label
    probabilities p. Each state that the episodes meet gives

    .. math:: L = -\log p_y(x_S, S) + (Q(x_S, S, stop) - C[y, \hat y])^2
                  + (Q(x_S, S, a) - c_a - \bar Q(x_{S+a}, S + a, b^*))^2

    with :math:`\hat y` the label of least expected cost under the target network's probabilities and :math:`b^*` the action
    that the network prefers in S + a (double Q learning). So the classifier learns from the sets that the agent stops
    with, and the agent from what the classifier can do. It is a classifier itself: ``afape.evaluate(data, agent, agent,
    ...)``.

    The encoder is the same whatever the order of acquisition: a sum of one embedding per acquired group.

    Parameters
    ----------
    training, epsilon, price_multiplier, targets, random_state
        As of `DQN`. Default training: hidden layers of 32 and 16, 64,000 steps, the first 8,000 of them pretraining.

    Attributes
    ----------
    learning_curve_, network_
        As of `DQN`.

    Notes
    -----
    The paper encodes the set by an LSTM that reads it several times; a sum of embeddings is order-free as well and as
    expressive for the few groups here. Stopping costs what the predicted label costs, not its cross entropy, because that
    is what is paid.

    References
    ----------
    H. Shim, S. J. Hwang, E. Yang, "Joint Active Feature Acquisition and Classification with Variable-Size Set Encoding",
    NeurIPS 2018.
    """

    double = True
    sets = True

    @staticmethod
    def default_training() -> Training:
        """Longer than for a `DQN`, whose classifier is trained already."""
        return Training(hidden=(32, 16), n_rounds=140, n_steps=400, pretraining=8000)

    @staticmethod
    def n_endings(n_classes: int) -> int:
        """Stopping, and one log probability per label."""
        return 1 + n_classes

    @staticmethod
    def ending_loss(endings: Any, old_endings: Any, batch: Any) -> Any:
        """Cross entropy of the label, and squared error of what stopping costs."""
        import jax

        cross_entropy = -(jax.nn.log_softmax(endings[:, 1:]) * jax.nn.one_hot(batch.label, endings.shape[1] - 1)).sum(
            axis=1
        )
        expected = jax.nn.softmax(old_endings[:, 1:]) @ batch.costs
        cost = (batch.label_costs * jax.nn.one_hot(expected.argmin(axis=1), expected.shape[1])).sum(axis=1)
        return cross_entropy + (endings[:, 0] - cost) ** 2

    @staticmethod
    def codes(endings: Floats, costs: Floats) -> Ints:
        """Labels of least expected cost."""
        return np.asarray((_softmax(endings[:, 1:]) @ costs).argmin(axis=1), dtype=np.intp)

    def predict_proba(self, values: Floats, acquired: Bools) -> Floats:
        """Probability of each label, shape (n, K)."""
        return _softmax(self._outputs(values, acquired)[:, self.network_.layout.n_groups + 1 :])


def _softmax(logits: Floats) -> Floats:
    likelihood = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(likelihood / likelihood.sum(axis=1, keepdims=True))
