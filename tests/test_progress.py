"""Progress: told to the user's function, shown as a bar, or not at all; results as tables in notebooks."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import afape
from afape._progress import bar_html, reporter


@pytest.fixture
def notebook(monkeypatch):
    """A stand-in for IPython in a notebook, which keeps what was displayed."""
    shown = []

    class Handle:
        def update(self, thing):
            shown.append(thing)

    def display(thing, display_id=False):
        shown.append(thing)
        return Handle()

    module = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    return shown


def test_a_function_is_told(experiment, parts):
    classifier, data, _ = parts
    told = []
    some = data.take(np.arange(300))
    afape.evaluate(
        some,
        afape.AcquireNone(),
        classifier,
        missingness=experiment.missingness,
        estimators=["ipw-semi"],
        progress=lambda done, todo: told.append((done, todo)),
    )
    assert told[-1] == (300, 300)


def test_a_notebook_shows_a_bar_and_removes_it(notebook):
    with reporter(True) as tell:
        tell(1, 4)
    assert 'value="0.2500"' in notebook[0]
    assert notebook[-1] == ""


def test_short_work_shows_none(notebook):
    with reporter(None) as tell:
        tell(1, 4)
    assert notebook == []
    with reporter(False) as tell:
        assert tell is None


def test_without_a_notebook_nothing_is_shown(capfd):
    with reporter(None) as tell:
        assert tell is None
    with reporter(True) as tell:
        tell(1, 2)
    assert capfd.readouterr().err.strip() == ""  # no terminal


def test_the_bar_tells_the_time_that_is_left():
    assert "about 30 s left" in bar_html(1, 4, 10.0)
    assert "left" not in bar_html(4, 4, 10.0)
    assert "left" not in bar_html(0, 0, 10.0)


def test_what_is_no_function_is_refused(experiment, parts):
    classifier, data, _ = parts
    with pytest.raises(TypeError, match="'progress' must be a function"):
        afape.evaluate(data, afape.AcquireNone(), classifier, missingness=experiment.missingness, progress="yes")


def test_results_are_tables_with_escaped_names(experiment, parts):
    classifier, data, _ = parts
    some = data.take(np.arange(800))
    policies = {"<b>half</b>": afape.RandomSubset(0.5), "none": afape.AcquireNone()}
    options = {"missingness": experiment.missingness}
    found = afape.compare(some, policies, classifier, estimators=["ipw-semi"], **options)
    bounds = afape.sensitivity(some, policies, classifier, bootstrap=0, lambdas=[1, 2], **options)
    check = afape.check_missingness(some, experiment.missingness)
    half = found["<b>half</b>"]
    for thing in (found, half, half.support, half.parts(), check, bounds):
        html = thing._repr_html_()
        assert "<table" in html
        assert "<b>half" not in html
