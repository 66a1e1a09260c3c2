"""One data set of an experiment: drawn, hidden, evaluated."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from ..comparison import Comparison, compare
from ..estimators import Estimate
from ..evaluation import true_cost
from ..missingness import MAR
from ..notices import AfapeWarning
from ..nuisance import LearnedPropensity, LearnedValues, ValueRegressor
from ..support import SupportThresholds
from ..walk import WalkOptions
from .description import Run
from .world import World

__all__ = ["COLUMNS", "COMPLETE", "DataSet"]

COMPLETE = "complete"  # not an estimator: the cost of the drawn rows without gaps

COLUMNS = (
    "agent", "estimator", "target", "truth", "estimate", "std_error", "lower", "upper", "bound_lower", "bound_upper", "ess",
    "unsupported", "support",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class DataSet:
    """Draws data set k of a run, and evaluates every agent on it; runs of the same size share their data sets."""

    world: World
    run: Run
    rows: int
    seed: int
    fingerprint: str

    @property
    def study(self) -> str:
        """What the draws are of."""
        return f"{self.run.name}, {self.rows} rows, seed {self.seed}, {self.fingerprint}"

    def __call__(self, k: int) -> list[dict[str, Any]]:
        """One record per agent, estimator and target."""
        world, rng = self.world, np.random.default_rng([self.seed, self.rows, k])
        complete = world.population.take(rng.integers(len(world.population), size=self.rows))
        data = world.mechanism.hide(complete, int(rng.integers(2**32)))
        names = self.run.agents or tuple(world.policies)
        walk = _walk(self.run)
        known = [None, world.mechanism.propensity(data)] if self.run.known else None
        # One thread of BLAS and OpenMP: sums in another order would change the last digits with the number of processes.
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore", AfapeWarning)  # what they say is in the records, or is what is measured
            found = compare(
                data,
                {name: world.policies[name] for name in names},
                world.classifier,
                missingness=MAR(list(self.run.assume)) if self.run.assume else world.missingness,
                estimators=list(self.run.estimators) or None,
                propensity=_constant_propensity() if self.run.propensity == "constant" else known,
                random_state=k,
                walk=walk,
                **_options(self.run),
            )
            same = {
                n: true_cost(complete, world.policies[n], world.classifier, random_state=k, walk=walk) for n in names
            }
        return [*_complete_records(same, world), *_records(found, world)]


def _constant_propensity() -> LearnedPropensity:
    return LearnedPropensity(DummyClassifier(strategy="prior"))


def _walk(run: Run) -> WalkOptions:
    return WalkOptions(max_states=0, n_trajectories=run.trajectories) if run.trajectories else WalkOptions()


def _options(run: Run) -> dict[str, Any]:
    regressor: Any = run.values
    if run.values == "constant":
        regressor = ValueRegressor(DummyRegressor(), pooled=True, multi_output=True)
    options: dict[str, Any] = {"values": LearnedValues(regressor, run.label)}
    if not run.estimators or "mi" in run.estimators:
        options["n_imputations"] = run.imputations
    if run.split:
        options["split"] = run.split
    if not run.bounds:
        options["thresholds"] = SupportThresholds(share=1.0)
    return options


def _complete_records(same: Mapping[str, Mapping[str, Estimate]], world: World) -> list[dict[str, Any]]:
    """What the same rows cost without gaps: the paper's J, and what every estimate on them is compared with."""
    out = []
    for agent, costs in same.items():
        for target, estimate in costs.items():
            low, high = estimate.interval()
            line = {"agent": agent, "estimator": COMPLETE, "target": target, "truth": world.truth[agent][target]}
            line |= {
                "estimate": estimate.value,
                "std_error": estimate.std_error,
                "lower": low,
                "upper": high,
                "support": "",
            }
            out.append({column: line.get(column, np.nan) for column in COLUMNS})
    return out


def _records(found: Comparison, world: World) -> list[dict[str, Any]]:
    table = found.table
    support = {name: evaluation.support for name, evaluation in found.evaluations.items()}
    out = []
    for line in table.to_dict("records"):
        own = support[line["policy"]]
        said = [*(["support"] if own.warnings else []), *(["heavy"] if own.heavy else [])]
        line |= {"agent": line["policy"], "truth": world.truth[line["policy"]][line["target"]]}
        line |= {"unsupported": own.unsupported, "support": "; ".join(said)}
        out.append({column: line.get(column, np.nan) for column in COLUMNS})
    return out
