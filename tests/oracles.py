"""Slow, obvious versions of what the library computes: linear programmes, loops, brute force."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import linprog

from spibb.mdp import MDP


def cvar(values: np.ndarray, share: float) -> float:
    """X %-CVaR: the mean of the worst X % of the runs, at least one; share 1 is the mean."""
    return float(np.mean(sorted(values)[: max(1, int(share * len(values) + 1e-9))]))


def dense_p(mdp: MDP) -> np.ndarray:
    """P [S, A, S] of a sparse MDP."""
    n_states, n_actions = mdp.shape
    p = np.zeros((n_states, n_actions, n_states))
    for s, a in itertools.product(range(n_states), range(n_actions)):
        row = s * n_actions + a
        for k in range(mdp.indptr[row], mdp.indptr[row + 1]):
            p[s, a, mdp.successors[k]] += mdp.probs[k]
    return p


def lp_value(mdp: MDP, lower: np.ndarray, upper: np.ndarray, initial: np.ndarray) -> float:
    """The largest ρ over policies between two bounds: a linear programme over occupancies μ(x, a).

    max Σ R μ  s.t.  Σ_a μ(x', a) − γ Σ_{x,a} P(x'|x, a) μ(x, a) = p₀(x'),
    lower(x, a) Σ_b μ(x, b) ≤ μ(x, a) ≤ upper(x, a) Σ_b μ(x, b).
    """
    n_states, n_actions = mdp.shape
    p = dense_p(mdp).reshape(n_states * n_actions, n_states)
    same = np.kron(np.eye(n_states), np.ones((n_actions, n_actions)))
    identity = np.eye(n_states * n_actions)
    solution = linprog(
        -mdp.rewards.reshape(-1),
        A_eq=np.kron(np.eye(n_states), np.ones(n_actions)) - mdp.discount * p.T,
        b_eq=initial,
        A_ub=np.vstack(
            [identity - upper.reshape(-1, 1) * same, lower.reshape(-1, 1) * same - identity]
        ),
        b_ub=np.zeros(2 * n_states * n_actions),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solution.status == 0, solution.message
    return float(-solution.fun)


def policy_values(mdp: MDP, probs: np.ndarray) -> np.ndarray:
    """V^π [S] by a dense linear solve."""
    p_pi = np.einsum("sa,sat->st", probs, dense_p(mdp))
    r_pi = (probs * mdp.rewards).sum(axis=1)
    return np.linalg.solve(np.eye(len(r_pi)) - mdp.discount * p_pi, r_pi)


def best_vertex(q: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """max Σ π q over lower ≤ π ≤ upper, Σ π = 1, by trying every vertex of that polytope.

    At a vertex all entries but one sit on a bound.
    """
    n, best = len(q), -np.inf
    for free in range(n):
        others = [a for a in range(n) if a != free]
        for sides in itertools.product((0, 1), repeat=n - 1):
            row = np.zeros(n)
            row[others] = [upper[a] if up else lower[a] for a, up in zip(others, sides)]
            row[free] = 1 - row.sum()
            if lower[free] - 1e-12 <= row[free] <= upper[free] + 1e-12:
                best = max(best, float(row @ q))
    return best


def algorithm_1(q, baseline, bootstrapped) -> np.ndarray:
    """Greedy projection on Π_b, as the paper prints it, for one state."""
    row = np.where(bootstrapped, baseline, 0.0)
    if not bootstrapped.all():
        best = max(np.flatnonzero(~bootstrapped), key=lambda a: q[a])
        row[best] = baseline[~bootstrapped].sum()
    return row


def algorithm_2(q, baseline, bootstrapped) -> np.ndarray:
    """Greedy projection on Π_≤b, as the paper's appendix prints it, for one state."""
    row = np.zeros(len(q))
    for a in np.argsort(-q, kind="stable"):
        rest = 1 - row.sum()
        if bootstrapped[a] and baseline[a] < rest:
            row[a] = baseline[a]
        else:
            row[a] = rest
            return row
    return row
