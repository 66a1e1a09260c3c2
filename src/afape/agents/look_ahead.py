"""LookAhead: a model-based agent, which imputes what it would see and searches several acquisitions ahead."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arguments import check_count
from .._arrays import Floats, Ints
from .value_of_information import Imputed, ValueOfInformation

__all__ = ["LookAhead"]


class LookAhead(ValueOfInformation):
    r"""Search several acquisitions ahead with an imputation model, and acquire the group with the largest expected saving.

    With m draws :math:`x_g^k` of a group from the imputation model, the expected saving of the next D acquisitions is

    .. math:: V_D(x_S) = \max\Big(0, \max_{g \notin S} \frac1m \sum_{k=1}^m \Big[
        \sum_c P(c \mid x_{S+g}^k) \big( \ell_{c\,a(x_S)} - \ell_{c\,a(x_{S+g}^k)} \big) + V_{D-1}(x_{S+g}^k) \Big] - c_g \Big),
        \qquad V_0 = 0

    with :math:`a(\cdot)` and :math:`\ell_{ca}` as in `ValueOfInformation`, which is the case D = 1. After each acquisition the
    agent searches again. With D = 2 it also acquires two groups that are only useful together.

    Parameters
    ----------
    depth : int
        D, acquisitions ahead.
    n_draws : int
        m, imputed values per group.
    min_leaf, estimator, random_state
        As in `ValueOfInformation`.

    Notes
    -----
    A state costs about :math:`(m G)^D` predictions. In states after the first imputation, the search ends if the expected cost
    of stopping is not above the cheapest price: nothing can be saved there. The other model-based agents in the literature
    plan with networks as imputation models; here they are the trees with donors of `ValueOfInformation`.

    References
    ----------
    J. Yoon, W. R. Zame, M. van der Schaar, "Deep sensing: active sensing using multi-directional recurrent neural networks",
    ICLR 2018.
    H. Yin, Y. Li, S. J. Pan, C. Zhang, S. Tschiatschek, "Reinforcement learning with efficient active feature acquisition"
    (2020).
    Y. Li, J. B. Oliva, "Active feature acquisition with generative surrogate models", ICML 2021.
    """

    def __init__(
        self, depth: int = 2, n_draws: int = 10, min_leaf: int = 50, estimator: Any = None, random_state: int | None = 0
    ) -> None:
        super().__init__(n_draws, min_leaf, estimator, random_state)
        self.depth = depth

    def _check_arguments(self) -> None:
        super()._check_arguments()
        check_count("depth", self.depth, 1)

    def _saved_later(self, imputed: Imputed, ahead: Floats, codes: Ints, depth: int) -> Floats:
        if depth == 1:
            return np.zeros(len(imputed.row))
        stop = (self.costs_[:, codes].T * ahead).sum(axis=1)
        prices = np.where(imputed.acquired | self.layout_.free, np.inf, self.layout_.prices)
        saved = np.zeros(len(imputed.row))
        on = np.flatnonzero(stop > prices.min(axis=1))
        step = self._states_at_once
        for i in range(0, len(on), step):
            rows = on[i : i + step]
            worth = self._worth(imputed.values[rows], imputed.acquired[rows], codes[rows], depth - 1)
            saved[rows] = worth.max(axis=1)
        return saved

    @property
    def _depth(self) -> int:
        return self.depth
