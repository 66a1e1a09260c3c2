"""Implications of an assumption about missingness: independences that the records can contradict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from .._arrays import Bools, Floats, Ints, every
from ..data.retrospective import Retrospective
from ..missingness.assumptions import MAR, MCAR, MNAR, Conditioning
from ..missingness.graph import MGraph
from ..propensity.logistic import fit_logistic, flexible_design, logistic_design, score_test
from .suggestion import suggestion_from

__all__ = [
    "INDICATOR",
    "Implication",
    "check_implications",
    "holm",
    "implications",
    "label_findings",
    "label_suspected",
]

INDICATOR = "R_"
_LEAST_ROWS = 20  # a test needs this many rows with, and this many without the group
_LEVEL = 0.05  # p-value below which a sentence says "predicts"
_SUSPECTED, _CONTRADICTED = 0.02, 0.01  # adjusted p-values: test all rows, and warn in an evaluation
_LABEL_ROWS = 10_000  # rows in which the label is tested first, at most
_COLUMNS = ["recording", "of", "given", "rows", "statistic", "degrees", "odds_ratio", "p_value", "p_adjusted", "words"]


class Implication(NamedTuple):
    """R_group is independent of ``of``, given ``given`` and R_beside, in rows that have the groups ``rows`` recorded."""

    group: str
    of: str  # a group, the label, or the indicator of a group
    given: tuple[str, ...]  # groups, perhaps the label
    beside: tuple[str, ...]  # groups whose indicators are given
    rows: tuple[str, ...]


def implications(graph: MGraph, about: str | None = None) -> Iterator[Implication]:
    """Independences that follow from a graph and that records can contradict.

    Let R_a be an indicator with parents Z, and V another group, label or indicator. R_a is independent of V given Z in
    rows that have V and Z recorded, if the graph separates R_a and V given Z and the indicators of these rows. A group
    whose recording depends on its own value has no such implication: its values are known only if it is recorded.
    ``about`` restricts V to one variable.
    """
    seen: set[frozenset[str]] = set()
    parents = {r: {u for u, v in graph.directed if v == r} for r in graph.indicators}
    for node in graph.indicators:
        group = node.removeprefix(INDICATOR)
        for of in (*graph.variables, *graph.indicators) if about is None else (about,):
            pair = frozenset((node, of))
            if of in (group, node) or of in parents[node] or group in parents[node] or pair in seen:
                continue
            found = _separated(graph, node, of, parents)
            if found is not None:
                seen.add(pair)
                yield found


def _separated(graph: MGraph, node: str, of: str, parents: dict[str, set[str]]) -> Implication | None:
    """The implication, if there is one.

    Either the parents of the indicator separate it from ``of``, or they do so with the parents of the indicators of ``rows``.
    """
    group, values = node.removeprefix(INDICATOR), set(graph.variables)
    given = parents[node] & values
    for _ in range(2):
        rows = ({of} | given) & set(graph.missing)
        fixed = {INDICATOR + g for g in rows}
        indicators = (parents[node] - values) - fixed
        known = group not in rows and of not in fixed | indicators
        if known and graph.separation(frozenset({node}), frozenset({of}), frozenset(given | indicators | fixed)):
            in_order, needed = (tuple(v for v in graph.variables if v in part) for part in (given, rows))
            beside = tuple(sorted(r.removeprefix(INDICATOR) for r in indicators))
            return Implication(group, of, in_order, beside, needed)
        given = given | set().union(*(parents[r] & values for r in fixed)) - {of}
    return None


def label_suspected(data: Retrospective, given: Conditioning, groups: Ints) -> bool:
    """True if the label seems to predict the recording of a group, given what recording depends on; a quick first test."""
    rows = np.unique(np.linspace(0, len(data) - 1, min(len(data), _LABEL_ROWS)).astype(np.intp))
    columns = given.matrix(data)[rows]
    classes = (data.labels[rows, None] == np.arange(1, len(data.classes))).astype(float)
    cluster = None if data.cluster is None else data.cluster[rows]
    weight = None if data.weight is None else data.weight[rows]
    p_values = []
    for g in groups:
        has = data.recorded[rows, g]
        if min(int(has.sum()), int((~has).sum())) >= _LEAST_ROWS:
            statistic, degrees = score_test(flexible_design(columns, has), has, classes, cluster, weight)
            p_values.append(float(chdtrc(degrees, statistic)) if degrees else 1.0)
    return min(p_values, default=1.0) * len(p_values) < _SUSPECTED


def label_findings(data: Retrospective, missingness: MCAR | MAR | MNAR, groups: Sequence[str]) -> str:
    """Warning if the label predicts the recording of these groups against the assumption; "" otherwise."""
    label = str((data.original or data).problem.label)
    if isinstance(missingness, MNAR):
        found = [i for i in implications(missingness.graph_on(data), label) if i.group in groups]
    else:
        given = tuple(missingness.given) if isinstance(missingness, MAR) else ()
        rows = () if data.original is None else (label,)
        found = [Implication(group, label, given, (), rows) for group in groups]
    table = check_implications(data, found)
    if not (table["p_adjusted"] < _CONTRADICTED).any():
        return ""
    rejected = table[table["p_adjusted"] < _LEVEL]
    change = suggestion_from(missingness, data, rejected)
    advice = "" if change is None else change.python
    return (
        f"The records contradict {missingness!r}: {'; '.join(rejected['words'])}. {advice} "
        "afape.check_missingness tests all implications of the assumption."
    )


def check_implications(data: Retrospective, found: Iterable[Implication]) -> pd.DataFrame:
    """One line per implication: its test, with p-values adjusted for their number (Holm 1979), the smallest first."""
    table = pd.DataFrame([_test(data, implication) for implication in found], columns=_COLUMNS)
    table["p_adjusted"] = holm(table["p_value"].to_numpy(dtype=float))
    return table.sort_values(["p_value", "recording", "of"], ignore_index=True)


def holm(p_values: Floats) -> Floats:
    r"""Holm's adjusted p-values: :math:`\max_{j \le i} \min(1, (m - j + 1) p_{(j)})`; NaN stands for no test."""
    out = np.full(len(p_values), np.nan)
    order = np.argsort(p_values)[: int((~np.isnan(p_values)).sum())]
    factors = np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1.0)
    return out


def _test(data: Retrospective, implication: Implication) -> dict[str, object]:
    """Line of the table: score test, and odds ratio of the added column with the largest effect."""
    names = data.problem.group_names
    rows = every(data.recorded[:, [names.index(g) for g in implication.rows]])
    recorded = data.recorded[rows, names.index(implication.group)]
    line: dict[str, object] = dict.fromkeys(_COLUMNS, float("nan"))
    given = [*implication.given, *(INDICATOR + g for g in implication.beside)]
    line |= {"recording": implication.group, "of": implication.of, "given": ", ".join(given), "rows": int(rows.sum())}
    if min(int(recorded.sum()), int((~recorded).sum())) < _LEAST_ROWS:
        return {**line, "words": "too few rows: not testable"}
    columns = [_columns(data, v)[1] for v in given]
    design = flexible_design(np.column_stack([np.zeros((len(data), 0)), *columns])[rows], recorded)
    added_names, added = _columns(data, implication.of)
    added = added[rows]
    cluster = None if data.cluster is None else data.cluster[rows]
    weight = None if data.weight is None else data.weight[rows]
    statistic, degrees = score_test(design, recorded, added, cluster, weight)
    if degrees == 0:
        return {**line, "words": f"{implication.of} is determined by the given variables: not testable"}
    p_value = float(chdtrc(degrees, statistic))
    place, odds_ratio = _odds_ratio(design, recorded, added, weight)
    words = _words(implication, added_names[place], odds_ratio, p_value, _binary(added[:, place]))
    found = {"statistic": statistic, "degrees": degrees, "odds_ratio": odds_ratio, "p_value": p_value, "words": words}
    return {**line, **found}


def _columns(data: Retrospective, name: str) -> tuple[list[str], Floats]:
    """Names and columns of a group, of the label (its classes but the first) or of an indicator."""
    if name == data.problem.label:
        codes = np.arange(1, len(data.classes))
        classes = [name if len(codes) == 1 else f"{name}={data.classes[c]}" for c in codes]
        return classes, (data.labels[:, None] == codes).astype(float)
    names = data.problem.group_names
    if name in names:
        mine = np.flatnonzero(data.column_group == names.index(name))
        return [data.columns[j] for j in mine], data.values[:, mine]
    group = name.removeprefix(INDICATOR)
    return [f"the recording of {group}"], data.recorded[:, [names.index(group)]].astype(float)


def _binary(column: Floats) -> bool:
    return len(np.unique(column)) <= 2


def _odds_ratio(design: Floats, recorded: Bools, added: Floats, weight: Floats | None) -> tuple[int, float]:
    """Position and odds ratio of the added column with the largest effect; per standard deviation if not binary."""
    scaled = logistic_design(added, weight)[:, 1:]
    for j in range(added.shape[1]):
        if _binary(added[:, j]):
            scaled[:, j] = added[:, j] == added[:, j].max()
    ratios = []
    for j in range(scaled.shape[1]):
        fit = fit_logistic(np.column_stack([design, scaled[:, j]]), recorded, weight, firth=True)
        error = np.sqrt(max(float(fit.inverse_information[-1, -1]), 0.0))
        ratios.append((abs(fit.coefficients[-1]) / error if error > 0 else 0.0, fit.coefficients[-1]))
    place = int(np.argmax([z for z, _ in ratios]))
    return place, float(np.exp(ratios[place][1]))


def _words(implication: Implication, column: str, odds_ratio: float, p_value: float, binary: bool) -> str:
    given = [*implication.given, *(f"the recording of {g}" for g in implication.beside)]
    listed = " and ".join([", ".join(given[:-1]), given[-1]] if len(given) > 1 else given)
    of = (
        column
        if column == implication.of or column.startswith(("the recording", implication.of))
        else f"{column} ({implication.of})"
    )
    unit = "" if binary else " per standard deviation"
    p = f"p = {p_value:.1g}" if p_value >= 1e-12 else "p < 1e-12"
    verb = "predicts" if p_value < _LEVEL else "does not predict"
    which = f"{implication.group} given {listed}" if listed else implication.group
    return f"{of} {verb} the recording of {which}, odds ratio {odds_ratio:.2g}{unit}, {p}"
