"""The demo: three random policies on the synthetic problem, every estimator beside the known truth."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from ..comparison import Comparison, compare
from ..estimators import Estimate
from ..evaluation import true_cost
from ..notices import HeavyWeightsWarning, SupportWarning
from .policies import synthetic_policies
from .synthetic import synthetic_mar

__all__ = ["Demo", "demo_table", "run_demo"]


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demo found.

    Attributes
    ----------
    comparison : Comparison
        The three policies.
    truths : dict
        True costs by policy and target.
    words : dict
        What the support check has to say of each policy.
    """

    comparison: Comparison
    truths: dict[str, dict[str, Estimate]]
    words: dict[str, str]


def run_demo(
    n_rows: int = 150_000,
    random_state: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> Demo:
    """Evaluate Random 10 %, 50 % and 90 % on the synthetic MAR problem."""

    def tell(what: str) -> Callable[[int, int], None]:
        return lambda done, todo: progress(what, done, todo) if progress else None

    tell("drawing data and training the classifier")(0, 1)
    experiment = synthetic_mar(n_rows)
    classifier, data, complete = experiment.parts(random_state)
    tell("drawing data and training the classifier")(1, 1)
    known = experiment.mechanism.propensity(data)
    policies = {name: policy for name, policy in synthetic_policies().items() if name != "Adaptive"}
    truths = {name: true_cost(complete, policy, classifier) for name, policy in policies.items()}
    with warnings.catch_warnings():
        for told in (SupportWarning, HeavyWeightsWarning):  # what they say stands below the demo's table
            warnings.simplefilter("ignore", told)
        comparison = compare(
            data,
            policies,
            classifier,
            missingness=experiment.missingness,
            propensity=[None, known],
            n_imputations=5,  # "mi" runs the policy on each; ten would take most of the time
            random_state=random_state,
            progress=tell("evaluating"),
        )
    supports = {name: e.support for name, e in comparison.evaluations.items()}
    return Demo(comparison, truths, {name: " ".join((*s.warnings, *s.heavy)) for name, s in supports.items()})


def demo_table(demo: Demo) -> pd.DataFrame:
    """One line per policy, estimator and target, with the truth and the distance from it."""
    table = demo.comparison.table
    truth = [demo.truths[p][t].value for p, t in zip(table["policy"], table["target"], strict=True)]
    table = table.assign(truth=truth)
    return table.assign(distance=table["estimate"] - table["truth"])
