"""Result of `evaluate`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._arguments import check_choice, check_class, check_estimator, shown
from .._copies import HandsOutCopies
from ..agents.policy import Policy, ignores_values
from ..data.label_group import with_label_group
from ..data.retrospective import Retrospective
from ..data.row_counts import RowCounts
from ..estimators.amounts import Amounts
from ..estimators.answer import Answer
from ..estimators.catalogue import Choice, ranked
from ..estimators.constant_answer import label_amounts
from ..estimators.differences import paired_differences
from ..estimators.estimate import TARGETS, Bounds, Estimate
from ..estimators.evidence import Evidence
from ..estimators.final_scores import FinalScores
from ..estimators.mi import ImputationCheck
from ..estimators.proportion import Proportion
from ..files.writing import plain_records
from ..missingness.assumptions import MAR, MCAR, MNAR
from ..missingness.graph import MGraph
from ..run.plan import name_of
from ..run.run import PolicyRun
from ..support.implications import check_implications, holm, implications
from ..support.paths import NO_PATHS, Paths
from ..support.support import Support
from ..support.wording import percent
from ..walk.outcomes import Scored
from ..walk.tariff import Tariff
from .calibration import Calibration, calibration_of
from .doubts import Doubt, doubts_of
from .exports import cost_table, named_estimators, shared_tables, write_workbook
from .metrics import metric_table, metrics_of
from .parts import Parts
from .price_plane import PricePlane, price_plane_of
from .provenance import Provenance

__all__ = ["Evaluation", "NotEstimableError", "Origin"]


_NUMBERS = ["estimate", "std_error", "bound_lower", "bound_upper", "lower", "upper", "normalizer"]


class NotEstimableError(KeyError):
    """Raised if an estimator has no answer on these records; the message gives the reason."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, eq=False)
class Origin:
    """Inputs of an evaluation.

    Attributes
    ----------
    data : Retrospective or RowCounts
        The records; their counts if the rows were evaluated in blocks.
    missingness : MCAR, MAR or MNAR
        The assumption.
    seed : int or None
        ``random_state``, from which all seeds are derived.
    rules : str
        Text that the policy's ``describe()`` returns; empty if it has no such method.
    run : PolicyRun or None
        Plan, policy and walk; None in a result that was read from a file.
    tests : DataFrame or None
        Tests of what the assumption implies, if they were done block by block.
    labels : Amounts or None
        Shares of the labels, if rows were evaluated in blocks.
    provenance : Provenance or None
        What the result was made from.
    """

    data: Retrospective | RowCounts
    missingness: MCAR | MAR | MNAR
    seed: int | None = 0
    rules: str = ""
    run: PolicyRun | None = None
    tests: pd.DataFrame | None = None
    labels: Amounts | None = None
    provenance: Provenance | None = None

    @cached_property
    def counts(self) -> RowCounts:
        """Numbers of rows by pattern and label."""
        return self.data if isinstance(self.data, RowCounts) else RowCounts.of(self.data)

    @cached_property
    def recorded(self) -> RowCounts:
        """Numbers of rows by pattern; the label is one of the groups if it has gaps and the rows are here."""
        return self.data if isinstance(self.data, RowCounts) else RowCounts.of(with_label_group(self.data))

    @property
    def graph(self) -> MGraph:
        """The assumption as a graph, with the indicator of the label if it has gaps and the rows are here."""
        return self.missingness.graph_on(self._extended)

    @property
    def _extended(self) -> Retrospective | RowCounts:
        return self.data if isinstance(self.data, RowCounts) else with_label_group(self.data)

    @cached_property
    def label_shares(self) -> Amounts | None:
        """Share of each label; None if some rows have none."""
        if isinstance(self.data, RowCounts):
            return self.labels
        return label_amounts(self.data) if self.data.labelled.all() else None

    def tested(self, groups: Collection[str] | None = None) -> pd.DataFrame:
        """Test what the assumption implies about the recording of these groups (default: all)."""
        if isinstance(self.data, RowCounts):
            assert self.tests is not None
            mine = self.tests if groups is None else self.tests[self.tests["recording"].isin(list(groups))]
            return mine.assign(p_adjusted=holm(mine["p_value"].to_numpy(dtype=float))).reset_index(drop=True)
        data = with_label_group(self.data)
        found = implications(self.missingness.graph_on(data))
        return check_implications(data, [i for i in found if groups is None or i.group in groups])

    def __getstate__(self) -> dict[str, Any]:
        # Policies are often local functions, which cannot be pickled, and results do not need them.
        kept = {
            name: value for name, value in self.__dict__.items() if name not in ("counts", "label_shares", "recorded")
        }
        return {**kept, "run": None}


@dataclass(frozen=True, eq=False)
class Evaluation(HandsOutCopies):
    """Estimated cost of one policy, by estimator and target.

    ``result["ipw-semi"]["total"]`` is an `Estimate`. ``a["ipw-semi"]["total"] - b["ipw-semi"]["total"]`` is the paired
    difference of two policies evaluated on the same rows. If the policy wants sets that the records do not support, the
    estimate is a `Bounds`: it has no ``value``, but ``bound_lower`` and ``bound_upper``.

    Attributes
    ----------
    table : DataFrame
        One line per estimator and target.
    support : Support
        Positivity diagnostics.
    assumption : tuple of str
        The assumption about why values are missing, and its consequences, in words.
    propensity : DataFrame
        One line per group whose recording was learned: the form of the model, ``gain`` (log-likelihood per row above the
        linear form, on held-out rows), and its calibration on these rows: ``calibration_slope``, 1 if calibrated, and
        ``calibration_gap``, the largest difference between recorded share and mean probability in ten bins.
    subgroups : mapping
        Level -> `Evaluation` of the rows of that level, if ``by`` was given. Propensities and action values are learned from
        all rows. In its ``support``, rows (``n_rows``, ``sampled``) and weights (``estimators``: effective rows, mean and
        largest weights) are those of the subgroup; sets, regions, balance, warnings and ``paths`` are those of all rows.
    paths : Paths
        Shares of runs by the sets of groups that they acquire, and by the next group.
    """

    answers: dict[str, Answer]
    support: Support
    policy: str
    classifier: str
    missingness: str
    confidence: float
    assumption: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()  # method and propensity of every estimator
    propensity: pd.DataFrame = field(default_factory=pd.DataFrame)
    tariff: Tariff | None = None  # prices and costs
    subgroups: Mapping[str, Evaluation] = field(default_factory=dict)
    stops: Evidence | None = None  # weighted stops; None without outcomes of the user
    paths: Paths = NO_PATHS
    origin: Origin | None = field(default=None, repr=False)

    @staticmethod
    def of(name: str, policy: Policy, run: PolicyRun, provenance: Provenance) -> Evaluation:
        """Return the evaluation of the policy with this name."""
        plan, described = run.plan, getattr(policy, "describe", None)
        rules = str(described()) if callable(described) else ""
        whole = Evaluation(
            run.answers,
            run.support,
            name,
            name_of(plan.classifier),
            repr(plan.missingness),
            plan.confidence,
            run.notes,
            tuple(run.choices),
            run.forms,
            replace(plan.recipe.tariff, fixed=ignores_values(policy)),
            stops=run.stops,
            paths=run.paths,
            origin=Origin(
                plan.data.original or plan.data, plan.missingness, plan.seed, rules, run, provenance=provenance
            ),
        )
        by = "" if plan.levels is None else plan.levels.name
        parts = {
            level: replace(
                whole,
                answers=s.answers,
                support=s.support,
                stops=s.stops,
                tariff=None if whole.tariff is None else whole.tariff.of_subgroup,
                policy=f"{name} where {by} is {level}",
            )
            for level, s in run.subgroups.items()
        }
        return replace(whole, subgroups=parts)

    def __getitem__(self, estimator: str) -> dict[str, Estimate]:
        if estimator not in self.answers:
            raise KeyError(f"No estimator {estimator!r} here. The estimators are {list(self.answers)}.")
        answer = self.answers[estimator]
        if answer.reason:
            raise NotEstimableError(f"{estimator!r} is not estimable: {answer.reason}.")
        return dict(answer.estimates)

    def __contains__(self, estimator: object) -> bool:
        return estimator in self.answers and not self.answers[str(estimator)].reason

    @cached_property
    def table(self) -> pd.DataFrame:
        """One line per estimator and target. Without an answer the numbers are NaN, and ``note`` gives the reason.

        If there are only bounds, ``estimate`` is NaN, ``bound_lower`` and ``bound_upper`` are the bounds, and ``lower`` and
        ``upper`` are the confidence limits around them. ``extrapolated`` is then the estimate that holds if the models may be
        extrapolated into the regions without support, with ``extrapolated_lower`` and ``extrapolated_upper`` around it.
        """
        lines = []
        for name, answer in self.answers.items():
            for target in self.targets:
                estimate = answer.estimates.get(target)
                low, high = (np.nan, np.nan) if estimate is None else estimate.interval(self.confidence)
                lines.append(
                    {
                        "estimator": name,
                        "target": target,
                        "estimate": np.nan if estimate is None else estimate.value,
                        "std_error": np.nan if estimate is None else estimate.std_error,
                        "bound_lower": estimate.bound_lower if isinstance(estimate, Bounds) else np.nan,
                        "bound_upper": estimate.bound_upper if isinstance(estimate, Bounds) else np.nan,
                        "lower": low,
                        "upper": high,
                        **_extrapolated(estimate, self.confidence),
                        "degrees_of_freedom": np.nan if estimate is None else estimate.degrees_of_freedom,
                        "ess": answer.ess,
                        "normalizer": answer.normalizer,
                        "clipped": answer.clipped,
                        "error_method": "" if estimate is None else answer.error_method,
                        "note": _note(answer),
                    }
                )
        return pd.DataFrame(lines)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the estimated quantities: costs, then outcomes of the user."""
        return TARGETS if self.tariff is None else self.tariff.targets

    @property
    def provenance(self) -> Provenance | None:
        """What the result was made from: versions, seed, options, checksums; None in parts of results."""
        return None if self.origin is None else self.origin.provenance

    @property
    def best_estimator(self) -> str:
        """Default estimator of `parts` and `metrics`: the preferred one with an answer and with parts."""
        names = [c.name for method in ranked() for c in self.choices if c.method is method]
        here = [name for name in names if name in self]
        here.sort(key=lambda name: isinstance(self[name]["total"], Bounds))  # estimates before bounds
        found = next((name for name in here if self.answers[name].parts is not None), None)
        if found is None:
            raise NotEstimableError(
                f"None of {names or list(self.answers)} has an answer with parts. See the reasons in the column 'note'."
            )
        return found

    @cached_property
    def doubts(self) -> tuple[Doubt, ...]:
        """What a reader must know before trusting the answer of `best_estimator`: at most five doubts, grave ones first."""
        return doubts_of({self.policy: self}, {self.policy: self._best_or_none})

    @property
    def _best_or_none(self) -> str:
        try:
            return self.best_estimator
        except NotEstimableError:
            return ""

    def parts(self, estimator: str | None = None) -> Parts:
        """Return the parts of the costs: how often each group is acquired, and rates of true and predicted labels.

        Parameters
        ----------
        estimator : str, optional
            Default: `best_estimator`.
        """
        name = self.best_estimator if estimator is None else check_estimator(estimator)
        self[name]  # raises the reason if there is no answer
        found = self.answers[name].parts
        if found is None or self.tariff is None:
            raise NotEstimableError(
                f"{name!r} has no parts, because the known action values give only costs. Pass 'parts' to KnownValues."
            )
        return Parts(name, found, self.tariff, self.confidence)

    def metrics(self, estimator: str | None = None) -> pd.DataFrame:
        """Compute sensitivity, specificity, predictive values, accuracy and balanced accuracy, with intervals.

        One line per metric: for the second of two classes, or for every class against the others if there are more.
        Standard errors come from the delta method. Intervals are symmetric on the logit scale, so that they stay between 0
        and 1. ``note`` gives the reason if a metric has no estimate.
        """
        return metric_table(metrics_of(self.parts(estimator)), self.confidence)

    def reprice(self, costs: Any = None, misclassification_cost: Any = None) -> Evaluation:
        """Return the evaluation of this policy under other prices and other costs of errors, without new computations.

        The result is the cost of what *this* policy does. A policy that acts differently under other prices needs a new
        evaluation. If policy and classifier do not change, every estimate, standard error, interval and bound equals that of a
        new evaluation with these prices, up to rounding. There is one exception: the parts always use ridge regression, so
        ``drl-semi`` and ``dm-semi`` may differ slightly if their action values use another regressor (``values="boosting"``).
        A group with price 0 still counts as acquired by a decision; a `Problem` with that price would reveal it before the
        first decision.

        Parameters
        ----------
        costs : mapping, optional
            New prices by group; the other prices stay.
        misclassification_cost : float or array (K, K), optional
            New cost of errors, as in `Problem`; default: no change.
        """
        if self.tariff is None:
            raise NotEstimableError("This evaluation has no parts, so other prices cannot be applied. Evaluate again.")
        tariff = self.tariff.repriced(costs, misclassification_cost)
        return replace(
            self,
            answers={name: answer.priced(tariff) for name, answer in self.answers.items()},
            tariff=tariff,
            subgroups={level: e.reprice(costs, misclassification_cost) for level, e in self.subgroups.items()},
        )

    def price_plane(
        self, prices: Mapping[str, tuple[float, float]], estimator: str | None = None, points: int = 41
    ) -> PricePlane:
        """Compute the total cost of this policy as one or two prices vary; see `Comparison.price_plane` for several policies."""
        parts = self.parts(estimator)
        if parts.bounded:
            raise NotEstimableError(f"{parts.estimator!r} has only bounds of the total cost, so it has no price plane.")
        return price_plane_of({self.policy: parts}, prices, points, self.confidence)

    def auc(self, score: str | None = None, label: Any = None) -> Proportion:
        """Estimate the area under the ROC curve of the score in the states where runs stop, from weighted pairs.

        Parameters
        ----------
        score : str, optional
            Name of the outcome that is the score; default: the first made by `afape.score`.
        label : optional
            The positive class; default: the class of the score.
        """
        return self._scores(score, label)[0].auc()

    def calibration(self, score: str | None = None, label: Any = None, bins: Any = 10) -> Calibration:
        """Estimate observed and predicted shares of a class in deployment, from weighted stops.

        Parameters
        ----------
        score, label
            See `auc`.
        bins : int or sequence of float
            Number of ranges of equal width between 0 and 1, or their ends.
        """
        scores, name, label = self._scores(score, label)
        return calibration_of(scores, bins, name, label)

    def _scores(self, score: str | None, label: Any) -> tuple[FinalScores, str, Any]:
        tariff = self.tariff
        own = {} if tariff is None else dict(tariff.own.functions)
        made = [name for name, f in own.items() if isinstance(f, Scored) and f.label is not None]
        if (
            tariff is None
            or self.stops is None
            or (score is None and not made)
            or (score is not None and (not isinstance(score, str) or score not in own))
        ):
            raise ValueError(
                "'score' must name an outcome that is a score, such as outcomes={'risk': afape.score(classifier)} in evaluate, "
                f"but is {shown(score)}. The outcomes here are {list(own)}."
            )
        name = made[0] if score is None else score
        code = getattr(own[name], "label", None)
        if label is not None:
            code = check_class("label", label, tariff.classes)
        if code is None or code >= len(tariff.classes):
            raise ValueError(f"'label' must be the class that {name!r} scores, one of {list(tariff.classes)}.")
        found = FinalScores(self.stops, list(own).index(name), code)
        if found.reason:
            raise NotEstimableError(f"The final score cannot be evaluated: {found.reason}.")
        return found, name, tariff.classes[code]

    def subgroup_differences(self, estimator: str | None = None, target: str = "total") -> pd.DataFrame:
        """Compute differences between subgroups, with intervals that hold for all pairs at once; one line per pair.

        Subgroups for which the estimator has no answer, or only bounds, are left out.
        """
        if not self.subgroups:
            raise ValueError("There are no subgroups: call evaluate with by=..., a recorded column or an array.")
        check_choice("target", target, self.targets)
        name = self.best_estimator if estimator is None else check_estimator(estimator)
        if name not in self.answers:
            self[name]  # raises an error that lists the estimators
        found = {level: e[name][target] for level, e in self.subgroups.items() if name in e}
        points = {level: e for level, e in found.items() if not isinstance(e, Bounds) and np.isfinite(e.std_error)}
        return paired_differences(points, self.confidence, "subgroups", "subgroup")

    def imputation_check(self, target: str = "total") -> ImputationCheck:
        """Compare `mi` with the best estimate that does not use an imputation model.

        If the imputation model is right, both estimate the same cost, so a significant difference is evidence against the
        model. If the standard error of the difference is more than twice that of `mi`, the records can hardly check the model.
        """
        check_choice("target", target, self.targets)
        names = [c.name for m in ranked() for c in self.choices if c.method is m and m.weighs]
        sound = next((name for name in names if name in self and not isinstance(self[name][target], Bounds)), None)
        if "mi" not in self or sound is None:
            raise NotEstimableError(
                "The check needs 'mi', and a weighted or doubly robust estimator with an estimate instead of bounds."
            )
        return ImputationCheck.of(sound, self[sound][target], self["mi"][target])

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the influence values as plain numbers and text, ready for JSON."""
        return {
            "policy": self.policy,
            "classifier": self.classifier,
            "missingness": self.missingness,
            "assumption": list(self.assumption),
            "confidence": self.confidence,
            "n_rows": self.support.n_rows,
            "sampled_rows": self.support.sampled,
            "unsupported": self.support.unsupported,
            "table": plain_records(self.table),
            "sets": plain_records(self.support.sets),
            "weights": plain_records(self.support.estimators),
            "propensity": plain_records(self.propensity),
            "groups": plain_records(self.support.groups),
            "pairs": plain_records(self.support.pairs),
            "views": plain_records(self.support.views),
            "violations": plain_records(self.support.violations),
            "balance": plain_records(self.support.balance),
            "heaviest": plain_records(self.support.heaviest),
            "paths": plain_records(self.paths.sets),
            "steps": plain_records(self.paths.steps),
            "undecided": plain_records(self.support.undecided),
            "heavy": list(self.support.heavy),
            "warnings": list(self.support.warnings),
            "advice": list(self.support.advice),
            "subgroups": {level: plain_records(e.table) for level, e in self.subgroups.items()},
            "provenance": None if self.provenance is None else self.provenance.to_dict(),
        }

    def to_markdown(self, estimators: Sequence[str] | None = None) -> str:
        """Return the costs as a Markdown table.

        Parameters
        ----------
        estimators : list of str, optional
            Estimators to show, one line each. Default: all.
        """
        return cost_table({self.policy: self}, named_estimators(estimators, list(self.answers))).markdown()

    def to_latex(self, estimators: Sequence[str] | None = None) -> str:
        r"""Return the costs as a LaTeX table, for ``\usepackage{booktabs}``; see `to_markdown`."""
        return cost_table({self.policy: self}, named_estimators(estimators, list(self.answers))).latex()

    def to_excel(self, path: str | Path) -> None:
        """Write a workbook: all costs, acquisitions and errors, metrics, support and provenance.

        This needs ``pip install 'afape[excel]'``. ``path`` ends in ``.xlsx``.
        """
        best = self._best_or_none or next(iter(self.answers))
        write_workbook(path, {"costs": self.table, **shared_tables({self.policy: self}, best)})

    def to_appendix(self, path: str | Path) -> None:
        """Write an appendix for a paper: the items of TRIPOD+AI and STARD, filled in as far as the evaluation knows.

        What the authors must add is marked. The file is Markdown.
        """
        from ..report.appendix import write_appendix  # report is a higher layer than results

        write_appendix(self, path)

    def to_html(self, path: str | Path, **content: Any) -> None:
        """Write one HTML page: costs, assumption, support and what the policy does. Its reader can change the prices.

        This needs ``pip install 'afape[report]'``. By default it also computes `afape.sensitivity`, which takes time;
        ``sensitivity=False`` leaves it out. ``content`` may be ``sensitivity``, ``notes``, ``details`` and ``min_cell``, see
        `afape.report.write_report`.
        """
        from ..report.page import write_report  # report is a higher layer than results

        write_report(self, path, **content)

    def _heading(self) -> str:
        support = self.support
        how = "exact walk" if not support.sampled else f"{support.sampled} rows sampled, the others exact"
        origin = self.origin
        rows = "rows with weights" if origin is not None and _weighted(origin.data) else "rows"
        return (
            f"{self.policy} with {self.classifier}, {support.n_rows} {rows}, {self.missingness}, {how}; "
            f"{100 * self.confidence:g} % intervals"
        )

    def _shown(self) -> pd.DataFrame:
        shown = self.table.drop(columns=["clipped"]).rename(columns={"degrees_of_freedom": "df"})
        shown["df"] = [f"{v:.0f}" for v in shown["df"]]
        if shown["bound_lower"].isna().all():
            shown = shown.drop(columns=["bound_lower", "bound_upper"])
        shown["ess"] = [f"{v:.0f}" for v in shown["ess"]]
        for column in shown.columns.intersection(_NUMBERS):
            shown[column] = ["0" if abs(v) < 1e-12 else f"{v:.4g}" for v in shown[column]]  # rounding errors are 0
        return shown

    def __repr__(self) -> str:
        return f"{self._heading()}\n{self._shown().to_string(index=False)}"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(self._heading())}</p>{self._shown().to_html(index=False, border=0)}"


def _extrapolated(estimate: Estimate | None, confidence: float) -> dict[str, float]:
    """Return the columns of the extrapolated estimate beside bounds; NaN if there is none."""
    found = estimate.extrapolated if isinstance(estimate, Bounds) else None
    low, high = (np.nan, np.nan) if found is None else found.interval(confidence)
    value = np.nan if found is None else found.value
    return {"extrapolated": value, "extrapolated_lower": low, "extrapolated_upper": high}


def _weighted(data: Retrospective | RowCounts) -> bool:
    return data.weighted if isinstance(data, RowCounts) else data.weight is not None


def _note(answer: Answer) -> str:
    if answer.reason:
        return f"not estimable: {answer.reason}"
    lost = f"{answer.lost} of {answer.replicates} replicates have no estimate" if answer.lost else ""
    if answer.unsupported:
        bounds = f"bounds: {percent(answer.unsupported)} of the policy's runs want sets that the records do not support"
        return f"{bounds}; {lost}" if lost else bounds
    return "; ".join(text for text in (answer.caveat, lost) if text)
