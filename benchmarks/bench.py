"""Time of an evaluation relative to the calls of policy and classifier, and its growth with the number of rows.

``make bench`` runs it. Compare ratios; seconds depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import tracemalloc

import numpy as np

import afape
from afape.agents.policy import bind
from afape.benchmark.synthetic import synthetic_mar
from afape.classifiers import column_means
from afape.propensity.chain import ChainPropensity
from afape.run.plan import assign_folds
from afape.walk.ground import Ground
from afape.walk.walker import walk

ALL_BUT_MI = ["imp-mean", "blocking", "cc", "ipw-miss", "ipw-semi", "dm-semi", "drl-semi"]


def states_of(ground):
    """Batches of states of an evaluation: values, acquired sets, and which states need a prediction."""
    batches = []
    for table in walk(ground):
        for depth in range(table.n_depths):
            at = table.depth == depth
            acquired = table.acquired[at]
            seen = np.where(acquired[:, ground.data.column_group], ground.values[table.row[at]], np.nan)
            batches.append((seen, acquired, ~np.isnan(table.cost[at])))
    return batches


def floor(data, policy, classifier, batches):
    """Seconds of the calls on these states."""
    began = time.perf_counter()
    for seen, acquired, stops in batches:
        policy.probabilities(seen, acquired)
        if stops.any():
            classifier.predict(seen[stops], acquired[stops])
    return time.perf_counter() - began


def overhead(n_rows, repeats=3):
    """Time of whole evaluations divided by the time of the calls on the same states."""
    problem = synthetic_mar(int(n_rows / 0.8))
    classifier, data, _ = problem.prepare()
    print(f"\nOverhead at {len(data):,} rows, random forest of 50 trees (whole evaluation / bare calls):")
    for p in (0.1, 0.5, 0.9):
        policy = bind(afape.RandomSubset(p), data.problem)
        recorded = Ground.recorded(data, policy, classifier)
        completed = np.where(np.isnan(data.values), column_means(data), data.values)
        everything = Ground.everything(data, completed, policy, classifier)
        for label, estimators, grounds in (
            ("ipw-semi alone ", ["ipw-semi"], [recorded]),
            ("drl-semi alone ", ["drl-semi"], [recorded]),
            ("all but dm, drl", ["imp-mean", "blocking", "cc", "ipw-miss", "ipw-semi"], [recorded, everything]),
            ("all but mi     ", ALL_BUT_MI, [recorded, everything]),
        ):
            batches = [b for g in grounds for b in states_of(g)]
            bare, whole = [], []
            for _ in range(repeats):
                bare.append(floor(data, policy, classifier, batches))
                began = time.perf_counter()
                afape.evaluate(data, policy, classifier, missingness=problem.missingness, estimators=estimators)
                whole.append(time.perf_counter() - began)
            states = sum(len(b[0]) for b in batches)
            print(
                f"  Random {100 * p:.0f} %, {label} {min(whole):6.2f} s / {min(bare):6.2f} s = "
                f"{min(whole) / min(bare):.2f}   ({states:,} states)"
            )


def bootstrap(n_rows, n_replicates=40):
    """Time of refitting replicates of ipw-semi divided by the time of a propensity fit."""
    problem = synthetic_mar(int(n_rows / 0.8))
    classifier, data, _ = problem.prepare()
    policy = afape.RandomSubset(0.5)
    bound = bind(policy, data.problem)
    began = time.perf_counter()
    for _ in walk(Ground.recorded(data, bound, classifier)):
        pass
    walked = time.perf_counter() - began
    fold = assign_folds(data, 5, np.random.default_rng(0))
    given = problem.missingness.conditioning(data, np.ones(3, dtype=bool))
    fits = []
    for _ in range(5):
        began = time.perf_counter()
        chain = ChainPropensity(data, given, fold, afape.LearnedPropensity(form="linear"))
        for required in ([False, True, False], [False, False, True], [False, True, True]):
            for key in chain.chain(np.array(required)):
                chain.factor(key)
        fits.append(time.perf_counter() - began)
    fit = sorted(fits)[2]
    seconds = []
    for b in (0, n_replicates):
        began = time.perf_counter()
        afape.evaluate(data, policy, classifier, missingness=problem.missingness, estimators=["ipw-semi"], bootstrap=b)
        seconds.append(time.perf_counter() - began)
    whole = seconds[0] + 200 / n_replicates * (seconds[1] - seconds[0])
    print(f"\nBootstrap at {len(data):,} rows: 200 refitting replicates of ipw-semi take {whole:.1f} s,")
    print(f"  {(whole - walked) / fit:.0f} propensity fits ({1000 * fit:.0f} ms each) and one walk ({walked:.2f} s)")


class CheapClassifier:
    """Takes almost no time, so the measured time is that of afape."""

    def predict(self, values, acquired):
        return (np.nan_to_num(values).sum(axis=1) > 0).astype(int)


def one_size(n_rows):
    """Print seconds and peak memory of one evaluation in this process."""
    problem = synthetic_mar(n_rows)
    data = problem.mechanism.hide(problem.complete)
    held = data.values.nbytes + data.recorded.nbytes + data.labels.nbytes
    arguments = {"missingness": problem.missingness, "estimators": ["ipw-semi"]}
    began = time.perf_counter()
    afape.evaluate(data, afape.RandomSubset(0.5), CheapClassifier(), **arguments)
    seconds = time.perf_counter() - began
    tracemalloc.start()
    afape.evaluate(data, afape.RandomSubset(0.5), CheapClassifier(), **arguments)
    peak = tracemalloc.get_traced_memory()[1]
    print(json.dumps({"rows": n_rows, "seconds": seconds, "peak": peak, "data": held}))


def growth(sizes):
    print("\nGrowth (ipw-semi, Random 50 %, a classifier that takes no time):")
    print(f"  {'rows':>9} {'µs / row':>9} {'peak MB':>9} {'bytes / row':>12} {'data MB':>8}")
    for n in sizes:
        out = subprocess.run(
            [sys.executable, __file__, "--one-size", str(n)], check=True, capture_output=True, text=True
        )
        r = json.loads(out.stdout.strip().splitlines()[-1])
        print(
            f"  {r['rows']:>9,} {1e6 * r['seconds'] / r['rows']:>9.2f} {r['peak'] / 1e6:>9.1f} "
            f"{r['peak'] / r['rows']:>12.0f} {r['data'] / 1e6:>8.1f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--one-size", type=int)
    options = parser.parse_args()
    if options.one_size:
        one_size(options.one_size)
    else:
        overhead(options.rows)
        bootstrap(options.rows)
        growth(options.sizes)
