"""Where a condition turns, by halving: each end of the answer is one at which it was tried.

SciPy's root finders return a point near the turn. A bound that must hold needs the end where it was
seen to hold.
"""

from __future__ import annotations

from collections.abc import Callable


def halved(
    holds: Callable[[float], bool], low: float, high: float, times: int
) -> tuple[float, float]:
    """The ends of [low, high] after `times` halvings; the condition holds below its turn.

    It was seen to hold at the first, and not at the second, unless they never moved.

    >>> from spibb.halving import halved
    >>> halved(lambda x: x * x <= 2, 0.0, 2.0, 3)
    (1.25, 1.5)
    """
    for _ in range(times):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high
