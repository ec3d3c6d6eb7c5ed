"""Value iteration on the sparse rows as they are, for boxes that hold mass.

Where part of every policy is fixed, as in Pi_b-SPIBB, sweeps of one policy read nearly as much as
greedy ones, and a layout does not pay.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from spibb.kernels.sparse_bounds import (
    SLIVER,
    SLOW,
    Box,
    Floats,
    Rows,
    free_mass,
    interval,
    largest,
)

CHUNK = 1024  # states swept by one thread at a time
PATIENCE = 12  # sweeps after which value iteration must have been faster than SLOW
FORBIDDEN = -1e300  # worth of an action that cannot take mass


class Task(NamedTuple):
    """The rows as they are, unsigned to spare the test for negative indices, and the box."""

    indptr: NDArray[np.uint64]  # [S * A + 1]
    successors: NDArray[np.uint32]
    probs: Floats
    rewards: Floats  # [S, A]
    lower: Floats  # [S, A]
    penalty: Floats  # 0 for actions that can take mass, FORBIDDEN for others [S, A]
    masses: Floats  # [S]
    discount: float


@njit(cache=True)
def _describe(rows: Rows, box: Box, penalty: Floats, masses: Floats) -> tuple[float, float, bool]:
    """Fill masses [S], and penalty [S, A] with 0 for free actions, -inf-like for the others.

    Return the least and most that a row of a usable action sums to, and whether some free action
    cannot take all the free mass of its state.
    """
    indptr, _, probs = rows
    lower, upper, _ = box
    n_states, n_actions = lower.shape
    least, most, tight = np.inf, 0.0, False
    for s in range(n_states):
        masses[s] = free_mass(box, s)
        for a in range(n_actions):
            room = upper[s, a] - lower[s, a]
            penalty[s, a] = 0.0 if room > 0.0 or masses[s] == 0.0 else FORBIDDEN
            tight |= 0.0 < room < masses[s] - SLIVER
            if room > 0.0 or lower[s, a] > 0.0:
                total = 0.0
                for k in range(indptr[s * n_actions + a], indptr[s * n_actions + a + 1]):
                    total += probs[k]
                least, most = min(least, total), max(most, total)
    return min(least, most), most, tight


@njit(cache=True, fastmath={"contract", "reassoc"})
def _direct_chunk(task: Task, v: Floats, out: Floats, c: int) -> tuple[float, float]:
    """T v of the states of chunk c, for a box that is not tight; the range of T v - v.

    No branch depends on a value: half of them would be mispredicted.
    """
    indptr, successors, probs, rewards, lower, penalty, masses, discount = task
    n_actions = lower.shape[1]
    low, high = np.inf, -np.inf
    for s in range(c * CHUNK, min(v.size, (c + 1) * CHUNK)):
        best, value = 2.0 * FORBIDDEN, 0.0
        k = indptr[s * n_actions]
        for a in range(n_actions):
            end = indptr[s * n_actions + a + 1]
            total = 0.0
            while k < end:
                total += probs[k] * v[successors[k]]
                k += np.uint64(1)
            q = rewards[s, a] + discount * total
            value += lower[s, a] * q
            best = max(best, q + penalty[s, a])
        value += masses[s] * best
        out[s] = value
        low, high = min(low, value - v[s]), max(high, value - v[s])
    return low, high


@njit(cache=True)
def _direct_serial(task: Task, v: Floats, out: Floats) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    for c in range((v.size + CHUNK - 1) // CHUNK):
        x, y = _direct_chunk(task, v, out, c)
        low, high = min(low, x), max(high, y)
    return low, high


@njit(cache=True, parallel=True)
def _direct_parallel(task: Task, v: Floats, out: Floats) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    for c in prange((v.size + CHUNK - 1) // CHUNK):
        x, y = _direct_chunk(task, v, out, c)
        low = min(low, x)
        high = max(high, y)
    return low, high


def value_iteration(
    rows: Rows, rewards: Floats, discount: float, box: Box, v0: Floats, tol: float,
    max_sweeps: int, parallel: bool,
) -> tuple[Floats, float, int] | None:  # fmt: skip
    """Certified value iteration on the rows as they are; None where it would be slow or wrong."""
    penalty, masses = np.empty(rewards.shape), np.empty(len(rewards))
    least, most, tight = _describe(rows, box, penalty, masses)
    if tight:
        return None
    task = Task(
        indptr=rows[0].astype(np.int64, copy=False).view(np.uint64),
        successors=rows[1].view(np.uint32),
        probs=rows[2],
        rewards=rewards,
        lower=box[0],
        penalty=penalty,
        masses=masses,
        discount=discount,
    )
    kept = discount * least, discount * most
    sweep = _direct_parallel if parallel else _direct_serial
    terms = int(np.diff(rows[0]).max(initial=0)) + rewards.shape[1] + 4
    v, w, errors = v0.copy(), np.empty_like(v0), []
    for sweeps in range(1, max_sweeps + 1):
        low, high = sweep(task, v, w)
        noise = terms * np.finfo(np.float64).eps / 2.0 * (largest(v) + largest(w))
        shift, error = interval(low - noise, high + noise, kept)
        attainable = 2.0 * interval(-noise, noise, kept)[1]
        if error <= max(tol, attainable) or sweeps == max_sweeps:
            return w + shift, error, sweeps
        errors.append(error)
        if len(errors) > PATIENCE and error > SLOW**PATIENCE * errors[-1 - PATIENCE]:
            return None
        v, w = w, v
    return None
