"""Policies from models of Stable-Baselines3 and sb3-contrib."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from .._arguments import check_between, check_flag
from .._arrays import Bools, Floats, Ints, any_of
from ..data.problem import Problem
from .policy import Policy, one_hot_actions

__all__ = ["SB3Policy", "from_sb3", "observation"]


def from_sb3(model: Any, *, deterministic: bool = False, epsilon: float = 0.0) -> SB3Policy:
    """Make a policy from a Stable-Baselines3 model trained on `afape.gym.AcquisitionEnv`.

    Parameters
    ----------
    model
        A trained DQN (or another model with a Q network), MaskablePPO, PPO or A2C.
    deterministic : bool
        True to take the most probable action. Default: the probabilities of the model. A Q network has no probabilities;
        its policy always takes the action with the largest value.
    epsilon : float
        With a Q network: probability of a random action among those that are left.

    Returns
    -------
    SB3Policy

    Notes
    -----
    An acquired group gets probability 0, and the other probabilities are divided by their sum. If the model was trained
    with ``VecNormalize``, observations are normalised in the same way; a model that was loaded from a file needs its
    environment for this, ``DQN.load(path, env=env)``.
    """
    if not hasattr(model, "policy") or not hasattr(model, "observation_space"):
        raise TypeError(f"'model' must be a Stable-Baselines3 model, not {type(model).__name__}.")
    if not hasattr(model, "q_net") and not hasattr(model.policy, "get_distribution"):
        raise TypeError(
            f"'model' must have a Q network or a distribution of actions, but {type(model).__name__} has neither. DQN, "
            "MaskablePPO, PPO and A2C do."
        )
    check_flag("deterministic", deterministic)
    check_between("epsilon", epsilon, 0.0, 1.0)
    if epsilon and not hasattr(model, "q_net"):
        raise ValueError(f"'epsilon' must be 0 for {type(model).__name__}, which has its own probabilities.")
    return SB3Policy(model, deterministic, float(epsilon))


class SB3Policy:
    """A policy from a Stable-Baselines3 model; see `from_sb3`."""

    def __init__(self, model: Any, deterministic: bool, epsilon: float) -> None:
        self.model, self.deterministic, self.epsilon = model, deterministic, epsilon

    @property
    def columns_(self) -> tuple[str, ...] | None:
        """Columns of the environment; None if the model has no environment of ours, as after loading it without one."""
        data = self._records()
        return None if data is None else data.columns

    @property
    def column_group_(self) -> Ints | None:
        """Group of each column of the environment; None as for ``columns_``."""
        data = self._records()
        return None if data is None else data.column_group

    def _records(self) -> Any:
        env = self.model.get_env() if hasattr(self.model, "get_env") else None
        try:
            return None if env is None else env.get_attr("episodes")[0].data
        except AttributeError:
            return None

    def bind(self, problem: Problem) -> Policy:
        """Return the policy; raise an error if the problem has another number of groups than the training data."""
        actions = int(self.model.action_space.n)
        if actions != problem.n_groups + 1:
            raise ValueError(
                f"The model was trained with {actions - 1} groups, but the problem has {problem.n_groups}. Train it on an "
                "afape.gym.AcquisitionEnv of this problem."
            )
        return self

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Probability of each action, shape (n, G + 1), 0 for acquired groups."""
        seen = observation(values, acquired)
        expected = self.model.observation_space.shape
        if seen.shape[1:] != expected:
            raise ValueError(
                f"The model was trained on observations of shape {expected}, but these values and groups give "
                f"{seen.shape[1:]}. Train it on an afape.gym.AcquisitionEnv of this problem."
            )
        if not len(seen):
            return np.zeros((0, acquired.shape[1] + 1))
        normalizer = self.model.get_vec_normalize_env()
        if normalizer is not None:
            seen = normalizer.normalize_obs(seen)
        left = np.column_stack([~acquired, np.ones(len(acquired), dtype=bool)])
        return self._of_values(seen, left) if hasattr(self.model, "q_net") else self._of_distribution(seen, left)

    def _of_values(self, seen: Floats, left: Bools) -> Floats:
        import torch

        with torch.no_grad():
            value = self.model.q_net(self.model.policy.obs_to_tensor(seen)[0]).cpu().numpy()
        best = np.where(left, value, -np.inf).argmax(axis=1)
        greedy = one_hot_actions(best, left.shape[1] - 1)
        return np.asarray((1 - self.epsilon) * greedy + self.epsilon * left / left.sum(axis=1, keepdims=True))

    def _of_distribution(self, seen: Floats, left: Bools) -> Floats:
        import torch

        policy = self.model.policy
        masks = {"action_masks": left} if _takes_masks(policy) else {}
        with torch.no_grad():
            distribution = policy.get_distribution(policy.obs_to_tensor(seen)[0], **masks).distribution
        p = distribution.probs.cpu().numpy().astype(float) * left
        p[~any_of(p > 0), -1] = 1.0  # all probability was on acquired groups: stop
        if self.deterministic:
            return one_hot_actions(p.argmax(axis=1), left.shape[1] - 1)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def __repr__(self) -> str:
        return f"from_sb3({type(self.model).__name__})"


def observation(values: Floats, acquired: Bools) -> Any:
    """Observation of the environment, (n, d + G): values, 0 where unknown, then 1 for each acquired group."""
    largest = np.finfo(np.float32).max
    return np.column_stack([np.nan_to_num(values, nan=0.0).clip(-largest, largest), acquired]).astype(np.float32)


def _takes_masks(policy: Any) -> bool:
    return "action_masks" in signature(policy.get_distribution).parameters
