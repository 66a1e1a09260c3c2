"""What agents with a Q network share: training on blocked episodes, answers by numpy alone, saving."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from ..arrays import Bools, Floats
from ..classifiers import column_means
from ..data import Problem
from .episodes import Records, Replay, Visits, run_episodes
from .greedy import check_groups, checked_states, epsilon_greedy, not_fitted
from .network import Layout, Network, initial_parameters
from .state import AgentState
from .training import Training, check_agent_arguments

__all__ = ["NetworkAgent"]


class NetworkAgent:
    """Base of the agents that learn a Q network.

    Parameters
    ----------
    training : Training, optional
        How long, how fast and on what to learn.
    epsilon : float
        Probability with which the trained agent acts at random among the actions that are left.
    price_multiplier : float
        Learn as if every price were so many times as high: above 1 for an agent that acquires less.
    targets : {"all", "recorded"}
        Actions that the minimum in the target runs over: all that are not yet taken, or only those that the row has
        recorded. The second is what a simulator that blocks actions teaches; it undervalues acquiring, and is there for
        comparison.
    random_state : int
        Seed of the first weights, episodes and batches.
    """

    double: ClassVar[bool] = False
    dueling: ClassVar[bool] = False
    sets: ClassVar[bool] = False
    arguments: ClassVar[str] = "data, classifier"

    def __init__(
        self,
        training: Training | None = None,
        *,
        epsilon: float = 0.0,
        price_multiplier: float = 1.0,
        targets: str = "all",
        random_state: int = 0,
    ) -> None:
        self.training = self.default_training() if training is None else Training.checked(training)
        check_agent_arguments(epsilon, price_multiplier, targets, random_state)
        self.epsilon, self.price_multiplier, self.targets = float(epsilon), float(price_multiplier), targets
        self.random_state = int(random_state)

    @staticmethod
    def default_training() -> Training:
        """Training where none is asked for."""
        return Training()

    # ----------------------------------------------------------------------------------- what the variants differ in

    @staticmethod
    def n_endings(n_classes: int) -> int:
        """Number of outputs about ending the run."""
        return 1

    @staticmethod
    def stop_value(endings: Any) -> Any:
        """Value of stopping from these outputs."""
        return endings[:, 0]

    @staticmethod
    def ending_loss(endings: Any, old_endings: Any, batch: Any) -> Any:
        """Loss of these outputs, one number per state."""
        return (endings[:, 0] - batch.stop_cost) ** 2

    # ---------------------------------------------------------------------------------------------------- training

    def _fit(self, records: Records) -> Self:
        learning = _learning(self)
        acquirable = tuple(records.acquirable.tolist())
        streams = np.random.SeedSequence(self.random_state).spawn(3)
        rng = np.random.default_rng(streams[0])
        network = self._start(records, np.random.default_rng(streams[1]))
        program = learning.Program(
            network.layout,
            acquirable,
            self.double,
            self.targets == "recorded",
            self.stop_value,
            self.ending_loss,
            self.training,
        )
        seed = int(streams[2].generate_state(1)[0])
        prices = self.price_multiplier * records.data.problem.prices
        learner = learning.Learner(program, network, records, prices, seed)
        self._remember(records)
        self.learning_curve_ = self._rounds(learner, records, rng)
        return self

    def _start(self, records: Records, rng: np.random.Generator) -> Network:
        """The network before training, with the standardisation that the records give."""
        data = records.data
        count = np.maximum((~np.isnan(data.values)).sum(axis=0), 1)
        centre = column_means(data)
        spread = np.sqrt(np.nansum((data.values - centre) ** 2, axis=0) / count)
        layout = Layout(
            tuple(data.column_group.tolist()),
            data.problem.n_groups,
            self.n_endings(len(data.classes)),
            tuple(self.training.hidden),
            self.dueling,
            self.sets,
        )
        return Network(layout, initial_parameters(layout, rng), centre, np.where(spread > 0, spread, 1.0), records.unit)

    def _rounds(self, learner: Any, records: Records, rng: np.random.Generator) -> pd.DataFrame:
        training = self.training
        replay = Replay(training.replay_size, records.data.problem.n_groups)
        self.network_ = learner.current()
        if training.pretraining:
            replay.add(run_episodes(records, self.action_values, training.n_episodes, 1.0, rng))
            learner.steps(replay, training.pretraining, groups_too=False)
            self.network_ = learner.current()
        starts = records.starts[:1000]
        free = np.tile(records.data.problem.free, (len(starts), 1))
        wanted = np.append(records.acquirable, True)
        lines = []
        for k in range(training.n_rounds):
            visits = run_episodes(records, self.action_values, training.n_episodes, training.exploration(k), rng)
            replay.add(visits)
            loss = learner.steps(replay, training.n_steps)
            self.network_ = learner.current()
            expected = self.action_values(records.seen(starts, free), free)[:, wanted].min(axis=1).mean()
            lines.append((k + 1, training.exploration(k), loss, self._blocked_cost(records, visits), expected))
        return pd.DataFrame(lines, columns=["round", "exploration", "loss", "blocked_cost", "expected_cost"])

    def _blocked_cost(self, records: Records, visits: Visits) -> float:
        """Mean cost of the episodes of a round, exploration included."""
        prices = np.append(self.price_multiplier * records.data.problem.prices, 0.0)
        stops = visits.action == records.data.problem.n_groups
        ends = self._end_costs(records, Visits(*(part[stops] for part in visits)))
        return float((prices[visits.action].sum() + ends.sum()) / self.training.n_episodes)

    def _end_costs(self, records: Records, ends: Visits) -> Floats:
        """Costs of the states in which episodes stopped."""
        return ends.stop_cost

    def _remember(self, records: Records) -> None:
        data = records.data
        self.columns_, self.group_names_ = data.columns, data.problem.group_names
        self.acquirable_ = records.acquirable
        self.label_classes_, self.costs_ = data.classes, data.costs
        self.classes_ = data.classes[np.unique(data.labels)]

    # ----------------------------------------------------------------------------------------------------- answers

    def action_values(self, values: Floats, acquired: Bools) -> Floats:
        """Expected cost to go of each action, shape (n, G + 1), in the unit of the costs."""
        out, n_groups = self._outputs(values, acquired), self.network_.layout.n_groups
        q = np.column_stack([out[:, :n_groups], self.stop_value(out[:, n_groups:])])
        return np.asarray(self.network_.unit * q, dtype=float)

    def _outputs(self, values: Floats, acquired: Bools) -> Floats:
        """Outputs of the trained network in these states, which are checked."""
        if not hasattr(self, "network_"):
            raise not_fitted(self, self.arguments)
        layout = self.network_.layout
        states = checked_states(self, values, acquired, len(layout.column_group), layout.n_groups)
        return np.asarray(self.network_.outputs(*states))

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Probability of each action: the cheapest that is left, but for epsilon."""
        q = self.action_values(values, acquired)
        return epsilon_greedy(q, ~np.asarray(acquired, dtype=bool) & self.acquirable_, self.epsilon)

    def bind(self, problem: Problem) -> Self:
        """Refuse a problem with other groups than those of training."""
        if not hasattr(self, "network_"):
            raise not_fitted(self, self.arguments)
        check_groups(self, self.group_names_, problem)
        return self

    # ------------------------------------------------------------------------------------------------------ saving

    def state(self) -> AgentState:
        """Settings, weights and learning curve."""
        if not hasattr(self, "network_"):
            raise not_fitted(self, self.arguments)
        settings = {
            "training": self.training.to_dict(),
            "epsilon": self.epsilon,
            "price_multiplier": self.price_multiplier,
            "targets": self.targets,
            "random_state": self.random_state,
            "network": self.network_.settings(),
            "columns": list(self.columns_),
            "groups": list(self.group_names_),
            "classes": self.label_classes_.tolist(),
            "classes_met": self.classes_.tolist(),
            "curve": list(self.learning_curve_.columns),
        }
        arrays = {
            **self.network_.arrays(),
            "acquirable": self.acquirable_.astype(float),
            "costs": self.costs_,
            "curve": self.learning_curve_.to_numpy(dtype=float),
        }
        return AgentState(settings, arrays)

    @classmethod
    def from_state(cls, state: AgentState) -> Self:
        """The agent that this state was taken from."""
        s, arrays = state.settings, state.arrays
        names = ("epsilon", "price_multiplier", "targets", "random_state")
        agent = cls(Training(**s["training"]), **{name: s[name] for name in names})
        agent.network_ = Network.restored(s["network"], arrays)
        agent.columns_, agent.group_names_ = tuple(s["columns"]), tuple(s["groups"])
        agent.acquirable_ = arrays["acquirable"] > 0
        agent.label_classes_, agent.costs_ = np.asarray(s["classes"]), arrays["costs"]
        agent.classes_ = np.asarray(s["classes_met"])
        agent.learning_curve_ = pd.DataFrame(arrays["curve"], columns=s["curve"]).astype({"round": int})
        return agent

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={self.epsilon:g}, random_state={self.random_state})"


def _learning(agent: Any) -> Any:
    try:
        return import_module(".learning", __package__)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{type(agent).__name__} learns with jax and optax, of which {error.name!r} is not installed: "
            "pip install 'afape[agents]'. A trained agent answers without them; afape.agents.FittedQ learns without them."
        ) from error
