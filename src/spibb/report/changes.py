"""What an improvement changes, as tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spibb.algorithms.base import Improvement
from spibb.departures import changed_states
from spibb.labels import Label
from spibb.tables import long_form

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Change:
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


def changed(result: Improvement) -> np.ndarray:
    """bool [S]: the state's row differs from the baseline's."""
    return changed_states(result.policy.probs, result.problem.baseline.probs)


def changes(result: Improvement, limit: int | None = None) -> list[Change]:
    """The states whose rows changed, by visits × gain; the first `limit` of them."""
    problem = result.problem
    where = np.flatnonzero(changed(result))
    shift = (result.policy.probs - problem.baseline.probs)[where]
    visits = problem.counts.pairs[where].sum(axis=1)
    gain = (shift * result.q[where]).sum(axis=1)
    order = np.argsort(-(visits * gain), kind="stable")[:limit]
    return [
        Change(
            int(where[k]), problem.states[int(where[k])], int(visits[k]),
            float(np.abs(shift[k]).sum() / 2), problem.actions[int(np.argmax(shift[k]))],
            problem.actions[int(np.argmin(shift[k]))], float(gain[k]),
        )
        for k in order.tolist()
    ]  # fmt: skip


def policy_table(result: Improvement) -> pa.Table:
    """state, action, probability, baseline_probability, count, bootstrapped: one row per pair."""
    problem = result.problem
    return long_form(
        problem.states,
        problem.actions,
        probability=result.policy.probs,
        baseline_probability=problem.baseline.probs,
        count=problem.counts.pairs,
        bootstrapped=result.bootstrapped,
    )
