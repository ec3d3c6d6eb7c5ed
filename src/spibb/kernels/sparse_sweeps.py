"""Greedy sweeps over the sparse rows as they are, and sweeps of the policy that they picked.

Kernels unpack their tuples once per chunk and their helpers take arrays and indices: passing a
tuple or a view costs an atomic reference count, which would double the time of short rows.
Indices are unsigned, which spares the test for negative ones.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from spibb.kernels.sparse_bounds import SLIVER, Floats, Ints, Reals
from spibb.kernels.sparse_task import CHUNK, ONE, Task

MANY = 2**31 - 1  # codes of shared masses
NEW = -(2**62)  # added to a choice that is not written yet


class Policy(NamedTuple):
    """The best policy of the last greedy sweep: row P_pi(. | s), times the discount, of each state.

    In a row, actions that must be played come first, in order, with their lower weights; then the
    best action with the free mass. If several share the mass, all come in order.
    """

    choice: Ints  # the best action; a code of several, from A on, if they share the mass [S]
    gap: Floats  # by how much the best action is ahead [S]
    start: NDArray[np.uint64]  # first entry [S]
    length: NDArray[np.uint32]  # number of entries [S]
    successors: NDArray[np.uint32]
    probs: Floats
    rewards: Floats  # [S]


def no_policy(task: Task) -> Policy:
    """Space for a policy.

    Arrays are made by NumPy, and not inside kernels: NumPy asks for huge pages, without which
    scattered reads miss the TLB.
    """
    n_states, end = len(task.space), np.cumsum(task.space)
    return Policy(
        choice=np.full(n_states, NEW, np.int64),
        gap=np.zeros(n_states),
        start=end - task.space,
        length=np.zeros(n_states, np.uint32),
        successors=np.empty(end[-1], np.uint32),
        probs=np.empty(end[-1]),
        rewards=np.empty(n_states),
    )


@njit(cache=True)
def _sift_down(heap: Ints, n: int, i: int, q: Floats) -> None:
    """Repair the max-heap heap[:n] of actions, ordered by q, where i is too high."""
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and q[heap[child + 1]] > q[heap[child]]:
            child += 1
        if q[heap[i]] >= q[heap[child]]:
            return
        heap[i], heap[child] = heap[child], heap[i]
        i = child


@njit(cache=True)
def _share(q: Floats, upper: Floats, mass: float, heap: Ints, weights: Floats) -> tuple[float, int]:
    """Hand out mass in decreasing order of q: raise weights, each at most to upper.

    Return the value, and a code of the actions that got a share, in order. The heap yields in order
    only the actions that are needed: O(A), and O(log A) for each of them.
    """
    size = 0
    for a in range(q.size):
        if upper[a] > weights[a]:
            heap[size] = a
            size += 1
    for i in range(size // 2 - 1, -1, -1):
        _sift_down(heap, size, i, q)
    value, code = 0.0, 0
    while size > 0 and mass > 0.0:
        a = heap[0]
        part = min(mass, upper[a] - weights[a])
        value += part * q[a]
        weights[a] += part
        code = (31 * code + a) % MANY
        mass -= part
        size -= 1
        heap[0] = heap[size]
        _sift_down(heap, size, 0, q)
    return value, q.size + code


@njit(cache=True, fastmath={"contract"})
def _improve_chunk(
    task: Task, policy: Policy, v: Reals, out: Floats, ahead: float, weights: Floats, c: int
) -> tuple[float, float, int]:
    """Write T v of chunk c; return the range of T v - v and the number of states that chose anew.

    A state whose best action was ahead by more than `ahead` keeps it for ever: only its policy is
    swept. Where actions share the mass, their weights go to `weights`.
    """
    indptr, successors, probs, rewards, lower, upper, penalty, masses, _, discount = task
    choices, gaps, starts, lengths, successors_p, probs_p, rewards_p = policy
    n_actions = rewards.shape[1]
    held, tight = lower.shape[0] > 0, upper.shape[0] > 0
    q, heap = np.empty(n_actions), np.empty(n_actions, np.int64)
    low, high, changed = np.inf, -np.inf, 0
    for s in range(c * CHUNK, min(v.size, (c + 1) * CHUNK)):
        if gaps[s] > ahead:
            gaps[s] = np.inf
            value = rewards_p[s]
            k = starts[s]
            stop = k + np.uint64(lengths[s])
            while k < stop:
                value += probs_p[k] * v[successors_p[k]]
                k += ONE
        else:
            value, best, second, choice = 0.0, -np.inf, -np.inf, 0
            k = indptr[s * n_actions]
            for a in range(n_actions):
                stop = indptr[s * n_actions + a + 1]
                total = 0.0
                while k < stop:
                    total += probs[k] * v[successors[k]]
                    k += ONE
                worth = rewards[s, a] + discount * total
                if held:
                    value += lower[s, a] * worth
                worth += penalty[s, a]
                q[a] = worth
                second = max(second, min(best, worth))
                choice = a if worth > best else choice
                best = max(best, worth)
            gap = best - second if masses[s] > 0.0 else np.inf
            filled, i = masses[s], s - c * CHUNK
            if tight:
                for a in range(n_actions):
                    weights[i, a] = lower[s, a] if held else 0.0
                filled = min(filled, upper[s, choice] - weights[i, choice] + SLIVER)
            if filled < masses[s]:
                shared, choice = _share(q, upper[s], masses[s], heap, weights[i])
                value, gap = value + shared, 0.0
            else:
                value += masses[s] * best
            changed += choice != choices[s]
            choices[s] = choice if choice == choices[s] else choice + NEW
            gaps[s] = gap
        out[s] = value
        low, high = min(low, value - v[s]), max(high, value - v[s])
    return low, high, changed


@njit(cache=True)
def _write_chunk(task: Task, policy: Policy, weights: Floats, c: int) -> None:
    """Write the rows and rewards of the policy where it is new in chunk c."""
    indptr, successors, probs, rewards, lower, _, _, masses, _, discount = task
    choices, _, starts, lengths, successors_p, probs_p, rewards_p = policy
    n_actions, held = rewards.shape[1], lower.shape[0] > 0
    for s in range(c * CHUNK, min(masses.size, (c + 1) * CHUNK)):
        if choices[s] >= 0:
            continue
        choices[s] -= NEW
        choice, at, reward = choices[s], starts[s], 0.0
        alone = choice < n_actions
        for i in range(0 if held or not alone else n_actions, n_actions + alone):
            if i == n_actions:
                a, weight = choice, masses[s]
            else:
                a, weight = i, lower[s, i] if alone else weights[s - c * CHUNK, i]
            k, stop = indptr[s * n_actions + a], indptr[s * n_actions + a + 1]
            while k < stop and weight > 0.0:
                successors_p[at] = successors[k]
                probs_p[at] = discount * weight * probs[k]
                at += ONE
                k += ONE
            reward += weight * rewards[s, a]
        lengths[s] = at - starts[s]
        rewards_p[s] = reward


@njit(cache=True)
def _greedy_chunk(
    task: Task, policy: Policy, v: Reals, out: Floats, ahead: float, c: int
) -> tuple[float, float, int]:
    n_rows = CHUNK if task.upper.shape[0] > 0 else 0
    weights = np.empty((n_rows, task.rewards.shape[1]))
    low, high, changed = _improve_chunk(task, policy, v, out, ahead, weights, c)
    if changed > 0:
        _write_chunk(task, policy, weights, c)
    return low, high, changed


@njit(cache=True)
def greedy_serial(
    task: Task, policy: Policy, v: Reals, out: Floats, ahead: float
) -> tuple[float, float, int]:
    """Write T v and its policy, on one thread: range of T v - v, states that chose anew."""
    low, high, changed = np.inf, -np.inf, 0
    for c in range((v.size + CHUNK - 1) // CHUNK):
        x, y, n = _greedy_chunk(task, policy, v, out, ahead, c)
        low, high, changed = min(low, x), max(high, y), changed + n
    return low, high, changed


@njit(cache=True, parallel=True)
def greedy_parallel(
    task: Task, policy: Policy, v: Reals, out: Floats, ahead: float
) -> tuple[float, float, int]:
    """As `greedy_serial`, on all threads."""
    low, high, changed = np.inf, -np.inf, 0
    for c in prange((v.size + CHUNK - 1) // CHUNK):
        x, y, n = _greedy_chunk(task, policy, v, out, ahead, c)
        low = min(low, x)
        high = max(high, y)
        changed += n
    return low, high, changed


@njit(cache=True, fastmath={"contract"})
def _policy_chunk(
    policy: Policy, rewards: Reals, v: Reals, out: Reals, c: int
) -> tuple[float, float]:
    """Write w = rewards + discount * P_pi v of chunk c; return the range of w - v."""
    _, _, starts, lengths, successors, probs, _ = policy
    low, high = np.inf, -np.inf
    for s in range(c * CHUNK, min(v.size, (c + 1) * CHUNK)):
        k = starts[s]
        stop = k + np.uint64(lengths[s])
        value = np.float64(rewards[s])
        while k < stop:
            value += probs[k] * v[successors[k]]
            k += ONE
        out[s] = value
        low, high = min(low, value - v[s]), max(high, value - v[s])
    return low, high


@njit(cache=True)
def policy_serial(policy: Policy, rewards: Reals, v: Reals, out: Reals) -> tuple[float, float]:
    """Write w = rewards + discount * P_pi v, on one thread: range of w - v."""
    low, high = np.inf, -np.inf
    for c in range((v.size + CHUNK - 1) // CHUNK):
        x, y = _policy_chunk(policy, rewards, v, out, c)
        low, high = min(low, x), max(high, y)
    return low, high


@njit(cache=True, parallel=True)
def policy_parallel(policy: Policy, rewards: Reals, v: Reals, out: Reals) -> tuple[float, float]:
    """As `policy_serial`, on all threads."""
    low, high = np.inf, -np.inf
    for c in prange((v.size + CHUNK - 1) // CHUNK):
        x, y = _policy_chunk(policy, rewards, v, out, c)
        low = min(low, x)
        high = max(high, y)
    return low, high
