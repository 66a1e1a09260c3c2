"""Result of `compare`: several policies on the same rows, their paired differences and their ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._arguments import check_choice, check_estimator
from .._copies import HandsOutCopies
from ..estimators.answer import Answer
from ..estimators.catalogue import ranked
from ..estimators.differences import paired_differences
from ..estimators.estimate import Bounds, Estimate
from ..estimators.unseen import ENOUGH_ROWS
from ..files.writing import plain_records
from .doubts import Doubt, doubts_of
from .evaluation import Evaluation, NotEstimableError
from .exports import cost_table, named_estimators, shared_tables, write_workbook
from .frontier import Frontier, frontier_of
from .metrics import metrics_of
from .parts import Parts
from .price_plane import PricePlane, price_plane_of
from .provenance import Provenance
from .ranking import ranked_policies
from .twins import own_name, twin

__all__ = ["Comparison"]


@dataclass(frozen=True, eq=False)
class Comparison(HandsOutCopies):
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
        """Return the estimate of each policy that has one.

        Under a graph, one policy may have ``drl-semi`` and another ``drl-semi-miss``: the second if the recording of the groups
        that it wants depends on groups with gaps. Either name selects both.
        """
        check_choice("target", target, next(iter(self.evaluations.values())).targets)
        check_estimator(estimator)
        found = {
            name: e[own][target] for name, e in self.evaluations.items() for own in [own_name(e, estimator)] if own in e
        }
        if not found:
            return {name: e[estimator][target] for name, e in self.evaluations.items()}  # raises the reason
        return found

    def _points(self, estimator: str, target: str) -> dict[str, Estimate]:
        """Return the estimates that are not bounds."""
        found = self.estimates(estimator, target)
        points = {name: e for name, e in found.items() if not isinstance(e, Bounds)}
        if not points:
            raise ValueError(
                f"{estimator!r} has only bounds for {list(found)}: these policies want sets that the records do not support. "
                "The bounds are in the table; the support of each policy gives advice."
            )
        return points

    @property
    def provenance(self) -> Provenance | None:
        """What the results were made from, see `Evaluation.provenance`."""
        return next(iter(self.evaluations.values())).provenance

    @property
    def best_estimator(self) -> str:
        """Default estimator of `differences` and `ranking`: the preferred one with an answer for all policies."""
        here = self._preferred
        answered = [n for n in here if all(own_name(e, n) in e for e in self.evaluations.values())]
        if not here:
            first = next(iter(self.evaluations.values()))
            sound = [method.name for method in ranked()]
            raise ValueError(
                f"'estimator' must be given, because this comparison has none of {sound}. Choose one of {list(first.answers)}."
            )
        return (answered or here)[0]

    @cached_property
    def doubts(self) -> tuple[Doubt, ...]:
        """What a reader must know before trusting the ranking: at most five doubts, grave ones first."""
        try:
            best = self.best_estimator
        except ValueError:  # only biased estimators
            best = ""
        return doubts_of(self.evaluations, {name: own_name(e, best) for name, e in self.evaluations.items()})

    def _named(self, estimator: Any) -> str:
        """Return the estimator that the user names, or the default."""
        return self.best_estimator if estimator is None else check_estimator(estimator)

    @property
    def _preferred(self) -> list[str]:
        """Estimators that may rank policies, the preferred one first. Biased estimators are excluded."""
        choices = {c.name: c for e in self.evaluations.values() for c in e.choices}
        names = [c.name for method in ranked() for c in choices.values() if c.method is method]
        return [n for n in names if twin(n) not in names or "-miss" in n]  # of two names, keep "-miss"

    def differences(self, estimator: str | None = None, target: str = "total") -> pd.DataFrame:
        """Compute paired differences of all pairs, with simultaneous intervals; one line per pair.

        The intervals hold for all pairs at once. Their level is a quantile of the smallest p-value under the joint normal
        distribution of the estimates. The differences are correlated, so the intervals are narrower than Bonferroni's. Each
        pair uses the t distribution with its own ``degrees_of_freedom``. With fewer than ten, the difference depends on a few
        rows and the interval is many standard errors wide. ``p_value`` is adjusted in the same way. Policies for which the
        estimator has no answer, or only bounds, are left out; ``a - b`` of two estimates gives bounds of their difference.
        """
        return paired_differences(self._points(self._named(estimator), target), self.confidence)

    def effective_rows(self, estimator: str | None = None) -> dict[str, float]:
        """Return the effective sample size behind the estimate of each policy that has one; the column ``ess`` of the table."""
        name = self._named(estimator)
        return {policy: self._answer(policy, name).ess for policy in self.estimates(name)}

    def _answer(self, policy: str, estimator: str) -> Answer:
        evaluation = self.evaluations[policy]
        return evaluation.answers[own_name(evaluation, estimator)]

    def too_few(self, estimator: str | None = None) -> str:
        """Return why the rows are too few to rank the policies; "" if two policies can be ranked, or if there is only one."""
        name = self._named(estimator)
        rows = {p: r for p, r in self.effective_rows(name).items() if not isinstance(self.estimates(name)[p], Bounds)}
        enough = [r for r in rows.values() if not r < ENOUGH_ROWS]
        if len(rows) < 2 or len(enough) > 1:
            return ""
        least = min(r for r in rows.values() if r < ENOUGH_ROWS)
        largest = max(r for r in rows.values() if r < ENOUGH_ROWS)
        have = f"{least:.0f}" if round(least) == round(largest) else f"{least:.0f} to {largest:.0f}"
        which = "the estimates" if not enough else "all estimates but one"
        return (
            f"These records are too few to rank the policies: by {name}, {which} have {have} effective rows, and a ranking "
            f"needs at least {ENOUGH_ROWS} for each policy."
        )

    def ranking(self, estimator: str | None = None, target: str = "total") -> pd.DataFrame:
        """Rank the policies, cheapest first, with the uncertainty of their ranks; one line per policy.

        ``rank_lower`` and ``rank_upper`` limit the ranks that agree with the simultaneous intervals of the differences.
        ``best`` is the probability that the policy is the cheapest, under the joint normal distribution of the estimates. It
        may be small although rank 1 is not excluded, because a rank is excluded only at the confidence level. ``verdict``
        summarises both. Policies for which the estimator has no answer are left out. A policy that has only bounds is ranked if
        they lie outside the estimates of the others; otherwise it is left out. A policy with fewer than 50 effective rows
        excludes no rank and has no ``best``. If fewer than two policies have more, there is an error.
        """
        name = self._named(estimator)
        estimates = self.estimates(name, target)
        if reason := self.too_few(name):
            raise ValueError(reason)
        few = frozenset(p for p, rows in self.effective_rows(name).items() if rows < ENOUGH_ROWS)
        doubtful = any(doubt.grave for doubt in self.doubts)
        table = ranked_policies(estimates, self.confidence, few, doubtful)
        if len(table) == 0:
            self._points(name, target)  # raises the reason
        return table

    def _parts(self, estimator: str | None) -> dict[str, Parts]:
        """Return the parts of every policy for which the estimator has parts that are not bounds."""
        name = self._named(estimator)
        found: dict[str, Parts] = {}
        reasons = {}
        for policy, evaluation in self.evaluations.items():
            try:
                parts = evaluation.parts(own_name(evaluation, name))
            except NotEstimableError as error:
                reasons[policy] = str(error)
                continue
            if parts.bounded:
                reasons[policy] = "only bounds"
            else:
                found[policy] = parts
        if not found:
            raise NotEstimableError(f"No policy has parts by {name!r}: {reasons}.")
        return found

    def metrics(self, estimator: str | None = None) -> pd.DataFrame:
        """Compute metrics of every policy, see `Evaluation.metrics`. Default estimator: `best_estimator`."""
        name = self._named(estimator)
        tables = [
            e.metrics(own_name(e, name)).assign(policy=policy)
            for policy, e in self.evaluations.items()
            if own_name(e, name) in e
        ]
        if not tables:
            self.estimates(name)  # raises the reason
        table = pd.concat(tables, ignore_index=True)
        return table[["policy", *[c for c in table.columns if c != "policy"]]]

    def metric_differences(self, estimator: str | None = None) -> pd.DataFrame:
        """Compute paired differences of every metric between all pairs of policies; one line per metric and pair.

        Intervals of one metric hold for all pairs of policies at once. For each metric, policies without an estimate of it are
        left out.
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
        """Return the comparison under other prices and other costs of errors, see `Evaluation.reprice`."""
        priced = {name: e.reprice(costs, misclassification_cost) for name, e in self.evaluations.items()}
        return Comparison(priced, self.confidence)

    def price_plane(
        self, prices: Mapping[str, tuple[float, float]], estimator: str | None = None, points: int = 41
    ) -> PricePlane:
        """Find the cheapest policy as one or two prices vary, and where this is uncertain.

        Parameters
        ----------
        prices : mapping from group to (least, largest)
            One or two prices. "misclassification" means the cost of an error, equal for all errors.
        estimator : str, optional
            Default: `best_estimator`.
        points : int
            Number of points in each range.
        """
        found = price_plane_of(self._parts(estimator), prices, points, self.confidence)
        if not self.too_few(estimator):
            return found
        return replace(found, table=found.table.assign(probability=np.nan, uncertain=True))

    def frontier(self, estimator: str | None = None, label: Any = None) -> Frontier:
        """Compare cost of acquisition and cases found (cost-effectiveness), and find the policies that are not dominated.

        Parameters
        ----------
        estimator : str, optional
            Default: `best_estimator`.
        label : optional
            The class to find. Default: the second of two classes; with more classes, every right prediction counts.
        """
        parts = self._parts(estimator)
        classes = next(iter(parts.values())).tariff.classes
        label = classes[1] if label is None and len(classes) == 2 else label
        found = frontier_of(parts, label, self.confidence)
        return replace(found, table=found.table.assign(probability=np.nan)) if self.too_few(estimator) else found

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the influence values as plain numbers and text, ready for JSON."""
        evaluations = {name: e.to_dict() for name, e in self.evaluations.items()}
        doubts = [doubt._asdict() for doubt in self.doubts]
        made = None if self.provenance is None else self.provenance.to_dict()
        whole = {"confidence": self.confidence, "doubts": doubts, "evaluations": evaluations, "provenance": made}
        return {**whole, **self.standing()}

    def standing(self) -> dict[str, Any]:
        """Return ranking and differences as plain numbers and text, or the reason why there are none."""
        out: dict[str, Any] = {}
        try:
            out["estimator"] = self.best_estimator
            if len(self._points(self.best_estimator, "total")) > 1:
                out["differences"] = plain_records(self.differences())
            out["ranking"], out["differences"] = plain_records(self.ranking()), out.get("differences", [])
        except ValueError as error:  # nothing to rank by
            out["reason"] = str(error)
        return out

    def to_markdown(self, estimators: Sequence[str] | None = None) -> str:
        """Return the costs of all policies as a Markdown table.

        Parameters
        ----------
        estimators : list of str, optional
            Estimators to show, one line each per policy. Default: `best_estimator`.
        """
        return cost_table(self.evaluations, named_estimators(estimators, [self._default])).markdown()

    def to_latex(self, estimators: Sequence[str] | None = None) -> str:
        r"""Return the costs of all policies as a LaTeX table, for ``\usepackage{booktabs}``; see `to_markdown`."""
        return cost_table(self.evaluations, named_estimators(estimators, [self._default])).latex()

    def to_excel(self, path: str | Path) -> None:
        """Write a workbook: all costs, ranking, differences, acquisitions and errors, metrics, support, provenance.

        This needs ``pip install 'afape[excel]'``. ``path`` ends in ``.xlsx``.
        """
        write_workbook(path, {**self._standing_tables(), **shared_tables(self.evaluations, self._default)})

    def to_appendix(self, path: str | Path) -> None:
        """Write an appendix for a paper: the items of TRIPOD+AI and STARD, filled in as far as the evaluation knows.

        What the authors must add is marked. The file is Markdown.
        """
        from ..report.appendix import write_appendix  # report is a higher layer than results

        write_appendix(self, path)

    @property
    def _default(self) -> str:
        """The best estimator; the first one if all are biased."""
        try:
            return self.best_estimator
        except ValueError:
            return next(iter(next(iter(self.evaluations.values())).answers))

    def _standing_tables(self) -> dict[str, pd.DataFrame]:
        found = self.standing()
        tables = {"costs": self.table}
        return tables | {name: pd.DataFrame(found[name]) for name in ("ranking", "differences") if found.get(name)}

    def to_html(self, path: str | Path, **content: Any) -> None:
        """Write one HTML page with costs, differences and what each policy does. Its reader can change the prices.

        This needs ``pip install 'afape[report]'``. By default it also computes `afape.sensitivity`, which takes time;
        ``sensitivity=False`` leaves it out. ``content`` may be ``sensitivity``, ``notes`` and ``details``, see
        `afape.report.write_report`.
        """
        from ..report.page import write_report  # report is a higher layer than results

        write_report(self, path, **content)

    def plot(self, estimator: str | None = None, target: str = "total", ax: Any = None) -> Any:
        """Draw the estimates with their intervals, cheapest first; needs matplotlib.

        Parameters
        ----------
        estimator : str, optional
            Default: `best_estimator`.
        target : str
            "total", "acquisition" or "misclassification".
        ax : matplotlib Axes, optional
            Axes to draw in; default a new figure.

        Returns
        -------
        matplotlib Axes
        """
        from ..plots.results import draw_comparison

        return draw_comparison(self, self._named(estimator), target, ax)

    def _repr_html_(self) -> str:
        from html import escape

        first = next(iter(self.evaluations.values()))
        head = f"{len(self.evaluations)} policies on {first.support.n_rows} rows"
        try:
            shown = self.ranking().round(4)
            head += f", total cost by {self.best_estimator}"
        except ValueError as error:
            head += f". {error}"
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
                for own in [own_name(e, name)]
            )
        ]
        if not usable:
            totals = self.table[self.table["target"] == "total"]
            return f"{head}\n{totals[['policy', 'estimator', 'estimate', 'note']].to_string(index=False)}"
        if few := self.too_few(usable[0]):
            totals = self.table[(self.table["target"] == "total") & (self.table["estimator"] == usable[0])]
            columns = ["policy", "estimate", "lower", "upper", "ess"]
            return f"{head}. {few}\n{totals[columns].round(4).to_string(index=False)}"
        shown = self.ranking(usable[0]).round({"estimate": 4, "best": 3})
        return f"{head}, total cost by {usable[0]}\n{shown.to_string(index=False)}"
