"""Weights: the propensities that an assumption needs, bound to the records, and what states weigh in a view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from ..arrays import Bools, Floats, Ints, every, lines_of
from ..data import Retrospective
from ..missingness import MAR, MCAR, MNAR
from ..missingness.assumptions import Conditioning
from ..notices import FarValuesWarning, PropensityFitWarning, warn
from ..support import SupportMap
from ..walk import WalkTable
from .propensity.answer import FactorParts, PatternParts
from .propensity.autoregressive import AutoregressivePropensity
from .propensity.chain import ChainPropensity, canonical_order
from .propensity.factor import NotLearnableError
from .propensity.known import BoundKnownPropensity, KnownPropensity
from .propensity.learned import BoundPropensity, LearnedPropensity
from .propensity.logistic import held

__all__ = ["Propensities", "PropensitySpec", "View", "WeightedStates", "bind_propensity"]

PropensitySpec = KnownPropensity | LearnedPropensity

_MANY_FACTORS = 64  # more models per fold than this, and one model of all indicators is cheaper

FORM_COLUMNS = ["group", "form", "gain", "calibration_slope", "calibration_gap"]

Shared = dict[tuple[Any, ...], BoundPropensity]  # propensities by what they are a function of


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
        What the probability of a complete row is conditional on; None where it is not identified.
    of_complete : dict
        The probability of a complete row; under a graph it may have more to adjust for than the policy needs. Empty
        where it is not identified.
    asked : ndarray of bool, shape (u, G)
        Sets that the policies want.
    ignorable : bool
        Whether all recording is at random given what is always recorded, so that gaps can be imputed.
    reasons : tuple of str
        What the assumption says, in words.
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

        ``asked`` are the sets that the policy reaches. ``complete`` says whether the probability of complete rows is needed;
        None: if it can be learned. ``shared`` are propensities that were bound before, for other policies on these records.
        """
        shared = {} if shared is None else shared
        wanted = np.logical_or.reduce(asked, axis=0) | data.problem.free
        given, reasons = missingness.conditioning(data, wanted), missingness.reasons(data, wanted)
        whole, ignorable = _of_complete_rows(data, missingness, given)
        of_sets = {name: bind_propensity(spec, data, given, fold, asked, shared) for name, spec in specs.items()}
        of_complete: dict[str, BoundPropensity] = {}
        if whole is given:
            everything = np.ones(data.problem.n_groups, dtype=bool)
            of_complete = {
                name: p
                for name, p in of_sets.items()
                if not isinstance(p, BoundKnownPropensity) or p.covers(everything)
            }
        elif whole is not None and complete is not False:
            try:
                of_complete = {
                    name: bind_propensity(spec, data, whole, fold, asked, shared) for name, spec in specs.items()
                }
            except NotLearnableError as error:
                if complete:
                    raise
                warn(f"ipw-miss is left out. {error}", PropensityFitWarning)
        return Propensities(given, of_sets, whole, of_complete, asked, ignorable, reasons, data.problem.group_names)

    def forms(self) -> pd.DataFrame:
        """The form of the models of each group that the policy wants, and their calibration on rows not learned from."""
        wanted = np.logical_or.reduce(self.asked, axis=0)
        lines = []
        for propensity in self.of_sets.values():
            if isinstance(propensity, ChainPropensity | AutoregressivePropensity) and propensity.estimator is None:
                for g in (g for g in propensity.order if wanted[g]):
                    form = propensity.forms.of(g)
                    lines.append((self.names[g], form.name, form.gain, form.slope, form.gap))
        return pd.DataFrame(lines, columns=FORM_COLUMNS)

    @property
    def notes(self) -> tuple[str, ...]:
        """What estimates stand on, and what the learned propensities did that a reader should know."""
        notes = list(self.reasons)
        forms = self.forms()
        other = forms[forms["form"] != "linear"]
        notes += [
            f"The recording of {g} is learned by this form: {f}."
            for g, f in zip(other["group"], other["form"], strict=True)
        ]
        if any(getattr(p, "sampled", False) for p in self.of_sets.values()):
            notes.append("With this many groups, probabilities of sets are means over 64 sampled patterns.")
        return tuple(notes)

    @property
    def converged(self) -> bool:
        """Whether every logistic fit so far converged."""
        bound = dict.fromkeys([*self.of_sets.values(), *self.of_complete.values()])
        return all(getattr(p, "converged", True) for p in bound)


def _of_complete_rows(
    data: Retrospective, missingness: MCAR | MAR | MNAR, given: Conditioning
) -> tuple[Conditioning | None, bool]:
    """What the probability of a complete row is conditional on, and whether gaps can be imputed."""
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
    spec: PropensitySpec,
    data: Retrospective,
    given: Conditioning,
    fold: Ints,
    asked: Bools,
    shared: Shared | None = None,
) -> BoundPropensity:
    """One propensity on these records; ``asked`` are sets that the policy reaches, by which the method is chosen.

    Nothing else depends on the policy, so that policies of the same method share their models.
    """
    if isinstance(spec, KnownPropensity):
        if given.label and not spec.labels:
            raise ValueError(
                f"{spec!r} must know the label, because recording depends on it here: write function(values, required, "
                "labels) and say KnownPropensity(function, labels=True)."
            )
        return spec.bind(data)
    method, gaps = spec.method, bool(given.gaps.any())
    if method == "auto":
        method = "autoregressive" if not gaps and _too_many(spec, data, asked) else "chain"
    if method == "autoregressive" and gaps:
        raise ValueError(
            "'method' autoregressive needs everything that recording depends on to be always recorded. Under this graph "
            "use method='chain'."
        )
    shared = {} if shared is None else shared
    key = (method, id(spec), given.groups.tobytes(), given.gaps.tobytes(), given.label, given.blocks)
    if key not in shared:
        _tell_held(data, given, spec)
        shared[key] = _learned(spec, data, given, fold, method)
    return shared[key]


def _learned(
    spec: LearnedPropensity, data: Retrospective, given: Conditioning, fold: Ints, method: str
) -> BoundPropensity:
    if method == "autoregressive":
        joint = AutoregressivePropensity(data, given, fold, spec.min_propensity, form=spec.form)
        joint.stacked = spec.stacked
        return joint
    chain = ChainPropensity(
        data, given, fold, spec.estimator, method == "independent", spec.min_propensity, form=spec.form
    )
    chain.stacked = spec.stacked and spec.estimator is None
    return chain


def _tell_held(data: Retrospective, given: Conditioning, spec: LearnedPropensity) -> None:
    """Warn of columns with values so far off that they would decide the default model alone."""
    columns = given.columns(data)
    _, far = held(data.values[:, columns])
    if spec.estimator is None and far.any():
        told = ", ".join(f"{data.columns[columns[j]]!r} ({far[j]} of {len(data)} rows)" for j in np.flatnonzero(far))
        warn(
            f"Values more than 100 times as far from the median as half of the others are held at that distance in the "
            f"propensity: {told}. Mend them if they are typing errors; if they are real, take logarithms.",
            FarValuesWarning,
        )


def _too_many(spec: LearnedPropensity, data: Retrospective, asked: Bools) -> bool:
    """Whether the chain rule would need more models than one of all indicators is worth."""
    if spec.estimator is not None or spec.form == "boosting":
        return False
    order, prefixes = canonical_order(data), set()  # type: list[int], set[tuple[int, ...]]
    for required in asked:
        groups = tuple(g for g in order if required[g])
        prefixes.update(groups[: j + 1] for j in range(len(groups)))
        if len(prefixes) > _MANY_FACTORS:
            return True
    return False


class WeightedStates(NamedTuple):
    """The states that a view can use, with their weights; lines point into the walk's table."""

    lines: Ints
    sets: Bools  # (u, G) sets S + adj, one per set S
    set_of: Ints  # (m,) place of each line's set
    raw: Floats  # (m,) P(R >= S + adj | given) before clipping
    weight: Floats  # (m,) its inverse, after clipping
    clipped: Bools  # (m,)
    # what the probabilities are made of, where standard errors can use it
    parts: FactorParts | PatternParts = FactorParts()

    def only(self, keep: Bools) -> WeightedStates:
        """A part of the states."""
        if keep.all():
            return self
        lines, set_of, parts = self.lines[keep], self.set_of[keep], self.parts.only(keep)
        return WeightedStates(lines, self.sets, set_of, self.raw[keep], self.weight[keep], self.clipped[keep], parts)


class _Kept(WeakKeyDictionary[WalkTable, WeightedStates]):
    """Weights of tables that are still held; none of them goes along to another process or into a file."""

    def __reduce__(self) -> tuple[type[_Kept], tuple[()]]:
        return _Kept, ()


@dataclass(frozen=True, eq=False)
class View:
    r"""Which rows are used, and the weights of their states.

    The weight of a state S is :math:`1(R \ge S + adj) / P(R \ge S + adj \mid given)`. With ``adjust`` empty this is
    the semi-offline view (IPW-Semi), with all groups the missing-data view (IPW-Miss), and between them, with
    the groups that recording depends on where these have gaps, the hybrid view (IPW-Semi-Miss).

    States whose set is unsupported are not used. Where the start of a row is unsupported, the row itself is used, at
    weight 1, for runs of which nothing but bounds is known (`Endings`).
    """

    propensity: BoundPropensity
    recorded: Bools  # (n, G)
    adjust: Bools  # (G,)
    unsupported: SupportMap = field(default_factory=SupportMap)
    refusal: str = ""  # why there can be no answer in this view
    # Sums over patterns take long and are asked for several times; products of factors are quick, and take more memory.
    _summed: _Kept = field(init=False, repr=False, default_factory=_Kept)

    def lacks(self, table: WalkTable) -> Bools:
        """States whose set is unsupported."""
        return self.unsupported.lacks(table.row, table.sets | self.adjust, table.set_index)

    def weigh(self, table: WalkTable) -> WeightedStates:
        """Weights of the states in this table."""
        if (known := self._summed.get(table)) is not None:
            return known
        sets, index = table.sets | self.adjust, table.set_index
        lines = np.arange(len(table.row))
        if self.adjust.any():
            lines = np.flatnonzero(every(self.recorded | ~self.adjust)[table.row])
            index = index[lines]
        if self.unsupported:
            lacks = self.lacks(table)
            roots = np.flatnonzero(lacks & (table.depth == 0))
            lines = np.concatenate([lines[~lacks[lines]], roots])
            index = table.set_index[lines]
            index[len(lines) - len(roots) :] = len(sets)
            sets = np.concatenate([sets, np.zeros((1, sets.shape[1]), dtype=bool)])  # of probability 1
        by_set = table.set_lines if index is table.set_index else lines_of(index, len(sets))
        raw, parts = self.propensity.answer(table.row[lines], sets, by_set)
        clipped = raw < self.propensity.min_propensity
        used = np.where(clipped, self.propensity.min_propensity, raw)
        with np.errstate(divide="ignore"):  # probability 0 without a floor: the estimator says that it has no answer
            weight = 1.0 / used
        found = WeightedStates(lines, sets, index, raw, weight, clipped, parts)
        if isinstance(parts, PatternParts):
            self._summed[table] = found
        return found
