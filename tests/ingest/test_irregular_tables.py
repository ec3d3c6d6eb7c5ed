"""Logs that are not clean: bandits, missing values, copies, and no column of terminations.

The oracle is always the same log, cleaned by hand, read without any option.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import spibb
from spibb import Counts, Log, count_log, open_log, read_log
from spibb.errors import FixableError, InputError
from spibb.ingest import aggregate, proposing
from spibb.ingest.mapping import ColumnMap, read_mapping
from spibb.sql import duck_files

EPISODES = pd.DataFrame({
    "episode_id": [0, 0, 0, 1, 1, 2, 3, 3],
    "step": [0, 1, 2, 0, 1, 0, 0, 1],
    "state": ["a", "b", "c", "a", "c", "b", "a", "b"],
    "age": [31, 40, 18, 50, 50, 61, 20, 21],
    "action": [1, 2, 1, 1, 2, 2, 1, 1],
    "reward": [0.0, 1.0, 0.5, 0.0, -1.0, 0.25, 0.5, 2.0],
    "terminated": [False, False, True, False, True, True, False, True],
})  # fmt: skip
CLICKS = pd.DataFrame({
    "user": ["new", "old", "new", "old", "new"], "item": [3, 5, 5, 3, 3],
    "click": [0, 1, 1, 0, 1], "p": [0.25, 0.5, 0.75, 0.5, 0.25],
})  # fmt: skip
CLICK_COLUMNS = {"state": "user", "action": "item", "reward": "click", "action_prob": "p"}


def sources(frame, tmp_path):
    """One table as CSV, JSON lines, Parquet and frame."""
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_json(tmp_path / "log.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "log.parquet")
    return [tmp_path / "log.csv", tmp_path / "log.jsonl", tmp_path / "log.parquet", frame]


def same(one: Counts, other: Counts) -> bool:
    return (
        [str(x) for x in one.states.labels] == [str(x) for x in other.states.labels]
        and [str(x) for x in one.actions.labels] == [str(x) for x in other.actions.labels]
        and all(
            np.array_equal(getattr(one, name), getattr(other, name))
            for name in ("indptr", "successors", "n", "reward_sum", "starts")
        )
    )


def agree(source, expected: Counts, **options):
    """Rows, counts and, where it is a frame, `Log.from_frame` give what is expected."""
    assert same(count_log(source, **options), expected)
    assert same(Counts.from_log(read_log(source, **options)), expected)
    if isinstance(source, pd.DataFrame) and "bins" not in options:
        assert same(Counts.from_log(Log.from_frame(source, **options)), expected)


# ---- bandits ------------------------------------------------------------------------------------


def test_every_row_of_a_bandit_is_an_episode_that_ends(tmp_path):
    expected = spibb.from_bandit(CLICKS, state="user", action="item", reward="click")
    for source in sources(CLICKS, tmp_path):
        agree(source, Counts.from_log(expected), columns=CLICK_COLUMNS, bandit=True)
        log = read_log(source, columns=CLICK_COLUMNS, bandit=True)
        assert log.action_prob.tolist() == CLICKS["p"].tolist(), "in the order of the file"
        assert log.terminated.all() and log.n_episodes == len(CLICKS)


def test_a_large_bandit_log_is_counted_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(aggregate, "ORDER_UP_TO", 2)
    expected = spibb.from_bandit(CLICKS, state="user", action="item", reward="click")
    agree(CLICKS, Counts.from_log(expected), columns=CLICK_COLUMNS, bandit=True)


def test_columns_of_episodes_do_not_matter_to_a_bandit():
    frame = CLICKS.assign(episode_id=0, step=0, terminated=False, next_state="old", truncated=1)
    assert read_log(frame, columns=CLICK_COLUMNS, bandit=True).n_episodes == len(CLICKS)
    for name in ("episode_id", "step", "terminated", "truncated", "next_state"):
        with pytest.raises(InputError, match=f"{name} is mapped to 'p', but every row"):
            read_log(frame, columns={**CLICK_COLUMNS, name: "p"}, bandit=True)


def test_columns_that_contradict_a_bandit_are_named():
    def warned(frame, state="user"):
        table = open_log(frame, columns={**CLICK_COLUMNS, "state": state}, bandit=True)
        return [f.value for f in spibb.inspect_log(table).findings if f.what == "Warning"]

    assert warned(CLICKS) == []
    assert warned(CLICKS.assign(step=["a"] * 5), "step") == [], "a column that is read"
    (said,) = warned(CLICKS.assign(next_user="old", timeouts=True, done=False))
    assert said.startswith("--bandit ignores next_user, done and timeouts: a decision has no conse")


def test_a_column_may_have_the_name_of_the_row_number():
    frame = CLICKS.rename(columns={"user": "Spibb row"})
    log = read_log(frame, columns={**CLICK_COLUMNS, "state": "Spibb row"}, bandit=True)
    assert log.states.labels == ("new", "old")


def test_equal_rows_of_a_bandit_are_two_decisions():
    assert count_log(pd.concat([CLICKS] * 2), columns=CLICK_COLUMNS, bandit=True).n.sum() == 10
    with pytest.raises(InputError, match="two equal rows are two decisions"):
        count_log(CLICKS, columns=CLICK_COLUMNS, bandit=True, duplicates="drop")


def test_a_bandit_log_is_inspected_and_ordered_by_any_column():
    frame = CLICKS.assign(when=[5, 4, 3, 2, 1])
    table = open_log(frame, columns=CLICK_COLUMNS, bandit=True)
    found = spibb.inspect_log(table)
    assert (found.lengths, found.terminated, found.truncated) == ((1, 1, 1), 5, 0)
    assert "bandit" in next(f.value for f in found.facts if f.what == "Rows")
    assert table.episode_order("when").tolist() == [4, 3, 2, 1, 0]


def test_a_mapping_file_says_that_a_log_is_a_bandits(tmp_path):
    path = tmp_path / "map.toml"
    path.write_text('bandit = true\nmissing = "drop"\n[columns]\nstate = "user"\n')
    found = read_mapping(path)
    assert found.handling == spibb.irregular_tables.Handling(bandit=True, missing="drop")
    assert found.updated({}, {}, missing="error").handling.missing == "error"
    assert ColumnMap().reading == {
        "columns": {}, "bins": {}, "bandit": False, "missing": "error", "duplicates": "error",
    }  # fmt: skip
    path.write_text('missing = "never"')
    with pytest.raises(InputError, match="expected one of error, as-level, drop"):
        read_mapping(path)


# ---- no column of terminations ------------------------------------------------------------------


def test_without_terminations_the_last_rows_end(tmp_path):
    expected = Counts.from_log(Log.from_frame(EPISODES))
    for source in sources(EPISODES.drop(columns="terminated"), tmp_path):
        agree(source, expected)
        found = spibb.inspect_log(open_log(source))
        assert found.terminated == 4
        said = next(f.value for f in found.facts if f.what == "Ends")
        assert said.startswith("no column says which episodes terminated: assumed that every ")


def test_without_terminations_rows_that_are_cut_do_not_end(monkeypatch):
    cut = EPISODES["terminated"] & (EPISODES["episode_id"] != 1)
    frame = EPISODES.assign(truncated=cut, terminated=EPISODES["terminated"] & ~cut)
    expected = Counts.from_log(Log.from_frame(frame))
    agree(frame.drop(columns="terminated"), expected)
    assert spibb.inspect_log(open_log(frame.drop(columns="terminated"))).terminated == 1
    monkeypatch.setattr(aggregate, "ORDER_UP_TO", 2)
    agree(frame.drop(columns="terminated").assign(next_state=None), expected)


@pytest.mark.parametrize("name", ["terminate", "is_terminated", "Terminated"])
def test_a_misspelt_column_of_terminations_is_not_overlooked(name):
    with pytest.raises(InputError, match=rf"no column 'terminated' \(did you mean '{name}'\?\)"):
        read_log(EPISODES.rename(columns={"terminated": name}))


# ---- missing values -----------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["state", "action", "reward", "step", "terminated"])
def test_an_episode_with_a_missing_value_is_dropped_whole(column, tmp_path):
    frame = EPISODES.astype({column: object})
    frame.loc[4, column] = None
    expected = Counts.from_log(Log.from_frame(EPISODES[EPISODES["episode_id"] != 1]))
    for source in sources(frame, tmp_path):
        agree(source, expected, missing="drop")
        left = open_log(source, missing="drop").left_out
        assert (left.rows, left.incomplete, left.episodes, left.incomplete_episodes) == (8, 2, 4, 1)


def test_a_row_without_an_episode_is_dropped_alone():
    frame = EPISODES.astype({"episode_id": object})
    frame.loc[5, "episode_id"] = None
    expected = Counts.from_log(Log.from_frame(EPISODES.drop(index=5)))
    agree(frame, expected, missing="drop")


@pytest.mark.parametrize("word", ["NA", "n/a", "NULL", "None", "nan", "-", "?", " "])
def test_words_for_missing_are_missing_where_numbers_are_wanted(word, tmp_path):
    frame = EPISODES.astype({"reward": str, "age": str})
    frame.loc[0, "reward"] = word
    frame.loc[6, "age"] = word
    options = {"columns": {"state": "age"}, "bins": {"age": [30, 45]}}
    expected = Counts.from_log(read_log(EPISODES[EPISODES["episode_id"].isin([1, 2])], **options))
    agree(frame, expected, missing="drop", **options)
    with pytest.raises(FixableError, match="--missing drop"):
        read_log(frame.assign(age=1))


def test_a_word_for_missing_is_a_name_among_labels():
    log = Log.from_frame(EPISODES.replace({"state": {"a": "NA"}}), missing="drop")
    assert log.states.labels == ("NA", "b", "c")


def test_what_cannot_be_read_is_no_missing_value():
    frame = EPISODES.astype({"reward": str})
    frame.loc[0, "reward"] = "much"
    for missing in ("error", "drop", "as-level"):
        with pytest.raises(InputError, match="reward in row 0 is 'much', expected a number"):
            read_log(frame, missing=missing)


def test_nan_is_missing(tmp_path):
    frame = pa.table({
        **EPISODES.to_dict("list"), "reward": [0.0, float("nan"), *EPISODES["reward"][2:]],
    })  # fmt: skip
    expected = Counts.from_log(Log.from_frame(EPISODES[EPISODES["episode_id"] != 0]))
    assert same(count_log(frame, missing="drop"), expected)


def test_a_log_of_missing_values_only_is_empty():
    with pytest.raises(InputError, match="every episode has a missing value"):
        read_log(EPISODES.assign(reward=None), missing="drop")


def test_missing_values_are_a_level(tmp_path):
    frame = EPISODES.astype({"state": object, "action": object})
    frame.loc[[1, 5], "state"] = None
    frame.loc[2, "action"] = None
    clean = EPISODES.assign(
        state=["a", "(missing)", "c", "a", "c", "(missing)", "a", "b"],
        action=["1", "2", "(missing)", "1", "2", "2", "1", "1"],
    )
    expected = Counts.from_log(Log.from_frame(clean, missing="as-level"))
    for source in sources(frame, tmp_path):
        found = count_log(source, missing="as-level")
        assert found.states.labels == ("(missing)", "a", "b", "c")
        assert found.actions.labels == ("(missing)", "1", "2")
        agree(source, expected, missing="as-level")
        facts = {
            f.what: f.value for f in spibb.inspect_log(open_log(source, missing="as-level")).facts
        }
        assert facts["Missing values"].endswith("(missing), in 'action', 'state'")


def test_a_level_changes_nothing_where_nothing_is_missing():
    for source in (EPISODES, pa.table(EPISODES)):
        log = read_log(source, missing="as-level")
        assert log.actions.labels == (1, 2)


def test_a_level_among_bins(tmp_path):
    frame = EPISODES.astype({"age": str}).astype({"age": object})
    frame.loc[[0, 7], "age"] = [None, "?"]
    options = {"columns": {"state": ["state", "age"]}, "bins": {"age": [30, 45]}}
    log = read_log(frame, missing="as-level", **options)
    assert ("a", "(missing)") in log.states.labels and ("b", "(missing)") in log.states.labels
    agree(frame, Counts.from_log(log), missing="as-level", **options)


def test_a_successor_of_which_a_part_is_missing_is_a_level():
    frame = pd.DataFrame({
        "episode_id": [0, 0, 1], "step": [0, 1, 0], "x": ["a", "b", "a"], "y": [1, None, 2],
        "next_x": ["b", "c", None], "next_y": [None, 3, None], "action": 0, "reward": 1,
        "terminated": [False, False, True], "truncated": [False, True, False],
    })  # fmt: skip
    log = read_log(frame, columns={"state": ["x", "y"]}, missing="as-level")
    reached = [log.states[code] if code >= 0 else None for code in log.next_state.tolist()]
    assert reached[0] == ("b", "(missing)") and reached[2] is None
    assert reached[1][0] == "c"


def test_a_missing_reward_is_no_level():
    frame = EPISODES.astype({"reward": object})
    frame.loc[3, "reward"] = None
    with pytest.raises(FixableError, match=r"'reward' is missing in row 3 .*use --missing drop"):
        read_log(frame, missing="as-level")


# ---- copies -------------------------------------------------------------------------------------


def test_copies_are_dropped(tmp_path):
    frame = pd.concat([EPISODES, EPISODES.iloc[[2, 2, 6]]]).assign(exported=range(11))
    expected = Counts.from_log(Log.from_frame(EPISODES))
    for source in sources(frame, tmp_path):
        agree(source, expected, duplicates="drop")
        assert open_log(source, duplicates="drop").left_out.copies == 3
        with pytest.raises(FixableError, match="--duplicates drop") as refused:
            read_log(source)
        assert refused.value.changes == {"duplicates": "drop"}


def test_rows_of_one_step_that_differ_are_no_copies():
    other = EPISODES.iloc[[2, 7]].assign(reward=[0.5, 9.0])
    frame = pd.concat([EPISODES, other])
    message = (
        r"row 9 repeats step 1 of its episode with other values, expected each .* \(1 repeated\), "
        r"episode '3': renumber or drop one of the two"
    )
    for read in (read_log, count_log):
        with pytest.raises(InputError, match=message):
            read(frame, duplicates="drop")


def test_copies_and_missing_values_go_together():
    frame = pd.concat([EPISODES, EPISODES.iloc[[0, 3]]]).astype({"action": object})
    frame.iloc[4, frame.columns.get_loc("action")] = None
    expected = Counts.from_log(Log.from_frame(EPISODES[EPISODES["episode_id"] != 1]))
    agree(frame, expected, missing="drop", duplicates="drop")
    left = open_log(frame, missing="drop", duplicates="drop").left_out
    assert (left.rows, left.incomplete, left.copies) == (10, 3, 1)


def test_quantiles_are_those_of_the_rows_that_count():
    frame = pd.concat([EPISODES, *[EPISODES.iloc[[5]]] * 20])
    options = {"columns": {"state": "age"}, "bins": {"age": 2}}
    assert open_log(frame, duplicates="drop", **options).bins == open_log(EPISODES, **options).bins


# ---- words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "level"}, "missing is 'level' (did you mean 'as-level'?): choose one of"),
        ({"duplicates": "keep"}, "duplicates is 'keep': choose one of error, drop"),
        ({"bandit": "yes"}, "bandit is 'yes', expected true or false"),
    ],
)
def test_a_wrong_option_is_named(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_log(EPISODES, **options)


def test_a_log_is_read_already():
    with pytest.raises(InputError, match="--missing drop applies to reading a table"):
        open_log(Log.from_frame(EPISODES), missing="drop")


# ---- copies of large text files -----------------------------------------------------------------


@pytest.fixture
def copying(monkeypatch):
    """Every CSV file is parsed once, into a copy."""
    monkeypatch.setattr(duck_files, "WORTH_A_COPY", 0)


@pytest.mark.parametrize("copy", [False, True])
def test_a_large_file_is_parsed_once_and_says_the_same(copy, tmp_path, request):
    if copy:
        request.getfixturevalue("copying")
    frame = pd.concat([EPISODES, EPISODES.iloc[[6]]]).astype({"state": object, "age": str})
    frame.iloc[1, frame.columns.get_loc("state")] = None
    frame.to_csv(tmp_path / "log.csv", index=False)
    options = {"columns": {"state": ["state", "age"]}, "bins": {"age": 2}}
    table = open_log(tmp_path / "log.csv", missing="drop", duplicates="drop", **options)
    assert (table.copy is not None) == copy
    rest = EPISODES[EPISODES["episode_id"] != 0]
    assert same(table.counts(), Counts.from_log(read_log(rest, **options)))
    assert same(Counts.from_log(table.log()), table.counts())
    assert (table.left_out.rows, table.left_out.incomplete, table.left_out.copies) == (9, 3, 1)
    assert table.episode_order("reward").tolist() == [0, 1, 2], "a column beside those used"


def test_errors_name_the_row_of_the_file_and_not_of_its_copy(copying, tmp_path):
    frame = pd.concat([EPISODES, EPISODES.iloc[[7]].assign(reward=9)]).astype({"state": object})
    frame.iloc[0, frame.columns.get_loc("state")] = None
    frame.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(InputError, match=r"row 8 repeats step 1 .*with other.*episode '3'"):
        read_log(tmp_path / "log.csv", missing="drop", duplicates="drop")
    with pytest.raises(InputError, match=r"'state' is missing in row 0 \(1 such row\), episode"):
        read_log(tmp_path / "log.csv")


def test_a_copied_bandit_log_keeps_its_order(copying, tmp_path):
    CLICKS.assign(when=[5, 4, 3, 2, 1]).to_csv(tmp_path / "log.csv", index=False)
    table = open_log(tmp_path / "log.csv", columns=CLICK_COLUMNS, bandit=True)
    assert table.log().action_prob.tolist() == CLICKS["p"].tolist()
    assert table.episode_order("when").tolist() == [4, 3, 2, 1, 0]


# ---- where an error is --------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_error_names_file_row_and_episode(ending, tmp_path):
    frame = EPISODES.astype({"reward": object})
    frame.loc[6, "reward"] = None
    for name, part in (("a", frame[:5]), ("b", frame[5:])):
        getattr(part, f"to_{ending}")(tmp_path / f"{name}.{ending}", index=False)
    place = rf"'reward' is missing in row 1 \(1 such row\), episode '3' of '.*b\.{ending}'"
    with pytest.raises(InputError, match=place):
        read_log(tmp_path / f"*.{ending}")
    twice = pd.concat([EPISODES[5:], EPISODES[:1]])
    getattr(EPISODES[:5], f"to_{ending}")(tmp_path / f"a.{ending}", index=False)
    getattr(twice, f"to_{ending}")(tmp_path / f"b.{ending}", index=False)
    place = rf"row 3 repeats step 0 of its episode, .*, episode '0' of '.*b\.{ending}'"
    with pytest.raises(InputError, match=place):
        count_log(tmp_path)


def test_an_error_in_a_bandits_log_names_file_and_row(tmp_path):
    CLICKS.assign(p=[0.5, 2, 0.5, 0.5, 0.5]).to_csv(tmp_path / "clicks.csv", index=False)
    with pytest.raises(InputError, match=r"in row 1 is 2.*\(1 such row\), in '.*clicks\.csv'"):
        read_log(tmp_path / "clicks.csv", columns=CLICK_COLUMNS, bandit=True)


def test_proposals_that_undo_each_other_end(monkeypatch):
    """A reader that asks for either way of writing in turn gets no proposal, and no third try."""
    tries = []

    def refuse(source, **_):
        tries.append(source.decimal)
        raise FixableError("no", decimal="," if source.decimal != "," else ".")

    monkeypatch.setattr(proposing, "open_log", refuse)
    assert proposing.proposed("log.csv", ColumnMap()) == []
    assert tries == [".", ","]
