"""Tests of planned changes on the episodes that were not used to choose them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spibb.bounds import betting
from spibb.bounds.betting import Sample
from spibb.change_certificate import Change, ChangeTest
from spibb.changes.change_search import Chooser
from spibb.changes.planned_tests import PlannedTest
from spibb.changes.prospects import Spread, believed, of_one, updated
from spibb.episodes.visits import ReturnBounds, Visits
from spibb.errors import InputError
from spibb.log import Log

TOLERATED = 1e-9
"""Of the largest loss: values below it by less are rounding."""


@dataclass(frozen=True)
class Family:
    """Changes that one test decides on, and its bet.

    `shared` says that it is one change of many states.
    """

    plans: tuple[PlannedTest, ...]
    bet: float
    shared: bool = False

    @property
    def changes(self) -> frozenset[tuple[int, bytes]]:
        """What it changes: states, and the actions that stay there."""
        return frozenset((plan.state, plan.kept.tobytes()) for plan in self.plans)

    def sample(self, visits: Visits, bounds: ReturnBounds) -> Sample:
        """The values of all the plans' episodes; each plan's are those of other episodes."""
        return betting.together([plan.sample(visits, bounds) for plan in self.plans])


@dataclass(frozen=True, eq=False)
class Judge:
    """The episodes that chose nothing; their returns are in units of the chooser's bounds.

    Of δ, `spent` went to limits of the values at which episodes were cut: a p-value is the test's
    own and `spent`.
    """

    log: Log
    baseline: np.ndarray
    visits: Visits
    chooser: Chooser
    delta: float

    @property
    def bounds(self) -> ReturnBounds:
        """The limits of returns."""
        return self.chooser.bounds

    @property
    def spent(self) -> float:
        """The part of δ that limits of values cost."""
        return self.chooser.spent

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
            more_episodes=0 if accepted else self._more(family, sample, wanted),
        )

    def _more(self, family: Family, sample: Sample, wanted: float) -> int | None:
        """Further episodes that let log e reach what is wanted at even odds; None if chance alone
        would favour the change as much as the episodes do, or far more are needed."""
        plans, chooser = family.plans, self.chooser
        before = (
            of_one(plans, chooser, 1.0)
            if family.shared
            else believed(plans, chooser, self._spread.variance, 1.0).as_one()
        )
        times = updated(before, sample).until(wanted)
        return None if times is None else max(1, math.ceil(self.log.n_episodes * (times - 1)))

    @cached_property
    def _spread(self) -> Spread:
        """How actions differ beyond chance, by all episodes."""
        return Spread.of(self.chooser, self.visits)

    def _change(self, plan: PlannedTest) -> Change:
        gone = (self.baseline[plan.state] > 0) & ~plan.kept
        labels = self.log.actions
        avoided = tuple(labels[a] for a in np.flatnonzero(gone).tolist())
        return Change(self.log.states[plan.state], avoided)
