"""What the posterior believes of rewards: few equal ones, offsets, scales, and both counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spibb import count_log
from spibb.assurance.posterior import Posterior, posterior_improvement
from spibb.assurance.rows import PooledRows
from spibb.counts import Counts
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.errors import InputError
from spibb.log import Log
from spibb.policy import Policy
from spibb.simulate import Sampler
from spibb.tables import write_table


def bandit(*arms: list[float]) -> Log:
    """One state, one episode per reward."""
    rewards = np.concatenate(arms)
    action = [f"arm {k}" for k, paid in enumerate(arms) for _ in paid]
    return Log.from_arrays(["s"] * len(action), action, rewards, terminated=[True] * len(action))


def first_against_second(*arms: list[float], draws: int = 20_000) -> Posterior:
    log = bandit(*arms)
    new, old = (Policy([row], log.states, log.actions) for row in np.eye(len(arms))[:2])
    return posterior_improvement(log, new, old, 0.9, rng=np.random.default_rng(0), draws=draws)


def jeffreys(won: int, n: int, base: int, m: int) -> float:
    draw = np.random.default_rng(1)
    one = draw.beta(won + 0.5, n - won + 0.5, 200_000)
    return float(np.mean(one >= draw.beta(base + 0.5, m - base + 0.5, 200_000)))


@pytest.mark.parametrize("tallies", [(2, 2, 0, 2), (3, 3, 0, 3), (0, 2, 2, 2), (5, 5, 0, 3)])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 7), (1e6, 1e6 + 1)])
def test_arms_that_paid_one_value_each_are_compared_as_shares(tallies, low, high):
    won, n, base, m = tallies
    found = first_against_second(
        [high] * won + [low] * (n - won), [high] * base + [low] * (m - base)
    )
    assert found.probability == pytest.approx(jeffreys(*tallies), abs=0.005)
    assert found.interval[1] > found.interval[0]


def test_one_death_in_two_thousand_is_hardly_evidence():
    found = first_against_second([0.0] * 1000, [-1.0] + [0.0] * 999)
    assert 0.75 < found.probability < 0.83


def test_one_visit_does_not_make_an_arm_known():
    found = first_against_second([-10.0], [-9.9] * 1000)
    assert found.interval[1] - found.interval[0] > 0.05


def test_three_values_in_few_visits_are_in_doubt():
    found = first_against_second([3.0, 3.0], [2.0, 2.0], [1.0])
    assert 0.6 < found.probability < 0.99


def test_rewards_that_many_outcomes_repeat_are_exact():
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    log = Sampler(mdp, baseline).log(100, rng=np.random.default_rng(0))
    assert PooledRows.of(Counts.from_log(log)).doubt == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(-1e6, 1e6), st.floats(-138, 150))
def test_neither_offset_nor_scale_of_rewards_matters(seed, offset, exponent):
    paid = np.random.default_rng(seed).standard_normal((2, 50))
    plain = first_against_second(*paid, draws=500)
    moved = first_against_second(*(paid + offset), draws=500)
    scaled = first_against_second(*(paid * 10.0**exponent), draws=500)
    np.testing.assert_allclose(moved.gains, plain.gains, atol=1e-7)
    np.testing.assert_allclose(scaled.gains / 10.0**exponent, plain.gains, atol=1e-10)


@pytest.mark.parametrize("size", [1e153, 1e200, 1e-151, 1e-200])
def test_rewards_whose_squares_cannot_be_represented_are_refused(size):
    with pytest.raises(InputError, match="squares outside the range"):
        first_against_second([size, 0.0], [0.0, size])


def test_rewards_that_differ_by_rounding_only_are_refused():
    with pytest.raises(InputError, match="subtract a constant"):
        first_against_second([1e12, 1e12 + 1], [1e12, 1e12])


@pytest.mark.parametrize("offset", [0.0, 1e6, -3e5])
@pytest.mark.parametrize("scale", [1.0, 1e-140, 1e140])
def test_variances_survive_an_offset_in_both_ways_to_count(tmp_path, offset, scale):
    paid = (np.random.default_rng(4).standard_normal((2, 50)) + offset) * scale
    log, n = bandit(*paid), paid.size
    rows = {
        "episode": np.arange(n), "step": np.zeros(n, int), "state": ["s"] * n,
        "action": [log.actions[a] for a in log.action], "reward": log.reward,
        "terminated": [True] * n,
    }  # fmt: skip
    write_table(pa.table(rows), tmp_path / "log.parquet")
    for counts in (Counts.from_log(log), count_log(tmp_path / "log.parquet")):
        variance = counts.reward_scatter / counts.n * (counts.unit / scale) ** 2
        np.testing.assert_allclose(variance, (paid / scale).var(axis=1), rtol=1e-8)
