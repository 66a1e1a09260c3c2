"""Count how many small changes of the code the tests notice: ``python -m benchmarks.mutation --sample 200``.

A copy of the project is changed, one change at a time. A process of its own runs the tests that execute the changed lines, the
fastest first, until one fails. What is already in the table of results is not run again; ``--again`` runs survivors again.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest
from benchmarks.mutation.mutants import Mutant, mutants, mutated
from benchmarks.mutation.plugin import Chosen, Recorder

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("results.csv")
EQUIVALENT = Path(__file__).with_name("equivalent.csv")
ROOMS = ("estimators", "walk", "propensity")
TESTS = [
    *(f"tests/{room}" for room in ROOMS),
    *(f"src/afape/{room}" for room in ROOMS),
    *(f"tests/{name}" for name in ("imputation", "action_values", "run", "results", "support")),
    *(f"tests/test_{name}.py" for name in ("evaluate", "compare", "properties", "order_and_units", "budgets")),
]
OPTIONS = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", "--no-header"]
PRELOADED = (
    "numpy",
    "pandas",
    "scipy.stats",
    "scipy.optimize",
    "sklearn.ensemble",
    "sklearn.pipeline",
    "networkx",
    "joblib",
)
PATIENCE = 90.0  # seconds of tests that a change may survive
HEADER = ("fate", "test", "seconds", *(f.name for f in dataclasses.fields(Mutant)))


def in_child(work, seconds):
    """Return what ``work`` returns in a process of its own, or None if it takes longer or dies."""
    file = Path(tempfile.mkstemp(prefix="mutant-")[1])
    child = os.fork()
    if child == 0:
        os.setsid()
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
        try:
            file.write_text(json.dumps(work()))
        finally:
            os._exit(0)
    ends = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > ends:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        time.sleep(0.02)
    text = file.read_text()
    file.unlink()
    return json.loads(text) if text else None


def copied(folder):
    """Copy what tests need, and make it the place that is imported."""
    for name in ("src", "tests", "studies", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    os.chdir(folder)
    sys.path.insert(0, str(folder / "src"))
    os.environ["PYTHONPATH"] = str(folder / "src")
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def recorded(folder):
    """Return seconds and executed lines of every test that passes."""

    def work():
        recorder = Recorder([folder / "src" / "afape" / room for room in ROOMS])
        pytest.main([o for o in OPTIONS if o != "-x"] + TESTS, plugins=[recorder])
        return recorder.tests

    tests = in_child(work, 3600)
    return {name: test for name, test in tests.items() if test["passed"]}


def chosen_tests(mutant, tests, folder):
    """Return the tests that execute the statement, fastest first; changes outside functions concern all tests of the file."""
    file = str(folder / "src" / "afape" / mutant.file)
    inside = set(range(mutant.line, mutant.end + 1))
    where = {name: set(test["lines"].get(file, ())) for name, test in tests.items()}
    names = [name for name, lines in where.items() if lines & inside]
    if not names:
        names = [name for name, lines in where.items() if lines]
    names.sort(key=lambda name: tests[name]["seconds"])
    total, kept = 0.0, []
    for name in names:
        total += tests[name]["seconds"]
        if total > PATIENCE and kept:
            break
        kept.append(name)
    return kept


def fate_of(mutant, tests, folder):
    """Return "killed", "timeout" or "survived", and the test that failed."""
    file = folder / "src" / "afape" / mutant.file
    source = file.read_text()
    names = chosen_tests(mutant, tests, folder)
    if not names:
        return "not executed", ""

    def work():
        plugin = Chosen(names)
        files = list(dict.fromkeys(name.split("::")[0] for name in names))
        code = pytest.main([*OPTIONS, *files], plugins=[plugin])
        return [int(code), plugin.failed]

    file.write_text(mutated(source, mutant.number))
    try:
        answer = in_child(work, 60 + 4 * sum(tests[name]["seconds"] for name in names))
    finally:
        file.write_text(source)
    if answer is None:
        return "timeout", ""
    return ("survived", "") if answer[0] == 0 else ("killed", answer[1] or f"pytest ended with {answer[0]}")


def sampled(folder, size, seed):
    """Return changes of every room, in proportion to how many it has."""
    found = {}
    for room in ROOMS:
        files = sorted((folder / "src" / "afape" / room).rglob("*.py"))
        root = folder / "src" / "afape"
        found[room] = [m for file in files for m in mutants(file.read_text(), str(file.relative_to(root)))]
    total = sum(map(len, found.values()))
    chosen = []
    for room, all_of_room in found.items():
        draws = random.Random(f"{seed} {room}").sample(all_of_room, round(size * len(all_of_room) / total))
        print(f"{room}: {len(draws)} of {len(all_of_room):,} changes")
        chosen += draws
    random.Random(seed).shuffle(chosen)
    return chosen


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
        writer = csv.DictWriter(opened, HEADER, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(lines, key=lambda r: (r["file"], int(r["line"]), int(r["number"]))))


def summary(lines):
    """Print the score of every room."""
    same = {identity(r) for r in rows(EQUIVALENT)}
    print(f"{'room':<12} {'changes':>7} {'noticed':>7} {'equivalent':>10} {'score':>6}")
    for room in (*ROOMS, ""):
        here = [r for r in lines if r["file"].startswith(room)]
        noticed = sum(r["fate"] in ("killed", "timeout") for r in here)
        equal = sum(r["fate"] not in ("killed", "timeout") and identity(r) in same for r in here)
        if here:
            score = noticed / max(len(here) - equal, 1)
            print(f"{room or 'all':<12} {len(here):>7} {noticed:>7} {equal:>10} {score:>6.1%}")


def main():
    """Run the changes of a sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="run the survivors of the table again")
    parser.add_argument("--summary", action="store_true", help="print the score of the table")
    options = parser.parse_args()
    if options.summary:
        summary(rows(RESULTS))
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in PRELOADED:
        importlib.import_module(name)
    done = {identity(r): r for r in rows(RESULTS)}
    survivors = {key for key, r in done.items() if r["fate"] not in ("killed", "timeout")}
    with tempfile.TemporaryDirectory(prefix="afape-mutation-") as scratch:
        folder = Path(scratch).resolve()
        copied(folder)
        wanted = sampled(folder, options.sample, options.seed)
        if options.again:
            every = [m for f in sorted({key[0] for key in survivors}) for m in _of_file(folder, f)]
            wanted = [m for m in every if identity(dataclasses.asdict(m)) in survivors]
        else:
            wanted = [m for m in wanted if identity(dataclasses.asdict(m)) not in done]
        began = time.monotonic()
        tests = recorded(folder)
        print(f"{len(tests)} tests pass, {time.monotonic() - began:.0f} s", flush=True)
        for k, mutant in enumerate(wanted):
            began = time.monotonic()
            fate, test = fate_of(mutant, tests, folder)
            line = dataclasses.asdict(mutant) | {
                "fate": fate,
                "test": test,
                "seconds": f"{time.monotonic() - began:.1f}",
            }
            done[identity(line)] = line
            write(done.values())
            print(
                f"{k + 1}/{len(wanted)} {fate} {mutant.file}:{mutant.line} {mutant.before} -> {mutant.after}",
                flush=True,
            )
    summary(list(done.values()))


def _of_file(folder, file):
    return mutants((folder / "src" / "afape" / file).read_text(), file)


if __name__ == "__main__":
    main()
