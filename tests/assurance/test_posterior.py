"""The posterior of the gain: closed forms, invariances, honesty, and the three ways to solve."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from oracles import policy_values
from scipy.stats import beta
from strategies import n_wedges, problems, random_problem

from spibb.algorithms.auto import Auto
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import PiBSpibb
from spibb.assurance import values
from spibb.assurance.limits import return_limits
from spibb.assurance.pooling import pool
from spibb.assurance.posterior import Belief, joint_level, posterior_improvement
from spibb.assurance.rows import Models, PooledRows
from spibb.counts import Counts
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.envs.small import SMALL
from spibb.errors import InputError
from spibb.estimate import estimate_mdp
from spibb.evaluate import exact_value, returns
from spibb.labels import Vocabulary
from spibb.log import Log
from spibb.policy import Policy
from spibb.simulate import Sampler


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def arms(*tallies: tuple[int, int], scale: float = 1.0, shift: float = 0.0) -> Log:
    """One state, one arm per (successes, trials); a success pays 1, everything else 0."""
    action = [f"arm {k}" for k, (_, n) in enumerate(tallies) for _ in range(n)]
    reward = [float(j < won) * scale + shift for won, n in tallies for j in range(n)]
    return Log.from_arrays(["s"] * len(action), action, reward, terminated=[True] * len(action))


def play(log: Log, *probs: float) -> Policy:
    return Policy([list(probs)], log.states, log.actions)


def small_problem(name: str, kind: str, n_episodes: int, seed: int) -> tuple[Problem, float]:
    """A log of a small world, and the baseline's true value."""
    draw, world = rng(seed), SMALL[name]
    mdp = world.make(draw)
    baseline = world.baseline(mdp, kind, draw)
    log = Sampler(mdp, baseline, world.max_steps).log(n_episodes, rng=draw)
    return Problem.from_log(log, baseline, discount=mdp.discount), exact_value(mdp, baseline)


# ---- closed forms -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("new", "old"), [((26, 50), (25, 50)), ((30, 50), (25, 50)), ((130, 200), (100, 200))]
)
def test_success_rates_are_compared_as_their_beta_posteriors_compare(new, old):
    log = arms(new, old)
    found = posterior_improvement(
        log, play(log, 1, 0), play(log, 0, 1), 0.0, rng=rng(), draws=20_000
    ).probability
    (won, n), (base, m) = new, old
    draw = rng(1)
    rates = draw.beta(won + 1, n - won + 1, 200_000), draw.beta(base + 1, m - base + 1, 200_000)
    assert found == pytest.approx(np.mean(rates[0] >= rates[1]), abs=0.02)


def test_one_success_more_in_fifty_is_hardly_evidence():
    log = arms((26, 50), (25, 50))
    found = posterior_improvement(
        log, play(log, 1, 0), play(log, 0, 1), 0.0, rng=rng(), draws=20_000
    )
    assert 0.55 < found.probability < 0.62


def test_the_value_of_one_pair_has_the_quantiles_of_its_beta_posterior():
    """Alone, a pair is its own state: P(stay) ~ Beta(700, 300) up to one pseudo-visit."""
    n = 1000
    log = Log.from_arrays(
        ["s"] * n, ["a"] * n, [1.0] * 700 + [0.0] * 300, ["s"] * n, [False] * 700 + [True] * 300,
        [True] * 700 + [False] * 300, episode_id=range(n),
    )  # fmt: skip
    counts, only = Counts.from_log(log), Policy([[1.0]], ["s"], ["a"])
    rho = Belief.of(counts, only, 0.9).values([only.probs], 20_000, rng(1))[:, 0]
    levels = [0.1, 0.25, 0.5, 0.75, 0.9]
    stay = beta(700, 300).ppf(levels)
    np.testing.assert_allclose(np.quantile(rho, levels), stay / (1 - 0.9 * stay), rtol=0.02)


@settings(max_examples=30)
@given(problems(), n_wedges)
def test_with_huge_counts_the_posterior_is_the_model(problem, n_wedge):
    assume((problem.counts.pairs > 0).all())
    counts, many = problem.counts, 10**9
    counts = replace(
        counts, n=counts.n * many, reward_sum=counts.reward_sum * many,
        reward_sq=((counts.reward_sum / counts.n - counts.centre) / counts.unit) ** 2
        * counts.n * many,
    )  # fmt: skip
    policy = PiBSpibb(n_wedge).improve(problem).policy
    belief = Belief.of(counts, problem.baseline, problem.discount)
    wanted = problem.model.initial @ policy_values(problem.model, policy.probs)
    np.testing.assert_allclose(belief.values([policy.probs], 3, rng())[:, 0], wanted, atol=1e-2)


@pytest.mark.parametrize("seed", range(20))
def test_one_difference_between_two_actions_is_taken_at_its_word(seed):
    """One state, two actions, endless repeats: nothing is left to pool, whatever π_b prefers."""
    draw, many, n = rng(seed), 10**9, 8
    ends = draw.random(n) < 0.5
    log = Log.from_arrays(
        ["s"] * n, ["a", "b"] * (n // 2), draw.normal(size=n).round(1), ["s"] * n, ends, ~ends,
        episode_id=range(n),
    )  # fmt: skip
    counts = Counts.from_log(log)
    mean = (counts.reward_sum / counts.n - counts.centre) / counts.unit
    counts = replace(
        counts, n=counts.n * many, reward_sum=counts.reward_sum * many,
        reward_sq=mean**2 * counts.n * many,
    )  # fmt: skip
    baseline, model = play(log, 0.7, 0.3), estimate_mdp(counts, 0.9)
    policies = np.array([[[1.0, 0.0]], [[0.0, 1.0]], baseline.probs])
    rho = Belief.of(counts, baseline, 0.9).values(policies, 20, rng())
    wanted = [model.initial @ policy_values(model, probs) for probs in policies]
    np.testing.assert_allclose(rho, np.tile(wanted, (20, 1)), atol=1e-2)


@pytest.mark.parametrize(("n", "most"), [(50, 30.0), (500, 1000.0), (5000, 1000.0)])
def test_an_extreme_reward_seen_once_is_no_sure_gain(n, most):
    """It is not read with the noise of ordinary rewards, however well that is known."""
    draw = rng(0)
    state, action = draw.integers(3, size=n), (draw.random(n) < 0.4).astype(int)
    reward = draw.standard_normal(n)
    action[0], reward[0] = 2, most
    log = Log.from_arrays(state, action, reward, terminated=[True] * n)
    baseline = Policy([[0.59, 0.4, 0.01]] * 3, log.states, log.actions)
    only = baseline.probs.copy()
    only[state[0]] = [0.0, 0.0, 1.0]
    policy = Policy(only, log.states, log.actions)
    gains = posterior_improvement(log, policy, baseline, 0.9, rng=rng(), draws=4000).gains
    assert np.quantile(gains, 0.05) < 0 < gains.mean()


@pytest.mark.parametrize("discount", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("sign", [1, -1])
def test_no_drawn_value_leaves_what_rewards_allow(discount, sign):
    """The gridworld pays 1 at the goal and nothing before: values lie between 0 and 1."""
    log = Sampler(gridworld_mdp(), gridworld_baseline(), 100).log(30, rng=rng())
    log = replace(log, reward=sign * log.reward)
    problem = Problem.from_log(log, gridworld_baseline(), discount=discount)
    policy = PiBSpibb(2).improve(problem).policy
    found = posterior_improvement(log, policy, problem.baseline, discount, rng=rng()).values * sign
    assert found.min() >= 0
    assert found.max() <= 1 / (1 - discount)


def test_what_never_varied_is_known_exactly():
    """Steps and rewards never vary and every action was tried: nothing is left to doubt."""
    log = Log.from_arrays(
        ["s", "t"] * 8, ["a", "a", "b", "b"] * 4, [1.0, 2.0, 0.5, 3.0] * 4,
        terminated=[False, True] * 8,
    )  # fmt: skip
    counts = Counts.from_log(log)
    baseline = Policy.uniform(counts.states, counts.actions)
    belief = Belief.of(counts, baseline, 0.5)
    assert [pooling.noise for pooling in belief.poolings] == [0]
    rho = belief.values([baseline.probs], 50, rng())[:, 0]
    np.testing.assert_allclose(rho, 0.75 + 0.5 * 2.5, rtol=1e-12)


def test_an_outcome_seen_once_is_not_known_where_rewards_vary():
    log = arms((10, 20), (1, 1))
    gains = posterior_improvement(log, play(log, 0, 1), play(log, 1, 0), 0.0, rng=rng()).gains
    assert gains.std() > 0.1
    assert 0.5 < np.mean(gains >= 0) < 0.9


# ---- honesty ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["noisy-rewards", "dense-costs", "pit-chain", "cliff-costs"])
def test_the_baseline_is_worth_what_it_is_even_where_most_pairs_were_never_tried(name):
    """The posterior mean of ρ(π_b) over 30 logs of 20 episodes misses the truth by little."""
    missed, spread = [], []
    for seed in range(30):
        problem, truth = small_problem(name, "uniform", 20, seed)
        belief = Belief.of(problem.counts, problem.baseline, problem.discount)
        rho = belief.values([problem.baseline.probs], 1000, rng())
        missed.append(rho.mean() - truth)
        spread.append(rho.std())
    error = np.std(missed) / np.sqrt(len(missed))
    assert abs(np.mean(missed)) < 3 * error + 0.25 * np.mean(spread)


def test_a_bandit_that_lost_by_noise_is_not_believed():
    """500 rows, reward sd 400, the new arm worse by 20: sure and wrong in few logs."""
    wrong = 0
    for seed in range(200):
        draw = rng(seed)
        action = (draw.random(500) < 0.2).astype(int)
        reward = 100 - 20 * action + 400 * draw.standard_normal(500)
        log = Log.from_arrays(["s"] * 500, action, reward, terminated=[True] * 500)
        found = posterior_improvement(
            log, play(log, 0, 1), play(log, 0.8, 0.2), 0.0, rng=draw, draws=300
        )
        wrong += found.probability >= 0.99
    assert wrong <= 4


def test_a_high_probability_is_right_most_of_the_time():
    """On gridworld logs, policies given P ≥ 0.95 are truly no worse in at least 95 % of cases."""
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    sampler, draw = Sampler(mdp, baseline), rng()
    right = []
    for _ in range(100):
        counts = sampler.counts(20, rng=draw)
        problem = Problem.from_counts(counts, baseline, discount=mdp.discount)
        result = PiBSpibb(5).improve(problem)
        if result.posterior(draws=100).probability >= 0.95:
            right.append(exact_value(mdp, result.policy) >= exact_value(mdp, baseline) - 1e-9)
    assert len(right) > 50
    assert np.mean(right) >= 0.95


def test_probability_rises_with_evidence_and_with_zeta():
    seen = []
    for n in (2, 10, 100):
        log = arms((n, n), (n // 2, n))
        better, uniform = play(log, 1, 0), play(log, 0.5, 0.5)
        seen.append(posterior_improvement(log, better, uniform, 0.0, rng=rng(), draws=4000))
    assert seen[0].probability <= seen[1].probability <= seen[2].probability
    assert seen[2].probability > 0.99
    assert seen[0].interval[0] < seen[0].gain < seen[0].interval[1]
    log = arms((36, 40), (20, 40))
    loose, strict = (
        posterior_improvement(
            log, play(log, 0, 1), play(log, 0.5, 0.5), 0.0, rng=rng(), zeta=zeta
        ).probability
        for zeta in (0.3, 0.0)
    )
    assert strict < 0.1 < loose


def targets(spread: float, seed: int) -> tuple[Log, Policy]:
    """20 states × 3 arms × 30 visits: noise of variance 1, effects of variance `spread`."""
    draw = rng(seed)
    state, arm = np.divmod(np.repeat(np.arange(60), 30), 3)
    reward = np.sqrt(spread) * draw.standard_normal((20, 3))[state, arm]
    reward = reward + draw.standard_normal(len(state))
    log = Log.from_arrays(state, arm, reward, terminated=[True] * len(state))
    return log, Policy.uniform(log.states, log.actions)


@pytest.mark.parametrize("alpha", [2, 16, 128])
def test_the_log_tells_how_far_actions_differ(alpha):
    """The probability below the true α, half of its own included, is uniform over logs."""
    below = []
    for seed in range(40):
        log, baseline = targets(1 / alpha, seed)
        found = pool(PooledRows.of(Counts.from_log(log)), baseline, 0.0)
        below.append(
            sum(p.probability * (1 - 0.5 * (p.visits > 0.99 * alpha))
                for p in found if p.visits < 1.01 * alpha)
        )  # fmt: skip
    assert abs(np.mean(below) - 0.5) < 4 * np.sqrt(1 / 12 / 40)


def test_the_evidence_for_a_pooling_is_that_of_the_normal_model():
    """Differences of evidence between two α against the density of the log's contrasts."""
    log, baseline = targets(0.2, 3)
    found = pool(PooledRows.of(Counts.from_log(log)), baseline, 0.0)
    wanted = np.array([contrast_density(log.reward.reshape(60, 30), p.visits) for p in found])
    wanted = np.exp(wanted - wanted.max())
    np.testing.assert_allclose(
        [p.probability for p in found], wanted / wanted.sum(), rtol=1e-6, atol=1e-12
    )


def contrast_density(reward: np.ndarray, alpha: float) -> float:
    """log p of all contrasts within states, σ² integrated out, by dense matrices."""
    total = 0.0
    squares = 0.0
    n = reward.shape[1]
    contrasts = np.linalg.svd(np.eye(3 * n) - 1 / (3 * n))[0][:, : 3 * n - 1].T
    covariance = np.eye(3 * n) + np.kron(np.eye(3), np.ones((n, n))) / alpha
    covariance = contrasts @ covariance @ contrasts.T
    for rows in reward.reshape(20, 3 * n):
        seen = contrasts @ rows
        squares += seen @ np.linalg.solve(covariance, seen)
        total -= np.linalg.slogdet(covariance)[1] / 2
    return total - 20 * (3 * n - 1) / 2 * np.log(squares)


@pytest.mark.parametrize("events", [1, 4, 16])
def test_noise_that_rests_on_few_events_has_few_degrees_of_freedom(events):
    """Falls that end the episode at a cost: two degrees of freedom each."""
    n = 2000
    fell = np.arange(n) < 2 * events
    log = Log.from_arrays(
        ["s"] * n, ["a", "b"] * (n // 2), np.where(fell & (np.arange(n) % 2 == 0), -10.0, 0.0),
        np.where(fell & (np.arange(n) % 2 == 0), "s", "t"), terminated=fell,
        truncated=~fell, episode_id=range(n),
    )  # fmt: skip
    belief = Belief.of(Counts.from_log(log), Policy.uniform(log.states, log.actions), 0.5)
    assert belief.poolings[0].freedom == pytest.approx(2 * events, rel=0.1)


# ---- invariances --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "rounding"), [(2.0**-30, 0.0), (0.25, 0.0), (2.0**20, 0.0), (1e-9, 1e-6), (1e6, 1e-6)]
)
def test_scaling_the_rewards_scales_the_gains(scale, rounding):
    """To the bit by powers of two; else to single precision, that of the drawn steps."""
    problem, _ = small_problem("noisy-rewards", "middling", 40, 3)
    policy = PiBSpibb(5).improve(problem).policy
    scaled = replace(problem.log, reward=problem.log.reward * scale)
    plain, larger = (
        posterior_improvement(log, policy, problem.baseline, problem.discount, rng=rng()).gains
        for log in (problem.log, scaled)
    )
    np.testing.assert_allclose(
        larger, scale * plain, rtol=rounding, atol=scale * rounding * plain.std()
    )


@pytest.mark.parametrize("shift", [-20.0, 3.0])
def test_a_constant_added_to_all_rewards_of_one_step_changes_no_gain(shift):
    plain, moved = (
        posterior_improvement(log, play(log, 1, 0), play(log, 0.3, 0.7), 0.0, rng=rng()).gains
        for log in (arms((9, 20), (11, 30)), arms((9, 20), (11, 30), shift=shift))
    )
    np.testing.assert_allclose(moved, plain, atol=1e-9)


def test_costs_are_judged_as_rewards_are_where_every_step_may_be_the_last():
    """Constant hazard: −1 on every reward shifts all values alike. The policy knows no log, so
    that what the log says of it moves by the noise of the hazard only, either way."""
    apart = []
    for seed in range(40):
        problem, _ = small_problem("dense-rewards", "middling", 60, seed)
        n_states, n_actions = problem.baseline.probs.shape
        other = np.eye(n_actions)[rng(seed).integers(n_actions, size=n_states)]
        policy = Policy(0.7 * problem.baseline.probs + 0.3 * other)
        costs = replace(problem.log, reward=problem.log.reward - 1)
        rewarded, charged = (
            posterior_improvement(
                log, policy, problem.baseline, problem.discount, rng=rng(), draws=200
            ).probability
            for log in (problem.log, costs)
        )
        apart.append(charged - rewarded)
    assert abs(np.mean(apart)) < 3 * np.std(apart) / np.sqrt(len(apart))
    assert np.std(apart) < 0.25


def test_the_order_of_the_episodes_does_not_matter():
    problem, _ = small_problem("pit-chain", "middling", 50, 1)
    policy, log = PiBSpibb(5).improve(problem).policy, problem.log
    shuffled = log.episodes(rng(5).permutation(log.n_episodes))
    one, other = (
        posterior_improvement(given, policy, problem.baseline, 0.95, rng=rng()).gains
        for given in (log, shuffled)
    )
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_names_do_not_matter():
    """Another order of states and actions: the same pooling, and the same draws."""
    problem, _ = small_problem("noisy-rewards", "middling", 60, 2)
    log, policy = problem.log, PiBSpibb(5).improve(problem).policy
    states = Vocabulary(tuple(reversed(log.states.labels)))
    actions = Vocabulary(tuple(reversed(log.actions.labels)))
    turned = log.with_labels(states, actions)
    there = problem.baseline.aligned(states, actions)
    one, other = (
        pool(PooledRows.of(Counts.from_log(given)), base, problem.discount)
        for given, base in ((log, problem.baseline), (turned, there))
    )
    assert len(one) == len(other) > 10
    for name in ("probability", "noise", "spread", "slope", "slope_error"):
        for straight, backward in zip(one, other, strict=True):
            wanted = pytest.approx(getattr(backward, name), rel=1e-9, abs=1e-12)
            assert getattr(straight, name) == wanted
    first, second = (
        posterior_improvement(given, policy, base, problem.discount, rng=rng(), draws=100)
        for given, base in ((log, problem.baseline), (turned, there))
    )
    np.testing.assert_allclose(second.gains, first.gains, rtol=1e-6, atol=1e-9)


def test_equal_policies_are_no_worse_than_each_other_for_sure():
    problem = random_problem(0, 5, 3, 60, 0.95)
    result = posterior_improvement(
        problem.counts, problem.baseline, problem.baseline, 0.95, rng=rng()
    )
    assert result.probability == 1
    assert result.gain == 0


def test_the_same_generator_state_gives_the_same_posterior():
    problem = random_problem(4, 5, 3, 60, 0.95)
    policy = PiBSpibb(2).improve(problem).policy
    first, second = (
        posterior_improvement(problem.counts, policy, problem.baseline, 0.95, rng=rng(9))
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.gains, second.gains)


# ---- how it is computed -------------------------------------------------------------------------


def solved_outright(belief: Belief, policies: list[np.ndarray], draws: int) -> np.ndarray:
    """ρ by one linear system per model and policy [D, M], in the models that `values` draws."""
    rows, which = belief.rows, np.repeat(np.arange(len(belief.poolings)), belief._shares(draws))
    models, eye = belief._draw(which, rng()), np.eye(rows.shape[0])
    found = np.empty((draws, len(policies)))
    for d, reward in enumerate(models.rewards.reshape(draws, *rows.shape)):
        chain = slow_rows(rows, models, d)
        for m, probs in enumerate(policies):
            system = eye - belief.discount * np.einsum("sa,sat->st", probs, chain)
            found[d, m] = rows.initial @ np.linalg.solve(system, (probs * reward).sum(axis=1))
    return belief.unit * np.clip(found, *limits_of(belief))


def limits_of(belief: Belief) -> tuple[float, float]:
    return return_limits(belief.rows, belief.counts.reward_range, belief.discount)


def slow_rows(rows: PooledRows, models: Models, d: int) -> np.ndarray:
    """P [S, A, S] of one model, outcome by outcome, as the formula of `PooledRows` has it."""
    n_states, n_actions = rows.shape
    own, pooled = np.zeros((n_states, n_actions, n_states)), np.zeros((n_states, n_states))
    for k, (pair, successor) in enumerate(zip(rows.pair, rows.successors)):
        if successor >= 0:
            state, action = divmod(pair, n_actions)
            theta = models.mass[d, k] / models.mass[d, rows.pair == pair].sum()
            of_state = models.mass[d, rows.pair // n_actions == state].sum()
            own[state, action, successor] += theta
            pooled[state, successor] += models.mass[d, k] / of_state
    for state in range(n_states):
        if not rows.visits.reshape(rows.shape)[state].any():
            pooled[state] = rows.overall
    w = models.weight[d].reshape(n_states, n_actions, 1)
    return w * own + (1 - w) * pooled[:, None]


WAYS = {"dense": (64, 1500), "sparse": (0, 1500), "swept": (0, 0)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("seed", "n_states", "n_actions", "n_transitions", "discount"),
    [
        (7, 12, 3, 300, 0.9), (1, 12, 3, 30, 0.9), (2, 5, 4, 40, 0.95), (3, 1, 1, 5, 0.5),
        (4, 3, 1, 20, 0.9), (5, 1, 3, 20, 0.0), (6, 20, 2, 60, 0.9),
    ],
)  # fmt: skip
def test_iterated_values_are_those_of_the_linear_systems(
    monkeypatch, way, seed, n_states, n_actions, n_transitions, discount
):
    problem = random_problem(seed, n_states, n_actions, n_transitions, discount)
    policies = [problem.baseline.probs, PiBSpibb(3).improve(problem).policy.probs]
    belief = Belief.of(problem.counts, problem.baseline, discount)
    wanted = solved_outright(belief, policies, 100)
    monkeypatch.setattr(values, "DENSE_UP_TO", WAYS[way][0])
    monkeypatch.setattr(values, "INVERTED_UP_TO", WAYS[way][1])
    monkeypatch.setattr(values.Evaluator, "batch", 33)
    found = belief.values(policies, 100, rng())
    assert np.abs(wanted - found).max() <= 0.02 * wanted.std(axis=0).min() + 1e-9


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("world", ["cliff-signs", "cliff-costs"])
def test_no_value_is_taken_for_settled_by_accident(world, seed):
    """Few episodes of long paths, where models are far from their mean and many do not settle."""
    problem = small_problem(world, "middling", 10, seed)[0]
    swept = Auto.over_thresholds().candidates(problem)[1]
    policies = np.stack([problem.baseline.probs, *swept[[0, 3, 5, 13]]])
    belief = Belief.of(problem.counts, problem.baseline, problem.discount)
    wanted = solved_outright(belief, list(policies), 500)
    found = belief.values(policies, 500, rng())
    assert np.abs(wanted - found).max() <= 0.05 * wanted.std(axis=0).mean()


@pytest.mark.parametrize("way", ["dense", "sparse"])
@pytest.mark.parametrize("sparse_up_to", [0, 1000])
def test_models_that_do_not_settle_are_solved_outright(monkeypatch, way, sparse_up_to):
    problem = random_problem(7, 12, 3, 300, 0.9)
    monkeypatch.setattr(values, "SPARSE_UP_TO", sparse_up_to)
    belief = Belief.of(problem.counts, problem.baseline, 0.9)
    wanted = solved_outright(belief, [problem.baseline.probs], 20)
    monkeypatch.setattr(values, "DENSE_UP_TO", WAYS[way][0])
    monkeypatch.setattr(values, "PRECISION", 1e-9)
    monkeypatch.setattr(values, "ITERATIONS", 1)
    found = belief.values([problem.baseline.probs], 20, rng())
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize(("n_transitions", "idle_matter"), [(300, False), (20, True)])
def test_models_that_sweeps_do_not_settle_are_solved_outright(
    monkeypatch, n_transitions, idle_matter
):
    """Of a discount so near one that plain sweeps would take a hundred thousand steps."""
    problem = random_problem(7, 12, 3, n_transitions, 0.9999)
    belief = Belief.of(problem.counts, problem.baseline, 0.9999)
    assert belief.rows.idle_are_beyond is not idle_matter
    wanted = solved_outright(belief, [problem.baseline.probs], 20)
    monkeypatch.setattr(values, "DENSE_UP_TO", 0)
    monkeypatch.setattr(values, "INVERTED_UP_TO", 0)
    monkeypatch.setattr(values, "SWEEPS", 5)
    found = belief.values([problem.baseline.probs], 20, rng())
    np.testing.assert_allclose(found, wanted, rtol=1e-8)


def test_a_drawn_world_is_one_of_the_models():
    problem = random_problem(6, 8, 2, 20, 0.9)
    belief = Belief.of(problem.counts, problem.baseline, 0.9)
    chances = np.array([pooling.probability for pooling in belief.poolings])
    again = rng(3)
    models = belief._draw(again.choice(len(chances), 1, p=chances / chances.sum()), again)
    transitions, rewards = belief.world(rng(3))
    np.testing.assert_allclose(transitions, slow_rows(belief.rows, models, 0), atol=1e-15)
    np.testing.assert_array_equal(rewards, belief.unit * models.rewards.reshape(rewards.shape))


def test_models_are_drawn_in_little_more_memory_than_they_have():
    """Their mass, mean rewards of the outcomes, and the products of both."""
    problem = random_problem(6, 40, 2, 400, 0.9)
    belief = Belief.of(problem.counts, problem.baseline, 0.9)
    assert belief.rows.doubt and not belief.rows.two_valued
    which = np.zeros(5000, dtype=int)
    tracemalloc.start()
    models = belief._draw(which, rng())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * models.mass.nbytes


def test_policies_are_read_by_label():
    log = arms((9, 10), (1, 10))
    turned = Policy([[0.0, 1.0]], ["s"], ["arm 1", "arm 0"])
    straight = play(log, 1, 0)
    one, other = (
        posterior_improvement(log, policy, play(log, 0.5, 0.5), 0.0, rng=rng()).gain
        for policy in (turned, straight)
    )
    assert one == other
    with pytest.raises(InputError, match="no row for state 's'"):
        posterior_improvement(
            log, Policy([[1.0, 0.0]], ["t"], log.actions), straight, 0.0, rng=rng()
        )


def test_steps_that_never_pay_are_not_believed_to_pay_because_ends_do():
    """Nearly every outcome is seen once; together they prove that only ends are rewarded."""
    rng = np.random.default_rng(0)
    lengths = rng.geometric(0.1, 400)
    n, last = lengths.sum(), np.cumsum(lengths) - 1
    won = np.zeros(n)
    won[last] = rng.random(len(last)) < 0.7
    log = Log.from_arrays(
        rng.integers(60, size=n), rng.integers(3, size=n), won,
        terminated=np.isin(np.arange(n), last),
    )  # fmt: skip
    baseline = Policy.uniform(log.states, log.actions)
    told = posterior_improvement(log, baseline, baseline, 0.99, rng=rng, draws=100)
    earned = returns(log, 0.99)
    error = earned.std() / np.sqrt(len(earned))
    assert abs(told.values[:, 1].mean() - earned.mean()) < 3 * error


def test_one_action_has_nothing_to_differ_from():
    """With endless repeats its value is known, however far targets scatter."""
    log = Log.from_arrays(
        [0, 0, 1, 1], [0, 0, 0, 0], [-0.292, -0.782, -0.257, 0.008], [0, 0, 0, 0],
        [False, False, False, True], [True, True, True, False], episode_id=range(4),
    )  # fmt: skip
    counts, many = Counts.from_log(log), 10**9
    mean = (counts.reward_sum / counts.n - counts.centre) / counts.unit
    counts = replace(
        counts, n=counts.n * many, reward_sum=counts.reward_sum * many,
        reward_sq=mean**2 * counts.n * many,
    )  # fmt: skip
    only = Policy(np.ones((2, 1)), counts.states, counts.actions)
    drawn = Belief.of(counts, only, 0.99).values([only.probs], 200, rng())
    np.testing.assert_allclose(drawn, -40.203, atol=1e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("nines", [6, 8, 10, 12])
def test_logs_without_ends_are_judged_alike_for_any_discount_near_one(nines):
    """Values grow as 1/(1 − γ), and single precision cannot tell γ from 1."""
    rng = np.random.default_rng(0)
    state, action = rng.integers(0, 4, 240), rng.integers(0, 3, 240)
    log = Log.from_arrays(
        state, action, rng.random(240) + 0.3 * action, terminated=np.zeros(240, bool),
        episode_id=np.repeat(np.arange(40), 6),
    )  # fmt: skip
    counts, base = Counts.from_log(log), Policy.uniform(log.states, log.actions)
    worst = Policy(np.tile([1.0, 0, 0], (4, 1)), log.states, log.actions)
    gains = []
    for discount in (1 - 1e-3, 1 - 10.0**-nines):
        found = posterior_improvement(
            counts, worst, base, discount, rng=np.random.default_rng(0), draws=200
        )
        gains.append(found.gains * (1 - discount))
    assert gains[1].max() < 0
    np.testing.assert_allclose(gains[1], gains[0], rtol=0.02)


# ---- quantiles that hold together ---------------------------------------------------------------


def drawn_gains(kind: str, policies: int) -> np.ndarray:
    """Gains [400, M] of policies that are alike, or not, or that tie in many models."""
    noise = rng(policies).standard_normal((400, policies))
    if kind == "alike":
        return noise[:, :1] + 0.3 * noise
    return np.maximum(noise, 0.0) if kind == "ties" else noise


@pytest.mark.parametrize("delta", [0.05, 0.2])
@pytest.mark.parametrize("policies", [1, 2, 5])
@pytest.mark.parametrize("kind", ["alike", "apart", "ties"])
def test_quantiles_at_the_joint_level_hold_together_and_at_a_larger_one_do_not(
    kind, policies, delta
):
    gains = drawn_gains(kind, policies)

    def missed(level: float) -> float:
        return (gains < np.quantile(gains, level, axis=0, method="lower")).any(axis=1).mean()

    level = joint_level(gains, delta)
    assert delta / policies - 1 / 399 <= level <= delta + 1e-12 or kind == "ties"
    assert missed(level) <= delta
    assert missed(level + 4 / len(gains)) > delta or kind == "ties"


def test_the_joint_level_depends_neither_on_copies_nor_on_the_order_nor_on_the_unit():
    gains = drawn_gains("apart", 3)
    level = joint_level(gains, 0.05)
    assert joint_level(gains[:, [0, 1, 2, 2, 1]], 0.05) == level
    assert joint_level(gains[rng(1).permutation(400)][:, ::-1], 0.05) == level
    assert joint_level(1e6 * gains, 0.05) == level
    assert joint_level(gains[:, :1], 0.05) == pytest.approx(0.05, abs=1 / 399)
    assert joint_level(gains[:, :0], 0.05) == 0.05


# ---- actions of unequal noise -------------------------------------------------------------------


def test_a_few_outcomes_of_a_noisy_action_are_read_with_its_own_noise():
    """A sure thing and a gamble in twenty states: the drawn means of the gamble, seen three times
    in each, spread as those of three outcomes with its noise do."""
    state = np.repeat(np.arange(20), 23)
    action = np.tile([0] * 20 + [1] * 3, 20)
    reward = rng(3).standard_normal(len(state)) * np.where(action == 0, 0.1, 5.0)
    log = Log.from_arrays(state, action, reward, terminated=[True] * len(state))
    counts = Counts.from_log(log)
    rows = PooledRows.of(counts)
    pooled = pool(rows, Policy(np.tile([0.9, 0.1], (20, 1))), 0.0)
    likeliest = max(pooled, key=lambda pooling: pooling.probability)
    quiet, noisy = likeliest.error.reshape(20, 2).T / likeliest.weight.reshape(20, 2).T
    own = np.array([reward[(state == s) & (action == 1)].var() for s in range(20)])
    wanted = np.sqrt((2 * 25 + 3 * own) / 4 / 3 - 3 * own / 12)  # what resampling three misses
    assert np.median(noisy / wanted) > 0.6
    assert noisy.mean() > 3 * quiet.mean()
