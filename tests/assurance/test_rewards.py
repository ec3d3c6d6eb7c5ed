"""What the posterior believes of rewards: few equal ones, offsets, scales, and both counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spibb import count_log
from spibb.assurance.posterior import Belief, Posterior, posterior_improvement
from spibb.assurance.rates import SuccessRates
from spibb.assurance.rows import PooledRows
from spibb.counts import END, Counts
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.errors import InputError
from spibb.evaluate import exact_value, returns
from spibb.log import Log
from spibb.mdp import MDP
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


@pytest.mark.parametrize(
    ("new", "old"),
    [([0.0] * 1000, [-1.0] + [0.0] * 999), ([1.0] + [0.0] * 999, [0.0] * 1000)],
    ids=["death", "success"],
)
def test_one_event_in_two_thousand_is_hardly_evidence(new, old):
    assert 0.75 < first_against_second(new, old).probability < 0.83


def test_one_death_among_many_states_is_no_evidence():
    """2,000 rows, 25 states × 2 actions: nothing is known of the action that it followed."""
    rng = np.random.default_rng(0)
    state, action, reward = rng.integers(25, size=2000), np.arange(2000) % 2, np.zeros(2000)
    reward[1] = -1.0
    log = Log.from_arrays(state, action, reward, terminated=[True] * 2000)
    old, new = (Policy([row] * 25, log.states, log.actions) for row in ([0.5, 0.5], [0.9, 0.1]))
    found = posterior_improvement(log, new, old, 0.9, rng=rng, draws=4000)
    assert 0.5 < found.probability < 0.9


def shop(rng: np.random.Generator, n_states: int, rate: float) -> tuple[MDP, Policy]:
    """Every pair leads to four states or ends; each outcome has its own rare rate of success."""
    n_actions, ways = 4, 5
    pair = np.repeat(np.arange(n_states * n_actions), ways)
    to, chance = (
        rng.integers(n_states, size=len(pair)),
        rng.dirichlet(np.ones(ways), len(pair) // ways),
    )
    won, ends = rng.beta(1, 1 / rate - 1, len(pair)), np.arange(len(pair)) % ways == 0
    chance = np.concatenate([chance.reshape(-1) * won, chance.reshape(-1) * (1 - won)])
    pair, to, ends = (np.tile(a, 2) for a in (pair, to, ends))
    mdp = MDP.from_outcomes(
        pair // n_actions, pair % n_actions, chance, to, np.repeat([1.0, 0.0], len(won)), ends,
        initial=np.full(n_states, 1 / n_states), n_actions=n_actions, discount=0.95,
    )  # fmt: skip
    return mdp, Policy(rng.dirichlet(np.ones(n_actions), n_states), mdp.states, mdp.actions)


@pytest.mark.parametrize(
    ("n_states", "rate", "episodes"), [(12, 0.08, 25), (30, 0.01, 150), (12, 0.02, 300)]
)
@pytest.mark.parametrize("mirrored", [False, True])
def test_where_success_is_rare_the_baseline_is_worth_what_the_log_earned(
    n_states, rate, episodes, mirrored
):
    """Mirrored: rare costs instead of rare successes."""
    told, earned, covered = [], [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        mdp, baseline = shop(rng, n_states, rate)
        log = Sampler(mdp, baseline, 200).log(episodes, rng=rng)
        log = replace(log, reward=-log.reward) if mirrored else log
        rho = posterior_improvement(log, baseline, baseline, 0.95, rng=rng, draws=300).values[:, 1]
        low, high = np.quantile(rho, [0.025, 0.975])
        covered.append(low <= exact_value(mdp, baseline) * (-1 if mirrored else 1) <= high)
        told.append(rho.mean())
        earned.append(returns(log, 0.95).mean())
    assert np.sum(told) / np.sum(earned) == pytest.approx(1, abs=0.1)
    assert np.mean(covered) >= 0.8


@pytest.mark.parametrize("seed", range(5))
def test_rates_are_those_of_a_slow_transcription_and_mirror_each_other(seed):
    rng = np.random.default_rng(seed)
    n = 200
    log = Log.from_arrays(
        rng.integers(4, size=n), rng.integers(2, size=n), (rng.random(n) < 0.1) * 3.0 - 1,
        terminated=np.append(rng.random(n - 1) < 0.3, True),
    )  # fmt: skip
    rows = PooledRows.of(Counts.from_log(log))
    found = SuccessRates.of(rows, -1.0, 2.0)
    against = SuccessRates.of(
        PooledRows.of(Counts.from_log(replace(log, reward=-log.reward))), -2.0, 1.0
    )
    np.testing.assert_allclose((found.won, found.lost), (against.lost, against.won))
    tallies: dict[tuple[int, bool], list[float]] = {}
    for x, a, paid, end in zip(log.state, log.action, log.reward, log.terminated):
        tally = tallies.setdefault((int(x * len(log.actions) + a), bool(end)), [0, 0])
        tally[int(paid < 0)] += 1
    whole = np.sum(list(tallies.values()), axis=0)
    for k, (pair, successor) in enumerate(zip(rows.pair, rows.successors, strict=True)):
        won, lost = tallies[pair, successor == END]
        alike = np.sum([t for (_, end), t in tallies.items() if end == (successor == END)], axis=0)
        m = (alike[0] + whole[0] / n) / (alike.sum() + 1)
        kappa = min(max(0.5 / m, 0.5 / (1 - m)), won + lost + 1)
        assert found.won[found.group[k]] == pytest.approx(won + kappa * m)
        assert found.lost[found.group[k]] == pytest.approx(lost + kappa * (1 - m))


def test_a_pair_is_known_no_better_if_its_steps_lead_to_many_states():
    """30 successes in 100 visits, once all to one state and once to a hundred."""
    spread = []
    for to in ([1] * 100, range(1, 101)):
        log = Log.from_arrays(
            [0] * 100, [0] * 100, [1.0] * 30 + [0.0] * 70, list(to), [False] * 100, [True] * 100,
            episode_id=range(100),
        )  # fmt: skip
        only = Policy(np.ones((len(log.states), 1)), log.states, log.actions)
        rng = np.random.default_rng(0)
        rho = posterior_improvement(log, only, only, 0.0, rng=rng, draws=4000).values[:, 1]
        assert rho.mean() == pytest.approx(0.3, abs=0.01)
        spread.append(rho.std())
    assert spread[0] == pytest.approx(np.sqrt(0.3 * 0.7 / 100), rel=0.1)
    assert spread[1] == pytest.approx(spread[0], rel=0.1)


def test_as_far_as_rewards_are_in_doubt_models_have_rates():
    log = bandit([1.0] * 4, [0.0] * 4, [1.0] * 3)
    belief = Belief.of(Counts.from_log(log), Policy.uniform(log.states, log.actions), 0.9)
    assert 0.2 < belief.rows.doubt < 0.8
    paid = belief._mean_rewards(20_000, np.random.default_rng(0)).means
    exact = (paid == belief.rows.mean_reward).all(axis=1)
    assert 1 - exact.mean() == pytest.approx(belief.rows.doubt, abs=0.02)


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
