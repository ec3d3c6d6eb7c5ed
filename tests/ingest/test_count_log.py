"""The same log in every form gives the same counts and the same policy."""

from __future__ import annotations

import os
from itertools import pairwise

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from logs import (
    COLUMNS,
    assert_same_counts,
    assert_same_counts_and_policy,
    hospital,
    minari,
    write,
    write_hive,
    write_jsonl,
)

import spibb
from spibb import Counts, Log, count_log, open_log, read_log
from spibb.errors import InputError
from spibb.sql import queries

TABLE = hospital()
TRUTH = Counts.from_log(Log.from_frame(TABLE, columns=COLUMNS))

FORMS = {
    "csv": lambda folder: write(TABLE, folder / "log.csv"),
    "jsonl": lambda folder: write_jsonl(TABLE, folder / "log.jsonl"),
    "parquet": lambda folder: write(TABLE, folder / "log.parquet"),
    "quoted path": lambda folder: write(TABLE, folder / "it's a \"log\" [1]*.csv"),
    "hive": lambda folder: write_hive(TABLE, folder / "hive"),
    "hive pattern": lambda folder: str(write_hive(TABLE, folder / "hive") / "*" / "*.parquet"),
    "hive of text": lambda folder: write_hive(TABLE, folder / "hive", ".csv"),
    "list": lambda folder: [
        write(TABLE.slice(0, 100), folder / "a.csv"), write(TABLE.slice(100), folder / "b.csv")
    ],
    "pattern": lambda folder: [
        write(TABLE.slice(0, 100), folder / "1.parquet"),
        write(TABLE.slice(100), folder / "2.parquet"),
    ] and str(folder / "?.parquet"),
    "arrow": lambda _: TABLE,
    "pandas": lambda _: TABLE.to_pandas(),
    "polars": lambda _: pl.from_arrow(TABLE),
    "lazy polars": lambda _: pl.from_arrow(TABLE).lazy(),
    "duckdb": lambda _: duckdb.connect().from_arrow(TABLE),
}  # fmt: skip


@pytest.fixture(params=[0, 10**9], ids=["any order", "in order"])
def order_up_to(request, monkeypatch):
    monkeypatch.setattr("spibb.ingest.aggregate.ORDER_UP_TO", request.param)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_counts_and_policy(form, tmp_path, order_up_to):
    assert_same_counts_and_policy(count_log(FORMS[form](tmp_path), columns=COLUMNS), TRUTH)


def test_minari_gives_the_same_counts_and_policy():
    log = spibb.from_minari(minari(TABLE), encode=lambda observation: observation)
    assert_same_counts_and_policy(Counts.from_log(log), TRUTH)


@pytest.mark.parametrize("form", ["csv", "jsonl", "hive", "pattern"])
def test_rows_are_read_from_the_same_sources(form, tmp_path):
    log = read_log(FORMS[form](tmp_path), columns=COLUMNS)
    assert_same_counts(Counts.from_log(log), TRUTH)


def test_the_fast_way_is_taken_where_the_books_balance(tmp_path, monkeypatch):
    monkeypatch.setattr("spibb.ingest.aggregate.ORDER_UP_TO", 0)
    monkeypatch.setattr("spibb.ingest.aggregate.LogTable._in_order", None)
    assert_same_counts(count_log(TABLE, columns=COLUMNS), TRUTH)


IN_ORDER = TABLE.sort_by([("episode_id", "ascending"), ("step", "ascending")])
STEPS = IN_ORDER.column("step").to_pylist()
AN_END = next(i for i, (t, t1) in enumerate(pairwise(STEPS)) if t > t1)


@pytest.mark.parametrize("table", [TABLE, IN_ORDER], ids=["shuffled", "in order"])
def test_episodes_that_begin_in_the_order_of_their_names_need_no_grouping(table, monkeypatch):
    asked = []
    original = queries.beginnings_query
    monkeypatch.setattr(queries, "beginnings_query", lambda *x: asked.append(x) or original(*x))
    assert_same_counts(open_log(table, columns=COLUMNS)._in_any_order(), TRUTH)
    assert len(asked) == (table is TABLE)


@pytest.mark.parametrize(
    "names",
    [lambda e: 500 - e, lambda e: f"patient {e}", float],
    ids=["backwards", "text", "float"],
)
def test_names_of_episodes_may_have_any_type_and_order(names):
    episodes = [names(e) for e in IN_ORDER.column("episode_id").to_pylist()]
    table = altered(IN_ORDER, episode_id=episodes)
    assert_same_counts(open_log(table, columns=COLUMNS)._in_any_order(), TRUTH)


def test_a_row_may_be_terminated_and_truncated(order_up_to):
    table = altered(truncated=[True] * len(TABLE), terminated=[True] * len(TABLE), step=[0] * len(
        TABLE), episode_id=list(range(len(TABLE))))  # fmt: skip
    counts = open_log(table, columns=COLUMNS)._in_any_order()
    assert_same_counts(counts, Counts.from_log(Log.from_frame(table, columns=COLUMNS)))


def one_name_for_two():
    """Episodes 7 and 8, which begin in different states, under one name."""
    names = IN_ORDER.column("episode_id").to_pylist()
    begins = [row for row in IN_ORDER.to_pylist() if row["step"] == 1]
    assert begins[7]["ward"] != begins[8]["ward"]
    return altered(IN_ORDER, episode_id=[7 if name == 8 else name for name in names])


@pytest.mark.parametrize(
    "table",
    [
        pa.concat_tables([TABLE, TABLE]),
        pa.concat_tables([IN_ORDER, IN_ORDER.slice(0, 1)]),
        pa.concat_tables([IN_ORDER, IN_ORDER.slice(1, 1)]),
        pa.concat_tables([IN_ORDER.slice(0, 1), IN_ORDER.slice(2)]),
        IN_ORDER.slice(1),
        IN_ORDER.take([i for i in range(len(TABLE)) if i != AN_END]),
        one_name_for_two,
    ],
    ids=[
        "all twice", "a first row twice", "a second row twice", "a row missing inside",
        "a first row missing", "a last row missing", "one name for two episodes",
    ],
)  # fmt: skip
def test_books_that_do_not_balance_are_noticed(table):
    log = open_log(table() if callable(table) else table, columns=COLUMNS)
    assert log._in_any_order() is None


def altered(table=TABLE, **columns):
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, [values])
    return table


@pytest.mark.parametrize("drop", [["next_ward", "next_severity"], ["truncated"]])
def test_what_is_left_out_is_derived_in_the_order_of_steps(drop, order_up_to):
    table = TABLE.drop_columns(drop)
    log = Log.from_frame(table, columns=COLUMNS)
    assert_same_counts(count_log(table, columns=COLUMNS), Counts.from_log(log))


def test_gaps_in_the_successors_are_filled(order_up_to):
    wards = [
        None if i % 3 else ward for i, ward in enumerate(TABLE.column("next_ward").to_pylist())
    ]
    table = altered(next_ward=wards)
    log = Log.from_frame(table, columns=COLUMNS)
    assert_same_counts(count_log(table, columns=COLUMNS), Counts.from_log(log))


def test_steps_may_be_times(tmp_path, order_up_to):
    times = [f"2024-01-01 10:{step:02d}:00" for step in TABLE.column("step").to_pylist()]
    table = altered(step=times)
    assert_same_counts(count_log(table, columns=COLUMNS), TRUTH)
    assert_same_counts(count_log(write(table, tmp_path / "log.csv"), columns=COLUMNS), TRUTH)


def test_repeated_rows_are_refused(order_up_to):
    table = pa.concat_tables([TABLE, TABLE.slice(0, 3)])
    with pytest.raises(
        InputError,
        match=r"row 664 repeats step 4 of its episode.* \(3 repeated\), episode '.+': drop",
    ):
        count_log(table, columns=COLUMNS)


def test_an_episode_that_goes_on_after_its_end_is_refused(order_up_to):
    steps = np.asarray(TABLE.column("step"))
    ends = np.asarray(TABLE.column("terminated")) | (steps == 1)
    with pytest.raises(
        InputError, match=r"row 6 is terminated or truncated, but its episode goes on \("
    ):
        count_log(altered(terminated=ends.tolist()), columns=COLUMNS)


@pytest.mark.parametrize(
    "column",
    ["episode_id", "step", "ward", "severity", "drug", "reward", "terminated", "truncated"],
)
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_missing_value_is_named_with_its_column(column, ending, tmp_path):
    values = TABLE.column(column).to_pylist()
    table = altered(**{column: [None, None, *values[2:]]})
    path = tmp_path / f"log.{ending}"
    (write_jsonl if ending == "jsonl" else write)(table, path)
    message = (
        rf"column '{column}' is missing in row 0 \(2 such rows\).*: fill them, or use --missing"
    )
    with pytest.raises(InputError, match=message):
        count_log(path, columns=COLUMNS)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("reward", "much", "reward in row 50 is 'much', expected a number: fix or drop the row"),
        (
            "step",
            "later",
            "step in row 50 is 'later', expected a finite number, or a time like 2024-05-14",
        ),
        (
            "terminated",
            "maybe",
            "terminated in row 50 is 'maybe', expected true/false, yes/no, t/f or 0/1",
        ),
        ("reward", "nan", "reward in row 50 is nan, expected a finite number"),
        ("reward", "inf", "reward in row 50 is inf, expected a finite number"),
    ],
)
def test_a_value_that_cannot_be_read_is_told(column, value, message, tmp_path):
    values = [str(x) for x in TABLE.column(column).to_pylist()]
    table = altered(**{column: [*values[:50], value, *values[51:]]})
    with pytest.raises(InputError, match=message):
        count_log(write(table, tmp_path / "log.csv"), columns=COLUMNS)


@pytest.mark.parametrize("value", [0.0, -1.0, 1.5])
def test_an_impossible_propensity_is_refused(value):
    table = TABLE.append_column("action_prob", [[value] + [0.5] * (len(TABLE) - 1)])
    with pytest.raises(
        InputError, match=r"action_prob in row 0 is .*, expected a number in \(0, 1\]"
    ):
        count_log(table, columns=COLUMNS)


def test_mixed_types_in_a_column_are_refused(tmp_path):
    rows = TABLE.to_pylist()
    rows[7]["drug"] = 3
    path = tmp_path / "log.jsonl"
    import json

    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with pytest.raises(InputError, match="column 'drug' is of mixed types or nested"):
        count_log(path, columns=COLUMNS)
    frame = TABLE.to_pandas().astype({"drug": object})
    frame.loc[7, "drug"] = 3
    with pytest.raises(InputError, match="mixes types"):
        count_log(frame, columns=COLUMNS)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_an_unknown_encoding_is_told(encoding, tmp_path):
    text = "episode_id,step,state,action,reward,terminated\n0,0,née,x,1,1\n"
    (tmp_path / "log.csv").write_bytes(text.encode(encoding))
    with pytest.raises(InputError, match=r"cannot read .*log.csv.*text in UTF-8"):
        count_log(tmp_path / "log.csv")


def test_an_empty_pattern_and_an_empty_folder_are_told(tmp_path):
    with pytest.raises(InputError, match=r"no file matches '.*\*.csv': check the pattern"):
        count_log(str(tmp_path / "*.csv"))
    with pytest.raises(InputError, match=r"the folder .* holds no file whose name ends in \.csv"):
        count_log(tmp_path)
    with pytest.raises(InputError, match="the list of files is empty"):
        count_log([])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_with_different_columns_are_refused(ending, tmp_path):
    write(TABLE, tmp_path / f"a.{ending}")
    write(TABLE.drop_columns(["drug"]), tmp_path / f"b.{ending}")
    message = rf"'b\.{ending}' has no column 'drug', 'a\.{ending}' has"
    with pytest.raises(InputError, match=message):
        count_log(tmp_path, columns=COLUMNS)


OBJECT = b'{"spibb": 1, "states": [{"a": 1}]}'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("b.json", b'[{"a": 1}]'), ("b.json", b'\n[\n {"a": 1}]'),
        ("b.json", b'{"a": 1}\n{"a": 2}'),
        ("b.json.gz", b"x"), ("b.xlsx", b"x"), ("below/b.h5", b"x"), ("b.zip", b"x"),
        ("b.db", b"x"), ("b.avro", b"x"), ("b.csv.xz", b"x"), ("b.tar.gz", b"x"), ("B.XLS", b"x"),
    ],
)  # fmt: skip
def test_a_folder_is_not_read_in_part(name, content, tmp_path):
    """A table that is of another kind is named, whether anything here could read it or not."""
    write(TABLE, tmp_path / "a.csv")
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"(mixes file formats|cannot read) .*{path.name}'"):
        count_log(tmp_path, columns=COLUMNS)


def test_what_is_no_table_does_not_matter_in_a_folder(tmp_path):
    write(TABLE, tmp_path / "a.csv")
    for name in ("README.md", "notes.txt", "_SUCCESS", ".a.csv.crc", "a.csv.md5", "Thumbs.db",
                 "desktop.ini", "_delta_log/0.json", ".git/b.csv", "schema.json"):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(OBJECT)
    assert_same_counts(count_log(tmp_path, columns=COLUMNS), TRUTH)


@pytest.mark.parametrize("ending", ["json", "xlsx"])
def test_a_folder_of_any_one_kind_is_read(ending, tmp_path):
    for name, part in (("a", TABLE.slice(0, 100)), ("b", TABLE.slice(100))):
        path = tmp_path / f"{name}.{ending}"
        write_jsonl(part, path) if ending == "json" else part.to_pandas().to_excel(
            path, index=False
        )
    assert_same_counts(count_log(tmp_path, columns=COLUMNS), TRUTH)


def test_a_folder_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    """Below the folder too: what cannot be seen would be lost."""
    write(TABLE, tmp_path / "a.csv")
    (tmp_path / "shut").mkdir()
    look = os.scandir

    def scandir(place):
        if os.path.basename(place) == "shut":
            raise PermissionError(13, "Permission denied", str(place))
        return look(place)

    monkeypatch.setattr(os, "scandir", scandir)
    for folder in (tmp_path, tmp_path / "shut"):
        with pytest.raises(InputError, match=r"cannot read the folder '.*shut': permission denied"):
            count_log(folder, columns=COLUMNS)


def test_files_with_different_types_are_refused(tmp_path):
    write(TABLE, tmp_path / "a.parquet")
    write(altered(severity=["x"] * len(TABLE)), tmp_path / "b.parquet")
    message = r"'severity' is BIGINT in 'a\.parquet' and VARCHAR in 'b\.parquet'"
    with pytest.raises(InputError, match=message):
        count_log(tmp_path, columns=COLUMNS)


def test_files_of_different_kinds_are_refused(tmp_path):
    write(TABLE, tmp_path / "a.parquet")
    write(TABLE, tmp_path / "b.csv")
    with pytest.raises(InputError, match="mixes file formats"):
        count_log(tmp_path)


@pytest.mark.parametrize(
    "columns",
    [{"state": ["ward", "ward"]}, {"action": "ward"}, {"reward": "severity", "action": "drug"}],
)
def test_a_column_mapped_twice_is_refused(columns):
    with pytest.raises(InputError, match="is mapped twice, to"):
        count_log(TABLE, columns={**COLUMNS, **columns})


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_nothing_in_a_name_is_executed(ending, tmp_path):
    evil = ['w"; DROP TABLE log; --', "s'); SELECT 1; --", "d\"'`$files"]
    names = {"ward": evil[0], "severity": evil[1], "drug": evil[2]}
    table = TABLE.rename_columns([names.get(name, name) for name in TABLE.column_names])
    path = tmp_path / f"x'); DROP TABLE log; --.{ending}"
    (write_jsonl if ending == "jsonl" else write)(table, path)
    columns = {"state": evil[:2], "action": evil[2], "next_state": ["next_ward", "next_severity"]}
    assert_same_counts(count_log(path, columns=columns), TRUTH)
    assert_same_counts(count_log(path, columns=columns, bins={evil[1]: [1, 2, 3]}).__class__
                       .from_log(read_log(path, columns=columns)), TRUTH)  # fmt: skip


@pytest.mark.slow
def test_a_million_states_are_counted(tmp_path):
    n = 1_000_000
    table = pa.table({
        "episode_id": np.arange(n), "step": np.zeros(n, int), "state": np.arange(n) * 7,
        "action": np.arange(n) % 2, "reward": np.ones(n), "terminated": np.ones(n, bool),
    })  # fmt: skip
    counts = count_log(table)
    assert counts.shape == (n, 2)
    assert counts.n.sum() == n


def test_a_frame_that_is_none_is_refused():
    with pytest.raises(InputError, match="source is a dict, expected a path, a dataframe"):
        count_log({"state": [1]})


def test_progress_is_told(tmp_path):
    pyarrow.parquet.write_table(pa.concat_tables([TABLE]), tmp_path / "log.parquet")
    shares = []
    count_log(tmp_path / "log.parquet", columns=COLUMNS, progress=shares.append)
    assert all(0 <= share <= 1 for share in shares)


@pytest.mark.parametrize("form", ["folder", "pattern", "file"])
def test_folders_named_by_numbers_are_columns_of_text_files(form, tmp_path):
    """DuckDB would take 3 of ward=3 for a number, also where it looks for the names of columns."""
    text = "episode_id,step,state,action,reward,terminated\n{0},0,a,x,1,1\n"
    for ward in (3, 4):
        (tmp_path / f"ward={ward}").mkdir()
        (tmp_path / f"ward={ward}" / "a.csv").write_text(text.format(ward))
    if form == "file":
        assert len(read_log(tmp_path / "ward=3" / "a.csv").states) == 1
        with pytest.raises(InputError, match="has no column 'ward'"):
            read_log(tmp_path / "ward=3" / "a.csv", columns={"state": "ward"})
        return
    source = tmp_path if form == "folder" else str(tmp_path / "*" / "a.csv")
    assert read_log(source, columns={"state": "ward"}).states.labels == (3, 4)
