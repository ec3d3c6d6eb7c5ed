"""Damaged logs, by the thousand: every way to read a file gives the same counts, or all refuse.

`differences(mutations, seed)` writes small logs in CSV, JSON lines and Parquet, each with one to
three things wrong, reads them by rows, by counts in order and in any order, and yields what
differs.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from spibb import Counts, Log, open_log
from spibb.errors import InputError
from spibb.ingest.aggregate import LogTable

Rows = list[dict[str, Any]]
NAMES = ["episode_id", "step", "state", "action", "reward", "next_state", "terminated", "truncated"]
COUNTED = ("indptr", "successors", "n", "reward_sum", "reward_sq", "starts")

LABELS = [
    "٣", "１", "²", "nan", "NaN", "", " ", " 1", "1 ", "null", "None", "NULL", '"', "a,b", "a;b",
    "'", "x\ny", "007", "-0", "+1", "0x10", "1_000", "1.0", "1e0", "1E3", "1.5", ".5", "1.", "inf",
    "-Infinity", "9223372036854775807", "9223372036854775808", "18446744073709551616",
    "-9223372036854775809", "9007199254740993", "true", "false", "True", "yes", "2020-01-01",
    "2020-01-01 10:00", "2020-01-01T10:00:00Z", "2020-01-01 10:00+02:00", "12:00", "é", "e\u0301",
    "\u200b", "😀", "a\x00b", "#x", "=1+1", "[1]", "{}", 0, 1, 2, -1, 1.0, 1.5, -0.0, 2**53, 2**63,
    2**64, 1e300, float("nan"), float("inf"), True, False, None, [1, 2], {"a": 1},
]  # fmt: skip
STEPS = [
    "٣", "-1", "1.5", "1e0", "inf", "nan", "later", "", "0", "1", "2", "10", "-0", " 1", "1_0",
    "0x1", "1e400", "1e-12", "99999999999999999999999999999999999999", "2020-01-01",
    "2020-01-01 10:00", "2020-01-01 10:00+02:00", "2020-01-01 10:00:00Z",
    "2020-01-01 10:00 Europe/Paris", "infinity", "epoch", "12:00", -1, 0, 1, 1.5, -0.0, 2**53,
    2**63, 2**64, 1e300, float("inf"),
    float("nan"), True, None,
]  # fmt: skip
REWARDS = [
    "inf", "-inf", "nan", "1,5", "0x1p3", "1e3", "1e400", "-0", " 2", "", "many", "٣", "1_000", "½",
    "TRUE", "2020-01-01", "$1", "1e-320", 0, 1, -1, 0.5, 1e300, -1e308, 1e308, float("inf"),
    float("nan"), 2**63, 2**70, True, None,
]  # fmt: skip
FLAGS = [
    "true", "TRUE", "t", "yes", "1", "1.0", "0", "0.0", "no", "maybe", "", "2", "-1", "nan", "１",
    0, 1, 2, 1.0, 0.5, float("nan"), True, False, None,
]  # fmt: skip
POOLS = {
    "episode_id": LABELS, "step": STEPS, "state": LABELS, "action": LABELS, "reward": REWARDS,
    "next_state": LABELS, "terminated": FLAGS, "truncated": FLAGS, "action_prob": [
        "0.5", "0", "1", "nan", "-1", "2", "", "1e-300", 0.5, 0, 1, 1.5, float("nan"), None, True],
}  # fmt: skip


def sound(rng: np.random.Generator) -> Rows:
    """A few short episodes; rewards in quarters, so that sums are exact in any order."""
    kind = rng.integers(3)
    label = [lambda s: f"s{s}", int, str][kind]
    rows: Rows = []
    for episode in range(rng.integers(2, 5)):
        length = int(rng.integers(1, 4))
        walk = rng.integers(3, size=length + 1)
        for t in range(length):
            last = t == length - 1
            ended = bool(last and rng.random() < 0.6)
            rows.append({
                "episode_id": episode, "step": t, "state": label(walk[t]),
                "action": ["go", "stay"][rng.integers(2)], "reward": int(rng.integers(-8, 9)) / 4,
                "next_state": label(walk[t + 1]), "terminated": ended,
                "truncated": last and not ended,
            })  # fmt: skip
    return [rows[i] for i in rng.permutation(len(rows))]


def cell(rows: Rows, rng: np.random.Generator) -> Rows:
    """Replace one cell."""
    row = rows[rng.integers(len(rows))]
    name = list(row)[rng.integers(len(row))]
    pool = POOLS.get(name, LABELS)
    row[name] = pool[rng.integers(len(pool))]
    return rows


def column(rows: Rows, rng: np.random.Generator) -> Rows:
    """Replace a column by one value, two values, or its text."""
    name = list(rows[0])[rng.integers(len(rows[0]))]
    pool = POOLS.get(name, LABELS)
    values = [pool[i] for i in rng.integers(len(pool), size=2)]
    as_text = rng.random() < 0.3
    for i, row in enumerate(rows):
        row[name] = str(row.get(name)) if as_text else values[i % int(rng.integers(1, 3))]
    return rows


def relabel(rows: Rows, rng: np.random.Generator) -> Rows:
    """Give one label another name wherever it occurs."""
    name = ["state", "action", "episode_id"][rng.integers(3)]
    old = rows[rng.integers(len(rows))].get(name)
    new = LABELS[rng.integers(len(LABELS))]
    for row in rows:
        for column in (name, f"next_{name}"):
            if column in row and row[column] == old:
                row[column] = new
    return rows


def drop_column(rows: Rows, rng: np.random.Generator) -> Rows:
    """Leave a column out."""
    name = list(rows[0])[rng.integers(len(rows[0]))]
    return [{k: v for k, v in row.items() if k != name} for row in rows]


def drop_or_repeat_row(rows: Rows, rng: np.random.Generator) -> Rows:
    """Leave a row out, or write it twice."""
    i = int(rng.integers(len(rows)))
    kept = [*rows[:i], *rows[i + 1 :]]
    return [*rows, dict(rows[i])] if rng.random() < 0.5 or not kept else kept


def gaps(rows: Rows, rng: np.random.Generator) -> Rows:
    """Leave successors open."""
    for row in rows:
        if "next_state" in row and rng.random() < 0.5:
            row["next_state"] = None
    return rows


def times(rows: Rows, rng: np.random.Generator) -> Rows:
    """Steps as times, some with zones."""
    zones = [["", ""], ["Z", "Z"], ["+02:00", "Z"], ["", "Z"]][rng.integers(4)]
    for row in rows:
        if "step" in row:
            hour = row["step"] if isinstance(row["step"], int) and abs(row["step"]) < 10 else 0
            row["step"] = f"2020-01-01 1{abs(hour)}:00:00{zones[rng.integers(2)]}"
    return rows


def propensities(rows: Rows, rng: np.random.Generator) -> Rows:
    """Add a column of propensities."""
    for row in rows:
        row["action_prob"] = 0.5
    return rows


MUTATORS: list[Callable[[Rows, np.random.Generator], Rows]] = [
    cell, cell, cell, column, relabel, relabel, drop_column, drop_or_repeat_row, gaps, times,
    propensities,
]  # fmt: skip


def write_csv(rows: Rows, path: Path, rng: np.random.Generator) -> None:
    """Cells as text; now and then quoted, with a byte-order mark, CRLF, or a name twice."""
    quote = rng.random() < 0.3
    names = list(rows[0])
    if rng.random() < 0.05:
        names = [*names, names[rng.integers(len(names))]]

    def cell(value: Any) -> str:
        text = "" if value is None else str(value)
        needed = any(mark in text for mark in ',"\n\r') or (quote and value is not None)
        return '"' + text.replace('"', '""') + '"' if needed else text

    lines = [",".join(names), *(",".join(cell(row.get(name)) for name in names) for row in rows)]
    ends, mark = ["\n", "\r\n"][int(rng.random() < 0.2)], "\ufeff" if rng.random() < 0.1 else ""
    path.write_bytes((mark + ends.join(lines) + ends).encode())


def write_jsonl(rows: Rows, path: Path, rng: np.random.Generator) -> None:
    """One object per line; NaN and infinity as Python writes them, some keys left out."""
    some = rng.random() < 0.2
    lines = [json.dumps({k: v for k, v in row.items() if not (some and v is None)}) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_parquet(rows: Rows, path: Path, rng: np.random.Generator) -> None:
    """Columns of the type that Arrow finds, or of text where it finds none."""
    columns = {}
    for name in rows[0]:
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowException, OverflowError, TypeError):
            columns[name] = pa.array([None if v is None else str(v) for v in values])
        if rng.random() < 0.1 and pa.types.is_string(columns[name].type):
            columns[name] = columns[name].dictionary_encode()
    pyarrow.parquet.write_table(pa.table(columns), path)


HANDLING: list[dict[str, Any]] = [
    {}, {"missing": "drop"}, {}, {"missing": "as-level"}, {"duplicates": "drop"}, {"bandit": True},
    {"missing": "drop", "duplicates": "drop"}, {"missing": "drop", "bandit": True},
    {"missing": "as-level", "duplicates": "drop"},
]  # fmt: skip
"""Ways to read a log, in turn."""
WRITERS = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}


def outcome(read: Callable[[], Counts | None]) -> Any:
    """What a way of reading gives: counts, or a refusal in one line."""
    try:
        counts = read()
    except InputError as error:
        return refusal(error)
    if counts is None:
        return None
    arrays = {name: getattr(counts, name) for name in COUNTED}
    return list(counts.states.labels), list(counts.actions.labels), counts.reward_range, arrays


def refusal(error: InputError) -> str:
    """A refusal, which has one line."""
    assert "\n" not in str(error), f"more than one line: {error}"
    return f"refused: {error}"


def same(one: Any, other: Any) -> bool:
    """Whether two outcomes agree: both refused, or all counts equal."""
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str)
    return (
        [repr(label) for label in one[0] + one[1]] == [repr(label) for label in other[0] + other[1]]
        and one[2] == other[2]
        and all(
            np.allclose(one[3][name], other[3][name], rtol=1e-12, atol=0, equal_nan=True)
            if one[3][name].shape == other[3][name].shape else False
            for name in COUNTED
        )
    )  # fmt: skip


def differences(mutations: int, seed: int) -> Iterator[str]:
    """Damage logs and yield, for each that two ways read differently, the file and both."""
    children = np.random.SeedSequence(seed).spawn(mutations)
    with tempfile.TemporaryDirectory() as folder:
        for i, child in enumerate(children):
            rng = np.random.default_rng(child)
            rows = sound(rng)
            before = order(rows)
            for _ in range(rng.integers(1, 4)):
                mutate = MUTATORS[rng.integers(len(MUTATORS))]
                rows = mutate(rows, rng) if rows and rows[0] else rows
            kind = list(WRITERS)[i % len(WRITERS)]
            path = Path(folder) / f"{i}.{kind}"
            WRITERS[kind](rows, path, rng)
            how = HANDLING[i // len(WRITERS) % len(HANDLING)]
            name = f"mutation {i} of seed {seed}, {how}"
            yield from compare(path, name, order(rows) == before, how)
            path.unlink()


def order(rows: Rows) -> str:
    """What says which rows follow each other, as it is written."""
    names = ("episode_id", "step", "terminated", "truncated")
    return repr([[row.get(name) for name in names] for row in rows])


def compare(path: Path, name: str, in_order: bool, how: dict[str, Any]) -> Iterator[str]:
    """Read one file in every way.

    Counting in any order trusts the order of rows, so that it joins where that is undamaged. Frames
    take lists of one length as labels of several parts, which files do not.
    """
    ways: dict[str, Callable[[LogTable], Counts | None]] = {
        "rows": lambda table: Counts.from_log(table.log()),
        "counts": LogTable.counts,
    }
    if in_order and not how.get("bandit"):
        ways["any order"] = LogTable._in_any_order
    if path.suffix == ".parquet":
        frame = pyarrow.parquet.read_table(path)
    if path.suffix == ".parquet" and not any(map(pa.types.is_nested, frame.schema.types)):
        ways["frame"] = lambda _: Counts.from_log(Log.from_frame(frame, **how))
    try:
        found = outcomes(path, ways, how)
    except Exception as error:
        yield f"{name}: {error!r}\n{_shown(path)}"
        return
    for way, result in found.items():
        if result is not None and not same(result, found["rows"]):
            yield f"{name}: rows {found['rows']}\n{way} {result}\n{_shown(path)}"


def outcomes(
    path: Path, ways: dict[str, Callable[[LogTable], Counts | None]], how: dict[str, Any]
) -> dict[str, Any]:
    """What each way gives, by its name."""
    try:
        table = open_log(path, **how)
    except InputError as error:
        return {way: refusal(error) for way in ways if way != "frame"} | {
            way: outcome(lambda read=read: read(None))
            for way, read in ways.items()
            if way == "frame"
        }
    return {way: outcome(lambda read=read: read(table)) for way, read in ways.items()}


def _shown(path: Path) -> str:
    if path.suffix == ".parquet":
        return str(pyarrow.parquet.read_table(path).to_pydict())
    return path.read_text("utf-8")
