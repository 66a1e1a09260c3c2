"""read_problem(): read a problem file; errors name the line."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..data.problem import Problem, label_text
from ..data.retrospective import Retrospective
from ..missingness.assumptions import MAR, MCAR, MNAR
from .class_names import class_names_in, with_class_names
from .errors import ProblemFileError, nearest
from .toml_positions import KeyPath
from .toml_source import TomlSource
from .toml_words import in_file_words

__all__ = ["ProblemFile", "read_problem"]

_KEYS = (
    "label",
    "misclassification_cost",
    "groups",
    "missingness",
    "classes",
    "cluster",
    "weight",
    "missing_labels",
    "blanks",
    "blank_means",
    "categories",
    "draft",
)
_GROUP_KEYS = ("columns", "price")
_IN_MISSINGNESS = ("assumption", "given", "graph", "adjust", "drop_gaps")
_ASSUMPTIONS = {"MCAR": (), "MAR": ("given", "label", "drop_gaps"), "MNAR": ("graph", "adjust", "label")}


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """Content of a problem file.

    Attributes
    ----------
    problem : Problem
        Groups, prices, label and misclassification costs.
    missingness : MCAR, MAR or MNAR
        Assumption about why values are missing.
    cluster : str or None
        Column that identifies rows that belong together.
    missing_labels : {"raise", "drop", "weigh"}
        What to do with rows without a label.
    blanks : tuple of str
        Texts in the data file that mean "never recorded".
    weight : str or None
        Column with the number of cases that a row stands for.
    draft : bool
        True if prices and costs are still the placeholders of ``afape init``.
    class_names : mapping from label, as text, to name
        Names that replace the labels of the table; empty to keep the labels.
    """

    source: TomlSource = field(repr=False)
    problem: Problem
    missingness: MCAR | MAR | MNAR
    cluster: str | None = None
    missing_labels: str = "raise"
    blanks: tuple[str, ...] = ()
    draft: bool = False
    class_names: Mapping[str, str] = field(default_factory=dict)
    weight: str | None = None

    def records(self, frame: Any) -> Retrospective:
        """Return the table as records of this problem; an error names the line of a column that the table lacks."""
        self._check_columns([str(c) for c in getattr(frame, "column_names", frame.columns)])
        if self.class_names:
            frame = with_class_names(frame, str(self.problem.label), self.class_names, self.source)
        try:
            data = Retrospective(
                frame, self.problem, cluster=self.cluster, missing_labels=self.missing_labels, weight=self.weight
            )
        except (TypeError, ValueError) as error:
            words = in_file_words(str(error))
            raise self.source.error(self._place(words), f"the problem does not fit the data: {words}") from error
        self._check_given(data)
        data.problem_file = (Path(self.source.name).name, hashlib.sha256(self.source.content.encode()).hexdigest())
        return data

    def _place(self, message: str) -> KeyPath:
        """Return the key that an error about the data is about: a column, or the key that the message starts with."""
        found = re.match(r"(?:The label c|C)olumn '(.*?)' ", message)
        for group, columns in self.problem.groups.items() if found else ():
            if found and found.group(1) in columns:
                return ("groups", group, "columns", columns.index(found.group(1)))
        return ("label",) if found else _blamed(message)

    def _check_columns(self, columns: list[str]) -> None:
        known, groups = set(columns), self.problem.groups
        named: list[tuple[KeyPath, str]] = [(("label",), str(self.problem.label))]
        named += [(("groups", g, "columns", i), str(c)) for g, members in groups.items() for i, c in enumerate(members)]
        further = {"cluster": self.cluster, "weight": self.weight}
        named += [((key,), column) for key, column in further.items() if column is not None]
        for path, column in named:
            if column not in known:
                raise self.source.error(path, f"the data have no column {column!r}. {nearest(column, columns)}")

    def _check_given(self, data: Retrospective) -> None:
        """Raise an error if a group in 'given' has gaps."""
        if not isinstance(self.missingness, MAR) or self.missingness.drop_gaps:
            return
        recorded = dict(zip(self.problem.group_names, data.recorded.mean(axis=0), strict=True))
        for i, name in enumerate(self.missingness.given):
            if recorded[name] < 1:
                raise self.source.error(
                    ("missingness", "given", i),
                    f"'given' must name groups that every row has, but {name!r} is recorded in {100 * recorded[name]:.1f} % of "
                    'the rows. Set drop_gaps = true to drop the other rows, or draw a graph: assumption = "MNAR".',
                )


def read_problem(path: str | Path) -> ProblemFile:
    """Read a problem file.

    Parameters
    ----------
    path : str or Path
        A TOML file; ``afape init data.csv`` drafts one.

    Returns
    -------
    ProblemFile

    Raises
    ------
    ProblemFileError
        With the file, the line, the problem and its solution.
    """
    source = TomlSource.of(path)
    for key in (k for k in source.data if k in _IN_MISSINGNESS):
        raise source.error((key,), f"the key {key!r} belongs below the line [missingness].")
    source.known((), _KEYS)
    for key in ("label", "misclassification_cost", "groups", "missingness"):
        if key not in source.data:
            raise source.error((), f"the key {key!r} is missing. `afape init DATA` drafts a complete file.")
    groups = _groups(source)
    costs = {name: price for name in groups if (price := _price(source, name)) is not None}
    label, names = source.text(("label",)), class_names_in(source)
    _check_once(source, groups, label)
    arguments = {
        "groups": groups,
        "costs": costs,
        "label": label,
        "misclassification_cost": _cost(source, names),
        "classes": list(names.values()) or source.data.get("classes"),
        "categories": _by_column(source, "categories", groups),
        "blank_means": _by_column(source, "blank_means", groups),
    }
    try:
        problem = Problem(**arguments)
    except (TypeError, ValueError) as error:
        raise source.error(_blamed(str(error)), str(error)) from error
    missing_labels = source.text(("missing_labels",), "raise")
    if missing_labels not in ("raise", "drop", "weigh"):
        raise source.error(
            ("missing_labels",), f'\'missing_labels\' must be "raise", "drop" or "weigh", but is {missing_labels!r}.'
        )
    return ProblemFile(
        source,
        problem,
        _missingness(source, list(groups), label),
        source.data.get("cluster") and source.text(("cluster",)),
        missing_labels,
        tuple(source.texts(("blanks",))) if "blanks" in source.data else (),
        source.flag(("draft",)),
        class_names=names,
        weight=source.data.get("weight") and source.text(("weight",)),
    )


def _groups(source: TomlSource) -> dict[str, list[str]]:
    table = source.table(("groups",))
    if not table:
        raise source.error(
            ("groups",), "'groups' must have at least one group, such as cbc = { columns = [\"hgb\"], price = 26 }."
        )
    out = {}
    for name, group in table.items():
        path = ("groups", name)
        if not isinstance(group, dict):
            raise source.error(
                path, f"a group must have the form {name} = {{ columns = [...], price = ... }}, but is {group!r}."
            )
        source.known(path, _GROUP_KEYS)
        if "columns" not in group:
            raise source.error(path, f"the group {name!r} has no 'columns'.")
        out[name] = [group["columns"]] if isinstance(group["columns"], str) else source.texts((*path, "columns"))
        if not out[name]:
            raise source.error((*path, "columns"), f"the group {name!r} must have at least one column.")
    return out


def _price(source: TomlSource, name: str) -> float | None:
    path = ("groups", name, "price")
    price = source.value(path)
    if price is None:
        return None
    if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < float("inf"):
        raise source.error(
            path,
            f"the price of {name!r} must be a number, 0 or more, but is {price!r}. "
            + ("Write it without quotes." if isinstance(price, str) else "A group without a price is free."),
        )
    return float(price)


def _check_once(source: TomlSource, groups: dict[str, list[str]], label: str) -> None:
    owner: dict[str, str] = {}
    for name, columns in groups.items():
        for i, column in enumerate(columns):
            path = ("groups", name, "columns", i)
            if column == label:
                raise source.error(
                    path, f"the label {label!r} must not be in a group: an agent must not see it. Remove it."
                )
            if column in owner:
                raise source.error(
                    path, f"the column {column!r} is already in the group {owner[column]!r}. Remove one of them."
                )
            owner[column] = name


def _cost(source: TomlSource, names: Mapping[str, str]) -> Any:
    """Return the misclassification cost: one number, or a labelled matrix from tables <true> = { <predicted> = cost }.

    Labels that have ``names`` are called by them.
    """
    path = ("misclassification_cost",)
    cost = source.value(path)
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        if not 0 <= cost < float("inf"):
            raise source.error(path, f"'misclassification_cost' must be 0 or more, but is {cost!r}.")
        return float(cost)
    if not isinstance(cost, dict):
        raise source.error(
            path,
            f"'misclassification_cost' must be a number, or a table <true label> = {{ <predicted> = cost }}, but is {cost!r}.",
        )
    import pandas as pd

    declared = [*names.values()] or [label_text(c) for c in source.data.get("classes", [])]
    inner = [str(k) for row in cost.values() if isinstance(row, dict) for k in row]
    labels = declared or list(dict.fromkeys([*cost, *inner]))
    for true, row in cost.items():
        if true not in labels:
            raise source.error((*path, true), f"{true!r} is not among 'classes' {labels}. {nearest(true, labels)}")
        if not isinstance(row, dict):
            raise source.error(
                (*path, true), f"the costs of a true {true!r} must have the form {{ <predicted label> = cost }}."
            )
        for predicted, amount in row.items():
            here = (*path, true, predicted)
            if predicted not in labels:
                raise source.error(here, f"{predicted!r} is not among 'classes' {labels}. {nearest(predicted, labels)}")
            if (
                isinstance(amount, bool)
                or not isinstance(amount, int | float)
                or amount != amount
                or abs(amount) == float("inf")
            ):
                raise source.error(here, f"a cost must be a finite number, but is {amount!r}.")
    lacking = [(t, p) for t in labels for p in labels if t != p and p not in cost.get(t, {})]
    if lacking:
        true, predicted = lacking[0]
        raise source.error(
            path,
            f"the cost of predicting {predicted!r} if {true!r} is true is missing. Add {true} = {{ {predicted} = COST }}.",
        )
    table = [[float(cost.get(t, {}).get(p, 0.0)) for p in labels] for t in labels]
    return pd.DataFrame(table, index=labels, columns=labels)


def _by_column(source: TomlSource, key: str, groups: dict[str, list[str]]) -> dict[str, Any]:
    """Return the table at this key, whose keys must be columns of groups."""
    if key not in source.data:
        return {}
    columns = [c for members in groups.values() for c in members]
    out = {}
    for column, value in source.table((key,)).items():
        if column not in columns:
            raise source.error((key, column), f"{column!r} is in no group. {nearest(column, columns)}")
        out[column] = None if key == "categories" and value is True else value
    return out


def _missingness(source: TomlSource, groups: list[str], label: str) -> MCAR | MAR | MNAR:
    path = ("missingness",)
    table = source.table(path)
    source.known(path, ("assumption", *(k for keys in _ASSUMPTIONS.values() for k in keys)))
    name = table.get("assumption")
    if name not in _ASSUMPTIONS:
        raise source.error(
            (*path, "assumption"),
            f"'assumption' must be one of {', '.join(map(repr, _ASSUMPTIONS))}, but is {name!r}. "
            f"{nearest(str(name), _ASSUMPTIONS)}",
        )
    for key in table:
        if key != "assumption" and key not in _ASSUMPTIONS[name]:
            fit = [kind for kind, keys in _ASSUMPTIONS.items() if key in keys]
            raise source.error((*path, key), f"{key!r} can be used with {' and '.join(fit)}, not with {name}.")
    for key in ("given", "adjust"):
        for i, group in enumerate(source.texts((*path, key)) if key in table else ()):
            if group not in groups:
                raise source.error(
                    (*path, key, i), f"{key!r} must name groups, but {group!r} is not a group. {nearest(group, groups)}"
                )
    flag = source.flag((*path, "label"))
    try:
        if name == "MCAR":
            return MCAR()
        if name == "MAR":
            return _at_random(source, table, flag)
        if "graph" in table:
            return _by_graph(source, table, groups, label)
        return MNAR(adjust=table.get("adjust"), label=flag)
    except (TypeError, ValueError) as error:
        if isinstance(error, ProblemFileError):
            raise
        raise source.error((*path, "graph" if "graph" in table else "assumption"), str(error)) from error


_NO_GIVEN = (
    "MAR needs 'given': the groups that recording depends on. If it depends on nothing, use assumption = \"MCAR\"."
)


def _at_random(source: TomlSource, table: dict[str, Any], flag: bool) -> MAR:
    if not table.get("given") and not flag:
        raise source.error(("missingness", "assumption"), _NO_GIVEN)
    return MAR(given=table.get("given", []), label=flag, drop_gaps=source.flag(("missingness", "drop_gaps")))


def _by_graph(source: TomlSource, table: dict[str, Any], groups: list[str], label: str) -> MNAR:
    path = ("missingness", "graph")
    found = MNAR(graph=source.text(path))
    graph: Any = found.graph
    for node in graph.variables:
        if node not in (*groups, label):
            raise source.error(
                path, f"the graph names {node!r}, which is neither a group nor the label. {nearest(node, groups)}"
            )
    return found


def _blamed(message: str) -> KeyPath:
    """Return the key that an error message of `Problem` starts with."""
    key = message.split("'")[1] if message.count("'") > 1 else ""
    return (key,) if key in _KEYS else ()
