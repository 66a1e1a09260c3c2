"""Completed tables: any imputer, shared by policies, and refused where they are no completion of the records."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from small_law import POLICIES, Sums, draw, population, run
from worlds import Zero

import afape
from afape.imputation.imputations import Imputations


@pytest.fixture(scope="module")
def law():
    return population()


class Own:
    """Draws a recorded row at random, then spoils the table."""

    def __init__(self, spoil=lambda table, data: table, n_tables=10):
        self.spoil, self.n_tables = spoil, n_tables

    def impute(self, data, n_imputations, random_state):
        rng = np.random.default_rng(random_state)
        for _ in range(min(n_imputations, self.n_tables)):
            donors = data.values[rng.choice(np.flatnonzero(data.complete), size=len(data))]
            yield self.spoil(np.where(np.isnan(data.values), donors, data.values), data)


def test_tables_are_drawn_once_and_keep_what_is_recorded(law):
    data, _ = draw(law, 300, 9)
    imputations = Imputations(data, None, 3, random_state=0)
    first, again = list(imputations.draw()), list(imputations.draw())
    assert len(first) == len(imputations) == 3
    for table, other in zip(first, again, strict=True):
        assert_allclose(table, other, rtol=0)
        assert_allclose(table[~np.isnan(data.values)], data.values[~np.isnan(data.values)], rtol=0)
        assert np.isfinite(table).all()
    assert not np.allclose(first[0], first[1])
    assert imputations.draw().identity == Imputations(data, None, 3, random_state=0).draw().identity
    assert imputations.draw().identity != Imputations(data, None, 3, random_state=1).draw().identity


class Restless(Own):
    """Draws other tables at every call, whatever the seed."""

    rng = np.random.default_rng(0)

    def impute(self, data, n_imputations, random_state):
        return super().impute(data, n_imputations, self.rng.integers(2**31))


def test_compared_policies_are_run_on_the_same_tables(law):
    data, _ = draw(law, 400, 10)
    found = afape.compare(
        data, POLICIES, Sums(), missingness=afape.MAR(given=["a"]), estimators=["mi"], imputer=Restless()
    )
    a, b = (found[name]["mi"]["total"] for name in ("half", "most"))
    assert (a - b).std_error > 0  # tables that differ are not paired
    alone = run(data, "half", imputer=Restless())["mi"]["total"]
    with pytest.raises(ValueError, match="same completed tables"):
        a - alone


@pytest.mark.slow
def test_any_imputer_will_do(law):
    data, _ = draw(law, 800, 7)
    plain = run(data, "half", imputer=Own())
    assert np.isfinite(plain["mi"]["total"].std_error)
    for name in ("trees", "linear", "matching"):
        result = run(data, "half", imputer=name, n_imputations=3)
        assert len(result["mi"]["total"].values) == 3
    assert run(data, "half", imputer="trees")["mi"]["total"].value == run(data, "half")["mi"]["total"].value
    sklearn = run(data, "half", imputer=IterativeImputer(sample_posterior=True, max_iter=3, tol=1e9), n_imputations=3)
    assert abs(sklearn["mi"]["total"].value - run(data, "half")["mi"]["total"].value) < 0.5
    assert sklearn["mi"]["total"].between > 0


def changed(table, data):
    table[np.flatnonzero(data.recorded[:, 2])[0], 6] += 0.5
    return table


def torn(table, data):
    table[np.flatnonzero(~data.recorded[:, 1])[0], 3:6] = 0.3, 0.3, 0.4
    return table


def hollow(table, data):
    table[3, 6] = np.nan
    return table


BAD = {
    "gaps": (Own(hollow), ValueError, "complete, finite tables, but column 'c' still has gaps"),
    "changed": (Own(changed), ValueError, "leave recorded values as they are, but changed column 'c'"),
    "shape": (
        Own(lambda t, d: t[:, :3]),
        ValueError,
        r"tables of shape \(300, 7\), rows by columns, but gave \(300, 3\)",
    ),
    "category": (Own(torn), ValueError, r"one level, but the columns \['b=k', 'b=l', 'b=m'\]"),
    "too few": (Own(n_tables=4), ValueError, "must give 10 tables, but gave 4"),
    "no draw": (
        Own(lambda t, d: np.where(np.isnan(d.values), [1, 0, 0, 1, 0, 0, 1], d.values)),
        ValueError,
        "tables are equal",
    ),
    "name": (
        "forest",
        ValueError,
        r"'imputer' must be one of \['trees', 'linear', 'matching'\] or an object, but is 'forest'",
    ),
    "class": (afape.ChainedImputer, TypeError, "must be an instance, but is the class ChainedImputer"),
    "number": (3, TypeError, "must be None, one of .*, not int"),
    "single": (SimpleImputer(), ValueError, r"draw at random, but SimpleImputer\(\) gives the same values"),
    "no posterior": (IterativeImputer(), ValueError, r"sample_posterior=True\), or the default"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_imputers_are_refused(law, what):
    imputer, error, match = BAD[what]
    data, _ = draw(law, 300, 8)
    with pytest.raises(error, match=match):
        run(data, imputer=imputer)


@pytest.mark.parametrize("n", [1, 0, 2.5, True, "10"])
def test_too_few_imputations_are_refused(law, n):
    with pytest.raises(ValueError, match="'n_imputations' must be a whole number of at least 2"):
        run(law, n_imputations=n)


def test_a_group_that_is_never_recorded_leaves_mi_without_answer(law):
    data = law.hide(np.tile([True, True, False], (len(law), 1)))
    with pytest.warns(afape.warnings.AfapeWarning):
        result = run(data, estimators=["mi", "ipw-semi"])
    assert "mi" not in result
    with pytest.raises(afape.NotEstimableError, match="no row has 'c' recorded"):
        result["mi"]
    with pytest.raises(ValueError, match="must record every group somewhere, but 'c' is recorded in no row"):
        next(iter(afape.ChainedImputer().impute(data, 2, 0)))


def test_equal_tables_are_fine_where_the_records_leave_no_choice():
    """All recorded values are the same, so every imputation is."""
    frame = pd.DataFrame({"a": np.arange(40.0), "b": [1.0] * 30 + [np.nan] * 10, "y": np.arange(40) % 2})
    data = afape.Retrospective(frame, afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 5.0))
    result = afape.evaluate(
        data, afape.AcquireAll(), Zero(), missingness=afape.MAR(["a"]), estimators=["mi"], n_imputations=3
    )
    assert_allclose(result["mi"]["total"].value, 3.5)
    assert result["mi"]["total"].between == 0
