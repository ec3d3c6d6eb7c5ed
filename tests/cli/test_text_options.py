"""Options for text on the command line: the log, and the policies that are text like it."""

from __future__ import annotations

from typer.testing import CliRunner

from spibb import read_policy
from spibb.cli.app import app

LOG = "episode_id;step;state;action;reward;terminated\n" + "".join(
    f"{i};0;{'früh' if i % 2 else 'spät'};{'ja' if i % 3 else 'nein'};{i % 4},5;1\n"
    for i in range(60)
)
BASELINE = "state;action;probability\n" + "".join(
    f"{state};{action};0,5\n" for state in ("früh", "spät") for action in ("ja", "nein")
)
TEXT = ["--encoding", "latin-1", "--decimal", ",", "--separator", ";"]


def spibb(*words):
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.output


def test_one_way_of_writing_holds_for_log_and_policies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(LOG, "latin-1")
    (tmp_path / "baseline.csv").write_text(BASELINE, "latin-1")
    spibb("improve", "log.csv", "--baseline", "baseline.csv", "--out", "out", *TEXT)
    assert set(read_policy("out").states.labels) == {"früh", "spät"}
    spibb("evaluate", "log.csv", "--policy", "out", "--behaviour", "baseline.csv", *TEXT)
    spibb("evaluate", "log.csv", "--policy", "out/policy.csv", "--behaviour", "baseline.csv", *TEXT)
    spibb("compare", "out", "baseline.csv", "--log", "log.csv", *TEXT)
    assert "60" in spibb("inspect", "log.csv", *TEXT)


def test_a_policy_of_another_kind_needs_none_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(LOG, "latin-1")
    (tmp_path / "baseline.csv").write_text(BASELINE.replace("0,5", "0.5"), "utf-8")
    read_policy("baseline.csv").save("baseline.parquet")
    spibb("improve", "log.csv", "--baseline", "baseline.parquet", "--out", "out", *TEXT)
    assert set(read_policy("out").states.labels) == {"früh", "spät"}
