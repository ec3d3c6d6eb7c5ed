"""What would help where a log supports nothing, in a sentence each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spibb.algorithms.auto.algorithm import JUDGED_FROM
from spibb.algorithms.candidate import Candidate, surest
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Problem
from spibb.verdict.evidence import Evidence, LoggedReturn, visits_behind
from spibb.words import roughly

EPISODES = (
    "A part of the log small enough to keep its episodes (spibb split), or the certified "
    "algorithm, which reads them all."
)
REMEMBER = (
    "States that contain what matters from the past: add a column to --state, such as what was "
    "done before, or the step if time matters."
)
CLOCK = (
    "States that contain the number of the step, or how many steps are left: add the column to "
    "--state; if only the records stop there and the process goes on, mark their last rows as "
    "truncated."
)
LOOKED_AT = "States that contain what the current policy looks at: add those columns to --state."
DEPENDS = (
    "States that contain what the recorded probabilities depend on: add those columns to --state"
)
"""What helps for good where they vary within a state."""
BY_RECORD = "the certified algorithm, which divides by the probability that each row records"
RECENT = "Only the recent part of the log, or states that contain the season."
CYCLE = (
    "States that contain what changes (the weekday, the shift); or, if a user has several "
    "consecutive rows, only one of them (--unit)."
)
ANOTHER = "another threshold: n_wedge = auto looks for one"
FEWER = "fewer changes: a larger N∧"
FEWEST_VISITS = 60
"""An event in 5 % of the cases stays away from 60 visits with a probability of 5 %."""
UNTOLD = (
    "More episodes in which the current policy takes several actions in the same states; this log "
    "does not tell how many."
)
HOPELESS = 100
"""A forecast of more times the log says only that these differences cannot be told from none."""


@dataclass(frozen=True)
class WhyUnchanged:
    """Why an algorithm left the policy as it is, and what would change that."""

    reason: str = "there is too little evidence for any change"
    remedy: str = UNTOLD

    @classmethod
    def of(cls, result: Improvement) -> WhyUnchanged:
        """The reason that the algorithm gives, if it gives one; the remedy that fits the log."""
        found, pairs = cls._said(result), result.problem.counts.pairs
        if not (np.count_nonzero(pairs, axis=1) > 1).any() and not _may_vary(result.problem):
            return cls(result.reason or NO_CHOICE, VARIATION)
        if few_visits(pairs):
            return replace(found, remedy=f"{COARSER} {found.remedy}")
        return found

    @classmethod
    def _said(cls, result: Improvement) -> WhyUnchanged:
        """What the algorithm itself says."""
        reason, n = result.reason or NO_REASON.reason, result.problem.n_episodes
        tested = result.tested()
        if tested is not None and (more := tested.more_episodes) is not None:
            return cls(reason, more_episodes(more, n))
        best = surest([c for c in result.sweep if c.states_changed])
        if best is None:
            return cls(reason)
        return cls(reason, more_episodes(_until(result, best), n, about="At least about"))


def _may_vary(problem: Problem) -> bool:
    """Whether more episodes may show other actions: the baseline plays some where the log has been,
    or, if it is not known, the log is too short to say that the policy never varies."""
    if problem.baseline_estimated:
        return problem.n_episodes < JUDGED_FROM
    visited = problem.counts.pairs.any(axis=1)
    return bool((np.count_nonzero(problem.baseline.probs[visited], axis=1) > 1).any())


def _until(result: Improvement, candidate: Candidate) -> float | None:
    """How many more episodes make a candidate sure, and its changes seen often enough."""
    n = result.problem.n_episodes
    more = until_sure(n, candidate.gain, candidate.lower)
    visits = visits_behind(result.rows_of(candidate), result.problem)
    return None if more is None else max(more, until_shown(n, int(visits.sum())))


NO_REASON = WhyUnchanged()
STATES = "other states: the present ones leave out something that matters."
NO_CHOICE = "the log has only one action in each state, and nothing to compare it with"
VARIATION = (
    "Some variation: episodes in which other actions are tried as well. More episodes like these "
    "would not help."
)
MANY_STATES, FEW_EACH = 100, 10
COARSER = (
    "Coarser states (fewer columns, wider bins): most decisions are in rare states. Otherwise:"
)


def few_visits(pairs: np.ndarray) -> bool:
    """Whether many states share the log, so that half of the decisions were taken < 10 times."""
    seen = np.sort(pairs[pairs > 0])
    half = np.searchsorted(np.cumsum(seen), seen.sum() / 2)
    many = np.count_nonzero(pairs.sum(axis=1)) >= MANY_STATES
    return bool(many and seen[half] < FEW_EACH)


def until_sure(n: int, gain: float, lower: float) -> float | None:
    """How many more episodes bring the lower bound above 0; None where that cannot be said.

    Its distance from the gain shrinks as 1/√n. As with all forecasts here, half of such logs are
    then above the limit: with that many more, the odds are even.
    """
    if gain <= 0 or lower > 0:
        return None
    ratio = (gain - lower) / gain
    return n * (ratio * ratio - 1)


def not_by_the_model(evidence: Evidence) -> str:
    """What helps where recorded probabilities vary within a state, and speak against a policy.

    `certified` reads such a log if its episodes have one step.
    """
    least = min(evidence.direct, key=lambda one: one.lower, default=None)
    n = evidence.problem.n_episodes
    more = None if least is None else until_sure(n, least.gain, least.lower)
    parts = [DEPENDS]
    if evidence.problem.counts.one_step:
        parts.append(BY_RECORD)
    if more is not None and more <= HOPELESS * n:
        parts.append(f"about {roughly(more)} more episodes, if they are like these")
    return f"{'; or '.join(parts)}."


def until_confirmed(n: int, gain: float, error: float, z: float) -> float | None:
    """How many more episodes bring a mean z standard errors above 0."""
    return n * ((z * error / gain) ** 2 - 1) if gain > 0 else None


def until_shown(n: int, visits: int) -> float:
    """How many more episodes bring changes with this many visits to the fewest that count."""
    return n * (FEWEST_VISITS / max(visits, 1) - 1)


def until_enough(n: int, seen: float, fewest: float) -> float | None:
    """How many more episodes show `fewest` of what n episodes show `seen` times, if ever."""
    return n * (fewest / seen - 1) if seen > 0 else None


def until_beyond_chance(n: int, surprise: float, mean: float, limit: float) -> float | None:
    """How many more episodes bring Σ z² above its limit; None where it is what chance gives.

    What exceeds its mean under chance grows with n.
    """
    beyond = surprise - mean
    return n * ((limit - mean) / beyond - 1) if beyond > 0 else None


def until_crossed(
    n: int, found: tuple[float, float], limit: float, other: float | None
) -> float | None:
    """How many more episodes bring z of the halves above its limit, or another test beyond its own.

    `found` are z of the halves, and z of the present policy in as many new episodes as the log has.
    Half a log teaches less than a whole one, so that z of the halves grows faster than √n at first:
    with twice the log, each half teaches what the log does now, and that is tested on as many
    episodes. Between, the line is taken; beyond, z grows with √n.
    """
    z, twice = max(found[0], 0.0), found[1]
    if twice <= z:
        return other
    if twice < limit:
        more = n * (2 * (limit / twice) ** 2 - 1)
    else:
        more = n * (limit - z) / (twice - z)
    return more if other is None else min(more, other)


def more_episodes(more: float | None, n: int, otherwise: str = "", *, about: str = "About") -> str:
    """The remedy of a number of episodes beside n, if it is known and not absurd, or another."""
    if more is not None and more <= HOPELESS * n:
        one = roughly(more) == "1"
        return f"{about} {roughly(more)} more episode{'' if one else 's'}, if they are like these."
    if more is None:
        return f"{UNTOLD.removesuffix('.')}. Or {otherwise}." if otherwise else UNTOLD
    many = f"More than {HOPELESS} times as many episodes (over {roughly(HOPELESS * n)})"
    return f"{many}, or {otherwise}." if otherwise else f"{many}."


def other_states(evidence: Evidence, earned: LoggedReturn) -> str:
    """What helps where the model misses what the log earned."""
    first = _before_states(evidence, earned)
    return f"First, {first}. Then try {STATES}" if first else STATES[0].upper() + STATES[1:]


def _before_states(evidence: Evidence, earned: LoggedReturn) -> str:
    """What to look at before that, where ends may be wrong."""
    log = evidence.problem.log
    if log is not None and log.hides_time:
        length = int(log.episode_starts[1])
        return (
            "make the step a part of the state (add it to --state): all episodes have "
            f"{length:,} steps, and what can still be gained depends on how many are left; or, if "
            "only the record stops there, mark last rows as truncated"
        )
    if evidence.ends_assumed:
        return (
            "add columns terminated and truncated: without them every last row counts as an "
            "end, and the model is wrong if some episodes went on"
        )
    if 2 * earned.cut > earned.episodes:
        return (
            f"record longer episodes, or mark real ends as terminated: {earned.cut:,} of "
            f"{earned.episodes:,} episodes were cut short"
        )
    return ""
