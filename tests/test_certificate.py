"""What an improvement certifies, and when it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import random_problem

from spibb.algorithms.base import Problem
from spibb.algorithms.basic_rl import BasicRL
from spibb.algorithms.spibb import ModelFreeSpibb, PiBSpibb, PiLeqBSpibb
from spibb.certificate import Setting, zeta
from spibb.log import Log
from spibb.policy import Policy


@pytest.fixture
def problem():
    return random_problem(0, 6, 3, 400, 0.9)


@pytest.mark.parametrize("algorithm", [PiBSpibb(5), ModelFreeSpibb(5)])
def test_pi_b_gets_theorem_2_minus_its_gain_in_the_model(problem, algorithm):
    result = algorithm.improve(problem)
    certificate = result.certificate(delta=0.1)
    setting = Setting(6, 3, 0.9, problem.v_max, 0.1)
    gain = result.value - result.baseline_value
    assert [bound.name for bound in certificate.bounds] == ["theorem-2", "two-successor", "beta"]
    for bound in certificate.bounds:
        assert bound.zeta == pytest.approx(zeta(5, setting, gain=gain, bound=bound.name), rel=1e-9)


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
    assert f"{certificate.best.zeta:.4g}" in str(certificate)


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
