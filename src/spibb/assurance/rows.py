"""Transition rows that mix a pair's own outcomes with those of its state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spibb.counts import END, Counts
from spibb.frozen import Frozen
from spibb.kernels import pooled_rows

NOISE_ODDS = 100.0
"""Prior odds that rewards vary, against rewards that are a function of the outcome."""
MOST_REPEATS = 3
"""Repeats of one outcome that count as evidence that no outcome's reward varies."""
NO_DOUBT = 1e-3
"""Doubts below this are none."""


class Models(NamedTuple):
    """D models: weights of outcomes [D, K] and their sums in pairs [D, T], weights of pairs within
    states [D, T] and of the pairs' own evidence, w [D, P], and the rewards of pairs [D, P]."""

    mass: np.ndarray
    total: np.ndarray
    pair: np.ndarray
    weight: np.ndarray
    rewards: np.ndarray

    @property
    def weights(self) -> pooled_rows.Weights:
        """All but the rewards."""
        return pooled_rows.Weights(self.mass, self.total, self.pair, self.weight)

    def among(self, which: np.ndarray | slice) -> Models:
        """Some of the models."""
        return Models(*(part[which] for part in self))


class Paid(NamedTuple):
    """Mean rewards [D or 1, C] of outcomes in a row that pay the same; `first` [C] of each."""

    first: np.ndarray
    means: np.ndarray


@dataclass(frozen=True, eq=False)
class PooledRows(Frozen):
    """P(·|x, a) = w Σ_k θ_k [x'_k] + (1 − w) m_x, for weights θ of the pair's outcomes.

    m_x are the outcomes of state x under all actions, and those of the whole log only where nobody
    acted. A state thus leads where it was seen to lead: if states tell how many steps are left,
    they do so in every model, and a constant in all rewards changes no comparison.
    `pair`, `successors`, `n`, `mean_reward` and `reward_squares` [K] describe the outcomes, sorted
    by pair; `visits` [P] the pairs; `overall` [S] and `overall_reward` the whole log;
    `initial` [S] its first states. `two_valued` says whether rewards
    take two values at most.
    """

    shape: tuple[int, int]
    pair: np.ndarray
    successors: np.ndarray
    n: np.ndarray
    mean_reward: np.ndarray
    reward_squares: np.ndarray
    visits: np.ndarray
    overall: np.ndarray
    overall_reward: float
    initial: np.ndarray
    two_valued: bool

    @classmethod
    def of(cls, counts: Counts) -> PooledRows:
        """The rows of a log."""
        n, mean = counts.n.astype(np.float64), counts.reward_sum / counts.n
        squares = counts.reward_scatter * counts.unit**2
        stays = counts.successors != END
        total = max(n.sum(), 1.0)
        overall = np.bincount(counts.successors[stays], n[stays], counts.shape[0]) / total
        visits = counts.pairs.reshape(-1).astype(np.float64)
        return cls(
            counts.shape, counts.pair_of_outcome, counts.successors, n, mean, squares, visits,
            overall, float(n @ mean / total),
            counts.starts / counts.starts.sum(), counts.two_valued,
        )  # fmt: skip

    @cached_property
    def tried(self) -> np.ndarray:
        """The pairs with outcomes [T]."""
        return np.flatnonzero(self.visits > 0)

    @cached_property
    def idle(self) -> np.ndarray:
        """The states in which nobody acted."""
        return np.flatnonzero(self.visits.reshape(self.shape).sum(axis=1) == 0)

    @cached_property
    def first(self) -> np.ndarray:
        """Where the outcomes of each tried pair begin [T]."""
        return np.searchsorted(self.pair, self.tried)

    @cached_property
    def owner(self) -> np.ndarray:
        """Which of the tried pairs each outcome belongs to [K]."""
        return np.searchsorted(self.tried, self.pair)

    @cached_property
    def stays(self) -> np.ndarray:
        """The outcomes that do not end the process [K']."""
        return np.flatnonzero(self.successors != END)

    @cached_property
    def doubt(self) -> float:
        """How far rewards may vary though no outcome's did: 1 where one did, 0 where none can.

        If rewards did not depend on the outcome, k repeats of one that makes up a share q of the
        log would all agree with probability q^k. The product over all outcomes, each for a few
        repeats at most, is weighed against prior odds for noise.
        """
        if self.reward_squares.any():
            return 1.0
        values, which = np.unique(np.round(self.mean_reward, 10), return_inverse=True)
        if len(values) == 1:
            return 0.0
        share = np.bincount(which, self.n) / self.n.sum()
        repeats = np.minimum(self.n - 1, MOST_REPEATS)
        doubt = min(1.0, NOISE_ODDS * float(np.exp(repeats @ np.log(share[which]))))
        return doubt if doubt > NO_DOUBT else 0.0

    @cached_property
    def unseen_variance(self) -> float:
        """The variance of a reward within its outcome that the log is too short to show.

        It is that between outcomes as far as they are in doubt; none where one outcome varied,
        because then its own variance is known, or where two values make it a matter of shares.
        """
        if self.two_valued or self.reward_squares.any() or len(self.n) < 2:
            return 0.0
        return self.doubt * float(self.mean_reward.var(ddof=1))

    def mean(self, weight: np.ndarray) -> Models:
        """The one model in which every outcome has its frequency and its mean reward, for w [P]."""
        return self.models(self.n[None], self.paid(self.mean_reward), weight[None])

    def paid(
        self, means: np.ndarray, drawn: np.ndarray | None = None, values: np.ndarray | None = None
    ) -> Paid:
        """Mean rewards of the outcomes [K], some of them `drawn` [C] with their values [D, C]."""
        apart = np.ones(len(self.pair) + 1, dtype=bool)
        apart[1:-1] = (np.diff(self.pair) != 0) | (np.diff(means) != 0)
        if drawn is None or values is None:
            first = np.flatnonzero(apart[:-1])
            return Paid(first, means[None, first])
        apart[drawn] = apart[drawn + 1] = True
        first = np.flatnonzero(apart[:-1])
        if len(drawn) == len(first):
            return Paid(first, values)
        found = np.repeat(means[None, first], len(values), axis=0)
        found[:, np.searchsorted(first, drawn)] = values
        return Paid(first, found)

    @cached_property
    def _by_state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The states with tried pairs, where these begin, and which state each belongs to [T]."""
        state = self.tried // self.shape[1]
        visited, begin, place = np.unique(state, return_index=True, return_inverse=True)
        return visited, begin, place

    def models(self, mass: np.ndarray, paid: Paid, weight: np.ndarray) -> Models:
        """The models in which outcomes have a given mass [D, K] and mean rewards, and pairs a
        weight w [D, P]."""
        alike, first = mass, self.first
        if len(paid.first) < len(self.n):
            alike = np.add.reduceat(mass, paid.first, axis=1)
            first = np.searchsorted(paid.first, first)
        total = np.add.reduceat(alike, first, axis=1)
        earned = np.multiply(alike, paid.means, out=None if alike is mass else alike)
        own = np.add.reduceat(earned, first, axis=1) / total
        del alike, earned  # as large as the mass
        _, begin, place = self._by_state
        pair = total / np.add.reduceat(total, begin, axis=1)[:, place]
        rewards = self._pooled(own, pair, weight, self.overall_reward)
        return Models(mass, total, pair, weight, rewards)

    def _pooled(
        self, own: np.ndarray, pair: np.ndarray, weight: np.ndarray, overall: float
    ) -> np.ndarray:
        """w f + (1 − w) f̄_x of every pair [D, P], for means f of the tried ones [D, T]."""
        visited, begin, _ = self._by_state
        of_state = np.full((len(own), self.shape[0]), overall)
        of_state[:, visited] = np.add.reduceat(pair * own, begin, axis=1)
        found = np.zeros(weight.shape)
        found[:, self.tried] = own
        found *= weight
        found += (1 - weight) * np.repeat(of_state, self.shape[1], axis=1)
        return found

    def expected(self, models: Models, v: np.ndarray) -> np.ndarray:
        """Σ_x' P(x'|x, a) v(x') of values [S], for every pair in every model [D, P]."""
        mass = models.mass * np.append(v, 0.0)[self.successors]
        own = np.add.reduceat(mass, self.first, axis=1) / models.total
        return self._pooled(own, models.pair, models.weight, float(self.overall @ v))

    @cached_property
    def _places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Where `matrices` has the outcomes that stay [K'], and the pairs (x, x') of m [U]; the
        order [K'] in which outcomes are summed to these, and where each sum begins [U]."""
        n_states, n_actions = self.shape
        state, action = np.divmod(self.pair[self.stays], n_actions)
        row = self.successors[self.stays].astype(np.int64) * (n_actions + 1)
        moves = (row + n_actions) * n_states + state
        order = np.argsort(moves, kind="stable")
        to, begin = np.unique(moves[order], return_index=True)
        return (row + action) * n_states + state, to, order, begin

    def matrices(self, models: Models) -> np.ndarray:
        """w P(x'|x, a) of the pairs' own outcomes, and m_x(x') as a last action: [D, x', A + 1, x].

        Transposed, and action before state, because values are multiplied from the left.
        """
        n_states, n_actions = self.shape
        found = np.zeros((len(models.mass), n_states, n_actions + 1, n_states))
        flat = found.reshape(len(found), -1)
        own, to, order, begin = self._places
        owner, outcome = self.owner[self.stays], self.outcomes_that_stay(models)
        flat[:, own] = outcome * models.weight[:, self.tried[owner]]
        if len(to):
            outcome *= models.pair[:, owner]
            flat[:, to] = np.add.reduceat(outcome[:, order], begin, axis=1)
        found[:, :, -1, self.idle] = self.overall[:, None]
        return found

    def outcomes_that_stay(self, models: Models) -> np.ndarray:
        """θ of the outcomes that do not end the process [D, K']."""
        total = models.total.take(self.owner[self.stays], axis=1)
        return np.asarray(models.mass.take(self.stays, axis=1) / total)

    def transitions(self, models: Models) -> np.ndarray:
        """P of each model [D, S, A, S]."""
        found, (n_states, n_actions) = self.matrices(models).transpose(0, 3, 2, 1), self.shape
        left = (1 - models.weight).reshape(-1, n_states, n_actions, 1)
        return found[:, :, :-1] + left * found[:, :, -1:]

    def chains(self, policies: np.ndarray, models: Models) -> np.ndarray:
        """P_π [N, S, S] of N policies [N, S, A], each in its own model or all in the only one."""
        n_states = self.shape[0]
        state, successor, prob = self.steps(policies, models)
        place = (np.arange(len(prob))[:, None] * n_states + state) * n_states + successor
        found = np.bincount(place.reshape(-1), prob.reshape(-1), len(prob) * n_states**2)
        found = found.reshape(-1, n_states, n_states)
        found[:, self.idle] = self.overall
        return found

    def steps(
        self, policies: np.ndarray, models: Models
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """From where [K'], to where [K'] and how likely [N, K']: P_π except for the idle states."""
        n_actions = self.shape[1]
        play = policies.reshape(len(policies), -1)
        left = (play * (1 - models.weight)).reshape(policies.shape).sum(axis=2)
        share = play * models.weight
        share[:, self.tried] += left[:, self.tried // n_actions] * models.pair
        pair = self.pair[self.stays]
        return (
            pair // n_actions,
            self.successors[self.stays],
            share[:, pair] * self.outcomes_that_stay(models),
        )

    @cached_property
    def idle_are_beyond(self) -> bool:
        """Whether no episode starts in an idle state or steps into one: they do not matter."""
        reached = np.bincount(self.successors[self.stays], minlength=self.shape[0]) + self.initial
        return not reached[self.idle].any()

    @cached_property
    def sparse(self) -> pooled_rows.Mixed:
        """What the kernel needs to average values over successors."""
        first = np.append(self.first, len(self.pair))
        successors = np.where(self.successors == END, self.shape[0], self.successors)
        last = np.searchsorted(self.tried, np.arange(1, self.shape[0] + 1) * self.shape[1])
        return pooled_rows.Mixed(self.tried, last, first, successors, self.overall, self.idle)
