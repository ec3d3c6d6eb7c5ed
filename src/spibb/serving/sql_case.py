"""A policy as an SQL query: CASE over the columns of the state, for DuckDB and PostgreSQL.

Labels that are text are compared as text, whole numbers as numbers, true and false as such. A row
in a state that the policy does not know, or with a missing value, gets NULL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from spibb.checks import InputError, choice, one_line
from spibb.handling import LEVEL
from spibb.ingest.loaded import LoadedPolicy
from spibb.labels import Label, Vocabulary
from spibb.serving.batch import DECISION
from spibb.serving.rules import Column, Rule, columns_of, rules_of, runs
from spibb.sql.engines import quoted, text_literal

DIALECTS = {"duckdb": "VARCHAR", "postgres": "TEXT"}
"""The type of text in each."""
UNIFORM = "spibb_uniform"
ROWS = "spibb_cases"


def sql_of(
    loaded: LoadedPolicy,
    *,
    dialect: str = "duckdb",
    table: str = "cases",
    uniform: str | None = None,
    deterministic: bool = False,
) -> str:
    """A SELECT of all columns of a table and the decision.

    Where the policy draws, the number in [0, 1) is the column `uniform` of the table; else it is
    random(), asked once per row and shown as `spibb_uniform`.
    """
    choice("dialect", dialect, tuple(DIALECTS))
    _check_text(loaded)
    rules = rules_of(loaded, deterministic=deterministic)
    drawn = any(len(rule.chances) > 1 for rule in rules)
    source = ".".join(quoted(part) for part in table.split("."))
    if drawn and uniform is None:
        source = f"(SELECT *, random() AS {UNIFORM} FROM {source})"
    number = _double(f"{ROWS}.{quoted(uniform or UNIFORM)}")
    whens = [_condition(rule, columns_of(loaded), DIALECTS[dialect]) for rule in rules]
    actions = loaded.policy.actions
    cases = [
        _case(rules, whens, _parts(actions, position), number, _name(actions, position))
        for position in range(len(actions.names))
    ]
    return f"{_comment(loaded)}SELECT {ROWS}.*,\n{','.join(cases)}\nFROM {source} AS {ROWS}\n"


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


def _condition(rule: Rule, columns: Sequence[Column], text: str) -> str:
    """What the columns of a row in one of the rule's states have."""
    return " AND ".join(
        _allowed(column, codes, text) for column, codes in zip(columns, rule.allowed)
    )


def _allowed(column: Column, codes: Sequence[int], text: str) -> str:
    """One of some values; or none, where missing values are a level of their own."""
    there, missing = column.parts(codes)
    name = f"{ROWS}.{quoted(column.name)}"
    conditions = []
    if there:
        cut = column.bins is not None
        conditions += (
            _intervals(column, there, name) if cut else [_among(column, there, name, text)]
        )
    if missing:
        conditions.append(f"{name} IS NULL")
    if missing and column.bins is not None:
        conditions.append(f"{_double(name)} = {_number(math.nan)}")
    elif missing:
        conditions.append(f"CAST({name} AS {text}) = {_literal(LEVEL)}")
    if len(conditions) == 1:
        return conditions[0]
    return "(" + " OR ".join(f"({condition})" for condition in conditions) + ")"


def _among(column: Column, codes: Sequence[int], name: str, text: str) -> str:
    """The value is one of several; text as text, so that 007 is not 7."""
    values = [column.values[code] for code in codes]
    compared = f"CAST({name} AS {text})" if isinstance(values[0], str) else name
    listed = ", ".join(map(_literal, values))
    return f"{compared} IN ({listed})" if len(values) > 1 else f"{compared} = {listed}"


def _intervals(column: Column, codes: Sequence[int], name: str) -> list[str]:
    """The number lies in one of the bins; NaN, which SQL takes for the largest, in none."""
    assert column.bins is not None
    edges, value, parts = column.bins.edges, _double(name), []
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
