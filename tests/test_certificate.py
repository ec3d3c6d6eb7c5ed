"""What an improvement certifies, and when it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import random_problem

from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import ModelFreeSpibb, PiBSpibb, PiLeqBSpibb
from spibb.certificate import Premises, zeta
from spibb.change_certificate import Change, ChangeCertificate, ChangeTest
from spibb.counts import Counts
from spibb.errors import InputError
from spibb.log import Log, returns_to_go
from spibb.policy import Policy
from spibb.words import at_most


@pytest.fixture
def problem():
    return random_problem(0, 6, 3, 400, 0.9)


@pytest.mark.parametrize("algorithm", [PiBSpibb(5), ModelFreeSpibb(5)])
def test_pi_b_gets_theorem_2_minus_its_gain_in_the_model(problem, algorithm):
    result = algorithm.improve(problem)
    certificate = result.certificate(delta=0.1)
    premises = Premises(6, 3, 0.9, problem.v_max, 0.1)
    gain = result.value - result.baseline_value
    assert [bound.name for bound in certificate.bounds] == ["theorem-2", "two-successor", "beta"]
    for bound in certificate.bounds:
        assert bound.zeta == pytest.approx(zeta(5, premises, gain=gain, bound=bound.name), rel=1e-9)


def test_assumptions_are_spelt_out(problem):
    text = " / ".join(PiBSpibb(5).improve(problem).certificate().assumptions)
    for words in ("the baseline collected the log", "independent", "Markov", "v_max", "derived"):
        assert words in text
    given = Problem.from_counts(problem.counts, problem.baseline, discount=0.9, v_max=3.0)
    assert "v_max = 3 in absolute value (given)" in " / ".join(
        PiBSpibb(5).improve(given).certificate().assumptions
    )


def test_a_vacuous_bound_says_so(problem):
    certificate = PiBSpibb(5).improve(problem).certificate()
    assert all(bound.vacuous for bound in certificate.bounds)
    assert "vacuous" in str(certificate)


def test_a_bound_below_the_range_of_returns_is_not_vacuous(problem):
    certificate = PiBSpibb(1e9).improve(problem).certificate()
    assert not certificate.best.vacuous
    assert "vacuous" not in str(certificate)
    assert f"loses at most {at_most(certificate.best.zeta, 4)} " in str(certificate)


def test_the_range_of_returns_knows_the_signs_of_the_rewards():
    for rewards, width in (([0.0, 1.0], 1), ([-1.0, 0.0], 1), ([-1.0, 1.0], 2)):
        log = Log.from_arrays(["s", "s"], ["a", "a"], rewards, terminated=[True, True])
        problem = Problem.from_log(log, Policy([[1.0]], ["s"], ["a"]), v_max=1.0)
        assert problem.return_range == width


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (PiLeqBSpibb(5), "not proven"),
        (BasicRL(), "no bound holds"),
        (PiBSpibb(0), "infinite"),
    ],
)
def test_without_a_theorem_there_is_no_certificate(problem, algorithm, words):
    certificate = algorithm.improve(problem).certificate()
    assert certificate.bounds == ()
    assert certificate.best is None
    assert words in certificate.refusal
    assert str(certificate).startswith("No certificate: ")


def test_a_log_that_contradicts_the_baseline_gets_no_certificate():
    log = Log.from_arrays(["s"] * 3, ["a", "b", "b"], [1.0, 0.0, 0.0], terminated=[True] * 3)
    baseline = Policy([[1.0, 0.0]], ["s"], ["a", "b"])
    certificate = PiBSpibb(1).improve(Problem.from_log(log, baseline)).certificate()
    assert "2 transitions take an action that the baseline never plays" in certificate.refusal


def two_arms(n: int = 4, **columns) -> Log:
    return Log.from_arrays(["s"] * n, ["a", "b"] * (n // 2), [1.0, 0.0] * (n // 2),
                           terminated=[True] * n, **columns)  # fmt: skip


def test_action_probabilities_that_contradict_the_baseline_get_no_certificate():
    baseline = Policy([[0.5, 0.5]], ["s"], ["a", "b"])
    wrong, right = two_arms(action_prob=[0.9, 0.1] * 2), two_arms(action_prob=[0.5] * 4)
    certificate = PiBSpibb(1).improve(Problem.from_log(wrong, baseline)).certificate()
    assert "action_prob is not the policy's probability in 4 of 4 rows" in certificate.refusal
    assert PiBSpibb(1).improve(Problem.from_log(right, baseline)).certificate().refusal is None
    estimated = Problem.from_log(wrong)  # the estimate is not the policy that acted, and says so
    assert PiBSpibb(1).improve(estimated).certificate().refusal is None


def test_the_beta_bound_is_called_credible(problem):
    certificate = PiBSpibb(5).improve(problem).certificate()
    assert [bound.credible for bound in certificate.bounds] == [False, False, True]
    assert "With posterior probability at least 0.95" in str(certificate)
    assert "(beta, credible under a uniform prior)" in str(certificate)


def test_v_max_below_a_recorded_return_is_refused():
    """1 + 0.5 · 1 = 1.5 to the end; a cut record of 1.5 may still be followed by −0.25 · v_max."""
    states, actions, rewards = ["s"] * 2, ["a"] * 2, [1.0, 1.0]
    ended = Log.from_arrays(states, actions, rewards, terminated=[False, True])
    cut = Log.from_arrays(states, actions, rewards, ["s"] * 2, [False] * 2, [False, True])
    baseline = Policy([[1.0]], ["s"], ["a"])
    for log, least in ((ended, 1.5), (cut, 1.5 / 1.25)):
        words = f"v_max is 1.1, but the log shows returns of {least:.8g} .*: give a limit that"
        with pytest.raises(InputError, match=words):
            Problem.from_log(log, baseline, discount=0.5, v_max=1.1)
        assert Problem.from_log(log, baseline, discount=0.5, v_max=least).v_max == least


@pytest.mark.parametrize(("terminated", "least"), [(True, 3.0), (False, 2.0)])
def test_v_max_below_a_counted_reward_is_refused(terminated, least):
    log = Log.from_arrays(["s"], ["a"], [-3.0], ["s"], [terminated], [not terminated])
    counts, baseline = Counts.from_log(log), Policy([[1.0]], ["s"], ["a"])
    with pytest.raises(InputError, match=f"the log shows returns of {least:g} in absolute value"):
        Problem.from_counts(counts, baseline, discount=0.5, v_max=0.99 * least)
    assert Problem.from_counts(counts, baseline, discount=0.5, v_max=least).v_max_given


def test_values_beyond_v_max_in_the_model_get_no_certificate():
    """Counts alone do not show returns; the model does: a loop that pays 1 is worth 1/(1 − γ)."""
    log = Log.from_arrays(["s"], ["a"], [1.0], ["s"], [False], [True])
    baseline = Policy([[1.0]], ["s"], ["a"])
    short = Problem.from_counts(Counts.from_log(log), baseline, discount=0.9, v_max=5)
    refusal = PiBSpibb(1).improve(short).certificate().refusal
    assert "a state is worth 10 in the model" in refusal
    enough = Problem.from_counts(Counts.from_log(log), baseline, discount=0.9, v_max=10)
    assert PiBSpibb(1).improve(enough).certificate().refusal is None


def test_returns_to_go_are_those_of_a_loop():
    rng = np.random.default_rng(3)
    lengths = [1, 2, 5, 17, 64, 65]
    rewards = [rng.normal(size=n) for n in lengths]
    episode = np.repeat(np.arange(6), lengths)
    ended = np.concatenate([np.arange(n) == n - 1 for n in lengths])
    log = Log.from_arrays(["s"] * len(episode), ["a"] * len(episode), np.concatenate(rewards),
                          terminated=ended)  # fmt: skip
    wanted = []
    for part in rewards:
        total, found = 0.0, []
        for reward in part[::-1]:
            total = reward + 0.9 * total
            found.append(total)
        wanted += found[::-1]
    np.testing.assert_allclose(returns_to_go(log, 0.9), wanted, rtol=1e-12, atol=1e-12)


def test_theorem_2_holds_in_simulation_for_a_non_vacuous_bound():
    """A bandit with two arms: the certified loss is exceeded in at most a share δ of the logs."""
    rng = np.random.default_rng(0)
    baseline = Policy([[0.5, 0.5]], ["s"], ["a", "b"])
    losses, zetas = [], []
    for _ in range(200):
        actions = rng.integers(2, size=4000)
        rewards = (rng.random(4000) < np.where(actions == 0, 0.5, 0.52)).astype(float)
        log = Log.from_arrays(
            ["s"] * 4000, np.array(["a", "b"])[actions], rewards, terminated=np.ones(4000, bool)
        )
        problem = Problem.from_log(log, baseline, discount=0.0, v_max=1.0)
        result = PiBSpibb(1000).improve(problem)
        losses.append(0.51 - result.policy.probs[0] @ [0.5, 0.52])
        zetas.append(result.certificate(0.1).best.zeta)
    assert max(zetas) < 1
    assert np.mean(np.array(losses) > np.array(zetas)) <= 0.1


@pytest.mark.parametrize(
    ("delta", "said"),
    [(0.05, "0.95 "), (1e-3, "0.999 "), (5e-4, "1 − 0.0005 "), (1e-9, "1 − 1e-9 ")],
)
def test_no_small_delta_is_said_to_be_certainty(problem, delta, said):
    assert f"probability at least {said}" in str(PiBSpibb(5).improve(problem).certificate(delta))
    test = ChangeTest((Change("a", ("b",)),), True, 1e-12, 1e-12, 1.0, 0.5, 9, 9, 0)
    changes = ChangeCertificate(delta, 0.0, 1.0, (), (), None, (test,), 9, 9)
    assert f"probability at least {said}" in str(changes)


@pytest.mark.parametrize(
    ("accepted", "said"),
    [((True,), "The one change tested passed on 9 episodes that were not used to choose it."),
     ((True, False), "1 of 2 changes passed its test on 9 episodes that were not used to choose "
                     "them."),
     ((True, True), "2 of 2 changes passed their tests on 9 episodes that")],
)  # fmt: skip
def test_one_change_is_not_several(accepted, said):
    tests = tuple(
        ChangeTest((Change("a", ("b",)),), yes, 0, 0, 1, 0.5, 9, 9, 0) for yes in accepted
    )
    assert said in str(ChangeCertificate(0.05, 0.0, 1.0, (), (), None, tests, 9, 9))
