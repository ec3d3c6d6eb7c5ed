"""How the columns of a log are read: one SQL expression for each, in DuckDB's dialect.

Nothing that a user writes becomes part of an expression but quoted column names and the numbers of
bin edges. A value that cannot be read is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from spibb.binning import Bins
from spibb.columns import FLAGS, UNIT
from spibb.errors import InputError
from spibb.irregular_tables import ERROR, MISSING_LABEL, STRICT, WORDS, Handling
from spibb.sql.engines import (
    FLAG,
    INTEGER,
    NUMBER,
    OTHER,
    TEXT,
    TIME,
    WIDE,
    Engine,
    quoted,
    text_literal,
)  # fmt: skip
from spibb.sql.kept import Kept

STEP_NUMBER, STEP_TIME, STEP_ZONED = "DECIMAL(38, 9)", "TIMESTAMP", "TIMESTAMPTZ"
"""How steps written as text are read: exactly, unlike floats; as times, all with a zone or none."""
STEP_TYPES = (STEP_NUMBER, STEP_TIME, STEP_ZONED)
ZONE = r":[0-9.]+\s*(Z|[+-][0-9]{2}(:?[0-9]{2})?|[A-Za-z][A-Za-z_/]*)\s*$"
"""What follows the minutes or seconds of a time that has a zone."""
LABELS = ("episode_id", "state", "action", "next_state", UNIT)
INFINITY = "CAST('inf' AS DOUBLE)"


def finite(number: str) -> str:
    """Whether a number is neither NaN nor infinite.

    Footers of Parquet files tell the range of a column without its NaN, and DuckDB relies on them:
    it takes ``x <= 5`` for true of all rows, and ``isnan(x)`` for false. A difference is computed.
    """
    return f"{number} - {number} = 0"


@dataclass(frozen=True)
class Expressions:
    """SQL expressions for the columns of a log; labels may span several columns.

    `terminated` is None where the last row of an episode that is not cut is taken to end it;
    `single` says that every row is an episode that ends. `kept` are the rows that count.
    """

    kept: Kept
    single: bool
    episode: str
    step: str
    state: tuple[str, ...]
    action: tuple[str, ...]
    next_state: tuple[str, ...]
    reward: str
    terminated: str | None
    truncated: str | None
    action_prob: str | None
    unit: tuple[str, ...]

    @property
    def table(self) -> str:
        """The rows that count, as what follows FROM."""
        return self.kept.numbered if self.single else self.kept.table

    @property
    def labels(self) -> tuple[str, ...]:
        """The keys of the aggregation besides the end flag."""
        return (*self.state, *self.action, *self.next_state)

    @property
    def ends(self) -> tuple[str, ...]:
        """The end flags that there are."""
        return tuple(flag for flag in (self.terminated, self.truncated) if flag is not None)

    def by_column(self, names: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str, str]]:
        """Our name, the caller's column, and the expression that reads it."""
        found = {
            "episode_id": (self.episode,), "step": (self.step,), "state": self.state,
            "action": self.action, "next_state": self.next_state, "reward": (self.reward,),
            "terminated": (self.terminated,), "truncated": (self.truncated,),
            "action_prob": (self.action_prob,), UNIT: self.unit,
        }  # fmt: skip
        for name, columns in names.items():
            for column, expression in zip(columns, found[name]):
                assert expression is not None
                yield name, column, expression


def expressions(
    read: Reader,
    names: Mapping[str, tuple[str, ...]],
    kept: Kept,
    *,
    numbers: bool = False,
) -> Expressions:
    """Expressions that type and bin the caller's columns; with `numbers`, states are vectors."""
    state = read.finite if numbers else read.label
    pairs = tuple(zip(names["state"], names["next_state"] or names["state"]))
    single = read.handling.bandit
    ends = "TRUE" if single else None
    return Expressions(
        kept=kept,
        single=single,
        episode=kept.row if single else read.label(_only(names, "episode_id")),
        step="0" if single else read.step(_only(names, "step")),
        state=tuple(state(column, other) for column, other in pairs),
        action=tuple(read.label(column) for column in names["action"]),
        next_state=tuple(read.successor(names["next_state"], state(other, column))
                         for column, other in pairs) if names["next_state"] else (),
        reward=read.number(_only(names, "reward"), "reward"),
        terminated=read.flag(_only(names, "terminated")) if names["terminated"] else ends,
        truncated=read.flag(_only(names, "truncated")) if names["truncated"] else None,
        action_prob=(
            read.number(_only(names, "action_prob"), "action_prob")
            if names["action_prob"] else None
        ),
        unit=tuple(read.label(column) for column in names[UNIT]),
    )  # fmt: skip


def _only(names: Mapping[str, tuple[str, ...]], name: str) -> str:
    if len(names[name]) > 1:
        raise InputError(f"{name} spans {len(names[name])} columns, expected one: map one")
    return names[name][0]


@dataclass(frozen=True)
class Reader:
    """Expressions for one engine's columns by their kinds; NULL where a value cannot be read.

    In the columns `levels` of states and actions, a missing value is a label of its own.
    """

    engine: Engine
    bins: Mapping[str, Bins | None]
    step_type: str = STEP_NUMBER
    handling: Handling = STRICT
    levels: frozenset[str] = frozenset()

    def label(self, column: str, like: str | None = None) -> str:
        """A label: text, a whole number of 64 bits, or a flag; binned where `like` is.

        State and successor are read alike: where one is text so is the other.
        """
        label = self._label(column, like)
        if self.levels.isdisjoint((column, like)):
            return label
        there = self.present("state", column, like)
        return (
            f"CASE WHEN {there} IS NULL THEN {text_literal(MISSING_LABEL)} "
            f"ELSE CAST({label} AS VARCHAR) END"
        )

    def successor(self, columns: Sequence[str], label: str) -> str:
        """A part of the next state, which is not given where none of its parts is."""
        if not self.levels:
            return label
        none = " AND ".join(f"{self.present('state', column)} IS NULL" for column in columns)
        return f"CASE WHEN {none} THEN NULL ELSE {label} END"

    def present(self, name: str, column: str, like: str | None = None) -> str:
        """A column, NULL where the value is missing; a label that is NaN is.

        Unless missing values are errors, so are NaN in any column, and the words that stand for a
        missing value where no label is wanted: none of them can be read there.
        """
        kind, text = self.engine.kinds[column], quoted(column)
        lenient = self.handling.missing != ERROR
        if kind == NUMBER and (lenient or name in LABELS):
            return f"CASE WHEN {finite(text)} OR ABS({text}) = {INFINITY} THEN {text} END"
        a_label = name in LABELS and self.bins.keys().isdisjoint((column, like))
        if kind != TEXT or a_label or not lenient:
            return text
        words = ", ".join(map(text_literal, WORDS))
        return f"CASE WHEN LOWER(TRIM({text})) NOT IN ({words}) THEN {text} END"

    def incomplete(self, names: Mapping[str, tuple[str, ...]]) -> str:
        """Whether a row lacks a value; the next state may be missing."""
        return " OR ".join(
            f"{self.present(name, column)} IS NULL"
            for name, columns in names.items()
            for column in columns
            if name != "next_state"
        )

    def _label(self, column: str, like: str | None) -> str:
        bins = self.bins.get(column) or self.bins.get(like or column)
        if bins is not None:
            return bins.sql(self.number(column, column))
        mine, theirs = self._label_kind(column), self._label_kind(like or column)
        label = self._plain_label(column)
        if mine != theirs and TEXT in (mine, theirs):
            return label if mine == TEXT else f"CAST({label} AS VARCHAR)"
        return f"CAST({label} AS BIGINT)" if mine == FLAG and theirs == INTEGER else label

    def _label_kind(self, column: str) -> str:
        kind = self.engine.kinds[column]
        return {NUMBER: INTEGER, WIDE: INTEGER, TIME: TEXT}.get(kind, kind)

    def _plain_label(self, column: str) -> str:
        kind, name = self.engine.kinds[column], quoted(column)
        if kind == OTHER:
            raise InputError(
                f"column {column!r} is {_said(kind)}: make every value a string, or a whole number"
            )
        if kind == NUMBER:
            whole = f"{name} = FLOOR({name}) AND ABS({name}) < 9007199254740992"
            label = f"CASE WHEN {whole} THEN CAST({name} AS BIGINT) END"
            return f"CASE WHEN {finite(name)} THEN {label} END"
        if kind == WIDE:
            inside = f"{name} BETWEEN -9223372036854775808 AND 9223372036854775807"
            return f"CASE WHEN {inside} THEN CAST({name} AS BIGINT) END"
        return f"CAST({name} AS VARCHAR)" if kind == TIME else name

    def number(self, column: str, name: str) -> str:
        """A double."""
        kind = self.engine.kinds[column]
        if kind == TEXT and self.engine.casts_text:
            return self._cast_text(quoted(column), "DOUBLE")
        if kind == FLAG:
            return f"CASE WHEN {quoted(column)} THEN 1.0 WHEN NOT {quoted(column)} THEN 0.0 END"
        if kind not in (INTEGER, WIDE, NUMBER):
            raise InputError(
                f"{name} is {_said(kind)} in column {column!r}, expected numbers: cast the column, "
                "or map another"
            )
        return f"CAST({quoted(column)} AS DOUBLE)"

    def finite(self, column: str, like: str) -> str:
        """A part of a vector: a finite double. `like` is there as for labels."""
        number = self.number(column, column)
        return f"CASE WHEN {finite(number)} THEN {number} END"

    def step(self, column: str) -> str:
        """What sorts an episode: a finite number or a time."""
        kind, name = self.engine.kinds[column], quoted(column)
        if kind == NUMBER:
            return f"CASE WHEN {finite(name)} THEN {name} END"
        if kind in (INTEGER, WIDE, TIME):
            return name
        if kind == TEXT and self.engine.casts_text:
            return self._step_in_text(name)
        raise InputError(
            f"step is {_said(kind)} in column {column!r}, expected numbers or times: cast the "
            "column, or map another"
        )

    def _step_in_text(self, name: str) -> str:
        if self.step_type == STEP_NUMBER:
            return self._cast_text(name, STEP_NUMBER)
        value = f"TRY_CAST({name} AS {self.step_type})"
        zoned = f"regexp_matches({name}, '{ZONE}')"
        alike = zoned if self.step_type == STEP_ZONED else f"NOT {zoned}"
        return f"CASE WHEN {alike} AND isfinite({value}) THEN {value} END"

    def _cast_text(self, name: str, kind: str) -> str:
        """A number in text; DuckDB would read 1_000 as 1000, and with decimal commas 1.000 is one.

        A point between thousands is refused too, rather than guessed.
        """
        if self.engine.decimal == ".":
            return f"CASE WHEN NOT CONTAINS({name}, '_') THEN TRY_CAST({name} AS {kind}) END"
        number = f"TRY_CAST(REPLACE({name}, ',', '.') AS {kind})"
        return f"CASE WHEN NOT regexp_matches({name}, '[_.]') THEN {number} END"

    def flag(self, column: str) -> str:
        """A boolean."""
        kind, name = self.engine.kinds[column], quoted(column)
        if kind == FLAG:
            return name
        if kind in (INTEGER, WIDE, NUMBER):
            return f"CASE WHEN {name} = 1 THEN TRUE WHEN {name} = 0 THEN FALSE END"
        if kind == TEXT:
            words = {wanted: [f"'{w}'" for w, value in FLAGS.items() if value is wanted]
                     for wanted in (True, False)}  # fmt: skip
            yes, no = ", ".join(words[True]), ", ".join(words[False])
            point = name if self.engine.decimal == "." else f"REPLACE({name}, ',', '.')"
            word = f"LOWER({point})"
            return f"CASE WHEN {word} IN ({yes}) THEN TRUE WHEN {word} IN ({no}) THEN FALSE END"
        raise InputError(f"column {column!r} is {_said(kind)}, expected true/false or 0/1: cast it")


def _said(kind: str) -> str:
    """A kind of column, in words."""
    return "of mixed types or nested" if kind == OTHER else kind


def possible(prob: str) -> str:
    """Whether a propensity is one."""
    return f"CASE WHEN {finite(prob)} THEN {prob} > 0 AND {prob} <= 1 ELSE FALSE END"
