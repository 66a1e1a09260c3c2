"""Settings of the training of Q networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .._arguments import LARGEST_SEED, check_between, check_choice, check_count, check_list
from .._arrays import Bools, Floats, Ints

__all__ = ["SetWeights", "Training", "check_agent_arguments"]

SetWeights = Callable[[Ints, Bools], Floats]  # rows (m,), sets (m, G) -> weights (m,)

_OPTIMIZERS = ("adam", "adamw", "rmsprop", "sgd")
_TARGETS = ("all", "recorded")


@dataclass(frozen=True)
class Training:
    """Settings of the training of a Q network.

    Training has ``n_rounds`` rounds. Each round runs ``n_episodes`` episodes in parallel, adds their states to the replay
    and then takes ``n_steps`` steps of the optimiser.

    Parameters
    ----------
    hidden : sequence of int
        Units of each hidden layer.
    optimizer : {"adam", "adamw", "rmsprop", "sgd"}
        Name of an optax optimiser.
    learning_rate : float
        Learning rate, for costs in units of the cost of the best constant prediction.
    n_rounds, n_episodes, n_steps : int
        Rounds; episodes and steps of the optimiser per round.
    batch_size : int
        States per step, drawn from the replay with replacement.
    replay_size : int
        States in the replay; new states replace the oldest.
    target_every : int
        Steps between two updates of the target network.
    explore_from, explore_to, explore_share : float
        The share of random actions falls linearly from ``explore_from`` to ``explore_to`` during the first
        ``explore_share`` of the rounds.
    pretraining : int
        Steps before the first round that fit only the costs of stopping, on random episodes.
    """

    hidden: Sequence[int] = (16, 16)
    optimizer: str = "adam"
    learning_rate: float = 1e-4
    n_rounds: int = 100
    n_episodes: int = 2048
    n_steps: int = 400
    batch_size: int = 256
    replay_size: int = 100_000
    target_every: int = 400
    explore_from: float = 1.0
    explore_to: float = 0.3
    explore_share: float = 0.5
    pretraining: int = 0

    def __post_init__(self) -> None:
        hidden = tuple(check_count("hidden", n, 1) for n in check_list("hidden", self.hidden, "sizes such as (16, 16)"))
        if not hidden:
            raise ValueError("'hidden' must be a list of sizes such as (16, 16), but is empty.")
        object.__setattr__(self, "hidden", hidden)
        check_choice("optimizer", self.optimizer, _OPTIMIZERS)
        check_between("learning_rate", self.learning_rate, 0, above=True)
        for name in ("n_rounds", "n_episodes", "n_steps", "batch_size", "replay_size", "target_every"):
            check_count(name, getattr(self, name), 1)
        for name in ("explore_from", "explore_to", "explore_share"):
            check_between(name, getattr(self, name), 0, 1)
        check_count("pretraining", self.pretraining, 0)
        if self.replay_size < self.batch_size:
            raise ValueError(
                f"'replay_size' must hold at least one batch of {self.batch_size}, but is {self.replay_size}. Raise it, or "
                "lower 'batch_size'."
            )

    def exploration(self, round_: int) -> float:
        """Share of random actions in this round."""
        fall = self.explore_share * self.n_rounds
        done = 1.0 if fall == 0 else min(1.0, round_ / fall)
        return (1 - done) * self.explore_from + done * self.explore_to

    def to_dict(self) -> dict[str, Any]:
        """Return the settings for JSON."""
        return {**asdict(self), "hidden": list(self.hidden)}

    @staticmethod
    def checked(training: Any) -> Training:
        """Return ``training``; raise an error if it is not a `Training`."""
        if not isinstance(training, Training):
            raise TypeError(
                f"'training' must be an afape.agents.Training or None, but is {type(training).__name__}. "
                "Write, for example, Training(n_rounds=50)."
            )
        return training


def check_agent_arguments(epsilon: Any, price_multiplier: Any, targets: Any, random_state: Any) -> None:
    """Check the arguments that all agents with action values share."""
    check_between("epsilon", epsilon, 0, 1)
    check_between("price_multiplier", price_multiplier, 0)
    check_choice("targets", targets, _TARGETS)
    check_count("random_state", random_state, 0, LARGEST_SEED)
