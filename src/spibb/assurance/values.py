"""The values of several policies in many drawn models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

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
FEW = 0.7
"""Share of the draws that move up to which the others are left behind."""
SPARSE_UP_TO = 20
"""Outcomes of a state up to which a single system is solved as a sparse one."""
ITERATIONS, SWEEPS = 12, 20_000
BATCH_NUMBERS = 1 << 22
"""Numbers held at once."""


Backup = Callable[[np.ndarray, np.ndarray], None]
"""Fills its second argument with the average of the first over successors."""


class Start(NamedTuple):
    """V̄ [S, M], Hᵀp₀ [S, M] and Hᵀ [M, S, S] of a mean model, in the precision of steps."""

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

    @property
    def _step_type(self) -> type[np.floating]:
        """Steps need few digits, unlike values: single precision is quicker where models are."""
        return np.float64 if self.rows.shape[0] <= DENSE_UP_TO else np.float32

    @cached_property
    def _sparse(self) -> dict[type, mixed.Mixed]:
        """The rows in both precisions."""
        rows = self.rows.sparse(self.policies)
        return {
            kind: rows._replace(play=rows.play.astype(kind), left=rows.left.astype(kind))
            for kind in (np.float64, np.float32)
        }

    def _backup(self, models: Models) -> Backup:
        """The function from V [D, S, M] to P_π V [D, S, M] in given models."""
        n_states, n_actions = self.rows.shape
        if n_states > DENSE_UP_TO:
            return lambda v, out: mixed.backup(
                self._sparse[v.dtype.type], models.outcome, models.pair, v, out
            )
        rows = self.rows.matrices(models).reshape(-1, n_states * n_actions, n_states)
        play = np.ascontiguousarray(self.policies.transpose(1, 2, 0))

        def multiply(v: np.ndarray, out: np.ndarray) -> None:
            by_action = np.matmul(rows, v).reshape(-1, n_states, n_actions, len(self.policies))
            np.einsum("dsam,sam->dsm", by_action, play, out=out)

        return multiply

    def _lacks(self, backup: Backup, earned: np.ndarray | float, v: np.ndarray) -> np.ndarray:
        """e = R + γ P_π V − V [D, S, M], as precise as V."""
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
        inverses = np.empty((n_policies, n_states, n_states), dtype=self._step_type)
        earned = self._earned(self.rows.mean)[0]
        for m, probs in enumerate(self.policies):
            chain = self.rows.chain(probs, self.rows.mean)
            inverse = np.linalg.inv(np.eye(n_states) - self.discount * chain)
            v[:, m] = inverse @ earned[:, m]
            reach[:, m] = self.rows.initial @ inverse
            inverses[m] = inverse.T
        return Start(v, reach, inverses)

    def _refined(self, models: Models) -> np.ndarray:
        """Iterate from the mean model, with the draws whose ρ still moves; solve outright those
        that do not stop."""
        mean, reach, inverses = self._start
        backup = self._backup(models)
        v = np.repeat(mean[None], len(models.rewards), axis=0)
        lacks = self._lacks(backup, self._earned(models), v)
        rho, left = np.full((len(v), v.shape[2]), np.inf), np.arange(len(v))
        for _ in range(ITERATIONS):
            found = np.einsum("s,dsm->dm", self.rows.initial, v)
            found += np.einsum("sm,dsm->dm", reach, lacks)
            change, rho[left] = np.abs(found - rho[left]), found
            moving = change > PRECISION * _scale(rho)
            still = moving.any(axis=1)
            if not still.any():
                return rho
            if still.mean() <= FEW:
                left, v, lacks, moving = (part[still] for part in (left, v, lacks, moving))
                models = Models(*(part[still] for part in models))
                backup = self._backup(models)
            steps = np.matmul(lacks.transpose(2, 0, 1).astype(self._step_type), inverses)
            step = np.ascontiguousarray(steps.transpose(1, 2, 0))
            v += step
            lacks += self._lacks(backup, 0.0, step)
        for d, m in np.argwhere(moving):
            rho[left[d], m] = self._one(Models(*(part[d : d + 1] for part in models)), m)
        return rho

    def _one(self, model: Models, m: int) -> float:
        """ρ of one policy in a single model, by one system."""
        rows, n_states = self.rows, self.rows.shape[0]
        earned = self._earned(model)[0, :, m]
        if rows.idle_are_beyond and len(rows.n) <= SPARSE_UP_TO * n_states:
            state, successor, prob = rows.steps(self.policies[m], model)
            stays = sparse.csc_matrix((prob, (state, successor)), shape=(n_states, n_states))
            system = splu(sparse.identity(n_states, format="csc") - self.discount * stays)
            return float(rows.initial @ system.solve(earned))
        system = np.eye(n_states) - self.discount * rows.chain(self.policies[m], model)
        return float(rows.initial @ np.linalg.solve(system, earned))

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
