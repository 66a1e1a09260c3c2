"""Q networks as arrays: shape, initial weights, outputs. Numpy and jax run this code."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._arrays import Bools, Floats

__all__ = ["Network", "NetworkShape", "Parameters", "initial_parameters", "outputs"]

Parameters = dict[str, Any]  # name -> array of numpy or jax


@dataclass(frozen=True)
class NetworkShape:
    r"""Shape of a network with states (x, S) as inputs.

    The first layer takes the standardised values x, 0 outside the acquired set S, and the indicators of S. With
    ``sets`` it is an order-free encoding of the acquired groups, a sum of one embedding per group,

    .. math:: h = \sum_{g \in S} \mathrm{relu}(W_g x_g + b_g).

    With ``dueling`` the outputs are :math:`V + A_a - \mathrm{mean}_b A_b`.

    Parameters
    ----------
    column_group : tuple of int
        The group of each column.
    n_groups : int
        G; the first G outputs are the values of acquiring each group.
    n_endings : int
        Number of further outputs, about ending the run.
    hidden : tuple of int
        Units of the hidden layers.
    dueling, sets : bool
        See above.
    """

    column_group: tuple[int, ...]
    n_groups: int
    n_endings: int
    hidden: tuple[int, ...] = (16, 16)
    dueling: bool = False
    sets: bool = False

    @property
    def n_outputs(self) -> int:
        """Number of groups and endings."""
        return self.n_groups + self.n_endings

    def owns(self) -> Floats:
        """Array (G, d, 1) with 1 if the column belongs to the group, else 0."""
        own = np.arange(self.n_groups)[:, None] == np.asarray(self.column_group)
        return np.asarray(own[:, :, None], dtype=float)


def initial_parameters(shape: NetworkShape, rng: np.random.Generator) -> Parameters:
    """Initial weights (He et al. 2015): normal with variance 2 / inputs.

    Outputs start near 1, the cost of the best constant prediction, so that an action that is rarely recorded does not look
    cheap before it is learned.
    """
    d, n_groups, first = len(shape.column_group), shape.n_groups, shape.hidden[0]

    def normal(*size: int, inputs: int) -> Floats:
        return rng.normal(scale=np.sqrt(2 / inputs), size=size)

    if shape.sets:
        weights = {
            "in_values": normal(n_groups, d, first, inputs=d),
            "in_bias": normal(n_groups, 1, first, inputs=n_groups),
        }
    else:
        weights = {
            "in_values": normal(d, first, inputs=d + n_groups),
            "in_groups": normal(n_groups, first, inputs=d + n_groups),
            "in_bias": np.zeros(first),
        }
    for k, (before, units) in enumerate(zip(shape.hidden, shape.hidden[1:], strict=False)):
        weights[f"hidden{k}"] = normal(before, units, inputs=before)
        weights[f"hidden{k}_bias"] = np.zeros(units)
    last = shape.hidden[-1]
    weights["out"] = 0.1 * normal(last, shape.n_outputs, inputs=last)
    weights["out_bias"] = np.ones(shape.n_outputs)
    if shape.dueling:
        weights["value"] = 0.1 * normal(last, 1, inputs=last)
        weights["value_bias"] = np.ones(1)
    return weights


def outputs(shape: NetworkShape, weights: Parameters, x: Any, acquired: Any) -> Any:
    """Outputs (n, G + endings) from inputs x (n, d), 0 outside the acquired groups, and indicators ``acquired`` (n, G).

    Uses operators only, so arrays may be of numpy or jax.
    """
    if shape.sets:
        embedded = _relu(x @ (weights["in_values"] * shape.owns()) + weights["in_bias"])
        h = (embedded * acquired.T[:, :, None]).sum(axis=0)
    else:
        h = _relu(x @ weights["in_values"] + acquired @ weights["in_groups"] + weights["in_bias"])
    for k in range(len(shape.hidden) - 1):
        h = _relu(h @ weights[f"hidden{k}"] + weights[f"hidden{k}_bias"])
    out = h @ weights["out"] + weights["out_bias"]
    if shape.dueling:
        out = out - out.mean(axis=1, keepdims=True) + h @ weights["value"] + weights["value_bias"]
    return out


def _relu(z: Any) -> Any:
    return z * (z > 0)


@dataclass(frozen=True, eq=False)
class Network:
    """A network with the standardisation of its inputs and the unit of its costs. It needs only numpy."""

    shape: NetworkShape
    weights: Parameters
    centre: Floats  # (d,)
    spread: Floats  # (d,)
    unit: float

    def inputs(self, values: Floats, acquired: Bools) -> Floats:
        """Standardised values (n, d), 0 outside the acquired groups and in gaps."""
        seen = acquired[:, np.asarray(self.shape.column_group, dtype=np.intp)] & ~np.isnan(values)
        return np.where(seen, (np.where(seen, values, 0.0) - self.centre) / self.spread, 0.0)

    def outputs(self, values: Floats, acquired: Bools) -> Floats:
        """Outputs in these states, in units of the cost of the best constant prediction."""
        x = self.inputs(values, acquired)
        return np.asarray(outputs(self.shape, self.weights, x, acquired.astype(float)), dtype=float)

    def with_weights(self, weights: Parameters) -> Network:
        """Return a copy with other weights, as numpy arrays in double precision."""
        plain = {name: np.asarray(w, dtype=float) for name, w in weights.items()}
        return Network(self.shape, plain, self.centre, self.spread, self.unit)

    def settings(self) -> dict[str, Any]:
        """Return the shape for JSON."""
        shape = self.shape
        return {**asdict(shape), "column_group": list(shape.column_group), "hidden": list(shape.hidden)}

    def arrays(self) -> dict[str, Floats]:
        """Return weights and standardisation."""
        named = {f"weights.{name}": np.asarray(w, dtype=float) for name, w in self.weights.items()}
        return {**named, "centre": self.centre, "spread": self.spread, "unit": np.array([self.unit])}

    @staticmethod
    def restored(settings: dict[str, Any], arrays: dict[str, Floats]) -> Network:
        """Restore a network from its `settings` and `arrays`."""
        shape = NetworkShape(
            **{**settings, "column_group": tuple(settings["column_group"]), "hidden": tuple(settings["hidden"])}
        )
        prefix = "weights."
        weights = {name.removeprefix(prefix): w for name, w in arrays.items() if name.startswith(prefix)}
        return Network(shape, weights, arrays["centre"], arrays["spread"], float(arrays["unit"][0]))
