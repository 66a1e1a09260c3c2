"""The learning step of a Q network, compiled by jax. Imported when used: jax and optax are in the extra ``agents``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .network import Network, NetworkShape, Parameters, outputs
from .replay import Records, Replay
from .settings import Training

__all__ = ["Batch", "Learner", "Program"]


class Batch(NamedTuple):
    """States drawn from the replay, with their rows' data. Costs are in the unit of the network."""

    x: Any  # (m, d) standardised values of the row, 0 if not recorded
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
    """Static arguments of the compiled learning step.

    Parameters
    ----------
    shape : NetworkShape
        Shape of the network.
    acquirable : tuple of bool
        Groups that can be acquired: costly, and recorded in some row.
    double : bool
        True if the network chooses the action and the target network gives its value (van Hasselt et al. 2016).
    blocked_targets : bool
        True if the minimum in the target is over recorded actions only, which is biased.
    stop_value : callable
        Value of stopping (m,) from the endings (m, E).
    ending_loss : callable
        ``ending_loss(endings, old_endings, batch)``, one loss per state, (m,).
    training : Training
        Optimiser, batch, steps.
    """

    shape: NetworkShape
    acquirable: tuple[bool, ...]
    double: bool
    blocked_targets: bool
    stop_value: Callable[[Any], Any]
    ending_loss: Callable[[Any, Any, Batch], Any]
    training: Training

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """The optimiser of the training settings."""
        make: Callable[[float], optax.GradientTransformation] = getattr(optax, self.training.optimizer)
        return make(self.training.learning_rate)

    def action_values(self, out: Any) -> Any:
        """Values of the groups and of stopping, (m, G + 1), from the outputs (m, G + E)."""
        n_groups = self.shape.n_groups
        return jnp.column_stack([out[:, :n_groups], self.stop_value(out[:, n_groups:])])


class Learned(NamedTuple):
    """State of the optimisation, changed by each step."""

    weights: Parameters
    target: Parameters
    optimizer: Any
    step: Any


class DeviceData(NamedTuple):
    """Records and replay as jax arrays."""

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
    """Smallest action value over the actions that are not yet taken, recorded or not, shape (m,)."""
    x = batch.x * acquired[:, jnp.asarray(program.shape.column_group)]
    left = (acquired == 0) & jnp.asarray(program.acquirable)
    if program.blocked_targets:
        left = left & batch.recorded
    allowed = jnp.column_stack([left, jnp.ones(len(left), dtype=bool)])
    old = program.action_values(outputs(program.shape, target, x, acquired))
    new = program.action_values(outputs(program.shape, weights, x, acquired)) if program.double else old
    best = jnp.where(allowed, new, jnp.inf).argmin(axis=1)
    return jnp.take_along_axis(old, best[:, None], axis=1)[:, 0]


def loss(weights: Parameters, program: Program, target: Parameters, batch: Batch, prices: Any, groups_too: bool) -> Any:
    """Mean loss: squared error of the action taken, plus the loss of ending here, whose cost is known in every state.

    With ``groups_too`` False, only the loss of ending.
    """
    shape = program.shape
    x = batch.x * batch.acquired[:, jnp.asarray(shape.column_group)]
    out = outputs(shape, weights, x, batch.acquired)
    old_endings = outputs(shape, target, x, batch.acquired)[:, shape.n_groups :]
    total = batch.weight * program.ending_loss(out[:, shape.n_groups :], old_endings, batch)
    if groups_too:
        taken = jax.nn.one_hot(batch.action, shape.n_groups)  # all 0 if the episode stopped
        after = jnp.maximum(batch.acquired, taken)
        goal = taken @ prices + state_value(program, jax.lax.stop_gradient(weights), target, batch, after)
        error = (out[:, : shape.n_groups] * taken).sum(axis=1) - goal
        total = total + jnp.where(batch.action < shape.n_groups, batch.next_weight * error**2, 0.0)
    return total.mean()


@partial(jax.jit, static_argnames=("program", "groups_too", "n_steps"))
def learn(
    program: Program, learned: Learned, data: DeviceData, key: Any, groups_too: bool, n_steps: int
) -> tuple[Learned, Any]:
    """Take ``n_steps`` steps of the optimiser in one compiled loop; return the new state and the losses (n_steps,)."""
    optimizer = program.optimizer

    def step(now: Learned, step_key: Any) -> tuple[Learned, Any]:
        place = jax.random.randint(step_key, (program.training.batch_size,), 0, data.filled)
        batch = draw(data, place)
        value, gradient = jax.value_and_grad(loss)(now.weights, program, now.target, batch, data.prices, groups_too)
        change, state = optimizer.update(gradient, now.optimizer, now.weights)
        weights = optax.apply_updates(now.weights, change)
        due = (now.step + 1) % program.training.target_every == 0
        target = jax.tree.map(lambda new, old: jnp.where(due, new, old), weights, now.target)
        return Learned(weights, target, state, now.step + 1), value

    return jax.lax.scan(step, learned, jax.random.split(key, n_steps))


def draw(data: DeviceData, place: Any) -> Batch:
    """Return the states at these places of the replay."""
    row = data.row[place]
    label = data.labels[row]
    return Batch(
        x=data.x[row],
        acquired=data.acquired[place].astype(jnp.float32),
        recorded=data.recorded[row],
        action=data.action[place],
        label=label,
        label_costs=data.costs[label],
        costs=data.costs,
        stop_cost=data.stop_cost[place],
        weight=data.weight[place],
        next_weight=data.next_weight[place],
    )


class Learner:
    """A network in training, in rounds of steps on the states of the replay."""

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
        """Take ``n_steps`` steps and return the mean loss."""
        visits = replay.visits
        data = DeviceData(
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
        self.learned, losses = learn(self.program, self.learned, data, key, groups_too, n_steps)
        return float(losses.mean())

    def current(self) -> Network:
        """Return the current network, in numpy."""
        return self.network.with_weights(self.learned.weights)
