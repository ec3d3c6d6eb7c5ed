"""Bisection that returns a bracket whose two ends were both evaluated.

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

    >>> from spibb.bisection import halved
    >>> halved(lambda x: x * x <= 2, 0.0, 2.0, 3)
    (1.25, 1.5)
    """
    for _ in range(times):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def enclosed(
    f: Callable[[float], float], low: float, high: float, width: float
) -> tuple[float, float]:
    """Ends of an interval at most twice as wide as `width`, around where a falling f becomes < 0.

    f ≥ 0 was seen at the first, and f < 0 at the second; f(low) ≥ 0 > f(high) is taken for granted.
    Interpolates where three points show that it pays, and halves elsewhere (Chandrupatla 1997), so
    that a smooth f is tried about ten times.

    >>> from spibb.bisection import enclosed
    >>> low, high = enclosed(lambda x: 2 - x * x, 0.0, 2.0, 1e-12)
    >>> low**2 <= 2 < high**2, high - low < 3e-12
    (True, True)
    """
    near, f_near, far, f_far = high, f(high), low, f(low)
    share = 0.5
    while abs(far - near) > 2 * width:
        x = near + share * (far - near)
        f_x = f(x)
        if (f_x >= 0) == (f_near >= 0):
            past, f_past = near, f_near
        else:
            past, f_past, far, f_far = far, f_far, near, f_near
        near, f_near = x, f_x
        share = _next_share((near, f_near), (far, f_far), (past, f_past))
        least = min(width / max(abs(far - near), width), 0.5)
        share = min(max(share, least), 1 - least)
    return (near, far) if f_near >= 0 else (far, near)


def _next_share(
    near: tuple[float, float], far: tuple[float, float], past: tuple[float, float]
) -> float:
    """How far to go from near to far: by inverse quadratic interpolation where it is sound."""
    (a, f_a), (b, f_b), (c, f_c) = near, far, past
    if c == b or len({f_a, f_b, f_c}) < 3:
        return 0.5
    xi, phi = (a - b) / (c - b), (f_a - f_b) / (f_c - f_b)
    if not (phi * phi < xi and (1 - phi) ** 2 < 1 - xi):
        return 0.5
    return f_a / (f_b - f_a) * f_c / (f_b - f_c) + (c - a) / (b - a) * f_a / (f_c - f_a) * f_b / (
        f_c - f_b
    )
