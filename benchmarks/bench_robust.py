"""What a robust fit costs, in Π_b-SPIBB fits of the same run: 25 states × 4 actions.

Run: python benchmarks/bench_robust.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from spibb.algorithms.arbrm import ARBRM
from spibb.algorithms.problem import Problem
from spibb.algorithms.ramdp import RaMDP
from spibb.algorithms.robust_mdp import RobustMDP
from spibb.algorithms.spibb import PiBSpibb
from spibb.algorithms.threshold import spibb_box
from spibb.algorithms.uncertainty import UncertaintySet
from spibb.kernels import dense, robust
from spibb.kernels.tuples import Ambiguous, Box
from spibb.log import Log
from spibb.policy import Policy

LIMIT = 20
REPEATS = 200


def make_problem(n: int, *, n_states: int = 25, n_actions: int = 4, seed: int = 0) -> Problem:
    """A random MDP with 4 successors per pair and one goal, sampled n times."""
    rng = np.random.default_rng(seed)
    shape = (n_states, n_actions)
    pairs = n_states * n_actions
    successors = np.array([rng.permutation(n_states)[:4] for _ in range(pairs)]).reshape(*shape, 4)
    cumulative = rng.dirichlet(np.ones(4), size=shape).cumsum(axis=-1)
    state, action = rng.integers(n_states - 1, size=n), rng.integers(n_actions, size=n)
    which = (rng.random(n)[:, None] > cumulative[state, action, :3]).sum(axis=1)
    following = successors[state, action, which]
    goal = following == n_states - 1
    log = Log.from_arrays(state, action, goal * 1.0, following, goal, episode_id=np.arange(n),
                          n_states=n_states, n_actions=n_actions)  # fmt: skip
    baseline = Policy(rng.dirichlet(np.ones(n_actions), size=n_states))
    return Problem.from_log(log, baseline, v_max=1.0)


def median_time(job: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median seconds of one call, after one that compiles."""
    job()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def spibb_kernel(problem: Problem) -> Callable[[], object]:
    """Π_b-SPIBB without the Python around it."""
    mdp, (box, _) = problem.model, spibb_box(problem, 10, 1.0)
    box = Box(*(np.array(array) for array in box))
    probs, q = np.empty(mdp.shape), np.empty(mdp.shape)

    def run() -> object:
        probs[:] = box.start
        return dense.policy_iteration(mdp.rows, mdp.rewards, mdp.discount, box, probs, q)

    return run


def robust_kernel(problem: Problem) -> Callable[[], object]:
    """Robust policy iteration without the Python around it."""
    xi, box = UncertaintySet.from_problem(problem), problem.seen_first
    ambiguous = Ambiguous(xi.mdp.rows, xi.low, xi.radius, xi.mdp.discount)
    probs, q = np.empty(xi.shape), np.empty(xi.shape)
    kept, moved = np.empty(len(xi.mdp.probs)), np.empty(q.size)

    def run() -> object:
        probs[:] = box.start
        return robust.policy_iteration(ambiguous, box, probs, q, kept, moved)

    return run


def table(problem: Problem) -> list[tuple[str, float, float]]:
    """(job, seconds, ratio to the Π_b fit of the same kind)."""
    pi_b = median_time(lambda: PiBSpibb(n_wedge=10).improve(problem))
    algorithms = {
        "RobustMDP": RobustMDP(safety_test=False),
        "RobustMDP with its test": RobustMDP(),
        "ARBRM with its test": ARBRM(),
        "RaMDP": RaMDP(),
    }
    rows = [("PiBSpibb", pi_b, 1.0)]
    for name, algorithm in algorithms.items():
        seconds = median_time(lambda algorithm=algorithm: algorithm.improve(problem))  # type: ignore[misc]
        rows.append((name, seconds, seconds / pi_b))
    kernel = median_time(spibb_kernel(problem))
    seconds = median_time(robust_kernel(problem))
    rows += [("kernel: PiBSpibb", kernel, 1.0), ("kernel: RobustMDP", seconds, seconds / kernel)]
    return rows


def main() -> None:
    """Print one table per log size, and whether a robust fit stays within its limit."""
    worst = 0.0
    for n in (500, 20_000, 1_000_000):
        print(f"\n25 states x 4 actions, {n:,} transitions")
        print(f"{'job':<26}{'us':>10}{'x Pi_b':>10}")
        for name, seconds, ratio in table(make_problem(n)):
            print(f"{name:<26}{seconds * 1e6:>10.1f}{ratio:>10.1f}")
            if name in ("RobustMDP", "kernel: RobustMDP"):
                worst = max(worst, ratio)
    verdict = "met" if worst <= LIMIT else "MISSED"
    print(f"\none robust fit is at most {worst:.1f} Pi_b fits; limit {LIMIT}: {verdict}")


if __name__ == "__main__":
    main()
