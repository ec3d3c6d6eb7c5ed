"""How objects show themselves: a name and a few facts, in a terminal and in a notebook."""

from __future__ import annotations

import dataclasses
import html
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np

LONGEST = 80
"""Characters of a fact that are shown."""


class Shown:
    """Base of classes whose repr is short: subclasses say which `_facts` are worth a line.

    Without them, the fields of a dataclass are shown, an array by its type and shape. A dataclass
    gets this repr although it would write one of its own.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__repr__" not in vars(cls):
            cls.__repr__ = Shown.__repr__  # type: ignore[method-assign]

    def _facts(self) -> Mapping[str, Any]:
        """What to show, by name."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: getattr(self, field.name) for field in fields if field.repr}

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={text(value)}" for name, value in self._facts().items())
        return f"{type(self).__name__}({facts})"

    def _repr_html_(self) -> str:
        """The facts as a table."""
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name.replace('_', ' '))}</th>"
            f"<td style='text-align:left'>{html.escape(text(value))}</td></tr>"
            for name, value in self._facts().items()
        )
        return f"<table><caption>{html.escape(type(self).__name__)}</caption>{rows}</table>"


def text(value: Any) -> str:
    """A value on one line: floats with four digits, arrays by type and shape, the rest cut."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, Range):
        return f"{value.low + 0.0:.4g} to {value.high + 0.0:.4g}"  # never -0
    if isinstance(value, Shown) or dataclasses.is_dataclass(value):
        written = repr(value)
    else:
        written = value if isinstance(value, str) else _REPR.repr(value)
    line = " ".join(written.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def main_options(configuration: Any) -> str:
    """A configuration with its first option and those that are not the default."""
    fields = dataclasses.fields(configuration) if dataclasses.is_dataclass(configuration) else ()
    given = {
        field.name: getattr(configuration, field.name)
        for field in fields
        if field is fields[0] or getattr(configuration, field.name) != field.default
    }
    options = ", ".join(f"{name}={_REPR.repr(value)}" for name, value in given.items())
    return f"{type(configuration).__name__}({options})"


@dataclasses.dataclass(frozen=True)
class Range:
    """Two numbers, shown as a range."""

    low: float
    high: float


class _Short(reprlib.Repr):
    """Containers of a few parts; arrays inside them by shape."""

    def __init__(self) -> None:
        super().__init__()
        self.maxtuple = self.maxlist = self.maxdict = 3

    def repr1(self, x: Any, level: int) -> str:
        return text(x) if isinstance(x, np.ndarray | Shown) else super().repr1(x, level)


_REPR = _Short()
