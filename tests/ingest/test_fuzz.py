"""Rows and counts of a log agree: on 300 damaged files, and on sound logs of every shape."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from fuzz_logs import differences, outcome, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spibb import Counts, Log, open_log
from spibb.tables import write_table


@pytest.mark.slow
def test_damaged_logs_are_read_alike_or_refused_alike():
    found = list(differences(300, seed=13))
    assert not found, "\n\n".join(found[:3])


labels = st.one_of(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), min_size=1,
                     max_size=4), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4, unique=True),
    st.lists(st.sampled_from(["1", "2", "10", "01", "1.0", "x", "1e3", "-0", "+1"]), min_size=1,
             max_size=4, unique=True),
)  # fmt: skip


@st.composite
def logs(draw):
    """Columns of a sound log, rows in any order, with or without successors."""
    states, actions = draw(labels), draw(labels)
    rows = []
    for episode in range(draw(st.integers(1, 4))):
        walk = draw(st.lists(st.sampled_from(states), min_size=2, max_size=5))
        ended = draw(st.booleans())
        for t, (state, following) in enumerate(pairwise(walk)):
            last = t == len(walk) - 2
            rows.append((f"e{episode}", t, state, draw(st.sampled_from(actions)),
                         draw(st.integers(-8, 8)) / 4, following, last and ended,
                         last and not ended))  # fmt: skip
    rows = draw(st.permutations(rows))
    names = ["episode_id", "step", "state", "action", "reward", "next_state", "terminated",
             "truncated"]  # fmt: skip
    table = dict(zip(names, map(list, zip(*rows))))
    if draw(st.booleans()):
        del table["next_state"]
    return table


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(table=logs())
def test_sound_logs_give_the_same_counts_in_every_way(table, kind, tmp_path):
    path = tmp_path / f"log.{kind}"
    if kind == "jsonl":
        lines = [json.dumps(dict(zip(table, row))) for row in zip(*table.values())]
        path.write_text("\n".join(lines) + "\n", "utf-8")
    else:
        write_table(pa.table(table), path)
    rows = outcome(lambda: Counts.from_log(open_log(path).log()))
    assert not isinstance(rows, str), rows
    assert same(outcome(lambda: open_log(path).counts()), rows)
    if "next_state" in table:
        assert same(outcome(lambda: open_log(path)._in_any_order()), rows)
    if kind == "parquet":
        assert same(outcome(lambda: Counts.from_log(Log.from_frame(pa.table(table)))), rows)
        arrays = Log.from_arrays(
            table["state"], table["action"], table["reward"], table.get("next_state"),
            table["terminated"], table["truncated"], episode_id=table["episode_id"],
            step=np.array(table["step"]),
        )  # fmt: skip
        assert same(outcome(lambda: Counts.from_log(arrays)), rows)
