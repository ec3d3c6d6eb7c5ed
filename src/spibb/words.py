"""Numbers, counts and labels as text for readers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spibb.labels import Label

LONGEST = 60
"""Characters of a label that are shown."""
FEWEST = 5
"""Shorter parts of a label are not shown."""
_BETWEEN = " · "
"""What stands between the parts of a label."""
_UNIT = "\N{NO-BREAK SPACE}%"
"""What follows the number of a share: no line ends between them."""
LARGEST_WHOLE = 1e9
"""Up to which a whole number is written out."""
SMALL_DELTA = 1e-3
"""A δ below which 1 − δ would be read as 1."""


def number(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """About four significant digits, thousands separated, a true minus sign."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value != 0 and not 1e-4 <= abs(value) < 1e9:
        text = f"{_significant(value, 2, rounding):.1e}"
    elif abs(value) >= 1000 or value == round(value):
        text = f"{_fixed(value, 0, rounding) + 0.0:,.0f}"  # never -0
    else:
        decimals = 3 if abs(value) < 1 else max(0, 3 - math.floor(math.log10(abs(value))))
        decimals = 5 if 0 < abs(value) < 0.01 else decimals
        text = f"{_fixed(value, decimals, rounding):.{decimals}f}"
    return text.replace("-", "−")


def at_least(value: float, digits: int | None = None) -> str:
    """A lower bound: never more than it is. With `digits`, to that many significant ones.

    >>> from spibb.words import at_least
    >>> at_least(8.299e-07), at_least(0.6259), at_least(0.3)
    ('8.2e−07', '0.625', '0.300')
    """
    return number(value, ROUND_FLOOR) if digits is None else general(value, digits, ROUND_FLOOR)


def at_most(value: float, digits: int | None = None) -> str:
    """An upper bound: never less than it is."""
    if digits is None:
        return number(value, ROUND_CEILING)
    return general(value, digits, ROUND_CEILING)


def surely(value: float) -> str:
    """A lower bound of a difference: with its sign, and never more than it is."""
    return signed(value, rounding=ROUND_FLOOR)


def general(value: float, digits: int, rounding: str = ROUND_HALF_EVEN) -> str:
    """So many significant digits, without zeros at the end, as in a cell of a table.

    >>> from spibb.words import general
    >>> general(0.123456, 2), general(5128.3, 2), general(5.1283e12, 2)
    ('0.12', '5,100', '5.1e+12')
    """
    if math.isfinite(value):
        value = _significant(value, digits, rounding)
    whole = 10**digits <= abs(value) < LARGEST_WHOLE
    return (f"{value:,.0f}" if whole else f"{value:.{digits}g}").replace("-", "−")


def _significant(value: float, digits: int, rounding: str) -> float:
    return float(Context(prec=digits, rounding=rounding).create_decimal(repr(float(value))))


def _fixed(value: float, decimals: int, rounding: str) -> float:
    return float(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-decimals), rounding))


def short(value: float) -> str:
    """A round number, as at a tick of an axis."""
    return f"{value:g}".replace("-", "−")


def apart(*values: float) -> list[str]:
    """Numbers of a message that says they differ: six digits, or as many as show it.

    >>> from spibb.words import apart
    >>> apart(0.5, 1), apart(1.000001, 1)
    (['0.5', '1'], ['1.000001', '1'])
    """
    for digits in range(6, 18):
        texts = [f"{value:.{digits}g}" for value in values]
        if len(set(texts)) >= len(set(values)):
            break
    return texts


def signed(value: float, digits: int | None = None, rounding: str = ROUND_HALF_EVEN) -> str:
    """A difference: always with its sign. With `digits`, to that many significant ones.

    >>> from spibb.words import signed
    >>> signed(-0.15791, 4), signed(0.5)
    ('−0.1579', '+0.500')
    """
    text = number(value, rounding) if digits is None else general(value, digits, rounding)
    return text if value < 0 or math.isnan(value) else f"+{text}"


def percent(share: float) -> str:
    """A share; never 100 % unless it is all, never 0 % unless it is nothing."""
    if 0.9995 <= share < 1:
        return f"more than 99.9{_UNIT}"
    if 0 < share < 0.0005:
        return f"less than 0.1{_UNIT}"
    text = f"{100 * share:.1f}".removesuffix(".0")
    return f"{text.replace('-', '−')}{_UNIT}"


def roughly(n: float) -> str:
    """A forecast of a number of things, with two digits."""
    n = max(math.ceil(n), 1)
    step = 10 ** max(len(str(n)) - 2, 0)
    return f"{math.ceil(n / step) * step:,}"


def level(delta: float) -> str:
    """1 − δ with all its digits, and never 1.

    >>> from spibb.words import level
    >>> level(0.05), level(0.001), level(1e-7)
    ('0.95', '0.999', '1 − 1e-7')
    """
    if delta < SMALL_DELTA:
        return f"1 − {delta:g}".replace("e-0", "e-")
    return format(1 - Decimal(f"{delta:.6g}"), "f")


def counted(n: int, noun: str) -> str:
    """How many there are: 1 change, 2 changes."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def effective(size: float) -> str:
    """An effective number of episodes; a part of one matters where there are few."""
    return f"{size:,.1f}" if size < 100 else f"{size:,.0f}"


def listed(names: Sequence[str]) -> str:
    """All of them: a, b and c."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def whole(label: Label) -> str:
    """A label as text."""
    return _BETWEEN.join(map(str, label)) if isinstance(label, tuple) else str(label)


def clipped(label: Label, longest: int = LONGEST) -> str:
    """A label as text; of a long one the beginning and the end, of several parts each its share.

    >>> from spibb.words import clipped
    >>> clipped(("ward " + 20 * "x", "night"), 20)
    'ward xxx…xxx · night'
    """
    text = whole(label)
    if len(text) <= longest:
        return text
    parts = [str(part) for part in label] if isinstance(label, tuple) else [text]
    room = longest - len(_BETWEEN) * (len(parts) - 1)
    if room < FEWEST * len(parts):
        return _shortened(text, longest)
    shares = _shared([len(part) for part in parts], room)
    return _BETWEEN.join(_shortened(part, share) for part, share in zip(parts, shares))


def _shared(wanted: Sequence[int], room: int) -> list[int]:
    """How much each gets: the same, but none more than it wants."""
    shares = [0] * len(wanted)
    left = len(wanted)
    for k in sorted(range(len(wanted)), key=wanted.__getitem__):
        shares[k] = min(wanted[k], room // left)
        room, left = room - shares[k], left - 1
    return shares


def _shortened(text: str, longest: int) -> str:
    """A text without what is behind its first two thirds: names differ there more often."""
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 3
    return f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"
