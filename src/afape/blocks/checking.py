"""Checks of support and of the assumption on a scan, block by block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ..data.retrospective import Retrospective
from ..data.row_counts import RowCounts
from ..missingness.assumptions import MAR, MCAR, MNAR
from ..support.missingness_check import MissingnessCheck
from ..support.suggestion import suggestion_from
from ..support.support import Support
from .combining import Blocks, joined_counts, joined_support_of
from .engine import run_blocks
from .evaluation import identity_of
from .scanning import Scan
from .summary import Summary, described_to_json, lines_of, plain_json, support_to_json
from .tables import frame_of, joined_tests

__all__ = ["missingness_of_scan", "support_of_scan"]


def support_of_scan(
    check: Callable[..., Support], scan: Scan, policy: Any, seed: int | None, settings: Mapping[str, Any]
) -> Support:
    """Check the support of a policy in every block, and join the tables; ``check`` is `afape.check_support`."""
    if scan.n_blocks == 1:
        return check(scan.read(), policy, random_state=seed, **settings)
    work = partial(_support, check, policy, dict(settings))
    found = run_blocks(scan, work, identity_of("support", policy, settings), seed, None, False)
    blocks = Blocks(found.summaries, found.cases, found.identity)
    return joined_support_of([a["support"] for a in blocks.abouts], blocks, {})


def _support(
    check: Callable[..., Support], policy: Any, settings: Mapping[str, Any], data: Retrospective, seed: int | None
) -> Summary:
    found = check(data, policy, random_state=seed, **settings)
    return Summary(plain_json({"support": support_to_json(found)}), {})


def missingness_of_scan(
    check: Callable[..., MissingnessCheck], scan: Scan, missingness: MCAR | MAR | MNAR, level: float
) -> tuple[MissingnessCheck, RowCounts]:
    """Test the assumption in every block and add the statistics up; ``check`` is `afape.check_missingness`."""
    if scan.n_blocks == 1:
        data = scan.read()
        return check(data, missingness, level=level), RowCounts.of(data)
    work = partial(_tests, check, missingness)
    found = run_blocks(scan, work, identity_of("missingness", missingness), 0, None, False)
    blocks = Blocks(found.summaries, found.cases, found.identity)
    table = joined_tests([frame_of(a["tests"]) for a in blocks.abouts], blocks.shares)
    records = joined_counts(blocks)
    rejected = table[table["p_adjusted"] < level]
    return MissingnessCheck(repr(missingness), table, level, suggestion_from(missingness, records, rejected)), records


def _tests(
    check: Callable[..., MissingnessCheck], missingness: MCAR | MAR | MNAR, data: Retrospective, seed: int | None
) -> Summary:
    found = check(data, missingness)
    records = described_to_json(RowCounts.of(data), 0)
    about = plain_json({"tests": lines_of(found.table), "records": records, "cases": float(np.sum(data.row_weight))})
    return Summary(about, {})
