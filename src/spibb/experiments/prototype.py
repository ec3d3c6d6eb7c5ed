"""The prototype of `auto`'s rule, as a yardstick for its gain on the same logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spibb import checks
from spibb.algorithms.auto import Auto
from spibb.algorithms.base import Algorithm
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Problem
from spibb.algorithms.threshold import SHARES, Threshold
from spibb.assurance.posterior import gains_over
from spibb.assurance.rows import Models, PooledRows
from spibb.assurance.values import Evaluator
from spibb.errors import InputError
from spibb.log import returns_to_go

PRIOR = 0.5
"""Pseudo-visits of every outcome that a pair showed, and of the one that it never showed."""
POOLED_VISITS = 2.0
"""Pseudo-visits with the variance of all outcomes, for the variance of each."""


@dataclass(frozen=True)
class Prototype(Algorithm):
    """The largest δ/k-quantile of the gain among Π_b- and Π_≤b-SPIBB at ten N∧, k of them distinct,
    and the baseline if that is not positive; under a simpler posterior that pools nothing:

    P(·|x, a) ~ Dirichlet(n + ½), with ½ for an outcome never seen, which ends the process and pays
    the lowest return-to-go of the log, at most 0; mean rewards of outcomes are Student's t, their
    variances shrunk towards the pooled one with two pseudo-visits.

    1. States in which nobody acted lead where the whole log leads, as in the posterior of `auto`.
    """

    name: ClassVar[str] = "prototype"
    needs_log: ClassVar[bool] = True
    no_certificate: ClassVar[str | None] = Auto.no_certificate

    delta: float = 0.05
    draws: int = 600
    seed: int = 0

    def __post_init__(self) -> None:
        checks.delta(self.delta)
        checks.positive_field(self, "draws")
        checks.seed(self.seed)

    def improve(self, problem: Problem) -> Improvement:
        """The candidate with the largest δ/k-quantile of the gain, if that is positive."""
        if problem.log is None:
            raise InputError("the prototype needs the log: its returns bound what was never seen")
        named, policies = Auto.over_thresholds().candidates(problem)
        moves = (policies != problem.baseline.probs).any(axis=(1, 2))
        lower = np.full(len(named), -np.inf)
        if moves.any():
            lower[moves] = self.lower(problem, policies[moves])
        best = max(range(len(named)), key=lambda k: (lower[k], named[k][1]))
        kind, n_wedge = named[best] if lower[best] > 0 else ("pi-b", np.inf)
        threshold = Threshold(SHARES[kind], n_wedge, Auto.unseen)
        return Improvement.from_solution(*threshold.solve(problem), problem, self)

    def lower(self, problem: Problem, policies: np.ndarray) -> np.ndarray:
        """The δ/k-quantile of the gain of each policy [M, S, A], k of which are distinct."""
        flat, where = np.unique(policies.reshape(len(policies), -1), axis=0, return_inverse=True)
        base = problem.baseline.probs
        stacked = np.concatenate([base[None], flat.reshape(-1, *base.shape)])
        rho = self.values(problem, stacked)
        quantile = np.quantile(gains_over(rho[:, 1:], rho[:, 0]), self.delta / len(flat), axis=0)
        found: np.ndarray = quantile[where.reshape(-1)]
        return found

    def values(self, problem: Problem, policies: np.ndarray) -> np.ndarray:
        """ρ of policies [M, S, A] in drawn models [draws, M]."""
        assert problem.log is not None  # `improve` has checked it
        rows, rng = PooledRows.of(problem.counts), np.random.default_rng(self.seed)
        unseen = min(float(returns_to_go(problem.log, problem.discount).min()), 0.0)
        seen = np.repeat(rows.n[None] + PRIOR, self.draws, axis=0)
        alone = np.full((self.draws, len(rows.tried)), PRIOR)
        mean = _models(rows, seen[:1], alone[:1], rows.mean_reward[None], unseen)
        drawn = _models(
            rows, rng.standard_gamma(seen), rng.standard_gamma(alone),
            _mean_rewards(rows, self.draws, rng), unseen,
        )  # fmt: skip
        return Evaluator(rows, policies, problem.discount, mean)(drawn)


def _models(
    rows: PooledRows, mass: np.ndarray, alone: np.ndarray, paid: np.ndarray, unseen: float
) -> Models:
    """Models whose pairs hold nothing but their own outcomes and one that was never seen."""
    total = np.add.reduceat(mass, rows.first, axis=1) + alone
    rewards = np.full((len(mass), len(rows.visits)), unseen)
    earned = np.add.reduceat(mass * paid, rows.first, axis=1) + alone * unseen
    rewards[:, rows.tried] = earned / total
    weight = np.ones(rewards.shape)
    idle = (rows.idle[:, None] * rows.shape[1] + np.arange(rows.shape[1])).reshape(-1)
    rewards[:, idle], weight[:, idle] = rows.overall_reward, 0.0
    return Models(mass, total, np.zeros(total.shape), weight, rewards)


def _mean_rewards(rows: PooledRows, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Mean rewards of the outcomes, Student's t [D, K]."""
    freedom = rows.n - 1 + POOLED_VISITS
    repeats = max(float((rows.n - 1).sum()), 1.0)
    pooled = float(rows.reward_squares.sum()) / repeats
    variance = (rows.reward_squares + POOLED_VISITS * pooled) / freedom
    noise = rng.standard_t(freedom, (draws, len(rows.n)))
    found: np.ndarray = rows.mean_reward + np.sqrt(variance / rows.n) * noise
    return found
