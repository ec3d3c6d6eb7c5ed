"""Assessments to make reports from."""

from __future__ import annotations

import numpy as np

from spibb.algorithms.auto import Auto
from spibb.algorithms.base import Algorithm
from spibb.algorithms.problem import Problem
from spibb.behaviour import estimate_baseline
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.ingest.assumptions import Finding
from spibb.log import Log
from spibb.report.assessment import Assessment, assess
from spibb.report.origin import Origin
from spibb.simulate import simulate

NASTY = "<script>alert('x')</script>&\"'"
ORIGIN = Origin(
    "spibb improve log.csv", 3, (), (("spibb", "0"), ("python", "3")), "2026-01-01 00:00 UTC"
)
FINDING = Finding("constant reward", "42 % of the rows", "check the column")


def gridworld_assessment(algorithm: Algorithm | None = None, n_episodes: int = 200) -> Assessment:
    """A gridworld log, improved."""
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    log = simulate(mdp, baseline, n_episodes, rng=np.random.default_rng(5))
    problem = Problem.from_log(log, baseline, discount=0.95, v_max=1.0)
    return assess(
        (algorithm or Auto.over_thresholds()).improve(problem),
        ORIGIN,
        findings=(FINDING,),
    )


def one_step_log(n_states: int, n_actions: int, n: int, name: str = "{}") -> Log:
    """Single decisions in many states; the last action pays most."""
    rng = np.random.default_rng(0)
    states, actions = rng.integers(n_states, size=n), rng.integers(n_actions, size=n)
    rewards = actions / n_actions + rng.normal(size=n) / 10
    return Log.from_arrays(
        [name.format(s) for s in states.tolist()], [f"do-{a}" for a in actions.tolist()], rewards,
        terminated=np.ones(n, dtype=bool),
    )  # fmt: skip


def one_step_problem(n_states: int, n_actions: int, n: int, name: str = "{}") -> Problem:
    """The problem of that log, its baseline read off it."""
    log = one_step_log(n_states, n_actions, n, name)
    return Problem.from_log(log, estimate_baseline(log, smoothing=1.0), discount=0.5)
