"""The calibration study, in small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from spibb.experiments import calibration
from spibb.experiments.calibration import Setting, choices, reliability, simulate_setting, wilson
from spibb.paper import calibration as command


def table(**columns):
    n = len(columns["run"])
    rest = {"algorithm": ["pi-b"] * n, "n_wedge": [5.0] * n, "gain": [0.0] * n,
            "covered": [True] * n, "role": ["candidate"] * n}  # fmt: skip
    return pa.table(rest | columns)


def test_one_log_is_judged_as_auto_judges_it():
    setting = Setting("gridworld", 30)
    rows = calibration.judge_one(setting, 3, np.random.default_rng(1))
    again = calibration.judge_one(setting, 3, np.random.default_rng(1))
    assert rows == again
    roles = [row.role for row in rows]
    assert roles[-2:] == ["auto", "fixed"]
    assert rows[-2] in [replace(row, role="auto") for row in rows[:-2]]
    assert (rows[-1].algorithm, rows[-1].n_wedge) == ("pi-b", 5)


def test_runs_do_not_depend_on_their_number():
    setting = Setting("random-mdps", 30, 0.5)
    two, three = (simulate_setting(setting, runs) for runs in (2, 3))
    assert three.slice(0, two.num_rows).equals(two)


def test_bins_compare_belief_with_frequency():
    rows = table(
        run=[0, 0, 1, 1, 2], probability=[0.92, 0.94, 1.0, 1.0, 0.05],
        true_gain=[0.1, -0.1, 0.2, 0.0, -1.0],
    )  # fmt: skip
    lowest, ninety, certain = reliability(rows)
    assert (lowest["policies"], lowest["frequency"]) == (1, 0)
    assert (ninety["low"], ninety["high"], ninety["logs"]) == (0.9, 0.95, 1)
    assert (ninety["probability"], ninety["frequency"]) == (pytest.approx(0.93), 0.5)
    assert (certain["low"], certain["frequency"]) == (0.99, 1)
    assert certain["frequency_low"] < 1


def test_candidates_of_one_log_count_once_in_the_interval():
    runs, gains = np.arange(40), np.where(np.arange(40) % 4 == 0, -1.0, 1.0)
    single = table(run=runs, probability=[0.97] * 40, true_gain=gains)
    doubled = pa.concat_tables([single, single])
    (one,), (two,) = reliability(single), reliability(doubled)
    assert one["frequency_low"] == pytest.approx(two["frequency_low"])
    assert one["frequency_high"] == pytest.approx(two["frequency_high"])


def test_wilsons_interval():
    low, high = wilson(0.5, 100)
    assert (low, high) == (pytest.approx(0.4038, abs=1e-4), pytest.approx(0.5962, abs=1e-4))


def test_choices_are_counted_in_truth():
    rows = table(
        run=[0, 1, 0, 1], role=["auto", "auto", "fixed", "fixed"], probability=[1.0] * 4,
        true_gain=[0.2, -0.1, 0.0, 0.1], n_wedge=[5.0, np.inf, 5.0, 5.0],
    )  # fmt: skip
    found = choices(rows)
    assert found["auto_gain"] == pytest.approx(0.05)
    assert (found["auto_worse"], found["fixed_worse"]) == (0.5, 0)
    assert found["auto_kept_baseline"] == 0.5


def test_the_command_writes_tables_and_figure_and_continues(tmp_path, monkeypatch):
    import typer

    small = (Setting("gridworld", 30), Setting("random-mdps", 30, 0.9))
    monkeypatch.setattr(command, "SETTINGS", small)
    monkeypatch.setattr("spibb.paper.reliability.FEWEST", 1)
    app = typer.Typer()
    app.command()(command.calibrate)
    words = ["--runs", "3", "--out", str(tmp_path)]
    first = CliRunner().invoke(app, words)
    assert first.exit_code == 0, first.output
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"bins.csv", "choices.csv", "reliability.png", "reliability.svg", "rows"}
    monkeypatch.setattr(command, "simulate_setting", None)
    assert CliRunner().invoke(app, words).output == first.output
