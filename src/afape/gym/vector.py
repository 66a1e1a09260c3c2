"""Many episodes at a time, with one call of the classifier per step."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ..arguments import check_count
from ..arrays import Bools, Floats
from .environment import Observation, action_space, observation_space
from .episodes import Episodes, checked_actions

__all__ = ["AcquisitionVectorEnv"]


class AcquisitionVectorEnv(VectorEnv[Observation, NDArray[np.int64], NDArray[Any]]):
    """`AcquisitionEnv` for many episodes at a time.

    An episode that has ended starts anew in the step after it, whose action is then ignored (Gymnasium's next-step
    autoreset).

    Parameters
    ----------
    data, classifier
        As for `AcquisitionEnv`.
    num_envs : int
        Episodes at a time.
    """

    metadata = {  # noqa: RUF012 (declared by the base class)
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, data: Any = None, classifier: Any = None, num_envs: int = 1) -> None:
        check_count("num_envs", num_envs, 1)
        self.num_envs = int(num_envs)
        self.episodes = Episodes(data, classifier, self.num_envs)
        self.single_observation_space = observation_space(self.episodes)
        self.single_action_space = action_space(self.episodes)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._ended: Bools | None = None

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start all episodes on rows drawn at random."""
        if isinstance(seed, list):
            raise TypeError("'seed' must be one number: all episodes draw from one generator.")
        super().reset(seed=seed)
        self._ended = np.ones(self.num_envs, dtype=bool)
        self._start_ended()
        return self.episodes.observe(), self._info(np.zeros(self.num_envs, dtype=bool))

    def step(self, actions: Any) -> tuple[Observation, Floats, Bools, Bools, dict[str, Any]]:
        """Take one action in each running episode, and start those anew that have ended."""
        if self._ended is None:
            raise RuntimeError("No episode is running; call reset() first.")
        chosen = checked_actions(actions, (self.num_envs,), self.episodes.data.problem.n_groups)
        running = np.flatnonzero(~self._ended)
        reward, blocked = np.zeros(self.num_envs), np.zeros(self.num_envs, dtype=bool)
        self._start_ended()
        outcome = self.episodes.act(running, chosen[running])
        reward[running], blocked[running], self._ended[running] = outcome.reward, outcome.blocked, outcome.ended
        never = np.zeros(self.num_envs, dtype=bool)
        return self.episodes.observe(), reward, self._ended.copy(), never, self._info(blocked)

    def action_masks(self) -> Bools:
        """Which actions are open, one row per episode."""
        return self.episodes.masks()

    def _start_ended(self) -> None:
        assert self._ended is not None
        places = np.flatnonzero(self._ended)
        self.episodes.start(places, self.np_random.integers(len(self.episodes.data), size=len(places)))
        self._ended[:] = False

    def _info(self, blocked: Bools) -> dict[str, Any]:
        every = np.ones(self.num_envs, dtype=bool)
        parts = {
            "action_mask": self.action_masks().astype(np.int8),
            "row": self.episodes.row.copy(),
            "blocked": blocked,
        }
        return parts | {f"_{name}": every for name in parts}
