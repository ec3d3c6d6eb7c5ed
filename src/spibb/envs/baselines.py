"""Baselines of known performance for the finite worlds."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.resources import files

import numpy as np

from spibb.bisection import halved
from spibb.checks import choice
from spibb.envs.gridworld import gridworld_mdp
from spibb.errors import InputError
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.solve import evaluate, free_box, optimise

GRIDWORLD_TARGET = 0.4
GRIDWORLD_SHARPNESS = 110.0
GRIDWORLD_SEED = 36
DRAWN = 20
DRAWN_SHARPNESS = (60.0, 80.0, 100.0, 120.0)
GRIDWORLD_BASELINES = ("authors", "spibb", *(f"drawn-{k}" for k in range(DRAWN)))


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

    def probs(sigma: float) -> np.ndarray:
        return softmax(sharpness * (q + sigma * noise))

    def is_better(sigma: float) -> bool:
        return performance(mdp, probs(sigma)) > target

    largest = float(np.ptp(q)) or 1.0
    if is_better(largest):
        raise InputError(f"target {target:g} is not reached by noise of the size of Q*: raise it")
    sigma, _ = halved(is_better, 0.0, largest, 60)
    return Policy(probs(sigma), mdp.states, mdp.actions)


@lru_cache(maxsize=4)
def blend(mdp: MDP, eta: float) -> Policy:
    """The optimal policy, which plays at random often enough for its value to be ηρ* + (1 − η)ρ̃.

    ρ̃ is the uniform policy's value; the share of random play is found by bisection.
    """
    best = np.eye(mdp.shape[1])[optimal_q(mdp).argmax(axis=1)]
    even = np.full(mdp.shape, 1 / mdp.shape[1])
    worst = performance(mdp, even)
    wanted = worst + eta * (performance(mdp, best) - worst)

    def probs(share: float) -> np.ndarray:
        return (1 - share) * best + share * even

    _, share = halved(lambda share: performance(mdp, probs(share)) > wanted, 0.0, 1.0, 30)
    return Policy(probs(share), mdp.states, mdp.actions)


@cache
def gridworld_baseline(name: str = "authors") -> Policy:
    """A fixed stochastic baseline of the gridworld, ρ_b = 0.40 (section 3.1).

    "authors" is the paper's own table, softmax(Q) of the Q in their released code: ρ_b = 0.402250.
    "spibb" is made by `noisy_softmax` with c = 110 and seed 36, "drawn-k" for k = 0 … 19 with
    c = 60, 80, 100, 120 in turn and seed k. Of the entries of the first two outside the goal 43 and
    43 % are below 1 %, 33 and 35 % below 0.1 %, 10 and 8 % below 10⁻⁶; episodes take 21.5 and 21.4
    steps on average; rows have 0.56 and 0.40 nats of mean entropy.
    """
    mdp = gridworld_mdp()
    if choice("baseline", name, GRIDWORLD_BASELINES) == "authors":
        return Policy(softmax(authors_q()), mdp.states, mdp.actions)
    seed, sharpness = GRIDWORLD_SEED, GRIDWORLD_SHARPNESS
    if name != "spibb":
        seed = int(name.removeprefix("drawn-"))
        sharpness = DRAWN_SHARPNESS[seed % len(DRAWN_SHARPNESS)]
    rng = np.random.default_rng(seed)
    return noisy_softmax(mdp, GRIDWORLD_TARGET, sharpness=sharpness, rng=rng)


def authors_q() -> np.ndarray:
    """Q [25, 4] of the gridworld's baseline in the authors' released code (MIT licence).

    The first lines of the file say where it comes from.
    """
    table = files("spibb.envs") / "data" / "gridworld_q.csv"
    lines = [line for line in table.read_text("utf-8").splitlines() if not line.startswith("#")]
    return np.loadtxt(lines, delimiter=",", skiprows=1)[:, 1:]
