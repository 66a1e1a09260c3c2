"""compare(): several policies on the same rows, their paired differences and their ranking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from .agents.policy import Policy, bind
from .arrays import Floats
from .classifiers import Classifier
from .data import Retrospective
from .estimators import TARGETS, Estimate
from .estimators.estimate import cluster_sums
from .missingness import MAR, MCAR
from .result import Evaluation
from .task import Task

__all__ = ["Comparison", "compare"]

_DRAWS = 20_000  # of the joint normal law of the estimates


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several policies evaluated on the same rows.

    Attributes
    ----------
    evaluations : dict
        The `Evaluation` of each policy.
    table : DataFrame
        One line a policy, estimator and target.
    """

    evaluations: dict[str, Evaluation]
    confidence: float

    def __getitem__(self, policy: str) -> Evaluation:
        return self.evaluations[policy]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One line a policy, estimator and target."""
        tables = [e.table.assign(policy=name) for name, e in self.evaluations.items()]
        table = pd.concat(tables, ignore_index=True)
        return table[["policy", *[c for c in table.columns if c != "policy"]]]

    def estimates(self, estimator: str, target: str = "total") -> dict[str, Estimate]:
        """Estimate of each policy."""
        if target not in TARGETS:
            raise ValueError(f"'target' must be one of {list(TARGETS)}, but is {target!r}.")
        return {name: e[estimator][target] for name, e in self.evaluations.items()}

    def differences(self, estimator: str = "drl-semi", target: str = "total") -> pd.DataFrame:
        """Paired differences of all pairs, with simultaneous intervals.

        The intervals hold for all pairs at once: their half-width is the quantile of the largest absolute
        studentised difference under the joint normal law of the estimates (max-t), which is narrower than Bonferroni's
        because the differences are correlated. ``p_value`` is adjusted in the same way.
        """
        estimates = self.estimates(estimator, target)
        pairs = list(combinations(estimates, 2))
        if not pairs:
            raise ValueError("Differences need at least two policies.")
        found = [estimates[a] - estimates[b] for a, b in pairs]
        errors = np.array([d.std_error for d in found])
        with np.errstate(invalid="ignore", divide="ignore"):
            deviations = self._draws(estimates)
            names = list(estimates)
            spread = np.column_stack([deviations[:, names.index(a)] - deviations[:, names.index(b)] for a, b in pairs])
            largest = np.nanmax(np.where(errors > 0, np.abs(spread) / errors, 0.0), axis=1)
            observed = np.where(errors > 0, np.abs([d.value for d in found]) / errors, 0.0)
        critical = float(np.quantile(largest, self.confidence))
        return pd.DataFrame(
            {
                "policy": [a for a, _ in pairs],
                "minus": [b for _, b in pairs],
                "difference": [d.value for d in found],
                "std_error": errors,
                "lower": [d.value - critical * e for d, e in zip(found, errors, strict=True)],
                "upper": [d.value + critical * e for d, e in zip(found, errors, strict=True)],
                "p_value": [(1 + int((largest >= o).sum())) / (1 + len(largest)) for o in observed],
            }
        )

    def ranking(self, estimator: str = "drl-semi", target: str = "total") -> pd.DataFrame:
        """Policies from cheap to dear, with the uncertainty of their rank.

        ``best`` is the probability of being the cheapest under the joint normal law of the estimates, ``rank_lower`` and
        ``rank_upper`` the ranks that the simultaneous differences leave open.
        """
        estimates = self.estimates(estimator, target)
        names = list(estimates)
        values = np.array([e.value for e in estimates.values()])
        drawn = values + self._draws(estimates)
        best = np.bincount(drawn.argmin(axis=1), minlength=len(names)) / len(drawn)
        cheaper, dearer = np.zeros(len(names), dtype=int), np.zeros(len(names), dtype=int)
        if len(names) > 1:
            for line in self.differences(estimator, target).to_dict("records"):
                a, b = names.index(line["policy"]), names.index(line["minus"])
                if line["upper"] < 0:  # a is cheaper than b
                    dearer[a] += 1
                    cheaper[b] += 1
                elif line["lower"] > 0:
                    dearer[b] += 1
                    cheaper[a] += 1
        table = pd.DataFrame(
            {
                "policy": names,
                "estimate": values,
                "best": best,
                "rank_lower": 1 + cheaper,
                "rank_upper": len(names) - dearer,
            }
        )
        return table.sort_values("estimate", ignore_index=True, kind="stable")

    def _draws(self, estimates: dict[str, Estimate]) -> Floats:
        """Deviations from the joint normal law of the estimates, the same for every call."""
        listed = list(estimates.values())
        influences = [e.influence for e in listed if e.influence is not None]
        if len(influences) == len(listed):
            n = len(influences[0])
            sums = np.array([cluster_sums(phi, listed[0].cluster) for phi in influences])
            m = sums.shape[1]
            covariance = sums @ sums.T * m / max(m - 1, 1) / n**2
        else:
            replicates = [e.replicates for e in listed if e.replicates is not None]
            if len(replicates) < len(listed):
                raise ValueError(
                    "This estimator has no standard errors without replicates; call compare with bootstrap=200 or more."
                )
            covariance = np.atleast_2d(np.cov(np.array(replicates)))
        rng = np.random.default_rng(0)
        return np.asarray(rng.multivariate_normal(np.zeros(len(listed)), covariance, size=_DRAWS, method="svd"))

    def __repr__(self) -> str:
        first = next(iter(self.evaluations.values()))
        estimator = next((n for n in ("drl-semi", "ipw-semi") if n in first), next(iter(first.outcomes)))
        shown = self.ranking(estimator).round({"estimate": 4, "best": 3})
        return (
            f"{len(self.evaluations)} policies on {first.support.n_rows} rows, total cost by {estimator}\n"
            f"{shown.to_string(index=False)}"
        )


def compare(
    data: Retrospective,
    policies: Mapping[str, Policy],
    classifier: Classifier,
    *,
    missingness: MCAR | MAR,
    estimators: Any = None,
    propensity: Any = None,
    values: Any = "quadratic",
    augment_label: bool = True,
    normalize: bool = True,
    acquisition_weight: str = "before",
    bootstrap: Any = 0,
    confidence: float = 0.95,
    n_folds: int = 5,
    split: float | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    walk: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Evaluate several policies on the same rows.

    Folds, bootstrap draws and learned propensities are shared, so that differences are paired. Arguments are those of
    `evaluate`, but for

    Parameters
    ----------
    policies : mapping from name to policy
        At least one.
    """
    if not isinstance(policies, Mapping) or not policies:
        raise TypeError(f"'policies' must be a mapping from names to policies, but is {type(policies).__name__}.")
    task = Task.checked(
        data, classifier, missingness, propensity, values, augment_label, normalize, acquisition_weight, bootstrap,
        confidence, n_folds, split, random_state, n_jobs, walk, estimators,
    )  # fmt: skip
    bound = {name: bind(policy, data.problem, f"policies[{name!r}]") for name, policy in policies.items()}
    propensities = task.learn_propensities([task.probe(policy) for policy in bound.values()])
    evaluations = {}
    for k, (name, policy) in enumerate(bound.items()):
        evaluations[name] = task.evaluate(policy, name, propensities, _part(progress, k, len(bound)))
    return Comparison(evaluations, confidence)


def _part(progress: Callable[[int, int], None] | None, k: int, n_parts: int) -> Callable[[int, int], None] | None:
    """Progress of part k of several equal parts."""
    if progress is None:
        return None
    return lambda done, todo: progress(k * todo + done, n_parts * todo)
