"""CwCF: a Q network whose last actions are the labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import Floats, Ints
from .network_agent import ClassifyingAgent
from .settings import Training

__all__ = ["CwCF"]


class CwCF(ClassifyingAgent):
    r"""Classification with costly features (Janisch, Pevný and Lisý 2020): one network acquires and classifies.

    The actions are the groups and, instead of stopping, the K labels. Predicting label k costs C[y, k]. The records give
    this cost for every label in every state, so all K values are learned at once. For a group the target is

    .. math:: Q(x_S, S, a) \leftarrow c_a + \bar Q(x_{S+a}, S + a, b^*), \qquad
              b^* = \arg\min_{b \notin S + a} Q(x_{S+a}, S + a, b)

    (double Q learning). The outputs are a state value plus advantages (dueling). The values of the labels are learned
    first, on random episodes (pretraining). The agent stops if a label is the cheapest action. It is also a classifier:
    ``afape.evaluate(data, agent, agent, ...)``.

    Parameters
    ----------
    training, epsilon, price_multiplier, targets, random_state
        As in `DQN`; the price multiplier is the paper's trade-off parameter. Default training: 60,000 steps, of which the
        first 4,000 are pretraining.

    Attributes
    ----------
    learning_curve_, network_
        As in `DQN`.

    Notes
    -----
    Two features of the paper are omitted. Returns over several steps (Retrace) are not needed, because episodes are short
    and every transition goes into the replay. The action that calls another classifier is what `DQN` does.

    References
    ----------
    J. Janisch, T. Pevný, V. Lisý, "Classification with costly features as a sequential decision-making problem",
    Machine Learning 109 (2020).
    """

    double = True
    dueling = True

    @staticmethod
    def default_training() -> Training:
        """Return the default training: longer than for `DQN`, because the agent also learns to classify."""
        return Training(n_rounds=140, n_steps=400, pretraining=4000)

    @staticmethod
    def n_endings(n_classes: int) -> int:
        """Return K: one output per label."""
        return n_classes

    @staticmethod
    def stop_value(endings: Any) -> Any:
        """Return the value of the cheapest label."""
        return endings.min(axis=1)

    @staticmethod
    def ending_loss(endings: Any, old_endings: Any, batch: Any) -> Any:
        """Sum of squared errors over all labels, whose costs are known."""
        return ((endings - batch.label_costs) ** 2).sum(axis=1)

    @staticmethod
    def codes(endings: Floats, costs: Floats) -> Ints:
        """Return the cheapest label in each state."""
        return np.asarray(endings.argmin(axis=1), dtype=np.intp)
