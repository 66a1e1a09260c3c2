"""Fitted Q iteration: action values by gradient boosting."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from .._arguments import check_count, shown
from .._arrays import Bools, Floats, Ints, every, mean_of
from ..classifiers import Classifier, column_means
from ..classifiers.training_rows import KnowsRows, TrainingRows
from ..data.problem import Problem
from ..data.retrospective import Retrospective
from .learned_agent import check_groups, check_states, not_trained
from .policy import epsilon_greedy
from .replay import Records
from .settings import SetWeights, check_agent_arguments
from .state import AgentState

__all__ = ["FittedQ"]

_STOP, _GIVEN = "stop", "regressor"  # names of models; those of groups have a prefix


class FittedQ(KnowsRows):
    r"""Fitted Q iteration (Ernst, Geurts and Wehenkel 2005), one regression per action, by gradient boosting.

    The states are the sets of groups that each row has recorded, or a random sample of them if there are many. The cost of
    stopping is regressed once. Then, for k = 1, 2, ...,

    .. math:: Q_k(x_S, S, a) = c_a + \mathrm{regression\ of\ } \min_{b \notin S + a} Q_{k-1}(x_{S+a}, S + a, b)
              \mathrm{\ on\ } (x_S, S)

    over the states whose row also has a recorded. Q_0 has only the action of stopping. The minimum is over all actions that
    are not yet taken, recorded or not. Sets only grow, so after as many iterations as there are costly groups the result is
    that of backward induction.

    Parameters
    ----------
    regressor : scikit-learn regressor, optional
        Default: histogram gradient boosting with 100 trees of 8 leaves, each leaf with at least 80 states. Smaller leaves
        overfit, and the minimum of overfitted values is too low. Inputs are the values, with the training mean outside the
        acquired groups, and one indicator per group.
    n_iterations : int, optional
        Number of iterations: the longest run that is planned. Default: the number of costly groups.
    max_states : int
        If the rows have more states than this, this many are drawn at random.
    epsilon, price_multiplier, targets, random_state
        As in `DQN`.

    Attributes
    ----------
    learning_curve_ : DataFrame
        Per iteration: the cost that the agent expects when it starts from the free groups.
    models_ : dict
        The regressions: ``"stop"``, and ``"acquire <group>"`` for each group that some row has recorded. Other groups are
        never acquired.

    References
    ----------
    D. Ernst, P. Geurts, L. Wehenkel, "Tree-based batch mode reinforcement learning", JMLR 6 (2005).
    """

    def __init__(
        self,
        regressor: Any = None,
        *,
        n_iterations: int | None = None,
        max_states: int = 200_000,
        epsilon: float = 0.0,
        price_multiplier: float = 1.0,
        targets: str = "all",
        random_state: int = 0,
    ) -> None:
        lacking = [m for m in ("fit", "predict") if not hasattr(regressor, m)]
        if regressor is not None and (lacking or isinstance(regressor, type)):
            raise TypeError(
                "'regressor' must be a scikit-learn regressor with fit and predict, but is "
                f"{shown(regressor)}. Leave it out for gradient boosting."
            )
        if n_iterations is not None:
            check_count("n_iterations", n_iterations, 1)
        check_count("max_states", max_states, 1)
        check_agent_arguments(epsilon, price_multiplier, targets, random_state)
        self.regressor, self.n_iterations, self.max_states = regressor, n_iterations, max_states
        self.epsilon, self.price_multiplier, self.targets = float(epsilon), float(price_multiplier), targets
        self.random_state = int(random_state)

    def fit(self, data: Retrospective, classifier: Classifier, weights: SetWeights | None = None) -> Self:
        """Learn from these records; arguments as in `DQN.fit`."""
        records = Records.with_classifier(data, classifier, weights)
        self.columns_, self.group_names_ = data.columns, data.problem.group_names
        self.column_group_, self.acquirable_ = data.column_group, records.acquirable
        self.means_ = column_means(data)
        row, acquired = recorded_states(records, self.max_states, np.random.default_rng(self.random_state))
        self.models_: dict[str, Any] = {}
        self._regress(_STOP, records, row, acquired, records.stop_cost(row, acquired))
        starts = records.starts
        free = np.tile(data.problem.free, (len(starts), 1))
        expected = []
        for _ in range(self.n_iterations or int(self.acquirable_.sum())):
            self._iterate(records, row, acquired)
            cases = None if records.data.weight is None else records.data.weight[starts]
            expected.append(float(mean_of(self._least(records, starts, free), cases)))
        lines = list(enumerate(expected, start=1))
        self.learning_curve_ = pd.DataFrame(lines, columns=["iteration", "expected_cost"])
        self.rows_ = TrainingRows.of(data)
        return self

    def _iterate(self, records: Records, row: Ints, acquired: Bools) -> None:
        """Do one iteration: regress every action on the values of the previous iteration."""
        prices = self.price_multiplier * records.data.problem.prices
        goals = []
        for g in np.flatnonzero(self.acquirable_):
            on = np.flatnonzero(records.data.recorded[row, g] & ~acquired[:, g])
            after = acquired[on].copy()
            after[:, g] = True
            goals.append((g, on, after, prices[g] + self._least(records, row[on], after)))
        for g, on, after, goal in goals:
            if len(on):
                self._regress(_acquire(self.group_names_[g]), records, row[on], acquired[on], goal, after)

    def _regress(
        self, name: str, records: Records, row: Ints, acquired: Bools, goal: Floats, after: Bools | None = None
    ) -> None:
        model = self.regressor
        if model is None:
            model = HistGradientBoostingRegressor(
                learning_rate=0.05, max_leaf_nodes=8, min_samples_leaf=80, random_state=self.random_state
            )
        inputs = self._inputs(records.seen(row, acquired), acquired)
        given, cases = {}, records.data.weight
        if records.weights is not None or cases is not None:
            weight = records.weight(row, acquired if after is None else after)
            given = {"sample_weight": weight if cases is None else weight * cases[row]}
        self.models_[name] = clone(model).fit(inputs, goal.copy(), **given)

    def _least(self, records: Records, row: Ints, acquired: Bools) -> Floats:
        """Smallest action value over the actions that are not yet taken, shape (m,)."""
        left = ~acquired & self.acquirable_
        if self.targets == "recorded":
            left &= records.data.recorded[row]
        q = self._values(records.seen(row, acquired), acquired)
        allowed = np.column_stack([left, np.ones(len(row), dtype=bool)])
        return np.asarray(np.where(allowed, q, np.inf).min(axis=1, initial=np.inf))

    def _inputs(self, values: Floats, acquired: Bools) -> Floats:
        """Inputs of the regressions, (n, d + G): values, with training means for NaN, and indicators of the acquired groups."""
        return np.column_stack([np.where(np.isnan(values), self.means_, values), acquired])

    def _values(self, values: Floats, acquired: Bools) -> Floats:
        inputs = self._inputs(values, acquired)
        q = np.full((len(values), acquired.shape[1] + 1), np.inf)
        for k, name in enumerate((*map(_acquire, self.group_names_), _STOP)):
            if name in self.models_ and len(values):
                q[:, k] = self.models_[name].predict(inputs.copy())  # the regressor may be the user's
        return q

    def action_values(self, values: Floats, acquired: Bools) -> Floats:
        """Expected cost to go of each action, shape (n, G + 1)."""
        self._check_trained()
        x, taken = check_states(self, values, acquired, len(self.columns_), len(self.group_names_))
        return self._values(np.where(taken[:, self.column_group_], x, np.nan), taken)

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Epsilon-greedy probabilities, shape (n, G + 1)."""
        q = self.action_values(values, acquired)
        left = ~np.asarray(acquired, dtype=bool) & self.acquirable_
        return epsilon_greedy(q, left, self.epsilon)

    def bind(self, problem: Problem) -> Self:
        """Return the agent; raise an error if the problem has other groups than the training data."""
        self._check_trained()
        check_groups(self, self.group_names_, problem)
        return self

    def _check_trained(self) -> None:
        if not hasattr(self, "models_"):
            raise not_trained(self, "data, classifier")

    def state(self) -> AgentState:
        """Return settings, learning curve and regressions."""
        self._check_trained()
        settings = {
            "n_iterations": self.n_iterations,
            "max_states": self.max_states,
            "epsilon": self.epsilon,
            "price_multiplier": self.price_multiplier,
            "targets": self.targets,
            "random_state": self.random_state,
            "columns": list(self.columns_),
            "groups": list(self.group_names_),
            "column_group": self.column_group_.tolist(),
        }
        arrays = {
            "acquirable": self.acquirable_.astype(float),
            "means": self.means_,
            "curve": self.learning_curve_.to_numpy(dtype=float),
        }
        given = {} if self.regressor is None else {_GIVEN: self.regressor}
        return AgentState(settings, arrays, {**self.models_, **given})

    @classmethod
    def from_state(cls, state: AgentState) -> Self:
        """Restore the agent."""
        s = state.settings
        names = ("n_iterations", "max_states", "epsilon", "price_multiplier", "targets", "random_state")
        agent = cls(state.models.get(_GIVEN), **{name: s[name] for name in names})
        agent.columns_, agent.group_names_ = tuple(s["columns"]), tuple(s["groups"])
        agent.column_group_ = np.asarray(s["column_group"], dtype=np.intp)
        agent.acquirable_, agent.means_ = state.arrays["acquirable"] > 0, state.arrays["means"]
        curve = pd.DataFrame(state.arrays["curve"], columns=["iteration", "expected_cost"])
        agent.learning_curve_ = curve.astype({"iteration": int})
        agent.models_ = {name: model for name, model in state.models.items() if name != _GIVEN}
        return agent

    def __repr__(self) -> str:
        return f"FittedQ(epsilon={self.epsilon:g}, random_state={self.random_state})"


def _acquire(group: str) -> str:
    return f"acquire {group}"


def recorded_states(records: Records, max_states: int, rng: np.random.Generator) -> tuple[Ints, Bools]:
    """Return states (rows (m,), sets (m, G)) that are recorded: all of them, or a random sample of ``max_states``."""
    data, starts = records.data, records.starts
    costly = np.flatnonzero(~data.problem.free)
    if float((2.0 ** data.recorded[starts][:, costly].sum(axis=1)).sum()) > max_states:
        return _drawn_states(records, costly, max_states, rng)
    rows, sets = [], []
    for size in range(len(costly) + 1):
        for chosen in combinations(costly.tolist(), size):
            wanted = data.problem.free.copy()
            wanted[list(chosen)] = True
            have = starts[every(data.recorded[starts][:, wanted])]
            rows.append(have)
            sets.append(np.tile(wanted, (len(have), 1)))
    return np.concatenate(rows), np.concatenate(sets)


def _drawn_states(records: Records, costly: Ints, max_states: int, rng: np.random.Generator) -> tuple[Ints, Bools]:
    """Draw a row, a size and a set of this size, and keep the state if the row has recorded the set.

    The draw does not depend on the other recorded groups, so the rows drawn with S are a random sample of all rows that
    have S.
    """
    data, found = records.data, 0
    rows, sets = [], []
    while found < max_states:
        row = rng.choice(records.starts, size=max_states)
        size = rng.integers(0, len(costly) + 1, size=(max_states, 1))
        wanted = np.tile(data.problem.free, (max_states, 1))
        wanted[:, costly] = rng.random((max_states, len(costly))).argsort(axis=1).argsort(axis=1) < size
        keep = every(data.recorded[row] | ~wanted)
        rows.append(row[keep])
        sets.append(wanted[keep])
        found += int(keep.sum())
    return np.concatenate(rows)[:max_states], np.concatenate(sets)[:max_states]
