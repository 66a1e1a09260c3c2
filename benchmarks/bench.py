"""How much afape adds to the bare policy and classifier calls, and how it grows with the rows.

Run by ``make bench``. Ratios are the point; seconds depend on the machine.
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
from afape.classifiers import column_means
from afape.experiments import synthetic_mar
from afape.nuisance.propensity import ChainPropensity
from afape.plan import assign_folds
from afape.walk import Ground, walk

ALL_BUT_MI = ["imp-mean", "blocking", "cc", "ipw-miss", "ipw-semi", "dm-semi", "drl-semi"]


def states_of(ground):
    """The batches of states that an evaluation asks about: values, acquired sets, and which need a prediction."""
    batches = []
    for table in walk(ground):
        for depth in range(table.n_depths):
            at = table.depth == depth
            acquired = table.acquired[at]
            seen = np.where(acquired[:, ground.data.column_group], ground.values[table.row[at]], np.nan)
            batches.append((seen, acquired, ~np.isnan(table.cost[at])))
    return batches


def floor(data, policy, classifier, batches):
    """Seconds for the bare calls on those states."""
    began = time.perf_counter()
    for seen, acquired, stops in batches:
        policy.probabilities(seen, acquired)
        if stops.any():
            classifier.predict(seen[stops], acquired[stops])
    return time.perf_counter() - began


def overhead(n_rows, repeats=3):
    """Whole evaluations over bare calls on the same states."""
    experiment = synthetic_mar(int(n_rows / 0.8))
    classifier, data, _ = experiment.parts()
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
                afape.evaluate(data, policy, classifier, missingness=experiment.missingness, estimators=estimators)
                whole.append(time.perf_counter() - began)
            states = sum(len(b[0]) for b in batches)
            print(
                f"  Random {100 * p:.0f} %, {label} {min(whole):6.2f} s / {min(bare):6.2f} s = "
                f"{min(whole) / min(bare):.2f}   ({states:,} states)"
            )


def bootstrap(n_rows, n_replicates=40):
    """Refitting replicates of ipw-semi over fits of its propensity."""
    experiment = synthetic_mar(int(n_rows / 0.8))
    classifier, data, _ = experiment.parts()
    policy = afape.RandomSubset(0.5)
    bound = bind(policy, data.problem)
    began = time.perf_counter()
    for _ in walk(Ground.recorded(data, bound, classifier)):
        pass
    walked = time.perf_counter() - began
    fold = assign_folds(len(data), 5, None, np.random.default_rng(0))
    given = experiment.missingness.conditioning(data, np.ones(3, dtype=bool))
    fits = []
    for _ in range(5):
        began = time.perf_counter()
        chain = ChainPropensity(data, given, fold)
        for required in ([False, True, False], [False, False, True], [False, True, True]):
            for key in chain.chain(np.array(required)):
                chain.factor(key)
        fits.append(time.perf_counter() - began)
    fit = sorted(fits)[2]
    seconds = []
    for b in (0, n_replicates):
        began = time.perf_counter()
        afape.evaluate(
            data, policy, classifier, missingness=experiment.missingness, estimators=["ipw-semi"], bootstrap=b
        )
        seconds.append(time.perf_counter() - began)
    whole = seconds[0] + 200 / n_replicates * (seconds[1] - seconds[0])
    print(f"\nBootstrap at {len(data):,} rows: 200 refitting replicates of ipw-semi take {whole:.1f} s,")
    print(f"  {(whole - walked) / fit:.0f} propensity fits ({1000 * fit:.0f} ms each) and one walk ({walked:.2f} s)")


class CheapClassifier:
    """Costs next to nothing, so that what is measured is afape's own."""

    def predict(self, values, acquired):
        return (np.nan_to_num(values).sum(axis=1) > 0).astype(int)


def one_size(n_rows):
    """Seconds and peak memory of one evaluation, in a process of its own."""
    experiment = synthetic_mar(n_rows)
    data = experiment.mechanism.hide(experiment.complete)
    held = data.values.nbytes + data.recorded.nbytes + data.labels.nbytes
    arguments = {"missingness": experiment.missingness, "estimators": ["ipw-semi"]}
    began = time.perf_counter()
    afape.evaluate(data, afape.RandomSubset(0.5), CheapClassifier(), **arguments)
    seconds = time.perf_counter() - began
    tracemalloc.start()
    afape.evaluate(data, afape.RandomSubset(0.5), CheapClassifier(), **arguments)
    peak = tracemalloc.get_traced_memory()[1]
    print(json.dumps({"rows": n_rows, "seconds": seconds, "peak": peak, "data": held}))


def growth(sizes):
    print("\nGrowth (ipw-semi, Random 50 %, a classifier that costs nothing):")
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
