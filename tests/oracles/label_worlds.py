"""Worlds of three binary groups and a label, all with gaps, enumerated: every row, every pattern, weighted by its probability."""

from itertools import product

import numpy as np
import pandas as pd

import afape

PRICES = {"b": 1.0, "c": 2.0}
COSTS = np.array([[0.0, 4.0, 7.0], [5.0, 1.0, 3.0], [8.0, 2.0, 0.0]])


class Law:
    """Random laws of binary a, b, c, of a label with three classes, and of the indicators of b, c and the label."""

    def __init__(self, seed, kind="MAR"):
        rng = np.random.default_rng(seed)
        self.values = np.array(list(product((0, 1), repeat=3)))
        self.share = rng.dirichlet(np.ones(8))
        self.label = rng.dirichlet(np.ones(3), size=8)
        self.first, self.second = rng.uniform(0.2, 0.8, (2, 2, 3))
        self.answer = rng.integers(0, 3, size=(2, 3, 3))
        self.kind, self.b, self.c, self.y = kind, *(rng.uniform(0.3, 0.9, s) for s in ((2,), (2, 2), (2, 2, 2)))

    def pattern(self, x, r):
        """P(R = r | x): each indicator depends on a, or (MNAR) on b or c, and on earlier indicators."""
        p = self.b[x[0]], self.c[x[0], r[0]], self.y[x[0], r[0], r[1]]
        if self.kind == "chain":  # a -> R_b; b -> R_c; b -> R_y
            p = self.b[x[0]], self.c[x[1], 0], self.y[x[1], 0, 0]
        return float(np.prod([q if one else 1 - q for q, one in zip(p, r, strict=True)]))

    def frame(self):
        lines = []
        for (x, mass), label in zip(zip(self.values, self.share, strict=True), self.label, strict=True):
            for k, r in product(range(3), product((0, 1), repeat=3)):
                seen = (float(v) if one else np.nan for v, one in zip((*x[1:], k), r, strict=True))
                lines.append((float(x[0]), *seen, mass * label[k] * self.pattern(x, r)))
        return pd.DataFrame(lines, columns=["a", "b", "c", "y", "w"])

    def records(self):
        problem = afape.Problem({g: [g] for g in "abc"}, PRICES, "y", COSTS, [0, 1, 2])
        return afape.Retrospective(self.frame(), problem, missing_labels="weigh", weight="w")

    def known(self, values, required):
        """P(R >= required | a); the label is the last column of ``required``."""
        found = {
            (a, *need): sum(
                self.pattern((a, 0, 0), r) for r in product((0, 1), repeat=3) if (np.array(r) >= need).all()
            )
            for a in (0, 1)
            for need in product((0, 1), repeat=3)
        }
        return np.array([found[(int(v[0]), *map(int, r[1:]))] for v, r in zip(values, required, strict=True)])

    def probabilities(self, values, acquired):
        """A policy: acquires b or stops, then c or stops; it depends on what it sees."""
        p = np.zeros((len(values), 4))
        seen = np.nan_to_num(values, nan=2).astype(int)
        p[:, 1] = np.where(acquired[:, 1], 0, self.first[seen[:, 0], seen[:, 2]])
        p[:, 2] = np.where(acquired[:, 2], 0, (1 - p[:, 1]) * self.second[seen[:, 0], seen[:, 1]])
        p[:, 3] = 1 - p.sum(axis=1)
        return p

    def predict(self, values, acquired):
        seen = np.nan_to_num(values, nan=2).astype(int)
        return self.answer[0, seen[:, 1], seen[:, 2]]

    def true_costs(self):
        """Acquisition and misclassification cost, over every trajectory."""
        total = np.zeros(2)
        for x, mass, label in zip(self.values, self.share, self.label, strict=True):
            total += mass * self._cost(x, label, np.array([True, False, False]))
        return total

    def _cost(self, x, label, acquired):
        seen = np.where(acquired, x, np.nan)[None]
        p = self.probabilities(seen, acquired[None])[0]
        out = p[3] * np.array([0.0, label @ COSTS[:, self.predict(seen, acquired[None])[0]]])
        for g, price in ((1, 1.0), (2, 2.0)):
            if p[g] > 0:
                more = acquired.copy()
                more[g] = True
                out = out + p[g] * (self._cost(x, label, more) + np.array([price, 0.0]))
        return out

    def evaluated(self, estimators, missingness=None, **options):
        data, missingness = self.records(), missingness or afape.MAR(given=["a"])
        return afape.evaluate(data, self, self, missingness=missingness, estimators=estimators, n_folds=1, **options)


class Rooted(Law):
    """The free group a has gaps too; all indicators depend on each other and on nothing else."""

    def __init__(self, seed):
        super().__init__(seed)
        self.joint = np.random.default_rng([seed, 1]).dirichlet(np.ones(16)).reshape(2, 2, 2, 2)

    def frame(self):
        lines = []
        for (x, mass), label in zip(zip(self.values, self.share, strict=True), self.label, strict=True):
            for k, r in product(range(3), product((0, 1), repeat=4)):
                seen = (float(v) if one else np.nan for v, one in zip((*x, k), r, strict=True))
                lines.append((*seen, mass * label[k] * self.joint[r]))
        return pd.DataFrame(lines, columns=["a", "b", "c", "y", "w"])

    def known(self, values, required):
        """P(R >= required), of a, b, c and the label."""
        return np.array([self.joint[tuple(slice(1, 2) if one else slice(None) for one in r)].sum() for r in required])


class Chain(Law):
    """a -> R_b; b -> R_c; b -> R_y. Known propensities use a and b."""

    graph = "a -> R_b; b -> R_c; b -> R_y"

    def __init__(self, seed):
        super().__init__(seed, "chain")

    def known(self, values, required):
        """P(R >= required | a, b), of sets with b."""
        return np.array(
            [
                sum(
                    self.pattern((int(v[0]), int(v[1]), 0), r)
                    for r in product((0, 1), repeat=3)
                    if (np.array(r) >= need[1:]).all()
                )
                for v, need in zip(values, required, strict=True)
            ]
        )

    def beyond_wrong(self, values, required):
        """Right for b, which the others depend on, and wrong beyond."""
        return self.b[values[:, 0].astype(int)] * 0.8 ** required[:, 2] * 0.6 ** required[:, 3]


class RootedChain(Chain):
    """The free group a has gaps too, at random."""

    graph = "R_a; a -> R_b; b -> R_c; b -> R_y"

    def frame(self):
        table = super().frame()
        return pd.concat([table.assign(w=0.7 * table["w"]), table.assign(a=np.nan, w=0.3 * table["w"])])

    def known(self, values, required):
        return 0.7 * super().known(values, required)

    def beyond_wrong(self, values, required):
        return 0.7 * super().beyond_wrong(values, required)


class ByLabel(Law):
    """y -> R_b; a -> R_c; a -> R_y: what the label decides about is known where the label is recorded."""

    graph = "y -> R_b; a -> R_c; a -> R_y"

    def __init__(self, seed):
        super().__init__(seed)
        self.of_label = np.random.default_rng([seed, 2]).uniform(0.3, 0.9, 3)

    def frame(self):
        lines = []
        for (x, mass), label in zip(zip(self.values, self.share, strict=True), self.label, strict=True):
            for k, r in product(range(3), product((0, 1), repeat=3)):
                seen = (float(v) if one else np.nan for v, one in zip((*x[1:], k), r, strict=True))
                p = (self.of_label[k], self.c[x[0], 0], self.y[x[0], 0, 0])
                share = np.prod([q if one else 1 - q for q, one in zip(p, r, strict=True)])
                lines.append((float(x[0]), *seen, mass * label[k] * share))
        return pd.DataFrame(lines, columns=["a", "b", "c", "y", "w"])

    def known(self, values, required, labels):
        """P(R >= required | a, y), of sets with the label."""
        assert (labels >= 0).all()
        a = values[:, 0].astype(int)
        p = np.column_stack([self.of_label[labels], self.c[a, 0], self.y[a, 0, 0]])
        return np.where(required[:, 1:], p, 1.0).prod(axis=1)
