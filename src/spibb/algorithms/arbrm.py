"""Approximate robust baseline regret minimisation (Petrik, Ghavamzadeh & Chow 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spibb.algorithms.base import Algorithm
from spibb.algorithms.problem import Problem
from spibb.algorithms.safety_test import SafetyTest, TestedImprovement, check_options
from spibb.algorithms.uncertainty import (
    UncertaintySet,
    best_case,
    error_radii,
    optimise_worst_case,
    reward_bound,
    worst_case,
)
from spibb.mdp import MDP


@dataclass(frozen=True)
class ARBRM(Algorithm):
    """ARBRM: an approximation of π_S = argmax_π min_{M ∈ Ξ} (ρ(π, M) − ρ(π_b, M)) (Equation 3).

    The exact problem is NP-hard. The approximation sets e(x, a) = 0 on the pairs that the baseline
    plays. ρ(π_b, M) is then the same for all M left, so that only min_M ρ(π, M) remains: a robust
    MDP. As the assumption is not true, the policy is returned only if the lower bound
    min_Ξ ρ(π, M) − max_Ξ ρ(π_b, M) of its regret over the *full* set is not negative; otherwise
    the baseline is. `q`, `v` and `model` are those of the robust MDP solved.

    The SPIBB paper names three problems and leaves ARBRM out of its benchmark (section 2.1):

    1. It assumes away the errors of the baseline's pairs: with a baseline that plays every action
       it *is* Basic RL (unseen pairs worth −V_max, as there).
    2. It is costly: the regret is NP-hard, and even this relaxation takes three robust solutions
       per fit, of which the benchmark `bench_robust.py` prints the cost in Π_b-SPIBB fits.
    3. Its test is so conservative that it fails at practical sizes. With e > 0 not even the
       baseline would pass: its worst case is below its best case. Measured on a goal task of 25
       states × 4 actions with 1,000,000 transitions spread evenly: −1.95 against 7.44, although
       the policy rejected is better in every state.

    **Guarantee.** With the safety test: with probability 1 − δ, no worse than the baseline.

    Parameters:
        delta: δ, failure probability of Ξ.
        safety_test: return the baseline unless the policy passes the test.
        r_max: largest absolute reward; derived from the log if None.
        method: "policy-iteration" solves directly, "sweeps" iterates, "auto" chooses by size.

    >>> result = spibb.ARBRM().improve(problem)
    >>> result.policy.row("severe")
    {'treat': 0.6, 'wait': 0.4}
    >>> result.accepted
    False
    """

    name: ClassVar[str] = "arbrm"
    no_certificate: ClassVar[str | None] = (
        "Theorem 2 is about Π_b-SPIBB; the guarantee of ARBRM is its safety test "
        "(see `accepted` and `reason`)"
    )

    delta: float = 0.1
    safety_test: bool = True
    r_max: float | None = None
    method: str = "auto"

    def __post_init__(self) -> None:
        check_options(self)

    def improve(self, problem: Problem) -> TestedImprovement:
        """Solve the robust MDP without errors on the baseline's pairs, then test."""
        assumed = self.assumed(problem)
        kept = optimise_worst_case(assumed, problem.seen_first, method=self.method)
        safety = self._test(problem, kept.probs) if self.safety_test else SafetyTest.untested()
        if not safety.accepted:
            kept = worst_case(assumed, problem.baseline.probs, method=self.method)
        return TestedImprovement.after_test(kept, kept.mdp, safety, problem, self)

    def assumed(self, problem: Problem) -> UncertaintySet:
        """Ξ(M̂, ẽ): ẽ = 0 where the baseline plays, e elsewhere."""
        radius = np.where(problem.baseline.probs > 0, 0.0, error_radii(problem, self.delta))
        model = problem.models["pessimistic"]
        return UncertaintySet.around(model, radius, reward_bound(problem, self.r_max))

    def model(self, problem: Problem) -> MDP:
        """The worst MDP of Ξ(M̂, ẽ) for the policy returned; its values refer to it."""
        return self.improve(problem).model

    def _test(self, problem: Problem, probs: np.ndarray) -> SafetyTest:
        xi = UncertaintySet.from_problem(problem, delta=self.delta, r_max=self.r_max)
        worst = worst_case(xi, probs, method=self.method)
        best = best_case(xi, problem.baseline.probs, method=self.method)
        return SafetyTest.compare(worst.value, best.value)
