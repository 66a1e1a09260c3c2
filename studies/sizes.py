"""The study of tests: how often each one rejects where its hypothesis holds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from afape.benchmark.draws import run_draws
from afape.benchmark.page import markdown
from afape.benchmark.synthetic import synthetic_mnar
from afape.check import check_missingness
from afape.evaluation import evaluate
from afape.missingness.assumptions import MCAR
from afape.missingness.mechanisms import IndependentMechanism
from afape.results.evaluation import Evaluation
from afape.walk.outcomes import score
from afape.warnings import AfapeWarning
from studies.outcomes import OutcomeWorld, make_outcome_world
from studies.simulation import Task

__all__ = ["size_records", "sizes_study"]

_LEVEL = 0.05
_CHECKED = ("eff-semi", "drl-semi", "ipw-semi")
_Record = dict[str, Any]


def _record(test: str, about: str, p_value: float) -> _Record:
    return {"test": test, "about": about, "p_value": p_value, "rejected": float(p_value < _LEVEL)}


def size_records(world: OutcomeWorld, bins: pd.DataFrame, n_rows: int, k: int) -> list[_Record]:
    """Draw data set k and return one record per test whose hypothesis holds."""
    rng = np.random.default_rng([13, k])
    complete = world.population.take(rng.integers(len(world.population), size=n_rows))
    data = world.problem.mechanism.hide(complete, random_state=int(rng.integers(2**32)))
    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AfapeWarning)
        for estimator in _CHECKED:
            result = evaluate(
                data,
                world.policy,
                world.classifier,
                missingness=world.problem.missingness,
                estimators=["mi", estimator],
                outcomes={"risk": score(world.classifier)},
                random_state=k,
            )
            out.append(_record("imputation_check", f"{estimator} and mi", result.imputation_check().p_value))
    out += _of_weights(result, bins)
    out += _implications(data, world.problem.missingness, "MAR given x0")
    seed = int(rng.integers(2**32))
    out += _implications(IndependentMechanism({"x1": 0.5, "x2": 0.5}).hide(complete, seed), MCAR(), "MCAR")
    graph = synthetic_mnar(n_rows=1000)
    out += _implications(graph.mechanism.hide(complete, seed), graph.missingness, "graph")
    return out


def _of_weights(result: Evaluation, bins: pd.DataFrame) -> Iterator[_Record]:
    """Balance after weighting, and calibration: whether the interval of a bin contains the observed share of all rows."""
    for line in result.support.balance.to_dict("records"):
        yield _record("balance", f"{line['column']}", line["p_value"])
    found = result.calibration("risk", bins=5).table
    for place, (line, truth) in enumerate(zip(found.to_dict("records"), bins["observed"], strict=True)):
        if line["lower"] == line["lower"]:
            inside = line["lower"] <= truth <= line["upper"]
            yield _record("calibration", f"bin {place + 1} of 5", 1.0 if inside else 0.0)


def _implications(data: Any, missingness: Any, name: str) -> Iterator[_Record]:
    table = check_missingness(data, missingness).table
    for p in table["p_value"].dropna():
        yield _record("check_missingness, each test", name, p)
    if table["p_adjusted"].notna().any():
        yield _record("check_missingness, any test", name, float(table["p_adjusted"].min()))


def _bins(world: OutcomeWorld) -> pd.DataFrame:
    """Return the calibration of all evaluation rows, without gaps."""
    complete = evaluate(
        world.population,
        world.policy,
        world.classifier,
        missingness=MCAR(),
        estimators=["ipw-semi"],
        outcomes={"risk": score(world.classifier)},
    )
    return complete.calibration("risk", bins=5).table


def sizes_study(task: Task) -> pd.DataFrame:
    """Count how often the tests reject at level 5 % where their hypothesis holds."""
    world = make_outcome_world(60_000)
    draws = run_draws(
        partial(size_records, world, _bins(world), task.n_rows),
        task.n_draws,
        task.out / f"draws-{task.n_rows}",
        f"sizes of tests; {task.n_rows} rows",
        n_jobs=task.n_jobs,
        batch=10,
        progress=task.progress,
    )
    summary = _summary(draws)
    summary.to_csv(task.out / "summary.csv", index=False, float_format="%.5g")
    _write_page(summary, task)
    return summary


def _summary(draws: pd.DataFrame) -> pd.DataFrame:
    """Return the share of rejections; its error is between data sets, because tests of one data set are correlated."""
    lines = []
    for (test, about), own in draws.groupby(["test", "about"], sort=False):
        each = own.groupby("draw")["rejected"].mean()
        size, n = float(own["rejected"].mean()), len(each)
        error = max(float(each.std(ddof=1)), np.sqrt(1 / n)) / np.sqrt(n)
        lines.append(
            {"test": test, "about": about, "size": size, "size_mc_error": error, "tests": len(own), "draws": n}
        )
    return pd.DataFrame(lines)


def _write_page(summary: pd.DataFrame, task: Task) -> None:
    shown = summary.assign(
        **{
            "rejected %": [f"{100 * v:.1f}" for v in summary["size"]],
            "±": [f"{100 * v:.1f}" for v in summary["size_mc_error"]],
        }
    )[["test", "about", "rejected %", "±", "tests"]]
    (task.out / "README.md").write_text(
        "# Sizes of the tests\n\n"
        f"Made by `python -m studies sizes --draws {task.n_draws} --rows {task.n_rows}`: {task.n_draws:,} data sets of "
        f"{task.n_rows:,} rows from the synthetic problem, hidden so that the tested hypothesis holds. A test at level 5 % "
        "should reject in 5 %. `summary.csv` has all numbers.\n\n"
        "- *imputation_check* compares an estimator with `mi`, whose imputation model is nearly right here. Its variance is an "
        "upper bound, because the error of the imputation model makes both estimates more alike; so it rejects too rarely.\n"
        "- *balance* compares weighted rows with all rows. A logistic propensity balances the columns that it "
        "depends on (X0), and to a smaller degree others; its standard errors include this.\n"
        "- *calibration* counts intervals of a bin that miss the share observed on all rows. Intervals on the logit scale are "
        "too long where few cases of a bin are in the class.\n"
        "- *check_missingness, any test* uses p-values adjusted by Holm's method, so it should reject in at most 5 %.\n\n"
        f"{markdown(shown)}\n"
    )
