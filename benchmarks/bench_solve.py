"""Large sparse MDPs: our solver against QuantEcon and mdpsolver, all to an error of 1e-6.

    python benchmarks/bench_solve.py [--max-states 1000000]

All contenders of a row run in turn, several times, and the best time of each counts, so that
ratios compare like with like on a busy machine. Compilation is outside the clock; our own
conversion of the input is inside. For QuantEcon there are two clocks: its solution alone, and with
what its user must do before, from the same arrays: build the model and, for Pi_b, the mixture
reduction. Every answer is compared with ours.
"""

import argparse
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import mdpsolver
import numba
import numpy as np
import scipy.sparse as sp
from quantecon.markov import DiscreteDP

from spibb.kernels.sparse import solve as sparse
from spibb.kernels.tuples import Box, Rows

TOL = 1e-6
AGREE = 2e-6
SIZES = (1_000, 10_000, 100_000, 1_000_000)
REPEATS = {1_000: 40, 10_000: 40, 100_000: 10, 1_000_000: 4}
MDPSOLVER_SECONDS = 60.0


class Task(NamedTuple):
    """A constrained MDP as our solver takes it."""

    rows: Rows
    rewards: np.ndarray
    discount: float
    box: Box


# ---- problems ----------------------------------------------------------------------------------


def random_mdp(n_states: int, n_actions: int = 4, n_successors: int = 5, seed: int = 0) -> Task:
    """Uniform successors, flat Dirichlet probabilities, uniform rewards, discount 0.95."""
    rng = np.random.default_rng(seed)
    n_rows = n_states * n_actions
    probs = rng.standard_exponential((n_rows, n_successors))
    probs /= probs.sum(axis=1, keepdims=True)
    rows = Rows(
        n_successors * np.arange(n_rows + 1),
        rng.integers(0, n_states, n_rows * n_successors, dtype=np.int32),
        probs.reshape(-1),
    )
    return Task(rows, rng.random((n_states, n_actions)), 0.95, plain_box(n_states, n_actions))


def ring(n_states: int, discount: float, seed: int = 0) -> Task:
    """Stay, left or right: as intended with probability 0.8, else one of the other two."""
    s = np.arange(n_states, dtype=np.int32)
    around = np.stack([s, (s - 1) % n_states, (s + 1) % n_states], axis=1)
    rows = Rows(
        3 * np.arange(3 * n_states + 1),
        np.repeat(around, 3, axis=0).reshape(-1).astype(np.int32),
        np.tile(0.1 + 0.7 * np.eye(3), (n_states, 1)).reshape(-1),
    )
    rewards = np.random.default_rng(seed).random((n_states, 3))
    return Task(rows, rewards, discount, plain_box(n_states, 3))


def plain_box(n_states: int, n_actions: int) -> Box:
    shape = (n_states, n_actions)
    return Box(np.zeros(shape), np.ones(shape), np.full(shape, 1.0 / n_actions))


def bootstrapped(task: Task, seed: int = 1) -> Task:
    """Pi_b-SPIBB with a Dirichlet baseline, half of the pairs bootstrapped at random."""
    rng = np.random.default_rng(seed)
    n_states, n_actions = task.rewards.shape
    baseline = rng.dirichlet(np.ones(n_actions), n_states)
    copied = rng.random((n_states, n_actions)) < 0.5
    lower, upper = np.where(copied, baseline, 0.0), np.where(copied, baseline, 1.0)
    return task._replace(box=Box(lower, upper, baseline))


# ---- contenders --------------------------------------------------------------------------------


def ours(task: Task, parallel: bool) -> Callable[[], np.ndarray]:
    def run() -> np.ndarray:
        share = TOL * (1 - task.discount)  # of the largest value, as rewards are at most 1
        v, error, *_ = sparse.optimise(*task, share, 100_000, parallel)
        assert error <= TOL
        return v

    return run


def matrix(task: Task) -> sp.csr_matrix:
    indptr, successors, probs = task.rows
    shape = (task.rewards.size, task.rewards.shape[0])
    return sp.csr_matrix((probs, successors, indptr), shape=shape)


def quantecon_model(task: Task) -> DiscreteDP:
    """The plain problem, or the mixture reduction of a Pi_b box.

    Each free action becomes the mixture of all bootstrapped ones with the remaining mass on it.
    """
    n_states, n_actions = task.rewards.shape
    lower, upper, start = task.box
    rewards, transitions = task.rewards.reshape(-1), matrix(task)
    free = upper > lower
    free[~free.any(axis=1), 0] = True  # one pseudo-action, without mass, where all is copied
    pairs = np.flatnonzero(free)
    states, actions = np.divmod(pairs, n_actions)
    if lower.any():
        weights = sp.csr_matrix(
            (lower.flatten(), np.arange(lower.size), n_actions * np.arange(n_states + 1)),
            shape=(n_states, lower.size),
        )
        weights.eliminate_zeros()
        mass = (start - lower).sum(axis=1) * (upper > lower).any(axis=1)
        mixed = sp.diags(mass[states]) @ transitions[pairs] + (weights @ transitions)[states]
        rewards = (lower * task.rewards).sum(axis=1)[states] + mass[states] * rewards[pairs]
        transitions = sp.csr_matrix(mixed)
    return DiscreteDP(rewards, transitions, task.discount, states, actions)


def quantecon(task: Task, slow: bool) -> tuple[str, Callable[[], np.ndarray]]:
    """QuantEcon by whichever of its methods is fastest on this task.

    Its span criterion promises epsilon / 2. Policy iteration factorises: it is tried on the ring,
    whose band stays sparse; on random MDPs the factors fill up. Its value iteration stops by the
    sup norm and needs some 300 sweeps at discount 0.95: tried on small tasks.
    """
    model = quantecon_model(task)

    def mpi(k: int) -> Callable[[], np.ndarray]:
        return lambda: model.solve("mpi", epsilon=2 * TOL, k=k).v

    large = task.rewards.shape[0] > 100_000
    methods = {
        f"mpi k={k}": mpi(k) for k in ((20, 60) if slow else (5, 10) if large else (5, 10, 20))
    }
    if slow:
        methods["pi"] = lambda: model.solve("pi").v
    elif task.rewards.shape[0] <= 10_000:
        methods["vi"] = lambda: model.solve("vi", epsilon=2 * TOL, max_iter=10_000).v
    trials = {
        name: min(seconds(run) for _ in range(1 if large else 2)) for name, run in methods.items()
    }
    best = min(trials, key=lambda name: trials[name])
    return best, methods[best]


def mdpsolver_seconds(task: Task, parallel: bool) -> tuple[float, np.ndarray]:
    """A fresh model each time: a second solve() of the same one starts from the first's result."""
    n_states, n_actions = task.rewards.shape
    shape = (n_states, n_actions, -1)
    model = mdpsolver.model()
    model.mdp(
        discount=task.discount,
        rewards=task.rewards.tolist(),
        tranMatProbs=task.rows[2].reshape(shape).tolist(),
        tranMatColumns=task.rows[1].reshape(shape).tolist(),
    )
    began = time.perf_counter()
    model.solve(algorithm="mpi", tolerance=TOL, parallel=parallel)
    took = time.perf_counter() - began
    return took, np.array(model.getValueVector())


# ---- measuring ---------------------------------------------------------------------------------


def seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def race(contenders: dict[str, Callable[[], np.ndarray]], repeats: int) -> dict[str, float]:
    """Best time of each, all in turn; the first, untimed round checks that the answers agree."""
    answers = [run() for run in contenders.values()]
    for name, v in zip(contenders, answers):
        gap = np.abs(v - answers[0]).max()
        assert gap <= AGREE, f"{name} differs by {gap:.1e}"
    del answers
    best = dict.fromkeys(contenders, np.inf)
    for _ in range(repeats):
        for name, run in contenders.items():
            best[name] = min(best[name], seconds(run))
    return best


def compare(title: str, task: Task, slow: bool = False) -> tuple[float, float]:
    """Print one row; return our times on one and two threads."""
    n_states = task.rewards.shape[0]
    method, peer = quantecon(task, slow)
    contenders = {"one": ours(task, False), "two": ours(task, True), "peer": peer}
    best = race(contenders, REPEATS.get(n_states, 5))
    one, two, peer_time = best["one"], best["two"], best["peer"]
    whole = peer_time + min(seconds(lambda: quantecon_model(task)) for _ in range(3))
    print(
        f"{title:<22}{n_states:>9}{1e3 * one:>11.1f}{1e3 * two:>11.1f}{1e3 * peer_time:>12.1f}"
        f"  {method:<9}{peer_time / one:>7.2f}x{peer_time / two:>8.2f}x"
        f"{whole / one:>10.2f}x{whole / two:>8.2f}x",
        flush=True,
    )
    return one, two


def compare_mdpsolver(task: Task, one: float, two: float) -> float:
    """Print the ratios to mdpsolver; return its time on one thread."""
    n_states = task.rewards.shape[0]
    repeats = 3 if n_states <= 10_000 else 1
    truth = ours(task, False)()
    best = {}
    for parallel in (False, True):
        runs = [mdpsolver_seconds(task, parallel) for _ in range(repeats)]
        gap = max(np.abs(v - truth).max() for _, v in runs)
        assert gap <= AGREE, f"mdpsolver differs by {gap:.1e}"
        best[parallel] = min(took for took, _ in runs)
    print(
        f"{'  mdpsolver':<22}{n_states:>9}{1e3 * best[False]:>11.1f}{1e3 * best[True]:>11.1f}"
        f"{'':>12}  {'':<9}{best[False] / one:>7.2f}x{best[True] / two:>8.2f}x",
        flush=True,
    )
    return best[False]


def peak_memory(n_states: int) -> None:
    """In a fresh process, so that nothing else counts."""
    command = [sys.executable, __file__, "--measure-memory", str(n_states)]
    print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="")


def measure_memory(n_states: int) -> None:
    ours(random_mdp(64), False)()
    ours(random_mdp(64), True)()
    task = random_mdp(n_states)
    arrays = (*task.rows, task.rewards, *task.box)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    ours(task, True)()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    size = sum(array.nbytes for array in arrays) / 2**30
    print(
        f"peak memory at {n_states} states: {after:.2f} GB, of which input {size:.2f} GB "
        f"(peak before the solve {before:.2f} GB)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-states", type=int, default=SIZES[-1])
    parser.add_argument("--measure-memory", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", module="quantecon|scipy")
    numba.set_num_threads(min(2, numba.get_num_threads()))
    if arguments.measure_memory:
        measure_memory(arguments.measure_memory)
        return
    sizes = [n for n in SIZES if n <= arguments.max_states]
    peak_memory(sizes[-1])  # first, while this process is small: a child's peak starts from it
    print(
        f"{'':<22}{'states':>9}{'ours 1 ms':>11}{'ours 2 ms':>11}{'QuantEcon':>12}  method", end=""
    )
    print(f"{'1 core':>12}{'2 cores':>9}{'from arrays':>12}{'2 cores':>8}")
    patient = True
    for n in sizes:
        task = random_mdp(n)
        times = compare("plain 4 x 5", task)
        if patient:
            # Ten times the states take about ten times as long; building lists takes longer still.
            patient = 10 * compare_mdpsolver(task, *times) < MDPSOLVER_SECONDS / 4
    for n in sizes:
        compare("Pi_b, half copied", bootstrapped(random_mdp(n)))
    for n in sizes:
        if n <= 100_000:
            compare("ring, discount 0.95", ring(n, 0.95), slow=True)
            compare("ring, discount 0.99", ring(n, 0.99), slow=True)


if __name__ == "__main__":
    main()
