"""Pseudo-counts of helicopter logs against scipy's cKDTree, and evaluation with counts."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.spatial import cKDTree

from benchmarks.timing import best_seconds
from spibb.envs.helicopter import N_ACTIONS, collect, play
from spibb.pseudocounts import RADIUS, DistanceCounts

SIZES = 10_000, 30_000, 100_000
LAYERS = 4, 32, 128, 32, N_ACTIONS
N_WEDGE = 5


def mlp(rng):
    """A policy: softmax over the outputs of a random network 4-32-128-32-9."""
    shapes = list(pairwise(LAYERS))
    weights = [rng.normal(size=s, scale=math.sqrt(2 / s[0])).astype(np.float32) for s in shapes]

    def policy(states):
        z = states.astype(np.float32)
        for w in weights[:-1]:
            z = np.maximum(z @ w, 0)
        z = np.exp(np.clip(z @ weights[-1], -20, 20))
        return z / z.sum(axis=1, keepdims=True)

    return policy


def by_ball_point(log):
    """One tree per action, the neighbours of each query, one NumPy sum per query."""
    counts = np.zeros((len(log), N_ACTIONS))
    for a in range(N_ACTIONS):
        points = log.state[log.action == a]
        near = cKDTree(points).query_ball_point(log.next_state, RADIUS)
        rows = np.repeat(np.arange(len(log)), [len(found) for found in near])
        columns = np.concatenate([np.asarray(found, dtype=np.int64) for found in near])
        distance = np.linalg.norm(log.next_state[rows] - points[columns], axis=1)
        counts[:, a] = np.bincount(rows, 1 - distance / RADIUS, minlength=len(log))
    return counts


def by_distance_matrix(log):
    """One tree per action and one of the queries: all distances below the radius at once."""
    counts = np.zeros((len(log), N_ACTIONS))
    queries = cKDTree(log.next_state)
    for a in range(N_ACTIONS):
        tree = cKDTree(log.state[log.action == a])
        near = queries.sparse_distance_matrix(tree, RADIUS, output_type="ndarray")
        counts[:, a] = np.bincount(near["i"], 1 - near["v"] / RADIUS, minlength=len(log))
    return counts


def at_next_states(log, threads=1):
    """Ours, fit included."""
    return DistanceCounts(log.state, log.action, N_ACTIONS, threads=threads)(log.next_state)


def faster_tree():
    """The faster of the two ways to use cKDTree, on a small log."""
    log = collect(mlp(np.random.default_rng(0)), 5000, rng=np.random.default_rng(1))
    ways = by_ball_point, by_distance_matrix
    return min(ways, key=lambda way: best_seconds(partial(way, log), 3))


def sizes() -> list[tuple[int, float, float, float, float]]:
    """(transitions, seconds cKDTree, ours, ours with 2 threads, largest difference)."""
    policy, tree, table = mlp(np.random.default_rng(0)), faster_tree(), []
    for n in SIZES:
        log = collect(policy, n, rng=np.random.default_rng(1))
        difference = np.abs(at_next_states(log) - tree(log)).max()
        seconds = (
            best_seconds(partial(tree, log), 3 if n <= 10_000 else 1),
            best_seconds(partial(at_next_states, log), 7),
            best_seconds(partial(at_next_states, log, 2), 7),
        )
        table.append((n, *seconds, float(difference)))
    return table


def evaluation(n_episodes: int = 5000) -> tuple[float, float]:
    """Steps per second of `play`: the network alone, and with counts at every visited state."""
    baseline, network = mlp(np.random.default_rng(0)), mlp(np.random.default_rng(2))
    log = collect(baseline, 10_000, rng=np.random.default_rng(1))
    counts = DistanceCounts(log.state, log.action, N_ACTIONS)

    def improved(states):
        """Π_b: the baseline where counts are low, the rest on the network's best action."""
        rows = np.where(counts(states) < N_WEDGE, baseline(states), 0)
        best = np.argmax(np.where(rows > 0, -1, network(states)), axis=1)
        rows[np.arange(len(rows)), best] += 1 - rows.sum(axis=1)
        return np.maximum(rows, 0)

    return speed(network, n_episodes), speed(improved, n_episodes)


def speed(policy, n_episodes):
    """Steps per second."""

    def run():
        return play(policy, n_episodes, rng=np.random.default_rng(3))

    return float(run().lengths.sum() / best_seconds(run, 7))


def main() -> None:
    print(f"pseudo-counts at all next states, {N_ACTIONS} actions, radius {RADIUS}")
    print(f"{'':10}{'cKDTree':>11}{'1 thread':>11}{'ratio':>7}{'2':>11}{'ratio':>7}{'differ':>9}")
    table = sizes()
    for n, tree, one, two, difference in table:
        print(
            f"{n:<10,}{tree * 1e3:8.0f} ms{one * 1e3:8.1f} ms{tree / one:7.1f}"
            f"{two * 1e3:8.1f} ms{tree / two:7.1f}{difference:9.0e}"
        )
    for (n, _, before, _, _), (m, _, after, _, _) in pairwise(table):
        print(f"growth {n:,} to {m:,}: N^{math.log(after / before) / math.log(m / n):.2f}")
    alone, counted = evaluation()
    print(f"steps per second: network {alone:,.0f}, Π_b with pseudo-counts {counted:,.0f}")


if __name__ == "__main__":
    main()
