"""One data set of a run: drawn, hidden, evaluated."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from ..action_values.models import LearnedValues, ValueRegressor
from ..comparison import compare
from ..estimators.estimate import Estimate
from ..evaluation import true_cost
from ..missingness.assumptions import MAR
from ..missingness.known_propensity import KnownPropensity
from ..propensity.learned import LearnedPropensity
from ..results.comparison import Comparison
from ..run.bootstrap import Bootstrap
from ..support.thresholds import SupportThresholds
from ..walk.walker import WalkOptions
from ..warnings import AfapeWarning
from .description import Run
from .world import World

__all__ = ["COLUMNS", "COMPLETE", "data_set_records"]

COMPLETE = "complete"  # stands in the column of estimators: the cost of the drawn rows without gaps

COLUMNS = (
    "agent", "estimator", "target", "truth", "estimate", "std_error", "lower", "upper", "bound_lower", "bound_upper", "ess",
    "unsupported", "support",
)  # fmt: skip


def data_set_records(world: World, run: Run, rows: int, seed: int, k: int) -> list[dict[str, Any]]:
    """Draw data set k and evaluate every agent on it: one record per agent, estimator and target.

    Rows and gaps depend on seed, number of rows and k only, so runs of the same size have the same data sets.
    """
    rng = np.random.default_rng([seed, rows, k])
    n = len(world.population)
    drawn = rng.integers(n, size=rows) if run.replace else rng.permutation(n)[:rows]
    complete = world.population.take(drawn)
    data = world.mechanism.hide(complete, int(rng.integers(2**32)))
    policies = {name: world.policies[name] for name in run.agents or world.policies}
    walk = WalkOptions(max_states=0, n_trajectories=run.trajectories) if run.trajectories else WalkOptions()
    # With one thread of BLAS and OpenMP the order of sums, and so the last digit, does not depend on the number of processes.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", AfapeWarning)  # the records contain or measure what the warnings say
        comparison = compare(
            data,
            policies,
            world.classifier,
            missingness=MAR(list(run.assume)) if run.assume else world.missingness,
            estimators=list(run.estimators) or None,
            random_state=k,
            walk=walk,
            **_nuisances(run, world.mechanism.propensity(data) if run.known else None),
        )
        without_gaps = {
            name: true_cost(complete, policy, world.classifier, random_state=k, walk=walk)
            for name, policy in policies.items()
        }
    return [*_complete_records(without_gaps, world), *_records(comparison, world, run.frozen > 0)]


def _nuisances(run: Run, known: KnownPropensity | None) -> dict[str, Any]:
    """Arguments of `compare`: propensity, action values, imputations, split and thresholds."""
    constant = ValueRegressor(DummyRegressor(), pooled=True, multi_output=True)
    regressor = constant if run.values == "constant" else run.values
    options: dict[str, Any] = {"values": LearnedValues(regressor, run.label)}
    if run.propensity == "constant":
        options["propensity"] = LearnedPropensity(DummyClassifier(strategy="prior"))
    elif known is not None:
        options["propensity"] = [None, known]
    if not run.estimators or "mi" in run.estimators:
        options["n_imputations"] = run.imputations
    if run.split:
        options["split"] = run.split
    if run.frozen:
        options["bootstrap"] = Bootstrap(run.frozen, refit=False)
    options["acquisition_weight"] = run.acquisition_weight
    if not run.bounds:
        options["thresholds"] = SupportThresholds(share=1.0)
    return options


def _complete_records(costs: Mapping[str, Mapping[str, Estimate]], world: World) -> list[dict[str, Any]]:
    """Costs of the drawn rows without gaps, which the paper calls J."""
    out = []
    for agent, by_target in costs.items():
        for target, estimate in by_target.items():
            low, high = estimate.interval()
            record = {
                "agent": agent,
                "estimator": COMPLETE,
                "target": target,
                "truth": world.truth[agent][target],
                "estimate": estimate.value,
                "std_error": estimate.std_error,
                "lower": low,
                "upper": high,
                "support": "",
            }
            out.append({column: record.get(column, np.nan) for column in COLUMNS})
    return out


def _records(comparison: Comparison, world: World, frozen: bool) -> list[dict[str, Any]]:
    out = []
    for line in comparison.table.to_dict("records"):
        support = comparison.evaluations[line["policy"]].support
        warned = [*(["support"] if support.warnings else []), *(["heavy"] if support.heavy else [])]
        line |= {"agent": line["policy"], "truth": world.truth[line["policy"]][line["target"]]}
        if frozen and (answer := comparison[line["policy"]].answers[line["estimator"]]).estimates:
            line = {**line, **_frozen(answer.estimates[line["target"]])}
        line |= {"unsupported": support.unsupported, "support": "; ".join(warned)}
        out.append({column: line.get(column, np.nan) for column in COLUMNS})
    return out


def _frozen(estimate: Estimate) -> dict[Any, float]:
    """Standard error and normal interval from the bootstrap replicates; nothing for `mi`, which has none."""
    if estimate.replicates is None:
        return {}
    low, high = estimate.interval(kind="bootstrap-normal")
    return {"std_error": estimate.bootstrap_std_error, "lower": low, "upper": high}
