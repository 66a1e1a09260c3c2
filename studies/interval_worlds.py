"""Worlds of weighted means: rows that are recorded with known probability, and their costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from afape._arrays import Floats, Ints

__all__ = ["SINGLES", "Rows", "World", "pairs", "rows_of"]

_Limits = tuple[float, float]


class World(NamedTuple):
    """Probability that a row is recorded, its cost, and the possible costs."""

    probability: Floats
    cost: Floats
    limits: _Limits


class Rows(NamedTuple):
    """Weights and costs of the rows of one policy."""

    weight: Floats
    cost: Floats
    limits: _Limits


_Generator = np.random.Generator


def _errors(rng: _Generator, rate: Floats | float, n: int) -> Floats:
    """Return cost 10 for an error, which happens with this rate."""
    return np.where(rng.random(n) < rate, 10.0, 0.0)


def _light(rate: float) -> Callable[[_Generator, int], World]:
    return lambda rng, n: World(0.5 + 0.4 * rng.random(n), _errors(rng, rate, n), (0.0, 10.0))


def _groups(first: float, last: float, price: float) -> Callable[[_Generator, int], World]:
    """Up to 20 groups, each recorded with probability 0.8; errors are rarer or more frequent after many groups."""

    def world(rng: _Generator, n: int) -> World:
        wanted = rng.integers(1, 21, n)
        cost = price * wanted + _errors(rng, first + (last - first) * wanted / 20, n)
        return World(0.8 ** wanted.astype(float), cost, (0.0, 20 * price + 10))

    return world


def _logistic(slope: float, effect: float) -> Callable[[_Generator, int], World]:
    def world(rng: _Generator, n: int) -> World:
        x = rng.normal(size=n)
        return World(expit(slope * x - 0.5), _errors(rng, expit(-2 - effect * x), n), (0.0, 10.0))

    return world


def _two_kinds(rng: _Generator, n: int) -> World:
    rare = rng.random(n) < 0.1
    return World(np.where(rare, 0.02, 0.8), _errors(rng, np.where(rare, 0.3, 0.05), n), (0.0, 10.0))


def _continuous(rng: _Generator, n: int) -> World:
    x = rng.normal(size=n)
    return World(expit(1.5 * x - 0.5), np.clip(8 - 2 * x + 2 * rng.normal(size=n), 0, 30), (0.0, 30.0))


def _nearly_constant(rng: _Generator, n: int) -> World:
    return World(0.5 + 0.4 * rng.random(n), np.where(rng.random(n) < 0.97, 1.0, 2.0), (0.0, 4.0))


SINGLES: dict[str, Callable[[_Generator, int], World]] = {
    "light, errors 40 %": _light(0.4),
    "light, errors 10 %": _light(0.1),
    "light, errors 1 %": _light(0.01),
    "light, nearly constant": _nearly_constant,
    "20 groups, errors 5 to 15 %": _groups(0.05, 0.15, 0.1),
    "20 groups, errors 2 %": _groups(0.02, 0.02, 0.0),
    "20 groups, errors 30 to 10 %": _groups(0.3, 0.1, 0.5),
    "logistic, slope 0.7": _logistic(0.7, 0.5),
    "logistic, slope 1.5, costs rise": _logistic(1.5, 1.0),
    "logistic, slope 1.5, costs fall": _logistic(1.5, -0.5),
    "logistic, continuous costs": _continuous,
    "2 % recorded in a tenth": _two_kinds,
}


def rows_of(world: World, rng: _Generator) -> Rows:
    """Hide rows and return the weights."""
    recorded = rng.random(len(world.cost)) < world.probability
    return Rows(recorded / world.probability, np.where(recorded, world.cost, 0.0), world.limits)


def pairs(rng: _Generator, n: int) -> Iterator[tuple[str, Ints, Floats, Ints, Floats, tuple[float, float]]]:
    """Yield two policies on the same rows: groups wanted and costs of each, and limits that hold for both costs.

    The groups are acquired in one order, so recording of the larger set implies that of the smaller.
    """
    wanted = rng.integers(1, 21, n)
    first, u = np.minimum(wanted, 3), rng.random(n)
    better = 10.0 * ((u < 0.08) | (rng.random(n) < 0.03))
    yield "20 groups and 3", wanted, better + 0.1 * wanted, first, 10.0 * (u < 0.25) + 0.1 * first, (0.0, 12.0)
    shared, other = _errors(rng, 0.05, n), _errors(rng, 0.05, n)
    yield (
        "20 groups and 3, equal cost",
        wanted,
        shared,
        first,
        np.where(rng.random(n) < 0.5, shared, other),
        (0.0, 10.0),
    )
    many = rng.integers(1, 16, n)
    more = np.where(rng.random(n) < 0.08, many + 3, many)
    one = _errors(rng, 0.1, n)
    two = np.where(more == many, one, _errors(rng, 0.02, n)) + 0.1 * more
    yield "8 % of the runs differ", many, one + 0.1 * many, more, two, (0.0, 12.0)
    yield (
        "20 groups and none",
        wanted,
        _errors(rng, 0.1, n) + 0.1 * wanted,
        0 * wanted,
        _errors(rng, 0.3, n),
        (0.0, 12.0),
    )
    few, some = rng.integers(0, 3, n), rng.integers(0, 3, n)
    for rate in (0.15, 0.01):
        e = _errors(rng, rate, n)
        f = np.where(rng.random(n) < 0.6, e, _errors(rng, 1.5 * rate, n))
        yield f"up to 2 groups, errors {100 * rate:g} %", few, e, some, f, (0.0, 10.0)
