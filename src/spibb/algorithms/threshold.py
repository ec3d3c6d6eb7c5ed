"""The SPIBB problem at one threshold N∧: which policies are allowed, and the best of them in M̂."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from spibb.algorithms.problem import Problem
from spibb.kernels import spibb
from spibb.solve import Box, Solution, optimise

SHARES: Mapping[str, float] = {"pi-b": 1.0, "pi-leq-b": 0.0}
"""The share of the baseline's mass that a bootstrapped pair must keep, by algorithm."""

REMEMBERED = 1 << 20
"""Pairs up to which what was solved last is kept."""


@dataclass(frozen=True)
class Threshold:
    """One configuration of Π_b-SPIBB (`share` 1) or Π_≤b-SPIBB (`share` 0)."""

    share: float
    n_wedge: float
    unseen: str = "zero"
    method: str = "auto"

    def solve(self, problem: Problem) -> tuple[Solution, np.ndarray]:
        """The best allowed policy in M̂, and the bootstrapped set [S, A].

        An N∧ that bootstraps what the one solved last does is not solved again: of a sweep over
        many, most are alike in small logs and in large ones.
        """
        alike = replace(self, n_wedge=min(self.n_wedge, 1.0))
        held = problem.counts.pairs < self.n_wedge
        before, found = problem.solved.get(alike, (None, None))
        if found is None or not np.array_equal(before, held):
            box, bootstrapped = spibb_box(problem, self.n_wedge, self.share)
            solution = optimise(problem.models[self.unseen], box, method=self.method)
            found = solution, bootstrapped
            if held.size <= REMEMBERED:
                problem.solved[alike] = held, found
        return found


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
        return box, counts < n_wedge
    none = ~(counts > 0).any(axis=1, keepdims=True)
    return box, np.broadcast_to(none, counts.shape).copy()
