"""Coverage study: whether estimators find the truth, and intervals contain it as often as they say."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..evaluation import evaluate, true_cost
from ..notices import AfapeWarning
from .policies import synthetic_policies
from .study import run_draws
from .synthetic import synthetic_mar

__all__ = ["CoverageDraw", "coverage_study", "summarise"]


class CoverageDraw:
    """Draws data sets with known truth and evaluates every policy on each.

    The population is the evaluation part of the synthetic problem; rows are drawn from it with replacement and
    hidden anew each time, so its own cost is the exact truth.
    """

    def __init__(self, n_rows: int, estimators: list[str] | None = None) -> None:
        self.n_rows, self.estimators = n_rows, estimators
        self.experiment = synthetic_mar()
        self.classifier, _, self.population = self.experiment.parts()
        self.policies = synthetic_policies()
        self.truth = {
            name: {target: e.value for target, e in true_cost(self.population, policy, self.classifier).items()}
            for name, policy in self.policies.items()
        }

    def __call__(self, k: int) -> list[dict[str, Any]]:
        """Records of draw k: one a policy, estimator and target."""
        rng = np.random.default_rng([2023, k])
        complete = self.population.take(rng.integers(len(self.population), size=self.n_rows))
        data = self.experiment.mechanism.hide(complete, random_state=int(rng.integers(2**32)))
        records = []
        for name, policy in self.policies.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AfapeWarning)  # small samples clip and wobble; the study counts it
                result = evaluate(
                    data,
                    policy,
                    self.classifier,
                    missingness=self.experiment.missingness,
                    propensity=[None, self.experiment.mechanism.propensity(data)],
                    estimators=self.estimators,
                    random_state=k,
                )
            for line in result.table.to_dict("records"):
                truth = self.truth[name][line["target"]]
                records.append(
                    {
                        "policy": name,
                        "estimator": line["estimator"],
                        "target": line["target"],
                        "truth": truth,
                        "estimate": line["estimate"],
                        "std_error": line["std_error"],
                        "covered": bool(line["lower"] - 1e-12 <= truth <= line["upper"] + 1e-12),
                        "clipped": line["clipped"],
                    }
                )
        return records


def summarise(draws: pd.DataFrame) -> pd.DataFrame:
    """Bias, spread and coverage with their Monte Carlo errors, by policy, estimator and target."""
    lines = []
    for (policy, estimator, target), part in draws.groupby(["policy", "estimator", "target"], sort=False):
        error = part["estimate"] - part["truth"]
        m = len(part)
        spread = float(error.std(ddof=1))
        covered = float(part["covered"].mean())
        lines.append(
            {
                "policy": policy,
                "estimator": estimator,
                "target": target,
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


def coverage_study(
    out: Path,
    *,
    n_draws: int = 2000,
    n_rows: int = 2000,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Run or resume the study and write ``summary.csv``, ``README.md`` and ``coverage.svg`` into ``out``."""
    from .coverage_page import write_page

    out = Path(out)
    draws = run_draws(CoverageDraw(n_rows), n_draws, out / f"draws-n{n_rows}", n_jobs=n_jobs, progress=progress)
    summary = summarise(draws)
    summary.to_csv(out / "summary.csv", index=False, float_format="%.6g")
    write_page(summary, out, n_draws=n_draws, n_rows=n_rows)
    return summary
