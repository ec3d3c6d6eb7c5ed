"""Rows are sorted once, by few threads and with little memory, and come out as a plain sort's."""

from __future__ import annotations

import csv
import tracemalloc
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spibb
from spibb import open_log
from spibb.episodes import departures
from spibb.sql.duck import MEMORY, PER_THREAD, open_duckdb, shared
from spibb.sql.duck_files import SMALL_MEMORY

NAMES = ("episode_id", "step", "state", "action", "reward", "terminated")
ROWS = 60_000


def shuffled(rng):
    """Rows of episodes whose names are numbers and words, in no order."""
    rows = []
    while len(rows) < ROWS:
        number = len(rows)
        name = f"{number}" if rng.random() < 0.5 else f"p-{number}"
        length = int(rng.integers(1, 9))
        rows += [
            (name, step, f"ward {rng.integers(12)}", f"{rng.integers(3)}", int(rng.integers(100)),
             step == length - 1)
            for step in range(length)
        ]  # fmt: skip
    return [rows[i] for i in rng.permutation(len(rows))]


def place(row):
    """Numbers first, then words, each by step."""
    number = int(row[0]) if row[0].isdigit() else None
    return (number is None, number or 0, row[0], row[1])


def in_order(rows):
    """What `rows` are as a log, by a loop."""
    ordered = sorted(rows, key=place)
    found = []
    for row, after in zip(ordered, [*ordered[1:], None]):
        follows = after is not None and after[0] == row[0]
        found.append((row[2], int(row[3]), row[4], after[2] if follows else None, row[5]))
    return found


def as_rows(log):
    """The rows of a log in words."""
    return [
        (log.states[s], log.actions[a], r, None if n < 0 else log.states[n], bool(t))
        for s, a, r, n, t in zip(log.state, log.action, log.reward, log.next_state, log.terminated)
    ]


@pytest.fixture(scope="module")
def rows():
    return shuffled(np.random.default_rng(5))


@pytest.fixture(scope="module")
def path(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("sorted") / "log.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([NAMES, *rows])
    return path


def test_rows_that_are_sorted_once_are_those_of_a_loop(rows, path):
    """Eight threads and so little memory that the sort goes through files."""
    table = open_log(path)
    table.engine.connection.execute("SET threads = 8; SET memory_limit = '60MB'")
    assert table.engine.keeps_order
    assert as_rows(table.log()) == in_order(rows)


def test_rows_in_windows_are_the_same(rows, path):
    table = open_log(path)
    windowed = replace(table, engine=replace(table.engine))
    object.__setattr__(windowed.engine, "keeps_order", False)
    assert as_rows(windowed.log()) == in_order(rows)


def test_a_relation_that_keeps_no_order_is_sorted_at_the_end(rows, path):
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order = false; SET threads = 4")
    relation = connection.sql(f"SELECT * FROM read_csv('{path}', all_varchar = true)")
    table = open_log(relation)
    assert not table.engine.keeps_order
    found = as_rows(table.log())
    by_name = sorted(rows, key=place)
    assert [row[0] for row in found] == [row[2] for row in by_name]


def test_no_answer_is_held_before_it_is_fetched(path):
    """DuckDB 1.5 computes a query that has parameters at once, and holds all of its rows."""
    engine = open_log(path).engine
    spy = Mock(wraps=engine.connection)
    asked = replace(engine, connection=spy)
    assert asked.table("SELECT COUNT(*) AS n FROM log").column(0)[0].as_py() >= ROWS
    assert asked.rows("SELECT state FROM log").num_rows >= ROWS
    assert [len(call.args) for call in spy.sql.call_args_list] == [1, 1]
    assert not any(call.kwargs for call in spy.sql.call_args_list)


def test_a_query_leaves_the_limit_of_memory_as_it_is(path):
    engine = open_log(path).engine
    limit = "SELECT current_setting('memory_limit')"
    before = engine.connection.execute(limit).fetchall()
    engine.rows("SELECT state FROM log ORDER BY reward")
    assert engine.connection.execute(limit).fetchall() == before


@pytest.mark.parametrize("limits", [(MEMORY, MEMORY), SMALL_MEMORY])
@pytest.mark.parametrize("cores", [1, 2, 3, 8, 64])
def test_duckdb_has_no_more_threads_than_its_memory_is_for(cores, limits):
    threads, megabytes = shared(cores, *limits)
    assert 1 <= threads <= cores and threads >= min(cores, 4)
    assert threads * PER_THREAD <= megabytes and limits[0] <= megabytes <= limits[1]


def test_duckdb_is_opened_with_these_limits():
    with open_duckdb(*SMALL_MEMORY) as connection:
        ask = "SELECT current_setting('threads'), current_setting('memory_limit')"
        threads, memory = connection.execute(ask).fetchall()[0]
    megabytes = float(memory.removesuffix(" MiB")) * 2**20 / 1e6
    assert threads <= 4 and abs(megabytes - shared(threads, *SMALL_MEMORY)[1]) < 1


def test_parts_of_a_log_give_what_the_whole_gives(path, monkeypatch):
    log = open_log(path).log()
    rng = np.random.default_rng(0)
    policy, baseline = rng.dirichlet(np.ones(3), (2, len(log.states)))
    policy[0] = baseline[0]
    q = rng.normal(size=policy.shape)
    whole = departures.single_departures(log, policy, baseline, q, 0.9)
    returns = departures.completed_returns(log, q[:, 0], 0.9)
    monkeypatch.setattr("spibb.log.BLOCK", 1000)
    parts = list(log.blocks())
    assert len(parts) > 50 and sum(map(len, parts)) == len(log)
    assert sum(part.n_episodes for part in parts) == log.n_episodes
    assert departures.single_departures(log, policy, baseline, q, 0.9) == whole
    assert (departures.completed_returns(log, q[:, 0], 0.9) == returns).all()


def test_departures_hold_little_more_than_the_rows_that_change(path, monkeypatch):
    """16 bytes of each for what it gains, its state and episode; the rest is of episodes."""
    log = open_log(path).log()
    rng = np.random.default_rng(0)
    policy, baseline = rng.dirichlet(np.ones(3), (2, len(log.states)))
    q = rng.normal(size=policy.shape)
    monkeypatch.setattr("spibb.log.BLOCK", 1000)
    tracemalloc.start()
    departures.single_departures(log, policy, baseline, q, 0.9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 45 * len(log)


@pytest.mark.parametrize("kind", ["int64", "string", "large_string"])
def test_whole_numbers_as_text_order_episodes_by_value(kind, tmp_path):
    """As in a CSV file, which has no types: the season test splits the log by this order."""
    n, rng = 300, np.random.default_rng(0)
    order = rng.permutation(n)
    table = pa.table({
        "episode_id": pa.array(order).cast(kind), "step": np.zeros(n, int), "state": ["x"] * n,
        "action": ["a"] * n, "reward": order.astype(float), "terminated": [True] * n,
    })  # fmt: skip
    pq.write_table(table, tmp_path / "log.parquet")
    for source in (table, tmp_path / "log.parquet"):
        assert spibb.read_log(source).reward.tolist() == list(range(n))
