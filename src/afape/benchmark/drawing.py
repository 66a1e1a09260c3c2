"""One data set of an experiment: drawn, hidden, evaluated."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from ..comparison import Comparison, compare
from ..missingness import MAR
from ..notices import AfapeWarning
from ..nuisance import LearnedPropensity, LearnedValues, ValueRegressor
from ..support import SupportThresholds
from ..walk import WalkOptions
from .description import Run
from .world import World

__all__ = ["COLUMNS", "DataSet"]

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
                **_options(self.run),
            )
        return _records(found, world)


def _constant_propensity() -> LearnedPropensity:
    return LearnedPropensity(DummyClassifier(strategy="prior"))


def _options(run: Run) -> dict[str, Any]:
    regressor: Any = run.values
    if run.values == "constant":
        regressor = ValueRegressor(DummyRegressor(), pooled=True, multi_output=True)
    options: dict[str, Any] = {
        "values": LearnedValues(regressor, run.label),
        "walk": WalkOptions(max_states=16, n_trajectories=run.trajectories),
    }
    if not run.estimators or "mi" in run.estimators:
        options["n_imputations"] = run.imputations
    if run.split:
        options["split"] = run.split
    if not run.bounds:
        options["thresholds"] = SupportThresholds(share=1.0)
    return options


def _records(found: Comparison, world: World) -> list[dict[str, Any]]:
    table = found.table
    support = {name: evaluation.support for name, evaluation in found.evaluations.items()}
    out = []
    for line in table.to_dict("records"):
        own = support[line["policy"]]
        said = [*(["unsupported"] if own.warnings else []), *(["heavy"] if own.heavy else [])]
        line |= {"agent": line["policy"], "truth": world.truth[line["policy"]][line["target"]]}
        line |= {"unsupported": own.unsupported, "support": "; ".join(said)}
        out.append({column: line.get(column, np.nan) for column in COLUMNS})
    return out
