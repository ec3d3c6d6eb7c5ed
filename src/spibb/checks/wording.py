"""How a message names a value: on one line, with what it may have been meant for."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable
from typing import Any


def some(labels: Iterable[Any], limit: int = 5) -> str:
    """Quote up to `limit` labels and say how many more there are."""
    names = [repr(label) for label in labels]
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest


def did_you_mean(value: str, options: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" when one of the options is close, else nothing."""
    by_lower = {option.lower(): option for option in options}
    close = difflib.get_close_matches(value.lower(), list(by_lower), n=1)
    return f" (did you mean {by_lower[close[0]]!r}?)" if close else ""


def shown(value: Any) -> str:
    """A value for a message: on one line, and cut where it is long."""
    nested = isinstance(value, dict | list | tuple | set)
    return one_line(reprlib.repr(value) if nested else repr(value), 80)


def one_line(text: str, limit: int = 300) -> str:
    """A text on one line, cut where it is long."""
    words = " ".join(text.split())
    return words if len(words) <= limit else f"{words[: limit - 3]}..."


def named(value: Any) -> str:
    """What kind of thing a value is."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "None" if value is None else indefinite(type(value))


def indefinite(kind: type) -> str:
    """A type with its article."""
    vowel = kind.__name__[0] in "AEIOaeio" or kind.__name__.startswith(("MDP", "nd"))
    return f"{'an' if vowel else 'a'} {kind.__name__}"


def such_rows(n: Any) -> str:
    """How many rows are like the one that a message names."""
    return f"{int(n)} such row{'' if n == 1 else 's'}"
