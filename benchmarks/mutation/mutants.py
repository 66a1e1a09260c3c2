"""Small changes of a module, each of which a test should notice."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutant", "changed_tree", "mutants"]

_COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_FUNCTIONS = {
    "minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min", "any": "all", "all": "any", "sum": "mean",
    "mean": "sum", "argmax": "argmin", "argmin": "argmax", "floor": "ceil", "ceil": "floor", "ones": "zeros", "zeros": "ones",
    "zeros_like": "ones_like", "ones_like": "zeros_like",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: where, of what kind, and the text before and after."""

    file: str
    scope: str  # function or class in which the change is
    line: int  # of the statement
    kind: str
    number: int  # place among the changes of the file
    before: str
    after: str
    outside: bool = False  # True outside functions: constants, defaults of arguments


def mutants(source: str, file: str) -> list[Mutant]:
    """Return every change of a module, in the order of the text."""
    tree = ast.parse(source)
    found = []
    for number, (scope, statement, node, kind, changed) in enumerate(_changes(tree)):
        outside = isinstance(statement, ast.FunctionDef) or not _in_function(tree, scope)
        found.append(Mutant(file, scope, statement.lineno, kind, number, _text(node), _text(changed), outside))
    return found


def changed_tree(source: str, number: int) -> ast.Module:
    """Return a module with the change of this number; lines keep their numbers."""
    tree = ast.parse(source)
    for k, (_, _, node, _, changed) in enumerate(_changes(tree)):
        if k == number:
            return ast.fix_missing_locations(_Replace(node, ast.copy_location(changed, node)).visit(tree))
    raise IndexError(number)


class _Replace(ast.NodeTransformer):
    def __init__(self, node: ast.AST, changed: ast.AST):
        self.node, self.changed = node, changed

    def visit(self, node: ast.AST) -> ast.AST:
        return self.changed if node is self.node else self.generic_visit(node)


def _text(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
    return " ".join(text.split())[:160]


def _changes(tree: ast.Module) -> Iterator[tuple]:
    """Yield scope, statement, node, kind and new node."""
    for scope, statement in _statements(tree, ""):
        for node in _expressions(statement):
            for kind, changed in _changes_of(node):
                yield scope, statement, node, kind, changed


def _statements(parent: ast.AST, scope: str) -> Iterator[tuple[str, ast.stmt]]:
    """Yield functions and their statements, but for imports, errors, and what only type checkers read."""
    for child in ast.iter_child_nodes(parent):
        if isinstance(child, (ast.Import, ast.ImportFrom, ast.Raise)) or _only_types(child):
            continue
        if isinstance(child, ast.stmt) and not isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            yield scope, child
        inner = scope
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            inner = f"{scope}.{child.name}".lstrip(".")
        if isinstance(child, ast.FunctionDef):
            yield inner, child  # the defaults of its arguments
        if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield from _statements(child, inner)


def _in_function(tree: ast.Module, scope: str) -> bool:
    """True if the scope is a function, not a class or the module."""
    node: ast.AST = tree
    for name in scope.split(".") if scope else ():
        inside = (n for n in ast.walk(node) if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n is not node)
        node = next(n for n in inside if n.name == name)
    return isinstance(node, ast.FunctionDef)


def _only_types(node: ast.AST) -> bool:
    test = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    names = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    return test or names


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the statement and its expressions; of a definition only the defaults of its arguments."""
    if isinstance(statement, ast.FunctionDef):
        for default in [*statement.args.defaults, *statement.args.kw_defaults]:
            if default is not None:
                yield from ast.walk(default)
        return
    yield statement
    waiting = list(ast.iter_child_nodes(statement))
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.stmt) or node is getattr(statement, "annotation", None) or _is_message(node):
            continue
        if not isinstance(node, (ast.expr, ast.keyword, ast.comprehension, ast.withitem)):
            continue
        yield node
        waiting = [*ast.iter_child_nodes(node), *waiting]


def _is_message(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr)


def _changes_of(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    new = copy.copy(node)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        new.ops = [_COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
        yield "comparison", new
    elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _ARITHMETIC:
        new.op = _ARITHMETIC[type(node.op)]()
        yield "arithmetic", new
    elif isinstance(node, ast.BoolOp):
        new.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "boolean", new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
        yield "sign", node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        new.value = (not node.value) if isinstance(node.value, bool) else node.value + 1
        yield "constant", new
    elif isinstance(node, ast.Attribute) and node.attr in _FUNCTIONS:
        new.attr = _FUNCTIONS[node.attr]
        yield "function", new
    elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
        new.test = ast.UnaryOp(ast.Not(), node.test)
        yield "condition", new
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        new.value = ast.Constant(None)
        yield "result", new
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "call left out", ast.Pass()
    elif isinstance(node, (ast.Break, ast.Continue)):
        yield "loop", ast.Continue() if isinstance(node, ast.Break) else ast.Break()
    elif isinstance(node, ast.Starred):
        return


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
