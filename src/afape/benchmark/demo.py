"""The demo: three random policies on the synthetic problem, estimated costs beside the true ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import pandas as pd

from ..comparison import compare
from ..estimators.estimate import Estimate
from ..evaluation import true_cost
from ..results.comparison import Comparison
from ..warnings import HeavyWeightsWarning, SupportWarning
from .synthetic import synthetic_mar, synthetic_policies
from .world import Tell

__all__ = ["Demo", "demo_table", "run_demo"]


@dataclass(frozen=True, eq=False)
class Demo:
    """The results of the demo.

    Attributes
    ----------
    comparison : Comparison
        Comparison of the three policies.
    truths : dict
        True costs by policy and target.
    words : dict
        Warnings of the support check by policy.
    """

    comparison: Comparison
    truths: dict[str, dict[str, Estimate]]
    words: dict[str, str]


def run_demo(n_rows: int, random_state: int, tell: Tell) -> Demo:
    """Evaluate Random 10 %, 50 % and 90 % on the synthetic MAR problem; ``tell(step, done, total)`` reports progress."""
    tell("drawing data and training the classifier", 0, 1)
    problem = synthetic_mar(n_rows)
    classifier, data, complete = problem.prepare(random_state)
    known = problem.mechanism.propensity(data)
    policies = {name: policy for name, policy in synthetic_policies().items() if name != "Adaptive"}
    truths = {name: true_cost(complete, policy, classifier) for name, policy in policies.items()}
    with warnings.catch_warnings():
        for shown in (SupportWarning, HeavyWeightsWarning):  # the demo prints them below its table
            warnings.simplefilter("ignore", shown)
        comparison = compare(
            data,
            policies,
            classifier,
            missingness=problem.missingness,
            propensity=[None, known],
            n_imputations=5,  # ten, the default, would take most of the time
            random_state=random_state,
            progress=lambda done, todo: tell("evaluating", done, todo),
        )
    supports = {name: e.support for name, e in comparison.evaluations.items()}
    return Demo(comparison, truths, {name: " ".join((*s.warnings, *s.heavy)) for name, s in supports.items()})


def demo_table(demo: Demo) -> pd.DataFrame:
    """Return one line per policy, estimator and target, with ``truth`` and ``distance`` (estimate minus truth)."""
    table = demo.comparison.table
    truth = [demo.truths[p][t].value for p, t in zip(table["policy"], table["target"], strict=True)]
    table = table.assign(truth=truth)
    return table.assign(distance=table["estimate"] - table["truth"])
