"""The policy that made a log, in any form that a user has it, with the labels of the log."""

from __future__ import annotations

import math
import numbers
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from spibb import checks
from spibb.behaviour import Baseline, Counted, Provenance, as_policy, estimate_baseline
from spibb.counts import Counts
from spibb.episodes.conformity import misrecorded, recorded_table
from spibb.episodes.propensities import varies
from spibb.errors import InputError
from spibb.ingest.policy_files import read_policy
from spibb.ingest.policy_frames import is_frame, policy_from_frame
from spibb.labels import Label, Vocabulary
from spibb.log import Log
from spibb.policy import Policy, inner_policy
from spibb.sql.sources import Source

RECORD, ESTIMATE = "recorded", "estimate"
"""Names of baselines that are in the log."""


class Attributed(NamedTuple):
    """A log, its counts, and the policy that made it, with the same labels; and where the policy
    comes from."""

    log: Log
    counts: Counts
    policy: Policy
    source: Provenance


def attributed(given: Any, log: Log, smoothing: float = 0.0) -> Attributed:
    """A log with the policy that made it, in any form that `Problem.from_log` takes."""
    if is_of_log(given):
        counts, log = Counts.from_log(log), without_record(given, log, smoothing)
        return Attributed(log, counts, *baseline_of_log(given, log, counts, smoothing))
    log, policy = align(log, given_baseline(given, log))
    return Attributed(log, Counts.from_log(log), policy, Provenance.GIVEN)


def attributed_counts(
    given: Any, counts: Counts, smoothing: float = 0.0
) -> tuple[Counts, Policy, Provenance]:
    """The same of a log of which only the counts are known."""
    if is_of_log(given):
        return counts, *baseline_of_log(given, None, counts, smoothing)
    return *align(counts, given_baseline(given, counts)), Provenance.GIVEN


def is_of_log(given: Any) -> bool:
    """Whether a baseline is one that the log has, such as ``estimate:0.5``, and no file."""
    if given is None:
        return True
    if not isinstance(given, str | Source) or not isinstance(_place(given), str):
        return False
    place = _place(given)
    named = place == RECORD or place.partition(":")[0] == ESTIMATE
    return named and not os.path.exists(place)


def _place(given: Any) -> Any:
    return given.place if isinstance(given, Source) else given


def given_baseline(given: Baseline, log: Log | Counts) -> Policy:
    """A baseline that the caller has: a policy, a file, a table, rows, or a function."""
    place = _place(given)
    if isinstance(place, str) and place.isidentifier() and not os.path.exists(place):
        hint = checks.did_you_mean(place, (RECORD, ESTIMATE))
        raise InputError(
            f"baseline is {checks.shown(place)}, and there is no such file{hint}: name a file, or "
            f"write {RECORD!r} or {ESTIMATE!r}"
        )
    if isinstance(given, str | Path | Source):
        return read_policy(given, log)
    if isinstance(given, numbers.Number | type):
        raise InputError(
            f"baseline is {checks.named(given)}, expected a Policy, rows [states, actions], a "
            f"dataframe, a function of the state, or a file: give one of these, or {ESTIMATE!r}"
        )
    if is_frame(given):
        return policy_from_frame(given, log)
    return as_policy(inner_policy(given) or given, log)


def without_record(given: Any, log: Log, smoothing: float) -> Log:
    """The log, without its `action_prob` where the baseline is to be estimated all the same.

    Probabilities that vary within a state, and can be right, say that decisions looked at more than
    the state. What is known to be so is not forgotten: the baseline is estimated, and estimates and
    tests divide by them.
    """
    name, asked = _named(given)
    estimate = name == ESTIMATE or (smoothing if asked is None else asked)
    if not estimate or (varies(log) and not misrecorded(log)):
        return log
    return replace(log, action_prob=None)


def baseline_of_log(
    given: Any, log: Log | None, counts: Counts, smoothing: float
) -> tuple[Policy, Provenance]:
    """The baseline that a log records, or else shows; or the one of both that was asked for."""
    name, asked = _named(given)
    smoothing = smoothing if asked is None else asked
    recorded = None if name == ESTIMATE or smoothing else _recorded(log, must=name == RECORD)
    if recorded is not None:
        return recorded, Provenance.RECORDED
    return estimate_baseline(counts, smoothing=smoothing), Provenance.ESTIMATED


def _recorded(log: Log | None, must: bool) -> Policy | None:
    """What `action_prob` says; None, unless it `must` be there, if it is not or cannot be right."""
    if log is None or log.action_prob is None:
        if not must:
            return None
        why = "only its counts are available" if log is None else "it has no action_prob"
        raise InputError(
            f"baseline is {RECORD!r}, but the log does not record it: {why}; give the policy, or "
            f"{ESTIMATE!r}"
        )
    try:
        return Policy(recorded_table(log), log.states, log.actions, "action_prob")
    except InputError:
        if must:
            raise
        return None  # `misreported` says why


def behaviour_of(given: Any, log: Log) -> Policy | None:
    """The policy that made a log: given, or ``estimate``; None for what the log records."""
    if not is_of_log(given):
        return given_baseline(given, log)
    name, smoothing = _named(given)
    return estimate_baseline(log, smoothing=smoothing or 0.0) if name == ESTIMATE else None


def _named(given: Any) -> tuple[str | None, float | None]:
    """The name of a baseline that a log has, and the smoothing after its colon, if any."""
    if given is None:
        return None, None
    name, colon, text = _place(given).partition(":")
    return name, _smoothing(text) if colon else None


def _smoothing(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InputError(
            f"baseline estimate:{text} has no number after the colon: write estimate:0.5"
        ) from None
    if not 0 <= number < math.inf:
        raise InputError(
            f"baseline estimate:{text}: smoothing is {text}, expected a number in [0, inf): write "
            "estimate:0.5"
        )
    return number


def align(log: Counted, baseline: Policy) -> tuple[Counted, Policy]:
    """Give a log (or its counts) and a baseline the same labels.

    They are the baseline's, and actions that only the log has. The baseline may know states that
    the log never visits; the converse is an error. Columns have the names that the log gives them.
    """
    baseline = baseline.named(log.states.names, log.actions.names)
    if log.states == baseline.states and log.actions == baseline.actions:
        return log, baseline
    known = baseline.actions.index
    extra: list[Label] = [label for label in log.actions.labels if label not in known]
    actions = Vocabulary((*baseline.actions.labels, *extra), baseline.actions.names)
    missing = [label for label in log.states.labels if label not in baseline.states.index]
    if missing:
        raise InputError(
            f"baseline has no row for state {checks.some(missing)} ({len(missing)} of the log's "
            f"{len(log.states)} states): add the rows, or drop those states from the log"
        )
    aligned = baseline.aligned(baseline.states, actions, "baseline")
    return log.with_labels(baseline.states, actions), aligned
