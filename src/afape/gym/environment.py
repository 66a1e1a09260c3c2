"""One episode at a time: the Gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ..arrays import Bools
from .episodes import Episodes, checked_actions

__all__ = ["AcquisitionEnv", "action_space", "observation_space"]

Observation = NDArray[np.float32]


class AcquisitionEnv(gymnasium.Env[Observation, np.int64]):
    """Acquire groups of one row at a price, then stop and pay for a wrong prediction.

    On complete data every group can be acquired, as in deployment (*online*). On records with gaps, an episode is limited
    to what its row has recorded (*semi-offline*, blocked): the average return is then that of the blocked policy, not of
    the agent, so train here and judge with `afape.evaluate`.

    Parameters
    ----------
    data : Retrospective
        Complete data or records; each episode runs on a row drawn at random.
    classifier
        Predicts where an episode stops.

    Notes
    -----
    *Observation*: the columns in group order, 0 where unknown, followed by 1 for each acquired group. *Actions*: the groups,
    and G to stop. ``info["action_mask"]`` and ``action_masks()`` tell which are open; any other action ends the episode as
    stopping does (``info["blocked"]``), as for a deterministic policy that is blocked. A learner that takes no mask therefore
    learns the cost of stopping for actions that are seldom recorded; prefer one that takes masks on records.
    *Reward*: minus the price, at the end minus the misclassification cost; no discount belongs to it.
    ``reset(options={"row": i})`` chooses the row.

    Examples
    --------
    >>> import pandas as pd
    >>> from afape import Problem, Retrospective
    >>> problem = Problem({"a": ["a"], "b": ["b"]}, costs={"b": 1.0}, label="y", misclassification_cost=5.0)
    >>> data = Retrospective(pd.DataFrame({"a": [1.0, 2.0], "b": [None, 3.0], "y": [0, 1]}), problem)
    >>> classifier = type("Zero", (), {"predict": lambda self, values, acquired: [0] * len(values)})()
    >>> env = AcquisitionEnv(data, classifier)
    >>> env.reset(options={"row": 1})[0].tolist(), env.action_masks().tolist()
    ([2.0, 0.0, 1.0, 0.0], [False, True, True])
    >>> env.step(1)[1], env.step(2)[1]
    (-1.0, -5.0)
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (declared by the base class)

    def __init__(self, data: Any = None, classifier: Any = None) -> None:
        self.episodes = Episodes(data, classifier, 1)
        self.observation_space = observation_space(self.episodes)
        self.action_space = action_space(self.episodes)
        self._running = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode on a row drawn at random, or on ``options["row"]``."""
        super().reset(seed=seed)
        n = len(self.episodes.data)
        row = (options or {}).get("row")
        if row is None:
            row = self.np_random.integers(n)
        elif isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < n:
            raise ValueError(f"'row' in the options must be a row from 0 to {n - 1}, but is {row!r}.")
        self.episodes.start(np.array([0]), np.array([row]))
        self._running = True
        return self.episodes.observe()[0], self._info(False)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Acquire a group, or stop."""
        if not self._running:
            raise RuntimeError("No episode is running; call reset() first.")
        checked = checked_actions(action, (), self.episodes.data.problem.n_groups)
        outcome = self.episodes.act(np.array([0]), checked)
        self._running = not outcome.ended[0]
        info = self._info(bool(outcome.blocked[0]))
        return self.episodes.observe()[0], float(outcome.reward[0]), bool(outcome.ended[0]), False, info

    def action_masks(self) -> Bools:
        """Which actions are open, as sb3-contrib asks for them."""
        return np.asarray(self.episodes.masks()[0])

    def _info(self, blocked: bool) -> dict[str, Any]:
        return {
            "action_mask": self.action_masks().astype(np.int8),
            "row": int(self.episodes.row[0]),
            "blocked": blocked,
        }


def observation_space(episodes: Episodes) -> spaces.Box[np.float32]:
    """Any number per column, 0 or 1 per group; the same whatever the rows, so that a model fits other rows too."""
    d, n_groups = episodes.data.values.shape[1], episodes.acquired.shape[1]
    largest = np.finfo(np.float32).max
    low = np.concatenate([np.full(d, -largest), np.zeros(n_groups)]).astype(np.float32)
    high = np.concatenate([np.full(d, largest), np.ones(n_groups)]).astype(np.float32)
    return spaces.Box(low, high, dtype=np.float32)


def action_space(episodes: Episodes) -> spaces.Discrete:
    """The groups, and stopping."""
    return spaces.Discrete(episodes.acquired.shape[1] + 1)
