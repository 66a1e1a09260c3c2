"""The demo: three random policies on the synthetic problem, every estimator beside the known truth."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pandas as pd

from ..evaluation import evaluate, true_cost
from ..notices import HeavyWeightsWarning, SupportWarning
from .policies import synthetic_policies
from .synthetic import synthetic_mar

__all__ = ["run_demo"]


def run_demo(
    n_rows: int = 150_000,
    random_state: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> pd.DataFrame:
    """Evaluate Random 10 %, 50 % and 90 % on the synthetic MAR problem.

    Returns
    -------
    DataFrame
        One line per policy, estimator and target, with the truth and the distance from it. What the support check has to
        say is in ``attrs["support"]``, one text per policy.
    """

    def tell(what: str) -> Callable[[int, int], None]:
        return lambda done, todo: progress(what, done, todo) if progress else None

    tell("drawing data and training the classifier")(0, 1)
    experiment = synthetic_mar(n_rows)
    classifier, data, complete = experiment.parts(random_state)
    tell("drawing data and training the classifier")(1, 1)
    known = experiment.mechanism.propensity(data)
    tables, words = [], {}
    for name, policy in synthetic_policies().items():
        if name == "Adaptive":
            continue
        truth = true_cost(complete, policy, classifier)
        with warnings.catch_warnings():
            for told_below_the_table in (SupportWarning, HeavyWeightsWarning):
                warnings.simplefilter("ignore", told_below_the_table)
            result = evaluate(
                data,
                policy,
                classifier,
                missingness=experiment.missingness,
                propensity=[None, known],
                n_imputations=5,  # "mi" runs the policy on each; ten would take most of the time
                random_state=random_state,
                progress=tell(f"evaluating {name}"),
            )
        words[name] = " ".join((*result.support.warnings, *result.support.heavy))
        table = result.table.assign(policy=name, truth=[truth[t].value for t in result.table["target"]])
        tables.append(table.assign(distance=table["estimate"] - table["truth"]))
    found = pd.concat(tables, ignore_index=True)
    found.attrs["support"] = words
    return found
