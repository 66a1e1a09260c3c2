"""Mechanisms that hide groups of complete data, with known propensities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy.special import expit

from .._arguments import check_mapping, check_numbers, check_seed, check_texts, check_weights, positions_of
from .._arrays import Bools, Floats, Ints
from ..data.retrospective import Retrospective, check_records
from .known_propensity import KnownPropensity

__all__ = ["BlockMechanism", "IndependentMechanism", "LogisticMechanism"]

_WEIGHTS = "from names to mappings from columns to numbers"


class LogisticMechanism:
    r"""Record each group independently, with log odds that are linear in always recorded columns.

    .. math:: P(R_g = 1 \mid x) = \sigma\Big(b_g + \sum_c w_{gc} x_c\Big)

    Parameters
    ----------
    intercepts : mapping from group name to b_g
        Groups without intercept and weights are always recorded. The name of the label hides labels.
    weights : mapping from group name to a mapping from column to w_gc
        The columns must belong to groups that the mechanism never hides.

    Examples
    --------
    >>> mechanism = LogisticMechanism({"x1": -0.3}, {"x1": {"X0": 0.5}})
    """

    def __init__(
        self, intercepts: Mapping[str, float], weights: Mapping[str, Mapping[str, float]] | None = None
    ) -> None:
        self.intercepts = check_numbers("intercepts", intercepts, "from groups to numbers")
        self.weights = check_weights("weights", weights, _WEIGHTS)

    def probabilities(self, data: Retrospective, values: Floats | None = None) -> Floats:
        """P(R_g = 1 | x) of each group in each row, shape (n, G); (n, G + 1) with the label last if labels are hidden."""
        problem = data.problem
        values = data.values if values is None else values
        hidden = {*self.intercepts, *self.weights}
        names = _hideable(data, hidden)
        out = np.ones((len(values), len(names)))
        positions_of(sorted(self.intercepts), names, "intercepts")
        positions_of(sorted(self.weights), names, "weights")
        for group in hidden:
            odds = np.full(len(values), float(self.intercepts.get(group, 0.0)))
            for column, weight in self.weights.get(group, {}).items():
                if column not in data.columns:
                    raise ValueError(
                        f"'weights' must name columns of the data, but {column!r} is not one of them. They are "
                        f"{list(data.columns)}."
                    )
                j = data.columns.index(column)
                owner = problem.group_names[data.column_group[j]]
                if owner in hidden:
                    raise ValueError(
                        f"'weights' must name columns that are never hidden, but {column!r} belongs to {owner!r}, which "
                        "this mechanism hides: the data would be missing not at random."
                    )
                gaps = int(np.isnan(values[:, j]).sum())
                if gaps:
                    raise ValueError(
                        f"'weights' must name columns that are always recorded, but {column!r} is missing in {gaps} of "
                        f"{len(values)} rows. Use complete data."
                    )
                odds += weight * values[:, j]
            out[:, names.index(group)] = expit(odds)
        return out

    def hide(self, data: Retrospective, random_state: int | None = 0) -> Retrospective:
        """Hide groups at random."""
        rng = np.random.default_rng(check_seed(random_state))
        probability = self.probabilities(check_records(data))
        return data.hide(rng.random(probability.shape) < probability)

    def propensity(self, data: Retrospective) -> KnownPropensity:
        """Return the true P(R >= S | given); ``data`` gives the names of the columns."""
        check_records(data)

        def product_of_groups(values: Floats, required: Bools) -> Floats:
            probability = self.probabilities(data, values)
            return np.asarray(np.where(required, _of_required(probability, required), 1.0).prod(axis=1))

        return KnownPropensity(product_of_groups)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.intercepts}, {self.weights})"


def _hideable(data: Retrospective, hidden: Iterable[str]) -> tuple[str, ...]:
    """Names of what may be hidden: the groups, and the label if it is among the ``hidden`` ones."""
    names, label = data.problem.group_names, data.problem.label
    return (*names, label) if label in hidden else names


def _of_required(probability: Floats, required: Bools) -> Floats:
    """Probabilities with one column per column of ``required``; what is not hidden has probability 1."""
    width = required.shape[1]
    more = np.ones((len(probability), max(width - probability.shape[1], 0)))
    return np.column_stack([probability[:, :width], more])


class IndependentMechanism(LogisticMechanism):
    """Record each group independently, with a constant probability.

    Parameters
    ----------
    shares : mapping from group name to probability
        Groups that are not named are always recorded.
    """

    def __init__(self, shares: Mapping[str, float]) -> None:
        self.shares = check_numbers("shares", shares, "from groups to probabilities")
        for group, share in self.shares.items():
            if not 0 < share <= 1:
                raise ValueError(f"'shares' must lie in (0, 1], but {group!r} has {share!r}.")
        super().__init__({})

    def probabilities(self, data: Retrospective, values: Floats | None = None) -> Floats:
        """P(R_g = 1) of each group in each row, as in `LogisticMechanism`."""
        n_rows, names = len(data.values if values is None else values), _hideable(data, self.shares)
        out = np.ones((n_rows, len(names)))
        out[:, positions_of(list(self.shares), names, "shares")] = list(self.shares.values())
        return out

    def __repr__(self) -> str:
        return f"IndependentMechanism({self.shares})"


class BlockMechanism:
    r"""Record the groups of a block together, with log odds that are linear in always recorded columns.

    .. math:: P(R \ge S \mid x) = \prod_{B: B \cap S \ne \emptyset} \sigma\Big(b_B + \sum_c w_{Bc} x_c\Big)

    Parameters
    ----------
    blocks : mapping from block name to its groups
        Groups without a block are always recorded. The label may be in a block too.
    intercepts : mapping from block name to b_B
        Default: 0.
    weights : mapping from block name to a mapping from column to w_Bc
        The columns must belong to groups that the mechanism never hides.

    Examples
    --------
    >>> mechanism = BlockMechanism({"panel": ["x1", "x2"]}, {"panel": -0.3}, {"panel": {"X0": 0.5}})
    """

    def __init__(
        self,
        blocks: Mapping[str, Sequence[str]],
        intercepts: Mapping[str, float] | None = None,
        weights: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        named_groups = check_mapping("blocks", blocks, "from blocks to lists of groups", empty=True)
        self.blocks = {name: check_texts("blocks", groups, "group names") for name, groups in named_groups.items()}
        self.intercepts = check_numbers("intercepts", intercepts, "from blocks to numbers", optional=True)
        self.weights = check_weights("weights", weights, _WEIGHTS)
        for argument, named in (("intercepts", self.intercepts), ("weights", self.weights)):
            if unknown := [b for b in named if b not in self.blocks]:
                raise ValueError(
                    f"{argument!r} must name blocks, but {unknown[0]!r} is not one of {list(self.blocks)}."
                )
        listed = [g for groups in self.blocks.values() for g in groups]
        if twice := [g for g in listed if listed.count(g) > 1]:
            raise ValueError(f"'blocks' must not share groups, but {twice[0]!r} is in more than one.")
        if empty := [name for name, groups in self.blocks.items() if not groups]:
            raise ValueError(f"'blocks' must have groups, but {empty[0]!r} has none.")
        self._each = LogisticMechanism(  # one model per group; equal within a block
            {g: self.intercepts.get(b, 0.0) for b, groups in self.blocks.items() for g in groups},
            {g: self.weights.get(b, {}) for b, groups in self.blocks.items() for g in groups},
        )

    def hide(self, data: Retrospective, random_state: int | None = 0) -> Retrospective:
        """Hide blocks at random."""
        rng = np.random.default_rng(check_seed(random_state))
        probability = self._each.probabilities(check_records(data))
        keep = np.ones(probability.shape, dtype=bool)
        for groups in self.blocks.values():
            index = self._index(data, groups)
            keep[:, index] = (rng.random(len(data)) < probability[:, index[0]])[:, None]
        return data.hide(keep)

    def propensity(self, data: Retrospective) -> KnownPropensity:
        """Return the true P(R >= S | given); ``data`` gives the names of the columns."""
        check_records(data)
        index = [self._index(data, groups) for groups in self.blocks.values()]

        def product_of_blocks(values: Floats, required: Bools) -> Floats:
            probability = self._each.probabilities(data, values)
            out = np.ones(len(values))
            for groups in index:
                asked = groups[groups < required.shape[1]]
                out *= np.where(required[:, asked].any(axis=1), probability[:, groups[0]], 1.0)
            return out

        return KnownPropensity(product_of_blocks)

    def _index(self, data: Retrospective, groups: Sequence[str]) -> Ints:
        named = {g for listed in self.blocks.values() for g in listed}
        return positions_of(groups, _hideable(data, named), "blocks")

    def __repr__(self) -> str:
        return f"BlockMechanism({self.blocks}, {self.intercepts}, {self.weights})"
