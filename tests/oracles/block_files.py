"""Small records in several files, with clusters, weights, a text column and a column of levels."""

import numpy as np
import pandas as pd

import afape


class Above:
    """Predicts 1 if the sum of what it sees is positive."""

    def predict(self, values, acquired):
        return (np.nan_to_num(values[:, [0, -2, -1]]).sum(axis=1) > 0).astype(int)


PROBLEM = afape.Problem({"a": ["a", "kind"], "b": ["b"], "c": ["c"]}, {"b": 1.0, "c": 2.0}, "y", 10.0)
POLICIES = {"none": afape.DecisionRule(lambda values, acquired: np.full(len(values), 3)),
            "all": afape.AcquireAll(), "some": afape.RandomSubset(0.5)}  # fmt: skip
MAR = afape.MAR(given=["a"])
ESTIMATORS = ["imp-mean", "ipw-semi", "drl-semi"]


def frame(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, n))
    label = (a + b + 0.5 * c + rng.normal(size=n) > 0).astype(int)
    kind = rng.choice(["red", "green", "blue"], size=n)
    b = np.where(rng.random(n) < 1 / (1 + np.exp(-0.8 - 0.4 * a)), b, np.nan)
    c = np.where(rng.random(n) < 1 / (1 + np.exp(-0.6 + 0.3 * a)), c, np.nan)
    patient = np.arange(n) // 2
    return pd.DataFrame({"a": a, "kind": kind, "b": b, "c": c, "y": label, "patient": patient, "w": 1.0 + patient % 3})


def written(table, folder, n_files=3, kind="parquet"):
    """Write the rows to several files, in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(n_files):
        part = table.iloc[k::n_files]
        if kind == "parquet":
            part.to_parquet(folder / f"part{k}.parquet", index=False, row_group_size=100)
        else:
            part.to_csv(folder / f"part{k}.csv", index=False)
    return folder


def in_file_order(table, n_files=3):
    """The rows in the order in which a scan of `written` files reads them."""
    return pd.concat([table.iloc[k::n_files] for k in range(n_files)], ignore_index=True)
