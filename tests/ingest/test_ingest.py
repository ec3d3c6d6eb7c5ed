"""Files to logs and policies."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from spibb import Counts, Log, count_log, read_log, read_policy
from spibb.errors import InputError
from spibb.ingest import read_table
from spibb.tables import log_table, write_table

HEADER = "episode_id,step,state,action,reward,next_state,terminated,truncated"
ROWS = ["7,0,a,go,0,b,false,false", "7,1,b,stay,0.5,,true,false", "9,0,c,go,-1.5,d,false,true"]


def csv(path, *rows, header=HEADER):
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def labels(log, name):
    vocabulary = log.actions if name == "action" else log.states
    return [None if code < 0 else vocabulary[code] for code in getattr(log, name).tolist()]


def same(one, other):
    for name in ("state", "action", "next_state"):
        assert labels(one, name) == labels(other, name)
    for name in ("reward", "terminated", "truncated", "episode_starts"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_csv_log_is_read_by_its_labels(tmp_path):
    log = read_log(csv(tmp_path / "log.csv", *ROWS))
    assert log.states.labels == ("a", "b", "c", "d")
    assert labels(log, "state") == ["a", "b", "c"]
    assert labels(log, "action") == ["go", "stay", "go"]
    assert labels(log, "next_state") == ["b", None, "d"]
    assert log.reward.tolist() == [0, 0.5, -1.5]
    assert log.terminated.tolist() == [False, True, False]
    assert log.truncated.tolist() == [False, False, True]


def test_a_name_may_be_text_and_its_ending_in_capitals(tmp_path):
    path = csv(tmp_path / "LOG.CSV", *ROWS)
    same(read_log(str(path)), read_log(path))


@pytest.mark.parametrize(
    ("true", "false"), [("true", "false"), ("True", "False"), ("1", "0"), ("1.0", "0.0")]
)
def test_flags_in_a_csv_file_are_words_or_digits(tmp_path, true, false):
    rows = [row.replace("true", true).replace("false", false) for row in ROWS]
    same(read_log(csv(tmp_path / "x.csv", *rows)), read_log(csv(tmp_path / "log.csv", *ROWS)))


def random_log(kind):
    rng = np.random.default_rng(11)
    states = rng.integers(6, size=200)
    names = {
        "text": [f"ward, {s}" for s in states],
        "ints": states,
        "tuples": [(f"w{s // 3}", int(s) % 3) for s in states],
        "tuples of ints": [(int(s) // 3, int(s) % 3) for s in states],
    }[kind]
    ends = rng.random(200)
    return Log.from_arrays(
        names,
        np.array(["left", "right", 'a "b"'])[rng.integers(3, size=200)],
        rng.normal(size=200),
        terminated=ends < 0.2,
        truncated=(ends > 0.1) & (ends < 0.3),
        action_prob=rng.uniform(0.1, 1, size=200),
    )


@pytest.mark.parametrize("kind", ["text", "ints", "tuples", "tuples of ints"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_written_log_is_read_back_exactly(tmp_path, kind, ending):
    log = random_log(kind)
    write_table(log_table(log), tmp_path / f"log.{ending}")
    columns = {"state": list(log.states.names)}
    back = read_log(tmp_path / f"log.{ending}", columns=columns)
    same(back, log)
    np.testing.assert_array_equal(back.action_prob, log.action_prob)
    assert back.states == log.states
    ours, theirs = Counts.from_log(back), Counts.from_log(log)
    np.testing.assert_array_equal(ours.reward_sum, theirs.reward_sum)
    np.testing.assert_array_equal(ours.n, theirs.n)


def test_successors_of_truncated_rows_survive_a_file_when_the_state_spans_columns(tmp_path):
    log = Log.from_arrays(
        [("a", 1), ("b", 2)], ["x", "x"], [0, 0], [("b", 2), ("c", 3)], None, [True, True]
    )
    write_table(log_table(log), tmp_path / "log.csv")
    back = read_log(tmp_path / "log.csv", columns={"state": ["state_0", "state_1"]})
    assert labels(back, "next_state") == [("b", 2), ("c", 3)]


@pytest.mark.parametrize(
    "pair",
    [
        ("yes", "no"),
        ("t", "f"),
        ("true", "false"),
        ("12:00", "13:30"),
        ("2020-01-01", "2020-02-01"),
        ("2020-01-01 10:00", "x"),
        ("007", "010"),
        ("0x10", "0x11"),
        ("NULL", "None"),
        ("1e5", "1E5"),
        ("1e3", "1000"),
        ("1.", "1"),
        ("1.0", "1"),
        ("1.0", "1.00"),
        ("0.0", "-0.0"),
        ("0.5", ".5"),
        ("9007199254740992.0", "9007199254740993.0"),
    ],
)
def test_labels_stay_as_they_are_written(tmp_path, pair):
    first, second = pair
    rows = [f"0,0,{first},{first},0,{second},0,0", f"0,1,{second},{second},0,,1,0"]
    path = csv(tmp_path / "log.csv", *rows)
    for read in (read_log(path), count_log(path)):
        assert set(read.states.labels) == set(read.actions.labels) == {first, second}


def test_whole_numbers_that_missing_cells_made_floats_are_whole_numbers(tmp_path):
    """As pandas writes successors, of which the last is missing, and actions that once had gaps."""
    path = csv(tmp_path / "log.csv", "0,0,1,3.0,0,2.0,0,0", "0,1,2,-4.0,0,,1,0")
    for read in (read_log(path), count_log(path)):
        assert read.states.labels == (1, 2)
        assert read.actions.labels == (-4, 3)
    assert labels(read_log(path), "next_state") == [2, None]


@pytest.mark.parametrize("column", ["step", "reward"])
def test_digits_with_underscores_are_no_number(tmp_path, column):
    row = {"step": "0", "reward": "0", column: "1_000"}
    path = csv(tmp_path / "log.csv", f"0,{row['step']},a,go,{row['reward']},,1,0")
    for read in (read_log, count_log):
        with pytest.raises(InputError, match=f"{column} in row 0 is '1_000', expected"):
            read(path)
    arrays = {"reward": [0.0], "step": [0], column: ["1_000"]}
    with pytest.raises(InputError, match=f"{column} holds something that is n"):
        Log.from_arrays(["a"], ["go"], terminated=[True], episode_id=[0], **arrays)


def test_states_that_read_as_text_in_one_column_and_as_numbers_in_the_other_are_text(tmp_path):
    log = read_log(csv(tmp_path / "log.csv", "0,0,x,go,0,1,0,0", "0,1,1,go,0,2,0,1"))
    assert log.states.labels == ("1", "2", "x")
    assert labels(log, "next_state") == ["1", "2"]


def test_labels_given_as_text_are_found_in_a_column_of_numbers(tmp_path):
    path = csv(tmp_path / "log.csv", "0,0,1,3,0,2,0,0", "0,1,2,4,0,,1,0")
    log = read_log(path, state_labels=["2", "1", "x"], action_labels=["4", "3"])
    assert labels(log, "state") == ["1", "2"]
    assert labels(log, "action") == ["3", "4"]


@pytest.mark.parametrize("late", ["0,99999,x,go,0.5,x,0,1", "0,99999,1,go,0.5,2,0,1"])
def test_the_last_rows_of_a_long_file_may_show_another_type_than_the_first(tmp_path, late):
    rows = [f"0,{step},{step % 7},go,0,{step % 7},0,0" for step in range(30_000)]
    log = read_log(csv(tmp_path / "log.csv", *rows, late))
    assert len(log) == 30_001
    assert log.reward[-1] == 0.5
    assert labels(log, "state")[-1] == type(log.states[0])(late.split(",")[2])


def test_quotes_may_occur_only_late_in_a_long_file(tmp_path):
    rows = [f"0,{step},a,go,0,a,0,0" for step in range(30_000)]
    log = read_log(csv(tmp_path / "log.csv", *rows, '0,99999,"b, ""c""",go,0,,1,0'))
    assert log.states.labels == ("a", 'b, "c"')


def test_a_line_that_begins_with_a_hash_is_no_comment(tmp_path):
    rows = ["#1,0,#a,go,0,,1,0", "2,0,b,go,0,,1,0", "#3,0,c,go,0,,1,0"]
    assert read_log(csv(tmp_path / "log.csv", *rows)).states.labels == ("#a", "b", "c")
    path = csv(tmp_path / "b.csv", "x,go,1", "#y,go,1", "z,go,1", header="state,action,probability")
    assert read_policy(path).states.labels == ("#y", "x", "z")


def test_names_of_many_digits_are_not_rounded(tmp_path):
    rows = [f"{i},0,1234567890123456789{i},go,1,,1,0" for i in range(3)]
    log = read_log(csv(tmp_path / "log.csv", *rows))
    assert log.states.labels == tuple(f"1234567890123456789{i}" for i in range(3))


@pytest.mark.parametrize("name", ["log[1].csv", "log*.csv", "lo?.csv", "[x].csv", "a'b.csv"])
def test_a_file_name_is_no_pattern(tmp_path, name):
    for other in ("log1.csv", "log2.csv", "x.csv", "loX.csv"):
        csv(tmp_path / other, "1,1,wrong,wrong,0,,1,0")
    assert read_log(csv(tmp_path / name, *ROWS)).states.labels == ("a", "b", "c", "d")


def test_a_folder_name_is_no_pattern(tmp_path):
    folder = tmp_path / "run [3]*"
    folder.mkdir()
    assert len(read_log(csv(folder / "log.csv", *ROWS))) == 3


def test_columns_are_mapped_and_may_carry_others(tmp_path):
    header = "trace,t,ward,level,drug,pay,done,comment"
    path = csv(tmp_path / "log.csv", "1,0,a,1,x,2,0,hm", "1,1,a,2,y,3,1,", header=header)
    log = read_log(
        path,
        columns={
            "episode_id": "trace", "step": "t", "state": ["ward", "level"], "action": "drug",
            "reward": "pay",
        },
    )  # fmt: skip
    assert labels(log, "state") == [("a", 1), ("a", 2)]
    assert log.states.names == ("ward", "level")
    assert log.terminated.tolist() == [False, True]


def test_times_are_steps(tmp_path):
    rows = ["7,2020-01-10 10:00,b,go,0,,1,0", "7,2020-01-09 23:00,a,go,0,b,0,0"]
    assert labels(read_log(csv(tmp_path / "log.csv", *rows)), "state") == ["a", "b"]


def test_semicolons_and_windows_line_ends_are_understood(tmp_path):
    text = "\r\n".join([HEADER, *ROWS]).replace(",", ";")
    (tmp_path / "log.csv").write_bytes(text.encode())
    assert read_log(tmp_path / "log.csv").states.labels == ("a", "b", "c", "d")


def test_a_log_whose_successors_are_all_empty_takes_them_from_the_next_row(tmp_path):
    rows = ["7,0,a,go,0,,0,0", "7,1,b,go,0,,1,0"]
    assert labels(read_log(csv(tmp_path / "log.csv", *rows)), "next_state") == ["b", None]


def test_a_parquet_log_keeps_its_types(tmp_path):
    table = pa.table(
        {
            "episode_id": ["e", "e"],
            "step": pa.array([0, 1], pa.int8()),
            "state": pa.array(["1", "2"]).dictionary_encode(),
            "action": pa.array([True, False]),
            "reward": pa.array([1, 2], pa.float32()),
            "terminated": pa.array([0, 1], pa.uint8()),
        }
    )
    write_table(table, tmp_path / "log.parquet")
    log = read_log(tmp_path / "log.parquet")
    assert log.states.labels == ("1", "2")
    assert labels(log, "action") == [True, False]
    assert log.reward.tolist() == [1, 2]


def test_the_baseline_of_a_log_in_text_may_look_like_numbers(tmp_path):
    log = Log.from_arrays(["1", "2"], ["0", "1"], [0, 0])
    path = csv(tmp_path / "b.csv", "1,0,1", "2,1,1", header="state,action,probability")
    assert read_policy(path, log).row("2") == {"0": 0.0, "1": 1.0}


def test_states_of_the_log_without_a_row_are_named_up_to_five(tmp_path):
    log = Log.from_arrays(list("abcdefg"), ["x"] * 7, [0] * 7)
    path = csv(tmp_path / "b.csv", "a,x,1", header="state,action,probability")
    message = (
        r"policy file 'b.csv' has no row for state 'b', 'c', 'd', 'e', 'f' and 1 more "
        r"\(6 of the log's 7 states\): add the rows"
    )
    with pytest.raises(InputError, match=message):
        read_policy(path, log)


@pytest.mark.parametrize("name", ["log.txt", "log", "log.parquet.gz"])
def test_other_kinds_of_files_are_not_read(tmp_path, name):
    (tmp_path / name).write_text("x")
    with pytest.raises(InputError, match=r"the name must end in \.csv, \.tsv, "):
        read_table(tmp_path / name)


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "log.csv").mkdir()
    with pytest.raises(InputError, match="there is no such file"):
        read_table(tmp_path / "log.csv")
