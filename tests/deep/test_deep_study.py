"""The helicopter study in the runner: rows depend on the seed and the run's number alone."""

from __future__ import annotations

from dataclasses import replace

import deep_extra  # noqa: F401 (skips without JAX, fails without it in CI)
import duckdb
import numpy as np
import pytest

from spibb.deep.helicopter import WEIGHTS
from spibb.deep.network import MLP
from spibb.deep.policy import SoftmaxBaseline
from spibb.errors import InputError
from spibb.experiments.helicopter import repeat
from spibb.experiments.results import load_results
from spibb.experiments.runner import execute, plan
from spibb.experiments.spec import Column, Experiment, NetworkFile, Training

COLUMNS = tuple(Column.parse(key) for key in ("dqn", "dqn:n_wedge=0.5"))
SPEC = Experiment(
    "helicopter", (300,), COLUMNS, max_steps=100,
    training=Training(passes=(1, 2), seeds=1, episodes=5),
)  # fmt: skip


def run_all(folder, runs, jobs=1):
    list(execute(plan(SPEC, folder, runs, jobs), jobs=jobs))


def table(folder):
    with duckdb.connect() as connection:
        return connection.sql(
            "SELECT * FROM read_parquet($parts) ORDER BY run, noise, size, passes, seed",
            params={"parts": str(folder / "part-*.parquet")},
        ).fetchall()


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The folder of three runs in one process."""
    folder = tmp_path_factory.mktemp("helicopter") / "rows"
    run_all(folder, 3)
    return folder


def test_rows_do_not_depend_on_the_number_of_workers(tmp_path, reference):
    run_all(tmp_path / "two", 3, jobs=2)
    assert table(tmp_path / "two") == table(reference)
    assert len(table(reference)) == 3 * 2


def test_a_stopped_study_continues_to_the_same_rows(tmp_path, reference):
    steps = execute(plan(SPEC, tmp_path / "rows", 3))
    next(steps)
    steps.close()
    todo = plan(SPEC, tmp_path / "rows", 3)
    assert 0 < todo.done < 3 and todo.seconds_per_run > 0
    list(execute(todo))
    assert table(tmp_path / "rows") == table(reference)


def test_cells_are_means_of_returns_beside_the_baseline(reference):
    results = load_results(reference)
    stored = [dict(zip(_names(reference), row)) for row in table(reference)]
    for key in ("baseline", "entropy", "bootstrapped:n_wedge=0.5", "dqn"):
        cell = results.cell(key, 300, noise=1.0, passes=2)
        values = [row[key] for row in stored if row["passes"] == 2]
        assert cell.runs == 3
        assert cell.statistics["mean"].value == pytest.approx(sum(values) / 3)
    assert all(0 < row["bootstrapped:n_wedge=0.5"] < 1 for row in stored)
    assert load_results(reference).cells == results.cells  # this time from summary.json


def _names(folder):
    with duckdb.connect() as connection:
        return connection.sql(
            "SELECT * FROM read_parquet($parts)", params={"parts": str(folder / "part-*.parquet")}
        ).columns


def with_training(**changes):
    return replace(SPEC, training=replace(SPEC.training, **changes))


def test_fewer_passes_are_the_beginning_of_more():
    short = repeat(with_training(passes=(1,)), 0)
    assert short == [row for row in repeat(SPEC, 0) if row["passes"] == 1]


def test_a_column_does_not_depend_on_the_others_nor_a_network_on_their_number():
    alone = replace(with_training(seeds=2), columns=COLUMNS[1:])
    for row, other in zip(
        repeat(SPEC, 1), [r for r in repeat(alone, 1) if r["seed"] == 0], strict=True
    ):
        assert row["passes"] == other["passes"]
        assert row["dqn:n_wedge=0.5"] == other["dqn:n_wedge=0.5"]
        assert row["baseline"] == other["baseline"]


def test_runs_on_one_data_set_differ_in_their_networks_only():
    spec = with_training(one_log=True, passes=(1,), episodes=200)
    first, second = (repeat(spec, run)[0] for run in (0, 1))
    same = ("entropy", "bootstrapped:n_wedge=0.5")
    assert [first[name] for name in same] == [second[name] for name in same]
    assert first["dqn:n_wedge=0.5"] != second["dqn:n_wedge=0.5"]
    many = (repeat(with_training(passes=(1,)), run)[0] for run in (0, 1))
    assert len({row["entropy"] for row in many}) == 2


def test_noise_factors_have_their_own_data():
    rows = repeat(with_training(noises=(0.0, 2.0), passes=(1,), episodes=500), 0)
    quiet, loud = (row["baseline"] for row in rows)
    assert quiet > loud
    assert [row["noise"] for row in rows] == [0.0, 2.0]


def saved(path, seed, sizes=(4, 8, 9)):
    SoftmaxBaseline(MLP.init(sizes, np.random.default_rng(seed))).save(path)
    return NetworkFile.of(str(path))


def test_a_network_from_a_file_makes_the_data(tmp_path):
    spec = replace(with_training(passes=(1,)), network=saved(tmp_path / "b.npz", 0))
    mine, usual = (repeat(found, 0)[0] for found in (spec, with_training(passes=(1,))))
    assert mine["entropy"] != usual["entropy"] and mine["baseline"] != usual["baseline"]
    own = NetworkFile.of(str(WEIGHTS))
    assert repeat(replace(spec, network=own), 0)[0] == usual


@pytest.mark.parametrize(
    ("sizes", "message"),
    [((3, 8, 9), "3 inputs and 9 outputs, expected 4 and 9"), ((4, 8, 2), "4 inputs and 2 out")],
)
def test_a_network_of_another_world_is_refused_before_anything_is_written(tmp_path, sizes, message):
    spec = replace(SPEC, network=saved(tmp_path / "b.npz", 0, sizes))
    with pytest.raises(InputError, match=message):
        plan(spec, tmp_path / "rows", 1)
    assert not (tmp_path / "rows").exists()


def test_a_network_that_changed_meanwhile_is_refused(tmp_path):
    spec = replace(SPEC, network=saved(tmp_path / "b.npz", 1))
    saved(tmp_path / "b.npz", 2)
    with pytest.raises(InputError, match="is not what the experiment was begun with"):
        repeat(spec, 0)


def test_a_data_set_smaller_than_a_minibatch_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="size is 10, expected at least 32 transitions"):
        plan(replace(SPEC, sizes=(10,)), tmp_path / "rows", 1)
    assert not (tmp_path / "rows").exists()
