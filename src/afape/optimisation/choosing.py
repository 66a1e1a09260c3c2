"""optimize(): choose a policy from a family by its estimated cost, and estimate the cost of the choice on other rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from .._arguments import check_count, check_list, check_number, check_seed, check_takes, shown
from .._copies import HandsOutCopies
from ..agents.policy import Policy
from ..classifiers import Classifier
from ..comparison import check_settings, compare
from ..data.retrospective import Retrospective, check_records
from ..estimators.catalogue import ranked
from ..estimators.estimate import Estimate
from ..missingness.assumptions import MAR, MCAR, MNAR
from ..results.comparison import Comparison
from ..results.evaluation import Evaluation

__all__ = ["Optimisation", "optimize"]


@dataclass(frozen=True, eq=False)
class Optimisation(HandsOutCopies):
    """A policy chosen from a family.

    Attributes
    ----------
    curve : DataFrame
        One line per member: ``member``, ``parameter``, ``estimate``, ``std_error``, ``lower``, ``upper`` and ``chosen``, from
        the rows used for the choice. The smallest of many estimates is too low on average: use ``evaluation`` for the cost
        of the winner.
    winner : str
        Name of the chosen member.
    policy : Policy
        The chosen policy; if it was trained, on all rows used for the choice.
    evaluation : Evaluation
        Evaluation of the winner on held-out rows, which were used neither for training nor for the choice.
    estimator : str
        Estimator used for the choice.
    """

    curve: pd.DataFrame
    winner: str
    policy: Policy
    evaluation: Evaluation
    estimator: str

    @property
    def cost(self) -> Estimate:
        """Total cost of the winner on the held-out rows."""
        return self.evaluation[self.estimator]["total"]

    @property
    def optimism(self) -> float:
        """Cost of the winner on the held-out rows minus its estimate in the choice."""
        chosen = float(self.curve.loc[self.curve["chosen"], "estimate"].iloc[0])
        return self.cost.value - chosen

    def __repr__(self) -> str:
        low, high = self.cost.interval()
        return (
            f"{self.winner} of {len(self.curve)} members, total cost {self.cost.value:.4g} ({low:.4g} to {high:.4g}) on "
            f"held-out rows by {self.estimator}\n{self.curve.round(4).to_string(index=False)}"
        )


def _sound_and_quick() -> list[str]:
    """Return the recommended estimators, without those that run policies on many completed tables."""
    return [m.name for m in ranked() if m.semi_offline and m.weighs]


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
    """Choose the cheapest policy of a family, by the recommended estimator of `compare`.

    The rows are split in two sets. On the first set the total cost of every member is estimated; members that need training
    are trained and evaluated by cross-validation. The cheapest member is trained on the whole first set. Its cost is then
    estimated on the second set, which was not used for the choice.

    Parameters
    ----------
    data : Retrospective
        Records; the classifier should not have been trained on them.
    family : mapping, list, or callable with ``parameters``
        Members by name, a list of members, or ``family(parameter)`` for each of the parameters (price multiplier, threshold,
        seed). A member is a policy, or a function ``train(data)`` that returns a policy.
    classifier : Classifier
        Predicts the label where the policies stop. A member that predicts labels itself, such as a trained `JointDQN` or
        `CwCF`, is judged with its own predictions.
    missingness : MCAR, MAR or MNAR
        Assumption about why values are missing.
    parameters : sequence, optional
        Arguments of a callable family, one per member.
    holdout : float
        Share of the rows in the second set.
    n_splits : int
        Folds of the cross-validation, if members need training.
    random_state : int or None
        Seed of the splits and of `compare`.
    **settings
        Further arguments of `compare`, such as ``estimators``, ``propensity`` or ``confidence``.

    Returns
    -------
    Optimisation

    Examples
    --------
    >>> import afape
    >>> from afape.benchmark.synthetic import synthetic_mar
    >>> experiment = synthetic_mar(3000)
    >>> classifier, data, _ = experiment.prepare()
    >>> share = afape.optimize(data, afape.RandomSubset, classifier, parameters=[0.0, 0.5, 1.0],
    ...                        missingness=experiment.missingness)
    >>> share.winner
    '0.0'
    """
    check_records(data)
    check_number("holdout", holdout, "be a share strictly between 0 and 1", lambda share: 0 < share < 1)
    check_count("n_splits", n_splits, 2)
    if not isinstance(missingness, MNAR):  # with a graph, the applicable estimators depend on the policies
        settings.setdefault("estimators", _sound_and_quick())
    settings |= {"random_state": check_seed(random_state)}
    check_settings(data, classifier, missingness, settings)
    settings |= {"missingness": missingness}
    members, names = _members(family, parameters)
    choice, held = data.split([1 - holdout, holdout], random_state)
    trained = any(_is_trainer(member) for member in members.values())
    folds = _folds(choice, n_splits, random_state) if trained else [(choice, choice)]
    found = [
        _compared(test, {name: _policy(m, train, name) for name, m in members.items()}, classifier, settings)
        for train, test in folds
    ]
    estimator = found[0].best_estimator
    curve = _curve(found, [len(test) for _, test in folds], names, estimator)
    winner = str(curve.loc[curve["chosen"], "member"].iloc[0])
    policy = _policy(members[winner], choice, winner)
    evaluated = _compared(held, {winner: policy}, classifier, settings)
    return Optimisation(curve, winner, policy, evaluated[winner], estimator)


def _compared(
    data: Retrospective, policies: dict[str, Policy], classifier: Classifier, settings: Mapping[str, Any]
) -> Comparison:
    """Compare policies on the same rows; those that also classify are judged with their own predictions."""
    judges: dict[str, Any] = {name: p for name, p in policies.items() if callable(getattr(p, "predict", None))}
    shared = {name: p for name, p in policies.items() if name not in judges}
    found = [compare(data, shared, classifier, **settings)] if shared else []
    found += [compare(data, {name: policies[name]}, judge, **settings) for name, judge in judges.items()]
    evaluations = {name: e for comparison in found for name, e in comparison.evaluations.items()}
    return Comparison({name: evaluations[name] for name in policies}, found[0].confidence)


def _members(family: Any, parameters: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the members by name, and the parameter of each."""
    if parameters is not None:
        if not callable(family) or isinstance(family, Mapping):
            raise TypeError(
                f"'family' must be callable if 'parameters' are given, but is {type(family).__name__}. Leave "
                "'parameters' out, or pass a function of one parameter that returns a policy."
            )
        parameters = check_list("parameters", parameters, "values such as [0.5, 1.0, 2.0]")
        names = {str(p): p for p in parameters}
        if len(names) < len(parameters):
            raise ValueError(f"'parameters' must be different, but are {list(parameters)}. List each once.")
        check_takes("family", family, "parameter")
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
        if _is_trainer(member):
            check_takes("family", member, "training rows")
    return members, names


def _short(member: Any) -> str:
    text = shown(member)
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


def _folds(data: Retrospective, n_splits: int, random_state: int | None) -> list[tuple[Retrospective, Retrospective]]:
    """Return pairs of training and test rows for cross-validation."""
    tests = data.split([1 / n_splits] * n_splits, None if random_state is None else random_state + 1)
    return [(data.take(~np.isin(data.positions, test.positions)), test) for test in tests]


def _curve(found: list[Comparison], sizes: list[int], names: Mapping[str, Any], estimator: str) -> pd.DataFrame:
    """Return a table with the cost of each member over all folds; ``chosen`` marks the cheapest."""
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
            f"'family' must have a member whose cost {estimator!r} can estimate, but the records give at most "
            "bounds for each member. afape.check_support shows which groups the records lack."
        )
    return curve.assign(chosen=curve.index == curve["estimate"].idxmin())
