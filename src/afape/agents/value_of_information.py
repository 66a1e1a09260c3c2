"""Value of information: acquire the group with the largest expected reduction of cost."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeRegressor

from .._arguments import LARGEST_SEED, check_count, check_seed, shown
from .._arrays import Bools, Floats, Ints
from .._models import NotFittedError, fit_weighted
from ..classifiers import Classifier, ask_classifier
from ..data.retrospective import Retrospective
from .learned_agent import Layout, LearnedAgent
from .state import AgentState

__all__ = ["Imputed", "ValueOfInformation"]

_CHUNK = 2**18  # imputed states in memory at a time


class Imputed(NamedTuple):
    """States with one more group and imputed values. The draws of one pair of row and group follow each other."""

    row: Ints  # (m,)
    group: Ints  # (m,)
    values: Floats  # (m, d)
    acquired: Bools  # (m, G)


class ValueOfInformation(LearnedAgent):
    r"""Acquire the group with the largest expected saving, while it exceeds the price.

    Let :math:`a(\cdot)` be the prediction of the classifier and :math:`\ell_{ca}` the cost of predicting a if c is true. With
    m draws of the group from an imputation model :math:`p(x_g \mid x_S)`, the value of group g is

    .. math:: V(g) = \frac{1}{m} \sum_{k=1}^{m} \sum_c P(c \mid x_S, x_g^k)
        \big( \ell_{c\,a(x_S)} - \ell_{c\,a(x_S, x_g^k)} \big) - c_g .

    Both predictions are evaluated with one posterior, so its errors cancel if the prediction does not change.

    Parameters
    ----------
    n_draws : int
        m, imputed values per group.
    min_leaf : int
        Smallest number of training rows in a leaf of the imputation trees.
    estimator : scikit-learn classifier, optional
        Learns the posterior of the label; it must accept NaN. Default: histogram gradient boosting.
    random_state : int or None
        Seed of the trees, of the draws and of the default estimator.

    Notes
    -----
    EDDI measures the information that a group holds about the label, with a partial variational autoencoder. Here the
    measure is cost, and the models suit tables. The imputation model of a group is a decision tree on all other columns (NaN
    if not acquired) whose leaves hold recorded values of the group. These donors are drawn once in training, so the policy
    is deterministic. The posterior is a boosted classifier. Both are trained on the records and on a copy in which each
    costly group is dropped with probability 1/2, so that they also see small sets. One step calls the classifier twice: for
    the states, and for all their imputed values.

    References
    ----------
    C. Ma, S. Tschiatschek, K. Palla, J. M. Hernández-Lobato, S. Nowozin, C. Zhang (2019). EDDI: efficient dynamic
    discovery of high-value information with partial VAE. ICML.
    """

    def __init__(
        self, n_draws: int = 20, min_leaf: int = 50, estimator: Any = None, random_state: int | None = 0
    ) -> None:
        self.n_draws = n_draws
        self.min_leaf = min_leaf
        self.estimator = estimator
        self.random_state = random_state

    def _check_arguments(self) -> None:
        check_seed(self.random_state, most=LARGEST_SEED)
        check_count("n_draws", self.n_draws, 1)
        check_count("min_leaf", self.min_leaf, 1)
        if self.estimator is not None and not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"'estimator' must be a scikit-learn classifier with predict_proba, not {shown(self.estimator)}."
            )

    def _learn(self, data: Retrospective, classifier: Classifier) -> None:
        if len(np.unique(data.labels)) < 2:
            raise ValueError(
                "'data' must have rows of at least two classes, but all are "
                f"{data.classes.tolist()[data.labels[0]]!r}. Add rows of other classes: one class shows no saving."
            )
        rng = np.random.default_rng(self.random_state)
        kept = data.problem.free | (rng.random(data.recorded.shape) >= 0.5)
        thinned = np.where(kept[:, data.column_group], data.values, np.nan)
        X, y = np.concatenate([data.values, thinned]), np.concatenate([data.labels, data.labels])
        model = self.estimator
        if model is None:
            model = HistGradientBoostingClassifier(
                max_iter=80, max_leaf_nodes=16, min_samples_leaf=self.min_leaf, random_state=self.random_state
            )
        try:
            self.posterior_ = fit_weighted(model, X, y, None if data.weight is None else np.tile(data.weight, 2))
        except NotFittedError as error:
            raise ValueError(f"'estimator' must be a classifier that accepts NaN, but: {error}") from error
        self.costs_, self.classifier_ = data.costs, classifier
        self.trees_: dict[int, Any] = {}
        self.donors_: dict[int, Floats] = {}
        for g in np.flatnonzero(~data.problem.free):
            self._learn_group(int(g), data, X, rng)

    def _learn_group(self, g: int, data: Retrospective, X: Floats, rng: np.random.Generator) -> None:
        rows = np.flatnonzero(data.recorded[:, g])
        block = data.values[rows][:, data.column_group == g]
        spread = block.std(axis=0)
        target = np.tile(block / np.where(spread > 0, spread, 1.0), (2, 1))
        inputs = self._without(X[np.concatenate([rows, rows + len(data)])], g)
        least = min(2 * self.min_leaf, len(rows))  # every row occurs twice
        cases = None if data.weight is None else data.weight[rows]
        tree = DecisionTreeRegressor(min_samples_leaf=least, random_state=self.random_state)
        tree.fit(inputs, target, sample_weight=None if cases is None else np.tile(cases, 2))
        leaf = tree.apply(inputs)
        donors = np.zeros((tree.tree_.node_count, self.n_draws, block.shape[1]))
        for node in np.unique(leaf):
            members = np.flatnonzero(leaf == node) % len(rows)
            if cases is None:
                donors[node] = block[rng.choice(members, self.n_draws, replace=len(members) < self.n_draws)]
            else:
                donors[node] = block[rng.choice(members, self.n_draws, p=cases[members] / cases[members].sum())]
        self.trees_[g], self.donors_[g] = tree, donors

    def _without(self, values: Floats, g: int) -> Floats:
        """Return all other columns, and a constant, so that there is always at least one column."""
        others = values[:, self.layout_.column_group != g]
        return np.column_stack([others, np.zeros(len(values))])

    @property
    def _states_at_once(self) -> int:
        """States whose imputed states fit in memory."""
        return max(_CHUNK // (self.n_draws * max(len(self.trees_), 1)), 1)

    @property
    def _depth(self) -> int:
        """Acquisitions ahead."""
        return 1

    def _actions(self, values: Floats, acquired: Bools) -> Ints:
        step, rows = self._states_at_once, np.arange(len(values))
        chunks = []
        for i in range(0, len(values), step):
            x, taken = values[i : i + step], acquired[i : i + step]
            now = ask_classifier(self.classifier_, x, taken, rows[: len(x)], len(self.costs_))
            chunks.append(self._worth(x, taken, now, self._depth).argmax(axis=1))
        return np.concatenate(chunks).astype(np.intp)

    def _worth(self, values: Floats, acquired: Bools, now: Ints, depth: int) -> Floats:
        """Expected saving of each action, (n, G + 1): 0 for stopping, minus infinity for groups that save nothing.

        ``now`` are the label codes predicted in these states.
        """
        n_groups = acquired.shape[1]
        worth = np.full((len(values), n_groups + 1), -np.inf)
        worth[:, n_groups] = 0.0
        imputed = self._impute(values, acquired)
        if imputed is not None:
            ahead = self._posterior_of(imputed.values)
            then = ask_classifier(self.classifier_, imputed.values, imputed.acquired, imputed.row, len(self.costs_))
            change = ((self.costs_[:, now[imputed.row]] - self.costs_[:, then]).T * ahead).sum(axis=1)
            change += self._saved_later(imputed, ahead, then, depth)
            mean = change.reshape(-1, self.n_draws).mean(axis=1)
            first = slice(None, None, self.n_draws)
            value = mean - self.layout_.prices[imputed.group[first]]
            worth[imputed.row[first], imputed.group[first]] = np.where(value > 0, value, -np.inf)
        return worth

    def _saved_later(self, imputed: Imputed, ahead: Floats, codes: Ints, depth: int) -> Floats:
        """Expected saving of further acquisitions in imputed states, (m,), given the posterior and the predictions there."""
        return np.zeros(len(imputed.row))

    def _impute(self, values: Floats, acquired: Bools) -> Imputed | None:
        """Return states with one more group and imputed values; None if no state lacks a group."""
        rows, groups, tables, sets = [], [], [], []
        for g, tree in self.trees_.items():
            lacking = np.flatnonzero(~acquired[:, g])
            if not len(lacking):
                continue
            leaf = tree.apply(self._without(values[lacking], g))
            repeated = np.repeat(lacking, self.n_draws)
            filled, known = values[repeated], acquired[repeated]
            filled[:, self.layout_.column_group == g] = self.donors_[g][leaf].reshape(len(repeated), -1)
            known[:, g] = True
            rows.append(repeated)
            groups.append(np.full(len(repeated), g))
            tables.append(filled)
            sets.append(known)
        if not rows:
            return None
        return Imputed(np.concatenate(rows), np.concatenate(groups), np.concatenate(tables), np.concatenate(sets))

    def _posterior_of(self, values: Floats) -> Floats:
        out = np.zeros((len(values), len(self.costs_)))
        out[:, self.posterior_.classes_] = self.posterior_.predict_proba(values.copy())
        return out

    def state(self) -> AgentState:
        """Return arguments, donors, trees, posterior and classifier."""
        self._check_trained()
        arguments = {**self.get_params(deep=False), "estimator": None}
        settings = {"arguments": arguments, "layout": self.layout_.to_json(), "groups": list(self.trees_)}
        arrays = {f"donors{g}": donors for g, donors in self.donors_.items()}
        models = {f"tree{g}": tree for g, tree in self.trees_.items()}
        models |= {"posterior": self.posterior_, "classifier": self.classifier_}
        if self.estimator is not None:
            models["estimator"] = self.estimator
        return AgentState(settings, {"costs": self.costs_, **arrays}, models)

    @classmethod
    def from_state(cls, state: AgentState) -> Self:
        """Restore the agent."""
        agent = cls(**{**state.settings["arguments"], "estimator": state.models.get("estimator")})
        agent.layout_ = Layout.from_json(state.settings["layout"])
        agent.costs_ = state.arrays["costs"]
        agent.posterior_, agent.classifier_ = state.models["posterior"], state.models["classifier"]
        agent.trees_ = {g: state.models[f"tree{g}"] for g in state.settings["groups"]}
        agent.donors_ = {g: state.arrays[f"donors{g}"] for g in state.settings["groups"]}
        return agent
