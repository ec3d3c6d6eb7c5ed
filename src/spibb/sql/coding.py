"""Labels of typed rows become codes; a source without types lets the values decide."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spibb.arrays import from_arrow, to_arrow
from spibb.columns import code_states
from spibb.errors import InputError
from spibb.irregular_tables import MISSING_LABEL
from spibb.labels import Labels, Vocabulary, encode, factorize, vocabulary
from spibb.sql.commas import with_points
from spibb.sql.engines import TEXT, Engine
from spibb.sql.reading import label_type


@dataclass(frozen=True)
class CodedRows:
    """Codes of typed rows: those of states and actions are ≥ 0, successors may be NO_STATE.

    `types` are those that the values of each column of the state decided, None for text.
    """

    states: Vocabulary
    actions: Vocabulary
    state: np.ndarray
    action: np.ndarray
    successor: np.ndarray
    types: tuple[Any, ...]


@dataclass(frozen=True)
class Coder:
    """Codes the labels of an engine's rows; `binned` columns have their types.

    Missing values may be `levels`; a text that is theirs is refused elsewhere.
    """

    engine: Engine
    names: Mapping[str, tuple[str, ...]]
    binned: Collection[str]
    levels: bool = False

    def rows(
        self,
        found: Any,
        terminated: np.ndarray,
        state_labels: Labels | None = None,
        action_labels: Labels | None = None,
    ) -> CodedRows:
        """Code the first columns of a table: those of states, actions and successors."""
        names = self.names["state"]
        width = len(names) + len(self.names["action"])
        state, action = found.columns[: len(names)], found.columns[len(names) : width]
        following = found.columns[width : width + len(names)]
        types = self._state_types(state, following, terminated)
        given = (
            None
            if state_labels is None
            else vocabulary(state_labels, *names, argument="state_labels")
        )
        states, codes, successor = code_states(
            [cast(column, kind) for column, kind in zip(state, types)],
            [cast(column, kind) for column, kind in zip(following, types)],
            terminated, given, names,
        )  # fmt: skip
        assert successor is not None
        self._check_level(states, codes, successor[successor >= 0])
        plays, played = self.actions(action, action_labels)
        return CodedRows(states, plays, codes, played, successor, tuple(types))

    def actions(
        self, columns: Sequence[Any], labels: Labels | None = None
    ) -> tuple[Vocabulary, np.ndarray]:
        """Code the columns of the actions."""
        names = self.names["action"]
        typed = [
            self._typed(column, name) if self._is_loose(name) else column
            for column, name in zip(columns, names)
        ]
        plays, played = _coded(typed, labels, names)
        self._check_level(plays, played)
        return plays, played

    def _check_level(self, labels: Vocabulary, *used: np.ndarray) -> None:
        """No value may be the text that stands for missing ones, unless these are a level."""
        parts = labels.labels if len(labels.names) > 1 else [(label,) for label in labels.labels]
        found = [code for code, part in enumerate(parts) if MISSING_LABEL in part]
        if self.levels or not any(np.isin(codes, found).any() for codes in used if found):
            return
        column = labels.names[parts[found[0]].index(MISSING_LABEL)]
        raise InputError(
            f"column {column!r} has the value {MISSING_LABEL!r}, which is the label of missing "
            "values where these are a level: give --missing as-level if it means that, or rename it"
        )

    def _typed(self, column: Any, name: str) -> Any:
        """A column with the type that its values decide."""
        (column,) = self._pointed(column)
        return cast(column, _label_type([column], name))

    def _pointed(self, *columns: Any) -> list[Any]:
        """Columns that share their labels, with decimal points if they hold numbers only."""
        return with_points(columns) if self.engine.decimal == "," else list(columns)

    def _state_types(
        self, state: list[Any], following: list[Any], terminated: np.ndarray
    ) -> list[Any]:
        """The type that the values of each part of the state decide, None where it has one.

        A CSV file has no types: states and successors show one together. What lies beyond an end is
        no state, and decides nothing; it is dropped from `following`. Decimal commas of numbers
        become points, in place.
        """
        beyond = terminated | np.logical_or.reduce(
            [from_arrow(column.is_null()) for column in following]
        )
        types: list[Any] = [None] * len(state)
        names = self.names["state"]
        for i, other in enumerate(self.names["next_state"] or names):
            if self._is_loose(names[i], other):
                following[i] = _without(following[i], beyond)
                state[i], following[i] = self._pointed(state[i], following[i])
                types[i] = _label_type([state[i], following[i]], names[i])
        return types

    def _is_loose(self, *columns: str) -> bool:
        """Whether values decide the type of columns that share their labels."""
        return any(column in self.engine.loose for column in columns) and not any(
            column in self.binned
            or (self.engine.kinds[column] == TEXT and column not in self.engine.loose)
            for column in columns
        )


def _coded(
    columns: Sequence[Any], labels: Labels | None, names: Sequence[str]
) -> tuple[Vocabulary, np.ndarray]:
    if labels is None:
        return factorize(list(columns), *names)
    given = vocabulary(labels, *names, argument="action_labels")
    return given, encode(list(columns), given, "actions")


def _label_type(columns: Sequence[Any], name: str) -> Any:
    """The type of whole numbers that labels show; none among numbers may be NaN."""
    import pyarrow.compute as pc

    kind = label_type(columns)
    if kind == "double" and any(
        pc.any(pc.is_nan(_distinct(c).cast(kind))).as_py() for c in columns
    ):
        raise InputError(
            f"column {name!r} holds nan among numbers, expected whole numbers: fill or drop those "
            "rows"
        )
    return kind


def _distinct(column: Any) -> Any:
    """The texts that a column has, which may come as codes of a dictionary."""
    import pyarrow.compute as pc

    return pc.unique(column).cast("string")


def _without(column: Any, rows: np.ndarray) -> Any:
    """A column of text with nothing in the rows [N] that are marked."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return pc.if_else(to_arrow(rows), pa.nulls(len(rows), column.type), column)
    whole = column.combine_chunks()
    codes = pc.if_else(to_arrow(rows), pa.nulls(len(rows), whole.indices.type), whole.indices)
    return pa.DictionaryArray.from_arrays(codes, whole.dictionary)


def cast(column: Any, kind: Any) -> Any:
    """A column of text as the numbers it shows, unchanged where `kind` is None."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind is None or not pa.types.is_dictionary(column.type):
        return column if kind is None else column.cast(kind)
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    used = pc.unique(whole.indices).drop_null()  # others need not be numbers
    return pa.DictionaryArray.from_arrays(
        pc.index_in(whole.indices, used), whole.dictionary.take(used).cast(kind)
    )
