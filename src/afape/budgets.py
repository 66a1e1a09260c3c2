"""budget_curve(): costs, errors and acquisitions of one policy under several budgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._arguments import check_between, check_choice, check_count, check_estimator, check_list, shown
from .agents.budgets import CostBudget, StepBudget
from .agents.policy import Policy, check_policy
from .classifiers import Classifier
from .comparison import compare
from .data.retrospective import Retrospective, check_records
from .estimators.catalogue import METHODS
from .evaluation import true_averages
from .missingness.assumptions import MAR, MCAR, MNAR
from .results.budget_curve import BudgetCurve
from .results.parts import Parts
from .results.twins import own_name

__all__ = ["budget_curve"]

_KINDS = ("cost", "steps", "soft")
_OF_TRUTH = ("confidence", "random_state", "n_jobs", "walk")


def budget_curve(
    data: Retrospective,
    policy: Policy | Callable[[Any], Policy],
    classifier: Classifier,
    budgets: Sequence[float],
    *,
    kind: str = "cost",
    missingness: MCAR | MAR | MNAR | None = None,
    estimator: str | None = None,
    **options: Any,
) -> BudgetCurve:
    """Estimate costs, error rate and number of acquisitions of a policy under several budgets.

    With hard budgets, policy and classifier are asked about each state once, for all budgets: a run within a small budget is
    the start of a run within a large one.

    Parameters
    ----------
    data : Retrospective
        Records to evaluate on, or complete data.
    policy
        The policy; with ``kind="soft"`` a function that returns the policy of one soft budget, such as
        ``lambda weight: DQN(price_multiplier=weight).fit(train, classifier)``.
    classifier
        Predicts the label where runs stop.
    budgets : sequence of float
        Budgets to compare, each once.
    kind : {"cost", "steps", "soft"}
        "cost" limits the sum of the prices of a run, see `afape.agents.CostBudget`. "steps" limits the number of groups, see
        `StepBudget`. "soft": ``policy(budget)`` makes each policy, which is then not limited.
    missingness : MCAR, MAR or MNAR, optional
        The assumption about why values are missing. Complete data need none: costs are then computed as in `true_cost`.
    estimator : str, optional
        Default: "drl-semi", with a graph the preferred estimator of `compare`.
    **options
        Further arguments of `compare`, or of `true_cost` without ``missingness``.

    Returns
    -------
    BudgetCurve

    Examples
    --------
    >>> import afape
    >>> from afape.benchmark.synthetic import synthetic_mar
    >>> experiment = synthetic_mar(3000)
    >>> classifier, data, _ = experiment.prepare()
    >>> curve = afape.budget_curve(data, afape.AcquireAll(), classifier, [0, 1, 2], kind="steps",
    ...                            missingness=experiment.missingness)
    >>> curve["acquisitions"]["estimate"].round(2).tolist()
    [0.0, 1.0, 2.0]
    """
    check_records(data)
    check_choice("kind", kind, _KINDS)
    if estimator is not None:
        check_choice("estimator", check_estimator(estimator), [n + gt for n in METHODS for gt in ("", "-gt")])
    made = _policies(policy, budgets, kind)
    if len(made) < len(check_list("budgets", budgets, "numbers")):
        raise ValueError(f"'budgets' must be different numbers, but are {shown(list(budgets))}. List each once.")
    if missingness is None:
        return _true_curve(data, made, classifier, kind, estimator, options)
    if estimator is None and not isinstance(missingness, MNAR):
        estimator = "drl-semi"
    if "estimators" in options:
        raise TypeError("'estimators' must be left out: a curve has one estimator, the argument 'estimator'.")
    if not isinstance(missingness, MNAR):  # with a graph, the name of the estimator depends on the budget
        options["estimators"] = [estimator]
    policies = {f"{budget:.12g}": limited for budget, limited in made.items()}
    found = compare(data, policies, classifier, missingness=missingness, **options)
    name = found.best_estimator if estimator is None else estimator
    # A lookup raises the reason if a budget has no estimate. Under a graph, budgets may differ in what they adjust for.
    names = [own_name(e, name) for e in found.evaluations.values()]
    costs = [e[own] for e, own in zip(found.evaluations.values(), names, strict=True)]
    parts = [e.parts(own) for e, own in zip(found.evaluations.values(), names, strict=True)]
    return BudgetCurve(tuple(made), costs, parts, name, kind, found.confidence, found.provenance)


def _true_curve(
    data: Retrospective, made: dict[float, Policy], classifier: Any, kind: str, estimator: Any, options: dict[str, Any]
) -> BudgetCurve:
    """Return the curve on complete data."""
    if not data.complete.all():
        raise ValueError(
            f"'missingness' must be given, because {int((~data.complete).sum())} of {len(data)} rows have gaps. Pass, for "
            "example, afape.MAR(given=[...])."
        )
    unused = [name for name in options if name not in _OF_TRUTH]
    if estimator is not None or unused:
        name = unused[0] if unused else "estimator"
        raise TypeError(
            f"{name!r} must be left out, because without 'missingness' the costs of complete data are computed."
        )
    found = true_averages(data, list(made.values()), classifier, **options)
    confidence = options.get("confidence", 0.95)
    costs = [average.answer().estimates for average in found]
    parts = [Parts("truth", average.parts(), average.tariff, confidence) for average in found]
    return BudgetCurve(tuple(made), costs, parts, "truth", kind, confidence)


def _policies(policy: Any, budgets: Any, kind: str) -> dict[float, Policy]:
    """Return the policy of each budget, smallest first."""
    listed = check_list("budgets", budgets, "numbers such as [5.0, 10.0, 20.0]")
    if not listed:
        raise ValueError("'budgets' must have at least one number, but is empty.")
    for budget in listed:
        if kind == "steps":
            check_count("budgets", budget, 0)
        else:
            check_between("budgets", budget, 0.0 if kind == "cost" else float("-inf"))
    ordered = sorted(listed)
    if kind == "soft":
        if (hasattr(policy, "probabilities") and not isinstance(policy, type)) or not callable(policy):
            raise TypeError(
                f"'policy' must be a function that makes the policy of each soft budget, but is {shown(policy)}. For hard "
                "budgets of one policy, use kind='cost' or kind='steps'."
            )
        return {float(budget): check_policy(policy(budget), "policy(budget)") for budget in ordered}
    limit = CostBudget if kind == "cost" else StepBudget
    return {float(budget): limit(check_policy(policy), budget) for budget in ordered}
