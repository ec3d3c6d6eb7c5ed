"""Rehearsals: the same algorithm on logs like this one, drawn from worlds that fit it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from spibb.algorithms.base import Algorithm
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Problem
from spibb.assurance.posterior import Belief
from spibb.episodes.departures import changed_states
from spibb.errors import InputError
from spibb.evaluate import exact_value
from spibb.log import Log
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.simulate import simulate

REHEARSALS = 200
"""At most; fewer where `SECONDS` are over."""
SECONDS = 10.0
"""No rehearsal begins later than this."""
LARGEST = 300_000
"""Transitions of a world up to which it is drawn."""
TINY = 1e-12
"""Probabilities below this are rounding, and no outcome."""
SAME_GAIN = 1e-9
"""Gains that differ by less, in units of the largest value, are equal."""


@dataclass(frozen=True)
class Rehearsal:
    """Of `done` drawn worlds, in how many the new policy was truly worse than the baseline.

    `kept` times no state changed. `gain` is the mean true gain, `worst` the lowest. `refusal` says
    why there are none.
    """

    done: int
    worse: int
    kept: int
    gain: float
    worst: float
    refusal: str | None = None

    @classmethod
    def refused(cls, reason: str) -> Rehearsal:
        """No rehearsal was possible."""
        return cls(0, 0, 0, 0.0, 0.0, reason)


def rehearse(
    result: Improvement, rng: np.random.Generator, *, times: int = REHEARSALS,
    seconds: float = SECONDS,
) -> Rehearsal:  # fmt: skip
    """Draw a world given the log, a log of as many episodes from it, improve, and look.

    1. Worlds are those of the posterior (`assurance.posterior.Belief`). Rewards of a drawn world
       take two values around the mean of each pair, with the spread that the log shows.
    2. Episodes are cut where the log's longest ended. The baseline counts as known.
    3. The policy is judged exactly, in the world that made its log.
    """
    problem = result.problem.in_own_order()
    log, (n_states, n_actions) = problem.log, problem.counts.shape
    if log is None:
        return Rehearsal.refused("only counts of the log were kept")
    if n_states * n_actions * n_states > LARGEST:
        return Rehearsal.refused(f"{n_states} states are too many to draw whole worlds")
    belief = Belief.of(problem.counts, problem.baseline, problem.discount)
    longest, horizon = int(log.lengths.max()), getattr(result.algorithm, "horizon", None)
    gains: list[float] = []
    kept, end = 0, time.monotonic() + seconds
    while len(gains) < times and time.monotonic() < end:
        world = _world(problem, *belief.world(rng))
        drawn = simulate(world, problem.baseline, log.n_episodes, rng=rng, max_steps=longest)
        if longest == horizon:  # declared: what reaches it has ended, and was not cut
            drawn = replace(
                drawn, terminated=drawn.terminated | drawn.truncated,
                truncated=np.zeros_like(drawn.truncated),
            )  # fmt: skip
        try:
            policy = _improved(result.algorithm, problem, drawn)
        except InputError as error:
            return Rehearsal.refused(f"{result.algorithm.name} refuses drawn logs ({error})")
        kept += not changed_states(policy.probs, problem.baseline.probs).any()
        gains.append(exact_value(world, policy) - exact_value(world, problem.baseline))
    found = np.array(gains or [0.0])
    slack = SAME_GAIN * float(np.abs(problem.counts.reward_range).max()) / (1 - problem.discount)
    return Rehearsal(
        len(gains), int((found < -slack).sum()), kept, float(found.mean()), float(found.min())
    )


def _improved(algorithm: Algorithm, problem: Problem, log: Log) -> Policy:
    """The algorithm's result for a drawn log, which may exceed limits that are not needed."""
    v_max = problem.v_max if problem.v_max_given and algorithm.needs_limits else None
    fresh = Problem.from_log(log, problem.baseline, discount=problem.discount, v_max=v_max)
    return algorithm.improve(fresh).policy.aligned(problem.states, problem.actions)


def _world(problem: Problem, p: np.ndarray, mean: np.ndarray) -> MDP:
    """The MDP of transitions [S, A, S] and mean rewards [S, A]; each reward is one of two."""
    low, high = problem.counts.reward_range
    mean = np.clip(mean, low, high)
    spread = np.minimum(_spreads(problem), np.minimum(mean - low, high - mean))
    s, a, follows = np.nonzero(p > TINY)
    ends = np.maximum(1 - p.sum(axis=2), 0.0)
    x, b = np.nonzero(ends > TINY)
    state, action = np.concatenate([s, x]), np.concatenate([a, b])
    prob = np.concatenate([p[s, a, follows], ends[x, b]])
    successor = np.concatenate([follows, np.zeros(len(x), dtype=follows.dtype)])
    ended = np.repeat([False, True], [len(s), len(x)])
    r, d = mean[state, action], spread[state, action]
    starts = problem.counts.starts / problem.counts.starts.sum()
    return MDP.from_outcomes(
        np.tile(state, 2), np.tile(action, 2), np.tile(prob / 2, 2), np.tile(successor, 2),
        np.concatenate([r - d, r + d]), np.tile(ended, 2), initial=starts,
        n_actions=p.shape[1], discount=problem.discount, states=problem.states,
        actions=problem.actions,
    )  # fmt: skip


def _spreads(problem: Problem) -> np.ndarray:
    """Standard deviation of the rewards of each pair [S, A]; that of all where it was not seen."""
    counts = problem.counts
    pair, n = counts.pair_of_outcome, counts.n.astype(float)
    mean = counts.reward_sum / counts.n
    total = np.bincount(pair, n, minlength=counts.pairs.size)
    seen = np.maximum(total, 1.0)
    centre = np.bincount(pair, n * mean, minlength=counts.pairs.size) / seen
    squares = counts.reward_scatter * counts.unit**2 + n * (mean - centre[pair]) ** 2
    each = np.sqrt(np.bincount(pair, squares, minlength=counts.pairs.size) / seen)
    overall = float(np.sqrt(squares.sum() / n.sum()))
    return np.where(total > 0, each, overall).reshape(counts.shape)
