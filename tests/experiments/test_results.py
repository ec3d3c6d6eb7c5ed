"""Aggregation of rows against a plain NumPy version."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pyarrow.parquet as pq
import pytest
from oracles import cvar

from spibb.errors import InputError
from spibb.experiments.results import STATISTICS, load_results, results_table
from spibb.experiments.runner import execute, plan
from spibb.experiments.spec import Column, Experiment

COLUMNS = (Column.parse("basic-rl"), Column.parse("pi-b:n_wedge=5"))
SPECS = {
    "gridworld": Experiment("gridworld", (10, 20), COLUMNS),
    "random-mdps": Experiment("random-mdps", (10,), COLUMNS, (0.2, 0.8)),
}


@pytest.mark.parametrize("study", SPECS)
def test_cells_are_means_and_tail_means_of_normalised_performance(tmp_path, study):
    spec = SPECS[study]
    list(execute(plan(spec, tmp_path / "rows", 30)))
    results = load_results(tmp_path / "rows")
    rows = pq.read_table(sorted((tmp_path / "rows").glob("part-*"))).to_pandas()
    assert results.runs == 30
    for column, size, eta in product(COLUMNS, spec.sizes, spec.etas or (None,)):
        some = rows[(rows["size"] == size) & (True if eta is None else rows["eta"] == eta)]
        value = (some[column.key].astype(float) - some["baseline"]) / (
            some["optimal"] - some["baseline"]
        )
        cell = results.cell(column.key, size, eta)
        assert cell.runs == 30
        for name, share in STATISTICS.items():
            found = cell.statistics[name]
            assert found.value == pytest.approx(cvar(value.to_numpy(), share), abs=1e-9)
            assert found.low <= found.value + 1e-12
            assert found.high >= found.value - 1e-12


@pytest.mark.parametrize("study", SPECS)
def test_columns_that_come_in_blocks_have_the_same_statistics(tmp_path, monkeypatch, study):
    """Many runs are never held whole: blocks of 7 rows across the borders of the cells."""
    list(execute(plan(SPECS[study], tmp_path / "rows", 30)))
    shares: list[float] = []
    whole = load_results(tmp_path / "rows", shares.append)
    assert shares == [0, 0.5]  # of two columns
    (tmp_path / "rows" / "summary.json").unlink()
    monkeypatch.setattr("spibb.experiments.results.BLOCK", 7)
    assert load_results(tmp_path / "rows").cells == whole.cells
    (tmp_path / "rows" / "summary.json").unlink()
    monkeypatch.setattr("spibb.experiments.results.BOOTSTRAP_UP_TO", 10)
    for cell, other in zip(load_results(tmp_path / "rows").cells, whole.cells, strict=True):
        assert (cell.column, cell.eta, cell.size) == (other.column, other.eta, other.size)
        for name, found in cell.statistics.items():
            assert found.value == other.statistics[name].value


def test_the_long_table_has_a_row_per_cell_and_statistic(tmp_path):
    folder = tmp_path / "rows"
    list(execute(plan(SPECS["random-mdps"], folder, 4)))
    results = load_results(folder)
    table = results_table(results).to_pylist()
    assert len(table) == len(results.cells) * len(STATISTICS)
    first = results.cells[0]
    assert table[0]["column"] == first.column
    assert table[0]["value"] == first.statistics["mean"].value


def test_the_aggregate_is_kept_until_rows_are_added(tmp_path):
    folder = tmp_path / "rows"
    list(execute(plan(SPECS["gridworld"], folder, 6)))
    first = load_results(folder)
    stamp = (folder / "summary.json").stat().st_mtime_ns
    assert load_results(folder).cells == first.cells
    assert (folder / "summary.json").stat().st_mtime_ns == stamp
    list(execute(plan(SPECS["gridworld"], folder, 9)))
    second = load_results(folder)
    assert second.runs == 9


def test_a_damaged_aggregate_is_made_again(tmp_path):
    folder = tmp_path / "rows"
    list(execute(plan(SPECS["gridworld"], folder, 6)))
    first = load_results(folder)
    text = (folder / "summary.json").read_text()
    stored = json.loads(text)
    stored["cells"][0][3]["mean"][0] += 1
    (folder / "summary.json").write_text(json.dumps(stored))
    assert load_results(folder).cells == first.cells
    assert (folder / "summary.json").read_text() == text


@pytest.mark.parametrize("column", ["baseline", "basic-rl"])
def test_a_part_with_damaged_pages_is_named(tmp_path, column):
    """Its footer is whole, so that the damage shows while a column is read."""
    folder = tmp_path / "rows"
    list(execute(plan(SPECS["gridworld"], folder, 6)))
    part = sorted(folder.glob("part-*"))[1]
    group = pq.read_metadata(part).row_group(0)
    pages = next(
        group.column(i)
        for i in range(group.num_columns)
        if group.column(i).path_in_schema == column
    )
    start = pages.dictionary_page_offset or pages.data_page_offset
    data = bytearray(part.read_bytes())
    data[start : start + pages.total_compressed_size] = b"\x55" * pages.total_compressed_size
    part.write_bytes(data)
    with pytest.raises(InputError, match=f"{part.name}' is damaged: run the command"):
        load_results(folder)
    assert not (folder / "summary.json").exists()


def test_raw_intervals_are_in_units_of_performance(tmp_path):
    folder = tmp_path / "rows"
    list(execute(plan(SPECS["gridworld"], folder, 5)))
    results = load_results(folder)
    mean = results.raw(results.cell("basic-rl", 20).statistics["mean"])
    rows = pq.read_table(sorted(folder.glob("part-*"))).to_pandas()
    assert mean.value == pytest.approx(
        rows[rows["size"] == 20]["basic-rl"].astype(float).mean(), abs=1e-6
    )
    assert np.isclose(results.optimal, 0.597742, atol=1e-6)
