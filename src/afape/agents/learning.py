"""The learning step of a Q network, compiled by jax. Imported on use: jax and optax come with the extra ``agents``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .episodes import Records, Replay
from .network import Layout, Network, Parameters, outputs
from .training import Training

__all__ = ["Batch", "Learner", "Program"]


class Batch(NamedTuple):
    """States drawn from the replay, and what the records say about them. Costs in the unit of the network."""

    x: Any  # (m, d) standardised values of the row, 0 where not recorded
    acquired: Any  # (m, G) 0 or 1
    recorded: Any  # (m, G)
    action: Any  # (m,)
    label: Any  # (m,)
    label_costs: Any  # (m, K) cost of predicting each label
    costs: Any  # (K, K) indexed [true, predicted]
    stop_cost: Any  # (m,) cost of the classifier's prediction
    weight: Any  # (m,)
    next_weight: Any  # (m,)


@dataclass(frozen=True)
class Program:
    """What is compiled: everything about the learning step that is no array.

    Parameters
    ----------
    layout : Layout
        Shape of the network.
    acquirable : tuple of bool
        Groups that can be acquired: costly, and recorded in some row.
    double : bool
        Whether the network picks the action whose value the target network gives (van Hasselt et al. 2016).
    blocked_targets : bool
        Whether the minimum in the target runs over recorded actions alone, which is biased.
    stop_value : callable
        Value of stopping from the endings (m, E).
    ending_loss : callable
        ``ending_loss(endings, old_endings, batch)``, one loss per state.
    training : Training
        Optimiser, batch, steps.
    """

    layout: Layout
    acquirable: tuple[bool, ...]
    double: bool
    blocked_targets: bool
    stop_value: Callable[[Any], Any]
    ending_loss: Callable[[Any, Any, Batch], Any]
    training: Training

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """The optimiser that the training names."""
        make: Callable[[float], optax.GradientTransformation] = getattr(optax, self.training.optimizer)
        return make(self.training.learning_rate)

    def action_values(self, out: Any) -> Any:
        """Values of the groups and of stopping, (m, G + 1), from the outputs."""
        n_groups = self.layout.n_groups
        return jnp.column_stack([out[:, :n_groups], self.stop_value(out[:, n_groups:])])


class Learned(NamedTuple):
    """What a step changes."""

    weights: Parameters
    target: Parameters
    optimizer: Any
    step: Any


class Tables(NamedTuple):
    """Records and replay on the device."""

    x: Any
    recorded: Any
    labels: Any
    costs: Any
    prices: Any
    row: Any
    acquired: Any
    action: Any
    stop_cost: Any
    weight: Any
    next_weight: Any
    filled: Any


def state_value(program: Program, weights: Parameters, target: Parameters, batch: Batch, acquired: Any) -> Any:
    """Least value over the actions that are not yet taken, recorded or not: the agent will be free to take them."""
    x = batch.x * acquired[:, jnp.asarray(program.layout.column_group)]
    left = (acquired == 0) & jnp.asarray(program.acquirable)
    if program.blocked_targets:
        left = left & batch.recorded
    allowed = jnp.column_stack([left, jnp.ones(len(left), dtype=bool)])
    old = program.action_values(outputs(program.layout, target, x, acquired))
    new = program.action_values(outputs(program.layout, weights, x, acquired)) if program.double else old
    best = jnp.where(allowed, new, jnp.inf).argmin(axis=1)
    return jnp.take_along_axis(old, best[:, None], axis=1)[:, 0]


def loss(weights: Parameters, program: Program, target: Parameters, batch: Batch, prices: Any, groups_too: bool) -> Any:
    """Squared error of the action taken, and of ending here, whose cost is known in every state."""
    layout = program.layout
    x = batch.x * batch.acquired[:, jnp.asarray(layout.column_group)]
    out = outputs(layout, weights, x, batch.acquired)
    old_endings = outputs(layout, target, x, batch.acquired)[:, layout.n_groups :]
    total = batch.weight * program.ending_loss(out[:, layout.n_groups :], old_endings, batch)
    if groups_too:
        taken = jax.nn.one_hot(batch.action, layout.n_groups)  # all 0 where the episode stopped
        after = jnp.maximum(batch.acquired, taken)
        goal = taken @ prices + state_value(program, jax.lax.stop_gradient(weights), target, batch, after)
        error = (out[:, : layout.n_groups] * taken).sum(axis=1) - goal
        total = total + jnp.where(batch.action < layout.n_groups, batch.next_weight * error**2, 0.0)
    return total.mean()


@partial(jax.jit, static_argnames=("program", "groups_too", "n_steps"))
def learn(
    program: Program, learned: Learned, tables: Tables, key: Any, groups_too: bool, n_steps: int
) -> tuple[Learned, Any]:
    """Take steps of the optimiser, all of them one compiled loop; the losses come back too."""
    optimizer = program.optimizer

    def step(now: Learned, step_key: Any) -> tuple[Learned, Any]:
        place = jax.random.randint(step_key, (program.training.batch_size,), 0, tables.filled)
        batch = draw(tables, place)
        value, gradient = jax.value_and_grad(loss)(now.weights, program, now.target, batch, tables.prices, groups_too)
        change, state = optimizer.update(gradient, now.optimizer, now.weights)
        weights = optax.apply_updates(now.weights, change)
        due = (now.step + 1) % program.training.target_every == 0
        target = jax.tree.map(lambda new, old: jnp.where(due, new, old), weights, now.target)
        return Learned(weights, target, state, now.step + 1), value

    return jax.lax.scan(step, learned, jax.random.split(key, n_steps))


def draw(tables: Tables, place: Any) -> Batch:
    """The states at these places of the replay."""
    row = tables.row[place]
    label = tables.labels[row]
    return Batch(
        x=tables.x[row],
        acquired=tables.acquired[place].astype(jnp.float32),
        recorded=tables.recorded[row],
        action=tables.action[place],
        label=label,
        label_costs=tables.costs[label],
        costs=tables.costs,
        stop_cost=tables.stop_cost[place],
        weight=tables.weight[place],
        next_weight=tables.next_weight[place],
    )


class Learner:
    """A network in training: rounds of steps on what the replay holds."""

    def __init__(self, program: Program, network: Network, records: Records, prices: Any, seed: int) -> None:
        self.program, self.network = program, network
        weights = {name: jnp.asarray(w, dtype=jnp.float32) for name, w in network.weights.items()}
        self.learned = Learned(weights, weights, program.optimizer.init(weights), jnp.zeros((), dtype=jnp.int32))
        self.key = jax.random.key(seed)
        data, unit = records.data, network.unit
        self.fixed = (
            jnp.asarray(network.inputs(data.values, data.recorded), dtype=jnp.float32),
            jnp.asarray(data.recorded),
            jnp.asarray(data.labels, dtype=jnp.int32),
            jnp.asarray(data.costs / unit, dtype=jnp.float32),
            jnp.asarray(np.asarray(prices) / unit, dtype=jnp.float32),
        )

    def steps(self, replay: Replay, n_steps: int, groups_too: bool = True) -> float:
        """Learn for so many steps; the mean loss."""
        visits = replay.visits
        tables = Tables(
            *self.fixed,
            jnp.asarray(visits.row, dtype=jnp.int32),
            jnp.asarray(visits.acquired),
            jnp.asarray(visits.action, dtype=jnp.int32),
            jnp.asarray(visits.stop_cost / self.network.unit, dtype=jnp.float32),
            jnp.asarray(visits.weight, dtype=jnp.float32),
            jnp.asarray(visits.next_weight, dtype=jnp.float32),
            jnp.asarray(replay.filled, dtype=jnp.int32),
        )
        self.key, key = jax.random.split(self.key)
        self.learned, losses = learn(self.program, self.learned, tables, key, groups_too, n_steps)
        return float(losses.mean())

    def current(self) -> Network:
        """The network as it is now, in numpy."""
        return self.network.with_weights(self.learned.weights)
