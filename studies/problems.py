"""Problems with known truth for the study of the efficient estimator: synthetic rows and real rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier

from afape._arrays import Bools, Floats, Ints
from afape.agents.builtin import AcquireAll, DecisionRule, RandomSubset
from afape.agents.policy import Policy
from afape.benchmark.synthetic import synthetic_mar, synthetic_policies
from afape.classifiers import Classifier, ImputedClassifier
from afape.data.problem import Problem
from afape.data.retrospective import Retrospective

__all__ = ["StudyProblem", "study_problems"]

_KINDS = ("mild", "heavy", "nonlinear", "nonlinear, wrong propensity")
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
    """Complete rows to draw from, how they are hidden, and the policies to evaluate.

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
        ``recorded(values)`` returns the probability that each group is recorded, (n, G).
    given : str
        Group that recording depends on.
    imputer : str
        Imputer of ``mi``.
    form : str
        Form of the propensity model.
    real : bool
        True if the rows are real.
    """

    name: str
    population: Retrospective
    classifier: Classifier
    policies: dict[str, Policy]
    recorded: Callable[[Floats], Floats]
    given: str
    imputer: str = "trees"
    form: str = "auto"
    real: bool = False

    def draw(self, n_rows: int, k: int) -> Retrospective:
        """Return data set k."""
        rng = np.random.default_rng([2025, k])
        rows = self.population.take(rng.integers(len(self.population), size=n_rows))
        return rows.hide(rng.random(rows.recorded.shape) < self.recorded(rows.values))


def _mechanism(centre: float, spread: float, kind: str, n_groups: int) -> Callable[[Floats], Floats]:
    """Return probabilities that depend on the first column; "heavy" makes them small in many rows."""

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
    """Return a rule that acquires the groups in this order where the first column is near its centre."""

    def act(values: Floats, acquired: Bools) -> Ints:
        action = np.full(len(values), stop)
        for group in reversed(order):
            action = np.where(acquired[:, group], action, group)
        return np.where(np.abs(values[:, 0] - centre) < 0.9 * spread, action, stop)

    return DecisionRule(act)


def _real(name: str, table: pd.DataFrame, problem: Problem, kind: str) -> StudyProblem:
    kind, _, wrong = kind.partition(", ")
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
    classifier = ImputedClassifier(forest).fit(train)
    found = StudyProblem(
        f"{name}, {kind}", population, classifier, policies, mechanism, problem.group_names[0], real=True
    )
    return replace(found, name=f"{found.name}, {wrong}", form="linear") if wrong else found


def _heloc(folder: Path, kind: str) -> StudyProblem:
    table = pd.read_csv(folder / "heloc.csv")
    table = table[(table.drop(columns="RiskPerformance") != -9).any(axis=1)].reset_index(drop=True)
    columns = [c for group in _HELOC.values() for c in group]
    costs = {"age": 1.0, "inquiries": 1.0, "burden": 2.0, "delinquency": 1.0}
    wrong = [[0.0, 10.0], [30.0, 0.0]]
    known = dict.fromkeys(columns, -9)  # -7, -8 and -9 are values, see afape.datasets.load_heloc
    problem = Problem(_HELOC, costs, "RiskPerformance", wrong, classes=["Good", "Bad"], blank_means=known)
    return _real("heloc", table[[*columns, "RiskPerformance"]].astype(dict.fromkeys(columns, float)), problem, kind)


def _income(folder: Path, kind: str) -> StudyProblem:
    table = pd.read_csv(folder / "income.csv")
    costs = {"education": 1.0, "marital": 1.0, "hours": 1.0, "capital": 2.0}
    problem = Problem(_INCOME, costs, "income", [[0.0, 10.0], [30.0, 0.0]], classes=["<=50K", ">50K"])
    columns = [c for group in _INCOME.values() for c in group]
    return _real("income", table[[*columns, "income"]], problem, kind)


class _OnTheParabola:
    """Predicts 1 where c is near the square of b, or one of them is unknown."""

    def predict(self, values: Floats, acquired: Bools) -> Ints:
        """Return label codes, (n,)."""
        return np.asarray(~(np.abs(values[:, 2] - values[:, 1] ** 2) >= 1), dtype=np.intp)


def _parabola() -> StudyProblem:
    """Group c is the square of b plus noise, so a linear imputation model is wrong."""
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
    problem = synthetic_mar()
    classifier, _, population = problem.prepare()

    def recorded(values: Floats) -> Floats:
        return problem.mechanism.probabilities(population, values)  # type: ignore[union-attr]

    return StudyProblem("synthetic", population, classifier, synthetic_policies(), recorded, "x0")


def study_problems(folder: Path | None) -> list[StudyProblem]:
    """Return the problems of the study; those with real rows only if the folder has their files."""
    found = [_synthetic(), _parabola()]
    for file, make in (("heloc.csv", _heloc), ("income.csv", _income)):
        if folder is not None and (folder / file).exists():
            found += [make(folder, kind) for kind in _KINDS]
    return found
