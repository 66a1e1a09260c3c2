"""Sites that exchange summaries and no rows."""

import block_files
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2

import afape

POLICIES = {name: block_files.POLICIES[name] for name in ("all", "some")}


def records(seed, n=900, shift=0.0):
    frame = block_files.frame(n, seed=seed)
    frame["y"] = np.where(np.random.default_rng(seed).random(n) < shift, 1 - frame["y"], frame["y"])  # more errors
    return afape.Retrospective(frame, block_files.PROBLEM)


def compared(data, policies=POLICIES, **options):
    settings = {"missingness": block_files.MAR, "estimators": ["ipw-semi", "drl-semi"]} | options
    return afape.compare(data, policies, block_files.Above(), **settings)


@pytest.fixture(scope="module")
def results():
    return {"north": compared(records(1)), "south": compared(records(2, n=1500))}


def test_the_pooled_answer_weighs_sites_by_their_cases(results, tmp_path):
    paths = {}
    for name, result in results.items():
        paths[name] = tmp_path / f"{name}.summary"
        afape.Summary.of(result).save(paths[name])
    found = afape.combine(paths)
    each = [r["some"]["drl-semi"]["total"] for r in results.values()]
    values, errors = np.array([(e.value, e.std_error) for e in each]).T
    shares = np.array([900, 1500]) / 2400
    total = found.pooled["some"]["drl-semi"]["total"]
    assert_allclose([total.value, total.std_error], [shares @ values, np.sqrt(shares**2 @ errors**2)], rtol=1e-9)
    weighed = afape.combine(results, cases={"north": 3.0, "south": 1.0}).pooled["some"]["drl-semi"]["total"]
    assert_allclose(weighed.value, np.array([0.75, 0.25]) @ values, rtol=1e-12)
    lines = found.table.query("policy == 'some' and estimator == 'drl-semi' and target == 'total'")
    assert lines["site"].tolist() == ["north", "south", "all"]
    assert_allclose(lines["estimate"], [*values, total.value], rtol=1e-12)
    assert "2 sites (north 900 rows, south 1,500 rows)" in repr(found)


def test_heterogeneity_is_cochrans_test(results):
    table = afape.combine(results).heterogeneity("drl-semi").set_index(["policy", "minus"])
    for key, of in (
        (("some", ""), lambda r: r["some"]["drl-semi"]["total"]),
        (("all", "some"), lambda r: r["all"]["drl-semi"]["total"] - r["some"]["drl-semi"]["total"]),
    ):
        a, b = (of(r) for r in results.values())
        q = (a.value - b.value) ** 2 / (a.std_error**2 + b.std_error**2)
        assert_allclose(table.loc[key, ["Q", "p_value"]].astype(float), [q, chi2.sf(q, 1)], rtol=1e-6)
    assert (table["degrees"] == 1).all()


def test_sites_that_differ_are_told_on_the_page(tmp_path):
    found = afape.combine({"north": compared(records(1)), "south": compared(records(2, shift=0.35))})
    table = found.heterogeneity()
    assert table.loc[0, "p_value"] < 1e-6
    assert table.loc[0, "i_squared"] > 0.9
    found.to_html(tmp_path / "sites.html")
    page = (tmp_path / "sites.html").read_text()
    assert "The cost of “all” differs between sites" in page
    assert "all sites" in page
    assert {"sites", "table", "heterogeneity", "pooled"} == set(found.to_dict())


@pytest.mark.slow
def test_equal_sites_are_rejected_at_the_level_of_the_test():
    """Cochran's test in 20 pairs of samples of one world: p-values below 0.1 in about 10 %, so at most 7 of 20 (p < 0.001)."""
    policies = {"some": block_files.POLICIES["some"]}
    p_values = []
    for seed in range(20):
        parts = records(100 + seed, n=500).split([0.5, 0.5])
        both = {name: compared(part, policies, estimators=["ipw-semi"]) for name, part in zip("ab", parts, strict=True)}
        p_values.append(afape.combine(both).heterogeneity("ipw-semi")["p_value"].iloc[0])
    assert (np.array(p_values) < 0.1).sum() <= 7
    assert 0.2 < np.mean(p_values) < 0.8


def test_sites_without_an_answer_leave_none_for_all(results):
    """One hospital cannot stand for another, so no estimator of one site alone is pooled."""
    missing = compared(records(3, n=90), estimators=["ipw-semi", "drl-semi", "cc"])
    summary = afape.Summary.of(missing, min_cell=40)
    assert summary.about["policies"]["all"]["answers"]["cc"]["reason"].startswith("it has fewer than 40 effective rows")
    found = afape.combine({"a": summary, "b": compared(records(1), estimators=["ipw-semi", "drl-semi", "cc"])})
    assert "cc" not in found.pooled["all"]
    assert "ipw-semi" in found.pooled["some"]


def test_a_change_of_prices_and_differences_work_without_rows(results):
    pooled = afape.combine(results).pooled
    priced = pooled.reprice({"b": 4.0})
    again = {name: r.reprice({"b": 4.0}) for name, r in results.items()}
    shares = np.array([900, 1500]) / 2400
    expected = shares @ [r["some"]["drl-semi"]["total"].value for r in again.values()]
    assert_allclose(priced["some"]["drl-semi"]["total"].value, expected, rtol=1e-12)
    assert np.isfinite(pooled.differences()["std_error"]).all()


def test_sites_that_do_not_fit_are_refused(results, tmp_path):
    other = afape.Problem({g: [g] for g in "abc"}, {"b": 7.0, "c": 2.0}, "y", 10.0)
    dearer = compared(afape.Retrospective(block_files.frame(), other))
    for sites, message in (
        ({"a": results["north"]}, "at least two sites"),
        ({"a": results["north"], "b": dearer}, "'sites' must have one problem, but 'a' and 'b' differ"),
        ({"a": results["north"], "b": compared(records(2), confidence=0.9)}, "must have one confidence"),
        ({"a": results["north"], "b": compared(records(2), missingness=afape.MCAR())}, "must have one assumption"),
        ({"a": results["north"], "b": compared(records(2), {"all": POLICIES["all"]})}, "must have the same policies"),
        ({"a": results["north"], "b": 3}, r"Make a summary with afape.Summary.of\(result\)"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            afape.combine(sites)
    for cases in ({"north": 1.0}, {"north": 1.0, "south": 0.0}):
        with pytest.raises(ValueError, match="'cases' must"):
            afape.combine(results, cases=cases)


def test_sizes_of_cells_are_checked(results):
    for wrong in (-1, 2.5, "ten"):
        with pytest.raises((TypeError, ValueError), match="'min_cell' must be"):
            afape.Summary.of(results["north"], min_cell=wrong)
    with pytest.raises(TypeError, match="'result' must be"):
        afape.Summary.of(3)


def test_assumptions_survive_a_summary(tmp_path):
    data = records(4)
    graph = afape.MNAR(graph="a -> R_b, R_c; b -> R_c")
    results = {
        name: afape.Summary.of(compared(part, estimators=None, missingness=graph))
        for name, part in zip("xy", data.split([0.5, 0.5]), strict=True)
    }
    found = afape.combine(results)
    assert isinstance(found.pooled["some"].origin.missingness, afape.MNAR)
    assert "drl-semi-miss" in found.pooled["all"].answers
    pd.testing.assert_frame_equal(found.pooled.table, afape.combine(results).pooled.table)
