"""The synthetic problem of the paper's experiments, with its missingness and its truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

from ..classifiers import ImputedClassifier
from ..data import Problem, Retrospective
from ..missingness import MAR, MNAR, MGraph
from ..simulation import GraphMechanism, LogisticMechanism

__all__ = ["Experiment", "saturated_mar", "synthetic_mar", "synthetic_mnar"]


@dataclass(frozen=True, eq=False)
class Experiment:
    """Complete data, the mechanism that hides some of it, and the assumption under which to analyse it."""

    name: str
    complete: Retrospective
    mechanism: LogisticMechanism | GraphMechanism
    missingness: MAR | MNAR

    def parts(self, random_state: int = 0) -> tuple[ImputedClassifier, Retrospective, Retrospective]:
        """Trained classifier, evaluation records with gaps, and the same rows complete.

        20 % of the rows train the classifier, as recorded. The rest, which the paper halves into nuisance and
        test rows, is one part here, because nuisances are cross-fitted.
        """
        gaps = self.mechanism.hide(self.complete, random_state)
        train, test = gaps.split([0.2, 0.8], random_state)
        _, complete_test = self.complete.split([0.2, 0.8], random_state)
        return ImputedClassifier(random_state=random_state).fit(train), test, complete_test


def synthetic_mar(n_rows: int = 150_000, random_state: int = 1) -> Experiment:
    """Draw the synthetic MAR problem (von Kleist et al. 2023, appendix "Synthetic Dataset").

    Four informative features; the label is 1 where they sum to more than 0 and 1 with probability 0.3
    elsewhere. Groups x0 = [X0] (free), x1 = [X1] and x2 = [X2, X3], price 1 each; a wrong label costs 14.
    """
    mechanism = LogisticMechanism(intercepts={"x1": -0.3, "x2": -0.1}, weights={"x1": {"X0": 0.5}, "x2": {"X0": 0.6}})
    return Experiment("synthetic-mar", _synthetic(n_rows, random_state), mechanism, MAR(given=["x0"]))


def synthetic_mnar(n_rows: int = 150_000, random_state: int = 1) -> Experiment:
    """Draw the synthetic MNAR problem: the same data, but whether x2 is recorded depends on x1, which has gaps itself.

    P(x1 recorded) = 0.7, P(x2 recorded) = sigma(-1.5 + X1).
    """
    graph = MGraph("x1 -> R_x2; R_x1")
    mechanism = GraphMechanism(graph, {"x1": float(np.log(7 / 3)), "x2": -1.5}, {"x2": {"X1": 1.0}})
    return Experiment("synthetic-mnar", _synthetic(n_rows, random_state), mechanism, MNAR(graph=graph))


def _synthetic(n_rows: int, random_state: int) -> Retrospective:
    X, _ = make_classification(
        n_samples=n_rows, n_features=4, n_informative=4, n_redundant=0, random_state=random_state
    )
    rng = np.random.default_rng(random_state)
    y = (X.sum(axis=1) > 0) | (rng.random(n_rows) < 0.3)
    frame = pd.DataFrame(X, columns=["X0", "X1", "X2", "X3"]).assign(Y=y.astype(int))
    problem = Problem(
        groups={"x0": ["X0"], "x1": ["X1"], "x2": ["X2", "X3"]},
        costs={"x1": 1.0, "x2": 1.0},
        label="Y",
        misclassification_cost=14.0,
    )
    return Retrospective(frame, problem)


def saturated_mar(n_rows: int = 60_000, random_state: int = 1) -> Experiment:
    """Draw a discrete problem in which the logistic propensity is saturated: missingness depends on one binary column."""
    rng = np.random.default_rng(random_state)
    X = rng.random((n_rows, 3)) < 0.5
    y = rng.random(n_rows) < 0.1 + X @ np.array([0.3, 0.2, 0.3])
    frame = pd.DataFrame(X.astype(float), columns=["X0", "X1", "X2"]).assign(Y=y.astype(int))
    problem = Problem(
        groups={"x0": ["X0"], "x1": ["X1"], "x2": ["X2"]},
        costs={"x1": 1.0, "x2": 1.0},
        label="Y",
        misclassification_cost=14.0,
    )
    mechanism = LogisticMechanism(intercepts={"x1": -0.8, "x2": 0.6}, weights={"x1": {"X0": 1.5}, "x2": {"X0": -1.2}})
    return Experiment("saturated-mar", Retrospective(frame, problem), mechanism, MAR(given=["x0"]))
