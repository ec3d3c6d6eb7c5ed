"""What is known about a new policy, gathered once: all that a verdict is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from spibb import checks
from spibb.algorithms.auto.algorithm import telling_rewards
from spibb.algorithms.base import Algorithm
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Problem
from spibb.assurance.posterior import Posterior, draws_for, posterior_improvement, sure_gain
from spibb.assurance.values import INVERTED_UP_TO
from spibb.bounds.chance import Chance, chance_of_largest
from spibb.bounds.normal import TWO_SIDED_95
from spibb.defaults import DELTA
from spibb.episodes.departures import (
    MOVED,
    Departures,
    changed_states,
    completed_returns,
    single_departures,
    typical_model,
    values_where_seen,
)
from spibb.errors import InputError
from spibb.evaluate import monte_carlo_value, standard_error
from spibb.frozen import Frozen
from spibb.log import Log
from spibb.ope import OffPolicyReport, off_policy_estimates
from spibb.policy import Policy
from spibb.sceptic.drift import Season, season_check
from spibb.verdict.crossing import crossed
from spibb.verdict.memory import Memory, memory_of
from spibb.verdict.recorded import CrossFittedGain, ModelFreeGain, cross_fitted_gain, direct_limits

DRAWS = 1000
LARGE_DRAWS = 100
"""Models drawn from the posterior of a problem too large for exact evaluation."""
RESAMPLED_UP_TO = 20_000
"""Episodes up to which the estimates get BCa's bound; with more it takes minutes."""


@dataclass(frozen=True)
class DrawnValue:
    """A mean over the models drawn given the log, and the central interval that holds 95 %."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, draws: np.ndarray, level: float) -> DrawnValue:
        """Of values in drawn models [D]."""
        tail = (1 - level) / 2
        low, high = np.quantile(draws, [tail, 1 - tail])
        return cls(float(draws.mean()), float(low), float(high))


SHRUNK = (
    "Actions with few visits are pulled towards what the actions of their state have in common. "
    "This biases the values and the gain, and the intervals do not include that bias"
)
"""What an interval of drawn models is not, wherever one is shown."""
OBSERVED = "mean return in the log"
"""What `LoggedReturn.mean` is called wherever it is shown."""


@dataclass(frozen=True)
class LoggedReturn:
    """The mean discounted return of the log's episodes with its standard error.

    `cut` of the `episodes` were cut short, and what they would have earned afterwards is missing;
    `completed` is the mean with the model's value of it added, and `completed_error` its standard
    error.
    """

    mean: float
    standard_error: float
    episodes: int
    cut: int
    completed: float
    completed_error: float

    @property
    def reach(self) -> float:
        """Half of the mean's 95 % interval."""
        return TWO_SIDED_95 * self.standard_error


@dataclass(frozen=True, eq=False)
class Evidence(Frozen):
    """A new policy for a problem, and what the log says of it.

    `lower` is the quantile of the gain over drawn models at failure rate `delta`, of which it has a
    share only (`shared`) if the log chose the policy by it. `earned` is None where the log's
    episodes were not kept, `departures` also where they contradict the baseline; `estimates`
    likewise, with the reason in `no_estimates`. `held_out` are estimates on episodes that trained
    nothing; where these contradict the baseline there are none, and `no_held_out` says why.
    `ends_assumed` says that no column of the log told which episodes ended. `certified` says that
    changes passed tests, which use no model. `considered` [S] are the states in which the outcomes
    of the log decided whether to change; None if these are all that change. `searched` says that
    no other threshold could help: the log chose it, or there is none. `algorithm` made the policy
    from this log, and can be asked what it makes of a part of it. `share` is the failure rate that
    `lower` has.

    >>> evidence = spibb.run(log, baseline=baseline, n_wedge=1).assessment.evidence
    >>> evidence.delta, evidence.lower <= evidence.gain.mean
    (0.05, True)
    """

    problem: Problem
    policy: Policy
    delta: float
    posterior: Posterior
    lower: float
    shared: bool
    earned: LoggedReturn | None
    departures: Departures | None
    estimates: OffPolicyReport | None
    no_estimates: str | None
    held_out: OffPolicyReport | None
    no_held_out: str | None = None
    ends_assumed: bool = False
    certified: bool = False
    considered: np.ndarray | None = None
    searched: bool = False
    algorithm: Algorithm | None = None
    share: float | None = None

    def _facts(self) -> Mapping[str, Any]:
        """What changes, and what it gains."""
        return {
            "states": len(self.problem.states), "states_changed": int(self.changed.sum()),
            "delta": self.delta, "gain": self.posterior.gain, "lower": self.lower,
            "held_out": None if self.held_out is None else self.held_out.n_episodes,
        }  # fmt: skip

    @cached_property
    def cross_fitted(self) -> CrossFittedGain | None:
        """The gain of changes that other episodes chose, where no model is trusted."""
        if self.algorithm is None or not (self.problem.varying and self.changed.any()):
            return None
        return cross_fitted_gain(self.algorithm, self.problem)

    @cached_property
    def direct(self) -> tuple[ModelFreeGain, ...]:
        """Limits of the gain by the rows' own probabilities, where these vary within a state.

        There, the model alone is not enough (`verdict.recorded`). Empty elsewhere.
        """
        problem = self.problem
        if not problem.varying or self.departures is None:
            return ()
        whole = None if problem.counts.one_step else self.estimates
        share = self.delta if self.share is None else self.share
        return tuple(
            direct_limits(self.departures, self.cross_fitted, whole, problem.n_episodes, share)
        )

    @property
    def sure(self) -> float:
        """What the new policy gains at level 1 − δ: by the model, and by what needs none where the
        model is not trusted."""
        return min([self.lower, *(one.lower for one in self.direct)])

    @property
    def binding(self) -> ModelFreeGain | None:
        """The model-free estimate whose limit is the sure gain; None if the model's is lower."""
        return next((one for one in self.direct if one.lower == self.sure), None)

    @cached_property
    def chance(self) -> Chance:
        """What Σ z² of the states that change would be if all actions were alike.

        They are as many as change of all that were considered, and may be those with the largest
        z². A state has one degree of freedom per action that was taken there, but one.
        """
        freedom = np.maximum(np.count_nonzero(self.problem.decisions, axis=1) - 1, 0)
        possible = self.changed if self.considered is None else self.considered | self.changed
        moved = int((self.changed & (freedom > 0)).sum())
        return chance_of_largest(freedom[possible & (freedom > 0)], moved, self.delta / 2)

    @cached_property
    def crossed(self) -> float | None:
        """z of what each half of the episodes teaches, in the other half; None if not known."""
        return None if self.algorithm is None else crossed(self.algorithm, self.problem)

    @property
    def asks_season(self) -> bool:
        """Whether time could pass for a difference between actions."""
        return self.problem.log is not None and not (self.certified and self.problem.varying)

    @property
    def untimed(self) -> bool:
        """Whether time could matter, and the time order of the episodes is unknown."""
        log = self.problem.log
        return log is not None and log.untimed and self.asks_season

    @property
    def asks_memory(self) -> bool:
        """Whether some step has another before it."""
        log = self.problem.log
        return log is not None and len(log) > log.n_episodes

    @cached_property
    def season(self) -> Season | None:
        """Whether time can pass for a difference between actions.

        None where only counts were kept, where the order of time is not known, and for tests that
        know the probability of every single decision.
        """
        log = self.problem.log
        if log is None or not self.asks_season or self.untimed:
            return None
        return season_check(log, np.random.default_rng(0))

    @cached_property
    def memory(self) -> Memory | None:
        """Whether the past matters beyond the state; None where no step has another before it."""
        log = self.problem.log
        if log is None or not self.asks_memory:
            return None
        delta = None if self.certified else self.delta  # tests rest on no model
        return memory_of(log, self.problem, self.policy, delta)

    @cached_property
    def changed(self) -> np.ndarray:
        """bool [S]: the state's row differs from the baseline's."""
        return changed_states(self.policy.probs, self.problem.baseline.probs)

    @cached_property
    def tried(self) -> np.ndarray:
        """The visits that each change rests on (`visits_behind`)."""
        return visits_behind(self.policy.probs, self.problem)

    @cached_property
    def telling_rewards(self) -> float:
        """How many rewards carry the difference to a constant one."""
        return telling_rewards(self.problem.counts)

    @property
    def gain(self) -> DrawnValue:
        """ρ(π) − ρ(π_b) in the drawn models."""
        return DrawnValue.of(self.posterior.gains, self.posterior.level)

    @property
    def new(self) -> DrawnValue:
        """ρ(π) in the drawn models."""
        return DrawnValue.of(self.posterior.new, self.posterior.level)

    @property
    def current(self) -> DrawnValue:
        """ρ(π_b) in the drawn models."""
        return DrawnValue.of(self.posterior.current, self.posterior.level)


def visits_behind(probs: np.ndarray, problem: Problem) -> np.ndarray:
    """Visits, in each state that a policy [S, A] changes, of all actions that gain probability
    there or of all that lose it, whichever were taken less.

    An action that is split into two with the same outcomes counts as before.
    """
    changed = changed_states(probs, problem.baseline.probs)
    moved, visits = (probs - problem.baseline.probs)[changed], problem.counts.pairs[changed]
    more, less = ((visits * (sign * moved > MOVED)).sum(axis=1) for sign in (1, -1))
    return np.asarray(np.minimum(more, less))


def gather(
    problem: Problem,
    policy: Policy,
    *,
    delta: float = DELTA,
    seed: int = 0,
    held_out: Log | None = None,
    bounds: Sequence[str] = ("student-t",),
    posterior: Posterior | None = None,
    limits: tuple[float, float] | None = None,
) -> Evidence:
    """Ask the log everything about a policy; all draws come from the seed.

    A `posterior` that is known already, of as many models from that seed, is not drawn again.
    `limits` of every return were declared; without them it is the problem's v_max, if given.
    """
    if not problem.counts.n.sum():
        raise InputError(
            "no row of the log has a known successor or an end, so nothing can be learned from "
            "it: give next_state or terminated, or the rows that follow in each episode"
        )
    rng = np.random.default_rng(seed)
    posterior = posterior or posterior_improvement(
        problem.counts, policy, problem.baseline, problem.discount,
        rng=np.random.default_rng(seed), draws=n_draws(problem, delta),
    )  # fmt: skip
    ask = partial(_off_policy, problem, policy, delta=delta, rng=rng, bounds=bounds, limits=limits)
    estimates, refusal = _estimates(problem.log, ask)
    fair, unfair = (None, None) if held_out is None else _estimates(held_out, ask)
    if fair is not None and fair.refuted:
        unfair = fair.refuted
    usable = problem.log is not None and not (problem.contradictions or problem.misreported)
    earned, single = _episodes(problem, policy, usable)
    if problem.log is not None and not usable:
        refusal = "the log contradicts the current policy"
    lower = float(sure_gain(posterior.gains, delta))
    return Evidence(
        problem,
        policy,
        delta,
        posterior,
        lower,
        shared=False,
        earned=earned,
        departures=single,
        estimates=estimates,
        no_estimates=refusal,
        held_out=fair,
        no_held_out=unfair,
        ends_assumed=problem.log is not None and problem.log.ends_assumed,
    )  # fmt: skip


def gather_for(
    result: Improvement,
    *,
    delta: float | None = None,
    seed: int = 0,
    held_out: Log | None = None,
    bounds: Sequence[str] = ("student-t",),
) -> Evidence:
    """The same for an improvement; a policy that the log chose has the quantile that it chose by.

    Without `delta` it is the algorithm's own where that is the level of its answer, else 0.05. A
    policy that was chosen at one level cannot be judged at another.
    """
    own = getattr(result.algorithm, "delta", DELTA)
    delta = None if delta is None else checks.delta(delta)
    if result.sweep and delta is not None and delta != own:
        raise InputError(
            f"delta is {delta:g}, and {own:g} as an option of "
            f"{result.algorithm.name}, which chose the policy at that level: give it once"
        )
    if delta is None and result.algorithm.answers_at_delta:
        delta = own
    delta = DELTA if delta is None else delta
    by_tests = result.tested() is not None
    level = DELTA if by_tests else delta  # tests draw no models
    found = gather(
        result.problem, result.policy, delta=delta, seed=seed, held_out=held_out, bounds=bounds,
        posterior=result.posterior(draws=n_draws(result.problem, level), seed=seed),
        limits=result.estimate_limits,
    )  # fmt: skip
    searched = bool(result.sweep) or by_tests
    found = replace(
        found, considered=result.considered, searched=searched, algorithm=result.algorithm
    )
    if by_tests:
        return replace(found, certified=True)
    if (chosen := result.chosen) is None:
        return found
    return replace(found, lower=chosen.lower, shared=True, share=chosen.level)


def whole_episodes(result: Improvement, delta: float) -> OffPolicyReport | None:
    """The estimates on its own log that `gather_for` an improvement has, and nothing else."""
    ask = partial(
        _off_policy, result.problem, result.policy, delta=delta, rng=np.random.default_rng(0),
        bounds=("student-t",), limits=result.estimate_limits,
    )  # fmt: skip
    return _estimates(result.problem.log, ask)[0]


def n_draws(problem: Problem, delta: float) -> int:
    """Models to draw: fewer where each takes long, more where delta is small."""
    return draws_for(delta, DRAWS if len(problem.states) <= INVERTED_UP_TO else LARGE_DRAWS)


def _episodes(
    problem: Problem, policy: Policy, usable: bool
) -> tuple[LoggedReturn | None, Departures | None]:
    """What the log earned, and what single departures in it gained if the baseline made it.

    What follows the cut of an episode is worth what the policy that acted earns in the model.
    """
    log, discount, pairs = problem.log, problem.discount, problem.counts.pairs
    if log is None:
        return None, None
    acted = pairs.sum(axis=1) > 0
    rows = problem.baseline.probs if usable else pairs / np.maximum(pairs.sum(axis=1), 1)[:, None]
    q, v = values_where_seen(problem.counts, rows, discount)
    typical = v[acted].mean() if acted.any() else 0.0
    q, v = np.where(acted[:, None], q, typical), np.where(acted, v, typical)
    whole = completed_returns(log, v, discount)[log.episode_starts[:-1]]
    ended = log.terminated[log.last_rows]
    mean = monte_carlo_value(log, discount)
    earned = LoggedReturn(
        mean.value, mean.standard_error, log.n_episodes, int((~ended).sum()), float(whole.mean()),
        standard_error(whole),
    )  # fmt: skip
    if not usable:
        return earned, None
    return earned, single_departures(log, policy.probs, problem.baseline.probs, q, discount)


def _estimates(
    log: Log | None, ask: Callable[[Log], OffPolicyReport]
) -> tuple[OffPolicyReport | None, str | None]:
    """Off-policy estimates of the new policy, or why there are none: a result, not an error."""
    if log is None:
        return None, "only counts of the log were kept, and the estimators need its episodes"
    try:
        return ask(log), None
    except InputError as error:
        return None, str(error)


def _off_policy(
    problem: Problem, policy: Policy, log: Log, *, delta: float, rng: np.random.Generator,
    bounds: Sequence[str], limits: tuple[float, float] | None,
) -> OffPolicyReport:  # fmt: skip
    """Estimates of a policy on a log, doubly robust ones with the training log's model."""
    if limits is None and problem.v_max_given:  # a log proves no limit
        limits = -problem.v_max, problem.v_max
    lowest, highest = limits or (None, math.inf)
    return off_policy_estimates(
        log, policy, None if log.action_prob is not None else problem.baseline,
        problem.discount, delta=delta, lowest_return=lowest, highest_return=highest,
        model=typical_model(problem.counts, problem.discount), rng=rng,
        bounds=[b for b in bounds if b != "bca" or log.n_episodes <= RESAMPLED_UP_TO],
    )  # fmt: skip
