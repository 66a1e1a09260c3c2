"""Every claim can fail: made-up results in which all claims hold, and changes that each must fail one claim."""

import pytest
from made_up import BASELINES, GT, made_up

from afape.benchmark.claims import CLAIMS, verdicts
from afape.benchmark.claims_page import write_claims
from afape.benchmark.summary import COSTS


@pytest.fixture(scope="module")
def agreeing():
    return made_up()


def by_claim(done):
    return {(v.claim, v.target): v.verdict for v in verdicts(done)}


def test_every_claim_agrees_where_the_paper_is_right(agreeing):
    found = by_claim(agreeing)
    assert set(found) == {(c.text, t) for c in CLAIMS for t in COSTS}
    assert {k: v for k, v in found.items() if v != "agrees"} == {}


def at(bias=None, spread=None, width=None, **wanted):
    """A change of the cells in which everything in ``wanted`` matches; a tuple matches each of its entries."""

    def change(where, *old):
        match = all(where[k] in (v if isinstance(v, tuple) else (v,)) for k, v in wanted.items())
        return [n if match and n is not None else o for n, o in zip((bias, spread, width), old, strict=True)]

    return change


FAILING = [
    ("Mean imputation", at(bias=0.0, estimator="blocking", agent="DQN", experiment="synthetic-mnar")),
    ("`ipw-miss` converges", at(bias=0.2, estimator="ipw-miss-gt")),  # to something else
    ("`ipw-miss` converges", at(spread=0.1, estimator="ipw-miss-gt", experiment="synthetic-mnar")),  # not at all
    ("`ipw-miss` converges", at(spread=0.02, estimator=(*GT, "ipw-semi-gt"), agent="Random 10 %", rows=16_000)),  # fast
    ("`ipw-semi-gt` under MAR", at(bias=0.2, estimator="ipw-semi-miss-gt", agent="Random 90 %")),
    ("`ipw-semi-gt` under MAR", at(spread=0.03, estimator="ipw-semi-gt", agent="DQN")),
    ("For the 10 % agent", at(spread=0.1, estimator=("ipw-semi-gt", *GT), agent="Random 10 %")),
    ("For the 90 % agent the curves of `ipw-semi` ", at(spread=0.4, estimator="ipw-miss-gt", agent="Random 90 %")),
    ("For the 90 % agent the curves of `ipw-semi-miss`", at(spread=0.4, estimator="ipw-miss-gt", agent="Random 90 %")),
    ("For the 90 % agent the curves of `ipw-semi-miss`", at(bias=0.3, estimator="ipw-semi-miss-gt")),
    ("The gain is smaller under MNAR", at(spread=1.0, estimator="ipw-miss-gt", experiment="synthetic-mnar")),
    ("All semi-offline estimators", at(bias=0.15, estimator="drl-semi", agent="DQN")),  # wrong
    ("All semi-offline estimators", at(spread=0.3, estimator="dm-semi", agent="Random 90 %")),  # wide, but covering
    ("All semi-offline estimators", at(width=0.3, estimator="ipw-semi")),  # right, but too narrow
    ("Intervals of a bootstrap", at(width=1.0, estimator="ipw-semi", run="the paper's settings")),
    ("Among these intervals", at(width=0.3, estimator="drl-semi", run="the paper's settings")),
    ("`drl-semi` is approximately right", at(bias=0.3, estimator="drl-semi", run="values wrong")),
    ("`drl-semi` is approximately right", at(bias=0.3, estimator="drl-semi", run="propensity wrong")),
    ("`drl-semi` is approximately right", at(bias=0.0, estimator="ipw-semi", run="propensity wrong")),  # harmless
    ("`drl-semi` is approximately right", at(bias=0.0, estimator="dm-semi", run="values wrong")),
    ("`drl-semi` is approximately right", at(bias=0.0, estimator="drl-semi", run="both wrong")),
    ("Semi-offline estimators agree with J on Heloc", at(spread=0.3, estimator="ipw-semi", agent="Random 90 %")),
    ("Semi-offline estimators agree with J on Heloc", at(bias=0.2, estimator="drl-semi-gt", experiment="heloc")),
    ("Semi-offline estimators agree with J on Income", at(width=0.3, estimator="ipw-semi-gt", experiment="income")),
    ("`dm-semi` has a slight bias on Heloc", at(bias=0.0, estimator="dm-semi", experiment="heloc", spread=0.01)),
    ("`dm-semi` has a slight bias on Heloc", at(bias=0.3, estimator="dm-semi", experiment="heloc")),  # not slight
    ("`dm-semi` has a slight bias on Income", at(bias=0.0, estimator="dm-semi", experiment="income", spread=0.01)),
]


@pytest.mark.parametrize(("claim", "change"), FAILING)
def test_a_claim_fails_on_results_that_contradict_it(claim, change):
    found = {k: v for k, v in by_claim(made_up(change)).items() if k[0].startswith(claim)}
    assert len(found) == len(COSTS)
    assert set(found.values()) == {"disagrees"}


def test_every_claim_is_made_to_fail():
    assert {c.text for c in CLAIMS} == {c.text for c in CLAIMS for start, _ in FAILING if c.text.startswith(start)}


def test_one_cell_of_the_direct_method_does_not_carry_the_verdict():
    change = at(bias=0.0, estimator="dm-semi", experiment="heloc", agent=("Random 10 %", "Random 50 %", "DQN"), spread=0.01)
    found = by_claim(made_up(change))
    assert found["`dm-semi` has a slight bias on Heloc.", "total"] == "disagrees"


def test_too_few_data_sets_decide_nothing(agreeing):
    few = []
    for finished in made_up():
        results = finished.results[finished.results["draw"] < 1]
        few.append(type(finished)(finished.description, finished.folder, results, finished.summary, finished.efficiency, 0.5))
    found = {v for (c, _), v in by_claim(few).items() if "curves" not in c and "gain" not in c and "efficient" not in c}
    assert found == {"undecided"}


def test_targets_are_judged_apart():
    """Where prices that are not paid make up for errors, only J shows the bias, and the page says so."""
    change = at(bias=0.0, estimator="blocking", agent="DQN", experiment="synthetic-mnar", target="total")
    found = {v.target: v for v in verdicts(made_up(change)) if v.claim.startswith("Mean imputation")}
    assert found["misclassification"].verdict == "agrees"
    assert found["total"].verdict == "disagrees"
    assert "Biased in J, but not in J_total: synthetic-mnar DQN `blocking`" in found["total"].measured


def test_a_better_baseline_is_named():
    change = at(bias=0.01, spread=0.001, estimator=BASELINES, run="all estimators", experiment="heloc")
    found = next(v for v in verdicts(made_up(change)) if "J on Heloc (" in v.claim)
    assert "In 16 of 16 cases a biased baseline has a smaller rmse" in found.measured


def test_the_page_has_every_verdict_and_both_targets(agreeing, tmp_path):
    write_claims(agreeing, tmp_path)
    page = (tmp_path / "README.md").read_text()
    for verdict in verdicts(agreeing):
        assert verdict.measured in page
    assert "![All estimators with their 95 % intervals, Heloc, J_total](heloc/figure-4a-total.png)" in page
    assert "| heloc | all estimators | 2,000 | 60 |" in page
    assert "9,864,101" in page
