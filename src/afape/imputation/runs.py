"""Runs of a policy on completed tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from ..agents.policy import Policy
from ..arrays import Bools, Floats, Ints
from ..classifiers import Classifier
from ..outcomes import NO_OUTCOMES, OwnOutcomes
from ..walk import Ground, RunCosts, WalkTable, run_costs
from .imputations import Imputations

__all__ = ["CompletedRuns", "completed_runs", "completed_steps"]


@dataclass(frozen=True, eq=False)
class CompletedRuns:
    """Costs of the policy's runs on every completed table, and which tables these are."""

    tables: list[RunCosts] = field(default_factory=list)
    identity: str = ""
    reason: str = ""  # why nothing can be imputed


def completed_runs(
    imputations: Imputations,
    policy: Policy,
    classifier: Classifier,
    used: Bools,
    walk: Callable[[Ground, Ints], Iterable[WalkTable]],
    outcomes: OwnOutcomes = NO_OUTCOMES,
) -> CompletedRuns:
    """Walk the complete rows once, and the others in every completed table; only rows that are ``used``."""
    if imputations.reason:
        return CompletedRuns(reason=imputations.reason)
    data = imputations.data
    complete, gaps = np.flatnonzero(data.complete & used), np.flatnonzero(~data.complete & used)

    def costs(values: Floats, rows: Ints) -> RunCosts:
        ground = Ground.everything(data, values, policy, classifier, outcomes)
        return run_costs(walk(ground, rows), data, n_outcomes=len(outcomes))

    once = costs(data.values, complete)
    tables = [once + costs(values, gaps) for values in imputations.tables()]
    return CompletedRuns(tables, imputations.identity)


def completed_steps(imputations: Imputations, used: Bools) -> int:
    """Rows to walk."""
    if imputations.reason:
        return 0
    complete = imputations.data.complete
    return int((complete & used).sum()) + len(imputations) * int((~complete & used).sum())
