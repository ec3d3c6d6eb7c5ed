"""Off-policy evaluation on vectors: the estimators of `spibb.ope`, each row a state of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spibb import checks
from spibb.deep.vector_policy import VectorPolicy
from spibb.errors import InputError
from spibb.evaluate import returns
from spibb.ingest.vectors import VectorLog
from spibb.labels import Vocabulary
from spibb.log import Log
from spibb.ope import (
    BOUNDS,
    ESTIMATORS,
    OffPolicyReport,
    ValuedCandidates,
    contributions,
    report_of,
)

LEAST = 1e-6
"""A clone's probability of what was done counts at least so much."""


def propensities(log: VectorLog, current: np.ndarray) -> np.ndarray:
    """The probability of each logged action [N]: as recorded, else by a policy's rows [N, A]."""
    if log.action_prob is not None:
        return log.action_prob
    return np.maximum(current[np.arange(len(log)), log.action], LEAST)


def estimate_on(
    log: VectorLog,
    policy: VectorPolicy,
    discount: float,
    *,
    delta: float = 0.05,
    lowest_return: float | None = None,
    highest_return: float = math.inf,
    bounds: Sequence[str] = BOUNDS,
    behaviour: np.ndarray | None = None,
    rng: np.random.Generator,
) -> OffPolicyReport:
    """Estimate what a policy would earn from a log: six estimators with lower bounds.

    The log has the policy's features, in its order, and actions that it knows. Q̂ of dr and wdr is
    the policy's own network. `behaviour` [N] are the probabilities of what was done, by default
    those of `propensities`. Nothing here knows how the policy was made: trained on this very log,
    its estimates flatter it.
    """
    checks.discount(discount)
    checks.delta(delta)
    log = with_actions(log, policy.actions)
    states, found, current = _each_row_a_state(log, policy)
    made = propensities(log, current) if behaviour is None else behaviour
    estimates = contributions(states, found, made, discount, lowest_return=lowest_return)
    return report_of(
        states, [estimates.estimate(name) for name in ESTIMATORS], returns(states, discount),
        delta=delta, truncated="recorded", highest_return=highest_return, bounds=bounds, rng=rng,
    )  # fmt: skip


def with_actions(log: VectorLog, actions: Vocabulary) -> VectorLog:
    """The same log with the codes of other labels, which include its own."""
    if log.actions == actions:
        return log
    places = actions.codes(log.actions)
    if (places < 0).any():
        unknown = log.actions[int(np.argmax(places < 0))]
        raise InputError(
            f"the log has the action {unknown!r}, which the policy does not know: it knows "
            f"{checks.some(actions.labels)}"
        )
    return replace(log, action=places[log.action], actions=actions)


def _each_row_a_state(
    log: VectorLog, policy: VectorPolicy
) -> tuple[Log, ValuedCandidates, np.ndarray]:
    """Row j is in state j; what follows it, if known, is state N + j. And the baseline's rows."""
    n, on = len(log), ~log.terminated & log.known
    both = np.concatenate([log.state, np.where(on[:, None], log.next_state, log.state)])
    found = policy.at(both)
    v = (found.probs * found.q).sum(axis=1)
    table = Log(
        state=np.arange(n, dtype=np.int32), action=log.action.astype(np.int32), reward=log.reward,
        next_state=np.where(on, n + np.arange(n), -1).astype(np.int32),
        terminated=log.terminated, truncated=log.truncated, episode_starts=log.episode_starts,
        states=Vocabulary.of_size(2 * n, "state"), actions=log.actions,
    )  # fmt: skip
    values = ValuedCandidates(found.probs[:, :, None], found.q[:, :, None], v[:, None])
    return table, values, found.baseline[:n]
