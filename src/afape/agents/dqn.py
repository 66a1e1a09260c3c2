"""Deep Q learning on records with gaps: the agent of the paper's experiments, and ours, which differs in its targets."""

from __future__ import annotations

from typing import Self

from ..classifiers import Classifier
from ..data.retrospective import Retrospective
from .network_agent import NetworkAgent
from .replay import Records
from .settings import SetWeights

__all__ = ["DQN"]


class DQN(NetworkAgent):
    r"""Deep Q network (Mnih et al. 2015), without discount, on records with gaps.

    Episodes run on the records and can only acquire groups that the row has recorded. In each visited state the cost of
    stopping is known, because the label is known. The target of the action that was taken is

    .. math:: Q(x_S, S, a) \leftarrow c_a + \min_{b \notin S + a} \bar Q(x_{S+a}, S + a, b)

    where :math:`\bar Q` is the target network. By default the minimum is over all actions that are not yet taken, recorded or
    not: the agent in use can take them, and their values are learned from rows that have them recorded. This agent is ours.
    ``DQN(targets="recorded")`` is the agent of the paper's experiments: it learns in a simulator that blocks unrecorded groups.

    Parameters
    ----------
    training : Training, optional
        Settings of the training. Default: two hidden layers of 16, Adam at 1e-4, 40,000 steps.
    epsilon : float
        Probability that the trained agent takes a random action among those that are left.
    price_multiplier : float
        All prices are multiplied by this number during training. Above 1, the agent acquires less.
    targets : {"all", "recorded"}
        Actions in the minimum of the target: all that are not yet taken (our agent), or only those that the row has recorded
        (the paper's agent). The second expects to be blocked and undervalues groups that are useful only together.
    random_state : int
        Seed of the initial weights, the episodes and the batches.

    Attributes
    ----------
    learning_curve_ : DataFrame
        Per round: share of random actions, loss, mean cost of the blocked episodes, and the cost that the agent expects
        when it starts from the free groups.
    network_ : Network
        The trained network.

    Notes
    -----
    Without weights the values are right if recording depends only on free groups, or on nothing: rows with S + a recorded
    then represent all rows with the same :math:`x_S`. If recording depends on a group that the agent may not have acquired,
    pass ``weights`` to `fit`: state S then has the weight :math:`1 / P(R \ge S \mid X_o)`.

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
            Records with gaps. Use other rows than those that ``classifier`` was trained on, where it makes fewer errors.
        classifier : Classifier
            Predicts the label where the agent stops.
        weights : callable, optional
            ``weights(rows, sets)`` with rows (m,) and sets (m, G), giving one over the probability that the row has these
            groups recorded, shape (m,); see `afape.optimisation.training_weights`.
        """
        return self._fit(Records.with_classifier(data, classifier, weights))
