"""`spibb experiment paper`: the three finite studies and the page, in one command that goes on."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from spibb.cli.app import app
from spibb.errors import InputError
from spibb.experiments.parts import part_files
from spibb.experiments.spec import FINITE

SMALL = "--runs 3 --sizes 10,20 --etas 0.1 --column pi-b:n_wedge=5 --column basic-rl --jobs 1"


def run(*words):
    return CliRunner().invoke(app, ["experiment", "paper", *words], env={"COLUMNS": "80"})


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "paper"
    return out, run(*SMALL.split(), "--out", str(out))


def test_all_studies_are_run_and_the_page_is_written(ran):
    out, result = ran
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == sorted([*FINITE, "paper.html"])
    assert all(part_files(out / name) for name in FINITE)
    page = (out / "paper.html").read_text(encoding="utf-8")
    assert "Does the paper hold?" in page
    assert all(f'id="{name}' in page for name in ("grid-", "rand-", "mdps-"))


def test_the_cost_of_everything_comes_first_and_the_summary_is_printed(ran):
    lines = ran[1].output.splitlines()
    costs = [i for i, line in enumerate(lines) if "runs are stored" in line]
    assert len(costs) == 3
    assert costs[-1] < next(i for i, line in enumerate(lines) if " hold, " in line)
    assert not any("figures; open" in line for line in lines[: costs[-1]])


def test_the_same_command_goes_on(ran):
    out, _ = ran
    again = run(*SMALL.split(), "--out", str(out))
    assert again.output.count("nothing to do") == 3


def test_a_dry_run_writes_nothing(tmp_path):
    result = run(*SMALL.split(), "--out", str(tmp_path / "paper"), "--dry-run")
    assert result.output.count("to do") == 3
    assert not (tmp_path / "paper").exists()


def test_another_baseline_is_refused(tmp_path):
    result = run("--runs", "1", "--out", str(tmp_path / "paper"), "--baseline", "spibb")
    assert isinstance(result.exception, InputError)
