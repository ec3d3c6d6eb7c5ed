"""Models drawn from a Dirichlet posterior, and the values of policies in them."""

from __future__ import annotations

import numpy as np
from numba import njit

from spibb.kernels.dense import evaluate


@njit(cache=True)
def draw_model(indptr, successors, mean_reward, gammas, probs, rewards):
    """Normalise Gamma draws into one model: fills `probs` [K'] and `rewards` [S, A].

    `gammas` [K + P] holds a draw per observed outcome and then one per pair for the outcome never
    observed, which ends the process and pays nothing. `probs` gets the outcomes that do not end
    it, in order; a pair without outcomes earns nothing.
    """
    n_pairs = len(indptr) - 1
    n_outcomes = len(successors)
    flat = rewards.reshape(-1)
    stay = 0
    for p in range(n_pairs):
        total = gammas[n_outcomes + p]
        for k in range(indptr[p], indptr[p + 1]):
            total += gammas[k]
        flat[p] = 0.0
        for k in range(indptr[p], indptr[p + 1]):
            share = gammas[k] / total
            flat[p] += share * mean_reward[k]
            if successors[k] >= 0:
                probs[stay] = share
                stay += 1


@njit(cache=True)
def values(outcomes, stays, gammas, discount: float, initial, policies) -> np.ndarray:
    """ρ of each policy [M, S, A] in the model of each Gamma draw [D, K + P]: [D, M].

    `outcomes` are (indptr, successors, mean rewards) with ends, `stays` the (indptr, successors)
    without them.
    """
    indptr, successors, mean_reward = outcomes
    n_draws, n_policies = len(gammas), len(policies)
    probs = np.empty(len(stays[1]))
    rewards = np.empty(policies[0].shape)
    rho = np.empty((n_draws, n_policies))
    rows = (stays[0], stays[1], probs)
    for d in range(n_draws):
        draw_model(indptr, successors, mean_reward, gammas[d], probs, rewards)
        for m in range(n_policies):
            rho[d, m] = initial @ evaluate(rows, rewards, discount, policies[m])
    return rho
