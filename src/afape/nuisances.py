"""What an evaluation learns before it estimates: propensities, by view, and which estimators they allow."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import Bools, Ints
from .data import Retrospective
from .missingness import MNAR
from .notices import PropensityFitWarning
from .nuisance import BoundPropensity, Conditioning, KnownPropensity, LearnedPropensity, NotLearnableError

__all__ = [
    "BASELINES",
    "DIRECT",
    "DOUBLY_ROBUST",
    "IMPUTED",
    "MISSING",
    "WEIGHTED",
    "Nuisances",
    "base_of",
    "possible_names",
]

BASELINES = ("imp-mean", "blocking", "cc")
MISSING = "ipw-miss"
IMPUTED = "mi"
WEIGHTED = ("ipw-semi", "ipw-semi-miss")
DIRECT = ("dm-semi", "dm-semi-miss")
DOUBLY_ROBUST = ("drl-semi", "drl-semi-miss")
_SEMI = (WEIGHTED[0], DIRECT[0], DOUBLY_ROBUST[0])
_HYBRID = (WEIGHTED[1], DIRECT[1], DOUBLY_ROBUST[1])

Specs = dict[str, KnownPropensity | LearnedPropensity]


@dataclass(frozen=True, eq=False)
class Nuisances:
    """Propensities of one evaluation, by the suffix of the estimators' names.

    Attributes
    ----------
    given : Conditioning
        What weights are given; its gaps are the groups to adjust for.
    propensities : dict
        P(R >= S + adj | given).
    complete : dict
        The same for complete rows; under a graph, these may have more to adjust for than the policy needs. Empty
        where that is not identified.
    whole : Conditioning or None
        What the probability of a complete row is given.
    asked : ndarray of bool, shape (u, G)
        Sets that the policies want.
    ignorable : bool
        Whether all recording is at random given what is always recorded, so that gaps can be imputed.
    reasons : tuple of str
        What estimates stand on, in words.
    """

    given: Conditioning
    propensities: dict[str, BoundPropensity]
    complete: dict[str, BoundPropensity]
    whole: Conditioning | None
    asked: Bools
    ignorable: bool
    reasons: tuple[str, ...]

    @staticmethod
    def learned(
        data: Retrospective,
        missingness: Any,
        specs: Specs,
        fold: Ints,
        asked: Bools,
        wanted: Bools,
        names: Sequence[str] | None = None,
    ) -> Nuisances:
        """Bind known propensities, set up learned ones, for policies that reach the sets ``asked``.

        ``names`` are the estimators that these are for, if not all.
        """
        given, reasons = missingness.conditioning(data, wanted), missingness.reasons(data, wanted)
        whole: Conditioning | None = given
        ignorable = not given.gaps.any()
        if isinstance(missingness, MNAR) and missingness.graph is not None:
            everything = np.ones(data.problem.n_groups, dtype=bool)
            decided = missingness.identify(data, everything)
            ignorable = decided.kind != "MNAR"
            if not decided.identified:
                whole = None
            else:
                found = missingness.conditioning(data, everything)
                same = found.label == given.label and bool((found.groups == given.groups).all())
                whole = given if same else found
        propensities = {suffix: _bind(spec, data, given, fold, asked) for suffix, spec in specs.items()}
        if whole is None or whole is given:
            return Nuisances(
                given, propensities, {} if whole is None else propensities, whole, asked, ignorable, reasons
            )
        complete = {}
        if names is None or any(base_of(name) == MISSING for name in names):
            try:
                complete = {suffix: _bind(spec, data, whole, fold, asked) for suffix, spec in specs.items()}
            except NotLearnableError as error:
                if names is not None:
                    raise
                warnings.warn(f"ipw-miss is left out. {error}", PropensityFitWarning, stacklevel=4)
        return Nuisances(given, propensities, complete, whole, asked, ignorable, reasons)

    def names(self, asked: Sequence[str] | None, missingness: Any) -> list[str]:
        """Estimators to use: those asked for, or all that the assumption allows for this policy."""
        gaps = bool(self.given.gaps.any())
        if asked is None:
            left_out = {*(_SEMI if gaps else _HYBRID), *(() if self.complete else (MISSING,))}
            left_out |= set() if self.ignorable else {IMPUTED}
            return [n for n in possible_names(missingness, list(self.propensities)) if base_of(n) not in left_out]
        for name in asked:
            if gaps and base_of(name) in _SEMI:
                raise ValueError(
                    f"'estimators' has {name!r}, but here the recording of what the policy wants depends on groups "
                    f"that are not always recorded. Use {_HYBRID[_SEMI.index(base_of(name))]!r}."
                )
            if not self.complete and base_of(name) == MISSING:
                raise ValueError(
                    f"'estimators' has {name!r}, but under this graph the probability of a complete row is not identified."
                )
            if not self.ignorable and name == IMPUTED:
                raise ValueError(
                    f"'estimators' has {name!r}, but imputation needs data missing at random given what is always recorded, and "
                    "under this assumption they are not."
                )
        return list(asked)


def _bind(
    spec: KnownPropensity | LearnedPropensity, data: Retrospective, given: Conditioning, fold: Ints, asked: Bools
) -> BoundPropensity:
    if not isinstance(spec, KnownPropensity):
        return spec.bind(data, given, fold, asked)
    if given.label and not spec.labels:
        raise ValueError(
            f"{spec!r} must know the label, because recording depends on it here: write function(values, required, labels) "
            "and say KnownPropensity(function, labels=True)."
        )
    return spec.bind(data)


def base_of(name: str) -> str:
    """Name of an estimator without the suffix of its propensity."""
    return name.removesuffix("-gt")


def possible_names(missingness: Any, suffixes: Sequence[str]) -> list[str]:
    """Estimators that an assumption allows, in their usual order; under a graph the policy has a say too."""
    hybrid = isinstance(missingness, MNAR)
    out = [*BASELINES, *(MISSING + s for s in suffixes), IMPUTED]
    for bases in (WEIGHTED, DIRECT, DOUBLY_ROBUST):
        for base in bases if hybrid else bases[:1]:
            alone = base == DIRECT[0]  # no propensity in it
            out += [base] if alone else [base + s for s in suffixes]
    return out
