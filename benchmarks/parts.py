"""Time and peak memory of evaluations, compared with another version of the package.

``python benchmarks/parts.py --base path/to/other/src`` runs the same evaluations with both versions, each in its own process:
ten groups, three classes, a policy that decides by values and one that draws sets at random. Without ``--base`` it prints
seconds and peak memory of this version. Ratios should stay below 1.3 for time and 1.5 for memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import tracemalloc
import warnings
from pathlib import Path

CASES = ("rule", "random")


def records(n_rows, seed=0):
    """Ten groups of one column, nine of them with a price, three classes; recording depends on the first."""
    import numpy as np
    import pandas as pd

    import afape

    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 10))
    label = np.digitize(x[:, :5].sum(axis=1) + rng.normal(size=n_rows), [-1.0, 1.0])
    chance = 1 / (1 + np.exp(-(0.8 + 0.7 * x[:, [0]] + np.linspace(-0.5, 0.5, 9))))
    x[:, 1:][rng.random((n_rows, 9)) > chance] = np.nan
    names = [f"x{j}" for j in range(10)]
    problem = afape.Problem(
        groups={name: [name] for name in names},
        costs={name: 1.0 + 0.1 * j for j, name in enumerate(names) if j},
        label="y",
        misclassification_cost=10.0,
        classes=[0, 1, 2],
    )
    return afape.Retrospective(pd.DataFrame(x, columns=names).assign(y=label), problem)


def rule(values, acquired):
    """Acquire x1 and x2, then one or two more, depending on the values."""
    import numpy as np

    known = np.nan_to_num(values)
    taken = acquired[:, 1:].sum(axis=1)
    high = known[:, :3].sum(axis=1) > 0
    action = np.full(len(values), 10)
    action[taken == 0] = 1
    action[taken == 1] = 2
    second = taken == 2
    action[second] = np.where(high[second], 3, 4)
    third = (taken == 3) & (np.abs(known).sum(axis=1) < 5)
    action[third] = np.where(acquired[third, 3], 5, 6)
    return action


def one(case, n_rows):
    """Seconds and peak memory of one evaluation in this process."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    import afape

    warnings.simplefilter("ignore", afape.warnings.AfapeWarning)  # of weights and balance, which do not matter here
    data = records(n_rows)
    classifier = afape.ImputedClassifier(LogisticRegression()).fit(records(2000, seed=1))
    policy = afape.DecisionRule(rule) if case == "rule" else afape.RandomSubset(0.3)
    options = {"missingness": afape.MAR(given=["x0"])}
    if case == "random":  # hundreds of sets: imputation takes long
        options["estimators"] = ["blocking", "cc", "ipw-semi", "dm-semi", "drl-semi"]
    seconds = []
    for _ in range(3):
        began = time.process_time()
        afape.evaluate(data, policy, classifier, **options)
        seconds.append(time.process_time() - began)
    tracemalloc.start()
    result = afape.evaluate(data, policy, classifier, **options)
    peak = tracemalloc.get_traced_memory()[1]
    states = int(np.nansum(result.support.sets["rows_wanting"]))
    print(json.dumps({"seconds": min(seconds), "peak": peak, "states": states}))


def measured(case, n_rows, source):
    environment = dict(os.environ, PYTHONPATH=str(source), OMP_NUM_THREADS="1")
    command = [sys.executable, __file__, "--one", case, "--rows", str(n_rows)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(out.stdout.strip().splitlines()[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", help="folder 'src' of the version to compare with")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--one", choices=CASES)
    options = parser.parse_args()
    if options.one:
        one(options.one, options.rows)
        sys.exit()
    here = Path(__file__).parents[1] / "src"
    print(f"Evaluations of {options.rows:,} rows, 10 groups, 3 classes:")
    for case in CASES:
        new = measured(case, options.rows, here)
        line = f"  {case:<6} {new['seconds']:6.2f} s, peak {new['peak'] / 1e6:6.0f} MB"
        if options.base:
            old = measured(case, options.rows, options.base)
            line += f"; before {old['seconds']:6.2f} s, {old['peak'] / 1e6:6.0f} MB: "
            line += f"{new['seconds'] / old['seconds']:.2f} times the time, {new['peak'] / old['peak']:.2f} times the memory"
        print(line, flush=True)
