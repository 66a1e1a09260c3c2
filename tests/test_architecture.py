"""The house rules that a machine can check: directions of imports, sizes of functions, names of classes."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import afape

PACKAGE = Path(afape.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
SHOWN = {"plots", "report"}  # methods such as `plot` and `to_html` import these when they are called
ENTRY_POINTS = {
    *("evaluate", "compare", "check_support", "scan", "sensitivity", "train"),
    *("from_afabench", "from_afabench_bundle", "reproduce"),
}


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
            names = [path[0]] if path else [alias.name for alias in node.names if alias.name != "__version__"]
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
    assert not upwards - SHOWN


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


def test_no_two_classes_share_a_name():
    """One name, one thing; a name with an underscore belongs to its file."""
    nodes = [node for file in FILES for node in ast.walk(ast.parse(file.read_text()))]
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    assert not [name for name, count in names.items() if count > 1]
