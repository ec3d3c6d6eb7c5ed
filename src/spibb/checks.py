"""Argument checks: one place, one wording.

A message is one line that names the thing, its value, the limit, the place and the remedy.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import math
import numbers
import re
import reprlib
import sys
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, ParamSpec, TypeVar

import numpy as np

from spibb import words
from spibb.errors import InputError as InputError

ROW_SUM_TOLERANCE = 1e-6
"""How far from 1 a row of probabilities may sum: files keep about six digits."""


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


def choice(name: str, value: str, options: Sequence[str]) -> str:
    """Check that a name is one of the options."""
    if not isinstance(value, str) or value not in options:
        hint = did_you_mean(value, options) if isinstance(value, str) else ""
        raise InputError(f"{name} is {shown(value)}{hint}: choose one of {', '.join(options)}")
    return value


def number(name: str, value: Any, low: float, high: float, brackets: str = "[]") -> float:
    """Check that a number lies between two limits; `brackets` says which ends are included.

    >>> spibb.checks.number("epsilon", 2, 0, 1)
    Traceback (most recent call last):
        ...
    spibb.errors.InputError: epsilon is 2, expected a number in [0, 1]
    """
    x = as_float(value)
    above = x >= low if brackets[0] == "[" else x > low
    below = x <= high if brackets[1] == "]" else x < high
    if not (above and below):  # NaN is neither
        _, least, most = words.apart(x, low, high)
        limits = f"{brackets[0]}{least}, {most}{brackets[1]}"
        raise InputError(f"{name} is {shown(value)}, expected a number in {limits}")
    return x


def as_float(value: Any) -> float:
    """A number as a float; NaN for anything that is none: text, None, true, a list."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        return float(value) if real else math.nan
    except OverflowError:  # a whole number beyond the largest float
        return math.inf if value > 0 else -math.inf


def shown(value: Any) -> str:
    """A value for a message: on one line, and cut where it is long."""
    nested = isinstance(value, dict | list | tuple | set)
    return one_line(reprlib.repr(value) if nested else repr(value), 80)


def one_line(text: str, limit: int = 300) -> str:
    """A text on one line, cut where it is long."""
    words = " ".join(text.split())
    return words if len(words) <= limit else f"{words[: limit - 3]}..."


def instance(name: str, value: Any, kind: type | tuple[type, ...], remedy: str) -> None:
    """Check the type of an argument; `remedy` says what makes one."""
    if not isinstance(value, kind):
        raise wrong_type(name, value, kind, remedy)


def wrong_type(
    name: str, value: Any, kind: type | tuple[type, ...], remedy: str | None = None
) -> InputError:
    """The error for an argument of another type; the last of several is what one should make."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    wanted = " or ".join(_named(k) for k in kinds if k is not type(None))
    remedy = MADE_BY[kinds[-1].__name__] if remedy is None else remedy
    return InputError(f"{name} is {named(value)}, expected {wanted}: {remedy}")


MADE_BY = {
    "Log": "spibb.read_log, Log.from_frame and Log.from_arrays make one",
    "Counts": "spibb.count_log and Counts.from_log make them",
    "Policy": "spibb.read_policy and Policy(probs, states, actions) make one",
    "MDP": "spibb.estimate_mdp and MDP.from_outcomes make one",
    "Vocabulary": "Vocabulary(labels) makes one",
    "Problem": "Problem.from_log(log, baseline) makes one",
    "Improvement": "the improve method of an algorithm makes one",
    "Generator": "np.random.default_rng(0) makes one",
    "LogTable": "spibb.open_log makes one",
    "Path": "give the name of a file",
}
P = ParamSpec("P")
R = TypeVar("R")


def takes(**kinds: type | tuple[type, ...]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the types of named arguments before a public function starts."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            given = signature.bind(*args, **kwargs).arguments
            for name, kind in kinds.items():
                if name in given:
                    last = kind[-1] if isinstance(kind, tuple) else kind
                    instance(name, given[name], kind, MADE_BY[last.__name__])
            return function(*args, **kwargs)

        return checked

    return decorate


def named(value: Any) -> str:
    """What kind of thing a value is."""
    return "None" if value is None else _named(type(value))


def _named(kind: type) -> str:
    vowel = kind.__name__[0] in "AEIOaeio" or kind.__name__.startswith("MDP")
    return f"{'an' if vowel else 'a'} {kind.__name__}"


def discount(value: float) -> float:
    """Check that γ lies in [0, 1): values are infinite sums and γ = 1 may not converge."""
    return number("discount", value, 0, 1, "[)")


def delta(value: float) -> float:
    """Check a failure probability δ."""
    return number("delta", value, 0, 1, "()")


def delta_or_one(value: float) -> float:
    """Check a failure probability that may be 1: no confidence asked for."""
    return number("delta", value, 0, 1, "(]")


def n_wedge(value: float) -> float:
    """Check the count threshold N∧: any non-negative number; infinity copies the baseline."""
    return number("n_wedge", value, 0, math.inf)


def positive(name: str, value: Any) -> int:
    """Check a whole number of at least one."""
    x = as_float(value)
    if not (1 <= x < math.inf and x.is_integer()):
        raise InputError(f"{name} is {shown(value)}, expected a whole number of at least 1")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """Check a true or false; 0, 1 and text are none."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is {shown(value)}, expected true or false")
    return bool(value)


def flags(configuration: Any) -> None:
    """Check every field of a configuration whose default is true or false."""
    for field in dataclasses.fields(configuration):
        if isinstance(field.default, bool):
            flag(field.name, getattr(configuration, field.name))


def seed(value: Any) -> int:
    """Check a seed: a whole number of at least 0."""
    x = as_float(value)
    if not (x >= 0 and x.is_integer()):
        raise InputError(f"seed is {shown(value)}, expected a whole number of at least 0")
    return int(value)


def generator(value: Any) -> np.random.Generator:
    """Check a source of random numbers."""
    instance("rng", value, np.random.Generator, "write rng=np.random.default_rng(0)")
    return value


def several(name: str, value: Any, example: str) -> tuple[Any, ...]:
    """Check that an argument is one or more values: a list, a tuple, a range, an array."""
    single = isinstance(value, str | bytes | dict) or not isinstance(value, Iterable)
    values = () if single else tuple(value)
    if not values:
        raise InputError(f"{name} is {shown(value)}, expected one or more: write {example}")
    return values


def column(name: str, values: Any) -> np.ndarray:
    """Check an array [N] of numbers, and return it as floats."""
    array = real_array(name, values)
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}, expected one value per row")
    return array


def real_array(name: str, values: Any) -> np.ndarray:
    """Numbers as floats, in any shape; text, times and complex numbers are none."""
    array = unmasked(name, values)
    kind = array.dtype.kind
    if kind not in "biufO" or (kind == "O" and not all(map(_is_real, array.flat))):
        raise InputError(f"{name} is {shown(values)}, expected an array of numbers")
    return array.astype(np.float64, copy=False)


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real | Decimal)


def whole_array(name: str, values: Any) -> np.ndarray:
    """Codes [N]: whole numbers of any type."""
    array = unmasked(name, values)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name} holds {array.dtype}, expected whole numbers: give codes 0, 1, …")
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}, expected one code per row")
    return array if array.dtype.kind in "iu" else array.astype(np.int64)


def is_masked(values: Any) -> bool:
    """Whether values are a masked array; nobody has made one before numpy.ma is loaded."""
    return "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray)


def unmasked(name: str, values: Any) -> np.ndarray:
    """Values as a plain array; a masked entry is missing, and refused with its row."""
    if is_masked(values) and values.size and values.ndim:
        masked = np.ma.getmaskarray(values).reshape(len(values), -1)
        check_present(np.asarray(~masked.any(axis=1)), name)
    try:
        return np.asarray(values)
    except ValueError:  # rows of different lengths
        raise InputError(
            f"{name} has rows of different lengths: give rows of equal length"
        ) from None


def check_present(present: np.ndarray, name: str) -> None:
    """Refuse a column with missing values; name the first row."""
    if not present.all():
        n = len(present) - int(present.sum())
        raise InputError(
            f"{name} is missing in row {int(np.argmin(present))} ({n} such rows): fill or drop them"
        )


def probability_rows(
    probs: np.ndarray, labels: Sequence[Any], columns: Sequence[Any], what: str = "policy"
) -> None:
    """Check that every row [A] of probs [S, A] is a distribution; name the first that is not."""
    bad = ~((probs >= 0) & (probs <= 1 + ROW_SUM_TOLERANCE))  # also catches NaN
    if bad.any():
        s, a = np.argwhere(bad)[0]
        found, _ = words.apart(probs[s, a], 1)
        raise InputError(
            f"{what} row {labels[s]!r}, action {columns[a]!r}: probability is {found}, "
            "expected a number in [0, 1]: fix that entry"
        )
    sums = probs.sum(axis=1)
    off = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    if off.any():
        s = int(np.argmax(off))
        raise InputError(
            f"{what} row {labels[s]!r} sums to {words.apart(sums[s], 1)[0]}, expected 1: "
            "renormalise it or check its source"
        )


def whole_rows(probs: np.ndarray) -> np.ndarray:
    """Rows [S, A] divided by their sums; those that sum to 1 up to rounding stay as they are."""
    sums = probs.sum(axis=1, keepdims=True)
    rounding = probs.shape[1] * np.finfo(np.float64).eps
    return probs / np.where(np.abs(sums - 1) <= rounding, 1.0, sums)


def finite(values: np.ndarray, what: str) -> None:
    """Check that an array [N] holds finite numbers; name the first row that does not."""
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{what} in row {row} is {values[row]}, expected a finite number: "
            f"fix or drop the row ({int(bad.sum())} such rows)"
        )


def same_length(**columns: np.ndarray | None) -> int:
    """Check that all columns given have one length, and return it."""
    for name, given in columns.items():
        sized = hasattr(given, "__len__") and getattr(given, "ndim", 1) > 0
        if given is not None and not sized:
            raise InputError(f"{name} is {shown(given)}, expected one value per transition")
    sizes = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise InputError(f"columns differ in length ({listed}): give one value per transition")
    return next(iter(sizes.values()))


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


def sparse_rows(what: str, indptr: np.ndarray, n_rows: int, **entries: np.ndarray) -> None:
    """Refuse rows that do not fit together: kernels read without a check."""
    for name, array in {"indptr": indptr, **entries}.items():
        if array.ndim != 1:
            raise InputError(f"{name} of {what} has {array.ndim} dimensions, expected 1")
    if len(indptr) != n_rows + 1:
        raise InputError(f"indptr of {what} has {len(indptr)} entries, expected {n_rows + 1}")
    size = same_length(**entries)
    if indptr[0] != 0 or indptr[-1] != size or (indptr[1:] < indptr[:-1]).any():
        raise InputError(f"indptr of {what} must rise from 0 to {size}, where its rows end")


def narrow(owner: Any) -> None:
    """Give `indptr` and `successors` the types that kernels read; they were checked before."""
    for name, kind in (("indptr", np.int64), ("successors", np.int32)):
        array = getattr(owner, name)
        if array.dtype != kind or not array.flags.c_contiguous:
            object.__setattr__(owner, name, np.ascontiguousarray(array, dtype=kind))


def codes(what: str, values: np.ndarray, n: int, least: int = 0) -> None:
    """Refuse codes that are not from `least` to n − 1."""
    outside = (values < least) | (values >= n)
    if outside.any():
        raise InputError(
            f"{what} hold {values[outside][0]}, expected codes from {least} to {n - 1}"
        )


def action_codes(values: Any, n_actions: int, remedy: str) -> np.ndarray:
    """Check the codes of actions [N], and return a copy of them; the remedy is for the caller."""
    array = np.array(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf" or (array != np.floor(array)).any():
        raise InputError(
            f"actions has shape {array.shape} and type {array.dtype}, expected one whole number "
            "per transition: give codes 0 … A − 1"
        )
    bad = (array < 0) | (array >= n_actions)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"actions in row {row} is {array[row]}, expected a code in 0 … {n_actions - 1}: "
            f"{remedy} ({int(bad.sum())} such rows)"
        )
    return array.astype(np.int64)


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
