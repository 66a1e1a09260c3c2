"""Time and memory of evaluations of policies that may reach very many sets of groups: ``python benchmarks/wide.py``."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from itertools import combinations

import numpy as np
import pandas as pd

import afape
from afape.missingness import GraphMechanism

N_ROWS = 2000


class Sign:
    """Takes almost no time."""

    def predict(self, values, acquired):
        return (np.nan_to_num(values).sum(axis=1) > 0).astype(int)


def records(n_groups):
    """A free column, and groups whose recording depends on it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N_ROWS, n_groups + 1)) + rng.normal(size=(N_ROWS, 1)) / 2
    names = [f"x{i}" for i in range(n_groups + 1)]
    frame = pd.DataFrame(x, columns=names).assign(y=(x[:, :4].sum(axis=1) + rng.normal(size=N_ROWS) > 0).astype(int))
    problem = afape.Problem({g: [g] for g in names}, {g: float(g != "x0") for g in names}, "y", 10.0)
    keep = rng.random((N_ROWS, n_groups + 1)) < 1 / (1 + np.exp(-(0.7 * x[:, :1] + 0.8)))
    keep[:, 0] = True
    return afape.Retrospective(frame, problem), keep


def one(n_groups, what):
    """Print seconds and peak memory of one evaluation in this process."""
    warnings.simplefilter("ignore", afape.warnings.AfapeWarning)  # only time and memory matter here
    data, keep = records(n_groups)
    missingness, estimators = afape.MAR(["x0"]), ["ipw-semi"]
    if what == "graph":
        names = data.problem.group_names[1:]
        pairs = [f"R_{a} <-> R_{b}" for a, b in combinations(names, 2)]
        mechanism = GraphMechanism.random("; ".join([*(f"x0 -> R_{g}" for g in names), *pairs]), data)
        began = time.perf_counter()
        missingness, data = mechanism.missingness, mechanism.hide(data)
        mechanism.superset(data, data.values, np.ones(data.recorded.shape, dtype=bool), data.labels)
    else:
        began, data = time.perf_counter(), data.hide(keep)
        estimators = ["ipw-semi"] if what == "ipw-semi" else None
    afape.evaluate(data, afape.RandomSubset(0.5), Sign(), missingness=missingness, estimators=estimators)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": time.perf_counter() - began, "cpu": time.process_time(), "peak": peak}))


def main(sizes):
    """Run each size in a process of its own."""
    cases = [(g, what) for what in ("ipw-semi", "default") for g in sizes] + [(6, "graph"), (8, "graph")]
    print(f"RandomSubset(0.5), {N_ROWS:,} rows; graph: all pairs of indicators joined by <->")
    print(f"  {'groups':>6} {'estimators':>10} {'seconds':>8} {'CPU s':>6} {'peak MB':>8}")
    for n_groups, what in cases:
        command = [sys.executable, __file__, "--one", str(n_groups), what]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        r = json.loads(done.stdout.strip().splitlines()[-1])
        print(f"  {n_groups:>6} {what:>10} {r['seconds']:>8.1f} {r['cpu']:>6.1f} {r['peak']:>8.0f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10, 12, 15, 20, 25])
    parser.add_argument("--one", nargs=2)
    options = parser.parse_args()
    if options.one:
        one(int(options.one[0]), options.one[1])
    else:
        main(options.sizes)
