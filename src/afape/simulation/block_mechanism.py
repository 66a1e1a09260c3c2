"""A mechanism that records whole blocks of groups together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..arrays import Bools, Floats
from ..data import Retrospective
from ..nuisance.propensity.known import KnownPropensity
from .mechanisms import LogisticMechanism

__all__ = ["BlockMechanism"]


class BlockMechanism:
    r"""Record the groups of a block together, by one coin, its odds log-linear in always recorded columns.

    .. math:: P(R \ge S \mid x) = \prod_{B: B \cap S \ne \emptyset} \sigma\Big(b_B + \sum_c w_{Bc} x_c\Big)

    Parameters
    ----------
    blocks : mapping from block name to its groups
        Groups that are in no block are always recorded.
    intercepts : mapping from block name to b_B
        0 where not named.
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
        self.blocks = {name: list(groups) for name, groups in blocks.items()}
        self.intercepts, self.weights = dict(intercepts or {}), {b: dict(w) for b, w in (weights or {}).items()}
        for argument, named in (("intercepts", self.intercepts), ("weights", self.weights)):
            if unknown := [b for b in named if b not in self.blocks]:
                raise ValueError(f"{argument!r} must name blocks {list(self.blocks)}, but {unknown[0]!r} is none.")
        listed = [g for groups in self.blocks.values() for g in groups]
        if twice := [g for g in listed if listed.count(g) > 1]:
            raise ValueError(f"'blocks' must not share groups, but {twice[0]!r} is in more than one.")
        if empty := [name for name, groups in self.blocks.items() if not groups]:
            raise ValueError(f"'blocks' must have groups, but {empty[0]!r} has none.")
        # By group, the same odds in every group of a block.
        self._each = LogisticMechanism(
            {g: self.intercepts.get(b, 0.0) for b, groups in self.blocks.items() for g in groups},
            {g: self.weights.get(b, {}) for b, groups in self.blocks.items() for g in groups},
        )

    def hide(self, data: Retrospective, random_state: int | None = 0) -> Retrospective:
        """Hide blocks at random."""
        rng = np.random.default_rng(random_state)
        probability = self._each.probabilities(data)
        keep = np.ones(data.recorded.shape, dtype=bool)
        for groups in self.blocks.values():
            index = data.problem.group_index(groups, "blocks")
            keep[:, index] = (rng.random(len(data)) < probability[:, index[0]])[:, None]
        return data.hide(keep)

    def propensity(self, data: Retrospective) -> KnownPropensity:
        """The true P(R >= S | given); ``data`` tells which columns there are."""
        index = [data.problem.group_index(groups, "blocks") for groups in self.blocks.values()]

        def product_of_blocks(values: Floats, required: Bools) -> Floats:
            probability = self._each.probabilities(data, values)
            out = np.ones(len(values))
            for groups in index:
                out *= np.where(required[:, groups].any(axis=1), probability[:, groups[0]], 1.0)
            return out

        return KnownPropensity(product_of_blocks)

    def __repr__(self) -> str:
        return f"BlockMechanism({self.blocks}, {self.intercepts}, {self.weights})"
