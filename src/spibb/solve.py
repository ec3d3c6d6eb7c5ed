"""Exact and iterative solution of MDPs, with the policy confined to a box.

Every finite algorithm of this library optimises over policies whose probabilities lie between two
bounds, lower(x, a) ≤ π(a|x) ≤ upper(x, a). Basic RL: [0, 1]. Π_b-SPIBB: both bounds equal π_b on
bootstrapped pairs. Π_≤b-SPIBB: [0, π_b] there. One solver serves all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spibb.arrays import largest, owners
from spibb.checks import choice, takes
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.kernels import dense
from spibb.kernels.projection import free_box as free_box
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
    mdp.check_fits(box.start, "the box of policies")
    unit = unit_of(mdp.rewards)
    rewards = mdp.rewards / unit
    if is_dense(method, mdp.shape[0]):
        return Solution.in_units(unit, _by_policy_iteration(mdp, rewards, box, tolerance))
    found = _by_sweeps(mdp, rewards, box, tolerance)
    if method == "auto" and not found.converged and mdp.shape[0] <= RETRIED_UP_TO:
        found = _by_policy_iteration(mdp, rewards, box, tolerance)
    return Solution.in_units(unit, found)


@takes(mdp=MDP)
def evaluate(
    mdp: MDP, probs: np.ndarray, *, method: str = "auto", tolerance: float = TOLERANCE
) -> Solution:
    """The values of a policy [S, A] in an MDP: V = R_π + γ P_π V.

    >>> from spibb.solve import evaluate
    >>> evaluate(problem.model, problem.baseline.probs).v.round(2).tolist()
    [0.54, 0.6]
    """
    choice("method", method, METHODS)
    mdp.check_fits(probs, "the policy")
    unit = unit_of(mdp.rewards)
    rewards = mdp.rewards / unit
    rows = np.array(probs)  # writable, as in policy iteration: one type, one compilation
    if is_dense(method, len(probs)):
        return Solution.in_units(unit, _value_exactly(mdp, rewards, rows, tolerance))
    found = _value_by_sweeps(mdp, rewards, rows, tolerance)
    if method == "auto" and not found.converged and mdp.shape[0] <= DIRECT_UP_TO:
        found = _value_directly(mdp, rewards, rows)
    return Solution.in_units(unit, found)


def _by_policy_iteration(mdp: MDP, rewards: np.ndarray, box: Box, tolerance: float) -> Found:
    probs, q = box.start.copy(), np.empty(mdp.shape)
    rows = mdp.task.rows
    v, ties, iterations, settled = dense.policy_iteration(
        rows, rewards, mdp.discount, box, probs, q
    )
    rounding = largest(ties)
    wanted, error = tolerance / dense.ROUNDING * rounding, largest_error(rounding, mdp.discount)
    if error > wanted:
        step = dense.doubt(rows, rewards, box, probs, q, ties)
        error = min(error, rounding + step / (1 - mdp.discount))
    return Found(probs, q, v, iterations, settled and error <= wanted, error)


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
    return Solution.in_units(unit, _value_directly(mdp, mdp.rewards / unit, np.array(probs)))


def _value_directly(mdp: MDP, rewards: np.ndarray, probs: np.ndarray) -> Found:
    """Solve (I − γP_π) V = R_π by a sparse factorisation, refined with residuals of more digits.

    A residual r bounds the error: |V − V^π| ≤ max |r| / (1 − γ).
    """
    from scipy.sparse import identity
    from scipy.sparse.linalg import splu

    matrix, reward = _chain(mdp, probs), (probs * rewards).sum(axis=1)
    factors = splu((identity(len(reward)) - mdp.discount * matrix).tocsc())
    v, residual, error = np.zeros(len(reward), np.longdouble), reward, math.inf
    for _ in range(REFINEMENTS):
        closer = v + factors.solve(np.asarray(residual, dtype=np.float64))
        residual = reward + mdp.discount * _times(matrix, closer) - closer
        left = largest(residual) / (1 - mdp.discount)
        if not left < error:
            break
        v, error = closer, left
    found = np.asarray(v, dtype=np.float64)
    size = largest(found)
    error += float(np.finfo(np.longdouble).eps) * 4 * size / (1 - mdp.discount)
    return Found(probs, _q(mdp, rewards, found), found, 1, error <= TOLERANCE * size, error)


def _chain(mdp: MDP, probs: np.ndarray) -> Any:
    """P_π [S, S], sparse."""
    from scipy.sparse import csr_matrix

    n_states = mdp.shape[0]
    pairs = owners(mdp.indptr)
    weights = probs.reshape(-1)[pairs] * mdp.probs
    entries = weights, (pairs // mdp.shape[1], mdp.successors)
    return csr_matrix(entries, shape=(n_states, n_states))


def _times(matrix: Any, v: np.ndarray) -> np.ndarray:
    """The product of a sparse matrix with a vector, in the vector's precision."""
    rows = owners(matrix.indptr)
    product = np.zeros(len(v), dtype=v.dtype)
    np.add.at(product, rows, matrix.data * v[matrix.indices])
    return product


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
