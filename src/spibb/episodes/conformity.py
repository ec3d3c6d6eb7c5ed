"""Was a log made by a policy? What it does must be possible, and as frequent as it says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from spibb.bounds.normal import chi_square_tail
from spibb.checks import takes
from spibb.episodes.propensities import check_recorded, half_a_digit, varies
from spibb.errors import InputError
from spibb.labels import Label, Vocabulary
from spibb.log import Log
from spibb.policy import Policy
from spibb.words import percent

LEAST_EXPECTED = 5.0
"""Cells in which fewer decisions are expected are pooled."""
SUSPICIOUS = 0.001
"""p-values below this are worth a warning: they are looked at often."""
MOST_UNKNOWN = 0.5
"""Share of the decisions that may be made in states that the policy does not know."""
EXAMPLES = 3
"""States that a message names."""
IMPOSSIBLE = 1e-6
"""p-values below this contradict that the policy made the log."""
RARE = 0.05
"""Probabilities up to which actions count as rare."""


@dataclass(frozen=True)
class Oddest:
    """The pair whose count differs most from what was expected."""

    state: Label
    action: Label
    taken: int
    expected: float
    visits: int

    def __str__(self) -> str:
        return (
            f"in state {self.state!r} it takes action {self.action!r} in {self.taken} of "
            f"{self.visits} decisions, expected about {self.expected:.3g}"
        )


@dataclass(frozen=True)
class Frequencies:
    """Pearson's χ² of decisions against probabilities.

    `rare_p_value` bounds how often as many rare actions happen (Chernoff), which χ² cannot tell
    where few are expected. `oddest` is the pair that differs most.
    """

    statistic: float
    freedom: int
    p_value: float
    rare_p_value: float
    oddest: tuple[int, int] | None

    @classmethod
    def of(cls, taken: np.ndarray, probs: np.ndarray) -> Frequencies:
        """Of the number of decisions [S, A] of a policy [S, A]."""
        statistic, freedom = _chi_square(taken, taken.sum(axis=1, keepdims=True) * probs)
        p_value = chi_square_tail(statistic, freedom)
        return cls(statistic, freedom, p_value, _rare(taken, probs), _oddest(taken, probs))


def _chi_square(taken: np.ndarray, expected: np.ndarray) -> tuple[float, int]:
    """The statistic and its degrees of freedom.

    Small cells of a state are pooled into one, which joins the smallest other if it is small too.
    """
    large = expected >= LEAST_EXPECTED
    rest_n = np.where(large, 0, taken).sum(axis=1).astype(float)
    rest_e = np.where(large, 0.0, expected).sum(axis=1)
    own = rest_e >= LEAST_EXPECTED
    joins = np.flatnonzero(large.any(axis=1) & ~own)
    smallest = np.where(large, expected, np.inf)[joins].argmin(axis=1)
    n, e = taken.astype(float), expected.copy()
    n[joins, smallest] += rest_n[joins]
    e[joins, smallest] += rest_e[joins]
    cells = [(n[large], e[large]), (rest_n[own], rest_e[own])]
    statistic = sum(float(((seen - due) ** 2 / due).sum()) for seen, due in cells)
    return statistic, int(np.maximum(large.sum(axis=1) + own - 1, 0).sum())


def _rare(taken: np.ndarray, probs: np.ndarray) -> float:
    """P(as many rare actions) ≤ e^{n−m} (m/n)^n if n > m: n were taken, and m is their mean."""
    rare = probs <= RARE
    n = float(taken[rare].sum())
    mean = float((taken.sum(axis=1, keepdims=True) * probs)[rare].sum())
    if n <= mean:
        return 1.0
    return float(np.exp(n - mean + n * np.log(mean / n))) if mean > 0 else 0.0


def contradiction(
    taken: np.ndarray, probs: np.ndarray, states: Vocabulary, actions: Vocabulary,
    reference: str = "the policy's",
) -> str | None:  # fmt: skip
    """Where decisions [S, A] cannot be those of a policy [S, A], in words, if anywhere.

    `reference` names what they are compared with.
    """
    found = Frequencies.of(taken, probs)
    p_value = min(1.0, 2 * min(found.p_value, found.rare_p_value))
    if p_value >= IMPOSSIBLE or found.oddest is None:
        return None
    odd = _named(found.oddest, taken, probs, states, actions)
    return f"its actions are not as frequent as {reference} (p = {p_value:.1g}): {odd}"


def misrecorded(log: Log) -> str | None:
    """Why the log's `action_prob` cannot be the probabilities of its actions, if it cannot.

    Frequencies are compared where each pair always has the same probability: otherwise they
    depend on more than the state.
    """
    if log.action_prob is None:
        return None
    try:
        table = recorded_table(log)
    except InputError as error:
        return str(error)
    if varies(log):
        return None
    return contradiction(decisions(log), table, log.states, log.actions, "action_prob says")


def decisions(log: Log) -> np.ndarray:
    """How often the log takes each action in each state [S, A], in all of its rows."""
    shape = len(log.states), len(log.actions)
    return np.bincount(log.pair, minlength=shape[0] * shape[1]).reshape(shape)


def recorded_table(log: Log) -> np.ndarray:
    """The policy [S, A] that the log's `action_prob` shows, averaged over what else it depends on.

    π̂_b(a|x) = N(x, a) / Σ 1/p over the rows of the pair: the harmonic mean of the probabilities
    p that they record. Where p depends on the pair alone, that is p itself. Where it depends on
    more, a row takes action a with probability p and then adds 1/p, so that the sum has mean N(x)
    and π̂_b converges to the average policy of the state; their plain mean would converge to
    E[p²]/E[p], which is larger. What a row leaves of 1 is shared by the actions never taken there.
    """
    seen, n = recorded_probs(log), decisions(log)
    rest, others = 1 - seen.sum(axis=1, keepdims=True), (n == 0).sum(axis=1, keepdims=True)
    table = np.where(n > 0, seen, np.where(rest > 1e-9, rest, 0.0) / np.maximum(others, 1))
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def recorded_probs(log: Log) -> np.ndarray:
    """π̂_b of the pairs that the log has [S, A], as `recorded_table` defines it; 0 elsewhere.

    Rows sum to 1 where what they lack of it may be the rounding of the numbers recorded; where they
    lack more, an action that the log never takes there has it.
    """
    assert log.action_prob is not None
    check_recorded(log)
    n, pair = decisions(log), log.pair
    least = np.full(n.size, np.inf)
    np.minimum.at(least, pair, log.action_prob)
    inverse = np.bincount(pair, weights=least[pair] / log.action_prob, minlength=n.size)
    taken = n.reshape(-1) > 0
    seen = np.zeros(n.shape)
    seen[n > 0] = least[taken] * (n.reshape(-1)[taken] / inverse[taken])
    total, rounding = seen.sum(axis=1, keepdims=True), half_a_digit(log.action_prob)
    whole = (total > 0) & (1 - total <= rounding * (n > 0).sum(axis=1, keepdims=True))
    return np.asarray(seen / np.where(whole, total, 1.0))


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
            f"({percent(self.unknown / self.decisions)}) were made in states that the policy "
            "does not know: something else made them"
        )

    @property
    def _warning(self) -> str | None:
        if self.p_value >= SUSPICIOUS or self.oddest is None:
            return None
        return (
            f"the log's decisions are not as frequent as the policy's (p = {self.p_value:.1g}): "
            f"{self.oddest}; check that only this policy made the log"
        )


@takes(log=Log, policy=Policy)
def conformity(log: Log, policy: Policy) -> Conformity:
    """Compare a log's decisions with a policy; an action that it never takes is an error."""
    states = policy.states.codes(log.states.in_form_of(policy.states))
    actions = policy.actions.codes(log.actions.in_form_of(policy.actions))
    taken = np.zeros((len(states), policy.n_actions + 1), dtype=np.int64)  # the last: none of them
    np.add.at(taken, (log.state, actions[log.action]), 1)
    unknown = int(taken[states < 0].sum())
    _check_known(log, policy, states, unknown)
    known = np.flatnonzero(states >= 0)
    probs = np.append(policy.probs[states[known]], np.zeros((len(known), 1)), axis=1)
    _check_possible(log, actions, known, probs)
    found = Frequencies.of(taken[known], probs)
    odd = None
    if found.oddest is not None:
        named = Vocabulary(tuple(log.states[int(x)] for x in known))
        odd = _named(found.oddest, taken[known], probs, named, policy.actions)
    return Conformity(len(log), unknown, found.statistic, found.freedom, found.p_value, odd)


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
            f"the log takes action {action!r} in state {state!r}, which the policy never takes "
            f"({int(bad.sum())} of {len(log)} decisions are impossible): give only episodes that "
            "this policy made"
        )


def _oddest(taken: np.ndarray, probs: np.ndarray) -> tuple[int, int] | None:
    """The pair whose count differs most from what was expected, in standard deviations."""
    expected = taken.sum(axis=1, keepdims=True) * probs
    with np.errstate(all="ignore"):
        off = np.where(
            expected * (1 - probs) > 0, (taken - expected) ** 2 / (expected * (1 - probs)), 0.0
        )
    if not off.size or not off.any():
        return None
    x, a = np.unravel_index(int(np.argmax(off)), off.shape)
    return int(x), int(a)


def _named(
    pair: tuple[int, int], taken: np.ndarray, probs: np.ndarray, states: Vocabulary,
    actions: Vocabulary,
) -> Oddest:  # fmt: skip
    x, a = pair
    visits = int(taken[x].sum())
    return Oddest(states[x], actions[a], int(taken[x, a]), float(visits * probs[x, a]), visits)
