"""Log: ends, successors, order of rows, labels, and any dataframe."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spibb
from spibb import Counts, Log, Problem, Vocabulary
from spibb.errors import InputError
from spibb.verdict.evidence import gather

FRAME = {
    "episode_id": [7, 7, 7, 9, 9],
    "step": [0, 1, 2, 0, 1],
    "state": ["a", "b", "a", "c", "b"],
    "action": ["go", "stay", "go", "go", "go"],
    "reward": [0.0, 0.5, 1.0, -1.0, 0.25],
    "terminated": [False, False, True, False, False],
    "truncated": [False, False, False, False, True],
    "next_state": ["b", "a", None, "b", "d"],
}


def frame(**changes):
    """The example with columns replaced, or left out where None."""
    return pd.DataFrame({k: v for k, v in (FRAME | changes).items() if v is not None})


def labels(log, name):
    """A column of codes as labels, None where there is none."""
    vocabulary = log.actions if name == "action" else log.states
    return [None if code < 0 else vocabulary[code] for code in getattr(log, name).tolist()]


def same(one, other):
    """Assert that two logs agree in every column."""
    assert one.states == other.states
    assert one.actions == other.actions
    for name in ("state", "action", "reward", "next_state", "terminated", "truncated",
                 "episode_starts"):  # fmt: skip
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    if one.action_prob is None or other.action_prob is None:
        assert one.action_prob is other.action_prob
    else:
        np.testing.assert_array_equal(one.action_prob, other.action_prob)


# Ends


def test_a_terminated_row_has_no_successor_and_is_counted():
    log = Log.from_arrays(["a", "b"], [0, 0], [0, 1], ["b", "z"], [False, True])
    assert labels(log, "next_state") == ["b", None]
    assert log.known.tolist() == [True, True]
    assert log.terminated.tolist() == [False, True]


def test_a_truncated_row_keeps_its_successor():
    log = Log.from_arrays(["a", "b"], [0, 0], [0, 1], ["b", "z"], None, [False, True])
    assert labels(log, "next_state") == ["b", "z"]
    assert log.truncated.tolist() == [False, True]
    assert Counts.from_log(log).terminations.sum() == 0


def test_terminated_wins_over_truncated():
    log = Log.from_arrays(["a"], [0], [1], ["z"], [True], [True])
    assert log.terminated.tolist() == [True]
    assert log.truncated.tolist() == [False]
    assert labels(log, "next_state") == [None]
    assert Counts.from_log(log).terminations.sum() == 1


def test_what_lies_beyond_the_end_is_no_state():
    log = Log.from_arrays(["a", "b"], [0, 0], [0, 1], ["b", "beyond"], [False, True])
    assert log.states.labels == ("a", "b")
    given = Log.from_arrays(
        ["a", "b"], [0, 0], [0, 1], ["b", "beyond"], [False, True], state_labels=["b", "a"]
    )
    assert labels(given, "next_state") == ["b", None]


def test_a_state_may_occur_only_as_a_successor():
    log = Log.from_arrays(["a"], [0], [1], ["z"], None, [True])
    assert log.states.labels == ("a", "z")


def test_the_successor_is_the_next_row_of_the_same_episode_where_it_is_absent():
    log = Log.from_arrays(
        ["a", "b", "c", "d"], [0] * 4, [0] * 4, terminated=[0, 1, 0, 0], episode_id=[0, 0, 1, 1]
    )
    assert labels(log, "next_state") == ["b", None, "d", None]
    assert log.known.tolist() == [True, True, True, False]


def test_the_successor_never_comes_from_another_episode():
    log = Log.from_arrays(
        ["a", "b", "c"], [0] * 3, [0] * 3, terminated=[0] * 3, episode_id=[0, 1, 2]
    )
    assert labels(log, "next_state") == [None] * 3
    assert not log.known.any()


def test_a_gap_in_the_successors_is_filled_from_the_next_row_but_not_at_the_end():
    log = Log.from_arrays(
        list("abcd"), [0] * 4, [0] * 4, [None, "x", None, None], [0] * 4, episode_id=[0, 0, 0, 1]
    )
    assert labels(log, "next_state") == ["b", "x", None, None]


def test_a_given_successor_is_believed_even_if_the_next_row_differs():
    log = Log.from_arrays(["a", "b"], [0, 0], [0, 0], ["x", "y"], [False, False])
    assert labels(log, "next_state") == ["x", "y"]


def test_a_last_row_of_unknown_successor_is_truncated_and_not_counted():
    log = Log.from_arrays(["a", "b"], [0, 0], [0, 9], terminated=[0, 0])
    assert log.truncated.tolist() == [False, True]
    assert log.known.tolist() == [True, False]
    counts = Counts.from_log(log)
    assert counts.pairs.tolist() == [[1], [0]]
    assert counts.starts.tolist() == [1, 0]


@pytest.mark.parametrize("truncated", [None, [0, 1, 0, 0]])
@pytest.mark.parametrize("following", [None, ["b", "y", "d", "z"]])
def test_without_terminated_arrays_and_frames_assume_the_same_ends(truncated, following):
    columns = {
        "episode_id": [0, 0, 1, 1], "step": [0, 1, 0, 1], "state": list("abcd"),
        "action": [0, 1, 0, 1], "reward": [0, 1, 2, 3], "next_state": following,
        "truncated": truncated,
    }  # fmt: skip
    given = {name: column for name, column in columns.items() if column is not None}
    arrays, frame = Log.from_arrays(**given), Log.from_frame(pd.DataFrame(given))
    same(arrays, frame)
    cut = [False] * 4 if truncated is None else [False, True, False, False]
    assert arrays.truncated.tolist() == cut
    assert arrays.terminated.tolist() == [False, not cut[1], False, True]
    assert arrays.ends_assumed
    assert frame.ends_assumed


def test_ends_that_were_assumed_are_named_wherever_the_log_goes(tmp_path):
    assumed = Log.from_arrays(list("abab"), [0, 1] * 2, [0, 1, 0, 0], episode_id=[0, 0, 1, 1])
    told = Log.from_arrays(list("abab"), [0, 1] * 2, [0, 1, 0, 0], terminated=[0, 1] * 2)
    assumed.save(tmp_path / "log.csv")
    read = spibb.read_log(tmp_path / "log.csv")
    same(assumed, told)
    same(assumed, read)
    for log, said in (
        (told, False),
        (assumed, True),
        (read, True),
        (assumed.episodes(np.array([1])), True),
    ):
        assert log.ends_assumed is said
        assert ("Ends" in {found.what for found in spibb.inspect_log(log).facts}) is said
        policy = spibb.Policy.uniform(log.states, log.actions)
        assert gather(Problem.from_log(log, policy), policy).ends_assumed is said


def test_a_record_that_just_stops_is_truncated():
    log = Log.from_arrays(["a", "b"], [0, 0], [0, 0], ["b", "c"], [False, False])
    assert log.truncated.tolist() == [False, True]
    assert labels(log, "next_state") == ["b", "c"]
    assert log.known.all()


def test_episodes_end_after_terminated_and_truncated_rows_where_no_episodes_are_given():
    log = Log.from_arrays(
        list("abcdef"),
        [0] * 6,
        [0] * 6,
        terminated=[0, 1, 0, 0, 0, 0],
        truncated=[0, 0, 0, 1, 0, 0],
    )
    assert log.episode_starts.tolist() == [0, 2, 4, 6]
    assert labels(log, "next_state") == ["b", None, "d", None, "f", None]
    assert log.n_episodes == 3
    assert len(log) == 6


def test_an_episode_that_goes_on_after_its_end_is_refused():
    with pytest.raises(InputError, match="row 2 is terminated or truncated, but its episode goes"):
        Log.from_arrays(
            list("abc"),
            [0] * 3,
            [0] * 3,
            terminated=[0, 0, 1],
            episode_id=[0, 0, 0],
            step=[0, 2, 1],
        )


# Order of rows


@settings(deadline=None, max_examples=50)
@given(st.permutations(range(5)))
def test_rows_come_in_any_order(order):
    same(Log.from_frame(frame().iloc[list(order)]), Log.from_frame(frame()))


def test_rows_are_sorted_by_step_within_their_episode():
    log = Log.from_arrays(
        list("abcd"), [0] * 4, [3, 1, 2, 0], episode_id=["y", "x", "y", "x"], step=[5, 8, 2, 3]
    )
    assert labels(log, "state") == ["d", "b", "c", "a"]
    assert log.reward.tolist() == [0, 1, 2, 3]
    assert labels(log, "next_state") == ["b", None, "a", None]
    assert log.episode_starts.tolist() == [0, 2, 4]


def test_rows_keep_their_order_within_an_episode_where_no_steps_are_given():
    log = Log.from_arrays(list("abcd"), [0] * 4, [0] * 4, episode_id=[1, 0, 1, 0])
    assert labels(log, "state") == ["b", "d", "a", "c"]


@pytest.mark.parametrize(
    "steps",
    [
        ["2", "10", "1"],
        ["2020-01-02 10:00", "2020-01-10 09:00", "2020-01-01 23:00"],
        np.array(["2020-01-02", "2020-01-10", "2020-01-01"], dtype="datetime64[D]"),
        [0.5, 1.5, 0.25],
    ],
    ids=["digits", "times as text", "dates", "floats"],
)
def test_steps_are_numbers_or_times_and_sort_as_such(steps):
    log = Log.from_arrays(list("bca"), [0] * 3, [0] * 3, episode_id=[0] * 3, step=steps)
    assert labels(log, "state") == ["a", "b", "c"]


def test_the_same_step_may_occur_in_two_episodes_but_not_twice_in_one():
    Log.from_arrays([0, 0], [0, 0], [0, 0], episode_id=[0, 1], step=[4, 4])
    with pytest.raises(InputError, match=r"row 2 repeats step 4 of its episode.*once.*1 repeated"):
        Log.from_arrays([0] * 3, [0] * 3, [0] * 3, episode_id=[0, 1, 0], step=[4, 4, 4])


@pytest.mark.parametrize("steps", [["first", "second"], [0, None], [0, np.nan]])
def test_steps_that_have_no_order_are_refused(steps):
    with pytest.raises(InputError, match=r"step (holds something|is missing in row 1)"):
        Log.from_arrays([0, 0], [0, 0], [0, 0], episode_id=[0, 0], step=steps)


def test_steps_without_episodes_are_refused():
    with pytest.raises(InputError, match="step is given without episode_id"):
        Log.from_arrays([0, 0], [0, 0], [0, 0], step=[1, 0])


# Labels


@pytest.mark.parametrize(
    ("states", "wanted"),
    [
        (["b", "a", "b"], ("a", "b")),
        ([5, 2, 5], (2, 5)),
        (np.array([5.0, 2.0, 5.0]), (2, 5)),
        ([("a", 2), ("a", 1), ("a", 2)], (("a", 1), ("a", 2))),
        (np.array([[1, 2], [1, 1], [1, 2]]), ((1, 1), (1, 2))),
        (pd.Series([("a", 2), ("a", 1), ("a", 2)]), (("a", 1), ("a", 2))),
        (pl.Series(["b", "a", "b"]), ("a", "b")),
        (pa.array(["b", "a", "b"]), ("a", "b")),
    ],
    ids=["text", "ints", "floats", "tuples", "matrix", "pandas", "polars", "arrow"],
)
def test_states_are_text_whole_numbers_or_tuples(states, wanted):
    log = Log.from_arrays(states, [0, 1, 0], [0, 0, 0])
    assert log.states.labels == wanted
    assert log.state.tolist() == [1, 0, 1]
    assert labels(log, "next_state") == [wanted[0], wanted[1], None]


def test_states_that_the_log_never_visits_exist_by_number_or_by_name():
    by_number = Log.from_arrays([0, 3], [0, 0], [0, 0], n_states=5, n_actions=3)
    assert list(by_number.states.labels) == [0, 1, 2, 3, 4]
    assert list(by_number.actions.labels) == [0, 1, 2]
    by_name = Log.from_arrays(
        ["b"], ["x"], [0], state_labels=["c", "b", "a"], action_labels=["y", "x"]
    )
    assert by_name.state.tolist() == [1]
    assert by_name.action.tolist() == [1]
    assert Counts.from_log(by_name).shape == (3, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_states": 2}, "states 3 not among the 2 labels given: add them or drop those rows"),
        ({"state_labels": [0, 1]}, "states 3 not among the 2 labels"),
        ({"n_actions": 1}, "actions 1 not among the 1 labels"),
        ({"state_labels": [0, 3, 3]}, "state 3 is listed 2 times"),
        ({"next_state": [8, 3], "n_states": 4}, "next states 8 not among the 4 labels"),
    ],
)
def test_a_label_outside_the_list_given_is_named(given, message):
    with pytest.raises(InputError, match=message):
        Log.from_arrays([0, 3], [0, 1], [0, 0], **given)


def test_successors_read_as_numbers_are_the_states_read_as_text():
    log = Log.from_arrays(["1", "x"], [0, 0], [0, 0], [1, 2], None, [True, True])
    assert log.states.labels == ("1", "2", "x")
    assert labels(log, "next_state") == ["1", "2"]
    other = Log.from_arrays([1, 2], [0, 0], [0, 0], ["2", "end"], None, [True, True])
    assert other.states.labels == ("1", "2", "end")
    assert labels(other, "state") == ["1", "2"]


def test_successors_of_another_form_than_the_states_are_refused():
    with pytest.raises(InputError, match="state and next_state mixes labels like 0, "):
        Log.from_arrays([0], [0], [0], [(0, 1)], None, [True])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"state": [0, None]}, r"state is missing in row 1 \(1 such row\): fill or drop"),
        ({"action": [None, "x"]}, "action is missing in row 0"),
        ({"episode_id": [None, 1]}, "episode_id is missing in row 0"),
        ({"state": [0]}, r"columns differ in length \(state 1, action 2"),
        ({"reward": ["x", 1]}, "reward holds something that is not a number"),
        ({"reward": [[0], [1]]}, r"reward has shape \(2, 1\), expected one number per"),
        ({"reward": [0, np.nan]}, "reward in row 1 is nan, expected a finite number: fix or"),
        ({"reward": [-np.inf, 0]}, r"reward in row 0 is -inf, .* \(1 such row\)"),
        ({"terminated": [0, 2]}, "terminated holds something other than true/false or 0/1"),
        ({"truncated": ["maybe", "no"]}, "truncated holds something other than true/false"),
        ({"action_prob": [0.5, 0]}, r"action_prob in row 1 is 0, expected a number in \(0, 1\]"),
        ({"action_prob": [0.5, 1.5]}, "action_prob in row 1 is 1.5"),
        ({"action_prob": [np.nan, 0.5]}, "action_prob in row 0 is nan"),
        ({"action_prob": ["x", 0.5]}, "action_prob holds something that is not a number"),
    ],
)
def test_a_bad_column_is_named_with_its_row(columns, message):
    good = {"state": [0, 0], "action": [0, 0], "reward": [0, 0]}
    with pytest.raises(InputError, match=message):
        Log.from_arrays(**(good | columns))


def test_an_empty_log_is_refused():
    with pytest.raises(InputError, match="the log is empty: it needs at least one transition"):
        Log.from_arrays([], [], [])
    with pytest.raises(InputError, match="the log is empty"):
        Log.from_frame(frame().iloc[:0])


@pytest.mark.parametrize(
    "flags",
    [[0, 1], [0.0, 1.0], [False, True], ["False", "True"], ["no", "yes"], np.array(["f", "t"])],
)
def test_flags_are_booleans_zeros_and_ones_or_words(flags):
    log = Log.from_arrays([0, 0], [0, 0], [0, 0], terminated=flags)
    assert log.terminated.tolist() == [False, True]


# Dataframes


FRAMES = {
    "pandas": frame,
    "pandas arrow": lambda: pa.table(FRAME).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas category": lambda: frame().astype({"state": "category", "action": "category"}),
    "polars": lambda: pl.DataFrame(FRAME),
    "polars lazy": lambda: pl.LazyFrame(FRAME),
    "polars categorical": lambda: pl.DataFrame(FRAME).with_columns(
        pl.col("state", "action").cast(pl.Categorical)
    ),
    "polars enum": lambda: pl.DataFrame(FRAME).with_columns(
        pl.col("state").cast(pl.Enum(["z", "c", "b", "a"]))
    ),
    "arrow": lambda: pa.table(FRAME),
    "arrow chunks": lambda: pa.concat_tables(
        [pa.table(FRAME).slice(0, 2), pa.table(FRAME).slice(2)]
    ),
}


def same_counts(one, other):
    for name in ("indptr", "successors", "n", "reward_sum", "reward_sq", "starts"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("kind", FRAMES)
def test_every_dataframe_gives_the_same_log_and_counts(kind):
    log, wanted = Log.from_frame(FRAMES[kind]()), Log.from_frame(frame())
    same(log, wanted)
    same_counts(Counts.from_log(log), Counts.from_log(wanted))


def test_a_duckdb_relation_gives_the_same_log_and_counts():
    with duckdb.connect() as connection:
        log = Log.from_frame(connection.from_arrow(pa.table(FRAME)))
    wanted = Log.from_frame(frame())
    same(log, wanted)
    same_counts(Counts.from_log(log), Counts.from_log(wanted))


@pytest.mark.parametrize(
    "index", [[0.5, 1.5, 2.5, 3.5, 4.5], pd.date_range("2026-01-01", periods=5), list("abcde")]
)
def test_the_index_of_a_frame_is_no_column(index):
    same(Log.from_frame(frame().set_axis(index)), Log.from_frame(frame()))


def test_a_frame_gives_the_log_of_its_columns():
    log = Log.from_frame(frame())
    assert log.states.labels == ("a", "b", "c", "d")
    assert labels(log, "state") == FRAME["state"]
    assert labels(log, "action") == FRAME["action"]
    assert labels(log, "next_state") == FRAME["next_state"]
    assert log.reward.tolist() == FRAME["reward"]
    assert log.truncated.tolist() == FRAME["truncated"]
    assert log.episode_starts.tolist() == [0, 3, 5]
    assert log.action_prob is None
    assert repr(log) == "Log(transitions=5, episodes=2, states=4, actions=2, rewards=-1 to 1)"


def test_a_frame_and_arrays_give_the_same_log():
    same(
        Log.from_frame(frame(action_prob=[0.5, 1, 0.25, 0.5, 0.5])),
        Log.from_arrays(
            FRAME["state"], FRAME["action"], FRAME["reward"], FRAME["next_state"],
            FRAME["terminated"], FRAME["truncated"], episode_id=FRAME["episode_id"],
            step=FRAME["step"], action_prob=[0.5, 1, 0.25, 0.5, 0.5],
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "alias"),
    [
        ("terminated", "terminals"),
        ("terminated", "terminal"),
        ("terminated", "done"),
        ("truncated", "timeouts"),
        ("truncated", "timeout"),
        ("episode_id", "episode"),
        ("action_prob", "pscore"),
    ],
)
def test_aliases_are_accepted(ours, alias):
    full = frame(action_prob=[0.5, 1, 0.25, 0.5, 0.5])
    same(Log.from_frame(full.rename(columns={ours: alias})), Log.from_frame(full))


def test_our_own_name_wins_over_an_alias():
    log = Log.from_frame(frame(done=[True] * 5))
    assert log.terminated.tolist() == FRAME["terminated"]


def test_optional_columns_may_be_absent():
    log = Log.from_frame(frame(next_state=None, truncated=None))
    assert labels(log, "next_state") == ["b", "a", None, "b", None]
    assert log.truncated.tolist() == [False, False, False, False, True]


def test_columns_of_other_names_are_mapped():
    renamed = frame().rename(columns={"state": "ward", "action": "drug", "next_state": "then"})
    log = Log.from_frame(renamed, columns={"state": "ward", "action": "drug", "next_state": "then"})
    same(log, Log.from_frame(frame()))
    assert log.states.names == ("ward",)
    assert log.actions.names == ("drug",)


def several(**more):
    """The example with states over two columns."""
    level = [1, 2, 1, 3, 2]
    return frame(state=None, next_state=None, ward=FRAME["state"], level=level, **more)


def test_a_state_may_span_several_columns():
    log = Log.from_frame(several(), columns={"state": ["ward", "level"]})
    assert log.states.labels == (("a", 1), ("b", 2), ("c", 3))
    assert log.states.names == ("ward", "level")
    assert labels(log, "next_state") == [("b", 2), ("a", 1), None, ("b", 2), None]


@pytest.mark.parametrize("mapped", [True, False])
def test_the_successor_of_a_state_in_several_columns_is_found(mapped):
    after = {"next_ward": ["b", "a", None, "b", "d"], "next_level": [2, 1, None, 2, 9]}
    columns = {"state": ["ward", "level"]}
    if mapped:
        columns["next_state"] = ["next_ward", "next_level"]
    log = Log.from_frame(several(**after), columns=columns)
    assert labels(log, "next_state") == [("b", 2), ("a", 1), None, ("b", 2), ("d", 9)]


def test_tuples_in_one_column_of_a_frame_are_labels():
    pairs = [(1, 2), (1, 3), (1, 2), (2, 2), (1, 3)]
    log = Log.from_frame(frame(state=pairs, next_state=None))
    assert log.states.labels == ((1, 2), (1, 3), (2, 2))


def test_labels_may_be_given_for_a_frame_too():
    log = Log.from_frame(
        frame(), state_labels=list("edcba"), action_labels=Vocabulary(("stay", "go"), ("action",))
    )
    assert log.states.labels == tuple("edcba")
    assert labels(log, "state") == FRAME["state"]
    assert labels(log, "action") == FRAME["action"]


@pytest.mark.parametrize("name", ["episode_id", "step", "state", "action", "reward"])
def test_a_missing_column_is_named_with_what_there_is(name):
    with pytest.raises(InputError, match=f"the log has no column '{name}'.*its columns are '"):
        Log.from_frame(frame(next_state=None, **{name: None}))


def test_a_misspelt_column_is_suggested():
    with pytest.raises(InputError, match=r"no column 'reward' \(did you mean 'rewards'\?\)"):
        Log.from_frame(frame().rename(columns={"reward": "rewards"}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"stat": "state"}, r"columns maps 'stat', which is not a column of a log \(did you mean"),
        ({"state": "wards"}, "the log has no column 'wards'"),
        ({"state": ["state", "sate"]}, r"no column 'sate' \(did you mean 'state'\?\)"),
    ],
)
def test_a_wrong_mapping_is_named(columns, message):
    with pytest.raises(InputError, match=message):
        Log.from_frame(frame(), columns=columns)


@pytest.mark.parametrize("name", ["state", "action", "reward", "episode_id", "step", "terminated"])
def test_a_missing_value_in_a_frame_is_named_with_its_row(name):
    values = [*FRAME[name][:3], None, FRAME[name][4]]
    with pytest.raises(InputError, match=f"'{name}' is missing in row 3"):
        Log.from_frame(pa.table(FRAME | {name: values}))


def test_a_column_of_mixed_types_is_refused():
    with pytest.raises(InputError, match=r"mixes types.*make every value a string, or a number"):
        Log.from_frame(frame(action=["go", 1, "go", "go", 2]))


@pytest.mark.parametrize("actions", [[1.0, True, 0.0, 1.0, 0.0], [1, True, 0, 1, 0]])
def test_true_is_not_1_in_any_column_of_labels(actions):
    odd = pd.DataFrame(FRAME | {"action": pd.Series(actions, dtype=object)})
    with pytest.raises(InputError, match="mixes types"):
        Log.from_frame(odd)
    with pytest.raises(InputError, match="action mixes types"):
        Log.from_arrays(["s"] * 5, actions, [0] * 5, terminated=[True] * 5)
    with pytest.raises(InputError, match="action mixes labels like 2, True"):
        spibb.Policy([[0.5, 0.5]], ["s"], [2, True])


@pytest.mark.parametrize(("state", "successor"), [([True, True], [0, 0]), ([1, 1], [False, False])])
def test_flags_beside_a_column_of_numbers_are_numbers(state, successor):
    rest = {"action": ["x", "y"], "reward": [0, 1], "next_state": successor,
            "terminated": [False, True]}  # fmt: skip
    arrays = Log.from_arrays(state, **rest)
    table = pa.table({"episode_id": [0, 1], "step": [0, 0], "state": state, **rest})
    for log in (arrays, Log.from_frame(table)):
        assert [*map(type, log.states.labels)] == [int, int]
        assert log.states.labels == (0, 1)


# Methods


def test_columns_are_read_only():
    log = Log.from_frame(frame(action_prob=[0.5] * 5))
    for name in ("state", "action", "reward", "next_state", "terminated", "truncated",
                 "episode_starts", "action_prob"):  # fmt: skip
        with pytest.raises(ValueError, match="read-only"):
            getattr(log, name)[0] = 0


def test_arrays_given_stay_writeable_and_untouched():
    columns = {
        "state": np.array([1, 0]), "action": np.array([0, 1]), "reward": np.array([0.5, 1]),
        "next_state": np.array([0, 0]), "terminated": np.array([False, True]),
        "truncated": np.array([False, True]), "episode_id": np.array([0, 0]),
        "step": np.array([0, 1]), "action_prob": np.array([0.5, 0.5]),
    }  # fmt: skip
    before = {name: column.copy() for name, column in columns.items()}
    Log.from_arrays(**columns)
    for name, column in columns.items():
        np.testing.assert_array_equal(column, before[name])
        assert column.flags.writeable


def test_a_log_moves_to_larger_vocabularies():
    log = Log.from_frame(frame())
    states, actions = Vocabulary(tuple("zdcba")), Vocabulary(("stay", "wait", "go"))
    moved = log.with_labels(states, actions)
    for name in ("state", "action", "next_state"):
        assert labels(moved, name) == labels(log, name)
    assert log.with_labels(log.states, log.actions) is log
    with pytest.raises(InputError, match="state of the log 'b', 'c', 'd' not among"):
        log.with_labels(Vocabulary(("a",)), actions)


def test_some_episodes_of_a_log_are_a_log():
    log = Log.from_frame(frame(action_prob=[0.5, 1, 0.25, 0.5, 0.125]))
    picked = log.episodes(np.array([1, 0, 1]))
    assert labels(picked, "state") == ["c", "b", "a", "b", "a", "c", "b"]
    assert labels(picked, "next_state") == ["b", "d", "b", "a", None, "b", "d"]
    assert picked.action_prob.tolist() == [0.5, 0.125, 0.5, 1, 0.25, 0.5, 0.125]
    assert picked.episode_starts.tolist() == [0, 2, 5, 7]
    assert picked.states is log.states


def test_every_column_may_be_an_iterator():
    columns = {
        "state": "ab", "action": "xy", "reward": [0, 1], "terminated": [0, 1],
        "episode_id": [7, 7], "step": [0, 1], "action_prob": [0.5, 1.0],
    }  # fmt: skip
    given = Log.from_arrays(**{name: list(values) for name, values in columns.items()})
    read = Log.from_arrays(**{name: (x for x in values) for name, values in columns.items()})
    assert read.reward.tolist() == [0, 1]
    assert read.action_prob.tolist() == given.action_prob.tolist()
    assert read.terminated.tolist() == [False, True]
