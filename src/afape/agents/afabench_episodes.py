"""Episodes of an AFABench method on complete rows, in the columns of AFABench's CSV files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._arguments import check_between, check_seed, check_target
from .._arrays import Bools, Floats
from ..data.retrospective import Retrospective
from .afabench import BenchPolicy
from .afabench_classifier import BenchClassifier
from .budgets import within
from .policy import ask_policy, drawn_actions

__all__ = ["episodes"]

_ORDER = ["idx", "step"]


def episodes(
    data: Retrospective,
    policy: BenchPolicy,
    builtin: BenchClassifier | None,
    external: BenchClassifier | None,
    hard_budget: float | None,
    random_state: int | None,
    path: str | Path | None,
) -> pd.DataFrame:
    """Run the policy once on every row; see `BenchBundle.episodes`."""
    if hard_budget is not None:
        check_between("hard_budget", hard_budget, 0.0)
    rng = np.random.default_rng(check_seed(random_state))
    target = None if path is None else check_target("path", path)
    if not data.complete.all():
        raise ValueError(
            f"'data' must be complete for episodes, but {int((~data.complete).sum())} of {len(data)} rows have gaps. With gaps, "
            "use afape.evaluate."
        )
    bound: Any = policy.bind(data.problem)
    selection_of = np.zeros(data.problem.n_groups + 1, dtype=np.intp)  # 0 stops, k performs selection k - 1
    selection_of[bound.groups] = 1 + np.arange(len(bound.groups))
    prices = np.append(data.problem.prices, 0.0)
    rows, step = np.arange(len(data)), 0
    acquired = np.broadcast_to(data.problem.free, data.recorded.shape).copy()
    paid = np.zeros(len(data))
    done: list[list[int]] = [[] for _ in rows]
    lines = []
    while len(rows):
        seen = np.where(acquired[rows][:, data.column_group], data.values[rows], np.nan)
        action = drawn_actions(ask_policy(bound, seen, acquired[rows], rows), rng)
        forced = np.zeros(len(rows), dtype=bool)
        if hard_budget is not None:
            forced = ~within(paid[rows] + prices[action], hard_budget)
            action = np.where(forced, data.problem.n_groups, action)
        paid[rows] += prices[action]
        lines.append(
            pd.DataFrame(
                {
                    "prev_selections_performed": [list(done[i]) for i in rows],
                    "action_performed": selection_of[action],
                    "builtin_predicted_class": _predicted(builtin, seen, acquired[rows]),
                    "external_predicted_class": _predicted(external, seen, acquired[rows]),
                    "true_class": data.labels[rows],
                    "accumulated_cost": paid[rows],
                    "idx": rows,
                    "forced_stop": forced,
                    "step": step,
                }
            )
        )
        on = action < data.problem.n_groups
        for i, a in zip(rows[on], action[on], strict=True):
            done[i].append(int(selection_of[a]) - 1)
        acquired[rows[on], action[on]] = True
        rows, step = rows[on], step + 1
    found = pd.concat(lines).sort_values(_ORDER, ignore_index=True).drop(columns="step")
    found = found.assign(eval_seed=random_state, eval_hard_budget=hard_budget)
    if target is not None:
        found.to_csv(target, index=False, na_rep="null")
    return found


def _predicted(classifier: BenchClassifier | None, values: Floats, acquired: Bools) -> Any:
    return None if classifier is None else classifier.predict(values, acquired)
