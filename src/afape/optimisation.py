"""optimize(): choose a policy from a family by its estimated cost, and tell honestly what the choice costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from .agents import Policy
from .arguments import check_count, check_number, check_seed
from .classifiers import Classifier
from .comparison import Comparison, check_settings, compare
from .data import Retrospective
from .estimators import Estimate
from .estimators.catalogue import ranked
from .missingness import MAR, MCAR, MNAR
from .result import Evaluation

__all__ = ["Optimisation", "optimize"]


@dataclass(frozen=True, eq=False)
class Optimisation:
    """A policy chosen from a family.

    Attributes
    ----------
    curve : DataFrame
        One line per member: ``member``, ``parameter``, ``estimate``, ``std_error``, ``lower``, ``upper`` and ``chosen``, from
        the rows that the choice was made on. The cheapest of many estimates is too low on average: read ``evaluation``
        for what the winner costs.
    winner : str
        Name of the chosen member.
    policy : Policy
        The chosen policy, trained on all rows of the choice if it is one that is trained.
    evaluation : Evaluation
        Of the winner, on held-out rows that had no part in training or choice.
    estimator : str
        By which the choice was made.
    """

    curve: pd.DataFrame
    winner: str
    policy: Policy
    evaluation: Evaluation
    estimator: str

    @property
    def cost(self) -> Estimate:
        """Total cost of the winner, from held-out rows."""
        return self.evaluation[self.estimator]["total"]

    @property
    def optimism(self) -> float:
        """By how much the winner looked cheaper where it was chosen than it is on the held-out rows."""
        chosen = float(self.curve.loc[self.curve["chosen"], "estimate"].iloc[0])
        return self.cost.value - chosen

    def __repr__(self) -> str:
        low, high = self.cost.interval()
        return (
            f"{self.winner} of {len(self.curve)} members, total cost {self.cost.value:.4g} ({low:.4g} to {high:.4g}) on "
            f"held-out rows by {self.estimator}\n{self.curve.round(4).to_string(index=False)}"
        )


def _sound_and_quick() -> list[str]:
    """Estimators of which the comparison recommends one, without those that run policies on many completed tables."""
    return [m.name for m in ranked() if m.view == "semi-offline" and "propensity" in m.needs]


def optimize(
    data: Retrospective,
    family: Mapping[str, Any] | Sequence[Any] | Callable[[Any], Any],
    classifier: Classifier,
    *,
    missingness: MCAR | MAR | MNAR,
    parameters: Sequence[Any] | None = None,
    holdout: float = 0.3,
    n_splits: int = 3,
    random_state: int | None = 0,
    **settings: Any,
) -> Optimisation:
    """Choose the policy of a family that is the cheapest by the recommended estimator of `compare`.

    The rows are split in two. On the first part, the total cost of every member is estimated; members that are trained are
    trained on a share of it and judged on the rest, by cross-validation. The cheapest wins, is trained on the whole
    first part, and its cost is estimated anew on the second part, which no choice has seen.

    Parameters
    ----------
    data : Retrospective
        Records; the classifier should not have been trained on them.
    family : mapping, list, or callable with ``parameters``
        Members by name, in a list, or ``family(parameter)`` for each of the parameters (price multiplier, threshold, seed).
        A member is a policy, or a function ``train(data)`` that returns one.
    classifier : Classifier
        Predicts where the policies stop.
    missingness : MCAR, MAR or MNAR
        What is assumed about why values are missing.
    parameters : sequence, optional
        What a callable family is called with.
    holdout : float
        Share of the rows that only the winner is judged on.
    n_splits : int
        Parts of the cross-validation, where members are trained.
    random_state : int or None
        Seed of the splits, and of `compare`.
    **settings
        Further arguments of `compare`, such as ``estimators``, ``propensity`` or ``confidence``.

    Returns
    -------
    Optimisation

    Examples
    --------
    >>> import afape
    >>> from afape.experiments import synthetic_mar
    >>> experiment = synthetic_mar(3000)
    >>> classifier, data, _ = experiment.parts()
    >>> share = afape.optimize(data, afape.RandomSubset, classifier, parameters=[0.0, 0.5, 1.0],
    ...                        missingness=experiment.missingness)
    >>> share.winner
    '0.0'
    """
    if not isinstance(data, Retrospective):
        raise TypeError(f"'data' must be an afape.Retrospective, not {type(data).__name__}.")
    check_number("holdout", holdout, "be a share strictly between 0 and 1", lambda share: 0 < share < 1)
    check_count("n_splits", n_splits, 2)
    if not isinstance(missingness, MNAR):  # under a graph the policies decide which estimators apply
        settings.setdefault("estimators", _sound_and_quick())
    settings |= {"random_state": check_seed(random_state)}
    check_settings(data, classifier, missingness, settings)
    settings |= {"missingness": missingness}
    members, names = _members(family, parameters)
    choice, held = data.split([1 - holdout, holdout], random_state)
    trained = any(_is_trainer(member) for member in members.values())
    parts = _parts(choice, n_splits, random_state) if trained else [(choice, choice)]
    found = [
        compare(test, {name: _policy(m, train, name) for name, m in members.items()}, classifier, **settings)
        for train, test in parts
    ]
    estimator = found[0].best_estimator
    curve = _curve(found, [len(test) for _, test in parts], names, estimator)
    winner = str(curve.loc[curve["chosen"], "member"].iloc[0])
    policy = _policy(members[winner], choice, winner)
    judged = compare(held, {winner: policy}, classifier, **settings)
    return Optimisation(curve, winner, policy, judged[winner], estimator)


def _members(family: Any, parameters: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Members by name, and the parameter of each."""
    if parameters is not None:
        if not callable(family) or isinstance(family, Mapping):
            raise TypeError(
                f"'family' must be callable where 'parameters' are given, but is {type(family).__name__}. Leave "
                "'parameters' out, or pass a function of one parameter that returns a policy."
            )
        if isinstance(parameters, str | Mapping) or not isinstance(parameters, Iterable):
            raise TypeError(f"'parameters' must be a list, but is {parameters!r}. Write [0.5, 1.0, 2.0], say.")
        parameters = list(parameters)
        names = {str(p): p for p in parameters}
        if len(names) < len(parameters):
            raise ValueError(f"'parameters' must be different, but are {list(parameters)}. List each once.")
        members = {name: family(p) for name, p in names.items()}
    elif isinstance(family, Mapping):
        members, names = dict(family), dict.fromkeys(family)
    elif isinstance(family, Sequence) and not isinstance(family, str):
        members = {f"{k}: {_short(m)}": m for k, m in enumerate(family)}
        names = dict.fromkeys(members)
    else:
        raise TypeError(
            f"'family' must be a mapping or list of policies, or a function with 'parameters', but is {type(family).__name__}"
            " without 'parameters'. Pass parameters=[...] with a function, or a list of policies."
        )
    if not members:
        raise ValueError("'family' must have at least one member, but has none. List the policies to choose from.")
    for name, member in members.items():
        if not callable(member) and not hasattr(member, "probabilities"):
            raise TypeError(
                f"'family' must hold policies, or functions of the training rows that return one, but {name!r} is "
                f"{type(member).__name__}. A policy has a method probabilities(values, acquired)."
            )
    return members, names


def _short(member: Any) -> str:
    text = repr(member)
    return getattr(member, "__name__", type(member).__name__) if " at 0x" in text or len(text) > 60 else text


def _is_trainer(member: Any) -> bool:
    return not hasattr(member, "probabilities")


def _policy(member: Any, train: Retrospective, name: str) -> Policy:
    policy = member(train) if _is_trainer(member) else member
    if not hasattr(policy, "probabilities"):
        raise TypeError(
            f"'family' must hold functions that return a policy, but {name!r} returned {type(policy).__name__}. Return "
            "the trained agent."
        )
    return policy  # type: ignore[no-any-return]


def _parts(data: Retrospective, n_splits: int, random_state: int | None) -> list[tuple[Retrospective, Retrospective]]:
    """Rows to train on and rows to judge on, by turns."""
    tests = data.split([1 / n_splits] * n_splits, None if random_state is None else random_state + 1)
    return [(data.take(~np.isin(data.positions, test.positions)), test) for test in tests]


def _curve(found: list[Comparison], sizes: list[int], names: Mapping[str, Any], estimator: str) -> pd.DataFrame:
    """Cost of each member over all parts, and which is the cheapest."""
    share = np.array(sizes) / sum(sizes)
    confidence = found[0].confidence
    lines = []
    for name, parameter in names.items():
        answers = [comparison.estimates(estimator, "total").get(name) for comparison in found]
        value = float(sum(w * (np.nan if e is None else e.value) for w, e in zip(share, answers, strict=True)))
        errors = np.array([np.nan if e is None else e.std_error for e in answers])
        error = float(np.sqrt((share**2 * errors**2).sum()))
        half = float(ndtri((1 + confidence) / 2)) * error
        lines.append((name, parameter, value, error, value - half, value + half))
    columns = ["member", "parameter", "estimate", "std_error", "lower", "upper"]
    curve = pd.DataFrame(lines, columns=columns)
    if curve["estimate"].isna().all():
        raise ValueError(
            f"'family' must have a member whose cost {estimator!r} can estimate, but for all of them the records give bounds "
            "or nothing. See afape.check_support for what they lack."
        )
    return curve.assign(chosen=curve.index == curve["estimate"].idxmin())
