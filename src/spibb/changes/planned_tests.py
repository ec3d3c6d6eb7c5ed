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
bounded, but X ≥ −span is, as G ≥ G_min. A p that was rounded is taken as large as it can have been:
as G ≥ G_min, the mean of X is then smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spibb.bounds.betting import MOST, Rests, Sample
from spibb.bounds.normal import below
from spibb.episodes.visits import ReturnBounds, Visits

WORTH_TESTING = 0.3
"""A change is tested if this share of the evidence that it will need is predicted."""


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
        low, high = (ends[use] for ends in visits.ends(rows))
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


def worth_testing(plans: list[PlannedTest], delta: float, times: float = 1.0) -> list[PlannedTest]:
    """The plans with a prospect: weak ones would only cost the others power.

    The k-th strongest needs about log(k/δ). With `times` as many episodes, evidence is as large.
    """
    return [
        plan
        for rank, plan in enumerate(plans, start=1)
        if times * plan.evidence >= WORTH_TESTING * math.log(rank / delta)
    ]


def best_group(
    plans: list[PlannedTest], bounds: ReturnBounds, scale: float, delta: float
) -> tuple[list[PlannedTest], float, float]:
    """The set of one-step changes whose common test promises most: (plans, bet, gain · power).

    `scale` is the number of judging per choosing episode. States enter by advantage over mean
    square, as the common bet wants them.
    """
    ordered = sorted(plans, key=lambda plan: (-plan.advantage / plan.second, plan.state))
    best: tuple[list[PlannedTest], float, float] = ([], 0.0, 0.0)
    n, gain, second, loss = 0, 0.0, 0.0, 0.0
    for end, plan in enumerate(ordered, start=1):
        n += plan.visiting
        gain += plan.visiting * plan.advantage
        second += plan.visiting * plan.second
        loss = max(loss, plan.loss(bounds))
        bet = min(gain / second, MOST / loss)
        evidence = scale * (bet * gain - bet**2 * second / 2)
        spread = math.sqrt(2 * evidence) or 1.0
        score = gain * below((evidence - math.log(1 / delta)) / spread)
        if score > best[2]:
            best = (ordered[:end], bet, score)
    return best
