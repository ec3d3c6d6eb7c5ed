"""Tables on disk: long form, and whole files or none."""

from __future__ import annotations

import os
import stat

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from spibb import Log, Vocabulary
from spibb.errors import InputError
from spibb.tables import log_table, long_form, write_table


def test_long_form_has_one_row_per_pair_states_first():
    table = long_form(
        Vocabulary(("s", "t"), ("state",)),
        Vocabulary((0, 1, 2), ("action",)),
        value=np.arange(6.0).reshape(2, 3),
        flag=np.eye(2, 3, dtype=bool),
    )
    assert table.to_pydict() == {
        "state": ["s", "s", "s", "t", "t", "t"],
        "action": [0, 1, 2, 0, 1, 2],
        "value": [0, 1, 2, 3, 4, 5],
        "flag": [True, False, False, False, True, False],
    }


def test_long_form_spreads_tuple_labels_over_their_columns():
    table = long_form(
        Vocabulary((("a", 1), ("b", 2)), ("ward", "level")),
        Vocabulary(((0, "x"), (1, "y")), ("action",)),
        value=np.zeros((2, 2)),
    )
    assert table.column_names == ["ward", "level", "action_0", "action_1", "value"]
    assert table.column("level").to_pylist() == [1, 1, 2, 2]
    assert table.column("action_1").to_pylist() == ["x", "y", "x", "y"]


def test_a_log_becomes_the_table_that_is_read():
    log = Log.from_arrays(
        ["a", "b", "b"], [0, 1, 0], [1, 2, 3], ["b", None, "c"], [0, 1, 0], [0, 0, 1],
        episode_id=["u", "u", "v"], action_prob=[0.5, 0.25, 1],
    )  # fmt: skip
    assert log_table(log).to_pydict() == {
        "episode_id": [0, 0, 1],
        "step": [0, 1, 0],
        "state": ["a", "b", "b"],
        "action": [0, 1, 0],
        "reward": [1, 2, 3],
        "next_state": ["b", None, "c"],
        "terminated": [False, True, False],
        "truncated": [False, False, True],
        "action_prob": [0.5, 0.25, 1],
    }


def test_a_log_without_propensities_has_no_such_column():
    table = log_table(Log.from_arrays(["a"], [0], [1]))
    assert "action_prob" not in table.column_names


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "T.CSV", "T.Parquet"])
def test_the_ending_of_the_name_decides_the_format(tmp_path, name):
    write_table(pa.table({"x": [1, 2]}), tmp_path / name)
    if name.lower().endswith("csv"):
        assert (tmp_path / name).read_text() == '"x"\n1\n2\n'
    else:
        assert pyarrow.parquet.read_table(tmp_path / name).to_pydict() == {"x": [1, 2]}
    assert os.listdir(tmp_path) == [name]


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot write 't.json': the name must end in .csv or"):
        write_table(pa.table({"x": [1]}), tmp_path / "t.json")
    assert os.listdir(tmp_path) == []


def test_a_written_file_has_the_permissions_of_any_new_file(tmp_path):
    write_table(pa.table({"x": [1]}), tmp_path / "t.csv")
    (tmp_path / "other").write_text("")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("t.csv", "other")}
    assert len(modes) == 1


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot write '.*nowhere/t.csv': No such file"):
        write_table(pa.table({"x": [1]}), tmp_path / "nowhere" / "t.csv")
