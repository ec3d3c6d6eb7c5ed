"""Memory, drift, overlap and rehearsals on worlds whose answer is known."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from parts import needed

from spibb import Certified, Log, PiBSpibb, Policy, Problem, Vocabulary
from spibb.envs.sepsis import MAX_STEPS, icu_sepsis
from spibb.sceptic import Sceptic, doubts, exchange
from spibb.sceptic.drift import drift_check, season_check
from spibb.sceptic.exchange import PERMUTATIONS, exchange_test
from spibb.sceptic.markov import decisions_remember, markov_check
from spibb.sceptic.overlap import overlap
from spibb.sceptic.rehearsal import Rehearsal, rehearse
from spibb.simulate import Sampler


def chain(rng, n, steps, successor, reward):
    """A log of two states and two actions played by a coin, from rules of (past, state, action)."""
    columns = {name: [] for name in ("episode_id", "step", "state", "action", "reward")}
    for e in range(n):
        past, state = 0, int(rng.integers(2))
        for t in range(steps):
            action = int(rng.integers(2))
            for name, value in zip(columns, (e, t, state, action, reward(e, past, state, action))):
                columns[name].append(value)
            past, state = state, successor(e, past, state, action)
    last = np.array(columns["step"]) == steps - 1
    return Log.from_arrays(**columns, terminated=last)


def fair(rng):
    return lambda e, past, s, a: int(rng.random() < (0.3 if s == a else 0.6))


def noise(rng):
    return lambda e, past, s, a: float(rng.normal())


def uniform(p):
    """Largest distance of p-values from the uniform distribution, in units of the 1 % limit."""
    p = np.sort(p)
    return np.abs(p - np.arange(1, len(p) + 1) / len(p)).max() * np.sqrt(len(p)) / 1.63


def test_p_values_of_the_exchange_test_are_uniform_if_groups_do_not_matter():
    rng, one, two = np.random.default_rng(0), [], []
    for _ in range(120):
        pair, group = rng.integers(0, 4, 120), rng.integers(0, 3, 120)
        found = exchange_test(pair, rng.integers(0, 3, 120), rng.normal(size=120), group, rng)
        one.append(found.successors_p)
        two.append(found.rewards_p)
    assert uniform(one) < 1 and uniform(two) < 1


def test_a_markov_world_passes_and_one_with_memory_is_found():
    rng = np.random.default_rng(1)
    p = [markov_check(chain(rng, 30, 8, fair(rng), noise(rng)), rng).p_value for _ in range(60)]
    assert np.mean(np.array(p) < 0.05) < 0.15

    def remembers(e, past, s, a):
        return int(rng.random() < (0.2 if past else 0.8))

    found = markov_check(chain(rng, 60, 8, remembers, noise(rng)), rng)
    assert found.successors_p == 1 / (1 + PERMUTATIONS)
    paid = markov_check(
        chain(rng, 60, 8, fair(rng), lambda e, past, s, a: past + rng.normal()), rng
    )
    assert paid.rewards_p == 1 / (1 + PERMUTATIONS)
    assert paid.successors_p > 0.01


def test_states_that_few_episodes_visit_do_not_look_like_memory():
    """Values that an episode taught itself would be found again in it, in nearly all these logs."""
    needed("icu_sepsis")
    sampler = Sampler(*icu_sepsis(), MAX_STEPS)
    logs = [sampler.log(300, rng=np.random.default_rng(seed)) for seed in range(12)]
    for check in (lambda log, rng: markov_check(log, rng).p_value, decisions_remember):
        found = np.array([check(log, np.random.default_rng(1)) for log in logs])
        assert (found < 0.05).sum() <= 3  # P(> 3 of 12) = 0.2 % at a rate of 5 %


def test_drift_of_dynamics_returns_and_decisions_is_told_apart():
    rng = np.random.default_rng(2)
    same = drift_check(chain(rng, 100, 6, fair(rng), noise(rng)), 0.9, rng)
    assert same.p_value > 0.01

    def turns(e, past, s, a):
        return int(rng.random() < (0.2 if e < 50 else 0.8))

    moved = drift_check(chain(rng, 100, 6, turns, noise(rng)), 0.9, rng)
    assert moved.dynamics.p_value == 2 / (1 + PERMUTATIONS)
    assert moved.decisions_p > 0.01
    paid = drift_check(chain(rng, 100, 6, fair(rng), lambda e, p, s, a: float(e >= 50)), 0.9, rng)
    assert paid.returns_p == 1 / (1 + PERMUTATIONS)
    assert (paid.early, paid.late > 4) == (0.0, True)
    assert drift_check(chain(rng, 1, 6, fair(rng), noise(rng)), 0.9, rng) is None


def test_decisions_that_change_as_recorded_are_no_drift():
    """An honest log whose policy changes from day to day: what follows a decision does not."""
    rng = np.random.default_rng(4)
    n = 2000
    late = np.arange(n) >= n // 2
    prob = np.where(late, 0.9, 0.2)
    action = (rng.random(n) < prob).astype(int)
    rows = {
        "state": np.zeros(n, int), "action": action, "episode_id": np.arange(n),
        "step": np.zeros(n, int), "terminated": np.ones(n, bool),
        "reward": action + rng.random(n),
    }  # fmt: skip
    recorded = np.where(action == 1, prob, 1 - prob)
    honest = drift_check(Log.from_arrays(**rows, action_prob=recorded), 0.0, rng)
    assert honest.p_value > 0.01 and (honest.returns_p, honest.decisions_p) == (None, None)
    assert "say how the decisions changed" in alone(drift=honest).sentences()[0]
    silent = drift_check(Log.from_arrays(**rows), 0.0, rng)
    assert silent.corrected(silent.decisions_p) < 0.01
    rows["reward"] = rows["reward"] + late
    changed = drift_check(Log.from_arrays(**rows, action_prob=recorded), 0.0, rng)
    assert changed.p_value < 0.01
    assert "differ in what follows the same decision" in alone(drift=changed).sentences()[0]


@pytest.mark.parametrize("most_rows", [100, 20_000])
def test_no_p_value_depends_on_the_order_of_labels(most_rows, monkeypatch):
    monkeypatch.setattr(exchange, "MOST_ROWS", most_rows)
    rng = np.random.default_rng(3)
    log = chain(rng, 60, 4, lambda e, past, s, a: int(rng.random() < 0.3 + 0.3 * past), noise(rng))
    turned = log.with_labels(
        *(Vocabulary(labels.labels[::-1], labels.names) for labels in (log.states, log.actions))
    )
    for check in (markov_check, season_check, partial(drift_check, discount=0.9)):
        one, other = (check(some, rng=np.random.default_rng(0)) for some in (log, turned))
        assert one == other


def test_drift_p_values_are_uniform_without_drift():
    rng = np.random.default_rng(3)
    found = [drift_check(chain(rng, 20, 4, fair(rng), noise(rng)), 0.9, rng) for _ in range(60)]
    assert uniform([one.decisions_p for one in found]) < 1
    assert uniform([one.dynamics.rewards_p for one in found]) < 1


def test_returns_of_a_few_episodes_give_no_false_alarm():
    """A normal approximation did, in up to 13 % of such logs, and was certain where halves are
    constant."""
    rng, episodes = np.random.default_rng(5), 6
    rows = {"state": [0] * episodes, "action": [0] * episodes, "terminated": [True] * episodes,
            "episode_id": range(episodes), "step": [0] * episodes}  # fmt: skip
    found = [
        drift_check(Log.from_arrays(**rows, reward=rng.integers(0, 2, episodes)), 0.9, rng)
        for _ in range(100)
    ]
    assert min(one.returns_p for one in found) > 0.01


def alone(**parts):
    """A sceptic who asked nothing else."""
    asked = dict.fromkeys(("confounding", "markov", "drift", "overlap")) | parts
    return Sceptic(**asked, rehearsal=Rehearsal.refused("nobody asked"))


def test_what_is_plain_to_see_is_said():
    """A successor that copies the step before it, and dynamics that turn over at half-time."""
    rng = np.random.default_rng(6)
    copies = chain(rng, 60, 8, lambda e, past, s, a: past, noise(rng))
    memory = alone(markov=markov_check(copies, rng)).sentences()[0]
    assert memory.startswith("Memory: what happened before predicts what happens next")
    turns = chain(rng, 60, 8, lambda e, past, s, a: int(e < 30), lambda e, past, s, a: 0.0)
    drift = alone(drift=drift_check(turns, 0.9, rng)).sentences()[0]
    assert "episodes differ in what follows the same decision" in drift


def test_losses_have_a_true_minus_sign():
    rng = np.random.default_rng(6)
    costs = chain(rng, 20, 3, fair(rng), lambda e, past, s, a: -1.0)
    said = Sceptic(None, None, drift_check(costs, 0.9, rng), None, Rehearsal(9, 5, 0, -0.5, -0.7))
    drift, rehearsal = said.sentences()
    assert "returns −2.71 early, −2.71 late" in drift
    assert "Mean gain −0.5, worst −0.7." in rehearsal


def test_overlap_is_that_of_products_of_ratios():
    log = Log.from_arrays(
        [0, 1, 0], [0, 1, 1], [0.0] * 3, episode_id=[0, 0, 1], step=[0, 1, 0],
        terminated=[False, True, True], n_states=2, n_actions=2,
    )  # fmt: skip
    policy, made = np.array([[0.8, 0.2], [1.0, 0.0]]), np.full((2, 2), 0.5)
    found = overlap(log, policy, made)
    np.testing.assert_allclose(found.weights, [0.0, 0.4])
    np.testing.assert_allclose(found.effective, [2.0**2 / (1.6**2 + 0.4**2), 1.0])
    assert overlap(log, policy, np.eye(2)) is None


def test_an_unchanged_policy_overlaps_fully():
    rng = np.random.default_rng(4)
    log, made = chain(rng, 20, 5, fair(rng), noise(rng)), np.full((2, 2), 0.5)
    np.testing.assert_allclose(overlap(log, made, made).effective, 20)


def improved(rng, episodes=60, n_wedge=10.0):
    log = chain(rng, episodes, 5, fair(rng), lambda e, p, s, a: float(a) + rng.normal() / 2)
    baseline = Policy(np.full((2, 2), 0.5))
    return PiBSpibb(n_wedge).improve(Problem.from_log(log, baseline, discount=0.9))


def test_rehearsals_are_bounded_repeatable_and_seldom_end_badly_where_the_case_is_clear():
    result = improved(np.random.default_rng(5))
    one, two = (rehearse(result, np.random.default_rng(6), times=20, seconds=60) for _ in range(2))
    assert one == two
    assert (one.done, one.refusal) == (20, None)
    assert one.worse <= 2 and one.gain > 0
    assert rehearse(result, np.random.default_rng(6), seconds=0.0).done == 0


def test_a_declared_horizon_holds_in_rehearsals():
    """Every episode ends at the horizon; drawn ones, which states do not end, must do so too."""
    rng = np.random.default_rng(5)
    log = chain(rng, 60, 3, fair(rng), lambda e, p, s, a: float(a))
    certified = Certified(lowest_reward=0, highest_reward=1, horizon=3)
    problem = Problem.from_log(log, Policy(np.full((2, 2), 0.5)), discount=0.9)
    found = rehearse(certified.improve(problem), np.random.default_rng(6), times=5, seconds=60)
    assert (found.done, found.refusal) == (5, None)


def test_rehearsals_of_an_algorithm_that_keeps_the_baseline_change_nothing():
    kept = improved(np.random.default_rng(7), n_wedge=np.inf)
    found = rehearse(kept, np.random.default_rng(8), times=5, seconds=60)
    assert (found.worse, found.kept, found.gain) == (0, 5, 0.0)


def test_all_answers_are_words_and_plain_values():
    import json

    rng = np.random.default_rng(9)
    result = improved(rng)
    found = doubts(result, result.problem.log)
    text = "\n".join(found.sentences())
    for words in ("Hidden causes", "Memory", "Drift", "Rehearsals: of"):
        assert words in text
    json.dumps(found.summary)
    assert set(found.summary["markov"]) == {"p_value", "successors_p", "rewards_p", "rows", "pairs"}
    assert set(found.summary) == {"confounding", "markov", "drift", "rehearsal", "overlap"}


def test_a_log_that_is_not_kept_leaves_only_refusals():
    result = improved(np.random.default_rng(10))
    found = doubts(result, None)
    assert (found.markov, found.drift, found.confounding) == (None, None, None)
    assert [sentence.split(":")[0] for sentence in found.sentences()] == ["Rehearsals"]
