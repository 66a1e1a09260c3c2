"""AcquisitionEnv: a Gymnasium environment with one episode at a time."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from .._arguments import LARGEST_SEED, check_seed, shown
from .._arrays import Bools
from .episodes import Episodes, checked_actions, checked_options

__all__ = ["AcquisitionEnv", "action_space", "observation_space"]

Observation = NDArray[np.float32]


class AcquisitionEnv(gymnasium.Env[Observation, np.int64]):
    """Acquire groups of one row at a price, then stop and pay for a wrong prediction.

    On complete data every group can be acquired, as in deployment (*online*). On records with gaps, an episode can only
    acquire groups that its row has recorded (*semi-offline*, blocked). The mean return is then that of the blocked policy,
    not that of the agent: train here, and evaluate with `afape.evaluate`.

    Parameters
    ----------
    data : Retrospective
        Complete data or records; each episode runs on a random row, drawn in proportion to the weights of the rows.
    classifier
        Predicts the label where an episode stops.

    Notes
    -----
    *Observation*: the columns in group order, 0 where unknown, then 1 for each acquired group. *Actions*: the groups, and G
    to stop. ``info["action_mask"]`` and ``action_masks()`` show the allowed actions. Any other action ends the episode like
    stopping (``info["blocked"]``). A learner without masks therefore learns the cost of stopping for groups that are seldom
    recorded; on records, use a learner with masks. *Reward*: minus the price; at the end, minus the misclassification cost.
    Rewards are not discounted. ``reset(options={"row": i})`` chooses the row.

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
        """Start an episode on a random row, or on ``options["row"]``."""
        super().reset(seed=check_seed(seed, "seed", LARGEST_SEED))
        n = len(self.episodes.data)
        row = checked_options(options).get("row")
        row = self.episodes.draw(self.np_random, 1)[0] if row is None else _checked_row(row, n)
        self.episodes.start(np.array([0]), np.array([row]))
        self._running = True
        return self.episodes.observe()[0], self._info(False)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Acquire a group, or stop."""
        if not self._running:
            raise RuntimeError("No episode is running; call reset() first.")
        checked = checked_actions("action", action, (), self.episodes.data.problem.n_groups)
        effect = self.episodes.act(np.array([0]), checked)
        self._running = not effect.ended[0]
        info = self._info(bool(effect.blocked[0]))
        return self.episodes.observe()[0], float(effect.reward[0]), bool(effect.ended[0]), False, info

    def action_masks(self) -> Bools:
        """True for allowed actions, shape (G + 1,); sb3-contrib calls this method."""
        return np.asarray(self.episodes.masks()[0])

    def _info(self, blocked: bool) -> dict[str, Any]:
        return {
            "action_mask": self.action_masks().astype(np.int8),
            "row": int(self.episodes.row[0]),
            "blocked": blocked,
        }


def _checked_row(row: Any, n_rows: int) -> int:
    if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < n_rows:
        raise ValueError(f"options['row'] must be a row from 0 to {n_rows - 1}, but is {shown(row)}.")
    return int(row)


def observation_space(episodes: Episodes) -> spaces.Box[np.float32]:
    """Any number per column, 0 or 1 per group. It does not depend on the rows, so a model can be used with other rows."""
    d, n_groups = episodes.data.values.shape[1], episodes.acquired.shape[1]
    largest = np.finfo(np.float32).max
    low = np.concatenate([np.full(d, -largest), np.zeros(n_groups)]).astype(np.float32)
    high = np.concatenate([np.full(d, largest), np.ones(n_groups)]).astype(np.float32)
    return spaces.Box(low, high, dtype=np.float32)


def action_space(episodes: Episodes) -> spaces.Discrete:
    """Return the G + 1 actions: the groups, and stopping."""
    return spaces.Discrete(episodes.acquired.shape[1] + 1)
