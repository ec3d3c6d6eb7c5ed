"""Was a log made by a policy? What it does must be possible, and as frequent as it says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincc

from spibb.checks import takes
from spibb.errors import InputError
from spibb.labels import Label
from spibb.log import Log
from spibb.policy import Policy

LEAST_EXPECTED = 5.0
"""Cells in which fewer decisions are expected are pooled."""
SUSPICIOUS = 0.001
"""p-values below this are worth a warning: they are looked at often."""
MOST_UNKNOWN = 0.5
"""Share of the decisions that may be made in states that the policy does not know."""
EXAMPLES = 3


@dataclass(frozen=True)
class Oddest:
    """The pair whose count differs most from what was expected."""

    state: Label
    action: Label
    taken: int
    expected: float
    visits: int


@dataclass(frozen=True)
class Conformity:
    """Pearson's χ² of a log's decisions against a policy's probabilities.

    `unknown` of the `decisions` were made in states that the policy does not know (at most half:
    more are an error); they say nothing. `p_value` is approximate (cells of fewer
    than five expected decisions are pooled), and 1 where nothing can be compared.
    """

    decisions: int
    unknown: int
    statistic: float
    freedom: int
    p_value: float
    oddest: Oddest | None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to say if the decisions are not those of the policy, or cannot be compared."""
        return tuple(text for text in (self._unknown_warning, self._warning) if text)

    @property
    def _unknown_warning(self) -> str | None:
        if not self.unknown:
            return None
        return (
            f"{self.unknown:,} of {self.decisions:,} decisions "
            f"({100 * self.unknown / self.decisions:.2g} %) were made in states that the policy "
            "does not know: something else made them"
        )

    @property
    def _warning(self) -> str | None:
        if self.p_value >= SUSPICIOUS or self.oddest is None:
            return None
        odd = self.oddest
        return (
            f"the log's decisions are not as frequent as the policy's (p = {self.p_value:.1g}): in "
            f"state {odd.state!r} it takes action {odd.action!r} in {odd.taken} of {odd.visits} "
            f"decisions, expected about {odd.expected:.3g}; was it made by this policy alone?"
        )


@takes(log=Log, policy=Policy)
def conformity(log: Log, policy: Policy) -> Conformity:
    """Compare a log's decisions with a policy; an action that it never takes is an error."""
    states = policy.states.codes(log.states.as_text_like(policy.states))
    actions = policy.actions.codes(log.actions.as_text_like(policy.actions))
    taken = np.zeros((len(states), policy.n_actions + 1), dtype=np.int64)  # the last: none of them
    np.add.at(taken, (log.state, actions[log.action]), 1)
    unknown = int(taken[states < 0].sum())
    _check_known(log, policy, states, unknown)
    known = np.flatnonzero(states >= 0)
    probs = np.append(policy.probs[states[known]], np.zeros((len(known), 1)), axis=1)
    _check_possible(log, actions, known, probs)
    cells = [_cells(taken[row], p) for row, p in zip(known.tolist(), probs)]
    statistic = float(sum(((n - e) ** 2 / e).sum() for n, e in cells))
    freedom = sum(max(len(n) - 1, 0) for n, _ in cells)
    return Conformity(
        len(log), unknown, statistic, freedom,
        float(gammaincc(freedom / 2, statistic / 2)) if freedom else 1.0,
        _oddest(log, policy, taken[known], probs, known),
    )  # fmt: skip


def _check_known(log: Log, policy: Policy, states: np.ndarray, unknown: int) -> None:
    """Most decisions must be in states that the policy knows."""
    if unknown <= MOST_UNKNOWN * len(log):
        return
    strange = [log.states[int(x)] for x in np.flatnonzero(states < 0)[:EXAMPLES]]
    raise InputError(
        f"{unknown} of {len(log)} decisions of the log are in states that the policy does not "
        f"know, expected at most half: the log has {_listed(strange)}, the policy "
        f"{_listed(policy.states.labels[:EXAMPLES])}; give episodes of this policy, with its "
        "columns and bins"
    )


def _listed(labels: Iterable[Label]) -> str:
    return ", ".join(repr(label) for label in labels)


def _check_possible(log: Log, actions: np.ndarray, known: np.ndarray, probs: np.ndarray) -> None:
    """No action of the log may have probability 0."""
    row = np.full(len(log.states), -1)
    row[known] = np.arange(len(known))
    where = row[log.state]
    bad = (where >= 0) & (probs[np.maximum(where, 0), actions[log.action]] <= 0)
    if bad.any():
        first = int(np.argmax(bad))
        state, action = log.states[log.state[first]], log.actions[log.action[first]]
        raise InputError(
            f"the log takes action {action!r} in state {state!r}, which the policy never does "
            f"({int(bad.sum())} of {len(log)} decisions are impossible): give episodes of this "
            "policy alone"
        )


def _cells(taken: np.ndarray, probs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts and expectations of a state's cells; small ones are pooled into one, or with one."""
    expected = taken.sum() * probs
    large = expected >= LEAST_EXPECTED
    n, e = taken[large].astype(float), expected[large]
    rest = taken[~large].sum(), expected[~large].sum()
    if rest[1] >= LEAST_EXPECTED:
        return np.append(n, rest[0]), np.append(e, rest[1])
    if len(n):
        smallest = int(np.argmin(e))
        n[smallest] += rest[0]
        e[smallest] += rest[1]
    return n, e


def _oddest(
    log: Log, policy: Policy, taken: np.ndarray, probs: np.ndarray, known: np.ndarray
) -> Oddest | None:
    visits = taken.sum(axis=1, keepdims=True)
    expected = visits * probs
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.where(
            expected * (1 - probs) > 0, (taken - expected) ** 2 / (expected * (1 - probs)), 0.0
        )
    if not off.size or not off.any():
        return None
    i, a = np.unravel_index(int(np.argmax(off)), off.shape)
    return Oddest(
        log.states[int(known[i])], policy.actions[int(a)], int(taken[i, a]), float(expected[i, a]),
        int(visits[i, 0]),
    )  # fmt: skip
