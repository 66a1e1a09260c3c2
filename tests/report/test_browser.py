"""The report in a browser: no error, no request, visible figures, sortable tables, no accessibility violation."""

import numpy as np
import pytest
from browser import DESKTOP, PHONE, Browser, lacking
from report_records import EVIL, bounded_comparison, records

import afape
from afape.report.sentences import chance

if lacking():
    pytest.skip(
        f"Browser tests are skipped, because there is no {', '.join(lacking())}: apt-get install chromium chromium-driver",
        allow_module_level=True,
    )


@pytest.fixture(scope="module")
def browser():
    found = Browser()
    yield found
    found.close()


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A page about data with hostile names."""
    classifier, data = records(700, evil=True)
    path = tmp_path_factory.mktemp("evil") / "evil.html"
    found = afape.evaluate(
        data, afape.AcquireAll(), classifier, missingness=afape.MAR(given=["age"]), estimators=["blocking", "ipw-semi"]
    )
    found.to_html(path, notes=[EVIL])
    return path


UNFOLD = "for (const fold of document.querySelectorAll('details')) fold.open = true"


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_page_renders_quietly_and_every_figure_is_visible(browser, page, size):
    browser.open(page, size)
    assert browser.complaints() == []
    assert browser.requests() == [page.absolute().as_uri()]
    width = size[0]
    assert browser.run("return document.documentElement.scrollWidth") <= width
    browser.run(UNFOLD)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    boxes = browser.run(
        "return Array.from(document.querySelectorAll('figure svg, .track')).map(e => "
        "{ const b = e.getBoundingClientRect(); return [b.left, b.right, b.width, b.height]; })"
    )
    assert len(boxes) >= 12
    for left, right, wide, high in boxes:
        assert left >= 0
        assert right <= width + 1
        assert wide > 200
        assert high > 20
    texts = browser.run(
        "return Array.from(document.querySelectorAll('figure svg text')).map(e => e.getBoundingClientRect().height)"
    )
    assert min(texts) > 5


def test_nothing_in_a_figure_is_cut_off(browser, page):
    browser.open(page)
    browser.run(UNFOLD)
    cut = browser.run(
        "return Array.from(document.querySelectorAll('figure svg text')).filter(e => { const a = e.getBoundingClientRect(), "
        "b = e.closest('svg').getBoundingClientRect(); return a.left < b.left - 2 || a.right > b.right + 2; })"
        ".map(e => e.textContent)"
    )
    assert cut == []


def test_the_page_is_short(browser, page):
    """Three policies fit on 8,000 pixels; what a reader opens by choice comes on top."""
    browser.open(page)
    assert browser.run("return document.documentElement.scrollHeight") <= 8000


def test_costs_are_written_with_the_same_decimals_everywhere(browser, comparison, page):
    """In the headline, the bars and the table, at the original prices and at others."""
    browser.open(page)
    texts = (
        "return [document.querySelector('h1').innerText, Array.from(document.querySelectorAll('.bar-value'))"
        ".map(e => e.innerText), Array.from(document.querySelectorAll('#cost-table tbody tr'))"
        ".map(r => ['total', 'lower', 'upper'].map(t => r.querySelector(`[data-target=${t}]`).innerText))]"
    )
    for changed in (None, {"cbc": 260.0, "lactate": 1200.0}):
        if changed:
            browser.run(SET, changed)
        headline, bars, rows = browser.run(texts)
        for bar, (total, lower, upper) in zip(bars, rows, strict=True):
            assert bar == f"{total} ({lower} to {upper})"
        found = comparison if changed is None else comparison.reprice(changed)
        totals = [e.value for e in found.estimates(found.best_estimator).values()]
        places = max(3 - int(np.floor(np.log10(max(totals)))), 0)
        assert [row[0] for row in rows] == [f"{total:,.{places}f}" for total in totals]
        assert f"{min(totals):,.{places}f} per run" in headline


def test_tables_can_be_sorted(browser, page):
    browser.open(page)
    column = (
        "return Array.from(document.querySelectorAll('#cost-table tbody tr')).map(r => "
        "parseFloat(r.querySelector('[data-target=total]').dataset.value))"
    )
    before = browser.run(column)
    press = (
        "document.querySelector('#cost-table thead th:nth-child(4) button').click(); "
        "return document.querySelector('#cost-table thead th:nth-child(4)').getAttribute('aria-sort')"
    )
    assert browser.run(press) == "ascending"
    assert browser.run(column) == sorted(before)
    assert browser.run(press) == "descending"
    assert browser.run(column) == sorted(before, reverse=True)
    by_name = (
        "document.querySelector('#cost-table thead th:nth-child(1) button').click(); "
        "return Array.from(document.querySelectorAll('#cost-table tbody th')).map(e => e.textContent)"
    )
    assert browser.run(by_name) == ["doubtful", "everything", "nothing"]


SET = """
const [values] = arguments;
for (const input of document.querySelectorAll('#price-form input')) {
  const name = input.closest('label').querySelector('span').textContent;
  if (name in values) input.value = values[name];
}
document.querySelector('#price-form input').dispatchEvent(new Event('input', {bubbles: true}));
"""
SHOWN = """
return Object.fromEntries(Array.from(document.querySelectorAll('#cost-table tbody tr')).map(row => [
  row.querySelector('th').textContent,
  Object.fromEntries(Array.from(row.querySelectorAll('[data-target]')).map(c => [c.dataset.target,
    c.dataset.value === undefined ? c.textContent : parseFloat(c.dataset.value)]))]));
"""
MISSED, ALARM = "“no” predicted where “yes” is true", "“yes” predicted where “no” is true"
PRICES = [
    ({"cbc": 1.0, "lactate": 2.5}, None),
    ({"cbc": 0.0, "lactate": 300.0}, {MISSED: 80.0, ALARM: 7.25}),
    ({"cbc": 26.0, "lactate": 12.0}, {MISSED: 5000.0, ALARM: 0.0}),
]


@pytest.mark.parametrize(("groups", "errors"), PRICES)
def test_changed_prices_give_what_reprice_gives(browser, comparison, page, groups, errors):
    """Totals, parts, intervals, differences and ranks: the same in the browser and in Python."""
    browser.open(page)
    browser.run(SET, {**groups, **(errors or {})})
    shown = browser.run(SHOWN)
    matrix = None if errors is None else [[0.0, errors[ALARM]], [errors[MISSED], 0.0]]
    expected = comparison.reprice(costs=groups, misclassification_cost=matrix)
    estimator = comparison.best_estimator
    for name, evaluation in expected.evaluations.items():
        for target in ("acquisition", "misclassification", "total"):
            value = evaluation[estimator][target].value
            assert shown[name][target] == pytest.approx(value, rel=1e-6, abs=1e-9)
        total = evaluation[estimator]["total"]
        assert shown[name]["lower"] == pytest.approx(total.lower, rel=1e-6)
        assert shown[name]["upper"] == pytest.approx(total.upper, rel=1e-6)
    ranking = expected.ranking().set_index("policy")
    texts = browser.run(
        "return Array.from(document.querySelectorAll('#cost-table [data-target=best]')).map(e => e.textContent)"
    )
    assert set(texts) == {chance(float(v)) for v in [shown[name]["best"] for name in ranking.index]}
    for name, line in ranking.iterrows():
        assert shown[name]["best"] == pytest.approx(line["best"], abs=0.03)  # both are drawn
        assert shown[name]["rank"] == line["rank_lower"]
        if abs(line["best"] - 0.05) > 0.03:  # the limit of the verdict
            assert shown[name]["verdict"] == line["verdict"]
    pairs = browser.run(
        "return Array.from(document.querySelectorAll('#difference-table tbody tr')).map(r => ['difference', 'lower', 'upper']"
        ".map(t => parseFloat(r.querySelector(`[data-target=${t}]`).dataset.value)))"
    )
    wanted = expected.differences()
    for line, (difference, lower, upper) in zip(wanted.to_dict("records"), pairs, strict=True):
        assert difference == pytest.approx(line["difference"], rel=1e-6)
        half = line["upper"] - line["difference"]
        assert lower == pytest.approx(line["lower"], abs=0.05 * half)  # the level is drawn, the t law kept
        assert upper == pytest.approx(line["upper"], abs=0.05 * half)
    best = ranking["estimate"].idxmin()
    assert browser.run("return document.querySelector('#answer-text').textContent").startswith(
        f"At these prices, “{best}”"
    )
    assert browser.complaints() == []


@pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
def test_known_shares_of_labels_limit_costs_at_other_prices_too(browser, tmp_path):
    classifier, data = records(500)
    found = afape.compare(
        afape.population_weights(data, {"yes": 0.03}),
        {"nothing": afape.AcquireNone(), "everything": afape.AcquireAll()},
        classifier,
        missingness=afape.MAR(given=["age"]),
        estimators=["ipw-semi"],
    )
    found.to_html(tmp_path / "shares.html", sensitivity=False)
    browser.open(tmp_path / "shares.html")
    browser.run(SET, {MISSED: 8000.0, ALARM: 7.0})
    shown = browser.run(SHOWN)
    for name, evaluation in found.reprice(misclassification_cost=[[0.0, 7.0], [8000.0, 0.0]]).evaluations.items():
        total = evaluation["ipw-semi"]["total"]
        assert total.limits[1] < 300
        assert shown[name]["lower"] == pytest.approx(total.lower, rel=1e-6)
        assert shown[name]["upper"] == pytest.approx(total.upper, rel=1e-6)


def test_prices_can_be_set_back_and_refused(browser, page):
    browser.open(page)
    before = browser.run("return [document.querySelector('#costs').innerText, document.querySelector('h1').innerText]")
    browser.run(SET, {"cbc": 100.0})
    assert browser.run("return document.querySelector('#price-state').textContent").startswith("1 price differs")
    changed = browser.run("return [document.querySelector('#costs').innerText, document.querySelector('h1').innerText]")
    assert changed != before
    browser.run(SET, {"cbc": -3})
    assert "must be a number" in browser.run("return document.querySelector('#price-state').textContent")
    assert browser.run("return document.querySelectorAll('[aria-invalid=true]').length") == 1
    browser.run("document.getElementById('price-reset').click()")
    back = browser.driver.execute_async_script(
        "const done = arguments[0]; setTimeout(() => done([document.querySelector('#costs').innerText, "
        "document.querySelector('h1').innerText]), 50)"
    )
    assert back == before
    browser.run(SET, {"cbc": 26.0})  # the original price is no change
    assert browser.run("return document.querySelector('#price-state').textContent") == "These are the original prices."


def test_fields_follow_after_sorting(browser, comparison, page):
    browser.open(page)
    browser.run("document.querySelector('#cost-table thead th:nth-child(4) button').click()")
    browser.run(SET, {"cbc": 5.0})
    expected = comparison.reprice(costs={"cbc": 5.0, "lactate": 12.0})
    shown = browser.run(SHOWN)
    for name, evaluation in expected.evaluations.items():
        assert shown[name]["total"] == pytest.approx(evaluation["drl-semi"]["total"].value, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_no_barrier(browser, page, evil, size):
    for path in (page, evil):
        browser.open(path, size)
        assert browser.violations() == []
        browser.run(UNFOLD)
        assert browser.violations() == []


def test_hostile_names_are_shown_as_text(browser, evil):
    browser.open(evil)
    assert browser.complaints() == []
    assert browser.requests() == [evil.absolute().as_uri()]
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert EVIL in browser.run("return document.querySelector('#data').innerText")
    assert EVIL in browser.run("return document.querySelector('.note').innerText")


def test_the_page_can_be_read_without_its_script(browser, page):
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(page)
        text = browser.driver.find_element("tag name", "body").text
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "What the numbers assume" in text
    assert "Change prices\n" not in text.split("Costs\n")[-1]


def test_it_prints(browser, page):
    browser.open(page)
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
    assert len(printed["data"]) > 50_000


def test_a_page_of_bounds_renders_quietly(browser, tmp_path):
    bounded_comparison().to_html(tmp_path / "a.html", sensitivity=False)
    browser.open(tmp_path / "a.html", PHONE)
    assert browser.complaints() == []
    assert browser.violations() == []
