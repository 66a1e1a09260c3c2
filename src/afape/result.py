"""What `evaluate` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .data import Retrospective
from .diagnostics.paths import NO_PATHS, Paths
from .diagnostics.plain import plain_records
from .diagnostics.support import Support
from .diagnostics.words import percent
from .estimators import TARGETS, Bounds, Choice, Estimate, Outcome
from .estimators.catalogue import ranked
from .estimators.mi import ImputationCheck

__all__ = ["Evaluation", "NotEstimableError", "plain_records"]


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
            for target in TARGETS:
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

    def imputation_check(self, target: str = "total") -> ImputationCheck:
        """The difference between the best estimate that does not rest on an imputation model and `mi`, with its error.

        Where the imputation model is right both estimate the same cost, so that a difference beyond its error speaks against
        it. Where that error is more than twice the error of `mi`, the records can hardly check the model.
        """
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
        }

    def to_html(self, path: str | Path, **content: Any) -> None:
        """Write a page that stands alone: costs, assumption, support and what the policy does; prices can be changed in it.

        Needs the extra ``report``. ``content`` goes to `afape.report.write_report`: ``sensitivity``, ``notes``, ``details``.
        """
        import_module("afape.report").write_report(self, path, **content)  # the page stands above results

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
