"""The baseline that a log records: exact where it can be, the average policy where it varies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import spibb
from spibb import Log, Problem
from spibb.algorithms.certified import Certified
from spibb.behaviour import Provenance
from spibb.episodes.conformity import recorded_probs, recorded_table
from spibb.episodes.propensities import check_recorded
from spibb.episodes.visits import ReturnBounds, Visits
from spibb.errors import InputError


def bandit(state, action, reward, prob):
    return Log.from_arrays(
        state, action, reward, terminated=np.ones(len(state), bool), action_prob=prob
    )


def logged(rng, n, rates, pay):
    """Rows of one state in which a hidden context c picks the row `rates[c]` and `pay[c]`."""
    context = rng.integers(len(rates), size=n)
    action = np.array([rng.choice(len(rates[0]), p=rates[c]) for c in context])
    reward = rng.random(n) < np.asarray(pay)[context, action]
    return bandit(["x"] * n, action, reward * 1.0, np.asarray(rates)[context, action])


def test_probabilities_that_do_not_vary_are_the_policy_to_the_last_bit():
    state, action = ["x", "x", "x", "y", "y"], [0, 1, 1, 2, 0]
    prob = [0.1, 0.9, 0.9, 1 / 3, 2 / 3]
    table = recorded_table(bandit(state, action, [0, 1, 0, 1, 0], prob))
    assert table.tolist() == [[0.1, 0.9, 0.0], [2 / 3, 0.0, 1 / 3]]


def test_actions_never_taken_share_what_is_left():
    log = Log.from_arrays(
        ["x", "x"], ["a", "b"], [0, 1], terminated=[True, True], action_prob=[0.2, 0.3],
        action_labels=["a", "b", "c", "d"],
    )  # fmt: skip
    assert recorded_table(log)[0] == pytest.approx([0.2, 0.3, 0.25, 0.25])


def test_probabilities_that_vary_give_the_average_policy_and_not_their_mean():
    rates = [[0.9, 0.1], [0.2, 0.8]]
    log = logged(np.random.default_rng(3), 40_000, rates, [[0.5, 0.5], [0.5, 0.5]])
    average = np.mean(rates, axis=0)
    assert recorded_table(log)[0] == pytest.approx(average, abs=0.01)
    plain = log.action_prob[log.action == 0].mean()
    assert plain == pytest.approx((0.81 + 0.04) / 1.1, abs=0.01) and plain > average[0] + 0.1


def test_recorded_is_preferred_and_can_be_declined():
    log = bandit(["x"] * 4, [0, 0, 0, 1], [0, 1, 0, 1], [0.5] * 4)
    recorded, counted = Problem.from_log(log), Problem.from_log(log, "estimate")
    assert recorded.baseline_source is Provenance.RECORDED
    assert recorded.baseline.probs.tolist() == [[0.5, 0.5]]
    assert counted.baseline_source is Provenance.ESTIMATED
    assert counted.baseline.probs.tolist() == [[0.75, 0.25]]
    assert Problem.from_log(log, smoothing=1.0).baseline_source is Provenance.ESTIMATED
    assert "baseline=recorded" in repr(recorded)


def test_recorded_must_be_there_if_it_is_asked_for():
    log = Log.from_arrays(["x"], ["a"], [1], terminated=[True])
    with pytest.raises(InputError, match="it has no action_prob"):
        Problem.from_log(log, "recorded")
    with pytest.raises(InputError, match="only its counts are available"):
        Problem.from_counts(spibb.Counts.from_log(log), "recorded")
    with pytest.raises(InputError, match="baseline is 'recordet'"):
        Problem.from_log(log, "recordet")


def test_a_column_that_no_policy_has_is_no_baseline():
    log = bandit(["x"] * 4, [0, 0, 1, 1], [0, 1, 0, 1], [0.9] * 4)
    problem = Problem.from_log(log)
    assert problem.baseline_source is Provenance.ESTIMATED
    assert "sums to 1.8" in problem.misreported
    with pytest.raises(InputError, match=r"sums to 1\.8"):
        Problem.from_log(log, "recorded")


def contexts(seed, rows, peaked, factor=1.0):
    """A log whose probabilities depend on more than the state, recorded times a factor."""
    rng = np.random.default_rng(seed)
    tables = rng.dirichlet(np.full(4, peaked), size=(rng.integers(1, 30), 5))
    state, hidden = rng.integers(len(tables), size=rows), rng.integers(5, size=rows)
    rest = rng.random(rows)[:, None] > tables[state, hidden].cumsum(axis=1)
    action = rest.sum(axis=1).clip(max=3)
    return bandit(state, action, [0] * rows, factor * tables[state, hidden, action])


def test_honest_probabilities_are_taken_whatever_they_depend_on():
    """States may be seen twice, each time in the context that makes the other action likely."""
    for seed in range(60):
        check_recorded(contexts(seed, (10, 100, 1000)[seed % 3], (0.5, 3.0)[seed % 2]))


def test_a_large_catalogue_of_actions_seen_once_is_taken():
    shown = np.unique(np.random.default_rng(0).integers(10_000, size=5000), return_inverse=True)[1]
    check_recorded(bandit(["x"] * 5000, shown, [0] * 5000, [1e-4] * 5000))


@pytest.mark.parametrize("factor", [0.5, 0.7, 0.9])
def test_probabilities_times_a_factor_are_found_out(factor):
    """With half of them `certified` once certified a loss of a quarter."""
    for seed in range(5):
        with pytest.raises(InputError, match=r"actions were taken .* times as often as it says"):
            check_recorded(contexts(seed, 20_000, 3.0, factor))


def test_one_action_that_is_taken_too_often_is_found_out():
    """On average over the actions the column is right; `certified` once certified a loss by it."""
    rng = np.random.default_rng(0)
    hidden, n = rng.random(20_000) < 0.5, 20_000
    rates = np.where(hidden[:, None], [0.9, 0.05, 0.05], [0.3, 0.35, 0.35])
    action = (rng.random(n)[:, None] > rates.cumsum(axis=1)).sum(axis=1).clip(max=2)
    log = bandit(["x"] * n, action, [0] * n, rng.uniform(0.33, 0.3367, n))
    with pytest.raises(InputError, match=r"action 0 was taken 1\.\d+ times as often .* state 'x'"):
        check_recorded(log)


@pytest.mark.parametrize("order", ["oldest", "newest", "shuffled"])
def test_a_habit_is_honest_in_any_order_of_rows(order):
    """The second and the third row of a user repeat the last action with probability 0.9."""
    rng, users = np.random.default_rng(0), 300
    action = rng.integers(2, size=(users, 1))
    repeats = np.cumsum(rng.random((users, 2)) < 0.1, axis=1) % 2
    actions = np.concatenate([action, (action + repeats) % 2], axis=1)
    stays = actions[:, 1:] == actions[:, :-1]
    probs = np.concatenate([np.full((users, 1), 0.5), np.where(stays, 0.9, 0.1)], axis=1)
    rows = np.arange(3 * users)
    rows = {"oldest": rows, "newest": rows[::-1], "shuffled": rng.permutation(rows)}[order]
    user = np.repeat(np.arange(users), 3)
    check_recorded(bandit(user[rows], actions.ravel()[rows], 0 * rows, probs.ravel()[rows]))


def test_inspection_says_so():
    def suspicions(log):
        return {found.what: found.value for found in spibb.inspect_log(log).suspicions}

    wrong, honest = (suspicions(contexts(0, 20_000, 3.0, factor)) for factor in (0.7, 1.0))
    assert "too small to be right" in wrong["Recorded probabilities"]
    assert "Recorded probabilities" not in honest


def test_nothing_follows_a_single_step():
    """A return is a reward, and what is said to be a bandit's log has no discount."""
    log = bandit(["x"] * 4, [0, 0, 1, 1], [0, 3, 0, -2], [0.5] * 4)
    problem = Problem.from_log(log, discount=0.95)
    assert (problem.discount, problem.v_max) == (0.95, 5.0)
    frame = pd.DataFrame({"state": "x", "action": [0, 0, 1, 1], "reward": [0, 3, 0, -2]})
    assert spibb.run(frame, bandit=True).improvement.problem.discount == 0.0
    longer = Log.from_arrays(["x"] * 4, [0] * 4, [0, 3, 0, 1], terminated=[0, 1, 0, 1])
    assert Problem.from_log(longer, discount=0.95).v_max == pytest.approx(60.0)
    cut = Log.from_arrays(
        ["x", "x"], [0, 0], [0, 1], terminated=[1, 0], truncated=[0, 1], episode_id=[0, 1]
    )
    assert Problem.from_log(cut, discount=0.95).v_max == pytest.approx(20.0)


def test_hcpi_and_certified_take_probabilities_that_vary():
    rates = [[0.8, 0.2], [0.3, 0.7]]
    log = logged(np.random.default_rng(0), 3000, rates, [[0.1, 0.5], [0.1, 0.5]])
    problem = Problem.from_log(log)
    assert problem.varying
    assert spibb.HCPI(train_share=0.5).improve(problem).converged
    found = Certified(lowest_reward=0, highest_reward=1).improve(problem)
    assert [test.accepted for test in found.tests] == [True]
    assert "row by row" in found.grounds.assumptions[0]
    assert found.policy.row("x") == {0: 0.0, 1: 1.0}


def test_a_confounded_log_does_not_fool_the_test_by_rows():
    """The action that looks better is taken where everything pays more; both pay the same."""
    rates = [[0.9, 0.1], [0.1, 0.9]]
    pay = [[0.2, 0.2], [0.6, 0.6]]
    fooled = by_frequency = 0
    for seed in range(60):
        log = logged(np.random.default_rng(seed), 2000, rates, pay)
        certified = Certified(lowest_reward=0, highest_reward=1)
        found = certified.improve(Problem.from_log(log))
        fooled += any(test.accepted for test in found.tests)
        blind = Log.from_arrays(
            ["x"] * len(log), log.action, log.reward, terminated=np.ones(len(log), bool)
        )
        by_frequency += any(t.accepted for t in certified.improve(Problem.from_log(blind)).tests)
    assert fooled <= 7, "5 % of 60 and two standard errors"
    assert by_frequency == 60, "without the rows' probabilities the log fools it"


@pytest.mark.parametrize("decimals", [2, 3, 4, 5, 6, 7, 15])
@pytest.mark.parametrize("seed", range(4))
def test_rounded_probabilities_of_one_policy_are_those_of_one_policy(decimals, seed):
    """Two steps, four actions, one of them hardly ever taken: a column that is rounded may not sum
    to 1, and says the same of every row of a pair nevertheless."""
    rng = np.random.default_rng(seed)
    policy = rng.dirichlet([4.0, 2.0, 1.0, 1e-3], size=3)
    policy = np.maximum(policy, 10.0**-decimals)
    policy /= policy.sum(axis=1, keepdims=True)
    state = np.tile([0, 1], 150)
    taken = [int(rng.choice(4, p=policy[s])) for s in state]
    log = spibb.Log.from_arrays(
        state, taken, rng.random(300), episode_id=np.repeat(np.arange(150), 2),
        terminated=np.tile([False, True], 150),
        action_prob=np.round(policy[state, taken], decimals),
    )  # fmt: skip
    result = spibb.improve(log, algorithm=spibb.Certified(lowest_return=0.0, highest_return=2.0))
    assert "as the log records it" in str(result.certificate().assumptions)


def test_probabilities_that_vary_within_a_pair_are_named():
    log = spibb.Log.from_arrays(
        [0, 0] * 20, [0, 1] * 20, [0.0, 1.0] * 20, episode_id=np.repeat(np.arange(20), 2),
        terminated=[False, True] * 20, action_prob=[0.3, 0.4] * 10 + [0.5, 0.4] * 10,
    )  # fmt: skip
    with pytest.raises(InputError, match=r"action_prob is 0.3 in one row and 0.5 in another of"):
        spibb.improve(log, algorithm=spibb.Certified(lowest_return=0.0, highest_return=2.0))


def two_steps(first, second, paid, first_prob, second_prob):
    """Episodes of two steps; the second, in the state "end", pays nothing."""
    n = len(first)
    return Log.from_arrays(
        np.ravel(np.column_stack([np.full(n, "x"), np.full(n, "end")])),
        np.ravel(np.column_stack([first, second])),
        np.ravel(np.column_stack([paid, np.zeros(n)])),
        terminated=np.tile([False, True], n),
        action_prob=np.ravel(np.column_stack([first_prob, np.full(n, second_prob)])),
    )


@pytest.mark.parametrize(
    ("policy", "decimals"),
    [
        ({"a": 0.3304, "b": 0.0102, "c": 0.6594}, 3),  # .330 + .010 + .659 = .999
        ({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}, 2),
        ({"a": 0.6, "b": 0.38, "c": 0.0199}, 4),  # c may be seen or not
    ],
)
def test_no_accepted_change_plays_what_was_never_tried(policy, decimals):
    """The action d is taken in another state only, and would pay nothing."""
    pays = {"a": 0.99, "b": 0.7, "c": 0.99, "d": 0.0}
    names, probs = list(policy), np.array(list(policy.values()))
    truth = probs / probs.sum() @ [pays[a] for a in names]
    accepted = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        first = rng.choice(names, p=probs / probs.sum(), size=1500)
        recorded = [round(policy[a], decimals) for a in first]
        paid = [pays[a] for a in first]
        log = two_steps(first, rng.choice(["a", "d"], size=1500), paid, recorded, 0.5)
        found = Certified(lowest_return=0, highest_return=1).improve(Problem.from_log(log))
        if any(test.accepted for test in found.tests):
            row = found.policy.row("x")
            assert row["d"] == 0
            assert sum(p * pays[a] for a, p in row.items()) >= truth
            accepted += 1
    assert accepted >= 1


def test_the_mass_of_an_action_never_seen_is_not_the_kept_actions():
    """c has 0.1 and is never seen, d is taken elsewhere: a keeps 0.5, neither 0.55 nor 0.6."""
    first = np.array(["a", "b"] * 30)
    prob = np.where(first == "a", 0.5, 0.4)
    log = two_steps(first, ["a", "d"] * 30, (first == "a") * 1.0, prob, 0.5)
    np.testing.assert_allclose(recorded_probs(log)[log.states.code("x")], [0.5, 0.4, 0.0])
    found = Certified(lowest_return=0, highest_return=1).improve(Problem.from_log(log))
    assert [str(c) for c in found.tests[0].changes] == ["in state 'x' avoid 'b', 'd'"]
    assert found.policy.row("x") == {"a": 1.0, "b": 0.0, "d": 0.0}
    assert "the policy file guesses" in found.grounds.assumptions[0]


def hidden_context(seed, n, rates):
    """b is taken with the rates of a context that the state does not show, and costs 0.05 wherever
    it is taken; where it is taken more often, everything pays more."""
    rng = np.random.default_rng(seed)
    u = rng.integers(0, 2, n)
    p = np.array(rates)[u]
    b = rng.random(n) < p
    paid = 0.05 + 0.9 * u - 0.05 * b
    return Log.from_arrays(
        ["x"] * n, np.where(b, "b", "a"), paid, terminated=np.ones(n, bool),
        action_prob=np.where(b, p, 1 - p),
    )  # fmt: skip


@pytest.mark.parametrize("single", [False, True])
def test_neighbours_in_the_last_decimal_are_two_numbers(single):
    """Exact rates of 1 % and 2 %: no rounding of 1.5 %, of which b would look better."""
    for seed in range(4):
        log = hidden_context(seed, 20_000, [0.01, 0.02])
        if single:
            log = replace(log, action_prob=log.action_prob.astype("f4").astype("f8"))
        problem = Problem.from_log(log)
        assert problem.varying
        found = Certified(lowest_reward=0, highest_reward=1).improve(problem)
        assert found.policy.row("x")["b"] < 0.5
        average = spibb.Policy([[0.985, 0.015]], ["x"], ["a", "b"])
        with pytest.raises(InputError, match=r"0.01 in one row and 0.02 in another of state 'x'"):
            spibb.improve(log, average, algorithm=Certified(lowest_reward=0, highest_reward=1))


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("decimals", [2, 3, 4, 5, 6, 7, 15])
def test_rows_that_were_rounded_are_taken_at_their_largest(decimals, single):
    """1.49 % may be written as 1 %; the test by rows divides by no less than what was played."""
    p = np.random.default_rng(0).uniform(0.01, 1, 300)
    column = np.round(p, decimals)
    column = column.astype("f4").astype("f8") if single else column
    log = bandit(["x"] * 300, [0, 1] * 150, np.zeros(300), column)
    made = Visits.of(log, 0.9, ReturnBounds(0, 1, "")).made
    assert (made >= p).all()
    assert (made <= np.minimum(column + 0.5001 * 10.0 ** -min(decimals, 6) + 2e-7, 1)).all()


@pytest.mark.parametrize("noise", [1e-16, 1e-12, 2e-7])
def test_the_last_bits_of_a_sum_are_no_second_number(noise):
    """Also those of a column that was computed in single precision."""
    rng = np.random.default_rng(0)
    action = rng.integers(0, 2, 400)
    log = two_steps(
        np.where(action, "b", "a"), ["a", "d"] * 200, action * 1.0,
        np.where(action, 1 / 3, 2 / 3) * (1 + noise * rng.uniform(-1, 1, 400)), 0.5,
    )  # fmt: skip
    assert not Problem.from_log(log).varying


@pytest.mark.parametrize(("value", "told"), [(1 + 1e-12, "1.000000000001"), (1.5, "1.5"), (0, "0")])
def test_a_number_that_is_no_probability_is_shown_with_the_digits_that_tell(value, told):
    with pytest.raises(InputError, match=rf"row 1 is {told}, expected a number in \(0, 1\]"):
        bandit(["x"] * 2, [0, 1], [0.0, 1.0], [0.5, value])
