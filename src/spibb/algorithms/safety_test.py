"""The safety test of Petrik, Ghavamzadeh & Chow (2016): worst case of the new policy against best
case of the baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from spibb import checks
from spibb.algorithms.base import Algorithm
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Problem
from spibb.kernels.formulas import is_safe
from spibb.mdp import MDP
from spibb.policy import Policy
from spibb.solve import METHODS, Solution


def check_options(algorithm: Any) -> None:
    """Check the options that all algorithms with a safety test have."""
    checks.delta_or_one(algorithm.delta)
    checks.choice("method", algorithm.method, METHODS)
    checks.flags(algorithm)
    if algorithm.r_max is not None:
        checks.number("r_max", algorithm.r_max, 0, math.inf, "[)")


@dataclass(frozen=True)
class SafetyTest:
    """The outcome of a safety test, with the two numbers compared; NaN where not computed."""

    accepted: bool
    reason: str
    worst_case_value: float = math.nan
    baseline_best_case_value: float = math.nan

    @classmethod
    def untested(cls, worst_case_value: float = math.nan) -> SafetyTest:
        """No test was asked for."""
        return cls(True, "accepted untested: safety_test is off", worst_case_value)

    @classmethod
    def compare(cls, worst: float, baseline_best: float) -> SafetyTest:
        """Accept a policy whose worst case is above the baseline's best case.

        min_Ξ ρ(π, M) − max_Ξ ρ(π_b, M) ≤ min_Ξ (ρ(π, M) − ρ(π_b, M)): what passes is safe with
        probability 1 − δ, but much that is safe does not pass, the baseline itself included.
        """
        accepted = is_safe(worst, baseline_best)
        fate = "accepted" if accepted else "rejected, the baseline is returned"
        sign = "above" if accepted else "not above"
        reason = (
            f"{fate}: the policy's worst-case value {worst:.4g} is {sign} "
            f"the baseline's best-case value {baseline_best:.4g}"
        )
        return cls(accepted, reason, worst, baseline_best)


@dataclass(frozen=True, eq=False)
class TestedImprovement(Improvement):
    """An improvement that may have faced a safety test; `safety` holds its numbers.

    Where the test rejected the trained policy, `policy` is the baseline, `bootstrapped` is True
    everywhere, and `q` and `v` are the baseline's.

    >>> result = spibb.ARBRM().improve(problem)
    >>> result.accepted, bool(result.bootstrapped.all())
    (False, True)
    """

    __test__: ClassVar[bool] = False  # pytest collects classes by this prefix

    safety: SafetyTest
    values_in: MDP

    @property
    def accepted(self) -> bool:
        """Whether the trained policy is returned; else `policy` is the baseline."""
        return self.safety.accepted

    @property
    def worst_case_value(self) -> float:
        """The trained policy's lower bound in the test, whether it passed or not."""
        return self.safety.worst_case_value

    @property
    def baseline_best_case_value(self) -> float:
        """The baseline's upper bound in the test."""
        return self.safety.baseline_best_case_value

    @cached_property
    def model(self) -> MDP:
        """The MDP that `q` and `v` refer to."""
        return self.values_in

    @classmethod
    def after_test(
        cls, solution: Solution, model: MDP, safety: SafetyTest, problem: Problem,
        algorithm: Algorithm,
    ) -> TestedImprovement:  # fmt: skip
        """Label the solution that the test leaves: the trained policy's or the baseline's."""
        policy = problem.baseline
        if safety.accepted:
            policy = Policy.trusted(solution.probs, problem.states, problem.actions)
        copied = np.full(solution.q.shape, not safety.accepted)
        return cls(
            policy, solution.q, solution.v, copied, solution.iterations, solution.converged,
            problem, algorithm, safety, model, reason=safety.reason,
        )  # fmt: skip
