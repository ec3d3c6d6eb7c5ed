"""What a sceptic asks: hidden causes, memory, drift, overlap, and how such logs usually end."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from spibb.algorithms.improvement import Improvement
from spibb.change_certificate import ChangeTest
from spibb.log import Log
from spibb.sceptic.confounding import Confounding, confounding
from spibb.sceptic.drift import Drift, drift_check
from spibb.sceptic.exchange import SUSPICIOUS, Exchange
from spibb.sceptic.markov import markov_check
from spibb.sceptic.overlap import Overlap, overlap
from spibb.sceptic.rehearsal import Rehearsal, rehearse
from spibb.words import general


@dataclass(frozen=True, eq=False)
class Sceptic:
    """The answers; None where a question cannot be asked of this log."""

    confounding: Confounding | None
    markov: Exchange | None
    drift: Drift | None
    overlap: Overlap | None
    rehearsal: Rehearsal

    @property
    def summary(self) -> dict[str, Any]:
        """Everything in plain values, for summary.json."""
        found = {
            name: None if part is None else asdict(part)
            for name, part in (
                ("confounding", self.confounding), ("markov", self.markov), ("drift", self.drift),
                ("rehearsal", self.rehearsal),
            )
        }  # fmt: skip
        if self.overlap is not None:
            found["overlap"] = {
                "effective_episodes_by_step": [round(x, 3) for x in self.overlap.effective.tolist()]
            }
        return found

    def sentences(self) -> tuple[str, ...]:
        """The answers in words that need no statistics, in the order of the fields."""
        parts = (
            _of_confounding(self.confounding), _of_markov(self.markov), _of_drift(self.drift),
            _of_rehearsal(self.rehearsal),
        )  # fmt: skip
        return tuple(part for part in parts if part)


def doubts(result: Improvement, log: Log | None, seed: int = 0) -> Sceptic:
    """Ask everything; `log` has all episodes in their order, held-out ones included.

    Takes a few seconds, at most ten of them for rehearsals.
    """
    rng, problem = np.random.default_rng(seed), result.problem
    if log is None:
        return Sceptic(None, None, None, None, rehearse(result, rng))
    return Sceptic(
        confounding(problem, result.policy, _accepted(result)), markov_check(log, rng),
        drift_check(log, problem.discount, rng),
        overlap(log, result.policy.probs, problem.baseline.probs), rehearse(result, rng),
    )  # fmt: skip


def _accepted(result: Improvement) -> list[ChangeTest]:
    """The tests that a verdict rests on, if it rests on tests."""
    tests: tuple[ChangeTest, ...] = getattr(result, "tests", ())
    return [test for test in tests if test.accepted]


def odds(gamma: float) -> str:
    """Γ* for people."""
    return "more than 1,000" if math.isinf(gamma) else f"{gamma:.2f}"


def _of_confounding(found: Confounding | None) -> str:
    if found is None:
        return ""
    if found.gamma == 1:
        return (
            "Hidden causes: none is needed to explain the changes away; the log's own returns do "
            "not show that they help."
        )
    cause, whole = (
        "something unrecorded that changed the odds of actions by a factor of",
        (f"{odds(found.gamma)} could explain the whole advantage of the changes"),
    )
    if found.gamma_of_verdict == 1:
        return (
            "Hidden causes: none is needed, because the advantage of the changes, one at a time, "
            f"may be chance. Without chance, {cause} {whole}."
        )
    return (
        f"Hidden causes: {cause} {odds(found.gamma_of_verdict)} would leave a gain that may be "
        f"chance, so that the verdict falls; one of {whole}. The nearer to 1, the weaker the case."
    )


def _of_markov(found: Exchange | None) -> str:
    if found is None:
        return ""
    if not found.pairs:
        return "Memory: no state was reached in two ways, so this cannot be tested."
    if found.p_value < SUSPICIOUS:
        return (
            "Memory: what happened before predicts what happens next beyond the state "
            f"(p = {found.p_value:.2g}). The states lack something: add it, or do not rely on any "
            "number here that comes from the model."
        )
    return (
        "Memory: nothing shows that the past matters beyond the state "
        f"(p = {found.p_value:.2g}, {found.pairs:,} pairs of state and action compared)."
    )


def _of_drift(found: Drift | None) -> str:
    if found is None:
        return ""
    what = f"returns {general(found.early, 4)} early, {general(found.late, 4)} late"
    if found.decisions_p is None:
        what += (
            "; the recorded probabilities say how the decisions changed, so these were not compared"
        )
    if found.p_value >= SUSPICIOUS:
        return (
            f"Drift: early and late episodes do not differ significantly ({what}; p = "
            f"{found.p_value:.2g})."
        )
    which = ", ".join(
        f"{name} (p = {p:.2g})"
        for name, p in found.causes.items()
        if found.corrected(p) < SUSPICIOUS
    )
    return (
        f"Drift: early and late episodes differ in {which}; {what}. The log mixes two processes; "
        "use only the recent part."
    )


def _of_rehearsal(found: Rehearsal) -> str:
    if found.refusal:
        return f"Rehearsals: none, because {found.refusal}."
    return (
        f"Rehearsals: of {found.done} logs like this one, drawn from worlds that fit it, "
        f"{found.worse} led to a policy that is truly worse than the current one; {found.kept} "
        f"changed nothing. Mean gain {general(found.gain, 3)}, worst {general(found.worst, 3)}."
    )
