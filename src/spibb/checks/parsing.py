"""Text from the command line: which of it is a number."""

from __future__ import annotations

import re

NUMBER = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?inf|nan", re.I | re.A
)
"""A number as everybody writes it: no 1_000, no 007, no digits of other scripts."""
_BLANKS = r"[ \t\n\v\f\r]*"
_DIGITS = "([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?"
NUMBER_IN_TEXT = re.compile(
    f"{_BLANKS}[+-]?({_DIGITS}|[iI][nN][fF]([iI][nN][iI][tT][yY])?){_BLANKS}"
)
"""Text that logs read as a number where one is wanted, as `TRY_CAST` of DuckDB does but for 1_000.

DuckDB and PostgreSQL understand the expression too.
"""


def parse_value(text: str) -> bool | int | float | str:
    """A number or a boolean where the text is one."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float) if NUMBER.fullmatch(text) else ():
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse_values(text: str) -> bool | int | float | str | tuple[bool | int | float | str, ...]:
    """A value, or several that commas separate, with or without brackets."""
    if "," not in text:
        return parse_value(text)
    inside = text.strip("()[] ")
    return tuple(parse_value(part.strip()) for part in inside.split(",") if part.strip())
