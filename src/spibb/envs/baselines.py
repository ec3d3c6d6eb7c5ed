"""Baselines of known performance for the finite worlds."""

from __future__ import annotations

from functools import cache

import numpy as np

from spibb.checks import InputError
from spibb.envs.gridworld import gridworld_mdp
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.solve import evaluate, free_box, optimise

GRIDWORLD_TARGET = 0.4
GRIDWORLD_SHARPNESS = 110.0
GRIDWORLD_SEED = 36


def softmax(preferences: np.ndarray) -> np.ndarray:
    """Row-wise softmax of preferences [S, A]."""
    shifted = np.exp(preferences - preferences.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def optimal_q(mdp: MDP) -> np.ndarray:
    """Q* [S, A] of an MDP in which every action is available."""
    return optimise(mdp, free_box(np.ones(mdp.shape, dtype=bool))).q


def performance(mdp: MDP, probs: np.ndarray) -> float:
    """ρ(π, M) of rows [S, A]."""
    return float(mdp.initial @ evaluate(mdp, probs).v)


def noisy_softmax(mdp: MDP, target: float, *, sharpness: float, rng: np.random.Generator) -> Policy:
    """A peaked, imperfect expert: softmax(c·(Q* + σε)) with σ such that ρ(π, M) = target.

    ε is one standard-normal draw [S, A], c the sharpness, and σ is found by bisection. Large c
    makes most actions rare, which is what misleads Basic RL: pairs that are seen once or twice in
    a large log.
    """
    q = optimal_q(mdp)
    noise = rng.standard_normal(q.shape)
    low, high = 0.0, float(np.ptp(q)) or 1.0
    if performance(mdp, softmax(sharpness * (q + high * noise))) > target:
        raise InputError(f"target {target:g} is not reached by noise of the size of Q*: raise it")
    for _ in range(60):
        middle = (low + high) / 2
        reached = performance(mdp, softmax(sharpness * (q + middle * noise)))
        low, high = (middle, high) if reached > target else (low, middle)
    return Policy(softmax(sharpness * (q + low * noise)), mdp.states, mdp.actions)


@cache
def gridworld_baseline() -> Policy:
    """The fixed stochastic baseline of the gridworld, ρ_b = 0.40 (section 3.1).

    Made by `noisy_softmax` with c = 110 and seed 36. Of its entries outside the goal 43 % are below
    1 %, 35 % below 0.1 % and 8 % below 10⁻⁶; episodes take 21.4 steps on average and 3.6 % are cut
    at 50. The authors' table: 43, 33 and 10 %, 21.5 steps, 3.2 %. Its rows are more peaked than
    theirs: 0.40 nats of mean entropy against 0.56.
    """
    return noisy_softmax(
        gridworld_mdp(), GRIDWORLD_TARGET, sharpness=GRIDWORLD_SHARPNESS,
        rng=np.random.default_rng(GRIDWORLD_SEED),
    )  # fmt: skip
