"""The house rules that a machine can check: directions of imports, sizes of functions, what a trace opens."""

import ast
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import afape
from afape.evaluation import evaluate  # imported here: a trace of the call should not show imports
from afape.experiments import synthetic_mar

PACKAGE = Path(afape.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
ENTRY_POINTS = {"evaluate", "compare", "check_support", "sensitivity"}


def layers():
    """Rooms from the top down, as CONTRIBUTING.md lists them: one layer per line."""
    block = re.search(r"```layers\n(.*?)```", CONTRIBUTING.read_text(), re.DOTALL).group(1)
    return [line.split() for line in block.splitlines() if line.strip()]


def room_of(file):
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(file):
    """Rooms that a file imports, wherever in it the import stands."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = parts[: len(parts) - node.level]
            path = [*base, *(node.module or "").split(".")] if node.module else [*base]
            names = [path[0]] if path else [alias.name for alias in node.names]
            yield from names
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("afape."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("afape."))


FILES = sorted(f for f in PACKAGE.rglob("*.py") if f != PACKAGE / "__init__.py")


def test_every_room_has_its_layer():
    listed = [room for layer in layers() for room in layer]
    assert sorted(listed) == sorted({room_of(file) for file in FILES})
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_imports_point_down(file):
    depth = {room: k for k, layer in enumerate(layers()) for room in layer}
    own = room_of(file)
    upwards = {room for room in imported_rooms(file) if room != own and depth[room] <= depth[own]}
    assert not upwards


def functions():
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield file, node


def test_no_function_is_long():
    """At most 60 lines, argument list and docstring not counted."""
    long = []
    for file, node in functions():
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
        if lines > 60:
            long.append(f"{file.relative_to(PACKAGE)}: {node.name} has {lines} lines")
    assert not long


def test_no_function_takes_many_arguments():
    """At most 8, ``self`` not counted; the public entry points take what users may want to say."""
    many = []
    for file, node in functions():
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        names = [name for name in names if name not in ("self", "cls")]
        if len(names) > 8 and node.name not in ENTRY_POINTS:
            many.append(f"{file.relative_to(PACKAGE)}: {node.name} takes {len(names)}")
    assert not many


def test_evaluating_one_estimator_opens_few_files():
    experiment = synthetic_mar(2000)
    classifier, data, _ = experiment.parts()
    opened, policy = set(), afape.RandomSubset(0.5)

    def note(frame, event, argument):
        file = Path(frame.f_code.co_filename)
        if event == "call" and PACKAGE in file.parents:
            opened.add(file.relative_to(PACKAGE).as_posix())

    sys.setprofile(note)
    try:
        evaluate(data, policy, classifier, missingness=experiment.missingness, estimators=["drl-semi"])
    finally:
        sys.setprofile(None)
    assert "estimators/drl.py" in opened
    assert len(opened) <= 37, sorted(opened)
    assert not any(file.startswith("imputation/") for file in opened)
    assert "estimators/ipw.py" not in opened


def test_no_state_is_asked_about_twice(monkeypatch):
    """Neither within an evaluation nor between its parts, also where tables do not fit into memory."""
    monkeypatch.setattr("afape.walk.table.TableStore.__init__.__defaults__", (100, 0, None, 0))
    experiment = synthetic_mar(3000)
    classifier, data, _ = experiment.parts()
    asked = {"policy": [], "classifier": []}

    class Noting:
        def __init__(self, inner, kind):
            self.inner, self.kind = inner, kind

        def note(self, values, acquired):
            keys = np.column_stack([np.nan_to_num(values, nan=-1e9), acquired])
            asked[self.kind] += [row.tobytes() for row in keys]

        def probabilities(self, values, acquired):
            self.note(values, acquired)
            return self.inner.probabilities(values, acquired)

        def predict(self, values, acquired):
            self.note(values, acquired)
            return self.inner.predict(values, acquired)

    policy = Noting(afape.RandomSubset(0.5).bind(data.problem), "policy")
    names = ["blocking", "cc", "ipw-miss", "ipw-semi", "dm-semi", "drl-semi"]
    afape.evaluate(
        data,
        policy,
        Noting(classifier, "classifier"),
        missingness=experiment.missingness,
        estimators=names,
        bootstrap=2,
        walk=afape.WalkOptions(chunk_lines=500),
    )
    for keys in asked.values():
        assert len(keys) > len(data)
        assert len(keys) == len(set(keys))


def test_tables_on_disk_give_the_same_numbers(monkeypatch, tmp_path):
    experiment = synthetic_mar(3000)
    classifier, data, _ = experiment.parts()
    options = {
        "missingness": experiment.missingness,
        "estimators": ["blocking", "ipw-semi", "drl-semi"],
        "walk": afape.WalkOptions(chunk_lines=500),
        "bootstrap": 3,
    }
    held = afape.evaluate(data, afape.RandomSubset(0.5), classifier, **options)
    monkeypatch.setattr("afape.walk.table.TableStore.__init__.__defaults__", (100, 0, None, 0))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for jobs in (None, 2):
        stored = afape.evaluate(data, afape.RandomSubset(0.5), classifier, n_jobs=jobs, **options)
        afape_table = stored.table.drop(columns="note")
        assert afape_table.equals(held.table.drop(columns="note"))
    assert not list(tmp_path.iterdir())  # removed with the evaluation
