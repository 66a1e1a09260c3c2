"""The report: its content as numbers, the page made of it, names of the data that look like code."""

import dataclasses
import json
import pickle
import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from report_records import EVIL, bounded_comparison, records
from sklearn.dummy import DummyClassifier

import afape
from afape.report.page import write_report
from afape.report.sentences import chance, interval_words, percent, weighed_words
from afape.report.summary import difference, summarize
from afape.results.numbers import number
from afape.results.small_cells import vague


def embedded(page):
    """The numbers inside a page."""
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(found.group(1))


class Tree(HTMLParser):
    """Elements, identifiers and nesting of a page."""

    VOID = ("meta", "br", "input", "img", "link", "hr")

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.tags, self.headings = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append((tag, found))
        self.ids += [found["id"]] if "id" in found else []
        self.headings += [int(tag[1])] if re.fullmatch(r"h[1-6]", tag) else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [v for k, v in attributes if k == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_summary_says_what_the_results_say(comparison):
    content = json.loads(json.dumps(summarize(comparison), allow_nan=False))
    assert content["estimator"] == comparison.best_estimator
    by_name = {p["name"]: p for p in content["policies"]}
    for name, evaluation in comparison.evaluations.items():
        total = evaluation[content["estimator"]]["total"]
        assert by_name[name]["costs"]["total"]["estimate"] == total.value
        assert by_name[name]["costs"]["total"]["lower"] == total.lower
    naive = {(n["policy"], n["estimator"]): n for n in content["naive"]}
    blocked = comparison["everything"]["blocking"]["total"].value
    best = comparison["everything"][content["estimator"]]["total"].value
    assert naive["everything", "blocking"]["difference"] == pytest.approx(blocked - best)
    assert content["assumption"]["check"]["tests"]
    assert {g["group"]: g["free"] for g in content["data"]["groups"]} == {"age": True, "cbc": False, "lactate": False}
    assert sum(p["share"] for p in content["data"]["patterns"]) == pytest.approx(1)


def test_rounding_is_no_difference():
    assert difference(173.0, np.nextafter(173.0, np.inf)) == 0
    assert difference(173.0, 174.5) == -1.5


def test_shares_of_runs_sum_to_one(comparison):
    for evaluation in comparison.evaluations.values():
        assert evaluation.paths.sets["stops"].sum() == pytest.approx(1)
    steps = comparison["everything"].paths.steps
    assert steps["share"].tolist() == pytest.approx([1, 1])


def test_paths_agree_with_the_walk_on_complete_data():
    """Shares that the policy's runs have on complete rows; exact, because then every weight is 1."""
    classifier, data = records(400)
    whole = np.where(np.isnan(data.values), 0.0, data.values)
    frame = pd.DataFrame(whole, columns=data.columns).assign(died=data.classes[data.labels])
    complete = afape.Retrospective(frame, data.problem)
    policy = afape.agents.from_columns(lambda row: np.where(abs(row["age"]) > 1, None, "lactate"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", afape.warnings.SeenRowsWarning)
        found = afape.evaluate(complete, policy, classifier, missingness=afape.MCAR(), estimators=["ipw-semi"])
    sets = found.paths.sets.set_index("set")
    assert sets.loc["lactate", "stops"] == pytest.approx((abs(whole[:, 0]) <= 1).mean())
    cost = (sets["stops"] * (sets["price"] + sets["misclassification"])).sum()
    assert cost == pytest.approx(found["ipw-semi"]["total"].value)


def test_the_page_stands_alone_and_is_well_formed(page):
    text = page.read_text()
    tree = Tree(text)
    assert not tree.open
    assert len(tree.ids) == len(set(tree.ids))
    assert tree.headings[0] == 1
    assert all(b - a <= 1 for a, b in zip(tree.headings, tree.headings[1:], strict=False))
    for tag, attributes in tree.tags:
        for key in ("src", "href", "xlink:href"):
            assert attributes.get(key, "#").startswith("#"), (tag, attributes)
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    assert "A note." in text
    assert "afape compare &lt;b&gt;" in text
    assert embedded(page)["content"]["estimator"] == "drl-semi"


def test_sections_come_in_order(page):
    text = page.read_text()
    order = ["costs", "prices", "strength", "behaviour", "naive", "assumption", "support", "data", "details"]
    places = [text.index(f'<section id="{name}"') for name in order]
    assert places == sorted(places)


def test_names_of_the_data_are_text(tmp_path):
    classifier, data = records(700, evil=True)
    found = afape.evaluate(
        data, afape.AcquireAll(), classifier, missingness=afape.MAR(given=["age"]), estimators=["blocking", "ipw-semi"]
    )
    found.to_html(tmp_path / "evil.html", notes=[EVIL], details={"data": EVIL})
    text = (tmp_path / "evil.html").read_text()
    assert EVIL not in text
    assert "<script>alert" not in text
    assert text.count("</script>") == 2
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert {tag for tag, _ in Tree(text).tags} & {"img", "iframe", "object", "link"} == set()


def test_a_policy_that_is_not_supported_has_bounds(tmp_path):
    found = bounded_comparison()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", afape.warnings.SupportWarning)
        found.to_html(tmp_path / "a.html")
        found["all"].to_html(tmp_path / "b.html", sensitivity=False)
    assert "only bounds" in (tmp_path / "a.html").read_text()
    text = (tmp_path / "b.html").read_text()
    assert "would cost between" in text
    assert "Not fully: about" in text
    assert "There is no sensitivity analysis" in text


class Interrupted(afape.Evaluation):
    """A result that the user interrupts as soon as it is read."""

    def __init__(self):
        pass

    @property
    def policy(self):
        raise KeyboardInterrupt


def test_the_sensitivity_analysis_starts_from_the_headline_and_ranks_as_it_does(comparison, page):
    said = embedded(page)["content"]
    strength, estimator = said["strength"], comparison.best_estimator
    totals = {name: e.value for name, e in comparison.estimates(estimator).items()}
    for line in strength["table"]:
        first = line["bounds"][0]
        assert first["Lambda"] == 1
        assert first["bound_lower"] == pytest.approx(totals[line["policy"]])
        assert first["bound_upper"] == pytest.approx(totals[line["policy"]])
    assert estimator in strength["how"]
    best, second = sorted(totals, key=lambda name: totals[name])[:2]
    assert f"“{best}”" in strength["sentences"][0]
    assert f"“{second}”" in strength["sentences"][0]
    assert f"“{best}” " in said["answer"]


def test_a_path_that_cannot_be_written_is_an_error_before_the_work(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        write_report(Interrupted(), tmp_path / "nowhere" / "x.html")


def test_an_interrupted_report_leaves_no_file(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write_report(Interrupted(), tmp_path / "x.html")
    assert not list(tmp_path.iterdir())


def test_numbers_read_well():
    values = [0, 1, -1.5, 0.123456, 999.96, 1234.5, -12345, 1e8, 1e-6, float("nan"), None, float("inf")]
    texts = "0 1 −1.5 0.1235 1000 1,234 −12,345 1.000e+08 1.000e−06 – – ∞".replace("e−06", "e-06").split()
    assert [number(v) for v in values] == texts
    assert [number(0.0123456, 2), number(1.4812, 3)] == ["0.012", "1.48"]


def several_classes(rows=700, seed=0):
    """Five classes that cost the same, rows of patients, and recording that depends on a group with gaps."""
    rng = np.random.default_rng(seed)
    x, b, c = rng.normal(size=(3, rows))
    label = np.digitize(x + b + 0.3 * rng.normal(size=rows), [-1.5, -0.5, 0.5, 1.5])
    has_b = rng.random(rows) < 0.7
    has_c = rng.random(rows) < 1 / (1 + np.exp(-b))
    frame = pd.DataFrame({"x": x, "b": np.where(has_b, b, np.nan), "c": np.where(has_c, c, np.nan)})
    frame = frame.assign(y=label, patient=np.arange(rows) // 2)
    groups = {"x": ["x"], "b": ["b"], "c": ["c"]}
    problem = afape.Problem(groups, costs={"b": 1.0, "c": 2.0}, label="y", misclassification_cost=9.0)
    train, test = afape.Retrospective(frame, problem, cluster="patient").split([0.3, 0.7], random_state=0)
    return afape.ImputedClassifier(random_state=0).fit(train), test


def test_a_graph_clusters_and_five_classes(tmp_path):
    classifier, data = several_classes()
    graph = afape.MNAR(graph="b -> R_c; R_b")
    policies = {"b then c": afape.FixedOrder(["b", "c"]), "b": afape.FixedOrder(["b"]), "none": afape.AcquireNone()}
    names = ["blocking", "ipw-semi-miss"]
    found = afape.evaluate(data, policies["b then c"], classifier, missingness=graph, estimators=names)
    page = tmp_path / "graph.html"
    found.to_html(page)
    said = embedded(page)
    assert [f["name"] for f in said["prices"]["fields"]] == ["b", "c", "any wrong label"]
    assert said["content"]["data"]["clusters"] == len(np.unique(data.cluster))
    (policy,) = said["prices"]["policies"]
    x = np.array([f["base"] for f in said["prices"]["fields"]])
    total = found["ipw-semi-miss"]["total"]
    assert x @ policy["rates"] == pytest.approx(total.value)
    variance = x @ np.array(said["prices"]["covariance"]) @ x
    assert np.sqrt(variance) == pytest.approx(total.std_error)
    assert policy["degrees_of_freedom"] == pytest.approx(total.degrees_of_freedom)
    fourth = sum(x[i] * x[j] * x[k] * x[m] * s for i, j, k, m, s in policy["moments"]["terms"])
    assert (variance / policy["moments"]["scale"]) ** 2 / fourth == pytest.approx(total.degrees_of_freedom)


def test_estimators_without_influence_values_still_have_a_page(tmp_path):
    classifier, data = records(600)
    options = {"missingness": afape.MAR(given=["age"]), "estimators": ["mi"], "n_imputations": 3}
    found = afape.compare(data, {"all": afape.AcquireAll(), "none": afape.AcquireNone()}, classifier, **options)
    found.to_html(tmp_path / "mi.html", sensitivity=False)
    prices = embedded(tmp_path / "mi.html")["prices"]
    x = np.array([f["base"] for f in prices["fields"]])
    for policy in prices["policies"]:
        assert x @ policy["rates"] == pytest.approx(found[policy["name"]]["mi"]["total"].value)
        assert policy["moments"] is None


def test_rules_are_shown_where_a_policy_has_some(tmp_path):
    classifier, data = records(500)
    rule = afape.agents.Guideline("if age > 1: lactate")
    options = {"missingness": afape.MAR(given=["age"]), "estimators": ["ipw-semi"]}
    found = afape.evaluate(data, rule, classifier, **options)
    found.to_html(tmp_path / "rule.html", sensitivity=False)
    assert "└─ if age &gt; 1" in (tmp_path / "rule.html").read_text()


def test_results_from_a_file_and_at_other_prices_have_a_page(comparison, tmp_path):
    again = pickle.loads(pickle.dumps(comparison))
    again.to_html(tmp_path / "again.html")
    assert embedded(tmp_path / "again.html")["content"]["answer"] == summarize(comparison)["answer"]
    assert "There is no sensitivity analysis" in (tmp_path / "again.html").read_text()
    dearer = comparison.reprice(costs={"cbc": 2.0, "lactate": 90.0})
    dearer.to_html(tmp_path / "dearer.html")
    said = embedded(tmp_path / "dearer.html")
    assert [f["base"] for f in said["prices"]["fields"]][:2] == [2.0, 90.0]
    assert [g["price"] for g in said["content"]["data"]["groups"]] == [0.0, 2.0, 90.0]
    assert said["content"]["strength"] is None
    assert "Prices were changed after the evaluation" in (tmp_path / "dearer.html").read_text()


def test_only_naive_estimators_have_a_page_too(tmp_path):
    classifier, data = records(400)
    options = {"missingness": afape.MAR(given=["age"]), "estimators": ["blocking"]}
    found = afape.evaluate(data, afape.AcquireAll(), classifier, **options)
    found.to_html(tmp_path / "naive.html", sensitivity=False)
    assert "<code>blocking</code>" in (tmp_path / "naive.html").read_text()


def test_a_page_shows_no_row_numbers_and_nothing_that_few_rows_have(tmp_path):
    rng = np.random.default_rng(0)
    n = 300
    rare = np.where(np.arange(n) < 4, "rareone", np.where(rng.random(n) < 0.5, "u", "v"))
    frame = pd.DataFrame({"kind": rare, "b": rng.normal(size=n), "y": rng.integers(2, size=n)})
    frame.loc[:2, "b"] = np.nan
    frame.loc[50, "b"] = 91.73731
    problem = afape.Problem({"kind": ["kind"], "b": ["b"]}, {"b": 1.0}, "y", 5.0)
    data = afape.Retrospective(frame, problem)

    class First:
        def predict(self, values, acquired):
            return np.zeros(len(values), dtype=int)

    found = afape.evaluate(
        data, afape.AcquireAll(), First(), missingness=afape.MCAR(), estimators=["ipw-semi"], by="kind"
    )
    found.to_html(tmp_path / "a.html", sensitivity=False)
    found.to_html(tmp_path / "b.html", sensitivity=False, min_cell=0)
    hidden, whole = (tmp_path / "a.html").read_text(), (tmp_path / "b.html").read_text()
    assert "rareone" not in hidden
    assert "91.73" not in hidden
    assert "rareone" in whole
    content = summarize(afape.Comparison({found.policy: found}, 0.95))
    assert [pattern["rows"] for pattern in content["data"]["patterns"]] == [297]
    halves = afape.Problem({"kind": ["kind"], "b": ["b", "c"]}, {"b": 1.0}, "y", 5.0)
    with pytest.warns(afape.warnings.PartialGroupWarning):
        data = afape.Retrospective(frame.assign(c=frame["b"].where(np.arange(n) != 9)), halves)
    options = {"missingness": afape.MCAR(), "estimators": ["ipw-semi"]}
    found = afape.compare(data, {"none": afape.AcquireNone()}, First(), **options)
    assert [g["in_part"] for g in summarize(found)["data"]["groups"]] == [0, None]
    assert [g["in_part"] for g in summarize(found, min_cell=1)["data"]["groups"]] == [0, 1]
    assert all("row" not in line for policy in content["policies"] for line in policy["heaviest"])


def test_the_number_of_rows_with_a_rare_label_is_not_shown(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), "y": np.where(np.arange(300) % 75 == 7, "died", "survived")})
    data = afape.Retrospective(frame, afape.Problem({"a": ["a"]}, {"a": 1.0}, "y", 5.0))
    classifier = afape.ImputedClassifier(DummyClassifier()).fit(data.take(np.arange(150)))
    found = afape.evaluate(
        data.take(np.arange(150, 300)),
        afape.AcquireAll(),
        classifier,
        missingness=afape.MCAR(),
        estimators=["ipw-semi"],
    )
    found.to_html(tmp_path / "a.html", sensitivity=False)
    found.to_html(tmp_path / "b.html", sensitivity=False, min_cell=2)
    hidden, shown = (" ".join((tmp_path / f"{name}.html").read_text().split()) for name in "ab")
    assert "Fewer than 10 rows have the label" in hidden
    assert "label “y”: died (fewer than 10 rows), survived.</p>" in hidden
    assert "label “y”: died (1.3 %), survived (98.7 %).</p>" in shown


def test_shares_near_0_and_1_are_not_rounded_to_them():
    shares = [0.0, 0.0004, 0.0006, 0.5, 0.9994, 0.99999, 1.0, -0.028, None]
    assert [percent(s) for s in shares] == [
        "0 %",
        "< 0.1 %",
        "0.1 %",
        "50.0 %",
        "99.9 %",
        "> 99.9 %",
        "100 %",
        "−2.8 %",
        "–",
    ]
    assert percent(1 - 1e-15) == "100 %"
    assert [chance(p) for p in (0.0, 0.7, 1.0, None)] == ["< 0.1 %", "70.0 %", "> 99.9 %", "–"]
    assert interval_words({"estimate": 0.61, "lower": 0.598, "upper": 0.622}) == "59.8 to 62.2"
    assert interval_words({"estimate": 1.0, "lower": 1.0, "upper": 1.0}) == ""


def test_a_policy_that_acquires_nothing_has_a_short_page(tmp_path):
    classifier, data = records(600)
    options = {"missingness": afape.MAR(given=["age"]), "estimators": ["ipw-semi"]}
    found = afape.evaluate(data, afape.AcquireNone(), classifier, **options)
    found.to_html(tmp_path / "none.html")
    text = (tmp_path / "none.html").read_text()
    assert "reasons for recording cannot change these costs" in text
    assert "No policy acquires cbc, lactate." in text
    assert embedded(tmp_path / "none.html")["content"]["strength"]["flat"]
    assert found.doubts == ()


def test_contradictions_are_weighed_by_the_strength_that_changes_the_order():
    tests = pd.DataFrame({"recording": ["b", "b", "c"], "of": ["x", "y", "x"], "odds_ratio": [0.5, 1.1, 9.0]})
    said = weighed_words(tests, {"b"}, 1.5)
    assert said.startswith("1 of the 2 about groups that the policies acquire are strong enough")
    assert "They are “x” for “b”. The others are too weak" in said
    assert "None of the 2 about" in weighed_words(tests, {"b"}, 2.5)
    assert "the largest is 2.00" in weighed_words(tests, {"b"}, 2.5)
    assert "do not matter for these costs" in weighed_words(tests, {"d"}, 1.5)
    assert "is open even without them" in weighed_words(tests, {"b"}, 1.0)
    assert weighed_words(tests[:0], {"b"}, 1.5) == ""
    together = pd.DataFrame({"recording": ["b"], "of": ["R_c"], "odds_ratio": [60.0]})
    assert "only that groups are recorded together" in weighed_words(together, {"b"}, 1.5)
    assert "1 of the 2" in weighed_words(pd.concat([tests, together]), {"b"}, 1.5)


def test_advice_is_in_the_words_of_the_interface():
    """Recording of lactate depends on the blood count, which few rows lack."""
    rng = np.random.default_rng(0)
    age, cbc = rng.normal(size=(2, 2000))
    seen = rng.random(2000) < 1 / (1 + np.exp(-1.5 * cbc))
    cbc[:20] = np.nan
    frame = pd.DataFrame(
        {"age": age, "cbc": cbc, "lactate": np.where(seen, age, np.nan), "died": rng.integers(2, size=2000)}
    )
    problem = afape.Problem(
        {name: [name] for name in ("age", "cbc", "lactate")}, {"cbc": 1.0, "lactate": 2.0}, "died", 9.0
    )
    train, test = afape.Retrospective(frame, problem).split([0.3, 0.7], random_state=0)
    options = {"missingness": afape.MAR(given=["age"]), "estimators": ["ipw-semi"]}
    found = afape.evaluate(
        test, afape.FixedOrder(["lactate"]), afape.ImputedClassifier(random_state=0).fit(train), **options
    )
    (python,), (toml,) = (
        summarize(afape.Comparison({"x": found}, 0.95), in_file=in_file)["assumption"]["check"]["advice"]
        for in_file in (False, True)
    )
    assert "afape.MAR(given=['age', 'cbc'], drop_gaps=True)" in python
    assert 'given = ["age", "cbc"]\n    drop_gaps = true' in toml


def test_a_page_has_nothing_about_single_rows(comparison):
    """No row with its weight, no least or largest value, no small number of rows."""
    content = summarize(comparison)
    for policy in content["policies"]:
        assert policy["heaviest"] == []
        for table in ("sets", "groups", "weights"):
            assert all(line.get("largest_weight") is None for line in policy[table])
            assert all(line.get("smallest_propensity") is None for line in policy[table])
    rows = {s["set"]: s["rows_recorded"] for s in content["policies"][2]["sets"]}
    assert rows["cbc + lactate"] > 10
    large = summarize(comparison, min_cell=int(rows["cbc + lactate"]) + 1)
    assert {s["set"]: s["rows_recorded"] for s in large["policies"][2]["sets"]}["cbc + lactate"] is None
    assert {s["set"]: s["share_recorded"] for s in large["policies"][2]["sets"]}["cbc + lactate"] is None


def test_sentences_of_a_page_have_no_small_numbers_of_rows():
    few = "recorded in 3 of 40 rows with age below 30; recorded in only 4 of the rows in which it is wanted; 50 of 900 rows"
    assert vague(few, 10) == (
        "recorded in fewer than 10 of 40 rows with age below 30; recorded in only fewer than 10 of the rows in which it is "
        "wanted; 50 of 900 rows"
    )
    assert vague("0 of 40 rows", 10) == "0 of 40 rows"
    assert vague(few, 0) == few


def test_the_page_passes_its_sentences_through_that():
    found = bounded_comparison()
    told = dataclasses.replace(found["all"].support, advice=("Restrict it: 2 of 70 rows.",))
    found = dataclasses.replace(found, evaluations={"all": dataclasses.replace(found["all"], support=told)})
    assert summarize(found)["policies"][0]["advice"] == ["Restrict it: fewer than 10 of 70 rows."]


def test_a_policy_without_a_tipping_point_is_named_with_the_reason(tmp_path):
    """Everything needs lactate, which the records lack for the young; the two others have estimates."""
    classifier, data = records(1500)
    hidden = data.recorded.copy()
    hidden[:, 2] &= data.values[:, 0] > -0.5
    policies = {"all": afape.AcquireAll(), "none": afape.AcquireNone(), "cbc": afape.FixedOrder(["cbc"])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", afape.warnings.SupportWarning)
        options = {"missingness": afape.MAR(given=["age"]), "estimators": ["ipw-semi"]}
        afape.compare(data.hide(hidden), policies, classifier, **options).to_html(tmp_path / "a.html")
    sentences = embedded(tmp_path / "a.html")["content"]["strength"]["sentences"]
    assert any(text.startswith("“all” is left out: the records do not support what 'all' wants") for text in sentences)


def test_the_page_says_that_rows_have_weights(tmp_path):
    classifier, data = records()
    weighted = afape.population_weights(data, {data.classes[1]: 0.05})
    options = {"missingness": afape.MAR(given=["age"]), "estimators": ["ipw-semi"]}
    result = afape.evaluate(weighted, afape.AcquireNone(), classifier, **options)
    result.to_html(tmp_path / "report.html", sensitivity=False)
    page = (tmp_path / "report.html").read_text()
    assert "Rows have weights" in page
    assert "The weights were made from known shares of the labels." in page
    assert "rows with weights" in repr(result)
