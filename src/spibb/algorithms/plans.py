"""Which changes `certified` tests, and how: all of it chosen on the choosing episodes.

A change is a state and a set of actions to be avoided there; the kept actions K share the avoided
mass in proportion, π(a|s) = π_b(a|s)/π_b(K|s). Two samples test it on other episodes.

**Known π_b.** At a visit of s with action a and return G from there on, and any number V̂,

    X = (π(a|s)/π_b(a|s) − 1)·(G − V̂),  E[X] = Σ_a (π − π_b)(a|s) Q^{π_b}(s, a) = A^{π_b}(s, π):

given s, the ratio has mean 1, so V̂ changes the variance and not the mean. This holds at every visit
of s, whatever came before it (Markov), so it holds for the sum over the first m visits that come
before step T, m and T fixed in advance: its mean is A times the mean number of visits counted.
X ≥ −c with c = max{G_max − V̂, (1/π_b(K|s) − 1)(V̂ − G_min)}, and the sum is at least −c times
that number. Only π_b of the kept actions enters, and it may be known of these alone: where π sums
to 1 over them, the ratio has mean Σ_{a ∈ K} π_b·π/π_b = 1 whatever the others' masses are, and at a
visit that takes another action, seen before or not, it is 0. So where π_b is recorded, K holds only
actions that the choosing episodes take in s.

A cut episode lacks a rest R: its G is what was recorded and γ^k R, its X a line in R. All episodes
that were cut at the same state y lack the same number on average, V^{π_b}(y), so that X with G =
recorded + γ^k V^{π_b}(y) has the mean A too (`visits.Visits`). The number is not known; the
smallest wealth over all that it can be is at most the wealth at the true one
(`betting.log_e_value`). What is lost is the chance of a cut at y being different after kept and
avoided actions, and not, as with single limits, the whole rest of each.

**Unknown π_b.** With 1_K = 1 where a kept action was taken, A = Cov(1_K, G)/π_b(K|s). Of b first
visits in different episodes

    Z = Σ_i (1_K^i − mean of 1_K)(G^i − mean of G),  E[Z] = (b − 1) Cov(1_K, G),  |Z| ≤ b/4·span

where span = G_max − G_min: Z is n_K n_D/b times a difference of two means. Neither π_b nor its
estimate enters; against the known π_b, a share 1/b of the evidence is lost. A cut episode enters
with the limit of its rest that hurts: the lower one after a kept action, the upper one elsewhere.

**Recorded row by row**, in episodes of one step. Where what made the log depends on more than the
state, each row has its own recorded probability p. With π_b the average policy that the choosing
episodes show, and π as above, which is one row for all visits of s,

    X = (π(a|s)/p − 1)·(G − G_min),  E[X] = E[Σ_a π(a|s) Q(·, a)] − E[G],

the mean over all that s leaves open: what playing π(·|s) gains on what acted there. No ratio is
bounded, but X ≥ −span is, as G ≥ G_min.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from spibb.betting import MOST, Rests, Sample, growth
from spibb.counts import Counts
from spibb.departures import values_where_seen
from spibb.log import Log
from spibb.value_limits import narrowed
from spibb.visits import ReturnBounds, Visits

TRUSTED = 3
"""Visits that a pair needs before its mean is worth a look."""
COUNTED = (1, 2, 4, 8)
"""Numbers m of visits per episode that are tried."""
EARLIEST = (0.2, 0.4, 0.6, 0.8)
"""Quantiles of the steps of a state's visits that are tried as the last step T."""
BLOCKS = (2, 4, 8, 16)
"""Sizes of the blocks that are tried where the baseline is not known."""
SHRINKAGE = 0.25
"""Standard errors by which a predicted advantage is lowered."""
SETS = 3
"""Sets of actions per state that are looked at closely."""
WORTH_TESTING = 0.3
"""A change is tested if this share of the evidence that it will need is predicted."""
TYPICAL_FAMILY = 5
"""Number of tests that a single one expects to share δ with."""
FOR_VALUES = 0.1
"""The share of δ for limits of the values at which episodes were cut, if any were."""
NOTHING = 1e-9
"""Avoiding actions of so little mass changes nothing that could be tested."""
INVISIBLE = 1e-100
"""Values of such a size, in units of the span of returns, are no evidence in any log."""
ROUNDING = 1e-12
"""Relative to the limits of returns: values that differ by less are the same."""
FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class PlannedTest:
    """A change and its test, fixed before the judging episodes are looked at.

    In `state` only the actions `kept` [A] remain, with the probabilities `played` [A]; their mass
    under π_b is `mass`. `by_row` says that each row has its own recorded probability. The first
    `counted` visits up to step `last_step` give the X around `centre` (known π_b), or blocks of
    `block` first visits the Z (`block` > 0). `bet` is the favoured bet. `evidence` (the predicted
    logarithm of the e-value), `advantage` (predicted, lowered), `visiting` (choosing episodes that
    were counted), `second` (mean square of X) and `power` are predictions.
    """

    state: int
    kept: np.ndarray
    played: np.ndarray
    mass: float
    centre: float
    counted: int
    last_step: int
    bet: float
    evidence: float
    advantage: float
    visiting: int
    second: float
    power: float
    block: int = 0
    by_row: bool = False

    def loss(self, bounds: ReturnBounds) -> float:
        """c: no X of a single visit is below −c."""
        return loss_per_visit(self.mass, self.centre, bounds)

    def sample(self, visits: Visits, bounds: ReturnBounds) -> Sample:
        """The X or Z of the episodes; `times` are the visits counted, or (b − 1) per block."""
        rows = visits.of_state(self.state)
        use = (visits.rank[rows] < self.counted) & (visits.step[rows] <= self.last_step)
        kept = self.kept[visits.action[rows]][use]
        low, high = visits.low[rows][use], visits.high[rows][use]
        if self.block:
            return self._blocks(kept, np.where(kept, low, high), bounds)
        departed = self._departed(visits, rows, use, kept)
        first = visits.rank[rows][use] == 0
        number = np.cumsum(first) - 1
        x, other = (np.bincount(number, weights=departed * (g - self.centre)) for g in (low, high))
        return Sample(
            x, np.bincount(number).astype(np.float64), self.loss(bounds), float(self.counted),
            shared_rests(np.where(x != other, visits.rest[rows][use][first], -1), other),
        )  # fmt: skip

    def _departed(
        self, visits: Visits, rows: slice, use: np.ndarray, kept: np.ndarray
    ) -> np.ndarray:
        """π/π_b − 1 of the visits, or π/p − 1."""
        if not self.by_row:
            return np.where(kept, 1 / self.mass - 1, -1.0)
        assert visits.made is not None  # the log records it
        return self.played[visits.action[rows][use]] / visits.made[rows][use] - 1

    def _blocks(self, kept: np.ndarray, g: np.ndarray, bounds: ReturnBounds) -> Sample:
        b = self.block
        n = len(g) // b
        took, paid = (v[: n * b].reshape(n, b) for v in (kept.astype(np.float64), g))
        z = ((took - took.mean(axis=1, keepdims=True)) * paid).sum(axis=1)
        limit = b / 4 * bounds.span
        return Sample(z, np.full(n, b - 1.0), limit / (b - 1), b - 1.0)


def shared_rests(rest: np.ndarray, other: np.ndarray) -> Rests:
    """The values whose `rest` [n] is missing, with what they are at its other end [n]."""
    place = np.flatnonzero(rest >= 0)
    return Rests(place, other[place], np.unique(rest[place], return_inverse=True)[1])


def loss_per_visit(mass: float, centre: float, bounds: ReturnBounds) -> float:
    """c = max{G_max − V̂, (1/π_b(K) − 1)(V̂ − G_min)}."""
    return max(bounds.high - centre, (1 / mass - 1) * (centre - bounds.low))


@dataclass(frozen=True, eq=False)
class Chooser:
    """What the choosing episodes say: model values, visits, and how many more will judge.

    `likely` are the visits with cut rests as the model values them, `visits` with limits such as
    the judging episodes may give them at the price of `spent`; `delta` is left for the tests.
    `scale` is the number of judging per choosing episode; `known` says whether π_b is, and `by_row`
    whether each row has its own. `baseline` [S, A] is π_b of the actions that may be kept, else 0.
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
    delta: float
    spent: float
    known: bool
    by_row: bool

    @classmethod
    def of(cls, log: Log, baseline: np.ndarray, discount: float, bounds: ReturnBounds,
           scale: float, delta: float, known: bool, by_row: bool = False,
           recorded: np.ndarray | None = None) -> Chooser:  # fmt: skip
        """Estimate the model of the choosing episodes and π_b's values in it.

        `recorded` [S, A] is what is known of π_b, if that is less than all.
        """
        counts = Counts.from_log(log)
        q, v = (
            np.clip(values, bounds.low, bounds.high)
            for values in values_where_seen(counts, baseline, discount)
        )
        visits = Visits.of(log, discount, bounds, shared=known)
        likely = visits.valued(v)
        noise = _noise(likely, q)
        spent = FOR_VALUES * delta if visits.lacks_values else 0.0
        if spent:
            visits = _expected(narrowed(visits, bounds, noise, spent), v, scale)
        sure = baseline if recorded is None else np.where(counts.pairs > 0, recorded, 0.0)
        return cls(sure, q, v, counts.pairs, visits, likely, noise, bounds, scale,
                   delta - spent, spent, known, by_row)  # fmt: skip

    @property
    def rounding(self) -> float:
        """What is no difference between values."""
        return ROUNDING * max(abs(self.bounds.low), abs(self.bounds.high))

    def plans(self) -> list[PlannedTest]:
        """The best plan of every state that has one, the strongest evidence first."""
        found = [self._best(int(s)) for s in np.flatnonzero(self.counts.sum(axis=1) >= TRUSTED)]
        return sorted((p for p in found if p is not None), key=lambda p: (-p.evidence, p.state))

    def _best(self, s: int) -> PlannedTest | None:
        rough = [plan for kept in self._sets(s) if (plan := self._plan(s, kept, 1, FOREVER))]
        rough.sort(key=lambda plan: -plan.power * plan.advantage)
        closer = [
            plan
            for first in rough[:SETS]
            for counted, last in self._windows(s)
            if (plan := self._plan(s, first.kept, counted, last))
        ]
        return max(closer, key=lambda plan: plan.power * plan.advantage, default=None)

    def _sets(self, s: int) -> Iterator[np.ndarray]:
        """Sets to keep: all but the worst trusted actions, for every number of them; the best."""
        playable = self.baseline[s] > 0
        trusted = np.flatnonzero(playable & (self.counts[s] >= TRUSTED))
        ranks = np.round((self.q[s, trusted] - self.v[s]) / self.rounding)
        worst_first = trusted[np.argsort(ranks, kind="stable")]
        for n in range(1, len(worst_first)):
            kept = playable.copy()
            kept[worst_first[:n]] = False
            yield kept
        if len(worst_first) and playable.sum() > len(worst_first):
            yield np.arange(len(playable)) == worst_first[-1]

    def _windows(self, s: int) -> Iterator[tuple[int, int]]:
        """Numbers of visits and last steps to try."""
        steps = self.visits.step[self.visits.of_state(s)]
        lasts = {FOREVER, *np.quantile(steps, EARLIEST).astype(int).tolist()}
        for last in sorted(lasts):
            for counted in COUNTED if self.known else COUNTED[:1]:
                yield counted, last

    def _plan(self, s: int, kept: np.ndarray, counted: int, last: int) -> PlannedTest | None:
        """Predict the test of a change; None where it has no prospect."""
        p, q, v = self.baseline[s], self.q[s], float(self.v[s])
        mass = float(p[kept].sum())
        moved = np.where(kept, p / mass, 0.0) - p
        gain = float(moved @ (q - v))
        error = math.sqrt(self.noise[s] * float((moved**2 / np.maximum(self.counts[s], 1)).sum()))
        lowered = gain - SHRINKAGE * error
        centre = self.bounds.low if self.by_row else v
        plan = PlannedTest(
            s, kept, np.where(kept, p / mass, 0.0), mass, centre, counted, last, 0.0, 0.0, lowered,
            0, 0.0, 0.0, by_row=self.by_row,
        )  # fmt: skip
        if lowered <= self.rounding or mass > 1 - NOTHING:
            return None
        sample = plan.sample(self.visits, self.bounds)
        n = len(sample.x)
        if n == 0:
            return None
        per_episode = float(sample.times.mean())
        prior = self.noise[s] * (1 / mass - 1) * per_episode
        x = plan.sample(self.likely, self.bounds).x
        second = (float((x**2).sum()) + 2 * prior) / (n + 2)
        mean = lowered * per_episode - self._hurt(x, sample)
        if mean <= 0 or second <= INVISIBLE**2:
            return None
        plan = replace(plan, visiting=n, second=second)
        planned = self._with_bet(plan, mean) if self.known else self._with_block(plan, mean)
        return self._with_power(planned, error * per_episode)

    def _hurt(self, x: np.ndarray, sample: Sample) -> float:
        """What the worst rests will cost the mean of the likely X [n].

        Of shared ones chance decides, and that falls with the root of the number of episodes.
        """
        more = math.sqrt(self.scale) if self.known else 1.0
        return (float(x.sum()) - sample.total) / len(x) / more

    def _with_bet(self, plan: PlannedTest, mean: float) -> PlannedTest:
        bet, per_visit = growth(mean, plan.second, plan.loss(self.bounds) * plan.counted)
        return replace(plan, bet=bet, evidence=self.scale * plan.visiting * per_visit)

    def _with_block(self, plan: PlannedTest, mean: float) -> PlannedTest:
        """Z is π_b(K) times the sum of b of the X, less its share 1/b."""
        best = plan
        for b in BLOCKS:
            z_mean, z_second = (b - 1) * plan.mass * mean, (b - 1) * plan.mass**2 * plan.second
            bet = min(z_mean / z_second, MOST / (b / 4 * self.bounds.span))
            per_block = bet * z_mean - bet**2 * z_second / 2
            evidence = self.scale * plan.visiting / b * per_block
            if evidence > best.evidence:
                best = replace(plan, block=b, bet=bet, evidence=evidence)
        return best

    def _with_power(self, plan: PlannedTest, error: float) -> PlannedTest:
        """P(log e reaches log(5/δ)), log e being roughly normal around the evidence.

        Its variance is twice the evidence, and what is not known of the mean adds to it.
        """
        unsure = plan.bet * (plan.mass if plan.block else 1.0) * self.scale * plan.visiting * error
        spread = math.sqrt(2 * plan.evidence + unsure**2) or 1.0
        wanted = math.log(TYPICAL_FAMILY / self.delta)
        return replace(plan, power=float(ndtr((plan.evidence - wanted) / spread)))


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


def worth_testing(plans: list[PlannedTest], delta: float) -> list[PlannedTest]:
    """The plans with a prospect: weak ones would only cost the others power.

    The k-th strongest needs about log(k/δ).
    """
    return [
        plan
        for rank, plan in enumerate(plans, start=1)
        if plan.evidence >= WORTH_TESTING * math.log(rank / delta)
    ]


def best_group(
    plans: list[PlannedTest], chooser: Chooser
) -> tuple[list[PlannedTest], float, float]:
    """The set of one-step changes whose common test promises most: (plans, bet, gain · power).

    States enter by advantage over mean square, as the common bet wants them.
    """
    ordered = sorted(plans, key=lambda plan: (-plan.advantage / plan.second, plan.state))
    best: tuple[list[PlannedTest], float, float] = ([], 0.0, 0.0)
    n, gain, second, loss = 0, 0.0, 0.0, 0.0
    for end, plan in enumerate(ordered, start=1):
        n += plan.visiting
        gain += plan.visiting * plan.advantage
        second += plan.visiting * plan.second
        loss = max(loss, plan.loss(chooser.bounds))
        bet = min(gain / second, MOST / loss)
        evidence = chooser.scale * (bet * gain - bet**2 * second / 2)
        spread = math.sqrt(2 * evidence) or 1.0
        score = gain * float(ndtr((evidence - math.log(1 / chooser.delta)) / spread))
        if score > best[2]:
            best = (ordered[:end], bet, score)
    return best
