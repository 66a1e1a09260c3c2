"""Made-up results of the paper's experiments, in which every claim holds unless a test changes a part of them."""

from pathlib import Path

import numpy as np
import pandas as pd

from afape.benchmark.description import read_description
from afape.benchmark.paper_experiments import EXPERIMENTS, describe
from afape.benchmark.runner import Finished
from afape.benchmark.summary import COSTS, data_efficiency

J, DRAWS = 10.0, 50
AGENTS = ("Random 10 %", "Random 50 %", "Random 90 %", "DQN")
SIZES = (1000, 4000, 16_000)
BASELINES = ("imp-mean", "blocking", "cc")
GT = ("ipw-miss", "ipw-miss-gt")
SEMI = ("ipw-semi", "ipw-semi-gt", "dm-semi", "drl-semi", "drl-semi-gt")
THREE = ("ipw-semi", "dm-semi", "drl-semi")
SETTINGS = ("both right", "propensity wrong", "values wrong", "both wrong")
RUNS = {
    "synthetic-mar": (
        ("convergence", SIZES, (*BASELINES, *GT, "ipw-semi", "ipw-semi-gt")),
        ("all estimators", (3000,), (*BASELINES, *SEMI)),
        ("the paper's settings", (4000,), THREE),
    ),
    "synthetic-mnar": (("convergence", SIZES, (*BASELINES, *GT, "ipw-semi-miss", "ipw-semi-miss-gt")),),
    "double-robustness": tuple((setting, (2000,), THREE) for setting in SETTINGS),
    "heloc": (("all estimators", (2000,), (*BASELINES, *SEMI)), ("the paper's settings", (3000,), THREE)),
    "income": (("all estimators", (2000,), (*BASELINES, *SEMI)), ("the paper's settings", (3000,), THREE)),
}


def agreeing(where):
    """Bias and standard deviation as shares of J, and the ratio of the standard error to it, of one cell."""
    experiment, run, agent, estimator, rows = (where[k] for k in ("experiment", "run", "agent", "estimator", "rows"))
    bias, spread, width = 0.0, 2.0, 1.3  # the spread is that of one row
    if estimator in BASELINES:
        bias = 0.1
    if estimator in GT:
        spread = 2.0 * np.sqrt(12 if experiment == "synthetic-mar" else 4) if agent == "Random 10 %" else 2.2
    if run == "the paper's settings":
        width = 0.35 if estimator == "dm-semi" else 0.6
        if estimator == "dm-semi" and experiment in ("heloc", "income"):
            bias = 0.04
    wrong = {"ipw-semi": ("propensity wrong", "both wrong"), "dm-semi": ("values wrong", "both wrong")}
    if run in wrong.get(estimator, ("both wrong",)):
        bias = 0.3
    return bias, spread / np.sqrt(rows), width


class MadeUp(dict):
    """Results by experiment, made when a claim asks for them; ``change(where, ...)`` returns the numbers of a cell anew."""

    def __init__(self, change=None):
        super().__init__()
        self.change = change

    def __missing__(self, name):
        self[name] = finished(name, self.change)
        return self[name]

    @property
    def all(self):
        return [self[name] for name in EXPERIMENTS]


def finished(experiment, change=None):
    rng = np.random.default_rng(0)
    parts = []
    for run, sizes, estimators in RUNS[experiment]:
        agents = AGENTS[1:3] if experiment == "double-robustness" else AGENTS
        for rows in sizes:
            shared = rng.normal(size=DRAWS)  # agents and estimators share the data sets
            for target in COSTS:
                for agent in agents:
                    complete = J * (1 + 0.2 / np.sqrt(rows) * shared)
                    parts.append(lines(run, rows, agent, "complete", target, complete, 0.2 / np.sqrt(rows)))
                    for estimator in estimators:
                        where = {
                            "experiment": experiment, "run": run, "agent": agent, "estimator": estimator,
                            "target": target, "rows": rows,
                        }  # fmt: skip
                        bias, spread, width = agreeing(where)
                        if change is not None:
                            bias, spread, width = change(where, bias, spread, width)
                        noise = np.sqrt(0.5) * shared + np.sqrt(0.5) * rng.normal(size=DRAWS)
                        found = J * (1 + bias + spread * noise)
                        parts.append(lines(run, rows, agent, estimator, target, found, width * spread))
    results = pd.concat(parts, ignore_index=True)
    runs = [run for run, *_ in RUNS[experiment] if run == "convergence"]
    efficiency = [data_efficiency(results, run, target) for run in runs for target in COSTS]
    return Finished(
        read_description(describe(experiment)),
        Path(experiment),
        results,
        pd.DataFrame(),
        pd.concat(efficiency, ignore_index=True) if efficiency else pd.DataFrame(),
        0.5,
    )


def lines(run, rows, agent, estimator, target, estimate, error):
    return pd.DataFrame(
        {
            "run": run, "rows": rows, "draw": np.arange(DRAWS), "agent": agent, "estimator": estimator, "target": target,
            "truth": J, "estimate": estimate, "std_error": J * error, "lower": estimate - 1.96 * J * error,
            "upper": estimate + 1.96 * J * error, "ess": 100.0, "unsupported": 0.0, "support": "",
        }
    )  # fmt: skip
