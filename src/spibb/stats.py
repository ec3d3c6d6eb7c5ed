"""Means, tail means, and how far both may be off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spibb.kernels import resampling

RESAMPLES = 1_000
BOOTSTRAP_UP_TO = 5_000
"""Number of runs up to which intervals are resampled."""


@dataclass(frozen=True)
class Interval:
    """An estimate and the limits that hold it with the given confidence."""

    value: float
    low: float
    high: float


def tail_size(n: int, share: float) -> int:
    """How many of n runs are the worst `share` of them: max(1, floor(share · n))."""
    return max(1, int(np.floor(share * n + 1e-9)))


def cvar(values: np.ndarray, share: float) -> float:
    """X %-CVaR: the mean of the worst X % of the runs; share 1 is the mean."""
    k = tail_size(len(values), share)
    return float(np.partition(values, k - 1)[:k].mean())


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
        return [_normal_interval(ordered, share, level) for share in shares]
    sizes = np.array([tail_size(len(ordered), share) for share in shares])
    if groups is None:
        means = resampling.tail_means(ordered, sizes, rng, RESAMPLES)
    else:
        means = _grouped_tail_means(ordered, np.asarray(groups)[order], shares, rng)
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return [
        Interval(float(ordered[:k].mean()), float(low[t]), float(high[t]))
        for t, k in enumerate(sizes)
    ]


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


def _normal_interval(ordered: np.ndarray, share: float, level: float) -> Interval:
    """The tail mean ± z times its standard error by the delta method.

    The mean of the lowest share is max_t E[t − (t − X)⁺/share]; at the maximiser t, the quantile,
    the spread of t − (t − X)⁺/share over runs, over √n, is its standard error.
    """
    from scipy.special import ndtri

    n, k = len(ordered), tail_size(len(ordered), share)
    threshold = ordered[k - 1]
    contributions = threshold - np.maximum(threshold - ordered, 0) * (n / k)
    half = float(ndtri((1 + level) / 2) * contributions.std(ddof=1) / np.sqrt(n))
    value = float(ordered[:k].mean())
    return Interval(value, value - half, value + half)
