"""All that is known about an improvement, gathered once for terminal, summary and report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spibb.algorithms.auto import Auto, AutoImprovement, Candidate
from spibb.algorithms.base import Improvement, Problem
from spibb.assurance.posterior import Posterior
from spibb.assurance.values import INVERTED_UP_TO
from spibb.certificate import Certificate
from spibb.errors import InputError
from spibb.ingest.inspection import Finding
from spibb.log import Log
from spibb.ope import BOUNDS, OffPolicyReport, off_policy_estimates, pessimistic_model
from spibb.report.origin import Origin
from spibb.solve import DENSE_UP_TO

DRAWS = 1000
RESAMPLED_UP_TO = 20_000
"""Episodes up to which the estimates get BCa's bound; with more it takes minutes."""
LARGE_DRAWS = 100
"""Models drawn from the posterior of a problem too large for exact evaluation."""


@dataclass(frozen=True, eq=False)
class Assessment:
    """An improvement with the belief in it, its certificate, its alternatives and its data.

    `sweep` is empty where the problem is too large to try every N∧ unasked. `estimates` is None,
    with the reason in `no_estimates`, where the log cannot be used to evaluate another policy.
    `held_out` are the estimates on episodes that trained nothing, if any were kept apart.
    """

    result: Improvement
    posterior: Posterior
    certificate: Certificate
    sweep: tuple[Candidate, ...]
    estimates: OffPolicyReport | None
    no_estimates: str | None
    findings: tuple[Finding, ...]
    origin: Origin
    held_out: OffPolicyReport | None = None

    @property
    def chosen(self) -> Candidate | None:
        """The candidate of the sweep that is the result, if one is."""
        if isinstance(self.result, AutoImprovement):
            return self.result.chosen
        mine = self.result.algorithm.name, self.n_wedge
        return next((c for c in self.sweep if (c.algorithm, c.n_wedge) == mine), None)

    @property
    def n_wedge(self) -> float:
        """The threshold that made the policy; infinite where the baseline was kept, else NaN."""
        if isinstance(self.result, AutoImprovement):
            return math.inf if self.result.chosen is None else self.result.chosen.n_wedge
        return float(getattr(self.result.algorithm, "n_wedge", math.nan))


def assess(
    result: Improvement,
    origin: Origin,
    *,
    delta: float = 0.05,
    findings: Sequence[Finding] = (),
    held_out: Log | None = None,
) -> Assessment:
    """Ask everything about an improvement; all draws come from the origin's seed."""
    problem = result.problem
    if not problem.counts.n.sum():
        raise InputError(
            "no row of the log has a known successor or an end, so nothing can be learned from "
            "it: give next_state or terminated, or the rows that follow in each episode"
        )
    rng = np.random.default_rng(origin.seed)
    small = len(problem.states) <= DENSE_UP_TO
    draws = DRAWS if len(problem.states) <= INVERTED_UP_TO else LARGE_DRAWS
    posterior = result.posterior(draws=draws, seed=origin.seed)
    if isinstance(result, AutoImprovement):
        sweep = result.sweep
    else:
        sweep = Auto(delta=delta).sweep(problem) if small else ()
    estimates, refusal = _estimates(result, delta, rng)
    fair = None if held_out is None else _off_policy(result, held_out, delta, rng)
    return Assessment(
        result, posterior, result.certificate(delta), sweep, estimates, refusal, tuple(findings),
        origin, fair,
    )  # fmt: skip


def _estimates(
    result: Improvement, delta: float, rng: np.random.Generator
) -> tuple[OffPolicyReport | None, str | None]:
    """Off-policy estimates of the new policy, or why there are none."""
    problem = result.problem
    if problem.log is None:
        return None, "only counts of the log were kept, and the estimators need its episodes"
    try:
        return _off_policy(result, problem.log, delta, rng), None
    except InputError as error:
        return None, str(error)


def _off_policy(
    result: Improvement, log: Log, delta: float, rng: np.random.Generator
) -> OffPolicyReport:
    """Estimates of the new policy on a log, doubly robust ones with the training log's model."""
    problem, lowest = result.problem, lowest_return(result.problem)
    return off_policy_estimates(
        log, result.policy, None if log.action_prob is not None else problem.baseline,
        problem.discount, delta=delta, lowest_return=lowest,
        highest_return=problem.v_max if problem.v_max_given else math.inf,
        model=pessimistic_model(problem.counts, problem.discount, lowest), rng=rng,
        bounds=[b for b in BOUNDS if b != "bca" or log.n_episodes <= RESAMPLED_UP_TO],
    )  # fmt: skip


def lowest_return(problem: Problem) -> float:
    """No return is below this: 0 where no reward is negative, −V_max otherwise."""
    return -problem.v_max if problem.counts.reward_range[0] < 0 else 0.0
