"""Remedies fit the log: what more of the same cannot cure is not answered with more of it."""

from __future__ import annotations

import numpy as np
import pytest

from spibb import Certified, Log, PiBSpibb, Problem
from spibb.algorithms.auto import Auto
from spibb.algorithms.candidate import surest
from spibb.verdict.remedies import (
    UNTOLD,
    more_episodes,
    until_beyond_chance,
    until_crossed,
    until_sure,
)

ALGORITHMS = [PiBSpibb(5), Auto(), Certified(lowest_return=0.0, highest_return=1.0)]


def single_steps(states, actions, n, seed=0):
    rng = np.random.default_rng(seed)
    action = rng.integers(actions, size=n)
    return Log.from_arrays(
        rng.integers(states, size=n), action, rng.random(n).round(3), terminated=[True] * n
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
def test_one_action_per_state_asks_for_variation(algorithm):
    verdict = algorithm.improve(Problem.from_log(single_steps(3, 1, 300))).verdict
    assert verdict.remedy.startswith("Some variation: ")
    assert "More episodes like these would not help." in verdict.remedy


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
@pytest.mark.parametrize("baseline", [None, [[0.5, 0.5]]])
def test_one_episode_shows_no_lack_of_variation(algorithm, baseline):
    log = Log.from_arrays(["x"], ["a"], [1.0], terminated=[True], action_labels=["a", "b"])
    verdict = algorithm.improve(Problem.from_log(log, baseline)).verdict
    assert verdict.remedy == UNTOLD
    said = [verdict.sentence, *(f"{c.found} {c.why} {c.remedy}" for c in verdict.criteria)]
    assert not any("1 episodes" in text for text in said)


def test_a_policy_that_never_varies_asks_for_variation_in_the_smallest_log():
    log = Log.from_arrays(["x"], ["a"], [1.0], terminated=[True], action_labels=["a", "b"])
    verdict = PiBSpibb(5).improve(Problem.from_log(log, [[1.0, 0.0]])).verdict
    assert verdict.remedy.startswith("Some variation: ")


@pytest.mark.parametrize(("states", "n", "coarser"), [(300, 900, True), (5, 40, False)])
def test_many_states_with_few_visits_each_ask_for_coarser_ones(states, n, coarser):
    result = PiBSpibb(1e9).improve(Problem.from_log(single_steps(states, 3, n)))
    assert result.verdict.remedy.startswith("Coarser states") == coarser
    assert result.verdict.remedy.endswith(UNTOLD)


def test_rows_of_single_steps_are_assumed_to_be_cases_of_their_own():
    log = single_steps(3, 2, 300)
    longer = Log.from_arrays(
        [0, 1] * 150, [0, 1, 1, 0] * 75, [0.0] * 300, terminated=[False, True] * 150
    )
    said = [PiBSpibb(5).improve(Problem.from_log(one)).verdict.assumptions for one in (log, longer)]
    independent = ["every row is an independent case" in " ".join(found) for found in said]
    assert independent == [True, False]


def test_a_forecast_of_differences_counts_only_what_exceeds_chance():
    """Σ z² of 8 where chance alone gives 4: at even odds the excess reaches the limit."""
    mean, limit, rng = 4, 9.49, np.random.default_rng(0)
    more = until_beyond_chance(100, 8.0, mean, limit)
    assert more is not None
    excess = (8.0 - mean) * (100 + more) / 100
    drawn = rng.noncentral_chisquare(mean, excess, 20_000)
    assert np.mean(drawn > limit) == pytest.approx(0.5, abs=0.08)
    assert until_beyond_chance(100, 3.9, mean, limit) is None


def test_a_forecast_of_the_lower_bound_is_reached_as_often_as_not():
    gain, lower, rng = 1.0, -1.0, np.random.default_rng(0)
    more = until_sure(100, gain, lower)
    assert more is not None
    error = (gain - lower) / 2 / np.sqrt(1 + more / 100)
    assert np.mean(rng.normal(gain, error, 20_000) > 2 * error) == pytest.approx(0.5, abs=0.03)
    assert until_sure(100, -1.0, -2.0) is None


def test_what_halves_teach_grows_faster_than_the_root_of_the_log():
    """With twice the log, each half is as good as the log now."""
    assert until_crossed(100, (0.0, 1.96), 1.96, None) == pytest.approx(100)
    assert until_crossed(100, (0.98, 2.94), 1.96, None) == pytest.approx(50)
    assert until_crossed(100, (0.5, 0.98), 1.96, None) == pytest.approx(700)
    assert until_crossed(100, (0.5, 0.98), 1.96, 30.0) == 30.0
    assert until_crossed(100, (0.5, 0.2), 1.96, None) is None


def test_the_episodes_asked_for_are_enough_for_every_condition():
    several = 0
    for seed in range(30):
        verdict = PiBSpibb(2).improve(Problem.from_log(single_steps(4, 3, 60, seed))).verdict
        failed = [c for c in verdict.criteria if c.passed is False]
        wanted = [c.more for c in failed if c.more is not None]
        if failed and failed[0].more is not None:
            several += len(wanted) > 1
            assert verdict.remedy == more_episodes(max(wanted), 60)
    assert several


@pytest.mark.parametrize("algorithm", [Auto(), PiBSpibb("auto")], ids=["auto", "pi-b"])
def test_who_has_no_threshold_is_not_told_to_raise_it(algorithm):
    for seed in range(4):
        for criterion in algorithm.improve(
            Problem.from_log(single_steps(3, 2, 80, seed))
        ).verdict.criteria:
            assert "N∧" not in criterion.remedy and "n_wedge" not in criterion.remedy


def test_a_condition_that_holds_needs_no_remedy():
    for algorithm in ALGORITHMS:
        for criterion in algorithm.improve(
            Problem.from_log(single_steps(3, 2, 300))
        ).verdict.criteria:
            if criterion.passed:
                assert (criterion.why, criterion.remedy, criterion.more) == ("", "", None)


def test_where_nothing_changes_yet_the_forecast_counts_the_visits_too():
    """6 of 30 rows take the better action: 60 visits to it take 270 more."""
    rng = np.random.default_rng(0)
    action = (np.arange(30) % 5 == 0).astype(int)
    log = Log.from_arrays(
        state=np.zeros(30, dtype=int), action=action, reward=action / 2 + rng.standard_normal(30),
        episode_id=np.arange(30), terminated=np.ones(30, dtype=bool),
    )  # fmt: skip
    result = Auto().improve(Problem.from_log(log, None, discount=0.0))
    assert result.chosen is None
    best = surest([candidate for candidate in result.sweep if candidate.states_changed])
    assert 0 < until_sure(30, best.gain, best.lower) < 270
    assert "270 more episodes" in result.verdict.remedy


@pytest.mark.parametrize("gain", [1e-300, 5e-324, 1e-9])
def test_no_absurd_number_of_episodes_is_named(gain):
    assert (
        more_episodes(until_sure(100, gain, -1.0), 100)
        == "More than 100 times as many episodes (over 10,000)."
    )
    assert "more episodes" not in more_episodes(until_beyond_chance(100, 5, 5 - 1e-15, 10), 100)


def test_one_episode_is_one():
    assert more_episodes(1.0, 60) == "About 1 more episode, if they are like these."


def test_a_remedy_promises_no_certificate_that_the_verdict_would_withdraw():
    """What was done a step before pays now: the tests accept changes, and the log refutes Markov
    states."""
    rng, n, steps = np.random.default_rng(1), 600, 4
    action = rng.integers(2, size=(n, steps))
    before = np.pad(action, ((0, 0), (1, 0)))[:, :-1]
    reward = rng.random((n, steps)) < 0.2 + 0.5 * action + 0.25 * before
    log = Log.from_arrays(
        np.tile(np.arange(steps), n), action.ravel(), reward.ravel().astype(float),
        terminated=np.tile(np.arange(steps) == steps - 1, n),
    )  # fmt: skip
    problem = Problem.from_log(log, [[0.5, 0.5]] * steps, discount=0.9, v_max=4.0)
    verdict = PiBSpibb(10).improve(problem).verdict
    assert verdict.grade == "supported"
    assert "once the states contain what matters from the past" in verdict.remedy
    assert "accepts" not in verdict.remedy
    result = Certified(lowest_reward=0, highest_reward=1, horizon=steps).improve(problem)
    assert result.tested().accepted
    assert "states are Markov" in result.certificate().refusal


def test_no_remedy_asks_for_more_episodes_without_a_number_or_what_they_must_contain():
    """Nor names columns that the log does not have."""
    for seed in range(8):
        for algorithm in ALGORITHMS:
            for n in (8, 40, 120):
                problem = Problem.from_log(single_steps(3, 2, n, seed))
                verdict = algorithm.improve(problem).verdict
                for text in (verdict.remedy, *(c.remedy for c in verdict.criteria)):
                    assert not text.startswith(("More episodes.", "More episodes,"))
                    assert "ward" not in text


def test_rewards_that_share_a_constant_are_named_where_lengths_differ():
    rng = np.random.default_rng(0)
    ends = rng.random(400) < 0.3
    ends[-1] = True
    parts = rng.integers(3, size=400), rng.integers(2, size=400)

    def doubts(reward, ends):
        log = Log.from_arrays(*parts, reward, terminated=ends)
        return [d for d in PiBSpibb(5).improve(Problem.from_log(log)).verdict.doubts if "all" in d]

    noise, twos = rng.random(400).round(3), np.arange(400) % 2 == 1
    (doubt,) = doubts(10 + noise, ends)
    assert doubt.startswith("all rewards are close to 10.5")
    assert "subtract 10.5" in doubt
    assert doubts(noise, ends) == doubts(10 + noise, twos) == doubts(np.full(400, 3.0), ends) == []


def test_certified_that_certifies_nothing_assumes_no_model():
    problem = Problem.from_log(single_steps(3, 2, 60))
    said = [a.improve(problem).verdict.assumptions for a in (PiBSpibb(5), ALGORITHMS[2])]
    of_the_model = ["an action rarely seen" in " ".join(found) for found in said]
    assert of_the_model == [True, False]
    assert any("limits" in clause or "return" in clause for clause in said[1])
