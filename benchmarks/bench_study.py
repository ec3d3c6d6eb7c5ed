"""One repetition of the paper's main benchmark on one core, and where its time goes."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from contextlib import contextmanager

import numpy as np

from spibb.algorithms.base import Problem
from spibb.experiments import drawn_hcpi
from spibb.experiments.suites import Groups, default_experiment, repeat, told, train, worlds
from spibb.kernels import dense
from spibb.simulate import Sampler

TARGETS = {"gridworld": 10.0, "gridworld-random": None, "random-mdps": 12.0}
"""Milliseconds per repetition, and per η for the random MDPs."""


class Clock:
    """Seconds spent under each name."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)

    @contextmanager
    def __call__(self, name: str):
        begin = time.perf_counter()
        yield
        self.spent[name] += time.perf_counter() - begin


def breakdown(experiment, runs: int) -> dict[str, float]:
    """Seconds per run of each step, by repeating what `performances` does with a clock."""
    clock = Clock()
    algorithms = [column.make() for column in experiment.columns]
    for run in range(runs):
        rng = np.random.default_rng(run)
        with clock("worlds"):
            found = list(worlds(experiment, rng))
        for world in found:
            with clock("tables"):
                sampler = _sampler(world)
                groups = Groups([told(algorithm, world) for algorithm in algorithms])
            for size in experiment.sizes:
                _one_data_set(clock, world, sampler, groups, size, rng)
    return {name: seconds / runs for name, seconds in clock.spent.items()}


def _one_data_set(clock, world, sampler, groups, size, rng):
    mdp = world.mdp
    with clock("draw"):
        codes, lengths = sampler.draw(size, rng=rng)
    with clock("count"):
        counts = sampler.to_counts(codes, lengths)
        problem = Problem.from_counts(counts, world.baseline, discount=0.95, v_max=1.0)
        _ = problem.model
    drawn = drawn_hcpi.Drawn(sampler, codes, lengths, problem)
    policies = np.empty((groups.size, *mdp.shape))
    for places, group in groups.members:
        with clock(group[0].name):
            policies[places] = train(group, drawn)
    with clock("evaluate"):
        dense.performances(mdp.rows, mdp.rewards, mdp.discount, mdp.initial, policies)


def _sampler(world):
    sampler = Sampler(world.mdp, world.behaviour, 50)
    _ = sampler._tables, sampler.action, sampler.successor, sampler.reward
    return sampler


def main() -> None:
    for suite, target in TARGETS.items():
        experiment = default_experiment(suite)
        repeat(experiment, 0)
        runs = 20 if not experiment.etas else 5
        times = []
        for run in range(runs):
            begin = time.perf_counter()
            repeat(experiment, run)
            times.append((time.perf_counter() - begin) * 1e3 / max(1, len(experiment.etas)))
        per = " per η" if experiment.etas else ""
        wanted = f" (target {target:g})" if target else ""
        print(
            f"{suite}: {min(times):.1f} ms{per} at best, {statistics.median(times):.1f} median, "
            f"on one core{wanted}"
        )
        parts = breakdown(experiment, runs)
        scale = 1e3 / max(1, len(experiment.etas))
        print("  " + "  ".join(f"{name} {seconds * scale:.2f}" for name, seconds in parts.items()))


if __name__ == "__main__":
    main()
