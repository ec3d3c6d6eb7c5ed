"""Means, tail means, and how far both may be off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from spibb.kernels import resampling

RESAMPLES = 1_000
"""Of every bootstrap here: its 95 % interval rests on 25 values at each end."""
BOOTSTRAP_UP_TO = 5_000
"""Number of runs up to which intervals are resampled."""


@dataclass(frozen=True)
class Interval:
    """An estimate and the limits that hold it with the given confidence."""

    value: float
    low: float
    high: float


def share_interval(hits: float, trials: int, level: float = 0.95) -> Interval:
    """A share of trials with the exact binomial limits (Clopper & Pearson 1934)."""
    from scipy.special import betaincinv

    tail, misses = (1 - level) / 2, trials - hits
    low = betaincinv(hits, misses + 1, tail) if hits > 0 else 0.0
    high = betaincinv(hits + 1, misses, 1 - tail) if misses > 0 else 1.0
    return Interval(hits / trials, float(low), float(high))


def tail_size(n: int, share: float) -> int:
    """How many of n runs are the worst `share` of them: max(1, floor(share · n))."""
    return max(1, int(np.floor(share * n + 1e-9)))


def tail_intervals(
    values: np.ndarray,
    shares: Sequence[float],
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    groups: np.ndarray | None = None,
) -> list[Interval]:
    """Tail means of the runs with confidence intervals, one per share.

    Up to 5,000 runs by the percentiles of a bootstrap over runs; beyond, where that would take
    minutes and change nothing, by its normal approximation. With a handful of runs in the tail
    either is too narrow: no resample holds a catastrophe that no run met.
    `groups` [n] says which values depend on one another: whole groups are then drawn, always by the
    bootstrap.
    """
    order = np.argsort(values, kind="stable")
    ordered = np.asarray(values, dtype=np.float64)[order]
    if groups is None and len(ordered) > BOOTSTRAP_UP_TO:
        return ordered_tail_intervals([ordered], len(ordered), shares, level=level)
    sizes = np.array([tail_size(len(ordered), share) for share in shares])
    if groups is None:
        means = resampling.tail_means(ordered, sizes, rng, RESAMPLES)
    else:
        means = _grouped_tail_means(ordered, np.asarray(groups)[order], shares, rng)
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    mean = _head_moments([ordered], sizes).mean
    return [Interval(*map(float, row)) for row in zip(mean, low, high)]


def ordered_tail_intervals(
    blocks: Iterable[np.ndarray], n: int, shares: Sequence[float], *, level: float = 0.95
) -> list[Interval]:
    """Tail means ± z standard errors of n values that come in ascending order, block by block.

    Holds one block at a time, and how the values are cut into blocks changes no bit. The mean m of
    the lowest k is max_t E[t − (t − X)⁺ n/k]; at the maximiser t, the k-th value, the variance of
    t − (t − X)⁺ n/k over the runs gives the standard error (delta method).
    """
    from scipy.special import ndtri

    sizes = np.array([tail_size(n, share) for share in shares])
    mean, squares, last = _head_moments(blocks, sizes)
    spread = squares + sizes * (1 - sizes / n) * (last - mean) ** 2
    half = ndtri((1 + level) / 2) * np.sqrt(spread / (n - 1) / n) * (n / sizes)
    return [Interval(*map(float, row)) for row in zip(mean, mean - half, mean + half)]


def _head_moments(blocks: Iterable[np.ndarray], sizes: np.ndarray) -> resampling.Heads:
    """Mean, Σ(x − mean)² and last of the lowest `sizes` [T] values, in ascending blocks."""
    state, found = np.zeros(3), resampling.Heads(*np.zeros((3, len(sizes))))
    for block in blocks:
        resampling.head_moments(block, sizes, state, found)
    return found


def _grouped_tail_means(
    ordered: np.ndarray, groups: np.ndarray, shares: Sequence[float], rng: np.random.Generator
) -> np.ndarray:
    """Tail means [B, T] in resamples of whole groups of sorted values [n].

    A group drawn m times brings each of its values m times; the lowest k of a resample are found in
    the running sums of these weights.
    """
    names, group_of = np.unique(groups, return_inverse=True)
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=RESAMPLES)
    times = drawn[:, group_of]
    reached = np.cumsum(times, axis=1)
    means = []
    for share in shares:
        k = np.array([[tail_size(n, share)] for n in reached[:, -1]])
        taken = np.clip(k - (reached - times), 0, times)
        means.append(taken @ ordered / k[:, 0])
    return np.stack(means, axis=1)
