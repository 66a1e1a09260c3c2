"""Base of agents with a Q network: training on blocked episodes, action values by numpy, storage."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd

from .._arrays import Bools, Floats, Ints
from ..classifiers import column_means
from ..classifiers.training_rows import KnowsRows, TrainingRows
from ..data.problem import Problem
from ..data.retrospective import Retrospective
from .learned_agent import check_groups, check_states, not_trained
from .network import Network, NetworkShape, initial_parameters
from .policy import epsilon_greedy
from .replay import Records, Replay, Visits, run_episodes
from .settings import SetWeights, Training, check_agent_arguments
from .state import AgentState

if TYPE_CHECKING:
    from .q_learning import Learner

__all__ = ["ClassifyingAgent", "NetworkAgent"]


class NetworkAgent(KnowsRows):
    """Base of the agents that learn a Q network; arguments and attributes as in `DQN`."""

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
        """Return the default training."""
        return Training()

    @staticmethod
    def n_endings(n_classes: int) -> int:
        """Return the number of outputs about ending the run, E."""
        return 1

    @staticmethod
    def stop_value(endings: Any) -> Any:
        """Return the value of stopping (m,) from these outputs (m, E)."""
        return endings[:, 0]

    @staticmethod
    def ending_loss(endings: Any, old_endings: Any, batch: Any) -> Any:
        """Return the loss of the outputs for stopping, ``endings`` (m, E), as one number per transition of the batch, (m,)."""
        return (endings[:, 0] - batch.stop_cost) ** 2

    def _fit(self, records: Records) -> Self:
        try:
            from .q_learning import Learner, Program
        except ModuleNotFoundError as error:
            raise ImportError(
                f"{type(self).__name__} learns with jax and optax, but {error.name!r} is not installed: pip install "
                "'afape[agents]'. A trained agent does not need them; afape.agents.FittedQ learns without them."
            ) from error
        acquirable = tuple(records.acquirable.tolist())
        streams = np.random.SeedSequence(self.random_state).spawn(3)
        rng = np.random.default_rng(streams[0])
        network = self._start(records, np.random.default_rng(streams[1]))
        program = Program(
            network.shape,
            acquirable,
            self.double,
            self.targets == "recorded",
            self.stop_value,
            self.ending_loss,
            self.training,
        )
        seed = int(streams[2].generate_state(1)[0])
        prices = self.price_multiplier * records.data.problem.prices
        learner = Learner(program, network, records, prices, seed)
        self._remember(records)
        self.learning_curve_ = self._rounds(learner, records, rng)
        self.rows_ = TrainingRows.of(records.data)
        return self

    def _start(self, records: Records, rng: np.random.Generator) -> Network:
        """Return the network before training, with the standardisation of the records."""
        data = records.data
        count = np.maximum((~np.isnan(data.values)).sum(axis=0), 1)
        centre = column_means(data)
        spread = np.sqrt(np.nansum((data.values - centre) ** 2, axis=0) / count)
        shape = NetworkShape(
            tuple(data.column_group.tolist()),
            data.problem.n_groups,
            self.n_endings(len(data.classes)),
            tuple(self.training.hidden),
            self.dueling,
            self.sets,
        )
        return Network(shape, initial_parameters(shape, rng), centre, np.where(spread > 0, spread, 1.0), records.unit)

    def _rounds(self, learner: Learner, records: Records, rng: np.random.Generator) -> pd.DataFrame:
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
        """Mean cost of the episodes of a round, including exploration."""
        prices = np.append(self.price_multiplier * records.data.problem.prices, 0.0)
        stops = visits.action == records.data.problem.n_groups
        ends = self._end_costs(records, Visits(*(column[stops] for column in visits)))
        return float((prices[visits.action].sum() + ends.sum()) / self.training.n_episodes)

    def _end_costs(self, records: Records, ends: Visits) -> Floats:
        """Stopping costs of the states in which episodes stopped."""
        return ends.stop_cost

    def _remember(self, records: Records) -> None:
        data = records.data
        self.columns_, self.group_names_ = data.columns, data.problem.group_names
        self.acquirable_ = records.acquirable
        self.label_classes_, self.costs_ = data.classes, data.costs
        self.classes_ = data.classes[np.unique(data.labels)]

    def action_values(self, values: Floats, acquired: Bools) -> Floats:
        """Expected cost to go of each action, shape (n, G + 1), in the unit of the problem's costs."""
        out, n_groups = self._outputs(values, acquired), self.network_.shape.n_groups
        q = np.column_stack([out[:, :n_groups], self.stop_value(out[:, n_groups:])])
        return np.asarray(self.network_.unit * q, dtype=float)

    def _outputs(self, values: Floats, acquired: Bools) -> Floats:
        """Check the states; outputs of the trained network, shape (n, G + E)."""
        self._check_trained()
        shape = self.network_.shape
        states = check_states(self, values, acquired, len(shape.column_group), shape.n_groups)
        return np.asarray(self.network_.outputs(*states))

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Epsilon-greedy probabilities, shape (n, G + 1)."""
        q = self.action_values(values, acquired)
        return epsilon_greedy(q, ~np.asarray(acquired, dtype=bool) & self.acquirable_, self.epsilon)

    def bind(self, problem: Problem) -> Self:
        """Return the agent; raise an error if the problem has other groups than the training data."""
        self._check_trained()
        check_groups(self, self.group_names_, problem)
        return self

    @property
    def column_group_(self) -> Ints:
        """Group of each column of the training data, shape (d,)."""
        return np.array(self.network_.shape.column_group, dtype=np.intp)

    def _check_trained(self) -> None:
        if not hasattr(self, "network_"):
            raise not_trained(self, self.arguments)

    def state(self) -> AgentState:
        """Return settings, weights and learning curve."""
        self._check_trained()
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
        """Restore the agent."""
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
        targets = "" if self.targets == "all" else f"targets={self.targets!r}, "
        return f"{type(self).__name__}({targets}epsilon={self.epsilon:g}, random_state={self.random_state})"


class ClassifyingAgent(NetworkAgent):
    """Base of the agents whose network also predicts the label: policy and classifier in one."""

    arguments = "data"

    def fit(self, data: Retrospective, weights: SetWeights | None = None) -> Self:
        """Learn to acquire and to classify from these records; ``weights`` as in `DQN.fit`."""
        return self._fit(Records.of(data, None, weights))

    def predict(self, values: Floats, acquired: Bools) -> Ints:
        """Label codes of shape (n,) from the acquired groups."""
        return self.codes(self._outputs(values, acquired)[:, self.network_.shape.n_groups :], self.costs_)

    @staticmethod
    @abstractmethod
    def codes(endings: Floats, costs: Floats) -> Ints:
        """Return label codes (n,) from the outputs about ending the run (n, E) and costs (K, K) [true, predicted]."""

    def _end_costs(self, records: Records, ends: Visits) -> Floats:
        data = records.data
        return data.costs[data.labels[ends.row], self.predict(records.seen(ends.row, ends.acquired), ends.acquired)]
