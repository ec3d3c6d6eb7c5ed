"""A policy decides alike in memory, from every file and in SQL, whatever order its actions have."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spibb
from spibb import Log, Policy, Vocabulary
from spibb.decisions import likeliest, uniforms
from spibb.ingest.loaded import LoadedPolicy
from spibb.serving.rules import rules_of
from spibb.serving.sql_case import sql_of
from spibb.serving.tree import tree_text

ROWS = [[0.5, 0.5, 0.0], [0.2, 0.4, 0.4], [0.0, 0.5, 0.5]]
STATES = [2, 0, 1]
ACTIONS = {
    "text": ["wait", "treat", "refer"],
    "numbers": [10, 9, -1],
    "tuples": [("b", 2), ("b", -1), ("a", 5)],
    "flags": [True, False],
}
CASES = STATES * 40


def policy_of(kind):
    actions = ACTIONS[kind]
    names = ("drug", "dose") if kind == "tuples" else ("action",)
    rows = np.array(ROWS) if len(actions) == 3 else [[0.5, 0.5], [0.4, 0.6], [0.0, 1.0]]
    return Policy(rows, STATES, Vocabulary(actions, names))


def decisions(given):
    drawn, likely = given.act_many(CASES, seed=3), given.act_many(STATES, deterministic=True)
    return drawn.labels, drawn.probability.tolist(), likely.labels


@pytest.mark.parametrize("kind", ACTIONS)
@pytest.mark.parametrize("ending", ["csv", "parquet", "spibb"])
def test_a_policy_read_back_decides_as_before(kind, ending, tmp_path):
    policy, file = policy_of(kind), tmp_path / f"policy.{ending}"
    whole = LoadedPolicy(policy, {}, {})
    (whole if ending == "spibb" else policy).save(file)
    loaded = spibb.load_policy(file, columns={"action": policy.actions.names})
    if ending != "spibb":  # which keeps the order
        assert loaded.policy.actions.labels == tuple(sorted(policy.actions.labels))
    assert decisions(loaded) == decisions(policy)
    for state in STATES:
        rngs = [np.random.default_rng(1) for _ in range(2)]
        drawn = [[p.sample(state, rng=rng) for _ in range(20)]
                 for p, rng in zip((policy, loaded.policy), rngs)]  # fmt: skip
        assert drawn[0] == drawn[1]
        best = policy.act_many([state], deterministic=True).labels[0]
        assert loaded.best(state) == best == whole.best(state)


def test_a_saved_result_decides_as_before(tmp_path):
    log = Log.from_arrays(
        ["m", "m", "s", "s"], ["wait", "treat"] * 2, [1, 1, 0, 0], terminated=[True] * 4,
        state_labels=["s", "m"], action_labels=["wait", "treat"],
    )  # fmt: skip
    result = spibb.improve(log, Policy([[0.5, 0.5]] * 2, ["s", "m"], ["wait", "treat"]))
    result.save(tmp_path / "out")
    cases, loaded = ["m", "s"] * 10, spibb.load_policy(tmp_path / "out")
    for options in ({"seed": 1}, {"deterministic": True}):
        mine, theirs = (p.act_many(cases, **options) for p in (result.policy, loaded))
        assert mine.labels == theirs.labels
    assert result.policy.act_many(["m"], deterministic=True).labels == ["treat"]


@pytest.mark.parametrize("kind", ["text", "numbers", "flags"])
@pytest.mark.parametrize("deterministic", [True, False])
def test_sql_takes_the_actions_in_the_same_order(kind, deterministic):
    policy = policy_of(kind)
    sql = sql_of(LoadedPolicy(policy, {}, {}), uniform="u", deterministic=deterministic)
    cases = pa.table({"state": CASES, "u": uniforms(3, 0, len(CASES))})  # noqa: F841 (SQL reads it)
    found = duckdb.sql(sql).fetchall()
    expected = policy.act_many(CASES, seed=3, deterministic=deterministic).labels
    assert [row[-1] for row in found] == expected


def test_rules_and_trees_do_not_depend_on_the_order_of_the_actions():
    one = LoadedPolicy(policy_of("text"), {}, {})
    sorted_actions = Vocabulary(sorted(ACTIONS["text"]), ("action",))
    other = LoadedPolicy(one.policy.aligned(one.policy.states, sorted_actions), {}, {})
    for deterministic in (True, False):
        played = [
            [[(p.policy.actions[a], c) for a, c in rule.chances]
             for rule in rules_of(p, deterministic=deterministic)] for p in (one, other)
        ]  # fmt: skip
        assert played[0] == played[1]
    trees = [tree_text(p, depth=depth).splitlines()[2:] for p in (one, other) for depth in (1, 4)]
    assert trees[:2] == trees[2:]


@settings(max_examples=100, deadline=None)
@given(st.permutations(["a", "b", "c", "d"]), st.integers(0, 10**6))
def test_the_order_of_the_actions_changes_no_decision(actions, seed):
    rows = np.random.default_rng(seed).integers(0, 3, (4, 4)) + np.eye(4)
    policy = Policy(rows / rows.sum(axis=1, keepdims=True), range(4), list("abcd"))
    other = policy.aligned(policy.states, Vocabulary(actions, ("action",)))
    cases = list(range(4)) * 10
    for options in ({"seed": seed}, {"deterministic": True}):
        mine, theirs = (p.act_many(cases, **options) for p in (policy, other))
        assert mine.labels == theirs.labels
        np.testing.assert_array_equal(mine.probability, theirs.probability)


def test_labels_without_an_order_stay_in_theirs():
    strange = Vocabulary([frozenset({1}), frozenset({2})])
    assert strange.in_order.tolist() == [0, 1]
    mixed = Vocabulary([complex, str])  # types cannot be compared
    assert likeliest(np.array([[0.5, 0.5]]), mixed).tolist() == [0]
