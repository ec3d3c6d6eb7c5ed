"""Whether what an algorithm learns from some episodes gains in others.

A policy looks good in the episodes that chose it. In others, a single departure X has the mean
A^{π_b}(x, π) (`episodes.departures`), whatever chose π: where all actions are alike, the sum of all
X over its standard error is about normal. So both halves train and the other one tests, and the
mean of the two z is compared with a normal quantile. They are not independent, and their mean has
at most the variance of one.

It asks less than Σ z² of the whole log, which is compared with the best of all rows of all states:
an algorithm that considers many actions in many states, but changes them alike, is not charged for
what it might have done.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spibb.algorithms.base import Algorithm
from spibb.algorithms.problem import Problem
from spibb.counts import Counts
from spibb.episodes.departures import Departures, single_departures, values_where_seen
from spibb.errors import InputError
from spibb.log import Log
from spibb.splits import shuffled_by_content

FEWEST_EPISODES = 50
"""In both halves together."""


def crossed(algorithm: Algorithm, problem: Problem) -> float | None:
    """The mean z of both halves; None where there are too few episodes, or nothing can be learned
    from half of them."""
    if problem.log is None or problem.n_episodes < FEWEST_EPISODES:
        return None
    try:
        one, other = cross_fitted_departures(algorithm, problem, 2)
    except InputError:
        return None
    return (one.z + other.z) / 2


def cross_fitted_departures(algorithm: Algorithm, problem: Problem, parts: int) -> list[Departures]:
    """What single departures gain in each part of a problem's log, if the other parts train."""
    problem = problem.in_own_order()
    assert problem.log is not None
    log, orders = problem.log, np.array_split(shuffled_by_content(problem.log, seed=0), parts)
    return [
        _departures(algorithm, problem, log.episodes(np.concatenate(orders[:k] + orders[k + 1 :])),
                    log.episodes(orders[k]))
        for k in range(parts)
    ]  # fmt: skip


def _departures(algorithm: Algorithm, problem: Problem, training: Log, testing: Log) -> Departures:
    part = replace(problem, counts=Counts.from_log(training), log=training)
    policy, baseline = algorithm.improve(part).policy.probs, problem.baseline.probs
    q, _ = values_where_seen(part.counts, baseline, problem.discount)
    return single_departures(testing, policy, baseline, q, problem.discount)
