"""The values of several policies in many drawn models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spibb.assurance.rows import Models, PooledRows
from spibb.frozen import Frozen
from spibb.kernels import mixed

DENSE_UP_TO = 64
"""States up to which transitions are matrices, and no kernel need be compiled."""
INVERTED_UP_TO = 1500
"""States up to which the mean model is inverted to precondition the others."""
PRECISION = 3e-2
"""Last change of a value, in standard deviations over the draws; the error is smaller by as much
as a change is than the one before, about tenfold."""
ITERATIONS, SWEEPS = 12, 20_000
BATCH_NUMBERS = 1 << 22
"""Numbers held at once."""


Backup = Callable[[np.ndarray, np.ndarray], None]
"""Fills its second argument with the average of the first over successors."""


class Start(NamedTuple):
    """V̄ [S, M], Hᵀp₀ [S, M] and, in single precision, Hᵀ [M, S, S] of a mean model."""

    v: np.ndarray
    reach: np.ndarray
    inverses: np.ndarray


@dataclass(frozen=True, eq=False)
class Evaluator(Frozen):
    """ρ of policies [M, S, A] in many models.

    All start from the mean model, V̄ = H R̄ with H = (I − γ P̄_π)⁻¹, and repeat V ← V + H e,
    e = R + γ P_π V − V being what V lacks in the drawn model; ρ = p₀·V + (Hᵀp₀)·e is then exact to
    one order more than V. Models with too many states for H are swept, V ← V + e.
    """

    rows: PooledRows
    policies: np.ndarray
    discount: float
    start: Start | None = None

    def of_rows(self, rows: PooledRows) -> Evaluator:
        """The same policies in other models; large ones start from the mean model of these."""
        shared = DENSE_UP_TO < rows.shape[0] <= INVERTED_UP_TO
        return replace(self, rows=rows, start=self._start if shared else None)

    @property
    def batch(self) -> int:
        """How many models to draw at once."""
        n_states, n_actions = self.rows.shape
        wide = n_states if n_states <= DENSE_UP_TO else 1
        numbers = max(
            len(self.rows.n),
            n_states * n_actions * max(wide, len(self.policies) if wide > 1 else 1),
        )
        return max(1, BATCH_NUMBERS // numbers)

    def __call__(self, models: Models) -> np.ndarray:
        """ρ of each policy in each model [D, M]."""
        if self.rows.shape[0] <= INVERTED_UP_TO:
            return self._refined(models)
        return np.einsum("s,dsm->dm", self.rows.initial, self._swept(models))

    def mean_values(self) -> np.ndarray:
        """V of each policy in the mean model [S, M]."""
        if self.rows.shape[0] <= INVERTED_UP_TO:
            return self._start.v
        return self._swept(self.rows.mean)[0]

    def _earned(self, models: Models) -> np.ndarray:
        """Σ_a π(a|x) R(x, a) [D, S, M]."""
        by_state = models.rewards.reshape(-1, *self.rows.shape).transpose(1, 0, 2)
        found = np.matmul(by_state, self.policies.transpose(1, 2, 0))
        return np.ascontiguousarray(found.transpose(1, 0, 2))

    @cached_property
    def _sparse(self) -> mixed.Mixed:
        return self.rows.sparse(self.policies)

    def _backup(self, models: Models) -> Backup:
        """The function from V [D, S, M] to P_π V [D, S, M] in given models."""
        n_states, n_actions = self.rows.shape
        if n_states > DENSE_UP_TO:
            return lambda v, out: mixed.backup(self._sparse, models.outcome, models.pair, v, out)
        rows = self.rows.matrices(models).reshape(-1, n_states * n_actions, n_states)
        play = np.ascontiguousarray(self.policies.transpose(1, 2, 0))

        def multiply(v: np.ndarray, out: np.ndarray) -> None:
            by_action = np.matmul(rows, v).reshape(-1, n_states, n_actions, len(self.policies))
            np.einsum("dsam,sam->dsm", by_action, play, out=out)

        return multiply

    def _lacks(self, backup: Backup, earned: np.ndarray, v: np.ndarray) -> np.ndarray:
        """e = R + γ P_π V − V [D, S, M]."""
        out = np.empty_like(v)
        backup(v, out)
        out *= self.discount
        out += earned
        out -= v
        return out

    @cached_property
    def _start(self) -> Start:
        if self.start is not None:
            return self.start
        n_states, n_policies = self.rows.shape[0], len(self.policies)
        v, reach = np.empty((2, n_states, n_policies))
        inverses = np.empty((n_policies, n_states, n_states), dtype=np.float32)
        earned = self._earned(self.rows.mean)[0]
        for m, probs in enumerate(self.policies):
            chain = self.rows.chain(probs, self.rows.mean)
            inverse = np.linalg.inv(np.eye(n_states) - self.discount * chain)
            v[:, m] = inverse @ earned[:, m]
            reach[:, m] = self.rows.initial @ inverse
            inverses[m] = inverse.T
        return Start(v, reach, inverses)

    def _refined(self, models: Models) -> np.ndarray:
        """Iterate from the mean model until no draw's ρ moves; solve outright those that do."""
        mean, reach, inverses = self._start
        earned, backup = self._earned(models), self._backup(models)
        v = np.repeat(mean[None], len(earned), axis=0)
        rho = np.full((len(earned), v.shape[2]), np.inf)
        moving = np.ones(len(earned), dtype=bool)
        for _ in range(ITERATIONS):
            lacks = self._lacks(backup, earned, v)
            found = np.einsum("s,dsm->dm", self.rows.initial, v)
            found += np.einsum("sm,dsm->dm", reach, lacks)
            moving = np.abs(found - rho).max(axis=1) > PRECISION * _scale(found)
            rho = found
            if not moving.any():
                return rho
            steps = np.matmul(lacks.transpose(2, 0, 1).astype(np.float32), inverses)
            v += steps.transpose(1, 2, 0)
        for d in np.flatnonzero(moving):
            rho[d] = self._one(Models(*(part[d : d + 1] for part in models)))
        return rho

    def _one(self, model: Models) -> np.ndarray:
        """ρ of each policy in a single model [M], by one dense system each."""
        eye, earned = np.eye(self.rows.shape[0]), self._earned(model)[0]
        values = [
            np.linalg.solve(eye - self.discount * self.rows.chain(probs, model), earned[:, m])
            for m, probs in enumerate(self.policies)
        ]
        return np.stack(values) @ self.rows.initial

    def _swept(self, models: Models) -> np.ndarray:
        """V [D, S, M] by plain sweeps, for models too large to invert."""
        earned, backup = self._earned(models), self._backup(models)
        v = earned / (1 - self.discount)
        for _ in range(SWEEPS):
            lacks = self._lacks(backup, earned, v)
            v += lacks
            error = np.abs(lacks).max() * self.discount / (1 - self.discount)
            if error <= 1e-6 * np.abs(v).max():
                break
        return v


def _scale(rho: np.ndarray) -> float:
    """A typical standard deviation over the draws; rounding sets a floor."""
    return float(rho.std(axis=0).mean()) + 1e-12 * float(np.abs(rho).max()) / PRECISION
