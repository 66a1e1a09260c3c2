"""Arguments that `evaluate` and its relatives share: refused before any work, or put in order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .agents.policy import bind
from .arrays import Bools, Floats, Ints
from .data import Retrospective
from .missingness import MAR, MCAR, MNAR
from .nuisance import KnownPropensity, LearnedPropensity
from .support import SupportThresholds
from .walk import WalkOptions

__all__ = [
    "Silent",
    "bound_options",
    "check_missingness",
    "checked_thresholds",
    "chosen_names",
    "name_of",
    "propensity_specs",
    "row_identity",
]


def check_missingness(missingness: Any) -> None:
    """Refuse anything but an assumption."""
    if not isinstance(missingness, MCAR | MAR | MNAR):
        raise TypeError(
            f"'missingness' must be afape.MCAR(), afape.MAR(given=[...]) or afape.MNAR(graph=...), not {missingness!r}."
        )


def checked_thresholds(thresholds: Any) -> SupportThresholds:
    """Refuse anything but thresholds."""
    if thresholds is None:
        return SupportThresholds()
    if not isinstance(thresholds, SupportThresholds):
        raise TypeError(f"'thresholds' must be an afape.SupportThresholds, not {thresholds!r}.")
    return thresholds


def propensity_specs(propensity: Any) -> dict[str, KnownPropensity | LearnedPropensity]:
    """Suffix of the estimators' names for each propensity asked for."""
    listed = list(propensity) if isinstance(propensity, list | tuple) else [propensity]
    for p in listed:
        if p is None or isinstance(p, KnownPropensity | LearnedPropensity):
            continue
        if isinstance(p, type):
            raise TypeError(f"'propensity' must be an instance, but is the class {p.__name__}.")
        if not hasattr(p, "predict_proba"):
            raise TypeError(
                f"'propensity' must be None, a scikit-learn classifier, LearnedPropensity or KnownPropensity, not "
                f"{type(p).__name__}. A function that knows the probabilities goes into afape.KnownPropensity(function)."
            )
    specs = [
        LearnedPropensity()
        if p is None
        else p
        if isinstance(p, KnownPropensity | LearnedPropensity)
        else LearnedPropensity(p)
        for p in listed
    ]
    known = [p for p in specs if isinstance(p, KnownPropensity)]
    if not specs or len(known) > 1 or len(specs) - len(known) > 1:
        raise ValueError(
            "'propensity' must be one propensity, or a list of one learned (None) and one known, but the list has "
            f"{len(specs) - len(known)} learned and {len(known)} known."
        )
    return {"-gt" if len(specs) == 2 and isinstance(p, KnownPropensity) else "": p for p in specs}


def chosen_names(estimators: Sequence[str] | None, possible: list[str]) -> list[str] | None:
    """Estimators asked for, each once; None for all that are possible."""
    if estimators is None:
        return None
    if isinstance(estimators, str) or not isinstance(estimators, Sequence) or not estimators:
        raise ValueError(f"'estimators' must be a list of names, but is {estimators!r}.")
    for name in estimators:
        if name not in possible:
            raise ValueError(
                f"'estimators' must be among {possible} under this assumption and propensity, but {name!r} is not."
            )
    return list(dict.fromkeys(estimators))


def bound_options(walk: Any, data: Retrospective) -> WalkOptions:
    """Options with their simulation policy told about the problem."""
    if walk is not None and not isinstance(walk, WalkOptions):
        raise TypeError(f"'walk' must be an afape.WalkOptions, not {walk!r}.")
    options = walk or WalkOptions()
    if options.simulation is None:
        return options
    return replace(options, simulation=bind(options.simulation, data.problem, "simulation"))


def row_identity(data: Retrospective) -> str:
    """Which rows these are, so that only estimates on the same rows are compared."""
    return f"{data.source}:{hashlib.sha1(data.positions.tobytes()).hexdigest()}"


def name_of(thing: Any) -> str:
    """Short name of a policy or classifier."""
    text = repr(thing)
    return type(thing).__name__ if " object at 0x" in text or len(text) > 80 else text


class Silent:
    """Stands in for the classifier where only the policy's way matters."""

    def predict(self, values: Floats, acquired: Bools) -> Ints:
        """The first class."""
        return np.zeros(len(values), dtype=np.intp)
