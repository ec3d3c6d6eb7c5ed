"""DeepPolicy: what SPIBB-DQN trains, and SoftmaxBaseline: a policy to improve upon."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spibb import checks
from spibb.deep.checkpoint import read_arrays, write_arrays
from spibb.deep.log import StateFunction, distributions, finite_states, matrix
from spibb.deep.network import MLP
from spibb.deep.targets import ROWS
from spibb.errors import InputError
from spibb.loading import array


@dataclass(frozen=True, eq=False)
class DeepPolicy:
    """π(a|x): the greedy row of Π_b (or Π_≤b) for the network's Q-values.

    A callable from states [M, d] to probabilities [M, A]. (x, a) is bootstrapped iff its
    pseudo-count is below `n_wedge`; there the baseline's mass stays. `baseline` and `counts` are
    asked at every state, and are not needed for `n_wedge=0`; `counts` not for infinity either.
    """

    network: MLP
    baseline: StateFunction | None = None
    counts: StateFunction | None = None
    n_wedge: float = 0.0
    variant: str = "pi-b"

    def __post_init__(self) -> None:
        checks.n_wedge(self.n_wedge)
        checks.choice("variant", self.variant, tuple(ROWS))
        needs = {
            "baseline": self.n_wedge > 0 and self.baseline is None,
            "counts": 0 < self.n_wedge < np.inf and self.counts is None,
        }
        for name, missing in needs.items():
            if missing:
                raise InputError(
                    f"the policy has no {name}, which n_wedge = {self.n_wedge:g} needs at every "
                    f"state: give {name}, a callable from states [M, d] to [M, A]"
                )
        object.__setattr__(self, "network", self.network.numpy())

    def __call__(self, states: Any) -> np.ndarray:
        """Probabilities [M, A] at states [M, d]."""
        states = matrix(states, "states")
        finite_states(states, "states")
        q = self.network.values(states)
        baseline, bootstrapped = self._bootstrap(states, q.shape)
        return ROWS[self.variant](q, baseline, bootstrapped, np)

    def _bootstrap(self, states: np.ndarray, shape: tuple[int, ...]) -> tuple[Any, Any]:
        if self.baseline is None or self.n_wedge == 0:
            return np.zeros(shape), np.zeros(shape, bool)
        baseline = _shaped(distributions(self.baseline(states), shape[0], "baseline"), shape)
        if self.counts is None:
            return baseline, np.ones(shape, bool)
        counts = _shaped(matrix(self.counts(states), "counts", shape[0]), shape, "counts")
        return baseline, counts.astype(np.float32) < np.float32(self.n_wedge)

    def sample(self, states: Any, *, rng: np.random.Generator) -> np.ndarray:
        """Draw one action code per state [M]."""
        return sample_rows(self(states), rng)

    def save(self, path: str | Path) -> Path:
        """Write network, N∧ and variant as .npz; baseline and counts are given again on loading."""
        return write_arrays(
            path,
            {
                "kind": "policy",
                "n_wedge": self.n_wedge,
                "variant": self.variant,
                **self.network.to_arrays(),
            },
        )

    def export_onnx(self, path: str | Path) -> None:
        """Write the whole policy as an ONNX graph: state, baseline_probs, counts → pi, q."""
        from spibb.deep.onnx_graph import export

        export(self, Path(path))


def load_policy(
    path: str | Path, baseline: StateFunction | None = None, counts: StateFunction | None = None
) -> DeepPolicy:
    """Read a policy that `DeepPolicy.save` wrote, and give it its baseline and pseudo-counts."""
    arrays = read_arrays(path, "policy", {"n_wedge": array("fiu"), "variant": array("U")})
    network = MLP.from_arrays(arrays, f"policy {str(path)!r}")
    return DeepPolicy(network, baseline, counts, float(arrays["n_wedge"]), str(arrays["variant"]))


@dataclass(frozen=True, eq=False)
class SoftmaxBaseline:
    """π_b(a|x) ∝ exp(q(x, a)/temperature): a callable from states [M, d] to [M, A]."""

    network: MLP
    temperature: float = 0.1

    def __post_init__(self) -> None:
        checks.number("temperature", self.temperature, 0, np.inf, "()")
        object.__setattr__(self, "network", self.network.numpy())

    def __call__(self, states: Any) -> np.ndarray:
        """Probabilities [M, A] at states [M, d]."""
        q = self.network.values(np.asarray(states)).astype(np.float64) / self.temperature
        weights = np.exp(q - q.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def save(self, path: str | Path) -> Path:
        """Write network and temperature as .npz."""
        arrays = self.network.to_arrays()
        return write_arrays(path, {"kind": "baseline", "temperature": self.temperature, **arrays})

    @classmethod
    def load(cls, path: str | Path) -> SoftmaxBaseline:
        """Read what `save` wrote."""
        arrays = read_arrays(path, "baseline", {"temperature": array("fiu")})
        network = MLP.from_arrays(arrays, f"baseline {str(path)!r}")
        return cls(network, float(arrays["temperature"]))


def sample_rows(probs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw one column per row of probabilities [M, A]."""
    cumulative = np.cumsum(probs, axis=1)
    draws = rng.random(len(probs))[:, None] * cumulative[:, -1:]
    return (cumulative <= draws).sum(axis=1)


def _shaped(rows: np.ndarray, shape: tuple[int, ...], what: str = "baseline") -> np.ndarray:
    if rows.shape != shape:
        raise InputError(
            f"{what} gave {rows.shape[1]} columns, expected {shape[1]}: one per action that the "
            "network was trained on"
        )
    return rows
