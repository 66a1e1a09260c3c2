"""population_weights(): weights of rows from known shares of labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .retrospective import Retrospective, check_records
from .row_weights import label_shares

__all__ = ["population_weights"]


def population_weights(data: Retrospective, shares: Mapping[Any, float]) -> Retrospective:
    r"""Return the records with row weights that give every label its share in the population.

    Use it for case-control samples and other samples that were drawn by label. A row with label k gets the weight
    :math:`\pi_k / \hat p_k`, with :math:`\pi_k` the share of k in the population and :math:`\hat p_k` its share in the
    records. If the records have weights already, these are scaled within every label. Rows of one label must represent all cases
    with this label.

    Because the shares are known, standard errors contain only the variation within labels.

    Parameters
    ----------
    data : Retrospective
        Records with every label.
    shares : mapping from label to float
        Share of each label in the population; one of them may be left out. If there are two labels, the name of the label
        column stands for the second one, as in ``{"died": 0.02}``.

    Returns
    -------
    Retrospective
        Its ``weight`` has the weights.

    Examples
    --------
    >>> import pandas as pd
    >>> from afape import Problem
    >>> problem = Problem({"a": ["a"], "b": ["b"]}, costs={"b": 1.0}, label="died", misclassification_cost=5.0)
    >>> frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [None, 3.0, 4.0], "died": [0, 1, 1]})
    >>> population_weights(Retrospective(frame, problem), {"died": 0.1}).weight
    array([18.,  1.,  1.])
    """
    check_records(data)
    if not data.labelled.all():
        raise ValueError(
            f"'data' must have all labels, but {int((~data.labelled).sum())} of {len(data)} rows have none. Give weights of your "
            "own: data.with_weights(...)."
        )
    known = label_shares(shares, data.classes.tolist(), data.problem.label)
    lacking = np.setdiff1d(np.arange(len(known)), data.labels)
    if len(lacking):
        raise ValueError(
            f"'data' must have rows of every label that 'shares' names, but no row has {data.classes.tolist()[lacking[0]]!r}: "
            "no weight can represent these cases."
        )
    return data._sharing(known)
