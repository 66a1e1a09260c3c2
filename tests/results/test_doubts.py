"""Doubts under the headline: planted troubles are named, healthy records are left alone."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import afape
from afape.warnings import AfapeWarning

PROBLEM = afape.Problem(
    {"a": ["a"], "z": ["z"], "b": ["b"], "c": ["c"]},
    costs={"b": 1.0, "c": 1.0},
    label="y",
    misclassification_cost=20.0,
)
POLICIES = {"none": afape.AcquireNone(), "b": afape.FixedOrder(["b"]), "all": afape.AcquireAll()}
GIVEN_A = afape.MAR(given=["a"])


def records(seed, n=2000, log_odds=lambda a, z, y: 1 + 0.5 * a, problem=PROBLEM):
    """Records in which b is recorded with these log-odds and c at random; z predicts the label too."""
    rng = np.random.default_rng(seed)
    a, z, b, c = rng.normal(size=(4, n))
    y = (rng.random(n) < 1 / (1 + np.exp(-(a + z + b + c)))).astype(int)
    has = rng.random(n) < 1 / (1 + np.exp(-np.clip(log_odds(a, z, y), -30, 30)))
    frame = pd.DataFrame(
        {"a": a, "z": z, "b": np.where(has, b, np.nan), "c": np.where(rng.random(n) < 0.7, c, np.nan), "y": y}
    )
    return afape.Retrospective(frame, problem)


def judged(data, classifier=None, policies=POLICIES, **options):
    """Doubts about policies; the classifier is trained on other records like these unless it is given."""
    if classifier is None:
        classifier = afape.ImputedClassifier(LogisticRegression()).fit(records(999, 1000, problem=data.problem))
    options = {"missingness": GIVEN_A, "estimators": ["ipw-semi", "drl-semi"], **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AfapeWarning)
        return afape.compare(data, policies, classifier, **options)


class Always:
    def __init__(self, code):
        self.code = code

    def predict(self, values, acquired):
        return np.full(len(values), self.code)


RARE = afape.Problem(PROBLEM.groups, costs=PROBLEM.costs, label="y", misclassification_cost=[[0.0, 1.0], [90.0, 0.0]])
LINEAR = {"propensity": afape.LearnedPropensity(form="linear")}
CURVED = lambda a, z, y: 2.2 - 1.6 * a**2  # noqa: E731
TROUBLES = {  # the doubt, and how it is planted
    "the label": ("assumption", lambda s: judged(records(s, log_odds=lambda a, z, y: 2.5 * y - 0.5))),
    "an unnamed column": ("assumption", lambda s: judged(records(s, log_odds=lambda a, z, y: 0.5 + 1.5 * z))),
    "few effective rows": (
        "rows", lambda s: judged(records(s, 600, lambda a, z, y: -1 + 3.5 * a), policies={"b": POLICIES["b"]}),
    ),
    "imbalance": ("balance", lambda s: judged(records(s, log_odds=lambda a, z, y: 0.5 + 1.5 * z))),
    "estimators apart": ("estimators", lambda s: judged(records(s, 12000, log_odds=CURVED), **LINEAR)),
    "unsupported": ("support", lambda s: judged(records(s, log_odds=lambda a, z, y: np.where(a < -0.5, -30, 1.0)))),
    "40 rows": ("tiny", lambda s: judged(records(s, 40))),
    "a useless classifier": ("classifier", lambda s: judged(records(s, problem=RARE), Always(0))),
    "training rows": (
        "training rows",
        lambda s: judged(records(s), afape.ImputedClassifier(LogisticRegression()).fit(records(s))),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_planted_trouble_is_named_and_nothing_is_called_the_cheapest(trouble, seed):
    kind, plant = TROUBLES[trouble]
    found = plant(seed)
    assert kind in [doubt.kind for doubt in found.doubts], found.doubts
    assert len(found.doubts) <= 5
    assert [d.grave for d in found.doubts] == sorted((d.grave for d in found.doubts), reverse=True)
    if any(doubt.grave for doubt in found.doubts):
        if not found.too_few():
            assert "cheapest" not in set(found.ranking()["verdict"])
        assert found.to_dict()["doubts"][0]["text"] == found.doubts[0].text


@pytest.mark.slow
def test_healthy_records_have_no_doubts():
    doubtful = [seed for seed in range(20) if judged(records(100 + seed)).doubts]
    assert len(doubtful) <= 1, doubtful


def test_one_policy_has_doubts_too():
    data = records(1, 40)
    found = judged(data)["all"]
    assert next(d.kind for d in found.doubts if d.grave) == "tiny"
    assert found.doubts is found.doubts


def test_the_page_carries_the_doubts_and_a_cautious_answer(tmp_path):
    pytest.importorskip("jinja2")
    found = judged(records(1, 40))
    found.to_html(tmp_path / "page.html", sensitivity=False)
    page = (tmp_path / "page.html").read_text()
    assert "There are only 40 rows" in page
    assert "is the cheapest" not in page.split("<script")[0]


def test_contradictions_count_only_about_groups_that_a_policy_acquires():
    """Recording of b depends on c, which has gaps; a policy that acquires c alone need not care."""
    data = records(0)
    c = np.nan_to_num(data.values[:, data.columns.index("c")])
    keeps = data.recorded.copy()
    keeps[:, 2] &= np.random.default_rng(1).random(len(c)) < 1 / (1 + np.exp(-2 * c))
    data = data.hide(keeps)
    others = {"none": POLICIES["none"], "c": afape.FixedOrder(["c"])}
    assert [d.kind for d in judged(data, policies=others).doubts] == []
    assert "assumption" in [d.kind for d in judged(data, policies={"b": POLICIES["b"]}).doubts]


def test_groups_that_are_recorded_together_are_no_reason_for_a_shift():
    """A graph that denies it is contradicted, but no value predicts recording."""
    rng = np.random.default_rng(0)
    data = records(0)
    frame = pd.DataFrame(data.values, columns=data.columns).assign(y=data.labels)
    together = rng.random(len(frame)) < 0.6
    for name in ("b", "c"):
        frame[name] = np.where(together ^ (rng.random(len(frame)) < 0.1), rng.normal(size=len(frame)), np.nan)
    graph = afape.MNAR(graph="a -> R_b; R_c")
    tests = afape.check_missingness(afape.Retrospective(frame, PROBLEM), graph)
    assert any(of.startswith("R_") for of in tests.rejected["of"])
    found = judged(
        afape.Retrospective(frame, PROBLEM), policies={"all": POLICIES["all"]}, missingness=graph, estimators=None
    )
    assert "assumption" not in [d.kind for d in found.doubts]
