"""Records that reports are made of."""

import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import afape

EVIL = "<img src=x onerror=alert(1)>"


def records(rows=900, seed=0, evil=False):
    """Records of a patient's age, blood count and lactate, with a label of two classes."""
    rng = np.random.default_rng(seed)
    age, cbc, lactate = rng.normal(size=(3, rows))
    old = 1 / (1 + np.exp(-age))
    frame = pd.DataFrame(
        {
            "age": age,
            "cbc": np.where(rng.random(rows) < 0.3 + 0.5 * old, cbc, np.nan),
            "lactate": np.where(rng.random(rows) < 0.2 + 0.5 * old, lactate, np.nan),
            "died": np.where(age + cbc + 1.5 * lactate + rng.normal(size=rows) > 0, "yes", "no"),
        }
    )
    name = EVIL if evil else "lactate"
    if evil:
        frame = frame.rename(columns={"lactate": EVIL, "died": "</script><script>alert(2)</script>"})
    problem = afape.Problem(
        groups={"age": ["age"], "cbc": ["cbc"], name: [name]},
        costs={"cbc": 26.0, name: 12.0},
        label=frame.columns[-1],
        misclassification_cost=500.0,
        classes=["no", "yes"],
    )
    train, test = afape.Retrospective(frame, problem).split([0.3, 0.7], random_state=0)
    return afape.ImputedClassifier(LogisticRegression()).fit(train), test


def bounded_comparison():
    """Two policies, of which one wants lactate, which the records lack for the young."""
    classifier, data = records(1500)
    hidden = data.recorded.copy()
    hidden[:, 2] &= data.values[:, 0] > -0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", afape.warnings.SupportWarning)
        return afape.compare(
            data.hide(hidden),
            {"all": afape.AcquireAll(), "none": afape.AcquireNone()},
            classifier,
            missingness=afape.MAR(given=["age"]),
            estimators=["ipw-semi"],
        )
