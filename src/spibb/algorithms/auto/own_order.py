"""A problem in an order of its own: no result depends on the order or names of its labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spibb.algorithms.problem import Problem
from spibb.assurance.label_order import by_content
from spibb.assurance.posterior import Belief
from spibb.counts import Counts
from spibb.frozen import Frozen
from spibb.policy import Policy


@dataclass(frozen=True, eq=False)
class OrderedProblem(Frozen):
    """What a log says, with labels in the order of what it says of them: draws do not depend on
    the order or the names that were given.

    `rows` and `columns` are the codes of the labels in that order.
    """

    counts: Counts
    policy: Policy
    discount: float
    rows: np.ndarray
    columns: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> OrderedProblem:
        """The labels of a problem's log in that order."""
        states, actions = by_content(problem.counts, problem.baseline)
        baseline = problem.baseline.aligned(states, actions)
        counts = problem.counts.with_labels(states, actions)
        rows, columns = problem.states.codes(states)[:, None], problem.actions.codes(actions)
        return cls(counts, baseline, problem.discount, rows, columns)

    @cached_property
    def belief(self) -> Belief:
        """What the log says of its process; candidates that need no draws do without it."""
        return Belief.of(self.counts, self.policy, self.discount)

    @property
    def baseline(self) -> np.ndarray:
        """The baseline [S, A] in the order of the belief."""
        return self.policy.probs

    def sorted(self, policies: np.ndarray) -> np.ndarray:
        """Policies [..., S, A] of the problem in the order of the belief."""
        found: np.ndarray = policies[..., self.rows, self.columns]
        return found

    def restored(self, policy: np.ndarray) -> np.ndarray:
        """A policy [S, A] of the belief in the order of the problem."""
        found = np.empty_like(policy)
        found[self.rows, self.columns] = policy
        return found
