"""`spibb improve --algorithm dqn`, `evaluate` and `act` on a pole in millimetres and degrees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "deep"))
pytest.importorskip("deep_extra", exc_type=ImportError)

import pole
from inside import spibb

from spibb.deep.network import MLP
from spibb.deep.policy import SoftmaxBaseline
from spibb.deep.vector_policy import load_vector_policy
from spibb.grade import HEADLINES
from spibb.tables import write_table
from spibb.words import number

STATE = "x_mm,speed,angle,spin"
CASE = ["--state", "x_mm=10", "--state", "speed=-3", "--state", "angle=1", "--state", "spin=2"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with logs, and what `improve` makes of one."""
    folder = tmp_path_factory.mktemp("pole")
    write_table(pole.table(50, seed=3), folder / "log.csv")
    write_table(pole.table(20, seed=5), folder / "short.csv")
    write_table(pole.table(60, seed=4, recorded=True), folder / "later.parquet")
    done = spibb(
        "improve", "log.csv", "--algorithm", "dqn", "--state", STATE, "--out", "out",
        "--option", "passes=40", folder=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_the_policy_of_the_command_line_is_no_worse_in_truth(made):
    folder, _ = made
    policy = load_vector_policy(folder / "out")
    assert policy.features == pole.FEATURES
    new, old = pole.mean_length(policy, 300, 9), pole.mean_length(pole.current, 300, 9)
    assert new > old


def test_everything_is_said_and_written(made):
    folder, said = made
    words = " ".join(said.split())
    for text in ("log-loss", "for the frequencies alone", "held-out episodes", "radius", "n_wedge",
                 "most typical case", "Report: out/report.html"):  # fmt: skip
        assert text in words
    files = {path.name for path in (folder / "out").iterdir()}
    assert files == {"manifest.sha256", "policy.npz", "policy.onnx", "report.html",
                     "returns.parquet", "summary.json"}  # fmt: skip
    summary = json.loads((folder / "out" / "summary.json").read_text("utf-8"))
    assert summary["verdict"]["headline"] in said
    assert summary["behaviour"]["log_loss"] < summary["behaviour"]["marginal_loss"]
    assert summary["features"] == list(pole.FEATURES)
    page = (folder / "out" / "report.html").read_text("utf-8")
    assert summary["verdict"]["sentence"][:40] in page
    for title in ("What changes", "The evidence", "The current policy", "Held-out episodes"):
        assert title in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_mean_return_is_that_of_the_episodes_in_its_caption(made):
    folder, _ = made
    page = (folder / "out" / "report.html").read_text("utf-8")
    returns = pq.read_table(folder / "out" / "returns.parquet").column("return").to_numpy()
    tile = page.split("<dt>Mean return in the log</dt>")[1].split("</div>")[0]
    assert tile == f"<dd>{number(returns.mean())}<small>all {len(returns)} episodes</small></dd>"


def test_evaluate_and_act_take_the_folder(made):
    folder, _ = made
    done = spibb("evaluate", "later.parquet", "--policy", "out", folder=folder)
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert words.split(".")[0].removesuffix(", with a doubt") in HEADLINES.values()
    assert "Gain of the changes (each made alone, then added up):" in words
    assert "Probabilities of the logged actions: action_prob" in words
    assert "Discount 0.95, as stored with out" in words
    acted = spibb("act", "out", *CASE, folder=folder)
    assert acted.returncode == 0, acted.stderr
    row = load_vector_policy(folder / "out").row({"x_mm": 10, "speed": -3, "angle": 1, "spin": 2})
    assert f"{row['left']:.4f}" in acted.stdout
    assert "In state 10.0 · −3.0 · 1.0 · 2.0:" in acted.stdout


def test_a_baseline_file_and_a_checkpoint(made):
    folder, _ = made
    network = MLP((np.zeros((4, 2), np.float32),), (np.zeros(2, np.float32),))
    SoftmaxBaseline(network, 1.0).save(folder / "fair.npz")
    arguments = ("improve", "short.csv", "--algorithm", "dqn", "--state", STATE, "--option",
                 "passes=3", "--baseline", "fair.npz", "--checkpoint", "run.npz",
                 "--holdout", "0")  # fmt: skip
    for out in ("one", "two"):
        done = spibb(*arguments, "--out", out, folder=folder)
        assert done.returncode == 0, done.stderr
        assert "The current policy is the one given" in done.stdout
        assert "No episodes were held out" in " ".join(done.stdout.split())
    assert (folder / "run.npz").is_file()
    one, two = (load_vector_policy(folder / out) for out in ("one", "two"))
    np.testing.assert_array_equal(one.network.weights[0], two.network.weights[0])
    other = spibb(*arguments, "--discount", "0.5", "--out", "three", folder=folder)
    assert other.returncode == 2
    assert "was made with discount" in other.stderr
    assert not (folder / "three").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--state", "x_mm,action"], "mapped twice"),
        (["--state", "x_mm,none"], "no column 'none'"),
        (["--state", STATE, "--bin", "x_mm:3"], "bins cut the column 'x_mm'"),
        (["--state", STATE, "--n-wedge", "-1"], "n_wedge is -1"),
        (["--state", STATE, "--n-wedge", "many"], "n_wedge is 'many'"),
        (["--state", STATE, "--option", "radius=0"], "radius is 0"),
        (["--state", STATE, "--option", "radios=1"], "did you mean 'radius'"),
        (["--state", STATE, "--option", "passes=0.5"], "passes is 0.5"),
        (["--state", STATE, "--option", "learning-rate=1e9"], "training diverged"),
        (["--state", STATE, "--holdout", "1"], "holdout is 1"),
        (["--state", STATE, "--holdout", "0.01"], "expected at least 2"),
        (["--state", STATE, "--discount", "1"], "discount is 1"),
        (["--state", STATE, "--delta", "2"], "delta is 2"),
        (["--state", STATE, "--v-max", "3"], "v_max applies to tables only"),
        (["--state", STATE, "--sceptic"], "sceptic applies to tables only"),
        (["--state", STATE, "--spreadsheet-safe"], "spreadsheet_safe applies to tables only"),
        (["--state", STATE, "--baseline", "short.csv"], "not an .npz file"),
        (["--state", STATE, "--baseline", "none.npz"], "there is no such file"),
        (["--state", STATE, "--baseline", "out/policy.npz"], "cannot be a baseline itself"),
        (["--state", STATE, "--checkpoint", "none/run.npz"], "in a folder that exists"),
        (["--state", STATE, "--checkpoint", "run.txt"], "must name an .npz file"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(made, arguments, message):
    folder, _ = made
    before = sorted(path.name for path in folder.iterdir())
    done = spibb("improve", "short.csv", "--algorithm", "dqn", "--out", "bad", *arguments,
                 folder=folder)  # fmt: skip
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "log.csv", "--policy", "out", "--behaviour", "out"], "--behaviour is for"),
        (["evaluate", "log.csv", "--policy", "out", "--bin", "x_mm:3"], "the policy does not"),
        (["evaluate", "log.csv", "--policy", "out", "--state", "x_mm"], "--state names 1 columns"),
        (["evaluate", "log.csv", "--policy", "out", "--discount", "2"], "discount is 2"),
        (["evaluate", "log.csv", "--policy", "out", "--delta", "0"], "delta is 0"),
        (["act", "out", "--state", "x_mm=1"], "'speed' is missing"),
        (["act", "out", *CASE[:-1], "spin=fast"], "spin is 'fast'"),
        (["act", "out", *CASE, "--state", "mass=1"], "not understood"),
        (["improve", "log.csv", "--state", "x_mm", "--out", "bad", "--checkpoint", "a.npz"],
         "checkpoint is for the algorithm dqn"),
    ],
)  # fmt: skip
def test_other_commands_refuse_in_one_line(made, arguments, message):
    folder, _ = made
    done = spibb(*arguments, folder=folder)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_the_extra_the_way_to_it_is_said(made, tmp_path):
    folder, _ = made
    (tmp_path / "jax.py").write_text("raise ImportError('no jax', name='jax')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = f"-m spibb improve log.csv --algorithm dqn --state {STATE} --out bad"
    done = subprocess.run(
        [sys.executable, *command.split()], capture_output=True, text=True, check=False,
        cwd=folder, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 2
    assert "jax is missing: pip install" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (folder / "bad").exists()
