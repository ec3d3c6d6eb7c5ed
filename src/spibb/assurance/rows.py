"""Transition rows that mix a pair's own outcomes with those of its state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spibb.counts import END, Counts
from spibb.frozen import Frozen
from spibb.kernels import mixed

NOISE_ODDS = 100.0
"""Prior odds that rewards vary, against rewards that are a function of the outcome."""
MOST_REPEATS = 3
"""Repeats of one outcome that count as evidence that no outcome's reward varies."""
NO_DOUBT = 1e-3
"""Doubts below this are none."""


class Models(NamedTuple):
    """D models: weights of outcomes within pairs [D, K], of pairs within states [D, T], and the
    rewards of pairs [D, P]."""

    outcome: np.ndarray
    pair: np.ndarray
    rewards: np.ndarray


@dataclass(frozen=True, eq=False)
class PooledRows(Frozen):
    """P(·|x, a) = w Σ_k θ_k [x'_k] + (1 − w) m_x, for weights θ of the pair's outcomes.

    m_x are the outcomes of state x under all actions, and those of the whole log only where nobody
    acted. A state thus leads where it was seen to lead: if states tell how many steps are left,
    they do so in every model, and a constant in all rewards changes no comparison.
    `pair`, `successors`, `n`, `mean_reward` and `reward_squares` [K] describe the outcomes, sorted
    by pair; `visits` and `weight` [P] the pairs; `overall` [S] and `overall_reward` the whole log;
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
    weight: np.ndarray
    overall: np.ndarray
    overall_reward: float
    initial: np.ndarray
    two_valued: bool

    @classmethod
    def of(cls, counts: Counts) -> PooledRows:
        """The rows of a log; every tried pair is taken at its own word (w = 1)."""
        n, mean = counts.n.astype(np.float64), counts.reward_sum / counts.n
        squares = counts.reward_scatter * counts.unit**2
        stays = counts.successors != END
        total = max(n.sum(), 1.0)
        overall = np.bincount(counts.successors[stays], n[stays], counts.shape[0]) / total
        visits = counts.pairs.reshape(-1).astype(np.float64)
        return cls(
            counts.shape, counts.pair_of_outcome, counts.successors, n, mean, squares, visits,
            (visits > 0) * 1.0, overall, float(n @ mean / total),
            counts.starts / counts.starts.sum(), counts.two_valued,
        )  # fmt: skip

    def weighted(self, weight: np.ndarray) -> PooledRows:
        """The same rows with other weights w [P]."""
        return replace(self, weight=weight)

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

    @cached_property
    def mean(self) -> Models:
        """The one model in which every outcome has its frequency and its mean reward."""
        return self.models(self.n[None], self.mean_reward[None])

    def models(self, mass: np.ndarray, paid: np.ndarray) -> Models:
        """The models in which outcomes have a given mass [D, K] and mean reward [D or 1, K]."""
        per_pair = np.add.reduceat(mass, self.first, axis=1)
        outcome = mass / np.repeat(per_pair, np.diff(np.append(self.first, len(self.n))), axis=1)
        state = self.tried // self.shape[1]
        visited, begin, place = np.unique(state, return_index=True, return_inverse=True)
        pair = per_pair / np.add.reduceat(per_pair, begin, axis=1)[:, place]
        own = np.add.reduceat(outcome * paid, self.first, axis=1)
        pooled = np.full((len(mass), self.shape[0]), self.overall_reward)
        pooled[:, visited] = np.add.reduceat(pair * own, begin, axis=1)
        rewards = (1 - self.weight) * np.repeat(pooled, self.shape[1], axis=1)
        rewards[:, self.tried] += self.weight[self.tried] * own
        return Models(outcome, pair, rewards)

    def matrices(self, models: Models) -> np.ndarray:
        """P of each model [D, S, A, S]."""
        n_states, n_actions = self.shape
        draws, n_pairs = len(models.outcome), len(self.visits)
        own = np.zeros((draws, n_states, n_actions, n_states))
        place = self.pair[self.stays] * n_states + self.successors[self.stays]
        own.reshape(draws, -1)[:, place] = models.outcome[:, self.stays]
        share = np.zeros((draws, n_pairs))
        share[:, self.tried] = models.pair
        pooled = np.matmul(share.reshape(draws, n_states, 1, n_actions), own)
        pooled[:, self.idle] = self.overall
        weight = self.weight.reshape(n_states, n_actions, 1)
        own *= weight
        own += (1 - weight) * pooled
        return own

    def chain(self, probs: np.ndarray, model: Models) -> np.ndarray:
        """P_π [S, S] of a policy [S, A] in the only model of a batch."""
        n_states = self.shape[0]
        state, successor, prob = self.steps(probs, model)
        place = state * n_states + successor
        found = np.bincount(place, prob, n_states**2).reshape(n_states, n_states)
        found[self.idle] = self.overall
        return found

    def steps(self, probs: np.ndarray, model: Models) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """From where, to where and how likely [K']: P_π but for the idle states."""
        n_actions = self.shape[1]
        left = (probs * (1 - self.weight.reshape(self.shape))).sum(axis=1)
        share = probs.reshape(-1) * self.weight
        share[self.tried] += left[self.tried // n_actions] * model.pair[0]
        own = (share[self.pair] * model.outcome[0])[self.stays]
        return (self.pair // n_actions)[self.stays], self.successors[self.stays], own

    @cached_property
    def idle_are_beyond(self) -> bool:
        """Whether no episode starts in an idle state or steps into one: they do not matter."""
        reached = np.bincount(self.successors[self.stays], minlength=self.shape[0]) + self.initial
        return not reached[self.idle].any()

    def sparse(self, policies: np.ndarray) -> mixed.Mixed:
        """What the kernel needs to average values over the successors of policies [M, S, A]."""
        weight = self.weight.reshape(self.shape)
        first = np.append(self.first, len(self.pair))
        play = np.ascontiguousarray((policies * weight).reshape(len(policies), -1).T)
        left = np.ascontiguousarray((policies * (1 - weight)).sum(axis=2).T)
        return mixed.Mixed(self.tried, first, self.successors, self.overall, self.idle, play, left)
