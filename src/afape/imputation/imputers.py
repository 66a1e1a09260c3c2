"""Imputers: names of presets, scikit-learn's imputers and the user's own, as objects that draw completed tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import clone

from .._arrays import Floats, Ints
from ..data.retrospective import Retrospective
from .chained import MODELS, ChainedImputer

__all__ = ["Imputer", "SklearnImputer", "as_imputer", "categories_of"]


@runtime_checkable
class Imputer(Protocol):
    """Any object that draws completed tables from p(X_mis | X_obs, Y)."""

    def impute(self, data: Retrospective, n_imputations: int, random_state: int | None) -> Iterable[Floats]:
        """Complete tables of shape (n, d), equal to ``data.values`` where these are recorded."""
        ...


class SklearnImputer:
    """A scikit-learn imputer that draws, such as ``IterativeImputer(sample_posterior=True)``.

    It is fitted once per imputation, with a seed of its own, on the values and the one-hot encoded label. It returns levels
    of a category as numbers; the largest becomes the level. `IterativeImputer` draws every cell from its own predictive
    law, not all cells from one parameter draw, so its intervals are too narrow.

    Parameters
    ----------
    imputer : scikit-learn transformer
        With ``fit_transform`` and a ``random_state``.
    """

    def __init__(self, imputer: Any) -> None:
        parameters = imputer.get_params() if hasattr(imputer, "get_params") else {}
        if "random_state" not in parameters or not parameters.get("sample_posterior", True):
            raise ValueError(
                f"'imputer' must draw at random, but {imputer!r} gives the same values each time. Use "
                "IterativeImputer(sample_posterior=True), or the default."
            )
        self.imputer = imputer

    def impute(self, data: Retrospective, n_imputations: int, random_state: int | None) -> Iterator[Floats]:
        """Completed tables of shape (n, d), one after another."""
        n_columns = data.values.shape[1]
        table = np.column_stack([data.values, np.eye(len(data.classes))[data.labels][:, 1:]])
        for seed in np.random.SeedSequence(random_state).generate_state(n_imputations):
            model = clone(self.imputer).set_params(random_state=int(seed))
            completed = np.asarray(model.fit_transform(table), dtype=float)
            if completed.shape == table.shape:  # the caller refuses other shapes
                completed = completed[:, :n_columns]
                for columns in categories_of(data):
                    completed[:, columns] = np.eye(len(columns))[completed[:, columns].argmax(axis=1)]
            yield completed

    def __repr__(self) -> str:
        return f"SklearnImputer({self.imputer!r})"


def categories_of(data: Retrospective) -> list[Ints]:
    """Columns of each category that is encoded in several columns."""
    found = [np.flatnonzero(data.source_column == s) for s in np.unique(data.source_column)]
    return [columns for columns in found if len(columns) > 1]


def as_imputer(imputer: Any) -> Imputer:
    """Turn None, the name of a preset or an object into an imputer; raises if it cannot impute."""
    if imputer is None:
        return ChainedImputer()
    if isinstance(imputer, str):
        if imputer not in MODELS:
            raise ValueError(f"'imputer' must be one of {list(MODELS)} or an object, but is {imputer!r}.")
        return ChainedImputer(imputer)
    if isinstance(imputer, type):
        raise TypeError(f"'imputer' must be an instance, but is the class {imputer.__name__}.")
    if isinstance(imputer, Imputer):
        return imputer
    if hasattr(imputer, "fit_transform"):
        return SklearnImputer(imputer)
    raise TypeError(
        f"'imputer' must be None, one of {list(MODELS)}, an object with impute(data, n_imputations, random_state), or a "
        f"scikit-learn imputer, not {type(imputer).__name__}."
    )
