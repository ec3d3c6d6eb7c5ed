"""Logs that several tests read: one of two-column states in every form, and a data set."""

from __future__ import annotations

import json
from types import SimpleNamespace

import gymnasium
import numpy as np
import pyarrow as pa
import pyarrow.parquet
from parts import needed

from spibb import Counts, PiBSpibb, Problem, estimate_baseline
from spibb.tables import write_table

COLUMNS = {"state": ["ward", "severity"], "action": "drug"}


def hospital(n_episodes=120, seed=5):
    """Episodes of a walk over wards and severities; rewards in quarters, so that sums are exact."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(n_episodes):
        state = (f"ward {rng.integers(3)}", int(rng.integers(4)))
        for step in range(1, 12):
            drug = ["none", 'it\'s "B"', "c,d"][rng.integers(3)]
            following = (f"ward {rng.integers(3)}", min(3, max(0, state[1] + rng.integers(-1, 2))))
            end = rng.random()
            terminated, truncated = end < 0.1, end > 0.95
            rows.append([episode, step, *state, drug, rng.integers(-4, 5) / 4, *following,
                         bool(terminated), bool(truncated)])  # fmt: skip
            state = following
            if terminated or truncated:
                break
        rows[-1][-1] = not rows[-1][-2]
    names = ["episode_id", "step", "ward", "severity", "drug", "reward", "next_ward",
             "next_severity", "terminated", "truncated"]  # fmt: skip
    order = rng.permutation(len(rows))
    columns = [[rows[i][k] for i in order] for k in range(len(names))]
    columns[3] = [int(value) for value in columns[3]]
    columns[7] = [int(value) for value in columns[7]]
    return pa.table(columns, names=names)


def write_jsonl(table, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()), "utf-8")
    return path


def write(table, path):
    write_table(table, path)
    return path


def write_hive(table, folder, ending=".parquet"):
    """A folder per ward and a file per half of its rows."""
    for ward in sorted(set(table.column("ward").to_pylist())):
        rows = [i for i, name in enumerate(table.column("ward").to_pylist()) if name == ward]
        inside = folder / f"ward={ward}"
        inside.mkdir(parents=True)
        for part in (0, 1):
            chunk = table.take(rows[part::2]).drop_columns(["ward"])
            write(chunk, inside / f"{part}{ending}")
    return folder


def minari(table):
    """The log as an object with Minari's interface."""
    episodes = {}
    for row in sorted(table.to_pylist(), key=lambda row: (row["episode_id"], row["step"])):
        episodes.setdefault(row["episode_id"], []).append(row)
    return SimpleNamespace(
        iterate_episodes=lambda: [
            SimpleNamespace(
                observations=[(r["ward"], r["severity"]) for r in rows]
                + [(rows[-1]["next_ward"], rows[-1]["next_severity"])],
                actions=np.array([r["drug"] for r in rows]),
                rewards=np.array([r["reward"] for r in rows]),
                terminations=np.array([r["terminated"] for r in rows]),
                truncations=np.array([r["truncated"] for r in rows]),
            )
            for rows in episodes.values()
        ]
    )


def assert_same_counts(one: Counts, other: Counts) -> None:
    assert list(one.states.labels) == list(other.states.labels)
    assert list(one.actions.labels) == list(other.actions.labels)
    for name in ("indptr", "successors", "n", "reward_sum", "reward_sq", "starts"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.reward_range == other.reward_range


def assert_same_counts_and_policy(one: Counts, other: Counts) -> None:
    assert_same_counts(one, other)
    ours, theirs = (
        PiBSpibb(5).improve(Problem.from_counts(c, estimate_baseline(c), discount=0.9))
        for c in (one, other)
    )
    np.testing.assert_array_equal(ours.policy.probs, theirs.policy.probs)


def three_lakes(name):
    """Three episodes of FrozenLake as a data set of Minari, in its folder."""
    minari = needed("minari")
    env = minari.DataCollector(gymnasium.make("FrozenLake-v1"))
    rng = np.random.default_rng(0)
    for seed in range(3):
        env.reset(seed=seed)
        done = False
        while not done:
            *_, terminated, truncated, _ = env.step(int(rng.integers(4)))
            done = terminated or truncated
    dataset = env.create_dataset(
        name, algorithm_name="random", code_permalink="", author="", author_email=""
    )
    env.close()
    return dataset
