"""Agents know their training rows, also after they were saved, and are flagged when they are judged on them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import afape
from afape.agents import CostSensitiveTree, FittedQ, StepBudget
from afape.warnings import SeenRowsWarning

PROBLEM = afape.Problem({"a": ["a"], "b": ["b"]}, costs={"b": 1.0}, label="y", misclassification_cost=9.0)


def records(n=600, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    frame = pd.DataFrame({"a": a, "b": np.where(rng.random(n) < 0.7, b, np.nan), "y": (a + b > 0).astype(int)})
    return afape.Retrospective(frame, PROBLEM)


@pytest.mark.parametrize("agent", [CostSensitiveTree(), FittedQ()], ids=lambda a: type(a).__name__)
def test_an_agent_is_flagged_on_its_training_rows(agent, tmp_path):
    one, two, three = records().split([0.3, 0.4, 0.3], random_state=0)
    classifier = afape.ImputedClassifier(LogisticRegression()).fit(one)
    agent.fit(two, classifier)
    afape.save(agent, tmp_path / "agent.afape", PROBLEM)
    judge = {"missingness": afape.MAR(given=["a"]), "estimators": ["ipw-semi"]}
    for judged in (agent, StepBudget(agent, 1), afape.load(tmp_path / "agent.afape", PROBLEM)):
        with pytest.warns(SeenRowsWarning, match=f"was trained on {len(two)} of the {len(two)} rows"):
            found = afape.compare(two, {"mine": judged}, classifier, **judge)
        assert "The policy 'mine' was trained on" in next(d for d in found.doubts if d.kind == "training rows").text
    held_out = afape.compare(three, {"mine": agent}, classifier, **judge)  # warnings are errors
    assert "training rows" not in [d.kind for d in held_out.doubts]
    other = records(seed=9)
    assert agent.seen(other) == 0
