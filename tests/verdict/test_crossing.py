"""What one half of the episodes teaches, tested in the other half."""

from __future__ import annotations

import numpy as np
import pytest

import spibb
from spibb.verdict.crossing import crossed
from spibb.verdict.evidence import gather_for


def bandit(seed: int, n_states: int, n_actions: int, n: int, effect: float = 0.0) -> spibb.Problem:
    """Decisions of a uniform policy; rewards are normal, those of the last action higher."""
    rng = np.random.default_rng([n_states, n_actions, n, seed])
    state, action = rng.integers(0, n_states, n), rng.integers(0, n_actions, n)
    reward = effect * (action == n_actions - 1) + rng.standard_normal(n)
    log = spibb.Log.from_arrays(
        state=state, action=action, reward=reward, episode_id=np.arange(n),
        terminated=np.ones(n, dtype=bool),
    )  # fmt: skip
    baseline = spibb.Policy(np.full((n_states, n_actions), 1 / n_actions))
    return spibb.Problem.from_log(log, baseline, discount=0.0)


@pytest.mark.parametrize(("n_states", "n_actions"), [(1, 2), (1, 8), (40, 3), (150, 6)])
def test_where_nothing_differs_the_mean_of_both_is_no_larger_than_a_normal_number(
    n_states, n_actions
):
    z = [
        crossed(spibb.PiBSpibb(3), bandit(seed, n_states, n_actions, 12 * n_states * n_actions))
        for seed in range(150)
    ]
    known = np.array([one for one in z if one is not None])
    assert len(known) > 100 or n_states * n_actions * 12 < 50
    # P(> 10 of 150) < 0.2 % at 2.5 %
    assert (known > 1.96).sum() <= 10
    if n_states > 1:
        assert abs(known.mean()) < 4 / np.sqrt(len(known))


def test_one_action_that_is_better_in_many_states_is_no_luck():
    """Eleven comparisons in each state, and Σ z² of a policy that makes one of them."""
    problem = bandit(0, 40, 12, 4000, effect=0.8)
    result = spibb.PiBSpibb(3).improve(problem)
    evidence = gather_for(result)
    assert evidence.departures.surprise < evidence.chance.limit
    assert evidence.crossed > 3
    verdict = result.verdict
    told = next(c for c in verdict.criteria if c.name == "beyond chance")
    assert told.passed and "tested on the others" in told.found
    assert verdict.favourable


def test_names_and_their_order_choose_no_halves():
    problem = bandit(3, 12, 3, 600, effect=0.3)
    log = problem.log
    names = [f"x{97 - 7 * k}" for k in range(12)], ["q", "a", "k"]
    other = spibb.Log.from_arrays(
        state=[names[0][s] for s in log.state], action=[names[1][a] for a in log.action],
        reward=log.reward, episode_id=np.arange(600), terminated=log.terminated,
    )  # fmt: skip
    baseline = spibb.Policy(problem.baseline.probs, *names)
    renamed = spibb.Problem.from_log(other, baseline, discount=0.0)
    algorithm = spibb.PiBSpibb(5)
    assert crossed(algorithm, renamed) == pytest.approx(crossed(algorithm, problem), rel=1e-9)


def test_few_episodes_are_not_halved():
    assert crossed(spibb.PiBSpibb(2), bandit(0, 1, 2, 49)) is None
