"""Large sparse MDPs whose policies are confined to a box: optimal values with a proven error.

The constrained Bellman operator is

    (T v)(s) = max { sum_a pi(a) q(s, a) : lower(s, .) <= pi <= upper(s, .), sum_a pi(a) = 1 }
    q(s, a)  = rewards(s, a) + discount * sum_s' P(s' | s, a) v(s')

Plain MDPs, Pi_b-SPIBB and Pi_<=b-SPIBB differ in the box only. Rows of P may sum to less than one:
the missing mass ends the process, and what follows is worth 0.

**Normal form.** With mass(s) = sum_a (start - lower)(s, a) and room = upper - lower,

    (T v)(s) = sum_a lower(s, a) q(s, a)  +  fill(s),

where `fill` hands mass(s) to the actions in decreasing order of q, each up to its room. The first
term is linear in v and stored as one row, the *fixed* row of the state. Actions with room keep a
row of their own, a *slot*. A fixed policy is the box without room: fixed rows only.

**Bounds** (MacQueen 1966, here for rows below one). Let low <= T v - v <= high, and let every
policy of the box keep between `least` and `most` of the discounted mass,
least <= discount * sum_s' P_pi(s' | s) <= most. T is monotone, and

    T(v + c) <= T v + most * c  if c >= 0,      T(v + c) <= T v + least * c  if c < 0.

Applied again and again to T v <= v + high, and mirrored for low, this gives

    T v + g(low, least, most) <= v* <= T v + g(high, most, least),
    g(c, up, down) = c k / (1 - k),   k = up if c >= 0 else down.

The middle of that interval is returned; half its length is the error.

**Layout.** Sliced ELL: blocks of LANES states, entries stored lane by lane, so that the inner loop
is LANES independent sums without a branch. States of similar shape share a block (sorted within a
chunk of CHUNK blocks) and the slots of a state are sorted by length, so little is padded. A chunk
is the unit of parallel work. Each sweep reads one vector and writes another (Jacobi), so the number
of threads does not change the result.

**Rounding** is part of the bound: a backup that sums n terms may be off by n units of rounding of
the largest value. A penalty so large that its action is never chosen does not enter.
"""

import numpy as np
from numba import njit

from spibb.kernels.sparse_bounds import SLOW, Box, Floats, Kept, Rows, interval, largest
from spibb.kernels.sparse_direct import value_iteration
from spibb.kernels.sparse_layout import Layout, build_layout, space_for_picks
from spibb.kernels.sparse_sweeps import (
    greedy_parallel,
    greedy_serial,
    longest_sum,
    picked_parallel,
    picked_serial,
)

HASTE = 0.5  # sweep a policy until its error is this share of the last certified one,
HASTY_SWEEPS = 20  # and at most so often;
SETTLING = 30.0  # less hastily where fewer picks changed: this times their share of the states,
DEEPEST = 1e-3  # but no less than this
LEAP_EVERY = 6  # sweeps between two extrapolations of a slow iteration


@njit(cache=True)
def _leap_range(u: Floats, v: Floats, w: Floats, c: float) -> tuple[float, float]:
    """Range of T x - x at x = v + c (v - u), where v = T u, w = T v and T is linear."""
    low, high = np.inf, -np.inf
    for s in range(v.size):
        change = (w[s] - v[s]) + c * ((w[s] - v[s]) - (v[s] - u[s]))
        low, high = min(low, change), max(high, change)
    return low, high


@njit(cache=True)
def _leap_in_place(u: Floats, v: Floats, w: Floats, c: float) -> None:
    """Replace v by x = v + c (v - u), and w = T v by T x, where v = T u and T is linear."""
    for s in range(v.size):
        w[s] += c * (w[s] - v[s])
        v[s] += c * (v[s] - u[s])


def _leap(u: Floats, v: Floats, w: Floats, ratio: float, radius: float, kept: Kept) -> float:
    """Extrapolate v and w in place where that pays; return the radius afterwards.

    When all that is left of the error shrinks by `ratio` per sweep, the sum of its geometric series
    is known. The range of the residual after the leap is computed beforehand, and decides.
    """
    c = ratio / (1.0 - ratio)
    after = interval(*_leap_range(u, v, w, c), kept)[1]
    if after > 0.7 * radius:
        return radius
    _leap_in_place(u, v, w, c)
    return after


def _iterate(
    layout: Layout, kept: Kept, v0: Floats, tol: float, max_sweeps: int, parallel: bool
) -> tuple[Floats, float, int]:
    """Modified policy iteration with certified bounds, or value iteration where picks do not pay.

    Sweeps of the picked policy go on until its own error is a share of that of the last greedy
    sweep: a small share once that sweep changed few picks. Nothing of this schedule touches the
    bounds, which hold for the last greedy sweep, whatever came before it.
    """
    greedy_sweep = greedy_parallel if parallel else greedy_serial
    picked_sweep = picked_parallel if parallel else picked_serial
    picked = space_for_picks(layout)
    unit = longest_sum(layout) * np.finfo(np.float64).eps / 2.0
    u, v, w = np.empty_like(v0), v0.copy(), np.empty_like(v0)
    greedy, aim, left, last, since_leap = True, 0.0, 0, np.inf, 0
    for sweeps in range(1, max_sweeps + 1):
        if greedy or sweeps == max_sweeps:
            low, high, changed = greedy_sweep(layout, picked, v, w)
            noise = unit * (largest(v) + largest(w))
            shift, error = interval(low - noise, high + noise, kept)
            attainable = 2.0 * interval(-noise, noise, kept)[1]
            if error <= max(tol, attainable) or sweeps == max_sweeps:
                w += shift
                return w, error, sweeps
        else:
            low, high = picked_sweep(layout, picked, v, w)
        radius = interval(low, high, kept)[1]
        ratio = radius / last if last > 0.0 else 0.0
        since_leap += 1
        if since_leap >= LEAP_EVERY and SLOW < ratio < 1.0:
            radius, since_leap = _leap(u, v, w, ratio, radius, kept), 0
        last = radius
        u, v, w = v, w, u
        if greedy and picked.choice.size > 0:
            share = min(HASTE, max(DEEPEST, SETTLING * changed / v0.size))
            aim = max(share * error, tol)
            left = HASTY_SWEEPS if share == HASTE else max_sweeps
            greedy, since_leap = False, 0
        elif not greedy:
            left -= 1
            greedy = radius <= aim or left == 0
    return v, np.inf, 0


def optimise(
    rows: Rows,
    rewards: Floats,
    discount: float,
    box: Box,
    v0: Floats,
    tol: float,
    max_sweeps: int,
    parallel: bool = False,
) -> tuple[Floats, float, int]:
    """Optimal values [S] of the box-constrained MDP, a bound on their error, sweeps taken.

    rows = (indptr [S * A + 1], successors, probs): row s * A + a is P(. | s, a) and may be empty.
    box = (lower, upper, start), each [S, A] and C-contiguous: the policies with
    lower <= pi <= upper, of which start is one. The error in the sup norm is at most the bound,
    which is at most tol unless max_sweeps ran out, or rounding does not allow it.
    """
    if (box[0] > 0.0).any() and (box[1] > box[0]).any():
        found = value_iteration(rows, rewards, discount, box, v0, tol, max_sweeps, parallel)
        if found is not None:
            return found
    layout, kept = build_layout(rows, rewards, discount, box, parallel)
    return _iterate(layout, kept, v0, tol, max_sweeps, parallel)


def evaluate(
    rows: Rows,
    rewards: Floats,
    discount: float,
    pi: Floats,
    v0: Floats,
    tol: float,
    max_sweeps: int,
    parallel: bool = False,
) -> tuple[Floats, float, int]:
    """Values [S] of the policy pi [S, A], a bound on their error, sweeps taken; see `optimise`."""
    return optimise(rows, rewards, discount, (pi, pi, pi), v0, tol, max_sweeps, parallel)
