"""Policies from methods that follow the AFABench protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arguments import check_choice, check_count, check_list, check_number, check_takes, shown
from .._arrays import Bools, Floats, Ints
from ..data.problem import Problem
from ..warnings import AssumedOrderWarning, StochasticMethodWarning, warn
from .afabench_calls import Caller, check_device, check_feature_shape, check_features, columns_of
from .policy import Policy, not_bound, one_hot_actions

__all__ = ["BenchPolicy", "BenchSettings", "from_afabench"]

_ASKED_TWICE = 16  # states per call that are asked twice, to find methods that draw their actions
_CALLS_TWICE = 4  # calls of which some states are asked twice
_SHARE = 1e-6  # largest probability of an acquired group that is a rounding error


def from_afabench(
    method: Any,
    selections: Sequence[str | int] | None = None,
    *,
    features: Sequence[str | int] | None = None,
    repeated: str = "raise",
    free: str = "done",
    n_draws: int = 1,
    probabilities: Callable[..., Any] | None = None,
    cost_param: float | None = None,
    device: Any = None,
    feature_shape: Sequence[int] | None = None,
) -> BenchPolicy:
    """Make a policy from an AFABench method.

    The method has ``act`` or ``select(masked_features, feature_mask, selection_mask=None, label=None,
    feature_shape=None)``. It gets torch tensors with 0 where a feature is not observed, and returns whole numbers of shape
    (batch, 1): 0 stops, k performs selection k - 1. It never gets the label; a method that needs it is refused.

    Parameters
    ----------
    method
        The method. Wrap the result in `CostBudget` for a hard budget.
    selections : sequence of group names or indices, optional
        The group that each selection acquires. Default: selection j is group j, and a warning says so. For a method that
        selects single columns: ``[problem.group_names[g] for g in data.column_group]``.
    features : sequence of column names or indices, optional
        The column of each feature of the method. Default: the columns of the data in their order, and a warning says so.
    repeated : {"raise", "stop"}
        What to do if the method selects a group that is already acquired: raise an error, or stop the run.
    free : {"done", "open"}
        How ``selection_mask`` shows free groups: as selections that are done, or as open, as in AFABench.
    n_draws : int
        Calls per state. With more than 1 call, the probability of an action is its share among the calls. Use this for
        methods that draw their action and do not give its probabilities.
    probabilities : callable, optional
        Function with the arguments of ``act`` that returns the probabilities of a method that draws, shape (batch, 1 +
        number of selections), stopping first. Default: the method ``action_probabilities`` of ``method``, if it has one.
    cost_param : float, optional
        Soft budget: ``method.set_cost_param(cost_param)`` is called before each answer. So several policies can share one
        method.
    device : str or torch device, optional
        Where the tensors live. Default: the ``device`` of the method, else the processor.
    feature_shape : sequence of int, optional
        Shape of the features of one row, such as (1, 28, 28). Default: one axis.

    Returns
    -------
    BenchPolicy

    Warns
    -----
    StochasticMethodWarning
        If two calls with equal tensors disagree although ``n_draws`` is 1. This is checked for at most 64 states.
    AssumedOrderWarning
        If the order of groups or columns is assumed.

    Notes
    -----
    The protocol is described in arXiv:2508.14734. A batch has states with one number of acquired groups, because static
    methods need that.
    """
    asked = getattr(method, "act", None) or getattr(method, "select", None)
    if isinstance(method, type) or not callable(asked):
        raise TypeError(f"'method' must be an object with a method act or select, as in AFABench, not {shown(method)}.")
    check_choice("repeated", repeated, ("raise", "stop"))
    check_choice("free", free, ("done", "open"))
    check_count("n_draws", n_draws, 1)
    if probabilities is not None and (isinstance(probabilities, type) or not callable(probabilities)):
        raise TypeError(f"'probabilities' must be a function of the tensors, but is {shown(probabilities)}.")
    if probabilities is not None:
        check_takes("probabilities", probabilities, "masked_features, feature_mask", by_name=True)
    if cost_param is not None:
        check_number("cost_param", cost_param, "be finite", np.isfinite)
        if not callable(getattr(method, "set_cost_param", None)):
            raise TypeError(f"'cost_param' must be left out: {type(method).__name__} has no method set_cost_param.")
    caller = Caller(method, check_device(device), check_feature_shape(feature_shape))
    exact = probabilities or getattr(method, "action_probabilities", None)
    listed = _listed(selections), check_features(features)
    return BenchPolicy(BenchSettings(caller, asked, exact, *listed, repeated, free, n_draws, cost_param))


def _listed(selections: Any) -> list[str | int] | None:
    """Selections as a list. `BenchPolicy` checks later that the problem has these groups."""
    if selections is None:
        return None
    found = check_list("selections", selections, "group names or indices")
    if not found:
        raise ValueError(
            "'selections' must name at least one group, but is empty. Leave it out if selection j is group j."
        )
    return found


@dataclass(frozen=True, eq=False)
class BenchSettings:
    """Checked arguments of `from_afabench`."""

    caller: Caller
    asked: Callable[..., Any]
    exact: Callable[..., Any] | None  # gives probabilities
    selections: list[str | int] | None
    features: list[str | int] | None
    repeated: str
    free: str
    n_draws: int
    cost_param: float | None


class BenchPolicy:
    """A policy from an AFABench method; see `from_afabench`."""

    def __init__(self, settings: BenchSettings, problem: Problem | None = None) -> None:
        self.settings, self.problem = settings, problem
        self._calls_to_repeat = 0 if settings.exact is not None or settings.n_draws > 1 else _CALLS_TWICE

    @property
    def method(self) -> Any:
        """The AFABench method."""
        return self.settings.caller.asked

    @property
    def estimates_probabilities(self) -> bool:
        """True if probabilities are estimated by calls that may differ, which `from_afabench` compares."""
        return self.settings.exact is None

    @property
    def groups(self) -> Ints:
        """Group of each selection of a bound policy, shape (n_selections,)."""
        if self.problem is None:
            raise not_bound(self)
        return self._groups(self.problem.n_groups)

    def bind(self, problem: Problem) -> Policy:
        """Look up the groups of the selections and the columns of the features by name."""
        bound = BenchPolicy(self.settings, problem)
        groups = bound._groups(problem.n_groups)
        known = getattr(self.method, "n_selections", None)
        if isinstance(known, int) and known != len(groups):
            raise ValueError(
                f"The method {self._name} has {known} selections, but "
                f"{'the problem has' if self.settings.selections is None else 'selections lists'} {len(groups)} groups. Pass "
                "'selections' with the group of each selection."
            )
        if self.settings.features is not None and _by_name(self.settings.features):
            columns_of(self.settings.features, problem.feature_columns)
        self._tell_order(problem)
        return bound

    def _tell_order(self, problem: Problem) -> None:
        taken, ways = [], []
        if self.settings.selections is None:
            taken.append(f"its selections as the groups {shown(list(problem.group_names))}")
            ways.append("'selections' with the group of each selection")
        if self.settings.features is None:
            taken.append(f"its features as the columns {shown(list(problem.feature_columns))}")
            ways.append("'features' with the column of each feature")
        if taken:
            warn(
                f"{self._name} has no names for its features and selections. In this order, it takes {' and '.join(taken)}. "
                f"Pass {' and '.join(ways)}, such as problem.group_names and data.columns, to say which they are.",
                AssumedOrderWarning,
            )

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Return probability 1 for the answer of the method, its probabilities, or the shares of several answers."""
        values, acquired = np.asarray(values, dtype=float), np.asarray(acquired, dtype=bool)
        n, n_groups = acquired.shape
        if not n:
            return np.zeros((0, n_groups + 1))
        groups, columns = self._groups(n_groups), self._columns(values.shape[1])
        if self.settings.cost_param is not None:
            self.method.set_cost_param(self.settings.cost_param)
        if self.settings.exact is not None:
            p = self._ask(self.settings.exact, values, acquired, groups, columns)
            return self._without_repeated(self._checked_probabilities(p, n, groups, n_groups), acquired)
        if self._calls_to_repeat:
            self._calls_to_repeat -= 1
            self._compare_calls(values[:_ASKED_TWICE], acquired[:_ASKED_TWICE], groups, columns)
        out = np.zeros((n, n_groups + 1))
        for _ in range(self.settings.n_draws):
            selection = self._select(values, acquired, groups, columns)
            out += one_hot_actions(np.append(n_groups, groups)[selection], n_groups)
        return self._without_repeated(out / self.settings.n_draws, acquired)

    def _groups(self, n_groups: int) -> Ints:
        """Group of each selection, shape (n_selections,)."""
        if self.settings.selections is None:
            return np.arange(n_groups)
        names = () if self.problem is None else self.problem.group_names
        found = []
        for chosen in self.settings.selections:
            if isinstance(chosen, str) and chosen in names:
                found.append(names.index(chosen))
            elif isinstance(chosen, int | np.integer) and not isinstance(chosen, bool) and 0 <= chosen < n_groups:
                found.append(int(chosen))
            else:
                known = list(names) or f"the indices 0 to {n_groups - 1} (names after bind(problem))"
                raise ValueError(
                    f"'selections' must name groups, but {shown(chosen)} is not a group. The groups are {known}."
                )
        return np.array(found, dtype=np.intp)

    def _columns(self, n_columns: int) -> Ints | None:
        """Column of each feature; None for all columns in their order."""
        if self.settings.features is None:
            return None
        names: Sequence[str] = () if self.problem is None else self.problem.feature_columns
        if len(names) != n_columns:  # encoded categories, or not bound
            if _by_name(self.settings.features):
                raise ValueError(
                    f"'features' must be indices of data.columns, because the {n_columns} columns are not the {len(names)} "
                    "columns of the problem: categories are encoded, or the policy is not bound."
                )
            names = [str(j) for j in range(n_columns)]
        return columns_of(self.settings.features, names)

    def _ask(
        self, function: Callable[..., Any], values: Floats, acquired: Bools, groups: Ints, columns: Ints | None
    ) -> NDArray[Any]:
        def call(values: Floats, acquired: Bools) -> NDArray[Any]:
            done = acquired[:, groups]
            if self.settings.free == "open" and self.problem is not None:
                done = done & ~self.problem.free[groups]
            return self.settings.caller(function, values, columns, selection_mask=done)

        return self.settings.caller.by_size(call, values, acquired)

    def _select(self, values: Floats, acquired: Bools, groups: Ints, columns: Ints | None) -> Ints:
        """Return the selection of each state, 0 to stop, (n,)."""
        selection = self._ask(self.settings.asked, values, acquired, groups, columns)
        if selection.shape != (len(values), 1) or selection.dtype.kind not in "iu":
            raise ValueError(
                f"The method {self._name} must return whole numbers of shape (batch, 1), here {(len(values), 1)}, but "
                f"returned {selection.dtype} of shape {selection.shape}."
            )
        selection = selection[:, 0].astype(np.intp)
        outside = (selection < 0) | (selection > len(groups))
        if outside.any():
            raise ValueError(
                f"The method {self._name} must return 0 to stop or 1 to {len(groups)} for a selection, but returned "
                f"{int(selection[outside][0])}, which is outside this range. Pass 'selections' to define the group of "
                "each selection."
            )
        return np.asarray(selection)

    def _checked_probabilities(self, p: NDArray[Any], n: int, groups: Ints, n_groups: int) -> Floats:
        """Return the probabilities of the groups and of stopping, (n, G + 1), from those of stopping and the selections."""
        if p.shape != (n, len(groups) + 1) or p.dtype.kind not in "fiu":
            raise ValueError(
                f"The probabilities of {self._name} must have shape (batch, 1 + selections), here {(n, len(groups) + 1)}, "
                f"but are {p.dtype} of shape {p.shape}."
            )
        p = p.astype(float)
        total = p.sum(axis=1, keepdims=True)
        if not (np.isfinite(p).all() and (p >= 0).all() and (abs(total - 1) < 1e-3).all()):
            raise ValueError(
                f"The probabilities of {self._name} must not be negative and sum to 1, but sum to between "
                f"{total.min():.4g} and {total.max():.4g}, the smallest being {p.min():.4g}."
            )
        out = np.zeros((n, n_groups + 1))
        np.add.at(out.T, np.append(n_groups, groups), (p / total).T)
        return out

    def _without_repeated(self, p: Floats, acquired: Bools) -> Floats:
        """Add the probability of acquired groups to stopping, or raise an error."""
        again = np.where(acquired, p[:, :-1], 0.0)
        if not again.any():
            return p
        share = again.sum(axis=1)
        if (share > _SHARE).any() and self.settings.repeated == "raise":
            g = int(again.max(axis=0).argmax())
            raise ValueError(
                f"The method {self._name} must not select an acquired group, but selects "
                f"{self.problem.group_names[g] if self.problem else g!r} again in {int((share > _SHARE).sum())} of "
                f"{len(share)} states. Pass repeated='stop' to stop there."
            )
        out = p.copy()
        out[:, :-1][acquired] = 0.0
        out[:, -1] += share
        return out

    def _compare_calls(self, values: Floats, acquired: Bools, groups: Ints, columns: Ints | None) -> None:
        first, second = (self._select(values, acquired, groups, columns) for _ in range(2))
        differ = first != second
        if differ.any():
            self._calls_to_repeat = 0
            training = _module_in_training(self.method)
            hint = f" {training} is in training mode; call eval() if you did not intend this." if training else ""
            warn(
                f"Two calls of {self._name} with the same tensors disagree in {int(differ.sum())} of {len(differ)} states: it "
                "draws its actions but does not report their probabilities. Each estimate is then based on one random draw of "
                "its actions, and another run gives other numbers. Pass 'probabilities', a function that returns them, or, for "
                f"example, n_draws=32 to estimate them.{hint}",
                StochasticMethodWarning,
            )

    @property
    def _name(self) -> str:
        return type(self.method).__name__

    def __repr__(self) -> str:
        return f"from_afabench({self._name})"


def _by_name(features: Sequence[Any]) -> bool:
    return any(isinstance(feature, str) for feature in features)


def _module_in_training(method: Any) -> str:
    """Name of a torch module of this method that is in training mode, or an empty text."""
    modules = {
        "The method": method,
        **{f"Its {name!r}": found for name, found in getattr(method, "__dict__", {}).items()},
    }
    for name, module in modules.items():
        if callable(getattr(module, "eval", None)) and getattr(module, "training", None) is True:
            return name
    return ""
