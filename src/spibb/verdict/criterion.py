"""One condition of a verdict: what was found, what was wanted, and what helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Condition(StrEnum):
    """The conditions of the grade "supported"; summary.json names them by these values."""

    CHANGES = "changes"
    BASELINE = "baseline"
    EPISODES = "episodes"
    REWARDS = "rewards"
    SURE_GAIN = "sure gain"
    MODEL = "model"
    SINGLE_CHANGES = "single changes"
    BEYOND_CHANCE = "beyond chance"
    EFFECTIVE_SIZE = "effective size"
    VISITS = "visits"
    WHOLE_EPISODES = "whole episodes"
    HELD_OUT = "held out"
    SEASON = "season"
    MEMORY = "memory"


NEEDED = frozenset({
    Condition.MODEL, Condition.SINGLE_CHANGES, Condition.BEYOND_CHANCE, Condition.EFFECTIVE_SIZE,
})  # fmt: skip
"""They must be known: without them nothing but the model speaks for a change."""

OF_CHANGES = frozenset({
    Condition.SURE_GAIN, Condition.SINGLE_CHANGES, Condition.BEYOND_CHANCE,
    Condition.EFFECTIVE_SIZE, Condition.VISITS, Condition.WHOLE_EPISODES, Condition.HELD_OUT,
})  # fmt: skip
"""Conditions that are inconclusive where nothing changes."""

DECISIVE = frozenset({
    Condition.BASELINE, Condition.HELD_OUT, Condition.MEMORY, Condition.SEASON,
})  # fmt: skip
"""A certified policy must meet them as well."""


@dataclass(frozen=True)
class Criterion:
    """One condition of the grade "supported".

    `passed` is None where the log does not tell. `why` says what failed, and `remedy` what would
    help, in a sentence each; `more` is the number of episodes in it, if it has one.

    >>> criterion = spibb.PiBSpibb(n_wedge=1).improve(problem).verdict.criteria[0]
    >>> criterion.name, criterion.passed
    (<Condition.BASELINE: 'baseline'>, True)
    """

    name: Condition
    what: str
    found: str
    wanted: str
    passed: bool | None
    why: str = ""
    remedy: str = ""
    more: float | None = None


def lacking(found: Sequence[Criterion]) -> list[Criterion]:
    """The conditions that do not hold, or are needed and not known."""
    return [c for c in found if c.passed is False or (c.passed is None and c.name in NEEDED)]
