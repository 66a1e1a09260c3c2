"""JointDQN: a double Q network that also classifies, with an order-free encoding of the acquired groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

from .._arrays import Bools, Floats, Ints
from .network_agent import ClassifyingAgent
from .settings import Training

__all__ = ["JointDQN"]


class JointDQN(ClassifyingAgent):
    r"""Joint active feature acquisition and classification (Shim, Hwang and Yang 2018).

    One network with a shared encoder has two heads: action values Q of the groups and of stopping, and label
    probabilities p. The loss of each visited state is

    .. math:: L = -\log p_y(x_S, S) + (Q(x_S, S, stop) - C[y, \hat y])^2
                  + (Q(x_S, S, a) - c_a - \bar Q(x_{S+a}, S + a, b^*))^2

    where :math:`\hat y` is the label of least expected cost under the probabilities of the target network, and :math:`b^*`
    is the action that the network prefers in S + a (double Q learning). So the classifier learns from the sets that the
    agent stops with, and the agent learns how good the classifier is. The agent is also a classifier:
    ``afape.evaluate(data, agent, agent, ...)``.

    The encoder is a sum of one embedding per acquired group, so the order of acquisition does not matter.

    Parameters
    ----------
    training, epsilon, price_multiplier, targets, random_state
        As in `DQN`. Default training: hidden layers of 32 and 16, 64,000 steps, of which the first 8,000 are pretraining.

    Attributes
    ----------
    learning_curve_, network_
        As in `DQN`.

    Notes
    -----
    The paper encodes the set by an LSTM that reads it several times. A sum of embeddings is also order-free and is
    expressive enough for few groups. Stopping costs the cost of the predicted label, not its cross entropy, because the
    former is paid.

    References
    ----------
    H. Shim, S. J. Hwang, E. Yang, "Joint Active Feature Acquisition and Classification with Variable-Size Set Encoding",
    NeurIPS 2018.
    """

    double = True
    sets = True

    @staticmethod
    def default_training() -> Training:
        """Return the default training: longer than for `DQN`, because the agent also learns to classify."""
        return Training(hidden=(32, 16), n_rounds=140, n_steps=400, pretraining=8000)

    @staticmethod
    def n_endings(n_classes: int) -> int:
        """Return 1 + K: stopping, and one logit per label."""
        return 1 + n_classes

    @staticmethod
    def ending_loss(endings: Any, old_endings: Any, batch: Any) -> Any:
        """Cross entropy of the label plus squared error of the stopping cost."""
        import jax

        cross_entropy = -(jax.nn.log_softmax(endings[:, 1:]) * jax.nn.one_hot(batch.label, endings.shape[1] - 1)).sum(
            axis=1
        )
        expected = jax.nn.softmax(old_endings[:, 1:]) @ batch.costs
        cost = (batch.label_costs * jax.nn.one_hot(expected.argmin(axis=1), expected.shape[1])).sum(axis=1)
        return cross_entropy + (endings[:, 0] - cost) ** 2

    @staticmethod
    def codes(endings: Floats, costs: Floats) -> Ints:
        """Return the labels of least expected cost."""
        return np.asarray((softmax(endings[:, 1:], axis=1) @ costs).argmin(axis=1), dtype=np.intp)

    def predict_proba(self, values: Floats, acquired: Bools) -> Floats:
        """Probability of each label, shape (n, K)."""
        return np.asarray(softmax(self._outputs(values, acquired)[:, self.network_.shape.n_groups + 1 :], axis=1))
