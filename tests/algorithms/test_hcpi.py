"""HCPI: split, candidates, choice, and the reasons it gives."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import oracles_ope as slow
import pytest
from strategies import random_problem

from spibb import ope
from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.hcpi import HCPI
from spibb.algorithms.hcpi.result import ALPHAS
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import PiBSpibb
from spibb.bounds.means import student_t_bound
from spibb.errors import InputError
from spibb.estimate import pessimistic_model
from spibb.kernels import hcpi as kernels
from spibb.kernels.tuples import Codebook
from spibb.log import Log
from spibb.policy import Policy

UNIFORM = Policy([[0.5, 0.5]], ["x"], ["bad", "good"])


def bandit(
    n: int, paid=(0.0, 1.0), seed: int = 0, baseline: Policy = UNIFORM, **columns
) -> Problem:
    """n one-step episodes of two actions that pay for sure, played by `baseline`."""
    draws = np.random.default_rng(seed).random(n)
    action = (draws > baseline.probs[0, 0]).astype(int)
    log = Log.from_arrays(
        ["x"] * n, [UNIFORM.actions[a] for a in action], np.asarray(paid)[action],
        terminated=np.ones(n, dtype=bool), action_labels=UNIFORM.actions, **columns,
    )  # fmt: skip
    return Problem.from_log(log, baseline, discount=0.9)


def garnet_problem(n: int, seed: int = 0, behaviour: np.ndarray | None = None) -> Problem:
    mdp = slow.random_mdp(np.random.default_rng(seed), end=0.2)
    baseline = np.random.default_rng(seed + 1).dirichlet(3 * np.ones(3), 4)
    made = baseline if behaviour is None else behaviour
    log = slow.simulate(mdp, made, n, np.random.default_rng(seed + 2))
    return Problem.from_log(log, Policy(baseline), discount=0.9)


def test_a_clear_improvement_is_taken_and_explained():
    result = HCPI().improve(bandit(500))
    assert result.alpha == 0
    assert not result.kept_baseline
    assert result.policy.row("x") == {"bad": 0, "good": 1}
    assert not result.bootstrapped.any()
    assert result.lower_bound == result.lower_bounds[0] > result.baseline_estimate
    assert "alpha = 0" in result.reason
    assert "above the baseline" in result.reason
    assert result.v == pytest.approx([1])


def test_without_evidence_the_baseline_is_kept():
    """Both actions pay the same: no lower bound exceeds the baseline's performance."""
    result = HCPI(estimator="is").improve(bandit(200, paid=(1.0, 1.0)))
    assert result.kept_baseline
    assert result.bootstrapped.all()
    assert result.policy is result.problem.baseline
    assert "not above the baseline's performance" in result.reason


@pytest.mark.parametrize("n", [1, 2])
def test_fewer_than_two_test_episodes(n):
    result = HCPI().improve(bandit(n))
    assert result.kept_baseline
    assert f"{n - 1} test episodes" in result.reason
    assert (result.lower_bounds == -math.inf).all()


@pytest.mark.parametrize(("estimator", "bound"), [*itertools.product(ope.ESTIMATORS, ope.BOUNDS)])
def test_any_estimator_with_any_bound_that_applies(estimator, bound):
    if bound in ope.EXACT and estimator not in ("is", "pdis"):
        with pytest.raises(InputError, match=f"'{bound}' does not apply to .* '{estimator}'"):
            HCPI(estimator=estimator, bound=bound)
        return
    problem, trainer, lowest = garnet_problem(300), BasicRL(), -20.0
    result = HCPI(
        estimator=estimator, bound=bound, delta=0.5, trainer=trainer, lowest_return=lowest
    ).improve(problem)
    first, rest = problem.log.episodes(np.arange(60)), problem.log.episodes(np.arange(60, 300))
    training = Problem.from_log(first, problem.baseline, discount=0.9, v_max=problem.v_max)
    trained = trainer.improve(training).policy.probs
    found = ope.contributions(
        rest, ope.Candidates.mixtures(trained, problem.baseline.probs, ALPHAS),
        problem.baseline.probs[rest.state, rest.action], 0.9, names=(estimator,),
        model=pessimistic_model(training.counts, 0.9, lowest), lowest_return=lowest,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    bounds = [
        ope.lower_bound(
            found.estimate(estimator, k).pessimistic, bound, 0.5, rng=rng, despite_warning=True
        ).value
        for k in range(len(ALPHAS))
    ]
    np.testing.assert_allclose(result.lower_bounds, bounds, rtol=1e-9)


@pytest.mark.parametrize("trainer", [BasicRL(), PiBSpibb(n_wedge=3)])
def test_candidates_mix_the_trainer_with_the_baseline(trainer):
    """The lower bounds are those of (1 − α)π_t + απ_b, π_t trained on the first fifth only."""
    problem = garnet_problem(400, seed=5)
    result = HCPI(trainer=trainer, delta=0.9).improve(problem)
    first, rest = problem.log.episodes(np.arange(80)), problem.log.episodes(np.arange(80, 400))
    training = Problem.from_log(first, problem.baseline, discount=0.9, v_max=problem.v_max)
    trained = trainer.improve(training).policy.probs
    mixture = (1 - result.alpha) * trained + result.alpha * problem.baseline.probs
    np.testing.assert_allclose(result.policy.probs, mixture)
    propensities = problem.baseline.probs[rest.state, rest.action]
    for alpha, bound in zip(ALPHAS, result.lower_bounds, strict=True):
        pi = (1 - alpha) * trained + alpha * problem.baseline.probs
        q, v = slow.exact_values(training.model, pi)
        terms = slow.slow_dr(slow.unroll(rest, pi, propensities, 0.9, q, v), 0.9)
        assert bound == pytest.approx(student_t_bound(np.array(terms), 0.9), rel=1e-9)


def test_baseline_performance_is_the_mean_return_of_the_test_episodes():
    problem = garnet_problem(200)
    result = HCPI().improve(problem)
    rest = problem.log.episodes(np.arange(40, 200))
    returns = [
        sum(0.9**t * r for t, r in enumerate(rest.reward[a:b]))
        for a, b in itertools.pairwise(rest.episode_starts)
    ]
    assert result.baseline_estimate == pytest.approx(np.mean(returns))


def test_a_given_baseline_performance_is_the_one_to_beat():
    kept = HCPI(baseline_value=2.0).improve(bandit(500))
    assert kept.kept_baseline
    assert kept.baseline_estimate == 2
    taken = HCPI(baseline_value=0.4).improve(bandit(500))
    assert taken.alpha == 0
    assert "0.4" in taken.reason


def test_ratios_divide_by_the_policy_that_made_the_log():
    """Uniform data, another baseline (the released code divides by the baseline here)."""
    uniform = np.full((4, 3), 1 / 3)
    problem = garnet_problem(20_000, seed=7, behaviour=uniform)
    truth = slow.rho(slow.random_mdp(np.random.default_rng(7), end=0.2), problem.baseline.probs)
    right = HCPI(behaviour=Policy(uniform)).improve(problem)
    wrong = HCPI().improve(problem)
    assert right.baseline_estimate == pytest.approx(truth, rel=0.03)
    assert abs(wrong.baseline_estimate - truth) > 2 * abs(right.baseline_estimate - truth)


def test_logged_propensities():
    problem = bandit(100)
    column = np.full(100, 0.5)
    logged = HCPI(behaviour="action-prob").improve(bandit(100, action_prob=column))
    np.testing.assert_array_equal(logged.lower_bounds, HCPI().improve(problem).lower_bounds)


@pytest.mark.parametrize("estimator", ope.ESTIMATORS)
def test_a_candidate_that_no_episode_follows_has_no_bound(estimator):
    """Both arms lose; 'good' was never played, so its Q stays 0 and π_t takes it.

    With α = 0 every weight is 0, with α = 0.1 every weight is 0.1: is = 0 and −0.1, without any
    spread, look better than the baseline's −1, and must not count as evidence.
    """
    baseline = Policy([[0.999999, 0.000001]], ["x"], ["bad", "good"])
    problem = bandit(50, paid=(-1.0, -1.0), baseline=baseline)
    assert not (problem.log.action == 1).any()
    result = HCPI(estimator=estimator).improve(problem)
    assert result.lower_bounds[0] == -math.inf
    assert result.kept_baseline


def test_q_learning_and_its_seed():
    problem = garnet_problem(200, seed=3)
    one, two = HCPI().improve(problem), HCPI().improve(problem)
    np.testing.assert_array_equal(one.policy.probs, two.policy.probs)
    np.testing.assert_array_equal(one.lower_bounds, two.lower_bounds)
    few = [HCPI(updates=5, seed=seed).improve(problem).lower_bounds for seed in range(5)]
    assert any((bounds != few[0]).any() for bounds in few)


def test_q_learning_update_by_hand():
    """Q(0,1) = 0.1 · 2 = 0.2; then Q(1,0) = 0.1 · (1 + 0.5 · 0.2) = 0.11, as action 0 is barred."""
    two = np.array([0, 1])
    codebook = Codebook(two, np.array([1, 0]), np.array([-1, 0]), np.array([2.0, 1.0]), two)
    available = np.array([[False, True], [True, True]])
    q = np.array([[9.0, 0.0], [0.0, 0.0]])
    kernels.q_learning(codebook, two, available, 0.5, 0.1, q)
    np.testing.assert_allclose(q, [[9, 0.2], [0.11, 0]])


def test_states_that_training_never_tells_apart_keep_the_baseline():
    log = Log.from_arrays([0] * 50, [0, 1] * 25, [0.0, 1.0] * 25, terminated=[1] * 50,
                          n_states=2, n_actions=2)  # fmt: skip
    result = HCPI().improve(Problem.from_log(log, Policy([[0.5, 0.5], [0.3, 0.7]])))
    assert result.alpha == 0
    np.testing.assert_allclose(result.policy.probs, [[0, 1], [0.3, 0.7]])


def test_a_smaller_delta_never_raises_the_lower_bounds():
    problem = garnet_problem(200)
    strict = HCPI(delta=0.05).improve(problem).lower_bounds
    loose = HCPI(delta=0.9).improve(problem).lower_bounds
    assert (strict <= loose).all()


def test_behaviour_that_never_takes_a_logged_action():
    never_bad = Policy([[0.0, 1.0]], ["x"], ["bad", "good"])
    problem = replace(bandit(50), baseline=never_bad)
    rows = int((problem.log.action == 0).sum())
    with pytest.raises(InputError, match=f"action 'bad' in state 'x', .* takes in {rows} rows"):
        HCPI().improve(problem)


def test_bernstein_needs_a_declared_limit_for_negative_returns():
    problem = bandit(400, paid=(-1.0, 1.0))
    with pytest.raises(InputError, match="a return of -1, below lowest_return 0: give a lower"):
        HCPI(estimator="is", bound="bernstein").improve(problem)
    with pytest.raises(InputError, match=r"a return of -1, below lowest_return -0.5: give a"):
        HCPI(estimator="pdis", bound="bernstein", lowest_return=-0.5).improve(problem)
    result = HCPI(estimator="is", bound="bernstein", lowest_return=-1).improve(problem)
    assert result.alpha == 0


def test_counts_alone_do_not_suffice():
    problem = bandit(50)
    with pytest.raises(InputError, match="hcpi needs the episodes"):
        HCPI().improve(Problem.from_counts(problem.counts, problem.baseline))


@pytest.mark.parametrize(
    "options",
    [
        {"estimator": "doubly"}, {"bound": "t"}, {"delta": 1.5}, {"train_share": 0}, {"updates": 0},
        {"step_size": 0}, {"behaviour": "uniform"}, {"truncated": "cut"}, {"lowest_return": "low"},
    ],
)  # fmt: skip
def test_bad_hyper_parameters(options):
    with pytest.raises(InputError, match=next(iter(options))):
        HCPI(**options)


def test_at_delta_one_the_trained_policy_is_taken_without_a_test():
    problem = random_problem(0, 4, 2, 80, 0.9)
    result = HCPI(delta=1.0).improve(problem)
    assert result.alpha == 0


def coded_problems():
    """Problems by name, and whether kernels can have their episodes."""
    fair = bandit(100, action_prob=[0.5] * 100)
    sure = Policy([[1.0, 0.0]], ["x"], ["bad", "good"])
    other = Policy([[0.9, 0.1]], ["x"], ["bad", "good"])
    cut = Log.from_arrays(["x"], ["bad"], [1], truncated=[True], action_labels=UNIFORM.actions)
    yield "given", bandit(100), True
    yield "recorded", Problem.from_log(fair.log), True
    yield "estimated", Problem.from_log(bandit(100).log), True
    yield "counted", Problem.from_counts(fair.counts, UNIFORM), False
    yield "cut", Problem.from_log(cut, UNIFORM), False
    yield "never played", Problem.from_log(bandit(100).log, sure), False
    yield "recorded otherwise", Problem.from_log(fair.log, other), False
    yield "too small", replace(
        Problem.from_log(fair.log), log=replace(fair.log, action_prob=np.full(100, 1e-3))
    ), False  # fmt: skip


def test_whether_kernels_can_have_the_episodes_is_known_before_they_are_coded():
    for name, problem, possible in coded_problems():
        assert problem.is_coded == possible, name
        assert "coded_data" not in vars(problem)
        if possible:
            assert len(problem.coded_data.record.episodes.codes) == len(problem.log)
        elif name not in ("counted", "cut"):
            with pytest.raises(InputError):
                _ = problem.coded_data
