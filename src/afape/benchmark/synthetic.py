"""The synthetic problems of the paper's experiments, and the policies that are evaluated on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

from .._arrays import Bools, Floats, Ints
from ..agents.builtin import DecisionRule, RandomSubset
from ..agents.policy import Policy
from ..classifiers import ImputedClassifier
from ..data.problem import Problem
from ..data.retrospective import Retrospective
from ..missingness.assumptions import MAR, MNAR
from ..missingness.graph import MGraph
from ..missingness.graph_mechanism import GraphMechanism
from ..missingness.mechanisms import LogisticMechanism

__all__ = ["SyntheticProblem", "saturated_mar", "synthetic_mar", "synthetic_mnar", "synthetic_policies"]


@dataclass(frozen=True, eq=False)
class SyntheticProblem:
    """Complete rows, the mechanism that hides groups, and the assumption that the analysis makes about it."""

    name: str
    complete: Retrospective
    mechanism: LogisticMechanism | GraphMechanism
    missingness: MAR | MNAR

    def prepare(self, random_state: int = 0) -> tuple[ImputedClassifier, Retrospective, Retrospective]:
        """Return a trained classifier, the rows to evaluate on with gaps, and these rows complete.

        The classifier is trained on 20 % of the rows, with gaps. The paper divides the other rows into nuisance and test
        rows. Here they stay together, because nuisances are cross-fitted.
        """
        gaps = self.mechanism.hide(self.complete, random_state)
        train, test = gaps.split([0.2, 0.8], random_state)
        _, complete_test = self.complete.split([0.2, 0.8], random_state)
        return ImputedClassifier(random_state=random_state).fit(train), test, complete_test


def synthetic_mar(n_rows: int = 150_000, random_state: int = 1) -> SyntheticProblem:
    """Draw the synthetic MAR problem (von Kleist et al. 2023, appendix "Synthetic Dataset").

    Four informative features; the label is 1 if their sum exceeds 0, and otherwise 1 with
    probability 0.3. Group x0 = [X0] is free, x1 = [X1] and x2 = [X2, X3] cost 1 each. A wrong label costs 14.
    """
    mechanism = LogisticMechanism(intercepts={"x1": -0.3, "x2": -0.1}, weights={"x1": {"X0": 0.5}, "x2": {"X0": 0.6}})
    return SyntheticProblem("synthetic-mar", _synthetic(n_rows, random_state), mechanism, MAR(given=["x0"]))


def synthetic_mnar(n_rows: int = 150_000, random_state: int = 1) -> SyntheticProblem:
    """Draw the synthetic MNAR problem: the rows of `synthetic_mar`, where recording x2 depends on x1, which has gaps.

    P(x1 recorded) = 0.7, P(x2 recorded) = sigma(-1.5 + X1).
    """
    graph = MGraph("x1 -> R_x2; R_x1")
    mechanism = GraphMechanism(graph, {"x1": float(np.log(7 / 3)), "x2": -1.5}, {"x2": {"X1": 1.0}})
    return SyntheticProblem("synthetic-mnar", _synthetic(n_rows, random_state), mechanism, MNAR(graph=graph))


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


def saturated_mar(n_rows: int = 60_000, random_state: int = 1) -> SyntheticProblem:
    """Draw a binary problem whose recording depends on one column, so that a logistic propensity is exact."""
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
    return SyntheticProblem("saturated-mar", Retrospective(frame, problem), mechanism, MAR(given=["x0"]))


def synthetic_policies() -> dict[str, Policy]:
    """Random policies of the paper, and a rule that acquires more where the label is uncertain."""
    return {
        "Random 10 %": RandomSubset(0.1),
        "Random 50 %": RandomSubset(0.5),
        "Random 90 %": RandomSubset(0.9),
        "Adaptive": DecisionRule(_adaptive),
    }


def _adaptive(values: Floats, acquired: Bools) -> Ints:
    """Acquire x1 where X0 is near 0, then x2 where X0 + X1 is near 0; action 3 stops."""
    x0, x1 = values[:, 0], values[:, 1]
    has_x1, has_x2 = acquired[:, 1], acquired[:, 2]
    uncertain = np.where(has_x1, np.abs(x0 + x1) < 1.5, np.abs(x0) < 1.0)
    return np.where(has_x2 | ~uncertain, 3, np.where(has_x1, 2, 1))
