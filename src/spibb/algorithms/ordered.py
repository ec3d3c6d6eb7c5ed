"""What a log says, whatever order its labels were given in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spibb.algorithms.problem import Problem
from spibb.assurance.posterior import Belief, in_own_order
from spibb.frozen import Frozen


@dataclass(frozen=True, eq=False)
class Ordered(Frozen):
    """What a log says, with labels in an order of their own: draws do not depend on the given one.

    `rows` and `columns` are the codes of the labels in that order.
    """

    belief: Belief
    baseline: np.ndarray
    rows: np.ndarray
    columns: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> Ordered:
        """The belief of a problem's log."""
        states, actions = in_own_order(problem.states), in_own_order(problem.actions)
        baseline = problem.baseline.aligned(states, actions)
        counts = problem.counts.with_labels(states, actions)
        belief = Belief.of(counts, baseline, problem.discount)
        rows, columns = problem.states.codes(states)[:, None], problem.actions.codes(actions)
        return cls(belief, baseline.probs, rows, columns)

    def sorted(self, policies: np.ndarray) -> np.ndarray:
        """Policies [..., S, A] of the problem in the order of the belief."""
        found: np.ndarray = policies[..., self.rows, self.columns]
        return found

    def restored(self, policy: np.ndarray) -> np.ndarray:
        """A policy [S, A] of the belief in the order of the problem."""
        found = np.empty_like(policy)
        found[self.rows, self.columns] = policy
        return found
