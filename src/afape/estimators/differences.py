"""Several estimates on the same rows: their joint covariance, and simultaneous intervals of their differences."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import ndtr

from .._arrays import Floats, cluster_sums
from .blocks import BlockEstimate, block_covariance
from .estimate import Bounds, Estimate
from .imputed import ImputedEstimate, rubin_covariance

__all__ = ["covariance_of", "draws", "paired_differences", "simultaneous_intervals"]

_DRAWS = 20_000  # number of draws from the joint normal distribution of the estimates


def paired_differences(
    estimates: Mapping[str, Estimate], confidence: float, of: str = "policies", kind: str = "policy"
) -> pd.DataFrame:
    """Compute paired differences of all pairs, with simultaneous intervals; see `Comparison.differences`."""
    names, covariance = list(estimates), covariance_of(list(estimates.values()))
    values = np.array([e.value for e in estimates.values()])
    pairs = np.array(list(combinations(range(len(names)), 2))).reshape(-1, 2)
    if len(pairs) == 0:
        raise ValueError(f"Differences need at least two {of} with an answer.")
    a, b = pairs.T
    difference = values[a] - values[b]
    each = list(estimates.values())
    paired = [each[i] - each[j] for i, j in pairs]
    errors = np.array([d._error[0] for d in paired])
    # Simulate the smallest p-value when no policies differ. Its quantile replaces alpha in the interval of every pair.
    drawn = draws(covariance)
    smallest = _smallest_p_value(drawn[:, a] - drawn[:, b], errors)
    level = _joint_level(smallest, confidence)
    intervals = [d.interval(1 - level) for d in paired]
    exceeded = (smallest[:, None] <= [d.p_value() for d in paired]).sum(axis=0)
    return pd.DataFrame(
        {
            kind: [names[k] for k in a],
            "minus": [names[k] for k in b],
            "difference": difference,
            "std_error": errors,
            "lower": [low for low, _ in intervals],
            "upper": [high for _, high in intervals],
            "degrees_of_freedom": [d.degrees_of_freedom for d in paired],
            "p_value": (1 + exceeded) / (1 + len(smallest)),
        }
    )


def simultaneous_intervals(estimates: list[Estimate], confidence: float) -> list[tuple[float, float]]:
    """Return intervals that hold for all estimates at once, from their joint normal distribution.

    Bounds have no joint distribution; with one of them, or without standard errors, the level is Bonferroni's.
    """
    level = (1 - confidence) / len(estimates)
    errors = np.array([e.std_error for e in estimates])
    if not any(isinstance(e, Bounds) for e in estimates) and np.isfinite(errors).all():
        level = _joint_level(_smallest_p_value(draws(covariance_of(estimates)), errors), confidence)
    return [e.interval(1 - level) for e in estimates]


def _smallest_p_value(deviations: Floats, errors: Floats) -> Floats:
    """Smallest two-sided p-value of each draw of deviations (B, E), (B,); 1 where nothing varies."""
    studentised = np.divide(np.abs(deviations), errors, where=errors > 0, out=np.zeros_like(deviations))
    return np.asarray(2 * ndtr(-studentised.max(axis=1)))


def _joint_level(smallest: Floats, confidence: float) -> float:
    """Level that replaces alpha, so that all intervals hold at once."""
    return min(float(np.quantile(smallest, 1 - confidence)), 1 - confidence)  # 1 if nothing varies


def covariance_of(estimates: list[Estimate]) -> Floats:
    """Compute the joint covariance (E, E) of estimates on the same rows.

    It comes from completed tables, influence values, covariances of blocks, or paired bootstrap replicates.
    """
    summed = [e for e in estimates if isinstance(e, BlockEstimate)]
    if len(summed) == len(estimates) and all(e.pairs_with(summed[0]) for e in summed):
        return block_covariance(summed)
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
        "This estimator has no standard errors without bootstrap replicates. Call compare with bootstrap=200 or more."
    )


def draws(covariance: Floats) -> Floats:
    """Draw deviations (20000, E) from the joint normal distribution, with a fixed seed."""
    rng = np.random.default_rng(0)
    # The check of numpy has one tolerance for all entries, and variances of policies can differ by many powers of ten.
    drawn = rng.multivariate_normal(
        np.zeros(len(covariance)), covariance, size=_DRAWS, method="svd", check_valid="ignore"
    )
    return np.asarray(drawn)
