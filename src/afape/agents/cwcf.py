"""Classification with costly features: a Q network whose last actions are the labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Floats, Ints
from .classifying import ClassifyingAgent
from .training import Training

__all__ = ["CwCF"]


class CwCF(ClassifyingAgent):
    r"""Classification with costly features (Janisch, Pevný and Lisý 2020): one network acquires and classifies.

    The actions are the groups and, in place of stopping, the K labels. Naming label k costs C[y, k], which the records
    know for every label in every state, so that all K values are learned at once; a group costs

    .. math:: Q(x_S, S, a) \leftarrow c_a + \bar Q(x_{S+a}, S + a, b^*), \qquad
              b^* = \arg\min_{b \notin S + a} Q(x_{S+a}, S + a, b)

    (double Q learning). The outputs are a state value plus advantages (dueling), and the values of the labels are learned
    on random episodes before those of the groups (pretraining). The agent stops where a label is the cheapest action, and
    is a classifier itself: ``afape.evaluate(data, agent, agent, ...)``.

    Parameters
    ----------
    training, epsilon, price_multiplier, targets, random_state
        As of `DQN`; the price multiplier is the paper's trade-off parameter. Default training: 60,000 steps, the first
        4,000 of them pretraining.

    Attributes
    ----------
    learning_curve_, network_
        As of `DQN`.

    Notes
    -----
    Two parts of the paper are left out: returns over several steps (Retrace), because episodes are short and each
    transition is in the replay anyway, and the action that hands over to another classifier, which is what `DQN` does.

    References
    ----------
    J. Janisch, T. Pevný, V. Lisý, "Classification with costly features as a sequential decision-making problem",
    Machine Learning 109 (2020).
    """

    double = True
    dueling = True

    @staticmethod
    def default_training() -> Training:
        """Longer than for a `DQN`, whose classifier is trained already."""
        return Training(n_rounds=140, n_steps=400, pretraining=4000)

    @staticmethod
    def n_endings(n_classes: int) -> int:
        """One output per label."""
        return n_classes

    @staticmethod
    def stop_value(endings: Any) -> Any:
        """The cheapest label."""
        return endings.min(axis=1)

    @staticmethod
    def ending_loss(endings: Any, old_endings: Any, batch: Any) -> Any:
        """Squared errors of all labels: what each would have cost is known."""
        return ((endings - batch.label_costs) ** 2).sum(axis=1)

    @staticmethod
    def codes(endings: Floats, costs: Floats) -> Ints:
        """The cheapest label in each state."""
        return np.asarray(endings.argmin(axis=1), dtype=np.intp)
