"""What "supported" takes: each criterion with what was found, what was wanted, and what helps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from scipy.special import ndtri

from spibb.algorithms.auto.algorithm import ESTIMATOR, FEWEST_REWARDS, JUDGED_FROM
from spibb.arrays import rounding_of
from spibb.behaviour import Provenance
from spibb.bounds.normal import ONE_SIDED_95, TWO_SIDED_95
from spibb.evaluate import standard_error
from spibb.ope import FEW_EPISODES, OffPolicyReport
from spibb.verdict.criterion import OF_CHANGES, Condition, Criterion, lacking
from spibb.verdict.evidence import OBSERVED, Evidence
from spibb.verdict.past import of_the_past, untested
from spibb.verdict.recorded import says_nothing
from spibb.verdict.remedies import (
    ANOTHER,
    EPISODES,
    FEWER,
    FEWEST_VISITS,
    NO_REASON,
    WhyUnchanged,
    more_episodes,
    not_by_the_model,
    other_states,
    until_beyond_chance,
    until_confirmed,
    until_crossed,
    until_enough,
    until_shown,
    until_sure,
)
from spibb.words import at_least, at_most, counted, level, number, percent, signed, surely

FAR = 3.0
"""Standard errors by which the model may miss what the log earned."""


def criteria(evidence: Evidence, unchanged: WhyUnchanged = NO_REASON) -> tuple[Criterion, ...]:
    """All conditions, the most telling first; `unchanged` says why, where nothing changes."""
    found = tuple(_plain(criterion) for criterion in _criteria(evidence, unchanged))
    if [criterion.name for criterion in lacking(found)] == [Condition.BEYOND_CHANCE]:
        found = tuple(
            _crossed(evidence, c) if c.name == Condition.BEYOND_CHANCE else c for c in found
        )
    if evidence.changed.any():
        return (*found, *map(_plain, of_the_past(evidence, found)))
    found = tuple(
        replace(c, found="nothing changes", passed=None) if c.name in OF_CHANGES else c
        for c in found
    )
    return (*found, *untested(evidence, "nothing changes"))


def _plain(criterion: Criterion) -> Criterion:
    """A condition that holds needs no reason and no remedy."""
    return replace(criterion, why="", remedy="", more=None) if criterion.passed else criterion


NOT_BELOW = "not significantly below 0"


def _criteria(evidence: Evidence, unchanged: WhyUnchanged) -> Iterator[Criterion]:
    yield _baseline(evidence)  # no other number means anything if it does not hold
    yield _changes(evidence, unchanged)
    yield _episodes(evidence)
    yield _rewards(evidence)
    yield _sure_gain(evidence)
    yield _model(evidence)
    yield _departures(evidence)
    yield _beyond_chance(evidence)
    yield _effective(evidence)
    yield _visits(evidence)
    yield _weighted(evidence)
    if evidence.held_out is not None:
        yield _held_out(evidence, evidence.held_out)


def _changes(evidence: Evidence, unchanged: WhyUnchanged) -> Criterion:
    n, of = int(evidence.changed.sum()), len(evidence.changed)
    return Criterion(
        Condition.CHANGES, "states that change", f"{n:,} of {of:,}", "at least one", n > 0,
        f"No state changes: {unchanged.reason}.", unchanged.remedy,
    )  # fmt: skip


FOUND = {
    Provenance.GIVEN: "as given",
    Provenance.RECORDED: "taken from action_prob",
    Provenance.ESTIMATED: "estimated from how often the log takes each action",
}


def _baseline(evidence: Evidence) -> Criterion:
    problem = evidence.problem
    wrong = problem.misreported
    if wrong is None and evidence.no_held_out is not None:
        wrong = f"of the held-out episodes, {evidence.no_held_out}"
    if problem.contradictions:
        wrong = (
            f"in {problem.contradictions:,} of {int(problem.decisions.sum()):,} decisions it takes "
            "an action that the current policy never takes"
        )
    found = FOUND[problem.baseline_source]
    return Criterion(
        Condition.BASELINE, "the current policy made the log", wrong or found, "no contradiction",
        wrong is None, f"The log contradicts the current policy: {wrong}.",
        "Set the baseline to the policy that made the log.",
    )  # fmt: skip


def _episodes(evidence: Evidence) -> Criterion:
    n = evidence.problem.n_episodes
    return Criterion(
        Condition.EPISODES, "episodes", f"{n:,}", f"at least {JUDGED_FROM}", n >= JUDGED_FROM,
        f"{counted(n, 'episode')} {'is' if n == 1 else 'are'} too few to judge.",
        f"{counted(JUDGED_FROM - n, 'more episode')}, at least.",
    )  # fmt: skip


def _rewards(evidence: Evidence) -> Criterion:
    n, episodes = evidence.telling_rewards, evidence.problem.n_episodes
    more = until_enough(episodes, n, FEWEST_REWARDS)
    none = f"Episodes with at least {FEWEST_REWARDS} rewards that differ from the usual one."
    return Criterion(
        Condition.REWARDS, "rewards that differ from the usual one (effective number)",
        number(round(n, 1)), f"at least {FEWEST_REWARDS}", n >= FEWEST_REWARDS,
        f"In effect, only {number(round(n, 1))} rewards differ from the usual one: too few to "
        "tell actions apart.",
        none if more is None else more_episodes(more, episodes), more,
    )  # fmt: skip


def _sure_gain(evidence: Evidence) -> Criterion:
    at, sure = level(evidence.delta), evidence.sure
    worst = f"may lose up to {at_most(-sure)}" if sure < 0 else "may not gain anything"
    why = f"At level {at} the new policy {worst} per episode{_not_by_the_model(evidence)}."
    if sure > 0:
        why = "According to the model, the new policy loses on average."
    more = until_sure(evidence.problem.n_episodes, evidence.posterior.gain, sure)
    remedy = more_episodes(more, evidence.problem.n_episodes, "" if evidence.searched else ANOTHER)
    if evidence.binding is not None:
        more, remedy = None, not_by_the_model(evidence)
    return Criterion(
        Condition.SURE_GAIN, f"gain per episode at level {at}",
        f"{surely(sure)}{by_record(evidence)}", "above 0",
        sure > 0 and evidence.posterior.gain > 0, why, remedy, more,
    )  # fmt: skip


VARYING = "the recorded probabilities vary within a state"


def by_record(evidence: Evidence) -> str:
    """From where a sure gain is, if not from the model."""
    if (found := evidence.binding) is None:
        return ""
    return f" ({found.what}, by the recorded probabilities; model: {surely(evidence.lower)})"


def _not_by_the_model(evidence: Evidence) -> str:
    if (found := evidence.binding) is None:
        return ""
    return (
        f", by the recorded probabilities ({found.what}). The model's limit, "
        f"{surely(evidence.lower)}, is not trusted: {VARYING}, so the current policy looked "
        "at more than the state, and an action that it takes in good cases looks good"
    )


def _model(evidence: Evidence) -> Criterion:
    what = "the model's value of the current policy"
    earned = evidence.earned
    if earned is None or evidence.departures is None:  # the log may be another policy's
        return _untold(evidence, Condition.MODEL, what, f"the {OBSERVED}")
    said, spread = evidence.current.mean, float(evidence.posterior.current.std())
    limit = FAR * math.hypot(earned.completed_error, spread)
    truth = f"{number(earned.completed)} ± {number(TWO_SIDED_95 * earned.completed_error)}"
    if earned.cut:
        truth += " (cut episodes completed by the model)"
    return Criterion(
        Condition.MODEL, what, f"{number(said)}; {OBSERVED}: {truth}", f"the {OBSERVED}",
        abs(said - earned.completed) <= limit + rounding_of(said, earned.completed),
        f"According to the model, the current policy earns {number(said)} per episode, but the "
        f"{OBSERVED} is {truth}: do not rely on the model's gain.",
        other_states(evidence, earned),
    )  # fmt: skip


def _departures(evidence: Evidence) -> Criterion:
    what = f"gain of the changes, one at a time, in the log's episodes (± {percent(0.95)})"
    found = evidence.departures
    if found is None:
        return _untold(evidence, Condition.SINGLE_CHANGES, what, NOT_BELOW)
    text = f"{signed(found.gain)} ± {number(TWO_SIDED_95 * found.standard_error)}"
    unlike, varying = weak(evidence), evidence.problem.varying
    alone = unlike or varying
    reason = ", and whole episodes are too unlike those of the new policy to help" * unlike
    if varying:
        reason = f" by the recorded probabilities, and no model is trusted: {VARYING}"
    passed = (
        found.gain > ONE_SIDED_95 * found.standard_error
        if alone
        else found.gain + TWO_SIDED_95 * found.standard_error >= 0
    )
    n = evidence.problem.n_episodes
    more = until_confirmed(n, found.gain, found.standard_error, ONE_SIDED_95) if alone else None
    do_not = "are too noisy to confirm" if found.gain > 0 else "do not confirm"
    remedy = more_episodes(more, n, "" if evidence.searched else FEWER)
    return Criterion(
        Condition.SINGLE_CHANGES, what, text,
        "significantly above 0" if alone else NOT_BELOW, passed,
        f"The log's episodes {do_not} the changes: made one at a time, they gain {text} per "
        f"episode{reason}.",
        not_by_the_model(evidence) if varying else remedy, None if varying else more,
    )  # fmt: skip


def _beyond_chance(evidence: Evidence) -> Criterion:
    what = (
        "differences between actions where the policy changes, in the log's episodes (squared, in "
        "standard errors, added up)"
    )
    found = evidence.departures
    if found is None:
        return _untold(evidence, Condition.BEYOND_CHANCE, what, "more than chance")
    if not found.freedom:
        return Criterion(
            Condition.BEYOND_CHANCE, what, "none: the log has one action there",
            "more than chance", False,
            "Where the policy changes, the log has only one action and nothing to compare it "
            "with.", "Episodes in which the current policy takes other actions there.",
        )  # fmt: skip
    mean, limit = evidence.chance
    more = until_beyond_chance(evidence.problem.n_episodes, found.surprise, mean, limit)
    return Criterion(
        Condition.BEYOND_CHANCE, what, f"{found.surprise:,.1f}",
        f"above {limit:,.1f}, the limit of chance at level {level(evidence.delta / 2)}",
        found.surprise > limit,
        "The gain may be luck: if all actions were equally good, a policy chosen from such a log "
        "would often look as good. Where the policy changes, the actions differ by "
        f"{found.surprise:,.1f} (squared, in standard errors, added up), and luck alone gives up "
        f"to {limit:,.1f} at level {level(evidence.delta / 2)}.",
        more_episodes(more, evidence.problem.n_episodes), more,
    )  # fmt: skip


def _crossed(evidence: Evidence, chance: Criterion) -> Criterion:
    """The same question, asked of episodes that did not choose; δ is shared between both."""
    departures = evidence.departures
    z = evidence.crossed if departures is not None and departures.freedom > 0 else None
    if departures is None or z is None:
        return chance
    limit = float(-ndtri(evidence.delta / 2))
    found = f"{chance.found}; trained on half of the episodes, tested on the others: {z:.2f}"
    wanted = f"{chance.wanted}; or above {limit:.2f} standard errors"
    if z > limit:
        return _plain(replace(chance, found=found, wanted=wanted, passed=True))
    why = (
        f"{chance.why} Changes learned from one half of the episodes do not gain enough in the "
        f"other half either: {z:.1f} standard errors, where {limit:.1f} are needed."
    )
    n = evidence.problem.n_episodes
    error = departures.standard_error
    twice = evidence.posterior.gain / error if error > 0 else 0.0
    more = until_crossed(n, (z, twice), limit, chance.more)
    return replace(chance, found=found, wanted=wanted, why=why, more=more,
                   remedy=more_episodes(more, n))  # fmt: skip


def _effective(evidence: Evidence) -> Criterion:
    what = "effective number of episodes behind the changes"
    found = evidence.departures
    if found is None:
        return _untold(evidence, Condition.EFFECTIVE_SIZE, what, f"at least {FEW_EPISODES}")
    n, episodes = found.effective_episodes, evidence.problem.n_episodes
    more = until_enough(episodes, n, FEW_EPISODES)
    none = "Episodes in which the current policy does what the new one would."
    return Criterion(
        Condition.EFFECTIVE_SIZE, what, f"{n:,.1f}", f"at least {FEW_EPISODES}", n >= FEW_EPISODES,
        f"In effect, the changes rest on {n:,.1f} episodes.",
        none if more is None else more_episodes(more, episodes), more,
    )  # fmt: skip


def _visits(evidence: Evidence) -> Criterion:
    """What is rare and decides does not show in a few visits, of all changes together."""
    n = int(evidence.tried.sum())
    more = until_shown(evidence.problem.n_episodes, n)
    return Criterion(
        Condition.VISITS,
        "visits to the actions that become more frequent in a state, or to those that "
        "become less frequent, whichever are fewer; of all changed states", f"{n:,}",
        f"at least {FEWEST_VISITS}",
        n >= FEWEST_VISITS,
        f"The changes rest on {n:,} visits (in each state to the actions that become more "
        "frequent, or to those that become less frequent, whichever are fewer): a rare but "
        "decisive event may have gone unseen.",
        more_episodes(more, evidence.problem.n_episodes), more,
    )  # fmt: skip


def weak(evidence: Evidence) -> bool:
    """Whether whole episodes, weighted, are inconclusive."""
    return says_nothing(evidence.estimates)


def _weighted(evidence: Evidence) -> Criterion:
    what = f"gain in whole episodes, reweighted (± {percent(0.95)}; same log, so optimistic)"
    if evidence.estimates is None or weak(evidence):
        report = evidence.estimates
        why = _unknown(evidence) if report is None else report.warning_about(ESTIMATOR)
        size = math.nan if report is None else report.effective_sample_size
        why = why or f"rests on {size:,.1f} episodes: no evidence"
        return Criterion(Condition.WHOLE_EPISODES, what, why, "no contradiction", None)
    return _against(
        evidence, evidence.estimates, Condition.WHOLE_EPISODES, what, "The log's episodes"
    )


def surely_worse(report: OffPolicyReport | None) -> bool:
    """Whether whole episodes, weighted, say that the new policy loses."""
    if report is None or says_nothing(report):
        return False
    found = report.difference(ESTIMATOR).estimate
    most = found.value + TWO_SIDED_95 * standard_error(found.contributions)
    return most < -rounding_of(report.earned)


def _held_out(evidence: Evidence, report: OffPolicyReport) -> Criterion:
    what = f"gain in held-out episodes, reweighted (± {percent(0.95)})"
    if warning := report.warning_about(ESTIMATOR):
        return Criterion(Condition.HELD_OUT, what, warning, "no contradiction", None)
    return _against(evidence, report, Condition.HELD_OUT, what, "The held-out episodes")


def _against(
    evidence: Evidence, report: OffPolicyReport, name: Condition, what: str, who: str
) -> Criterion:
    """Whether an estimate without a model ends below what is promised for sure."""
    found = report.difference(ESTIMATOR).estimate
    error, promised = TWO_SIDED_95 * standard_error(found.contributions), max(evidence.sure, 0.0)
    text = f"{signed(found.value)} ± {number(error)}"
    why = f"the model: they say {text} per episode, the model at least {surely(evidence.sure)}."
    remedy = "Use other states or make fewer changes: the model has too little evidence."
    if evidence.direct:
        why = (
            f"the gain: they say {text} per episode, the other estimates at least "
            f"{surely(evidence.sure)}. Of these, the model is not trusted: {VARYING}."
        )
        remedy = not_by_the_model(evidence)
    passed = found.value + error >= promised - rounding_of(report.earned)
    return Criterion(
        name, what, text, f"not significantly below {at_least(promised)}", passed,
        f"{who}, reweighted, contradict {why}", remedy,
    )  # fmt: skip


def _unknown(evidence: Evidence) -> str:
    return f"not known: {evidence.no_estimates}"


def _untold(evidence: Evidence, name: Condition, what: str, wanted: str) -> Criterion:
    """A condition that needs the log's episodes, which were not kept."""
    return Criterion(
        name, what, _unknown(evidence), wanted, None,
        f"Only the model supports the changes: {evidence.no_estimates}.", EPISODES,
    )  # fmt: skip
