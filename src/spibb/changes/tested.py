"""What `certified` finds in a log: which changes it tests, and which of them pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spibb.change_certificate import ChangeTest
from spibb.changes.change_search import Chooser
from spibb.changes.change_tests import Family, Judge
from spibb.changes.planned_tests import PlannedTest, best_group, worth_testing
from spibb.changes.shared_changes import best_shared
from spibb.changes.split_log import SplitLog
from spibb.episodes.value_limits import narrowed
from spibb.episodes.visits import Visits
from spibb.labels import Label
from spibb.log import Log


@dataclass(frozen=True, eq=False)
class Tested:
    """The tests of `families`, in that order, by what `visits` of the judging episodes say."""

    chooser: Chooser
    visits: Visits
    families: list[Family]
    tests: tuple[ChangeTest, ...]

    @classmethod
    def of(cls, log: Log, baseline: np.ndarray, split: SplitLog, delta: float) -> Tested:
        """Choose changes with some of the episodes, and test them with the others.

        `baseline` [S, A] are the probabilities of the policy that made the log, or their estimates.
        """
        chooser, visits = split.chooser.at(delta), split.judging
        families, rules = planned(chooser, split.declared.horizon == 1, log.states.labels)
        if chooser.spent:
            visits = narrowed(visits, chooser.bounds, chooser.noise, chooser.spent)
        judge = Judge(log, baseline, visits, chooser, delta)
        families, tests = judge.best(families, rules)
        return cls(chooser, visits, families, tests)

    @property
    def accepted(self) -> list[PlannedTest]:
        """The changes that passed."""
        passed = (f.plans for f, test in zip(self.families, self.tests) if test.accepted)
        return [plan for plans in passed for plan in plans]

    def policy(self, baseline: np.ndarray) -> np.ndarray:
        """The baseline's rows [S, A] with the accepted changes."""
        probs = baseline.copy()
        for plan in self.accepted:
            probs[plan.state] = plan.played / plan.played.sum()
        return probs


def planned(
    chooser: Chooser, one_step: bool, labels: Sequence[Label]
) -> tuple[list[Family], list[Family]]:
    """What is tested: single changes or one group of them; and a rule that states share."""
    plans = chooser.plans()
    singles = worth_testing(plans, chooser.delta)
    families = [Family((plan,), plan.bet) for plan in singles]
    if not (one_step and chooser.known):
        return families, []
    group, bet, score = best_group(plans, chooser.bounds, chooser.scale, chooser.delta)
    alone = sum(plan.power * plan.visiting * plan.advantage for plan in singles)
    if score > alone:
        families = [Family(tuple(group), bet)]
    found = best_shared(chooser, labels)
    rules = [] if found is None else [Family(found.plans(chooser), found.bet, shared=True)]
    known = {frozenset(), *(family.changes for family in families)}
    return families, [rule for rule in rules if rule.changes not in known]
