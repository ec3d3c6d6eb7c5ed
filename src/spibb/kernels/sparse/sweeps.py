"""Greedy sweeps over the sparse rows as they are, and sweeps of the policy that they picked.

A greedy sweep splits a chunk of states into settled ones, which follow their policy, and open ones,
which choose; the theory is in `solve.py`.

Kernels take arrays out of their tuples once per chunk, and their helpers take arrays and indices:
passing a tuple or a view costs an atomic reference count, which would double the time of short
rows. Indices are unsigned, which spares the test for negative ones.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from spibb.kernels.sparse.bounds import SLIVER, Floats, Index, Ints, Reals
from spibb.kernels.sparse.task import CHUNK, ONE, ZERO, BoxedMDP, chunk_range

States = NDArray[np.uint64]

COARSE_FROM = 2**18  # states whose policy no longer fits into a cache
MANY = 2**31 - 1  # codes of shared masses
NEW = -(2**62)  # added to a choice that is not written yet


class PolicyRows(NamedTuple):
    """The best policy of the last greedy sweep: row P_pi(. | s), times the discount, of each state.

    In a row, actions that must be played come first, in order, with their lower weights; then the
    best action with the free mass. If several share the mass, all come in order.
    """

    choice: Ints  # the best action; a code of several, from A on, if they share the mass [S]
    lead: Floats  # of the best action, plus the drift so far, when it was last chosen [S]
    start: NDArray[np.uint64]  # first entry [S]
    length: NDArray[np.uint32]  # number of entries [S]
    successors: NDArray[np.uint32]
    probs: Floats
    coarse: Reals  # the same, for corrections: in single precision if there are many
    rewards: Floats  # [S]
    sizes: Floats  # the same for |rewards| [S]


def no_policy(task: BoxedMDP, single: bool) -> PolicyRows:
    """Space for a policy, whose corrections may be in single precision or not.

    Arrays are made by NumPy, and not inside kernels: NumPy asks for huge pages, without which
    scattered reads miss the TLB.
    """
    n_states, end = len(task.space), np.cumsum(task.space)
    probs = np.empty(end[-1])
    return PolicyRows(
        choice=np.full(n_states, NEW, np.int64),
        lead=np.zeros(n_states),
        start=end - task.space,
        length=np.zeros(n_states, np.uint32),
        successors=np.empty(end[-1], np.uint32),
        probs=probs,
        coarse=np.empty(end[-1], np.float32) if single and n_states >= COARSE_FROM else probs,
        rewards=np.empty(n_states),
        sizes=np.zeros(n_states),
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


@njit(cache=True)
def _split_chunk(leads: Floats, drift: float, states: States, c: int) -> tuple[Index, Index]:
    """List the settled states of chunk c in states[0], the open ones in states[1]; their numbers.

    Settled: the best action is ahead of the others by more than they can have caught up. Lists
    spare the sweeps a branch that no processor can predict.
    """
    n_settled, n_open = ZERO, ZERO
    first, end = chunk_range(c, leads.size)
    for s in range(first, end):
        settled = leads[s] > drift
        states[0, n_settled], states[1, n_open] = s, s
        n_settled += np.uint64(settled)
        n_open += np.uint64(not settled)
    return n_settled, n_open


@njit(cache=True, fastmath={"contract"})
def _follow(
    policy: PolicyRows, v: Reals, out: Floats, change: Reals, states: States
) -> tuple[float, float]:
    """Write T v of settled states, that of their policies; return the range of T v - v."""
    starts, lengths, successors = policy.start, policy.length, policy.successors
    probs, rewards = policy.probs, policy.rewards
    low, high = np.inf, -np.inf
    for s in states:
        k = starts[s]
        stop = k + np.uint64(lengths[s])
        value = rewards[s]
        while k < stop:
            value += probs[k] * v[successors[k]]
            k += ONE
        out[s] = value
        value -= v[s]
        change[s] = value
        low, high = min(low, value), max(high, value)
    return low, high


@njit(cache=True, fastmath={"contract"})
def _choose(
    task: BoxedMDP,
    policy: PolicyRows,
    v: Reals,
    out: Floats,
    change: Reals,
    drift: float,
    weights: Floats,
    states: States,
) -> tuple[float, float, int]:
    """Write T v of open states; return the range of T v - v and how many states chose anew.

    Where actions share the mass, their weights go to `weights`.
    """
    indptr, successors, probs, rewards = task.indptr, task.successors, task.probs, task.rewards
    lower, upper, penalty, masses = task.lower, task.upper, task.penalty, task.mass
    discount = task.discount
    choices, leads = policy.choice, policy.lead
    n_actions = np.uint64(rewards.shape[1])
    held, tight = lower.shape[0] > 0, upper.shape[0] > 0
    q, heap = np.empty(n_actions), np.empty(n_actions, np.int64)
    low, high, changed = np.inf, -np.inf, 0
    for s in states:
        value, best, second = 0.0, -np.inf, -np.inf
        best_action: Index = ZERO
        k = indptr[s * n_actions]
        for a in range(n_actions):
            stop = indptr[s * n_actions + a + ONE]
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
            best_action = a if worth > best else best_action
            best = max(best, worth)
        lead = best - second if masses[s] > 0.0 else np.inf
        choice: Index = np.int64(best_action)
        filled, i = masses[s], s % np.uint64(CHUNK)
        if tight:
            for a in range(n_actions):
                weights[i, a] = lower[s, a] if held else 0.0
            filled = min(filled, upper[s, best_action] - weights[i, best_action] + SLIVER)
        if filled < masses[s]:
            shared, choice = _share(q, upper[s], masses[s], heap, weights[i])
            value, lead = value + shared, 0.0
        else:
            value += masses[s] * best
        changed += choice != choices[s]
        choices[s] = choice if choice == choices[s] else choice + NEW
        leads[s] = lead + drift
        out[s] = value
        value -= v[s]
        change[s] = value
        low, high = min(low, value), max(high, value)
    return low, high, changed


@njit(cache=True)
def _write_chunk(task: BoxedMDP, policy: PolicyRows, weights: Floats, c: int) -> None:
    """Write the rows and rewards of the policy where it is new in chunk c."""
    indptr, successors, probs, rewards = task.indptr, task.successors, task.probs, task.rewards
    lower, masses, discount = task.lower, task.mass, task.discount
    choices, starts, lengths = policy.choice, policy.start, policy.length
    successors_p, probs_p, coarse_p = policy.successors, policy.probs, policy.coarse
    rewards_p, sizes_p = policy.rewards, policy.sizes
    n_actions, held = np.uint64(rewards.shape[1]), lower.shape[0] > 0
    first, end = chunk_range(c, masses.size)
    for s in range(first, end):
        if choices[s] >= 0:
            continue
        choices[s] -= NEW
        choice, at, reward, size = np.uint64(choices[s]), starts[s], 0.0, 0.0
        alone = choice < n_actions
        for i in range(ZERO if held or not alone else n_actions, n_actions + np.uint64(alone)):
            a: Index = choice if i == n_actions else i
            if i == n_actions:
                weight = masses[s]
            else:
                weight = lower[s, i] if alone else weights[s - first, i]
            if weight > 0.0:
                k, stop = indptr[s * n_actions + a], indptr[s * n_actions + a + ONE]
                while k < stop:
                    successors_p[at] = successors[k]
                    probs_p[at] = coarse_p[at] = discount * weight * probs[k]
                    at += ONE
                    k += ONE
                reward += weight * rewards[s, a]
                size += weight * abs(rewards[s, a])
        lengths[s] = at - starts[s]
        rewards_p[s], sizes_p[s] = reward, size


@njit(cache=True)
def _greedy_chunk(
    task: BoxedMDP, policy: PolicyRows, v: Reals, out: Floats, change: Reals, drift: float, c: int
) -> tuple[float, float, int]:
    states = np.empty((2, CHUNK), np.uint64)
    n_settled, n_open = _split_chunk(policy.lead, drift, states, c)
    low, high = _follow(policy, v, out, change, states[0, :n_settled])
    if n_open == 0:
        return low, high, 0
    weights = np.empty((CHUNK if task.upper.shape[0] > 0 else 0, task.rewards.shape[1]))
    x, y, changed = _choose(task, policy, v, out, change, drift, weights, states[1, :n_open])
    if changed > 0:
        _write_chunk(task, policy, weights, c)
    return min(low, x), max(high, y), changed


@njit(cache=True)
def greedy_serial(
    task: BoxedMDP, policy: PolicyRows, v: Reals, out: Floats, change: Reals, drift: float
) -> tuple[float, float, int]:
    """Write T v and its policy, on one thread: range of T v - v, states that chose anew."""
    low, high, changed = np.inf, -np.inf, 0
    for c in range((v.size + CHUNK - 1) // CHUNK):
        x, y, n = _greedy_chunk(task, policy, v, out, change, drift, c)
        low, high, changed = min(low, x), max(high, y), changed + n
    return low, high, changed


@njit(cache=True, parallel=True)
def greedy_parallel(
    task: BoxedMDP, policy: PolicyRows, v: Reals, out: Floats, change: Reals, drift: float
) -> tuple[float, float, int]:
    """As `greedy_serial`, on all threads."""
    low, high, changed = np.inf, -np.inf, 0
    for c in prange((v.size + CHUNK - 1) // CHUNK):
        x, y, n = _greedy_chunk(task, policy, v, out, change, drift, c)
        low = min(low, x)
        high = max(high, y)
        changed += n
    return low, high, changed


@njit(cache=True, fastmath={"contract"})
def _policy_chunk(
    policy: PolicyRows, rewards: Reals, v: Reals, out: Reals, c: int
) -> tuple[float, float]:
    """Write w = rewards + discount * P_pi v of chunk c; return the range of w - v.

    Two sums of every other term: one would have to wait for each addition in turn.
    """
    starts, lengths, successors = policy.start, policy.length, policy.successors
    probs = policy.coarse
    low, high = np.inf, -np.inf
    first, end = chunk_range(c, v.size)
    for s in range(first, end):
        k = starts[s]
        stop = k + np.uint64(lengths[s])
        value, other = np.float64(rewards[s]), 0.0
        while k + ONE < stop:
            value += probs[k] * v[successors[k]]
            other += probs[k + ONE] * v[successors[k + ONE]]
            k += ONE + ONE
        if k < stop:
            value += probs[k] * v[successors[k]]
        value += other
        out[s] = value
        low, high = min(low, value - v[s]), max(high, value - v[s])
    return low, high


@njit(cache=True)
def policy_serial(policy: PolicyRows, rewards: Reals, v: Reals, out: Reals) -> tuple[float, float]:
    """Write w = rewards + discount * P_pi v, on one thread: range of w - v."""
    low, high = np.inf, -np.inf
    for c in range((v.size + CHUNK - 1) // CHUNK):
        x, y = _policy_chunk(policy, rewards, v, out, c)
        low, high = min(low, x), max(high, y)
    return low, high


@njit(cache=True, parallel=True)
def policy_parallel(
    policy: PolicyRows, rewards: Reals, v: Reals, out: Reals
) -> tuple[float, float]:
    """As `policy_serial`, on all threads."""
    low, high = np.inf, -np.inf
    for c in prange((v.size + CHUNK - 1) // CHUNK):
        x, y = _policy_chunk(policy, rewards, v, out, c)
        low = min(low, x)
        high = max(high, y)
    return low, high
