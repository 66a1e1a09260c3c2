"""The order of rows and groups and the units of columns change estimates by rounding only, if the propensity is known."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import afape
from afape.data.row_order import row_order
from afape.estimators.catalogue import METHODS

pytestmark = pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")  # small samples with heavy weights

GROUPS = {"u": ["u"], "b": ["b", "twin"], "c": ["c"], "d": ["step", "kind"]}  # u is free and always recorded
PRICES = {"u": 0.0, "b": 1.0, "c": 2.0, "d": 0.5}
NUMBERS = ["u", "b", "twin", "c", "step"]


def table(seed, n=160):
    """Numbers, steps and categories, rows that are alike, and gaps that depend on u and b."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5)) @ (np.eye(5) + 0.4)
    frame = pd.DataFrame({"u": x[:, 0], "b": x[:, 1], "twin": x[:, 2], "c": x[:, 3], "step": np.round(x[:, 4])})
    frame["kind"] = np.array(["p", "q", "r"])[rng.integers(3, size=n)]
    frame["y"] = (x[:, 1] + x[:, 3] * x[:, 0] + rng.normal(size=n) > 0).astype(int)
    recorded = rng.random((n, 3)) < np.column_stack([_share(x[:, 0]), _share(x[:, 1]), _share(x[:, 0])])
    for group, has in zip("bcd", recorded.T, strict=True):
        frame.loc[~has, GROUPS[group]] = None
    frame["who"] = rng.integers(n // 3, size=n)
    return frame.iloc[np.maximum(np.arange(n) - n // 8, 0)].reset_index(drop=True)  # some rows are of equal content


def _share(x):
    return 1 / (1 + np.exp(-0.8 * np.round(x, 9) - 1.2))


@dataclass
class Named:
    """Policy, classifier and propensity that find columns and groups by name, whatever their order, in their own units."""

    data: afape.Retrospective
    scale: dict[str, float]

    def value(self, values, name):
        return np.nan_to_num(values[:, list(self.data.columns).index(name)] / self.scale.get(name, 1.0))

    def place(self, group):
        return self.data.problem.group_names.index(group)

    def probabilities(self, values, acquired):
        u, b = self.value(values, "u"), self.value(values, "b")
        p = np.zeros((len(values), 5))
        for group, taste in {"b": 1 + u, "c": 0.5 - u + b, "d": 1 + 0 * u}.items():
            p[:, self.place(group)] = np.exp(np.clip(taste, -3, 3)) * ~acquired[:, self.place(group)]
        p[:, -1] = 1.0
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, values, acquired):
        b, c, u = (self.value(values, name) for name in "bcu")
        return (b + c * u > 1e-9).astype(int)

    def recorded(self, values, required):
        by = {"b": "u", "c": "b", "d": "u"}
        shares = [np.where(required[:, self.place(g)], _share(self.value(values, x)), 1.0) for g, x in by.items()]
        return np.prod(shares, axis=0)


@dataclass(frozen=True)
class Setting:
    """What to evaluate, apart from order and units."""

    estimators: tuple[str, ...]
    options: dict = field(default_factory=dict)
    cluster: str | None = None
    known: bool = True

    def run(self, frame, order="ubcd", scale=None):
        scale = scale or {}
        frame = frame.assign(**{name: frame[name] * factor for name, factor in scale.items()})
        problem = afape.Problem({g: GROUPS[g] for g in order}, {g: PRICES[g] for g in order}, "y", 5.0)
        data = afape.Retrospective(frame, problem, cluster=self.cluster)
        hybrid = any(METHODS[name].hybrid for name in self.estimators)
        assumed = afape.MNAR("u -> R_b\nb -> R_c\nu -> R_d") if hybrid else afape.MAR(["u"])
        world = Named(data, scale)
        result = afape.evaluate(
            data,
            world,
            world,
            missingness=assumed,
            estimators=list(self.estimators),
            propensity=afape.KnownPropensity(world.recorded) if self.known else None,
            **self.options,
        )
        return {
            name: [(e.value, e.std_error, e.bootstrap_std_error) for e in result[name].values()]
            if name in result
            else ["refused"]
            for name in self.estimators
        }


SEMI = tuple(name for name in METHODS if not METHODS[name].hybrid)
HYBRID = tuple(name for name in METHODS if METHODS[name].hybrid)
TABLES = {"estimators": ("mi",), "options": {"imputer": "matching", "n_imputations": 2}}
SETTINGS = {
    "semi-offline": Setting(SEMI, {"n_imputations": 2}),
    "hybrid": Setting(HYBRID),
    "clusters": Setting(SEMI, {"n_imputations": 2}, cluster="who"),
    "sampled walks": Setting(("ipw-semi", "eff-semi"), {"walk": afape.WalkOptions(max_states=0, n_trajectories=8)}),
    "bootstrap": Setting(("ipw-semi", "dm-semi"), {"bootstrap": 3}),
    "matching": Setting(**TABLES),
    "linear": Setting(("mi",), {"imputer": "linear", "n_imputations": 2}),
    "two halves": Setting(("drl-semi",), {"split": 0.5}),
    "learned": Setting(("ipw-semi", "drl-semi"), known=False),
}
every_setting = pytest.mark.parametrize("setting", SETTINGS.values(), ids=list(SETTINGS))


def test_every_estimator_is_tested():
    assert {*SEMI, *HYBRID} == set(METHODS)


def assert_alike(a, b):
    for name in a:
        assert_allclose(
            np.array(a[name], dtype=float), np.array(b[name], dtype=float), rtol=1e-8, atol=1e-10, err_msg=name
        )


@every_setting
def test_row_order(setting):
    frame = table(0)
    order = np.random.default_rng(0).permutation(len(frame))
    assert_alike(setting.run(frame), setting.run(frame.iloc[order].reset_index(drop=True)))


@every_setting
def test_group_order(setting):
    assert_alike(setting.run(table(1)), setting.run(table(1), "dcub"))


@every_setting
@pytest.mark.parametrize(
    "scale",
    [
        {"u": 2.0**20, "b": 2.0**-60, "twin": 2.0**70, "step": 8.0},
        {"u": 1.8, "b": 1e-9, "twin": 453.592, "c": 1e12, "step": 1 / 3},
    ],
    ids=["powers of two", "other factors"],
)
def test_units(setting, scale):
    assert_alike(setting.run(table(2)), setting.run(table(2), scale=scale))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 40), n_levels=st.integers(1, 4), clusters=st.integers(0, 6))
def test_places_are_a_permutation_that_moves_with_the_rows(seed, n, n_levels, clusters):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((n, 3)) < 0.2, np.nan, rng.integers(n_levels, size=(n, 3)))
    labels, cluster = rng.integers(2, size=n), rng.integers(clusters, size=n) if clusters else None
    place, unit = row_order(values.T, labels, cluster)
    assert sorted(place) == list(range(n))
    content = np.column_stack([values, labels])
    if cluster is None:
        assert (unit == place).all()
    else:
        assert set(unit) == set(range(len(np.unique(cluster))))
        assert len({*zip(unit, cluster, strict=True)}) == len(np.unique(cluster))
        assert (np.diff(unit[np.argsort(place)]) >= 0).all()  # rows of one cluster are neighbours
    order = rng.permutation(n)
    turned = row_order(values[order].T, labels[order], None if cluster is None else (7 * cluster[order]) % 11)
    assert_allclose(content[np.argsort(place)], content[order][np.argsort(turned[0])])
    sizes = np.bincount(unit[np.argsort(place)])
    assert (sizes == np.bincount(turned[1])).all()
