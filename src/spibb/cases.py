"""Cases: new rows, and the states that they are in, encoded as the log of a policy was.

A case is a label of a state, or raw values of the state's columns, numbers cut into the bins of the
log. One case and a million are encoded by one definition, `CaseEncoder.part`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spibb.arrays import from_arrow, is_arrow, python_values
from spibb.binning import Bins
from spibb.checks import (
    NUMBER_IN_TEXT,
    did_you_mean,
    number,
    one_kind,
    parse_value,
    shown,
    some,
    such_rows,
)
from spibb.columns import labels_column, to_arrow_table
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.irregular_tables import MISSING_LABEL, WORDS
from spibb.labels import Label, Vocabulary, check_exact, label_parts
from spibb.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

UNKNOWN = -1
"""The code of a case whose state the policy does not know."""
PANDAS_MISSING = ("NAType", "NaTType")
"""Types of pandas' missing values, by name: pandas need not be there."""
DENSE = 1 << 22
"""Tables with up to this many entries are looked up directly."""


@dataclass(frozen=True, eq=False)
class CaseEncoder:
    """From cases to codes of `states`; `bins` cut the columns that were cut in the log."""

    states: Vocabulary
    bins: Mapping[str, Bins] = field(default_factory=dict)

    def label(self, case: Mapping[str, Any] | Label) -> Label:
        """The label of the state that a case is in; what is not a state stays as it is."""
        names = self.states.names
        if isinstance(case, Mapping):
            check_case(case, names)
            values = [case[name] for name in names]
        elif self.states.find(case) is not None:
            return case
        else:
            values = list(case) if isinstance(case, tuple | list) else [case]
            if len(values) != len(names):
                return case
        parts = tuple(self.part(i, value) for i, value in enumerate(values))
        for name, part in zip(names, parts):
            if part is None:
                raise InputError(f"{name!r} is missing: give a value, or follow the current policy")
        return parts if len(parts) > 1 else parts[0]

    def part(self, position: int, value: Any) -> Label | None:
        """A value of one column as the part of a label; None where it is missing.

        Where the log had missing values as a level of their own, that is the part.
        """
        name, raw = self.states.names[position], _plain(value)
        level = MISSING_LABEL if MISSING_LABEL in self._index[position] else None
        if raw is None:
            return level
        if name in self.bins:
            cut = self.bins[name]
            if raw in cut.labels:
                return raw
            if _is_missing_word(raw) or raw == level:
                return level
            return cut.label(number(name, _as_number(raw), -math.inf, math.inf))
        if isinstance(raw, list | tuple | dict | set | np.ndarray):
            raise InputError(f"{name} is {shown(raw)}, expected one value: text or a number")
        if isinstance(self._example(position), str):
            return str(_whole_number(raw, name))
        return _whole_number(parse_value(raw) if isinstance(raw, str) else raw, name)

    def values(self, name: str) -> Collection[Label]:
        """The values that states have in a column."""
        return self._index[self.states.names.index(name)].keys()

    def _example(self, position: int) -> Label:
        known = self.states[0]
        return known[position] if isinstance(known, tuple) else known

    def codes(self, cases: Any) -> np.ndarray:
        """The code of each case's state [N]; UNKNOWN where there is none, or a value is missing.

        `cases` are a dataframe or a mapping with the columns of the state, a list of such mappings
        for one case each, or labels of states.
        """
        columns = case_columns(cases, self.states.names)
        found = [self._part_codes(i, column) for i, column in enumerate(columns)]
        code = found[0]
        for level, part in zip(self._levels, found[1:]):
            code = level.find(code, part)
        return np.where(code < 0, UNKNOWN, self._order[code])

    def _part_codes(self, position: int, column: pa.Array) -> np.ndarray:
        """The code of each value of one column among the values that states have there."""
        cut, index = self.bins.get(self.states.names[position]), self._index[position]
        if cut is not None and _is_number(column):
            values = from_arrow(column.cast("float64", safe=False))
            known = np.array([index.get(label, UNKNOWN) for label in (*cut.labels, MISSING_LABEL)])
            place = np.searchsorted(np.array(cut.edges), values, side="right")
            return known[np.where(np.isnan(values), -1, place)]
        coded = column if _is_dictionary(column) else column.dictionary_encode()
        rows = from_arrow(coded.indices.cast("int32"), missing=-1).astype(np.int32)
        distinct = python_values(coded.dictionary)
        codes = _each(lambda value: self._code(position, value), distinct, rows, UNKNOWN)
        return np.array([*codes, index.get(MISSING_LABEL, UNKNOWN)], dtype=np.int64)[rows]

    def _code(self, position: int, value: Any) -> int:
        """The code of a value."""
        part = self.part(position, value)
        example = self._example(position)
        alike = isinstance(part, bool) == isinstance(example, bool)  # Python takes true for 1
        return self._index[position].get(part, UNKNOWN) if alike else UNKNOWN

    @cached_property
    def _parts(self) -> list[Sequence[Label]]:
        """The columns of the states' labels."""
        if len(self.states.names) == 1:
            return [self.states.labels]
        return [list(part) for part in zip(*self.states.labels)]

    @cached_property
    def _index(self) -> list[dict[Label, int]]:
        """A code for each distinct value of each column."""
        return [
            {label: code for code, label in enumerate(dict.fromkeys(part))} for part in self._parts
        ]

    @cached_property
    def _prefixes(self) -> tuple[list[_Level], np.ndarray]:
        """The levels of the search, and the state [S] behind each code of the last one."""
        coded = [
            np.array([index[label] for label in part], dtype=np.int64)
            for part, index in zip(self._parts, self._index)
        ]
        levels, prefix = [], coded[0]
        for part, index in zip(coded[1:], self._index[1:]):
            level = _Level(np.unique(prefix * len(index) + part), len(index))
            prefix = level.find(prefix, part)
            levels.append(level)
        order = np.empty(len(self.states), dtype=np.int64)
        order[prefix] = np.arange(len(self.states))
        return levels, order

    @property
    def _levels(self) -> list[_Level]:
        return self._prefixes[0]

    @property
    def _order(self) -> np.ndarray:
        return self._prefixes[1]


@dataclass(frozen=True, eq=False)
class _Level(Frozen):
    """Which pairs (code of the columns so far, code in the next column) some state has.

    `keys` are sorted: code so far × `size` + next code. The place of a key is the code from here.
    """

    keys: np.ndarray
    size: int

    def find(self, prefix: np.ndarray, part: np.ndarray) -> np.ndarray:
        """The code of each pair [N], UNKNOWN where no state has it."""
        known = (prefix >= 0) & (part >= 0)
        wanted = np.where(known, prefix * self.size + part, 0)
        if self.keys[-1] < DENSE:
            return np.where(known, self._places[np.minimum(wanted, self.keys[-1] + 1)], UNKNOWN)
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(known & (self.keys[place] == wanted), place, UNKNOWN)

    @cached_property
    def _places(self) -> np.ndarray:
        places = np.full(self.keys[-1] + 2, UNKNOWN, dtype=np.int64)
        places[self.keys] = np.arange(len(self.keys))
        return places


def check_case(case: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse a case that has other columns than the state."""
    for name in (*case, *names):
        if name not in names or name not in case:
            wrong = "is not a column of the state" if name not in names else "is missing"
            raise InputError(f"{name!r} {wrong}: a state here is {', '.join(names)}")


def case_number(name: str, value: Any) -> float:
    """The finite number that a column of a case holds; NaN where it is missing."""
    raw = _plain(value)
    if raw is None or _is_missing_word(raw):
        return math.nan
    return number(name, _as_number(raw), -math.inf, math.inf, "()")


def case_numbers(cases: Any, names: Sequence[str]) -> np.ndarray:
    """The columns of many cases as numbers [N, d]; NaN where one is missing."""
    columns = case_columns(cases, names)
    return np.column_stack([_numbers(column, name) for column, name in zip(columns, names)])


def _numbers(column: pa.Array, name: str) -> np.ndarray:
    if _is_number(column):
        values = from_arrow(column.cast("float64", safe=False))
        _check_finite(values, name)
        return values
    coded = column if _is_dictionary(column) else column.dictionary_encode()
    rows = from_arrow(coded.indices.cast("int32"), missing=-1).astype(np.int32)
    distinct = python_values(coded.dictionary)
    read = _each(lambda value: case_number(name, value), distinct, rows, math.nan)
    return np.array([*read, math.nan])[rows]


def _each(
    read: Callable[[Any], float], values: Sequence[Any], rows: np.ndarray, unread: float
) -> list[float]:
    """What is read of each value; `rows` [N] are numbers of values.

    The error names the first row that cannot be read, and counts all of them. What no row has is
    `unread`.
    """
    found, errors = [], {}
    for place, value in enumerate(values):
        try:
            found.append(read(value))
        except InputError as error:
            found.append(unread)
            errors[place] = error
    where = np.flatnonzero(np.isin(rows, list(errors)))
    if len(where):
        raise InputError(f"{errors[int(rows[where[0]])]}{_in_rows(where)}") from None
    return found


def case_columns(cases: Any, names: Sequence[str]) -> list[pa.Array]:
    """The columns of the state as Arrow arrays, of a dataframe, a mapping, or labels."""
    if isinstance(cases, Mapping) or hasattr(type(cases), "columns"):
        return _named_columns(cases, names)
    if isinstance(cases, list | tuple) and cases and isinstance(cases[0], Mapping):
        return _named_columns(_by_column(cases, names), names)
    listed = isinstance(cases, Iterable) and getattr(cases, "ndim", 1) > 0
    if isinstance(cases, str | bytes) or not listed:
        raise InputError(
            f"cases is {shown(cases)}, expected a table or a mapping with the columns "
            f"{', '.join(names)}, or a list of states: give one case as a list of one"
        )
    parts = label_parts(labels_column(cases, "cases"), "/".join(names))
    if len(parts) != len(names):
        raise InputError(
            f"each case has {counted(len(parts), 'part')}, but a state has the columns "
            f"{', '.join(names)}: "
            "give a table with these columns"
        )
    return [_array(part, name) for part, name in zip(parts, names)]


def _by_column(cases: Sequence[Any], names: Sequence[str]) -> dict[str, list[Any]]:
    """A list of mappings as one mapping of lists."""
    for row, case in enumerate(cases):
        absent = [name for name in names if not isinstance(case, Mapping) or name not in case]
        if absent:
            raise InputError(f"case {row} has no {absent[0]!r}: a state here is {', '.join(names)}")
    return {name: [case[name] for case in cases] for name in names}


def _named_columns(cases: Any, names: Sequence[str]) -> list[pa.Array]:
    import narwhals as nw

    if isinstance(cases, Mapping):
        _check_named(list(cases), names)
        return _same_length({name: _array(cases[name], name) for name in names})
    frame = nw.from_native(cases)
    _check_named(frame.collect_schema().names(), names)
    chosen = frame.select(*names)
    table = to_arrow_table(chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen)
    return [_whole(table.column(name), name) for name in names]


def _check_named(present: Sequence[str], names: Sequence[str]) -> None:
    for name in names:
        if name not in present:
            hint = did_you_mean(name, [str(other) for other in present])
            raise InputError(
                f"the cases have no column {name!r}{hint}: a state here is {', '.join(names)}, "
                f"and their columns are {some(present, 20)}"
            )


def _same_length(columns: Mapping[str, pa.Array]) -> list[pa.Array]:
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
        raise InputError(f"the columns of the cases differ in length ({lengths}): fix them")
    return list(columns.values())


def _array(values: Any, name: str) -> pa.Array:
    import pyarrow as pa

    given = labels_column(values, name)
    try:
        found = given if is_arrow(given) else pa.array(given, from_pandas=True)
    except OverflowError:  # beyond 64 bits a label is text, as for a single case
        return _array([None if value is None else str(value) for value in given], name)
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(
            f"column {name!r} of the cases mixes types: make every value text, or a number"
        ) from None
    if found is not given:
        one_kind(given, found.type, f"column {name!r} of the cases")
    return _whole(found, name)


def _check_finite(values: np.ndarray, name: str) -> None:
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        value = values[infinite[0]]
        raise InputError(f"{name} is {value}, expected a number in (-inf, inf){_in_rows(infinite)}")


def _in_rows(where: np.ndarray) -> str:
    return f", in row {where[0]} of the cases ({such_rows(len(where))}): fix or drop it"


def _whole(column: Any, name: str) -> Any:
    import pyarrow as pa

    if pa.types.is_nested(column.type):
        raise InputError(
            f"column {name!r} of the cases holds {some(column[:1].to_pylist())}, expected text or "
            "numbers: give one value for each case"
        )
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _is_dictionary(column: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(column.type))


def _is_number(column: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
                or pa.types.is_decimal(column.type))  # fmt: skip


def _plain(value: Any) -> Any:
    """A value without NumPy's types; NaN is missing, as in logs, and so is pandas' NA."""
    raw = value.item() if isinstance(value, np.generic) else value
    if type(raw).__name__ in PANDAS_MISSING:
        return None
    return None if isinstance(raw, float | Decimal) and math.isnan(raw) else raw


def _is_missing_word(raw: Any) -> bool:
    """Whether a text stands for a missing number, as in logs."""
    return isinstance(raw, str) and raw.strip(" ").lower() in WORDS


def _as_number(raw: Any) -> Any:
    """The number that a log reads where a number is expected; anything else stays as it is."""
    if isinstance(raw, str):
        return float(raw) if NUMBER_IN_TEXT.fullmatch(raw) else raw
    return float(raw) if isinstance(raw, bool | Decimal) else raw


def _whole_number(value: Any, name: str) -> Any:
    """3.0 is the label 3, as in logs, which refuse the same floats; other values stay."""
    check_exact(value, name)
    whole = isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value)
    return int(value) if whole else value
