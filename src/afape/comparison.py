"""compare(): several policies on the same rows, their paired differences and their ranking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtr, stdtrit

from .agents.policy import Policy, bind
from .arrays import Floats, cluster_sums
from .classifiers import Classifier
from .data import Retrospective
from .estimators import TARGETS, Bounds, Estimate, ImputedEstimate, rubin_covariance
from .estimators.catalogue import ranked
from .missingness import MAR, MCAR, MNAR
from .plan import Options, check_progress, check_sendable, make_plan
from .result import Evaluation, plain_records
from .run import Progress, run
from .support import SupportThresholds

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
        One line per policy, estimator and target.
    """

    evaluations: dict[str, Evaluation]
    confidence: float

    def __getitem__(self, policy: str) -> Evaluation:
        return self.evaluations[policy]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One line per policy, estimator and target."""
        tables = [e.table.assign(policy=name) for name, e in self.evaluations.items()]
        table = pd.concat(tables, ignore_index=True)
        return table[["policy", *[c for c in table.columns if c != "policy"]]]

    def estimates(self, estimator: str, target: str = "total") -> dict[str, Estimate]:
        """Estimate of each policy that has one.

        Under a graph, a policy that wants nothing whose recording depends on groups with gaps has ``drl-semi`` where another
        has ``drl-semi-miss``; either name stands for both.
        """
        if target not in TARGETS:
            raise ValueError(f"'target' must be one of {list(TARGETS)}, but is {target!r}.")
        found = {
            name: e[own][target]
            for name, e in self.evaluations.items()
            for own in [_own_name(e, estimator)]
            if own in e
        }
        if not found:
            return {name: e[estimator][target] for name, e in self.evaluations.items()}  # says why
        return found

    def _points(self, estimator: str, target: str) -> dict[str, Estimate]:
        """Estimates that are no bounds."""
        found = self.estimates(estimator, target)
        points = {name: e for name, e in found.items() if not isinstance(e, Bounds)}
        if not points:
            raise ValueError(
                f"{estimator!r} has only bounds for {list(found)}: they want sets that the records do not support. See the "
                "table for the bounds, and the support of each policy for what can be done."
            )
        return points

    @property
    def best_estimator(self) -> str:
        """What `differences` and `ranking` use by default: the doubly robust estimator, else a weighted one."""
        here = self._preferred
        answered = [n for n in here if all(_own_name(e, n) in e for e in self.evaluations.values())]
        if not here:
            first = next(iter(self.evaluations.values()))
            sound = [method.name for method in ranked()]
            raise ValueError(f"None of {sound} was asked for; name one of {list(first.outcomes)}.")
        return (answered or here)[0]

    @property
    def _preferred(self) -> list[str]:
        """Estimators by which policies are compared, never one that is known to be biased; the preferred one first."""
        choices = {c.name: c for e in self.evaluations.values() for c in e.choices}
        names = [c.name for method in ranked() for c in choices.values() if c.method is method]
        return [n for n in names if _twin(n) not in names or "-miss" in n]  # of two names for one, that of the graph

    def differences(self, estimator: str | None = None, target: str = "total") -> pd.DataFrame:
        """Paired differences of all pairs, with simultaneous intervals.

        The intervals hold for all pairs at once: their level is the quantile of the smallest p-value under the joint
        normal law of the estimates, which is narrower than Bonferroni's because the differences are correlated; each pair
        then has the t law of its own degrees of freedom, which stand beside it: with fewer than ten, a few rows carry the
        difference and the interval is many standard errors wide. ``p_value`` is adjusted in the same way. Policies for which the
        estimator has no answer, or only bounds, are left out; ``a - b`` of the estimates bounds their differences.
        """
        estimates = self._points(estimator or self.best_estimator, target)
        names, covariance = list(estimates), _covariance(list(estimates.values()))
        values = np.array([e.value for e in estimates.values()])
        pairs = np.array(list(combinations(range(len(names)), 2))).reshape(-1, 2)
        if len(pairs) == 0:
            raise ValueError("Differences need at least two policies with an answer.")
        a, b = pairs.T
        difference = values[a] - values[b]
        each = list(estimates.values())
        paired = [each[i] - each[j] for i, j in pairs]
        rounding = 1e-12 * max(1.0, float(np.abs(values).max()))
        errors = np.array([d.std_error for d in paired])
        errors[errors <= rounding] = 0.0  # costs that are known exactly, up to rounding
        certain = errors == 0
        scale, freedom = np.where(certain, 1.0, errors), np.array([d.degrees_of_freedom for d in paired])
        # The smallest p-value of all pairs, had no policy differed; each pair is then held to it by its own t law.
        drawn = _draws(covariance)
        studentised = np.where(certain, 0.0, np.abs(drawn[:, a] - drawn[:, b]) / scale)
        smallest = 2 * ndtr(-studentised.max(axis=1))
        level = float(np.quantile(smallest, 1 - self.confidence))
        half = stdtrit(freedom, 1 - level / 2) * errors
        own = 2 * stdtr(freedom, -np.abs(difference) / scale)
        exceeded = (smallest[:, None] <= own).sum(axis=0)
        exceeded = np.where(certain, np.where(np.abs(difference) > rounding, 0, len(smallest)), exceeded)
        return pd.DataFrame(
            {
                "policy": [names[k] for k in a],
                "minus": [names[k] for k in b],
                "difference": difference,
                "std_error": errors,
                "lower": difference - half,
                "upper": difference + half,
                "degrees_of_freedom": freedom,
                "p_value": (1 + exceeded) / (1 + len(smallest)),
            }
        )

    def ranking(self, estimator: str | None = None, target: str = "total") -> pd.DataFrame:
        """Policies from cheap to dear, with the uncertainty of their rank.

        ``rank_lower`` and ``rank_upper`` are the ranks that the simultaneous differences leave open, at the level of the
        intervals. ``best`` is how probable it is that the policy is the cheapest, by the joint normal law of the estimates:
        it may be small although rank 1 is not excluded, just as a p-value of 0.05 excludes nothing at 99 %. ``verdict`` says
        in words what both mean. Policies for which the estimator has no answer, or only bounds, are left out.
        """
        estimator = estimator or self.best_estimator
        estimates = self._points(estimator, target)
        names = list(estimates)
        values = np.array([e.value for e in estimates.values()])
        drawn = values + _draws(_covariance(list(estimates.values())))
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
        table["verdict"] = [_verdict(line, len(names)) for line in table.to_dict("records")]
        return table.sort_values("estimate", ignore_index=True, kind="stable")

    def to_dict(self) -> dict[str, Any]:
        """Everything but the influence values, as plain numbers and text, ready for JSON."""
        out: dict[str, Any] = {
            "confidence": self.confidence,
            "evaluations": {name: e.to_dict() for name, e in self.evaluations.items()},
        }
        try:
            out["estimator"] = self.best_estimator
            out["ranking"], out["differences"] = plain_records(self.ranking()), []
            if len(self._points(self.best_estimator, "total")) > 1:
                out["differences"] = plain_records(self.differences())
        except ValueError as error:  # nothing to rank by
            out["reason"] = str(error)
        return out

    def to_html(self, path: str | Path, **content: Any) -> None:
        """Write a page that stands alone, with costs, differences and what each policy does; prices can be changed in it.

        Needs the extra ``report``. ``content`` goes to `afape.report.write_report`: ``sensitivity``, ``notes``, ``details``.
        """
        import_module("afape.report").write_report(self, path, **content)  # the page stands above results

    def plot(self, estimator: str | None = None, target: str = "total", ax: Any = None) -> Any:
        """Draw the estimates with their intervals, cheapest first; needs matplotlib.

        Parameters
        ----------
        estimator : str, optional
            Default: `best_estimator`.
        target : str
            "total", "acquisition" or "misclassification".
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.

        Returns
        -------
        matplotlib Axes
        """
        try:
            from matplotlib import pyplot
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("Plots need matplotlib: pip install 'afape[plot]'.") from error
        estimator = estimator or self.best_estimator
        found = self.estimates(estimator, target)
        ends = {name: e.interval(self.confidence) for name, e in found.items()}
        order = sorted(found, key=lambda name: -sum(ends[name]))
        ax = pyplot.figure(figsize=(6, 0.6 + 0.4 * len(order))).add_subplot() if ax is None else ax
        for y, name in enumerate(order):
            bounds = isinstance(found[name], Bounds)
            ax.plot(ends[name], [y, y], color="0.6" if bounds else "C0")
            if not bounds:
                ax.plot([found[name].value], [y], "o", color="C0")
        ax.set_yticks(range(len(order)), order)
        ax.set_xlabel(f"{target} cost by {estimator}, {100 * self.confidence:g} % intervals")
        return ax

    def __repr__(self) -> str:
        first = next(iter(self.evaluations.values()))
        head = f"{len(self.evaluations)} policies on {first.support.n_rows} rows"
        usable = [
            name
            for name in self._preferred
            if all(
                own in e and np.isfinite(e[own]["total"].std_error)
                for e in self.evaluations.values()
                for own in [_own_name(e, name)]
            )
        ]
        if not usable:
            totals = self.table[self.table["target"] == "total"]
            return f"{head}\n{totals[['policy', 'estimator', 'estimate', 'note']].to_string(index=False)}"
        shown = self.ranking(usable[0]).round({"estimate": 4, "best": 3})
        return f"{head}, total cost by {usable[0]}\n{shown.to_string(index=False)}"


def _verdict(line: dict[Any, Any], n_policies: int) -> str:
    """What rank and probability mean together."""
    if n_policies == 1:
        return "alone"
    if line["rank_upper"] == 1:
        return "cheapest"
    if line["rank_lower"] > 1:
        return "not the cheapest"
    return "perhaps the cheapest" if line["best"] >= 0.05 else "hardly the cheapest, not excluded"


def _twin(estimator: str) -> str:
    """The name of the same estimator with, or without, groups with gaps to adjust for."""
    name, known = estimator.removesuffix("-gt"), "-gt" if estimator.endswith("-gt") else ""
    return (name.removesuffix("-miss") if name.endswith("-miss") else f"{name}-miss") + known


def _own_name(evaluation: Evaluation, estimator: str) -> str:
    """What the estimator is called for this policy."""
    twin = _twin(estimator)
    return twin if estimator not in evaluation.outcomes and twin in evaluation.outcomes else estimator


def _covariance(estimates: list[Estimate]) -> Floats:
    """Joint covariance of estimates on the same rows, from completed tables, influence values or paired replicates."""
    imputed = [e for e in estimates if isinstance(e, ImputedEstimate)]
    if len(imputed) == len(estimates):
        return rubin_covariance(imputed)
    influences = [e.influence for e in estimates if e.influence is not None]
    if len(influences) == len(estimates):
        sums = np.array([cluster_sums(phi, estimates[0].cluster) for phi in influences])
        m = sums.shape[1]
        return np.asarray(sums @ sums.T * m / max(m - 1, 1) / len(influences[0]) ** 2)
    replicates = [e.replicates for e in estimates if e.replicates is not None]
    if len(replicates) == len(estimates):
        shortest = min(len(r) for r in replicates)  # one policy's bootstrap may have been interrupted
        together = np.array([r[:shortest] for r in replicates])
        together = together[:, np.isfinite(together).all(axis=0)]
        if together.shape[1] > 1:
            return np.atleast_2d(np.cov(together))
    raise ValueError(
        "This estimator has no standard errors without replicates; call compare with bootstrap=200 or more."
    )


def _draws(covariance: Floats) -> Floats:
    """Deviations from the joint normal law, the same for every call."""
    rng = np.random.default_rng(0)
    return np.asarray(rng.multivariate_normal(np.zeros(len(covariance)), covariance, size=_DRAWS, method="svd"))


def compare(
    data: Retrospective,
    policies: Mapping[str, Policy],
    classifier: Classifier,
    *,
    missingness: MCAR | MAR | MNAR,
    estimators: Any = None,
    propensity: Any = None,
    values: Any = None,
    normalize: bool = True,
    acquisition_weight: str = "before",
    bootstrap: Any = 0,
    confidence: float = 0.95,
    n_folds: int | None = None,
    split: float | None = None,
    imputer: Any = None,
    n_imputations: int | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    walk: Any = None,
    thresholds: SupportThresholds | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Evaluate several policies on the same rows.

    Folds, bootstrap draws, completed tables and learned propensities are shared, so that differences are paired; every
    policy has the numbers that it would have alone. Arguments are those of `evaluate`, but for

    Parameters
    ----------
    policies : mapping from name to policy
        At least one.
    """
    if not isinstance(policies, Mapping) or not policies:
        raise TypeError(f"'policies' must be a mapping from names to policies, but is {type(policies).__name__}.")
    options = Options(
        estimators=estimators,
        propensity=propensity,
        values=values,
        normalize=normalize,
        acquisition_weight=acquisition_weight,
        bootstrap=bootstrap,
        confidence=confidence,
        n_folds=n_folds,
        split=split,
        imputer=imputer,
        n_imputations=n_imputations,
        random_state=random_state,
        n_jobs=n_jobs,
        walk=walk,
        thresholds=thresholds,
    )
    if odd := [name for name in policies if not isinstance(name, str) or not name.strip()]:
        raise TypeError(f"'policies' must have texts as names, but {odd[0]!r} is none.")
    check_progress(progress)
    plan = make_plan(data, classifier, missingness, options)
    bound = {name: bind(policy, data.problem, f"policies[{name!r}]") for name, policy in policies.items()}
    check_sendable(n_jobs, policies=bound, classifier=classifier)
    return Comparison(run(plan, bound, progress), confidence)
