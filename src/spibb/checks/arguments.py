"""Checks of single arguments: their type, and the limits of numbers."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

import numpy as np

from spibb import words
from spibb.checks.wording import did_you_mean, indefinite, named, shown
from spibb.errors import InputError


def choice(name: str, value: str, options: Sequence[str]) -> str:
    """Check that a name is one of the options."""
    if not isinstance(value, str) or value not in options:
        hint = did_you_mean(value, options) if isinstance(value, str) else ""
        raise InputError(f"{name} is {shown(value)}{hint}: choose one of {', '.join(options)}")
    return value


def options(name: str, kind: Any, given: Iterable[str]) -> None:
    """Check that a configuration, a dataclass, has all options that are given for it."""
    known = [field.name for field in dataclasses.fields(kind)]
    for option in given:
        if option not in known:
            hint = did_you_mean(option, known)
            raise InputError(
                f"{name} has no option {option!r}{hint}: its options are {', '.join(known)}"
            )


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
    _check_machine_number(name, value, x)
    return x


def _check_machine_number(name: str, value: Any, x: float) -> None:
    """Refuse a number that NumPy does not compute with, such as a fraction; x is its float."""
    plain = isinstance(value, float | int | np.number | np.ndarray)
    if not plain or (isinstance(value, int) and math.isinf(x)):
        raise InputError(f"{name} is {shown(value)}, expected a float: write {x!r}")


def limit(name: str, value: Any) -> float | None:
    """Check a declared limit of rewards or returns: a finite number, or None for no limit."""
    return None if value is None else number(name, value, -math.inf, math.inf, "()")


def as_float(value: Any) -> float:
    """A number as a float; NaN for anything else: text, None, true, a list."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        return float(value) if real else math.nan
    except OverflowError:  # a whole number beyond the largest float
        return math.inf if value > 0 else -math.inf


def instance(
    name: str, value: Any, kind: type | tuple[type, ...], remedy: str | None = None
) -> None:
    """Check the type of an argument; `remedy` says what makes one, by default as in `MADE_BY`."""
    if not isinstance(value, kind):
        raise wrong_type(name, value, kind, remedy)


def wrong_type(
    name: str, value: Any, kind: type | tuple[type, ...], remedy: str | None = None
) -> InputError:
    """The error for an argument of another type; the last of several is what one should make."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    *others, last = (indefinite(k) for k in kinds if k is not type(None))
    wanted = f"{', '.join(others)} or {last}" if others else last
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
    "Box": "spibb.solve.free_box makes one",
    "LogTable": "spibb.open_log makes one",
    "LoadedPolicy": "spibb.load_policy makes one",
    "ndarray": "the probs of a Policy are one",
    "str": "give a text",
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
            given: Mapping[str, Any] = {}
            # of arguments that are missing, the call below raises Python's own error
            with suppress(TypeError):
                given = signature.bind(*args, **kwargs).arguments
            for name, kind in kinds.items():
                if name in given:
                    instance(name, given[name], kind)
            return function(*args, **kwargs)

        return checked

    return decorate


def discount(value: float) -> float:
    """Check that γ lies in [0, 1): values are infinite sums and γ = 1 may not converge."""
    return number("discount", value, 0, 1, "[)")


def delta(value: float) -> float:
    """Check the failure probability δ of an answer, which may not fail more often than not."""
    x = as_float(value)
    if 0.5 < x < 1:
        raise InputError(
            f"delta is {shown(value)}, expected a number in (0, 0.5]: it is the probability of a "
            f"wrong answer; for a level of {shown(value)} give {1 - x:.6g}"
        )
    return number("delta", value, 0, 0.5, "(]")


def delta_or_one(value: float) -> float:
    """Check a failure probability that may be 1: no confidence asked for."""
    return number("delta", value, 0, 1, "(]")


def n_wedge(value: float) -> float:
    """Check the count threshold N∧: any non-negative number; infinity copies the baseline."""
    return number("n_wedge", value, 0, math.inf)


def positive(name: str, value: Any) -> int:
    """Check a whole number of at least one."""
    x = as_float(value)
    if not (x >= 1 and x.is_integer()):
        raise InputError(f"{name} is {shown(value)}, expected a whole number of at least 1")
    if x >= 2**63:
        raise InputError(f"{name} is {shown(value)}, expected a whole number below 9.2e18")
    return int(value)


def positive_field(configuration: Any, name: str) -> None:
    """The same of a field of a frozen configuration, which then holds Python's own number."""
    object.__setattr__(configuration, name, positive(name, getattr(configuration, name)))


def flag(name: str, value: Any) -> bool:
    """Check a true or false; 0, 1 and text are refused."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is {shown(value)}, expected true or false")
    return bool(value)


def flags(configuration: Any) -> None:
    """Check every field of a configuration whose default is true or false."""
    for field in dataclasses.fields(configuration):
        if isinstance(field.default, bool):
            flag(field.name, getattr(configuration, field.name))


def seed(value: Any, name: str = "seed") -> int:
    """Check a seed: a whole number of at least 0."""
    x = as_float(value)
    if not (x >= 0 and x.is_integer() and isinstance(value, numbers.Integral)):
        raise InputError(f"{name} is {shown(value)}, expected a whole number of at least 0")
    return int(value)


def mapping(name: str, value: Any, example: str) -> Mapping[Any, Any]:
    """Check that an argument maps names to values."""
    if not isinstance(value, Mapping):
        raise InputError(f"{name} is {shown(value)}, expected a mapping: write {example}")
    return value


def callable_(name: str, value: Any, example: str) -> None:
    """Check that an argument is a function, or None where it is left out."""
    if value is not None and not callable(value):
        raise InputError(f"{name} is {shown(value)}, expected a function: write {example}")


def iterable(value: Any) -> bool:
    """Whether one can go through the values of something; an array without dimensions has none."""
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0


def several(name: str, value: Any, example: str) -> tuple[Any, ...]:
    """Check that an argument is one or more values: a list, a tuple, a range, an array."""
    single = isinstance(value, str | bytes | dict) or not iterable(value)
    values = () if single else tuple(value)
    if not values:
        raise InputError(f"{name} is {shown(value)}, expected one or more: write {example}")
    return values
