"""MLP: the Q-network, a plain multi-layer perceptron with ReLU between its layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from spibb.errors import InputError
from spibb.loading import Place, array, check, record

HIDDEN = (32, 128, 32)
"""The paper's hidden layers (appendix D.3)."""


BLOCK = 512
"""States whose layers NumPy computes at once, so that they stay in the cache."""


class MLP(eqx.Module):
    """q(x, ·) = W_L relu(… relu(W_1 x + b_1) …) + b_L; weights [in, out], states [..., d]."""

    weights: tuple[Any, ...]
    biases: tuple[Any, ...]

    @classmethod
    def init(cls, sizes: Sequence[int], rng: np.random.Generator) -> MLP:
        """He-uniform weights, U(−√(6/in), √(6/in)), and zero biases (He et al. 2015)."""
        limits = [(6 / m) ** 0.5 for m in sizes[:-1]]
        shapes = zip(limits, sizes, sizes[1:])
        return cls(
            tuple(rng.uniform(-x, x, (m, n)).astype(np.float32) for x, m, n in shapes),
            tuple(np.zeros(n, np.float32) for n in sizes[1:]),
        )

    def __call__(self, x: Any) -> Any:
        """Q-values [..., A] of states [..., d], in JAX."""
        for weight, bias in zip(self.weights[:-1], self.biases[:-1]):
            x = jnp.maximum(x @ weight + bias, 0)
        return x @ self.weights[-1] + self.biases[-1]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Layer widths, from the features to the actions."""
        return (self.weights[0].shape[0], *(weight.shape[1] for weight in self.weights))

    def numpy(self) -> MLP:
        """The same network with NumPy arrays."""
        return jax.tree.map(np.asarray, self)

    def values(self, states: np.ndarray) -> np.ndarray:
        """Q-values [M, A] of states [M, d] by NumPy: no compilation for a new number of states."""
        network = self if isinstance(self.weights[0], np.ndarray) else self.numpy()
        weights, biases = network.weights, network.biases
        n_features, n_actions = weights[0].shape[0], weights[-1].shape[1]
        if states.ndim != 2 or states.shape[1] != n_features:
            raise InputError(
                f"states has shape {states.shape}, expected (M, {n_features}): the network "
                f"was trained on {n_features} features"
            )
        states = states.astype(np.float32)
        out = np.empty((len(states), n_actions), np.float32)
        for first in range(0, len(states), BLOCK):
            out[first : first + BLOCK] = _forward(weights, biases, states[first : first + BLOCK])
        return out

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The arrays by name, as they are saved."""
        named = {f"weight_{i}": np.asarray(w) for i, w in enumerate(self.weights)}
        return named | {f"bias_{i}": np.asarray(b) for i, b in enumerate(self.biases)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], what: str = "network") -> MLP:
        """The network that `to_arrays` wrote; layers that do not fit together are named."""
        n_layers = max(1, sum(name.startswith("weight_") for name in arrays))
        forms = {f"weight_{i}": array("f", 2) for i in range(n_layers)}
        forms |= {f"bias_{i}": array("f", 1) for i in range(n_layers)}
        check(dict(arrays), record(forms, more=True), Place(what, "it is damaged"))
        weights = tuple(arrays[f"weight_{i}"] for i in range(n_layers))
        biases = tuple(arrays[f"bias_{i}"] for i in range(n_layers))
        for i, (weight, bias) in enumerate(zip(weights, biases)):
            for name, part in (("weight", weight), ("bias", bias)):
                if not np.isfinite(part).all():
                    raise InputError(f"{what}: {name}_{i} is not finite: it is damaged")
            fits = len(weight) == len(biases[i - 1]) if i else True
            if not fits or weight.shape[1] != len(bias):
                raise InputError(
                    f"{what}: weight_{i} has shape {weight.shape}, which does not fit the biases "
                    "before and after it: it is damaged"
                )
        return cls(weights, biases)

    @classmethod
    def from_torch(cls, module: Any) -> MLP:
        """The network of a PyTorch module of linear layers with ReLU between them.

        `module` is the module, or its `state_dict()`: matrices ``*.weight`` [out, in] and vectors
        ``*.bias`` [out], in the order of the layers. PyTorch itself is not needed.
        """
        given = module.state_dict() if hasattr(module, "state_dict") else module
        if not isinstance(given, Mapping):
            raise InputError(
                f"from_torch got {type(given).__name__}, expected a module or its state_dict()"
            )
        layers = [name.removesuffix("weight") for name in given if name.endswith("weight")]
        others = [name for name in given if not name.endswith(("weight", "bias"))]
        if others or len(given) != 2 * len(layers) or not layers:
            raise InputError(
                f"from_torch needs linear layers, each with weight and bias, and found "
                f"{', '.join(map(str, given)) or 'nothing'}: build the network of nn.Linear and "
                "nn.ReLU only"
            )
        arrays: dict[str, np.ndarray] = {}
        for i, layer in enumerate(layers):
            if f"{layer}bias" not in given:
                raise InputError(f"from_torch found {layer}weight without {layer}bias: add it")
            weight, bias = (_numbers(given[f"{layer}{part}"]) for part in ("weight", "bias"))
            arrays |= {f"weight_{i}": weight.T.copy(), f"bias_{i}": bias}
        return cls.from_arrays(arrays, "PyTorch network")


def _numbers(tensor: Any) -> np.ndarray:
    """A tensor on any device, or an array, in 32 bits."""
    for step in ("detach", "cpu"):
        tensor = getattr(tensor, step, lambda same=tensor: same)()
    return np.array(tensor, dtype=np.float32)


def _forward(weights: Sequence[Any], biases: Sequence[Any], x: np.ndarray) -> np.ndarray:
    """As `MLP.__call__`, in place where it can be."""
    for weight, bias in zip(weights[:-1], biases[:-1]):
        x = x @ weight
        x += bias
        np.maximum(x, 0, out=x)
    return x @ weights[-1] + biases[-1]
