"""make_ward(): simulated records of a hospital ward, for examples."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .._arguments import check_count, check_flag, check_seed

__all__ = ["make_ward"]


def make_ward(n_rows: int = 4000, *, complete: bool = False, random_state: int | None = 0) -> pd.DataFrame:
    """Simulate records of a hospital ward that measures blood counts and lactates more often in older patients.

    Every patient has an age. A blood count (``cbc``) is recorded with probability 0.2 + 0.6 s, a lactate with probability
    0.1 + 0.6 s, where s is the logistic function of the age. All values are in standard deviations. Patients die if
    age + cbc + 1.5 lactate + noise is positive. So recording depends on the age alone: ``MAR(given=["age"])`` is true.

    Parameters
    ----------
    n_rows : int
        Number of patients.
    complete : bool
        True returns the same patients with all measurements, for `true_cost`.
    random_state : int or None
        Seed.

    Returns
    -------
    DataFrame
        Columns ``age``, ``cbc``, ``lactate`` and ``died`` (0 or 1).

    Examples
    --------
    >>> make_ward(1000).isna().mean().round(2).to_dict()
    {'age': 0.0, 'cbc': 0.5, 'lactate': 0.63, 'died': 0.0}
    """
    check_count("n_rows", n_rows, 1)
    check_flag("complete", complete)
    check_seed(random_state)
    rng = np.random.default_rng(random_state)
    age, cbc, lactate = rng.normal(size=(3, n_rows))
    old = 1 / (1 + np.exp(-age))
    has_cbc, has_lactate = rng.random(n_rows) < 0.2 + 0.6 * old, rng.random(n_rows) < 0.1 + 0.6 * old
    died = (age + cbc + 1.5 * lactate + rng.normal(size=n_rows) > 0).astype(int)
    return pd.DataFrame(
        {
            "age": age,
            "cbc": np.where(has_cbc | complete, cbc, np.nan),
            "lactate": np.where(has_lactate | complete, lactate, np.nan),
            "died": died,
        }
    )
