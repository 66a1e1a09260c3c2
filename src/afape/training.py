"""Training on records with gaps: inverse propensities as weights, and what blocking does to an agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .agents import SetWeights
from .arrays import Bools, Floats, Ints, unique_sets
from .classifiers import Classifier
from .comparison import Comparison, check_settings, compare
from .data import Retrospective
from .missingness import MAR, MCAR
from .nuisance import LearnedPropensity, bind_propensity

__all__ = ["compare_training", "training_weights"]


def training_weights(
    data: Retrospective, missingness: MCAR | MAR, propensity: LearnedPropensity | None = None
) -> SetWeights:
    r"""Weights with which a row that has a set of groups recorded represents rows that lack it.

    .. math:: w_S = 1 / P(R \ge S \mid X_o)

    Pass them to the ``fit`` of `afape.agents.DQN` or `FittedQ`. They are needed where recording depends on groups that the
    agent may not have acquired; otherwise they change nothing but the variance.

    Parameters
    ----------
    data : Retrospective
        The very records that the agent is trained on.
    missingness : MCAR or MAR
        What is assumed about why values are missing.
    propensity : LearnedPropensity, optional
        How to learn the probability. Default: logistic regression along the chain rule. Probabilities below its
        ``min_propensity`` are raised to it.

    Returns
    -------
    callable
        ``weights(rows, sets)`` with rows (m,) of ``data`` and sets (m, G), giving (m,).
    """
    _check_records("data", data)
    if not isinstance(missingness, MCAR | MAR):
        raise TypeError(
            f"'missingness' must be afape.MCAR() or afape.MAR(given=[...]), but is {missingness!r}. Under a graph a row's weight "
            "depends on what is adjusted for: train without weights, or state what recording depends on as MAR."
        )
    how = LearnedPropensity() if propensity is None else propensity
    if not isinstance(how, LearnedPropensity):
        raise TypeError(f"'propensity' must be an afape.LearnedPropensity or None, but is {type(how).__name__}.")
    given = missingness.conditioning(data, np.ones(data.problem.n_groups, dtype=bool))
    fold = np.zeros(len(data), dtype=np.intp)
    bound = bind_propensity(how, data, given, fold, np.ones((1, data.problem.n_groups), dtype=bool))

    def weights(rows: Ints, sets: Bools) -> Floats:
        p = bound.probability(rows, *unique_sets(sets))
        return np.asarray(1 / np.maximum(p, max(how.min_propensity, np.finfo(float).tiny)))

    return weights


def compare_training(
    agent: Callable[..., Any],
    train: Retrospective,
    test: Retrospective,
    classifier: Classifier,
    *,
    missingness: MCAR | MAR,
    **settings: Any,
) -> Comparison:
    """Train an agent three ways on the same records, and compare what the three would cost.

    - ``blocked``: as in a simulator that can only show what is recorded. Targets take the cheapest *recorded* action, so that
      the agent expects to be blocked again after deployment, and undervalues groups that pay off together.
    - ``all actions``: targets take the cheapest action, recorded or not.
    - ``weighted``: the same, each state weighted by one over the probability that its groups are recorded. Differs from
      the second where recording depends on groups that the agent may not have acquired.

    Parameters
    ----------
    agent : callable
        Makes an untrained agent: ``agent(targets="all")``, with ``fit(data, classifier, weights)``. `afape.agents.DQN` and
        `FittedQ` themselves, or a ``functools.partial`` of them.
    train, test : Retrospective
        Records to train on, and others to compare on.
    classifier : Classifier
        Predicts where the agents stop.
    missingness : MCAR or MAR
        What is assumed about why values are missing.
    **settings
        Further arguments of `compare`.

    Returns
    -------
    Comparison
        Of ``blocked``, ``all actions`` and ``weighted``; its ``differences()`` show what blocking did to training.
    """
    _check_records("train", train)
    _check_records("test", test)
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
    """An agent that is not trained yet."""
    way = "Pass afape.agents.FittedQ, say, or functools.partial(FittedQ, max_states=1000)."
    rule = "'agent' must make an untrained agent with a method fit when it is called as agent(targets='all')"
    if not callable(agent):
        raise TypeError(f"{rule}, but is {type(agent).__name__}. {way}")
    try:
        made = agent(targets=targets)
    except TypeError as error:
        raise TypeError(f"{rule}, but that gives: {error}. {way}") from error
    if not callable(getattr(made, "fit", None)):
        raise TypeError(f"{rule}, but makes {type(made).__name__}, which has none. {way}")
    return made


def _check_records(argument: str, data: Any) -> None:
    """Refuse what are no records."""
    if not isinstance(data, Retrospective):
        raise TypeError(f"{argument!r} must be an afape.Retrospective, not {type(data).__name__}.")
