"""What is saved is read back: logs as they are, improvements as the command line writes them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spibb
from spibb import InputError, Log, PiBSpibb, Problem

FILES = {"policy.csv", "policy.parquet", "policy.json", "summary.json", "report.html",
         "manifest.sha256", "returns.parquet"}  # fmt: skip
WORDS = ["a", "b b", "=1", "007", "ü,\"'", "nan", "true", "-", "x\ny"]
LABELS = {
    "text": st.sampled_from(WORDS),
    "numbers": st.integers(-3, 2**40),
    "pairs": st.tuples(st.sampled_from(WORDS), st.integers(0, 3)),
    "flags": st.booleans(),
}


@st.composite
def logs(draw):
    """Episodes of all kinds: ended, cut with and without a successor, with probabilities or not."""
    states, actions = (
        LABELS[draw(st.sampled_from([*LABELS]))],
        LABELS[draw(st.sampled_from([*LABELS]))],
    )
    rows = []
    for episode in range(draw(st.integers(1, 5))):
        length, end = draw(st.integers(1, 4)), draw(st.sampled_from(["end", "cut", "known"]))
        visited = [draw(states) for _ in range(length + 1)]
        for step in range(length):
            last = step == length - 1
            following = None if last and end != "known" else visited[step + 1]
            rows.append((episode, step, visited[step], draw(actions), draw(st.floats(-5, 5)),
                         following, last and end == "end", last and end != "end"))  # fmt: skip
    columns = dict(zip(["episode_id", "step", "state", "action", "reward", "next_state",
                        "terminated", "truncated"], map(list, zip(*rows))))  # fmt: skip
    if draw(st.booleans()):
        columns["action_prob"] = [draw(st.floats(0.01, 1)) for _ in rows]
    return Log.from_arrays(**columns)


def assert_same_log(one, two):
    for name in ("state", "action", "reward", "next_state", "terminated", "truncated",
                 "episode_starts"):  # fmt: skip
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), name)
    assert (one.states, one.actions) == (two.states, two.actions)
    assert list(map(type, one.states.labels)) == list(map(type, two.states.labels))
    assert one.columns == two.columns
    assert (one.action_prob is None) == (two.action_prob is None)
    if one.action_prob is not None:
        np.testing.assert_array_equal(one.action_prob, two.action_prob)


@given(log=logs(), ending=st.sampled_from(["csv", "parquet"]))
@settings(max_examples=60, deadline=None)
def test_a_log_is_read_back_as_it_was(log, ending, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / f"log.{ending}"
    try:
        log.save(path)
    except InputError:
        assert ending == "csv"  # labels that it would change: see below
        path = path.with_suffix(".parquet")
        log.save(path)
    assert_same_log(spibb.read_log(path, columns=log.columns), log)


def test_a_log_of_two_columns_with_the_same_name_is_not_saved(tmp_path):
    log = Log.from_arrays(["a"], [0], [1], terminated=[True])
    twice = replace(log, states=spibb.Vocabulary(["a"], ("reward",)))
    with pytest.raises(InputError, match="two columns named 'reward'"):
        twice.save(tmp_path / "log.csv")
    with pytest.raises(InputError, match=r"must end in \.csv or \.parquet"):
        log.save(tmp_path / "log.txt")


@pytest.mark.parametrize("label", [True, "12", "", "nan"])
def test_labels_that_csv_would_change_need_parquet(label, tmp_path):
    log = Log.from_arrays([label], ["go"], [1], terminated=[True])
    with pytest.raises(
        InputError, match=r"labels of 'state' would change, .*: save the log as \.parquet"
    ):
        log.save(tmp_path / "log.csv")
    assert not (tmp_path / "log.csv").exists()
    log.save(tmp_path / "log.parquet")
    assert_same_log(spibb.read_log(tmp_path / "log.parquet"), log)


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    log = Log.from_arrays(
        state=rng.choice(["mild", "severe"], 200), action=rng.choice(["wait", "treat"], 200),
        reward=rng.random(200), terminated=[False, True] * 100,
    )  # fmt: skip
    return PiBSpibb(5).improve(Problem.from_log(log, discount=0.9))


def test_an_improvement_is_saved_as_the_command_line_does(result, tmp_path):
    assert result.save(tmp_path / "out", delta=0.1) == tmp_path / "out"
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    summary = json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))
    assert summary["certificate"]["delta"] == 0.1
    assert summary["findings"][0] == {"what": "Transitions", "value": "200", "remedy": ""}
    loaded = spibb.load_policy(tmp_path / "out")
    np.testing.assert_array_equal(loaded.policy.probs, result.policy.probs)
    with pytest.raises(InputError, match="is not empty"):
        result.save(tmp_path / "out")
    result.save(tmp_path / "out", force=True)


def test_the_folder_of_a_result_is_that_of_a_run(result, tmp_path):
    problem = result.problem
    result.save(tmp_path / "saved")
    spibb.run(problem.log, tmp_path / "run", algorithm=PiBSpibb(5), discount=0.9)
    saved, made = (
        json.loads((tmp_path / name / "summary.json").read_text("utf-8"))
        for name in ("saved", "run")
    )
    assert saved.pop("origin") != made.pop("origin")
    assert saved == made
    assert (tmp_path / "saved/policy.csv").read_text() == (tmp_path / "run/policy.csv").read_text()


def no_constant(name):
    raise AssertionError(f"{name} is not JSON")


def stored(folder):
    text = (folder / "summary.json").read_text("utf-8")
    summary = json.loads(text, parse_constant=no_constant)
    return summary, summary["origin"].pop("command"), summary["origin"].pop("made")


@pytest.mark.parametrize("v_max", [None, 2.0000001, np.float64(3)])
@pytest.mark.parametrize("discount", [0.9, 0.9999999, 0])
@pytest.mark.parametrize("counted", [False, True])
def test_the_stored_command_repeats_the_result(result, tmp_path, v_max, discount, counted):
    known = {"log": result.problem.log, "counts": result.problem.counts,
             "baseline": result.problem.baseline}  # fmt: skip
    make, data = (Problem.from_counts, "counts") if counted else (Problem.from_log, "log")
    problem = make(known[data], known["baseline"], discount=discount, v_max=v_max)
    PiBSpibb(5.000000001).improve(problem).save(tmp_path / "first")
    summary, command, _ = stored(tmp_path / "first")
    again = eval(command, {"PiBSpibb": PiBSpibb, "Problem": Problem, **known})
    again.save(tmp_path / "second")
    assert stored(tmp_path / "second")[:2] == (summary, command)


def test_what_is_not_finite_is_no_constant_of_json(tmp_path):
    """One episode has no standard error: a limit where probabilities vary is −∞."""
    log = Log.from_arrays(["a", "a"], ["x", "x"], [0, 1], terminated=[False, True],
                          action_prob=[0.5, 0.4])  # fmt: skip
    PiBSpibb(np.inf).improve(Problem.from_log(log, discount=0.9)).save(tmp_path / "out")
    summary = stored(tmp_path / "out")[0]
    assert [one["lower"] for one in summary["values"]["direct"]] == ["-inf"]
    assert summary["options"]["n_wedge"] == "inf"


def test_an_algorithm_that_knows_a_policy_is_saved(result, tmp_path):
    problem = result.problem
    spibb.HCPI(behaviour=problem.baseline).improve(problem).save(tmp_path / "out")
    assert stored(tmp_path / "out")[0]["options"]["behaviour"] == repr(problem.baseline)


def test_counts_alone_give_a_report_without_findings(result, tmp_path):
    problem = result.problem
    bare = Problem.from_counts(problem.counts, problem.baseline, discount=0.9)
    path = PiBSpibb(5).improve(bare).report(tmp_path / "r.html")
    assert path.read_text("utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(InputError, match=r"the name must end in \.html"):
        result.report(tmp_path / "r.pdf")


def test_whatever_is_saved_says_where(result, tmp_path):
    policy = result.policy
    loaded = spibb.load_policy(result.save(tmp_path / "result"))
    saved = {
        "log.csv": result.problem.log.save,
        "policy.parquet": policy.save,
        "policy.spibb": loaded.save,
        "report.html": result.report,
    }
    for name, save in saved.items():
        assert save(str(tmp_path / name)) == tmp_path / name
