"""Files of the shape of the Open Bandit logs, end to end: the command line, and the truth."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow.csv
import pytest

import spibb
from benchmarks.bench_open_bandit import CERTIFIED, Design, World, agreeing, grades, write_file

RANDOM = Design("random", 40_000, 4, 2, 0.004, 8.0, thompson=False)
THOMPSON = Design("thompson", 40_000, 4, 2, 0.004, 8.0, thompson=True)
OPTIONS = [
    "--bandit", "--state", "position,user_feature_0", "--action", "item_id", "--reward", "click",
    "--action-prob", "propensity_score",
]  # fmt: skip
COLUMNS = {
    "state": ["position", "user_feature_0"], "action": "item_id", "reward": "click",
    "action_prob": "propensity_score",
}  # fmt: skip


@pytest.fixture
def says(commands, folder):
    """What a command prints, in one line."""

    def run(*words):
        ended = commands.run(*words, folder=folder)
        assert ended.code == 0, ended.err
        return " ".join(ended.out.split())

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two files of one world with a better item: to improve from, and to test on."""
    path = tmp_path_factory.mktemp("clicks")
    rng = np.random.default_rng(5)
    world = World.draw(THOMPSON, True, rng)
    write_file(path / "clicks.csv", THOMPSON, world, rng)
    write_file(path / "later.csv", replace(THOMPSON, rows=8_000), world, rng)
    return path


def write_deployed(folder, rng):
    """Displays that the new policy made; who clicks does not matter here."""
    table = pyarrow.csv.read_csv(folder / "later.csv")
    policy = spibb.load_policy(folder / "new").policy
    states = zip(table["position"].to_pylist(), table["user_feature_0"].to_pylist())
    probs = policy.probs[[policy.states.index[state] for state in states]]
    action = (rng.random(len(probs))[:, None] > probs.cumsum(axis=1)).sum(axis=1)
    items = [policy.actions[int(a)] for a in action]
    chance = probs[np.arange(len(probs)), action]
    for name, values in (("item_id", items), ("propensity_score", chance)):
        table = table.set_column(table.column_names.index(name), name, [values])
    pyarrow.csv.write_csv(table, folder / "deployed.csv")


@pytest.mark.slow
@pytest.mark.parametrize("design", [RANDOM, THOMPSON], ids=lambda design: design.name)
def test_verdicts_agree_with_the_truth(design):
    seen = grades(design, 6, seed=11, **CERTIFIED)
    assert agreeing(seen) == 6, seen


@pytest.mark.slow
def test_the_command_line_from_a_file_to_monitoring(says, folder):
    limits = ["--option", "lowest_reward=0", "--option", "highest_reward=1"]
    said = says(
        "improve", "clicks.csv", *OPTIONS, "--algorithm", "certified", *limits, "--out", "new",
    )  # fmt: skip
    assert said.startswith("Certified. At level 0.95 the new policy is no worse"), said
    assert "baseline taken from action_prob" in said
    assert "Rows: each is an episode of one step (bandit)." in said
    summary = json.loads((folder / "new" / "summary.json").read_text())
    assert (summary["baseline"], summary["discount"], summary["v_max"]) == ("recorded", 0.0, 1.0)
    assert summary["return_limits"] == [0.0, 1.0]
    assert any("bandit" in finding["value"] for finding in summary["findings"])
    assert "clicks" not in says("inspect", "clicks.csv", *OPTIONS)
    found = says("evaluate", "later.csv", "--policy", "new", *OPTIONS)
    assert "wpdis" in found
    compared = says("compare", "new", "new", "--log", "later.csv", *OPTIONS)
    assert compared.startswith("Not judged. B did not make this log")
    assert "0 of 6 common states differ" in compared
    write_deployed(folder, np.random.default_rng(1))
    watched = says("monitor", "new", "deployed.csv", *OPTIONS, "--order", "timestamp")
    assert "timestamp" in watched


def test_python_says_the_same_from_a_file_and_a_frame(folder):
    done = [
        spibb.run(source, bandit=True, columns=COLUMNS, **CERTIFIED)
        for source in (folder / "clicks.csv", pyarrow.csv.read_csv(folder / "clicks.csv"))
    ]
    log = spibb.Log.from_frame(
        pyarrow.csv.read_csv(folder / "clicks.csv"), columns=COLUMNS, bandit=True
    )
    again = spibb.improve(log, **CERTIFIED)
    assert np.array_equal(done[0].policy.probs, done[1].policy.probs)
    assert np.array_equal(done[0].policy.probs, again.policy.probs)
    assert done[0].verdict == done[1].verdict
