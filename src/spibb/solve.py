"""Exact and iterative solution of MDPs, with the policy confined to a box.

Every finite algorithm of this library optimises over policies whose probabilities lie between two
bounds, lower(x, a) ≤ π(a|x) ≤ upper(x, a). Basic RL: [0, 1]. Π_b-SPIBB: both bounds equal π_b on
bootstrapped pairs. Π_≤b-SPIBB: [0, π_b] there. One solver serves all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spibb.checks import choice
from spibb.kernels import dense, projection
from spibb.kernels.sparse import solve as sparse
from spibb.mdp import MDP

METHODS = ("auto", "policy-iteration", "sweeps")
DENSE_UP_TO = 256
PARALLEL_FROM = 20_000
TOLERANCE = 1e-9
MAX_SWEEPS = 100_000


@dataclass(frozen=True, eq=False)
class Box:
    """The policies allowed: lower ≤ π ≤ upper [S, A], and one of them, `start` [S, A].

    Where no allowed row is better than `start`'s in the model, `start`'s is kept.
    """

    lower: np.ndarray
    upper: np.ndarray
    start: np.ndarray

    @classmethod
    def free(cls, available: np.ndarray) -> Box:
        """Any policy over the available actions [S, A]; starts from the uniform one."""
        return cls(*projection.free_rows(available))

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(lower, upper, start), as the kernels take them."""
        return self.lower, self.upper, self.start


@dataclass(frozen=True, eq=False)
class Solution:
    """A policy [S, A] with its values q [S, A] and v [S], and how they were reached.

    `error` bounds |v − v*|: 0 means exact up to rounding.
    """

    probs: np.ndarray
    q: np.ndarray
    v: np.ndarray
    iterations: int
    converged: bool
    error: float


def optimise(mdp: MDP, box: Box, *, method: str = "auto", tolerance: float = TOLERANCE) -> Solution:
    """The best policy of the box in an MDP (Theorem 1: policy iteration converges to it).

    `auto` evaluates exactly (policy iteration) up to a few hundred states, and sweeps beyond,
    until the error is proven to be below `tolerance` (times the largest possible value if that
    is above 1).
    """
    choice("method", method, METHODS)
    mdp.check_fits(box.start, "the box of policies")
    shape = mdp.shape
    if method == "policy-iteration" or (method == "auto" and shape[0] <= DENSE_UP_TO):
        probs, q = box.start.copy(), np.empty(shape)
        v, iterations, converged = dense.policy_iteration(
            mdp.rows, mdp.rewards, mdp.discount, box.arrays, probs, q
        )
        return Solution(probs, q, v, iterations, converged, 0.0)
    return _by_sweeps(mdp, box, tolerance)


def optimise_each(mdp: MDP, rewards: np.ndarray, box: Box, *, method: str = "auto") -> np.ndarray:
    """The best policies of the box [M, S, A] in MDPs that differ in nothing but `rewards` alike."""
    if method == "auto" and mdp.shape[0] <= DENSE_UP_TO:
        probs = np.empty(rewards.shape)
        dense.optimise_each(mdp.rows, rewards, mdp.discount, box.arrays, probs)
        return probs
    models = [replace(mdp, rewards=r, outcomes=None) for r in rewards]
    return np.stack([optimise(model, box, method=method).probs for model in models])


def evaluate(
    mdp: MDP, probs: np.ndarray, *, method: str = "auto", tolerance: float = TOLERANCE
) -> Solution:
    """The values of a policy [S, A] in an MDP: V = R_π + γ P_π V."""
    choice("method", method, METHODS)
    mdp.check_fits(probs, "the policy")
    if method == "policy-iteration" or (method == "auto" and len(probs) <= DENSE_UP_TO):
        writable = np.array(probs)  # as in policy iteration: one type, one compilation
        v = dense.evaluate(mdp.rows, mdp.rewards, mdp.discount, writable)
        return Solution(probs, _q(mdp, v), v, 1, True, 0.0)
    wanted, parallel = _scaled(tolerance, mdp), len(probs) >= PARALLEL_FROM
    v, error, sweeps = sparse.evaluate(
        mdp.rows, mdp.rewards, mdp.discount, probs, wanted, MAX_SWEEPS, parallel
    )
    return Solution(probs, _q(mdp, v), v, sweeps, error <= wanted, error)


def _by_sweeps(mdp: MDP, box: Box, tolerance: float) -> Solution:
    wanted, parallel = _scaled(tolerance, mdp), mdp.shape[0] >= PARALLEL_FROM
    v, error, sweeps = sparse.optimise(
        mdp.rows, mdp.rewards, mdp.discount, box.arrays, wanted, MAX_SWEEPS, parallel
    )
    probs, q = np.empty(mdp.shape), np.empty(mdp.shape)
    tie = dense.rounding(mdp.rewards, mdp.discount)
    dense.improve(mdp.rows, mdp.rewards, mdp.discount, box.arrays, v, tie, probs, q)
    return Solution(probs, q, v, sweeps, error <= wanted, error)


def _q(mdp: MDP, v: np.ndarray) -> np.ndarray:
    return dense.q_values(mdp.rows, mdp.rewards, mdp.discount, v)


def _scaled(tolerance: float, mdp: MDP) -> float:
    """The tolerance in units of reward: no iteration gets below the rounding of large values."""
    largest = float(np.abs(mdp.rewards).max(initial=0.0)) / (1 - mdp.discount)
    return tolerance * max(1.0, largest)
