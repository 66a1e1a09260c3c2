"""How many trajectories a row could give, beside the number of sets that are walked instead."""

from __future__ import annotations

from math import comb, factorial

import numpy as np
import pandas as pd

from .._arrays import Floats
from ..data.retrospective import Retrospective

__all__ = ["count_table", "n_trajectories", "recorded_shares", "shares_table"]


def n_trajectories(n_groups: int) -> int:
    r"""Return the number of ordered acquisitions of some of n groups, :math:`\sum_i i! \binom{n}{i}` (paper, Discussion 5)."""
    return sum(factorial(i) * comb(n_groups, i) for i in range(n_groups + 1))


def recorded_shares(data: Retrospective) -> tuple[float, ...]:
    """Return the share of rows that have exactly k of the groups with a price recorded, for k = 0, 1, ..."""
    priced = data.recorded[:, ~data.problem.free]
    counts = np.bincount(priced.sum(axis=1), minlength=priced.shape[1] + 1)
    return tuple((counts / len(data)).tolist())


def count_table(most: int = 10) -> pd.DataFrame:
    """Return trajectories and sets by the number of groups, as texts."""
    return pd.DataFrame(
        {
            "groups recorded": [str(n) for n in range(1, most + 1)],
            "trajectories": [f"{n_trajectories(n):,}" for n in range(1, most + 1)],
            "sets, at most": [f"{2**n:,}" for n in range(1, most + 1)],
            "sets of a policy without chance, at most": [str(n + 1) for n in range(1, most + 1)],
        }
    )


def shares_table(shares: dict[str, tuple[float, ...]]) -> pd.DataFrame:
    """Return the mean numbers per row in each experiment, as texts; ``shares`` come from `recorded_shares`."""
    lines = []
    for name, own in shares.items():
        share, counts = np.array(own), range(len(own))
        lines.append(
            {
                "experiment": name,
                "groups with a price": str(len(own) - 1),
                "complete rows": f"{100 * share[-1]:.0f} %",
                "trajectories, missing-data view": _mean(
                    [0.0] * (len(own) - 1) + [n_trajectories(len(own) - 1)], share
                ),
                "trajectories, semi-offline view": _mean([float(n_trajectories(k)) for k in counts], share),
                "sets walked, semi-offline view, at most": _mean([2.0**k for k in counts], share),
            }
        )
    return pd.DataFrame(lines)


def _mean(numbers: list[float], share: Floats) -> str:
    return f"{float(np.dot(numbers, share)):,.1f}"
