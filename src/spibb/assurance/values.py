"""The values of several policies in many drawn models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy import linalg

from spibb.assurance.rows import Models, PooledRows
from spibb.assurance.systems import Systems
from spibb.frozen import Frozen
from spibb.kernels import pooled_rows

DENSE_UP_TO = 64
"""States up to which transitions are matrices, and no kernel need be compiled."""
INVERTED_UP_TO = 1500
"""States up to which the mean model is inverted to precondition the others."""
PRECISION = 5e-3
"""Largest error of a value, about, in standard deviations over the draws."""
FEW = 0.05
"""Share of the values that still move up to which it is quicker to solve for these outright."""
SPARSE_UP_TO = 20
"""Outcomes of a state up to which a single system is solved as a sparse one."""
ITERATIONS, SWEEPS, REFINEMENTS = 8, 20_000, 5
LONGEST = 1e4
"""Discounted steps of an episode, at most, that single precision can add up to `PRECISION`."""
BATCH_NUMBERS = 1 << 21
"""Numbers held at once."""
CACHED_NUMBERS = 1 << 19
"""Numbers that fit a core's cache: models with matrices are evaluated in parts of as many."""


Lacks = Callable[[np.ndarray, np.ndarray, np.ndarray], None]
"""Fills its third argument with e = R + γ P_π V − V [D, M, S], of R and V."""


class Start(NamedTuple):
    """V̄ [M, S], Hᵀp₀ [M, S] and Hᵀ [M, S, S] of a mean model, the last in single precision."""

    v: np.ndarray
    reach: np.ndarray
    inverses: np.ndarray


@dataclass(frozen=True, eq=False)
class Evaluator(Frozen):
    """ρ of policies [M, S, A] in many models.

    All start from the `mean` model, V̄ = H R̄ with H = (I − γ P̄_π)⁻¹, and repeat V ← V + H e,
    e = R + γ P_π V − V being what V lacks in the drawn model; ρ = p₀·V + (Hᵀp₀)·e is then exact to
    one order more than V, and a step of V changes it by (Hᵀp₀)·e of the next e alone. Models with
    too many states for H are swept, V ← V + e, and solved one by one where that takes too long.
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
            return max(1, BATCH_NUMBERS // (n_states * n_policies))
        return max(1, CACHED_NUMBERS // (n_states * (n_actions + 1) * (n_states + n_policies)))

    def __call__(self, models: Models) -> np.ndarray:
        """ρ of each policy in each model [D, M]."""
        parts = [
            models.among(slice(begin, begin + self.batch))
            for begin in range(0, len(models.rewards), self.batch)
        ]
        if self.rows.shape[0] > INVERTED_UP_TO:
            return np.concatenate([self._swept(part) @ self.rows.initial for part in parts])
        if not self._short:
            everything = np.indices((len(models.rewards), len(self.policies))).reshape(2, -1)
            return self._outright(models, *everything).reshape(-1, len(self.policies))
        found = [
            np.concatenate([group._refined(part) for group in self._groups], axis=2)
            for part in parts
        ]
        rho, moving = np.concatenate(found, axis=1)
        slow = moving > 0
        rho[slow] = self._outright(models, *np.nonzero(slow))
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

    def _lacks(self, models: Models) -> tuple[Lacks, Lacks]:
        """What V lacks in given models, in double precision, and in single for steps: these need
        few digits."""
        if self.rows.shape[0] > DENSE_UP_TO:
            double, single = (
                partial(pooled_rows.lacks, self.rows.sparse, play, models.weights, self.discount)
                for play in self._play
            )
            return double, single
        left = self._averaged(self.discount * (1 - models.weight))
        by_action = self.discount * np.ascontiguousarray(self.policies.transpose(0, 2, 1))
        parts = self.rows.matrices(models), by_action, left
        return _by_matrices(*parts), _by_matrices(*(part.astype(np.float32) for part in parts))

    @property
    def _groups(self) -> list[Evaluator]:
        """Those that iterate: for a few policies each, where these are side by side anyway."""
        return [self] if self.rows.shape[0] <= DENSE_UP_TO else self._parts

    @cached_property
    def _parts(self) -> list[Evaluator]:
        firsts = range(0, len(self.policies), pooled_rows.LANES)
        some = [self.policies[first : first + pooled_rows.LANES] for first in firsts]
        return [replace(self, policies=group) for group in some]

    @cached_property
    def _play(self) -> tuple[np.ndarray, np.ndarray]:
        """π [P, M] in both precisions, in as many columns as the kernel takes at once."""
        n_policies = len(self.policies)
        width = -(-n_policies // pooled_rows.LANES) * pooled_rows.LANES
        play = np.zeros((len(self.rows.visits), width))
        play[:, :n_policies] = self.policies.reshape(n_policies, -1).T
        return play, play.astype(np.float32)

    @cached_property
    def _start(self) -> Start:
        earned = self._averaged(self.mean.rewards)[0]
        unit, at_once = np.eye(self.rows.shape[0]), max(1, BATCH_NUMBERS // self.rows.shape[0] ** 2)
        found = []
        for begin in range(0, len(earned), at_once):
            some = slice(begin, begin + at_once)
            system = unit - self.discount * self.rows.chains(self.policies[some], self.mean)
            turned = system.transpose(0, 2, 1)
            inverse = _inverses(turned.astype(np.float32) if self._discounted else turned)
            whole = inverse.astype(np.float64)
            v = _solved(system, whole.transpose(0, 2, 1), earned[some])
            reach = _solved(turned, whole, np.broadcast_to(self.rows.initial, v.shape))
            found.append((v, reach, inverse.astype(np.float32)))
        return Start(*(np.concatenate(parts) for parts in zip(*found)))

    @property
    def _discounted(self) -> bool:
        """Whether the discount alone keeps episodes short."""
        return (1 - self.discount) * LONGEST >= 1

    @cached_property
    def _short(self) -> bool:
        """Whether steps in single precision will do: in the mean model, episodes are short."""
        return self._discounted or bool(self._start.inverses.sum(axis=1).max() <= LONGEST)

    def _refined(self, models: Models) -> np.ndarray:
        """ρ [D, M] by iteration from the mean model, and where it still moves: [2, D, M]."""
        mean, reach, inverses = self._start
        exactly, roughly = self._lacks(models)
        v = np.repeat(mean[None], len(models.rewards), axis=0)
        lacks = np.empty_like(v)
        exactly(self._averaged(models.rewards), v, lacks)
        rho = mean @ self.rows.initial + _summed(reach, lacks)
        unit = float(np.abs(lacks).max()) or 1.0  # so that no unit of reward changes the rounding
        lacks /= unit
        scale, size = _scale(rho) / unit, _summed(reach, np.abs(lacks))
        lacks, reach = lacks.astype(np.float32), reach.astype(np.float32)
        step, later = np.empty_like(lacks), np.empty_like(lacks)
        for _ in range(ITERATIONS):
            np.matmul(lacks.transpose(1, 0, 2), inverses, out=step.transpose(1, 0, 2))
            roughly(lacks, step, later)
            lacks, later = later, lacks
            change, last = _summed(reach, lacks), size
            rho, size = rho + unit * change, _summed(reach, np.abs(lacks))
            # later changes add up to size/(last − size) times this one, if they shrink as sizes do
            typical = np.maximum(np.abs(change), np.sqrt((change**2).mean(axis=0)))
            moving = ~(typical * size <= PRECISION * scale * (last - size))  # also where it is NaN
            if moving.mean() <= FEW:
                break
        return np.stack([rho, moving])

    def _outright(self, models: Models, draw: np.ndarray, policy: np.ndarray) -> np.ndarray:
        """ρ of single policies in single models [N]."""
        n_states, found = self.rows.shape[0], np.empty(len(draw))
        few = n_states > DENSE_UP_TO and len(self.rows.n) <= SPARSE_UP_TO * n_states
        if few and len(draw) and self.rows.idle_are_beyond:
            return self._solved_sparse(models, draw, policy) @ self.rows.initial
        at_once = max(1, BATCH_NUMBERS // n_states**2)
        for begin in range(0, len(draw), at_once):
            some = slice(begin, begin + at_once)
            found[some] = self._solved(models.among(draw[some]), policy[some])
        return found

    def _solved(self, models: Models, policy: np.ndarray) -> np.ndarray:
        """ρ of one policy in each model [N], by one system each."""
        rows, policies = self.rows, self.policies[policy]
        earned = (policies * models.rewards.reshape(policies.shape)).sum(axis=2)
        systems = np.eye(rows.shape[0]) - self.discount * rows.chains(policies, models)
        found: np.ndarray = np.linalg.solve(systems, earned[..., None])[..., 0] @ rows.initial
        return found

    def _solved_sparse(self, models: Models, draw: np.ndarray, policy: np.ndarray) -> np.ndarray:
        """V of single policies in single models [N, S], for large models of few outcomes.

        Only pairs that were tried have outcomes, and most were not: no table of all is copied.
        """
        rows, found = self.rows, np.empty((len(draw), self.rows.shape[0]))
        state, owner = rows.tried // rows.shape[1], rows.owner[rows.stays]
        play = self.policies.reshape(len(self.policies), -1)[:, rows.tried]
        weight, outcomes = models.weight[:, rows.tried], rows.outcomes_that_stay(models)
        earned, left = self._averaged(models.rewards), self._averaged(1 - models.weight)
        systems = Systems.of(state[owner], rows.successors[rows.stays], rows.shape[0])
        at_once = max(1, CACHED_NUMBERS // max(len(owner), rows.shape[0]))
        for begin in range(0, len(draw), at_once):
            d, m = (which[begin : begin + at_once] for which in (draw, policy))
            share = play[m] * weight[d] + left[d, m].take(state, axis=1) * models.pair[d]
            entries = self.discount * share.take(owner, axis=1) * outcomes[d]
            found[begin : begin + at_once] = systems.solved(entries, earned[d, m])
            if not rows.idle_are_beyond:
                self._lead_idle_on(found[begin : begin + at_once], entries, systems)
        return found

    def _lead_idle_on(self, v: np.ndarray, entries: np.ndarray, systems: Systems) -> None:
        """Add to V [N, S], for which idle states end, what follows where the whole log leads.

        Their rows are one, m: V ← V + y γ m·V / (1 − γ m·y), where (I − Q) y = 1 in idle states
        and 0 in others (Sherman & Morrison 1950).
        """
        idle, led = np.zeros_like(v), self.discount * self.rows.overall
        idle[:, self.rows.idle] = 1.0
        y = systems.solved(entries, idle)
        v += y * ((v @ led) / (1 - y @ led))[:, None]

    def _swept(self, models: Models) -> np.ndarray:
        """V [D, M, S] by plain sweeps, for models too large to invert; what these leave is solved
        outright."""
        earned, fill = self._averaged(models.rewards), self._lacks(models)[0]
        v, lacks = earned / (1 - self.discount), np.empty_like(earned)
        for _ in range(SWEEPS):
            fill(earned, v, lacks)
            v += lacks
            error = np.abs(lacks).max(axis=2) * self.discount / (1 - self.discount)
            slow = error > 1e-6 * np.abs(v).max()
            if not slow.any():
                return v
        v[slow] = self._solved_sparse(models, *np.nonzero(slow))
        return v


def _inverses(matrices: np.ndarray) -> np.ndarray:
    """Of matrices [M, S, S], found in double precision: small ones together; for large ones
    SciPy's way is faster."""
    if matrices.shape[1] <= DENSE_UP_TO:
        return np.linalg.inv(matrices)
    found = np.empty(matrices.shape, matrices.dtype)
    for matrix, place in zip(matrices, found):
        place[...] = linalg.inv(
            matrix.astype(np.float64), overwrite_a=True, check_finite=False, assume_a="general"
        )
    return found


def _solved(systems: np.ndarray, inverses: np.ndarray, right: np.ndarray) -> np.ndarray:
    """x [M, S] of A x = b, refined from inverses in single precision as far as that goes."""
    x, lacks = np.zeros(right.shape), right
    for _ in range(REFINEMENTS):
        x = x + np.matmul(inverses, lacks[..., None])[..., 0]
        lacks = right - np.matmul(systems, x[..., None])[..., 0]
    return x


def _by_matrices(matrices: np.ndarray, by_action: np.ndarray, left: np.ndarray) -> Lacks:
    """For rows as `PooledRows.matrices` has them, γ π [M, A, S], and γ Σ_a π(1 − w) [D, M, S]."""
    wide = matrices.reshape(*matrices.shape[:2], -1)
    ones = np.ones((len(by_action), 1, by_action.shape[2]), by_action.dtype)
    whole = np.concatenate([by_action, ones], axis=1)  # long rows are multiplied fastest
    work = np.empty((len(left), len(by_action), wide.shape[2]), matrices.dtype)
    found = work.reshape(*work.shape[:2], *matrices.shape[2:])

    def fill(earned: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
        np.matmul(v, wide, out=work)
        np.multiply(found, whole, out=found)
        found[:, :, -1] *= left
        np.add(found[:, :, 0], found[:, :, 1], out=out)
        for action in range(2, found.shape[2]):
            out += found[:, :, action]
        out += earned
        out -= v

    return fill


def _summed(reach: np.ndarray, of_states: np.ndarray) -> np.ndarray:
    """(Hᵀp₀)·f [D, M] of numbers by state [D, M, S]."""
    return np.einsum("ms,dms->dm", reach, of_states)


def _scale(rho: np.ndarray) -> float:
    """A typical standard deviation over the draws; rounding sets a floor."""
    return float(rho.std(axis=0).mean()) + 1e-12 * float(np.abs(rho).max()) / PRECISION
