"""Exact and iterative solution of MDPs, with the policy confined to a box.

Every finite algorithm of this library optimises over policies whose probabilities lie between two
bounds, lower(x, a) ≤ π(a|x) ≤ upper(x, a). Basic RL: [0, 1]. Π_b-SPIBB: both bounds equal π_b on
bootstrapped pairs. Π_≤b-SPIBB: [0, π_b] there. One solver serves all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spibb.arrays import largest, owners
from spibb.checks import choice, number, real_array, takes
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.kernels import dense
from spibb.kernels.projection import free_box as free_box
from spibb.kernels.projection import greedy
from spibb.kernels.sparse import solve as sparse
from spibb.kernels.tuples import Box as Box
from spibb.mdp import MDP
from spibb.ties import settle

METHODS = ("auto", "policy-iteration", "sweeps")
DENSE_UP_TO = 256
"""States up to which a dense matrix solves exactly; beyond, sweeps are faster."""
RETRIED_UP_TO = 2_000
"""States up to which a dense matrix takes seconds: it solves what sweeps have not."""
DIRECT_UP_TO = 5_000
"""States up to which a sparse factorisation takes seconds even where successors are random."""
REFINEMENTS = 5
"""Corrections of a factorised solution by its residual, at most."""
PARALLEL_FROM = 20_000
"""States from which sweeps are worth several threads."""
TOLERANCE = 1e-9
"""Error of the values, relative to their size, with which they count as converged."""
MAX_SWEEPS = 100_000
"""After which a solution says that it has not converged."""
LARGEST = float(np.finfo(np.float64).max)


class Found(NamedTuple):
    """The fields of a solution, in units of the largest reward."""

    probs: np.ndarray
    q: np.ndarray
    v: np.ndarray
    iterations: int
    converged: bool
    error: float


@dataclass(frozen=True, eq=False)
class Solution(Frozen):
    """A policy [S, A] with its values q [S, A] and v [S], and how they were reached.

    `error` bounds |v − v*|, rounding included. `converged` says that it is as small as was asked
    for, at most the tolerance times the largest value, and that no tie hides a choice that matters
    at the scale of its own state.
    """

    probs: np.ndarray
    q: np.ndarray
    v: np.ndarray
    iterations: int
    converged: bool
    error: float

    @classmethod
    def in_units(cls, unit: float, found: Found) -> Solution:
        """From a solution for rewards in units of `unit`; its `q` and `v` are changed."""
        size = np.maximum(largest(found.q), largest(found.v))
        if not size <= LARGEST / max(unit, 1.0):
            raise InputError(
                f"values reach {size:.3g} times {unit:.3g}, expected at most {LARGEST:.3g}: "
                "divide the rewards by a constant"
            )
        np.multiply(found.q, unit, out=found.q)
        np.multiply(found.v, unit, out=found.v)
        error = found.error * unit
        return cls(found.probs, found.q, found.v, found.iterations, bool(found.converged), error)


def unit_of(rewards: np.ndarray) -> float:
    """The power of two just below max |R|, 1 if all are 0.

    To divide by it and to multiply with it is exact. Solvers work on rewards in units of it, so
    that no tolerance depends on the scale of the rewards.
    """
    size = largest(rewards)
    if not size <= LARGEST:
        raise InputError(f"rewards hold {size}, expected finite numbers")
    return math.ldexp(1.0, math.frexp(size)[1] - 1) if size > 0 else 1.0


def is_dense(method: str, n_states: int) -> bool:
    """Whether a problem is solved exactly, by policy iteration with a dense matrix."""
    return method == "policy-iteration" or (method == "auto" and n_states <= DENSE_UP_TO)


@takes(mdp=MDP, box=Box)
def optimise(mdp: MDP, box: Box, *, method: str = "auto", tolerance: float = TOLERANCE) -> Solution:
    """The best policy of the box in an MDP (Theorem 1: policy iteration converges to it).

    `auto` evaluates exactly (policy iteration) up to a few hundred states, and sweeps beyond,
    until the error is proven to be below `tolerance` times the largest value. Where sweeps do not
    get there, as with a discount near 1, it evaluates exactly up to a few thousand states.

    Gains within the error of the values are ties: there `box.start` is kept, or the first of
    the actions that tie is taken.

    Parameters:
        mdp: the MDP.
        box: the policies that are allowed; `free_box(available)` allows any over the available
            actions.
        method: ``"auto"``, ``"policy-iteration"`` or ``"sweeps"``.
        tolerance: error of the values, relative to their size.

    Returns:
        The policy with its values, and whether the solver converged.

    >>> from spibb.solve import free_box, optimise
    >>> optimise(problem.model, free_box(problem.available)).probs.tolist()  # mild: a tie
    [[0.5, 0.5], [1.0, 0.0]]
    """
    choice("method", method, METHODS)
    tolerance = number("tolerance", tolerance, 0, math.inf, "()")
    mdp.check_fits(box.start, "the box of policies")
    box = Box(*(real_array(f"box.{name}", part) for name, part in zip(Box._fields, box)))
    unit = unit_of(mdp.rewards)
    rewards = mdp.rewards / unit
    if is_dense(method, mdp.shape[0]):
        return Solution.in_units(unit, _by_policy_iteration(mdp, rewards, box, tolerance))
    found = _by_sweeps(mdp, rewards, box, tolerance)
    if method == "auto" and not found.converged:
        if mdp.shape[0] <= RETRIED_UP_TO:
            found = _by_policy_iteration(mdp, rewards, box, tolerance)
        else:
            found = _with_own_values(mdp, rewards, found, tolerance)
    return Solution.in_units(unit, found)


@takes(mdp=MDP, probs=np.ndarray)
def evaluate(
    mdp: MDP, probs: np.ndarray, *, method: str = "auto", tolerance: float = TOLERANCE
) -> Solution:
    """The values of a policy [S, A] in an MDP: V = R_π + γ P_π V.

    >>> from spibb.solve import evaluate
    >>> evaluate(problem.model, problem.baseline.probs).v.round(2).tolist()
    [0.54, 0.6]
    """
    choice("method", method, METHODS)
    tolerance = number("tolerance", tolerance, 0, math.inf, "()")
    mdp.check_fits(probs, "the policy")
    unit = unit_of(mdp.rewards)
    rewards = mdp.rewards / unit
    rows = real_array(
        "probs", probs
    ).copy()  # writable, as in policy iteration: one type, one compilation
    if is_dense(method, len(probs)):
        return Solution.in_units(unit, _value_exactly(mdp, rewards, rows, tolerance))
    found = _value_by_sweeps(mdp, rewards, rows, tolerance)
    if method == "auto" and not found.converged and mdp.shape[0] <= DIRECT_UP_TO:
        direct = _value_directly(mdp, rewards, rows, tolerance)
        found = direct._replace(iterations=found.iterations + 1)
    return Solution.in_units(unit, found)


def _by_policy_iteration(mdp: MDP, rewards: np.ndarray, box: Box, tolerance: float) -> Found:
    probs, q = box.start.copy(), np.empty(mdp.shape)
    rows = mdp.task.rows
    v, ties, iterations, settled = dense.policy_iteration(
        rows, rewards, mdp.discount, box, probs, q
    )
    rounding = largest(ties)
    if not settled:
        return Found(probs, q, v, iterations, False, _unsettled_error(q, box, v, rounding, mdp))
    wanted, error = tolerance / dense.ROUNDING * rounding, largest_error(rounding, mdp.discount)
    if error > wanted:
        step = dense.doubt(rows, rewards, box, probs, q, ties)
        error = min(error, rounding + step / (1 - mdp.discount))
    return Found(probs, q, v, iterations, error <= wanted, error)


def _unsettled_error(q: np.ndarray, box: Box, v: np.ndarray, rounding: float, mdp: MDP) -> float:
    """|v − v*| ≤ |T v − v| / (1 − γ), of any values: T v are those of the best rows of the box."""
    best = greedy(q, box, np.zeros(len(v)), np.empty(q.shape))
    return (largest(best - v) + rounding) / (1 - mdp.discount)


def largest_error(rounding: float, discount: float) -> float:
    """|v − v*| of values that are rounded, and where a step gains no more than rounding.

    The policy's own values are off by a rounding; what a step may gain, and its rounding, can recur
    in all steps.
    """
    return rounding + 2 * rounding / (1 - discount)


def _value_exactly(mdp: MDP, rewards: np.ndarray, probs: np.ndarray, tolerance: float) -> Found:
    rows = mdp.task.rows
    v, sizes = dense.values(rows, rewards, mdp.discount, probs)
    q = dense.q_values(rows, rewards, mdp.discount, v)
    error = dense.ROUNDING * largest(sizes)
    return Found(probs, q, v, 1, tolerance >= dense.ROUNDING, error)


def evaluate_exactly(mdp: MDP, probs: np.ndarray) -> Solution:
    """The values of a policy [S, A], as close as an MDP of this size allows.

    Up to DIRECT_UP_TO states the equations are solved directly; beyond, by sweeps.
    """
    if not DENSE_UP_TO < mdp.shape[0] <= DIRECT_UP_TO:
        return evaluate(mdp, probs)
    mdp.check_fits(probs, "the policy")
    unit = unit_of(mdp.rewards)
    found = _value_directly(mdp, mdp.rewards / unit, np.array(probs), TOLERANCE)
    return Solution.in_units(unit, found)


def _value_directly(mdp: MDP, rewards: np.ndarray, probs: np.ndarray, tolerance: float) -> Found:
    """Solve (I − γP_π) V = R_π by a sparse factorisation, refined with residuals of more digits.

    With l(x) = 1 − γ Σ_x' P_π(x'|x), the share that a step loses, the equations are
    l(x) V(x) = R_π(x) + γ Σ_x' P_π(x'|x) (V(x') − V(x)), in which nothing large cancels. What they
    lack, r, bounds the error: |V − V^π| ≤ max |r(x)| / l(x), since I − γP_π is an M-matrix with
    row sums l.
    """
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import splu

    chain = _chain(mdp, probs)
    n_states, reward = len(probs), (probs.astype(np.longdouble) * rewards).sum(axis=1)
    left = np.asarray(chain.lost + _by_state(chain.weight, chain.state, n_states), np.float64)
    here = np.arange(n_states)
    entries = np.append(left, -chain.weight.astype(np.float64))
    places = np.append(here, chain.state), np.append(here, chain.successor)
    factors = splu(csc_matrix((entries, places), shape=(n_states, n_states)))
    v, error = np.zeros(n_states, np.longdouble), math.inf
    closer = v
    for _ in range(REFINEMENTS):
        residual, rounding = _residual(chain, reward, closer)
        off = float(((np.abs(residual) + rounding) / chain.lost).max())
        if not off < error:
            break
        v, error = closer, off
        closer = v + factors.solve(np.asarray(residual, dtype=np.float64))
    found = np.asarray(v, dtype=np.float64)
    error += float(np.finfo(np.float64).eps) * largest(found)
    converged = error <= tolerance * largest(found)
    return Found(probs, _q(mdp, rewards, found), found, 1, converged, error)


class _Chain(NamedTuple):
    """γ P_π between different states: `weight` [K] from `state` to `successor`; and the share
    `lost` [S] of each step, by discounting and by ends."""

    weight: np.ndarray
    state: np.ndarray
    successor: np.ndarray
    lost: np.ndarray


def _chain(mdp: MDP, probs: np.ndarray) -> _Chain:
    n_states, n_actions = mdp.shape
    pairs = owners(mdp.indptr)
    state, weight = pairs // n_actions, probs.reshape(-1)[pairs].astype(np.longdouble) * mdp.probs
    kept = _by_state(weight, state, n_states)
    ends = np.where(kept < 1 - dense.WHOLE, 1 - kept, 0)
    leaves = (state != mdp.successors) & (weight > 0)  # a policy takes few of the actions
    lost = (1 - mdp.discount) + mdp.discount * ends
    return _Chain(mdp.discount * weight[leaves], state[leaves], mdp.successors[leaves], lost)


def _residual(chain: _Chain, reward: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What V lacks [S] in the equations of a chain, and how far rounding can have moved it."""
    n_states = len(v)
    flow = chain.weight * (v[chain.successor] - v[chain.state])
    total = _by_state(flow, chain.state, n_states)
    size = np.abs(reward) + chain.lost * np.abs(v) + _by_state(np.abs(flow), chain.state, n_states)
    terms = np.bincount(chain.state, minlength=n_states) + 4
    return reward - chain.lost * v + total, float(np.finfo(v.dtype).eps) * terms * size


def _by_state(values: np.ndarray, state: np.ndarray, n_states: int) -> np.ndarray:
    """Sums of values [K] by state [S], in their own precision."""
    total = np.zeros(n_states, dtype=values.dtype)
    np.add.at(total, state, values)
    return total


def _value_by_sweeps(mdp: MDP, rewards: np.ndarray, probs: np.ndarray, tolerance: float) -> Found:
    v, error, sweeps, wanted = sparse.evaluate(
        mdp.rows, rewards, mdp.discount, probs, tolerance, MAX_SWEEPS, len(probs) >= PARALLEL_FROM
    )
    return Found(probs, _q(mdp, rewards, v), v, sweeps, error <= wanted, error)


def _by_sweeps(mdp: MDP, rewards: np.ndarray, box: Box, tolerance: float) -> Found:
    """Sweep until the values are close, and closer where a tie is in doubt that could cost more."""
    task = mdp.rows, rewards, mdp.discount, box
    parallel, gap = mdp.shape[0] >= PARALLEL_FROM, 1 - mdp.discount
    found = sparse.optimise(*task, tolerance, MAX_SWEEPS, parallel)
    wanted, sweeps = found.wanted, found.sweeps
    probs, q, doubtful = _greedy(mdp, rewards, box, found, tolerance)
    if doubtful:
        found = sparse.optimise(*task, tolerance * gap / 4, MAX_SWEEPS, parallel, found.v)
        sweeps += found.sweeps
        probs, q, doubtful = _greedy(mdp, rewards, box, found, tolerance)
    converged = found.error <= wanted and not doubtful
    return Found(probs, q, found.v, sweeps, converged, found.error)


def _with_own_values(mdp: MDP, rewards: np.ndarray, found: Found, tolerance: float) -> Found:
    """A policy that ties kept away from the best values, with its own instead of these."""
    solver = _value_directly if mdp.shape[0] <= DIRECT_UP_TO else _value_by_sweeps
    own = solver(mdp, rewards, found.probs, tolerance)
    error = found.error + own.error + largest(own.v - found.v)
    return own._replace(iterations=found.iterations, converged=False, error=error)


def _greedy(
    mdp: MDP, rewards: np.ndarray, box: Box, found: sparse.Values, tolerance: float
) -> tuple[np.ndarray, np.ndarray, bool]:
    """The greedy policy for values with an error, q, and whether a tie in it is in doubt."""
    zero = np.zeros(mdp.shape)
    q, sizes = _q(mdp, rewards, found.v), _q(mdp, np.abs(rewards), np.abs(found.v))
    probs, doubtful = settle(
        q, box, lambda errors: _q(mdp, zero, errors), found.v, sizes, found.error,
        tolerance * (1 - mdp.discount),
    )  # fmt: skip
    return probs, q, doubtful


def _q(mdp: MDP, rewards: np.ndarray, v: np.ndarray) -> np.ndarray:
    return dense.q_values(mdp.rows, rewards, mdp.discount, v)
