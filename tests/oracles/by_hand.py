"""What methods read, put together by hand: the steps of an evaluation one by one, or a walk with one view of one propensity."""

from __future__ import annotations

import numpy as np

from afape.action_values.models import LearnedValues
from afape.agents.policy import bind
from afape.estimators.evidence import Fitted, Recipe
from afape.propensity.weights import View
from afape.run.fit import bind_propensities, fit, views_of
from afape.run.walk import walk_policies
from afape.walk.columns import dense
from afape.walk.ground import Ground
from afape.walk.outcomes import NO_OUTCOMES
from afape.walk.table import Tables
from afape.walk.tariff import Tariff
from afape.walk.walker import walk

KEY = "sets", "by hand"


def evidence(world, data, propensity, given, *, row_weight=None, normalize=True, values=None, outcomes=NO_OUTCOMES):
    """Evidence of the policy of a world; rows are averaged over with ``row_weight``, all alike by default."""
    tables = Tables(list(walk(Ground.recorded(data, world.policy, world.classifier, outcomes=outcomes))))
    fold = getattr(propensity, "fold", np.zeros(len(data), dtype=np.intp))
    known = LearnedValues() if values is None else values
    recipe = Recipe(known, normalize, "before", fold, row_weight, Tariff.of(data, outcomes))
    views, valued = {KEY: View(propensity, data.recorded, given.gaps)}, () if values is None else (KEY,)
    return Fitted(data, recipe, given, tables, {}, views, valued).learn().evidence(KEY, values is not None)


def costs_of(reduction):
    """Acquisition and misclassification cost, (2,)."""
    return reduction.answer().costs.amounts.values[:2]


def walked(data, policy, classifier, predicts=False):
    """The walk over what is recorded, in one table."""
    return Tables(list(walk(Ground.recorded(data, policy, classifier, predicts)))).whole()


def state_values(values, table, columns):
    r"""V of every state in these columns: :math:`\sum_a \pi(a | S) \, (c_a + Q_{S,a}) + \pi(stop | S) \, Q_{S,stop}`."""
    states, edges = np.arange(len(table.row)), np.arange(len(table.edge_state))
    stops = values.stops(states)
    stops = dense(columns.stops(table, states)) if stops is None else stops
    out = table.stop[:, None] * stops
    ahead = dense(columns.taken(table, edges)) + values.edges(edges)
    np.add.at(out, table.edge_state, table.edge_probability[:, None] * ahead)
    return out


def fitted_by(plan, policy):
    """Everything that the estimates of a policy are a function of, step by step."""
    policy = bind(policy, plan.data.problem)
    (found,) = walk_policies(plan, {"policy": policy}).values()
    propensities = bind_propensities(plan, [found])
    return fit(plan, policy, found, propensities, views_of(plan, propensities, found))
