"""The three grades, and the heading of every verdict: the same words wherever one is given."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum


class Grade(StrEnum):
    """How sure a log is of a new policy, from the surest.

    >>> ", ".join(spibb.grade.Grade)
    'certified, supported, not supported'
    """

    CERTIFIED = "certified"
    SUPPORTED = "supported"
    NOT_SUPPORTED = "not supported"


HEADLINES = {
    Grade.CERTIFIED: "Certified",
    Grade.SUPPORTED: "Supported",
    Grade.NOT_SUPPORTED: "Not supported: keep the current policy",
}


def headline(grade: Grade, doubts: Sequence[str] = ()) -> str:
    """The grade as a heading; what speaks for a change also says that there is a doubt."""
    doubted = doubts and grade is not Grade.NOT_SUPPORTED
    return f"{HEADLINES[grade]}{', with a doubt' if doubted else ''}"
