"""summarize(): everything that the report says, as plain numbers and text."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from ..arrays import unique_sets
from ..check import check_missingness
from ..comparison import Comparison
from ..data import Retrospective
from ..estimators import TARGETS, Bounds
from ..plain import plain_records
from ..result import Evaluation, Origin
from ..sensitivity_analysis import Sensitivity
from .answer import answer_of
from .strength import is_repriced, strength_of
from .words import assumption_words, plain_assumptions

__all__ = ["origin_of", "own_estimate", "summarize"]

_PATTERNS = 20
_REPRICED = (
    "Prices were changed after the evaluation. Costs, intervals and ranking are at the new prices; what runs cost where they "
    "stop is at those of the evaluation, and unmeasured reasons were not asked about."
)


def summarize(
    found: Comparison,
    *,
    sensitivity: Sensitivity | None = None,
    notes: Sequence[str] = (),
    details: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Everything that the report says, ready for JSON.

    Parameters
    ----------
    found : Comparison
        The policies.
    sensitivity : Sensitivity, optional
        What unmeasured reasons could do.
    notes : sequence of str
        What the reader should know first.
    details : mapping, optional
        How it was made: command, files, seed.
    """
    origin = origin_of(found)
    estimator = _estimator(found)
    policies = [_policy(name, e, found, estimator) for name, e in found.evaluations.items()]
    content: dict[str, Any] = {
        "estimator": estimator,
        "confidence": found.confidence,
        "answer": answer_of(found, estimator),
        "notes": [*notes, *([_REPRICED] if is_repriced(found) else [])],
        "policies": policies,
        "naive": _naive(found, estimator),
        "strength": strength_of(sensitivity, found.confidence),
        "data": _data(origin.data, _prices(found, origin.data)),
        "assumption": _assumption(found, origin),
        "details": {**_versions(), "seed": origin.seed, **(details or {})},
        **_standing(found),
    }
    return content


def _standing(found: Comparison) -> dict[str, Any]:
    """Ranking and differences, or why there are none."""
    said = found.standing()
    return {
        "ranking": said.get("ranking", []),
        "differences": said.get("differences", []),
        "reason": said.get("reason", ""),
    }


def origin_of(found: Comparison) -> Origin:
    """Records and assumption, which all policies share."""
    first = next(iter(found.evaluations.values()))
    if first.origin is None:
        raise ValueError("A report needs evaluations that came from afape.evaluate or afape.compare.")
    return first.origin


def _estimator(found: Comparison) -> str:
    """The estimator that the page goes by: the preferred one, else the first that was asked for."""
    try:
        return found.best_estimator
    except ValueError:
        return next(iter(next(iter(found.evaluations.values())).outcomes))


def own_estimate(found: Comparison, name: str, estimator: str, target: str) -> Any:
    """The estimate of one policy, None where it has none."""
    try:
        return found.estimates(estimator, target).get(name)
    except KeyError:
        return None


def _policy(name: str, evaluation: Evaluation, found: Comparison, estimator: str) -> dict[str, Any]:
    return {
        "name": name,
        "rules": "" if evaluation.origin is None else evaluation.origin.rules,
        "costs": {t: _cost(own_estimate(found, name, estimator, t), found.confidence) for t in TARGETS},
        "reason": next((o.reason for n, o in evaluation.outcomes.items() if n == estimator and o.reason), ""),
        **evaluation.to_dict(),
        "support_holds": evaluation.support.holds,
        **_doing(evaluation, found, estimator, name),
    }


def _doing(evaluation: Evaluation, found: Comparison, estimator: str, name: str) -> dict[str, Any]:
    """Rates of acquisition and how good the predictions are, where the estimator can tell."""
    try:
        own = estimator if estimator in evaluation else evaluation.best_estimator
        parts, metrics = evaluation.parts(own), evaluation.metrics(own)
    except (KeyError, ValueError):
        return {"metrics": [], "rates": [], "counts": []}
    table = plain_records(parts.table)
    counts = [line for line in table if line["kind"] == "acquisitions"]
    return {"metrics": plain_records(metrics), "rates": [t for t in table if t["kind"] == "rate"], "counts": counts}


def _cost(estimate: Any, confidence: float) -> dict[str, Any] | None:
    if estimate is None:
        return None
    low, high = estimate.interval(confidence)
    bounds = isinstance(estimate, Bounds)
    out = {
        "estimate": None if bounds else estimate.value,
        "lower": low,
        "upper": high,
        "bound_lower": estimate.bound_lower if bounds else None,
        "bound_upper": estimate.bound_upper if bounds else None,
        "std_error": estimate.std_error,
        "degrees_of_freedom": estimate.degrees_of_freedom,
    }
    return {k: v if v is None or np.isfinite(v) else None for k, v in out.items()}


def _naive(found: Comparison, estimator: str) -> list[dict[str, Any]]:
    """What common practice says of the total cost, and how far off that is."""
    lines = []
    for name, evaluation in found.evaluations.items():
        best = own_estimate(found, name, estimator, "total")
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
                same = np.isclose(value, best.value, rtol=1e-12, atol=0)  # where nothing is acquired, but for rounding
                off = 0.0 if same else value - best.value
                line["difference"] = off
                line["relative"] = off / best.value if best.value else None
            lines.append(line)
    return lines


def _assumption(found: Comparison, origin: Origin) -> dict[str, Any]:
    tested = check_missingness(origin.data, origin.missingness)
    said = [text for e in found.evaluations.values() for text in e.assumption]
    return {
        "name": repr(origin.missingness),
        "words": assumption_words(origin.missingness, str(origin.data.problem.label)),
        "sentences": list(dict.fromkeys(said)),
        "standing": list(plain_assumptions()),
        "graph": str(origin.missingness.graph_on(origin.data)),
        "check": tested.to_dict(),
    }


def _prices(found: Comparison, data: Retrospective) -> dict[str, float]:
    """Price of every group, as the results have them."""
    out = dict(zip(data.problem.group_names, data.problem.prices.tolist(), strict=True))
    tariff = next(iter(found.evaluations.values())).tariff
    return out if tariff is None else out | dict(zip(tariff.groups, tariff.prices.tolist(), strict=True))


def _data(data: Retrospective, prices: dict[str, float]) -> dict[str, Any]:
    problem = data.problem
    patterns, index = unique_sets(data.recorded)
    count = np.bincount(index, minlength=len(patterns))
    names = np.array(problem.group_names, dtype=object)
    order = np.argsort(-count, kind="stable")
    shares = np.bincount(data.labels, minlength=len(data.classes)) / len(data)
    return {
        "rows": len(data),
        "complete": float(data.complete.mean()),
        "clusters": None if data.cluster is None else len(np.unique(data.cluster)),
        "label": str(problem.label),
        "classes": [{"label": str(c), "share": float(s)} for c, s in zip(data.classes, shares, strict=True)],
        "costs": data.costs.tolist(),
        "groups": [
            {
                "group": name,
                "columns": [str(c) for c in columns],
                "price": prices[name],
                "free": bool(problem.free[g]),
                "recorded": float(data.recorded[:, g].mean()),
                "in_part": data.partial.get(name, 0),
            }
            for g, (name, columns) in enumerate(problem.groups.items())
        ],
        "n_patterns": len(patterns),
        "patterns": [
            {
                "recorded": [str(n) for n in names[patterns[u]]],
                "rows": int(count[u]),
                "share": float(count[u] / len(data)),
            }
            for u in order[:_PATTERNS]
        ],
    }


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("numpy", "pandas", "scikit-learn")}
    return {"afape": import_module("afape").__version__, "python": platform.python_version(), **packages}
