"""Small tables of every library, and their problem."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from afape import Problem

NAN = float("nan")
LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}

library = pytest.mark.parametrize("table", LIBRARIES.values(), ids=LIBRARIES)


def problem(groups=None, costs=None, **options):
    """Group a is free; every other group costs 1."""
    groups = groups or {"a": ["a"], "b": ["b"]}
    costs = {name: 1.0 for name in groups if name != "a"} if costs is None else costs
    return Problem(
        groups, costs=costs, label="y", misclassification_cost=options.pop("misclassification_cost", 5.0), **options
    )


def records(n=4, **columns):
    return pd.DataFrame({"a": np.arange(1.0, n + 1), "b": np.arange(n) / 2, "y": np.arange(n) % 2} | columns)


def categorical(values, categories=None):
    return pd.Categorical(values, categories=categories)
