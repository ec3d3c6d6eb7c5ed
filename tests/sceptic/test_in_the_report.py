"""`spibb improve --sceptic`: a section of the report and an entry of summary.json."""

from __future__ import annotations

import json

import numpy as np
from typer.testing import CliRunner

import spibb
from spibb.cli.app import app
from spibb.tables import log_table, write_table


def make_log(rng, n=60):
    state = rng.choice(["<b>x</b>", "y"], n * 3)
    action = rng.choice(["go", "stay"], n * 3)
    reward = (action == "go") + rng.normal(size=n * 3) / 4
    return spibb.Log.from_arrays(
        state, action, reward, terminated=np.tile([False, False, True], n)
    )  # fmt: skip


def test_the_section_is_there_on_request_and_labels_are_escaped(tmp_path):
    write_table(log_table(make_log(np.random.default_rng(0))), tmp_path / "log.csv")
    words = ["improve", str(tmp_path / "log.csv"), "--out"]
    for folder, more in (("plain", []), ("asked", ["--sceptic"])):
        done = CliRunner().invoke(app, [*words, str(tmp_path / folder), *more])
        assert done.exit_code == 0, done.output
    pages = {
        name: (tmp_path / name / "report.html").read_text("utf-8") for name in ("plain", "asked")
    }
    assert "For the sceptic" not in pages["plain"]
    for text in ("For the sceptic", "Hidden causes", "Memory:", "Drift:", "Rehearsals: of ",
                 "Effective number of episodes", "Episodes by importance weight"):  # fmt: skip
        assert text in pages["asked"]
    assert "<b>x</b>" not in pages["asked"]
    assert pages["asked"].count("times seen in the log") == 1
    stored = {name: json.loads((tmp_path / name / "summary.json").read_text("utf-8"))["sceptic"]
              for name in pages}  # fmt: skip
    assert stored["plain"] is None
    assert stored["asked"]["rehearsal"]["done"] > 0
    found = stored["asked"]["confounding"]
    assert found["gamma"] >= found["gamma_of_verdict"] >= 1
    assert "The verdict falls at Γ = " in pages["asked"]


def test_the_order_of_time_survives_a_hold_out(tmp_path):
    """Held-out episodes are drawn at random; drift is looked for in the log as it is."""
    rng = np.random.default_rng(1)
    log = make_log(rng, 80)
    late = np.arange(len(log)) >= len(log) // 2
    log = spibb.Log.from_arrays(
        log.state, log.action, log.reward + 3.0 * late, terminated=log.terminated
    )
    found = spibb.run(log, holdout=0.3, sceptic=True).assessment.sceptic.drift
    assert found.late > found.early + 5
    assert found.p_value < 0.01
