"""Which changes the choosing episodes suggest, and how each is best tested on the others.

All changes and windows of all states are predicted together, as arrays; `planned_tests` says
what is tested, and `window_sums` sums it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spibb.bounds.betting import MOST
from spibb.bounds.normal import normal_cdf
from spibb.changes.planned_tests import PlannedTest
from spibb.changes.window_sums import Departing, Passages
from spibb.counts import Counts
from spibb.episodes.value_limits import narrowed
from spibb.episodes.visits import ReturnBounds, Visits
from spibb.log import Log

TRUSTED = 3
"""Visits that a pair needs before its mean is worth a look."""
COUNTED = (1, 2, 4, 8)
"""Numbers m of visits per episode that are tried."""
BLOCKS = np.array([2, 4, 8, 16])
"""Sizes of the blocks that are tried where the baseline is not known."""
SHRINKAGE = 0.25
"""Standard errors by which a predicted advantage is lowered."""
SETS = 3
"""Sets of actions per state that are looked at closely."""
TYPICAL_FAMILY = 5
"""Number of tests that a single one expects to share δ with."""
FOR_VALUES = 0.1
"""The share of δ for limits of the values at which episodes were cut, if any were."""
AT_ONCE = 1 << 23
"""Cells of sets of actions that are looked at together."""
NOTHING = 1e-9
"""Avoiding actions with less mass changes nothing that can be tested."""
INVISIBLE = 1e-100
"""Values this small, in units of the span of returns, are never evidence."""
SAME_RETURN = 1e-12
"""Relative to the limits of returns: values that differ by less are the same."""


Valuation = Callable[[Counts, np.ndarray, float], tuple[np.ndarray, np.ndarray]]
"""Q [S, A] and V [S] in M̂ of a policy [S, A] at a discount: `departures.values_where_seen`, or the
same without a solver."""


class Changes(NamedTuple):
    """Changes [C]: the `state`, the actions `kept` [C, A], what is then `played` [C, A], the `mass`
    of the kept actions under π_b, the predicted advantage, `lowered` by a share of its `error`."""

    state: np.ndarray
    kept: np.ndarray
    played: np.ndarray
    mass: np.ndarray
    lowered: np.ndarray
    error: np.ndarray

    def among(self, which: np.ndarray) -> Changes:
        """Some of them."""
        return Changes(*(part[which] for part in self))


class Prospects(NamedTuple):
    """What each change's test is predicted to bring, by window [C, W]; see `PlannedTest`.

    `promise` is power times advantage, −∞ where the test has no prospect.
    """

    visiting: np.ndarray
    second: np.ndarray
    bet: np.ndarray
    block: np.ndarray
    evidence: np.ndarray
    power: np.ndarray
    promise: np.ndarray


@dataclass(frozen=True, eq=False)
class Chooser:
    """What the choosing episodes say: model values, visits, and how many more will judge.

    `likely` are the visits with cut rests as the model values them. `scale` is the number of
    judging per choosing episode; `known` says whether π_b is, and `by_row` whether each row has its
    own. `baseline` [S, A] is π_b of the actions that may be kept, else 0. At a δ (`at`), `visits`
    have limits such as the judging episodes may give them at the price of `spent`, and `delta` is
    left for the tests.
    """

    baseline: np.ndarray
    q: np.ndarray
    v: np.ndarray
    counts: np.ndarray
    visits: Visits
    likely: Visits
    noise: np.ndarray
    bounds: ReturnBounds
    scale: float
    known: bool
    by_row: bool
    delta: float = 1.0
    spent: float = 0.0

    @classmethod
    def of(cls, log: Log, baseline: np.ndarray, discount: float, bounds: ReturnBounds,
           scale: float, known: bool, by_row: bool = False,
           recorded: np.ndarray | None = None, *, values: Valuation) -> Chooser:  # fmt: skip
        """Estimate the model of the choosing episodes and π_b's values in it.

        `recorded` [S, A] is what is known of π_b, if that is less than all.
        """
        counts = Counts.from_log(log)
        q, v = (
            np.clip(found, bounds.low, bounds.high) for found in values(counts, baseline, discount)
        )
        visits = Visits.of(log, discount, bounds, shared=known)
        likely = visits.valued(v)
        sure = baseline if recorded is None else np.where(counts.pairs > 0, recorded, 0.0)
        return cls(sure, q, v, counts.pairs, visits, likely, _noise(likely, q), bounds, scale,
                   known, by_row)  # fmt: skip

    def at(self, delta: float) -> Chooser:
        """The same for tests at level δ, part of which is spent where episodes were cut."""
        if not self.visits.lacks_values:
            return replace(self, delta=delta)
        spent = FOR_VALUES * delta
        limited = narrowed(self.visits, self.bounds, self.noise, spent)
        visits = _expected(limited, self.v, self.scale)
        return replace(self, visits=visits, delta=delta - spent, spent=spent)

    @property
    def rounding(self) -> float:
        """Differences below this are rounding."""
        return SAME_RETURN * max(abs(self.bounds.low), abs(self.bounds.high))

    @property
    def centre(self) -> np.ndarray:
        """V̂ [S]."""
        return np.full(len(self.v), self.bounds.low) if self.by_row else self.v

    def plans(self) -> list[PlannedTest]:
        """The best plan of every state that has one, the strongest evidence first."""
        passages = Passages(self.visits, COUNTED if self.known else COUNTED[:1])
        found = [self._promising(states, passages) for states in self._blocks()]
        changes = Changes(*(np.concatenate(parts) for parts in zip(*found)))
        if not len(changes.state):
            return []
        closer = self._prospects(changes, passages, slice(None))
        return self._chosen(changes, passages, closer)

    @cached_property
    def _trusted(self) -> np.ndarray:
        """bool [S, A]: the actions whose means are worth a look."""
        often = self.counts.sum(axis=1, keepdims=True) >= TRUSTED
        return np.asarray((self.baseline > 0) & (self.counts >= TRUSTED) & often)

    def _blocks(self) -> list[np.ndarray]:
        """The states that have a trusted action, in parts whose sets fit into memory."""
        n_trusted = self._trusted.sum(axis=1)
        states = np.flatnonzero(n_trusted)
        before = np.cumsum((n_trusted[states] + 1) * self.baseline.shape[1]) // AT_ONCE
        return np.split(states, np.flatnonzero(np.diff(before)) + 1)

    def _promising(self, states: np.ndarray, passages: Passages) -> Changes:
        """The changes of some states that promise most by one visit, at any step."""
        changes = self._predicted(*self._sets(states))
        if not len(changes.state):
            return changes
        at_first = len(passages.k) - len(passages.counted)
        rough = self._prospects(changes, passages, slice(at_first, at_first + 1))
        return changes.among(_best_of_each(changes.state, rough.promise[:, 0]))

    def _sets(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """States [C], and sets to keep in them [C, A]: all but the worst trusted actions, for every
        number of them; the best. All `states` have a trusted action."""
        playable, trusted = self.baseline[states] > 0, self._trusted[states]
        ranks = np.round((self.q - self.v[:, None])[states] / self.rounding)
        order = np.argsort(np.where(trusted, ranks, np.inf), axis=1, kind="stable")
        place = np.argsort(order, axis=1)
        n_trusted, size = trusted.sum(axis=1, keepdims=True), self.baseline.shape[1]
        avoided = np.arange(1, size)
        row, number = np.nonzero(
            np.concatenate(
                [avoided < n_trusted, playable.sum(axis=1, keepdims=True) > n_trusted], axis=1
            )
        )
        worst = trusted[row] & (place[row] <= number[:, None])
        best = place[row] == n_trusted[row] - 1
        alone = (number == size - 1)[:, None]
        return states[row], np.where(alone, best, playable[row] & ~worst)

    def _predicted(self, state: np.ndarray, kept: np.ndarray) -> Changes:
        """The changes whose advantage is predicted to be positive."""
        p = self.baseline[state]
        mass = np.where(kept, p, 0.0).sum(axis=1)
        played = np.where(kept, p / mass[:, None], 0.0)
        moved = played - p
        gain = (moved * (self.q - self.v[:, None])[state]).sum(axis=1)
        spread = (moved**2 / np.maximum(self.counts, 1)[state]).sum(axis=1)
        error = np.sqrt(self.noise[state] * spread)
        lowered = gain - SHRINKAGE * error
        some = np.flatnonzero((lowered > self.rounding) & (mass <= 1 - NOTHING))
        return Changes(state, kept, played, mass, lowered, error).among(some)

    def _prospects(self, changes: Changes, passages: Passages, windows: slice) -> Prospects:
        """Predict the tests of changes."""
        state, mass = changes.state, changes.mass[:, None]
        ratio = np.where(changes.kept, 1 / mass - 1, -1.0)
        departing = Departing(
            state, ratio, self.centre[state], changes.played if self.by_row else None
        )
        sums = passages.sums(departing, self.likely, windows)
        episodes, times = (each[windows][:, state].T for each in passages.numbers)
        n = np.maximum(episodes, 1)
        per_episode = times / n
        prior = self.noise[state][:, None] * (1 / mass - 1) * per_episode
        second = (sums.squares + 2 * prior) / (n + 2)
        # of shared rests chance decides, and that falls with the root of the number of episodes
        hurt = sums.hurt / n / (math.sqrt(self.scale) if self.known else 1.0)
        mean = changes.lowered[:, None] * per_episode - hurt
        hopeful = (episodes > 0) & (mean > 0) & (second > INVISIBLE**2)
        mean, second = np.where(hopeful, mean, 1.0), np.where(hopeful, second, 1.0)
        counted = np.tile(passages.counted, len(passages.lasts.T))[windows]
        bet, block, evidence = (
            self._with_bet(changes, n, counted, mean, second)
            if self.known
            else self._with_block(changes, n, mean, second)
        )
        unsure = bet * np.where(block > 0, mass, 1.0) * self.scale * n
        power = self._power(evidence, unsure * changes.error[:, None] * per_episode)
        promise = np.where(hopeful, power * changes.lowered[:, None], -np.inf)
        return Prospects(n, second, bet, block, evidence, power, promise)

    def _with_bet(
        self, changes: Changes, n: np.ndarray, counted: np.ndarray, mean: np.ndarray,
        second: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
        """The bet of `betting.growth`, no block, and the evidence [C, W]."""
        centre, low, high = self.centre[changes.state], self.bounds.low, self.bounds.high
        loss = np.maximum(high - centre, (1 / changes.mass - 1) * (centre - low))
        bet = np.minimum(mean / second, MOST / (loss[:, None] * counted))
        per_visit = bet * mean - bet**2 * second / 2
        return bet, np.zeros(bet.shape, dtype=np.int64), self.scale * n * per_visit

    def _with_block(
        self, changes: Changes, n: np.ndarray, mean: np.ndarray, second: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The bet, the size of blocks and the evidence [C, W]: Z is π_b(K) times the sum of b of
        the X, less its share 1/b."""
        mass, each = changes.mass[:, None, None], BLOCKS - 1.0
        z_mean, z_second = each * mass * mean[..., None], each * mass**2 * second[..., None]
        bet = np.minimum(z_mean / z_second, MOST / (BLOCKS / 4 * self.bounds.span))
        per_block = bet * z_mean - bet**2 * z_second / 2
        evidence = self.scale * n[..., None] / BLOCKS * per_block
        best = evidence.argmax(axis=2)[..., None]
        bet, evidence = (np.take_along_axis(a, best, axis=2)[..., 0] for a in (bet, evidence))
        any_ = evidence > 0
        return np.where(any_, bet, 0.0), np.where(any_, BLOCKS[best[..., 0]], 0), evidence * any_

    def _power(self, evidence: np.ndarray, unsure: np.ndarray) -> np.ndarray:
        """P(log e reaches log(5/δ)), log e being roughly normal around the evidence.

        Its variance is twice the evidence, and what is not known of the mean adds to it.
        """
        spread = np.sqrt(2 * evidence + unsure**2)
        wanted = math.log(TYPICAL_FAMILY / self.delta)
        return normal_cdf((evidence - wanted) / np.where(spread > 0, spread, 1.0))

    def _chosen(
        self, changes: Changes, passages: Passages, prospects: Prospects
    ) -> list[PlannedTest]:
        """The plan of each state that promises most."""
        window = prospects.promise.argmax(axis=1)
        promise = prospects.promise[np.arange(len(window)), window]
        best = _best_of_each(changes.state, promise, 1)
        plans = [self._plan(changes, passages, prospects, c, int(window[c])) for c in best.tolist()]
        return sorted(plans, key=lambda plan: (-plan.evidence, plan.state))

    def _plan(
        self, changes: Changes, passages: Passages, prospects: Prospects, c: int, w: int
    ) -> PlannedTest:
        state, counted, at = int(changes.state[c]), passages.counted, (c, w)
        return PlannedTest(
            state, changes.kept[c], changes.played[c], float(changes.mass[c]),
            float(self.centre[state]), counted[w % len(counted)],
            int(passages.lasts[state, w // len(counted)]), float(prospects.bet[at]),
            float(prospects.evidence[at]), float(changes.lowered[c]), int(prospects.visiting[at]),
            float(prospects.second[at]), float(prospects.power[at]), int(prospects.block[at]),
            self.by_row,
        )  # fmt: skip


def _best_of_each(state: np.ndarray, promise: np.ndarray, most: int = SETS) -> np.ndarray:
    """The most promising changes, up to a limit per state; the first of equal ones.

    Those without a prospect are left out.
    """
    order = np.lexsort((-promise, state))
    order = order[promise[order] > -np.inf]
    begin = np.searchsorted(state[order], state[order])
    return np.asarray(order[np.arange(len(order)) - begin < most])


def _noise(likely: Visits, q: np.ndarray) -> np.ndarray:
    """The variance of returns per state [S]."""
    numbers = np.diff(likely.starts)
    state = np.repeat(np.arange(len(q)), numbers)
    squares = (likely.low - q[state, likely.action]) ** 2
    per_state = np.bincount(state, weights=squares, minlength=len(q))
    return np.asarray((per_state + TRUSTED * squares.mean()) / (numbers + TRUSTED))


def _expected(visits: Visits, v: np.ndarray, scale: float) -> Visits:
    """The limits of values that `scale` times as many episodes will give: nearer to `v` [S]."""
    n, nearer = visits.n_states, 1 / math.sqrt(scale)
    least, most = (v + nearer * (ends[:n] - v) for ends in (visits.least, visits.most))
    return visits.within(least, most)
