"""Options of evaluate() and compare(), written down once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ParamSpec, TypeVar

from .._arguments import shown
from ..support.thresholds import SupportThresholds
from ..walk.walker import WalkOptions
from .bootstrap import Bootstrap

__all__ = ["Options", "with_options"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Options:
    """Options of `evaluate` and `compare`.

    Parameters
    ----------
    estimators : list of str, optional
        Names of estimators. Default: all that the assumption allows: ``imp-mean``, ``blocking``, ``cc`` (biased, included
        because they are common practice), ``ipw-miss``, ``mi``, ``ipw-semi``, ``dm-semi``, ``drl-semi`` and ``eff-semi``. If
        recording depends on groups with gaps, ``ipw-semi-miss``, ``dm-semi-miss``, ``drl-semi-miss`` and ``eff-semi-miss``
        replace the last four, and ``mi`` is left out.
    propensity : optional
        None to learn it by default models, a scikit-learn classifier or `LearnedPropensity` to choose the model, a
        `KnownPropensity`, or a list of one learned and one known. In a list, names of estimators with the known one end in
        ``-gt``.
    values : LearnedValues, KnownValues, str or regressor, optional
        Source of the action values: `LearnedValues` (a name or a scikit-learn regressor means
        ``LearnedValues(regressor)``) or `KnownValues`. If values are learned, the doubly robust part of ``eff-semi``
        uses ridge regression, whatever the regressor. Its parts then add up to its costs.
    normalize : bool
        True divides each weighted mean by the mean weight (Hajek). False does not. Mean weights are reported either
        way.
    acquisition_weight : {"before", "after"}
        Weight of a price in IPW. "before" uses the weight of the set before the decision. "after", as in the paper,
        uses the weight of the set with the new group.
    bootstrap : int or Bootstrap
        Number of replicates of the refitting bootstrap, or a `Bootstrap`; 0 for no bootstrap. Without bootstrap,
        ``dm-semi`` has an interval only if its action values are known or learned by ridge regression.
    confidence : float
        Level of the intervals.
    n_folds : int, optional
        Folds for cross-fitting, 5 by default; 1 learns and uses models on the same rows.
    split : float, optional
        Replaces cross-fitting, as in the paper: learn from this share of the rows, average over the others.
    n_repeats : int
        Number of repeats with other folds and other donors of ``eff-semi``. Estimates and influence values are means over the
        repeats, so the answer depends less on ``random_state``: four repeats halve the difference between two seeds. Standard
        errors hardly change, and time grows with the number of repeats. ``mi`` has ``n_imputations`` instead.
    imputer : optional
        Imputer of ``mi``: None or "trees", "linear", "matching" (see `ChainedImputer`), any object with
        ``impute(data, n_imputations, random_state)`` that returns complete tables of shape (n, d), or a scikit-learn
        imputer that draws at random.
    n_imputations : int, optional
        Number of completed tables of ``mi``, 10 by default. The policy runs on each table, so ``mi`` takes several times as
        long as all other estimators together. To avoid this, list other estimators in ``estimators``.
    random_state : int or None
        Seed of folds, sampled walks, bootstrap, imputations and the draws of ``eff-semi``. With None, every call uses a
        new seed.
    n_jobs : int or None
        Number of processes that walk chunks of rows and refit replicates.
    walk : WalkOptions, optional
        Budgets of the exact walk, and how rows beyond them are sampled.
    thresholds : SupportThresholds, optional
        Limits below which a set counts as unsupported. If more than a negligible share of the policy's runs wants
        unsupported sets, estimators return `Bounds` (see `check_support`).
    outcomes : mapping from name to function, optional
        Your own outcomes: ``f(values, acquired, labels)`` returns one number per case, at the state where its run stops. They
        are estimated like the misclassification cost. `brier`, `log_loss` and `score` make such functions from a classifier
        with ``predict_proba``.
    by : str or array, optional
        Name of a recorded column, or one entry per row. It defines subgroups: ``result.subgroups`` has all estimates
        for each. The ``support.estimators`` of a subgroup has its effective rows and weights.
    """

    estimators: Sequence[str] | None = None
    propensity: Any = None
    values: Any = None
    normalize: bool = True
    acquisition_weight: str = "before"
    bootstrap: int | Bootstrap = 0
    confidence: float = 0.95
    n_folds: int | None = None
    split: float | None = None
    n_repeats: int = 1
    imputer: Any = None
    n_imputations: int | None = None
    random_state: int | None = 0
    n_jobs: int | None = None
    walk: WalkOptions | None = None
    thresholds: SupportThresholds | None = None
    outcomes: Mapping[str, Callable[..., Any]] | None = None
    by: Any = None

    @staticmethod
    def of(function: str, given: Mapping[str, Any]) -> Options:
        """Return options from keyword arguments; raises TypeError for an unknown name."""
        names = [field.name for field in fields(Options)]
        if odd := [name for name in given if name not in names]:
            raise TypeError(f"afape.{function} has no option {odd[0]!r}. Its options are {names}.")
        return Options(**given)

    def changed(self) -> dict[str, str]:
        """Return the options that differ from their defaults, as text; ``random_state`` and ``n_jobs`` are left out."""
        named = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {
            name: shown(value)
            for name, (value, default) in named.items()
            if value is not default and shown(value) != shown(default) and name not in ("random_state", "n_jobs")
        }


def with_options(function: Callable[P, R]) -> Callable[P, R]:
    """Add `Options` to the signature and the docstring of a function that takes them as keyword arguments."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    options = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in inspect.signature(Options).parameters.values()]
    function.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    listed = inspect.cleandoc(Options.__doc__ or "").split("----------\n", 1)[1]
    doc = inspect.cleandoc(function.__doc__ or "")
    function.__doc__ = doc.replace("**options\n    Options, see below.", listed)
    return function
