"""compare(): several policies on the same rows, their paired differences and their ranking."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .agents.policy import Policy, bind
from .arguments import check_choice, check_estimator
from .classifiers import Classifier
from .data import Retrospective
from .estimators import Bounds, Estimate
from .estimators.catalogue import ranked
from .estimators.joint import covariance_of, draws, paired_differences
from .frontier import Frontier, frontier_of
from .metrics import metrics_of
from .missingness import MAR, MCAR, MNAR
from .notices import AfapeWarning
from .parts import Parts
from .plain import plain_records
from .plan import Options, check_sendable, make_plan
from .plotting import axes_of
from .price_plane import PricePlane, price_plane_of
from .progress import Progress, check_progress
from .result import Evaluation, NotEstimableError
from .run import run
from .support import SupportThresholds

__all__ = ["Comparison", "compare"]


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
        check_choice("target", target, next(iter(self.evaluations.values())).targets)
        check_estimator(estimator)
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

    def _named(self, estimator: Any) -> str:
        """The estimator that the user names, or the best."""
        return self.best_estimator if estimator is None else check_estimator(estimator)

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
        return paired_differences(self._points(self._named(estimator), target), self.confidence)

    def ranking(self, estimator: str | None = None, target: str = "total") -> pd.DataFrame:
        """Policies from cheap to dear, with the uncertainty of their rank.

        ``rank_lower`` and ``rank_upper`` are the ranks that the simultaneous differences leave open, at the level of the
        intervals. ``best`` is how probable it is that the policy is the cheapest, by the joint normal law of the estimates:
        it may be small although rank 1 is not excluded, just as a p-value of 0.05 excludes nothing at 99 %. ``verdict`` says
        in words what both mean. Policies for which the estimator has no answer, or only bounds, are left out.
        """
        estimator = self._named(estimator)
        estimates = self._points(estimator, target)
        names = list(estimates)
        values = np.array([e.value for e in estimates.values()])
        drawn = values + draws(covariance_of(list(estimates.values())))
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

    def _parts(self, estimator: str | None) -> dict[str, Parts]:
        """Parts of every policy for which the estimator has some that are no bounds."""
        name = self._named(estimator)
        found: dict[str, Parts] = {}
        reasons = {}
        for policy, evaluation in self.evaluations.items():
            try:
                parts = evaluation.parts(_own_name(evaluation, name))
            except NotEstimableError as error:
                reasons[policy] = str(error)
                continue
            if parts.sums.columns.open:
                reasons[policy] = "only bounds"
            else:
                found[policy] = parts
        if not found:
            raise NotEstimableError(f"No policy has parts by {name!r}: {reasons}.")
        return found

    def metrics(self, estimator: str | None = None) -> pd.DataFrame:
        """Metrics of every policy, see `Evaluation.metrics`; by `best_estimator` unless another is named."""
        name = self._named(estimator)
        tables = [
            e.metrics(_own_name(e, name)).assign(policy=policy)
            for policy, e in self.evaluations.items()
            if _own_name(e, name) in e
        ]
        if not tables:
            self.estimates(name)  # says why
        table = pd.concat(tables, ignore_index=True)
        return table[["policy", *[c for c in table.columns if c != "policy"]]]

    def metric_differences(self, estimator: str | None = None) -> pd.DataFrame:
        """Paired differences of every metric between all pairs of policies.

        Intervals of one metric hold for all pairs of policies at once. Policies for which a metric has no estimate are left
        out of it.
        """
        by_metric: dict[tuple[str, Any], dict[str, Estimate]] = {}
        for policy, parts in self._parts(estimator).items():
            for metric in metrics_of(parts):
                found = by_metric.setdefault((metric.name, metric.label), {})
                if metric.estimate is not None:
                    found[policy] = metric.estimate
        tables = []
        for (name, label), estimates in by_metric.items():
            if len(estimates) > 1:
                table = paired_differences(estimates, self.confidence)
                table.insert(0, "metric", name)
                table.insert(1, "label", "" if label is None else label)
                tables.append(table)
        if not tables:
            raise ValueError("Differences need at least two policies with an answer.")
        return pd.concat(tables, ignore_index=True)

    def reprice(self, costs: Any = None, misclassification_cost: Any = None) -> Comparison:
        """The same policies with other prices and other costs of errors, see `Evaluation.reprice`.

        Table, differences and ranking of what is returned are those under the new prices.
        """
        priced = {name: e.reprice(costs, misclassification_cost) for name, e in self.evaluations.items()}
        return Comparison(priced, self.confidence)

    def price_plane(
        self, prices: Mapping[str, tuple[float, float]], estimator: str | None = None, points: int = 41
    ) -> PricePlane:
        """Which policy is the cheapest, where one or two prices vary, and where that is uncertain.

        Parameters
        ----------
        prices : mapping from group to (least, largest)
            One or two prices; "misclassification" stands for the cost of an error, the same for all.
        estimator : str, optional
            Default: `best_estimator`.
        points : int
            Points of each range.
        """
        return price_plane_of(self._parts(estimator), prices, points, self.confidence)

    def frontier(self, estimator: str | None = None, label: Any = None) -> Frontier:
        """Cost-effectiveness: cost of acquisition against cases found, and the policies that are not dominated.

        Parameters
        ----------
        estimator : str, optional
            Default: `best_estimator`.
        label : optional
            The class to find; default the second of two classes, and every right prediction where there are more.
        """
        parts = self._parts(estimator)
        classes = next(iter(parts.values())).tariff.classes
        label = classes[1] if label is None and len(classes) == 2 else label
        return frontier_of(parts, label, self.confidence)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the influence values, as plain numbers and text, ready for JSON."""
        evaluations = {name: e.to_dict() for name, e in self.evaluations.items()}
        return {"confidence": self.confidence, "evaluations": evaluations, **self.standing()}

    def standing(self) -> dict[str, Any]:
        """Ranking and differences as plain numbers and text, or the reason why there are none."""
        out: dict[str, Any] = {}
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
        estimator = self._named(estimator)
        found = self.estimates(estimator, target)
        ends = {name: e.interval(self.confidence) for name, e in found.items()}
        order = sorted(found, key=lambda name: -sum(ends[name]))
        ax = axes_of(ax, (6, 0.6 + 0.4 * len(order)))
        for y, name in enumerate(order):
            bounds = isinstance(found[name], Bounds)
            ax.plot(ends[name], [y, y], color="0.6" if bounds else "C0")
            if not bounds:
                ax.plot([found[name].value], [y], "o", color="C0")
        ax.set_yticks(range(len(order)), order)
        ax.set_xlabel(f"{target} cost by {estimator}, {100 * self.confidence:g} % intervals")
        return ax

    def _repr_html_(self) -> str:
        from html import escape

        first = next(iter(self.evaluations.values()))
        head = f"{len(self.evaluations)} policies on {first.support.n_rows} rows"
        try:
            shown = self.ranking().round(4)
            head += f", total cost by {self.best_estimator}"
        except ValueError:
            totals = self.table[self.table["target"] == "total"]
            shown = totals[["policy", "estimator", "estimate", "bound_lower", "bound_upper", "note"]].round(4)
        return f"<p>{escape(head)}</p>{shown.to_html(index=False, border=0)}"

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


def check_settings(data: Any, classifier: Any, missingness: Any, settings: Mapping[str, Any]) -> None:
    """Refuse, before any agent is trained, what `compare` would refuse after it.

    ``settings`` are further arguments of `compare`, which a function passes on.
    """
    known = [*(f.name for f in fields(Options)), "progress"]
    if odd := [name for name in settings if name not in known]:
        raise TypeError(f"Further arguments must be those of afape.compare, {known}, but {odd[0]!r} is none of them.")
    check_progress(settings.get("progress"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AfapeWarning)  # compare gives them
        make_plan(data, classifier, missingness, Options(**{k: v for k, v in settings.items() if k != "progress"}))


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
    outcomes: Any = None,
    by: Any = None,
    progress: Progress | bool | None = None,
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
        outcomes=outcomes,
        by=by,
    )
    if odd := [name for name in policies if not isinstance(name, str) or not name.strip()]:
        raise TypeError(f"'policies' must have texts as names, but {odd[0]!r} is none.")
    check_progress(progress)
    plan = make_plan(data, classifier, missingness, options)
    bound = {name: bind(policy, data.problem, f"policies[{name!r}]") for name, policy in policies.items()}
    check_sendable(n_jobs, policies=bound, classifier=classifier)
    found = run(plan, bound, progress)
    return Comparison({name: e.described(policies[name]) for name, e in found.items()}, confidence)
