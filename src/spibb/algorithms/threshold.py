"""The SPIBB problem at one threshold N∧: which policies are allowed, and the best of them in M̂."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spibb.algorithms.problem import Problem
from spibb.kernels import spibb
from spibb.solve import Box, Solution, optimise

SHARES: Mapping[str, float] = {"pi-b": 1.0, "pi-leq-b": 0.0}
"""The share of the baseline's mass that a bootstrapped pair must keep, by algorithm."""

Solved = tuple[Solution, np.ndarray]
"""The best allowed policy in M̂, and the bootstrapped set [S, A]."""


@dataclass(frozen=True)
class Threshold:
    """One configuration of Π_b-SPIBB (`share` 1) or Π_≤b-SPIBB (`share` 0)."""

    share: float
    n_wedge: float
    unseen: str = "zero"
    method: str = "auto"

    def solve(self, problem: Problem) -> Solved:
        """The best allowed policy in M̂, and the bootstrapped set [S, A]."""
        box, bootstrapped = spibb_box(problem, self.n_wedge, self.share)
        return optimise(problem.models[self.unseen], box, method=self.method), bootstrapped

    def is_like(self, other: Threshold, problem: Problem) -> bool:
        """Whether another N∧ of the same configuration bootstraps the same pairs."""
        same = replace(self, n_wedge=1.0) == replace(other, n_wedge=1.0)
        free = self.n_wedge == 0 or other.n_wedge == 0
        mine, others = (spibb.too_few(problem.counts.pairs, t.n_wedge) for t in (self, other))
        return same and not free and np.array_equal(mine, others)


def solve_each(thresholds: Sequence[Threshold], problem: Problem) -> Iterator[Solved]:
    """Each in turn; one that is like the one before is not solved again.

    Of a sweep over many N∧, most are alike in small logs and in large ones.
    """
    before = found = None
    for threshold in thresholds:
        if found is None or before is None or not threshold.is_like(before, problem):
            found = threshold.solve(problem)
        before = threshold
        yield found


def spibb_box(problem: Problem, n_wedge: float, share: float) -> tuple[Box, np.ndarray]:
    """The policies allowed, and the bootstrapped set [S, A].

    A bootstrapped pair must keep at least `share` of the baseline's mass (1: Π_b, 0: Π_≤b) and may
    have at most all of it; a trusted one may have any mass. In a state with no trusted pair the
    baseline's row is copied.
    """
    counts = problem.counts.pairs
    baseline = problem.data.baseline
    box = Box(np.empty(baseline.shape), np.empty(baseline.shape), np.empty(baseline.shape))
    spibb.fill(problem.data.model.counts, baseline, float(n_wedge), share, box)
    if n_wedge > 0:
        return box, spibb.too_few(counts, n_wedge)
    none = ~(counts > 0).any(axis=1, keepdims=True)
    return box, np.broadcast_to(none, counts.shape).copy()
