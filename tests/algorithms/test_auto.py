"""N∧ by the percentile criterion."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import random_problem

from spibb.algorithms.auto import Auto
from spibb.algorithms.base import Problem
from spibb.algorithms.spibb import PiBSpibb, PiLeqBSpibb
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.errors import InputError
from spibb.evaluate import exact_value, posterior_improvement
from spibb.log import Log
from spibb.ope import off_policy_estimates
from spibb.policy import Policy
from spibb.simulate import Sampler


def gridworld_problem(n_episodes: int, seed: int) -> Problem:
    sampler = Sampler(gridworld_mdp(), gridworld_baseline())
    counts = sampler.counts(n_episodes, rng=np.random.default_rng(seed))
    return Problem.from_counts(counts, gridworld_baseline(), discount=0.95, v_max=1.0)


def test_the_choice_has_the_largest_gain_of_those_likely_to_be_no_worse():
    result = Auto().improve(gridworld_problem(50, 0))
    allowed = [c for c in result.sweep if c.probability >= 0.95]
    assert result.chosen in allowed
    assert result.chosen.gain == max(c.gain for c in allowed)
    assert len(result.sweep) == 20
    assert f"n_wedge = {result.chosen.n_wedge:g}" in result.reason


def test_the_policy_is_that_of_the_algorithm_chosen():
    problem = gridworld_problem(50, 1)
    result = Auto().improve(problem)
    kind = {"pi-b": PiBSpibb, "pi-leq-b": PiLeqBSpibb}[result.chosen.algorithm]
    single = kind(result.chosen.n_wedge).improve(problem)
    np.testing.assert_array_equal(result.policy.probs, single.policy.probs)
    np.testing.assert_array_equal(result.bootstrapped, single.bootstrapped)
    changed = (single.policy.probs != problem.baseline.probs).any(axis=1).sum()
    assert result.chosen.states_changed == changed


def test_the_probabilities_are_those_of_the_posterior():
    problem = gridworld_problem(20, 2)
    result = Auto(draws=400, kinds=("pi-b",), n_wedges=(3, 10)).improve(problem)
    for candidate in result.sweep:
        policy = PiBSpibb(candidate.n_wedge).improve(problem).policy
        belief = posterior_improvement(
            problem.counts, policy, problem.baseline, 0.95, rng=np.random.default_rng(5),
            draws=4000,
        )  # fmt: skip
        assert candidate.probability == pytest.approx(belief.probability, abs=0.06)
        assert candidate.gain == pytest.approx(belief.gain, abs=0.02)


@pytest.mark.parametrize("kind", [PiBSpibb, PiLeqBSpibb])
def test_auto_as_a_threshold_sweeps_one_kind(kind):
    problem = gridworld_problem(50, 1)
    result = kind(n_wedge="auto").improve(problem)
    assert {candidate.algorithm for candidate in result.sweep} == {kind.name}
    wanted = Auto(kinds=(kind.name,)).improve(problem)
    np.testing.assert_array_equal(result.policy.probs, wanted.policy.probs)
    assert "here the log chose it" in str(result.certificate())
    (rows,) = kind.policies([kind(n_wedge="auto")], problem)
    np.testing.assert_array_equal(rows, result.policy.probs)


def test_a_threshold_is_a_number_or_auto():
    with pytest.raises(InputError, match="n_wedge is 'atuo', expected a number, or 'auto'"):
        PiBSpibb(n_wedge="atuo")


def test_the_sweep_holds_values_intervals_and_off_policy_estimates():
    counted = gridworld_problem(50, 1)
    log = Sampler(gridworld_mdp(), gridworld_baseline()).log(50, rng=np.random.default_rng(1))
    problem = Problem.from_log(log, gridworld_baseline(), discount=0.95, v_max=1.0)
    for bare, full in zip(Auto().sweep(counted), Auto().sweep(problem)):
        assert bare.off_policy is None
        assert (bare.value, bare.gain) == (full.value, full.gain)
        assert full.interval[0] <= full.gain <= full.interval[1]
    last = Auto(kinds=("pi-b",), n_wedges=(10,)).sweep(problem)[0]
    fit = PiBSpibb(10).improve(problem)
    assert last.value == pytest.approx(fit.value)
    report = off_policy_estimates(
        log, fit.policy, gridworld_baseline(), 0.95, rng=np.random.default_rng(0)
    )
    assert last.off_policy.value == pytest.approx(report["wpdis"].estimate.value)
    assert last.off_policy.effective_sample_size == pytest.approx(report.effective_sample_size)
    low, high = last.off_policy.interval
    assert low < last.off_policy.value < high


def test_without_a_safe_candidate_the_baseline_is_kept_with_the_reason():
    """One lucky win of b in three tries is no evidence against a's nine of twelve."""
    log = Log.from_arrays(
        ["s"] * 15, ["a"] * 12 + ["b"] * 3, [1.0] * 9 + [0.0] * 3 + [1.0, 1.0, 1.0],
        terminated=[True] * 15,
    )  # fmt: skip
    problem = Problem.from_log(log, Policy([[0.8, 0.2]], ["s"], ["a", "b"]), discount=0.0)
    result = Auto(n_wedges=(1,), delta=0.01, draws=1000).improve(problem)
    assert result.chosen is None
    np.testing.assert_array_equal(result.policy.probs, problem.baseline.probs)
    assert "the baseline is kept" in result.reason


def test_no_gain_keeps_the_baseline():
    log = Log.from_arrays(["s"] * 4, ["a", "b"] * 2, [0.0] * 4, terminated=[True] * 4)
    result = Auto().improve(Problem.from_log(log, Policy([[0.5, 0.5]], ["s"], ["a", "b"])))
    assert result.chosen is None
    assert result.reason == "no candidate promises a gain: the baseline is kept"


def test_a_tolerated_loss_admits_more_candidates():
    problem = gridworld_problem(10, 3)
    strict, loose = (Auto(zeta=zeta).improve(problem) for zeta in (0.0, 0.2))
    for one, other in zip(strict.sweep, loose.sweep):
        assert other.probability >= one.probability


def test_in_simulation_it_gains_more_than_a_fixed_threshold_and_is_seldom_worse():
    """120 gridworld logs of 10 and of 50 trajectories; a fixed N∧ = 5 beside it."""
    mdp = gridworld_mdp()
    truth = exact_value(mdp, gridworld_baseline())
    for size, worst_share in ((10, 0.1), (50, 0.02)):
        gains, fixed = [], []
        for seed in range(120):
            problem = gridworld_problem(size, 1000 + seed)
            gains.append(exact_value(mdp, Auto().improve(problem).policy) - truth)
            fixed.append(exact_value(mdp, PiBSpibb(5).improve(problem).policy) - truth)
        assert np.mean(np.array(gains) < -1e-9) <= worst_share
        assert np.mean(gains) > np.mean(fixed)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.0}, "delta is 0.0"),
        ({"n_wedges": (0,)}, "n_wedges is 0"),
        ({"kinds": ("pi-c",)}, "did you mean 'pi-b'"),
        ({"draws": 0}, "draws is 0"),
        ({"zeta": -1.0}, "zeta is -1.0"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        Auto(**options)


def test_counts_are_enough():
    problem = random_problem(0, 6, 3, 200, 0.9)
    bare = Problem.from_counts(problem.counts, problem.baseline, discount=0.9)
    np.testing.assert_array_equal(
        Auto().improve(bare).policy.probs, Auto().improve(problem).policy.probs
    )
