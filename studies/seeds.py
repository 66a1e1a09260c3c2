"""The study of seeds: how much estimates move with ``random_state``, in standard errors."""

from __future__ import annotations

import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from afape.benchmark.draws import run_draws
from afape.benchmark.identity import checksum_of_records
from afape.benchmark.page import markdown
from afape.comparison import compare
from afape.missingness.assumptions import MAR
from afape.warnings import AfapeWarning
from studies.problems import StudyProblem, study_problems
from studies.simulation import Task

__all__ = ["seeds_study"]

_LEARNING = ("ipw-semi", "dm-semi", "drl-semi", "eff-semi")
_SETTINGS = ((1, (*_LEARNING, "mi")), (4, _LEARNING))  # repeats, and estimators
_PROBLEMS = ("synthetic", "parabola, linear imputer", "heloc, mild", "income, mild")
_SEEDS = 10
_BAR = 0.15


def _records(problem: StudyProblem, n_rows: int, k: int) -> list[dict[str, Any]]:
    """Evaluate data set k with ten seeds; one record per policy, estimator and number of repeats."""
    data, records = problem.draw(n_rows, k), []
    for repeats, names in _SETTINGS:
        began, found = time.process_time(), []
        for seed in range(_SEEDS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AfapeWarning)
                options: dict[str, Any] = {"estimators": list(names), "n_repeats": repeats, "random_state": seed}
                found.append(
                    compare(data, problem.policies, problem.classifier, missingness=MAR([problem.given]), **options)
                )
        seconds = (time.process_time() - began) / _SEEDS / len(problem.policies)
        for policy in problem.policies:
            for name in names:
                costs = [one[policy][name]["misclassification"] for one in found]
                error = float(np.mean([cost.std_error for cost in costs]))
                spread = float(np.std([cost.value for cost in costs], ddof=1)) / error if error > 0 else 0.0
                records.append(
                    {"policy": policy, "estimator": name, "repeats": repeats, "spread": spread, "seconds": seconds}
                )
    return records


def seeds_study(task: Task, folder: Path | None = None) -> pd.DataFrame:
    """Measure the standard deviation of the misclassification cost over ten seeds, divided by its standard error."""
    found = []
    for problem in study_problems(folder):
        if problem.name not in _PROBLEMS:
            continue
        draws = run_draws(
            partial(_records, problem, task.n_rows),
            task.n_draws,
            task.out / f"draws-{problem.name.split(',')[0]}-{task.n_rows}",
            f"seeds; {problem.name}; {checksum_of_records(problem.population)}; {task.n_rows} rows",
            n_jobs=task.n_jobs,
            batch=1,
            progress=task.progress,
        )
        found.append(draws.assign(problem=problem.name))
    records, keys = pd.concat(found), ["problem", "policy", "estimator", "repeats"]
    summary = records.groupby(keys, sort=False).agg(
        spread=("spread", lambda s: float(np.sqrt((s**2).mean()))),
        largest=("spread", "max"),
        seconds=("seconds", "mean"),
    )
    summary = summary.reset_index()
    summary.to_csv(task.out / "summary.csv", index=False, float_format="%.4g")
    _write_page(summary, task)
    return summary


def _write_page(summary: pd.DataFrame, task: Task) -> None:
    shown = summary.assign(
        spread=[f"{v:.2f}" for v in summary["spread"]], largest=[f"{v:.2f}" for v in summary["largest"]]
    ).drop(columns="seconds")
    one, four = (_typical(summary, repeats) for repeats in (1, 4))
    above = summary[(summary["spread"] > _BAR) & (summary["repeats"] == 1)]
    problems = "; ".join(summary["problem"].unique())
    (task.out / "README.md").write_text(
        "# Estimates over seeds\n\n"
        f"Made by `python -m studies seeds --draws {task.n_draws} --rows {task.n_rows}` (real tables: `--data FOLDER`), with "
        f"{task.n_draws} data sets of {task.n_rows:,} rows per problem ({problems}), each evaluated with {_SEEDS} seeds. "
        "*spread* is the standard deviation of the "
        "misclassification cost over seeds, divided by its standard error (root mean square over data sets); *largest* is that "
        "of one data set. Each spread of one data set is known to about a quarter of itself. *repeats* is `n_repeats`; `mi` "
        f"has 10 completed tables.\n\nWith one repeat, {len(above)} of {(summary['repeats'] == 1).sum()} lines are above "
        f"{_BAR}. For `drl-semi` and `eff-semi` the root mean square over lines is {one:.2f} with one repeat and {four:.2f} with "
        f"four.\n\n{markdown(shown)}\n"
    )


def _typical(summary: pd.DataFrame, repeats: int) -> float:
    """Root mean square of the spreads of `drl-semi` and `eff-semi`."""
    own = summary[(summary["repeats"] == repeats) & summary["estimator"].isin(["drl-semi", "eff-semi"])]
    return float(np.sqrt((own["spread"] ** 2).mean()))
