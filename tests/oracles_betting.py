"""Slow transcriptions of the tests and bounds by betting."""

from __future__ import annotations

import itertools
import math

from spibb.bounds.betting import MOST, SPREADS, WEIGHTS


def e_value(x, most_lost, bet):
    """Σ_k w_k Π_i (1 + λ_k x_i), λ_k = min(bet·s_k, 0.95/c)."""
    total = 0.0
    for factor, weight in zip(SPREADS, WEIGHTS):
        wealth, stake = 1.0, min(bet * factor, MOST / most_lost)
        for value in x:
            wealth *= 1 + stake * value
        total += weight * wealth
    return total


def e_value_with_rests(x, other, group, most_lost, bet):
    """Σ_k w_k min over the groups' ends of Π_i (1 + λ_k x_i); `group` is None for known values."""
    names, total = sorted({g for g in group if g is not None}), 0.0
    for factor, weight in zip(SPREADS, WEIGHTS):
        stake, worst = min(bet * factor, MOST / most_lost), math.inf
        for ends in itertools.product((False, True), repeat=len(names)):
            at_other = dict(zip(names, ends))
            wealth = 1.0
            for low, high, g in zip(x, other, group):
                wealth *= 1 + stake * (high if at_other.get(g) else low)
            worst = min(worst, wealth)
        total += weight * worst
    return total


def lowest_value(returns, variance, log_wanted, lowest, span):
    """The largest v on a fine grid with Π (1 + λ (G − v)) ≥ exp(`log_wanted`), else the lowest."""
    bet = min(math.sqrt(2 * log_wanted / max(len(returns) * variance, 1e-300)), MOST / span)
    found = lowest
    for step in range(2001):
        v = lowest + span * step / 2000
        if sum(math.log(1 + bet * (g - v)) for g in returns) >= log_wanted:
            found = v
    return found


def closed_p_values(e):
    """p_k: the largest 1/mean over all sets of hypotheses that contain k."""
    numbers = range(len(e))
    subsets = [c for size in range(1, len(e) + 1) for c in itertools.combinations(numbers, size)]
    return [
        min(1.0, max(len(c) / max(sum(e[i] for i in c), 1e-300) for c in subsets if k in c))
        for k in numbers
    ]


def holm(p, delta):
    """The indices that Holm's step-down procedure rejects."""
    rejected = set()
    for step, k in enumerate(sorted(range(len(p)), key=lambda k: p[k])):
        if p[k] > delta / (len(p) - step):
            break
        rejected.add(k)
    return rejected


def betting_wealth(values, delta, lowest, m):
    """Σ_k w_k Π_i (1 + κ_k (X_i − m)/(m − lowest)) with nine shares κ_k that no value decides."""
    total = 0.0
    for k, weight in enumerate(WEIGHTS):
        share = min(math.sqrt(2 * math.log(1 / delta) / len(values)) * 2.0 ** (4 - k), MOST)
        wealth = 1.0
        for value in values:
            wealth *= 1 + share * (value - m) / (m - lowest)
        total += weight * wealth
    return total
