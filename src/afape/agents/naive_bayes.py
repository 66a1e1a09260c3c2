"""Cost-sensitive naive Bayes: acquire while the expected saving exceeds the price."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from .._arguments import LARGEST_SEED, check_between, check_count, check_seed
from .._arrays import Bools, Floats, Ints, tally
from ..classifiers import Classifier
from ..data.retrospective import Retrospective
from .learned_agent import Layout, LearnedAgent
from .state import AgentState

__all__ = ["CostSensitiveNaiveBayes"]


class CostSensitiveNaiveBayes(LearnedAgent):
    r"""Test-cost-sensitive naive Bayes (csNB, sequential test strategy).

    Let :math:`P(c \mid x_S)` be the naive Bayes posterior of the label and :math:`\ell_{cj}` the cost of predicting j if c
    is true. The risk of stopping is :math:`R(x_S) = \min_j \sum_c \ell_{cj} P(c \mid x_S)`. The utility of group g is

    .. math:: U(g) = R(x_S) - \sum_v P(v \mid x_S) R(x_S, x_g = v) - c_g,

    where v runs over the values of g. The agent acquires the group with the largest utility while this is positive. All sums
    are exact.

    Parameters
    ----------
    n_bins : int
        Largest number of values of a group.
    min_leaf : int
        Smallest number of training rows per value.
    smoothing : float
        Added to the count of each value and class (Laplace).
    random_state : int or None
        Seed of the trees that bin the groups, for ties between columns.

    Notes
    -----
    The paper has discrete attributes, one per test. Here a group may have many columns of any kind, so it is turned into one
    discrete attribute: the leaves of a scikit-learn decision tree that predicts the label from the columns of the group.
    Each group is counted in the rows that record it, so gaps need no further treatment. In the paper one model decides and
    predicts; to do the same, pass the agent as the classifier too (it has ``predict``). ``fit`` takes a classifier, as for
    every agent, but does not use it.

    References
    ----------
    X. Chai, L. Deng, Q. Yang, C. X. Ling (2004). Test-cost sensitive naive Bayes classification. ICDM.
    """

    def __init__(
        self, n_bins: int = 12, min_leaf: int = 50, smoothing: float = 1.0, random_state: int | None = 0
    ) -> None:
        self.n_bins = n_bins
        self.min_leaf = min_leaf
        self.smoothing = smoothing
        self.random_state = random_state

    def _check_arguments(self) -> None:
        check_seed(self.random_state, most=LARGEST_SEED)
        check_count("n_bins", self.n_bins, 2)
        check_count("min_leaf", self.min_leaf, 1)
        check_between("smoothing", self.smoothing, 0.0)
        if self.smoothing == 0:
            raise ValueError(
                "'smoothing' must be positive, but is 0: a value that never occurs with a class would exclude this class."
            )

    def _learn(self, data: Retrospective, classifier: Classifier) -> None:
        n_classes = len(data.classes)
        self.costs_ = data.costs
        cases = data.row_weight
        self.prior_ = (tally(data.labels, cases, n_classes) + 1.0) / (cases.sum() + n_classes)
        self.trees_, self.tables_ = [], []
        for g in range(data.problem.n_groups):
            rows = np.flatnonzero(data.recorded[:, g])
            tree = DecisionTreeClassifier(
                max_leaf_nodes=self.n_bins,
                min_samples_leaf=min(self.min_leaf, max(len(rows) // 2, 1)),
                random_state=self.random_state,
            ).fit(
                self._block(data.values[rows], data.column_group, g),
                data.labels[rows],
                sample_weight=None if data.weight is None else data.weight[rows],
            )
            leaf = tree.apply(self._block(data.values[rows], data.column_group, g))
            count = np.full((n_classes, tree.tree_.node_count), 0.0)
            np.add.at(count, (data.labels[rows], leaf), cases[rows])
            is_leaf = tree.tree_.children_left < 0  # inner nodes are not values and keep probability 0
            count[:, is_leaf] += float(self.smoothing)
            self.trees_.append(tree)
            self.tables_.append(count / count.sum(axis=1, keepdims=True))

    def posterior(self, values: Floats, acquired: Bools) -> Floats:
        """Probability of each class given the acquired groups, shape (n, K)."""
        values, acquired = self._checked(values, acquired)
        log = np.tile(np.log(self.prior_), (len(values), 1))
        for g, (tree, table) in enumerate(zip(self.trees_, self.tables_, strict=True)):
            block = self._block(values, self.layout_.column_group, g)
            known = acquired[:, g] & ~np.isnan(block).any(axis=1)
            if known.any():
                log[known] += np.log(table[:, tree.apply(block[known])]).T
        likelihood = np.exp(log - log.max(axis=1, keepdims=True))
        return np.asarray(likelihood / likelihood.sum(axis=1, keepdims=True))

    def predict(self, values: Floats, acquired: Bools) -> Ints:
        """Label codes of least expected cost, shape (n,)."""
        return np.asarray((self.posterior(values, acquired) @ self.costs_).argmin(axis=1), dtype=np.intp)

    def _actions(self, values: Floats, acquired: Bools) -> Ints:
        posterior = self.posterior(values, acquired)
        risk = (posterior @ self.costs_).min(axis=1)
        utility = np.zeros((len(values), acquired.shape[1] + 1))  # stopping is worth 0
        for g, table in enumerate(self.tables_):
            used = np.flatnonzero(table[0])
            after = np.zeros(len(values))
            for v in used:  # P(v | x) R(x, v), the normalisers cancel
                after += ((posterior * table[:, v]) @ self.costs_).min(axis=1)
            utility[:, g] = risk - after - self.layout_.prices[g]
        utility[:, :-1][acquired | self.layout_.free | (utility[:, :-1] <= 0)] = -np.inf
        return np.asarray(utility.argmax(axis=1), dtype=np.intp)

    @staticmethod
    def _block(values: Floats, column_group: Ints, group: int) -> Floats:
        return values[:, column_group == group]

    def state(self) -> AgentState:
        """Return arguments, tables and trees."""
        self._check_trained()
        arrays = {f"table{g}": table for g, table in enumerate(self.tables_)}
        models = {f"tree{g}": tree for g, tree in enumerate(self.trees_)}
        settings = {"arguments": self.get_params(), "layout": self.layout_.to_json()}
        return AgentState(settings, {"prior": self.prior_, "costs": self.costs_, **arrays}, models)

    @classmethod
    def from_state(cls, state: AgentState) -> Self:
        """Restore the agent."""
        agent = cls(**state.settings["arguments"])
        agent.layout_ = Layout.from_json(state.settings["layout"])
        agent.prior_, agent.costs_ = state.arrays["prior"], state.arrays["costs"]
        n_groups = range(len(agent.layout_.groups))
        agent.tables_ = [state.arrays[f"table{g}"] for g in n_groups]
        agent.trees_ = [state.models[f"tree{g}"] for g in n_groups]
        return agent
