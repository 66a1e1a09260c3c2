"""AcquisitionVectorEnv: many episodes at a time, with one call of the classifier per step. rollout() runs a policy in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from .._arguments import LARGEST_SEED, check_count, check_instance, check_seed
from .._arrays import Bools, Floats
from ..agents.policy import ask_policy, bind_to_records, drawn_actions
from ..walk.ground import block
from .environment import Observation, action_space, observation_space
from .episodes import Episodes, checked_actions, checked_options

__all__ = ["AcquisitionVectorEnv", "rollout"]


class AcquisitionVectorEnv(VectorEnv[Observation, NDArray[np.int64], NDArray[Any]]):
    """`AcquisitionEnv` for many episodes at a time.

    After an episode has ended, the next step starts a new one and ignores the action (Gymnasium's next-step autoreset).

    Parameters
    ----------
    data, classifier
        As in `AcquisitionEnv`.
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
        """Start all episodes on random rows."""
        if isinstance(seed, list):
            raise TypeError("'seed' must be one number: all episodes draw from one generator.")
        checked_options(options)
        super().reset(seed=check_seed(seed, "seed", LARGEST_SEED))
        self._ended = np.ones(self.num_envs, dtype=bool)
        self._start_ended()
        return self.episodes.observe(), self._info(np.zeros(self.num_envs, dtype=bool))

    def step(self, actions: Any) -> tuple[Observation, Floats, Bools, Bools, dict[str, Any]]:
        """Take one action in each running episode, and start new episodes where one has ended."""
        if self._ended is None:
            raise RuntimeError("No episode is running; call reset() first.")
        chosen = checked_actions("actions", actions, (self.num_envs,), self.episodes.data.problem.n_groups)
        running = np.flatnonzero(~self._ended)
        reward, blocked = np.zeros(self.num_envs), np.zeros(self.num_envs, dtype=bool)
        self._start_ended()
        effect = self.episodes.act(running, chosen[running])
        reward[running], blocked[running], self._ended[running] = effect.reward, effect.blocked, effect.ended
        never = np.zeros(self.num_envs, dtype=bool)
        return self.episodes.observe(), reward, self._ended.copy(), never, self._info(blocked)

    def action_masks(self) -> Bools:
        """True for allowed actions, shape (num_envs, G + 1)."""
        return self.episodes.masks()

    def _start_ended(self) -> None:
        assert self._ended is not None
        places = np.flatnonzero(self._ended)
        self.episodes.start(places, self.episodes.draw(self.np_random, len(places)))
        self._ended[:] = False

    def _info(self, blocked: Bools) -> dict[str, Any]:
        every = np.ones(self.num_envs, dtype=bool)
        info = {
            "action_mask": self.action_masks().astype(np.int8),
            "row": self.episodes.row.copy(),
            "blocked": blocked,
        }
        return info | {f"_{name}": every for name in info}


def rollout(env: AcquisitionVectorEnv, policy: Any, n_episodes: int, random_state: int | None = 0) -> Floats:
    """Run episodes of a policy and return their returns.

    Actions are drawn from the policy, renormalised over the allowed actions. On complete data this is the policy itself, and
    minus the mean return estimates `afape.true_cost`. On records it is the blocked policy, and minus the mean return
    estimates ``blocking`` of `afape.evaluate`.

    Parameters
    ----------
    env : AcquisitionVectorEnv
    policy
        Any policy.
    n_episodes : int
        Number of episodes.
    random_state : int or None
        Seed of rows and actions.

    Returns
    -------
    ndarray of shape (n_episodes,)
    """
    check_count("n_episodes", n_episodes, 1)
    check_instance("env", env, AcquisitionVectorEnv, "an afape.gym.AcquisitionVectorEnv")
    bound = bind_to_records(policy, env.episodes.data)
    rng = np.random.default_rng(check_seed(random_state))
    rounds: list[Floats] = []
    while sum(map(len, rounds)) < n_episodes:  # complete rounds: taking episodes as they end would favour short ones
        env.reset(seed=int(rng.integers(2**31)))
        total, running = np.zeros(env.num_envs), np.ones(env.num_envs, dtype=bool)
        while running.any():
            episodes = env.episodes
            p = block(ask_policy(bound, episodes.values, episodes.acquired, episodes.row), episodes.masks()[:, :-1])
            _, reward, ended, _, _ = env.step(drawn_actions(p, rng))
            total += np.where(running, reward, 0.0)
            running &= ~ended
        rounds.append(total)
    return np.concatenate(rounds)[:n_episodes]
