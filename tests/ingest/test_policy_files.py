"""From improve to act: mapping, bins, baselines and policy files on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import spibb
from spibb import Problem, load_policy
from spibb.cli.app import app
from spibb.errors import InputError
from spibb.ingest import policy_files
from spibb.tables import write_table


def table(n=400):
    rng = np.random.default_rng(3)
    ages = rng.integers(0, 90, n)
    return pa.table({
        "patient": np.arange(n) // 4, "visit": np.arange(n) % 4,
        "ward": np.array(["A", "B"])[rng.integers(2, size=n)], "age": ages,
        "drug": np.where((ages > 40) ^ (rng.random(n) < 0.3), "B", "none").tolist(),
        "gain": rng.integers(4, size=n) / 4, "left": np.arange(n) % 4 == 3,
    })  # fmt: skip


OPTIONS = ["--state", "ward,age", "--action", "drug", "--reward", "gain", "--episode", "patient",
           "--step", "visit", "--terminated", "left", "--bin", "age:18,40,65"]  # fmt: skip

NAMES = {"state": ["ward", "age"], "action": "drug", "reward": "gain", "episode_id": "patient",
         "step": "visit", "terminated": "left"}  # fmt: skip
EDGES = {"age": [18, 40, 65]}


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, InputError):
        return 2, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("my 'logs'")
    write_table(table(), folder / "log of may.csv")
    code, output = run("improve", folder / "log of may.csv", "--out", folder / "out", *OPTIONS)
    assert code == 0, output
    return folder


def test_a_log_with_other_column_names_is_improved_and_described(trained):
    stored = json.loads((trained / "out" / "policy.json").read_text("utf-8"))
    assert stored["state"] == ["ward", "age"]
    assert stored["bins"] == {"age": [18.0, 40.0, 65.0]}
    log = next(s for s in stored["origin"]["sources"] if s["role"] == "log")
    assert len(log["sha256"]) == 64
    assert dict(map(tuple, stored["origin"]["versions"]))["spibb"] == spibb.__version__


def test_a_mapping_file_does_the_same_as_options(trained):
    mapping = trained / "map.toml"
    mapping.write_text(
        '[columns]\nstate = ["ward", "age"]\naction = "drug"\nreward = "gain"\n'
        'episode_id = "patient"\nstep = "visit"\nterminated = "left"\n'
        "[bins]\nage = [18, 40, 65]\n"
    )
    again = trained / "again"
    code, _ = run("improve", trained / "log of may.csv", "--out", again, "--mapping", mapping)
    assert code == 0
    one, two = (load_policy(folder) for folder in (trained / "out", again))
    np.testing.assert_array_equal(one.policy.probs, two.policy.probs)


@pytest.mark.parametrize("name", ["", "policy.csv", "policy.parquet"])
def test_raw_cases_are_encoded_with_the_saved_edges(trained, name):
    loaded = load_policy(trained / "out" / name)
    assert loaded.encode({"ward": "A", "age": 31}) == ("A", "[18, 40)")
    assert loaded.encode({"ward": "A", "age": "31"}) == ("A", "[18, 40)")
    row = loaded.row({"ward": "B", "age": 70.5})
    assert row == loaded.policy.row(("B", "[65, inf)"))
    assert loaded.best({"ward": "B", "age": 70.5}) == max(row, key=row.get)


def test_act_prints_what_the_policy_does(trained):
    code, output = run("act", trained / "out", "--state", "ward=A", "--state", "age=12")
    assert code == 0
    assert "A · (-inf, 18)" in output
    assert "none" in output


@pytest.mark.parametrize(("age", "bin_"), [("inf", "[65, inf)"), ("-inf", "(-inf, 18)")])
def test_infinite_numbers_are_in_the_outer_bins_as_in_logs(trained, age, bin_):
    code, output = run("act", trained / "out", "--state", "ward=A", "--state", f"age={age}")
    assert code == 0
    assert f"A · {bin_}" in output


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            ["ward=C", "age=12"],
            r"state \('C', '\(-inf, 18\)'\) is not in the policy, which knows 8",
        ),
        (["ward=A"], "'age' is missing: a state here is .* --state ward=A --state age=…"),
        (["ward=A,age=12"], "'age' is missing: a state here is .* --state ward=A --state age=12"),
        (["ward=A", "age=old"], "age is 'old', expected a number"),
        (["ward=A", "age=nan"], "'age' is missing: give a value, or follow the current policy"),
        (["ward=A", "age=40", "age=70"], "--state gives 'age' twice, as '40' and in 'age=70'"),
        (["A"], "--state 'A' is not understood: write column=value for each of ward, age"),
    ],
)
def test_a_case_that_cannot_be_decided_is_told(trained, case, message):
    states = [part for text in case for part in ("--state", text)]
    code, output = run("act", trained / "out", *states)
    assert code == 2
    import re

    assert re.search(message, output), output


def test_a_policy_changed_by_hand_is_refused(trained, tmp_path):
    for name in ("policy.csv", "policy.json"):
        (tmp_path / name).write_bytes((trained / "out" / name).read_bytes())
    with (tmp_path / "policy.csv").open("a") as file:
        file.write("\n")
    with pytest.raises(InputError, match=r"was changed after policy\.json was written"):
        load_policy(tmp_path / "policy.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not JSON"), ("{", "is not JSON"), ("[" * 100_000, "is not JSON"),
        ("[]", r"is \[\], expected a table"), ("{}", "has no 'format', expected 1"),
        ({"format": 99}, "format is 99, expected 1"),
        ({"format": "1"}, "format is '1', expected 1"),
        ({"state": []}, r"state is \[\], expected a list that is not empty"),
        ({"action": "x"}, "action is 'x', expected a list"),
        ({"state": [3]}, r"state\[0\] is 3, expected text"),
        ({"bins": {"age": []}}, r"bins.age is \[\], expected a list that is not empty"),
        ({"bins": {"age": [1, None]}}, r"bins.age\[1\] is None, expected a finite number"),
        ({"bins": [1]}, r"bins is \[1\], expected a table"),
        ({"files": {}}, r"files is {}, expected a table that is not empty"),
        ({"files": {"policy.parquet": "0"}}, "does not list 'policy.csv'"),
        ({"files": {"policy.csv": 3}}, r"files.policy.csv is 3, expected text"),
        ({"origin": 3}, "origin is 3, expected a table"),
    ],
)  # fmt: skip
def test_a_description_that_is_damaged_is_named(trained, tmp_path, content, message):
    for name in ("policy.csv", "policy.json"):
        (tmp_path / name).write_bytes((trained / "out" / name).read_bytes())
    if isinstance(content, dict):
        content = json.dumps(json.loads((tmp_path / "policy.json").read_text()) | content)
    (tmp_path / "policy.json").write_text(content)
    with pytest.raises(InputError, match=rf"policy.json'.*{message}.*write the policy again"):
        load_policy(tmp_path / "policy.csv")


def test_a_folder_that_lost_or_changed_a_file_is_refused(trained, tmp_path):
    """A policy without its bins would call every state unknown."""
    for path in (trained / "out").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    load_policy(tmp_path)
    (tmp_path / "policy.json").unlink()
    for path in (tmp_path, tmp_path / "policy.csv"):
        with pytest.raises(InputError, match=r"policy\.json' is missing, though manifest"):
            load_policy(path)
    (tmp_path / "policy.json").write_bytes((trained / "out" / "policy.json").read_bytes())
    with (tmp_path / "policy.parquet").open("ab") as file:
        file.write(b" ")
    with pytest.raises(InputError, match=r"policy\.parquet' was changed after it was written"):
        spibb.read_policy(tmp_path)


def test_a_policy_without_description_is_loaded_as_it_is(tmp_path):
    spibb.Policy([[0.25, 0.75]], ["a"], ["x", "y"]).save(tmp_path / "p.csv")
    loaded = load_policy(tmp_path / "p.csv")
    assert loaded.row("a") == {"x": 0.25, "y": 0.75}
    assert loaded.row({"state": "a"}) == loaded.row("a")
    code, output = run("act", tmp_path / "p.csv", "--state", "a")
    assert code == 0 and "0.7500" in output


def test_inspect_takes_the_same_options(trained):
    code, output = run("inspect", trained / "log of may.csv", *OPTIONS)
    assert code == 0
    assert "Transitions" in output and "400" in output


def test_evaluate_takes_the_same_options(trained):
    log, out = trained / "log of may.csv", trained / "out"
    spibb.estimate_baseline(spibb.count_log(log, columns=NAMES, bins=EDGES)).save(trained / "b.csv")
    code, output = run("evaluate", log, "--policy", out / "policy.csv",
                       "--behaviour", trained / "b.csv", *OPTIONS)  # fmt: skip
    assert code == 0, output


def test_an_estimated_baseline_is_said_in_the_certificate(trained):
    counts = spibb.count_log(trained / "log of may.csv", columns=NAMES, bins=EDGES)
    problem = Problem.from_counts(counts, smoothing=1)
    assert problem.baseline_estimated
    expected = spibb.estimate_baseline(counts, smoothing=1)
    np.testing.assert_array_equal(problem.baseline.probs, expected.probs)
    certificate = spibb.PiBSpibb(5).improve(problem).certificate()
    assert "estimated from that log" in certificate.assumptions[0]
    given = Problem.from_counts(counts, expected)
    assert not given.baseline_estimated
    assert "estimated" not in spibb.PiBSpibb(5).improve(given).certificate().assumptions[0]


def test_a_baseline_may_be_an_array_or_a_function():
    log = spibb.Log.from_arrays(["a", "b"], ["x", "y"], [0, 1])
    array = Problem.from_log(log, np.array([[0.5, 0.5], [0.2, 0.8]]))
    asked = Problem.from_log(log, lambda s: {"x": 0.5, "y": 0.5} if s == "a" else [0.2, 0.8])
    np.testing.assert_array_equal(array.baseline.probs, asked.baseline.probs)
    with pytest.raises(InputError, match="baseline plays 'z' in state 'a', which the log never"):
        Problem.from_log(log, lambda s: {"z": 1.0})


def test_smoothing_is_read_from_the_option(trained):
    log, out = trained / "log of may.csv", trained / "smooth"
    code, _ = run("improve", log, "--out", out, *OPTIONS, "--baseline", "estimate:2")
    assert code == 0
    code, output = run(
        "improve", log, "--out", out, "--force", *OPTIONS, "--baseline", "estimate:x"
    )
    assert (code, "write estimate:0.5" in output) == (2, True)


def test_too_many_states_say_what_to_bin(tmp_path):
    n = 12_000
    write_table(pa.table({
        "episode_id": np.arange(n), "step": np.zeros(n, int), "ward": np.arange(n) % 3,
        "age": np.arange(n), "action": np.arange(n) % 2, "reward": np.ones(n),
        "terminated": np.ones(n, bool)}), tmp_path / "log.parquet")  # fmt: skip
    code, output = run(
        "improve", tmp_path / "log.parquet", "--out", tmp_path / "o", "--state", "ward,age"
    )
    assert code == 2
    assert "12000 states in 12000 rows" in output
    assert "column 'age' has 12000 values" in output and "--bin age:10" in output


def test_large_logs_are_counted_and_small_ones_read(tmp_path, monkeypatch, trained):
    monkeypatch.setattr("spibb.running.problems.ROWS_IN_MEMORY", 10)
    code, _ = run("improve", trained / "log of may.csv", "--out", tmp_path / "o", *OPTIONS)
    assert code == 0
    counted, read = load_policy(tmp_path / "o"), load_policy(trained / "out")
    np.testing.assert_array_equal(counted.policy.probs, read.policy.probs)
    summary = json.loads((tmp_path / "o" / "summary.json").read_text("utf-8"))
    assert summary["off_policy"] is None


def test_a_log_is_read_as_the_policys_own_was(trained):
    left_open = ["--reward", "gain", "--episode", "patient", "--step", "visit",
                 "--terminated", "left"]  # fmt: skip
    log, out = trained / "log of may.csv", trained / "out"
    made = trained / "made.csv"
    spibb.estimate_baseline(spibb.count_log(log, columns=NAMES, bins=EDGES)).save(made)
    code, output = run("evaluate", log, "--policy", out, "--behaviour", made, *left_open)
    assert code == 0 and "wpdis" in output, output
    code, output = run("compare", out, out / "policy.csv", "--log", log, *left_open)
    assert code == 0 and output.startswith("Not judged. B did not make this log")
    assert "0 of 8 common states differ" in output


@pytest.mark.parametrize("name", ["probability", "Probability", "action", "state"])
def test_a_column_that_occurs_twice_is_refused(tmp_path, name):
    path = tmp_path / "p.csv"
    path.write_text(f"state,action,probability,{name}\na,x,1.0,0.5\n")
    with pytest.raises(InputError, match=f"has the column '{name.lower()}' twice"):
        spibb.read_policy(path)


def test_only_the_number_itself_names_a_state_that_is_a_number(tmp_path):
    spibb.Policy(np.eye(2)[[0, 1, 0]], [0, 1, 10], ["x", "y"]).save(tmp_path / "p.csv")
    loaded = load_policy(tmp_path / "p.csv")
    assert loaded.row({"state": "10"}) == loaded.row(np.int64(10)) == {"x": 1.0, "y": 0.0}
    assert loaded.row({"state": "1"}) == loaded.row({"state": 1}) == {"x": 0.0, "y": 1.0}
    for case in (True, np.bool_(False), "true", "\u0660", "1_0", "010", " 1"):
        with pytest.raises(InputError, match="is not in the policy"):
            loaded.row({"state": case})
    for label in (True, np.bool_(True)):
        with pytest.raises(InputError, match="is not in the policy"):
            loaded.row(label)


@pytest.mark.parametrize("index", [True, False])
def test_row_numbers_without_a_name_are_not_part_of_the_state(tmp_path, index):
    """pandas writes them unless it is told not to, and each row would be a state of its own."""
    rows = {"state": ["a", "b"], "action": ["x", "y"], "probability": [1.0, 1.0]}
    path = tmp_path / "policy.csv"
    pd.DataFrame(rows).to_csv(path, index=index)
    if index:
        with pytest.raises(spibb.InputError, match="looks like row numbers"):
            spibb.read_policy(path)
    else:
        assert spibb.read_policy(path).states.labels == ("a", "b")


def damaged_policies(folder):
    """A policy file, and all copies of it in which one byte of a column's name is no text."""
    spibb.Policy([[0.5, 0.5], [1, 0]], ["a", "b"], ["x", "y"]).save(folder / "policy.parquet")
    good = (folder / "policy.parquet").read_bytes()
    for name in (b"state", b"action", b"probability"):
        place = good.find(name)
        while place >= 0:
            yield good[: place + 1] + b"\xdf" + good[place + 2 :]
            place = good.find(name, place + 1)


def test_a_table_whose_names_are_no_text_is_refused_by_name(tmp_path):
    refused = 0
    for number, damaged in enumerate(damaged_policies(tmp_path)):
        path = tmp_path / f"bad{number}.parquet"
        path.write_bytes(damaged)
        try:
            load_policy(path)
        except InputError as error:
            refused += "cannot read" in str(error) and path.name in str(error)
    assert refused


def test_a_live_policy_keeps_the_last_good_one_of_a_bare_table(tmp_path):
    for damaged in damaged_policies(tmp_path):
        live = spibb.LivePolicy(tmp_path / "policy.parquet")
        before, good = live.current, (tmp_path / "policy.parquet").read_bytes()
        (tmp_path / "policy.parquet").write_bytes(damaged)
        assert live.refresh() or (live.current is before and live.problem)
        (tmp_path / "policy.parquet").write_bytes(good)


def test_commands_read_a_policy_once(trained, monkeypatch):
    read, read_cells = [], policy_files.read_cells
    monkeypatch.setattr(policy_files, "read_cells", lambda s: read.append(s.short) or read_cells(s))
    log, policy = trained / "log of may.csv", trained / "out" / "policy.csv"
    other = trained / "out" / "policy.parquet"
    for command, policies in (
        (("evaluate", log, "--policy", policy, "--behaviour", "estimate", *OPTIONS), [policy]),
        (("compare", policy, other, "--log", log, *OPTIONS), [policy, other]),
    ):
        read.clear()
        code, output = run(*command)
        assert code == 0, output
        assert sorted(read) == sorted(path.name for path in policies)
