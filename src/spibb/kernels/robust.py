"""Robust backups: the worst transition row of an L1 ball, and policies that are best against it.

The adversary's reply to an ambiguous model `xi` is kept in the sparsity of P̂: the masses `kept` [K]
of the outcomes observed, and the mass `moved` [P] of every pair that goes to one and the same
outcome, the worst of all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from spibb.kernels import dense, formulas
from spibb.kernels.projection import project, rank
from spibb.kernels.tuples import Rows

is_safe = njit(cache=True, inline="always")(formulas.is_safe)

NOWHERE: int = np.int64(-1)  # type: ignore[assignment]
"""The end of the process as worst outcome; to Numba, a plain -1 would be a type of its own."""
MAX_EVALUATIONS = 10_000
"""Evaluations after which robust policy iteration gives up."""
MAX_INNER = 30
"""Sweeps of one policy between two greedy sweeps."""
UNIT = 2.0**-53
"""The largest relative error of one rounding."""


@njit(cache=True)
def radii(counts: np.ndarray, radius_of_one: float) -> np.ndarray:
    """e = min(2, e(1)/√N) of every pair, 2 where it was never seen [S, A]."""
    out = np.empty(counts.shape)
    for s in range(len(counts)):
        for a in range(counts.shape[1]):
            seen = counts[s, a] > 0
            out[s, a] = min(2.0, radius_of_one / np.sqrt(counts[s, a])) if seen else 2.0
    return out


@register_jitable
def largest_reward(low: float, high: float) -> float:
    """R_max: the largest absolute reward of a log whose rewards lie from `low` to `high`."""
    return max(abs(low), abs(high))


@njit(cache=True)
def reward_interval(rewards: np.ndarray, radius: np.ndarray, r_max: float):
    """R ∓ e R_max, kept within ±R_max (or R̂ itself, where that lies beyond): two [S, A]."""
    low, high = np.empty(rewards.shape), np.empty(rewards.shape)
    for s in range(len(rewards)):
        for a in range(rewards.shape[1]):
            mean, error = rewards[s, a], radius[s, a] * r_max
            low[s, a] = max(mean - error, min(-r_max, mean))
            high[s, a] = min(mean + error, max(r_max, mean))
    return low, high


@njit(cache=True)
def reward_bounds(data, radius: np.ndarray, r_max: float, known: bool):
    """The ends of the interval of every reward [S, A]: R̂ ± e R_max within ±R_max.

    If rewards are `known`, R̂ itself in the pairs seen, and all that the log shows in the others.
    """
    model = data.model
    low, high = reward_interval(model.rewards, radius, r_max)
    if known:
        for s in range(len(low)):
            for a in range(low.shape[1]):
                seen = model.counts[s, a] > 0
                low[s, a] = model.rewards[s, a] if seen else data.r_low
                high[s, a] = model.rewards[s, a] if seen else data.r_high
    return low, high


@njit(cache=True, inline="always")
def worst_outcome(v: np.ndarray) -> int:
    """The state of the smallest value, or the end, worth 0, where no value is below 0."""
    worst, lowest = NOWHERE, 0.0
    for s in range(len(v)):
        if v[s] < lowest:
            worst, lowest = s, v[s]
    return worst


@njit(cache=True, inline="always")
def worth(v: np.ndarray, outcome: int) -> float:
    """The value of an outcome: v, or 0 at the end."""
    return v[outcome] if outcome >= 0 else 0.0


@njit(cache=True, inline="always")
def shrink(work, n: int, budget: float, floor: float):
    """Take up to `budget` off the n masses, best value first, and return what was taken.

    Outcomes worth no more than `floor` are left alone: moving them gains nothing.
    """
    moved = 0.0
    for i in range(n):
        k = work.order[i]
        if moved >= budget or work.values[k] <= floor:
            break
        take = min(work.masses[k], budget - moved)
        work.masses[k] -= take
        moved += take
    return moved


@njit(cache=True)
def reply(rows, v: np.ndarray, p: int, budget: float, floor: float, work):
    """The worst row for pair p: min P·v subject to ‖P − P̂‖₁ ≤ 2·budget.

    Mass leaves the best outcomes observed (the end, worth 0, is one of them where the row sums to
    less than one) for the worst outcome of all, worth `floor`, observed or not: each unit moved
    costs two units of L1 distance. Leaves the masses of the n successors observed in
    work.masses[:n]; returns the value of the row and the mass moved. Views of the workspace, and
    names for its parts, would be counted, which costs more than the reply.
    """
    first, n = rows.indptr[p], rows.indptr[p + 1] - rows.indptr[p]
    if budget >= 1.0:
        for k in range(n):
            work.masses[k] = 0.0
        return floor, 1.0
    work.values[n], total = 0.0, 0.0
    for k in range(n):
        work.values[k] = v[rows.successors[first + k]]
        work.masses[k] = rows.probs[first + k]
        total += rows.probs[first + k]
    work.masses[n] = dense.rest(total)
    moved = 0.0
    if budget > 0.0:
        rank(work.values, n + 1, work.order)
        moved = shrink(work, n + 1, budget, floor)
    total = moved * floor
    for k in range(n):
        total += work.masses[k] * work.values[k]
    return total, moved


class Work(NamedTuple):
    """Room for the outcomes of one row and the end: values, masses, and their order."""

    values: np.ndarray
    masses: np.ndarray
    order: np.ndarray


@njit(cache=True)
def workspace(rows):
    """Room for the longest row."""
    longest = 1
    for p in range(len(rows.indptr) - 1):
        longest = max(longest, rows.indptr[p + 1] - rows.indptr[p] + 1)
    return Work(np.empty(longest), np.empty(longest), np.empty(longest, np.int64))


@njit(cache=True)
def backup(xi, v: np.ndarray, q: np.ndarray, kept: np.ndarray, moved: np.ndarray) -> int:
    """q(x, a) = R(x, a) + γ min_P P·v for every pair, and the adversary's reply to v.

    Fills `q` [S, A], `kept` [K] and `moved` [P]; returns the outcome that `moved` goes to.
    """
    rows, rewards, radius, discount = xi.rows, xi.rewards, xi.radius, xi.discount
    n_states, n_actions = rewards.shape
    work = workspace(rows)
    worst = worst_outcome(v)
    floor = worth(v, worst)
    for s in range(n_states):
        for a in range(n_actions):
            p = s * n_actions + a
            value, moved[p] = reply(rows, v, p, radius[s, a] / 2, floor, work)
            q[s, a] = rewards[s, a] + discount * value
            first = rows.indptr[p]
            for k in range(rows.indptr[p + 1] - first):
                kept[first + k] = work.masses[k]
    return worst


@njit(cache=True)
def evaluate(xi, kept: np.ndarray, moved: np.ndarray, worst: int, pi: np.ndarray):
    """V [S] of a policy against one fixed reply, exactly, and its rounding [S]."""
    rows, rewards, discount = xi.rows, xi.rewards, xi.discount
    n_states, n_actions = rewards.shape
    system = dense.empty_system(n_states)
    dense.build_system(Rows(rows.indptr, rows.successors, kept), rewards, discount, pi, system)
    if worst >= 0:
        for s in range(n_states):
            for a in range(n_actions):
                mass = pi[s, a] * moved[s * n_actions + a]
                system[s, worst] -= discount * mass
                system[s, n_states] += mass
    v, ties = dense.solve_system(system, discount)
    dense.scale_by(dense.ROUNDING, ties)
    return v, ties


@njit(cache=True, inline="always")
def largest_fall(v: np.ndarray, ties: np.ndarray, pi: np.ndarray, q: np.ndarray) -> float:
    """How much more than rounding the adversary's best reply takes from `pi` in some state."""
    fall = -np.inf
    for s in range(len(v)):
        value = 0.0
        for a in range(q.shape[1]):
            value += pi[s, a] * q[s, a]
        fall = max(fall, v[s] - value - ties[s])
    return fall


@njit(cache=True)
def improve(q: np.ndarray, box, v: np.ndarray, ties: np.ndarray, pi: np.ndarray) -> float:
    """The best row of the box in every state into `pi` [S, A]; as `dense.improve`."""
    gain = -np.inf
    for s in range(len(v)):
        value = project(q, box, ties[s], pi, s)
        gain = max(gain, value - v[s] - ties[s])
    return gain


class RobustValues(NamedTuple):
    """V [S] in the worst model, its rounding `ties` [S], and the outcome that `moved` goes to.

    `iterations` counts evaluations; `settled` says that neither side has anything to gain.
    """

    v: np.ndarray
    ties: np.ndarray
    worst: int
    iterations: int
    settled: bool


@njit(cache=True)
def policy_iteration(xi, box, pi, q, kept, moved):
    """Robust policy iteration: fills `pi`, `q` [S, A], `kept` [K] and `moved` [P].

    Two nested policy iterations: while the adversary can still lower the value of the current
    policy it replies and the policy is evaluated against that reply; once it cannot, the policy
    improves. Starts from the policy in `pi`, and returns the fields of `RobustValues`.
    """
    worst, iterations = NOWHERE, 0
    for k in range(len(kept)):
        kept[k] = xi.rows.probs[k]
    while True:
        v, ties = evaluate(xi, kept, moved, worst, pi)
        iterations += 1
        worst = backup(xi, v, q, kept, moved)
        settled = largest_fall(v, ties, pi, q) <= 0.0 and improve(q, box, v, ties, pi) <= 0.0
        if settled or iterations >= MAX_EVALUATIONS:
            return v, ties, worst, iterations, settled


@njit(cache=True)
def policy_sweep(xi, pi: np.ndarray, v: np.ndarray, work) -> np.ndarray:
    """One robust backup of a policy: only the pairs that it plays are looked at."""
    rows, rewards, radius, discount = xi.rows, xi.rewards, xi.radius, xi.discount
    n_states, n_actions = rewards.shape
    floor = worth(v, worst_outcome(v))
    out = np.zeros(n_states)
    for s in range(n_states):
        for a in range(n_actions):
            if pi[s, a] > 0.0:
                p = s * n_actions + a
                value, _ = reply(rows, v, p, radius[s, a] / 2, floor, work)
                out[s] += pi[s, a] * (rewards[s, a] + discount * value)
    return out


class RobustBound(NamedTuple):
    """V [S] in the worst model, the outcome that `moved` goes to, and the number of `sweeps`.

    V is at most `error` off; `wanted` is `tolerance` times the largest value.
    """

    v: np.ndarray
    worst: int
    error: float
    wanted: float
    sweeps: int


@njit(cache=True)
def sweep(xi, box, pi, q, kept, moved, tolerance: float, max_sweeps: int):
    """Robust modified policy iteration without a matrix, for large problems.

    Greedy sweeps over all pairs, and between two of them sweeps of the greedy policy against an
    adversary who replies anew in each (Kaufman & Schaefer 2013). The robust operator contracts by
    γ, so that γ/(1 − γ) times the last change of a greedy sweep, and the rounding of a sweep over
    1 − γ, bound the error. Fills `q`, `kept` and `moved`, and leaves in `pi` the last policy tried;
    returns the fields of a `RobustBound`.
    """
    discount = xi.discount
    work = workspace(xi.rows)
    unit = (len(work.values) + q.shape[1] + 4) * UNIT
    v = np.zeros(len(q))
    sweeps = 0
    while True:
        backup(xi, v, q, kept, moved)
        change, level = improve_values(q, box, v, pi)
        noise = unit * level / (1 - discount)
        error = change * discount / (1 - discount) + noise
        sweeps += 1
        if error <= max(tolerance * level, 1.5 * noise) or sweeps >= max_sweeps:
            break
        for _ in range(MAX_INNER):
            following = policy_sweep(xi, pi, v, work)
            inner = np.abs(following - v).max()
            v = following
            sweeps += 1
            if inner <= 0.1 * change:
                break
    worst = backup(xi, v, q, kept, moved)
    return v, worst, error, tolerance * level, sweeps


@njit(cache=True)
def improve_values(q: np.ndarray, box, v: np.ndarray, pi: np.ndarray):
    """The best row of the box into `pi` and its value into `v`.

    Returns the largest change and the largest value, that of Σ_a π|q|: sums may cancel.
    """
    change = level = 0.0
    for s in range(len(v)):
        value = project(q, box, 0.0, pi, s)
        change = max(change, abs(value - v[s]))
        v[s] = value
        size = 0.0
        for a in range(q.shape[1]):
            size += pi[s, a] * abs(q[s, a])
        level = max(level, size)
    return change, level
