"""The decision problem: groups of columns, their prices, the label and the cost of a wrong label."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._arguments import as_float, check_different_texts, check_list, check_mapping, is_number, positions_of, shown
from .._arrays import Bools, Floats, Ints

__all__ = ["Problem", "check_column"]


@dataclass(frozen=True, eq=False)
class Problem:
    """Groups that can be acquired, their prices, and the cost of a wrong prediction.

    Parameters
    ----------
    groups : mapping from group name to the columns acquired together
        The order of the groups is the order of the actions.
    costs : mapping from group name to price
        A group without a price, or with price 0, is *free*: revealed before the first decision.
    label : str
        Name of the label column.
    misclassification_cost : float, array-like or DataFrame of shape (n_classes, n_classes), or nested mapping
        One number is the cost of every wrong prediction. An array is indexed ``[true, predicted]``, in the order of
        ``classes``. A DataFrame has labels as index and columns, in one order, which may differ from that of
        ``classes``. With 0, 1, ... as index and columns it is read as an array. A mapping gives each true label the
        costs of the predicted labels, ``{"died": {"survived": 5000.0}, "survived": {"died": 500.0}}``; a right
        prediction costs 0 unless it says otherwise.
    classes : sequence, optional
        All labels, in the order of their codes. Default: the sorted labels found in the data.
    categories : mapping from column to its levels, optional
        Levels of a categorical column, in order; ``None`` for the sorted levels found in the data. Numeric
        columns named here are treated as categorical. Text columns are always categorical.
    blank_means : mapping from column to value, optional
        Columns in which a blank has a meaning, such as ``{"MechVent": 0}``. Blanks are replaced by this value and count as
        recorded. Numbers such as -9 in these columns are values too, and give no `CodeValuesWarning`.

    Attributes
    ----------
    group_names : tuple of str
        Names of the groups, in action order.
    feature_columns : tuple of str
        Columns of all groups, in group order, before categorical ones are encoded.
    n_groups : int
        Number of groups G; also the index of the stop action.
    prices : ndarray of shape (G,)
        Price of each group, 0 for free ones.
    free : ndarray of bool, shape (G,)
        True for groups that are revealed before the first decision.

    Examples
    --------
    >>> problem = Problem(
    ...     groups={"age": ["age"], "cbc": ["hgb", "wbc"], "lactate": ["lactate"]},
    ...     costs={"cbc": 26.0, "lactate": 12.0}, label="died", misclassification_cost=500.0)
    >>> problem.group_names, problem.prices.tolist(), problem.free.tolist()
    (('age', 'cbc', 'lactate'), [0.0, 26.0, 12.0], [True, False, False])
    """

    groups: Mapping[str, Sequence[str]]
    costs: Mapping[str, float]
    label: str
    misclassification_cost: ArrayLike
    classes: Sequence[Any] | None = None
    categories: Mapping[str, Sequence[Any] | None] = field(default_factory=dict)
    blank_means: Mapping[str, Any] = field(default_factory=dict)
    group_names: tuple[str, ...] = field(init=False, repr=False)
    feature_columns: tuple[str, ...] = field(init=False, repr=False)
    n_groups: int = field(init=False, repr=False)
    cost_labels: tuple[Any, ...] | None = field(init=False, repr=False)  # labels of the cost matrix, if it has labels
    prices: Floats = field(init=False, repr=False)
    free: Bools = field(init=False, repr=False)
    costly: Bools = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", _checked_groups(self.groups))
        object.__setattr__(self, "label", check_column("label", self.label))
        object.__setattr__(self, "costs", _checked_costs(self.costs, self.groups))
        labels, cost = _labels_and_matrix(self.misclassification_cost)
        object.__setattr__(self, "cost_labels", labels)
        object.__setattr__(self, "misclassification_cost", _checked_cost(cost))
        object.__setattr__(self, "group_names", tuple(self.groups))
        object.__setattr__(self, "feature_columns", tuple(c for columns in self.groups.values() for c in columns))
        object.__setattr__(self, "n_groups", len(self.groups))
        prices = np.array([self.costs.get(name, 0.0) for name in self.groups], dtype=float)
        object.__setattr__(self, "prices", prices)
        object.__setattr__(self, "free", np.asarray(prices == 0.0))
        object.__setattr__(self, "costly", ~self.free)
        for array in (self.prices, self.free, self.misclassification_cost):
            array.setflags(write=False)  # type: ignore[union-attr]
        for argument in ("categories", "blank_means"):
            given = check_mapping(argument, getattr(self, argument), "from column names", empty=True, texts=False)
            check_different_texts(argument, [c for c in given if isinstance(c, str | Integral)])
            object.__setattr__(self, argument, {column_name(c): v for c, v in given.items()})
            unknown = [c for c in getattr(self, argument) if c not in self.feature_columns]
            if unknown:
                raise ValueError(
                    f"{argument!r} must name columns of 'groups', but {shown(unknown[0])} is in no group. "
                    f"The columns are {list(self.feature_columns)}."
                )
        listed = {column: _checked_levels(column, levels) for column, levels in self.categories.items()}
        object.__setattr__(self, "categories", listed)
        if self.label in self.feature_columns:
            raise ValueError(
                f"'label' must not be a feature, but {self.label!r} is also a column of a group. "
                "Remove it from 'groups': an agent must not see the label."
            )
        if self.classes is not None:
            object.__setattr__(self, "classes", _checked_classes(self.classes, np.asarray(self.misclassification_cost)))
            self.cost_matrix(len(self.classes), self.classes)

    @property
    def groups_by_name(self) -> Ints:
        """The groups in the order of their names, (G,), whatever their order in ``groups``."""
        return np.array(sorted(range(self.n_groups), key=self.group_names.__getitem__), dtype=np.intp)

    def group_index(self, names: Sequence[str], argument: str) -> Ints:
        """Return the positions of the named groups; an error message names ``argument``."""
        return positions_of(names, self.group_names, argument)

    def cost_matrix(self, n_classes: int, classes: Sequence[Any] | None = None) -> Floats:
        """Misclassification cost (K, K) indexed ``[true, predicted]``; a labelled matrix is put in the order of ``classes``."""
        cost = np.asarray(self.misclassification_cost, dtype=float)
        if cost.ndim == 0:
            return float(cost) * (1.0 - np.eye(n_classes))
        if cost.shape != (n_classes, n_classes):
            raise ValueError(
                f"'misclassification_cost' must have one row and one column per class, ({n_classes}, "
                f"{n_classes}) here, but has shape {cost.shape}. If these data lack a class, list all classes "
                "in 'classes' of the Problem."
            )
        if self.cost_labels is None or classes is None:
            return cost
        default = list(self.cost_labels) == list(range(n_classes))  # numbers of pandas, unless they are the classes
        if default and {label_text(c) for c in classes} != {label_text(c) for c in self.cost_labels}:
            return cost
        place = _places(list(classes), list(self.cost_labels))
        return np.asarray(cost[np.ix_(place, place)])

    def __repr__(self) -> str:
        groups = [
            f"{name} (free)" if free else f"{name} ({price:g})"
            for name, free, price in zip(self.group_names, self.free, self.prices, strict=True)
        ]
        return f"Problem({', '.join(groups)}; label {self.label!r})"


_NUMBERED = range(-(2**63), 2**63)  # numbers of columns


def column_name(name: Any) -> Any:
    """Return a whole number as text, because pandas numbers unnamed columns; return other names unchanged."""
    return str(name) if isinstance(name, Integral) and not isinstance(name, bool) and int(name) in _NUMBERED else name


def check_column(argument: str, name: Any) -> str:
    """Return the name of a column: a text, or a whole number as text."""
    name = column_name(name)
    if not isinstance(name, str) or not name:
        raise TypeError(f"{argument!r} must have columns whose names are text, but one is {shown(name)}.")
    return name


def _checked_groups(groups: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    owner: dict[str, str] = {}
    checked = {}
    for name, columns in check_mapping("groups", groups, "from at least one group name to its columns").items():
        if isinstance(columns, set | frozenset):
            raise TypeError(
                f"'groups' must list columns in order, but {name!r} has the set {shown(columns)}, which has no order."
            )
        listed = [columns] if isinstance(columns, str) else check_list("groups", columns, f"columns for {name!r}")
        columns = tuple(check_column("groups", column) for column in listed)
        if not columns:
            raise ValueError(f"'groups' must give each group a column, but {name!r} has none.")
        for column in columns:
            if column in owner:
                raise ValueError(
                    f"'groups' must name each column once, but {column!r} is in {owner[column]!r} and again in "
                    f"{name!r}. Put columns that are measured together in one group."
                )
            owner[column] = name
        checked[name] = columns
    return checked


def _checked_costs(costs: Mapping[str, float], groups: Mapping[str, Sequence[str]]) -> dict[str, float]:
    if not isinstance(costs, Mapping):
        raise TypeError(f"'costs' must be a mapping from group name to price, not {type(costs).__name__}.")
    for name, price in costs.items():
        if name not in groups:
            raise ValueError(
                f"'costs' must name groups, but {shown(name)} is not a group. The groups are {list(groups)}."
            )
        number = (isinstance(price, Decimal) and not price.is_snan()) or is_number(price)
        if not number or not 0 <= as_float(price) < np.inf:
            raise ValueError(
                f"'costs' must be finite and not negative, but the price of {name!r} is {shown(price)}. "
                "A free group needs no price."
            )
    return {name: float(price) for name, price in costs.items()}


def _checked_cost(cost: ArrayLike) -> Floats:
    try:
        kind = np.asarray(cost).dtype.kind
        array = np.array(cost, dtype=float)  # a copy: the user may change the original
        if kind not in "iufO":
            raise TypeError
    except Exception as error:  # numpy calls the user's objects
        raise ValueError(
            f"'misclassification_cost' must be one number or a square matrix of numbers, but is {shown(cost)}."
        ) from error
    if array.ndim not in (0, 2) or (array.ndim == 2 and array.shape[0] != array.shape[1]):
        raise ValueError(
            "'misclassification_cost' must be one number or a square matrix indexed [true, predicted], but has "
            f"shape {array.shape}."
        )
    if not np.isfinite(array).all() or (array.ndim == 0 and array < 0):
        raise ValueError(
            f"'misclassification_cost' must be finite, and not negative if it is one number, but is {shown(cost)}."
        )
    return array


def _labels_and_matrix(cost: Any) -> tuple[tuple[Any, ...] | None, Any]:
    """Return the labels of a labelled cost, None without labels, and the number or matrix."""
    if not isinstance(cost, Mapping):
        return _cost_labels(cost), cost
    rows = {true: row for true, row in cost.items() if isinstance(row, Mapping)}
    if len(rows) < len(cost) or not rows:
        raise ValueError(
            "'misclassification_cost' must give each true label a mapping from predicted labels to costs, as in "
            f"{{'died': {{'survived': 500.0}}, ...}}, but is {shown(cost)}."
        )
    labels = list(dict.fromkeys(_comparable([*rows, *(predicted for row in rows.values() for predicted in row)])))
    texts = [label_text(label) for label in labels]
    if alike := [label for label, text in zip(labels, texts, strict=True) if texts.count(text) > 1]:
        raise ValueError(
            f"'misclassification_cost' must name each label once, but has {', '.join(map(repr, alike[:2]))}, which "
            "are one label. Leave one of them out."
        )
    for true in labels:
        for predicted in labels:
            if true != predicted and predicted not in rows.get(true, {}):
                raise ValueError(
                    f"'misclassification_cost' must have a cost for every error, but lacks that of predicting "
                    f"{shown(predicted)} if {shown(true)} is true."
                )
    return tuple(labels), [[rows[true].get(predicted, 0.0) for predicted in labels] for true in labels]


def label_text(label: Any) -> str:
    """Return the text by which labels are compared; 1, 1.0 and "1" are one label."""
    return f"{label:g}" if isinstance(label, Real) and not isinstance(label, bool | np.bool_) else str(label)


def _checked_levels(column: str, levels: Any) -> list[Any] | None:
    if levels is None:
        return None
    if isinstance(levels, set | frozenset):
        raise TypeError(f"'categories' must list the levels of a column, in order, but {column!r} has {shown(levels)}.")
    return _different("categories", levels, f"levels for {column!r}")


def _different(argument: str, value: Any, what: str) -> list[Any]:
    """Return a list of different texts or numbers; 1 and "1" are not different."""
    listed = check_list(argument, value.tolist() if isinstance(value, np.ndarray) else value, what)
    if odd := [entry for entry in listed if not isinstance(entry, Hashable) or not np.isscalar(entry)]:
        raise TypeError(f"{argument!r} must be a list of {what}, but contains {shown(odd[0])}.")
    if len(set(listed)) < len(listed):
        raise ValueError(f"{argument!r} must be a list of different {what}, but is {shown(value)}.")
    check_different_texts(argument, listed)
    return listed


def _comparable(labels: Iterable[Any]) -> list[Any]:
    """Return labels that can be compared and have a text; their methods may be the user's."""
    listed = list(labels)
    for label in listed:
        try:
            label_text(label), bool(label == label)
        except Exception as error:
            raise TypeError(
                f"'misclassification_cost' must have texts or numbers as labels, but one is {shown(label)}."
            ) from error
    return listed


def _cost_labels(cost: Any) -> tuple[Any, ...] | None:
    """Return the labels of a labelled cost matrix, None without labels; rows and columns must have equal labels."""
    if not hasattr(cost, "index") or not hasattr(cost, "columns"):
        return None
    rows, columns = _comparable(cost.index), _comparable(cost.columns)
    if rows != columns:
        raise ValueError(
            "'misclassification_cost' must have the same labels, in the same order, as index (true) and as columns "
            f"(predicted), but has {rows} and {columns}."
        )
    return tuple(rows)


def _places(classes: list[Any], labels: list[Any]) -> list[int]:
    """Return the position of each class among the labels of a cost matrix, compared as text; error if they differ."""
    by_text = [label_text(label) for label in labels]
    if len(set(by_text)) < len(by_text) or {label_text(c) for c in classes} != set(by_text):
        raise ValueError(
            f"'misclassification_cost' must be labelled by the classes {classes}, but is labelled {labels}. Use the labels of "
            "the label column for rows and columns, or pass an array in the order of the classes."
        )
    return [by_text.index(label_text(c)) for c in classes]


def _checked_classes(classes: Sequence[Any], cost: Floats) -> list[Any]:
    if isinstance(classes, set | frozenset):
        raise TypeError(f"'classes' must be a list of labels, in order, but is {shown(classes)}.")
    classes = _different("classes", classes, "labels")
    if len(classes) < 2:
        raise ValueError(f"'classes' must be at least two different labels, but is {list(classes)}.")
    check_different_texts("classes", classes)
    if cost.ndim == 2 and len(cost) != len(classes):
        raise ValueError(
            f"'misclassification_cost' must have one row and column per class, but has shape {cost.shape} "
            f"for {len(classes)} classes."
        )
    return classes
