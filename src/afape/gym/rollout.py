"""Runs a policy in the environment."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..agents.policy import ask_policy, bind
from ..arguments import check_count
from ..arrays import Floats
from ..walk.ground import block
from .vector import AcquisitionVectorEnv

__all__ = ["rollout"]


def rollout(env: AcquisitionVectorEnv, policy: Any, n_episodes: int, random_state: int | None = 0) -> Floats:
    """Returns of so many episodes of a policy.

    Actions are drawn from the policy, renormalised over what is open: the blocked policy on records, the policy itself on
    complete data. Minus the mean return estimates what `afape.true_cost` computes on complete data, and ``blocking`` of
    `afape.evaluate` on records.

    Parameters
    ----------
    env : AcquisitionVectorEnv
        Runs as many episodes at a time as it has.
    policy
        Any policy.
    n_episodes : int
        Episodes.
    random_state : int or None
        Seed of rows and actions.
    """
    check_count("n_episodes", n_episodes, 1)
    if not isinstance(env, AcquisitionVectorEnv):
        raise TypeError(f"'env' must be an afape.gym.AcquisitionVectorEnv, not {type(env).__name__}.")
    bound = bind(policy, env.episodes.data.problem)
    rng = np.random.default_rng(random_state)
    parts: list[Floats] = []
    while sum(map(len, parts)) < n_episodes:  # whole rounds: to take what ends first would favour short episodes
        env.reset(seed=int(rng.integers(2**31)))
        total, running = np.zeros(env.num_envs), np.ones(env.num_envs, dtype=bool)
        while running.any():
            episodes = env.episodes
            p = block(ask_policy(bound, episodes.values, episodes.acquired, episodes.row), episodes.masks()[:, :-1])
            drawn = (rng.random((env.num_envs, 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
            _, reward, ended, _, _ = env.step(drawn)
            total += np.where(running, reward, 0.0)
            running &= ~ended
        parts.append(total)
    return np.concatenate(parts)[:n_episodes]
