"""What an improvement changes, as tables."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spibb import words
from spibb.algorithms.improvement import Improvement
from spibb.algorithms.problem import Problem
from spibb.arrays import PROBABILITY_ROUNDING
from spibb.episodes.departures import changed_states
from spibb.labels import Label
from spibb.tables import long_form

if TYPE_CHECKING:
    import pyarrow as pa

LIKELIEST = 3
"""Actions named in a line."""


@dataclass(frozen=True)
class ChangedRow:
    """One state whose row differs from the baseline's: the largest shift, and its gain in M̂."""

    code: int
    state: Label
    visits: int
    moved: float
    more: Label
    less: Label
    gain: float

    @property
    def impact(self) -> float:
        """Visits × gain."""
        return self.visits * self.gain


def unchanged(problem: Problem) -> str:
    """What is written if no state changes."""
    estimated = ", as estimated from this log" if problem.baseline_estimated else ""
    return f"No state changes: the policy written is the baseline{estimated}."


def changed(result: Improvement) -> np.ndarray:
    """bool [S]: the state's row differs from the baseline's."""
    return changed_states(result.policy.probs, result.problem.baseline.probs)


def changes(result: Improvement, limit: int | None = None) -> list[ChangedRow]:
    """The states whose rows changed, by visits × gain; the first `limit` of them."""
    problem = result.problem
    where = np.flatnonzero(changed(result))
    shift = (result.policy.probs - problem.baseline.probs)[where]
    visits = problem.counts.pairs[where].sum(axis=1)
    gain = (shift * result.q[where]).sum(axis=1)
    order = np.argsort(-(visits * gain), kind="stable")[:limit]
    return [
        ChangedRow(
            int(where[k]), problem.states[int(where[k])], int(visits[k]),
            float(np.abs(shift[k]).sum() / 2), problem.actions[int(np.argmax(shift[k]))],
            problem.actions[int(np.argmin(shift[k]))], float(gain[k]),
        )
        for k in order.tolist()
    ]  # fmt: skip


def other_states(
    result: Improvement, listed: Collection[int], budget: int
) -> list[tuple[str, int, str]]:
    """Label, visits and what is done in the states not listed, most visited first.

    Ends where `budget` characters are used up.
    """
    problem, moved, found = result.problem, changed(result), []
    visits = problem.counts.pairs.sum(axis=1)
    for s in np.argsort(-visits, kind="stable").tolist():
        if s not in listed:
            state, done = words.whole(problem.states[s]), _done(result, s, bool(moved[s]))
            budget -= len(state) + len(done)
            if budget < 0:
                break
            found.append((state, int(visits[s]), done))
    return found


def _done(result: Improvement, s: int, moved: bool) -> str:
    """The likeliest actions of a state, and whether they are new."""
    row = result.policy.probs[s]
    likeliest = [a for a in np.argsort(-row, kind="stable")[:LIKELIEST].tolist() if row[a] > 0]
    shares = ", ".join(
        f"{words.clipped(result.problem.actions[a])} {row[a]:.2f}" for a in likeliest
    )
    return f"{'new' if moved else 'as before'}: {shares}"


def policy_table(result: Improvement) -> pa.Table:
    """state, action, probability, baseline_probability, count, bootstrapped: one row per pair."""
    problem = result.problem
    return long_form(
        problem.states,
        problem.actions,
        probability=np.where(
            result.policy.probs > 1 - PROBABILITY_ROUNDING, 1.0, result.policy.probs
        ),  # it may be added up from what the baseline gave to several actions
        baseline_probability=problem.baseline.probs,
        count=problem.counts.pairs,
        bootstrapped=result.bootstrapped,
    )
