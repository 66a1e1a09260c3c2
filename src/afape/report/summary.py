"""summarize(): the content of the report, as plain numbers and text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import __version__
from .._arguments import check_count, check_flag, check_instance, check_mapping, check_texts, shown
from ..check import check_of
from ..data.row_counts import RowCounts
from ..estimators.estimate import TARGETS, Bounds, Estimate
from ..files.toml_words import in_file_words
from ..files.writing import plain_value
from ..missingness.assumptions import MNAR
from ..results.comparison import Comparison
from ..results.evaluation import Evaluation, Origin
from ..results.numbers import decimals_of
from ..results.small_cells import shown_patterns, without_small
from ..sensitivity_analysis.analysis import Sensitivity
from .behaviour import behaviour_content
from .sensitivity import is_repriced, sensitivity_content
from .sentences import STANDING_ASSUMPTIONS, answer_of, assumption_words, weighed_words

__all__ = ["difference", "origin_of", "page_estimator", "summarize"]

_PATTERNS = 20
_SECTIONS = {  # section of the page that has more about a doubt
    "classifier": "behaviour",
    "training rows": "data",
    "tiny": "data",
    "assumption": "assumption",
    "support": "support",
    "rows": "support",
    "balance": "support",
    "estimators": "costs",
}
_REPRICED = (
    "Prices were changed after the evaluation. Costs, intervals and ranking use the new prices. The costs of the sets in which "
    "runs stop use the old prices, and there is no sensitivity analysis."
)


def summarize(
    found: Comparison,
    *,
    sensitivity: Sensitivity | None = None,
    notes: Sequence[str] = (),
    details: Mapping[str, Any] | None = None,
    min_cell: int = 10,
    in_file: bool = False,
) -> dict[str, Any]:
    """Return the content of the report as a dict, ready for JSON.

    Parameters
    ----------
    found : Comparison
        Result of `compare`.
    sensitivity : Sensitivity, optional
        Result of `afape.sensitivity` for the same policies, with bounds that start from the estimates of the page.
    notes : sequence of str
        Sentences at the top of the page.
    details : mapping, optional
        Shown under the details, such as command, files and seed.
    min_cell : int
        Patterns of recording and subgroups with fewer rows are left out; numbers of rows are nowhere.
    in_file : bool
        True if the assumption stands in a problem file: then advice is in the words of such a file.
    """
    check_instance("found", found, Comparison, "a result of afape.compare")
    if sensitivity is not None:
        check_instance("sensitivity", sensitivity, Sensitivity, "a result of afape.sensitivity, or None")
    check_content(notes, details)
    check_count("min_cell", min_cell, 0)
    check_flag("in_file", in_file)
    origin = origin_of(found)
    data = origin.counts
    found = without_small(found, data, min_cell)
    estimator = page_estimator(found)
    policies = [
        {"place": k, **_policy(name, e, found, estimator)} for k, (name, e) in enumerate(found.evaluations.items())
    ]
    for policy in policies if in_file else ():
        policy |= {key: [in_file_words(text) for text in policy[key]] for key in ("warnings", "heavy", "advice")}
    prices = _prices(found, data)
    strength = None if sensitivity is None else sensitivity_content(sensitivity, estimator)
    totals = [e for name in found.evaluations if (e := _estimate(found, name, estimator, "total")) is not None]
    return {
        **{"ranking": [], "differences": [], "reason": ""},
        **found.standing(),
        "estimator": estimator,
        "confidence": found.confidence,
        "decimals": decimals_of(totals),
        "min_cell": min_cell,
        "answer": answer_of(found, estimator),
        "doubts": [{**doubt._asdict(), "section": _SECTIONS[doubt.kind]} for doubt in found.doubts],
        "notes": [*notes, *([_REPRICED] if is_repriced(found) else [])],
        "policies": policies,
        "naive": _naive(found, estimator),
        "behaviour": behaviour_content(found.evaluations, estimator, prices, data),
        "strength": strength,
        "data": _data(data, origin.recorded, prices, min_cell),
        "assumption": _assumption(found, origin, None if strength is None else strength["tips"], in_file=in_file),
        "details": {**_made_from(found), **(details or {})},
    }


def _made_from(found: Comparison) -> dict[str, str]:
    """Return the provenance as short texts."""
    return (
        {"afape": __version__, "seed": str(origin_of(found).seed)}
        if found.provenance is None
        else found.provenance.lines()
    )


def check_content(notes: Any, details: Any) -> None:
    """Check what the user adds to the page; ``details`` must be plain values, because the page holds them as JSON."""
    check_texts("notes", notes, "sentences")
    named = {} if details is None else check_mapping("details", details, "from names to values to show", empty=True)
    for name, value in named.items():
        try:
            json.dumps(value, allow_nan=False, default=plain_value)
        except Exception as error:  # str() of the user's objects
            raise ValueError(f"'details' must have plain values, but {name!r} is {shown(value)}.") from error


def origin_of(found: Comparison) -> Origin:
    """Return the records and the assumption, which all policies share."""
    first = next(iter(found.evaluations.values()))
    if first.origin is None:
        raise ValueError(
            "'found' must come from afape.evaluate or afape.compare, but has no origin: a report needs the records."
        )
    return first.origin


def page_estimator(found: Comparison) -> str:
    """Name of the estimator of the page: the preferred one, else the first of the evaluation."""
    try:
        return found.best_estimator
    except ValueError:
        return next(iter(next(iter(found.evaluations.values())).answers))


def _estimate(found: Comparison, name: str, estimator: str, target: str) -> Estimate | None:
    """Estimate of one policy, None if it has none."""
    try:
        return found.estimates(estimator, target).get(name)
    except KeyError:
        return None


def _policy(name: str, evaluation: Evaluation, found: Comparison, estimator: str) -> dict[str, Any]:
    return {
        "name": name,
        "rules": "" if evaluation.origin is None else evaluation.origin.rules,
        "costs": {t: _cost(_estimate(found, name, estimator, t), found.confidence) for t in TARGETS},
        "reason": next((o.reason for n, o in evaluation.answers.items() if n == estimator and o.reason), ""),
        **evaluation.to_dict(),
        "support_holds": evaluation.support.holds,
        "acquires": bool((evaluation.support.groups["wanted"] > 0).any()),
        "worst_balance": float(evaluation.support.balance["after"].abs().max())
        if len(evaluation.support.balance)
        else 0.0,
    }


def _cost(estimate: Estimate | None, confidence: float) -> dict[str, Any] | None:
    if estimate is None:
        return None
    low, high = estimate.interval(confidence)
    ends = (estimate.bound_lower, estimate.bound_upper) if isinstance(estimate, Bounds) else (None, None)
    further = estimate.extrapolated if isinstance(estimate, Bounds) else None
    near = (None, None) if further is None else further.interval(confidence)
    out = {
        "estimate": None if isinstance(estimate, Bounds) else estimate.value,
        "lower": low,
        "upper": high,
        "bound_lower": ends[0],
        "bound_upper": ends[1],
        "extrapolated": None if further is None else further.value,
        "extrapolated_lower": near[0],
        "extrapolated_upper": near[1],
        "std_error": estimate.std_error,
        "degrees_of_freedom": estimate.degrees_of_freedom,
    }
    return {k: v if v is None or np.isfinite(v) else None for k, v in out.items()}


def _naive(found: Comparison, estimator: str) -> list[dict[str, Any]]:
    """Total costs by common practice, and how far they are from the estimate."""
    lines = []
    for name, evaluation in found.evaluations.items():
        best = _estimate(found, name, estimator, "total")
        for choice in evaluation.choices:
            if not choice.method.biased or choice.name not in evaluation:
                continue
            value = evaluation[choice.name]["total"].value
            line = {"policy": name, "estimator": choice.name, "does": choice.method.does, "estimate": value}
            line |= {"difference": None, "relative": None, "outside": None}
            if best is not None:
                low, high = best.interval(found.confidence)
                line["outside"] = bool(value < low or value > high) if np.isfinite(low) else None
            if best is not None and not isinstance(best, Bounds):
                off = difference(value, best.value)
                line |= {"difference": off, "relative": off / best.value if best.value else None}
            lines.append(line)
    return lines


def difference(value: float, reference: float) -> float:
    """Return ``value - reference``, 0 if they are equal up to rounding (a policy that acquires nothing)."""
    return 0.0 if np.isclose(value, reference, rtol=1e-12, atol=0) else value - reference


def _assumption(found: Comparison, origin: Origin, tips: float | None, *, in_file: bool) -> dict[str, Any]:
    tested = check_of(origin)
    wanted = {
        str(g) for e in found.evaluations.values() for g, w in e.support.groups[["group", "wanted"]].to_numpy() if w > 0
    }
    check: dict[str, Any] = tested.to_dict() | {"weighed": weighed_words(tested.rejected, wanted, tips)}
    if in_file and tested.suggestion is not None:
        check["advice"] = [tested.suggestion.toml]
    said = [text for e in found.evaluations.values() for text in e.assumption]
    return {
        "name": repr(origin.missingness),
        "words": assumption_words(origin.missingness, str(origin.data.problem.label)),
        "sentences": list(dict.fromkeys(said)),
        "standing": list(STANDING_ASSUMPTIONS),
        "graph": str(origin.graph),
        "graph_drawn": isinstance(origin.missingness, MNAR),  # without a graph of the user, words say it better
        "check": check,
    }


def _prices(found: Comparison, data: RowCounts) -> dict[str, float]:
    """Price of every group by name, as used by the results."""
    out = dict(zip(data.problem.group_names, data.problem.prices.tolist(), strict=True))
    tariff = next(iter(found.evaluations.values())).tariff
    return out if tariff is None else out | dict(zip(tariff.groups, tariff.prices.tolist(), strict=True))


def _data(data: RowCounts, recorded: RowCounts, prices: dict[str, float], min_cell: int) -> dict[str, Any]:
    problem = data.problem
    patterns, count = recorded.patterns, recorded.pattern_counts
    share = recorded.pattern_cases / recorded.cases
    names = np.array(recorded.problem.group_names, dtype=object)
    order = np.argsort(-count, kind="stable")
    shares = data.label_cases / data.label_cases.sum()
    few = data.label_counts < min_cell  # shares would give their number
    return {
        "rows": len(data),
        "complete": data.complete_share,
        "effective_rows": data.effective_rows,
        "labels_missing": data.unlabelled,
        "label_shares_known": data.shares_known,
        "clusters": data.n_clusters,
        "label": str(problem.label),
        "classes": [
            {"label": str(c), "share": None if few.any() else float(s), "few": bool(f)}
            for c, s, f in zip(data.classes, shares, few, strict=True)
        ],
        "costs": data.costs.tolist(),
        "groups": [
            {
                "group": name,
                "columns": [str(c) for c in columns],
                "price": prices[name],
                "free": bool(problem.free[g]),
                "recorded": float(data.recorded_share[g]),
                "in_part": _unless_few(data.partial.get(name, 0), min_cell),
            }
            for g, (name, columns) in enumerate(problem.groups.items())
        ],
        "n_patterns": len(patterns),
        "patterns": [
            {
                "recorded": [str(n) for n in names[patterns[u]]],
                "rows": int(count[u]),
                "share": float(share[u]),
            }
            for u in order[: shown_patterns(count, _PATTERNS, min_cell)]
        ],
    }


def _unless_few(count: int, min_cell: int) -> int | None:
    """Return a number of rows, None if it is small but not 0."""
    return None if 0 < count < min_cell else count
