"""Logs of vectors are read by the rules of tables: the labels of a table are the oracle."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spibb
from spibb.errors import InputError
from spibb.tables import write_table

STATE = {"state": ["x", "y"]}


def frame(n_episodes=6, seed=0, *, explicit=False, prob=False):
    """Rows in random order; vectors of whole numbers, which a table reads as labels."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(n_episodes):
        length = int(rng.integers(1, 6))
        ends = rng.random() < 0.5
        for step in range(length):
            last = step == length - 1
            row = {
                "episode_id": episode, "step": step, "x": int(rng.integers(-3, 4)),
                "y": int(rng.integers(0, 3)), "action": "ab"[rng.integers(2)],
                "reward": float(rng.normal()), "terminated": last and bool(ends),
            }  # fmt: skip
            if explicit:
                known = rng.random() < 0.7
                row |= {"next_x": int(rng.integers(5)) if known else None,
                        "next_y": int(rng.integers(5)) if known else None}  # fmt: skip
            if prob:
                row["action_prob"] = float(rng.uniform(0.1, 1))
            rows.append(row)
    rng.shuffle(rows)
    return pa.Table.from_pylist(rows)


def vectors_of(log):
    """States and successors of a table's log as vectors, NaN where none follows."""
    labels = np.array([*log.states.labels, (np.nan, np.nan)], float)
    return labels[log.state], labels[log.next_state]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_next_states_and_cuts_are_those_of_tables(seed, explicit, prob):
    table = frame(seed=seed, explicit=explicit, prob=prob)
    log, wanted = spibb.read_vectors(table, columns=STATE), spibb.read_log(table, columns=STATE)
    states, following = vectors_of(wanted)
    np.testing.assert_array_equal(log.state, states)
    np.testing.assert_array_equal(log.next_state, following)
    for name in ("action", "reward", "terminated", "truncated", "episode_starts", "known"):
        np.testing.assert_array_equal(getattr(log, name), getattr(wanted, name))
    np.testing.assert_array_equal(log.remaining, wanted.remaining)
    assert log.actions == wanted.actions
    assert (log.action_prob is None) == (not prob)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_give_the_same_vectors_as_frames(ending, tmp_path):
    table = frame(explicit=True)
    write_table(table, tmp_path / f"log.{ending}")
    one = spibb.read_vectors(table, columns=STATE)
    other = spibb.read_vectors(tmp_path / f"log.{ending}", columns=STATE)
    np.testing.assert_array_equal(one.state, other.state)
    np.testing.assert_array_equal(one.next_state, other.next_state)


def test_some_episodes_keep_their_rows():
    log = spibb.read_vectors(frame(), columns=STATE)
    some = log.episodes(np.array([3, 1]))
    starts = log.episode_starts
    rows = [*range(starts[3], starts[4]), *range(starts[1], starts[2])]
    np.testing.assert_array_equal(some.state, log.state[rows])
    assert some.n_episodes == 2


def changed(column, row, value):
    rows = frame().to_pylist()
    rows[row][column] = value
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("x", None, "column 'x' is missing in row 2"),
        ("x", float("inf"), "state (column 'x') in row 2 is inf, expected a finite number"),
        ("x", float("nan"), "column 'x' is missing in row 2"),
        ("reward", float("nan"), "reward"),
    ],
)
def test_a_bad_value_is_named_with_its_row(column, value, message):
    with pytest.raises(InputError) as error:
        spibb.read_vectors(changed(column, 2, value), columns=STATE)
    assert message in str(error.value)


def test_text_is_no_vector(tmp_path):
    rows = frame().to_pylist()
    for row in rows:
        row["x"] = "left"
    write_table(pa.Table.from_pylist(rows), tmp_path / "log.csv")
    for source in (tmp_path / "log.csv", pa.Table.from_pylist(rows)):
        with pytest.raises(InputError, match=r"'x'.*is 'left', expected numbers.*such as pi-b"):
            spibb.read_vectors(source, columns=STATE)


def test_an_absent_column_is_named():
    with pytest.raises(InputError, match="no column 'z'"):
        spibb.read_vectors(frame(), columns={"state": ["x", "z"]})


def test_missing_numbers_are_dropped_with_their_episodes_but_are_no_level():
    table = changed("x", 2, None)
    with pytest.raises(InputError) as error:
        spibb.read_vectors(table, columns=STATE)
    assert "as-level" not in str(error.value)
    assert "--missing drop" in str(error.value)
    dropped = spibb.read_vectors(table, columns=STATE, missing="drop")
    assert dropped.n_episodes == spibb.read_vectors(frame(), columns=STATE).n_episodes - 1
    with pytest.raises(InputError, match="is for labels"):
        spibb.read_vectors(table, columns=STATE, missing="as-level")


def test_rows_of_a_bandit_are_episodes():
    log = spibb.read_vectors(frame(), columns=STATE, bandit=True)
    assert log.n_episodes == len(log)
    assert log.terminated.all()
