"""Simulation: data sets drawn from a synthetic problem with known truth, evaluated in several settings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from afape.agents.policy import Policy
from afape.benchmark.draws import run_draws
from afape.benchmark.identity import checksum_of_records
from afape.benchmark.synthetic import SyntheticProblem, synthetic_policies
from afape.classifiers import Classifier
from afape.comparison import compare
from afape.data.retrospective import Retrospective
from afape.estimators.estimate import Estimate
from afape.evaluation import true_cost
from afape.missingness.assumptions import MAR
from afape.warnings import AfapeWarning

__all__ = [
    "KEYS",
    "Population",
    "Setting",
    "Task",
    "error_statistics",
    "population_of",
    "records_of",
    "simulate",
    "summarise",
    "true_costs",
]

KEYS = ("setting", "policy", "estimator", "target", "interval")


@dataclass(frozen=True)
class Task:
    """How many data sets a study draws, and where it writes its results.

    Attributes
    ----------
    out : Path
        Folder of the results; draws found there are not repeated.
    n_draws, n_rows : int
        Number of data sets, and rows of each.
    n_jobs : int
        Number of processes.
    progress : callable, optional
        Called as ``progress(done, total)``.
    """

    out: Path
    n_draws: int
    n_rows: int
    n_jobs: int = 1
    progress: Callable[[int, int], None] | None = None


@dataclass(frozen=True, eq=False)
class Setting:
    """One way to evaluate a data set.

    Attributes
    ----------
    name : str
        Name in tables.
    estimators : sequence of str
        Names of the estimators.
    known : bool
        True if estimators with the true propensity are added.
    missingness : MAR, optional
        Replaces the assumption of the problem.
    options : mapping
        Further arguments of `compare`.
    drop_unlabelled : bool
        True to leave out rows without a label.
    """

    name: str
    estimators: Sequence[str]
    known: bool = False
    missingness: MAR | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    drop_unlabelled: bool = False


@dataclass(frozen=True, eq=False)
class Population:
    """Complete rows that data sets are drawn from, with classifier, policies and their true costs."""

    problem: SyntheticProblem
    rows: Retrospective
    classifier: Classifier
    policies: dict[str, Policy]
    truth: dict[str, dict[str, float]]


def population_of(problem: SyntheticProblem, names: Sequence[str] = ()) -> Population:
    """Return the evaluation rows of a synthetic problem, with the policies of these names (default: all)."""
    classifier, _, rows = problem.prepare()
    known = synthetic_policies()
    policies = {name: known[name] for name in names or known}
    return Population(problem, rows, classifier, policies, true_costs(rows, policies, classifier))


def true_costs(
    rows: Retrospective, policies: Mapping[str, Policy], classifier: Classifier
) -> dict[str, dict[str, float]]:
    """Return the true costs on complete rows, by policy and target."""
    return {
        name: {target: cost.value for target, cost in true_cost(rows, policy, classifier).items()}
        for name, policy in policies.items()
    }


def records_of(
    population: Population, settings: Sequence[Setting], kinds: Sequence[str], n_rows: int, k: int
) -> list[dict[str, Any]]:
    """Draw data set k and return one record per setting, policy, estimator, target and kind of interval."""
    problem, rng = population.problem, np.random.default_rng([2023, k])
    complete = population.rows.take(rng.integers(len(population.rows), size=n_rows))
    data = problem.mechanism.hide(complete, random_state=int(rng.integers(2**32)))
    records = []
    for setting in settings:
        options = dict(setting.options)
        if setting.known:
            options["propensity"] = [None, problem.mechanism.propensity(data)]
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", AfapeWarning
            )  # the study measures how clipped or large weights affect errors
            comparison = compare(
                data.with_labels() if setting.drop_unlabelled else data,
                population.policies,
                population.classifier,
                missingness=setting.missingness or problem.missingness,
                estimators=list(setting.estimators),
                random_state=k,
                **options,
            )
        for policy, result in comparison.evaluations.items():
            for estimator in dict.fromkeys(result.table["estimator"]):
                for target, estimate in result[estimator].items() if estimator in result else ():
                    for kind in kinds:
                        key = dict(zip(KEYS, (setting.name, policy, estimator, target, kind), strict=True))
                        records.append(key | _record(estimate, kind, population.truth[policy][target]))
    return records


def _record(estimate: Estimate, kind: str, truth: float) -> dict[str, float]:
    low, high = estimate.interval(kind=kind)
    slack = 1e-9 * abs(truth)  # exact estimates differ from the truth by rounding
    return {
        "truth": truth,
        "estimate": estimate.value,
        "std_error": estimate.std_error if kind == "normal" else estimate.bootstrap_std_error,
        "covered": np.nan if np.isnan(low) else float(low - slack <= truth <= high + slack),
    }


def error_statistics(draws: pd.DataFrame) -> dict[str, float]:
    """Return bias, spread and coverage over the draws of one quantity, with Monte Carlo errors."""
    error, n = draws["estimate"] - draws["truth"], len(draws)
    spread, covered = float(error.std(ddof=1)), float(draws["covered"].mean())
    return {
        "truth": draws["truth"].iloc[0],
        "bias": error.mean(),
        "bias_mc_error": spread / np.sqrt(n),
        "rmse": np.sqrt((error**2).mean()),
        "std_deviation": spread,
        "mean_std_error": draws["std_error"].mean(),
        "coverage": covered,
        "coverage_mc_error": np.sqrt(max(covered * (1 - covered), 1 / n) / n),
        "draws": n,
    }


def summarise(draws: pd.DataFrame, keys: Sequence[str] = KEYS) -> pd.DataFrame:
    """Return `error_statistics` for each combination of the keys, in the order of the first draw."""
    lines = [
        {**dict(zip(keys, key, strict=True)), **error_statistics(own)}
        for key, own in draws.groupby(list(keys), sort=False)
    ]
    return pd.DataFrame(lines)


def simulate(
    task: Task,
    population: Population,
    settings: Sequence[Setting],
    kinds: Sequence[str] = ("normal",),
    batch: int = 10,
) -> pd.DataFrame:
    """Draw the data sets that are not in the folder yet, and write and return the summary of all."""
    study = (
        f"{', '.join(s.name for s in settings)}; {', '.join(population.policies)}; {', '.join(kinds)}; {task.n_rows} rows; "
        f"{population.problem.missingness!r}; {checksum_of_records(population.rows)}"
    )
    draws = run_draws(
        partial(records_of, population, settings, kinds, task.n_rows),
        task.n_draws,
        task.out / f"draws-n{task.n_rows}",
        study,
        n_jobs=task.n_jobs,
        batch=batch,
        progress=task.progress,
    )
    summary = summarise(draws)
    summary.to_csv(task.out / "summary.csv", index=False, float_format="%.6g")
    return summary
