"""The study of the efficient estimator: error, bias, coverage and time beside all others, on synthetic and real rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier

from ..agents import AcquireAll, DecisionRule, Policy, RandomSubset
from ..arrays import Bools, Floats, Ints
from ..classifiers import Classifier, ImputedClassifier
from ..data import Problem, Retrospective
from ..evaluation import evaluate, true_cost
from ..missingness import MAR
from ..notices import AfapeWarning
from ..support import SupportThresholds
from .policies import synthetic_policies
from .study import run_draws
from .synthetic import synthetic_mar

__all__ = ["StudyProblem", "efficiency_study", "study_problems"]

_TIMED = (["ipw-semi", "drl-semi"], ["eff-semi"], ["mi"])
_HELOC = {
    "risk": ["ExternalRiskEstimate"],
    "age": ["MSinceOldestTradeOpen", "AverageMInFile"],
    "inquiries": ["MSinceMostRecentInqexcl7days", "NumInqLast6M"],
    "burden": ["NetFractionRevolvingBurden", "PercentTradesWBalance"],
    "delinquency": ["PercentTradesNeverDelq", "MSinceMostRecentDelq"],
}
_INCOME = {
    "age": ["age"],
    "education": ["education-num"],
    "marital": ["marital-status"],
    "hours": ["hours-per-week"],
    "capital": ["capital-gain", "capital-loss"],
}


@dataclass(frozen=True, eq=False)
class StudyProblem:
    """Complete rows to draw from, how they are hidden, and who is judged on them.

    Parameters
    ----------
    name : str
        Name in tables.
    population : Retrospective
        Complete rows.
    classifier : Classifier
        Trained on other rows.
    policies : dict
        Policies by name.
    recorded : callable
        ``recorded(values)`` gives the probability of each group, (n, G).
    given : str
        The group that recording depends on.
    imputer : str
        Imputer of ``mi``.
    real : bool
        Whether the rows are real.
    """

    name: str
    population: Retrospective
    classifier: Classifier
    policies: dict[str, Policy]
    recorded: Callable[[Floats], Floats]
    given: str
    imputer: str = "trees"
    real: bool = False

    @cached_property
    def truth(self) -> dict[str, dict[str, float]]:
        """True costs by policy and target."""
        found = {name: true_cost(self.population, policy, self.classifier) for name, policy in self.policies.items()}
        return {name: {target: e.value for target, e in costs.items()} for name, costs in found.items()}

    def draw(self, n_rows: int, k: int) -> Retrospective:
        """Data set k."""
        rng = np.random.default_rng([2025, k])
        rows = self.population.take(rng.integers(len(self.population), size=n_rows))
        return rows.hide(rng.random(rows.recorded.shape) < self.recorded(rows.values))


def _mechanism(centre: float, spread: float, kind: str, n_groups: int) -> Callable[[Floats], Floats]:
    """Recording by the first column: "mild", "heavy" (probabilities near 0 for many rows) or "nonlinear"."""

    def recorded(values: Floats) -> Floats:
        z = (values[:, 0] - centre) / spread
        tilt = np.linspace(0.8, 1.2, n_groups - 1)
        odds = {
            "mild": 0.3 + 0.5 * np.outer(z, tilt),
            "heavy": -0.2 + 1.4 * np.outer(z, tilt),
            "nonlinear": 1.2 - 1.4 * np.outer(np.abs(z), tilt),
        }[kind]
        return np.column_stack([np.ones(len(z)), expit(odds)])

    return recorded


def _grey_zone(centre: float, spread: float, order: list[int], stop: int) -> DecisionRule:
    """Acquire one group after the other where the first column leaves a doubt."""

    def act(values: Floats, acquired: Bools) -> Ints:
        action = np.full(len(values), stop)
        for group in reversed(order):
            action = np.where(acquired[:, group], action, group)
        return np.where(np.abs(values[:, 0] - centre) < 0.9 * spread, action, stop)

    return DecisionRule(act)


def _real(name: str, table: pd.DataFrame, problem: Problem, kind: str) -> StudyProblem:
    train, population = Retrospective(table, problem).split([0.3, 0.7], random_state=0)
    forest = RandomForestClassifier(50, max_depth=8, random_state=0)
    column = population.values[:, 0]
    centre, spread = float(column.mean()), float(column.std())
    stop = problem.n_groups
    policies: dict[str, Policy] = {
        "all": AcquireAll(),
        "grey zone": _grey_zone(centre, spread, [3, 2, 1], stop),
        "Random 60 %": RandomSubset(0.6),
    }
    mechanism = _mechanism(centre, spread, kind, problem.n_groups)
    judge = ImputedClassifier(forest).fit(train)
    return StudyProblem(f"{name}, {kind}", population, judge, policies, mechanism, problem.group_names[0], real=True)


def _heloc(folder: Path, kind: str) -> StudyProblem:
    table = pd.read_csv(folder / "heloc.csv")
    table = table[(table.drop(columns="RiskPerformance") != -9).any(axis=1)].reset_index(drop=True)
    columns = [c for group in _HELOC.values() for c in group]
    costs = {"age": 1.0, "inquiries": 1.0, "burden": 2.0, "delinquency": 1.0}
    wrong = [[0.0, 10.0], [30.0, 0.0]]
    problem = Problem(_HELOC, costs, "RiskPerformance", wrong, classes=["Good", "Bad"])
    return _real("heloc", table[[*columns, "RiskPerformance"]].astype(dict.fromkeys(columns, float)), problem, kind)


def _income(folder: Path, kind: str) -> StudyProblem:
    table = pd.read_csv(folder / "income.csv")
    costs = {"education": 1.0, "marital": 1.0, "hours": 1.0, "capital": 2.0}
    problem = Problem(_INCOME, costs, "income", [[0.0, 10.0], [30.0, 0.0]], classes=["<=50K", ">50K"])
    columns = [c for group in _INCOME.values() for c in group]
    return _real("income", table[[*columns, "income"]], problem, kind)


class _OnTheParabola:
    def predict(self, values: Floats, acquired: Bools) -> Ints:
        return np.asarray(~(np.abs(values[:, 2] - values[:, 1] ** 2) >= 1), dtype=np.intp)  # 1 where it is not known


def _parabola() -> StudyProblem:
    """A group that is a parabola of another: a linear imputation model is wrong."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 60_000))
    c = b**2 + 0.3 * rng.normal(size=len(b))
    label = (a + rng.normal(size=len(b)) > -0.7).astype(int)
    problem = Problem({g: [g] for g in "abc"}, {"b": 1.0, "c": 1.0}, "y", 10.0)
    population = Retrospective(pd.DataFrame({"a": a, "b": b, "c": c, "y": label}), problem)
    policies: dict[str, Policy] = {"all": AcquireAll(), "Random 60 %": RandomSubset(0.6)}
    mechanism = _mechanism(0.0, 1.0, "mild", 3)
    return StudyProblem("parabola, linear imputer", population, _OnTheParabola(), policies, mechanism, "a", "linear")


def _synthetic() -> StudyProblem:
    experiment = synthetic_mar()
    classifier, _, population = experiment.parts()

    def recorded(values: Floats) -> Floats:
        return experiment.mechanism.probabilities(population, values)  # type: ignore[union-attr]

    return StudyProblem("synthetic", population, classifier, synthetic_policies(), recorded, "x0")


def study_problems(folder: Path | None) -> list[StudyProblem]:
    """Problems of the study; those on real rows where the folder has their files."""
    found = [_synthetic(), _parabola()]
    for file, make in (("heloc.csv", _heloc), ("income.csv", _income)):
        if folder is not None and (folder / file).exists():
            found += [make(folder, kind) for kind in ("mild", "heavy", "nonlinear")]
    return found


@dataclass(frozen=True, eq=False)
class _Draw:
    problem: StudyProblem
    n_rows: int

    def __call__(self, k: int) -> list[dict[str, Any]]:
        data, records = self.problem.draw(self.n_rows, k), []
        for policy, agent in self.problem.policies.items():
            for names in _TIMED:
                records += self._records(data, policy, agent, names, k)
        return records

    def _records(
        self, data: Retrospective, policy: str, agent: Policy, names: list[str], k: int
    ) -> list[dict[str, Any]]:
        problem, truth = self.problem, self.problem.truth[policy]
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AfapeWarning)  # heavy weights are what the study is about
            result = evaluate(
                data,
                agent,
                problem.classifier,
                missingness=MAR([problem.given]),
                estimators=names,
                imputer=problem.imputer if "mi" in names else None,
                n_imputations=5 if "mi" in names else None,
                thresholds=SupportThresholds(share=0.5),  # estimates, not bounds: their errors are measured
                random_state=k,
            )
        seconds, records = time.perf_counter() - began, []
        for name, outcome in result.outcomes.items():
            for target, estimate in outcome.estimates.items():
                low, high = estimate.interval()
                covered = low - 1e-9 <= truth[target] <= high + 1e-9
                line: dict[str, Any] = {"policy": policy, "estimator": name, "target": target, "truth": truth[target]}
                figures = {"estimate": estimate.value, "std_error": estimate.std_error, "covered": float(covered)}
                records.append({**line, **figures, "effective_rows": outcome.ess, "seconds": seconds})
        return records


def efficiency_study(
    out: Path,
    *,
    n_draws: int = 200,
    real_draws: int = 40,
    sizes: tuple[int, ...] = (2000, 1000, 8000),
    folder: Path | None = None,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Run the study and write its page; ``folder`` holds ``heloc.csv`` and ``income.csv``.

    The numbers of draws are those of 2,000 rows and fewer; more rows get fewer draws in proportion, at least four. The page
    is written after every part, so that a study that is stopped leaves what it has finished.
    """
    out.mkdir(parents=True, exist_ok=True)
    parts: list[pd.DataFrame] = []
    problems = study_problems(folder)
    for n_rows in sizes:
        for problem in problems:
            place = out / f"draws-{problem.name.replace(', ', '-').replace(' ', '-')}-n{n_rows}"
            problem.truth  # noqa: B018 (cached before processes share it)
            asked = real_draws if problem.real else n_draws
            many = max(round(asked * min(1.0, 2000 / n_rows)), 4)
            draws = run_draws(_Draw(problem, n_rows), many, place, n_jobs=n_jobs, batch=5)
            parts.append(_summary(draws).assign(problem=problem.name, rows=n_rows))
            _write(out, pd.concat(parts, ignore_index=True), n_draws, real_draws)
            if progress is not None:
                progress(len(parts), len(problems) * len(sizes))
    return pd.concat(parts, ignore_index=True)


def _write(out: Path, summary: pd.DataFrame, n_draws: int, real_draws: int) -> None:
    summary.to_csv(out / "summary.csv", index=False, float_format="%.6g")
    (out / "README.md").write_text(_page(summary, n_draws, real_draws))


def _summary(draws: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for (policy, estimator, target), part in draws.groupby(["policy", "estimator", "target"], sort=False):
        error = part["estimate"] - part["truth"]
        lines.append(
            {
                "policy": policy,
                "estimator": estimator,
                "target": target,
                "truth": part["truth"].iloc[0],
                "rmse": float(np.sqrt((error**2).mean())),
                "bias": float(error.mean()),
                "bias_mc_error": float(error.std(ddof=1) / np.sqrt(len(part))),
                "std_deviation": float(error.std(ddof=1)),
                "mean_std_error": float(part["std_error"].mean()),
                "coverage": float(part["covered"].mean()),
                "effective_rows": float(part["effective_rows"].median()),
                "seconds": float(part["seconds"].mean()),
                "draws": len(part),
            }
        )
    return pd.DataFrame(lines)


def _page(summary: pd.DataFrame, n_draws: int, real_draws: int) -> str:
    total = summary[summary["target"] == "total"]
    lines = [
        "# How precise the efficient estimator is",
        "",
        f"Made by `afape study efficiency --draws {n_draws} --real-draws {real_draws} --data FOLDER`: data sets drawn with "
        "replacement from complete rows and hidden "
        "anew each time; the truth is the cost on all complete rows. Total cost. Root mean squared error (rmse), bias in units "
        "of its Monte Carlo error, coverage of 95 % intervals, effective rows of the weights (median), seconds per evaluation"
        " (of `ipw-semi` and `drl-semi` together; `mi` with five imputations).",
        "",
        "*mild* and *heavy* mechanisms are logistic in the first group; under *heavy* many rows have next to no chance of having "
        "all groups. *nonlinear* is not what a linear propensity model assumes. In *parabola* the imputer of `mi` is linear "
        "and wrong. Draws in which an estimator gave no answer are left out (column draws).",
        "",
        "| problem | rows | policy | estimator | rmse | bias / MC error | coverage | effective rows | seconds | draws |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for r in total.to_dict("records"):
        bias = r["bias"] / r["bias_mc_error"] if r["bias_mc_error"] > 0 else 0.0
        lines.append(
            f"| {r['problem']} | {r['rows']:,} | {r['policy']} | `{r['estimator']}` | {r['rmse']:.3f} | {bias:+.1f} | "
            f"{100 * r['coverage']:.1f} % | {r['effective_rows']:,.0f} | {r['seconds']:.2f} | {r['draws']} |"
        )
    return "\n".join(lines) + "\n"
