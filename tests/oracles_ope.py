"""Slow transcriptions of the off-policy estimators, and a small simulator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spibb.log import Log
from spibb.mdp import MDP


def random_mdp(rng: np.random.Generator, n_states=4, n_actions=3, discount=0.9, end=0.25) -> MDP:
    """Random rewards in [0, 1] and dense random transitions; every pair ends with chance `end`."""
    transitions = rng.dirichlet(np.ones(n_states), (n_states, n_actions)) * (1 - end)
    x, a, y = (grid.reshape(-1) for grid in np.indices(transitions.shape))
    paid = rng.random((n_states, n_actions))
    over_x, over_a = (grid.reshape(-1) for grid in np.indices(paid.shape))
    return MDP.from_outcomes(
        np.concatenate([x, over_x]),
        np.concatenate([a, over_a]),
        np.concatenate([transitions.reshape(-1), np.full(paid.size, end)]),
        np.concatenate([y, np.zeros(paid.size, dtype=int)]),
        np.concatenate([paid[x, a], paid[over_x, over_a]]),
        np.concatenate([np.zeros(len(x), dtype=bool), np.ones(paid.size, dtype=bool)]),
        initial=rng.dirichlet(np.ones(n_states)),
        n_actions=n_actions,
        discount=discount,
    )


def dense_rows(mdp: MDP) -> np.ndarray:
    """P [S, A, S]."""
    p = np.zeros((mdp.rewards.size, mdp.shape[0]))
    for pair in range(mdp.rewards.size):
        for k in range(mdp.indptr[pair], mdp.indptr[pair + 1]):
            p[pair, mdp.successors[k]] += mdp.probs[k]
    return p.reshape(*mdp.shape, mdp.shape[0])


def exact_values(mdp: MDP, pi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Q [S, A] and V [S] of a policy by a linear solve."""
    p = dense_rows(mdp)
    chain, paid = np.einsum("sa,sat->st", pi, p), (pi * mdp.rewards).sum(axis=1)
    v = np.linalg.solve(np.eye(len(pi)) - mdp.discount * chain, paid)
    return mdp.rewards + mdp.discount * p @ v, v


def rho(mdp: MDP, pi: np.ndarray) -> float:
    """ρ(π)."""
    return float(mdp.initial @ exact_values(mdp, pi)[1])


def simulate(mdp: MDP, pi: np.ndarray, n: int, rng: np.random.Generator, cap: int = 1_000) -> Log:
    """A log of n episodes, all walked side by side; a walk of `cap` steps is cut."""
    p, (n_states, n_actions) = dense_rows(mdp), mdp.shape
    outcomes = np.cumsum(np.concatenate([p, 1 - p.sum(axis=2, keepdims=True)], axis=2), axis=2)
    acts, alive, columns = np.cumsum(pi, axis=1), np.arange(n), []
    state = np.searchsorted(np.cumsum(mdp.initial), rng.random(n), side="right")
    for step in range(cap):
        action = (acts[state] < rng.random(len(state))[:, None]).sum(axis=1).clip(0, n_actions - 1)
        following = (outcomes[state, action] < rng.random(len(state))[:, None]).sum(axis=1)
        ended = following >= n_states
        columns.append(
            (alive, np.full(len(alive), step), state, action, mdp.rewards[state, action],
             np.where(ended, 0, following), ended)
        )  # fmt: skip
        alive, state = alive[~ended], following[~ended]
        if len(alive) == 0:
            break
    episode, step, x, a, r, y, end = (np.concatenate(column) for column in zip(*columns))
    return Log.from_arrays(
        x, a, r, y, end, episode_id=episode, step=step, n_states=n_states, n_actions=n_actions
    )


@dataclass(frozen=True)
class Episode:
    """One episode for the slow estimators: cumulative weights and rewards by step."""

    w: list[float]
    r: list[float]
    d: list[float]
    v0: float
    tail: float


def unroll(log: Log, pi, mu, discount, q, v, complete=False) -> list[Episode]:
    """Walk every episode row by row; `mu` [N] are propensities, `complete` the rule for cuts."""
    found = []
    for begin, end in zip(log.episode_starts[:-1], log.episode_starts[1:]):
        weight, w, r, d, tail = 1.0, [], [], [], 0.0
        for j in range(begin, end):
            x, a, y = log.state[j], log.action[j], log.next_state[j]
            weight *= pi[x, a] / mu[j]
            cut = bool(log.truncated[j])
            ahead = v[y] if y >= 0 and (not cut or complete) else 0.0
            w.append(weight)
            r.append(float(log.reward[j]))
            d.append(float(log.reward[j] + discount * ahead - q[x, a]))
            tail = discount * ahead if cut else 0.0
        r[-1] += tail
        found.append(Episode(w, r, d, float(v[log.state[begin]]), tail))
    return found


def slow_is(episodes, discount):
    return [e.w[-1] * sum(discount**t * r for t, r in enumerate(e.r)) for e in episodes]


def slow_pdis(episodes, discount):
    return [sum(discount**t * w * r for t, (w, r) in enumerate(zip(e.w, e.r))) for e in episodes]


def slow_dr(episodes, discount):
    return [
        e.v0 + sum(discount**t * w * d for t, (w, d) in enumerate(zip(e.w, e.d))) for e in episodes
    ]


def slow_wis(episodes, discount, times):
    total = sum(m * e.w[-1] for m, e in zip(times, episodes))
    return sum(m * x for m, x in zip(times, slow_is(episodes, discount))) / total


def _normalised(episodes, discount, times, series):
    value = 0.0
    for t in range(max(len(e.w) for e in episodes)):
        total = sum(m * e.w[min(t, len(e.w) - 1)] for m, e in zip(times, episodes))
        earned = sum(
            m * e.w[t] * getattr(e, series)[t] for m, e in zip(times, episodes) if t < len(e.w)
        )
        value += discount**t * earned / total
    return value


def slow_wpdis(episodes, discount, times):
    return _normalised(episodes, discount, times, "r")


def slow_wdr(episodes, discount, times):
    start = sum(m * e.v0 for m, e in zip(times, episodes)) / sum(times)
    return start + _normalised(episodes, discount, times, "d")


def slow_bernstein(x, c, delta):
    """The formula of appendix B.2, with its double sum."""
    n = len(x)
    z = [min(a, b) / b for a, b in zip(x, c)]
    log_term = np.log(2 / delta)
    double = sum((a - b) ** 2 for a in z for b in z)
    inside = sum(z) - 7 * n * log_term / (3 * (n - 1)) - np.sqrt(log_term / (n - 1) * double)
    return inside / sum(1 / b for b in c)
