"""Models of Stable-Baselines3 and sb3-contrib, as policies."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from ..arguments import check_between, check_flag
from ..arrays import Bools, Floats, any_of
from ..data import Problem
from .builtin import one_hot_actions
from .policy import Policy

__all__ = ["SB3Policy", "from_sb3", "observation"]


def from_sb3(model: Any, *, deterministic: bool = False, epsilon: float = 0.0) -> SB3Policy:
    """Make a policy of a Stable-Baselines3 model trained on `afape.gym.AcquisitionEnv`.

    Parameters
    ----------
    model
        A trained DQN (or another model with a Q network), MaskablePPO, PPO or A2C.
    deterministic : bool
        Take the most probable action. Default: the probabilities of the model. A Q network has none, its policy takes the
        action of largest value.
    epsilon : float
        With a Q network: probability of acting at random among the actions that are left.

    Notes
    -----
    A group that is acquired already gets no probability: its share goes to the other actions in proportion. If the model
    was trained through ``VecNormalize``, its observations are normalised in the same way; a model that was loaded from a
    file needs its environment for that, ``DQN.load(path, env=env)``.
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
        raise ValueError(f"'epsilon' must be 0 for {type(model).__name__}, which has probabilities of its own.")
    return SB3Policy(model, deterministic, float(epsilon))


class SB3Policy:
    """What `from_sb3` returns."""

    def __init__(self, model: Any, deterministic: bool, epsilon: float) -> None:
        self.model, self.deterministic, self.epsilon = model, deterministic, epsilon

    def bind(self, problem: Problem) -> Policy:
        """Refuse a problem with another number of groups than in training."""
        actions = int(self.model.action_space.n)
        if actions != problem.n_groups + 1:
            raise ValueError(
                f"The model was trained with {actions - 1} groups, but the problem has {problem.n_groups}. Train it on an "
                "afape.gym.AcquisitionEnv of this problem."
            )
        return self

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Probability of each action, none on acquired groups."""
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
        p[~any_of(p > 0), -1] = 1.0  # all on acquired groups: nothing is left to want
        if self.deterministic:
            return one_hot_actions(p.argmax(axis=1), left.shape[1] - 1)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def __repr__(self) -> str:
        return f"from_sb3({type(self.model).__name__})"


def observation(values: Floats, acquired: Bools) -> Any:
    """What the environment shows: values, 0 where unknown, then 1 for each acquired group."""
    largest = np.finfo(np.float32).max
    return np.column_stack([np.nan_to_num(values, nan=0.0).clip(-largest, largest), acquired]).astype(np.float32)


def _takes_masks(policy: Any) -> bool:
    return "action_masks" in signature(policy.get_distribution).parameters
