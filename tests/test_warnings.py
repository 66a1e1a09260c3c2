"""Every warning points at the line of the user's code."""

import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import afape
from afape import warnings as notices
from afape.benchmark.synthetic import synthetic_mar

HERE = Path(__file__).name


@pytest.fixture(scope="module")
def parts():
    experiment = synthetic_mar(1500)
    return (*experiment.prepare(), experiment)


def partial_group():
    problem = afape.Problem({"a": ["a", "b"], "c": ["c"]}, {"c": 1.0}, "y", 5.0)
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [None, 1.0], "c": [1.0, 2.0], "y": [0, 1]})
    afape.Retrospective(frame, problem)


def test_partial_group():
    with pytest.warns(afape.warnings.PartialGroupWarning) as caught:
        partial_group()
    assert [Path(w.filename).name for w in caught] == [HERE]


def sparse(seed=0, n=1500):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    frame = pd.DataFrame({"a": a, "b": np.where((a > 0) & (rng.random(n) < 0.5), b, np.nan), "y": (a + b > 0) * 1})
    problem = afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 10.0)
    return afape.Retrospective(frame, problem)


class Zero:
    def predict(self, values, acquired):
        return np.zeros(len(values), dtype=int)


CALLS = {
    "evaluate": lambda d: afape.evaluate(d, afape.AcquireAll(), Zero(), missingness=afape.MAR(["a"])),
    "compare": lambda d: afape.compare(d, {"all": afape.AcquireAll()}, Zero(), missingness=afape.MAR(["a"])),
    "check_support": lambda d: afape.check_support(d, afape.AcquireAll(), missingness=afape.MAR(["a"])),
    "sensitivity": lambda d: afape.sensitivity(
        d, afape.AcquireAll(), Zero(), missingness=afape.MAR(["a"]), bootstrap=0
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_support(name):
    data = sparse()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[name](data)
    assert any(w.category is afape.warnings.SupportWarning for w in caught)
    assert {Path(w.filename).name for w in caught if issubclass(w.category, afape.warnings.AfapeWarning)} == {HERE}


def test_rows_seen_in_training(parts):
    _, data, _, experiment = parts
    classifier = afape.ImputedClassifier(random_state=0).fit(data)
    with pytest.warns(afape.warnings.SeenRowsWarning) as caught:
        afape.evaluate(data, afape.AcquireNone(), classifier, missingness=experiment.missingness, estimators=["cc"])
    with pytest.warns(afape.warnings.SeenRowsWarning) as truth:
        afape.true_cost(data.take(data.complete), afape.AcquireNone(), classifier)
    assert {Path(w.filename).name for w in (*caught, *truth)} == {HERE}


def test_one_function_warns_for_the_whole_package():
    package = Path(inspect.getfile(afape)).parent
    elsewhere = [
        file.name
        for file in package.rglob("*.py")
        if re.search(r"warnings\.warn\(|stacklevel", file.read_text()) and file.name != "warnings.py"
    ]
    assert not elsewhere
    assert issubclass(afape.warnings.SupportWarning, notices.AfapeWarning)
