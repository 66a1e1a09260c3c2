"""Asks policy, classifier and outcomes again about some states, to notice answers that change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._arrays import Bools, Floats, Ints, any_of
from ..agents.policy import ask_policy, parts_of
from ..classifiers import ask_classifier
from ..warnings import ChangingAnswersWarning, warn
from .ground import Ground
from .table import FREE, WalkTable

__all__ = ["with_repeated_answers"]

_STATES = 16  # per depth and table
_TABLES = 8  # tables from which states are drawn
_TOLERANCE = 1e-3  # of probabilities; networks round differently for other numbers of rows


@dataclass
class _Sample:
    """States, and the answers in them."""

    row: Ints  # (m,)
    acquired: Bools  # (m, G)
    probability: Floats  # (m, G + 1)
    predicted: Ints  # (m,) -1 if the classifier was not asked
    outcomes: Floats  # (m, O) NaN if no run stops


def with_repeated_answers(ground: Ground, tables: Iterable[WalkTable]) -> Iterator[WalkTable]:
    """Yield the tables of a walk; then ask again about some states, and warn about answers that differ.

    A policy and a classifier must answer equal states alike: estimators take the answers of the walk as the probabilities of
    the policy. A network with dropout, a counter, and a global random generator break this rule.

    Parameters
    ----------
    ground : Ground
        Policy, classifier and outcomes of the walk.
    tables : iterable of WalkTable
        The walk.
    """
    sampled = _Sampled(ground)
    for table in tables:
        sampled.add(table)
        yield table
    sampled.ask_again()


@dataclass
class _Sampled:
    """Some states of every depth of the first tables."""

    ground: Ground
    samples: list[_Sample] = field(default_factory=list)

    def add(self, table: WalkTable) -> None:
        """Keep some states of each depth of this table."""
        if len(self.samples) >= _TABLES or not len(table.row):
            return
        forced = np.zeros(len(table.row), dtype=bool)
        forced[table.edge_state[table.edge_group == FREE]] = True  # the policy is not asked there
        chosen = [_spread(np.flatnonzero((table.depth == d) & ~forced)) for d in range(table.n_depths)]
        states = np.concatenate(chosen)
        if not len(states):
            return
        place = np.full(len(table.row), -1, dtype=np.intp)
        place[states] = np.arange(len(states))
        p = np.zeros((len(states), table.acquired.shape[1] + 1))
        p[:, -1] = table.stop[states]
        edges = np.flatnonzero(place[table.edge_state] >= 0)
        p[place[table.edge_state[edges]], table.edge_group[edges]] = table.edge_probability[edges]
        self.samples.append(
            _Sample(table.row[states], table.acquired[states], p, table.predicted[states], table.outcomes[states])
        )

    def ask_again(self) -> None:
        """Ask again, and warn about each of policy, classifier and outcomes that answers otherwise."""
        if not self.samples:
            return
        names = ("row", "acquired", "probability", "predicted", "outcomes")
        first = _Sample(*(np.concatenate([getattr(s, name) for s in self.samples]) for name in names))
        data = self.ground.data
        seen = np.where(first.acquired[:, data.column_group], self.ground.values[first.row], np.nan)
        if not any(getattr(part, "estimates_probabilities", False) for part in parts_of(self.ground.policy)):
            again = ask_policy(self.ground.policy, seen, first.acquired, first.row)
            differ = any_of(abs(again - first.probability) > _TOLERANCE)
            self._tell("policy", self.ground.policy, first, differ, first.probability, again)
        asked = np.flatnonzero(first.predicted >= 0)
        if len(asked):
            rows, sets = first.row[asked], first.acquired[asked]
            codes = np.full(len(first.row), -1, dtype=np.intp)
            codes[asked] = ask_classifier(self.ground.classifier, seen[asked], sets, rows, data.costs.shape[1])
            self._tell("classifier", self.ground.classifier, first, codes != first.predicted, first.predicted, codes)
        stops = ~any_of(np.isnan(first.outcomes))
        found = self.ground.outcomes.ask(seen, first.acquired, data.labels[first.row], first.row, stops)
        for j, (name, function) in enumerate(self.ground.outcomes.functions.items()):
            differ = stops & ~np.isclose(found[:, j], first.outcomes[:, j], rtol=1e-3, atol=_TOLERANCE)
            self._tell(f"outcome {name!r},", function, first, differ, first.outcomes[:, j], found[:, j])

    def _tell(self, what: str, thing: Any, asked: _Sample, differ: Bools, before: Any, after: Any) -> None:
        if not differ.any():
            return
        k = int(np.flatnonzero(differ)[0])
        groups = [self.ground.data.problem.group_names[g] for g in np.flatnonzero(asked.acquired[k])]
        warn(
            f"The {what} {type(thing).__name__} answered {int(differ.sum())} of {len(differ)} states otherwise when asked again, "
            f"first row {int(asked.row[k])} with the groups {groups}: {_shown(before[k])}, then {_shown(after[k])}. Answers may "
            "depend on values and acquired groups only; otherwise estimates are wrong or change from run to run. Switch off "
            "dropout (eval()), remove counters, and return probabilities of actions in place of a draw.",
            ChangingAnswersWarning,
        )


def _spread(states: Ints) -> Ints:
    """Return at most ``_STATES`` of these states, evenly spaced."""
    if len(states) <= _STATES:
        return states
    return states[np.linspace(0, len(states) - 1, _STATES).astype(np.intp)]


def _shown(answer: Any) -> str:
    return np.array2string(np.asarray(answer), precision=3, separator=", ")
