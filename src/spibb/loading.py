"""JSON, TOML and NPZ files: read, and compared with a declared form before anything uses them.

A form says what a value must be. What does not fit is one line: file, place, value, what was
expected, remedy. A format is read off its declaration:

    record({"format": whole(1, 1), "bins": table_of(list_of(real()))})
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spibb.checks import as_float, did_you_mean, one_line, shown
from spibb.errors import InputError


@dataclass(frozen=True)
class Place:
    """Where a value is: a file, the way to it inside the file; and how to fix it."""

    file: str
    remedy: str
    way: str = ""

    def entry(self, name: str) -> Place:
        """The entry of a table."""
        return replace(self, way=f"{self.way}.{name}" if self.way else name)

    def item(self, index: int) -> Place:
        """The item of a list, counted from 0."""
        return replace(self, way=f"{self.way}[{index}]")

    def __str__(self) -> str:
        return one_line(f"{self.file}: {self.way}" if self.way else self.file)


Inside = tuple[Any, "Form", Place]


def _no_parts(value: Any, place: Place) -> Iterator[Inside]:
    return iter(())


@dataclass(frozen=True)
class Form:
    """What a value must be: in words, as a test, and the forms of its parts."""

    expected: str
    fits: Callable[[Any], bool]
    parts: Callable[[Any, Place], Iterator[Inside]] = _no_parts
    describe: Callable[[Any], str] = shown


def check(value: Any, form: Form, place: Place) -> None:
    """Refuse a value that is not of a form, or whose parts are not of theirs."""
    if not form.fits(value):
        raise InputError(
            f"{place} is {form.describe(value)}, expected {form.expected}: {place.remedy}"
        )
    for part, inner, where in form.parts(value, place):
        check(part, inner, where)


def anything() -> Form:
    """No limits."""
    return Form("anything", lambda value: True)


def null() -> Form:
    """JSON's null."""
    return Form("null", lambda value: value is None)


def flag() -> Form:
    """True or false; 0 and 1 are numbers."""
    return Form("true or false", lambda value: isinstance(value, bool))


def text() -> Form:
    """Text that can be written again: without lone surrogates."""
    return Form("text", lambda value: isinstance(value, str) and encodable(value))


def one_of(*options: str) -> Form:
    """One of some texts."""
    return Form(f"one of {', '.join(options)}", lambda value: value in options)


def whole(low: float = -math.inf, high: float = math.inf) -> Form:
    """A whole number between two limits, both included; neither true nor 1.0 is one."""
    least = "" if low == -math.inf else f" of at least {low:g}"
    expected = f"{low:g}" if low == high else f"a whole number{least}"
    return Form(expected, lambda value: type(value) is int and low <= value <= high)


def real(low: float = -math.inf, high: float = math.inf, brackets: str = "()") -> Form:
    """A number between two limits; `brackets` says which ends are included."""
    limits = f"{brackets[0]}{low:g}, {high:g}{brackets[1]}"

    def fits(value: Any) -> bool:
        x = as_float(value)
        above = x >= low if brackets[0] == "[" else x > low
        return above and (x <= high if brackets[1] == "]" else x < high)

    return Form("a finite number" if limits == "(-inf, inf)" else f"a number in {limits}", fits)


def nan() -> Form:
    """A number that is not known."""
    return Form("NaN", lambda value: isinstance(value, float) and math.isnan(value))


def either(*forms: Form) -> Form:
    """Any of several forms; the first that fits the value as a whole decides about its parts."""

    def parts(value: Any, place: Place) -> Iterator[Inside]:
        return next(form for form in forms if form.fits(value)).parts(value, place)

    expected = " or ".join(form.expected for form in forms)
    return Form(expected, lambda value: any(form.fits(value) for form in forms), parts)


def list_of(form: Form, least: int = 0) -> Form:
    """A list of values of one form."""

    def parts(value: list[Any], place: Place) -> Iterator[Inside]:
        return ((item, form, place.item(index)) for index, item in enumerate(value))

    expected = f"a list{' that is not empty' if least else ''}, each {form.expected}"
    return Form(expected, lambda value: isinstance(value, list) and len(value) >= least, parts)


def row(*forms: Form) -> Form:
    """A list in which each value has its own form."""

    def parts(value: list[Any], place: Place) -> Iterator[Inside]:
        pairs = enumerate(zip(value, forms))
        return ((item, form, place.item(index)) for index, (item, form) in pairs)

    expected = f"a list of {len(forms)} values"
    return Form(expected, lambda value: isinstance(value, list) and len(value) == len(forms), parts)


def table_of(form: Form, least: int = 0) -> Form:
    """A table whose entries have any names and one form."""

    def parts(value: dict[str, Any], place: Place) -> Iterator[Inside]:
        return ((entry, form, place.entry(name)) for name, entry in value.items())

    expected = "a table that is not empty" if least else "a table"
    return Form(expected, lambda value: isinstance(value, dict) and len(value) >= least, parts)


def record(
    required: Mapping[str, Form],
    optional: Mapping[str, Form] | None = None,
    *,
    more: bool = False,
) -> Form:
    """A table with given entries; with `more`, others are left alone, not refused."""
    known = {**required, **(optional or {})}

    def parts(value: dict[str, Any], place: Place) -> Iterator[Inside]:
        for name in value:
            if name not in known and not more:
                hint = did_you_mean(name, known)
                raise InputError(
                    f"{place} has the unknown entry {shown(name)}{hint}: the entries are "
                    f"{', '.join(known)}"
                )
        for name, inner in known.items():
            if name in value:
                yield value[name], inner, place.entry(name)
            elif name in required:
                raise InputError(
                    f"{place} has no {name!r}, expected {inner.expected}: {place.remedy}"
                )

    return Form("a table", lambda value: isinstance(value, dict), parts)


def array(kinds: str, axes: int = 0) -> Form:
    """A NumPy array of some kinds (as in ``dtype.kind``) with so many axes."""
    what = "text" if kinds == "U" else "numbers"
    return Form(
        f"an array of {what} with {axes} axes"
        if axes
        else f"a single {'text' if kinds == 'U' else 'number'}",
        lambda value: value.dtype.kind in kinds and value.ndim == axes,
        describe=described,
    )


def described(value: np.ndarray) -> str:
    """An array for a message."""
    return f"{value.dtype} of shape {value.shape}"


def read_text(path: str | Path, what: str) -> str:
    """Read a text in UTF-8, with or without a byte order mark."""
    try:
        return _existing(path, what).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"cannot read {what}: it is not text in UTF-8; check the file") from None
    except OSError as error:
        raise InputError(f"cannot read {what}: {error.strerror}; check the file") from None


def read_json(path: str | Path, form: Form, what: str, remedy: str) -> Any:
    """Read a JSON file of a form; `what` is it for messages."""
    return parse_json(read_text(path, what), form, what, remedy)


def parse_json(content: str, form: Form, what: str, remedy: str) -> Any:
    """Read the text of a JSON file."""
    return _parsed(content, json.loads, "JSON", form, Place(what, remedy))


def read_toml(path: str | Path, form: Form, what: str, remedy: str) -> dict[str, Any]:
    """Read a TOML file of a form; `what` is it for messages."""
    return parse_toml(read_text(path, what), form, what, remedy)


def parse_toml(content: str, form: Form, what: str, remedy: str) -> dict[str, Any]:
    """Read the text of a TOML file."""
    return _parsed(content, tomllib.loads, "TOML", form, Place(what, remedy))


def read_npz(path: str | Path, form: Form, what: str, remedy: str) -> dict[str, np.ndarray]:
    """Read all arrays of an NPZ file of a form, without pickles."""
    try:
        with np.load(_existing(path, what), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except InputError:
        raise
    except Exception as error:  # damaged archives raise whatever their bytes happen to lead to
        reason = one_line(str(error) or type(error).__name__)
        raise InputError(f"{what} cannot be read ({reason}): {remedy}") from None
    check(arrays, form, Place(what, remedy))
    return arrays


def _parsed(
    content: str, parse: Callable[[str], Any], language: str, form: Form, place: Place
) -> Any:
    try:
        value = parse(content)
    except (ValueError, RecursionError) as error:
        reason = one_line(str(error))
        raise InputError(f"{place} is not {language} ({reason}): {place.remedy}") from None
    check(value, form, place)
    return value


def _existing(path: str | Path, what: str) -> Path:
    path = Path(path)
    try:
        found, folder = path.exists(), path.is_dir()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {what}: {one_line(str(error))}; check the name") from None
    if not found or folder:
        reason = "it is a folder, name a file" if folder else "there is no such file"
        raise InputError(f"cannot read {what}: {reason}; check the name")
    return path


def encodable(value: str) -> bool:
    """Whether a text can be written: without lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in value)
