"""Every claim can fail: made-up results in which all claims hold, and changes that each must fail one claim."""

from dataclasses import replace

import pytest
from made_up import BASELINES, GT, MadeUp

from afape.benchmark.claims import CLAIMS, verdicts
from afape.benchmark.claims_page import write_claims
from afape.benchmark.summary import COSTS


@pytest.fixture(scope="module")
def agreeing():
    return MadeUp()


def judged(start, done):
    """The judgements of the claims whose text starts in this way: measured numbers and verdict, by target."""
    return {t: claim.judge(done, t) for claim in CLAIMS for t in COSTS if claim.text.startswith(start)}


@pytest.mark.parametrize("claim", [claim.text for claim in CLAIMS])
def test_every_claim_agrees_where_the_paper_is_right(claim, agreeing):
    assert {verdict for _, verdict in judged(claim, agreeing).values()} == {"agrees"}


def at(bias=None, spread=None, width=None, **wanted):
    """A change of the cells in which everything in ``wanted`` matches; a tuple matches each of its entries.

    ``spread`` is the standard deviation as a share of J, or a function of the rows.
    """

    def change(where, *old):
        match = all(where[k] in (v if isinstance(v, tuple) else (v,)) for k, v in wanted.items())
        new = (bias, spread(where["rows"]) if callable(spread) else spread, width)
        return [n if match and n is not None else o for n, o in zip(new, old, strict=True)]

    return change


FAILING = [
    ("Mean imputation", at(bias=0.0, spread=0.003, estimator="blocking", agent="DQN", experiment="synthetic-mnar")),
    ("`ipw-miss` converges", at(bias=0.2, estimator="ipw-miss-gt")),  # to something else
    ("`ipw-miss` converges", at(spread=0.1, estimator="ipw-miss-gt", experiment="synthetic-mnar")),  # not at all
    ("`ipw-miss` converges", at(spread=lambda n: 2 / n**0.5, estimator=GT)),  # fast
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
    ("Intervals of a bootstrap", at(width=1.6, estimator="ipw-semi", run="the paper's settings")),
    ("Among these intervals", at(width=0.1, estimator="drl-semi", run="the paper's settings")),
    ("`drl-semi` is approximately right", at(bias=0.3, estimator="drl-semi", run="values wrong")),
    ("`drl-semi` is approximately right", at(bias=0.3, estimator="drl-semi", run="propensity wrong")),
    ("`drl-semi` is approximately right", at(bias=0.0, estimator="ipw-semi", run="propensity wrong")),  # harmless
    ("`drl-semi` is approximately right", at(bias=0.0, estimator="dm-semi", run="values wrong")),
    ("`drl-semi` is approximately right", at(bias=0.0, estimator="drl-semi", run="both wrong")),
    ("Semi-offline estimators agree with J on Heloc", at(spread=0.3, estimator="ipw-semi", agent="Random 90 %")),
    ("Semi-offline estimators agree with J on Heloc", at(bias=0.2, estimator="drl-semi", experiment="heloc")),
    ("Semi-offline estimators agree with J on Income", at(width=0.3, estimator="ipw-semi-gt", experiment="income")),
    ("`dm-semi` has a slight bias on Heloc", at(bias=0.0, estimator="dm-semi", experiment="heloc", spread=0.01)),
    ("`dm-semi` has a slight bias on Heloc", at(bias=0.3, estimator="dm-semi", experiment="heloc")),  # not slight
    ("`dm-semi` has a slight bias on Income", at(bias=0.0, estimator="dm-semi", experiment="income", spread=0.01)),
]


@pytest.mark.parametrize(("claim", "change"), FAILING)
def test_a_claim_fails_on_results_that_contradict_it(claim, change):
    found = judged(claim, MadeUp(change))
    assert [verdict for _, verdict in found.values()] == ["disagrees"] * len(COSTS)


def test_every_claim_is_made_to_fail():
    assert {c.text for c in CLAIMS} == {c.text for c in CLAIMS for start, _ in FAILING if c.text.startswith(start)}


def test_one_agent_does_not_carry_the_verdict_on_the_direct_method():
    others = ("Random 10 %", "Random 50 %", "DQN")
    change = at(bias=0.0, spread=0.01, estimator="dm-semi", experiment="heloc", agent=others)
    assert judged("`dm-semi` has a slight bias on Heloc", MadeUp(change))["total"][1] == "disagrees"


def test_few_data_sets_decide_nothing(agreeing):
    few = {f.description.name: replace(f, results=f.results[f.results["draw"] < 9]) for f in agreeing.all}
    for claim in CLAIMS:
        assert {verdict for _, verdict in judged(claim.text, few).values()} == {"undecided"}


def test_results_without_a_run_give_no_verdict(agreeing):
    few = [replace(f, results=f.results[f.results["run"] != "the paper's settings"]) for f in agreeing.all]
    found = {v.claim: v.verdict for v in verdicts(few)}
    assert [claim for claim, verdict in found.items() if verdict == "not run"] == [
        c.text for c in CLAIMS if "slight bias" in c.text or "intervals" in c.text.lower()
    ]


def test_targets_are_judged_apart():
    """Where prices that are not paid make up for errors, only J shows the bias, and the page says so."""
    odd = {"estimator": "blocking", "agent": "DQN", "experiment": "synthetic-mnar", "target": "total"}
    found = judged("Mean imputation", MadeUp(at(bias=0.0, spread=0.003, **odd)))
    assert found["misclassification"][1] == "agrees"
    assert found["total"][1] == "disagrees"
    assert "Biased in J, but not in J_total: synthetic-mnar DQN `blocking`" in found["total"][0]


def test_a_better_baseline_is_named():
    change = at(bias=0.01, spread=0.001, estimator=BASELINES, run="all estimators", experiment="heloc")
    text, _ = judged("Semi-offline estimators agree with J on Heloc", MadeUp(change))["total"]
    assert "In 12 of 12 cases a biased baseline has a smaller rmse" in text


def test_the_page_has_every_verdict_and_both_targets(agreeing, tmp_path):
    write_claims(agreeing.all, tmp_path)
    page = (tmp_path / "README.md").read_text()
    for verdict in verdicts(agreeing.all):
        assert verdict.measured in page
    assert "![All estimators with their 95 % intervals, Heloc, J_total](heloc/figure-4a-total.png)" in page
    assert "| heloc | all estimators | 2,000 | 50 |" in page
    assert "9,864,101" in page
