"""One condition of a verdict: what was found, what was wanted, and what helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Criterion:
    """One condition of the grade "supported".

    `passed` is None where the log does not tell. `why` says what failed, and `remedy` what would
    help, in a sentence each; `more` is the number of episodes in it, if it has one.
    """

    name: str
    what: str
    found: str
    wanted: str
    passed: bool | None
    why: str = ""
    remedy: str = ""
    more: float | None = None


NEEDED = ("model", "single changes", "beyond chance", "effective size")
"""The criteria that must be known: without them nothing but the model speaks for a change."""


def lacking(found: Sequence[Criterion]) -> list[Criterion]:
    """The conditions that do not hold, or are needed and not known."""
    return [c for c in found if c.passed is False or (c.passed is None and c.name in NEEDED)]
