"""Drawing logs: the right distribution, the right ends, reproducibly."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from oracles import dense_p

from spibb.counts import Counts
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import GOAL, gridworld_mdp
from spibb.kernels import sampling
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.simulate import Sampler, simulate


def same_counts(a: Counts, b: Counts) -> bool:
    arrays = ("indptr", "successors", "n", "reward_sum", "reward_sq", "starts")
    return a.reward_range == b.reward_range and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in arrays
    )


@pytest.mark.parametrize("n", [1, 3, 8, 1000])
def test_counting_while_drawing_equals_counting_the_log(n):
    sampler = Sampler(gridworld_mdp(), gridworld_baseline())
    counts = sampler.counts(n, rng=np.random.default_rng(n))
    assert same_counts(counts, Counts.from_log(sampler.log(n, rng=np.random.default_rng(n))))


def test_batches_of_bounded_memory_draw_all_episodes(monkeypatch):
    monkeypatch.setattr("spibb.simulate.BATCH_STEPS", 500)
    sampler = Sampler(gridworld_mdp(), gridworld_baseline())
    log = sampler.log(95, rng=np.random.default_rng(0))
    assert log.n_episodes == 95
    counts = sampler.counts(95, rng=np.random.default_rng(0))
    assert same_counts(counts, Counts.from_log(log))


def test_frequencies_are_those_of_policy_and_mdp():
    mdp, policy = gridworld_mdp(), Policy.uniform(gridworld_mdp().states, gridworld_mdp().actions)
    counts = Sampler(mdp, policy).counts(40_000, rng=np.random.default_rng(3))
    visits = counts.pairs.sum(axis=1)
    assert visits[GOAL] == 0
    deviation = counts.pairs[:GOAL] - visits[:GOAL, None] / 4
    assert np.abs(deviation / np.sqrt(visits[:GOAL, None] * 3 / 16)).max() < 4.5
    p = dense_p(mdp).reshape(100, 25)
    expected = p[counts.pair_of_outcome, counts.successors]
    stays = counts.successors >= 0
    n = counts.pairs.reshape(-1)[counts.pair_of_outcome]
    z = (counts.n - n * expected) / np.sqrt(n * expected * (1 - expected) + 1e-9)
    assert np.abs(z[stays]).max() < 4.5
    ends = counts.terminations[:GOAL] - counts.pairs[:GOAL] * mdp.exits[:GOAL]
    assert np.abs(ends / np.sqrt(counts.pairs[:GOAL] * 0.25 + 1)).max() < 4.5


def test_alias_tables_reproduce_their_weights():
    rng = np.random.default_rng(0)
    weight = rng.dirichlet(np.full(16, 0.3), size=50)
    weight[:, 12:] = 0
    threshold, alias = sampling.alias_tables(weight)
    share = threshold.astype(np.float64) / 2**53
    mass = np.zeros_like(weight)
    for s in range(50):
        for j in range(16):
            mass[s, j] += share[s, j] / 16
            mass[s, alias[s, j] - 16 * s] += (1 - share[s, j]) / 16
    np.testing.assert_allclose(mass, weight / weight.sum(axis=1, keepdims=True), atol=1e-14)


def test_episodes_end_by_termination_or_are_cut_at_the_cap():
    log = simulate(
        gridworld_mdp(), gridworld_baseline(), 2000, rng=np.random.default_rng(1), max_steps=20
    )
    lengths, last = np.diff(log.episode_starts), log.episode_starts[1:] - 1
    assert lengths.max() == 20
    assert (log.terminated[last] ^ log.truncated[last]).all()
    assert (lengths[log.truncated[last]] == 20).all()
    assert log.terminated.sum() == log.reward.sum() == log.terminated[last].sum()
    assert (log.next_state[log.terminated] == -1).all()
    inside = np.setdiff1d(np.arange(len(log)), last)
    np.testing.assert_array_equal(log.next_state[inside], log.state[inside + 1])


def test_the_initial_distribution_is_respected():
    mdp = dataclasses.replace(gridworld_mdp(), initial=np.eye(25)[[3, 7]].T @ [0.25, 0.75])
    counts = Sampler(mdp, gridworld_baseline()).counts(4000, rng=np.random.default_rng(0))
    assert set(np.flatnonzero(counts.starts)) == {3, 7}
    assert counts.starts[7] / 4000 == pytest.approx(0.75, abs=0.03)


def test_the_same_generator_gives_the_same_log_and_another_a_different_one():
    draw = lambda seed: simulate(  # noqa: E731
        gridworld_mdp(), gridworld_baseline(), 50, rng=np.random.default_rng(seed)
    )
    np.testing.assert_array_equal(draw(1).state, draw(1).state)
    assert not np.array_equal(draw(1).state[:100], draw(2).state[:100])


def test_the_number_of_episodes_must_be_positive():
    with pytest.raises(ValueError, match="n_episodes is 0, expected a whole number"):
        simulate(gridworld_mdp(), gridworld_baseline(), 0, rng=np.random.default_rng(0))


def test_more_outcomes_than_codes_are_refused():
    """One state with a million rewards, among 3,000 states."""
    rewards = np.arange(2.0**20)
    none = np.zeros(len(rewards), dtype=int)
    mdp = MDP.from_outcomes(
        none, none, np.full(len(rewards), 2.0**-20), none, rewards, none == 0,
        initial=np.eye(1, 3000)[0], n_actions=1, discount=0.9,
    )  # fmt: skip
    with pytest.raises(ValueError, match="state 0 has 1048576 outcomes, and every state gets as"):
        simulate(mdp, Policy.uniform(3000, 1), 1, rng=np.random.default_rng(0))
