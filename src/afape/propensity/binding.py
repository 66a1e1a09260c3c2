"""The propensities that an assumption needs, bound to the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from .._arrays import Bools, Ints
from ..data.retrospective import Retrospective
from ..missingness.assumptions import MAR, MCAR, MNAR, Conditioning
from ..missingness.factors import OddsBlock
from ..missingness.known_propensity import KnownPropensity
from ..warnings import FarValuesWarning, PropensityFitWarning, warn
from .autoregressive import MAX_CORRECTED, AutoregressivePropensity
from .chain import ChainPropensity, canonical_order
from .factor import NotLearnableError
from .known import BoundKnownPropensity
from .learned import LearnedPropensity
from .logistic import limit_far_values

__all__ = ["BoundPropensity", "Propensities", "PropensitySpec", "Shared", "bind_propensity"]

PropensitySpec = KnownPropensity | LearnedPropensity
BoundPropensity = ChainPropensity | AutoregressivePropensity | BoundKnownPropensity  # P(R >= S | given) on records

_MANY_FACTORS = 64  # with more models per fold than this, one model of all indicators is used
_FORM_COLUMNS = ["group", "form", "gain", "calibration_slope", "calibration_gap"]


class _ModelKey(NamedTuple):
    """All that a learned propensity depends on, for fixed records and folds."""

    spec: str  # name of the specification
    method: str
    groups: bytes
    gaps: bytes
    label: bool
    blocks: tuple[OddsBlock, ...]


Shared = dict[_ModelKey, ChainPropensity | AutoregressivePropensity]  # learned before, for other policies


@dataclass(frozen=True, eq=False)
class Propensities:
    """Propensities for policies that reach certain sets, by the name of their specification.

    Attributes
    ----------
    conditioning : Conditioning
        What weights are conditional on; its gaps are the groups to adjust for.
    of_sets : dict
        P(R >= S + adj | given).
    whole : Conditioning or None
        What the probability of a complete row is conditional on; None if it is not identified.
    of_complete : dict
        The probability of a complete row; under a graph it may have more groups to adjust for than the policy needs. Empty
        if it is not identified.
    asked : ndarray of bool, shape (u, G)
        Sets that the policies reach.
    ignorable : bool
        True if all recording is at random given what is always recorded, so that gaps can be imputed.
    reasons : tuple of str
        The assumption in words.
    names : tuple of str
        Names of the groups.
    """

    conditioning: Conditioning
    of_sets: dict[str, BoundPropensity]
    whole: Conditioning | None
    of_complete: dict[str, BoundPropensity]
    asked: Bools
    ignorable: bool
    reasons: tuple[str, ...]
    names: tuple[str, ...]

    @staticmethod
    def bind(
        data: Retrospective,
        missingness: MCAR | MAR | MNAR,
        specs: Mapping[str, PropensitySpec],
        fold: Ints,
        asked: Bools,
        complete: bool | None = None,
        shared: Shared | None = None,
    ) -> Propensities:
        """Bind known propensities and set up learned ones.

        ``asked`` (u, G) are the sets that the policy reaches. ``complete`` is True if the probability of complete rows is
        needed, None to include it if it can be learned. ``shared`` holds propensities that were learned for other policies
        on these records and folds, with these specifications; new ones are added to it.
        """
        shared = {} if shared is None else shared
        wanted = np.logical_or.reduce(asked, axis=0) | data.problem.free
        given, reasons = missingness.conditioning(data, wanted), missingness.reasons(data, wanted)
        whole, ignorable = _of_complete_rows(data, missingness, given)

        def bound(on: Conditioning) -> dict[str, BoundPropensity]:
            return {name: _bound(name, spec, data, on, fold, asked, shared) for name, spec in specs.items()}

        of_sets, of_complete = bound(given), {}
        if whole is given:
            everything = np.ones(data.problem.n_groups, dtype=bool)
            of_complete = {
                name: p
                for name, p in of_sets.items()
                if not isinstance(p, BoundKnownPropensity) or p.covers(everything)
            }
        elif whole is not None and complete is not False:
            try:
                of_complete = bound(whole)
            except NotLearnableError as error:
                if complete:
                    raise
                warn(f"ipw-miss is left out. {error}", PropensityFitWarning)
        return Propensities(given, of_sets, whole, of_complete, asked, ignorable, reasons, data.problem.group_names)

    def forms(self) -> pd.DataFrame:
        """Form and calibration of the models of each group that a policy wants, one line per group."""
        wanted = np.logical_or.reduce(self.asked, axis=0)
        lines = []
        for propensity in self.of_sets.values():
            if not isinstance(propensity, BoundKnownPropensity) and propensity.spec.estimator is None:
                for g in (g for g in propensity.order if wanted[g]):
                    form = propensity.forms.of(g)
                    lines.append((self.names[g], form.name, form.gain, form.slope, form.gap))
        return pd.DataFrame(lines, columns=_FORM_COLUMNS)

    @property
    def notes(self) -> tuple[str, ...]:
        """The assumption, and unusual properties of the learned propensities, in words."""
        notes = list(self.reasons)
        forms = self.forms()
        other = forms[forms["form"] != "linear"]
        notes += [
            f"The recording of {g} is learned by this form: {f}."
            for g, f in zip(other["group"], other["form"], strict=True)
        ]
        if any(isinstance(p, AutoregressivePropensity) and p.drawn for p in self.of_sets.values()):
            notes.append("With this many groups, probabilities of sets are means over 64 sampled patterns.")
        if any(isinstance(p, AutoregressivePropensity) and p.too_many for p in self.of_sets.values()):
            notes.append(
                f"With more than {MAX_CORRECTED} groups that are not always recorded, and so many sets, weights have no "
                "second-order correction: with few rows they are too large on average."
            )
        return tuple(notes)

    @property
    def converged(self) -> bool:
        """True if every logistic fit so far converged."""
        return all(p.converged for p in (*self.of_sets.values(), *self.of_complete.values()))


def _of_complete_rows(
    data: Retrospective, missingness: MCAR | MAR | MNAR, given: Conditioning
) -> tuple[Conditioning | None, bool]:
    """What the probability of a complete row is conditional on, and True if gaps can be imputed."""
    if not isinstance(missingness, MNAR) or missingness.graph is None:
        return given, not given.gaps.any()
    everything = np.ones(data.problem.n_groups, dtype=bool)
    decided = missingness.identify(data, everything)
    if not decided.identified:
        return None, decided.kind != "MNAR"
    found = missingness.conditioning(data, everything)
    same = found.label == given.label and bool((found.groups == given.groups).all())
    return given if same else found, decided.kind != "MNAR"


def bind_propensity(
    spec: PropensitySpec, data: Retrospective, given: Conditioning, fold: Ints, asked: Bools
) -> BoundPropensity:
    """Bind one propensity to these records; method "auto" is decided by ``asked`` (u, G), the sets that policies reach."""
    return _bound("", spec, data, given, fold, asked, {})


def _bound(
    name: str,
    spec: PropensitySpec,
    data: Retrospective,
    given: Conditioning,
    fold: Ints,
    asked: Bools,
    shared: Shared,
) -> BoundPropensity:
    """Bind a propensity, or return the shared one. If the method is "auto", the policy decides which one is used."""
    if isinstance(spec, KnownPropensity):
        by_label = given.label or (data.original is not None and bool(given.groups[-1]))
        if by_label and not spec.labels:
            raise ValueError(
                f"{spec!r} must use the label, because recording depends on it here: write function(values, required, "
                "labels) and pass KnownPropensity(function, labels=True)."
            )
        return BoundKnownPropensity(spec, data)
    method = _method(spec, data, given, asked)
    key = _ModelKey(name, method, given.groups.tobytes(), given.gaps.tobytes(), given.label, given.blocks)
    if key not in shared:
        _warn_of_far_values(data, given, spec)
        learn = AutoregressivePropensity if method == "autoregressive" else ChainPropensity
        shared[key] = learn(data, given, fold, spec)
    return shared[key]


def _method(spec: LearnedPropensity, data: Retrospective, given: Conditioning, asked: Bools) -> str:
    """The method of learning; "auto" is resolved."""
    gaps = bool(given.gaps.any())
    if spec.method == "auto":
        return "autoregressive" if not gaps and _has_many_factors(spec, data, asked) else "chain"
    if spec.method == "autoregressive" and gaps:
        raise ValueError(
            "'method' autoregressive needs all given groups to be always recorded, but under this graph some have gaps. Use "
            "method='chain'."
        )
    return spec.method


def _has_many_factors(spec: LearnedPropensity, data: Retrospective, asked: Bools) -> bool:
    """True if the chain rule needs more than 64 models per fold, and one model of all indicators can replace them."""
    if spec.estimator is not None or spec.form == "boosting":
        return False
    order, prefixes = canonical_order(data), set()  # type: list[int], set[tuple[int, ...]]
    for required in asked:
        groups = tuple(g for g in order if required[g])
        prefixes.update(groups[: j + 1] for j in range(len(groups)))
        if len(prefixes) > _MANY_FACTORS:
            return True
    return False


def _warn_of_far_values(data: Retrospective, given: Conditioning, spec: LearnedPropensity) -> None:
    """Warn of columns with values so far from the others that they would dominate the default model."""
    if spec.estimator is not None:
        return
    columns = given.columns(data)
    far = limit_far_values(data.values[:, columns], data.weight)[1]
    if far.any():
        named = ", ".join(f"{data.columns[columns[j]]!r} ({far[j]} of {len(data)} rows)" for j in np.flatnonzero(far))
        warn(
            "The propensity moves very far values: single ones to the nearest other value, others to 100 times the median "
            f"distance from the median: {named}. Correct them if they are typing errors; if they are real, take logarithms.",
            FarValuesWarning,
        )
