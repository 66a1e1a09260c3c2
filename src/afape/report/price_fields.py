"""What the page needs to update costs when prices change: rates of acquisitions and errors, and their covariance."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations, combinations_with_replacement
from math import factorial, isfinite
from typing import Any

import numpy as np

from .._arrays import Floats, cluster_sums
from ..estimators.differences import covariance_of
from ..estimators.estimate import Estimate
from ..estimators.unseen import ENOUGH_ROWS, LIGHT
from ..results.comparison import Comparison
from ..results.evaluation import NotEstimableError
from ..results.parts import Parts
from ..walk.tariff import Tariff

__all__ = ["prices_of"]

_APART = 3  # with at most this many classes, every error has its own field even if all cost the same
_MOST_FIELDS = 10  # with at most this many fields, fourth moments give the degrees of freedom at any price
_MOST_PAIRS = 15  # with at most this many pairs of policies, likewise
_FOREVER = 1e9  # stands for infinite degrees of freedom, which JSON cannot hold


def prices_of(found: Comparison, estimator: str) -> dict[str, Any] | None:
    r"""Return rates, covariance and prices of all policies that have a point estimate.

    A total is linear in the prices x of the fields, :math:`J(x) = \sum_f x_f r_f`. The rate r of a field is how often a group
    is acquired, or an error is made. So :math:`se^2(x) = x^\top \Sigma x` with the joint covariance of the rates of all
    policies. The degrees of freedom :math:`(\sum_i \phi_i^2)^2 / \sum_i \phi_i^4` follow from the fourth moments of the
    influence values.

    Returns
    -------
    dict or None
        None if the estimator has no parts, or no standard errors for them.
    """
    try:
        parts = found._parts(estimator)
        points = [name for name, e in found.estimates(estimator).items() if isfinite(e.value)]
    except (KeyError, ValueError):
        return None
    tariff = next(iter(parts.values())).tariff
    fields, columns = _fields(tariff)
    if [*parts] != points or not fields:
        return None
    rates = {name: [p.combine(column) for column in columns] for name, p in parts.items()}
    try:
        covariance = covariance_of([e for each in rates.values() for e in each])
    except ValueError:
        return None
    if not np.isfinite(covariance).all():
        return None
    order, rows = list(found.evaluations), found.effective_rows(estimator)
    return {
        "confidence": found.confidence,
        "fields": fields,
        "cells": _cells(tariff, fields, columns),
        "policies": [
            {**_policy(name, order.index(name), rates[name], parts[name]), "enough": not rows[name] < ENOUGH_ROWS}
            for name in parts
        ],
        "covariance": [[float(f"{v:.12g}") for v in line] for line in covariance],
        "light": LIGHT,
        "too_few": found.too_few(estimator),
        "pairs": _pairs(found, estimator, list(rates.values())),
        "left_out": [name for name in order if name not in parts],
    }


def _fields(tariff: Tariff) -> tuple[list[dict[str, Any]], list[Floats]]:
    """Return the fields, and for each the indicator (P,) of the parts that it prices."""
    classes, n_groups = tariff.classes, len(tariff.groups)
    width = n_groups + len(classes) ** 2
    fields: list[dict[str, Any]] = []
    columns: list[Floats] = []

    def add(kind: str, name: str, base: float, places: Any) -> None:
        fields.append({"index": len(fields), "kind": kind, "name": name, "base": float(base)})
        column = np.zeros(width)
        column[places] = 1.0
        columns.append(column)

    for g, name in enumerate(tariff.groups):
        add("price", name, tariff.prices[g], g)
    wrong = ~np.eye(len(classes), dtype=bool)
    if len(classes) > _APART and len(set(tariff.costs[wrong].tolist())) == 1:
        add("error", "any wrong label", tariff.costs[0, 1], n_groups + np.flatnonzero(wrong.ravel()))
    else:
        for y, k in np.argwhere(wrong):
            name = f"“{classes[k]}” predicted where “{classes[y]}” is true"
            add("error", name, tariff.costs[y, k], n_groups + y * len(classes) + k)
    for y in np.flatnonzero(np.diag(tariff.costs) != 0):
        add("error", f"“{classes[y]}” predicted correctly", tariff.costs[y, y], n_groups + y * len(classes) + y)
    return fields, columns


def _cells(tariff: Tariff, fields: list[dict[str, Any]], columns: list[Floats]) -> list[dict[str, Any]]:
    """Fields of the possible costs at the end of a run; None stands for a right label that costs nothing.

    If the shares of the labels are known, one entry per label has its share and its fields; else there is one entry for all.
    """
    errors = [f["index"] for f in fields if f["kind"] == "error"]
    right = np.diag(tariff.costs) == 0
    if tariff.shares is None:
        return [{"share": 1.0, "fields": [*([None] if right.any() else []), *errors]}]
    k, start = len(tariff.classes), len(tariff.groups)
    return [
        {
            "share": float(share),
            "fields": [
                *([None] if right[y] else []),
                *(i for i in errors if columns[i][start + y * k : start + (y + 1) * k].any()),
            ],
        }
        for y, share in enumerate(tariff.shares)
    ]


def _policy(name: str, position: int, rates: list[Estimate], parts: Parts) -> dict[str, Any]:
    total = parts.found.priced(parts.tariff).estimate("total")
    degrees = total.degrees_of_freedom
    return {
        "name": name,
        "policy": position,
        "rates": [e.value for e in rates],
        "degrees_of_freedom": degrees if isfinite(degrees) else _FOREVER,
        "moments": _moments(rates),
        "concentration": total.concentration,
        "certain": parts.tariff.fixed and all(e.limits[0] == e.limits[1] for e in parts.rates.values()),
    }


def _moments(rates: list[Estimate]) -> dict[str, Any] | None:
    """Return sums of products of four influence values, one per combination of fields, times its number of orders."""
    influences = [cluster_sums(e.influence, e.cluster) for e in rates if e.influence is not None]
    if len(influences) < len(rates) or len(rates) > _MOST_FIELDS or type(rates[0]) is not Estimate:
        return None
    phi, n = np.array(influences), len(rates[0].influence)  # type: ignore[arg-type]
    m = phi.shape[1]
    pairs = {(i, j): phi[i] * phi[j] for i, j in combinations_with_replacement(range(len(phi)), 2)}
    terms = []
    for places in combinations_with_replacement(range(len(phi)), 4):
        times = factorial(4)
        for place in set(places):
            times //= factorial(places.count(place))
        i, j, k, last = places
        terms.append([*places, times * float(pairs[i, j] @ pairs[k, last])])
    return {"scale": m / max(m - 1, 1) / n**2, "terms": terms}


def _pairs(found: Comparison, estimator: str, rates: list[list[Estimate]]) -> list[dict[str, Any]]:
    """Degrees of freedom of all differences: at the original prices, and the moments that give them at other prices."""
    both = [[*a, *b] for a, b in combinations(rates, 2)]
    if not both:
        return []
    degrees = np.full(len(both), _FOREVER)
    with suppress(ValueError, NotEstimableError):
        known = found.differences(estimator)["degrees_of_freedom"].to_numpy(dtype=float)
        degrees = np.where(np.isfinite(known), known, _FOREVER)
    few = len(both) <= _MOST_PAIRS
    return [
        {"degrees_of_freedom": float(d), "moments": _moments(each) if few else None}
        for d, each in zip(degrees, both, strict=True)
    ]
