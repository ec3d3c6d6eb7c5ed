"""Make, soften and estimate baseline policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from spibb.checks import InputError, number, some
from spibb.counts import Counts
from spibb.labels import Label, Vocabulary
from spibb.log import Log
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.solve import Box, evaluate, optimise

GRIDWORLD_TARGET = 0.4
GRIDWORLD_SHARPNESS = 110.0
GRIDWORLD_SEED = 36


def softmax(preferences: np.ndarray) -> np.ndarray:
    """Row-wise softmax of preferences [S, A]."""
    shifted = np.exp(preferences - preferences.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def optimal_q(mdp: MDP) -> np.ndarray:
    """Q* [S, A] of an MDP in which every action is available."""
    return optimise(mdp, Box.free(np.ones(mdp.shape, dtype=bool))).q


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
    from spibb.envs.gridworld import gridworld_mdp

    return noisy_softmax(
        gridworld_mdp(), GRIDWORLD_TARGET, sharpness=GRIDWORLD_SHARPNESS,
        rng=np.random.default_rng(GRIDWORLD_SEED),
    )  # fmt: skip


Baseline = Policy | np.ndarray | Sequence[Sequence[float]] | Callable[[Label], Any]
"""A policy; rows in the order of the log's labels; or a function of a state's label."""


def as_policy(baseline: Baseline | None, log: Log | Counts, smoothing: float = 0.0) -> Policy:
    """A baseline in any form as a policy over a log's labels; None is estimated from the log."""
    if baseline is None:
        return estimate_baseline(log, smoothing=smoothing)
    if isinstance(baseline, Policy):
        return baseline
    if callable(baseline):
        rows = [_row(baseline(label), label, log.actions) for label in log.states.labels]
        return Policy(rows, log.states, log.actions, "baseline")
    return Policy(baseline, log.states, log.actions, "baseline")


def _row(given: Any, state: Label, actions: Vocabulary) -> list[float]:
    """A function's answer for a state: a mapping from actions, or numbers in their order."""
    if not isinstance(given, Mapping):
        return list(given)
    unknown = [label for label, p in given.items() if label not in actions.index and p > 0]
    if unknown:
        raise InputError(
            f"baseline plays {some(unknown)} in state {state!r}, which the log never does: give a "
            "Policy with labels for all actions"
        )
    return [given.get(label, 0.0) for label in actions.labels]


def estimate_baseline(log: Log | Counts, *, smoothing: float = 0.0) -> Policy:
    """π̂_b(a|x) = (N(x, a) + k) / (N(x) + k|A|): the policy that the log shows (Simão et al. 2020).

    `smoothing` k ≥ 0 spreads pseudo-counts over all actions; with 0, an action never taken in a
    state is unavailable there. States never acted in get a uniform row.
    """
    number("smoothing", smoothing, 0, np.inf, "[)")
    counts = log if isinstance(log, Counts) else Counts.from_log(log)
    mass = counts.pairs + smoothing
    total = mass.sum(axis=1, keepdims=True)
    probs = np.where(total > 0, mass / np.where(total > 0, total, 1), 1 / mass.shape[1])
    return Policy(probs, counts.states, counts.actions)
