"""The criteria about what came before: change over time, and what states do not remember."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spibb.sceptic.drift import CYCLES, Season
from spibb.sceptic.exchange import SUSPICIOUS
from spibb.verdict.criterion import Condition, Criterion, lacking
from spibb.verdict.evidence import Evidence
from spibb.verdict.memory import Memory
from spibb.verdict.remedies import CLOCK, CYCLE, LOOKED_AT, RECENT, REMEMBER
from spibb.words import surely

UNTIMED = (
    "the time order of the episodes is unknown: use steps that are times, or whole numbers as "
    "episode_id"
)
SEASON = "whether change over time can look like a difference between actions (p-value)"
MEMORY = (
    "whether the previous step, or the number of steps so far, predicts the next, given state and "
    "action (p-value)"
)


def of_the_past(evidence: Evidence, found: Sequence[Criterion]) -> Iterator[Criterion]:
    """The last conditions: permutations take time, and are made only where they can decide."""
    if (failed := lacking(found)) and not evidence.certified:
        yield from untested(evidence, f"another criterion is not met ({failed[0].name})")
        return
    if evidence.untimed:
        yield _not_tested(Condition.SEASON, SEASON, UNTIMED)
    elif evidence.season is not None:
        yield _season(evidence.season)
    if evidence.memory is not None:
        yield _memory(evidence.memory, evidence.certified)


def untested(evidence: Evidence, reason: str) -> Iterator[Criterion]:
    """The last conditions where they were not asked."""
    for name, what, asked in (
        (Condition.SEASON, SEASON, evidence.asks_season),
        (Condition.MEMORY, MEMORY, evidence.asks_memory),
    ):
        if asked:
            yield _not_tested(name, what, reason)


def _not_tested(name: Condition, what: str, reason: str) -> Criterion:
    found = f"not tested, because {reason}"
    return Criterion(name, what, found, f"at least {SUSPICIOUS:g}", None)


def _memory(found: Memory, certified: bool) -> Criterion:
    """A certificate assumes Markov states; a drawn model can be given the memory that it lacks."""
    p, lower = found.p_value, None if certified else found.lower
    wanted, said = f"at least {SUSPICIOUS:g}", ""
    if not certified:
        wanted += ", or a gain above 0 in models that remember it"
        said = "" if lower is None else f"; gain in models that remember it: {surely(lower)}"
    if found.confounded:
        said = f"; whether it predicts the decision, given the state: {found.decisions_p:.2g}"
    return Criterion(
        Condition.MEMORY, MEMORY, f"{p:.2g}{said}", wanted,
        not found.found or (lower is not None and lower > 0), _remembered(found, lower),
        LOOKED_AT if found.confounded else CLOCK if found.timed else REMEMBER,
    )  # fmt: skip


def _remembered(found: Memory, lower: float | None) -> str:
    p = f"p = {found.p_value:.2g}"
    if found.confounded:
        return (
            "What happened before predicts both the decisions and what follows them, given the "
            f"state ({p}): the current policy seems to act on something that the states leave out, "
            "and an action that it takes in good cases looks good."
        )
    judged = "" if lower is None else ", and in models that remember it the new policy may lose"
    return (
        f"The log contradicts the assumption that states are Markov: {found.remembered} predicts "
        f"what happens next ({p}){judged}."
    )


def _season(found: Season) -> Criterion:
    who = "Early and late episodes differ"
    if found.length == 1:
        who = "Episodes resemble those shortly before them more than by chance,"
    elif found.length in CYCLES:
        who = f"Groups of {found.length} consecutive episodes differ more than by chance,"
    return Criterion(
        Condition.SEASON, SEASON, f"{found.p_value:.2g}", f"at least {SUSPICIOUS:g}",
        found.p_value >= SUSPICIOUS,
        f"{who} both in how often actions are taken and in what follows them (p = "
        f"{found.p_value:.2g}): an action that was taken more often in good times looks good.",
        CYCLE if found.length in (1, *CYCLES) else RECENT,
    )  # fmt: skip
