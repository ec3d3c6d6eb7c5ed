"""Tests of planned changes on the episodes that were not used to choose them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spibb.algorithms.certified.planned_tests import PlannedTest
from spibb.algorithms.problem import Problem
from spibb.bounds import betting
from spibb.bounds.betting import Sample
from spibb.change_certificate import Change, ChangeTest
from spibb.episodes.visits import ReturnBounds, Visits
from spibb.errors import InputError

TOLERATED = 1e-9
"""Of the largest loss: values below it by less are rounding."""


@dataclass(frozen=True)
class Family:
    """Changes that one test decides on, and its bet."""

    plans: tuple[PlannedTest, ...]
    bet: float

    @property
    def changes(self) -> frozenset[tuple[int, bytes]]:
        """What it changes: states, and the actions that stay there."""
        return frozenset((plan.state, plan.kept.tobytes()) for plan in self.plans)

    def sample(self, visits: Visits, bounds: ReturnBounds) -> Sample:
        """The values of all the plans' episodes; each plan's are those of other episodes."""
        return betting.together([plan.sample(visits, bounds) for plan in self.plans])


@dataclass(frozen=True)
class Judge:
    """The episodes that chose nothing; their returns are in units of `bounds`.

    Of δ, `spent` went to limits of the values at which episodes were cut: a p-value is the test's
    own and `spent`. Plans have labels in an order of their own: `rows` [S] and `columns` [A] are
    their codes in the problem.
    """

    problem: Problem
    visits: Visits
    bounds: ReturnBounds
    delta: float
    spent: float
    rows: np.ndarray
    columns: np.ndarray

    def best(
        self, families: list[Family], rules: list[Family]
    ) -> tuple[list[Family], tuple[ChangeTest, ...]]:
        """What to change: the families or the rules, whichever surely gain more.

        All are tested together, so that it does not matter for the error rate which are taken: all
        that are accepted are right with probability 1 − δ. If none is, all tests are shown.
        """
        both = [*families, *rules]
        tests = self.tests(both)
        parts = (families, tests[: len(families)]), (rules, tests[len(families) :])
        gains = [sum(t.visits * t.lower_bound for t in found if t.accepted) for _, found in parts]
        if not any(test.accepted for test in tests):
            return both, tests
        return parts[gains[1] > gains[0] or not any(t.accepted for t in parts[0][1])]

    def tests(self, families: Sequence[Family]) -> tuple[ChangeTest, ...]:
        """Test all families together."""
        if not families:
            return ()
        samples = [family.sample(self.visits, self.bounds) for family in families]
        if any(sample.lowest < -(1 + TOLERATED) * sample.most_lost for sample in samples):
            raise InputError(
                "the declared limits contradict the log: with the value of their last states, cut "
                "episodes return more or less than the limits allow: declare wider limits"
            )
        log_e = np.array([
            betting.log_e_value(sample, family.bet) for sample, family in zip(samples, families)
        ])  # fmt: skip
        adjusted = np.minimum(betting.adjusted_p_values(log_e) + self.spent, 1.0)
        return tuple(
            self._test(family, sample, float(e), float(p), len(families))
            for family, sample, e, p in zip(families, samples, log_e, adjusted)
        )

    def _test(
        self, family: Family, sample: Sample, log_e: float, adjusted: float, n_tests: int
    ) -> ChangeTest:
        accepted = adjusted <= self.delta
        wanted = math.log(n_tests / (self.delta - self.spent))
        lower = betting.lower_rate(sample, family.bet, wanted) * self.bounds.unit
        blocks = family.plans[0].block
        scale = 1 / family.plans[0].mass if blocks else 1.0
        if blocks and lower < 0:  # Cov(1_K, G) = π_b(K)·A, and how small π_b(K) is nobody knows
            lower = -self.bounds.span * self.bounds.unit
        return ChangeTest(
            changes=tuple(self._change(plan) for plan in family.plans),
            accepted=accepted,
            p_value=min(adjusted, math.exp(-log_e) + self.spent),
            adjusted_p_value=adjusted,
            advantage=sample.rate * scale * self.bounds.unit,
            lower_bound=max(lower, 0.0) if accepted else lower,
            visits=int(len(sample.x) * blocks if blocks else sample.times.sum()),
            episodes=int(len(sample.x) * max(blocks, 1)),
            more_episodes=0 if accepted else self._more(log_e, wanted),
        )

    def _more(self, log_e: float, wanted: float) -> int | None:
        """Further episodes until log e, which grows linearly at the bet made, is log(K/δ)."""
        if log_e <= 0:
            return None
        log = self.problem.log
        assert log is not None  # `improve` has checked it
        return max(1, math.ceil(log.n_episodes * (wanted / log_e - 1)))

    def _change(self, plan: PlannedTest) -> Change:
        state, kept = int(self.rows[plan.state]), np.empty_like(plan.kept)
        kept[self.columns] = plan.kept
        gone = (self.problem.baseline.probs[state] > 0) & ~kept
        labels = self.problem.actions
        avoided = tuple(labels[a] for a in np.flatnonzero(gone).tolist())
        return Change(self.problem.states[state], avoided)

    def accepted(self, families: Sequence[Family], tests: Sequence[ChangeTest]) -> np.ndarray:
        """The baseline's rows [S, A] with the accepted changes."""
        probs = self.problem.baseline.probs.copy()
        plans = [p for f, test in zip(families, tests) if test.accepted for p in f.plans]
        for plan in plans:
            probs[self.rows[plan.state], self.columns] = plan.played / plan.played.sum()
        return probs
