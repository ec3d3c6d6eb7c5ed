"""What HCPI's off-policy evaluation costs: 11 mixtures, doubly robust, 10,000 gridworld episodes.

Run: python benchmarks/bench_ope.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from spibb import ope
from spibb.algorithms.hcpi import HCPI
from spibb.algorithms.hcpi.result import ALPHAS
from spibb.algorithms.problem import Problem
from spibb.counts import Counts
from spibb.envs.baselines import gridworld_baseline
from spibb.envs.gridworld import gridworld_mdp
from spibb.episodes.propensities import behaviour_probs
from spibb.estimate import estimate_mdp
from spibb.log import Log
from spibb.mdp import MDP
from spibb.simulate import simulate

WANTED = 10e6
"""Transitions per second and policy evaluated."""
DISCOUNT = 0.95


def best_time(job: Callable[[], object], repeats: int = 15) -> float:
    """Shortest seconds of one call, after one that compiles."""
    job()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def numpy_doubly_robust(
    log: Log, candidates: ope.Candidates, propensities: np.ndarray, model: MDP
) -> np.ndarray:
    """The same contributions [E, K] by whole-array operations: weights as exp of summed logs."""
    q, v = candidates.values(model)
    starts, lengths = log.episode_starts[:-1], np.diff(log.episode_starts)
    ratios = candidates.probs[log.state, log.action] / propensities[:, None]
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(ratios), -1e3)
    sums = np.cumsum(logs, axis=0)
    before = np.repeat(sums[starts] - logs[starts], lengths, axis=0)
    step = np.arange(len(log)) - np.repeat(starts, lengths)
    following = np.where(log.truncated | (log.next_state < 0), len(q), log.next_state)
    errors = log.reward[:, None] + DISCOUNT * v[following] - q[log.state, log.action]
    terms = DISCOUNT ** step[:, None] * np.exp(sums - before) * errors
    return np.asarray(v[log.state[starts]] + np.add.reduceat(terms, starts, axis=0))


def main() -> None:
    mdp, baseline = gridworld_mdp(), gridworld_baseline()
    log = simulate(mdp, baseline, 10_000, rng=np.random.default_rng(0))
    trained = np.eye(4)[np.random.default_rng(1).integers(0, 4, 25)]
    candidates = ope.Candidates.mixtures(trained, baseline.probs, ALPHAS)
    propensities = behaviour_probs(log, baseline.probs)
    model = estimate_mdp(Counts.from_log(log), DISCOUNT)

    def ours(names: tuple[str, ...]) -> ope.Contributions:
        return ope.contributions(log, candidates, propensities, DISCOUNT, names=names, model=model)

    plain = numpy_doubly_robust(log, candidates, propensities, model)
    np.testing.assert_allclose(ours(("dr",)).terms["dr"], plain, atol=1e-9)
    problem = Problem.from_log(log, baseline, discount=DISCOUNT)
    work = len(log) * len(ALPHAS)
    jobs: list[tuple[str, Callable[[], object]]] = [
        ("doubly robust, 11 mixtures", lambda: ours(("dr",))),
        ("all six estimators, 11 mixtures", lambda: ours(ope.ESTIMATORS)),
        ("HCPI: split, train, test, choose", lambda: HCPI().improve(problem)),
    ]
    slow = best_time(lambda: numpy_doubly_robust(log, candidates, propensities, model), 3)
    print(f"{len(log):,} transitions of {log.n_episodes:,} episodes, {len(ALPHAS)} policies")
    heads = ("ms", "ns/step/policy", "M steps/s/policy", "NumPy ratio")
    print(" " * 34, "{:>8s} {:>15s} {:>17s} {:>12s}".format(*heads))
    for name, seconds in [("doubly robust in NumPy", slow)] + [(n, best_time(j)) for n, j in jobs]:
        print(
            f"{name:34s} {seconds * 1e3:8.2f} {seconds / work * 1e9:15.2f} "
            f"{work / seconds / 1e6:17.1f} {slow / seconds:12.1f}"
        )
    reached = work / best_time(jobs[0][1])
    print(
        f"wanted {WANTED / 1e6:g} M steps/s per policy: {'met' if reached >= WANTED else 'MISSED'}"
    )


if __name__ == "__main__":
    main()
