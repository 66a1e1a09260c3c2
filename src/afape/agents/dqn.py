"""Deep Q learning on blocked records: the agent of the paper's experiments."""

from __future__ import annotations

from typing import Self

from ..classifiers import Classifier
from ..data import Retrospective
from .episodes import Records
from .network_agent import NetworkAgent
from .training import SetWeights

__all__ = ["DQN"]


class DQN(NetworkAgent):
    r"""Deep Q network (Mnih et al. 2015), without discount, on records with gaps.

    Episodes run on the records and may only take what a row has recorded. Each state that they meet gives the cost of
    stopping there, because the label is known, and the action taken gives

    .. math:: Q(x_S, S, a) \leftarrow c_a + \min_{b \notin S + a} \bar Q(x_{S+a}, S + a, b)

    with :math:`\bar Q` the target network. The minimum runs over all actions that are not yet taken, recorded or not: the
    deployed agent will be free to take them, and rows that have them recorded teach their value.

    Parameters
    ----------
    training : Training, optional
        How long, how fast and on what to learn. Default: two hidden layers of 16, Adam at 1e-4, 40,000 steps.
    epsilon : float
        Probability with which the trained agent acts at random among the actions that are left.
    price_multiplier : float
        Learn as if every price were so many times as high.
    targets : {"all", "recorded"}
        Actions that the minimum runs over. "recorded" is biased and is there for comparison.
    random_state : int
        Seed of the first weights, episodes and batches.

    Attributes
    ----------
    learning_curve_ : DataFrame
        Per round: share of random actions, loss, mean cost of the blocked episodes, and what the agent expects to pay from
        the free groups on.
    network_ : Network
        The trained network.

    Notes
    -----
    Without weights the values are right if what is recorded depends on free groups alone, or on nothing: rows with S + a
    recorded are then like all rows with the same :math:`x_S`. If it depends on a group that the agent may not have acquired,
    pass ``weights`` to `fit`: state S then counts :math:`1 / P(R \ge S \mid X_o)`.

    References
    ----------
    V. Mnih et al., "Human-level control through deep reinforcement learning", Nature 518 (2015).
    H. von Kleist et al., "Evaluation of Active Feature Acquisition Methods for Static Feature Settings" (2023).
    """

    def fit(self, data: Retrospective, classifier: Classifier, weights: SetWeights | None = None) -> Self:
        """Learn from these records.

        Parameters
        ----------
        data : Retrospective
            Records with gaps; better not those that ``classifier`` was trained on, where its errors look too rare.
        classifier : Classifier
            Predicts the label where the agent stops.
        weights : callable, optional
            ``weights(rows, sets)``, one over the probability that a row has these groups recorded
            (`afape.training_weights`).
        """
        return self._fit(Records.judged(data, classifier, weights))
