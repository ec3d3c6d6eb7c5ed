"""A constant in all rewards changes neither verdict nor choice where it changes no comparison:
in worlds whose states tell how many steps are left, and in worlds that never end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from spibb.algorithms.auto import Auto
from spibb.algorithms.problem import Problem
from spibb.algorithms.spibb import PiBSpibb, PiLeqBSpibb
from spibb.envs.small import SMALL
from spibb.log import Log
from spibb.policy import Policy
from spibb.simulate import Sampler

CONSTANTS = (1.0, -1.0, 1000.0, -1000.0)
PAID: dict[str, Callable[[np.random.Generator, float], float]] = {
    "normal": lambda rng, mean: mean + 0.5 * rng.standard_normal(),
    "fixed": lambda rng, mean: round(mean, 6),
    "two values": lambda rng, mean: float(rng.random() < 1 / (1 + np.exp(-2 * mean))),
    "halves": lambda rng, mean: float(np.round(2 * mean + 1.4 * rng.standard_normal()) / 2),
}
ALGORITHMS = (
    Auto(draws=300), PiBSpibb("auto"), PiBSpibb(5, unseen="baseline"),
    PiLeqBSpibb(10, unseen="baseline"),
)  # fmt: skip


def timed_problem(seed: int, paid: str) -> Problem:
    """A log of a random world whose states name the step; every episode has the same length."""
    rng = np.random.default_rng(seed)
    width, steps, n_actions = rng.integers((1, 1, 2), (5, 6, 4)).tolist()
    moves = rng.dirichlet(np.full(width, 0.7), (steps, width, n_actions))
    means = rng.normal(0, 0.5, (steps, width, n_actions))
    plays = rng.dirichlet(np.full(n_actions, 2.0), (steps, width))
    rows = []
    for _ in range(int(rng.choice([40, 100, 300]))):
        x = rng.integers(width)
        for t in range(steps):
            a = rng.choice(n_actions, p=plays[t, x])
            rows.append((f"{x} at {t}", f"do {a}", PAID[paid](rng, means[t, x, a]), t == steps - 1))
            x = rng.choice(width, p=moves[t, x, a])
    state, action, reward, last = (list(column) for column in zip(*rows))
    log = Log.from_arrays(state, action, reward, terminated=last)
    labels = [f"{x} at {t}" for t in range(steps) for x in range(width)]
    actions = [f"do {a}" for a in range(n_actions)]
    baseline = Policy(plays.reshape(-1, n_actions), labels, actions)
    return Problem.from_log(log, baseline, discount=float(rng.choice([0.5, 0.9, 0.99])))


def endless_problem(seed: int, name: str) -> Problem:
    """A log of a small world that never ends; its episodes are cut after as many steps."""
    rng, world = np.random.default_rng(seed), SMALL[name]
    mdp = world.make(rng)
    baseline = world.baseline(mdp, "middling", rng)
    log = Sampler(mdp, baseline, world.max_steps).log(40, rng=rng)
    assert not log.terminated.any()
    return Problem.from_log(log, baseline, discount=mdp.discount)


def moved(problem: Problem, constant: float) -> Problem:
    assert problem.log is not None
    log = replace(problem.log, reward=problem.log.reward + constant)
    return Problem.from_log(log, problem.baseline, discount=problem.discount)


def assert_blind(problem: Problem, algorithm: Auto | PiBSpibb | PiLeqBSpibb) -> None:
    result = algorithm.improve(problem)
    for constant in CONSTANTS:
        other = algorithm.improve(moved(problem, constant))
        assert other.verdict.grade == result.verdict.grade, constant
        np.testing.assert_allclose(other.policy.probs, result.policy.probs, atol=1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: f"{a.name} {a.unseen}")
@pytest.mark.parametrize("paid", PAID)
@pytest.mark.parametrize("seed", range(4))
def test_verdict_and_choice_are_blind_to_a_constant_where_states_tell_the_step(
    seed, paid, algorithm
):
    assert_blind(timed_problem(seed, paid), algorithm)


@pytest.mark.parametrize("name", ["river-swim", "wet-chicken"])
@pytest.mark.parametrize("seed", range(2))
def test_verdict_and_choice_are_blind_to_a_constant_where_nothing_ends(seed, name):
    assert_blind(endless_problem(seed, name), Auto(draws=300))


def test_the_worlds_of_this_file_have_changes_to_support():
    """The property says little if no log supports anything."""
    grades = [
        str(Auto(draws=300).improve(timed_problem(seed, paid)).verdict.grade)
        for seed in range(4)
        for paid in PAID
    ]
    assert 4 <= grades.count("supported") <= 14
