"""The policy that made a log: the forms in which a user has it, and what the log shows of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np

from spibb.checks import iterable, number, shown, some, takes
from spibb.counts import Counts
from spibb.errors import InputError
from spibb.labels import Label, Vocabulary
from spibb.log import Log
from spibb.policy import Policy


class Provenance(StrEnum):
    """Where a baseline comes from."""

    GIVEN = "given"
    RECORDED = "recorded"
    ESTIMATED = "estimated"


Counted = TypeVar("Counted", Log, Counts)


def in_common(log: Counted, policies: Mapping[str, Policy]) -> tuple[Counted, list[Policy]]:
    """A log (or its counts) and policies, over the log's states and the actions of all of them.

    Each policy needs a row for every state of the log; the keys name them in messages.
    """
    played: dict[Label, None] = {
        label: None
        for policy in policies.values()
        for label, mass in zip(
            policy.actions.named(log.actions.names).labels, policy.probs.max(axis=0)
        )
        if mass > 0 and label not in log.actions.index
    }
    actions: Vocabulary = log.actions
    if played:
        labels = (*actions.labels, *sorted(played, key=repr))
        actions = Vocabulary(labels, actions.names)
    rows = [policy.aligned(log.states, actions, what) for what, policy in policies.items()]
    return log.with_labels(log.states, actions), rows


Baseline = Policy | np.ndarray | Sequence[Sequence[float]] | Callable[[Label], Any] | Any
"""A policy; rows in the order of the log's labels; a function of a state's label; or a table."""


def as_policy(baseline: Baseline, log: Log | Counts) -> Policy:
    """A baseline in any form but a table as a policy over a log's labels."""
    if isinstance(baseline, Policy):
        return baseline
    if callable(baseline):
        rows = [_row(baseline(label), label, log.actions) for label in log.states.labels]
        return Policy(rows, log.states, log.actions, "baseline")
    return Policy(baseline, log.states, log.actions, "baseline")


def _row(given: Any, state: Label, actions: Vocabulary) -> list[float]:
    """A function's answer for a state: a mapping from actions, or numbers in their order."""
    if not iterable(given):
        raise InputError(
            f"baseline gives {shown(given)} in state {state!r}, expected the probability of each "
            "action: return a mapping from actions, or numbers in their order"
        )
    if not isinstance(given, Mapping):
        return list(given)
    unknown = [label for label, p in given.items() if label not in actions.index and p > 0]
    if unknown:
        raise InputError(
            f"baseline plays {some(unknown)} in state {state!r}, which the log never shows: give a "
            "Policy with labels for all actions"
        )
    return [given.get(label, 0.0) for label in actions.labels]


@takes(log=(Counts, Log))
def estimate_baseline(log: Log | Counts, *, smoothing: float = 0.0) -> Policy:
    """The policy that the log shows, π̂_b(a|x) = (N(x, a) + k) / (N(x) + k|A|) (Simão et al. 2020).

    States in which the log never acts get a uniform row.

    Parameters:
        log: the log or its counts.
        smoothing: k ≥ 0, pseudo-counts of every action; with 0, an action never taken in a state
            is unavailable there.

    Returns:
        The policy, with the labels of the log.

    >>> spibb.estimate_baseline(log, smoothing=1).row("severe")
    {'treat': 0.6, 'wait': 0.4}
    """
    smoothing = number("smoothing", smoothing, 0, np.inf, "[)")
    counts = log if isinstance(log, Counts) else Counts.from_log(log)
    mass = counts.pairs + smoothing
    total = mass.sum(axis=1, keepdims=True)
    probs = np.where(total > 0, mass / np.where(total > 0, total, 1), 1 / mass.shape[1])
    return Policy(probs, counts.states, counts.actions)
