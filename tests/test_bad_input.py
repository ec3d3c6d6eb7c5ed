"""Bad input: one line that names the thing and the remedy, exit code 2, and nothing written."""

from __future__ import annotations

import os
import sys

import numpy as np
import pyarrow as pa
import pytest

import spibb
from spibb.checks import number, positive
from spibb.cli.app import main
from spibb.errors import InputError
from spibb.files import hold
from spibb.report.folder import claim
from spibb.tables import write_table

LOG = {
    "episode_id": [0, 0, 1, 1],
    "step": [0, 1, 0, 1],
    "state": ["a", "b", "a", "b"],
    "action": ["go", "stay", "stay", "go"],
    "reward": [0.0, 1.0, 0.5, 0.0],
    "terminated": [False, True, False, True],
}
BASELINE = "state,action,probability\na,go,0.5\na,stay,0.5\nb,go,0.25\nb,stay,0.75\n"

CSV_REMEDY = "check that it is whole, text in UTF-8, with one line of names, separated by commas"


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Run `spibb improve` on bad input and return its message, after checking how it ended."""

    def call(*options, log=LOG, baseline=BASELINE, out="out", name="log.parquet"):
        if isinstance(log, dict):
            write_table(pa.table(log), tmp_path / name)
        elif log is not None:
            (tmp_path / name).write_bytes(log)
        if baseline is not None:
            (tmp_path / "baseline.csv").write_text(baseline)
        before = sorted(tmp_path.rglob("*"))
        monkeypatch.chdir(tmp_path)
        arguments = ["improve", name, "--baseline", "baseline.csv", "--out", out, *options]
        monkeypatch.setattr(sys, "argv", ["spibb", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        assert ended.value.code == 2
        assert "Traceback" not in captured.err + captured.out
        assert captured.out == ""
        assert captured.err.startswith("spibb: ")
        assert captured.err.count("\n") == 1, "the message has one line"
        assert sorted(tmp_path.rglob("*")) == before, "nothing is written"
        return captured.err.removeprefix("spibb: ").rstrip("\n")

    return call


def changed(**columns):
    """The good log with columns replaced, or left out where None."""
    return {k: v for k, v in (LOG | columns).items() if v is not None}


def test_the_good_input_is_good(tmp_path, monkeypatch, capsys):
    write_table(pa.table(LOG), tmp_path / "log.csv")
    (tmp_path / "baseline.csv").write_text(BASELINE)
    monkeypatch.chdir(tmp_path)
    command = "spibb improve log.csv --baseline baseline.csv --out out"
    monkeypatch.setattr(sys, "argv", command.split())
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, capsys.readouterr().err
    assert len(os.listdir("out")) == 6


# The log


@pytest.mark.parametrize("name", list(LOG))
@pytest.mark.parametrize("file", ["log.csv", "log.parquet"])
def test_a_missing_column_is_named_with_those_present(refused, name, file):
    message = refused(log=changed(**{name: None}), name=file)
    assert f"the log has no column {name!r}" in message
    assert "its columns are 'episode_id'" in message or name == "episode_id"
    assert message.endswith("rename one or map it")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("rewards", "reward"), ("actions", "action"), ("State", "state"), ("terminate", "terminated")],
)
def test_a_misspelt_column_is_suggested(refused, wrong, right):
    message = refused(log=changed(**{right: None, wrong: LOG[right]}))
    assert f"the log has no column {right!r} (did you mean {wrong!r}?)" in message


@pytest.mark.parametrize("file", ["log.csv", "log.parquet"])
def test_an_empty_log_is_refused(refused, file):
    message = refused(log={name: column[:0] for name, column in LOG.items()}, name=file)
    assert message == "the log is empty: it needs at least one transition; check what wrote it"


@pytest.mark.parametrize(("value", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
@pytest.mark.parametrize("file", ["log.csv", "log.parquet"])
def test_a_reward_that_is_not_finite_is_named_with_its_row(refused, value, shown, file):
    message = refused(log=changed(reward=[0.0, 1.0, value, 0.0]), name=file)
    assert message == (
        f"reward in row 2 is {shown}, expected a finite number: fix or drop the row (1 such rows)"
    )


@pytest.mark.parametrize("file", ["log.csv", "log.parquet"])
def test_a_reward_left_out_is_named_with_its_row(refused, file):
    message = refused(log=changed(reward=[0.0, 1.0, None, 0.0]), name=file)
    assert message == "column 'reward' is missing in row 2 (1 such rows): fill or drop them"


def test_a_reward_in_words_is_refused(refused):
    message = refused(log=changed(reward=["0", "1", "much", "0"]), name="log.csv")
    assert message == (
        "reward in row 2 is much, expected a number: fix or drop the row (1 such rows)"
    )


@pytest.mark.parametrize("name", ["state", "action", "episode_id", "step", "terminated"])
def test_an_entry_left_out_is_named_with_its_row(refused, name):
    message = refused(log=changed(**{name: [LOG[name][0], None, *LOG[name][2:]]}), name="log.csv")
    assert message == f"column {name!r} is missing in row 1 (1 such rows): fill or drop them"


@pytest.mark.parametrize("file", ["log.csv", "log.parquet"])
def test_a_repeated_step_is_named_with_its_row(refused, file):
    message = refused(log=changed(step=[0, 1, 3, 3]), name=file)
    assert message == (
        "row 3 repeats step 3 of its episode, expected each (episode_id, step) once "
        "(1 repeated): drop or renumber the row"
    )


def test_steps_in_words_are_refused(refused):
    message = refused(log=changed(step=["first", "second", "first", "second"]))
    assert message == (
        "step in row 0 is first, expected a finite number, or a time, all with a time zone or "
        "none: fix or drop the row (4 such rows)"
    )


def test_an_episode_that_goes_on_after_its_end_is_refused(refused):
    message = refused(log=changed(terminated=[True, True, False, True]))
    assert message == (
        "row 0 is terminated or truncated, but its episode goes on (1 such rows): "
        "give what follows its own episode_id"
    )


def test_a_flag_that_is_none_is_refused(refused):
    message = refused(log=changed(terminated=[0, 1, 0, 2]))
    assert message == (
        "terminated in row 3 is 2, expected true/false or 0/1: fix or drop the row (1 such rows)"
    )


@pytest.mark.parametrize("value", [-0.5, 0.0, 1.5, np.nan])
def test_an_impossible_propensity_is_named_with_its_row(refused, value):
    message = refused(log=changed(action_prob=[0.5, value, 0.5, 0.5]))
    assert message.startswith(f"action_prob in row 1 is {value}, expected a number in (0, 1]")


def test_states_that_are_fractions_are_refused(refused):
    message = refused(log=changed(state=[0.5, 1.5, 0.5, 1.5]))
    assert message == (
        "state in row 0 is 0.5, expected text, or a whole number of 64 bits that is exact: "
        "bin the column or turn it into text (4 such rows)"
    )


# The baseline


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("b,go,0.25", "b,go,-0.25", "row 'b', action 'go': probability is -0.25, expected a number "
                                    "in [0, 1]: fix that entry"),
        ("b,stay,0.75", "b,stay,1.75", "row 'b', action 'stay': probability is 1.75, expected a "
                                       "number in [0, 1]: fix that entry"),
        ("b,stay,0.75", "b,stay,nan", "row 'b', action 'stay': probability is nan, expected a "
                                      "number in [0, 1]: fix that entry"),
        ("b,stay,0.75", "b,stay,0.73", "row 'b' sums to 0.98, expected 1: renormalise it or check "
                                       "the file"),
        ("b,stay,0.75", "b,stay,1", "row 'b' sums to 1.25, expected 1: renormalise it or check "
                                    "the file"),
        ("b,stay,0.75", "b,go,0.75", "lists state 'b', action 'go' more than once: keep one"),
    ],
)  # fmt: skip
def test_a_row_that_is_no_distribution_is_named(refused, old, new, message):
    found = refused(baseline=BASELINE.replace(old, new))
    assert found == f"policy file 'baseline.csv' {message}"


def test_states_of_the_log_without_a_row_are_named(refused):
    message = refused(baseline="state,action,probability\na,go,1\n")
    assert message == (
        "policy file 'baseline.csv' has no row for state 'b' (1 of the log's 2 states): "
        "add the rows, or drop those states from the log"
    )


def test_no_more_than_five_states_without_a_row_are_named(refused):
    states = [f"s{i}" for i in range(8)]
    log = {
        "episode_id": list(range(8)), "step": [0] * 8, "state": states, "action": ["go"] * 8,
        "reward": [0.0] * 8, "terminated": [True] * 8,
    }  # fmt: skip
    message = refused(log=log, baseline="state,action,probability\ns0,go,1\n")
    assert "has no row for state 's1', 's2', 's3', 's4', 's5' and 2 more (7 of the" in message
    assert "s6" not in message


def test_a_column_that_the_baseline_lacks_is_named(refused):
    message = refused(baseline=BASELINE.replace("probability", "probabilities"))
    assert message == (
        "policy file 'baseline.csv' has no column 'probability' (did you mean 'probabilities'?): "
        "its columns are 'state', 'action', 'probabilities'; rename one"
    )


def test_a_baseline_in_words_is_refused(refused):
    message = refused(baseline=BASELINE.replace("0.25", "some"))
    assert message == (
        "policy file 'baseline.csv': column 'probability' holds something other than numbers"
    )


def test_an_empty_baseline_is_refused(refused):
    message = refused(baseline="state,action,probability\n")
    assert message == "policy file 'baseline.csv' is empty: it needs one row per pair played"


def test_a_baseline_with_labels_of_another_type_is_refused(refused):
    message = refused(log=changed(state=[0, 1, 0, 1]))
    assert message == (
        "policy file 'baseline.csv': column 'state' is not of the type that the log has (int): "
        "write the labels as the log does"
    )


def test_a_missing_baseline_is_named(refused):
    message = refused(baseline=None)
    assert message == "cannot read 'baseline.csv': there is no such file; check the name"


# The options


@pytest.mark.parametrize("value", ["1", "1.5", "-0.1", "nan", "inf"])
def test_a_discount_outside_its_range_is_refused(refused, value):
    message = refused("--discount", value)
    assert message == f"discount is {float(value)}, expected a number in [0, 1)"


@pytest.mark.parametrize("value", ["-1", "-inf", "nan"])
@pytest.mark.parametrize("algorithm", ["pi-b", "pi-leq-b", "model-free"])
def test_a_negative_n_wedge_is_refused(refused, value, algorithm):
    message = refused("--n-wedge", value, "--algorithm", algorithm)
    assert message == f"n_wedge is {value}, expected a number in [0, inf]"


@pytest.mark.parametrize("value", ["0", "1", "-0.5", "2", "nan"])
def test_a_delta_outside_its_range_is_refused(refused, value):
    message = refused("--delta", value)
    assert message == f"delta is {float(value)}, expected a number in (0, 1)"


@pytest.mark.parametrize("value", ["0", "-1", "inf", "nan"])
def test_a_v_max_outside_its_range_is_refused(refused, value):
    message = refused("--v-max", value)
    assert message == f"v_max is {float(value)}, expected a number in (0, inf)"


@pytest.mark.parametrize(
    ("wrong", "right"), [("pib", "pi-b"), ("Pi-B", "pi-b"), ("pi-leqb", "pi-leq-b"),
                         ("basicrl", "basic-rl"), ("modelfree", "model-free")]
)  # fmt: skip
def test_an_unknown_algorithm_is_named_with_a_suggestion(refused, wrong, right):
    message = refused("--algorithm", wrong)
    assert message.startswith(f"algorithm is {wrong!r} (did you mean {right!r}?): choose one of ")
    assert "pi-b, pi-leq-b, basic-rl" in message


def test_an_algorithm_unlike_any_other_gets_the_list_only(refused):
    message = refused("--algorithm", "zzz")
    assert message.startswith("algorithm is 'zzz': choose one of pi-b")


def test_an_unknown_option_is_named_with_a_suggestion(refused):
    message = refused("--option", "n_wege=3")
    assert message == (
        "pi-b has no option 'n_wege' (did you mean 'n_wedge'?): "
        "its options are n_wedge, unseen, method"
    )


def test_an_option_of_another_algorithm_is_refused(refused):
    message = refused("--algorithm", "basic-rl", "--n-wedge", "5")
    assert message == "basic-rl has no option 'n_wedge': its options are unseen, method"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("n_wedge", "--option 'n_wedge' has no '=': write name=value"),
        ("n_wedge=many", "n_wedge is 'many', expected a number, or 'auto'"),
        ("unseen=zeros", "unseen is 'zeros' (did you mean 'zero'?): choose one of zero, "
                         "pessimistic, optimistic"),
    ],
)  # fmt: skip
def test_an_option_of_a_wrong_value_is_refused(refused, option, message):
    assert refused("--option", option) == message


# Files


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_a_missing_file_is_named(refused, name):
    message = refused(log=None, name=name)
    assert message == f"cannot read {name!r}: there is no such file; check the name"


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_a_file_of_no_bytes_is_named(refused, name):
    message = refused(log=b"", name=name)
    assert message == f"cannot read {name!r}: the file is empty; check what wrote it"


@pytest.mark.parametrize("content", [b"PAR1", b"episode_id,step\n0,0\n" * 50, bytes(1000)])
def test_a_file_that_is_not_parquet_is_named(refused, content):
    message = refused(log=content)
    assert message.startswith("cannot read 'log.parquet' (")
    assert message.endswith("): check that it is a Parquet file, and whole")


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_a_truncated_parquet_file_is_named(refused, tmp_path, kept):
    write_table(pa.table(LOG), tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    message = refused(log=content[: int(kept * len(content))])
    assert message.startswith("cannot read 'log.parquet' (")
    assert message.endswith("): check that it is a Parquet file, and whole")


def test_a_damaged_parquet_file_is_named(refused, tmp_path):
    write_table(pa.table(LOG), tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    message = refused(log=content[:8] + bytes(len(content) // 2) + content[len(content) // 2 + 8 :])
    assert message.startswith("cannot read 'log.parquet' (")


@pytest.mark.parametrize(
    "content", [np.random.default_rng(0).bytes(3000), bytes(range(256)) * 8], ids=["noise", "bytes"]
)
def test_a_file_that_is_not_text_is_named(refused, content):
    message = refused(log=content, name="log.csv")
    assert message.startswith("cannot read 'log.csv' (")
    assert message.endswith("): " + CSV_REMEDY)


@pytest.mark.parametrize("bad", [b"0,1,b", b"0,1,b,go,1,1,1,1", b'0,1,"b,go,1,1'])
def test_a_csv_file_whose_lines_differ_in_length_is_named(refused, bad):
    lines = [b"episode_id,step,state,action,reward,terminated", b"0,0,a,go,0,0", bad]
    message = refused(log=b"\n".join(lines), name="log.csv")
    assert message == (
        f"cannot read 'log.csv' (its lines have different numbers of cells): {CSV_REMEDY}"
    )


def test_a_short_line_late_in_a_csv_file_is_named_with_its_number(refused):
    lines = [b"episode_id,step,state,action,reward,terminated", *[b"0,0,a,go,0,0"] * 30_000]
    message = refused(log=b"\n".join([*lines, b"0,1,b", b"0,2,a,go,0,0", b""]), name="log.csv")
    assert message.startswith("cannot read 'log.csv' (")
    assert "Line: 30002): check that it is whole" in message


def test_a_csv_file_without_a_line_of_names_is_told_from_its_columns(refused):
    message = refused(log=b"0,0,a,go,0,0\n0,1,a,go,0,1\n", name="log.csv")
    assert message.startswith("the log has no column 'episode_id'")


def test_a_file_of_another_kind_is_refused(refused):
    message = refused(log=b"{}", name="log.json")
    assert (
        message == "cannot read 'log.json': the name must end in .csv, .parquet, .jsonl or .ndjson"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(tmp_path):
    write_table(pa.table(LOG), tmp_path / "log.parquet")
    (tmp_path / "log.parquet").chmod(0)
    with pytest.raises(InputError, match=r"log.parquet': permission denied; check its permissions"):
        spibb.read_log(tmp_path / "log.parquet")


# The output folder


def test_a_folder_that_is_not_empty_needs_force(refused, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.txt").write_text("precious")
    message = refused()
    assert message == "output folder 'out' is not empty: name another, or overwrite with --force"
    assert (tmp_path / "out" / "old.txt").read_text() == "precious"


def test_a_file_is_no_folder(refused, tmp_path):
    (tmp_path / "out").write_text("precious")
    assert refused() == "output 'out': 'out' is a file, name a folder"
    assert refused("--force") == "output 'out': 'out' is a file, name a folder"
    assert (tmp_path / "out").read_text() == "precious"


def test_a_folder_below_a_file_cannot_be_written(refused, tmp_path):
    (tmp_path / "file").write_text("precious")
    message = refused(out="file/deep/out")
    assert message == f"output 'file/deep/out': {str(tmp_path / 'file')!r} is a file, name a folder"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_named(refused, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    message = refused(out="locked/out")
    assert message.startswith("output folder 'locked/out' cannot be written: check the permissions")


def test_a_file_that_cannot_be_replaced_is_told(tmp_path):
    write_table(pa.table(LOG), tmp_path / "log.parquet")
    (tmp_path / "baseline.csv").write_text(BASELINE)
    log = spibb.read_log(tmp_path / "log.parquet")
    result = spibb.improve(log, spibb.read_policy(tmp_path / "baseline.csv", log))
    from spibb.report.assessment import assess
    from spibb.report.folder import write_result
    from spibb.report.origin import Origin

    (tmp_path / "out" / "policy.csv").mkdir(parents=True)
    assessment = assess(result, Origin.of([], 0, {}))
    message = r"cannot write '.*out': policy.csv is a folder; check"
    with pytest.raises(InputError, match=message), hold(tmp_path / "out") as held:
        held.publish(lambda aside: write_result(assessment, aside))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["policy.csv"]


def test_the_folder_is_checked_before_any_work(refused, tmp_path):
    (tmp_path / "out").write_text("")
    assert "is a file" in refused(log=None, baseline=None)


def test_an_empty_or_absent_folder_may_be_written(tmp_path):
    for folder in (tmp_path, tmp_path / "a" / "b"):
        with claim(folder, force=False):
            assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []


# The demonstration


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "file"], "output 'file': 'file' is a file, name a folder"),
        (["--episodes", "0"], "n_episodes is 0, expected a whole number of at least 1"),
        (["--n-wedge", "-1"], "n_wedge is -1.0, expected a number in [0, inf]"),
    ],
)
def test_the_demonstration_refuses_bad_options(tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("precious")
    monkeypatch.setattr(sys, "argv", ["spibb", "demo", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"spibb: {message}\n"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["improve"],
        ["improve", "log.csv", "--baseline", "b.csv"],
        ["improve", "log.csv", "--baseline", "b.csv", "--out", "o", "--discount", "high"],
        ["improve", "log.csv", "--baseline", "b.csv", "--out", "o", "--seed", "-1"],
        ["improv"],
        ["demo", "--seed", "-1"],
    ],
)
def test_a_wrong_command_line_ends_with_two_and_without_traceback(
    tmp_path, monkeypatch, capsys, arguments
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["spibb", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("spibb: ") and error.count("\n") == 1
    assert "Traceback" not in error
    assert os.listdir(tmp_path) == []


# Python


def test_the_error_is_a_value_error():
    assert issubclass(InputError, ValueError)
    assert spibb.InputError is InputError


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: spibb.PiBSpibb(n_wedge=-1), "n_wedge is -1, expected a number in"),
        (lambda: spibb.PiBSpibb(n_wedge="x"), "n_wedge is 'x', expected a number"),
        (lambda: number("rate", None, 0, 1), "rate is None, expected a number"),
        (lambda: positive("runs", 0), "runs is 0, expected a whole number of at least 1"),
        (lambda: positive("runs", 1.5), "runs is 1.5"),
        (lambda: positive("runs", True), "runs is True"),
        (lambda: positive("runs", None), "runs is None, expected a whole number of at least 1"),
        (lambda: positive("runs", np.nan), "runs is nan, expected a whole number"),
        (lambda: positive("runs", np.inf), "runs is inf, expected a whole number"),
        (lambda: positive("runs", [1]), r"runs is \[1\], expected a whole number"),
        (lambda: number("rate", "0.5", 0, 1), "rate is '0.5', expected a number in"),
    ],
)
def test_python_gives_the_same_messages(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("discount", [1, -0.1, np.nan, "x"])
def test_a_problem_refuses_a_bad_discount(discount):
    log = spibb.Log.from_arrays(["a"], ["go"], [1], terminated=[True])
    with pytest.raises(InputError, match="discount is "):
        spibb.Problem.from_log(log, spibb.Policy.uniform(["a"], ["go"]), discount=discount)


def test_a_problem_names_up_to_five_states_that_the_baseline_lacks():
    log = spibb.Log.from_arrays(list("abcdefg"), ["go"] * 7, [1] * 7)
    with pytest.raises(InputError, match="baseline has no row for state 'b', 'c', 'd', 'e', 'f' a"):
        spibb.Problem.from_log(log, spibb.Policy.uniform(["a"], ["go"]))
