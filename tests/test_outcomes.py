"""Outcomes carry their own rewards: what solvers expect is what a simulation pays."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import dense_p

from spibb.counts import Counts
from spibb.envs.gridworld import gridworld_mdp
from spibb.errors import InputError
from spibb.estimate import estimate_mdp
from spibb.evaluate import exact_value, returns
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.simulate import Sampler, simulate
from spibb.solve import evaluate

COLUMNS = ("state", "action", "prob", "next_state", "reward", "terminated")


def random_outcomes(seed: int, n_states: int = 5, n_actions: int = 3) -> dict[str, np.ndarray]:
    """Per pair: two or three kinds of end, and several rewards on the way to each successor."""
    rng = np.random.default_rng(seed)
    rows = []
    for x in range(n_states):
        for a in range(n_actions):
            ends = [(-1, reward, True) for reward in rng.normal(size=rng.integers(2, 4))]
            stays = [
                (y, reward, False)
                for y in rng.choice(n_states, size=2, replace=False)
                for reward in rng.normal(size=rng.integers(1, 4))
            ]
            weights = rng.dirichlet(np.ones(len(ends) + len(stays)))
            rows += [
                (x, a, p, y, r, end) for p, (y, r, end) in zip(weights, ends + stays, strict=True)
            ]
    order = rng.permutation(len(rows))
    columns = zip(*(rows[i] for i in order), strict=True)
    return {name: np.array(column) for name, column in zip(COLUMNS, columns, strict=True)}


def mdp_of(outcomes: dict[str, np.ndarray], n_states: int = 5, n_actions: int = 3) -> MDP:
    initial = np.full(n_states, 1 / n_states)
    return MDP.from_outcomes(**outcomes, initial=initial, n_actions=n_actions, discount=0.8)


@given(st.integers(0, 2**32 - 1))
def test_expectations_and_probabilities_are_those_of_the_list(seed):
    listed = random_outcomes(seed)
    mdp = mdp_of(listed)
    reward, p, ends = np.zeros((5, 3)), np.zeros((5, 3, 5)), np.zeros((5, 3))
    for x, a, prob, y, r, end in zip(*listed.values(), strict=True):
        reward[x, a] += prob * r
        if end:
            ends[x, a] += prob
        else:
            p[x, a, y] += prob
    np.testing.assert_allclose(mdp.rewards, reward, rtol=0, atol=1e-14)
    np.testing.assert_allclose(dense_p(mdp), p, rtol=0, atol=1e-14)
    np.testing.assert_allclose(mdp.exits, ends, rtol=0, atol=1e-14)


@given(st.integers(0, 2**32 - 1))
def test_every_reward_of_the_list_keeps_its_probability(seed):
    listed = random_outcomes(seed)
    paid = mdp_of(listed).paid
    expected: dict[tuple, float] = defaultdict(float)
    for x, a, prob, y, r, end in zip(*listed.values(), strict=True):
        expected[x * 3 + a, -1 if end else y, r] += prob
    pair = np.repeat(np.arange(15), np.diff(paid.indptr))
    keys = list(zip(pair, paid.successors, paid.rewards, strict=True))
    assert keys == sorted(expected)
    np.testing.assert_allclose(paid.probs, [expected[key] for key in keys], rtol=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_order_and_splitting_of_the_list_do_not_matter(seed):
    listed, rng = random_outcomes(seed), np.random.default_rng(seed)
    twice = rng.permutation(np.tile(np.arange(len(listed["prob"])), 2))
    split = {name: column[twice] for name, column in listed.items()} | {
        "prob": listed["prob"][twice] / 2
    }
    one, two = mdp_of(listed).paid, mdp_of(split).paid
    np.testing.assert_array_equal(one.indptr, two.indptr)
    np.testing.assert_array_equal(one.successors, two.successors)
    np.testing.assert_array_equal(one.rewards, two.rewards)
    np.testing.assert_allclose(one.probs, two.probs, rtol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_simulated_returns_have_the_exact_value_as_their_mean(seed):
    """z-tests at 4 standard errors: of the return, and of each pair's rewards and their squares."""
    listed = random_outcomes(seed)
    mdp, rng = mdp_of(listed), np.random.default_rng([seed, 1])
    policy = Policy(rng.dirichlet(np.full(3, 9), size=5), mdp.states, mdp.actions)
    log = simulate(mdp, policy, 40_000, rng=rng, max_steps=300)
    assert not log.truncated.any()
    sample = returns(log, mdp.discount)
    error = sample.std(ddof=1) / np.sqrt(len(sample))
    assert abs(sample.mean() - exact_value(mdp, policy)) < 4 * error
    counts, where = Counts.from_log(log), (listed["state"], listed["action"])
    moment = np.zeros((5, 5, 3))
    for power in range(5):
        np.add.at(moment[power], where, listed["prob"] * listed["reward"] ** power)
    mean = counts.reward_sum / counts.n
    squares = counts.reward_scatter * counts.unit**2 + counts.n * mean**2
    squared = np.bincount(counts.pair_of_outcome, squares, 15).reshape(5, 3)
    for k, found in ((1, counts.mean_reward), (2, squared / counts.pairs)):
        spread = np.sqrt((moment[2 * k] - moment[k] ** 2) / counts.pairs)
        assert np.abs((found - moment[k]) / spread).max() < 4


@pytest.mark.parametrize("seed", range(3))
def test_counting_while_drawing_equals_counting_the_log(seed):
    """Codes that differ in their reward only are one outcome of the counts."""
    mdp = mdp_of(random_outcomes(seed))
    sampler = Sampler(mdp, Policy.uniform(mdp.states, mdp.actions))
    drawn = sampler.counts(500, rng=np.random.default_rng(seed))
    counted = Counts.from_log(sampler.log(500, rng=np.random.default_rng(seed)))
    assert drawn.reward_range == counted.reward_range
    for name in ("indptr", "successors", "n", "starts"):
        np.testing.assert_array_equal(getattr(drawn, name), getattr(counted, name))
    for name in ("reward_sum", "reward_sq"):
        np.testing.assert_allclose(getattr(drawn, name), getattr(counted, name), rtol=1e-12)


def test_two_kinds_of_end_and_two_rewards_of_one_successor_are_all_paid():
    """One state: stay for 2 or 4, or end with 1 or −5."""
    mdp = MDP.from_outcomes(
        [0, 0, 0, 0], [0, 0, 0, 0], [0.3, 0.2, 0.4, 0.1], [0, 0, -1, -1], [2, 4, 1, -5],
        [False, False, True, True], initial=[1.0], n_actions=1, discount=0.9,
    )  # fmt: skip
    assert mdp.rewards[0, 0] == pytest.approx(0.3 * 2 + 0.2 * 4 + 0.4 - 0.5)
    assert mdp.probs.tolist() == [0.5] and mdp.exits[0, 0] == pytest.approx(0.5)
    log = simulate(mdp, Policy([[1.0]]), 2000, rng=np.random.default_rng(0), max_steps=500)
    assert set(log.reward[log.terminated]) == {1, -5}
    assert set(log.reward[~log.terminated]) == {2, 4}
    assert (log.reward[log.terminated] == 1).mean() == pytest.approx(0.8, abs=0.04)
    assert (log.reward[~log.terminated] == 2).mean() == pytest.approx(0.6, abs=0.05)


def test_what_a_pair_leaves_out_ends_and_pays_nothing():
    mdp = MDP.from_outcomes(
        [0], [0], [0.25], [0], [4.0], [False], initial=[1.0], n_actions=2, discount=0.5
    )
    assert mdp.rewards.tolist() == [[1.0, 0.0]] and mdp.exits.tolist() == [[0.75, 1.0]]
    log = simulate(mdp, Policy.uniform(1, 2), 1000, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(log.reward, np.where(log.terminated, 0.0, 4.0))


def test_probabilities_that_miss_one_by_rounding_are_rescaled_and_never_end():
    thirds = np.full(3, (1 - 3e-10) / 3)
    mdp = MDP.from_outcomes(
        [0, 1, 1, 1], [0] * 4, [1.0, *thirds], [0, 0, 1, 2], [0.0] * 4, [False] * 4,
        initial=[0, 1, 0], n_actions=1, discount=0.5,
    )  # fmt: skip
    assert mdp.paid.successors.tolist() == [0, 0, 1, 2, -1]
    assert mdp.probs[1:].sum() == pytest.approx(1, abs=1e-15)


def test_a_model_of_expectations_pays_them():
    log = simulate(
        gridworld_mdp(), Policy.uniform(range(25), gridworld_mdp().actions), 50,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    model = estimate_mdp(Counts.from_log(log), 0.95)
    assert model.outcomes is None
    played = Policy.uniform(model.states, model.actions)
    again = simulate(model, played, 200, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(again.reward, model.rewards[again.state, again.action])


def test_rows_and_rewards_cannot_depart_from_the_outcomes():
    mdp = gridworld_mdp()
    moved = dataclasses.replace(mdp, initial=np.eye(25)[3])
    assert moved.outcomes is mdp.outcomes
    with pytest.raises(InputError, match="rewards are not those of its outcomes: give new"):
        dataclasses.replace(mdp, rewards=mdp.rewards * 2)
    assert dataclasses.replace(mdp, rewards=mdp.rewards * 2, outcomes=None).paid.rewards.max() > 1
    for copied in (copy.deepcopy(mdp), pickle.loads(pickle.dumps(mdp))):
        dataclasses.replace(copied, initial=np.eye(25)[3])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": [0, 5]}, "state of outcome 1 is 5, expected a whole number from 0 to 1"),
        ({"state": [0, -1]}, "state of outcome 1 is -1, expected a whole number from 0 to 1"),
        ({"action": [1, 0]}, "action of outcome 0 is 1, expected a whole number from 0 to 0"),
        ({"next_state": [2, 0]}, "next_state of outcome 0 is 2, expected a whole number"),
        ({"state": [0.0, 1.5]}, "state holds float64, expected whole numbers"),
        ({"prob": [-0.1, 1]}, "prob of outcome 0 is -0.1, expected a number in"),
        ({"prob": [float("nan"), 1]}, "prob of outcome 0 is nan, expected a number in"),
        ({"state": [1, 1]}, "outcomes of state 1, action 0 sum to 2, expected at most 1"),
        ({"reward": [0, float("inf")]}, "reward in row 1 is inf, expected a finite number"),
        ({"reward": [0]}, "columns differ in length"),
        ({"terminated": ["maybe", "no"]}, "terminated holds something other than true/false"),
        ({"terminated": None}, "terminated is None, expected true/false for every outcome"),
        ({"initial": [0.5, 0.4]}, "'initial' sums to 0.9, expected 1"),
        ({"discount": 1.0}, "discount is 1.0"),
        ({"states": ["one"]}, "rewards of the MDP has shape"),
    ],
)
def test_bad_outcomes_are_refused(change, message):
    good = {
        "state": [0, 1], "action": [0, 0], "prob": [1.0, 1.0], "next_state": [1, 0],
        "reward": [0.0, 1.0], "terminated": [False, False], "initial": [1.0, 0.0],
        "n_actions": 1, "discount": 0.9,
    }  # fmt: skip
    MDP.from_outcomes(**good)
    with pytest.raises(InputError, match=message):
        MDP.from_outcomes(**good | change)


def test_flags_in_text_are_read_as_a_log_reads_them():
    mdp = MDP.from_outcomes(
        [0], [0], [1.0], [0], [1.0], ["False"], initial=[1.0], n_actions=1, discount=0.9
    )
    assert evaluate(mdp, np.ones((1, 1))).v[0] == pytest.approx(10.0)


@pytest.mark.parametrize("name", ["indptr", "successors", "probs", "rewards", "initial"])
def test_an_mdp_of_wrong_shapes_is_refused(name):
    mdp = dataclasses.replace(gridworld_mdp(), outcomes=None)
    with pytest.raises(InputError):
        dataclasses.replace(mdp, **{name: getattr(mdp, name)[:-1]})


def test_successors_that_are_no_states_are_refused():
    mdp = dataclasses.replace(gridworld_mdp(), outcomes=None)
    successors = mdp.successors.copy()
    successors[3] = 25
    with pytest.raises(InputError, match="successors of outcome 3 is 25, expected a whole number"):
        dataclasses.replace(mdp, successors=successors)
