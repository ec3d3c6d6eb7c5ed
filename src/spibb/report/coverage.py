"""How much of the problem the log shows, and how much of the policy is copied for lack of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spibb.algorithms.improvement import Improvement
from spibb.counts import BRACKETS


@dataclass(frozen=True)
class Coverage:
    """Sizes of the log, and shares copied.

    `pairs_copied` is a share of the available pairs; `decisions_copied` weighs them by the log's
    visits and the baseline's probabilities.
    """

    transitions: int
    episodes: int
    states_seen: int
    states: int
    pairs_seen: int
    pairs: int
    pairs_copied: float
    decisions_copied: float

    @classmethod
    def of(cls, result: Improvement) -> Coverage:
        """Count what the log holds and what was copied."""
        problem = result.problem
        counts, available = problem.counts.pairs, problem.available
        visits = counts.sum(axis=1)
        mass = (problem.baseline.probs * result.bootstrapped).sum(axis=1)
        return cls(
            transitions=int(counts.sum()),
            episodes=int(problem.counts.starts.sum()),
            states_seen=int((visits > 0).sum()),
            states=len(visits),
            pairs_seen=int((counts > 0).sum()),
            pairs=int(available.sum()),
            pairs_copied=float(result.bootstrapped[available].mean()),
            decisions_copied=float(visits @ mass / max(visits.sum(), 1)),
        )


@dataclass(frozen=True)
class CountBin:
    """Available pairs seen so often: how many are trusted, how many copied."""

    name: str
    trusted: int
    copied: int


def bins(result: Improvement) -> list[CountBin]:
    """The available pairs by how often the log has them."""
    problem = result.problem
    counts, copied = problem.counts.pairs[problem.available], result.bootstrapped[problem.available]
    edges = np.array([*BRACKETS, np.inf])
    names = [*(_name(low, high) for low, high in pairwise(BRACKETS)), f"{BRACKETS[-1]}+"]
    everything, held = (np.histogram(c, edges)[0].tolist() for c in (counts, counts[copied]))
    return [CountBin(name, n - k, k) for name, n, k in zip(names, everything, held)]


def _name(low: int, high: int) -> str:
    return str(low) if high == low + 1 else f"{low}–{high - 1}"
