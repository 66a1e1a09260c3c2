"""Weights for training on records with gaps, and a comparison of ways to train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arguments import shown
from .._arrays import Bools, Floats, Ints, unique_sets
from ..agents.settings import SetWeights
from ..classifiers import Classifier
from ..comparison import check_settings, compare
from ..data.label_group import with_label_group
from ..data.retrospective import Retrospective, check_records
from ..missingness.assumptions import MAR, MCAR
from ..propensity.binding import bind_propensity
from ..propensity.learned import LearnedPropensity
from ..results.comparison import Comparison

__all__ = ["compare_training", "labelled_rows", "training_weights"]


def training_weights(
    data: Retrospective, missingness: MCAR | MAR, propensity: LearnedPropensity | None = None
) -> SetWeights:
    r"""Inverse-probability weights of states, for training an agent.

    .. math:: w_S = 1 / P(R \ge S \mid X_o)

    A row that has S recorded then also represents rows that lack it. Pass the weights to ``fit`` of `afape.agents.DQN` or
    `FittedQ`. They are needed if recording depends on groups that the agent may not have acquired; otherwise they only
    change the variance.

    Parameters
    ----------
    data : Retrospective
        The records that the agent is trained on.
    missingness : MCAR or MAR
        Assumption about why values are missing.
    propensity : LearnedPropensity, optional
        Model of the probability. Default: logistic regression with the chain rule. Probabilities below its
        ``min_propensity`` are raised to it.

    Returns
    -------
    callable
        ``weights(rows, sets)`` with rows (m,) of ``data`` and sets (m, G), giving (m,).
    """
    check_records(data)
    how = _checked_model(missingness, propensity)
    given = missingness.conditioning(data, np.ones(data.problem.n_groups, dtype=bool))
    fold = np.zeros(len(data), dtype=np.intp)
    bound = bind_propensity(how, data, given, fold, np.ones((1, data.problem.n_groups), dtype=bool))

    def weights(rows: Ints, sets: Bools) -> Floats:
        p = bound.probability(rows, *unique_sets(sets))
        return np.asarray(1 / np.maximum(p, max(how.min_propensity, np.finfo(float).tiny)))

    return weights


def _checked_model(missingness: Any, propensity: Any) -> LearnedPropensity:
    """Return the model of the probability; raise an error if these arguments cannot give weights for training."""
    if not isinstance(missingness, MCAR | MAR):
        raise TypeError(
            f"'missingness' must be afape.MCAR() or afape.MAR(given=[...]), but is {shown(missingness)}. With a graph, weights "
            "depend on the adjustment: train without weights, or assume MAR."
        )
    how = LearnedPropensity() if propensity is None else propensity
    if not isinstance(how, LearnedPropensity):
        raise TypeError(f"'propensity' must be an afape.LearnedPropensity or None, but is {type(how).__name__}.")
    return how


def labelled_rows(
    data: Retrospective, missingness: MCAR | MAR, propensity: LearnedPropensity | None = None
) -> Retrospective:
    r"""Return the rows with a label, with row weights that make them represent all rows.

    .. math:: w_i / P(R_Y = 1 \mid X_o)

    with :math:`w_i` the weight that the row has already. Classifiers and agents that are trained on them learn for all cases.
    This matters if whether a label is recorded depends on values that the model does not see.

    Parameters
    ----------
    data : Retrospective
        Records, made with ``missing_labels="weigh"``.
    missingness : MCAR or MAR
        Assumption about why labels are missing.
    propensity : LearnedPropensity, optional
        Model of the probability, as in `training_weights`.
    """
    check_records(data)
    _checked_model(missingness, propensity)
    if data.labelled.all():
        return data
    extended = with_label_group(data)
    weights = training_weights(extended, missingness, propensity)
    rows, label = np.flatnonzero(data.labelled), np.arange(extended.problem.n_groups) == data.problem.n_groups
    found = np.zeros(len(data))
    found[rows] = data.row_weight[rows] * weights(rows, np.tile(label, (len(rows), 1)))
    return data.with_weights(found)


def compare_training(
    agent: Callable[..., Any],
    train: Retrospective,
    test: Retrospective,
    classifier: Classifier,
    *,
    missingness: MCAR | MAR,
    **settings: Any,
) -> Comparison:
    """Train an agent in three ways on the same records, and compare the costs of the three agents.

    - ``blocked``: as in a simulator that can only show recorded groups. Targets use the cheapest *recorded* action, so the
      agent expects to be blocked after deployment too, and undervalues groups that are useful only together.
    - ``all actions``: targets use the cheapest action, recorded or not.
    - ``weighted``: as ``all actions``, with the weights of `training_weights`. It differs if recording depends on groups
      that the agent may not have acquired.

    Parameters
    ----------
    agent : callable
        ``agent(targets="all")`` makes an untrained agent with ``fit(data, classifier, weights)``: `afape.agents.DQN`,
        `FittedQ`, or a ``functools.partial`` of them.
    train, test : Retrospective
        Records to train on, from which rows without a label are left out, and other records to compare on.
    classifier : Classifier
        Predicts the label where the agents stop.
    missingness : MCAR or MAR
        Assumption about why values are missing.
    **settings
        Further arguments of `compare`.

    Returns
    -------
    Comparison
        Of ``blocked``, ``all actions`` and ``weighted``; its ``differences()`` show the effect of blocking on training.
    """
    train = check_records(train, "train").with_labels()
    check_records(test, "test")
    blocked, unblocked, weighted = (_untrained(agent, targets) for targets in ("recorded", "all", "all"))
    check_settings(test, classifier, missingness, settings)
    weights = training_weights(train, missingness)
    agents = {
        "blocked": blocked.fit(train, classifier),
        "all actions": unblocked.fit(train, classifier),
        "weighted": weighted.fit(train, classifier, weights),
    }
    return compare(test, agents, classifier, missingness=missingness, **settings)


def _untrained(agent: Any, targets: str) -> Any:
    """Make an untrained agent."""
    way = "Pass, for example, afape.agents.FittedQ or functools.partial(FittedQ, max_states=1000)."
    rule = "'agent' must be callable as agent(targets='all') and return an untrained agent with a method fit"
    if not callable(agent):
        raise TypeError(f"{rule}, but is {type(agent).__name__}. {way}")
    try:
        made = agent(targets=targets)
    except TypeError as error:
        raise TypeError(f"{rule}, but that gives: {error}. {way}") from error
    if not callable(getattr(made, "fit", None)):
        raise TypeError(f"{rule}, but returns {type(made).__name__} without fit. {way}")
    return made
