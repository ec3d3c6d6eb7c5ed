"""The three studies of the paper on finite MDPs: their grids, and one repetition of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from spibb.algorithms.base import Algorithm, Truth
from spibb.algorithms.problem import Problem
from spibb.envs.baselines import gridworld_baseline, optimal_q
from spibb.envs.garnet import draw_garnet
from spibb.envs.gridworld import gridworld_mdp
from spibb.envs.softening import softened_baselines
from spibb.evaluate import exact_value
from spibb.experiments import compiled
from spibb.experiments.spec import Column, Experiment
from spibb.kernels import dense, hcpi
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.simulate import Sampler

N_WEDGES = (5, 7, 10, 15, 20, 30, 50, 70, 100)
ETAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
RANDOM_SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000)
GRIDWORLD_SIZES = (*RANDOM_SIZES, 5000, 10000)
KAPPAS = (
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.004, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
    1, 2, 5, 10, 20, 50, 100,
)  # fmt: skip
HCPI_DELTAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
ROBUST_DELTAS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 0.7, 0.9, 1)
V_MAX = 1.0
"""Largest return of a task with one goal that pays 1."""

SPIBB = tuple(f"{name}:n_wedge={n}" for name in ("pi-b", "pi-leq-b") for n in N_WEDGES)
ROBUST_RELEASED = "robust-mdp:delta=0.001,released=true,safety_test=false"
"""Robust MDP as released; the code has δ = 0.001 where the text has 0.1."""
HCPI_RELEASED = "hcpi:delta=0.9,estimator=dr,released=true"
COMPETITORS = (
    "basic-rl",
    "ramdp:kappa=0.003",
    "ramdp:kappa=0.003,released=true",
    "robust-mdp:delta=0.1,safety_test=false",
    ROBUST_RELEASED,
    "hcpi:delta=0.9,estimator=dr",
    HCPI_RELEASED,
)
MAIN = (*COMPETITORS, *SPIBB)
SEARCH = (
    "basic-rl",
    "basic-rl:unseen=optimistic",
    "robust-mdp:delta=0.1,safety_test=true",
    "ramdp:kappa=0.003,safety_test=true",
    *(f"ramdp:kappa={k:g}" for k in KAPPAS),
    *(f"ramdp:kappa={k:g},released=true" for k in KAPPAS),
    *(f"robust-mdp:delta={d:g},safety_test=false" for d in ROBUST_DELTAS),
    *(f"hcpi:delta={d:g},estimator={e}" for e in hcpi.ESTIMATORS for d in HCPI_DELTAS),
    *(f"{name}:n_wedge={n}" for name in ("pi-b", "pi-leq-b") for n in (5, 20)),
)
SEARCH_RELEASED = (
    "basic-rl",
    ROBUST_RELEASED,
    *(f"robust-mdp:delta={d:g},released=true,safety_test=false" for d in ROBUST_DELTAS),
    *(
        f"hcpi:delta={d:g},estimator={e},released=true"
        for e in hcpi.ESTIMATORS
        for d in HCPI_DELTAS
    ),
)
SHOWN_WEDGES = (5, 10, 20)
OURS = (
    *COMPETITORS,
    *(f"{name}:n_wedge={n}" for name in ("pi-b", "pi-leq-b") for n in SHOWN_WEDGES),
    "auto",
    "certified",
)
GRIDS = {"main": MAIN, "search": SEARCH, "search-released": SEARCH_RELEASED, "ours": OURS}


@cache
def default_experiment(study: str, grid: str = "main") -> Experiment:
    """The paper's grid of a study: `main` is its benchmark, `search` its hyper-parameter search.

    `search-released` is the search again with Robust MDP and HCPI as released (RaMDP as released is
    in `search`); `ours` has what the figures of the benchmark show, and `auto` and `certified`.
    """
    columns = tuple(Column.parse(key) for key in GRIDS[grid])
    if study == "random-mdps":
        return Experiment(study, RANDOM_SIZES, columns, ETAS)
    return Experiment(study, GRIDWORLD_SIZES, columns)


@dataclass(frozen=True, eq=False)
class World:
    """A true MDP, the baseline to improve, the policy that draws the data, and known values.

    No return from any step on lies outside `returns`.
    """

    mdp: MDP
    baseline: Policy
    behaviour: Policy
    baseline_value: float
    optimal_value: float
    eta: float = float("nan")
    returns: tuple[float, float] = (0.0, V_MAX)

    @property
    def v_max(self) -> float:
        """The largest absolute return."""
        return max(abs(limit) for limit in self.returns)


def worlds(experiment: Experiment, rng: np.random.Generator) -> Iterator[World]:
    """The worlds of one repetition: one, or one per η."""
    if experiment.study == "random-mdps":
        yield from _random_worlds(experiment, rng)
        return
    yield gridworld(experiment.study == "gridworld-random", experiment.baseline or "authors")


@cache
def gridworld(uniform: bool, name: str) -> World:
    """The gridworld and a baseline, with data from that or from the uniform policy."""
    mdp, baseline = gridworld_mdp(), gridworld_baseline(name)
    behaviour = Policy.uniform(mdp.states, mdp.actions) if uniform else baseline
    best = float(mdp.initial @ optimal_q(mdp).max(axis=1))
    return World(mdp, baseline, behaviour, exact_value(mdp, baseline), best)


def repeat(experiment: Experiment, run: int) -> list[dict[str, Any]]:
    """One repetition: a row per world and size, with the true performance of every column.

    Run r draws from child r of the experiment's seed, whatever else runs. One generator goes
    through worlds and sizes: other lists of sizes or η give other logs, other columns do not.
    """
    rng = np.random.default_rng(np.random.SeedSequence(experiment.seed, spawn_key=(run,)))
    keys = [column.key for column in experiment.columns]
    rows = []
    for world in worlds(experiment, rng):
        trainer = _trainer(world, experiment.columns, experiment.max_steps)
        for size in experiment.sizes:
            found = trainer.performances(size, rng)
            rows.append(
                {"run": run, "eta": world.eta, "size": size, "baseline": world.baseline_value,
                 "optimal": world.optimal_value}
                | dict(zip(keys, found.tolist()))
            )  # fmt: skip
    return rows


@lru_cache(maxsize=1)
def _trainer(world: World, columns: tuple[Column, ...], max_steps: int) -> Trainer:
    return Trainer(_algorithms(columns), world, max_steps)


@lru_cache(maxsize=1)
def _algorithms(columns: tuple[Column, ...]) -> tuple[Algorithm, ...]:
    return tuple(column.make() for column in columns)


class Trainer:
    """Algorithms that meet on the same data sets of one world.

    Those that the compiled call knows take it; the others are trained kind by kind.
    """

    def __init__(self, algorithms: Sequence[Algorithm], world: World, max_steps: int) -> None:
        members = [told(algorithm, world) for algorithm in algorithms]
        self.world, self.size = world, len(members)
        self.sampler = Sampler(world.mdp, world.behaviour, max_steps)
        self.compiled = compiled.CompiledTrainer(members, self.sampler, world.baseline, world.v_max)
        self.known = self.compiled.members
        rest = sorted(set(range(self.size)) - set(self.known))
        self.others = [
            ([m for m in rest if type(members[m]) is kind],
             [members[m] for m in rest if type(members[m]) is kind])
            for kind in dict.fromkeys(type(members[m]) for m in rest)
        ]  # fmt: skip

    def performances(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Draw one data set, train every algorithm on it, and evaluate the policies exactly [M]."""
        codes, lengths = self.sampler.draw(size, rng=rng)
        found = np.empty(self.size)
        if self.known:
            found[self.known] = self.compiled.performances(codes, lengths)
        for places, policies in self._policies_of_others(codes, lengths):
            found[places] = dense.performances(self.world.mdp.task, policies)
        return found

    def policies(self, codes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Every algorithm's policy for drawn episodes [M, S, A]."""
        found = np.empty((self.size, *self.world.mdp.shape))
        if self.known:
            found[self.known] = self.compiled.policies(codes, lengths)
        for places, policies in self._policies_of_others(codes, lengths):
            found[places] = policies
        return found

    def _policies_of_others(
        self, codes: np.ndarray, lengths: np.ndarray
    ) -> Iterator[tuple[list[int], np.ndarray]]:
        """Places and policies [M, S, A] of the algorithms outside the plan, kind by kind."""
        if not self.others:
            return
        counts = self.sampler.to_counts(codes, lengths)
        world = self.world
        problem = Problem.from_counts(
            counts, world.baseline, discount=world.mdp.discount, v_max=world.v_max
        )
        if any(group[0].needs_log for _, group in self.others):
            problem = replace(problem, log=self.sampler.to_log(codes, lengths))
        for places, group in self.others:
            seen = self._recorded(problem) if group[0].needs_limits else problem
            yield places, type(group[0]).policies(group, seen)

    def _recorded(self, problem: Problem) -> Problem:
        """The log with its propensities, for promises about the policy that made it."""
        behaviour, log = self.world.behaviour, problem.log
        if behaviour is self.world.baseline or log is None:
            return problem
        made = replace(log, action_prob=behaviour.probs[log.state, log.action])
        return Problem.from_log(made, "recorded", discount=problem.discount, v_max=self.world.v_max)


def told(algorithm: Algorithm, world: World) -> Algorithm:
    """The algorithm, told of the world what it may know beside the data."""
    return algorithm.told(Truth(world.returns, world.baseline_value, world.behaviour))


def _random_worlds(experiment: Experiment, rng: np.random.Generator) -> Iterator[World]:
    """One random MDP, with a baseline for every η (the paper's nested loop)."""
    drawn = draw_garnet(rng)
    found = softened_baselines(drawn.mdp, experiment.etas, rng, optimal_q=drawn.optimal_q)
    for eta, made in zip(experiment.etas, found):
        yield World(drawn.mdp, made.policy, made.policy, made.value, made.optimal_value, eta)
