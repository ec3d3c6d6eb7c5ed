"""Reward-adjusted MDP (Petrik, Ghavamzadeh & Chow 2016; appendix B.2 of the SPIBB paper)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from spibb import checks
from spibb.algorithms.base import Algorithm, floats
from spibb.algorithms.problem import Circumstances, Problem
from spibb.algorithms.safety_test import SafetyTest, TestedImprovement, check_options
from spibb.algorithms.uncertainty import radius_of_one, reward_bound
from spibb.kernels import ramdp
from spibb.mdp import MDP
from spibb.solve import evaluate, is_dense, optimise


@dataclass(frozen=True)
class RaMDP(Algorithm):
    """RaMDP: the optimal policy of M̂ with each reward lowered for its uncertainty (appendix B.2).

    R̃(x, a) = R̂(x, a) − κ/√N(x, a). `q`, `v` and `model` are those of the adjusted MDP; entering
    a terminal state costs nothing beyond that.

    The theory's penalty is R_max/(1−γ)·e(x, a), of the order of 100/√N; κ is a hyper-parameter in
    its place, so that ρ(π, M̃) bounds nothing. The safety test goes back to the theory: the policy
    is returned only if its value in R̂ − R_max/(1−γ)·e is above the baseline's in
    R̂ + R_max/(1−γ)·e; with probability 1 − δ the first is below its true value and the second
    above the baseline's (simulation lemma: an error e on P and e·R_max on R costs at most
    e·R_max + γ e·R_max/(1−γ) per step). Otherwise the baseline is returned. The
    test nearly always fails.

    1. An unseen pair, whose penalty is infinite, is never chosen where the state has a seen one;
       in a state without any, all are worth −V_max and the row is uniform, as in Basic RL.
    2. `released=True` is for the reproduction of the paper's curves only. It repeats a mistake of
       the released code: every count gets the floor 1e-5, and so does the terminal state, which
       is a row of the table there and pays −κ/√1e-5 once. Entering the goal is then worth
       1 − γκ/√1e-5, which turns repulsive at κ = √1e-5/γ = 0.0033 for γ = 0.95. Here a pair pays
       that share with its probability to end.

    **Guarantee.** With the safety test, that of `RobustMDP`; without it, none.

    Parameters:
        kappa: κ, penalty of a pair seen once.
        safety_test: return the baseline unless the policy passes the test.
        released: repeat the mistake of the released code, see 2.
        delta: δ, failure probability of the test.
        r_max: largest absolute reward; derived from the log if None.
        method: "policy-iteration" solves directly, "sweeps" iterates, "auto" chooses by size.

    >>> result = spibb.RaMDP(kappa=0.1).improve(problem)
    >>> result.policy.row("severe")
    {'treat': 1.0, 'wait': 0.0}
    """

    name: ClassVar[str] = "ramdp"
    no_certificate: ClassVar[str | None] = (
        "Theorem 2 is about Π_b-SPIBB; the guarantee of RaMDP is its safety test "
        "(safety_test=True, then see `accepted` and `reason`)"
    )

    kappa: float = 0.003
    safety_test: bool = False
    released: bool = False
    delta: float = 0.1
    r_max: float | None = None
    method: str = "auto"

    def __post_init__(self) -> None:
        checks.number("kappa", self.kappa, 0, math.inf, "[)")
        check_options(self)

    def improve(self, problem: Problem) -> TestedImprovement:
        """Solve the adjusted model."""
        model = self.model(problem)
        kept = optimise(model, problem.seen_first, method=self.method)
        safety = self._test(problem, kept.probs) if self.safety_test else SafetyTest.untested()
        if not safety.accepted:
            kept = evaluate(model, problem.baseline.probs, method=self.method)
        return TestedImprovement.after_test(kept, model, safety, problem, self)

    def compiles(self, known: Circumstances) -> bool:
        """Small problems are solved exactly in one call; a given R_max is checked first."""
        return is_dense(self.method, known.shape[0]) and self.r_max is None

    @classmethod
    def columns(cls, algorithms: Sequence[Self], known: Circumstances) -> ramdp.Grid:
        """κ, whether as released, and the radius of the safety test."""
        return ramdp.Grid(
            floats(a.kappa / known.unit for a in algorithms),
            floats(a.released for a in algorithms),
            floats(radius_of_one(known, a.delta) if a.safety_test else 0 for a in algorithms),
        )

    def model(self, problem: Problem) -> MDP:
        """M̃: the estimated MDP with penalised rewards."""
        grid = self.columns([self], problem.circumstances)
        rewards = ramdp.adjusted_rewards(problem.data.model, problem.data.v_max, grid)[0]
        return replace(problem.model, rewards=rewards * problem.unit)

    def _test(self, problem: Problem, probs: np.ndarray) -> SafetyTest:
        """Compare the policy's and the baseline's values after the theory's adjustment."""
        mdp, unit = problem.model, problem.unit
        low, high = ramdp.extreme_rewards(
            problem.data.model, reward_bound(problem, self.r_max) / unit,
            radius_of_one(problem.circumstances, self.delta),
        )  # fmt: skip
        worst = evaluate(replace(mdp, rewards=low * unit), probs)
        best = evaluate(replace(mdp, rewards=high * unit), problem.baseline.probs)
        return SafetyTest.compare(float(mdp.initial @ worst.v), float(mdp.initial @ best.v))
