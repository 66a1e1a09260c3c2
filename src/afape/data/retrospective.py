"""Retrospective records: checked once here, then used as arrays everywhere."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._arguments import as_float, check_choice, check_list, check_seed, is_number, shown
from .._arrays import Bools, Floats, Ints, every, mean_of, units_of
from ..warnings import CodeValuesWarning, PartialGroupWarning, warn
from .codes import missing_codes
from .encoding import declared_levels, encode_column, encode_labels, plain_values
from .problem import Problem, check_column, column_name
from .row_order import row_order
from .row_weights import checked_weights, in_units_of_rows, sharing_weights

__all__ = ["Retrospective", "check_records", "drawn_weight"]

_LISTED = 5  # columns in a warning


class Retrospective:
    """Records with gaps.

    Parameters
    ----------
    frame : pandas, polars or pyarrow table
        One row per case; null or NaN means never recorded.
    problem : Problem
        Groups of columns, their prices and the label column.
    cluster : str, optional
        Column that identifies rows that belong together, such as rows of one patient. Standard errors, folds and splits
        keep them together.
    missing_labels : {"raise", "drop", "weigh"}
        What to do with rows without a label. "drop" leaves them out, which is right only if labels are missing completely at
        random. "weigh" treats the label as one more thing that is recorded or not: the assumption about missing values then
        covers it too.
    weight : str, optional
        Column with the number of cases of the population that a row stands for, such as the sampling weights of a survey.
        Everything that is estimated or learned then refers to this population. The scale of the weights has no effect. Rows
        of weight 0 are left out.

    Attributes
    ----------
    values : ndarray of shape (n, d)
        Recorded values, with categorical columns one-hot encoded; NaN if the group is not recorded.
    recorded : ndarray of bool, shape (n, G)
        True if the group is recorded: all its columns are present.
    labels : ndarray of int, shape (n,)
        Codes into ``classes``; -1 in rows without a label.
    labelled : ndarray of bool, shape (n,)
        True for rows with a label.
    classes : ndarray
        Labels as the user wrote them, in the order of their codes.
    costs : ndarray of shape (K, K)
        Misclassification cost indexed ``[true, predicted]``.
    columns : tuple of str
        Names of the d columns of ``values``.
    column_group : ndarray of int, shape (d,)
        The group of each column.
    source_column : ndarray of int, shape (d,)
        For each column of ``values``: position in ``problem.feature_columns`` of the column that it comes from. The
        one-hot columns of one categorical column share a position.
    cluster : ndarray of int, shape (n,), or None
        Cluster of each row.
    weight : ndarray of shape (n,), or None
        Weight of each row; None if all weights are equal. Weights that are small multiples of one number count rows: whole
        numbers without a common divisor. Other weights have mean 1.
    label_shares : ndarray of shape (K,), or None
        Share of each label in the population, if the weights were made from these shares (`population_weights`).
    partial : dict from group to int
        Number of rows that record only some columns of the group; they count as not recorded.

    Examples
    --------
    >>> import pandas as pd
    >>> problem = Problem({"a": ["a"], "b": ["b"]}, costs={"b": 1.0}, label="y", misclassification_cost=5.0)
    >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [None, 3.0], "y": ["no", "yes"]})
    >>> data = Retrospective(frame, problem)
    >>> data.recorded.tolist(), data.labels.tolist(), data.classes.tolist()
    ([[True, False], [True, True]], [0, 1], ['no', 'yes'])
    """

    problem: Problem
    values: Floats
    recorded: Bools
    labels: Ints
    classes: NDArray[Any]
    columns: tuple[str, ...]
    column_group: Ints
    costs: Floats
    source_column: Ints
    cluster: Ints | None
    weight: Floats | None
    label_shares: Floats | None
    partial: dict[str, int]
    source: str
    positions: Ints
    original: Retrospective | None = None  # the records, if these have the label as a group
    weighs_labels: bool = False  # True if labels may be missing, although perhaps none is
    problem_file: tuple[str, str] | None = None  # name and SHA-256 of the file that describes the problem

    def __init__(
        self,
        frame: Any,
        problem: Problem,
        *,
        cluster: str | None = None,
        missing_labels: str = "raise",
        weight: str | None = None,
    ) -> None:
        cluster = None if cluster is None else check_column("cluster", cluster)
        weight = None if weight is None else check_column("weight", weight)
        check_choice("missing_labels", missing_labels, ("raise", "drop", "weigh"))
        table = _as_table(frame, problem, {"cluster": cluster, "weight": weight})
        positions = np.arange(len(table), dtype=np.intp)
        weights = None if weight is None else _column_of_weights(table[weight])
        if weights is not None and not weights.all():  # a row that stands for nothing
            table, positions = table.filter((weights > 0).tolist()), positions[weights > 0]
        labels, classes, labelled = encode_labels(table[problem.label], problem.classes)
        if not labelled.all():
            if missing_labels == "raise":
                raise ValueError(
                    f"The label column {problem.label!r} is blank in {int((~labelled).sum())} of {len(table)} rows. "
                    "A cost needs a true label. missing_labels='weigh' treats the label as one more thing that may be recorded; "
                    "missing_labels='drop' leaves these rows out, which assumes that labels are missing completely at random."
                )
            if missing_labels == "drop":
                table = table.filter(labelled.tolist())
                labels, positions = labels[labelled], positions[labelled]
        _check_classes(labels[labels >= 0], classes, problem)
        self.problem, self.labels, self.classes = problem, labels, classes
        self.costs = problem.cost_matrix(len(classes), classes.tolist())
        self._encode_features(table)
        _warn_of_codes(self)
        self.cluster = None if cluster is None else _cluster_codes(table[cluster])
        self.weight = None if weights is None else in_units_of_rows(weights[positions])
        self.label_shares = None
        self.source, self.positions, self.weighs_labels = uuid.uuid4().hex, positions, missing_labels == "weigh"
        self._freeze()

    def _encode_features(self, table: nw.DataFrame[Any]) -> None:
        problem = self.problem
        names: list[str] = []
        blocks, owners, sources, recorded = [], [], [], []
        self.partial = {}
        for index, (group, columns) in enumerate(problem.groups.items()):
            present = []
            for column in columns:
                series = _fill_blank(table[column], problem)
                kind: dict[str, Any] = {}
                if column in problem.categories:
                    kind = {"categories": problem.categories[column]}
                elif column in problem.blank_means and (levels := declared_levels(table[column])) is not None:
                    meaning = str(problem.blank_means[column])
                    kind = {"categories": levels if meaning in levels else [*levels, meaning]}
                encoded = encode_column(series, **kind)
                names += encoded.names
                owners += [index] * len(encoded.names)
                sources += [problem.feature_columns.index(column)] * len(encoded.names)
                blocks.append(encoded.block)
                present.append(encoded.present)
            whole = np.logical_and.reduce(present)
            n_partial = int((np.logical_or.reduce(present) & ~whole).sum())
            if n_partial:
                self.partial[group] = n_partial
            recorded.append(whole)
        self.recorded = np.column_stack(recorded)
        self.columns, self.column_group = tuple(names), np.array(owners, dtype=np.intp)
        self.source_column = np.array(sources, dtype=np.intp)
        values = np.column_stack(blocks)
        self.values = np.where(self.recorded[:, self.column_group], values, np.nan)
        if self.partial:
            listed = ", ".join(f"{group!r} in {count}" for group, count in self.partial.items())
            warn(
                f"Groups recorded only in part count as not recorded: {listed} of {len(table)} rows. Split the "
                "group if its columns are measured separately, or declare 'blank_means' if a blank has a meaning.",
                PartialGroupWarning,
            )

    def _freeze(self) -> None:
        own = (self.values, self.recorded, self.labels, self.cluster, self.positions, self.weight, self.label_shares)
        for array in (*own, self.costs, self.classes, self.column_group, self.source_column):
            if array is not None:
                array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        share = ", ".join(
            f"{name} {100 * r:.0f} %" for name, r in zip(self.problem.group_names, self.recorded_share, strict=True)
        )
        if not self.labelled.all():
            share += f", {self.problem.label} {100 * float(mean_of(self.labelled, self.weight)):.0f} %"
        weighted = "" if self.weight is None else " with weights"
        return f"Retrospective({len(self)} rows{weighted}, {len(self.classes)} classes; recorded: {share})"

    @property
    def complete(self) -> Bools:
        """True for rows in which every group is recorded, shape (n,)."""
        return every(self.recorded)

    @property
    def identity(self) -> str:
        """Text that identifies these rows, so that only estimates on the same rows are compared."""
        return f"{self.source}:{hashlib.sha1(self.positions.tobytes()).hexdigest()}"

    @property
    def always_recorded(self) -> Bools:
        """True for groups that every row records, shape (G,)."""
        return np.asarray(self.recorded.all(axis=0))

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        return row_order((self.values[:, j] for j in self.columns_by_name), self.labels, self.cluster)

    @property
    def place(self) -> Ints:
        """Place of each row in the canonical order of the rows, (n,): by content, whatever the order in the table and the units.

        Random draws belong to places, so that they do not depend on the order of the rows.
        """
        return self._order[0]

    @property
    def unit(self) -> Ints:
        """Place of each row's cluster among the clusters, by content, (n,); `place` without clusters."""
        return self._order[1]

    @property
    def columns_by_name(self) -> Ints:
        """The columns in the order of their names, (d,), whatever the order of the groups."""
        return np.array(sorted(range(len(self.columns)), key=self.columns.__getitem__), dtype=np.intp)

    def in_canonical_order(self) -> Retrospective:
        """Return the records with rows in the order of `place`, and columns by name; groups keep their numbers."""
        columns, rows = self.columns_by_name, np.argsort(self.place)
        new = self.take(rows)
        new.values, new.columns = new.values[:, columns], tuple(self.columns[j] for j in columns)
        new.column_group, new.source_column = self.column_group[columns], self.source_column[columns]
        new.cluster = None if self.cluster is None else self.unit[rows]
        new._freeze()
        return new

    def _copy(self) -> Retrospective:
        new = copy(self)
        new.__dict__.pop("_order", None)  # the order of other rows
        return new

    def take(self, rows: NDArray[Any]) -> Retrospective:
        """Return the rows at these positions, or where a mask is True, with the same encoding."""
        rows = _checked_rows(rows, len(self))
        new = self._copy()
        new.values, new.recorded, new.labels = self.values[rows], self.recorded[rows], self.labels[rows]
        new.positions = self.positions[rows]
        new.cluster = None if self.cluster is None else self.cluster[rows]
        new.weight = None if self.weight is None or not len(new) else in_units_of_rows(self.weight[rows])
        new.label_shares = None  # these rows may represent another population
        new.original = None if self.original is None else self.original.take(rows)
        new._freeze()
        return new

    @property
    def labelled(self) -> Bools:
        """True for rows with a label, shape (n,)."""
        return np.asarray(self.labels >= 0) if self.original is None else self.original.labelled

    @property
    def true_labels(self) -> Ints:
        """Label codes, (n,), also if the label is a group; -1 in rows without a label."""
        return self.labels if self.original is None else self.original.labels

    @property
    def row_weight(self) -> Floats:
        """Weight of each row, (n,); 1 without weights."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def gaps(self) -> Ints:
        """Number of rows without each group, (G,)."""
        return np.asarray((~self.recorded).sum(axis=0))

    def without(self, groups: Sequence[int]) -> int:
        """Number of rows that lack one of these groups."""
        return int((~self.recorded[:, list(groups)].all(axis=1)).sum())

    @property
    def recorded_share(self) -> Floats:
        """Share of the cases in which each group is recorded, (G,)."""
        return mean_of(self.recorded, self.weight)

    def with_labels(self) -> Retrospective:
        """Return the rows with a label, to learn from; the records themselves if every row has one."""
        if self.labelled.all():
            return self
        found = self.take(np.flatnonzero(self.labelled))
        _check_classes(found.labels, self.classes, self.problem)
        return found

    def with_weights(self, weights: Any) -> Retrospective:
        """Return the records with other row weights.

        Parameters
        ----------
        weights : array-like of shape (n,)
            How many cases of the population each row stands for; finite and not negative. Rows of weight 0 are left out.
        """
        found = checked_weights(weights, "'weights'", len(self))
        new = self.take(found > 0)
        new.weight = in_units_of_rows(found[found > 0])
        new._freeze()
        return new

    def _sharing(self, shares: Floats) -> Retrospective:
        """Return the records with weights that give every label its share of the population."""
        new = copy(self)
        new.weight = in_units_of_rows(sharing_weights(self.row_weight, self.labels, shares))
        new.label_shares = np.array(shares)
        new._freeze()
        return new

    def hide(self, keep: Bools) -> Retrospective:
        """Return the records without the groups for which ``keep``, shape (n, G), is False; with (n, G + 1), labels too."""
        shape, n_groups = getattr(keep, "shape", None), self.recorded.shape[1]
        if shape not in (self.recorded.shape, (len(self), n_groups + 1)) or np.asarray(keep).dtype != bool:
            raise ValueError(
                f"'keep' must be booleans of shape {self.recorded.shape}, rows by groups, but is {shown(keep)}. One more column "
                "hides labels."
            )
        new, keep = self._copy(), np.asarray(keep)
        if shape != self.recorded.shape:
            new.labels, new.label_shares, new.weighs_labels = np.where(keep[:, -1], self.labels, -1), None, True
            _check_classes(new.labels[new.labelled], self.classes, self.problem)
        new.recorded = self.recorded & keep[:, :n_groups]
        new.values = np.where(new.recorded[:, self.column_group], self.values, np.nan)
        new._freeze()
        return new

    def split(self, shares: Sequence[float], random_state: int | None = 0) -> list[Retrospective]:
        """Split the rows at random into splits with these shares; rows of one cluster stay together.

        Parameters
        ----------
        shares : sequence of float
            Positive numbers that sum to 1.
        random_state : int or None
            Seed.

        Returns
        -------
        list of Retrospective
            One per share.
        """
        check_seed(random_state)
        shares = check_list("shares", shares, "numbers")
        sizes = np.array([as_float(share) if is_number(share) else np.nan for share in shares])
        if not len(sizes) or not (sizes > 0).all() or not abs(sizes.sum() - 1) <= 1e-9:
            raise ValueError(f"'shares' must be positive and sum to 1, but is {shown(shares)}.")
        units = units_of(len(self), self.cluster)
        n_units = int(units.max()) + 1
        place = np.empty(n_units, dtype=np.intp)
        place[np.random.default_rng(random_state).permutation(n_units)] = np.arange(n_units)
        bounds = np.round(np.cumsum(sizes) * n_units).astype(int)
        chosen = np.searchsorted(bounds, place[units], side="right").clip(max=len(sizes) - 1)
        empty = [k for k in range(len(sizes)) if not (chosen == k).any()]
        if empty:
            raise ValueError(
                f"'shares' must give every split a row, but {list(shares)} of {n_units} rows or clusters leave split {empty[0]} "
                "empty."
            )
        parts = [self.take(np.flatnonzero(chosen == k)) for k in range(len(sizes))]
        known = self.label_shares
        if known is None or any(len(np.unique(part.labels)) < len(known) for part in parts):
            return parts
        return [part._sharing(known) for part in parts]

    def fingerprints(self) -> NDArray[np.uint64]:
        """Hash of values and label of each row, shape (n,), to recognise rows in separately built tables."""
        canonical = np.where(np.isnan(self.values), np.nan, self.values + 0.0)  # one NaN, no negative zero
        bits = np.column_stack([canonical.view(np.uint64), self.labels.astype(np.uint64)])
        key = np.asarray(np.random.default_rng(0).integers(1, 2**63, size=bits.shape[1], dtype=np.uint64))
        with np.errstate(over="ignore"):
            mixed = (bits ^ (bits >> np.uint64(31))) * (2 * key + np.uint64(1))
            mixed = (mixed ^ (mixed >> np.uint64(29))) * (2 * key[::-1] + np.uint64(1))
            return np.asarray(mixed.sum(axis=1, dtype=np.uint64))


def _checked_rows(rows: Any, n_rows: int) -> NDArray[Any]:
    """Return positions of rows, or a mask, as an array."""
    rule = f"'rows' must be positions below {n_rows}, or {n_rows} booleans"
    if isinstance(rows, str | bytes | dict | set):
        raise TypeError(f"{rule}, but is {shown(rows)}.")
    try:
        found = np.arange(n_rows)[rows] if isinstance(rows, slice) else np.asarray(rows)
    except Exception as error:  # numpy calls the user's objects
        raise TypeError(f"{rule}, but is {shown(rows)}.") from error
    mask = found.dtype == bool
    whole = found.dtype.kind in "iu" or found.size == 0
    if found.ndim != 1 or (mask and len(found) != n_rows) or not (mask or whole):
        raise ValueError(f"{rule}, but is {shown(rows)}.")
    if not mask and ((found < -n_rows) | (found >= n_rows)).any():
        raise ValueError(f"{rule}, but contains {found[(found < -n_rows) | (found >= n_rows)][0]}.")
    return found if mask else found.astype(np.intp)


def drawn_weight(data: Retrospective, drawn: Floats) -> Floats:
    """Weight of each row in a bootstrap replicate, (n,), that drew the rows so often.

    If the shares of labels are known, they are the same in every replicate.
    """
    weight = drawn * data.row_weight
    return weight if data.label_shares is None else sharing_weights(weight, data.labels, data.label_shares)


def check_records(data: Any, argument: str = "data") -> Retrospective:
    """Return ``data``; raise an error if it is not a `Retrospective`."""
    if not isinstance(data, Retrospective):
        raise TypeError(f"{argument!r} must be an afape.Retrospective, not {type(data).__name__}.")
    return data


def _column_of_weights(series: nw.Series[Any]) -> Floats:
    values = plain_values(series)
    if values.dtype == object:
        raise ValueError(f"'weight' must name a column of numbers, but {series.name!r} holds {shown(values[0])}.")
    return checked_weights(values, f"The column {series.name!r} that 'weight' names", len(values))


def _as_table(frame: Any, problem: Problem, named: Mapping[str, str | None]) -> nw.DataFrame[Any]:
    """Return the table; ``named`` are further columns that it must have, by argument."""
    if not isinstance(problem, Problem):
        raise TypeError(f"'problem' must be an afape.Problem, not {type(problem).__name__}.")
    if isinstance(frame, pd.DataFrame) and any(column_name(c) is not c for c in frame.columns):
        frame = frame.set_axis([column_name(c) for c in frame.columns], axis=1)  # a copy
    lazy = hasattr(frame, "collect_schema") and not hasattr(frame, "height")
    names = [] if lazy else list(getattr(frame, "column_names", getattr(frame, "columns", [])))
    doubled = sorted({str(name) for name in names if names.count(name) > 1})
    if doubled:
        raise ValueError(f"'frame' must not repeat a column name, but has {doubled} more than once.")
    try:
        table: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise TypeError(
            "'frame' must be a pandas, polars or pyarrow table in memory (collect a lazy one first), not "
            f"{type(frame).__name__}."
        ) from error
    further = {column: argument for argument, column in named.items() if column is not None}
    wanted = [*problem.feature_columns, problem.label, *further]
    absent = [name for name in wanted if name not in table.columns]
    if absent:
        namer = repr(further[absent[0]]) if absent[0] in further else "the problem"
        raise ValueError(
            f"'frame' has no column {absent[0]!r}, which {namer} names"
            f"{' as label' if absent[0] == problem.label else ''} ({len(absent)} columns are missing in total). "
            f"Its columns are {table.columns[:20]}."
        )
    if len(table) == 0:
        raise ValueError("'frame' must have rows, but is empty.")
    return table


def _fill_blank(series: nw.Series[Any], problem: Problem) -> nw.Series[Any]:
    if series.name not in problem.blank_means:
        return series
    meaning = problem.blank_means[series.name]
    values = plain_values(series)
    blank = pd.isna(values)
    if pd.isna(meaning):
        raise ValueError(f"'blank_means' of column {series.name!r} must be a value, but is {meaning!r}.")
    kinds = {type(v) for v in values[~blank]} if values.dtype == object else set()
    if kinds and kinds <= {bool, np.bool_} and meaning in (0, 1):
        meaning = bool(meaning)
    if kinds == {str} and not isinstance(meaning, str):
        raise ValueError(f"'blank_means' of the text column {series.name!r} must be text, but is {meaning!r}.")
    try:
        filled = np.where(blank, meaning, values)
        filled = filled.astype(float) if values.dtype == float else filled
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"'blank_means' of the numeric column {series.name!r} must be a number, but is {meaning!r}."
        ) from error
    return nw.from_native(pd.Series(filled, name=series.name), series_only=True)


def _warn_of_codes(data: Retrospective) -> None:
    """Warn about numbers that look like codes for a missing value, except in columns with an entry in 'blank_means'."""
    found = {}
    for j, column in enumerate(data.columns):
        if column in data.problem.feature_columns and column not in data.problem.blank_means:
            codes = missing_codes(data.values[:, j])
            if codes:
                found[column] = codes
    if not found:
        return
    listed = "; ".join(
        f"{column!r}: {', '.join(f'{code:g} in {count}' for code, count in codes.items())}"
        for column, codes in list(found.items())[:_LISTED]
    )
    more = f", and {len(found) - _LISTED} more columns" if len(found) > _LISTED else ""
    least = {column: min(codes) for column, codes in found.items()}
    column, code = next(iter(least.items()))
    warn(
        f"Some numbers look like codes for a missing value ({listed} of {len(data)} rows{more}), but count as recorded values. "
        "If they mean that nothing was recorded, make them NaN: "
        f"frame[{column!r}] = frame[{column!r}].replace({code:g}, numpy.nan). If they are values with a meaning, name the "
        f"columns in 'blank_means' of the Problem, which are not asked about: blank_means={{{column!r}: {code:g}}}.",
        CodeValuesWarning,
    )


def _check_classes(labels: Ints, classes: NDArray[Any], problem: Problem) -> None:
    if len(labels) == 0:
        raise ValueError(f"No row has a label in column {problem.label!r}.")
    if len(classes) < 2:
        raise ValueError(
            f"The label column {problem.label!r} must have at least two classes, but every row is "
            f"{classes.tolist()[0]!r}. If other classes exist elsewhere, list them in 'classes' of the Problem."
        )
    if len(classes) > 20 and len(classes) > len(labels) / 2:
        raise ValueError(
            f"The label column {problem.label!r} has {len(classes)} different values in {len(labels)} rows and looks "
            "continuous. afape evaluates classifiers: bin the label first."
        )
    problem.cost_matrix(len(classes), classes.tolist())


def _cluster_codes(series: nw.Series[Any]) -> Ints:
    # Whole numbers stay whole: as floats, long identifiers could become equal.
    whole = series.dtype.is_integer() and not series.is_null().any()
    values = np.asarray(series.to_numpy()) if whole else np.array(series.to_list(), dtype=object)
    blank = int(pd.isna(values).sum())
    if blank:
        raise ValueError(
            f"The cluster column {series.name!r} is blank in {blank} of {len(values)} rows. Give every row a "
            "cluster; a single row gets its own cluster."
        )
    if series.dtype.is_float() and (np.abs(values.astype(float)) >= 2.0**53).any():
        raise ValueError(
            f"The cluster column {series.name!r} holds numbers of more than 15 digits as floats, so different numbers may "
            "have become equal. Read the column as text."
        )
    return np.asarray(pd.factorize(values)[0], dtype=np.intp)
