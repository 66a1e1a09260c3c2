"""Studies over many data sets with known truth: bias, error, and how often the intervals contain the truth."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier, DummyRegressor

from ..bootstrap import Bootstrap
from ..comparison import compare
from ..evaluation import true_cost
from ..missingness import MAR, MNAR
from ..notices import AfapeWarning
from ..nuisance import LearnedPropensity, LearnedValues, ValueRegressor
from ..plan import choices_under
from .pages import (
    require_matplotlib,
    write_correction_page,
    write_coverage_page,
    write_robustness_page,
    write_values_page,
)
from .policies import synthetic_policies
from .study import run_draws
from .synthetic import Experiment, saturated_mar, synthetic_mar, synthetic_mnar

__all__ = [
    "COVERED",
    "StudyDraw",
    "bootstrap_study",
    "correction_study",
    "coverage_study",
    "mnar_study",
    "robustness_study",
    "summarise",
    "values_study",
]

Progress = Callable[[int, int], None]

_BOTH = {"learned": None, "known": None}  # propensities
# Those that run the policy on completed rows would take most of the time.
_COMPLETED = {"imputations", "components"}
COVERED = [c.name for c in choices_under(MAR(["x0"]), _BOTH) if not c.method.needs & _COMPLETED]
_SEMI_METHODS = [
    c.method
    for c in choices_under(MAR(["x0"]), {"learned": None})
    if c.method.view == "semi-offline" and not c.method.needs & _COMPLETED
]
_SEMI = [method.name for method in _SEMI_METHODS]
_SEMI_WEIGHTED = [method.name for method in _SEMI_METHODS if "propensity" in method.needs]
_GRAPH = [
    c.name
    for c in choices_under(MNAR("x1 -> R_x2; R_x1"), _BOTH)
    if "propensity" in c.method.needs
    and not c.method.needs & _COMPLETED
    and c.method.view in ("missing-data", "hybrid")
]


class StudyDraw:
    """Draws data sets with known truth and evaluates every policy on each, in several settings.

    The population is the evaluation part of the synthetic problem; rows are drawn from it with replacement and
    hidden anew each time, so its own cost is the exact truth.

    Parameters
    ----------
    n_rows : int
        Rows of a data set.
    settings : mapping from name to keyword arguments of `compare`
        Each is run on every data set. ``known=True`` adds the true propensity; ``missingness`` replaces the
        experiment's own assumption.
    kinds : list of str
        Interval kinds to record.
    policies : list of str, optional
        Names of the policies; default all.
    experiment : Experiment, optional
        Default: the synthetic MAR problem.
    """

    def __init__(
        self,
        n_rows: int,
        settings: dict[str, dict[str, Any]],
        kinds: tuple[str, ...] = ("normal",),
        policies: list[str] | None = None,
        experiment: Experiment | None = None,
    ) -> None:
        self.n_rows, self.settings, self.kinds = n_rows, settings, kinds
        self.experiment = experiment or synthetic_mar()
        self.classifier, _, self.population = self.experiment.parts()
        everyone = synthetic_policies()
        self.policies = {name: everyone[name] for name in policies or everyone}
        self.truth = {
            name: {target: e.value for target, e in true_cost(self.population, policy, self.classifier).items()}
            for name, policy in self.policies.items()
        }

    @property
    def study(self) -> str:
        """What the draws are of, so that those of another study are not taken for them."""
        assumed = repr(self.experiment.missingness)
        return f"{', '.join(self.settings)}; {', '.join(self.policies)}; {', '.join(self.kinds)}; {self.n_rows} rows; {assumed}"

    def __call__(self, k: int) -> list[dict[str, Any]]:
        """Records of draw k: one per setting, policy, estimator, target and kind of interval."""
        rng = np.random.default_rng([2023, k])
        complete = self.population.take(rng.integers(len(self.population), size=self.n_rows))
        data = self.experiment.mechanism.hide(complete, random_state=int(rng.integers(2**32)))
        records = []
        for setting, arguments in self.settings.items():
            options = dict(arguments)
            if options.pop("known", False):
                options["propensity"] = [None, self.experiment.mechanism.propensity(data)]
            missingness = options.pop("missingness", self.experiment.missingness)
            with warnings.catch_warnings():
                # A small sample in thousands may clip a weight; what that does to the estimate is what the study measures.
                warnings.simplefilter("ignore", AfapeWarning)
                found = compare(
                    data,
                    self.policies,
                    self.classifier,
                    missingness=missingness,
                    random_state=k,
                    **options,
                )
            for policy, result in found.evaluations.items():
                for estimator, outcome in result.outcomes.items():
                    for target, estimate in outcome.estimates.items():
                        for kind in self.kinds:
                            records.append(self._record(setting, policy, estimator, target, kind, estimate))
        return records

    def _record(
        self, setting: str, policy: str, estimator: str, target: str, kind: str, estimate: Any
    ) -> dict[str, Any]:
        truth = self.truth[policy][target]
        low, high = estimate.interval(kind=kind)
        slack = 1e-9 * abs(truth)  # estimates that are exact differ from the truth by rounding
        return {
            "setting": setting,
            "policy": policy,
            "estimator": estimator,
            "target": target,
            "interval": kind,
            "truth": truth,
            "estimate": estimate.value,
            "std_error": estimate.std_error if kind == "normal" else estimate.bootstrap_std_error,
            "covered": np.nan if np.isnan(low) else float(low - slack <= truth <= high + slack),
        }


def summarise(draws: pd.DataFrame) -> pd.DataFrame:
    """Bias, spread and coverage with their Monte Carlo errors."""
    lines = []
    keys = ["setting", "policy", "estimator", "target", "interval"]
    for key, part in draws.groupby(keys, sort=False):
        error = part["estimate"] - part["truth"]
        m = len(part)
        spread = float(error.std(ddof=1))
        covered = float(part["covered"].mean())
        lines.append(
            {
                **dict(zip(keys, key, strict=True)),
                "truth": part["truth"].iloc[0],
                "bias": error.mean(),
                "bias_mc_error": spread / np.sqrt(m),
                "rmse": np.sqrt((error**2).mean()),
                "std_deviation": spread,
                "mean_std_error": part["std_error"].mean(),
                "coverage": covered,
                "coverage_mc_error": np.sqrt(max(covered * (1 - covered), 1 / m) / m),
                "draws": m,
            }
        )
    return pd.DataFrame(lines)


def _run(
    out: Path, draw: StudyDraw, n_draws: int, n_jobs: int, progress: Progress | None, batch: int = 10
) -> pd.DataFrame:
    require_matplotlib()
    out.mkdir(parents=True, exist_ok=True)
    folder = out / f"draws-n{draw.n_rows}"
    summary = summarise(run_draws(draw, n_draws, folder, n_jobs=n_jobs, batch=batch, progress=progress))
    summary.to_csv(out / "summary.csv", index=False, float_format="%.6g")
    return summary


def coverage_study(
    out: Path, *, n_draws: int = 1000, n_rows: int = 2000, n_jobs: int = 1, progress: Progress | None = None
) -> pd.DataFrame:
    """Estimators with the intervals of their influence values, learned and true propensity; `eff-semi` with the learned one."""
    settings = {"default": {"known": True, "estimators": [*COVERED, "eff-semi"]}}
    summary = _run(out, StudyDraw(n_rows, settings), n_draws, n_jobs, progress)
    write_coverage_page(summary, out, "coverage", n_draws=n_draws, n_rows=n_rows)
    return summary


def mnar_study(
    out: Path, *, n_draws: int = 1000, n_rows: int = 2000, n_jobs: int = 1, progress: Progress | None = None
) -> pd.DataFrame:
    """The synthetic MNAR problem, analysed by its graph and as if it were MAR."""
    settings: dict[str, dict[str, Any]] = {
        "the graph": {"known": True, "estimators": _GRAPH},
        "as if MAR": {"missingness": MAR(["x0"]), "estimators": _SEMI_WEIGHTED},
    }
    draw = StudyDraw(n_rows, settings, experiment=synthetic_mnar())
    summary = _run(out, draw, n_draws, n_jobs, progress)
    write_coverage_page(summary, out, "mnar", n_draws=n_draws, n_rows=n_rows)
    return summary


def bootstrap_study(
    out: Path,
    *,
    n_draws: int = 200,
    n_rows: int = 2000,
    n_replicates: int = 60,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """The refitting bootstrap beside the frozen one of the paper."""
    settings = {
        name: {"bootstrap": Bootstrap(n_replicates, refit=refit), "estimators": _SEMI}
        for name, refit in (("refitting", True), ("frozen", False))
    }
    kinds = ("bootstrap-normal", "bootstrap-percentile")
    draw = StudyDraw(n_rows, settings, kinds, ["Random 10 %", "Random 50 %", "Adaptive"])
    summary = _run(out, draw, n_draws, n_jobs, progress, batch=4)
    write_coverage_page(summary, out, "bootstrap", n_draws=n_draws, n_rows=n_rows, replicates=n_replicates)
    return summary


def robustness_study(
    out: Path, *, n_draws: int = 100, n_rows: int = 10_000, n_jobs: int = 1, progress: Progress | None = None
) -> pd.DataFrame:
    """Propensity or action values deliberately wrong (constant), each alone and both: the paper's Figure 3B."""
    constant_p = LearnedPropensity(DummyClassifier(strategy="prior"))
    constant_q = LearnedValues(ValueRegressor(DummyRegressor(), pooled=True, multi_output=True), augment_label=False)
    settings: dict[str, dict[str, Any]] = {
        "both right": {},
        "propensity constant": {"propensity": constant_p},
        "values constant": {"values": constant_q},
        "both constant": {"propensity": constant_p, "values": constant_q},
    }
    settings = {name: {"estimators": _SEMI, **arguments} for name, arguments in settings.items()}
    summary = _run(out, StudyDraw(n_rows, settings), n_draws, n_jobs, progress, batch=4)
    write_robustness_page(summary, out, n_draws=n_draws, n_rows=n_rows)
    return summary


def correction_study(
    out: Path, *, n_draws: int = 300, n_rows: int = 2000, n_jobs: int = 1, progress: Progress | None = None
) -> pd.DataFrame:
    """What accounting for a learned propensity does to standard errors, in a saturated world and the synthetic problem."""
    settings = {
        name: {"estimators": ["ipw-semi"], "propensity": LearnedPropensity(stacked=stacked)}
        for name, stacked in (("stacked", True), ("as if known", False))
    }
    names = ["Random 10 %", "Random 50 %", "Random 90 %"]
    parts = []
    for experiment in (saturated_mar(), synthetic_mar()):
        draw = StudyDraw(n_rows, settings, policies=names, experiment=experiment)
        summary = _run(out / experiment.name, draw, n_draws, n_jobs, progress)
        parts.append(summary.assign(problem=experiment.name))
    summary = pd.concat(parts, ignore_index=True)
    summary.to_csv(out / "summary.csv", index=False, float_format="%.6g")
    write_correction_page(summary, out, n_draws=n_draws, n_rows=n_rows)
    return summary


def values_study(
    out: Path, *, n_draws: int = 100, n_rows: int = 2000, n_jobs: int = 1, progress: Progress | None = None
) -> pd.DataFrame:
    """Regressors for action values, with and without the label: which default has the least error."""
    settings = {
        f"{preset}, {'with' if label else 'without'} label": {
            "values": LearnedValues(preset, label),
            "estimators": _SEMI,
        }
        for preset in ("quadratic", "boosting")
        for label in (True, False)
    }
    summary = _run(out, StudyDraw(n_rows, settings), n_draws, n_jobs, progress, batch=4)
    write_values_page(summary, out, n_draws=n_draws, n_rows=n_rows)
    return summary
