"""Basic RL: the optimal policy of the estimated model, trusted as if it were true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from spibb import checks
from spibb.algorithms.base import Algorithm, floats
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Circumstances, Problem
from spibb.estimate import UNSEEN, unseen_value
from spibb.kernels import basic_rl
from spibb.solve import METHODS, free_box, is_dense, optimise


@dataclass(frozen=True)
class BasicRL(Algorithm):
    """Basic RL: the best policy in M̂, max_π ρ(π, M̂) over all policies (section 2, appendix B.2.1).

    It trusts the estimated model, and has no guarantee. Where nothing in M̂ tells the actions of a
    state apart, its row is uniform over the actions available.

    Parameters:
        unseen: Q-value of pairs that the log never contains: "pessimistic" (−V_max, the paper's
            choice), "optimistic" (+V_max, which tries every unknown pair and does badly on logs),
            or "zero".
        method: "policy-iteration" solves directly, "sweeps" iterates, "auto" chooses by size.

    >>> result = spibb.BasicRL().improve(problem)
    >>> result.policy.row("severe")
    {'treat': 1.0, 'wait': 0.0}
    """

    name: ClassVar[str] = "basic-rl"
    no_certificate: ClassVar[str | None] = (
        "Basic RL trusts pairs seen once as much as pairs seen a thousand times; no bound holds"
    )

    unseen: str = "pessimistic"
    method: str = "auto"

    def __post_init__(self) -> None:
        checks.choice("unseen", self.unseen, UNSEEN)
        checks.choice("method", self.method, METHODS)

    def improve(self, problem: Problem) -> Improvement:
        """Solve the estimated model."""
        box = free_box(problem.available)
        solution = optimise(self.model(problem), box, method=self.method)
        nothing = np.zeros(solution.q.shape, dtype=bool)
        return Improvement.from_solution(solution, nothing, problem, self)

    def compiles(self, known: Circumstances) -> bool:
        """Small problems are solved exactly in one call."""
        return is_dense(self.method, known.shape[0])

    @classmethod
    def columns(cls, algorithms: Sequence[Self], known: Circumstances) -> basic_rl.Grid:
        """The values of unseen pairs."""
        return basic_rl.Grid(floats(unseen_value(a.unseen, known.v_max) for a in algorithms))
