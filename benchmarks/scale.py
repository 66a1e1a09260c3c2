"""Memory and time of scans beside those of a table in memory, and speed on a cluster of two workers.

``python benchmarks/scale.py memory --rows 1000000 10000000`` and ``python benchmarks/scale.py cluster``. Each run is a process of
its own; memory is the largest sum of the resident sizes of this process and of all its workers. Blocks always compute the parts
of the costs and the tests of the assumption, because their rows are gone afterwards; in memory that is "all parts". Needs Linux,
and for ``cluster`` dask.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

import afape

GROUPS = [f"g{k}" for k in range(5)]
PROBLEM = afape.Problem(
    {"base": ["x"], **{g: [g] for g in GROUPS[1:]}}, dict.fromkeys(GROUPS[1:], 1.0), "y", 20.0, classes=[0, 1]
)
PER_FILE = 500_000


class Linear:
    """Predicts the sign of the sum of what it sees."""

    def predict(self, values, acquired):
        return (np.nan_to_num(values).sum(axis=1) > 0).astype(int)


def grey_zone(values, acquired):
    """Acquire the groups one after the other where x is near 0; the last action stops."""
    first = (~acquired).argmax(axis=1)
    near = (np.abs(np.nan_to_num(values[:, 0])) < 1.0) & ~acquired.all(axis=1)
    return np.where(near, first, len(GROUPS))


POLICY = afape.DecisionRule(grey_zone)
SETTINGS = {"missingness": afape.MAR(given=["base"]), "estimators": ["ipw-semi", "drl-semi"]}


def write(folder, n_rows):
    """Write records of five groups to files of half a million rows."""
    folder.mkdir(parents=True)
    for k, start in enumerate(range(0, n_rows, PER_FILE)):
        n, rng = min(PER_FILE, n_rows - start), np.random.default_rng([7, k])
        values = rng.normal(size=(n, 5))
        frame = pd.DataFrame(values, columns=["x", *GROUPS[1:]])
        frame["y"] = (values.sum(axis=1) + rng.normal(size=n) > 0).astype(int)
        odds = 0.6 + 0.5 * values[:, [0]] * np.linspace(0.8, 1.2, 4)
        frame[GROUPS[1:]] = frame[GROUPS[1:]].where(rng.random((n, 4)) < 1 / (1 + np.exp(-odds)))
        frame.to_parquet(folder / f"part{k:04d}.parquet", index=False)


def evaluate(how, folder, workers):
    """Evaluate in memory or in blocks; print seconds and estimates."""
    warnings.simplefilter("ignore", afape.warnings.AfapeWarning)  # only time, memory and equal bits matter here
    began, cpu = time.perf_counter(), os.times()
    if how != "blocks":
        data = afape.Retrospective(pd.read_parquet(folder), PROBLEM)
        found = afape.evaluate(data, POLICY, Linear(), **SETTINGS)
        if how == "all parts":
            _ = found.doubts, [found.parts(name).covariance for name in SETTINGS["estimators"]]
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            found = afape.evaluate(afape.scan(folder, PROBLEM), POLICY, Linear(), executor=pool, **SETTINGS)
    used = os.times()
    seconds = sum(used[:4]) - sum(cpu[:4])  # of this process and of the children that have ended
    total = found["drl-semi"]["total"]
    line = {"wall": time.perf_counter() - began, "cpu": seconds, "value": total.value, "std_error": total.std_error}
    print(json.dumps(line))


def tree(pid):
    """This process and all processes below it."""
    out, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        out.append(one)
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                waiting += [int(p) for p in task.read_text().split()]
            except OSError:
                continue
    return out


def resident(pid):
    """Resident bytes of a process tree."""
    total = 0
    for one in tree(pid):
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError):
            continue
    return total


def measured(how, folder, workers):
    """Run an evaluation in a process of its own; return its line with the largest memory of the tree, in GiB."""
    command = [sys.executable, __file__, "evaluate", how, str(folder), "--workers", str(workers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.05)
    return json.loads(process.stdout.read().splitlines()[-1]) | {"peak": peak / 2**30}


def memory(sizes, workers, least):
    """Measure blocks at every size, and the table in memory up to ``least`` rows."""
    lines = []
    for n_rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / "records", n_rows)
            for how in ("blocks", *(["memory", "all parts"] if n_rows <= least else [])):
                found = measured(how, Path(folder) / "records", workers)
                line = {
                    "rows": n_rows,
                    "how": how,
                    "workers": workers,
                    **found,
                    "us_per_row": 1e6 * found["cpu"] / n_rows,
                }
                lines.append(line)
                print(pd.DataFrame([line]).round(4).to_string(index=False), flush=True)
    return pd.DataFrame(lines)


def on_cluster(folder, scratch, workers, block_rows, kill=False):
    """Evaluate on a local cluster; return seconds of the evaluation and a checksum of all numbers."""
    from distributed import Client, LocalCluster

    warnings.simplefilter("ignore", afape.warnings.AfapeWarning)  # only time, memory and equal bits matter here
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(lambda: __import__("afape.comparison") and None)  # imports are no part of the time
        if kill:
            threading.Thread(target=_kill, args=(client, scratch)).start()
        began = time.perf_counter()
        rows = afape.scan(folder, PROBLEM, block_rows=block_rows, scratch=scratch)
        found = afape.evaluate(rows, POLICY, Linear(), executor=client.get_executor(), **SETTINGS)
        seconds = time.perf_counter() - began
    bits = found.table.select_dtypes("number").to_numpy(dtype=float).tobytes()
    return seconds, hashlib.sha256(bits).hexdigest()[:16]


def _kill(client, scratch):
    while not list(Path(scratch).glob("results-*/block-*.summary")):
        time.sleep(0.01)
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def cluster(n_rows, block_rows):
    """One worker, two workers, a killed worker, and a killed client that is started again."""
    folder = Path(tempfile.mkdtemp())
    try:
        write(folder / "records", n_rows)
        lines, bits = [], set()
        for name, workers, kill in (
            ("one worker", 1, False),
            ("two workers", 2, False),
            ("one of two killed", 2, True),
        ):
            seconds, mark = on_cluster(folder / "records", folder / "scratch", workers, block_rows, kill)
            lines.append({"run": name, "seconds": seconds})
            bits.add(mark)
        command = [sys.executable, __file__, "client", str(folder), "--block-rows", str(block_rows)]
        first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while not list((folder / "scratch").glob("results-*/block-*.summary")):
            time.sleep(0.01)
        below = tree(first.pid)
        first.kill()
        first.wait()
        done = len(list((folder / "scratch").glob("results-*/block-*.summary")))
        time.sleep(5)
        left = [
            p
            for p in below
            if Path(f"/proc/{p}/stat").exists() and Path(f"/proc/{p}/stat").read_text().split()[2] != "Z"
        ]
        again = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        seconds, mark = json.loads(again.stdout.splitlines()[-1])
        bits.add(mark)
        lines.append({"run": f"client killed after {done} blocks, started again", "seconds": seconds})
        print(pd.DataFrame(lines).round(2).to_string(index=False))
        print(f"speed-up {lines[0]['seconds'] / lines[1]['seconds']:.2f}; same bits: {len(bits) == 1}; "
              f"processes left of the killed client: {len(left)}; scratch left: {(folder / 'scratch').exists()}")  # fmt: skip
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("memory")
    one.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    one.add_argument("--in-memory", type=int, default=1_000_000, help="largest size that is also evaluated in memory")
    one.add_argument("--workers", type=int, default=2)
    one.add_argument("--out", type=Path, default=None, help="CSV file of the results")
    two = commands.add_parser("cluster")
    two.add_argument("--rows", type=int, default=400_000)
    two.add_argument("--block-rows", type=int, default=25_000)
    three = commands.add_parser("evaluate")
    three.add_argument("how", choices=["memory", "all parts", "blocks"])
    three.add_argument("folder", type=Path)
    three.add_argument("--workers", type=int, default=2)
    four = commands.add_parser("client")
    four.add_argument("folder", type=Path)
    four.add_argument("--block-rows", type=int, required=True)
    said = parser.parse_args()
    if said.command == "evaluate":
        evaluate(said.how, said.folder, said.workers)
    elif said.command == "client":
        print(json.dumps(on_cluster(said.folder / "records", said.folder / "scratch", 2, said.block_rows)))
    elif said.command == "cluster":
        cluster(said.rows, said.block_rows)
    else:
        found = memory(said.rows, said.workers, said.in_memory)
        if said.out is not None:
            found.to_csv(said.out, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
