"""A first look at a log, and what it finds suspicious."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from logs import COLUMNS, hospital

import spibb
from spibb import Counts, Log, inspect_log, open_log
from spibb.inspection import Neighbours
from spibb.tables import write_table

TABLE = hospital()


def names(inspection):
    return [finding.what for finding in inspection.suspicions]


def log_of(**columns):
    n = len(columns["state"])
    base = {
        "episode_id": np.arange(n) // 4, "step": np.arange(n) % 4, "action": ["x", "y"] * (n // 2),
        "reward": np.arange(n) % 3, "terminated": np.arange(n) % 4 == 3,
    }  # fmt: skip
    return open_log(pa.table(base | columns))


def test_sizes_agree_with_the_log():
    log = Log.from_frame(TABLE, columns=COLUMNS)
    found = inspect_log(open_log(TABLE, columns=COLUMNS))
    lengths = np.diff(log.episode_starts)
    assert (found.rows, found.episodes) == (len(log), log.n_episodes)
    assert found.lengths[0] == lengths.min()
    assert found.lengths[1] == np.sort(lengths)[(len(lengths) - 1) // 2]
    assert found.lengths[2] == lengths.max()
    assert (found.states, found.actions) == (12, 3)
    assert found.truncated == log.truncated.sum()
    assert found.unknown_successors == 0
    pairs = Counts.from_log(log).pairs
    assert sum(part.rows for part in found.coverage) == len(log)
    assert sum(part.pairs for part in found.coverage) == pairs.size
    assert found.coverage[4].pairs == ((pairs >= 10) & (pairs < 20)).sum()


def test_states_are_those_that_improve_counts():
    """One is only reached, one only seen where a record stops."""
    table = pa.table(
        {
            "episode_id": [0, 0, 1, 1], "step": [0, 1, 0, 1], "state": ["a", "b", "a", "stop"],
            "action": ["x", "y", "x", "x"], "reward": [0.0, 1.0, 0.0, 0.0],
            "next_state": ["b", "reached", "stop", None],
            "terminated": [False] * 4, "truncated": [False, True, False, True],
        }
    )  # fmt: skip
    found, log = inspect_log(open_log(table)), Log.from_frame(table)
    assert found.states == len(log.states) == 4
    assert found.states_undecided == 2
    assert found.facts[4].value == "4, 2 of them without a decision to learn from"


def test_counts_at_hand_give_the_same_inspection():
    table = open_log(TABLE, columns=COLUMNS)
    assert inspect_log(table) == inspect_log(table, table.counts())
    assert inspect_log(table) == inspect_log(table, Counts.from_log(table.log()))


def test_a_sound_log_is_not_suspicious():
    clock = [
        f"{place}{step}" for step, place in zip([0, 1, 2, 3] * 400, "aabb" * 200 + "bbaa" * 200)
    ]
    found = inspect_log(log_of(state=clock, action=["x", "x", "y", "y", "y", "y", "x", "x"] * 200))
    assert names(found) == []
    assert [finding.what for finding in found.findings[:2]] == ["Transitions", "Episodes"]


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"reward": [2.0] * 40}, "Constant reward"),
        ({"terminated": [False] * 40}, "No episode terminates"),
        ({"terminated": [i == 39 for i in range(40)]}, "Most episodes are cut short"),
        ({"terminated": [i == 39 for i in range(40)]}, "Unknown successors"),
        ({"action": ["x", "y"] * 20}, "Actions never tried"),
        ({"action": ["x"] * 40}, "Nearly deterministic behaviour"),
        ({"state": [f"s{i}" for i in range(40)]}, "States seen once"),
        ({"step": np.arange(40)[::-1] % 4, "terminated": np.arange(40) % 4 == 0},
         "Time going backwards"),
    ],
)  # fmt: skip
def test_what_is_suspicious_is_found_with_a_remedy(columns, what):
    found = inspect_log(log_of(**({"state": ["a", "b"] * 20} | columns)))
    assert what in names(found)
    assert all(finding.remedy for finding in found.suspicions)


def suspicion(found, what):
    return next((f.value for f in found.suspicions if f.what == what), None)


def as_kinds(table, tmp_path):
    """One log as a frame and as files."""
    yield open_log(table)
    for ending in ("csv", "parquet"):
        write_table(table, tmp_path / f"log.{ending}")
        yield open_log(tmp_path / f"log.{ending}")


def walk(states, **columns):
    """Two episodes through the same states, the last row of each ends it."""
    n = len(states)
    return pa.table(
        {
            "episode_id": [0] * n + [1] * n, "step": [*range(n)] * 2, "state": states * 2,
            "action": ["x"] * 2 * n, "reward": [0.0] * 2 * n,
            "terminated": ([False] * (n - 1) + [True]) * 2,
        } | {name: column * 2 for name, column in columns.items()}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("next_state", "value"),
    [
        ([2, 3, 4, 9], None),  # beyond the end, anything may stand
        ([2, None, 4, None], None),
        ([1, 2, 3, 4], "6 of 6 rows with a next row (100%) name a next_state"),
        ([2, None, 3, None], "2 of 4 rows with a next row (50%) name a next_state"),
    ],
)
def test_successors_that_contradict_the_next_row_are_told(next_state, value, tmp_path):
    what = "Successors contradict the next row"
    for table in as_kinds(walk([1, 2, 3, 4], next_state=next_state), tmp_path):
        found = suspicion(inspect_log(table), what)
        assert (found is None) if value is None else found.startswith(value)


def test_whole_numbers_beside_missing_cells_contradict_nothing(tmp_path):
    """As pandas writes them: states 1, 2, 3, and successors 2.0, 3.0 and none."""
    rows = ["0,0,1,x,0,2.0,0", "0,1,2,x,0,3.0,0", "0,2,3,x,0,,1"]
    header = "episode_id,step,state,action,reward,next_state,terminated"
    (tmp_path / "log.csv").write_text("\n".join([header, *rows]) + "\n")
    found = inspect_log(open_log(tmp_path / "log.csv"))
    assert found.neighbours == Neighbours(followed=2)


def test_states_of_several_columns_contradict_in_any_of_them():
    table = walk([1, 2, 3]).append_column("ward", pa.array(["a", "b", "c"] * 2))
    table = table.append_column("next_state", pa.array([2, 3, None] * 2))
    table = table.append_column("next_ward", pa.array(["b", "b", None] * 2))
    parts = {"state": ["state", "ward"], "next_state": ["next_state", "next_ward"]}
    found = inspect_log(open_log(table, columns=parts))
    assert found.neighbours == Neighbours(followed=4, contradicted=2)


@pytest.mark.parametrize(
    ("step", "gapped"),
    [
        ([0, 1, 2], 0),
        ([0, 2, 3], 2),
        ([5, 6, 8], 2),
        ([0, 10, 20], 0),
        ([0, 20, 30], 2),
        ([0.0, 1.0, 3.0], 2),
        ([0.0, 0.5, 3.0], 0),
        (["2020-01-01 10:00", "2020-01-01 10:01", "2020-01-01 10:05"], 0),
        ([0, 2**53, 2**53 + 2], 0),
    ],
)
def test_gaps_in_whole_number_steps_are_told(step, gapped, tmp_path):
    for table in as_kinds(walk(["a", "b", "c"], step=step), tmp_path):
        if isinstance(step[0], str) and table.engine.kinds["step"] != "text":
            continue
        found = suspicion(inspect_log(table), "Gaps in step")
        assert found == (f"{gapped} of 2 episodes leave out whole-number steps" if gapped else None)


def timed(tmp_path, lengths=(3, 3, 3), same_states=True):
    rows = ["visit,t,ward,drug,gain"]
    for visit, length in enumerate(lengths):
        for t in range(length):
            ward = "n" if same_states else f"n{t}"
            rows.append(f"{visit},{t},{ward},{'xy'[(visit + t) % 2]},{t}")
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


NAMES = {"episode_id": "visit", "step": "t", "state": "ward", "action": "drug", "reward": "gain"}


def clocks(path, **names):
    table = spibb.open_log(path, columns=NAMES | names)
    found = inspect_log(table, rows=table.log()).suspicions
    return [f.remedy for f in found if f.what == "Episodes of one length"]


def test_episodes_of_one_length_are_named_with_the_state_to_use(tmp_path):
    (remedy,) = clocks(timed(tmp_path))
    assert "add it to the state (--state ward,t)" in remedy
    assert clocks(timed(tmp_path), state=["ward", "t"]) == []
    assert clocks(timed(tmp_path, (3, 3, 2))) == []
    assert clocks(timed(tmp_path, (1, 1, 1))) == []
    assert clocks(timed(tmp_path, same_states=False)) == []


def test_the_step_may_be_a_part_of_the_state(tmp_path):
    path = timed(tmp_path)
    log = spibb.read_log(path, columns=NAMES | {"state": ["ward", "t"]})
    assert log.states.labels == (("n", 0), ("n", 1), ("n", 2))
    assert log.state.tolist() == [0, 1, 2] * 3
    assert log.next_state.tolist() == [1, 2, -1] * 3
    counts = spibb.count_log(path, columns=NAMES | {"state": ["ward", "t"]})
    assert counts.pairs.sum() == 9 and counts.states == log.states
    frame = pyarrow.csv.read_csv(path)
    same = spibb.Log.from_frame(frame, columns=NAMES | {"state": ["ward", "t"]})
    assert same.states == log.states and (same.state == log.state).all()
    with pytest.raises(spibb.InputError, match="'t' is mapped twice, to step and action"):
        spibb.read_log(path, columns=NAMES | {"action": ["drug", "t"]})
