"""Large sparse MDPs whose policies are confined to a box: optimal values with a proven error.

The constrained Bellman operator is

    (T v)(s) = max { sum_a pi(a) q(s, a) : lower(s, .) <= pi <= upper(s, .), sum_a pi(a) = 1 }
    q(s, a)  = rewards(s, a) + discount * sum_s' P(s' | s, a) v(s')

Plain MDPs, Pi_b-SPIBB and Pi_<=b-SPIBB differ in the box only. Rows of P may sum to less than one:
the missing mass ends the process, and what follows is worth 0.

**Normal form.** With mass(s) = sum_a (start - lower)(s, a) and room = upper - lower,

    (T v)(s) = sum_a lower(s, a) q(s, a)  +  fill(s),

where `fill` hands mass(s) to the actions in decreasing order of q, each up to its room. A fixed
policy is the box without room.

**Bounds** (MacQueen 1966, here for rows below one). Let low <= T v - v <= high, and let every
policy of the box keep between `least` and `most` of the discounted mass,
least <= discount * sum_s' P_pi(s' | s) <= most. T is monotone, and

    T(v + c) <= T v + most * c  if c >= 0,      T(v + c) <= T v + least * c  if c < 0.

Applied again and again to T v <= v + high, and mirrored for low, this gives

    T v + g(low, least, most) <= v* <= T v + g(high, most, least),
    g(c, up, down) = c k / (1 - k),   k = up if c >= 0 else down.

The middle of that interval is returned; half its length is the error.

**Iteration** (modified policy iteration by corrections). A greedy sweep over all rows gives T v,
the bounds, and the policy pi that attains T v; its rows are written next to one another. Sweeps of
these alone find d = (T v - v) + discount * P_pi d, and v + d is next. As d only corrects v, single
precision serves for it, and half of the memory that scattered reads go to. So does it for v, as
long as the error is larger: T v and the bounds of the rounded v are exact.

**Settled states** (after Hastings and Mello 1973). When v changes by between l and h, q of two
actions cannot change by amounts that differ by more than `spread(l, h)`. A state whose best action
was ahead by more than the sum of these since then, the `drift`, keeps it: a greedy sweep reads only
the row of its policy, and T v is exact nevertheless. The others are open, and read all their rows.

A chunk of states is the unit of parallel work. Each sweep reads one vector and writes another
(Jacobi), so the number of threads does not change the result.

**Rounding** is part of the bound: a backup that sums n terms may be off by n units of rounding of
the largest value, and of the rewards that the policy adds up. A penalty so large that its action is
never chosen does not enter.

**Scale.** Rewards are to be given in units of the largest, since single precision ends at 1e±38.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from spibb.kernels.sparse.bounds import (
    SLIVER,
    SLOW,
    Floats,
    Masses,
    Reals,
    interval,
    largest,
    spread,
)
from spibb.kernels.sparse.sweeps import (
    PolicyRows,
    greedy_parallel,
    greedy_serial,
    no_policy,
    policy_parallel,
    policy_serial,
)
from spibb.kernels.sparse.task import BoxedMDP, Facts, describe
from spibb.kernels.tuples import Box, Rows

HASTE = 0.3  # sweep a policy until its error is this share of the last certified one,
HASTY_SWEEPS = 20  # and at most so often;
SETTLING = 3.0  # less hastily where fewer states chose anew: this times their share,
DEEPEST = 1e-3  # but no less than this
LEAP_EVERY = 6  # sweeps between two extrapolations of a slow iteration
SINGLE = 5e-3  # single precision serves where policies lose more mass than this
ROUND = 1e-6  # values may be rounded to single precision where an error of this share is small


class Values(NamedTuple):
    """Values [S], a bound on their error, the sweeps taken, and the error that was to be met."""

    v: Floats
    error: float
    sweeps: int
    wanted: float


@njit(cache=True)
def _leap_range(u: Reals, v: Reals, w: Reals, c: float) -> tuple[float, float]:
    """Range of T x - x at x = v + c (v - u), where v = T u, w = T v and T is linear."""
    low, high = np.inf, -np.inf
    for s in range(v.size):
        change = (w[s] - v[s]) + c * ((w[s] - v[s]) - (v[s] - u[s]))
        low, high = min(low, change), max(high, change)
    return low, high


@njit(cache=True)
def _leap_in_place(u: Reals, v: Reals, w: Reals, c: float) -> None:
    """Replace v by x = v + c (v - u), and w = T v by T x, where v = T u and T is linear."""
    for s in range(v.size):
        w[s] += c * (w[s] - v[s])
        v[s] += c * (v[s] - u[s])


def _leap(u: Reals, v: Reals, w: Reals, ratio: float, radius: float, kept: Masses) -> float:
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


def _correction(
    policy: PolicyRows, residual: Reals, kept: Masses, aim: float, limit: int, parallel: bool
) -> tuple[Reals, float, int]:
    """The d = residual + discount * P_pi d of the policy up to an error of about `aim`.

    It is the sum of the first two results; the third is the number of sweeps, at most `limit`.
    """
    sweep = policy_parallel if parallel else policy_serial
    unit = float(np.finfo(residual.dtype).eps)
    u, d, w = np.empty_like(residual), residual.copy(), np.empty_like(residual)
    size, last, since_leap, shift = largest(d), np.inf, 0, 0.0
    for sweeps in range(1, limit + 1):
        low, high = sweep(policy, residual, d, w)
        shift, radius = interval(low, high, kept)
        size += max(abs(low), abs(high))
        attainable = 2.0 * interval(-unit * size, unit * size, kept)[1]
        if radius <= max(aim, attainable):
            return w, shift, sweeps
        ratio = radius / last if last > 0.0 else 0.0
        since_leap += 1
        if since_leap >= LEAP_EVERY and SLOW < ratio < 1.0:
            radius, since_leap = _leap(u, d, w, ratio, radius, kept), 0
            size, shift = largest(w), 0.0
        last = radius
        u, d, w = d, w, u
    return d, shift, limit


@njit(cache=True, fastmath={"nnan", "nsz"})
def _advance(x: Reals, d: Reals, shift: float, out: Floats) -> tuple[float, float]:
    """Write x + d + shift; return the range of its difference from x."""
    low, high = np.inf, -np.inf
    for s in range(x.size):
        change = d[s] + shift
        out[s] = x[s] + change
        low, high = min(low, change), max(high, change)
    return low, high


def _iterate(
    task: BoxedMDP, facts: Facts, v: Floats, tol: float, max_sweeps: int, parallel: bool
) -> Values:
    """Modified policy iteration with certified bounds.

    Nothing of its schedule touches the bounds, which hold for the last greedy sweep, whatever came
    before it.
    """
    greedy = greedy_parallel if parallel else greedy_serial
    kept, w = facts.kept, np.empty_like(v)
    single = kept[1] < 1.0 - SINGLE
    policy = no_policy(task, single)
    residual: Reals = np.empty(v.size, np.float32) if single else np.empty(v.size)
    unit = (facts.terms + 4) * float(np.finfo(np.float64).eps) / 2.0
    uniform = kept[1] - kept[0] <= SLIVER  # then a shift of v shifts T v, and no more
    sweeps, drift, rough, paid = 0, 0.0, single, 0.0
    while sweeps < max_sweeps:
        x: Reals = v.astype(np.float32) if rough else v
        low, high, changed = greedy(task, policy, x, w, residual, drift)
        sweeps += 1
        paid = largest(policy.sizes) if changed else paid
        bottom, top = float(w.min()), float(w.max())
        level = max(abs(bottom), abs(top))
        size = 2.0 * level + max(abs(low), abs(high)) + paid  # of x, of w and of rewards
        noise = unit * size
        shift, error = interval(low - noise, high + noise, kept)
        wanted = tol * max(abs(bottom + shift), abs(top + shift), paid)
        attainable = 1.5 * interval(-noise, noise, kept)[1]
        if error <= max(wanted, attainable) or sweeps == max_sweeps:
            w += shift
            return Values(w, error, sweeps, wanted)
        share = min(HASTE, max(DEEPEST, SETTLING * changed / v.size))
        limit = min(HASTY_SWEEPS if share == HASTE else max_sweeps, max_sweeps - sweeps - 1)
        aim = max(share * error, wanted)
        d, shift, taken = _correction(policy, residual, kept, aim, limit, parallel)
        sweeps += taken
        rough = single and interval(-ROUND * size, ROUND * size, kept)[1] < aim
        low, high = _advance(x, d, shift if uniform else 0.0, v)
        blur = (ROUND if rough else unit) * (size + max(abs(low), abs(high)))
        drift += spread(low - blur, high + blur, facts.kept_alone) + 4.0 * noise
    return Values(v, np.inf, 0, 0.0)


def optimise(
    rows: Rows,
    rewards: Floats,
    discount: float,
    box: Box,
    tol: float,
    max_sweeps: int,
    parallel: bool = False,
    guess: Floats | None = None,
) -> Values:
    """Optimal values [S] of the box-constrained MDP, a bound on their error, sweeps taken.

    rows = (indptr [S * A + 1], successors, probs): row s * A + a is P(. | s, a) and may be empty.
    box = (lower, upper, start), each [S, A] and C-contiguous: the policies with
    lower <= pi <= upper, of which start is one. The error in the sup norm is at most the bound,
    which is at most tol times the largest value (or reward) unless max_sweeps ran out, or rounding
    does not allow it. The search starts from `guess` [S], if one is given.
    """
    task, facts, v = describe(rows, rewards, discount, box, parallel)
    start = v if guess is None else guess.copy()
    return _iterate(task, facts, start, tol, max_sweeps, parallel)


def evaluate(
    rows: Rows,
    rewards: Floats,
    discount: float,
    pi: Floats,
    tol: float,
    max_sweeps: int,
    parallel: bool = False,
) -> Values:
    """Values [S] of the policy pi [S, A], a bound on their error, sweeps taken; see `optimise`."""
    return optimise(rows, rewards, discount, Box(pi, pi, pi), tol, max_sweeps, parallel)
