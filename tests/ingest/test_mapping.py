"""Columns and bins from options and from TOML files."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spibb import Bins, Counts, count_log, read_log
from spibb.binning import parse_bins
from spibb.errors import InputError
from spibb.ingest.mapping import read_mapping, split_names

EDGES = st.lists(
    st.floats(-1e9, 1e9, allow_nan=False).map(lambda x: x + 0.0),
    min_size=1,
    max_size=6,
    unique=True,
)


def test_bins_are_named_as_they_are_written():
    bins = Bins((18, 40.5, 65))
    assert bins.labels == ("(-inf, 18)", "[18, 40.5)", "[40.5, 65)", "[65, inf)")
    values = [17.9, 18, 40.4, 40.5, 65, math.inf, -math.inf, math.nan]
    expected = [*(bins.labels[i] for i in (0, 1, 1, 2, 3, 3, 0)), None]
    assert [bins.label(value) for value in values] == expected


@given(EDGES, st.lists(st.floats(), max_size=10))
def test_sql_bins_as_python_does(edges, values):
    bins = Bins(tuple(sorted(edges)))
    table = pa.table({"x": pa.array([*values, *edges, None], pa.float64())})
    found = duckdb.connect().from_arrow(table).query("t", f"SELECT {bins.sql('x')} FROM t")
    expected = [bins.label(value) for value in [*values, *sorted(edges)]]
    assert [row[0] for row in found.fetchall()][: len(values)] == expected[: len(values)]


@pytest.mark.parametrize("edges", [(), (2, 1), (1, 1), (1, math.inf), (math.nan,)])
def test_edges_must_increase(edges):
    with pytest.raises(InputError, match="bin"):
        Bins(edges)


def test_bins_are_read_from_options():
    given_bins = parse_bins(["age:10", "dose:0.5,1", "a:b:3", "x:5,"])
    assert given_bins == {"age": 10, "dose": [0.5, 1.0], "a:b": 3, "x": [5.0]}
    for text in ("age", "age:", ":3", "age:x", "age:1.5", "age:1,x"):
        with pytest.raises(InputError, match=r"--bin .* is not understood: write age:10"):
            parse_bins([text])


def test_names_are_split_at_commas():
    assert split_names("ward") == "ward"
    assert split_names("ward, severity") == ("ward", "severity")
    with pytest.raises(InputError, match="empty column name"):
        split_names("ward,,severity")


def test_a_mapping_file_is_read(tmp_path):
    path = tmp_path / "map.toml"
    path.write_text('[columns]\nstate = ["ward", "age"]\n[bins]\nage = 10\nx = [1, 2.5]\n')
    found = read_mapping(path)
    assert found.columns == {"state": ["ward", "age"]}
    assert found.bins == {"age": 10, "x": [1, 2.5]}
    assert found.updated({"state": "ward"}, {}).columns == {"state": "ward"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[columns", "is not TOML"),
        (
            "[colums]",
            r"has the unknown entry 'colums' \(did you mean 'columns'\?\)",
        ),
        ("columns = 3", "columns is 3, expected a table: fix it"),
        ("[columns]\nstaet = 'x'", r"columns has the unknown entry 'staet' \(did you mean 'state'"),
        ("[columns]\nstate = 3", "columns.state is 3, expected text or a list that is not empty"),
        ("[columns]\nstate = []", r"columns.state is \[\], expected text or a list that is not"),
        ("[columns]\nstate = ['a', 3]", r"columns.state\[1\] is 3, expected text"),
        ("[bins]\nage = 'x'", "bins.age is 'x', expected a whole number or a list that is not"),
        ("[bins]\nage = true", "bins.age is True, expected a whole number or a list"),
        ("[bins]\nage = [1, nan]", r"bins.age\[1\] is nan, expected a finite number"),
    ],
)
def test_a_bad_mapping_file_is_told(text, message, tmp_path):
    (tmp_path / "map.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_mapping(tmp_path / "map.toml")


def test_a_mapping_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match=r"cannot read mapping .*there is no such file"):
        read_mapping(tmp_path / "map.toml")
    (tmp_path / "map.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not text in UTF-8"):
        read_mapping(tmp_path / "map.toml")


AGES = pa.table({
    "episode_id": np.arange(100) // 5, "step": np.arange(100) % 5,
    "age": np.arange(100) * 7 % 90, "action": ["x", "y"] * 50, "reward": np.arange(100) % 4 / 2,
    "terminated": np.arange(100) % 5 == 4,
})  # fmt: skip


@pytest.mark.parametrize("request_", [4, [18, 40, 65], Bins((18, 40, 65))])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_binned_rows_and_binned_counts_agree(request_, ending, tmp_path):
    from spibb.tables import write_table

    path = tmp_path / f"log.{ending}"
    write_table(AGES, path)
    columns, bins = {"state": "age"}, {"age": request_}
    counts, log = (
        count_log(path, columns=columns, bins=bins),
        read_log(path, columns=columns, bins=bins),
    )
    np.testing.assert_array_equal(counts.pairs, Counts.from_log(log).pairs)
    assert counts.states == log.states
    assert counts.bins == log.bins == Counts.from_log(log).bins
    assert len(counts.states) == 4
    if request_ == 4:
        assert counts.pairs.sum(axis=1).max() <= 40


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        ({"height": 3}, "bins are given for 'height', which is not a column of the state"),
        ({"age": 1}, r"bins of 'age' are 1, expected a number of quantiles in \[2, 1000\]"),
        ({"age": []}, "bin edges is .*expected one or more"),
    ],
)
def test_bad_bins_are_refused(bins, message):
    with pytest.raises(InputError, match=message):
        count_log(AGES, columns={"state": "age"}, bins=bins)


def test_a_column_of_words_cannot_be_binned():
    with pytest.raises(InputError, match="column 'action' has no numbers to bin"):
        count_log(AGES, columns={"state": "age"}, bins={"action": 3})
    with pytest.raises(InputError, match="action in row 0 is 'x', expected a number to bin"):
        count_log(AGES, columns={"state": "age"}, bins={"action": [3]})
