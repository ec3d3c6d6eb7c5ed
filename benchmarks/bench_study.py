"""One repetition of the paper's main benchmark on one core, and where its time goes."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict

import numpy as np

from spibb.experiments.finite import Trainer, default_experiment, repeat, worlds

TARGETS = {"gridworld": 10.0, "gridworld-random": None, "random-mdps": 12.0}
"""Milliseconds per repetition, and per η for the random MDPs."""


def breakdown(experiment, runs: int) -> dict[str, float]:
    """Seconds per run of each step.

    One compiled call trains and evaluates all columns, so that a kind of algorithm is timed as what
    a call with its columns alone takes beyond a call without any.
    """
    spent: dict[str, float] = defaultdict(float)
    algorithms = [column.make() for column in experiment.columns]
    kinds = dict.fromkeys(type(algorithm) for algorithm in algorithms)
    for run in range(runs):
        rng = np.random.default_rng(run)
        begin = time.perf_counter()
        found = list(worlds(experiment, rng))
        spent["worlds"] += time.perf_counter() - begin
        for world in found:
            begin = time.perf_counter()
            none = Trainer([], world, experiment.max_steps)
            _ = none.sampler._tables, none.sampler.codebook
            spent["tables"] += time.perf_counter() - begin
            plans = {
                kind.name: Trainer([a for a in algorithms if type(a) is kind], world, 50).compiled
                for kind in kinds
            }
            for size in experiment.sizes:
                _one_data_set(spent, none, plans, size, rng)
    return {name: seconds / runs for name, seconds in spent.items()}


def _one_data_set(spent, none, plans, size, rng):
    begin = time.perf_counter()
    episodes = none.sampler.draw(size, rng=rng)
    spent["draw"] += time.perf_counter() - begin
    counting = _fastest(none.compiled, episodes)
    spent["count"] += counting
    for name, plan in plans.items():
        spent[name] += _fastest(plan, episodes) - counting


def _fastest(plan, episodes) -> float:
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        plan.performances(*episodes)
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    for study, target in TARGETS.items():
        experiment = default_experiment(study)
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
            f"{study}: {min(times):.1f} ms{per} at best, {statistics.median(times):.1f} median, "
            f"on one core{wanted}"
        )
        parts = breakdown(experiment, runs)
        scale = 1e3 / max(1, len(experiment.etas))
        print("  " + "  ".join(f"{name} {seconds * scale:.2f}" for name, seconds in parts.items()))


if __name__ == "__main__":
    main()
