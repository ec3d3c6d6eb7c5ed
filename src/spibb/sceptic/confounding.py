"""How strong must a hidden cause be to undo a change? The marginal sensitivity model.

The log's policy may have known more than the log's columns: a doctor sees the patient. Then actions
look good because they were given to those who were well. Suppose that the odds of the true
probability of each action, given everything, are within a factor Γ of those of the baseline's (Tan
2006). Then the weight 1/e of a visit with action a lies between

    1 + (1/e − 1)/Γ  and  1 + (1/e − 1)·Γ,            e = π_b(a|x), as recorded or given,

and Q(x, a) = Σ w_i G_i / Σ w_i over the visits i with action a, for some such weights (Zhao, Small
& Bhattacharya 2019). It is smallest if the lowest returns have the largest weights: sorted by
return, all visits up to some place have the upper weight and the others the lower one, so that the
minimum over places is exact. The advantage of a change, Σ_a (π − π_b)(a|x) Q(x, a), is at least
its value with each Q at its worse end; Γ* is where that reaches 0. Γ* = 1 needs no hidden cause.

Γ* leaves chance out: these are point estimates with the log's own returns G (an episode that was
cut is completed by the model's value). An action that was never taken in a state counts as the mean
return there. A verdict needs more than an estimate above 0, and falls before: at the Γ where the
least gain of all changes no longer exceeds `ONE_SIDED_95` of its standard errors (those of single
changes); or where the least advantage of an accepted change, less the distance of its tested
advantage from its lower limit, reaches 0. The errors are those without a hidden cause.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spibb.algorithms.problem import Problem
from spibb.bisection import halved
from spibb.bounds.normal import ONE_SIDED_95
from spibb.change_certificate import ChangeTest
from spibb.episodes.departures import (
    changed_states,
    completed_returns,
    single_departures,
    values_where_seen,
)
from spibb.frozen import Frozen
from spibb.labels import Label
from spibb.log import Log
from spibb.policy import Policy

LARGEST = 1000.0
"""Γ beyond this is shown as "more than"."""
HALVINGS = 30
"""Of the range of log Γ: far more digits than are shown."""


@dataclass(frozen=True)
class ChangeOdds:
    """A changed state, its visits, the advantage that the log shows, and Γ* of it."""

    state: Label
    visits: int
    advantage: float
    gamma: float


@dataclass(frozen=True)
class Confounding:
    """Γ* of all changes together, each weighed by its discounted visits, and of each alone.

    `gamma_of_verdict` is the Γ at which what the verdict asks of the changes is no longer met; 1 if
    chance alone explains them.
    """

    gamma: float
    gamma_of_verdict: float
    advantage: float
    changes: tuple[ChangeOdds, ...]


@dataclass(frozen=True, eq=False)
class SortedVisits(Frozen):
    """Visits of a state with one action, by rising return g [n], with 1/e − 1 [n]."""

    g: np.ndarray
    odds: np.ndarray

    @classmethod
    def of(cls, g: np.ndarray, e: np.ndarray) -> SortedVisits:
        """Sort returns and probabilities [n]."""
        order = np.argsort(g, kind="stable")
        return cls(g[order], 1 / e[order] - 1)

    def least(self, gamma: float) -> float:
        """The smallest weighted mean of the returns that Γ allows."""
        low, high = 1 + self.odds / gamma, 1 + self.odds * gamma
        weight = np.append(0.0, np.cumsum(high)) + np.append(np.cumsum(low[::-1])[::-1], 0.0)
        total = np.append(0.0, np.cumsum(high * self.g)) + np.append(
            np.cumsum((low * self.g)[::-1])[::-1], 0.0
        )
        return float((total / weight).min())

    def most(self, gamma: float) -> float:
        """The largest."""
        return -SortedVisits(-self.g[::-1], self.odds[::-1]).least(gamma)


LeastGain = Callable[[float], float]
"""What is gained at least, as a function of Γ; it falls."""


class _ChangedState(NamedTuple):
    """A changed state: how often it is visited per episode, its visits, its least advantage."""

    often: float
    visits: int
    bound: LeastGain


def confounding(
    problem: Problem, policy: Policy, accepted: Sequence[ChangeTest] = ()
) -> Confounding | None:
    """Γ* of every change of a policy and of all; None where nothing changes or no log is kept.

    `accepted` are the tests that the verdict rests on, if it rests on tests.
    """
    log, baseline, discount = problem.log, problem.baseline.probs, problem.discount
    moved = changed_states(policy.probs, baseline)
    if log is None or not moved.any():
        return None
    q, v = values_where_seen(problem.counts, baseline, discount)
    g = completed_returns(log, v, discount)
    e = log.taken_probs(baseline)
    if not (e > 0).all():
        return None
    often = _discounted_visits(log, discount)
    order = np.argsort(log.state, kind="stable")
    starts = np.searchsorted(log.state[order], np.arange(len(log.states) + 1))
    found: dict[Label, _ChangedState] = {}
    for s in np.flatnonzero(moved & (often > 0)).tolist():
        rows = order[starts[s] : starts[s + 1]]
        shift = policy.probs[s] - baseline[s]
        bound = _advantage(shift, g[rows], e[rows], log.action[rows])
        found[log.states[s]] = _ChangedState(float(often[s]), len(rows), bound)
    if not found:
        return None
    changes = [
        ChangeOdds(label, one.visits, one.bound(1.0), threshold(one.bound))
        for label, one in found.items()
    ]
    total = _sum([(one.often, one.bound) for one in found.values()])
    if accepted:
        of_verdict = min(threshold(_tested(test, found)) for test in accepted)
    else:
        error = single_departures(log, policy.probs, baseline, q, discount).standard_error
        of_verdict = threshold(_less(total, ONE_SIDED_95 * error))
    return Confounding(
        threshold(total), of_verdict, total(1.0),
        tuple(sorted(changes, key=lambda c: (c.gamma, -c.visits))),
    )  # fmt: skip


def _sum(parts: Sequence[tuple[float, LeastGain]]) -> LeastGain:
    return lambda gamma: sum(weight * bound(gamma) for weight, bound in parts)


def _less(bound: LeastGain, margin: float) -> LeastGain:
    return lambda gamma: bound(gamma) - margin


def _tested(test: ChangeTest, found: Mapping[Label, _ChangedState]) -> LeastGain:
    """The least advantage per visit of what was tested together, less what chance may have added:
    the distance of the tested advantage from its lower limit."""
    states = [found[change.state] for change in test.changes if change.state in found]
    visits = sum(one.visits for one in states)
    mean = _sum([(one.visits / visits, one.bound) for one in states])
    return _less(mean, test.advantage - test.lower_bound)


def _discounted_visits(log: Log, discount: float) -> np.ndarray:
    """Σ_t γ^t P(x_t = x) of every state [S], as the episodes show it."""
    visits = np.bincount(log.state, discount**log.step, len(log.states))
    return np.asarray(visits / log.n_episodes)


def _advantage(shift: np.ndarray, g: np.ndarray, e: np.ndarray, action: np.ndarray) -> LeastGain:
    """The least advantage Σ_a shift(a) Q(a) of a state as a function of Γ."""
    centre = float(g.mean())
    parts = [
        (float(shift[a]), SortedVisits.of(g[action == a] - centre, e[action == a]))
        for a in np.flatnonzero(shift).tolist() if (action == a).any()
    ]  # fmt: skip

    def least(gamma: float) -> float:
        return sum(d * (v.least(gamma) if d > 0 else v.most(gamma)) for d, v in parts)

    return least


def threshold(bound: LeastGain) -> float:
    """Γ*: where a falling bound reaches 0; 1 if it is not positive, infinite beyond `LARGEST`."""
    if not bound(1.0) > 0:
        return 1.0
    if bound(LARGEST) > 0:
        return math.inf
    low, _ = halved(
        lambda log_gamma: bound(math.exp(log_gamma)) > 0, 0.0, math.log(LARGEST), HALVINGS
    )
    return math.exp(low)
