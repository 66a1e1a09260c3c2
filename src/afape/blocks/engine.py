"""Work on blocks: in turn, or by any executor. What is finished is kept, so that a run can go on."""

from __future__ import annotations

import hashlib
import os
import pickle
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from joblib.externals.loky.backend.reduction import dumps

from .. import warnings as named_warnings
from .._arguments import shown
from .._processes import watch
from .._progress import Progress, reporter
from ..data.problem import Problem
from ..data.retrospective import Retrospective
from ..warnings import AfapeWarning, BlockWarning, ResumedWarning, warn
from .column_types import ColumnTypes
from .dealing import block_name, deal
from .scanning import Scan
from .scratch import Scratch, scratch_of
from .summary import Summary

__all__ = ["BlockRun", "check_executor", "run_blocks"]

Work = Callable[[Retrospective, "int | None"], Summary]  # what is done with the rows of a block, and a seed
_ENOUGH = 3  # if so many blocks are finished and all of them failed, the others would too


@dataclass(frozen=True, eq=False)
class BlockRun:
    """Summaries of all blocks that have one, and what happened to the others.

    Attributes
    ----------
    summaries : list of Summary
        Summaries of the blocks, in order.
    cases : ndarray
        Cases that each of them stands for.
    failed : list of (int, str)
        Number of each block without a summary, and the reason.
    identity : str
        Identity of the rows.
    """

    summaries: list[Summary]
    cases: Any
    failed: list[tuple[int, str]]
    identity: str

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the blocks."""
        n = len(self.summaries) + len(self.failed)
        rows = round(
            float(np.mean([len(s) if "records" in s.about else s.about["n_rows"] for s in self.summaries])), -2
        )
        head = f"The rows were dealt at random to {n} blocks of about {rows:,.0f} rows. Estimates are means over the blocks."
        return (head, *(f"Block {k} is left out: {reason}" for k, reason in self.failed))


@dataclass(frozen=True, eq=False)
class _Job:
    """What a worker must know; it is sent once per worker, through the scratch folder."""

    work: Work
    types: ColumnTypes
    problem: Problem
    seed: int


def check_executor(executor: Any) -> None:
    """Raise an error if this cannot run tasks."""
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(
            "'executor' must have the method submit of concurrent.futures.Executor, but is "
            f"{shown(executor)}. For a cluster: dask.distributed.Client(...).get_executor()."
        )


def run_blocks(
    scan: Scan,
    work: Work,
    asked: str,
    seed: int | None,
    executor: Executor | None,
    progress: Progress | bool | None,
) -> BlockRun:
    """Deal the rows, do the work on every block that is not finished yet, and return the summaries.

    ``asked`` identifies the work: policies, classifier and options.
    """
    check_executor(executor)
    entropy = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    fingerprint = scan.fingerprint | {"seed": "any" if seed is None else str(entropy)}
    with scratch_of(scan.scratch, scan.keep, fingerprint) as scratch, reporter(progress) as report:
        counts, types = deal(scan, entropy, scratch)
        results = f"results-{asked}"
        blocks = [k for k, count in enumerate(counts) if count]
        waiting = [k for k in blocks if not scratch.has(_name(results, k))]
        if len(waiting) < len(blocks):
            warn(
                f"The run in {scratch.path!r} continues: {len(blocks) - len(waiting)} of {len(blocks)} blocks are finished.",
                ResumedWarning,
            )
        job = _Job(work, types, types.problem(), entropy)
        _do(job, waiting, len(blocks), scratch, results, executor, report)
        found = [Summary.unpacked(scratch.read(_name(results, k)), _name(results, k)) for k in blocks]
    # Roots of two runs have no common basis, so estimates of two runs cannot be subtracted.
    return _collected(blocks, found, f"{fingerprint['files']}{fingerprint['problem']}:{entropy}:{asked}")


def _name(results: str, k: int) -> str:
    return f"{results}/block-{k:05d}.summary"


def _do(
    job: _Job, waiting: Sequence[int], n_blocks: int, scratch: Scratch, results: str, executor: Any, report: Any
) -> None:
    """Work on the blocks that are not finished."""
    done, failed = n_blocks - len(waiting), 0

    def finished(reason: str) -> None:
        nonlocal done, failed
        done, failed = done + 1, failed + bool(reason)
        if report is not None:
            report(done, n_blocks)
        if failed == done >= min(_ENOUGH, n_blocks):
            raise ValueError(f"No block could be evaluated. {reason}")

    if executor is None:
        for k in waiting:
            finished(_block(job, k, scratch, results))
        return
    try:
        content = dumps(job)
    except Exception as error:  # pickling calls the user's code, which may raise anything
        raise TypeError(
            f"Policies, classifier and options must be picklable to be sent to workers, but they are not ({error}). Leave out "
            "'executor', or remove open files, locks and sessions from them."
        ) from error
    name = f"{results}/job-{hashlib.sha256(content).hexdigest()[:16]}.pickle"
    scratch.write(name, content)
    running = {executor.submit(_by_worker, scratch, name, results, k, os.getpid()) for k in waiting}
    try:
        while running:
            ready, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ready:
                finished(future.result())
    except BaseException:
        for future in running:
            future.cancel()
        raise


def _by_worker(scratch: Scratch, name: str, results: str, k: int, parent: int) -> str:
    """Work on one block in a worker, unless a worker that was lost since has finished it."""
    if os.getppid() == parent:
        watch(parent)
    if scratch.has(_name(results, k)):
        return ""
    return _block(_sent(scratch, name), k, scratch, results)


@cache
def _sent(scratch: Scratch, name: str) -> _Job:
    scratch.trusted()
    job: _Job = pickle.loads(scratch.read(name))
    return job


def _block(job: _Job, k: int, scratch: Scratch, results: str) -> str:
    """Work on one block and write its summary; returns why it failed, "" if it did not."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    seed = int(np.random.SeedSequence([job.seed, k]).generate_state(1, np.uint32)[0])
    with scratch.reading(block_name(k)) as opened:
        frame = job.types.typed(pq.ParquetFile(opened, pre_buffer=False).read()).to_pandas()
    pa.default_memory_pool().release_unused()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            data = job.types.scan.records(frame, job.problem)
            data.source = f"block {k}"
            weights = None if job.types.scan.weight is None else frame[job.types.scan.weight].to_numpy(dtype=float)
            del frame
            found = job.work(data, seed)
            kept = np.asarray(found.about.pop("positions", data.positions), dtype=np.intp)
            cases = float(len(kept)) if weights is None else float(weights[kept].sum())
            about = found.about | {"cases": cases, "n_rows": len(kept)}
        except (ValueError, np.linalg.LinAlgError) as error:  # such as a block without a class
            found, about = Summary({}, {}), {"failed": f"{type(error).__name__}: {error}"}
    told = [[type_.__name__, str(one.message)] for one in heard if issubclass(type_ := one.category, UserWarning)]
    about |= {"format": "afape summary", "format_version": 1, "warnings": told}
    scratch.write(_name(results, k), replace(found, about=about).packed())
    return f"Block {k}: {about['failed']}" if "failed" in about else ""


def _collected(blocks: Sequence[int], found: Sequence[Summary], identity: str) -> BlockRun:
    """Give the warnings of all blocks, each once, and separate the blocks that failed."""
    from .tables import gathered

    kinds = dict.fromkeys(kind for s in found for kind, _ in s.about["warnings"])
    for kind in kinds:
        category = getattr(named_warnings, kind, AfapeWarning)
        for text in gathered([[t for name, t in s.about["warnings"] if name == kind] for s in found]):
            warn(text, category)
    failed = [(k, s.about["failed"]) for k, s in zip(blocks, found, strict=True) if "failed" in s.about]
    good = [s for s in found if "failed" not in s.about]
    if not good:
        raise ValueError(f"No block could be evaluated. Block {failed[0][0]}: {failed[0][1]}")
    if failed:
        listed = "; ".join(f"block {k}: {reason}" for k, reason in failed[:3])
        warn(f"{len(failed)} of {len(found)} blocks failed and are left out ({listed}).", BlockWarning)
    return BlockRun(good, np.array([s.about["cases"] for s in good]), failed, identity)
