"""What `evaluate` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .arguments import check_choice, check_class, check_estimator
from .calibration import Calibration, calibration_of
from .data import Retrospective
from .diagnostics.paths import NO_PATHS, Paths
from .diagnostics.support import Support
from .diagnostics.words import percent
from .estimators import TARGETS, Bounds, Choice, Estimate, Outcome
from .estimators.catalogue import ranked
from .estimators.final_scores import FinalScores
from .estimators.joint import paired_differences
from .estimators.mi import ImputationCheck
from .estimators.proportion import Proportion
from .metrics import metric_table, metrics_of
from .nuisance.fitted import Evidence
from .outcomes import Scored
from .parts import Parts, PartSums, Tariff
from .plain import plain_records
from .price_plane import PricePlane, price_plane_of
from .walk import PartColumns

__all__ = ["Evaluation", "NotEstimableError", "part_sums", "plain_records", "repriced"]


_NO_COLUMNS = PartColumns(np.zeros(0, dtype=np.intp), 0, 0, 0, np.zeros(0, dtype=np.intp))
_NUMBERS = ["estimate", "std_error", "bound_lower", "bound_upper", "lower", "upper", "normalizer"]


class NotEstimableError(KeyError):
    """The estimator has no answer on these records; the message says why."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, eq=False)
class Origin:
    """What an evaluation was made of: the records, the assumption, the policy and the classifier."""

    data: Retrospective
    missingness: Any
    policy: Any
    classifier: Any
    seed: int | None = 0
    rules: str = ""  # the policy in its own words, where it has some

    def __getstate__(self) -> dict[str, Any]:
        # Policies are often functions written on the spot, which cannot be pickled; results can do without them.
        return {**self.__dict__, "policy": None, "classifier": None}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Estimated cost of one policy, by estimator and target.

    ``result["ipw-semi"]["total"]`` is an `Estimate`; ``a["ipw-semi"]["total"] - b["ipw-semi"]["total"]`` the paired
    difference of two policies evaluated on the same rows. Where the records do not support all of the policy, it is
    `Bounds`: an estimate without a value, but with ``lower`` and ``upper``.

    Attributes
    ----------
    table : DataFrame
        One line an estimator and target.
    support : Support
        Positivity diagnostics.
    assumption : tuple of str
        What the estimates stand on, in words: why values are taken to be missing, and what follows from it.
    propensity : DataFrame
        One line per group whose recording was learned: the form of the model, ``gain`` (log-likelihood per row above the
        linear form, on rows not learned from), and its calibration on these rows: ``calibration_slope``, 1 where it is
        calibrated, and ``calibration_gap``, the largest difference of recorded share and mean probability in ten bins.
    subgroups : mapping
        Level -> `Evaluation` of the rows of that level, where ``by`` was given. Nuisances are learned from all rows. Of its
        ``support``, rows (``n_rows``, ``sampled``) and weights (``estimators``: effective rows, mean and largest weights) are
        those of the subgroup; sets, regions, balance, warnings and ``paths`` are those of all rows.
    paths : Paths
        Shares of runs by the sets of groups that they acquire, and by what they acquire next.
    """

    outcomes: dict[str, Outcome]
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
    weighted: Evidence | None = None  # weighted stops, kept where there are outcomes of the user's own
    paths: Paths = NO_PATHS
    origin: Origin | None = field(default=None, repr=False)

    def __getitem__(self, estimator: str) -> dict[str, Estimate]:
        if estimator not in self.outcomes:
            raise KeyError(f"No estimator {estimator!r} here; there are {list(self.outcomes)}.")
        outcome = self.outcomes[estimator]
        if outcome.reason:
            raise NotEstimableError(f"{estimator!r} is not estimable: {outcome.reason}.")
        return outcome.estimates

    def __contains__(self, estimator: object) -> bool:
        return estimator in self.outcomes and not self.outcomes[str(estimator)].reason

    @cached_property
    def table(self) -> pd.DataFrame:
        """One line an estimator and target; NaN, with the reason in ``note``, where there is no answer.

        Where there are only bounds, ``estimate`` is NaN, ``bound_lower`` and ``bound_upper`` hold them, and ``lower`` and
        ``upper`` the confidence limits around them.
        """
        lines = []
        for name, outcome in self.outcomes.items():
            for target in self.targets:
                estimate = outcome.estimates.get(target)
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
                        "degrees_of_freedom": np.nan if estimate is None else estimate.degrees_of_freedom,
                        "ess": outcome.ess,
                        "normalizer": outcome.normalizer,
                        "clipped": outcome.clipped,
                        "error_method": "" if estimate is None else outcome.error_method,
                        "note": _note(outcome),
                    }
                )
        return pd.DataFrame(lines)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of what is estimated: costs, then outcomes of the user's own."""
        return TARGETS if self.tariff is None else self.tariff.targets

    @property
    def best_estimator(self) -> str:
        """The first of the ranking that has an answer: what `parts` and `metrics` use by default."""
        names = [c.name for method in ranked() for c in self.choices if c.method is method]
        here = [name for name in names if name in self and self.outcomes[name].parts is not None]
        points = [name for name in here if not isinstance(self[name]["total"], Bounds)]
        if not here:
            raise NotEstimableError(
                f"None of {names or list(self.outcomes)} has an answer; see the table for the reasons."
            )
        return (points or here)[0]

    def parts(self, estimator: str | None = None) -> Parts:
        """What the costs are made of: how often each group is acquired, and whom the policy classifies as what.

        Parameters
        ----------
        estimator : str, optional
            Default: `best_estimator`.
        """
        name = self.best_estimator if estimator is None else check_estimator(estimator)
        self[name]  # says why there is none
        sums = part_sums(self.outcomes[name])
        if sums.linear is None or self.tariff is None:
            raise NotEstimableError(f"{name!r} has no parts: {sums.reason}.")
        return Parts(name, sums, self.tariff, self.confidence)

    def metrics(self, estimator: str | None = None) -> pd.DataFrame:
        """Sensitivity, specificity, predictive values, accuracy, balanced accuracy, with intervals by the delta method.

        One line per metric: of the second class where there are two, of every class against the others where there are
        more. Intervals are symmetric on the logit scale, so that they stay within 0 and 1. ``note`` says why a
        metric has no estimate.
        """
        return metric_table(metrics_of(self.parts(estimator)), self.confidence)

    def reprice(self, costs: Any = None, misclassification_cost: Any = None) -> Evaluation:
        """The same policy, with other prices and other costs of errors: estimates, intervals and all, at once.

        It is the cost of what *this* policy does. A policy that would act differently under other prices has to be evaluated
        anew. For a policy and a classifier that stay as they are, every estimate, standard error, interval and bound equals that
        of a new evaluation of a `Problem` with these prices, to rounding, with one exception: where action values are not
        learned by ridge regression (``values="boosting"``), the parts beside them are, so that parts and costs of ``drl-semi``
        and ``dm-semi`` may differ a little. A group of price 0 still counts as acquired by a decision; a `Problem` with that
        price would reveal it before the first one.

        Parameters
        ----------
        costs : mapping, optional
            Price of every group that has one; default as they are.
        misclassification_cost : float or array (K, K), optional
            Cost of errors, as of `Problem`; default as it is.
        """
        if self.tariff is None:
            raise NotEstimableError("This evaluation has no parts to price.")
        tariff = self.tariff.repriced(costs, misclassification_cost)
        return replace(
            self,
            outcomes={name: repriced(outcome, tariff) for name, outcome in self.outcomes.items()},
            tariff=tariff,
            subgroups={level: e.reprice(costs, misclassification_cost) for level, e in self.subgroups.items()},
        )

    def price_plane(
        self, prices: Mapping[str, tuple[float, float]], estimator: str | None = None, points: int = 41
    ) -> PricePlane:
        """Total cost of this policy, where one or two prices vary; see `Comparison.price_plane`, which compares policies."""
        parts = self.parts(estimator)
        if parts.sums.columns.open:
            raise NotEstimableError(f"{parts.estimator!r} has only bounds, and no single total, for these prices.")
        return price_plane_of({self.policy: parts}, prices, points, self.confidence)

    def auc(self, score: str | None = None, label: Any = None) -> Proportion:
        """Area under the ROC curve of the score with which a run ends, from pairs weighted by one over their propensities.

        Parameters
        ----------
        score : str, optional
            Name of the outcome that is the score; default the first made by `afape.score`.
        label : optional
            The class to tell from the others; default the one whose score it is.
        """
        return self._scores(score, label)[0].auc()

    def calibration(self, score: str | None = None, label: Any = None, bins: Any = 10) -> Calibration:
        """Observed share of a class against the predicted one, in deployment, from weighted stops.

        Parameters
        ----------
        score, label
            As of `auc`.
        bins : int or sequence of float
            How many ranges of equal width between 0 and 1, or their ends.
        """
        scores, name, label = self._scores(score, label)
        return calibration_of(scores, bins, name, label)

    def _scores(self, score: str | None, label: Any) -> tuple[FinalScores, str, Any]:
        tariff = self.tariff
        own = {} if tariff is None else dict(tariff.own.functions)
        made = [name for name, f in own.items() if isinstance(f, Scored) and f.label is not None]
        if (
            tariff is None
            or self.weighted is None
            or (score is None and not made)
            or (score is not None and (not isinstance(score, str) or score not in own))
        ):
            raise ValueError(
                "'score' must name an outcome that is a score, such as outcomes={'risk': afape.score(classifier)} in evaluate, "
                f"but is {score!r}. Here are {list(own)}."
            )
        name = made[0] if score is None else score
        code = getattr(own[name], "label", None)
        if label is not None:
            code = check_class("label", label, tariff.classes)
        if code is None or code >= len(tariff.classes):
            raise ValueError(f"'label' must say which of the classes {list(tariff.classes)} {name!r} is the score of.")
        rows = self.weighted.data.identity
        found = FinalScores(self.weighted, list(own).index(name), code, rows, self.confidence)
        if found.reason:
            raise NotEstimableError(f"The final score cannot be judged: {found.reason}.")
        return found, name, tariff.classes[code]

    def subgroup_differences(self, estimator: str | None = None, target: str = "total") -> pd.DataFrame:
        """Differences between subgroups, with intervals that hold for all pairs at once.

        Subgroups for which the estimator has no answer, or only bounds, are left out.
        """
        if not self.subgroups:
            raise ValueError("There are no subgroups: call evaluate with by=..., a recorded column or an array.")
        check_choice("target", target, self.targets)
        name = self.best_estimator if estimator is None else check_estimator(estimator)
        if name not in self.outcomes:
            self[name]  # says which there are
        found = {level: e[name][target] for level, e in self.subgroups.items() if name in e}
        points = {level: e for level, e in found.items() if not isinstance(e, Bounds) and np.isfinite(e.std_error)}
        return paired_differences(points, self.confidence, "subgroups", "subgroup")

    def imputation_check(self, target: str = "total") -> ImputationCheck:
        """The difference between the best estimate that does not rest on an imputation model and `mi`, with its error.

        Where the imputation model is right both estimate the same cost, so that a difference beyond its error speaks against
        it. Where that error is more than twice the error of `mi`, the records can hardly check the model.
        """
        check_choice("target", target, self.targets)
        names = [c.name for m in ranked() for c in self.choices if c.method is m and "propensity" in m.needs]
        sound = next((name for name in names if name in self and not isinstance(self[name][target], Bounds)), None)
        if "mi" not in self or sound is None:
            raise NotEstimableError("The check needs 'mi' and a weighted or doubly robust estimate that is no bound.")
        return ImputationCheck.of(sound, self[sound][target], self["mi"][target])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the influence values, as plain numbers and text, ready for JSON."""
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
        }

    def to_html(self, path: str | Path, **content: Any) -> None:
        """Write a page that stands alone: costs, assumption, support and what the policy does; prices can be changed in it.

        Needs the extra ``report``. ``content`` goes to `afape.report.write_report`: ``sensitivity``, ``notes``, ``details``.
        """
        import_module("afape.report").write_report(self, path, **content)  # the page stands above results

    def described(self, policy: Any) -> Evaluation:
        """The same, with the rules of a policy that can tell them."""
        if self.origin is None or not callable(getattr(policy, "describe", None)):
            return self
        return replace(self, origin=replace(self.origin, rules=str(policy.describe())))

    def _heading(self) -> str:
        support = self.support
        how = "exact walk" if not support.sampled else f"{support.sampled} rows sampled, the others exact"
        return (
            f"{self.policy} with {self.classifier}, {support.n_rows} rows, {self.missingness}, {how}; "
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


def part_sums(outcome: Outcome) -> PartSums:
    """Parts of an outcome, with the reason where there are none."""
    if outcome.columns is None:
        return PartSums(None, _NO_COLUMNS, reason=outcome.reason or "it was made without them")
    why = "" if outcome.parts is not None else "known action values have the costs alone; give KnownValues its 'parts'"
    return PartSums(outcome.parts, outcome.columns, outcome.unsupported, why)


def repriced(outcome: Outcome, tariff: Tariff) -> Outcome:
    """The outcome with all its targets made of its parts."""
    if outcome.reason:
        return outcome
    sums = part_sums(outcome)
    if sums.linear is None:
        return replace(outcome, estimates={}, reason=f"no other prices: {sums.reason}")
    return replace(outcome, estimates={target: tariff.estimate(sums, target) for target in tariff.targets})


def _note(outcome: Outcome) -> str:
    if outcome.reason:
        return f"not estimable: {outcome.reason}"
    lost = f"{outcome.lost} of {outcome.replicates} replicates lost a set" if outcome.lost else ""
    if outcome.unsupported:
        bounds = (
            f"bounds: {percent(outcome.unsupported)} of the policy's runs want sets that the records do not support"
        )
        return f"{bounds}; {lost}" if lost else bounds
    return "; ".join(text for text in (outcome.caveat, lost) if text)
