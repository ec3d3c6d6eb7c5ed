"""Chunks, parts, interruption, workers, clusters."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from parts import needed

from spibb.cli.studies import cost
from spibb.errors import InputError
from spibb.experiments import runner, workers
from spibb.experiments.parts import Chunk, stored_parts
from spibb.experiments.results import load_results
from spibb.experiments.runner import execute, plan
from spibb.experiments.spec import Column, Experiment
from spibb.experiments.workers import run_chunk

SPEC = Experiment("gridworld", (10, 20), (Column.parse("basic-rl"), Column.parse("pi-b:n_wedge=5")))


def run_all(folder: Path, runs: int, spec: Experiment = SPEC, jobs: int = 1, **options) -> None:
    list(execute(plan(spec, folder, runs, jobs), jobs=jobs, **options))


def table(folder: Path) -> list[tuple]:
    """All stored rows in order."""
    with duckdb.connect() as connection:
        return connection.sql(
            "SELECT * EXCLUDE (eta) FROM read_parquet($parts) ORDER BY run, size",
            params={"parts": str(folder / "part-*.parquet")},
        ).fetchall()


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The rows of twelve runs in one process."""
    folder = tmp_path_factory.mktemp("reference") / "rows"
    run_all(folder, 12)
    return table(folder)


def test_rows_do_not_depend_on_the_number_of_workers(tmp_path, reference):
    run_all(tmp_path / "two", 12, jobs=2)
    assert table(tmp_path / "two") == reference
    assert len(reference) == 24


def test_short_work_stays_in_one_process(tmp_path):
    short = replace(plan(SPEC, tmp_path / "rows", 12), seconds_per_run=0.01)
    long = replace(short, seconds_per_run=1.0)
    assert (short.processes(cores=8), long.processes(cores=8)) == (1, 8)
    assert "on one process" in cost(short, 1, None)
    assert "on 8 processes" in cost(short, 8, None)
    assert cost(replace(short, chunks=()), 1, None).endswith("nothing to do")


def test_more_runs_can_be_added_later_and_only_the_difference_runs(tmp_path, reference):
    run_all(tmp_path / "rows", 5)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").glob("part-*")}
    todo = plan(SPEC, tmp_path / "rows", 12)
    assert (todo.done, todo.missing) == (5, 7)
    list(execute(todo))
    assert table(tmp_path / "rows") == reference
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())
    assert plan(SPEC, tmp_path / "rows", 12).chunks == ()


def test_stopping_in_the_middle_keeps_what_is_finished(tmp_path, reference):
    steps = execute(plan(SPEC, tmp_path / "rows", 12))
    next(steps)
    steps.close()
    assert 0 < plan(SPEC, tmp_path / "rows", 12).done < 12
    run_all(tmp_path / "rows", 12)
    assert table(tmp_path / "rows") == reference


@pytest.mark.slow
def test_a_dask_cluster_whose_worker_is_killed_finishes_with_the_same_table(tmp_path):
    distributed = needed("distributed")
    spec = Experiment("gridworld", (10, 200), SPEC.columns)
    run_all(tmp_path / "local", 40, spec)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
        host="127.0.0.1",
    ) as cluster:  # fmt: skip
        todo = plan(spec, tmp_path / "dask", 40, jobs=2)
        steps = execute(todo, dask=cluster.scheduler_address)
        next(steps)
        victim = next(iter(cluster.workers.values()))
        os.kill(victim.pid, signal.SIGKILL)
        list(steps)
    assert table(tmp_path / "dask") == table(tmp_path / "local")


def test_an_unreachable_scheduler_is_named(tmp_path, monkeypatch):
    needed("distributed")
    monkeypatch.setattr(workers, "ANSWERS_WITHIN", "1s")
    with pytest.raises(InputError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        run_all(tmp_path / "rows", 2, dask="tcp://127.0.0.1:9")


def test_a_folder_of_another_experiment_is_refused(tmp_path):
    run_all(tmp_path / "rows", 2)
    other = Experiment("gridworld", (10,), SPEC.columns)
    with pytest.raises(InputError, match=r"holds another experiment \(sizes \(10, 20\), not"):
        plan(other, tmp_path / "rows", 2)
    third = Experiment("gridworld", SPEC.sizes, SPEC.columns[:1])
    with pytest.raises(InputError, match="2 columns, not these 1"):
        plan(third, tmp_path / "rows", 2)


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        plan(SPEC, tmp_path, 2)


def test_a_truncated_part_is_set_aside_and_done_again(tmp_path, reference):
    run_all(tmp_path / "rows", 12)
    part = sorted((tmp_path / "rows").glob("part-*"))[0]
    part.write_bytes(part.read_bytes()[:100])
    todo = plan(SPEC, tmp_path / "rows", 12)
    assert [path.name for path in todo.set_aside] == [part.with_suffix(".broken").name]
    list(execute(todo))
    assert table(tmp_path / "rows") == reference


def test_a_dry_plan_leaves_the_disk_as_it_is(tmp_path):
    assert plan(SPEC, tmp_path / "rows", 12, dry=True).missing == 12
    assert not (tmp_path / "rows").exists()
    run_all(tmp_path / "rows", 12)
    part = sorted((tmp_path / "rows").glob("part-*"))[0]
    part.write_bytes(part.read_bytes()[:100])
    todo = plan(SPEC, tmp_path / "rows", 12, dry=True)
    assert todo.set_aside == (part,)
    assert part.is_file()
    assert todo.done == 12 - todo.missing
    with pytest.raises(InputError, match=rf"{part.name}' is damaged: run the command"):
        load_results(tmp_path / "rows")


def test_missing_runs_are_cut_into_chunks_between_those_done():
    done = [Chunk(4, 6), Chunk(9, 10)]
    found = [(c.start, c.stop) for c in runner._missing(done, 12, 3)]
    assert found == [(0, 3), (3, 4), (6, 9), (10, 12)]


def test_a_chunk_holds_one_row_per_run_and_size():
    _, columns = run_chunk(SPEC, Chunk(2, 5))
    assert columns["run"].tolist() == [2, 2, 3, 3, 4, 4]
    assert columns["basic-rl"].dtype == "float32"


def test_results_of_an_empty_folder_say_what_to_do(tmp_path):
    with pytest.raises(InputError, match=r"there is no experiment\.toml"):
        load_results(tmp_path)
    plan(SPEC, tmp_path / "rows", 1)
    with pytest.raises(InputError, match="no finished part yet"):
        load_results(tmp_path / "rows")
    assert stored_parts(SPEC, tmp_path / "rows").parts == ()
