"""An agent that acquires one fixed set of groups per cluster of cases."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Self

import numpy as np
from sklearn.cluster import KMeans

from .._arguments import LARGEST_SEED, check_count, check_seed
from .._arrays import Bools, Floats, Ints
from ..classifiers import Classifier
from ..data.retrospective import Retrospective
from .learned_agent import Layout, LearnedAgent, stop_cost
from .state import AgentState

__all__ = ["ClusterAgent"]


class ClusterAgent(LearnedAgent):
    r"""One fixed set of groups per cluster of cases (CATE).

    Cases are clustered by their free groups (k-means on standardised columns). In cluster k the agent acquires the set

    .. math:: S_k = \arg\min_S \sum_{g \in S} c_g + \frac{1}{n_{kS}} \sum_{i \in k,\, R_i \ge S} C_{iS},

    where :math:`C_{iS}` is the misclassification cost of row i if it stops with S and the free groups. The mean is over the
    rows of the cluster that record S. The agent acquires the groups of the set in group order, whatever their values are.

    Parameters
    ----------
    n_clusters : int
        Largest number of clusters.
    min_rows : int
        A set is considered only if at least this many rows of the cluster record it.
    max_sets : int
        If there are at most this many sets, all are compared. Otherwise sets grow greedily, one group at a time.
    random_state : int or None
        Seed of the clustering.

    Notes
    -----
    The paper selects sets by an information criterion under a budget and trains one classifier per cluster. Here prices and
    errors are both costs, so the criterion is the cost itself, with the given classifier. Within a cluster, rows that record
    S represent all rows. This is right if recording depends only on the free groups and these vary little within a cluster.
    Gaps in free groups are filled with the mean.

    References
    ----------
    S. Das, R. Iyer, S. Natarajan (2021). A clustering based selection framework for cost aware and test-time feature
    elicitation. CODS-COMAD.
    """

    def __init__(
        self, n_clusters: int = 12, min_rows: int = 30, max_sets: int = 256, random_state: int | None = 0
    ) -> None:
        self.n_clusters = n_clusters
        self.min_rows = min_rows
        self.max_sets = max_sets
        self.random_state = random_state

    def _check_arguments(self) -> None:
        check_seed(self.random_state, most=LARGEST_SEED)
        check_count("n_clusters", self.n_clusters, 1)
        check_count("min_rows", self.min_rows, 1)
        check_count("max_sets", self.max_sets, 1)

    def _learn(self, data: Retrospective, classifier: Classifier) -> None:
        free = data.problem.free[data.column_group]
        block = data.values[:, free]
        self.mean_ = np.nanmean(block, axis=0) if free.any() else np.zeros(0)
        spread = np.nanstd(block, axis=0) if free.any() else np.zeros(0)
        self.scale_ = np.where(spread > 0, spread, 1.0)
        self.centres_ = self._cluster(self._standardised(data.values), data.weight)
        cluster = self._nearest(self._standardised(data.values))
        self.sets_ = self._best_sets(data, classifier, cluster)

    def _cluster(self, X: Floats, weight: Floats | None) -> Floats:
        n_clusters = min(self.n_clusters, len(np.unique(X, axis=0))) if X.shape[1] else 1
        if n_clusters == 1:
            return X[:1] * 0.0
        model = KMeans(n_clusters, n_init=4, random_state=self.random_state).fit(X, sample_weight=weight)
        return np.asarray(model.cluster_centers_)

    def _standardised(self, values: Floats) -> Floats:
        block = values[:, self.layout_.free[self.layout_.column_group]]
        return np.asarray(np.where(np.isnan(block), 0.0, (block - self.mean_) / self.scale_))

    def _nearest(self, X: Floats) -> Ints:
        distance = np.stack([((X - centre) ** 2).sum(axis=1) for centre in self.centres_], axis=1)
        return np.asarray(distance.argmin(axis=1), dtype=np.intp)

    def _best_sets(self, data: Retrospective, classifier: Classifier, cluster: Ints) -> Bools:
        """Return the cheapest set of each cluster, shape (k, G), including the free groups."""
        free, costly = data.problem.free, np.flatnonzero(~data.problem.free)
        k = len(self.centres_)
        best, lowest = np.tile(free, (k, 1)), np.full(k, np.inf)
        if 2 ** len(costly) <= self.max_sets:
            for size in range(len(costly) + 1):
                for taken in combinations(costly, size):
                    chosen = free.copy()
                    chosen[list(taken)] = True
                    self._improve(best, lowest, chosen, self._costs(data, classifier, cluster, chosen))
            return best
        self._improve(best, lowest, free, self._costs(data, classifier, cluster, free))
        for _ in costly:
            before = best.copy()
            for chosen in _grown(before, costly):
                # a set is compared in the clusters whose best set it extends by one group
                extends = ((chosen & ~before).sum(axis=1) == 1) & ~(before & ~chosen).any(axis=1)
                cost = np.where(extends, self._costs(data, classifier, cluster, chosen), np.inf)
                self._improve(best, lowest, chosen, cost)
            if (best == before).all():
                break
        return best

    @staticmethod
    def _improve(best: Bools, lowest: Floats, chosen: Bools, cost: Floats) -> None:
        better = cost < lowest
        best[better], lowest[better] = chosen, cost[better]

    def _costs(self, data: Retrospective, classifier: Classifier, cluster: Ints, chosen: Bools) -> Floats:
        """Mean cost per cluster of acquiring this set and stopping, shape (k,); infinite if too few rows record it."""
        cost = stop_cost(data, classifier, chosen)
        has = ~np.isnan(cost)
        k = len(self.centres_)
        count, cases = np.bincount(cluster[has], minlength=k), data.row_weight[has]
        weight = np.bincount(cluster[has], weights=cases, minlength=k)
        total = np.bincount(cluster[has], weights=cases * cost[has], minlength=k)
        least = 1 if (chosen == data.problem.free).all() else self.min_rows
        mean = total / np.where(count > 0, weight, 1.0) + data.problem.prices[chosen].sum()
        return np.asarray(np.where(count >= least, mean, np.inf))

    def _actions(self, values: Floats, acquired: Bools) -> Ints:
        wanted = self.sets_[self._nearest(self._standardised(values))]
        todo = wanted & ~acquired & ~self.layout_.free
        return np.asarray(np.where(todo.any(axis=1), todo.argmax(axis=1), acquired.shape[1]), dtype=np.intp)

    def state(self) -> AgentState:
        """Return arguments, centres and sets."""
        self._check_trained()
        arrays: dict[str, Any] = {
            "mean": self.mean_,
            "scale": self.scale_,
            "centres": self.centres_,
            "sets": self.sets_,
        }
        return AgentState({"arguments": self.get_params(), "layout": self.layout_.to_json()}, arrays)

    @classmethod
    def from_state(cls, state: AgentState) -> Self:
        """Restore the agent."""
        agent = cls(**state.settings["arguments"])
        agent.layout_ = Layout.from_json(state.settings["layout"])
        agent.mean_, agent.scale_ = state.arrays["mean"], state.arrays["scale"]
        agent.centres_, agent.sets_ = state.arrays["centres"], np.asarray(state.arrays["sets"], dtype=bool)
        return agent


def _grown(sets: Bools, costly: Ints) -> list[Bools]:
    """Return the distinct sets that have one group more than one of these sets."""
    grown = {}
    for chosen in sets:
        for g in costly[~chosen[costly]]:
            larger = chosen.copy()
            larger[g] = True
            grown[larger.tobytes()] = larger
    return list(grown.values())
