"""Policies on vectors in every command and in `spibb.run`: as tables, or refused with a reason."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "deep"))
pytest.importorskip("deep_extra", exc_type=ImportError)

import pole
from inside import spibb

import spibb as library
from spibb.deep import load_vector_policy
from spibb.deep.comparing import compare_vectors
from spibb.deep.conforming import conformity_on
from spibb.errors import InputError
from spibb.tables import write_table

NAMES = {"state": list(pole.FEATURES), "episode_id": "run", "step": "t", "action": "push"}
OPTIONS = ["--state", ",".join(pole.FEATURES), "--episode", "run", "--step", "t", "--action",
           "push"]  # fmt: skip


def log_of(n, seed, **more):
    """A log whose columns are called otherwise."""
    table = pole.table(n, seed, **more)
    called = {"episode_id": "run", "step": "t", "action": "push"}
    return table.rename_columns([called.get(name, name) for name in table.column_names])


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A policy from the command line, and logs of the policy before it and of its own."""
    folder = tmp_path_factory.mktemp("everywhere")
    write_table(log_of(60, 3), folder / "log.csv")
    made = spibb("improve", "log.csv", "--algorithm", "dqn", *OPTIONS, "--out", "out", "--option",
                 "passes=5", "--n-wedge", "3", "--seed", "2", folder=folder)  # fmt: skip
    assert made.returncode == 0, made.stderr
    policy = load_vector_policy(folder / "out")
    write_table(log_of(40, 4, recorded=True), folder / "before.csv")
    write_table(log_of(40, 5, recorded=True, policy=policy), folder / "after.csv")
    return folder


@pytest.fixture(scope="module")
def own(home):
    """A longer log that the policy made."""
    table = pole.table(300, 7, policy=load_vector_policy(home / "out"))
    return library.read_vectors(table, columns={"state": list(pole.FEATURES)})


def run(home, *arguments, code=0):
    done = spibb(*arguments, folder=home)
    assert done.returncode == code, (done.stdout, done.stderr)
    if code == 2:
        assert done.stderr.count("\n") == 1
    return " ".join((done.stdout if code != 2 else done.stderr).split())


def test_one_call_in_python_is_the_command(home, tmp_path):
    done = library.run(
        home / "log.csv", tmp_path / "out", algorithm="dqn", columns=NAMES, passes=5, n_wedge=3,
        seed=2,
    )  # fmt: skip
    stored = load_vector_policy(home / "out")
    for mine, theirs in zip(done.policy.network.weights, stored.network.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert done.verdict.headline == stored.verdict["headline"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        path.name for path in (home / "out").iterdir()
    }
    assert done.folder == tmp_path / "out" and done.inspection is None
    assert "features" in repr(done)


def test_a_log_in_memory_and_settings_as_an_object(home):
    from spibb.deep import VectorDQN

    log = library.read_vectors(home / "log.csv", columns=NAMES)
    one = library.run(log, algorithm=VectorDQN(n_wedge=3, passes=5), seed=2)
    np.testing.assert_array_equal(
        one.policy.network.weights[0], load_vector_policy(home / "out").network.weights[0]
    )
    assert one.folder is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"bins": {"angle": 3}}, "bins cut the column 'angle'"),
        ({"v_max": 3.0}, "v_max applies to tables only"),
        ({"radios": 1}, "did you mean 'radius'"),
        ({"baseline": "recorded"}, "no column action_prob"),
        ({"baseline": np.ones((2, 2))}, "is not an .npz file"),
        ({"missing": "as-level"}, "which is for labels"),
    ],
)
def test_what_run_refuses(home, tmp_path, more, message):
    with pytest.raises(InputError, match=message):
        library.run(home / "log.csv", tmp_path / "out", algorithm="dqn", columns=NAMES, **more)
    assert not (tmp_path / "out").exists()


def test_labels_and_vectors_are_not_mistaken_for_each_other(home):
    log = library.Log.from_arrays([0, 1], [0, 1], [0, 1], terminated=[False, True])
    with pytest.raises(InputError, match="states are labels, and dqn learns from numbers"):
        library.run(log, algorithm="dqn")
    with pytest.raises(InputError, match=r"use spibb\.run"):
        library.improve(log, algorithm="dqn")
    with pytest.raises(InputError, match="checkpoint is for the algorithm dqn"):
        library.run(log, checkpoint="a.npz")
    with pytest.raises(InputError, match="log is a Log"):
        library.monitor(home / "out", log, lowest_return=0, highest_return=1)


def test_later_logs_need_no_options(home):
    """Columns and handling are stored with the policy."""
    for command in (
        ["evaluate", "before.csv", "--policy", "out"],
        ["monitor", "out", "after.csv", "--lowest-return", 0, "--highest-return", 20],
        ["compare", "out", "out", "--log", "before.csv"],
    ):
        assert run(home, *command) == run(home, *command, *OPTIONS)
    assert "Discount 0.95, as stored with out" in run(
        home, "evaluate", "before.csv", "--policy", "out/policy.npz"
    ).replace("out/policy.npz was", "out was")


def test_a_file_of_cases_is_decided_as_python_decides(home):
    policy = load_vector_policy(home / "out")
    cases = pd.read_csv(home / "before.csv")
    run(
        home,
        "act",
        "out",
        "--cases",
        "before.csv",
        "--out",
        "decisions.csv",
        "--seed",
        3,
        "--force",
    )
    found = pd.read_csv(home / "decisions.csv")
    decided = policy.act_many(cases, seed=3)
    assert found["decision"].tolist() == decided.labels
    rows = policy(cases[list(pole.FEATURES)].to_numpy())
    taken = rows[np.arange(len(rows)), decided.codes]
    np.testing.assert_allclose(found["decision_probability"], taken)
    share = np.mean(np.array(decided.labels) == "left")
    assert abs(share - rows[:, 0].mean()) < 4 * np.sqrt(0.25 / len(rows))
    likeliest = policy.act_many(cases, deterministic=True)
    np.testing.assert_array_equal(likeliest.codes, rows.argmax(axis=1))
    pieces = [policy.act_many(cases[i : i + 7], seed=3, first_row=i) for i in (0, 7, 14)]
    np.testing.assert_array_equal(np.concatenate([p.codes for p in pieces]), decided.codes[:21])


def test_cases_that_cannot_be_decided(home):
    cases = pd.read_csv(home / "before.csv")[["run", *pole.FEATURES]].astype(object)[:9]
    for value, message in (("", "'angle' is missing in row 4"), ("steep", "angle is 'steep'"),
                           ("inf", "angle is"), ("1,5", "angle is '1,5'")):  # fmt: skip
        cases.loc[4, "angle"] = value
        cases.to_csv(home / "bad.csv", index=False)
        said = run(home, "act", "out", "--cases", "bad.csv", "--out", "none.csv", code=2)
        assert message in said
        assert not (home / "none.csv").exists()
    cases.loc[4, "angle"] = None
    cases.to_csv(home / "bad.csv", index=False)
    said = run(home, "act", "out", "--cases", "bad.csv", "--out", "some.csv", "--unseen", "empty",
               "--force")  # fmt: skip
    assert "8 of 9 cases decided; 1 left empty" in said
    assert pd.read_csv(home / "some.csv")["decision"].isna().tolist() == [k == 4 for k in range(9)]
    cases[["run", "angle"]].to_csv(home / "bad.csv", index=False)
    said = run(home, "act", "out", "--cases", "bad.csv", "--out", "none.csv", code=2)
    assert "no column 'x_mm'" in said


def test_a_policy_is_like_itself_and_unlike_the_current_one(home):
    policy = load_vector_policy(home / "out")
    alike = run(home, "compare", "out", "out")
    assert "0 % of the decisions differ" in alike and "those that A was trained on" in alike
    replace(policy, n_wedge=float("inf")).save(home / "current.npz")
    found = compare_vectors(policy, load_vector_policy(home / "current.npz"))
    assert found.states == len(policy.points)
    old = policy.baseline(policy.points)
    new = policy(policy.points * policy.scaling.spread + policy.scaling.centre)
    variation = np.abs(new - old).sum(axis=1) / 2
    assert found.mean_variation == pytest.approx(variation.mean(), rel=1e-3)
    said = run(home, "compare", "out", "current.npz", "--log", "before.csv")
    assert "most typical case" in said and said.startswith("Not supported: keep B. ")
    turned = policy.reordered(np.array([2, 0, 3, 1]), np.array([1, 0]))
    same = compare_vectors(policy, turned)
    assert same.mean_variation == pytest.approx(0, abs=1e-6)


def test_a_log_that_b_did_not_make_speaks_for_nothing(home):
    policy = load_vector_policy(home / "out")
    opposite = pole.table(60, 9, recorded=True, policy=lambda x: pole.current(x)[:, ::-1])
    log = library.read_vectors(opposite, columns={"state": list(pole.FEATURES)})
    found = compare_vectors(policy, replace(policy, n_wedge=float("inf")), log)
    assert "B did not make this log" in found.verdict.sentence
    assert found.single is None


def test_compare_refuses_policies_of_different_problems(home):
    (home / "table.csv").write_text("state,action,probability\nmild,wait,1\n")
    assert "compare policies of one kind" in run(home, "compare", "out", "table.csv", code=2)
    policy = load_vector_policy(home / "out")
    replace(policy, features=("a", "b", "c", "d")).save(home / "other.npz")
    assert "different columns" in run(home, "compare", "out", "other.npz", code=2)


def test_monitor_knows_the_policys_own_log_from_others(home, own):
    limits = ["--lowest-return", 0, "--highest-return", 20]
    said = run(home, "monitor", "out", "after.csv", *limits)
    assert said.startswith(("Undecided after 40 episodes", "No worse"))
    assert "are not as frequent" not in said
    policy = load_vector_policy(home / "out")
    assert conformity_on(own, policy).p_value > 0.001
    theirs = library.read_vectors(pole.table(300, 7), columns={"state": list(pole.FEATURES)})
    with pytest.raises(InputError, match="which the policy never takes"):
        conformity_on(theirs, policy)


def test_monitor_sees_a_policy_that_got_worse(home, own):
    short = replace(own, reward=own.reward * 0.2)
    found = library.monitor(home / "out", short, lowest_return=0, highest_return=20)
    assert found.alarm
    stored = library.load_policy  # tables only: says where the other kind is read
    with pytest.raises(InputError, match="load_vector_policy"):
        stored(home / "out")


def test_other_ways_out_say_what_serves_instead(home):
    assert "policy.onnx serves elsewhere" in run(home, "export", "out", "--out", "a.spibb", code=2)
    run(home, "split", "before.csv", "--episode", "run", "--out", "parts", "--share", "0.3",
        "--force")  # fmt: skip
    assert "each made alone, then added up" in run(
        home, "evaluate", "parts/test.csv", "--policy", "out"
    )
