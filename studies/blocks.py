"""The study of blocks: estimates of rows in blocks beside those of the whole table, and how often intervals hold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from afape.benchmark.draws import run_draws
from afape.benchmark.identity import checksum_of_records
from afape.benchmark.page import markdown
from afape.blocks import scan
from afape.comparison import compare
from afape.data.problem import Problem
from afape.data.retrospective import Retrospective
from afape.missingness.assumptions import MAR
from afape.results.comparison import Comparison
from afape.warnings import AfapeWarning
from studies.problems import StudyProblem, study_problems
from studies.simulation import Task, summarise, true_costs

__all__ = ["blocks_study"]

PROBLEMS = ("synthetic", "parabola")  # first words of their names
_POLICIES = 2  # the first of every problem
_COVERED = ("ipw-semi", "drl-semi")


def _stem(problem: StudyProblem) -> str:
    return problem.name.split(",")[0]


def _problems(names: Sequence[str]) -> list[StudyProblem]:
    return [p for p in study_problems(None) if _stem(p) in names and not p.real]


def _written(data: Retrospective, folder: Path) -> Problem:
    """Write the records to two files; return the problem of these files."""
    frame = pd.DataFrame(data.values, columns=list(data.columns)).assign(label=data.classes[data.labels])
    for k in range(2):
        frame.iloc[k::2].to_parquet(folder / f"part{k}.parquet")
    groups = {
        name: [c for c, g in zip(data.columns, data.column_group, strict=True) if data.problem.group_names[g] == name]
        for name in data.problem.group_names
    }
    return Problem(groups, data.problem.costs, "label", data.problem.misclassification_cost, data.classes.tolist())


def _in_blocks(
    data: Retrospective, n_blocks: int, problem: StudyProblem, estimators: Sequence[str], seed: int
) -> Comparison:
    """Evaluate the records in blocks; one block is the whole table."""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", AfapeWarning)
        files = _written(data, Path(folder))
        rows = scan(folder, files, block_rows=-(-len(data) // n_blocks))
        policies = dict(list(problem.policies.items())[:_POLICIES])
        given = MAR([problem.given])
        return compare(
            rows, policies, problem.classifier, missingness=given, estimators=list(estimators), random_state=seed
        )


def _covered(problem: StudyProblem, truth: dict[str, dict[str, float]], n_rows: int, k: int) -> list[dict[str, Any]]:
    """Evaluate data set k in four blocks; one record per policy, estimator and target."""
    found = _in_blocks(problem.draw(n_rows, k), 4, problem, _COVERED, k)
    return [
        {
            "policy": line["policy"],
            "estimator": line["estimator"],
            "target": line["target"],
            "truth": (true := truth[line["policy"]][line["target"]]),
            "estimate": line["estimate"],
            "std_error": line["std_error"],
            "covered": float(line["lower"] - 1e-9 <= true <= line["upper"] + 1e-9),
        }
        for line in found.table.to_dict("records")
        if line["std_error"] > 1e-9
    ]


def _agreement(
    problem: StudyProblem, n_rows: int, blocks: Sequence[int], estimators: Sequence[str], k: int
) -> list[dict[str, Any]]:
    """Evaluate one data set as a whole and in blocks; one record per number of blocks, policy and estimator."""
    data = problem.draw(n_rows, 10_000 + k)
    whole, records = None, []
    for n_blocks in (1, *blocks):
        began = time.process_time()
        found = _in_blocks(data, n_blocks, problem, estimators, k)
        seconds, whole = time.process_time() - began, whole or found
        for policy in found.evaluations:
            for estimator in estimators:
                ours, theirs = (one[policy][estimator]["misclassification"] for one in (found, whole))
                records.append(
                    {
                        "problem": problem.name,
                        "blocks": n_blocks,
                        "policy": policy,
                        "estimator": estimator,
                        "estimate": ours.value,
                        "std_error": ours.std_error,
                        "off": (ours.value - theirs.value) / theirs.std_error,
                        "ratio": ours.std_error / theirs.std_error,
                        "seconds": seconds,
                    }
                )
    return records


def blocks_study(
    task: Task,
    large: int = 400_000,
    blocks: Sequence[int] = (4, 16),
    estimators: Sequence[str] = ("ipw-semi", "drl-semi"),
    names: Sequence[str] = PROBLEMS,
) -> pd.DataFrame:
    """Compare blocks with the whole at ``large`` rows, and count how often intervals from four blocks hold.

    Without draws, only the comparison is done.
    """
    problems, how = _problems(names), "-".join([*map(str, blocks), *estimators])
    agreement = pd.concat(
        [
            run_draws(
                partial(_agreement, problem, large, tuple(blocks), tuple(estimators)),
                1,
                task.out / f"draws-whole-{_stem(problem)}-{large}-{how}",
                f"blocks {blocks}; {problem.name}; {estimators}; {large} rows; {checksum_of_records(problem.population)}",
                batch=1,
            )
            for problem in problems
        ],
        ignore_index=True,
    ).drop(columns="draw")
    agreement.to_csv(task.out / f"agreement-{'-'.join(names)}-{how}.csv", index=False, float_format="%.6g")
    if task.n_draws == 0:
        return agreement
    draws = []
    for problem in problems:
        policies = dict(list(problem.policies.items())[:_POLICIES])
        truth = true_costs(problem.population, policies, problem.classifier)
        found = run_draws(
            partial(_covered, problem, truth, task.n_rows),
            task.n_draws,
            task.out / f"draws-{_stem(problem)}-{task.n_rows}",
            f"coverage in 4 blocks; {problem.name}; {task.n_rows} rows; {checksum_of_records(problem.population)}",
            n_jobs=task.n_jobs,
            batch=5,
            progress=task.progress,
        )
        draws.append(found.assign(problem=problem.name))
    summary = summarise(pd.concat(draws), ("problem", "policy", "estimator", "target"))
    summary.to_csv(task.out / "summary.csv", index=False, float_format="%.6g")
    _write_page(agreement, summary, task, large)
    return summary


def _write_page(agreement: pd.DataFrame, summary: pd.DataFrame, task: Task, large: int) -> None:
    shown = agreement[agreement["blocks"] > 1]
    shown = shown.assign(off=[f"{v:+.3f}" for v in shown["off"]], ratio=[f"{v:.4f}" for v in shown["ratio"]])
    names = ["problem", "blocks", "policy", "estimator", "off", "ratio"]
    total = summary[summary["target"] == "total"]
    covered = total[
        ["problem", "policy", "estimator", "bias", "bias_mc_error", "mean_std_error", "std_deviation", "coverage"]
    ]
    (task.out / "README.md").write_text(
        "# Rows in blocks\n\n"
        f"Made by `python -m studies blocks --draws {task.n_draws} --rows {task.n_rows}`.\n\n"
        f"## {large:,} rows in blocks and as a whole\n\n"
        "*off* is the difference from the whole table in the misclassification cost, in its standard errors; *ratio* is the "
        f"ratio of the standard errors.\n\n{markdown(shown[names])}\n\n"
        f"## Intervals from four blocks\n\n{task.n_draws} data sets of {task.n_rows:,} rows, each dealt to four blocks. "
        f"Share of 95 % intervals of the total cost that contain the truth; its Monte Carlo error is "
        f"{np.sqrt(0.95 * 0.05 / task.n_draws):.3f} if it is 0.95.\n\n{markdown(covered.round(4))}\n"
    )
