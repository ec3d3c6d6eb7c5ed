"""A first look at a log, and what it finds suspicious."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from logs import COLUMNS, hospital

from spibb import Counts, Log, inspect_log, open_log

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
    assert (
        inspect_log(table, table.log()) == inspect_log(table) == inspect_log(table, table.counts())
    )


def test_a_sound_log_is_not_suspicious():
    found = inspect_log(log_of(state=["a", "b"] * 200, action=["x", "x", "y", "y"] * 100))
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
