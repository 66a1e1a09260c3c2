"""The report in a browser: no complaint, no request, figures that can be seen, tables that sort, no barrier."""

import warnings

import pytest
from browser import DESKTOP, PHONE, Browser, lacking
from report_records import EVIL, records

import afape

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


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_page_renders_quietly_and_every_figure_is_visible(browser, page, size):
    browser.open(page, size)
    assert browser.complaints() == []
    assert browser.requests() == [page.absolute().as_uri()]
    width = size[0]
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
    cut = browser.run(
        "return Array.from(document.querySelectorAll('figure svg text')).filter(e => { const a = e.getBoundingClientRect(), "
        "b = e.closest('svg').getBoundingClientRect(); return a.left < b.left - 2 || a.right > b.right + 2; })"
        ".map(e => e.textContent)"
    )
    assert cut == []


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


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_no_barrier(browser, page, evil, size):
    for path in (page, evil):
        browser.open(path, size)
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
    assert "What the numbers stand on" in text
    assert "Change prices\n" not in text.split("Costs\n")[-1]


def test_it_prints(browser, page):
    browser.open(page)
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
    assert len(printed["data"]) > 50_000


def test_a_page_of_bounds_renders_quietly(browser, tmp_path):
    classifier, data = records(1500)
    hidden = data.recorded.copy()
    hidden[:, 2] &= data.values[:, 0] > -0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", afape.SupportWarning)
        found = afape.compare(
            data.hide(hidden),
            {"all": afape.AcquireAll(), "none": afape.AcquireNone()},
            classifier,
            missingness=afape.MAR(given=["age"]),
            estimators=["ipw-semi"],
        )
        found.to_html(tmp_path / "a.html", sensitivity=False)
    browser.open(tmp_path / "a.html", PHONE)
    assert browser.complaints() == []
    assert browser.violations() == []
