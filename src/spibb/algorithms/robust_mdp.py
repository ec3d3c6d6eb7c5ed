"""Robust MDP (Iyengar 2005; Nilim & El Ghaoui 2005; Petrik, Ghavamzadeh & Chow 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from spibb import checks
from spibb.algorithms.base import Algorithm, floats
from spibb.algorithms.problem import Circumstances, Problem
from spibb.algorithms.released import only_the_end_pays
from spibb.algorithms.safety_test import SafetyTest, TestedImprovement, check_options
from spibb.algorithms.uncertainty import (
    UncertaintySet,
    best_case,
    optimise_worst_case,
    radius_of_one,
    worst_case,
)
from spibb.errors import InputError
from spibb.kernels import robust_mdp
from spibb.mdp import MDP
from spibb.solve import is_dense

RELEASED_UP_TO = 128
"""States up to which NumPy adds rows in the order that `released` repeats."""


@dataclass(frozen=True)
class RobustMDP(Algorithm):
    """Robust MDP: π_R = argmax_π min_{M ∈ Ξ} ρ(π, M) (Equation 2, appendix B.2).

    Q(x, a) = R̂ − e R_max + γ min_{‖P − P̂‖₁ ≤ e} P·V, V(x) = max_a Q(x, a). `q` and `v` are these
    worst-case values, and `model` is the MDP of Ξ where they are attained: `objective` is the
    worst-case ρ(π, M). The policy is returned only if that is above the best case max_Ξ ρ(π_b, M)
    of the baseline, and the baseline is returned otherwise.

    1. The paper's figures leave the test out (`safety_test=False`), because it always fails there.
       Without it there is no guarantee: the policy can be far worse than the baseline.
    2. e is capped at 2, where nature is free; such pairs and unseen ones are worth the same.
       An unseen pair is never chosen where the state has a seen one.
    3. Where nothing tells the actions of a state apart, its row is uniform, as in Basic RL.
    4. `known_rewards` drops the error on R, as Petrik et al. do; see `UncertaintySet`.
    5. `released=True` is for the reproduction of the paper's curves only, on tasks where only
       a final goal pays. It repeats the released code, which uses `delta` 0.001: e lacks
       the factor 2 in its logarithm, and moves the goal's reward along with its probability; values
       start at 0, unseen pairs stay there, and 200 sweeps or a change of at most 0.005 end the
       search; its last maximum then leaves out every pair, seen or not, whose adversarial row does
       not sum to exactly 1 in floating point, and takes the first action where none is left. `q`
       and `v` are the correct worst-case values of that policy. On small logs the result depends on
       how NumPy sorted equal values: here as its versions of the paper's time. Where the goal is
       not the last state that the log never shows (in some random MDPs), it is taken to be there.

    **Guarantee.** With the safety test: with probability 1 − δ, no worse than the baseline.

    Parameters:
        delta: δ, failure probability of Ξ.
        safety_test: return the baseline unless the policy passes the test.
        known_rewards: whether rewards carry no error.
        r_max: largest absolute reward; derived from the log if None.
        method: "policy-iteration" solves directly, "sweeps" iterates, "auto" chooses by size.
        released: repeat the released code; see 5.

    >>> result = spibb.RobustMDP().improve(problem)
    >>> result.policy.row("severe")
    {'treat': 0.6, 'wait': 0.4}
    >>> result.accepted
    False
    """

    name: ClassVar[str] = "robust-mdp"
    no_certificate: ClassVar[str | None] = (
        "Theorem 2 is about Π_b-SPIBB; the guarantee of Robust MDP is its safety test "
        "(see `accepted` and `reason`)"
    )

    delta: float = 0.1
    safety_test: bool = True
    known_rewards: bool = False
    r_max: float | None = None
    method: str = "auto"
    released: bool = False

    def __post_init__(self) -> None:
        check_options(self)
        if self.released and (self.safety_test or self.known_rewards or self.r_max is not None):
            raise InputError(
                "robust-mdp with released=True has no safety test and no options for rewards: give "
                "safety_test=False, and leave out known_rewards and r_max"
            )

    def check(self, problem: Problem) -> None:
        """As released, a task like the paper's."""
        if self.released:
            only_the_end_pays(problem, self.name)
            checks.number("states (as released)", len(problem.states), 1, RELEASED_UP_TO)

    def improve(self, problem: Problem) -> TestedImprovement:
        """Solve the robust MDP of the problem's log."""
        self.check(problem)
        xi, baseline = self.uncertainty(problem), problem.baseline.probs
        if self.released:
            kept = worst_case(xi, self._as_released(problem), method=self.method)
        else:
            kept = optimise_worst_case(xi, problem.seen_first, method=self.method)
        safety = SafetyTest.untested(kept.value)
        if self.safety_test:
            best = best_case(xi, baseline, method=self.method)
            safety = SafetyTest.compare(kept.value, best.value)
        if not safety.accepted:
            kept = worst_case(xi, baseline, method=self.method)
        return TestedImprovement.after_test(kept, kept.mdp, safety, problem, self)

    def compiles(self, known: Circumstances) -> bool:
        """Small problems are solved exactly in one call; a given R_max is checked first."""
        small = known.shape[0] <= RELEASED_UP_TO if self.released else True
        return is_dense(self.method, known.shape[0]) and self.r_max is None and small

    @classmethod
    def columns(cls, algorithms: Sequence[Self], known: Circumstances) -> robust_mdp.Grid:
        """The radius of a pair seen once, whether tested, known rewards, as released."""
        return robust_mdp.Grid(
            floats(radius_of_one(known, a.delta) for a in algorithms),
            floats(a.safety_test for a in algorithms),
            floats(a.known_rewards for a in algorithms),
            floats(_released_log(known.shape, a.delta) if a.released else 0 for a in algorithms),
        )

    def _as_released(self, problem: Problem) -> np.ndarray:
        """The rows [S, A] that the released code gives, on a task like the paper's."""
        pis = np.empty((1, *problem.baseline.probs.shape))
        robust_mdp.policies(problem.data, self.columns([self], problem.circumstances), pis)
        return pis[0]

    def uncertainty(self, problem: Problem) -> UncertaintySet:
        """The set Ξ(M̂, e) of the problem."""
        return UncertaintySet.from_problem(
            problem, delta=self.delta, r_max=self.r_max, known_rewards=self.known_rewards
        )

    def model(self, problem: Problem) -> MDP:
        """The worst MDP of Ξ for the policy returned; its values refer to it."""
        return self.improve(problem).model


def _released_log(shape: tuple[int, int], delta: float) -> float:
    """log(|A||X|2^|X|/δ), without the leading 2 of Proposition 1."""
    n_states, n_actions = shape
    return float(np.log(n_actions * n_states / delta * 2.0**n_states))
