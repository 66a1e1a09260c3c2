"""The demo: three policies on the synthetic problem, estimated costs beside the true ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import pandas as pd

from ..agents.builtin import AcquireAll, AcquireNone
from ..agents.policy import Policy
from ..comparison import compare
from ..estimators.estimate import Estimate
from ..evaluation import true_cost
from ..results.comparison import Comparison
from ..warnings import HeavyWeightsWarning, SupportWarning
from .synthetic import synthetic_mar, synthetic_policies
from .world import Tell

__all__ = ["COMMON", "Demo", "demo_policies", "demo_table", "run_demo"]

COMMON = "blocking"  # what the field reports most often
_SHORT = [COMMON, "drl-semi", "eff-semi"]


@dataclass(frozen=True, eq=False)
class Demo:
    """The results of the demo.

    Attributes
    ----------
    comparison : Comparison
        Comparison of the three policies.
    truths : dict
        True costs by policy and target.
    """

    comparison: Comparison
    truths: dict[str, dict[str, Estimate]]


def demo_policies() -> dict[str, Policy]:
    """Acquire nothing, acquire everything, or acquire where the label is uncertain."""
    return {
        "acquire nothing": AcquireNone(),
        "acquire where unsure": synthetic_policies()["Adaptive"],
        "acquire everything": AcquireAll(),
    }


def run_demo(n_rows: int, random_state: int, tell: Tell, every_estimator: bool = False) -> Demo:
    """Evaluate three policies on the synthetic MAR problem; ``tell(step, done, total)`` reports progress.

    With ``every_estimator`` all estimators are applied, with a learned and with the true propensity.
    """
    tell("drawing data and training the classifier", 0, 1)
    problem = synthetic_mar(n_rows)
    classifier, data, complete = problem.prepare(random_state)
    policies = demo_policies()
    truths = {name: true_cost(complete, policy, classifier) for name, policy in policies.items()}
    known = problem.mechanism.propensity(data)
    with warnings.catch_warnings():
        for shown in (SupportWarning, HeavyWeightsWarning):  # the demo prints doubts below its table
            warnings.simplefilter("ignore", shown)
        comparison = compare(
            data,
            policies,
            classifier,
            missingness=problem.missingness,
            estimators=None if every_estimator else _SHORT,
            propensity=[None, known] if every_estimator else None,
            n_imputations=5,  # ten, the default, would take most of the time
            random_state=random_state,
            progress=lambda done, todo: tell("evaluating", done, todo),
        )
    return Demo(comparison, truths)


def demo_table(demo: Demo) -> pd.DataFrame:
    """Return one line per policy, estimator and target, with ``truth`` and ``distance`` (estimate minus truth)."""
    table = demo.comparison.table
    truth = [demo.truths[p][t].value for p, t in zip(table["policy"], table["target"], strict=True)]
    table = table.assign(truth=truth)
    return table.assign(distance=table["estimate"] - table["truth"])
