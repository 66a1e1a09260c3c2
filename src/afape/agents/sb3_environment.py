"""What the environment of a Stable-Baselines3 model does to observations, found in its wrappers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["observers_of", "records_of"]

# Wrappers that change neither observations nor the meaning of actions.
_HARMLESS = frozenset(
    {
        *("Monitor", "ActionMasker", "OrderEnforcing", "PassiveEnvChecker", "TimeLimit", "RecordEpisodeStatistics"),
        *("RecordVideo", "TransformReward", "ClipReward", "NormalizeReward"),
        *("VecMonitor", "VecCheckNan", "VecVideoRecorder"),
    }
)
_WAY = "say with 'observe' what was done to the observations: a function of them, or observe='plain' for nothing."


def observers_of(model: Any) -> list[Callable[[Any], Any]]:
    """Return the functions that were applied to the observations of `AcquisitionEnv`, in their order.

    Raises an error, which names the wrapper, if the environment does something else to observations or actions.
    """
    name = type(model).__name__
    env = _environment(model)
    if env is None:
        raise ValueError(
            f"'model' must come with its environment, but {name} has none, as after loading it from a file. So it is unknown "
            f"if observations were normalised. Load it with load(path, env=env), or {_WAY}"
        )
    found: list[Callable[[Any], Any]] = []
    while hasattr(env, "venv"):
        if hasattr(type(env), "normalize_obs"):  # of the type: wrappers hand on attributes of what they wrap
            found.append(env.normalize_obs)
        elif type(env).__name__ not in _HARMLESS:
            raise _refused(name, env)
        env = env.venv
    if not hasattr(env, "envs"):
        raise ValueError(
            f"'model' must have an environment whose wrappers can be read, but {name} was trained in a "
            f"{type(env).__name__}, which runs in other processes. Please {_WAY}"
        )
    for one in env.envs:
        for layer in _layers(one):
            if hasattr(layer, "env") and type(layer).__name__ not in _HARMLESS and not _only_rewards(layer):
                raise _refused(name, layer)
        if not hasattr(one.unwrapped, "episodes"):
            raise ValueError(
                f"'model' must be trained on an afape.gym.AcquisitionEnv, but {name} was trained on "
                f"{type(one.unwrapped).__name__}. If that one has the same observations and actions, {_WAY}"
            )
    return found[::-1]


def records_of(model: Any) -> Any:
    """Return the records of the environment; None if the model has no environment of ours."""
    env = _environment(model)
    try:
        return None if env is None else env.get_attr("episodes")[0].data
    except AttributeError:
        return None


def _environment(model: Any) -> Any:
    return model.get_env() if hasattr(model, "get_env") else None


def _layers(env: Any) -> Iterator[Any]:
    """Yield the wrappers of an environment, outermost first, and the environment itself."""
    while hasattr(env, "env"):
        yield env
        env = env.env
    yield env


def _only_rewards(layer: Any) -> bool:
    from gymnasium import RewardWrapper

    return isinstance(layer, RewardWrapper)


def _refused(name: str, wrapper: Any) -> ValueError:
    return ValueError(
        f"'model' must see the observations of AcquisitionEnv, but {name} was trained through the wrapper "
        f"{type(wrapper).__name__}, which may change observations or actions. If it changes observations only, {_WAY}"
    )
