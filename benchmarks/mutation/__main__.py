"""Count how many small changes of the code the tests notice: ``python -m benchmarks.mutation --sample 200``.

A copy of the project is changed, one change at a time. A process of its own runs the tests that call the changed function, the
fastest first, until one fails. What is already in the table of results is not run again, so an interrupted run continues;
``--again`` runs survivors again, with the tests as they are now.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import hashlib
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
KEPT = ROOT / "build" / "mutation"  # which test calls what
ROOMS = ("estimators", "walk", "propensity")
FOLDERS = [*ROOMS, "imputation", "action_values", "run", "results", "support"]
TOP = ("evaluate", "compare", "properties", "order_and_units", "budgets")
OPTIONS = ["-q", "-p", "no:cacheprovider", "-m", "not slow", "--no-header"]
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
PATIENCE = 60.0  # seconds of tests that a change may survive
NOTICED = ("killed", "timeout")
HEADER = ("fate", "test", "seconds", *(f.name for f in dataclasses.fields(Mutant)))


def in_child(work, seconds):
    """Return what ``work`` returns in a process of its own, or None if it takes longer or dies."""
    file = Path(tempfile.mkstemp(prefix="mutant-")[1])
    child = os.fork()
    if child == 0:
        os.setsid()
        with Path(os.devnull).open("w") as nothing:
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
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True


def test_files(folder):
    """Return the files of tests: those of the rooms first."""
    own = [f for room in ROOMS for f in sorted((folder / "tests" / room).glob("test_*.py"))]
    doctests = [
        f for room in ROOMS for f in sorted((folder / "src" / "afape" / room).rglob("*.py")) if ">>>" in f.read_text()
    ]
    others = [f for name in FOLDERS[len(ROOMS) :] for f in sorted((folder / "tests" / name).glob("test_*.py"))]
    top = [folder / "tests" / f"test_{name}.py" for name in TOP]
    return [str(f.relative_to(folder)) for f in (*own, *doctests, *top, *others)]


def recorded(folder, ends):
    """Return seconds and called functions of every test that passes; files that did not change are not run again."""
    tests = {}
    for file in test_files(folder):
        key = hashlib.sha256((folder / file).read_bytes()).hexdigest()[:16]
        kept = KEPT / f"{file.replace('/', '-')}-{key}.json"
        if not kept.exists():
            if time.monotonic() > ends:
                print("not all tests are recorded yet: the same command continues")
                raise SystemExit(1)
            recorder = Recorder(folder / "src" / "afape", ROOMS)

            def work(file=file, recorder=recorder):
                pytest.main([*OPTIONS, file], plugins=[recorder])
                return recorder.tests

            began = time.monotonic()
            found = in_child(work, 1800) or {}
            KEPT.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(found))
            spent = sum(test.get("seconds", 0) for test in found.values())
            print(f"{file}: {len(found)} tests, {spent:.0f} s of {time.monotonic() - began:.0f}", flush=True)
        tests |= {name: test for name, test in json.loads(kept.read_text()).items() if test["passed"]}
    return tests


def chosen_tests(mutant, tests):
    """Return the tests that call the function, fastest first; changes outside functions concern all tests of the file."""
    names = [n for n, test in tests.items() if mutant.scope in test["calls"].get(mutant.file, ())]
    if not names:
        names = [n for n, test in tests.items() if mutant.file in test["calls"]]
    names.sort(key=lambda name: tests[name]["seconds"])
    total, kept = 0.0, []
    for name in names:
        total += tests[name]["seconds"]
        if total > PATIENCE and kept:
            break
        kept.append(name)
    return kept


def fate_of(mutant, tests, folder):
    """Return "killed", "timeout", "survived" or "not called", and the test that failed."""
    file = folder / "src" / "afape" / mutant.file
    source = file.read_text()
    names = chosen_tests(mutant, tests)
    if not names:
        return "not called", ""

    def work():
        plugin = Chosen(names)
        files = list(dict.fromkeys(name.split("::")[0] for name in names))
        code = pytest.main([*OPTIONS, "-x", *files], plugins=[plugin])
        return [int(code), plugin.failed]

    file.write_text(mutated(source, mutant.number))
    try:
        answer = in_child(work, 120 + 10 * sum(tests[name]["seconds"] for name in names))
    finally:
        file.write_text(source)
    if answer is None:
        return "timeout", ""
    return ("survived", "") if answer[0] == 0 else ("killed", answer[1] or f"pytest ended with {answer[0]}")


def of_file(folder, file):
    """Return the changes of a file, by its path below ``src/afape``."""
    return mutants((folder / "src" / "afape" / file).read_text(), file)


def sampled(folder, size, seed):
    """Return changes of every room, in proportion to how many it has."""
    root = folder / "src" / "afape"
    found = {
        room: [m for file in sorted((root / room).rglob("*.py")) for m in of_file(folder, str(file.relative_to(root)))]
        for room in ROOMS
    }
    total, chosen = sum(map(len, found.values())), []
    for room, every in found.items():
        draws = random.Random(f"{seed} {room}").sample(every, round(size * len(every) / total))
        print(f"{room}: {len(draws)} of {len(every):,} changes")
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
        noticed = sum(r["fate"] in NOTICED for r in here)
        equal = sum(r["fate"] not in NOTICED and identity(r) in same for r in here)
        if here:
            score = noticed / max(len(here) - equal, 1)
            print(f"{room or 'all':<12} {len(here):>7} {noticed:>7} {equal:>10} {score:>6.1%}")


def main():
    """Run the changes of a sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop then; the same command continues")
    parser.add_argument("--again", action="store_true", help="run the survivors of the table again")
    parser.add_argument("--summary", action="store_true", help="print the score of the table")
    options = parser.parse_args()
    ends = time.monotonic() + options.seconds
    if options.summary:
        summary(rows(RESULTS))
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in PRELOADED:
        importlib.import_module(name)
    done = {identity(r): r for r in rows(RESULTS)}
    with tempfile.TemporaryDirectory(prefix="afape-mutation-") as scratch:
        folder = Path(scratch).resolve()
        copied(folder)
        tests = recorded(folder, ends)
        if options.again:
            left = {key for key, r in done.items() if r["fate"] not in NOTICED}
            wanted = [m for f in sorted({key[0] for key in left}) for m in of_file(folder, f)]
            wanted = [m for m in wanted if identity(dataclasses.asdict(m)) in left]
        else:
            wanted = sampled(folder, options.sample, options.seed)
            wanted = [m for m in wanted if identity(dataclasses.asdict(m)) not in done]
        for k, mutant in enumerate(wanted):
            began = time.monotonic()
            if began > ends:
                print(f"{len(wanted) - k} changes are left: the same command continues")
                break
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


if __name__ == "__main__":
    main()
