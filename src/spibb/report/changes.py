"""What an improvement changes, as tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spibb.algorithms.base import Improvement
from spibb.labels import Label
from spibb.tables import long_form

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Change:
    """One state whose row differs from the baseline's: the largest shift, and its gain in M̂."""

    state: Label
    visits: int
    moved: float
    more: Label
    less: Label
    gain: float


def changes(result: Improvement) -> list[Change]:
    """The states whose rows changed, by visits × gain."""
    problem = result.problem
    shift = result.policy.probs - problem.baseline.probs
    moved = np.abs(shift).sum(axis=1) / 2
    visits = problem.counts.pairs.sum(axis=1)
    gain = (shift * result.q).sum(axis=1)
    order = np.argsort(-(visits * gain), kind="stable")
    return [
        Change(
            problem.states[s], int(visits[s]), float(moved[s]),
            problem.actions[int(np.argmax(shift[s]))], problem.actions[int(np.argmin(shift[s]))],
            float(gain[s]),
        )
        for s in order.tolist() if moved[s] > 1e-9
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
