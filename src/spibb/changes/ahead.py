"""What `certified` would do with more episodes like those of a log.

All episodes of the log plan the tests, with as many judging ones as a longer log would have, and
`prospects` says how likely each would pass. As in `certified`, single changes are tested, or one
group of them if it promises more, and beside it a rule that states share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from spibb.changes.change_search import Chooser, Valuation
from spibb.changes.planned_tests import PlannedTest, best_group, worth_testing
from spibb.changes.prospects import Outlook, Spread, believed, of_one
from spibb.changes.shared_changes import best_shared
from spibb.changes.split_log import MadeBy, SplitLog, chooser_of
from spibb.labels import Label
from spibb.log import Log

TIMES = tuple(2 ** (k / 4) for k in range(1, 27))
"""How many times the log are looked at: up to 90."""


@dataclass(frozen=True, eq=False)
class Ahead:
    """The `chooser` of all `episodes` of a log; `single` if its states are contexts of a bandit."""

    chooser: Chooser
    labels: Sequence[Label]
    episodes: int
    single: bool

    @classmethod
    def of(
        cls, log: Log, made_by: MadeBy, discount: float, split: SplitLog, delta: float,
        values: Valuation,
    ) -> Ahead:  # fmt: skip
        """Of a log that was split as `certified` does."""
        bounds = split.chooser.bounds
        inside = replace(log, reward=log.reward / bounds.unit)
        judged = split.sizes[1] / log.n_episodes
        chooser = chooser_of(inside, log, made_by, discount, bounds, judged, values)
        single = split.declared.horizon == 1 and made_by.known
        return cls(chooser.at(delta), log.states.labels, log.n_episodes, single)

    def more(self, times: float) -> int:
        """How many more episodes make the log this many times as long."""
        return max(1, math.ceil(self.episodes * (times - 1)))

    def half(self, now: int) -> tuple[int, float | None]:
        """Half of the states beyond `now` that can be expected to change, and how many times the
        log that takes; None if no more can be expected."""
        expected = [sum(states * odds for states, odds in self.tests(times)) for times in TIMES]
        most = math.floor(max(expected) + 0.5)
        if most <= now:
            return now, None
        wanted = now + (most - now + 1) // 2
        return wanted, next(t for t, found in zip(TIMES, expected) if found >= wanted - 0.5)

    def first(self) -> float | None:
        """How many times the log let some change pass at even odds."""
        for times in TIMES:
            if math.prod(1 - odds for _, odds in self.tests(times)) <= 0.5:
                return times
        return None

    @cached_property
    def spread(self) -> Spread:
        """How the actions of a state differ beyond chance."""
        return Spread.of(self.chooser)

    @cached_property
    def _plans(self) -> list[PlannedTest]:
        return [plan for plan in self.chooser.plans() if plan.evidence > 0]

    @cached_property
    def _outlook(self) -> Outlook:
        return believed(self._plans, self.chooser, self.spread.variance, self.chooser.scale)

    @cached_property
    def _rule(self) -> tuple[int, float, Outlook] | None:
        """The rule that promises most with many episodes: how many states it changes, the evidence
        for it in a log of this size, and what is believed of it."""
        longest = replace(self.chooser, scale=self.chooser.scale * TIMES[-1])
        found = best_shared(longest, self.labels) if self.single else None
        plans = () if found is None else found.plans(self.chooser)
        if found is None or not plans:
            return None
        outlook = of_one(plans, self.chooser, self.chooser.scale)
        return len(plans), found.evidence / TIMES[-1], outlook

    def tests(self, times: float) -> list[tuple[int, float]]:
        """The tests with `times` the log: how many states each changes, and its odds."""
        if not self._plans:
            return []
        delta, plans = self.chooser.delta, self._plans
        worth = {plan.state for plan in worth_testing(plans, delta, times)}
        which = np.array([plan.state in worth for plan in plans])
        odds = self._outlook.among(which).together(times, delta)
        tests = [(1, float(one)) for one in odds]
        if not self.single:
            return tests
        gains = np.array([plan.visiting * plan.advantage for plan in plans])
        scale = self.chooser.scale * times
        group, _, score = best_group(plans, self.chooser.bounds, scale, delta)
        if group and score > float(odds @ gains[which]):
            tests = [self._grouped(group, times)]
        return self._or_rule(tests, times)

    def _grouped(self, group: Sequence[PlannedTest], times: float) -> tuple[int, float]:
        states = {plan.state for plan in group}
        members = np.array([plan.state in states for plan in self._plans])
        outlook = self._outlook.among(members).as_one()
        return len(group), float(outlook.together(times, self.chooser.delta)[0])

    def _or_rule(self, tests: list[tuple[int, float]], times: float) -> list[tuple[int, float]]:
        """The rule instead, if it changes more states on average."""
        delta = self.chooser.delta
        if self._rule is None or self._rule[1] * times < math.log(1 / delta):
            return tests
        states, _, outlook = self._rule
        rule = states, float(outlook.together(times, delta)[0])
        return [rule] if rule[0] * rule[1] > sum(n * odds for n, odds in tests) else tests
