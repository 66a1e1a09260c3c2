"""Estimates summed over blocks: the covariance of the influence values, without the rows."""

import block_files
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.tree import DecisionTreeRegressor

import afape
from afape.blocks.combining import Blocks, combined
from afape.blocks.summary import Summary
from afape.estimators.blocks import compressed, roots_of_rows

NUMBERS = ["estimate", "std_error", "lower", "upper", "degrees_of_freedom", "ess", "normalizer"]


@pytest.fixture(scope="module")
def data():
    return afape.Retrospective(block_files.frame(), block_files.PROBLEM, cluster="patient")


def compared(data, **options):
    settings = {"missingness": block_files.MAR, "estimators": block_files.ESTIMATORS} | options
    return afape.compare(data, block_files.POLICIES, block_files.Above(), **settings)


def joined(results, cases=None):
    """Combine results as if their rows were blocks."""
    summaries = [Summary.unpacked(Summary.of(r, 0).packed(), "memory") for r in results]
    sizes = np.array([len(s) for s in summaries] if cases is None else cases, dtype=float)
    return combined(Blocks(summaries, sizes, "test"), block_files.MAR, 0, ())


@pytest.fixture(scope="module")
def whole(data):
    return compared(data)


@pytest.fixture(scope="module")
def once(whole):
    """One block, through its summary."""
    return joined([whole])


def test_roots_have_the_covariance_and_the_degrees_of_freedom_of_every_column():
    rng = np.random.default_rng(0)
    phi = rng.standard_t(3, size=(400, 3))
    phi = np.column_stack([phi, phi[:, 0] - 2 * phi[:, 1], np.zeros(400)])  # a dependent and a constant column
    cluster = np.repeat(np.arange(200), 2)
    roots = roots_of_rows([phi[:, :2], phi[:, 2:]], cluster)
    sums = phi.reshape(200, 2, 5).sum(axis=1)
    covariance = sums.T @ sums * (200 / 199) / 400**2
    assert_allclose(roots.covariance.T @ roots.covariance, covariance, rtol=1e-12, atol=1e-18)
    variance, heavy = np.diag(covariance)[:4], (roots.heavy**2).sum(axis=0)
    some = sums[:, :4]
    assert_allclose(variance / heavy[:4], (some**2).sum(axis=0) ** 2 / (some**4).sum(axis=0), rtol=1e-10)
    assert heavy[4] == 0
    assert not roots.covariance[:, 4].any()


def test_compression_keeps_products_of_columns_whatever_the_number_of_lines():
    rng = np.random.default_rng(1)
    for n in (1, 3, 50):
        lines = rng.normal(size=(n, 4))
        assert_allclose(compressed(lines).T @ compressed(lines), lines.T @ lines, rtol=1e-12, atol=1e-12)


def test_one_block_has_the_numbers_of_the_evaluation(whole, once):
    for name in NUMBERS:  # degrees of freedom of a sum of two columns are not exact
        rtol = {"degrees_of_freedom": 0.1, "lower": 1e-3, "upper": 1e-3}.get(name, 1e-9)
        assert_allclose(once.table[name], whole.table[name], rtol=rtol, atol=1e-12)
    alone = whole.table["target"] != "total"
    assert_allclose(once.table["degrees_of_freedom"][alone], whole.table["degrees_of_freedom"][alone], rtol=1e-9)
    assert once.table["estimate"].equals(whole.table["estimate"])


def test_what_follows_from_values_and_covariance_agrees(whole, once):
    for found, expected in (
        (once.differences(), whole.differences()),
        (once.metrics(), whole.metrics()),
        (once.reprice({"b": 3.0}, 25.0).differences(), whole.reprice({"b": 3.0}, 25.0).differences()),
        (once.ranking(), whole.ranking()),
        (once.frontier().table, whole.frontier().table),
        (once.price_plane({"c": (0, 5)}).table, whole.price_plane({"c": (0, 5)}).table),
        (once.metric_differences(), whole.metric_differences()),
    ):
        for column in found.select_dtypes("number"):
            loose = column in ("lower", "upper", "p_value", "best", "probability") or column.endswith(
                ("_lower", "_upper")
            )
            rtol, atol = (0.01, 0.02) if loose else (1.0, 0.0) if column == "degrees_of_freedom" else (1e-8, 1e-10)
            assert_allclose(found[column].astype(float), expected[column].astype(float), rtol=rtol, atol=atol)
    parts, expected = once["some"].parts(), whole["some"].parts()
    assert_allclose(parts.covariance, expected.covariance, rtol=1e-8, atol=1e-14)
    assert parts.influence is None


def test_estimates_of_one_run_are_paired_and_those_of_others_are_refused(once, whole):
    a, b = (once[name]["drl-semi"]["total"] for name in ("some", "all"))
    paired = whole["some"]["drl-semi"]["total"] - whole["all"]["drl-semi"]["total"]
    assert_allclose((a - b).std_error, paired.std_error, rtol=1e-10)
    assert_allclose((a + b - b).std_error, a.std_error, rtol=1e-8)
    with pytest.raises(ValueError, match="same rows"):
        a - whole["all"]["drl-semi"]["total"]


def test_blocks_add_up_with_their_shares(data):
    parts = data.split([0.5, 0.25, 0.25])
    results = [compared(part) for part in parts]
    found = joined(results)
    shares = np.array([len(p) for p in parts]) / len(data)
    for policy, estimator in (("some", "drl-semi"), ("all", "ipw-semi")):
        each = [r[policy][estimator]["total"] for r in results]
        total = found[policy][estimator]["total"]
        assert_allclose(total.value, shares @ [e.value for e in each], rtol=1e-12)
        assert_allclose(total.std_error**2, shares**2 @ [e.std_error**2 for e in each], rtol=1e-10)
    assert found["some"].support.n_rows == len(data)
    sizes = [r["some"].answers["ipw-semi"].ess for r in results]
    assert_allclose(found["some"].answers["ipw-semi"].ess, 1 / (shares**2 / sizes).sum(), rtol=1e-12)


def test_rubin_covariance_and_bootstrap_replicates_are_kept(data):
    tree = DecisionTreeRegressor(max_depth=2, random_state=0)  # theory gives no standard error
    rows = data.take(np.arange(400))
    whole = compared(rows, estimators=["mi", "dm-semi"], n_imputations=2, bootstrap=3, values=tree, imputer="linear")
    once = joined([whole])
    for policy in ("some", "all"):
        for name in ("mi", "dm-semi"):
            ours, theirs = once[policy][name]["total"], whole[policy][name]["total"]
            assert_allclose([ours.value, ours.std_error], [theirs.value, theirs.std_error], rtol=1e-9)
    ours, theirs = (r["some"]["mi"]["total"] - r["all"]["mi"]["total"] for r in (once, whole))
    assert_allclose(ours.std_error, theirs.std_error, rtol=1e-9)
    ours, theirs = (r["some"]["dm-semi"]["total"] - r["all"]["dm-semi"]["total"] for r in (once, whole))
    assert_allclose(ours.std_error, theirs.std_error, rtol=1e-9)


def test_subgroups_are_combined_by_their_own_shares(data):
    parts = data.split([0.3, 0.7])
    results = [compared(part, by="kind") for part in parts]
    found = joined(results)
    for level in ("red", "green", "blue"):
        rows = [(p.values[:, p.columns.index(f"kind={level}")] == 1).sum() for p in parts]
        each = [r["some"].subgroups[level]["ipw-semi"]["total"] for r in results]
        expected = np.average([e.value for e in each], weights=rows)
        assert_allclose(found["some"].subgroups[level]["ipw-semi"]["total"].value, expected, rtol=1e-12)
    assert len(found["some"].subgroup_differences()) == 3


@pytest.mark.filterwarnings("ignore::afape.warnings.SupportWarning")
def test_bounds_of_one_block_and_an_estimate_of_another_give_bounds():
    """In one half b is never recorded where a is large, so there are only bounds."""
    data = afape.Retrospective(block_files.frame(2400), block_files.PROBLEM)
    first, second = data.split([0.5, 0.5])
    keep = first.recorded.copy()
    keep[:, 1] &= first.values[:, 0] < 0.3
    results = [compared(part, estimators=["ipw-semi"]) for part in (first.hide(keep), second)]
    least, point = (r["all"]["ipw-semi"]["total"] for r in results)
    assert isinstance(least, afape.Bounds)
    assert not isinstance(point, afape.Bounds)
    found = joined(results)
    total = found["all"]["ipw-semi"]["total"]
    shares = np.array([len(first), len(second)]) / len(data)
    assert_allclose(total.bound_lower, shares @ [least.bound_lower, point.value], rtol=1e-12)
    assert_allclose(total.bound_upper, shares @ [least.bound_upper, point.value], rtol=1e-12)
    assert_allclose(total.unsupported, shares[0] * least.unsupported, rtol=1e-12)
    priced = found.reprice({"b": 4.0})["all"]["ipw-semi"]["total"]
    single = results[0].reprice({"b": 4.0})["all"]["ipw-semi"]["total"]
    other = results[1].reprice({"b": 4.0})["all"]["ipw-semi"]["total"]
    assert_allclose(priced.bound_upper, shares @ [single.bound_upper, other.value], rtol=1e-12)


def test_a_summary_holds_no_row_and_no_small_number(whole, data):
    summary = Summary.of(whole, min_cell=150)
    lengths = {n for array in summary.arrays.values() for n in array.shape}
    assert max(lengths) < len(data) / 4  # nothing has one entry per row
    records = summary.about["records"]
    assert all(count >= 150 for count in records["pattern_counts"])
    assert not [a for p in summary.about["policies"].values() for a in p["answers"].values() if 0 < a["ess"] < 150]
    with pytest.raises(ValueError, match="at least min_cell=700 rows of every label"):
        Summary.of(whole, min_cell=700)
    with pytest.raises(ValueError, match="rows are gone"):
        Summary.of(joined([whole]))


def test_doubts_and_report_work_without_rows(once, whole, tmp_path):
    assert [d.kind for d in once.doubts] == [d.kind for d in whole.doubts if d.kind != "training rows"]
    once.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "1,200 records" in page
    assert "Unmeasured reasons" in page
    with pytest.raises(ValueError, match="'score' must name an outcome"):
        once["some"].auc()


def test_damaged_summaries_are_refused(whole, tmp_path):
    summary = Summary.of(whole)
    path = tmp_path / "site.summary"
    summary.save(path)
    assert Summary.load(path).identity == summary.identity
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match="is no summary, or is damaged"):
        Summary.load(path)
