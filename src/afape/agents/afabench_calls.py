"""Calls of AFABench objects: states as torch tensors, answers as arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arguments import check_list, shown
from .._arrays import Bools, Floats, Ints

__all__ = ["Caller", "check_device", "check_feature_shape", "check_features", "columns_of", "name_of", "torch_of"]


@dataclass(frozen=True, eq=False)
class Caller:
    """Asks an AFABench object about states.

    Parameters
    ----------
    asked : object
        The object, for messages and its device.
    device : str or torch device, optional
        Where its tensors live. Default: the ``device`` of the object, else the processor.
    feature_shape : tuple of int, optional
        Shape of the features of one row. Default: one axis.
    """

    asked: Any
    device: Any = None
    feature_shape: tuple[int, ...] | None = None

    def __call__(
        self, function: Callable[..., Any], values: Floats, columns: Ints | None, **masks: Bools
    ) -> NDArray[Any]:
        """Call ``function`` with these features (n, d), 0 where unknown, and masks; returns its answer as an array.

        ``columns`` are the columns of the features, in the order of the object.
        """
        torch = torch_of()
        values = (
            values if columns is None or np.array_equal(columns, np.arange(values.shape[1])) else values[:, columns]
        )
        shape = (values.shape[1],) if self.feature_shape is None else self.feature_shape
        if prod(shape) != values.shape[1]:
            raise ValueError(
                f"'feature_shape' must have as many entries as there are features, {values.shape[1]}, but {shape} has "
                f"{prod(shape)}."
            )
        device = _device_of(self.asked) if self.device is None else self.device
        known = ~np.isnan(values)

        def tensor(array: NDArray[Any], dtype: Any, each: tuple[int, ...]) -> Any:
            return torch.as_tensor(array, dtype=dtype, device=device).reshape(len(values), *each)

        given = {"masked_features": tensor(np.where(known, values, 0.0), torch.float32, shape)}
        given["feature_mask"] = tensor(known, torch.bool, shape)
        given |= {name: tensor(mask, torch.bool, mask.shape[1:]) for name, mask in masks.items()}
        try:
            with torch.no_grad():
                answer = function(**given, label=None, feature_shape=torch.Size(shape))
        except Exception as error:
            if _misses_the_label(error):
                raise TypeError(
                    f"{name_of(self.asked)} needs the true label, which an agent in use does not have "
                    f"({type(error).__name__}: {error}). It can show what is possible, but its cost cannot be judged."
                ) from error
            raise
        return np.asarray(answer.detach().cpu() if hasattr(answer, "detach") else answer)

    def by_size(self, call: Callable[[Floats, Bools], NDArray[Any]], values: Floats, acquired: Bools) -> NDArray[Any]:
        """Call once per number of acquired groups: static methods take batches of one size only.

        The states of one step of a walk have one size, so this is one call there.
        """
        size = acquired.sum(axis=1)
        if not len(size) or (size == size[0]).all():
            return call(values, acquired)
        out: NDArray[Any] | None = None
        for n in np.unique(size):
            rows = np.flatnonzero(size == n)
            answer = call(values[rows], acquired[rows])
            if out is None:
                out = np.zeros((len(size), *answer.shape[1:]), dtype=answer.dtype)
            out[rows] = answer
        assert out is not None
        return out


def _misses_the_label(error: Exception) -> bool:
    text = str(error)
    return "label" in text.lower() or (isinstance(error, AttributeError | TypeError) and "NoneType" in text)


def _device_of(thing: Any) -> Any:
    device = getattr(thing, "device", None)
    return device if isinstance(device, str) or type(device).__name__ == "device" else "cpu"


def check_device(device: Any) -> Any:
    """Return the device; raise an error if torch does not know it."""
    if device is None:
        return None
    if not isinstance(device, str) and type(device).__name__ != "device":
        raise TypeError(f"'device' must be a torch device such as 'cpu' or 'cuda', but is {shown(device)}.")
    try:
        return torch_of().device(device)
    except RuntimeError as error:
        raise ValueError(f"'device' must be a torch device such as 'cpu' or 'cuda', but is {shown(device)}.") from error


def check_feature_shape(feature_shape: Any) -> tuple[int, ...] | None:
    """Return the shape as a tuple; raise an error if it is not one."""
    if feature_shape is None:
        return None
    found = check_list("feature_shape", feature_shape, "whole numbers such as (28, 28)")
    if not found or any(isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1 for n in found):
        raise ValueError(f"'feature_shape' must hold whole numbers of at least 1, but is {shown(feature_shape)}.")
    return tuple(int(n) for n in found)


def check_features(features: Any, argument: str = "features") -> list[str | int] | None:
    """Return the features as a list; `columns_of` checks later that the data have them."""
    if features is None:
        return None
    found = check_list(argument, features, "column names or indices")
    if not found:
        raise ValueError(f"{argument!r} must name at least one column, but is empty. Leave it out to keep the order.")
    return found


def columns_of(features: Sequence[Any], columns: Sequence[str]) -> Ints:
    """Return the column of each feature; raise an error for a feature that is no column, or is listed twice."""
    found = []
    for feature in features:
        if isinstance(feature, str) and feature in columns:
            found.append(list(columns).index(feature))
        elif isinstance(feature, int | np.integer) and not isinstance(feature, bool) and 0 <= feature < len(columns):
            found.append(int(feature))
        else:
            raise ValueError(
                f"'features' must name columns, but {shown(feature)} is not one. The columns are {shown(list(columns))}; "
                "levels of a category are columns of their own, so use indices of data.columns there."
            )
    if len(set(found)) < len(found):
        raise ValueError(f"'features' must name each column once, but is {shown(list(features))}.")
    return np.array(found, dtype=np.intp)


def name_of(thing: Any) -> str:
    """Name of an AFABench object or function in messages."""
    return getattr(thing, "__name__", type(thing).__name__)


def torch_of() -> Any:
    """Return torch; raise an error that says what to install."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "AFABench methods take torch tensors, but torch is not installed: pip install torch. afape itself does not need it."
        ) from error
    return torch
