"""A problem as JSON, and in which points two of them differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import Problem

__all__ = ["differences", "problem_to_json"]


def problem_to_json(problem: Problem) -> dict[str, Any]:
    """Plain lists, with a representation of labels and levels that tells 1 from "1"."""
    return {
        "groups": [[name, list(columns)] for name, columns in problem.groups.items()],
        "prices": problem.prices.tolist(),
        "label": problem.label,
        "misclassification_cost": np.asarray(problem.misclassification_cost).tolist(),
        "classes": None if problem.classes is None else [_told(c) for c in problem.classes],
        "categories": {c: None if v is None else [_told(x) for x in v] for c, v in problem.categories.items()},
        "blank_means": {column: _told(value) for column, value in problem.blank_means.items()},
    }


def differences(stored: dict[str, Any], given: dict[str, Any]) -> list[str]:
    """What differs, one sentence per point."""
    return [
        f"{name}: {stored.get(name)!r} in the file, {given[name]!r} here"
        for name in given
        if stored.get(name) != given[name]
    ]


def _told(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)
