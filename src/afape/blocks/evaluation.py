"""Evaluate policies on a scan, block by block, and combine the blocks to one comparison."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from joblib.externals.loky.backend.reduction import dumps

from .._arguments import shown
from ..data.retrospective import Retrospective
from ..missingness.assumptions import MAR, MCAR, MNAR
from ..results.comparison import Comparison
from ..results.evaluation import Evaluation
from .combining import Blocks, combined
from .engine import run_blocks
from .scanning import Scan
from .summary import Summary

__all__ = ["identity_of", "judge_blocks"]

Judge = Callable[..., dict[str, Evaluation]]  # `afape.comparison.judge`, which is a layer above


def judge_blocks(
    judge: Judge,
    scan: Scan,
    policies: Mapping[str, tuple[str, Any]],
    classifier: Any,
    missingness: MCAR | MAR | MNAR,
    progress: Any,
    options: Mapping[str, Any],
    executor: Any,
) -> dict[str, Evaluation]:
    """Return one `Evaluation` per policy; arguments as those of ``judge``, which evaluates a table in memory."""
    if not isinstance(options.get("by"), str | None):
        raise TypeError(f"'by' must name a recorded column if the rows are scanned, but is {shown(options.get('by'))}.")
    if scan.n_blocks == 1:  # one block is the evaluation in memory
        return judge(scan.read(), policies, classifier, missingness, progress, options)
    seed = options.get("random_state", 0)
    work = partial(_evaluated, judge, policies, classifier, missingness, dict(options))
    found = run_blocks(scan, work, identity_of(policies, classifier, missingness, options), seed, executor, progress)
    blocks = Blocks(found.summaries, found.cases, found.identity)
    return combined(blocks, missingness, seed, found.notes).evaluations


def identity_of(*asked: Any) -> str:
    """Return a text that is equal for equal objects; a new one for objects that cannot be pickled."""
    try:
        return hashlib.sha256(dumps(asked)).hexdigest()[:16]
    except Exception:  # pickling calls the user's code, which may raise anything
        return uuid.uuid4().hex[:16]


def _evaluated(
    judge: Judge,
    policies: Mapping[str, tuple[str, Any]],
    classifier: Any,
    missingness: MCAR | MAR | MNAR,
    options: Mapping[str, Any],
    data: Retrospective,
    seed: int | None,
) -> Summary:
    """Evaluate the policies on the rows of a block; the summary says which rows were used."""
    found = judge(data, policies, classifier, missingness, False, {**options, "random_state": seed})
    first = next(iter(found.values()))
    assert first.origin is not None
    assert isinstance(first.origin.data, Retrospective)
    summary = Summary.of(Comparison(found, first.confidence), min_cell=0)
    summary.about["positions"] = first.origin.data.positions
    return summary
