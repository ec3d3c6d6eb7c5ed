"""Π_b-SPIBB, Π_≤b-SPIBB and model-free Π_b-SPIBB (Laroche, Trichelair & Tachet des Combes 2019)."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from spibb import checks
from spibb.algorithms.auto.algorithm import SWEPT_N_WEDGES, Auto
from spibb.algorithms.base import Algorithm, floats
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import AS_BASELINE, TREATMENTS, Circumstances, Problem
from spibb.algorithms.threshold import SHARES, Threshold, spibb_box
from spibb.errors import InputError
from spibb.estimate import UNSEEN, unseen_value
from spibb.kernels import fitted, spibb
from spibb.kernels.projection import greedy
from spibb.solve import METHODS, TOLERANCE, Found, Solution, is_dense, unit_of
from spibb.ties import settle


@dataclass(frozen=True)
class ThresholdSpibb(Algorithm):
    """What Π_b and Π_≤b share: the threshold N∧ and the bootstrapped set 𝔅 = {(x, a): N < N∧}.

    `n_wedge="auto"` lets the log choose it, by the percentile criterion (`algorithms.auto`).
    """

    share: ClassVar[float]
    """The share of the baseline's mass that a bootstrapped pair must keep."""

    n_wedge: float | Literal["auto"] = 10
    unseen: str = "zero"
    method: str = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.n_wedge, str):
            checks.n_wedge(self.n_wedge)
        elif self.n_wedge != "auto":
            raise InputError(f"n_wedge is {self.n_wedge!r}, expected a number, or 'auto'")
        checks.choice("unseen", self.unseen, TREATMENTS)
        checks.choice("method", self.method, METHODS)

    def improve(self, problem: Problem) -> Improvement:
        """Train on the problem's log."""
        if isinstance(self.n_wedge, str):
            return self.chooser.improve(problem)
        threshold = Threshold(self.share, self.n_wedge, self.unseen, self.method)
        solution, bootstrapped = threshold.solve(problem)
        return Improvement.from_solution(solution, bootstrapped, problem, self)

    @property
    def chooser(self) -> Auto:
        """What lets the log choose N∧ of this algorithm."""
        unseen = AS_BASELINE if self.unseen == "zero" else self.unseen
        return Auto(n_wedges=SWEPT_N_WEDGES, kinds=(self.name,), unseen=unseen, method=self.method)

    def compiles(self, known: Circumstances) -> bool:
        """Small problems are solved exactly in one call, unless the log has a say in N∧ or in what
        unseen pairs are worth."""
        fixed = not isinstance(self.n_wedge, str) and self.unseen != AS_BASELINE
        return fixed and is_dense(self.method, known.shape[0])

    @classmethod
    def columns(cls, algorithms: Sequence[Self], known: Circumstances) -> spibb.Grid:
        """N∧ and the values of unseen pairs; fits are fastest where N∧ increases."""
        return spibb.Grid(
            floats(float(a.n_wedge) for a in algorithms),
            floats(unseen_value(a.unseen, known.v_max) for a in algorithms),
            cls.share,
        )


@dataclass(frozen=True)
class PiBSpibb(ThresholdSpibb):
    """Π_b-SPIBB: the best policy in M̂ that copies the baseline on every bootstrapped pair.

    max_π ρ(π, M̂) subject to π(a|x) = π_b(a|x) wherever N_D(x, a) < N∧ (Equations 4 and 7,
    Algorithm 1, Theorems 1 and 2).

    1. A pair is bootstrapped iff N < N∧; the released code says N ≤ N∧.
    2. Where no allowed row is better in M̂, the baseline's row stays; the paper's argmax takes
       the first action.
    3. `n_wedge=0` optimises over the pairs seen; where none was seen, the baseline's row stays.

    **Guarantee** (Theorem 2). With probability at least 1 − δ over logs that the baseline made,

        ρ(π, M*) ≥ ρ(π_b, M*) − ζ,
        ζ = 4 V_max/(1 − γ) · √(2/N∧ · log(2|X||A|2^|X|/δ)) − ρ(π, M̂) + ρ(π_b, M̂),

    if N∧ was fixed before the log was seen. `Improvement.certificate` computes it.

    Parameters:
        n_wedge: N∧, minimum visits before a pair is trusted; "auto" lets the log choose it.
        unseen: value of pairs that the log never has: "zero", "pessimistic" (−V_max), "optimistic",
            or "baseline": what the baseline earns from that state on, by the pairs seen. If the log
            chooses N∧, "zero" is read as "baseline".
        method: "policy-iteration" solves directly, "sweeps" iterates, "auto" chooses by size.

    >>> result = spibb.PiBSpibb(n_wedge=1).improve(problem)
    >>> result.policy.row("severe")
    {'treat': 1.0, 'wait': 0.0}
    >>> bool(result.bootstrapped.any())
    False
    """

    name: ClassVar[str] = "pi-b"
    share: ClassVar[float] = SHARES["pi-b"]
    no_certificate: ClassVar[str | None] = None


@dataclass(frozen=True)
class PiLeqBSpibb(ThresholdSpibb):
    """Π_≤b-SPIBB: as Π_b-SPIBB, but a bootstrapped action may also lose its mass.

    max_π ρ(π, M̂) subject to π(a|x) ≤ π_b(a|x) wherever N_D(x, a) < N∧ (section 2.4,
    Algorithm 2 of the appendix). Often better than Π_b-SPIBB; it has no guarantee.

    Parameters:
        n_wedge: N∧, as for `PiBSpibb`.
        unseen: value of pairs that the log never has, as for `PiBSpibb`.
        method: how the model is solved, as for `PiBSpibb`.

    >>> result = spibb.PiLeqBSpibb(n_wedge=2).improve(problem)
    >>> result.policy.row("severe")  # waiting was seen once: it may lose its mass
    {'treat': 1.0, 'wait': 0.0}
    """

    name: ClassVar[str] = "pi-leq-b"
    share: ClassVar[float] = SHARES["pi-leq-b"]
    no_certificate: ClassVar[str | None] = (
        "Theorem 2 holds for Π_b-SPIBB only; Π_≤b-SPIBB converges but its safety is not proven"
    )


@dataclass(frozen=True)
class ModelFreeSpibb(Algorithm):
    """Model-free Π_b-SPIBB: fits Q to the targets y_j transition by transition (Equation 8).

        y_j = r_j + γ Σ_{a' ∈ 𝔅} π_b(a'|x'_j) Q(x'_j, a')
                  + γ (Σ_{a' ∉ 𝔅} π_b(a'|x'_j)) max_{a' ∉ 𝔅} Q(x'_j, a')

    and Q(x, a) ← mean of the y_j with (x_j, a_j) = (x, a), until the fixed point. P̂ is never
    formed. By Theorem 3 the fixed point is the Q-function of Π_b-SPIBB. The passes stop when Q is
    proven to be within `tolerance`, times its largest value, of it.

    **Guarantee.** That of `PiBSpibb`.

    Parameters:
        n_wedge: N∧, minimum visits before a pair is trusted.
        unseen: value of pairs that the log never has, as in `PiBSpibb`.
        tolerance: error of Q, relative to its largest value, at which the passes stop.
        max_sweeps: passes after which it gives up.

    >>> result = spibb.ModelFreeSpibb(n_wedge=1).improve(problem)
    >>> result.policy.row("severe")
    {'treat': 1.0, 'wait': 0.0}
    """

    name: ClassVar[str] = "model-free"
    needs_log: ClassVar[bool] = True
    no_certificate: ClassVar[str | None] = None

    n_wedge: float = 10
    unseen: str = "zero"
    tolerance: float = TOLERANCE
    max_sweeps: int = 100_000

    def __post_init__(self) -> None:
        checks.n_wedge(self.n_wedge)
        checks.choice("unseen", self.unseen, UNSEEN)
        checks.number("tolerance", self.tolerance, 0, math.inf, "()")
        checks.positive_field(self, "max_sweeps")

    def improve(self, problem: Problem) -> Improvement:
        """Fit Q to the transitions of the problem's log."""
        log = problem.log
        if log is None:
            raise InputError(
                "model-free needs the transitions, and this problem holds only counts: "
                "use pi-b, which gives the same policy"
            )
        box, bootstrapped = spibb_box(problem, self.n_wedge, SHARES["pi-b"])
        known = log.known
        unseen, reward = unseen_value(self.unseen, problem.v_max), log.reward[known]
        unit = unit_of(np.append(reward, unseen)[None])
        unseen, reward = unseen / unit, reward / unit
        transitions = fitted.LoggedSteps(
            log.state[known], log.action[known], log.next_state[known], reward
        )
        given = transitions, box, problem.discount, unseen, self.tolerance, self.max_sweeps
        last = fitted.FittedQ(*fitted.fit(*given))
        v = greedy(last.q, box, np.zeros(len(last.q)), np.empty(last.q.shape))
        mean = functools.partial(_mean_targets, transitions, last.q.shape, problem.discount)
        q, sizes = mean(reward, v, unseen), mean(np.abs(reward), np.abs(v), abs(unseen))
        probs, doubtful = settle(
            q, box, lambda errors: mean(0.0, errors, 0.0), v, sizes, last.error,
            self.tolerance * (1 - problem.discount),
        )  # fmt: skip
        v, converged = (probs * q).sum(axis=1), last.error <= last.wanted and not doubtful
        solution = Solution.in_units(unit, Found(probs, q, v, last.sweeps, converged, last.error))
        return Improvement.from_solution(solution, bootstrapped, problem, self)


def _mean_targets(
    transitions: fitted.LoggedSteps, shape: tuple[int, int], discount: float,
    reward: np.ndarray | float, v: np.ndarray, unseen: float,
) -> np.ndarray:  # fmt: skip
    """The mean of r_j + γ V(x'_j) over the samples of each pair, and `unseen` where none is."""
    successor, pair = transitions.successor, transitions.state * shape[1] + transitions.action
    target = reward + discount * np.where(successor >= 0, v[successor], 0.0)
    n = np.bincount(pair, minlength=shape[0] * shape[1]).reshape(shape)
    total = np.bincount(pair, target, minlength=shape[0] * shape[1]).reshape(shape)
    return np.where(n > 0, total / np.maximum(n, 1), unseen)
