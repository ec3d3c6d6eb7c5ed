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
from spibb.estimate import UNSEEN
from spibb.evaluate import exact_value, posterior_values
from spibb.kernels import dense
from spibb.mdp import MDP
from spibb.mean_bounds import student_t_bound
from spibb.ope import Candidates, Estimate, contributions
from spibb.policy import Policy
from spibb.solve import DENSE_UP_TO, METHODS

N_WEDGES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50)
KINDS: dict[str, type[ThresholdSpibb]] = {kind.name: kind for kind in (PiBSpibb, PiLeqBSpibb)}
ROUNDING = 1e-12
LEVEL = 0.95
"""Of the intervals in a sweep."""
ESTIMATOR = "wpdis"
"""The off-policy estimator of a sweep: no model, so that it can contradict M̂."""


@dataclass(frozen=True)
class OffPolicyValue:
    """An off-policy estimate of ρ(π) from the log that trained π, so it flatters π."""

    value: float
    interval: tuple[float, float]
    effective_sample_size: float


@dataclass(frozen=True)
class Candidate:
    """One policy of the sweep.

    `value` is ρ(π, M̂), `probability` P(ρ(π, M) ≥ ρ(π_b, M) − ζ | D), `gain` the posterior mean of
    ρ(π, M) − ρ(π_b, M) with its central 95 % `interval`, and `states_changed` the number of rows
    that differ from the baseline's. `off_policy` is None where the log is not at hand, or where
    the baseline cannot have made it.
    """

    algorithm: str
    n_wedge: float
    value: float
    probability: float
    gain: float
    interval: tuple[float, float]
    states_changed: int
    off_policy: OffPolicyValue | None = None


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
    4. `PiBSpibb(n_wedge="auto")` and `PiLeqBSpibb(n_wedge="auto")` are this with one kind.
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
    unseen: str = "zero"
    method: str = "auto"

    def __post_init__(self) -> None:
        checks.delta(self.delta)
        checks.number("zeta", self.zeta, 0, math.inf, "[)")
        checks.number("prior", self.prior, 0, math.inf, "()")
        checks.positive("draws", self.draws)
        checks.choice("unseen", self.unseen, UNSEEN)
        checks.choice("method", self.method, METHODS)
        checks.seed(self.seed)
        for n_wedge in checks.several("n_wedges", self.n_wedges, "(5, 10, 20)"):
            checks.number("n_wedges", n_wedge, 0, math.inf, "(]")
        for kind in checks.several("kinds", self.kinds, '("pi-b",)'):
            checks.choice("kinds", kind, tuple(KINDS))

    def improve(self, problem: Problem) -> AutoImprovement:
        """Sweep N∧, judge every policy, and return the best that is likely to be no worse."""
        algorithms, policies = self.candidates(problem)
        sweep = self.judge(problem, algorithms, policies)
        best = self.choose(problem, sweep)
        fit = (PiBSpibb(math.inf) if best is None else algorithms[best]).improve(problem)
        chosen = None if best is None else sweep[best]
        return AutoImprovement(
            fit.policy, fit.q, fit.v, fit.bootstrapped, fit.iterations, fit.converged, problem,
            self, sweep, chosen, _reason(chosen, sweep, self.delta),
        )  # fmt: skip

    def sweep(self, problem: Problem) -> tuple[Candidate, ...]:
        """Every candidate with what the log says about it, without choosing one."""
        return self.judge(problem, *self.candidates(problem))

    def candidates(self, problem: Problem) -> tuple[list[ThresholdSpibb], np.ndarray]:
        """The configurations and their policies [M, S, A]."""
        groups = [
            [KINDS[kind](n, self.unseen, self.method) for n in sorted(self.n_wedges)]
            for kind in self.kinds
        ]
        policies = [type(group[0]).policies(group, problem) for group in groups]
        return [algorithm for group in groups for algorithm in group], np.concatenate(policies)

    def choose(self, problem: Problem, sweep: Sequence[Candidate]) -> int | None:
        """The number of the candidate that the criterion takes; None keeps the baseline."""
        allowed = [k for k, c in enumerate(sweep) if c.probability >= 1 - self.delta]
        best = max(allowed, key=lambda k: (sweep[k].gain, sweep[k].n_wedge), default=None)
        gains = best is not None and sweep[best].gain > ROUNDING * problem.v_max
        return best if gains else None

    def judge(
        self, problem: Problem, algorithms: Sequence[ThresholdSpibb], policies: np.ndarray
    ) -> tuple[Candidate, ...]:
        """Evaluate all distinct policies, and the baseline, in the same models."""
        baseline = problem.baseline
        flat, where = np.unique(policies.reshape(len(policies), -1), axis=0, return_inverse=True)
        distinct = flat.reshape(-1, *baseline.probs.shape)
        gains, slack = self._gains(problem, distinct)
        tail = (1 - LEVEL) / 2
        low, high = np.quantile(gains, [tail, 1 - tail], axis=0).tolist()
        mean = gains.mean(axis=0).tolist()
        probability = (gains >= -self.zeta - slack).mean(axis=0).tolist()
        value = _values(problem.model, distinct)
        changed = (distinct != baseline.probs).any(axis=2).sum(axis=1).tolist()
        off_policy = _off_policy(problem, distinct)
        return tuple(
            Candidate(
                a.name, float(a.n_wedge), value[k], probability[k], mean[k], (low[k], high[k]),
                changed[k], off_policy[k],
            )
            for a, k in zip(algorithms, where.reshape(-1).tolist())
        )  # fmt: skip

    def _gains(self, problem: Problem, policies: np.ndarray) -> tuple[np.ndarray, float]:
        """ρ(π, M) − ρ(π_b, M) in every drawn model [D, M], and the rounding of these numbers."""
        wrapped = [Policy.trusted(rows, problem.states, problem.actions) for rows in policies]
        rho = posterior_values(
            problem.counts, [problem.baseline, *wrapped], problem.discount,
            rng=np.random.default_rng(self.seed), prior=self.prior, draws=self.draws,
        )  # fmt: skip
        return rho[:, 1:] - rho[:, :1], ROUNDING * float(np.abs(rho).max())


def _values(model: MDP, policies: np.ndarray) -> list[float]:
    """ρ(π, M̂) of each policy [M, S, A]."""
    if len(model.states) <= DENSE_UP_TO:
        problem = model.rows, model.rewards, model.discount, model.initial
        found: list[float] = dense.performances(*problem, policies).tolist()
        return found
    wrapped = [Policy.trusted(rows, model.states, model.actions) for rows in policies]
    return [exact_value(model, policy) for policy in wrapped]


def _off_policy(problem: Problem, policies: np.ndarray) -> list[OffPolicyValue | None]:
    """What the log's own episodes say of each policy [M, S, A], in one pass over them."""
    log = problem.log
    if log is None or log.n_episodes < 2 or (log.action_prob is None and problem.contradictions):
        return [None] * len(policies)
    logged = log.action_prob
    if logged is None:
        logged = problem.baseline.probs[log.state, log.action]
    found = contributions(
        log, Candidates.of(*policies), logged, problem.discount, names=(ESTIMATOR,)
    )
    return [_with_interval(found.estimate(ESTIMATOR, lane)) for lane in range(len(policies))]


def _with_interval(estimate: Estimate) -> OffPolicyValue | None:
    """The estimate with Student's interval; None where no episode has any weight."""
    if not np.isfinite(estimate.contributions).all():
        return None
    low = student_t_bound(estimate.contributions, (1 - LEVEL) / 2)
    interval = low, 2 * estimate.value - low
    return OffPolicyValue(estimate.value, interval, estimate.effective_sample_size)


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
