"""The catalogue of methods, one entry each. All code that lists, allows, orders or ranks estimators reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from .answer import Reduction
from .baselines import blocking, complete_cases, mean_imputed
from .dm import direct_method
from .drl import doubly_robust
from .eff.efficient import efficient
from .evidence import Evidence, ViewKey
from .ipw import inverse_probability
from .mi import multiple_imputation

__all__ = ["METHODS", "Choice", "Method", "ranked"]


@dataclass(frozen=True, eq=False)
class Method:
    """One method to estimate the cost of a policy.

    Attributes
    ----------
    name : str
        Name for users.
    view : {"none", "missing-data", "semi-offline", "hybrid"}
        Which rows are weighted: "missing-data" weights complete rows; "semi-offline" weights every row that has the wanted
        groups; "hybrid" does so if recording depends on groups with gaps.
    walk : {"recorded", "blocked", "mean-imputed", "completed"}
        Which runs of the policy it uses.
    needs : frozenset of str
        What must be fitted: "propensity" of every set, "root" (only the propensity of the groups to adjust for), action
        "values", "imputations", "components" (runs on rows of which some groups are shown and the others drawn).
    biased : bool
        True if it is known to be biased whenever values are missing.
    rank : int or None
        Rank when a method is chosen to compare policies, 1 is preferred; None if it is never chosen.
    reduce : callable
        ``reduce(evidence)`` returns a `Reduction`.
    practice, does, right_under : str
        Texts for tables: who uses it, what it does, under which assumption it is right.
    """

    name: str
    view: str
    walk: str
    needs: frozenset[str]
    biased: bool
    rank: int | None
    reduce: Callable[[Evidence], Reduction]
    practice: str = "own"
    does: str = ""
    right_under: str = ""

    @property
    def weighs(self) -> bool:
        """True if it weights rows by the propensity of their recorded sets."""
        return "propensity" in self.needs

    @property
    def uses_propensity(self) -> bool:
        """True if it weights rows by a propensity, even if only by that of the groups to adjust for."""
        return bool(self.needs & {"propensity", "root"})

    @property
    def valued(self) -> bool:
        """True if it uses action values."""
        return "values" in self.needs

    @property
    def composed(self) -> bool:
        """True if it uses components: runs on rows of which some groups are shown and the others drawn."""
        return "components" in self.needs

    @property
    def imputes(self) -> bool:
        """True if it uses completed tables."""
        return "imputations" in self.needs

    @property
    def semi_offline(self) -> bool:
        """True if it weights every row that has the wanted groups, given groups that are always recorded."""
        return self.view == "semi-offline"

    @property
    def hybrid(self) -> bool:
        """True if it weights every row that has the wanted groups and the groups to adjust for."""
        return self.view == "hybrid"

    @property
    def complete_rows(self) -> bool:
        """True if it weights complete rows."""
        return self.view == "missing-data"

    def __reduce__(self) -> tuple[Any, ...]:
        # Methods are compared by identity, so a result that is read from a file must use those of this catalogue.
        listed = METHODS.get(self.name) is self
        return (_listed, (self.name,)) if listed else (Method, tuple(getattr(self, f.name) for f in fields(self)))


class Choice(NamedTuple):
    """An estimator of one evaluation: a method and its propensity."""

    method: Method
    propensity: str  # name of the propensity; the first one for methods that need none
    name: str  # name in tables
    key: ViewKey | None  # key of its view; None if it does not weight rows


_NONE: frozenset[str] = frozenset()
_WEIGHTS, _VALUES, _TABLES = frozenset({"propensity"}), frozenset({"values"}), frozenset({"imputations"})
_ROOT = frozenset({"root", "values"})
_ALL = frozenset({"propensity", "values", "components"})
_COMMON, _MISSING, _SEMI, _HYBRID = "common practice", "missing-data view", "semi-offline view", "hybrid view"
_ROOT_RIGHT = "a graph, if the propensity of the adjustment set is right, and"

# fmt: off
_CATALOGUE = (
    #      name             view            walk            needs               biased rank reduce
    Method("imp-mean",      "none",         "mean-imputed", _NONE,              True, None, mean_imputed,
           _COMMON, "fills gaps with column means, then runs the agent", "nothing missing"),
    Method("blocking",      "none",         "blocked",      _NONE,              True, None, blocking,
           _COMMON, "lets the agent acquire only what was recorded", "nothing missing"),
    Method("cc",            "none",         "recorded",     _NONE,              True, None, complete_cases,
           _COMMON, "averages over complete rows", "MCAR"),
    Method("ipw-miss",      "missing-data", "recorded",     _WEIGHTS,           False, 8, inverse_probability,
           _MISSING, "weights complete rows", "MAR or a graph, if the propensity is right"),
    Method("mi",            "none",         "completed",    _TABLES,            False, 7, multiple_imputation,
           _MISSING, "completes the records several times, runs the agent on each table, pools by Rubin's rules",
           "MAR, if the imputation model is right"),
    Method("ipw-semi",      "semi-offline", "recorded",     _WEIGHTS,           False, 5, inverse_probability,
           _SEMI, "weights every row that has the groups the agent wants", "MAR, if the propensity is right"),
    Method("ipw-semi-miss", "hybrid",       "recorded",     _WEIGHTS,           False, 6, inverse_probability,
           _HYBRID, "applies `ipw-semi` to rows that have the adjustment set, weighted by its inverse propensity",
           "a graph, if the propensity is right"),
    Method("dm-semi",       "semi-offline", "recorded",     _VALUES,            False, 9, direct_method,
           _SEMI, "learns the expected cost to go and averages it over all rows", "MAR, if the action values are right"),
    Method("dm-semi-miss",  "hybrid",       "recorded",     _ROOT,              False, 10, direct_method,
           _HYBRID, "applies `dm-semi` to rows that have the adjustment set, weighted by its inverse propensity",
           "a graph, if the propensity of the adjustment set and the action values are right"),
    Method("drl-semi",      "semi-offline", "recorded",     _WEIGHTS | _VALUES, False, 3, doubly_robust,
           _SEMI, "combines `ipw-semi` and `dm-semi`: weights correct action values, action values reduce the variance",
           "MAR, if the propensity or the action values are right"),
    Method("drl-semi-miss", "hybrid",       "recorded",     _WEIGHTS | _VALUES, False, 4, doubly_robust,
           _HYBRID, "applies `drl-semi` to rows that have the adjustment set, weighted by its inverse propensity",
           f"{_ROOT_RIGHT} the inner propensity or the action values are right"),
    Method("eff-semi",      "semi-offline", "recorded",     _ALL,               False, 1, efficient,
           _SEMI, "weights each component of the cost by only the groups it needs, and combines the result with `drl-semi`",
           "MAR, if the propensity is right, or both the imputation model and the action values are right"),
    Method("eff-semi-miss", "hybrid",       "recorded",     _ALL,               False, 2, efficient,
           _HYBRID, "applies `eff-semi` to rows that have the adjustment set, weighted by its inverse propensity",
           f"{_ROOT_RIGHT} either the inner propensity is right or both the imputation model and the action values are right"),
)
# fmt: on

METHODS: dict[str, Method] = {method.name: method for method in _CATALOGUE}  # in their usual order


def _listed(name: str) -> Method:
    """Return the method with this name."""
    return METHODS[name]


def ranked() -> list[Method]:
    """Return the methods that may compare policies, the preferred one first."""
    ranks = {m.name: m.rank for m in METHODS.values() if m.rank is not None}
    return [METHODS[name] for name in sorted(ranks, key=ranks.__getitem__)]
