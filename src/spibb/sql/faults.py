"""What is wrong with a log, in one line: one value, where it is, what was wanted, what helps."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from spibb.checks import such_rows
from spibb.errors import FixableError, InputError
from spibb.irregular_tables import AS_LEVEL, DROP, ERROR, WORDS, Handling
from spibb.sql import queries
from spibb.sql.engines import Engine, quoted
from spibb.sql.expressions import Expressions
from spibb.sql.kept import Kept

OPTION_DROP, OPTION_LEVEL = "--missing drop", "--missing as-level"
OPTION_DUPLICATES = "--duplicates drop"
"""Options of the command line; parameters have the same names in Python."""
COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
"""A number with a decimal comma."""
PLAIN = re.compile(r"[-+]?(?i:[0-9]+\.?[0-9]*(?:e[-+]?[0-9]+)?|nan|inf)")
"""A number that needs no quotes."""
PER_CENT = re.compile(r"\s*[-+]?\d+([.,]\d+)?\s*%\s*")
"""A number with a sign for per cent."""


WORKBOOK = re.compile(r"(?i)\.xls[xm]'")
FORMULAS = (
    "; a formula without a saved value is missing: save the workbook in a spreadsheet program"
)


@dataclass(frozen=True)
class Faults:
    """Finds and refuses the first wrong row; `numbers`: states are numbers, not labels."""

    engine: Engine
    names: Mapping[str, tuple[str, ...]]
    handling: Handling
    kept: Kept
    numbers: bool = False

    def refuse(self, name: str, column: str, condition: str, wanted: str) -> None:
        """Refuse a value that cannot be what it should."""
        mapped = "" if name == column else f" (column {column!r})"
        where, value, n = self._first(column, condition)
        is_value = value if PLAIN.fullmatch(value) else repr(value)
        line = f"{name}{mapped} in {where} is {is_value}, expected {wanted}{n}"
        if value.strip().lower() in WORDS and self.handling.missing == ERROR:
            raise FixableError(
                f"{line}; or leave out the episodes where it is missing, with {OPTION_DROP}",
                missing=DROP,
            )
        if COMMA.fullmatch(value) and column in self.engine.loose:
            raise FixableError(f"{line}; or read decimal commas with --decimal ,", decimal=",")
        share = "; write 70% as 0.7, without the sign" if PER_CENT.fullmatch(value) else ""
        raise InputError(f"{line}{share}")

    def refuse_missing(self, column: str, condition: str, lacking: Collection[str]) -> None:
        """Refuse a value that is not there; `lacking` are all columns that lack some."""
        where, _, n = self._first(column, condition)
        labels = {*self.names["action"], *(() if self.numbers else self.names["state"])}
        level = labels.issuperset(lacking) and self.handling.missing == ERROR
        remedy = f"{OPTION_LEVEL} or {OPTION_DROP}" if level else OPTION_DROP
        if WORKBOOK.search(self.engine.called):
            remedy += FORMULAS
        raise FixableError(
            f"column {column!r} is missing in {where}{n}: fill them, or use {remedy}",
            missing=AS_LEVEL if level else DROP,
        )

    def refuse_repeated(self, x: Expressions, times: int) -> None:
        """Refuse a step that occurs twice in its episode."""
        row, step, place = self._culprit(queries.repeated_query(x, self.names["step"][0]))
        wanted = f"expected each (episode_id, step) once ({times} repeated){place}"
        if self.handling.duplicates == DROP:
            raise InputError(
                f"{row} repeats step{step} of its episode with other values, {wanted}: renumber or "
                "drop one of the two"
            )
        raise FixableError(
            f"{row} repeats step{step} of its episode, {wanted}: drop or renumber the row; "
            f"{OPTION_DUPLICATES} drops equal ones",
            duplicates=DROP,
        )

    def refuse_rows_after_an_end(self, x: Expressions, times: int) -> None:
        """Refuse an episode that goes on after its end."""
        row, _, place = self._culprit(queries.goes_on_query(x, self.names["step"][0]))
        raise InputError(
            f"{row} is terminated or truncated, but its episode goes on ({such_rows(times)})"
            f"{place}: give what follows its own episode_id"
        )

    def _first(self, column: str, condition: str) -> tuple[str, str, str]:
        """Where a condition is first met, the value there, and how often it is."""
        names, streams = self.names["episode_id"], self.engine.streams
        episode = f"CAST({quoted(names[0])} AS VARCHAR)" if names else "CAST(NULL AS VARCHAR)"
        query = queries.first_row_query if streams else queries.some_row_query
        answer = self.engine.table(query(self.kept, column, condition, episode))
        found = answer.to_pylist()[0]
        row, place = self._place(found["i"] if streams else None, found["e"])
        return row, str(found["value"]), f" ({such_rows(found['n'])}){place}"

    def _culprit(self, query: str) -> tuple[str, str, str]:
        """The row that a query finds, its step, and where it is."""
        if not self.engine.streams:
            row, place = self._place(None, None)
            return row, "", place
        i, step, episode = (column[0].as_py() for column in self.engine.table(query).columns)
        row, place = self._place(i, episode)
        return row, f" {step}", place

    def _place(self, row: int | None, episode: str | None) -> tuple[str, str]:
        """A row, and its episode and file, in words."""
        inside = f", episode {episode!r}" if episode else ""
        find = getattr(self.engine, "place", None)
        found = (self.engine.called, row) if row is None or find is None else find(row)
        file, number = found
        where = f"{' of' if inside else ', in'} {file}" if file else ""
        return "a row" if number is None else f"row {number}", f"{inside}{where}"
