"""Q networks as plain arrays: layout, first weights, outputs. Written so that numpy and jax run the same code."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..arrays import Bools, Floats

__all__ = ["Layout", "Network", "Parameters", "initial_parameters", "outputs"]

Parameters = dict[str, Any]  # name -> array of numpy or jax


@dataclass(frozen=True)
class Layout:
    r"""Shape of a network over states (x, S).

    The first layer takes the standardised values x, 0 outside the acquired set S, and the indicators of S. With
    ``sets`` it is an order-free encoding of the acquired groups, a sum of one embedding per group,

    .. math:: h = \sum_{g \in S} \mathrm{relu}(W_g x_g + b_g).

    With ``dueling`` the outputs are :math:`V + A_a - \mathrm{mean}_b A_b`.

    Parameters
    ----------
    column_group : tuple of int
        The group of each column.
    n_groups : int
        G; the first G outputs are the values of acquiring each.
    n_endings : int
        Outputs after these, about ending the run.
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
        """Groups and endings."""
        return self.n_groups + self.n_endings

    def owns(self) -> Floats:
        """1 where a column belongs to a group, shape (G, d, 1)."""
        own = np.arange(self.n_groups)[:, None] == np.asarray(self.column_group)
        return np.asarray(own[:, :, None], dtype=float)


def initial_parameters(layout: Layout, rng: np.random.Generator) -> Parameters:
    """First weights (He et al. 2015): normal with variance 2 / inputs.

    Outputs start near 1, what the best constant prediction costs: an action that is rarely recorded must not look cheap
    only because nothing was learned about it yet.
    """
    d, n_groups, first = len(layout.column_group), layout.n_groups, layout.hidden[0]

    def normal(*shape: int, inputs: int) -> Floats:
        return rng.normal(scale=np.sqrt(2 / inputs), size=shape)

    if layout.sets:
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
    for k, (before, units) in enumerate(zip(layout.hidden, layout.hidden[1:], strict=False)):
        weights[f"hidden{k}"] = normal(before, units, inputs=before)
        weights[f"hidden{k}_bias"] = np.zeros(units)
    last = layout.hidden[-1]
    weights["out"] = 0.1 * normal(last, layout.n_outputs, inputs=last)
    weights["out_bias"] = np.ones(layout.n_outputs)
    if layout.dueling:
        weights["value"] = 0.1 * normal(last, 1, inputs=last)
        weights["value_bias"] = np.ones(1)
    return weights


def outputs(layout: Layout, weights: Parameters, x: Any, acquired: Any) -> Any:
    """Outputs of shape (n, G + endings) from inputs (n, d), 0 outside the acquired groups, and their indicators (n, G).

    Operators alone, so that arrays of numpy and of jax both pass through.
    """
    if layout.sets:
        embedded = _relu(x @ (weights["in_values"] * layout.owns()) + weights["in_bias"])
        h = (embedded * acquired.T[:, :, None]).sum(axis=0)
    else:
        h = _relu(x @ weights["in_values"] + acquired @ weights["in_groups"] + weights["in_bias"])
    for k in range(len(layout.hidden) - 1):
        h = _relu(h @ weights[f"hidden{k}"] + weights[f"hidden{k}_bias"])
    out = h @ weights["out"] + weights["out_bias"]
    if layout.dueling:
        out = out - out.mean(axis=1, keepdims=True) + h @ weights["value"] + weights["value_bias"]
    return out


def _relu(z: Any) -> Any:
    return z * (z > 0)


@dataclass(frozen=True, eq=False)
class Network:
    """A network with the standardisation of its inputs and the unit of its costs; answers with numpy alone."""

    layout: Layout
    weights: Parameters
    centre: Floats  # (d,)
    spread: Floats  # (d,)
    unit: float

    def inputs(self, values: Floats, acquired: Bools) -> Floats:
        """Standardised values, 0 outside the acquired groups and where there is a gap."""
        seen = acquired[:, np.asarray(self.layout.column_group, dtype=np.intp)] & ~np.isnan(values)
        return np.where(seen, (np.where(seen, values, 0.0) - self.centre) / self.spread, 0.0)

    def outputs(self, values: Floats, acquired: Bools) -> Floats:
        """Outputs in these states, in units of the cost of the best constant prediction."""
        x = self.inputs(values, acquired)
        return np.asarray(outputs(self.layout, self.weights, x, acquired.astype(float)), dtype=float)

    def with_weights(self, weights: Parameters) -> Network:
        """The same with other weights, as numpy arrays of full precision."""
        plain = {name: np.asarray(w, dtype=float) for name, w in weights.items()}
        return Network(self.layout, plain, self.centre, self.spread, self.unit)

    def settings(self) -> dict[str, Any]:
        """What JSON holds of the network."""
        layout = asdict(self.layout)
        return {**layout, "column_group": list(self.layout.column_group), "hidden": list(self.layout.hidden)}

    def arrays(self) -> dict[str, Floats]:
        """Weights and standardisation."""
        named = {f"weights.{name}": np.asarray(w, dtype=float) for name, w in self.weights.items()}
        return {**named, "centre": self.centre, "spread": self.spread, "unit": np.array([self.unit])}

    @staticmethod
    def restored(settings: dict[str, Any], arrays: dict[str, Floats]) -> Network:
        """The network that `settings` and `arrays` came from."""
        layout = Layout(
            **{**settings, "column_group": tuple(settings["column_group"]), "hidden": tuple(settings["hidden"])}
        )
        prefix = "weights."
        weights = {name.removeprefix(prefix): w for name, w in arrays.items() if name.startswith(prefix)}
        return Network(layout, weights, arrays["centre"], arrays["spread"], float(arrays["unit"][0]))
