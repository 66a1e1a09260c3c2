"""Policies and classifiers from objects that follow the AFABench protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._arguments import check_choice, check_count, check_list, shown
from .._arrays import Bools, Floats, Ints
from ..data.problem import Problem
from ..warnings import StochasticMethodWarning, warn
from .policy import Policy, one_hot_actions

__all__ = ["classifier_from_afabench", "from_afabench"]

_CHECKED_ROWS = 64  # states that are asked twice, to find methods that draw their actions


def from_afabench(
    method: Any,
    selections: Sequence[str | int] | None = None,
    *,
    repeated: str = "raise",
    n_draws: int = 1,
) -> BenchPolicy:
    """Make a policy from an AFABench method.

    The method has ``act`` or ``select(masked_features, feature_mask, selection_mask=None, label=None,
    feature_shape=None)``. It gets torch tensors with 0 where a feature is not observed, and returns whole numbers of shape
    (batch, 1): 0 stops, k performs selection k - 1. It never gets the label.

    Parameters
    ----------
    method
        The method. Wrap the result in `StepBudget` for a hard budget.
    selections : sequence of group names or indices, optional
        The group that each selection acquires. Default: selection j is group j. For a method that selects single columns:
        ``[problem.group_names[g] for g in data.column_group]``.
    repeated : {"raise", "stop"}
        What to do if the method selects a group that is already acquired: raise an error, or stop the run.
    n_draws : int
        Calls per state. With more than 1 call, the probability of an action is its share among the calls. Use this for
        methods that draw their action.

    Returns
    -------
    BenchPolicy

    Warns
    -----
    StochasticMethodWarning
        If two calls with equal tensors disagree although ``n_draws`` is 1.

    Notes
    -----
    The protocol is described in arXiv:2508.14734. ``selection_mask`` marks the selections that are done, including those
    of free groups.
    """
    asked = getattr(method, "act", None) or getattr(method, "select", None)
    if isinstance(method, type) or not callable(asked):
        raise TypeError(f"'method' must be an object with a method act or select, as in AFABench, not {shown(method)}.")
    check_choice("repeated", repeated, ("raise", "stop"))
    check_count("n_draws", n_draws, 1)
    return BenchPolicy(method, asked, _listed(selections), repeated == "stop", n_draws)


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


class BenchPolicy:
    """A policy from an AFABench method; see `from_afabench`."""

    estimates_probabilities = True  # by calls that may differ, which `from_afabench` compares

    def __init__(
        self,
        method: Any,
        asked: Callable[..., Any],
        selections: Sequence[str | int] | None,
        stop_at_repeated: bool,
        n_draws: int,
        problem: Problem | None = None,
    ) -> None:
        self.method, self.asked, self.selections = method, asked, selections
        self.stop_at_repeated, self.n_draws, self.problem = stop_at_repeated, n_draws, problem
        self._warned = False

    def bind(self, problem: Problem) -> Policy:
        """Look up the groups of the selections by name."""
        bound = BenchPolicy(self.method, self.asked, self.selections, self.stop_at_repeated, self.n_draws, problem)
        bound._groups(problem.n_groups)
        return bound

    def probabilities(self, values: Floats, acquired: Bools) -> Floats:
        """Return probability 1 for the answer of the method, or the shares of several answers."""
        n, n_groups = acquired.shape
        if not n:
            return np.zeros((0, n_groups + 1))
        groups = self._groups(n_groups)
        if self.n_draws == 1 and not self._warned:
            self._compare_calls(values[:_CHECKED_ROWS], acquired[:_CHECKED_ROWS], groups)
        out = np.zeros((n, n_groups + 1))
        for _ in range(self.n_draws):
            out += one_hot_actions(self._actions(values, acquired, groups), n_groups)
        return out / self.n_draws

    def _groups(self, n_groups: int) -> Ints:
        """Group of each selection, shape (n_selections,)."""
        if self.selections is None:
            return np.arange(n_groups)
        names = () if self.problem is None else self.problem.group_names
        found = []
        for chosen in self.selections:
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

    def _actions(self, values: Floats, acquired: Bools, groups: Ints) -> Ints:
        n_groups = acquired.shape[1]
        selection = self._select(values, acquired, groups)
        outside = (selection < 0) | (selection > len(groups))
        if outside.any():
            raise ValueError(
                f"The method {self._name} must return 0 to stop or 1 to {len(groups)} for a selection, but returned "
                f"{int(selection[outside][0])}, which is outside this range. Pass 'selections' to define the group of "
                "each selection."
            )
        action = np.append(n_groups, groups)[selection]
        again = (selection > 0) & np.take_along_axis(np.pad(acquired, ((0, 0), (0, 1))), action[:, None], axis=1)[:, 0]
        if again.any() and not self.stop_at_repeated:
            g = int(action[again][0])
            raise ValueError(
                f"The method {self._name} must not select an acquired group, but selects "
                f"{self.problem.group_names[g] if self.problem else g!r} again in {int(again.sum())} of {len(again)} "
                "states. Pass repeated='stop' to stop there."
            )
        return np.asarray(np.where(again, n_groups, action), dtype=np.intp)

    def _select(self, values: Floats, acquired: Bools, groups: Ints) -> Ints:
        torch = _torch()
        known = ~np.isnan(values)
        with torch.no_grad():
            answer = self.asked(
                masked_features=torch.as_tensor(np.where(known, values, 0.0), dtype=torch.float32),
                feature_mask=torch.as_tensor(known),
                selection_mask=torch.as_tensor(acquired[:, groups]),
                label=None,
                feature_shape=torch.Size([values.shape[1]]),
            )
        selection = np.asarray(answer.detach().cpu() if hasattr(answer, "detach") else answer)
        if selection.shape != (len(values), 1) or selection.dtype.kind not in "iu":
            raise ValueError(
                f"The method {self._name} must return whole numbers of shape (batch, 1), here {(len(values), 1)}, but "
                f"returned {selection.dtype} of shape {selection.shape}."
            )
        return selection[:, 0].astype(np.intp)

    def _compare_calls(self, values: Floats, acquired: Bools, groups: Ints) -> None:
        first, second = (self._select(values, acquired, groups) for _ in range(2))
        differ = first != second
        if differ.any():
            self._warned = True
            training = _module_in_training(self.method)
            hint = f" {training} is in training mode; call eval() if you did not intend this." if training else ""
            warn(
                f"Two calls of {self._name} with the same tensors disagree in {int(differ.sum())} of {len(differ)} states: it "
                "draws its actions but does not report their probabilities. Each estimate is then based on one random draw of "
                "its actions, and another run gives other numbers. Pass, for example, n_draws=32 to estimate the "
                f"probabilities.{hint}",
                StochasticMethodWarning,
            )

    @property
    def _name(self) -> str:
        return type(self.method).__name__

    def __repr__(self) -> str:
        return f"from_afabench({self._name})"


def classifier_from_afabench(classifier: Any) -> BenchClassifier:
    """Make a classifier from an AFABench method with ``predict``, or from a separate AFABench classifier.

    Parameters
    ----------
    classifier
        Has ``predict(masked_features, feature_mask, label=None, feature_shape=None)``, or is callable with these
        arguments. It returns scores of shape (batch, n_classes); the class with the largest score is predicted.
    """
    asked = getattr(classifier, "predict", None) or classifier
    if isinstance(classifier, type) or not callable(asked):
        raise TypeError(f"'classifier' must have predict or be callable, as in AFABench, but is {shown(classifier)}.")
    return BenchClassifier(classifier, asked)


class BenchClassifier:
    """A classifier from an AFABench object; see `classifier_from_afabench`."""

    def __init__(self, classifier: Any, asked: Callable[..., Any]) -> None:
        self.classifier, self.asked = classifier, asked

    def predict(self, values: Floats, acquired: Bools) -> Ints:
        """Return the label code with the largest score, shape (n,)."""
        torch = _torch()
        known = ~np.isnan(values)
        with torch.no_grad():
            answer = self.asked(
                masked_features=torch.as_tensor(np.where(known, values, 0.0), dtype=torch.float32),
                feature_mask=torch.as_tensor(known),
                label=None,
                feature_shape=torch.Size([values.shape[1]]),
            )
        scores = np.asarray(answer.detach().cpu() if hasattr(answer, "detach") else answer)
        if scores.ndim != 2 or len(scores) != len(values):
            raise ValueError(
                f"The classifier {type(self.classifier).__name__} must return scores of shape (batch, n_classes), here "
                f"({len(values)}, n_classes), but returned {scores.shape}."
            )
        return np.asarray(scores.argmax(axis=1), dtype=np.intp)

    def __repr__(self) -> str:
        return f"classifier_from_afabench({type(self.classifier).__name__})"


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


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "AFABench methods take torch tensors, but torch is not installed: pip install torch. afape itself does not need it."
        ) from error
    return torch
