"""Policies from models of Stable-Baselines3 and sb3-contrib."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from .._arguments import check_between, check_flag, check_takes, shown
from .._arrays import Bools, Floats, Ints
from ..data.problem import Problem
from ..warnings import AssumedOrderWarning, warn
from .policy import Policy, one_hot_actions
from .sb3_environment import observers_of, records_of

__all__ = ["SB3Policy", "from_sb3", "observation"]

_PLAIN = "plain"


def from_sb3(
    model: Any, *, deterministic: bool = False, epsilon: float = 0.0, observe: Callable[[Any], Any] | str | None = None
) -> SB3Policy:
    """Make a policy from a Stable-Baselines3 model trained on `afape.gym.AcquisitionEnv`.

    Parameters
    ----------
    model
        A trained DQN or QRDQN (or another model with a Q network), MaskablePPO, PPO or A2C. A recurrent model is refused,
        because its answer depends on earlier observations.
    deterministic : bool
        True to take the most probable action. Default: the probabilities of the model. A Q network has no probabilities;
        its policy always takes the action with the largest value.
    epsilon : float
        With a Q network: probability of a random action.
    observe : callable or "plain", optional
        What was done to the observations of `AcquisitionEnv` before the model saw them: a function of the observations
        (n, d + G), or "plain" for nothing. Default: as in the environment of the model. ``VecNormalize`` is applied; other
        wrappers of observations or actions are refused. A model that was loaded without its environment needs this
        argument: "plain", or ``VecNormalize.load(path, env).normalize_obs``.

    Returns
    -------
    SB3Policy

    Warns
    -----
    AssumedOrderWarning
        If the model has no environment, so that its columns cannot be compared with those of the data.

    Notes
    -----
    In `AcquisitionEnv` the choice of an acquired group ends the episode. A model without masks knows this, so its
    probability of acquired groups is added to stopping. A model with masks gives these groups probability 0.
    """
    if not hasattr(model, "policy") or not hasattr(model, "observation_space"):
        raise TypeError(f"'model' must be a Stable-Baselines3 model, not {type(model).__name__}.")
    if hasattr(model.policy, "lstm_actor"):
        raise TypeError(
            f"'model' must answer from the acquired values alone, but {type(model).__name__} also depends on earlier "
            "observations. Train PPO or MaskablePPO in its place; an observation holds everything acquired so far."
        )
    if _network(model) is None and not hasattr(model.policy, "get_distribution"):
        raise TypeError(
            f"'model' must have a Q network or a distribution of actions, but {type(model).__name__} has neither. DQN, "
            "QRDQN, MaskablePPO, PPO and A2C do."
        )
    check_flag("deterministic", deterministic)
    check_between("epsilon", epsilon, 0.0, 1.0)
    if epsilon and _network(model) is None:
        raise ValueError(f"'epsilon' must be 0 for {type(model).__name__}, which has its own probabilities.")
    if observe is not None and not callable(observe) and not (isinstance(observe, str) and observe == _PLAIN):
        raise TypeError(f"'observe' must be a function of observations, or 'plain', but is {shown(observe)}.")
    if callable(observe):
        check_takes("observe", observe, "observations")
    if observe is None:
        observers = observers_of(model)
    else:
        observers = [observe] if callable(observe) else []
    return SB3Policy(model, deterministic, float(epsilon), observers)


class SB3Policy:
    """A policy from a Stable-Baselines3 model; see `from_sb3`."""

    def __init__(self, model: Any, deterministic: bool, epsilon: float, observers: list[Callable[[Any], Any]]) -> None:
        self.model, self.deterministic, self.epsilon, self.observers = model, deterministic, epsilon, observers

    @property
    def columns_(self) -> tuple[str, ...] | None:
        """Columns of the environment; None if the model has no environment of ours, as after loading it without one."""
        data = records_of(self.model)
        return None if data is None else data.columns

    @property
    def column_group_(self) -> Ints | None:
        """Group of each column of the environment; None as for ``columns_``."""
        data = records_of(self.model)
        return None if data is None else data.column_group

    def bind(self, problem: Problem) -> Policy:
        """Return the policy; raise an error if the problem has other groups than the training data."""
        actions = int(self.model.action_space.n)
        if actions != problem.n_groups + 1:
            raise ValueError(
                f"The model was trained with {actions - 1} groups, but the problem has {problem.n_groups}. Train it on an "
                "afape.gym.AcquisitionEnv of this problem."
            )
        data = records_of(self.model)
        if data is None:
            warn(
                f"The {type(self.model).__name__} has no environment with names to compare, so its actions are taken as the "
                f"groups {list(problem.group_names)} in this order, and its observations as their columns in this order. "
                "Load the model with its environment, load(path, env=env), to compare the names.",
                AssumedOrderWarning,
            )
        elif data.problem.group_names != problem.group_names:
            raise ValueError(
                f"The model was trained with the groups {list(data.problem.group_names)}, but the problem has "
                f"{list(problem.group_names)}. Train it on an afape.gym.AcquisitionEnv of this problem."
            )
        return self

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Probability of each action, shape (n, G + 1), 0 for acquired groups."""
        seen = observation(values, acquired)
        for observe in self.observers:
            seen = observe(seen)
        expected = self.model.observation_space.shape
        if np.shape(seen)[1:] != expected:
            raise ValueError(
                f"The model was trained on observations of shape {expected}, but these values and groups give "
                f"{np.shape(seen)[1:]}. Train it on an afape.gym.AcquisitionEnv of this problem."
            )
        if not len(seen):
            return np.zeros((0, acquired.shape[1] + 1))
        self.model.policy.set_training_mode(False)  # as in `predict` of the model
        network = _network(self.model)
        p = self._of_distribution(seen, acquired) if network is None else self._of_values(network, seen)
        return _stopping_at_acquired(p, acquired)

    def _of_values(self, network: Any, seen: Any) -> Floats:
        import torch

        with torch.no_grad():
            value = network(self.model.policy.obs_to_tensor(seen)[0])
            value = value.mean(dim=1) if value.ndim == 3 else value  # quantiles
        best = value.cpu().numpy().argmax(axis=1)
        n_actions = value.shape[1]
        return np.asarray((1 - self.epsilon) * one_hot_actions(best, n_actions - 1) + self.epsilon / n_actions)

    def _of_distribution(self, seen: Any, acquired: Bools) -> Floats:
        import torch

        policy = self.model.policy
        left = np.column_stack([~acquired, np.ones(len(acquired), dtype=bool)])
        masks = {"action_masks": left} if "action_masks" in signature(policy.get_distribution).parameters else {}
        with torch.no_grad():
            distribution = policy.get_distribution(policy.obs_to_tensor(seen)[0], **masks).distribution
        p = distribution.probs.cpu().numpy().astype(float)
        if self.deterministic:
            return one_hot_actions(p.argmax(axis=1), acquired.shape[1])
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def __repr__(self) -> str:
        return f"from_sb3({type(self.model).__name__})"


def observation(values: Floats, acquired: Bools) -> Any:
    """Observation of the environment, (n, d + G): values, 0 where unknown, then 1 for each acquired group."""
    largest = np.finfo(np.float32).max
    return np.column_stack([np.nan_to_num(values, nan=0.0).clip(-largest, largest), acquired]).astype(np.float32)


def _network(model: Any) -> Any:
    """Return the Q network of DQN, or the quantile network of QRDQN; None for models with a distribution."""
    found = getattr(model, "q_net", None)
    return getattr(model, "quantile_net", None) if found is None else found


def _stopping_at_acquired(p: Floats, acquired: Bools) -> Floats:
    """Add the probability of acquired groups to that of stopping: choosing them ends an episode of `AcquisitionEnv`."""
    out = p.copy()
    out[:, :-1][acquired] = 0.0
    out[:, -1] += np.where(acquired, p[:, :-1], 0.0).sum(axis=1)
    return out
