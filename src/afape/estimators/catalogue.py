"""The catalogue of methods: one line each. Whatever lists, allows, orders or ranks estimators reads this table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from ..nuisance.fitted import Evidence, ViewKey
from .dm import direct_method
from .drl import doubly_robust
from .eff import efficient
from .ipw import inverse_probability
from .mi import multiple_imputation
from .plain import blocking, complete_cases, mean_imputed
from .reduction import Reduced

__all__ = ["METHODS", "Choice", "Method", "ranked"]


@dataclass(frozen=True, eq=False)
class Method:
    """One way to estimate what a policy costs.

    Attributes
    ----------
    name : str
        What users call it.
    view : {"none", "missing-data", "semi-offline", "hybrid"}
        How rows are used: "semi-offline" and "hybrid" weigh every row that has what the policy wants, the latter where what
        recording depends on has gaps; "missing-data" weighs complete rows.
    walk : {"recorded", "blocked", "mean-imputed", "completed"}
        Which runs of the policy it reads.
    needs : frozenset of str
        What has to be fitted: "propensity" of every set, "root" (the propensity of what is adjusted for, alone), action
        "values", "imputations", "components" (the policy run on rows completed from some of their groups).
    biased : bool
        Whether it is known to be biased wherever something is missing.
    rank : int or None
        Place among the methods by which policies are compared, 1 first; None: never.
    reduce : callable
        ``reduce(evidence)`` gives the answer.
    practice, does, right_under : str
        For tables: who uses it, what it does, under which assumption it is right.
    """

    name: str
    view: str
    walk: str
    needs: frozenset[str]
    biased: bool
    rank: int | None
    reduce: Callable[[Evidence], Reduced]
    practice: str = "own"
    does: str = ""
    right_under: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        # A result that comes out of a file goes by the methods of this catalogue, which are compared by identity.
        listed = METHODS.get(self.name) is self
        return (_listed, (self.name,)) if listed else (Method, tuple(getattr(self, f.name) for f in fields(self)))


class Choice(NamedTuple):
    """An estimator of one evaluation: a method, and the propensity that it weighs by."""

    method: Method
    propensity: str  # name of the propensity; methods that take none go by the first
    name: str  # what it is called in tables
    key: ViewKey | None  # the view that it reads; None where it weighs nothing


_NONE: frozenset[str] = frozenset()
_WEIGHTS, _VALUES, _TABLES = frozenset({"propensity"}), frozenset({"values"}), frozenset({"imputations"})
_ROOT = frozenset({"root", "values"})
_ALL = frozenset({"propensity", "values", "components"})
_COMMON, _MISSING, _SEMI, _HYBRID = "common practice", "missing-data view", "semi-offline view", "hybrid view"
_INNER = "a graph, propensity of what is adjusted for right, and either of the rest"

# fmt: off
_CATALOGUE = (
    #      name             view            walk            needs               biased rank reduce
    Method("imp-mean",      "none",         "mean-imputed", _NONE,              True, None, mean_imputed,
           _COMMON, "fills gaps with means, then runs the agent", "nothing missing"),
    Method("blocking",      "none",         "blocked",      _NONE,              True, None, blocking,
           _COMMON, "lets the agent have only what was recorded", "nothing missing"),
    Method("cc",            "none",         "recorded",     _NONE,              True, None, complete_cases,
           _COMMON, "looks at complete rows", "MCAR"),
    Method("ipw-miss",      "missing-data", "recorded",     _WEIGHTS,           False, 8, inverse_probability,
           _MISSING, "weighs complete rows", "MAR or a graph, propensity right"),
    Method("mi",            "none",         "completed",    _TABLES,            False, 7, multiple_imputation,
           _MISSING, "completes the records several times, runs the agent on each, Rubin's rules",
           "MAR, imputation model right"),
    Method("ipw-semi",      "semi-offline", "recorded",     _WEIGHTS,           False, 5, inverse_probability,
           _SEMI, "weighs every row that has what the agent wants", "MAR, propensity right"),
    Method("ipw-semi-miss", "hybrid",       "recorded",     _WEIGHTS,           False, 6, inverse_probability,
           _HYBRID, "the same in rows that have what recording depends on, weighted for having it",
           "a graph, propensity right"),
    Method("dm-semi",       "semi-offline", "recorded",     _VALUES,            False, 9, direct_method,
           _SEMI, "learns the cost to go, averages it over all rows", "MAR, action values right"),
    Method("dm-semi-miss",  "hybrid",       "recorded",     _ROOT,              False, 10, direct_method,
           _HYBRID, "the same in rows that have what recording depends on, weighted for having it",
           "a graph, propensity of what is adjusted for and action values right"),
    Method("drl-semi",      "semi-offline", "recorded",     _WEIGHTS | _VALUES, False, 3, doubly_robust,
           _SEMI, "both at once: weights correct the values, values stabilise the weights", "MAR, either right"),
    Method("drl-semi-miss", "hybrid",       "recorded",     _WEIGHTS | _VALUES, False, 4, doubly_robust,
           _HYBRID, "the same in rows that have what recording depends on, weighted for having it", _INNER),
    Method("eff-semi",      "semi-offline", "recorded",     _ALL,               False, 1, efficient,
           _SEMI, "weights each part of the cost by just the groups that it needs, mixed with `drl-semi`",
           "MAR, propensity right, or both the models of what is missing and the action values"),
    Method("eff-semi-miss", "hybrid",       "recorded",     _ALL,               False, 2, efficient,
           _HYBRID, "the same in rows that have what recording depends on, weighted for having it", _INNER),
)
# fmt: on

METHODS: dict[str, Method] = {method.name: method for method in _CATALOGUE}  # in their usual order


def _listed(name: str) -> Method:
    """The method of this name."""
    return METHODS[name]


def ranked() -> list[Method]:
    """Methods by which policies may be compared, the preferred one first."""
    ranks = {m.name: m.rank for m in METHODS.values() if m.rank is not None}
    return [METHODS[name] for name in sorted(ranks, key=ranks.__getitem__)]
