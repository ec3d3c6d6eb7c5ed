"""What single departures from the behaviour gain, by the log's own episodes.

Importance weights of whole episodes are products, and after twenty steps they rest on one episode.
A single ratio does not: at a visit of x_t with action a_t and return G_t from there on,

    X_t = (π(a_t|x_t)/π_b(a_t|x_t) − 1)·(G_t − V̂(x_t)),  E[X_t | x_t] = A^{π_b}(x_t, π),

whatever V̂ is. The noise of later actions is taken out: G_t stands for the return less
Σ_{u>t} γ^{u−t} (Q̂(x_u, a_u) − V̂(x_u)), whose terms have mean 0 given x_u if V̂ = Σ_a π_b Q̂,
whatever Q̂ is (a control variate). Where the log records probabilities p that depend on more than
the state, the terms are those times π_b(a_u|x_u)/p_u, and have mean 0 given all that p depends on.
Q̂ comes from the same episodes: where it rests on a few visits it follows their noise, which is then
missing in each X and not in their sum, so that such states are left alone (`ENOUGH`).
D = Σ_t γ^t X_t of an episode has the mean
Σ_t γ^t E[A^{π_b}(x_t, π)]: the gain of all changes to the first order, each made alone while π_b
decides the rest. Where it is negative, some change is worse than what it replaces (policy
improvement theorem). A wrong model makes D noisy, not wrong, except for what follows the cut of an
episode.

A policy that was fitted to the same episodes looks good in them even where all actions are alike.
With z_x = Σ X/√(Σ X²) of the visits of a state, summed by episode, z_x² is at most χ² distributed
then, with one degree of freedom per action but one, whichever row the log made look best there
(Scheffé; for large samples). Where the log also chose which states change, Σ_x z_x² over these is
at most that of as many of the largest (`bounds.chance`). Σ X² is raised by what the few visits of a
state may not show of its noise (`noise`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from spibb.counts import Counts
from spibb.episodes.noise import Noise
from spibb.estimate import estimate_mdp
from spibb.evaluate import standard_error
from spibb.log import Log, returns_to_go
from spibb.mdp import MDP
from spibb.solve import evaluate, unit_of

ALONE = "each made alone, then added up"
"""How the gain D of all changes to the first order is told apart from that of the policy."""
MOVED = 1e-9
"""Rows whose probabilities differ by less are the same."""
ENOUGH = 20
"""Visits of a state for each action taken there, from which Q̂ − V̂ holds little of their noise."""


@dataclass(frozen=True)
class Departures:
    """The mean of D over the episodes with its standard error.

    `effective_episodes` is Kish's (ΣR)²/ΣR², R being the sum of an episode's ratios in states that
    change: how many episodes the estimate rests on. `surprise` is Σ z² over the states that change,
    and `freedom` what it would be on average if all actions were alike. `z` is that of all changes
    together, ΣD/√ΣD²: about normal where other episodes than these chose them, and all actions are
    alike.
    """

    gain: float
    standard_error: float
    effective_episodes: float
    surprise: float
    freedom: int
    z: float


def changed_states(probs: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    """bool [..., S]: where policies [..., S, A] differ from another; the one definition of a
    changed decision."""
    return np.asarray(np.abs(probs - baseline).sum(axis=-1) / 2 > MOVED)


def values_where_seen(
    counts: Counts, baseline: np.ndarray, discount: float
) -> tuple[np.ndarray, np.ndarray]:
    """Q [S, A] and V [S] in M̂ of the baseline [S, A] without the pairs that the log never has.

    An action never seen in a state counts as the others do there.
    """
    seen = np.where(counts.pairs > 0, baseline, 0.0)
    mass = seen.sum(axis=1, keepdims=True)
    rows = np.where(mass > 0, seen / np.where(mass > 0, mass, 1.0), baseline)
    found = evaluate(estimate_mdp(counts, discount), rows)
    return np.where(counts.pairs > 0, found.q, found.v[:, None]), found.v


def typical_model(counts: Counts, discount: float) -> MDP:
    """M̂ in which a pair that the log never has is worth what the log earned from its state on.

    A model that corrects an estimate should be close, not pessimistic: its errors are multiplied by
    importance weights, which are themselves wrong where the behaviour's probabilities are
    estimated. A state in which the log never acts is worth the mean of the others.
    """
    mdp, n = estimate_mdp(counts, discount), counts.pairs
    acted = n.sum(axis=1) > 0
    rows = np.where(acted[:, None], n, 1.0)
    rows = rows / rows.sum(axis=1, keepdims=True)
    v = evaluate(mdp, rows).v
    if not acted.all():
        typical = v[acted].mean() if acted.any() else 0.0
        rewards = np.where(acted[:, None], mdp.rewards, typical)
        v = evaluate(replace(mdp, rewards=rewards), rows).v
    return replace(mdp, rewards=np.where(n > 0, mdp.rewards, v[:, None]))


def completed_returns(log: Log, values: np.ndarray, discount: float) -> np.ndarray:
    """G_t of every row [N]; what follows a cut is worth `values` [S] of the state reached.

    Where the successor of a last row is not known, that row is worth the value of its state.
    """
    return log.by_blocks(lambda part: _completed_returns(part, values, discount))


def _completed_returns(log: Log, values: np.ndarray, discount: float) -> np.ndarray:
    last = log.last_rows
    reached = log.next_state[last]
    beyond = np.where(
        reached >= 0,
        discount * values[np.maximum(reached, 0)],
        values[log.state[last]] - log.reward[last],
    )
    rest = np.repeat(np.where(log.terminated[last], 0.0, beyond), log.lengths)
    return returns_to_go(log, discount) + rest * discount ** (log.remaining - 1.0)


def single_departures(
    log: Log, policy: np.ndarray, baseline: np.ndarray, q: np.ndarray, discount: float
) -> Departures:
    """D of a policy [S, A] against the one that made the log, recorded or else `baseline` [S, A].

    `q` [S, A] is Q̂, in the log's codes like both policies.
    """
    q = _controlled(log, baseline, q)
    asked = _Asked(policy, baseline, q, discount, unit_of(log.reward), Noise(*policy.shape))
    parts = [_in_block(part, asked) for part in log.blocks()]
    gains = np.concatenate([part.gains for part in parts])
    weight = np.concatenate([part.weight for part in parts])
    squares = float((weight**2).sum())
    effective = float(weight.sum()) ** 2 / squares if squares > 0 else 0.0
    moved = changed_states(policy, baseline)[log.state]
    tried = np.zeros(policy.shape, dtype=bool)
    tried[log.state[moved], log.action[moved]] = True
    freedom = int(np.maximum(tried.sum(axis=1) - 1, 0).sum())
    lacking = asked.noise.lacking()
    surprise = _surprise(parts, lacking)
    error = standard_error(gains) * asked.unit
    spread = float(gains @ gains + lacking.sum())
    z = float(gains.sum()) / math.sqrt(spread) if spread > 0 else 0.0
    return Departures(float(gains.mean()) * asked.unit, error, effective, surprise, freedom, z)


def _controlled(log: Log, baseline: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Q̂ [S, A], and V̂ instead where a state has too few visits to tell its actions apart."""
    visits = np.bincount(log.pair, minlength=q.size).reshape(q.shape)
    enough = visits.sum(axis=1) >= ENOUGH * np.count_nonzero(visits, axis=1)
    v = (baseline * q).sum(axis=1)
    return np.where(enough[:, None], q, v[:, None])


class _Asked(NamedTuple):
    """Two policies and Q̂ [S, A], and the unit of X; `noise` is filled on the way."""

    policy: np.ndarray
    baseline: np.ndarray
    q: np.ndarray
    discount: float
    unit: float
    noise: Noise


class _Block(NamedTuple):
    """γ^t X_t, state and episode of the rows of some episodes that change, and sums [E] of them.

    `gains` are those of X, `weight` those of the ratios.
    """

    x: np.ndarray
    state: np.ndarray
    episode: np.ndarray
    gains: np.ndarray
    weight: np.ndarray


def _in_block(log: Log, asked: _Asked) -> _Block:
    episode = log.episode
    ratio = asked.policy[log.state, log.action] / log.taken_probs(asked.baseline)
    moved = changed_states(asked.policy, asked.baseline)[log.state]
    tilt = np.where(moved, ratio - 1, 0.0)
    off = asked.discount**log.step * (_ahead(log, asked) / asked.unit)
    asked.noise.add(log.state, log.action, off, tilt)
    x = tilt * off
    gains = np.bincount(episode, weights=x, minlength=log.n_episodes)
    weight = np.bincount(episode, weights=np.where(moved, ratio, 0.0), minlength=log.n_episodes)
    return _Block(x[moved], log.state[moved], episode[moved].astype(np.int32), gains, weight)


def _surprise(parts: Sequence[_Block], lacking: np.ndarray) -> float:
    """Σ_x (Σ_i x_i)²/(Σ_i x_i² + lacking) over the states whose sum is positive, i being
    episodes; `lacking` [S] is what the second sum may be short of."""
    total, squares = np.zeros_like(lacking), lacking.copy()
    for part in parts:
        if len(part.x):
            where, sums = _summed(part.x, part.state, part.episode)
            np.add.at(total, where, sums)
            np.add.at(squares, where, sums**2)
    good = (total > 0) & (squares > 0)
    return float((total[good] ** 2 / squares[good]).sum())


def _summed(x: np.ndarray, state: np.ndarray, episode: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States, and the sums of x of each with an episode that visits it.

    Rows come by episode: sorted by state, those of a pair stand together.
    """
    small = state.astype(np.uint16) if state.max() < 2**16 else state  # NumPy sorts these faster
    order = np.argsort(small, kind="stable")
    state, episode = state[order], episode[order]
    begins = np.append(True, (np.diff(state) != 0) | (np.diff(episode) != 0))
    return state[begins], np.bincount(np.cumsum(begins) - 1, weights=x[order])


def _ahead(log: Log, asked: _Asked) -> np.ndarray:
    """G_t − V̂(x_t) of every row [N], without the noise of later actions."""
    v = (asked.baseline * asked.q).sum(axis=1)
    chance = asked.q[log.state, log.action] - v[log.state]
    chance = chance * (asked.baseline[log.state, log.action] / log.taken_probs(asked.baseline))
    later = returns_to_go(replace(log, reward=chance), asked.discount) - chance
    return completed_returns(log, v, asked.discount) - v[log.state] - later
