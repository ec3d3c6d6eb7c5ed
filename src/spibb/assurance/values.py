"""The values of several policies in many drawn models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
PRECISION = 1e-2
"""Largest error of a value, about, in standard deviations over the draws."""
FEW = 0.05
"""Share of the values that still move up to which it is quicker to solve for these outright."""
SPARSE_UP_TO = 20
"""Outcomes of a state up to which a single system is solved as a sparse one."""
ITERATIONS, SWEEPS = 8, 20_000
BATCH_NUMBERS = 1 << 22
"""Numbers held at once."""
CACHED_NUMBERS = 1 << 19
"""Numbers that a core has close at hand: models with matrices are evaluated in parts of as many."""


Backup = Callable[[np.ndarray, np.ndarray], None]
"""Fills its second argument with γ times the average of the first over successors."""


class Start(NamedTuple):
    """V̄ [M, S], Hᵀp₀ [M, S] and Hᵀ [M, S, S] of a mean model, Hᵀ in the precision of steps."""

    v: np.ndarray
    reach: np.ndarray
    inverses: np.ndarray


@dataclass(frozen=True, eq=False)
class Evaluator(Frozen):
    """ρ of policies [M, S, A] in many models.

    All start from the `mean` model, V̄ = H R̄ with H = (I − γ P̄_π)⁻¹, and repeat V ← V + H e,
    e = R + γ P_π V − V being what V lacks in the drawn model; ρ = p₀·V + (Hᵀp₀)·e is then exact to
    one order more than V, and a step of V changes it by (Hᵀp₀)·e of the next e alone. Models with
    too many states for H are swept, V ← V + e.
    """

    rows: PooledRows
    policies: np.ndarray
    discount: float
    mean: Models

    @property
    def batch(self) -> int:
        """How many models to evaluate at once."""
        (n_states, n_actions), n_policies = self.rows.shape, len(self.policies)
        if n_states > DENSE_UP_TO:
            return max(1, BATCH_NUMBERS // (n_states * n_actions * n_policies))
        return max(1, CACHED_NUMBERS // (n_states * (n_actions + 1) * (n_states + n_policies)))

    def __call__(self, models: Models) -> np.ndarray:
        """ρ of each policy in each model [D, M]."""
        parts = [
            models.among(slice(begin, begin + self.batch))
            for begin in range(0, len(models.rewards), self.batch)
        ]
        if self.rows.shape[0] > INVERTED_UP_TO:
            return np.concatenate([self._swept(part) @ self.rows.initial for part in parts])
        refined = [self._refined(part) for part in parts]
        rho, moving = (np.concatenate(each) for each in zip(*refined))
        rho[moving] = self._outright(models, *np.nonzero(moving))
        return rho

    def mean_values(self) -> np.ndarray:
        """V of each policy in the mean model [M, S]."""
        if self.rows.shape[0] <= INVERTED_UP_TO:
            return self._start.v
        copies = Models(*(part.copy() for part in self.mean))  # writable: one type, one compilation
        return self._swept(copies)[0]

    def _averaged(self, of_pairs: np.ndarray) -> np.ndarray:
        """Σ_a π(a|x) f(x, a) [D, M, S] of numbers by pair [D, P]."""
        by_state = of_pairs.reshape(-1, *self.rows.shape).transpose(1, 0, 2)
        found = np.matmul(by_state, self.policies.transpose(1, 2, 0))
        return np.ascontiguousarray(found.transpose(1, 2, 0))

    @property
    def _step_type(self) -> type[np.floating]:
        """Steps need few digits, unlike values: single precision is quicker where models are."""
        return np.float64 if self.rows.shape[0] <= DENSE_UP_TO else np.float32

    @cached_property
    def _by_action(self) -> np.ndarray:
        """γ π [M, A, S]."""
        return self.discount * np.ascontiguousarray(self.policies.transpose(0, 2, 1))

    @cached_property
    def _play(self) -> dict[type, np.ndarray]:
        """π [P, M] in both precisions."""
        play = self.policies.reshape(len(self.policies), -1).T
        return {kind: np.ascontiguousarray(play, dtype=kind) for kind in (np.float64, np.float32)}

    def _backup(self, models: Models) -> Backup:
        """The function from V [D, M, S] to γ P_π V [D, M, S] in given models."""
        if self.rows.shape[0] > DENSE_UP_TO:
            return lambda v, out: mixed.backup(
                self.rows.sparse, self._play[v.dtype.type], *models[:3], self.discount, v, out
            )
        matrices = self.rows.matrices(models)
        left = self._averaged(self.discount * (1 - models.weight))
        wide, by_action = matrices.reshape(*matrices.shape[:2], -1), self._by_action

        def multiply(v: np.ndarray, out: np.ndarray) -> None:
            found = np.matmul(v, wide).reshape(*v.shape[:2], *matrices.shape[2:])
            np.einsum("dmas,mas->dms", found[:, :, :-1], by_action, out=out)
            out += left * found[:, :, -1]

        return multiply

    def _lacks(self, backup: Backup, earned: np.ndarray, v: np.ndarray) -> np.ndarray:
        """e = R + γ P_π V − V [D, M, S], as precise as V."""
        out = np.empty_like(v)
        backup(v, out)
        out += earned
        out -= v
        return out

    @cached_property
    def _start(self) -> Start:
        earned = self._averaged(self.mean.rewards)[0]
        unit, at_once = np.eye(self.rows.shape[0]), max(1, BATCH_NUMBERS // self.rows.shape[0] ** 2)
        v, reach, inverses = [], [], []
        for begin in range(0, len(earned), at_once):
            some = slice(begin, begin + at_once)
            chains = self.rows.chains(self.policies[some], self.mean)
            inverse = np.linalg.inv(unit - self.discount * chains)
            v.append((inverse @ earned[some, :, None])[..., 0])
            reach.append(self.rows.initial @ inverse)
            inverses.append(inverse.transpose(0, 2, 1).astype(self._step_type, order="C"))
        return Start(*(np.concatenate(parts) for parts in (v, reach, inverses)))

    def _refined(self, models: Models) -> tuple[np.ndarray, np.ndarray]:
        """ρ [D, M] by iteration from the mean model, and where it still moves."""
        mean, reach, inverses = self._start
        backup, v = self._backup(models), np.repeat(mean[None], len(models.rewards), axis=0)
        lacks = self._lacks(backup, self._averaged(models.rewards), v)
        rho = mean @ self.rows.initial + _summed(reach, lacks)
        scale, size = _scale(rho), _summed(reach, np.abs(lacks))
        lacks, step = lacks.astype(self._step_type, copy=False), np.empty_like(lacks)
        for _ in range(ITERATIONS):
            np.matmul(lacks.transpose(1, 0, 2), inverses, out=step.transpose(1, 0, 2))
            lacks = self._lacks(backup, lacks, step)
            rho += _summed(reach, lacks)
            last, size = size, _summed(reach, np.abs(lacks))
            # if later changes shrink as this one did, they add up to at most size²/(last − size)
            moving = size**2 > PRECISION * scale * (last - size)
            if moving.mean() <= FEW:
                break
        return rho, moving

    def _outright(self, models: Models, draw: np.ndarray, policy: np.ndarray) -> np.ndarray:
        """ρ of single policies in single models [N]."""
        n_states, found = self.rows.shape[0], np.empty(len(draw))
        few = n_states > DENSE_UP_TO and len(self.rows.n) <= SPARSE_UP_TO * n_states
        solve = self._solved_sparse if few and self.rows.idle_are_beyond else self._solved
        at_once = max(1, BATCH_NUMBERS // n_states**2)
        for begin in range(0, len(draw), at_once):
            some = slice(begin, begin + at_once)
            found[some] = solve(models.among(draw[some]), policy[some])
        return found

    def _solved(self, models: Models, policy: np.ndarray) -> np.ndarray:
        """ρ of one policy in each model [N], by one system each."""
        rows, policies = self.rows, self.policies[policy]
        earned = (policies * models.rewards.reshape(policies.shape)).sum(axis=2)
        systems = np.eye(rows.shape[0]) - self.discount * rows.chains(policies, models)
        found: np.ndarray = np.linalg.solve(systems, earned[..., None])[..., 0] @ rows.initial
        return found

    def _solved_sparse(self, models: Models, policy: np.ndarray) -> np.ndarray:
        """The same for large models of few outcomes, whose idle states do not matter."""
        rows, policies = self.rows, self.policies[policy]
        earned = (policies * models.rewards.reshape(policies.shape)).sum(axis=2)
        state, successor, probs = rows.steps(policies, models)
        unit, values = sparse.identity(rows.shape[0], format="csc"), []
        for prob, reward in zip(probs, earned):
            stays = sparse.csc_matrix((prob, (state, successor)), shape=unit.shape)
            values.append(splu(unit - self.discount * stays).solve(reward) @ rows.initial)
        return np.array(values)

    def _swept(self, models: Models) -> np.ndarray:
        """V [D, M, S] by plain sweeps, for models too large to invert."""
        earned, backup = self._averaged(models.rewards), self._backup(models)
        v = earned / (1 - self.discount)
        for _ in range(SWEEPS):
            lacks = self._lacks(backup, earned, v)
            v += lacks
            error = np.abs(lacks).max() * self.discount / (1 - self.discount)
            if error <= 1e-6 * np.abs(v).max():
                break
        return v


def _summed(reach: np.ndarray, of_states: np.ndarray) -> np.ndarray:
    """(Hᵀp₀)·f [D, M] of numbers by state [D, M, S]."""
    return np.einsum("ms,dms->dm", reach, of_states)


def _scale(rho: np.ndarray) -> float:
    """A typical standard deviation over the draws; rounding sets a floor."""
    return float(rho.std(axis=0).mean()) + 1e-12 * float(np.abs(rho).max()) / PRECISION
