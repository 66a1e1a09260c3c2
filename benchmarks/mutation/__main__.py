"""Count how many small changes of functions the tests notice: ``python -m benchmarks.mutation --sample 200``.

What is already in the table of results is not run again, so an interrupted run continues. ``--again`` runs the survivors again,
with the tests as they are now.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import os
import random
import time
from pathlib import Path

import pytest

from .mutants import Mutant
from .plugin import Server

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "afape"
RESULTS = Path(__file__).with_name("results.csv")
EQUIVALENT = Path(__file__).with_name("equivalent.csv")
ROOMS = ("estimators", "walk", "propensity")
OTHERS = [
    *(f"tests/{name}" for name in ("imputation", "action_values", "run", "results", "support")),
    *(f"tests/test_{name}.py" for name in ("evaluate", "compare", "properties", "order_and_units", "budgets")),
]
OPTIONS = ["-q", "-p", "no:cacheprovider", "-m", "not slow", "--no-header", "--no-summary"]
SHARES = {"estimators": 0.46, "walk": 0.21, "propensity": 0.33}  # of all changes
NOTICED = ("killed", "timeout")
HEADER = ("fate", "test", "seconds", *(f.name for f in dataclasses.fields(Mutant) if f.name != "outside"))


def identity(line):
    """Return what tells a change from others, whatever lines stand above it."""
    return tuple(str(line[k]) for k in ("file", "scope", "kind", "before", "after"))


def rows(file):
    """Return the lines of a table, or nothing."""
    if not file.exists():
        return []
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def write(lines):
    """Write the results by file and line."""
    with RESULTS.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, HEADER, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(sorted(lines, key=lambda r: (r["file"], int(r["line"]), int(r["number"]))))


def summary(lines):
    """Print the score of every room."""
    same = {identity(r) for r in rows(EQUIVALENT)}
    print(f"\n{'room':<12} {'changes':>7} {'noticed':>7} {'equivalent':>10} {'score':>6}")
    for room in (*ROOMS, ""):
        here = [r for r in lines if r["file"].startswith(room)]
        noticed = sum(r["fate"] in NOTICED for r in here)
        equal = sum(r["fate"] not in NOTICED and identity(r) in same for r in here)
        if here:
            score = noticed / max(len(here) - equal, 1)
            print(f"{room or 'all':<12} {len(here):>7} {noticed:>7} {equal:>10} {score:>6.1%}")


def main():
    """Run the changes of a sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sample", type=int, default=200, help="number of changes, in proportion to the size of the rooms"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="*", default=ROOMS, choices=ROOMS)
    parser.add_argument("--tests", nargs="*", help="default: those of the rooms, and others that use them")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds of tests that a change may survive")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop then; the same command continues")
    parser.add_argument("--again", action="store_true", help="run the survivors of the table again")
    parser.add_argument("--summary", action="store_true", help="print the score of the table")
    options = parser.parse_args()
    done = {identity(r): r for r in rows(RESULTS)}
    survivors = {key for key, r in done.items() if r["fate"] not in NOTICED}

    def wanted(changes):
        chosen = []
        for room, every in changes.items():
            size = round(options.sample * SHARES[room])
            draws = random.Random(f"{options.seed} {room}").sample(every, min(size, len(every)))
            keys = [identity(dataclasses.asdict(m)) for m, _ in draws]
            chosen += [
                d
                for d, key in zip(draws, keys, strict=True)
                if (key in survivors if options.again else key not in done)
            ]
            print(f"{room}: {len(draws)} of {len(every):,} changes")
        print(f"{len(chosen)} to run", flush=True)
        return chosen

    def tell(mutant, fate, test, seconds):
        line = dataclasses.asdict(mutant) | {"fate": fate, "test": test, "seconds": f"{seconds:.1f}"}
        done[identity(line)] = line
        write(done.values())
        print(f"{fate} {mutant.file}:{mutant.line} {mutant.before} -> {mutant.after}", flush=True)

    if not options.summary:
        os.environ["OMP_NUM_THREADS"] = "1"
        os.chdir(ROOT)
        kept, ends = ROOT / "build" / "mutation.json", time.monotonic() + options.seconds
        own = [f"{folder}/{room}" for room in options.rooms for folder in ("tests", "src/afape")]
        server = Server(PACKAGE, list(options.rooms), wanted, tell, kept, options.patience, ends)
        pytest.main([*OPTIONS, *(options.tests or [*own, *OTHERS])], plugins=[server])
    summary(list(done.values()))


if __name__ == "__main__":
    main()
