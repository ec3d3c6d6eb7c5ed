"""Certified: every change passes a test on episodes that were not used to choose it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from spibb import checks
from spibb.algorithms.base import Algorithm, Truth
from spibb.algorithms.certified.result import CertifiedImprovement, Grounds, reason_for
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Problem
from spibb.behaviour import Provenance
from spibb.change_certificate import ChangeTest
from spibb.changes.ahead import Ahead
from spibb.changes.split_log import MadeBy, SplitLog, choosing_share, n_choosing
from spibb.changes.tested import Tested
from spibb.episodes.conformity import decisions
from spibb.episodes.departures import values_where_seen
from spibb.episodes.visits import Declared, check_rewards
from spibb.errors import InputError
from spibb.log import Log
from spibb.policy import Policy
from spibb.solve import evaluate
from spibb.words import counted


@dataclass(frozen=True)
class Certified(Algorithm):
    """Changes that were tested one by one on held-out episodes: ρ(π) ≥ ρ(π_b), with P ≥ 1 − δ.

    **Guarantee.** If A^{π_b}(s, π) = Σ_a (π − π_b)(a|s) Q^{π_b}(s, a) ≥ 0 in every state s where π
    differs from π_b, then V^π ≥ V^{π_b} in every state (policy improvement theorem), and ζ = 0 from
    any start. Changes are chosen on `choose_share` of the episodes, drawn at random, and tested on
    the others by betting on unbiased, bounded samples of A (`planned_tests`, `betting`). A
    change of negative A is accepted with probability at most δ over all changes together
    (`betting.adjusted_p_values`), in a sample of any size. The guarantee does not depend on the
    number of states or actions or on 1/(1 − γ), and it uses no model.

    1. Assumed: episodes are independent; the states are Markov; π_b made the log, and is given,
       recorded (the log's action_prob), or unknown (then the tests compare actions with each other,
       and the policy says what to avoid; its other numbers are estimates); returns stay within the
       declared limits.
    2. Limits: `lowest_reward` and `highest_reward` (with `horizon`, the most steps that the process
       itself can make), `lowest_return` and `highest_return` (of returns from any step on), or the
       problem's v_max. What the log happens to show is not a limit.
    3. Episodes are put in an order that depends on their content alone and then shuffled by `seed`:
       the result does not depend on the order of the episodes, nor on the order or names of labels.
    4. If all episodes have one step (bandits), one test of the changes of many contexts together
       replaces the single tests if it promises more, and a change that contexts share is tested too
       (`shared_changes`): then ρ(π) ≥ ρ(π_b) holds on average over contexts.

    Parameters:
        delta: δ, failure probability of all accepted changes together.
        choose_share: share of the episodes that choose the changes; the others test them. None
            takes 0.3, and 0.5 of single decisions of a known baseline among many.
        lowest_return: no return from any step on is below it.
        highest_return: no return from any step on is above it.
        lowest_reward: no reward is below it.
        highest_reward: no reward is above it.
        horizon: the most steps that the process itself can make, if it has a limit.
        seed: seed of the shuffle.

    >>> result = spibb.Certified(lowest_return=0, highest_return=1).improve(problem)
    >>> print(result.certificate())
    No certificate: no change has enough evidence among the choosing episodes to be worth a test.
    """

    name: ClassVar[str] = "certified"
    needs_log: ClassVar[bool] = True
    answers_at_delta: ClassVar[bool] = True
    needs_limits: ClassVar[bool] = True
    no_certificate: ClassVar[str | None] = None

    delta: float = 0.05
    choose_share: float | None = None
    lowest_return: float | None = None
    highest_return: float | None = None
    lowest_reward: float | None = None
    highest_reward: float | None = None
    horizon: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        checks.delta(self.delta)
        checks.seed(self.seed)
        if self.choose_share is not None:
            checks.number("choose_share", self.choose_share, 0, 1, "()")
        if self.horizon is not None:
            checks.positive_field(self, "horizon")
        for name in ("lowest_return", "highest_return", "lowest_reward", "highest_reward"):
            checks.limit(name, getattr(self, name))

    def told(self, truth: Truth) -> Self:
        """The same with the limits of returns."""
        return replace(self, lowest_return=truth.returns[0], highest_return=truth.returns[1])

    def improve(self, problem: Problem) -> CertifiedImprovement:
        """Choose changes on some episodes, test them on the others."""
        return self.improve_at((self.delta,), problem)[0]

    @classmethod
    def improve_each(cls, algorithms: Sequence[Self], problem: Problem) -> list[Improvement]:
        """Results of several configurations for one problem; those that differ in δ alone read the
        log once."""
        found: dict[Self, Improvement] = {}
        for alike in dict.fromkeys(replace(one, delta=0.5) for one in algorithms):
            same = [one for one in algorithms if replace(one, delta=0.5) == alike]
            found |= zip(same, alike.improve_at([one.delta for one in same], problem))
        return [found[one] for one in algorithms]

    @checks.takes(problem=Problem)
    def improve_at(self, deltas: Sequence[float], problem: Problem) -> list[CertifiedImprovement]:
        """The same at several δ, for little more than one of them costs.

        Parameters:
            deltas: the δ, each as if it were the algorithm's own.
            problem: the log and its baseline.

        Returns:
            One improvement for each δ; each alone keeps its promise.

        >>> certified = spibb.Certified(lowest_return=0, highest_return=1)
        >>> tuple(result.algorithm.delta for result in certified.improve_at((0.05, 0.2), problem))
        (0.05, 0.2)
        """
        levels, log = checks.several("deltas", deltas, "(0.05, 0.2)"), problem.log
        if log is None:
            raise InputError(
                "certified needs the episodes, and this problem holds only counts: build it from a "
                "log"
            )
        made_by = MadeBy.of(
            log, problem.baseline.probs, problem.baseline_source, problem.counts.one_step
        )
        problem = _as_recorded(problem, made_by)
        algorithms = [replace(self, delta=delta) for delta in levels]
        share = self.choose_share
        if share is None:
            share = choosing_share(log, problem.counts.pairs, made_by.known)
        n_choose = n_choosing(log, share)
        if n_choose is None:
            few = log.n_episodes - max(1, round(share * log.n_episodes))
            reason = f"{counted(few, 'episode')} to judge with, and at least 2 are needed"
            return [one._result(problem, problem.baseline.probs, (), reason) for one in algorithms]
        declared = self._declared(problem, log)
        own = problem.in_own_order()
        assert own.log is not None
        made_by = replace(made_by, probs=own.baseline.probs)
        split = SplitLog.of(
            own.log, made_by, problem.discount, declared, n_choose, self.seed, values_where_seen
        )
        return [one._tested(problem, own, made_by, split) for one in algorithms]

    def _tested(
        self, problem: Problem, own: Problem, made_by: MadeBy, split: SplitLog
    ) -> CertifiedImprovement:
        """Choose changes with some of the episodes, and test them with the others.

        `own` is the problem with labels in the order in which they are looked at.
        """
        log = own.log
        assert log is not None
        found = Tested.of(log, made_by.probs, split, self.delta)
        chooser, visits = found.chooser, found.visits
        grounds = Grounds(
            split.bounds, split.declared, chooser.known, log.action_prob is not None,
            chooser.by_row, visits.lacks_values, _guessed(own, log), visits.how_cuts_count,
        )  # fmt: skip
        more = None if found.accepted else self._first(problem, log, made_by, split)
        reason, probs = reason_for(problem, found.tests, more), np.empty_like(made_by.probs)
        rows, columns = problem.states.codes(own.states), problem.actions.codes(own.actions)
        probs[rows[:, None], columns] = found.policy(made_by.probs)
        tests = tuple(_as_given(test, problem) for test in found.tests)
        return self._result(problem, probs, tests, reason, grounds, split.sizes, more)

    def _first(self, problem: Problem, log: Log, made_by: MadeBy, split: SplitLog) -> int | None:
        """Further episodes that let some change pass at even odds, if that can be told."""
        ahead = Ahead.of(log, made_by, problem.discount, split, self.delta, values_where_seen)
        times = ahead.first()
        return None if times is None else ahead.more(times)

    def _declared(self, problem: Problem, log: Log) -> Declared:
        single = len(log) == log.n_episodes and bool(log.terminated.all())
        declared = Declared(
            self.lowest_return, self.highest_return, self.lowest_reward, self.highest_reward,
            problem.v_max if problem.v_max_given else None, 1 if single else self.horizon,
        )  # fmt: skip
        check_rewards(log, declared)
        return declared

    def _result(
        self, problem: Problem, probs: np.ndarray, tests: tuple[ChangeTest, ...], reason: str,
        grounds: Grounds | None = None, episodes: tuple[int, int] = (0, 0),
        first: int | None = None,
    ) -> CertifiedImprovement:  # fmt: skip
        solution = evaluate(self.model(problem), probs)
        same = (probs == problem.baseline.probs).all(axis=1, keepdims=True)
        return CertifiedImprovement(
            Policy.trusted(probs, problem.states, problem.actions), solution.q, solution.v,
            np.repeat(same, probs.shape[1], axis=1), len(tests), solution.converged, problem, self,
            tests, grounds, episodes, reason=reason, first=first,
        )  # fmt: skip


def _as_recorded(problem: Problem, made_by: MadeBy) -> Problem:
    """The problem with the baseline that its log records, if that is what made the log."""
    if not made_by.recorded:
        return problem
    recorded = Policy(made_by.probs, problem.states, problem.actions, "action_prob")
    return replace(problem, baseline=recorded, baseline_source=Provenance.RECORDED)


def _as_given(test: ChangeTest, problem: Problem) -> ChangeTest:
    """The test with its states and actions in the order of the problem."""
    state, action = (
        {label: code for code, label in enumerate(labels.labels)}
        for labels in (problem.states, problem.actions)
    )
    changes = (
        replace(change, avoided=tuple(sorted(change.avoided, key=action.__getitem__)))
        for change in test.changes
    )
    return replace(test, changes=tuple(sorted(changes, key=lambda one: state[one.state])))


def _guessed(problem: Problem, log: Log) -> bool:
    """Whether the baseline is recorded, and has actions that the log never takes in a state."""
    if problem.baseline_source is not Provenance.RECORDED:
        return False
    return bool((problem.baseline.probs[decisions(log) == 0] > 0).any())
