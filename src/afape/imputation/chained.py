"""Chained equations: draw each group with gaps given all other groups and the label, in several rounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from .._arguments import check_choice, check_count
from .._arrays import Floats, Ints
from ..data.extreme_values import limit_extreme_values
from ..data.retrospective import Retrospective
from .incomplete_groups import IncompleteGroup, incomplete_groups
from .regressions import LinearModel
from .trees import TreeModel

__all__ = ["MODELS", "ChainedImputer", "chained"]

MODELS = ("trees", "linear", "matching")


class GroupModel(Protocol):
    """Draws a group in the rows that lack it."""

    def draw(self, group: IncompleteGroup, predictors: Floats, labels: Ints, rng: np.random.Generator) -> Floats:
        """Draw the columns of the group in the rows that lack it."""
        ...


class ChainedImputer:
    r"""Impute from :math:`p(X_{mis} \mid X_{obs}, Y)` by chained equations over groups.

    Groups with gaps take turns. Each is drawn, in all rows that lack it, given the label and the present values of all
    other groups, by a model whose parameters are drawn too, so that imputations are proper. The columns
    of a group are missing together and are drawn together. A row that records a group only in part counts as
    lacking it, as everywhere in afape: which of its columns a row lacks may depend on their values in ways that the
    assumption on groups does not cover. `Retrospective` warns of such rows. Draws do not depend on the order of rows and
    groups.

    Parameters
    ----------
    model : {"trees", "linear", "matching"}
        Model of a group.

        - "trees": values of a row in the same leaf of a tree grown on a bootstrap sample. Finds interactions and steps,
          draws a group whole, only draws values that were recorded, and has finer leaves with more rows.
        - "linear": normal linear regressions for numbers, logistic ones for categories, one per label class with enough
          rows. Better in small data if the relations are linear. Slow if categories have many levels.
        - "matching": as "linear", but a number is taken from a row with a similar prediction.
    n_sweeps : int
        Turns of every group. With one group, one is enough.
    min_leaf : int
        Least number of recorded rows in a leaf of a tree.

    Examples
    --------
    >>> import pandas as pd
    >>> from afape import Problem, Retrospective
    >>> problem = Problem({"a": ["a"], "b": ["b"]}, costs={"b": 1.0}, label="y", misclassification_cost=5.0)
    >>> frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": ["no", None, "yes", None], "y": [0, 0, 1, 1]})
    >>> [table.shape for table in ChainedImputer().impute(Retrospective(frame, problem), 2, random_state=0)]
    [(4, 3), (4, 3)]
    """

    def __init__(self, model: str = "trees", *, n_sweeps: int = 5, min_leaf: int = 5) -> None:
        self.model = check_choice("model", model, MODELS)
        self.n_sweeps = check_count("n_sweeps", n_sweeps, 1)
        self.min_leaf = check_count("min_leaf", min_leaf, 1)

    def impute(self, data: Retrospective, n_imputations: int, random_state: int | None) -> Iterator[Floats]:
        """Completed tables of shape (n, d), one after another; table k depends only on the seed and k."""
        lacking = np.flatnonzero(~data.recorded.any(axis=0))
        if len(lacking):
            name = data.problem.group_names[lacking[0]]
            raise ValueError(f"'data' must record every group somewhere, but {name!r} is recorded in no row.")
        ordered = data.in_canonical_order()
        where = np.ix_(data.place, np.argsort(data.columns_by_name))  # rows and columns of the records in ``ordered``
        limited = limit_extreme_values(ordered.values)[0]  # one mistyped value must not decide a model
        groups = incomplete_groups(ordered, limited)
        for seed in np.random.SeedSequence(random_state).spawn(n_imputations):
            rng = np.random.default_rng(seed)
            table = chained(limited.copy(), ordered.labels, groups, self._model(), self.n_sweeps, rng)[where]
            yield table if limited is ordered.values else np.where(np.isnan(data.values), table, data.values)

    def _model(self) -> GroupModel:
        return TreeModel(self.min_leaf) if self.model == "trees" else LinearModel(self.model == "matching")

    def __repr__(self) -> str:
        return f"ChainedImputer({self.model!r}, n_sweeps={self.n_sweeps}, min_leaf={self.min_leaf})"


def chained(
    values: Floats,
    labels: Ints,
    groups: list[IncompleteGroup],
    model: GroupModel,
    n_sweeps: int,
    rng: np.random.Generator,
) -> Floats:
    """Draw the groups with gaps in turns, in place; returns ``values`` (n, d)."""
    known = np.isfinite(values.sum(axis=0))  # columns without gaps
    for sweep in range(n_sweeps if len(groups) > 1 else 1):
        for group in groups:
            if sweep == 0:  # given the groups that are complete by now
                given = known.copy()
                known[group.columns] = True
            else:
                given = ~np.isin(np.arange(len(known)), group.columns)
            values[np.ix_(group.absent, group.columns)] = model.draw(group, values[:, given], labels, rng)
    return values
