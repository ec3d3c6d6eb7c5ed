"""Databases by their address: the same counts, read-only roles, and passwords that stay secret."""

from __future__ import annotations

import sqlite3

import duckdb
import pandas
import pytest
from logs import COLUMNS, assert_same_counts_and_policy, hospital

from spibb import Counts, InputError, Log, Source, count_log, read_log, read_policy
from spibb.sql.rows import rows_table

TABLE = hospital(40)
TRUTH = Counts.from_log(Log.from_frame(TABLE, columns=COLUMNS))
NAME = 'visits "of" the; DROP TABLE x'


def same(source):
    """The counts where the log lies, and those of its rows."""
    assert_same_counts_and_policy(count_log(source, columns=COLUMNS), TRUTH)
    assert_same_counts_and_policy(Counts.from_log(read_log(source, columns=COLUMNS)), TRUTH)


@pytest.fixture
def duckdb_file(tmp_path):
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", TABLE)
        connection.execute("CREATE TABLE visits AS SELECT * FROM given")
        name = NAME.replace('"', '""')
        connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM given')
        connection.execute("CREATE SCHEMA old; CREATE TABLE old.visits AS SELECT * FROM given")
        connection.execute("CREATE TABLE policy (state INT, action VARCHAR, probability DOUBLE)")
        connection.execute("INSERT INTO policy VALUES (1, 'x', 0.25), (1, 'y', 0.75)")
        connection.execute("CREATE VIEW leak AS SELECT * FROM read_text('/etc/hostname')")
    return path


@pytest.fixture
def sqlite_file(tmp_path):
    path = tmp_path / "clinic.db"
    with sqlite3.connect(path) as connection:
        for name in ("visits", NAME):
            quoted = '"' + name.replace('"', '""') + '"'
            columns = ", ".join(f'"{column}"' for column in TABLE.column_names)
            connection.execute(f"CREATE TABLE {quoted} ({columns})")
            rows = [tuple(row.values()) for row in TABLE.to_pylist()]
            marks = ", ".join("?" * len(TABLE.column_names))
            connection.executemany(f"INSERT INTO {quoted} VALUES ({marks})", rows)
    connection.close()
    return path


def test_duckdb_file(duckdb_file):
    same(Source(duckdb_file, table="visits"))
    same(f"duckdb:///{duckdb_file}#visits")
    same(Source(duckdb_file, table=NAME))
    same(Source(duckdb_file, table="old.visits"))
    same(Source(duckdb_file, query="SELECT * FROM visits WHERE step > 0;"))


def test_sqlite_file(sqlite_file):
    same(Source(sqlite_file, table="visits"))
    same(f"sqlite:///{sqlite_file}#visits")
    same(Source(sqlite_file, table=NAME))
    same(Source(sqlite_file, query="SELECT * FROM visits WHERE step > 0"))


def test_sqlite_by_a_relative_path(sqlite_file, monkeypatch):
    monkeypatch.chdir(sqlite_file.parent)
    same("sqlite:///clinic.db#visits")
    same("clinic.db#visits")


def test_a_policy_in_a_database(duckdb_file):
    assert read_policy(f"{duckdb_file}#policy").row(1) == {"x": 0.25, "y": 0.75}


def test_a_view_of_a_duckdb_file_reaches_no_other_file(duckdb_file):
    with pytest.raises(InputError, match=r"cannot read .*clinic\.duckdb"):
        read_log(Source(duckdb_file, table="leak"))


@pytest.mark.parametrize("kind", ["duckdb_file", "sqlite_file"])
def test_nothing_is_written(kind, request):
    path = request.getfixturevalue(kind)
    before = path.read_bytes()
    for query in ("DROP TABLE visits", "SELECT 1) AS asked; DROP TABLE visits; --",
                  "DELETE FROM visits RETURNING *"):  # fmt: skip
        with pytest.raises(InputError, match="cannot read"):
            count_log(Source(path, query=query))
    assert path.read_bytes() == before
    assert sorted(found.name for found in path.parent.iterdir()) == [path.name]


@pytest.mark.parametrize("kind", ["duckdb_file", "sqlite_file"])
def test_which_table_is_asked_for(kind, request):
    path = request.getfixturevalue(kind)
    with pytest.raises(InputError, match=r"is a database: name a table with --table .*'visits'"):
        count_log(path)
    with pytest.raises(InputError, match=r"no table 'visit' \(did you mean 'visits'\?\)"):
        count_log(Source(path, table="visit"))


def test_a_column_of_mixed_values_is_text(tmp_path):
    path = tmp_path / "mixed.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (episode_id, step, state, action, reward, terminated)")
        rows = [(0, 0, "a", "x", 1, 1), (1, 0, 7, "x", 2.5, 1), (2, 0, 7.0, "y", 1, 1)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.close()
    assert read_log(f"{path}#t").states.labels == ("7", "a")


def test_sqlite_with_a_journal_of_its_own(tmp_path):
    path = tmp_path / "wal.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (episode_id, step, state, action, reward, terminated)")
    connection.execute("INSERT INTO t VALUES (0, 0, 'a', 'x', 1, 1)")
    connection.commit()
    assert count_log(f"{path}#t").n.sum() == 1
    connection.close()
    assert count_log(f"{path}#t").n.sum() == 1
    assert [found.name for found in tmp_path.iterdir()] == ["wal.db"]


def test_an_unknown_address_is_told():
    with pytest.raises(InputError, match="an address begins with one of 'duckdb', 'sqlite'"):
        count_log("oracle://ann:s3cret@db/clinic")


def test_tables_of_other_schemas_are_listed_as_they_can_be_named(tmp_path):
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", TABLE)
        connection.execute("CREATE SCHEMA old; CREATE TABLE old.visits AS SELECT * FROM given")
        connection.execute('CREATE TABLE "a.b" AS SELECT * FROM given')
    with pytest.raises(InputError, match=r"it has 'a\.b', 'old\.visits'"):
        count_log(path)
    with pytest.raises(InputError, match=r"no table 'visits' \(did you mean 'old\.visits'\?\)"):
        count_log(Source(path, table="visits"))
    same(Source(path, table="old.visits"))
    same(Source(path, table="a.b"))


@pytest.mark.parametrize("kind", ["duckdb", "db", "xlsx"])
def test_what_is_wrong_with_a_row_is_told_with_the_source(kind, tmp_path):
    path = tmp_path / f"clinic.{kind}"
    rows = [(0, 0, "a", "x", 1, 1), (1, 0, None, "x", 1, 1)]
    names = ("episode_id", "step", "state", "action", "reward", "terminated")
    if kind == "xlsx":
        pandas.DataFrame(rows, columns=names).to_excel(path, index=False)
        told = r"\(1 such row\), episode '1' of '.*clinic\.xlsx': .*; a formula without a saved"
        source = path
    else:
        connection = (duckdb if kind == "duckdb" else sqlite3).connect(str(path))
        types = ("INT", "INT", "VARCHAR", "VARCHAR", "INT", "INT")
        columns = ", ".join(f"{name} {type}" for name, type in zip(names, types))
        connection.execute(f"CREATE TABLE t ({columns})")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.commit()
        connection.close()
        told = rf"\(1 such row\), episode '1' of '.*clinic\.{kind}#t'"
        source = f"{path}#t"
    with pytest.raises(InputError, match=rf"'state' is missing in row 1 {told}"):
        read_log(source)


def test_a_name_that_two_columns_have_is_told_with_the_source():
    with pytest.raises(InputError, match=r"'clinic\.xlsx' has several columns 'ward'"):
        rows_table(["ward", "ward"], [[(1, 2)]], "'clinic.xlsx'")
