"""The sentences of a verdict: what was found, what it assumes, and what would raise the grade."""

from __future__ import annotations

import numpy as np

from spibb.algorithms.certified import Certified, CertifiedImprovement
from spibb.assurance.posterior import ASSUMES
from spibb.bounds.chance import RULE_OF_THREE
from spibb.change_certificate import ChangeCertificate
from spibb.errors import InputError
from spibb.log import Log
from spibb.verdict.criteria import VARYING, surely_worse
from spibb.verdict.criterion import Condition, Criterion
from spibb.verdict.evidence import Evidence, whole_episodes
from spibb.words import at_least, at_most, counted, level, listed, number, percent, roughly, short

CERTIFIED = "The certified algorithm"
LIMITS = (
    "after you declare limits that every return stays within, whatever happens (v_max, or "
    "lowest_reward and highest_reward): a log cannot prove such limits"
)
TRIED_UP_TO = 100_000
"""Logs with up to this many rows are also given to `certified`."""

CONSTANT = 5
"""Rewards whose mean is this many standard deviations from 0 share a constant."""

FEW_VISITS = 100
"""After fewer visits an event of three in a hundred may not have shown."""

OVERSTATED_BELOW = 100
"""Policies supported by fewer episodes often gain less than stated (docs/choosing.md)."""

REMEMBERING = (
    "the state and {} contain all that matters from the past (states alone do not: this log "
    "contradicts that they are Markov), and episodes are independent"
)
"""What takes the place of Markov states in models that remember something."""


def certified(certificate: ChangeCertificate) -> str:
    """Which changes passed, and what they gain."""
    accepted = certificate.accepted
    least, most = (f(test.lower_bound for test in accepted) for f in (min, max))
    each = "The change" if len(accepted) == 1 else "Each change"
    best = "" if least == most else f", and the best at least {at_least(most)}"
    states = counted(sum(len(test.changes) for test in accepted), "state")
    passed, one = f"the one change tested ({states}) passed", "it"
    if len(certificate.tests) > 1:
        passed = f"{len(accepted):,} of {len(certificate.tests):,} changes ({states}) passed tests"
        one = "them"
    return (
        f"At level {level(certificate.delta)} the new policy is no worse: {passed} on "
        f"{certificate.judging:,} episodes that were not used to choose {one}. {each} gains at "
        f"least {at_least(least)} per visit{best}."
    )


def beyond_certified(certificate: ChangeCertificate) -> str:
    """What more episodes would add to the highest grade."""
    next_one = certificate.more_episodes
    more = f"; the next change needs about {roughly(next_one)} more episodes" if next_one else ""
    return f"This is the highest grade{more}."


def supported(evidence: Evidence, found: tuple[Criterion, ...], lower: float) -> str:
    """What the policy gains at least, who says so, and how sure that is."""
    shared = ", delta shared because this log chose the policy" if evidence.shared else ""
    source = "According to the model"
    if evidence.memory is not None and evidence.memory.lower is not None:
        source = f"According to models with and without memory of {evidence.memory.remembered}"
    doubted = ""
    if evidence.binding is not None and lower == evidence.sure:
        source = f"By the log's recorded probabilities ({evidence.binding.what})"
        doubted = (
            f" The model says at least {at_least(evidence.lower)}, and is not trusted: {VARYING}."
        )
    return (
        f"{source}, the new policy gains at least {at_least(lower)} per episode "
        f"(level {level(evidence.delta)}{shared}).{_amount(evidence)}{doubted} {_agreement(found)}."
        f"{_undone(evidence, lower)}"
    )


def _amount(evidence: Evidence) -> str:
    """Why the amount of a gain is less sure than its sign: the best of what a log allows looks
    better than it is, and what the current policy earns at times may be missing from the log."""
    few = evidence.problem.n_episodes < OVERSTATED_BELOW
    less = "The amount is less sure than the sign"
    advice = "Rely on the sign, not on the amount" if few else less
    return (
        f" {advice}: the same log chose the policy, and may lack rewards that the current policy "
        "earns at times."
    )


def _undone(evidence: Evidence, gain: float) -> str:
    """What a log cannot show: how rare and how costly an event would undo the gain.

    At a rate of `RULE_OF_THREE`/n it may stay away from the n visits behind the changes. An episode
    has Σ_x n(x)/E · ‖π − π_b‖₁/2 changed decisions. Two returns within ±v_max differ by at most
    twice as much, so that a v_max that was declared may exclude such an event.
    """
    problem, visits = evidence.problem, int(evidence.tried.sum())
    moved = np.abs(evidence.policy.probs - problem.baseline.probs).sum(axis=1) / 2
    decisions = float(problem.decisions.sum(axis=1) @ moved) / problem.n_episodes
    if visits <= RULE_OF_THREE or not decisions:
        return ""
    rate = RULE_OF_THREE / visits
    loss = gain / (rate * decisions)
    cost = at_most(loss, 2)
    if problem.v_max_given and loss > 2 * problem.v_max:
        return (
            f" To undo this gain, an event that the log does not show, in {percent(rate)} of the "
            f"changed decisions, would have to cost {cost}; v_max = {problem.v_max:g} excludes "
            "that."
        )
    return (
        " An event that the log does not show would undo this gain if it occurs in "
        f"{percent(rate)} of the changed decisions: a loss of {cost} after an action that becomes "
        "more frequent, or a prize as large after one that becomes less frequent."
    )


def _agreement(found: tuple[Criterion, ...]) -> str:
    """Which episodes do not contradict the model, and which do not tell."""
    told = {criterion.name: criterion.passed for criterion in found}
    held = told.get(Condition.HELD_OUT, False)  # not asked where none were held out
    silent = "; held-out episodes are inconclusive" if held is None else ""
    others = ["the held-out episodes"] if held else []
    agreeing = listed(["The log's episodes", "their mean return", *others])
    return f"{agreeing} do not contradict this{silent}"


def shared_constant(log: Log | None) -> tuple[str, ...]:
    """A doubt where rewards hardly differ and episodes do in length: returns then measure length.

    A constant in all rewards adds c(1 + γ + …) to a return, so that chance in the length of
    episodes hides what decisions earn. If decisions change the length, the constant matters.
    """
    if log is None or len(np.unique(np.diff(log.episode_starts))) == 1:
        return ()
    mean, spread = float(log.reward.mean()), float(log.reward.std())
    if not 0 < spread * CONSTANT <= abs(mean):
        return ()
    low, high = (short(float(end)) for end in (log.reward.min(), log.reward.max()))
    return (
        f"all rewards are close to {number(mean)} (from {low} to {high}) and episodes differ in "
        "length, so returns mostly tell how long an episode is; if its length does not depend on "
        f"the decisions, subtract {number(mean)} from all rewards",
    )


def assumptions(evidence: Evidence, *, remembering: bool = False) -> tuple[str, ...]:
    """What a verdict by the model assumes."""
    made = "the current policy made the log"
    if evidence.problem.baseline_estimated:
        made = "the current policy takes actions as often as the log shows"
    process = ASSUMES
    if remembering and evidence.memory is not None:
        process = (REMEMBERING.format(evidence.memory.remembered), *ASSUMES[1:])
    beside = (*_recorded(evidence), *single_steps(evidence), *_unseen(evidence.tried))
    return made, *process, *beside


def _recorded(evidence: Evidence) -> tuple[str, ...]:
    """What is assumed where the log records probabilities that depend on more than the state."""
    if not evidence.problem.varying:
        return ()
    return (
        f"{VARYING}, so the model's comparison of actions there is not trusted: the sure gain is "
        "also a limit of estimates that divide by them, and they are assumed to be those with "
        "which the actions were drawn",
        "in states that do not change, the policy that acted continues, whatever it looks at; the "
        "policy file shows its average",
    )


def single_steps(evidence: Evidence) -> tuple[str, ...]:
    """What a log of single decisions cannot show: whether rows belong together."""
    problem = evidence.problem
    if problem.n_episodes < problem.decisions.sum():
        return ()
    if problem.counts.one_per:
        unit = listed(problem.counts.one_per)
        return (f"every {unit} is an independent case: one row of each counts, drawn at random, so "
                f"values are per {unit}, however many rows it has",)  # fmt: skip
    return ("every row is an independent case: if a user, patient or machine has several rows, "
            "name its column (--unit), so that only one of them counts",)  # fmt: skip


def _unseen(tried: np.ndarray) -> tuple[str, ...]:
    """What may not have shown in the states that change, by the visits of the actions concerned."""
    if not len(tried):
        return ()
    fewest, thin = int(tried.min()), int((tried < FEW_VISITS).sum())
    kinds = "the actions that become more frequent there, and to those that become less frequent"
    rests = f"every changed state rests on at least {counted(fewest, 'visit')} to {kinds}"
    if thin:
        rests = (
            f"{thin:,} of {counted(len(tried), 'changed state')} "
            f"{'rests' if thin == 1 else 'rest'} on fewer than {FEW_VISITS} visits to the actions "
            "that become more frequent there, or to those that become less frequent; the fewest "
            f"are {fewest:,}"
        )
    rare = "any event"
    if fewest > RULE_OF_THREE:
        rare = f"an event in {_up_to(RULE_OF_THREE / fewest)} of the cases"
    return (f"nothing that matters is missing from the log: {rests}, where {rare} may have gone "
            "unseen",)  # fmt: skip


def _up_to(share: float) -> str:
    text = percent(share)
    return text if text.startswith("less") else f"up to {text}"


def until_certified(evidence: Evidence) -> str:
    """What `certified` would find in the same log, where that is quickly known."""
    problem = evidence.problem
    if problem.log is None or len(problem.log) > TRIED_UP_TO:
        return f"{CERTIFIED}, which tests every change on episodes that were not used to choose it."
    if problem.varying and not problem.counts.one_step:
        return (
            f"{CERTIFIED}, once the states contain what the recorded probabilities depend on "
            "(add those columns to --state): if episodes have several steps, it needs this."
        )
    if evidence.memory is not None and evidence.memory.found:
        return (
            f"{CERTIFIED}, once the states contain {evidence.memory.lacking}: its certificate "
            f"assumes Markov states, and this log contradicts them (p = "
            f"{evidence.memory.p_value:.2g})."
        )
    try:
        return f"{CERTIFIED}: {_promise(evidence, Certified(evidence.delta).improve(problem))}."
    except InputError:
        return f"{CERTIFIED}, {LIMITS}."


def _promise(evidence: Evidence, result: CertifiedImprovement) -> str:
    """What `certified` finds in the log, and whether its certificate would be withdrawn.

    The log's baseline and seasons were found to be fine, or nothing would be supported.
    """
    tests = result.tests
    if accepted := sum(test.accepted for test in tests):
        promise = f"it accepts {counted(accepted, 'change')} from this log"
        if surely_worse(whole_episodes(result, evidence.delta)):
            return f"{promise}, but whole episodes, reweighted, contradict that they gain"
        unless = ", unless the held-out episodes contradict it"
        return promise + (unless if evidence.held_out is not None else "")
    if (more := result.tested().more_episodes) is not None:
        return f"its first change needs about {roughly(more)} more episodes"
    return "it accepts no change from this log, which does not tell how many more it needs"
