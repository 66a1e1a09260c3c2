"""A description of a small experiment of one's own, and its table."""

import numpy as np
import pandas as pd

TOML = """
name = "own"
train = 0.3

[table]
file = "own.csv"

[problem]
label = "died"
misclassification_cost = 20.0
groups = { age = ["age"], cbc = ["hgb", "wbc"], lactate = ["lactate"] }
costs = { cbc = 2.0, lactate = 1.0 }

[mechanism]
given = ["age"]

[[mechanism.blocks]]
groups = ["cbc", "lactate"]
together = false
intercept = 0.5
weights = { age = 1.0 }
scales = { age = "standard" }

[classifier]
trees = 5
depth = 4

[agents]
half = "random:0.5"
everything = "all"

[[runs]]
name = "small"
rows = [120, 240]
draws = 5
estimators = ["blocking", "cc", "ipw-miss", "ipw-semi", "ipw-semi-gt"]
quick = { rows = [120], draws = 2 }

[[figures]]
name = "small"
kind = "convergence"
runs = ["small"]
title = "A small one"
words = "It is small. It is a test."
"""


def write_small(folder, text=TOML, n_rows=1500):
    """The table and its description; returns the file of the latter."""
    rng = np.random.default_rng(0)
    age, hgb, wbc, lactate, noise = rng.normal(size=(5, n_rows))
    died = np.where(age + hgb + 1.5 * lactate + noise > 0, "yes", "no")
    frame = pd.DataFrame({"age": 60 + 10 * age, "hgb": hgb, "wbc": wbc, "lactate": lactate, "died": died})
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / "own.csv", index=False)
    (folder / "own.toml").write_text(text)
    return folder / "own.toml"
