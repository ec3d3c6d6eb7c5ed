"""N∧ chosen by the percentile criterion: the log itself says how much to trust."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spibb import checks
from spibb.algorithms.base import Algorithm, Improvement, Problem
from spibb.algorithms.spibb import PiBSpibb, PiLeqBSpibb, ThresholdSpibb
from spibb.evaluate import posterior_values
from spibb.policy import Policy

N_WEDGES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50)
KINDS: dict[str, type[ThresholdSpibb]] = {kind.name: kind for kind in (PiBSpibb, PiLeqBSpibb)}
ROUNDING = 1e-12


@dataclass(frozen=True)
class Candidate:
    """One policy of the sweep, as the posterior sees it.

    `probability` is P(ρ(π, M) ≥ ρ(π_b, M) − ζ | D), `gain` the posterior mean of
    ρ(π, M) − ρ(π_b, M), and `states_changed` the number of rows that differ from the baseline's.
    """

    algorithm: str
    n_wedge: float
    probability: float
    gain: float
    states_changed: int


@dataclass(frozen=True)
class Auto(Algorithm):
    """The percentile criterion over SPIBB policies (Equation 1):

    argmax_π E[ρ(π, M) | D]  subject to  P(ρ(π, M) ≥ ρ(π_b, M) − ζ | D) ≥ 1 − δ,

    where π ranges over Π_b- and Π_≤b-SPIBB at every N∧ of `n_wedges`, and M is drawn from the
    posterior of `evaluate.posterior_improvement` (`prior`, `draws`, `seed`). If no candidate meets
    the constraint, the baseline is returned.

    1. `kinds` limits the candidates to one of the two algorithms.
    2. Of candidates with equal posterior means the one with the largest N∧ is taken.
    3. The constraint is judged by the drawn models: with 100 draws a probability of 0.95 is known
       to about ± 0.04.
    """

    name: ClassVar[str] = "auto"
    no_certificate: ClassVar[str | None] = (
        "Theorem 2 wants N∧ fixed before the log is seen; here the log chose it. What is known is "
        "the posterior probability of improvement"
    )

    delta: float = 0.05
    zeta: float = 0.0
    n_wedges: tuple[float, ...] = N_WEDGES
    kinds: tuple[str, ...] = tuple(KINDS)
    prior: float = 0.5
    draws: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        checks.delta(self.delta)
        checks.number("zeta", self.zeta, 0, math.inf, "[)")
        checks.number("prior", self.prior, 0, math.inf, "()")
        checks.positive("draws", self.draws)
        for n_wedge in self.n_wedges:
            checks.number("n_wedges", n_wedge, 0, math.inf, "(]")
        for kind in self.kinds:
            checks.choice("kinds", kind, tuple(KINDS))

    def improve(self, problem: Problem) -> AutoImprovement:
        """Sweep N∧, judge every policy, and return the best that is likely to be no worse."""
        algorithms, policies = self._candidates(problem)
        sweep = self._judge(problem, algorithms, policies)
        allowed = [k for k, c in enumerate(sweep) if c.probability >= 1 - self.delta]
        best = max(allowed, key=lambda k: (sweep[k].gain, sweep[k].n_wedge), default=None)
        if best is None or sweep[best].gain <= ROUNDING * problem.v_max:
            return self._result(problem, PiBSpibb(math.inf), sweep, None)
        return self._result(problem, algorithms[best], sweep, sweep[best])

    def _candidates(self, problem: Problem) -> tuple[list[ThresholdSpibb], np.ndarray]:
        """The configurations and their policies [M, S, A]."""
        algorithms, policies = [], []
        for kind in self.kinds:
            group = [KINDS[kind](n) for n in sorted(self.n_wedges)]
            algorithms += group
            policies.append(KINDS[kind].policies(group, problem))
        return algorithms, np.concatenate(policies)

    def _judge(
        self,
        problem: Problem,
        algorithms: Sequence[ThresholdSpibb],
        policies: np.ndarray,
    ) -> tuple[Candidate, ...]:
        """Evaluate all distinct policies, and the baseline, in the same models."""
        baseline = problem.baseline
        distinct, where = np.unique(
            policies.reshape(len(policies), -1), axis=0, return_inverse=True
        )
        rows = [row.reshape(baseline.probs.shape) for row in distinct]
        wrapped = [Policy.trusted(row, problem.states, problem.actions) for row in rows]
        rho = posterior_values(
            problem.counts, [baseline, *wrapped], problem.discount,
            rng=np.random.default_rng(self.seed), prior=self.prior, draws=self.draws,
        )  # fmt: skip
        gains = rho[:, 1:] - rho[:, :1]
        slack = ROUNDING * np.abs(rho).max()
        probability = (gains >= -self.zeta - slack).mean(axis=0)
        changed = (policies != baseline.probs).any(axis=2).sum(axis=1)
        return tuple(
            Candidate(a.name, float(a.n_wedge), float(probability[k]), float(gains[:, k].mean()),
                      int(n))
            for a, k, n in zip(algorithms, where.reshape(-1), changed)
        )  # fmt: skip

    def _result(
        self,
        problem: Problem,
        chosen: ThresholdSpibb,
        sweep: tuple[Candidate, ...],
        candidate: Candidate | None,
    ) -> AutoImprovement:
        fit = chosen.improve(problem)
        return AutoImprovement(
            fit.policy, fit.q, fit.v, fit.bootstrapped, fit.iterations, fit.converged, problem,
            self, sweep, candidate, _reason(candidate, sweep, self.delta),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class AutoImprovement(Improvement):
    """What the sweep chose and why; `chosen` is None where the baseline was returned."""

    sweep: tuple[Candidate, ...]
    chosen: Candidate | None
    reason: str


def _reason(chosen: Candidate | None, sweep: tuple[Candidate, ...], delta: float) -> str:
    if chosen is not None:
        return (
            f"{chosen.algorithm} with n_wedge = {chosen.n_wedge:g} has the largest posterior mean "
            f"gain, {chosen.gain:.4g}, of the candidates that are no worse than the baseline with "
            f"probability {1 - delta:g} ({chosen.probability:.3f})"
        )
    best = max(sweep, key=lambda candidate: candidate.probability)
    if best.probability >= 1 - delta:
        return "no candidate promises a gain: the baseline is kept"
    return (
        f"no candidate is no worse than the baseline with probability {1 - delta:g} (the best "
        f"reaches {best.probability:.3f}, {best.algorithm} with n_wedge = {best.n_wedge:g}): "
        "the baseline is kept"
    )
