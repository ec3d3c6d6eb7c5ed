"""What every registered algorithm keeps, whatever it does."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import spibb
from spibb.algorithms import REGISTRY, Problem, make
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.labels import Vocabulary
from spibb.log import Log
from spibb.policy import Policy
from spibb.simulate import simulate
from spibb.solve import evaluate

BASELINE = gridworld_baseline("spibb")
STATES = [f"ward-{i}" for i in range(25)]


def without(baseline: Policy, state: int, action: int) -> Policy:
    """A policy that never takes this action there."""
    probs = baseline.probs.copy()
    probs[state, action] = 0
    return Policy(probs / probs.sum(axis=1, keepdims=True), baseline.states, baseline.actions)


def labelled_problem(order: np.ndarray | None = None, baseline: Policy = BASELINE) -> Problem:
    """A gridworld log with string labels, its states listed in any order."""
    order = np.arange(25) if order is None else order
    mdp = gridworld_mdp()
    log = simulate(mdp, baseline, 60, rng=np.random.default_rng(5))
    names = Vocabulary(STATES, ("state",))
    named = dataclasses.replace(log, states=names)
    listed = Vocabulary([STATES[i] for i in order], ("state",))
    policy = Policy(baseline.probs[order], listed, baseline.actions)
    return Problem.from_log(
        named.with_labels(listed, baseline.actions), policy, discount=0.95, v_max=1.0
    )


@pytest.fixture(params=sorted(REGISTRY))
def algorithm(request):
    return make(request.param)


def test_rows_are_distributions_over_available_actions(algorithm):
    problem = labelled_problem(baseline=without(BASELINE, state=6, action=2))
    assert [tuple(pair) for pair in np.argwhere(~problem.available)] == [(6, 2)]
    result = algorithm.improve(problem)
    np.testing.assert_allclose(result.policy.probs.sum(axis=1), 1, atol=1e-9)
    assert (result.policy.probs >= 0).all()
    assert (result.policy.probs[~problem.available] == 0).all()


def test_labels_and_shapes_are_kept(algorithm):
    problem = labelled_problem()
    result = algorithm.improve(problem)
    assert result.policy.states == problem.baseline.states
    assert result.policy.actions == problem.baseline.actions
    assert result.q.shape == result.bootstrapped.shape == (25, 4)
    assert result.v.shape == (25,)
    assert result.bootstrapped.dtype == bool
    assert isinstance(result.iterations, int)
    assert result.converged is True
    assert np.isfinite(result.value)
    assert np.isfinite(result.baseline_value)


def test_a_second_run_gives_the_same_bits(algorithm):
    first, second = (algorithm.improve(labelled_problem()) for _ in range(2))
    np.testing.assert_array_equal(first.policy.probs, second.policy.probs)
    np.testing.assert_array_equal(first.q, second.q)


def test_permuting_state_labels_permutes_the_values(algorithm):
    order = np.random.default_rng(0).permutation(25)
    straight, shuffled = (algorithm.improve(labelled_problem(o)) for o in (np.arange(25), order))
    np.testing.assert_allclose(shuffled.v, straight.v[order], atol=1e-9)
    np.testing.assert_allclose(shuffled.q, straight.q[order], atol=1e-9)


def test_inputs_are_untouched_and_outputs_read_only(algorithm):
    problem = labelled_problem()
    before = [problem.baseline.probs.copy(), problem.counts.n.copy(), problem.log.reward.copy()]
    result = algorithm.improve(problem)
    after = [problem.baseline.probs, problem.counts.n, problem.log.reward]
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)
    for array in (result.policy.probs, result.q, result.v, result.bootstrapped):
        assert not array.flags.writeable


def test_values_are_those_of_the_policy_in_the_stated_model(algorithm):
    result = algorithm.improve(labelled_problem())
    values = evaluate(result.model, result.policy.probs)
    np.testing.assert_allclose(result.q, values.q, atol=1e-9)
    np.testing.assert_allclose(result.v, values.v, atol=1e-9)


def test_a_certificate_is_issued_or_refused_with_a_reason(algorithm):
    certificate = algorithm.improve(labelled_problem()).certificate(delta=0.1)
    assert (certificate.refusal is None) == bool(certificate.bounds)
    assert (certificate.refusal or "probability at least 0.9 ") in str(certificate)


def test_hyper_parameters_are_frozen_and_the_name_is_the_registry_name(algorithm):
    assert REGISTRY[algorithm.name] is type(algorithm)
    assert dataclasses.is_dataclass(algorithm)
    field = dataclasses.fields(algorithm)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(algorithm, field, 1)


def test_one_call_does_the_same(algorithm):
    problem = labelled_problem()
    result = spibb.improve(
        problem.log, problem.baseline, discount=0.95, v_max=1.0, algorithm=algorithm.name
    )
    np.testing.assert_array_equal(result.policy.probs, algorithm.improve(problem).policy.probs)


def test_one_transition_is_enough(algorithm):
    log = Log.from_arrays(["s"], ["a"], [1.0], terminated=[True])
    problem = Problem.from_log(log, Policy([[0.5, 0.5]], ["s"], ["a", "b"]))
    result = algorithm.improve(problem)
    row = result.policy.row("s")
    assert row["a"] + row["b"] == pytest.approx(1)
    assert row["a"] >= 0.5  # the one action seen paid 1, the other is unknown


def test_a_log_without_a_known_step_is_refused_in_one_line(algorithm):
    """Whatever its rewards are: they are not counted."""
    n = 30
    log = Log.from_arrays(
        [0, 1] * (n // 2), np.arange(n) % 3, np.arange(n) * 1.0,
        episode_id=np.arange(n), terminated=[False] * n,
    )  # fmt: skip
    problem = Problem.from_log(
        log, Policy.uniform(log.states, log.actions), discount=0.9, v_max=1e3
    )
    with pytest.raises(spibb.InputError, match="no row of the log has a known successor"):
        _ = algorithm.improve(problem).verdict
