"""One repetition of the paper's main benchmark on one core, and where its time goes."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict

import numpy as np

from spibb.algorithms.base import Problem
from spibb.experiments import drawn_hcpi
from spibb.experiments.suites import (
    _groups,
    _policies,
    default_experiment,
    repeat,
    worlds,
)
from spibb.kernels import dense
from spibb.simulate import Sampler

TARGETS = {"gridworld": 10.0, "gridworld-random": None, "random-mdps": 12.0}
"""Milliseconds per repetition, and per η for the random MDPs."""


def breakdown(experiment, runs: int) -> dict[str, float]:
    """Seconds per run of each step, by repeating what `performances` does with a clock."""
    spent: dict[str, float] = defaultdict(float)
    algorithms = [column.make() for column in experiment.columns]

    def clocked(name, job):
        begin = time.perf_counter()
        result = job()
        spent[name] += (time.perf_counter() - begin) / runs
        return result

    for run in range(runs):
        rng = np.random.default_rng(run)
        for world in clocked("worlds", lambda rng=rng: list(worlds(experiment, rng))):
            sampler = clocked("tables", lambda w=world: _sampler(w))
            for size in experiment.sizes:
                codes, lengths = clocked("draw", lambda n=size: sampler.draw(n, rng=rng))
                counts = clocked("count", lambda: sampler.to_counts(codes, lengths))
                problem = Problem.from_counts(counts, world.baseline, discount=0.95, v_max=1.0)
                drawn = drawn_hcpi.Drawn(sampler, codes, lengths, problem)
                found = [
                    clocked(group[0].name, lambda g=group: _policies(g, drawn, world))
                    for _, group in _groups(algorithms)
                ]
                mdp, stacked = world.mdp, np.concatenate(found)
                clocked(
                    "evaluate",
                    lambda: dense.performances(
                        mdp.rows, mdp.rewards, mdp.discount, mdp.initial, stacked
                    ),
                )
    return dict(spent)


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
