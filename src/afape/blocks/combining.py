"""Combine summaries of independent blocks, or sites: values by their shares, covariances by the squares of the shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from .._arrays import Floats, tally, unique_sets
from ..data.problem import Problem
from ..data.row_counts import RowCounts
from ..estimators.amounts import Amounts, ReplicatedAmounts, Replicates, Sample
from ..estimators.answer import Answer, Costs, PartAmounts
from ..estimators.blocks import BlockAmounts
from ..estimators.catalogue import METHODS, Choice
from ..missingness.assumptions import MAR, MCAR, MNAR
from ..results.comparison import Comparison
from ..results.evaluation import Evaluation, Origin
from ..results.provenance import joined_provenance
from ..support.paths import Paths
from ..support.support import Support
from ..walk.columns import PartColumns
from ..walk.outcomes import OwnOutcomes
from ..walk.tariff import Tariff
from .columns import ROWS, TABLES
from .summary import Summary
from .tables import frame_of, gathered, joined_balance, joined_forms, joined_paths, joined_support, joined_tests

__all__ = ["Blocks", "combined", "joined_counts", "joined_support_of"]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Summaries of independent blocks, and the cases that each stands for.

    Attributes
    ----------
    summaries : sequence of Summary
        One per block.
    cases : ndarray of shape (K,)
        Cases that the blocks stand for, in one unit.
    identity : str
        Identity of the rows: only estimates on the same rows are compared.
    what : str
        What a block is called in sentences.
    names : sequence of str, optional
        Names of the blocks; default: their numbers.
    random : bool
        True if rows came to blocks at random, so that the other blocks can stand for one without an answer.
    """

    summaries: Sequence[Summary]
    cases: Floats
    identity: str
    what: str = "block"
    names: Sequence[str] | None = None
    random: bool = True

    @cached_property
    def shares(self) -> Floats:
        """Share of the cases in each block."""
        return np.asarray(self.cases / self.cases.sum())

    @property
    def abouts(self) -> list[dict[str, Any]]:
        """Texts and numbers of every block."""
        return [s.about for s in self.summaries]

    def texts(self, each: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """Return the sentences of all blocks, each once."""
        return gathered(each, self.what, self.names)


def combined(blocks: Blocks, missingness: MCAR | MAR | MNAR, seed: int | None, notes: Sequence[str]) -> Comparison:
    """Return the comparison on the rows of all blocks; ``notes`` are added to the notes of every policy."""
    first = blocks.abouts[0]
    records = joined_counts(blocks)
    tests = joined_tests([frame_of(a["tests"]) for a in blocks.abouts], blocks.shares)
    labels = _amounts(
        [(k, a["labels"]) for k, a in enumerate(blocks.abouts)], blocks, blocks.shares, first["confidence"]
    )
    made = joined_provenance([a.get("provenance") for a in blocks.abouts], seed)
    origin = Origin(records, missingness, seed, tests=tests, labels=labels, provenance=made)
    policies = {
        name: _evaluation(blocks, name, records.problem, replace(origin, rules=about["rules"]), notes)
        for name, about in first["policies"].items()
    }
    return Comparison(policies, first["confidence"])


def _evaluation(blocks: Blocks, name: str, problem: Problem, origin: Origin, notes: Sequence[str]) -> Evaluation:
    abouts, first = [a["policies"][name] for a in blocks.abouts], blocks.abouts[0]
    assert isinstance(origin.data, RowCounts)
    tariff = _tariff(abouts[0], problem, origin.data)
    choices = {c.name: c for a in abouts for c in (_choice(*line) for line in a["choices"])}
    paths = joined_paths(
        [frame_of(a["paths"][0]) for a in abouts], [frame_of(a["paths"][1]) for a in abouts], blocks.shares
    )
    answers = _answers([a["answers"] for a in abouts], blocks, blocks.shares, tariff)
    whole = Evaluation(
        answers=answers,
        support=joined_support_of([a["support"] for a in abouts], blocks, answers),
        policy=name,
        classifier=first["classifier"],
        missingness=first["missingness"],
        confidence=first["confidence"],
        assumption=(*notes, *blocks.texts([a["notes"] for a in abouts])),
        choices=tuple(choices.values()),
        propensity=joined_forms([frame_of(a["forms"]) for a in abouts], blocks.shares),
        tariff=tariff,
        paths=Paths(*paths),
        origin=origin,
    )
    return replace(whole, subgroups={level: _subgroup(whole, level, blocks, abouts) for level in _levels(abouts)})


def _levels(abouts: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(level for a in abouts for level in a["levels"]))


def _subgroup(whole: Evaluation, level: str, blocks: Blocks, abouts: Sequence[Mapping[str, Any]]) -> Evaluation:
    """Return the evaluation of a level, from the blocks that have rows of it."""
    places = [k for k, a in enumerate(abouts) if level in a["levels"]]
    mine = [abouts[k]["levels"][level] for k in places]
    cases = np.zeros(len(abouts))
    cases[places] = [blocks.cases[k] * one["share"] for k, one in zip(places, mine, strict=True)]
    empty: dict[str, Any] = {}
    each = [a["levels"][level]["answers"] if level in a["levels"] else empty for a in abouts]
    assert whole.tariff is not None
    answers = _answers(each, blocks, cases / cases.sum(), whole.tariff)
    own = replace(
        whole.support,
        n_rows=sum(one["support"]["n_rows"] for one in mine),
        sampled=sum(one["support"]["sampled"] for one in mine),
        estimators=_weights(answers, [one["support"] for one in mine], cases[places] / cases.sum()),
    )
    return replace(whole, answers=answers, support=own, policy=mine[0]["name"], subgroups={})


def _choice(method: str, propensity: str, name: str, key: Sequence[str] | None) -> Choice:
    return Choice(METHODS[method], propensity, name, None if key is None else (key[0], key[1]))


class _Limited:
    """An outcome of the user, of which only name and limits are known."""

    def __init__(self, low: float, high: float) -> None:
        self.limits = (low, high)


def _tariff(about: Mapping[str, Any], problem: Problem, records: RowCounts) -> Tariff:
    own: dict[str, Any] = {name: _Limited(low, high) for name, low, high in about["outcomes"]}
    names = tuple(name for name, costly in zip(problem.group_names, problem.costly, strict=True) if costly)
    prices = problem.prices[problem.costly]
    return Tariff(
        problem, names, records.classes, prices, records.costs, OwnOutcomes(own), about["fixed"], about["paired"]
    )


def _answers(each: Sequence[Mapping[str, Any]], blocks: Blocks, shares: Floats, tariff: Tariff) -> dict[str, Answer]:
    """Combine the answers of every estimator; ``each`` has those of one block."""
    names = list(dict.fromkeys(name for answers in each for name in answers))
    return {name: _answer([answers.get(name) for answers in each], blocks, shares, tariff) for name in names}


def _answer(each: Sequence[Mapping[str, Any] | None], blocks: Blocks, shares: Floats, tariff: Tariff) -> Answer:
    """Combine the answers of one estimator, from the blocks that have one."""
    places = [k for k, one in enumerate(each) if one is not None and not one["reason"]]
    listed = [one for one in each if one is not None]
    reasons = blocks.texts([[one["reason"]] if one is not None and one["reason"] else [] for one in each])
    if not places or (not blocks.random and len(places) < int((shares > 0).sum())):
        return Answer(reason="; ".join(reasons) or f"not every {blocks.what} has this estimator")
    mine = [one for one in (each[k] for k in places) if one is not None]
    own = np.zeros(len(each))
    own[places] = shares[places]
    own /= own.sum()
    at = own[places]
    left_out = [f"without an answer and left out: {'; '.join(reasons)}"] if reasons else []
    caveats = blocks.texts([[one["caveat"]] if one is not None and one["caveat"] else [] for one in each])
    costs, parts = (_placed(each, places, kind) for kind in ("costs", "parts"))
    bounded = any(one["unsupported"] is not None for _, one in costs)
    unsupported = float(at @ [one["unsupported"] or 0.0 for _, one in costs]) if bounded else None
    confidence = blocks.abouts[0]["confidence"]
    width = 2 + len(tariff.own)
    amounts = _amounts(costs, blocks, own, confidence, (width, width) if bounded else None)
    assert amounts is not None
    return Answer(
        costs=Costs(amounts, tariff, unsupported),
        ess=_effective([one["ess"] for one in mine], at),
        normalizer=float(at @ [one["normalizer"] for one in mine]),
        normalizer_error=float(np.sqrt(at**2 @ np.square([one["normalizer_error"] for one in mine]))),
        normalizers=_normalizers([one["normalizers"] for one in mine], at),
        clipped=sum(one["clipped"] for one in mine),
        largest_weight=max(one["largest_weight"] for one in mine),
        error_method=max((one["error_method"] for one in mine), key=[one["error_method"] for one in mine].count),
        caveat="; ".join([*caveats, *left_out]),
        replicates=min(one["replicates"] for one in listed),
        lost=max(one["lost"] for one in listed),
        unsupported=float(at @ [one["unsupported"] for one in mine]),
        computed=_parts(parts, blocks, own, confidence, unsupported),
    )


_Placed = list[tuple[int, Any]]  # block and its entry


def _placed(each: Sequence[Mapping[str, Any] | None], places: Sequence[int], kind: str) -> _Placed:
    return [(k, one[kind]) for k in places if (one := each[k]) is not None]


def _effective(sizes: Sequence[float], shares: Floats) -> float:
    """Effective number of rows of a mean over blocks with these effective numbers."""
    variance = float((shares**2 / np.asarray(sizes, dtype=float)).sum())
    return 1 / variance if variance > 0 else float("nan")


def _normalizers(each: Sequence[Sequence[float]], shares: Floats) -> tuple[float, ...]:
    """Mean weights before each decision; a block with fewer decisions keeps its last."""
    length = max(map(len, each))
    if not all(each):
        return ()
    full = np.array([[*steps[:-1], *[steps[-1]] * (length - len(steps)), steps[-1]] for steps in each])
    return tuple(float(v) for v in shares @ full)


def _parts(
    each: _Placed, blocks: Blocks, shares: Floats, confidence: float, unsupported: float | None
) -> PartAmounts | None:
    if any(one is None for _, one in each):
        return None
    shapes = [one["columns"] for _, one in each]
    shape = next((s for s in shapes if s["open"]), shapes[0])
    rest = {name: value for name, value in shape.items() if name != "costly"}
    columns = PartColumns(np.array(shape["costly"], dtype=np.intp), labels=np.zeros(0, dtype=np.intp), **rest)
    widths = None if unsupported is None else (columns.width, replace(columns, open=False).width)
    amounts = _amounts(each, blocks, shares, confidence, widths)
    assert amounts is not None
    return PartAmounts(amounts, columns, unsupported)


def _amounts(
    each: Sequence[tuple[int, Any]],
    blocks: Blocks,
    shares: Floats,
    confidence: float,
    widths: tuple[int, int] | None = None,
) -> Amounts | None:
    """Add up the columns of the blocks, each times its share; None if a block has none. ``widths`` are those of bounds."""
    if any(one is None for _, one in each):
        return None
    families = {one["family"] for _, one in each}
    family = families.pop() if len(families) == 1 else "replicates"
    maps: Sequence[Floats | None] = [None] * len(each)
    if widths is not None:
        maps = _to_common([one for _, one in each], *widths)
    pieces = [_piece(blocks.summaries[k], one, m) for (k, one), m in zip(each, maps, strict=True)]
    at = np.array([shares[k] for k, _ in each])
    values = sum(s * piece[0] for s, piece in zip(at, pieces, strict=True))
    sample = Sample(None, blocks.identity, confidence, _concentration([one for _, one in each], at))
    replicates = _replicates(each, blocks, at, maps)
    if family not in (ROWS, TABLES):
        return ReplicatedAmounts(np.asarray(values), sample, replicates)
    roots, heavy = (
        _stacked(
            len(shares), {k: s * piece[j] for (k, _), s, piece in zip(each, at, pieces, strict=True)}, blocks, family, j
        )
        for j in (1, 2)
    )
    return BlockAmounts(np.asarray(values), family, roots, heavy, sample, replicates)


def _piece(summary: Summary, one: Mapping[str, Any], to_common: Floats | None) -> tuple[Floats, Floats, Floats]:
    """Return values and roots of the columns of one answer in one block."""
    family, columns = one["family"], slice(one["start"], one["start"] + one["width"])
    nothing = np.zeros((0, one["width"]))
    found = [summary.arrays[f"{family}/values"][columns]]
    for name in ("covariance", "heavy"):
        whole = summary.arrays.get(f"{family}/{name}")
        found.append(nothing if whole is None else whole[:, columns])
    values, root, heavy = found if to_common is None else [part @ to_common for part in found]
    return values, root, heavy


def _stacked(n_blocks: int, pieces: Mapping[int, Floats], blocks: Blocks, family: str, j: int) -> Floats:
    """Return the roots of all blocks as one array; all answers of a family have equally many lines."""
    name = f"{family}/{('', 'covariance', 'heavy')[j]}"
    length = max((len(s.arrays[name]) for s in blocks.summaries if name in s.arrays), default=0)
    out = np.zeros((n_blocks, length, next(iter(pieces.values())).shape[1]))
    for k, piece in pieces.items():
        out[k, : len(piece)] = piece
    return out


def _to_common(each: Sequence[Mapping[str, Any]], wide: int, core: int) -> list[Floats]:
    """Return, per block, the matrix from its columns to those of bounds: least, largest and, if all have it, extrapolated.

    An estimate has ``core`` columns, a bound has ``wide``: these and those of runs into unsupported sets. In a block with an
    estimate, the least and the largest cost are the estimate.
    """
    further = all(one["unsupported"] is None or one["width"] > 2 * wide for one in each)
    out = []
    for one in each:
        bounded = one["unsupported"] is not None
        matrix = np.zeros((one["width"], 2 * wide + (core if further else 0)))
        starts = (0, wide, 2 * wide) if bounded else (0, 0, 0)
        sizes = (wide, wide, core) if bounded else (core, core, core)
        for start, size, to in zip(starts, sizes, (0, wide, 2 * wide), strict=True):
            if to < matrix.shape[1]:
                matrix[start : start + size, to : to + size] = np.eye(size)
        out.append(matrix)
    return out


def _concentration(each: Sequence[Mapping[str, Any]], shares: Floats) -> float:
    r"""Concentration of the weight of all blocks, if each block's weights are spread as those of equal concentration."""
    kappa = np.array([one["concentration"] for one in each], dtype=float)
    if not (kappa > 0).any():
        return 0.0
    squares = shares**2 * kappa
    return float((shares**3 * kappa**2).sum() / squares.sum())


def _replicates(
    each: Sequence[tuple[int, Any]], blocks: Blocks, shares: Floats, maps: Sequence[Floats | None]
) -> Replicates | None:
    """Replicate b of the sum is the sum of the replicates b of the blocks, which are independent."""
    if any("replicates" not in one for _, one in each):
        return None
    found = [blocks.summaries[k].arrays[f"replicates/{one['replicates']}"] for k, one in each]
    found = [v if m is None else v @ m for v, m in zip(found, maps, strict=True)]
    length = min(map(len, found))
    total = sum(s * v[:length] for s, v in zip(shares, found, strict=True))
    return Replicates(np.asarray(total), f"{blocks.identity}, bootstrap")


def joined_support_of(each: Sequence[Mapping[str, Any]], blocks: Blocks, answers: Mapping[str, Answer]) -> Support:
    """Join the tables and sentences of support; ``answers`` are those of all blocks."""
    texts: dict[str, Any] = {
        name: blocks.texts([one[name] for one in each]) for name in ("warnings", "heavy", "advice")
    }
    tables: dict[str, Any] = {
        name: joined_support(name, [frame_of(one[name]) for one in each], blocks.shares)
        for name in ("sets", "groups", "pairs", "views", "violations", "undecided")
    }
    return Support(
        unsupported=float(blocks.shares @ [one["unsupported"] for one in each]),
        n_rows=sum(one["n_rows"] for one in each),
        sampled=sum(one["sampled"] for one in each),
        unsearched=max(one["unsearched"] for one in each),
        balance=joined_balance([frame_of(one["balance"]) for one in each], blocks.shares),
        estimators=_weights(answers, each, blocks.shares),
        heaviest=pd.DataFrame(columns=["row", "set", "weight", "share"]),
        **texts,
        **tables,
    )


def _weights(answers: Mapping[str, Answer], each: Sequence[Mapping[str, Any]], shares: Floats) -> pd.DataFrame:
    """Return the weights of every estimator; the share of the ten heaviest rows is a mean over blocks, so an upper limit."""
    frames = [frame_of(one["estimators"]).set_index("estimator") for one in each]
    names = list(dict.fromkeys(name for f in frames for name in f.index))
    lines = []
    for name in names:
        answer = answers[name]
        has = [k for k, f in enumerate(frames) if name in f.index]
        ten = float(np.average([float(frames[k].loc[name, "ten_heaviest"]) for k in has], weights=shares[has]))
        steps = ", ".join(f"{v:.3f}" for v in answer.normalizers)
        lines.append((name, answer.ess, ten, answer.normalizer, steps, answer.largest_weight, answer.clipped))
    from ..support.support import WEIGHT_COLUMNS

    return pd.DataFrame(lines, columns=WEIGHT_COLUMNS)


def joined_counts(blocks: Blocks) -> RowCounts:
    """Add up the numbers of rows."""
    each = [about["records"] for about in blocks.abouts]
    first = each[0]
    scale = [cases / one["cases"] for cases, one in zip(blocks.cases, each, strict=True)]
    told = first["problem"]
    problem = Problem(told["groups"], told["costs"], told["label"], told["misclassification_cost"], first["classes"])
    listed = np.array([p for one in each for p in one["patterns"]], dtype=bool).reshape(-1, problem.n_groups)
    counts = np.array([c for one in each for c in one["pattern_counts"]], dtype=float)
    cases = np.array([c * s for one, s in zip(each, scale, strict=True) for c in one["pattern_cases"]])
    patterns, index = unique_sets(listed)
    weighted = [one["effective_rows"] for one in each]
    known = any(size is not None for size in weighted) or any(not np.isclose(a, b) for a, b in pairwise(scale))
    sizes = [one["n_rows"] if size is None else size for one, size in zip(each, weighted, strict=True)]
    return RowCounts(
        problem=problem,
        classes=tuple(first["classes"]),
        costs=problem.cost_matrix(len(first["classes"]), first["classes"]),
        n_rows=sum(one["n_rows"] for one in each),
        cases=float(blocks.cases.sum()),
        gaps=np.sum([one["gaps"] for one in each], axis=0),
        recorded_share=blocks.shares @ np.array([one["recorded_share"] for one in each]),
        complete_share=float(blocks.shares @ [one["complete_share"] for one in each]),
        label_counts=np.sum([one["label_counts"] for one in each], axis=0),
        label_cases=np.sum([s * np.array(one["label_cases"]) for one, s in zip(each, scale, strict=True)], axis=0),
        patterns=patterns,
        pattern_counts=np.bincount(index, weights=counts, minlength=len(patterns)).astype(np.intp),
        pattern_cases=tally(index, cases, len(patterns)),
        unlabelled=sum(one["unlabelled"] for one in each),
        effective_rows=_effective(sizes, blocks.shares) if known else None,
        n_clusters=None if first["n_clusters"] is None else sum(one["n_clusters"] for one in each),
        partial=_summed([one["partial"] for one in each]),
        levels=_summed([one["levels"] for one in each]),
        weighs_labels=any(one["weighs_labels"] for one in each),
        shares_known=all(one["shares_known"] for one in each),
    )


def _summed(each: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(one.get(name, 0) for one in each) for name in dict.fromkeys(n for one in each for n in one)}
