"""What the criteria and the sentence of a verdict say, in words."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import spibb
from spibb.algorithms.auto import Auto
from spibb.algorithms.certified import Certified
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import PiBSpibb
from spibb.evaluate import standard_error
from spibb.log import Log
from spibb.policy import Policy
from spibb.verdict import Verdict, decide, gather_for
from spibb.verdict.criterion import Criterion
from spibb.verdict.remedies import ANOTHER, UNTOLD, more_episodes, until_sure


def bandit(n: int, effect: float = 1.0, noise: float = 0.1, seed: int = 0) -> Log:
    """One decision per episode; action b pays `effect` more."""
    rng = np.random.default_rng(seed)
    action = rng.integers(2, size=n)
    reward = effect * action + noise * rng.standard_normal(n)
    return Log.from_arrays(
        ["x"] * n, ["ab"[a] for a in action.tolist()], reward, terminated=[True] * n
    )


def problem_of(log: Log) -> Problem:
    return Problem.from_log(log, Policy([[0.5, 0.5]], ["x"], ["a", "b"]), discount=0.9)


def named(verdict: Verdict, name: str) -> Criterion:
    return next(c for c in verdict.criteria if c.name == name)


def test_where_nothing_changes_no_rounding_is_shown_as_a_failure():
    verdict = PiBSpibb(1e6).improve(problem_of(bandit(100))).verdict
    assert [c.name for c in verdict.criteria if c.passed is False] == ["changes"]
    for name in ("sure gain", "single changes", "beyond chance", "effective size"):
        assert (named(verdict, name).found, named(verdict, name).passed) == (
            "nothing changes",
            None,
        )


def test_one_action_only_is_not_beyond_chance():
    evidence = gather_for(PiBSpibb(5).improve(problem_of(bandit(200))))
    assert decide(evidence).favourable
    single = replace(evidence.departures, freedom=0, surprise=1e-20)
    verdict = decide(replace(evidence, departures=single))
    assert not verdict.favourable
    assert "only one action" in verdict.sentence


def test_weak_estimates_give_their_own_reason():
    evidence = gather_for(PiBSpibb(5).improve(problem_of(bandit(200))))
    rows = evidence.estimates.rows
    found = {}
    for k, row in enumerate(rows):
        doubtful = replace(row, estimate=replace(row.estimate, warning="the weights are odd"))
        report = replace(evidence.estimates, rows=(*rows[:k], doubtful, *rows[k + 1 :]))
        verdict = decide(replace(evidence, estimates=report))
        found[row.estimate.name] = named(verdict, "whole episodes").found
    assert found.pop("wpdis") == "the weights are odd"
    assert not any("odd" in text for text in found.values())  # estimators that are not asked


def test_a_constant_does_not_silence_whole_episodes():
    """Two changes gain alone and lose together, which only whole episodes show; estimators that are
    of no use far from 0 must not hide the one that is."""
    rng, n = np.random.default_rng(0), 500
    a, noise = rng.integers(3, size=(n, 3)), rng.standard_normal((n, 3))
    good = a == 1
    reward = np.stack(
        [1.9 * good[:, 0], np.zeros(n), 1.9 * good[:, 2] - 4 * (good[:, 0] & good[:, 2])], 1
    ) + noise * [1, 0, 1]
    for constant in (0, 100, 1000, -1000):
        log = spibb.Log.from_arrays(
            np.tile([0, 1, 2], n), a.ravel(), (reward + constant).ravel(),
            terminated=np.tile([False, False, True], n), episode_id=np.repeat(np.arange(n), 3),
            step=np.tile([0, 1, 2], n),
        )  # fmt: skip
        result = spibb.improve(log, np.full((3, 3), 1 / 3), discount=0.99, algorithm=PiBSpibb(10))
        assert (result.policy.probs[[0, 2], 1] > 0.99).all()
        assert named(result.verdict, "whole episodes").passed is False, constant


def test_completed_returns_have_their_own_standard_error():
    """Half of the episodes are cut; what is added to them is the same, and widens the spread."""
    whole, n = bandit(80), 80
    cut = np.arange(n) % 2 == 0
    log = replace(
        whole, terminated=~cut, truncated=cut, next_state=np.where(cut, 0, whole.next_state)
    )
    earned = gather_for(PiBSpibb(5).improve(problem_of(log))).earned
    assert earned.cut == n // 2
    assert earned.standard_error == pytest.approx(standard_error(log.reward))
    added = (earned.completed - earned.mean) * 2  # one value, as all reach the same state
    completed = standard_error(log.reward + np.where(cut, added, 0.0))
    assert earned.completed_error == pytest.approx(completed)
    assert earned.completed_error > 1.02 * earned.standard_error
    assert earned.reach == pytest.approx(1.96 * earned.standard_error)


def test_what_may_be_lost_is_called_a_loss():
    verdict = PiBSpibb(5).improve(problem_of(bandit(60, effect=0.0, noise=1.0))).verdict
    assert re.fullmatch(
        r"At level 0\.95 the new policy may lose up to [0-9.]+ per episode\.", verdict.sentence
    )


def test_auto_is_not_recommended_to_one_who_used_it():
    assert "auto" in more_episodes(until_sure(100, -1.0, -2.0), 100, ANOTHER)
    assert more_episodes(until_sure(100, -1.0, -2.0), 100) == UNTOLD
    verdict = Auto().improve(problem_of(bandit(60, effect=0.0, noise=1.0))).verdict
    assert "n_wedge = auto" not in verdict.remedy


def test_one_change_is_singular():
    result = Certified(lowest_return=-2.0, highest_return=-0.0, delta=0.05).improve(
        problem_of(replace(bandit(400), reward=bandit(400).reward / 4 - 1))
    )
    verdict = result.verdict
    assert verdict.grade == "certified"
    assert "the one change tested (1 state) passed on" in verdict.sentence
    assert "choose it. The change gains at least" in verdict.sentence
    assert "[−2, 0]" in " ".join(verdict.assumptions)


def test_the_model_is_compared_with_completed_returns_and_says_so():
    evidence = gather_for(PiBSpibb(5).improve(problem_of(bandit(200))))
    assert "cut episodes" not in named(decide(evidence), "model").found
    cut = replace(evidence, earned=replace(evidence.earned, cut=150, completed=9.0))
    model = named(decide(cut), "model")
    assert "9 ± " in model.found and "cut episodes completed by the model" in model.found
    assert model.remedy.startswith("First, record longer") and "150 of 200" in model.remedy
    missed = replace(evidence, earned=replace(evidence.earned, completed=9.0))
    assumed = named(decide(replace(missed, ends_assumed=True)), "model")
    assert assumed.remedy.startswith("First, add columns terminated and")
    assert named(decide(missed), "model").remedy.startswith("Other states")
    assert not named(decide(evidence), "model").remedy  # which it meets


def test_estimates_on_the_log_that_trained_say_so():
    verdict = PiBSpibb(5).improve(problem_of(bandit(200))).verdict
    assert "same log, so optimistic" in named(verdict, "whole episodes").what


def test_a_comparison_of_estimates_says_that_it_is_one_of_significance():
    verdict = PiBSpibb(10).improve(problem_of(bandit(200))).verdict
    assert named(verdict, "whole episodes").wanted.startswith("not significantly below ")


def test_nothing_would_raise_the_highest_grade():
    result = Certified(lowest_reward=-2, highest_reward=3).improve(problem_of(bandit(400)))
    assert result.verdict.advice == result.verdict.remedy
    assert result.verdict.advice.startswith("This is the highest grade")
    other = PiBSpibb(10_000).improve(problem_of(bandit(200))).verdict
    assert other.advice == f"What would raise the grade: {other.remedy}"


@pytest.mark.parametrize("effect", [0.0, 1.0])
def test_conditions_that_were_not_tested_say_why(effect):
    for n_wedge in (10, 10_000):
        verdict = PiBSpibb(n_wedge).improve(problem_of(bandit(60, effect, 1.0, seed=1))).verdict
        failed = [c.name for c in verdict.criteria if c.passed is False]
        season = named(verdict, "season")
        assert season.found.startswith("not tested, because ") == bool(failed)
        if failed and n_wedge == 10:
            assert failed[0] in season.found


def test_a_baseline_that_did_not_make_the_log_has_a_remedy_in_a_sentence():
    log = bandit(100)
    wrong = Problem.from_log(log, Policy([[1.0, 0.0]], ["x"], ["a", "b"]), discount=0.9)
    verdict = PiBSpibb(10).improve(wrong).verdict
    assert named(verdict, "baseline").remedy.startswith("Set the baseline to ")


@pytest.mark.parametrize(("v_max", "excluded"), [(None, False), (2.0, True), (100.0, False)])
def test_a_declared_limit_may_exclude_the_event_that_would_undo_a_gain(v_max, excluded):
    baseline = Policy([[0.5, 0.5]], ["x"], ["a", "b"])
    problem = Problem.from_log(bandit(200), baseline, discount=0.9, v_max=v_max)
    sentence = PiBSpibb(5).improve(problem).verdict.sentence
    assert ("; v_max = 2 excludes that." in sentence) == excluded
    assert ("a loss of" in sentence) != excluded
