"""The assurance benchmark, in small: the runner's rows are those of the classes."""

from __future__ import annotations

import math
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from typer.testing import CliRunner

import spibb
from spibb.algorithms.auto import Auto
from spibb.algorithms.certified import Certified
from spibb.cli.app import app
from spibb.envs.families import FAMILIES
from spibb.envs.small import BASELINES
from spibb.errors import InputError
from spibb.evaluate import exact_value
from spibb.experiments.assurance import (
    COLUMNS,
    GRIDS,
    OLD_RULE,
    PROTOTYPE,
    OldRule,
    ahead,
    default_experiment,
    differences,
    problem_of,
    repeat,
    return_limits,
    scenes,
)
from spibb.experiments.prototype import Prototype
from spibb.experiments.results import load_results
from spibb.experiments.runner import execute, plan
from spibb.experiments.spec import Column, Experiment
from spibb.experiments.studies import select_experiment, usual_runs
from spibb.paper.stored import read_results
from spibb.verdict import Grade

SMALL = select_experiment(
    "assurance", "main", sizes=(30, 200), families=("bernoulli-bandit", "pit-chain"), seed=3
)
BRIEF = select_experiment(
    "assurance", "main", columns=("auto", "pi-b:n_wedge=5"), sizes=(30,), families=("near-null",)
)


def stored(folder):
    """All stored rows in order, NaN as None."""
    with duckdb.connect() as connection:
        rows = connection.sql(
            "SELECT * FROM read_parquet($parts) ORDER BY run, family, quality, size",
            params={"parts": str(folder / "part-*.parquet")},
        ).fetchall()
    return [tuple(None if isinstance(v, float) and math.isnan(v) else v for v in r) for r in rows]


def run_all(folder, experiment, runs, jobs=1):
    list(execute(plan(experiment, folder, runs, jobs), jobs=jobs))


def test_rows_are_what_the_classes_compute():
    rows = iter(repeat(SMALL, 4))
    for scene in scenes(SMALL, 4):
        best = float(scene.mdp.initial @ spibb.envs.baselines.optimal_q(scene.mdp).max(axis=1))
        for size in SMALL.sizes:
            row, problem = next(rows), problem_of(scene, SMALL, 4, size)
            assert (row["family"], row["quality"]) == (scene.family, scene.quality)
            low, high = return_limits(scene.mdp)
            for key, algorithm in {
                "auto": Auto(), "certified": Certified(lowest_return=low, highest_return=high),
                "certified:delta=0.2": Certified(0.2, lowest_return=low, highest_return=high),
                OLD_RULE: OldRule(), PROTOTYPE: Prototype(), "basic-rl": spibb.BasicRL(),
                "pi-leq-b:n_wedge=20": spibb.PiLeqBSpibb(n_wedge=20),
            }.items():  # fmt: skip
                policy = algorithm.improve(problem).policy
                gain = exact_value(scene.mdp, policy) - exact_value(scene.mdp, scene.baseline)
                possible = best - exact_value(scene.mdp, scene.baseline)
                assert row[key] == pytest.approx(gain / possible, abs=1e-7)
                assert row[f"worse:{key}"] == (gain < -1e-9 * (high - low))
                assert row[f"changed:{key}"] == (policy.probs != scene.baseline.probs).any()
            verdict = Auto().improve(problem).verdict
            assert row["supported:auto"] == (verdict.grade is not Grade.NOT_SUPPORTED)
            assert row["misled:auto"] == (row["supported:auto"] and row["worse:auto"])


def test_the_old_rule_takes_the_largest_mean_among_the_probable():
    experiment = replace(SMALL, sizes=(200,), families=("bernoulli-bandit",))
    taken = []
    for run in range(3):
        for scene in scenes(experiment, run):
            problem = problem_of(scene, experiment, run, 200)
            swept = Auto.over_thresholds().sweep(problem)
            sure = [c for c in swept if c.states_changed and c.probability >= 0.95]
            chosen = OldRule().improve(problem).policy.probs
            if not sure:
                np.testing.assert_array_equal(chosen, scene.baseline.probs)
                continue
            best = max(sure, key=lambda c: c.gain)
            kind = {"pi-b": spibb.PiBSpibb, "pi-leq-b": spibb.PiLeqBSpibb}[best.algorithm]
            wanted = kind(best.n_wedge, "baseline").improve(problem).policy.probs
            np.testing.assert_array_equal(chosen, wanted)
            taken.append(best)
    assert taken


def test_runs_are_resumed_and_do_not_depend_on_workers(tmp_path):
    run_all(tmp_path / "once", BRIEF, 3)
    run_all(tmp_path / "twice", BRIEF, 1)
    assert plan(BRIEF, tmp_path / "twice", 3).done == 1
    run_all(tmp_path / "twice", BRIEF, 3, jobs=2)
    rows = stored(tmp_path / "once")
    assert len(rows) == 3 * len(BASELINES)
    assert stored(tmp_path / "twice") == rows


@pytest.mark.parametrize("size", SMALL.sizes)
def test_a_log_does_not_depend_on_what_else_is_run(size):
    alone = replace(SMALL, sizes=(size,), families=("pit-chain",))
    wanted = [r for r in repeat(SMALL, 0) if (r["family"], r["size"]) == ("pit-chain", size)]
    assert [r["auto"] for r in repeat(alone, 0)] == [r["auto"] for r in wanted]
    assert [r["earned"] for r in repeat(alone, 0)] == [r["earned"] for r in wanted]


def test_shares_are_counted_over_logs(tmp_path):
    run_all(tmp_path / "rows", BRIEF, 3)
    results = load_results(tmp_path / "rows")
    assert load_results(tmp_path / "rows").cells == results.cells
    rows = [row for run in range(3) for row in repeat(BRIEF, run)]
    for quality in BASELINES:
        mine = [row["changed:pi-b:n_wedge=5"] for row in rows if row["quality"] == quality]
        cell = results.cell("changed:pi-b:n_wedge=5", 30, family="near-null", quality=quality)
        assert (cell.runs, cell.statistics["mean"].value) == (3, pytest.approx(np.mean(mine)))


def test_parts_in_one_folder_are_read_together(tmp_path):
    run_all(tmp_path / "rows" / "few", BRIEF, 1)
    run_all(tmp_path / "rows" / "many", replace(BRIEF, sizes=(40,)), 2)
    results = read_results(tmp_path / "rows")
    assert {(c.size, c.runs) for c in results.cells if c.column == "auto"} == {(30, 1), (40, 2)}
    done = CliRunner().invoke(app, ["claims", str(tmp_path / "rows")])
    assert done.exit_code == 0 and "auto-overall" in done.output
    written = (tmp_path / "rows" / "claims.md").read_text(encoding="utf-8")
    assert "--runs 2 --out" in written and "--runs 1 --out" in written


def test_columns_are_compared_log_by_log(tmp_path):
    experiment = replace(BRIEF, columns=tuple(map(Column.parse, ("auto", PROTOTYPE))), sizes=(100,))
    run_all(tmp_path / "rows", experiment, 3)
    results = load_results(tmp_path / "rows")
    rows = [row for run in range(3) for row in repeat(experiment, run)]
    for quality in BASELINES:
        gaps = [r["auto"] - r[PROTOTYPE] for r in rows if r["quality"] == quality]
        cell = results.cell(ahead("auto", PROTOTYPE), 100, family="near-null", quality=quality)
        assert cell.statistics["mean"].value == pytest.approx(np.mean(gaps))
    assert not differences(BRIEF)


def test_what_does_not_apply_is_not_counted(tmp_path):
    """Of six logs, three are too short for any change; all values of the others agree."""
    experiment = replace(BRIEF, families=("river-swim",), sizes=(3, 300))
    run_all(tmp_path / "rows", experiment, 1)
    results, rows = load_results(tmp_path / "rows"), repeat(experiment, 0)
    for name in ("covered:auto", "true:auto@0.99"):
        known = {(r["quality"], r["size"]): r[name] for r in rows if not math.isnan(r[name])}
        cells = {(c.quality, c.size): c for c in results.cells if c.column == name}
        assert known.keys() == cells.keys()
        assert 0 < len(known) < len(rows)
        for key, value in known.items():
            assert (cells[key].runs, cells[key].statistics["mean"].value) == (1, value)


def test_bounds_are_kept_or_broken_as_the_truth_says():
    seen = set()
    for run in range(2):
        for row in repeat(SMALL, run):
            if math.isnan(row["lower:auto"]):
                assert not row["changed:auto"] or math.isnan(row["covered:auto"])
                continue
            assert row["covered:auto"] == (row["auto"] >= row["lower:auto"] - 1e-6)
            seen.add(row["covered:auto"])
    assert seen


def test_limits_of_returns_are_those_of_paths():
    rng = np.random.default_rng(0)
    closed = {
        "river-swim": (0.0, 1 / 0.05), "bernoulli-bandit": (0.0, 1.0), "cliff-costs": (-50.0, 0.0),
        "gridworld": (0.0, 1.0), "pit-chain": (-0.5 / 0.05, 10.0), "frozen-lake": (0.0, 1.0),
    }  # fmt: skip
    for name, wanted in closed.items():
        assert return_limits(FAMILIES[name].make(rng)) == pytest.approx(wanted, abs=1e-6), name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"families": ("atari",)}, "family"),
        ({"families": ("taxi", "taxi")}, "twice"),
        ({"grid": "search"}, "grid"),
        ({"etas": (0.5,)}, "leave --etas out"),
        ({"seeds": 3}, "leave --seeds out"),
        ({"sizes": (0,)}, "size"),
        ({"columns": ("dqn",)}, "not for assurance"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        select_experiment("assurance", **({"grid": "main"} | options))


def test_families_belong_to_this_suite_alone():
    with pytest.raises(InputError, match="leave --families out"):
        select_experiment("gridworld", "main", families=("taxi",))
    with pytest.raises(InputError, match="no families"):
        Experiment("gridworld", (10,), (Column.parse("basic-rl"),), families=("taxi",))
    with pytest.raises(InputError, match="list them"):
        Experiment("assurance", (10,), (Column.parse("basic-rl"),))


def test_the_usual_numbers_of_runs():
    assert (usual_runs("assurance", "main"), usual_runs("assurance", "large")) == (1000, 200)
    with pytest.raises(InputError, match="give --runs"):
        usual_runs("gridworld", "main")


def test_the_grids_have_all_families_and_columns():
    assert {name for grid in GRIDS.values() for name in grid} == set(FAMILIES)
    spec = default_experiment("assurance")
    assert [column.key for column in spec.columns] == list(COLUMNS)
    assert Experiment.from_toml(spec.to_toml()) == spec


def test_experiments_without_families_keep_their_fingerprint():
    """Rows that were stored before there were families still belong to their experiment."""
    assert "families" not in Experiment("gridworld", (10,), (Column.parse("basic-rl"),)).to_toml()


def test_certified_is_told_what_returns_can_be():
    """Without that it would refuse."""
    problem = problem_of(next(scenes(SMALL, 0)), SMALL, 0, 30)
    with pytest.raises(InputError, match="lowest"):
        Certified().improve(problem)
