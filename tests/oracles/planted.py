"""Generated worlds in which a wanted set is recorded by chance everywhere, or nowhere in a part of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import norm

import afape

KINDS = ("interval", "tail", "level", "category", "corner", "everywhere", "slanted")


class SoftPolicy:
    """Acquires groups in a fixed order, each with a probability that may depend on the free columns."""

    def __init__(self, seed, n_groups, stochastic):
        rng = np.random.default_rng([seed, 3])
        self.order = rng.permutation(np.arange(1, n_groups))
        self.stochastic = stochastic
        self.eager = rng.uniform(0.5, 0.95, n_groups)

    def probabilities(self, values, acquired):
        n, n_groups = acquired.shape
        out = np.zeros((n, n_groups + 1))
        left = np.ones(n)
        tilt = expit(values[:, 0])
        for g in self.order:
            p = np.where(acquired[:, g], 0.0, self.eager[g] * (0.5 + 0.5 * tilt) if self.stochastic else 1.0)
            out[:, g] = left * p
            left = left * (1 - p)
            if not self.stochastic:
                p_late = acquired[:, 1:].sum(axis=1) >= 2  # two groups are enough
                out[p_late, g] = 0.0
                left = np.where(p_late, 1.0, left)
        out[:, -1] = left
        return out


class Signs:
    """Predicts the sign of the sum of what it sees."""

    def predict(self, values, acquired):
        return (np.nansum(values[:, -acquired.shape[1] + 1 :], axis=1) > 0).astype(int)


@dataclass
class Planted:
    """A free group of several columns that missingness depends on, and costly groups.

    ``kind`` None is a healthy world: every set of groups has probability of at least 0.02 in every row. Otherwise
    ``required`` is recorded with probability ``small`` in the rows of a region.
    """

    seed: int
    kind: str | None = None
    n: int = 5000

    def __post_init__(self):
        key = [self.seed, 0 if self.kind is None else 1 + KINDS.index(self.kind)]
        rng = np.random.default_rng([*key, 5])  # of the world; rows have a generator of their own
        self.n_groups = int(rng.integers(4, 7))  # the free one included: 3 to 5 costly groups
        self.names = [f"g{i}" for i in range(1, self.n_groups)]
        self.prices = np.round(rng.uniform(0.5, 2.0, len(self.names)), 2)
        self.policy = SoftPolicy(self.seed, self.n_groups, stochastic=bool(rng.integers(2)))
        self.classifier = Signs()
        self.problem = afape.Problem(
            {"base": ["x", "z", "flag", "ward"], **{n: [n] for n in self.names}},
            dict(zip(self.names, self.prices.tolist(), strict=True)),
            "y",
            np.array([[0.0, 6.0], [9.0, 0.0]]),
        )
        self.missingness = afape.MAR(given=["base"])
        self.slope, self.level = rng.normal(size=(len(self.names), 2)), rng.normal(0.5, 1, len(self.names))
        self.required = np.zeros(self.n_groups, dtype=bool)
        self.first = self.policy.order[: int(rng.integers(1, 3))]  # a group, or a pair whose groups are fine alone
        self.required[self.first] = self.kind is not None
        self.small = float(rng.choice([0.0, 0.0005]))
        self.part, self.start, self.ward = rng.uniform(0.1, 0.6), rng.uniform(), int(rng.integers(4))
        rows = np.random.default_rng([*key, 6])
        self.complete, base = self.population(self.n, rows)
        self.region = self._region(*base)
        self.recorded = self._recorded(base[0], rows)
        self.data = self.complete.hide(self.recorded)

    def population(self, n, rng):
        """n complete rows, and what missingness depends on in them."""
        x, flag = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
        ward = rng.choice(4, p=[0.3, 0.3, 0.2, 0.2], size=n)
        costly = rng.normal(size=(n, len(self.names))) + 0.6 * x[:, :1]
        label = (costly.sum(axis=1) + x[:, 0] + rng.normal(size=n) > 0).astype(int)
        frame = pd.DataFrame({"x": x[:, 0], "z": x[:, 1], "flag": flag, "ward": [f"w{w}" for w in ward]})
        frame = frame.assign(**dict(zip(self.names, costly.T, strict=True)), y=label)
        return afape.Retrospective(frame, self.problem), (x, flag, ward)

    def _recorded(self, x, rng):
        n_costly = len(self.names)
        least = 0.02 ** (1 / n_costly)  # the product over all groups is at least 0.02
        p = least + (0.95 - least) * expit(self.level + x @ self.slope.T)
        recorded = np.column_stack([np.ones(self.n, bool), rng.random((self.n, n_costly)) < p])
        if self.kind is not None:
            hit = self.region & recorded[:, self.first].all(axis=1)
            share = p[:, self.first - 1].prod(axis=1)
            drop = hit & (rng.random(self.n) >= self.small / share)
            recorded[drop, rng.choice(self.first, size=int(drop.sum()))] = False
        return recorded

    def _region(self, x, flag, ward):
        part = self.part
        if self.kind is None:
            return np.zeros(self.n, dtype=bool)
        if self.kind == "interval":
            start = self.start * (1 - part)
            low, high = norm.ppf([start, start + part])
            return (x[:, 0] >= low) & (x[:, 0] < high)
        if self.kind == "tail":
            return x[:, 1] > norm.ppf(1 - part)
        if self.kind == "level":
            return flag == 1
        if self.kind == "category":
            return ward == self.ward
        if self.kind == "corner":
            return (x[:, 0] < norm.ppf(np.sqrt(part + 0.1))) & (flag == 0 if part > 0.3 else x[:, 1] > 0)
        if self.kind == "slanted":  # one side of a line through both columns, neither of which tells it alone
            angle = np.pi * (0.1 + 0.3 * self.start) + self.ward * np.pi / 2
            return x @ np.array([np.cos(angle), np.sin(angle)]) > norm.ppf(1 - part)
        return np.ones(self.n, dtype=bool)

    @property
    def name(self):
        return " + ".join(np.array(self.problem.group_names, dtype=object)[self.required])
