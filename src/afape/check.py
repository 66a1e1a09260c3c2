"""check_support(): whether the records can carry a policy, before anything is estimated."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from .agents.policy import Policy, bind
from .arguments import Silent, bound_options, check_missingness, checked_thresholds, propensity_specs
from .arrays import Bools, any_of
from .data import Retrospective
from .estimators import Support, SupportReduction
from .missingness import MAR, MCAR, MNAR
from .notices import SupportWarning
from .nuisance import assign_folds
from .nuisances import Nuisances
from .positivity import Positivity, wanted_sets
from .support import SupportThresholds
from .walk import Ground, WalkOptions, WalkTable
from .walk import walk as walk_rows

__all__ = ["check_support"]

_ESTIMATORS = ["estimator", "ess", "normalizer", "normalizers", "largest_weight", "clipped"]


def check_support(
    data: Retrospective,
    policy: Policy,
    missingness: MCAR | MAR | MNAR,
    *,
    propensity: Any = None,
    thresholds: SupportThresholds | None = None,
    n_folds: int = 5,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    walk: WalkOptions | None = None,
) -> Support:
    """Check whether the records can carry a policy; `evaluate` does the same.

    Weighting and learning stand in for runs that nobody recorded by rows like them. Where there are none, no estimator
    can help. For every set of groups that the policy wants, the records are searched, without a model, for regions of
    what missingness depends on in which the set is not recorded.

    Parameters
    ----------
    data : Retrospective
        Records.
    policy
        Anything with ``probabilities(values, acquired)``.
    missingness : MCAR, MAR or MNAR
        What is assumed about why values are missing.
    propensity : optional
        As in `evaluate`, but one only. A `KnownPropensity` says itself what is unsupported.
    thresholds : SupportThresholds, optional
        When to speak up.
    n_folds, random_state, n_jobs, walk
        As in `evaluate`.

    Returns
    -------
    Support
        Its ``warnings`` are also given as `SupportWarning`.
    """
    if not isinstance(data, Retrospective):
        raise TypeError(f"'data' must be an afape.Retrospective, not {type(data).__name__}.")
    check_missingness(missingness)
    limits = checked_thresholds(thresholds)
    specs = propensity_specs(propensity)
    if len(specs) != 1:
        raise ValueError(f"'propensity' must be one propensity here, but is a list of {len(specs)}.")
    missingness.conditioning(data, np.zeros(data.problem.n_groups, dtype=bool))  # refuses names that do not fit
    options = bound_options(walk, data)
    bound = bind(policy, data.problem)
    fold_seed, walk_seed, *_ = np.random.SeedSequence(random_state).spawn(4)  # as in evaluate
    fold = assign_folds(len(data), n_folds, data.cluster, np.random.default_rng(fold_seed))
    seed = int(walk_seed.generate_state(1, np.uint64)[0])
    ground = Ground.recorded(data, bound, Silent())

    def tables() -> Iterator[WalkTable]:
        return walk_rows(ground, None, options, seed, n_jobs)

    held = list(tables())
    wanted = wanted_sets(held, data)
    nuisances = Nuisances.learned(data, missingness, specs, fold, wanted, any_of(wanted.T) | data.problem.free)
    positivity, given = Positivity(data, nuisances.given, limits), nuisances.given
    everything: Bools = np.ones(data.problem.n_groups, dtype=bool)
    semi = positivity.view(nuisances.propensities[""], given.gaps, wanted, lambda: held)
    miss = None
    if nuisances.complete:
        complete = Positivity(data, nuisances.whole or given, limits)
        miss = complete.view(nuisances.complete[""], everything, everything[None], lambda: held)
    reduction = SupportReduction(data, limits, given.gaps)
    for table in held:
        reduction.add(table, semi.weigh(table), semi)
    support = reduction.result(pd.DataFrame(columns=_ESTIMATORS), semi, miss, positivity.names)
    for text in support.warnings:
        warnings.warn(text, SupportWarning, stacklevel=2)
    return support
