"""A policy as an SQL query: CASE over the columns of the state, for DuckDB and PostgreSQL.

A row gets the decision that `act_many` gives it, or NULL; never another one. A value is compared
as the text that it has as a label (`_key`): no engine turns text into numbers or booleans. That
text is made once per row, before the CASE: types are asked for once, and not in every WHEN.
The names that the query makes must be free: a table that has one is refused as ambiguous.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spibb.checks import NUMBER_IN_TEXT, choice, one_line, parse_value
from spibb.errors import InputError
from spibb.ingest.loaded import LoadedPolicy
from spibb.irregular_tables import MISSING_LABEL
from spibb.labels import EXACT_FLOATS, Label, Vocabulary
from spibb.serving.batch import DECISION
from spibb.serving.rules import Rule, StateColumn, columns_of, rules_of, runs
from spibb.sql.engines import quoted, text_literal

DECIMALS = r"[.]0+$"
EXACT_SINGLES = 2.0**24
"""What `EXACT_FLOATS` is for numbers of 32 bits."""


@dataclass(frozen=True)
class Dialect:
    """How a database names its types: each a condition on the expression `{0}`, or a name."""

    text: str
    boolean: str
    double: str
    single: str
    decimal: str
    other: str
    is_text: str
    matches: str
    keyed: str
    """The query: all columns of `{rows}` and `{decisions}`, over `{keys}` called `{names}`."""


DIALECTS = {
    "duckdb": Dialect(
        "VARCHAR", "typeof({0}) = 'BOOLEAN'", "typeof({0}) = 'DOUBLE'", "typeof({0}) = 'FLOAT'",
        "starts_with(typeof({0}), 'DECIMAL')", "typeof({0}) IN ('BLOB', 'BIT')",
        "(typeof({0}) = 'VARCHAR' OR starts_with(typeof({0}), 'ENUM'))",
        "regexp_matches({0}, '{1}')",
        "SELECT {cases}.* EXCLUDE ({names}),\n{decisions}\n"
        "FROM (SELECT {cases}.*, {keys} FROM {rows} AS {cases}) AS {cases}\n",
    ),
    "postgres": Dialect(
        "TEXT", "pg_typeof({0}) = CAST('boolean' AS regtype)",
        "pg_typeof({0}) = CAST('double precision' AS regtype)",
        "pg_typeof({0}) = CAST('real' AS regtype)",
        "pg_typeof({0}) = CAST('numeric' AS regtype)",
        "pg_typeof({0}) IN (CAST('bytea' AS regtype), CAST('bit' AS regtype))",
        "pg_typeof({0}) IN (CAST('text' AS regtype), CAST('varchar' AS regtype))",
        "{0} ~ '{1}'",
        "SELECT {cases}.*,\n{decisions}\n"
        "FROM {rows} AS {cases} CROSS JOIN LATERAL (SELECT {keys} OFFSET 0) AS spibb_keys\n",
    ),
}  # fmt: skip
UNIFORM = "spibb_uniform"
ROWS, TABLE, NEW, KEY = "spibb_cases", "spibb_table", "spibb_new", "spibb_key"


def sql_of(
    loaded: LoadedPolicy,
    *,
    dialect: str = "duckdb",
    table: str = "cases",
    uniform: str | None = None,
    deterministic: bool = False,
) -> str:
    """A SELECT of all columns of a table and the decision.

    The number in [0, 1) that draws is the column `uniform` of the table; otherwise it is
    random(), asked once per row and shown as `spibb_uniform`.
    """
    choice("dialect", dialect, tuple(DIALECTS))
    _check_text(loaded)
    rules = rules_of(loaded, deterministic=deterministic)
    drawn = any(len(rule.chances) > 1 for rule in rules)
    actions = loaded.policy.actions
    names = [_name(actions, position) for position in range(len(actions.names))]
    number = _double(f"{ROWS}.{quoted(uniform or UNIFORM)}")
    columns = columns_of(loaded)
    keys = [f"{KEY}_{position}" for position in range(len(columns))]
    whens = [_condition(rule, columns, keys) for rule in rules]
    cases = [
        _case(rules, whens, _parts(actions, position), number, name)
        for position, name in enumerate(names)
    ]
    made = [f"{_key(c, DIALECTS[dialect])} AS {key}" for c, key in zip(columns, keys)]
    return _comment(loaded) + DIALECTS[dialect].keyed.format(
        cases=ROWS, rows=_source(table, names, keys, drawn=drawn and uniform is None),
        keys=", ".join(made), names=", ".join(keys), decisions=",".join(cases),
    )  # fmt: skip


def _source(table: str, names: Sequence[str], keys: Sequence[str], *, drawn: bool) -> str:
    """The rows, each with a random number if it is needed.

    A name without its table is ambiguous where both tables have it: then every engine refuses.
    """
    given = ".".join(quoted(part) for part in table.split("."))
    new = [*map(quoted, names), *keys, *([UNIFORM] if drawn else [])]
    random = f", random() AS {UNIFORM}" if drawn else ""
    return (
        f"(SELECT {TABLE}.*{random} FROM {given} AS {TABLE} CROSS JOIN "
        f"(SELECT {', '.join(f'0 AS {name}' for name in new)}) AS {NEW} "
        f"WHERE {' AND '.join(f'{name} = 0' for name in new)})"
    )


def _check_text(loaded: LoadedPolicy) -> None:
    for vocabulary in (loaded.policy.states, loaded.policy.actions):
        for label in vocabulary.labels:
            parts = label if isinstance(label, tuple) else (label,)
            if any(isinstance(part, str) and "\0" in part for part in parts):
                raise InputError(
                    f"{vocabulary.kind} {label!r} holds the character NUL, which SQL has no text "
                    "for: give it another label"
                )


def _comment(loaded: LoadedPolicy) -> str:
    lines = [f"A policy of {loaded.policy.n_states} states, sha256 {loaded.sha256}"]
    if loaded.verdict is not None:
        lines.append(f"Verdict: {loaded.verdict['headline']}")
    if "command" in loaded.origin:
        lines.append(f"Made by: {loaded.origin['command']}")
    return "".join(f"-- {one_line(line)}\n" for line in lines)


def _name(actions: Vocabulary, position: int) -> str:
    single = len(actions.names) == 1
    return DECISION if single else f"{DECISION}_{actions.names[position]}"


def _parts(actions: Vocabulary, position: int) -> list[Label]:
    single = len(actions.names) == 1
    return [label if single else label[position] for label in actions.labels]


def _case(
    rules: Sequence[Rule], whens: Sequence[str], labels: Sequence[Label], number: str, name: str
) -> str:
    lines = [
        f"    WHEN {when} THEN {_outcome(rule, labels, number)}" for rule, when in zip(rules, whens)
    ]
    return "  CASE\n" + "\n".join(lines) + f"\n  END AS {quoted(name)}"


def _outcome(rule: Rule, labels: Sequence[Label], number: str) -> str:
    """The action, or the first one whose sum of probabilities exceeds the drawn number."""
    codes = [code for code, _ in rule.chances]
    if len({labels[code] for code in codes}) == 1:
        return _literal(labels[codes[0]])
    sums = np.cumsum([chance for _, chance in rule.chances])
    sums /= sums[-1]
    whens = [
        f"WHEN {number} < {_number(limit)} THEN {_literal(labels[code])}"
        for code, limit in zip(codes, sums.tolist())
    ]
    return f"CASE {' '.join(whens)} END"


def _condition(rule: Rule, columns: Sequence[StateColumn], keys: Sequence[str]) -> str:
    """What the keys of a row in one of the rule's states are."""
    return " AND ".join(
        _allowed(column, codes, key) for column, codes, key in zip(columns, rule.allowed, keys)
    )


def _allowed(column: StateColumn, codes: Sequence[int], key: str) -> str:
    """One of some values; or none, where missing values are a level of their own."""
    there, missing = column.parts(codes)
    if column.bins is None:
        return _among([column.values[code] for code in there], missing, key)
    conditions = _intervals(column, there, key) if there else []
    conditions += [f"{key} = {_number(math.nan)}"] if missing else []
    if len(conditions) == 1:
        return conditions[0]
    return "(" + " OR ".join(f"({condition})" for condition in conditions) + ")"


def _key(column: StateColumn, dialect: Dialect) -> str:
    """What a value is compared as: a number where it is cut, otherwise the text of its label.

    Where missing values are a level of their own, they are NaN, or the text of that level.
    """
    name = f"{ROWS}.{quoted(column.name)}"
    cut = column.bins is not None
    value = _cut_number(name, dialect) if cut else _label_text(column, name, dialect)
    if MISSING_LABEL not in column.values:
        return value
    if cut:
        return f"CASE WHEN {name} IS NULL THEN {_number(math.nan)} ELSE {value} END"
    missing = f"{name} IS NULL OR ({_is_nan(name, dialect)})"
    return f"CASE WHEN {missing} THEN {_literal(MISSING_LABEL)} ELSE {value} END"


def _label_text(column: StateColumn, name: str, dialect: Dialect) -> str:
    """The text that a value has as a label, as `CaseEncoder.part` makes it.

    A whole number has its digits, whatever its type; a float that several whole numbers round to
    has none. Labels such as 'north' cannot be read as a number or a boolean: only bytes are told
    apart from text there. True and false are compared in lower case.
    """
    text = f"CAST({name} AS {dialect.text})"
    no_label = f"WHEN {dialect.other.format(name)} THEN NULL ELSE {text} END"
    if all(isinstance(value, str) and parse_value(value) == value for value in column.values):
        return f"CASE {no_label}"
    number = _double(text)
    digits = f"CAST(CAST({number} AS BIGINT) AS {dialect.text})"
    key = (
        f"CASE WHEN {dialect.boolean.format(name)} THEN "
        f"CASE {text} WHEN 'true' THEN 'True' WHEN 'false' THEN 'False' END "
        f"WHEN {dialect.double.format(name)} THEN CASE "
        f"WHEN abs({number}) < {_number(EXACT_FLOATS)} THEN "
        f"CASE WHEN {number} = floor({number}) THEN {digits} ELSE {text} END END "
        f"WHEN {dialect.single.format(name)} THEN CASE "
        f"WHEN abs({number}) < {_number(EXACT_SINGLES)} THEN "
        f"CASE WHEN {number} = floor({number}) THEN {digits} END END "
        f"WHEN {dialect.decimal.format(name)} THEN regexp_replace({text}, '{DECIMALS}', '') "
        f"{no_label}"
    )
    return f"lower({key})" if any(isinstance(value, bool) for value in column.values) else key


def _is_nan(name: str, dialect: Dialect) -> str:
    """NaN, which is a missing value in columns of numbers only."""
    number = f"({dialect.double.format(name)} OR {dialect.single.format(name)})"
    return f"{number} AND lower(CAST({name} AS {dialect.text})) = 'nan'"


def _among(values: Sequence[Label], missing: bool, key: str) -> str:
    """The label is one of several."""
    texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    listed = ", ".join(map(text_literal, [*texts, *([MISSING_LABEL] if missing else [])]))
    return f"{key} IN ({listed})" if len(texts) + missing > 1 else f"{key} = {listed}"


def _cut_number(name: str, dialect: Dialect) -> str:
    """The number in a column that is cut; NULL for text that is not a number."""
    text = f"CAST({name} AS {dialect.text})"
    shown = dialect.matches.format(text, f"^{NUMBER_IN_TEXT.pattern}$")
    words = f"{dialect.is_text.format(name)} AND NOT ({shown})"
    return f"CASE WHEN {words} THEN NULL ELSE {_double(name)} END"


def _intervals(column: StateColumn, codes: Sequence[int], value: str) -> list[str]:
    """The number lies in one of the bins; NaN, which SQL takes for the largest, in none."""
    assert column.bins is not None
    edges, parts = column.bins.edges, []
    for first, last in runs(codes):
        low = f"{value} >= {_number(edges[first - 1])} AND " if first > 0 else ""
        above = edges[last] if last < len(edges) else math.nan
        parts.append(f"{low}{value} < {_number(above)}")
    return parts


def _double(name: str) -> str:
    return f"CAST({name} AS DOUBLE PRECISION)"


def _number(value: float) -> str:
    return f"CAST('{'NaN' if value != value else repr(value)}' AS DOUBLE PRECISION)"


def _literal(label: Label) -> str:
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    return text_literal(label) if isinstance(label, str) else str(label)
