"""Records from a discrete law with interactions, the policies judged on them, and their true costs."""

import numpy as np
import pandas as pd

import afape


def rule(values, acquired):
    """Columns a=u a=v a=w b=k b=l b=m c: look at b unless a is u, at c where b is k or l."""
    has_b, has_c = acquired[:, 1], acquired[:, 2]
    with np.errstate(invalid="ignore"):
        wants_c = has_b & ((values[:, 3] == 1) | (values[:, 4] == 1)) & ~has_c
    return np.where(~has_b & (values[:, 0] != 1), 1, np.where(wants_c, 2, 3))


class Sums:
    """Predicts 1 where the sum of a few indicators is large, whatever is missing."""

    def predict(self, values, acquired):
        return (np.nan_to_num(values) @ np.array([0.2, 0.9, 0.3, 0.8, -0.4, 0.1, 0.7]) > 0.75).astype(int)


POLICIES = {"rule": afape.DecisionRule(rule), "half": afape.RandomSubset(0.5), "most": afape.RandomSubset(0.9)}
PROBLEM = afape.Problem(
    groups={"a": ["a"], "b": ["b"], "c": ["c"]},
    costs={"b": 1.0, "c": 2.0},
    label="y",
    misclassification_cost=[[0.0, 3.0], [8.0, 0.0]],
    categories={"a": ["u", "v", "w"], "b": ["k", "l", "m"]},
)
MECHANISM = afape.missingness.LogisticMechanism(
    {"b": 0.0, "c": 0.3}, {"b": {"a=u": 1.0, "a=v": -0.8}, "c": {"a=v": 1.2, "a=w": -0.7}}
)


def population():
    """Rows in the exact proportions of a law with interactions, so that their true cost is the law's."""
    rng = np.random.default_rng(5)
    cells = [(a, b, c, y) for a in "uvw" for b in "klm" for c in (0, 1) for y in (0, 1)]
    count = rng.integers(1, 9, size=len(cells)) ** 2
    rows = np.repeat(np.array(cells, dtype=object), count, axis=0)
    return afape.Retrospective(pd.DataFrame(rows, columns=list("abcy")).infer_objects(), PROBLEM)


def draw(law, n, seed):
    complete = law.take(np.random.default_rng([3, seed]).integers(len(law), size=n))
    return MECHANISM.hide(complete, random_state=seed), complete


def run(data, policy="rule", **options):
    options = {"missingness": afape.MAR(given=["a"]), "estimators": ["mi"], **options}
    return afape.evaluate(data, POLICIES[policy], Sums(), **options)
