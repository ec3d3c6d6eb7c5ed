"""Rules and trees describe the policy's states, each once; fidelity is what it says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spibb import Bins, Policy, Vocabulary
from spibb.errors import InputError
from spibb.ingest.loaded import LoadedPolicy
from spibb.serving.prose import prose_of
from spibb.serving.rules import columns_of, rules_of, runs
from spibb.serving.tree import _impurity, tree_of, tree_text

AGES = Bins((18, 40.5, 65))
STATES = [(w, a, n) for w in ("north", "south", "the east") for a in AGES.labels for n in (1, 2, 5)]


def example(seed=0, kinds=3, drop=5, visits=True):
    rng = np.random.default_rng(seed)
    kept = [STATES[i] for i in rng.permutation(len(STATES))[: len(STATES) - drop]]
    rows = rng.dirichlet(np.full(3, 0.3), kinds)[rng.integers(0, kinds, len(kept))]
    policy = Policy(rows, Vocabulary(kept, ("ward", "age", "n")), ["go", "stay", "no way"])
    counted = rng.integers(0, 50, len(kept)).astype(float) if visits else None
    return LoadedPolicy(policy, {"age": AGES}, {}, counted)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(0, 30), st.booleans())
def test_rules_describe_every_state_once_and_no_other(seed, kinds, drop, deterministic):
    loaded = example(seed, kinds, drop)
    columns, rules = columns_of(loaded), rules_of(loaded, deterministic=deterministic)
    described = {}
    for rule in rules:
        for codes in itertools.product(*rule.allowed):
            label = tuple(column.values[code] for column, code in zip(columns, codes))
            assert label not in described
            described[label] = dict(rule.chances)
        states = {loaded.policy.states[s] for s in rule.states}
        assert len(states) == np.prod([len(part) for part in rule.allowed])
    assert set(described) == set(loaded.policy.states.labels)
    for label, chances in described.items():
        row = loaded.policy.probs[loaded.policy.states.code(label)]
        if deterministic:
            assert chances == {int(np.argmax(row)): 1.0}
        else:
            assert chances == pytest.approx({a: p for a, p in enumerate(row) if p > 1e-12})


def test_decisions_that_differ_by_rounding_are_joined():
    rows = [[1 - 2.0**-53, 2.0**-53], [1.0, 0.0], [0.1 + 0.2, 0.7], [0.3, 1 - 0.3]]
    loaded = LoadedPolicy(Policy(rows, list("abcd"), ["go", "stay"]), {}, {})
    found = {rule.states: rule.chances for rule in rules_of(loaded, deterministic=False)}
    assert found == {(0, 1): ((0, 1.0),), (2, 3): ((0, 0.3), (1, 0.7))}
    nearly = LoadedPolicy(Policy([[0.3, 0.1 + 0.2, 0.4 - 2.0**-54]]), {}, {})
    (rule,) = rules_of(nearly, deterministic=True)
    assert rule.chances[0][0] == 2


def test_equal_decisions_are_joined():
    loaded = example(kinds=1, drop=0)
    (rule,) = rules_of(loaded, deterministic=True)
    assert len(rule.states) == len(STATES)
    text = prose_of(loaded, deterministic=True)
    assert "(ward is north, south or 'the east') and age is any number and (n is 1, 2 or 5)" in text


def test_runs_of_bins_are_written_as_one_interval():
    assert runs([0, 1, 2, 5, 7, 8]) == [(0, 2), (5, 5), (7, 8)]
    labels = AGES.labels
    for actions, expected in (
        ([0, 0, 1, 1], ["age is below 40.5", "age is at least 40.5"]),
        ([0, 1, 1, 0], ["age is below 18, or at least 65", "age is at least 18 and below 65"]),
    ):
        policy = Policy(np.eye(2)[actions], Vocabulary(labels, ("age",)), ["a", "b"])
        text = prose_of(LoadedPolicy(policy, {"age": AGES}, {}))
        for part in expected:
            assert f"If {part} (2 states):" in text


def test_rules_say_shares_verdict_and_what_is_done_elsewhere():
    loaded = LoadedPolicy(
        Policy([[0.25, 0.75], [1, 0]], ["3", "x y"], ["go", "stay"]), {}, {"command": "spibb x"},
        np.array([30.0, 10.0]), {"grade": "supported", "headline": "Supported"},
    )  # fmt: skip
    text = prose_of(loaded)
    assert "1. If state is '3' (75 % of the log's visits):\n   stay 75 %, go 25 %\n" in text
    assert "2. If state is 'x y' (25 % of the log's visits):\n   go\n" in text
    assert "Verdict: Supported." in text and "Made by: spibb x" in text
    assert text.endswith(
        "In any other state: the log never shows it, so follow the current policy.\n"
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 6))
def test_fidelity_is_the_share_of_visits_with_the_same_decision(seed, depth):
    loaded = example(seed)
    tree = tree_of(loaded, depth=depth)
    wanted = loaded.policy.probs.argmax(axis=1)
    agreeing = sum(v for v, a, b in zip(loaded.visits, tree.decided, wanted) if a == b)
    assert tree.fidelity == pytest.approx(agreeing / loaded.visits.sum())
    most = max(loaded.visits[wanted == a].sum() for a in range(3)) / loaded.visits.sum()
    assert tree.fidelity >= most - 1e-12


def test_a_deep_tree_decides_as_the_policy_everywhere():
    for seed in range(20):
        loaded = example(seed, visits=False)
        tree = tree_of(loaded, depth=20)
        np.testing.assert_array_equal(tree.decided, loaded.policy.probs.argmax(axis=1))
        assert tree.fidelity == 1


def test_a_tree_finds_the_rule_that_made_the_policy():
    old = [AGES.labels.index(age) >= 2 for _, age, _ in STATES]
    south = [ward == "south" for ward, _, _ in STATES]
    actions = np.where(old, np.where(south, 1, 2), 0)
    policy = Policy(np.eye(3)[actions], Vocabulary(STATES, ("ward", "age", "n")), ["a", "b", "c"])
    text = tree_text(LoadedPolicy(policy, {"age": AGES}, {}, np.ones(len(STATES))), depth=2)
    assert "in 100 % of the log's visits" in text
    assert text.split("\n\n")[1] == (
        "if age is below 40.5:\n    a\nelse (age is at least 40.5):\n    if ward is south:\n"
        "        b\n    else (ward is not south):\n        c\n"
    )


def test_the_first_split_is_the_best_one_by_brute_force():
    for seed in range(15):
        loaded = example(seed)
        tree = tree_of(loaded, depth=1)
        wanted, weights = loaded.policy.probs.argmax(axis=1), loaded.visits
        left = []
        for position, column in enumerate(tree.columns):
            for value in range(len(column.values)):
                codes = np.array([column.values.index(s[position])
                                  for s in loaded.policy.states.labels])  # fmt: skip
                sides = codes <= value if position > 0 else codes == value
                left.append(sum(
                    _impurity(np.bincount(wanted[side], weights[side], 3))
                    for side in (sides, ~sides)
                ))  # fmt: skip
        if tree.root.split is None:
            continue
        codes = np.array([tree.columns[tree.root.split.column].values.index(
            s[tree.root.split.column]) for s in loaded.policy.states.labels])  # fmt: skip
        holds = (codes <= tree.root.split.code if tree.root.split.ordered
                 else codes == tree.root.split.code)  # fmt: skip
        found = sum(_impurity(np.bincount(wanted[s], weights[s], 3)) for s in (holds, ~holds))
        assert found == pytest.approx(min(left))


def test_a_state_that_is_one_name_has_no_tree():
    loaded = LoadedPolicy(Policy(np.eye(2), ["x", "y"], ["a", "b"]), {}, {})
    with pytest.raises(InputError, match="a tree asks about columns: export rules instead"):
        tree_of(loaded)
    with pytest.raises(InputError, match="depth is 0"):
        tree_of(example(), depth=0)


def test_missing_values_that_are_a_level_are_named_so():
    cut = Bins((40,))
    labels = Vocabulary([*cut.labels, "(missing)"], ("age",))
    for actions, rule, question in (
        ([0, 0, 1], "If age is missing:\n   b", "if age is there:\n    a\nelse (age is missing)"),
        ([0, 1, 1], "If age is at least 40, or missing (2 states):\n   b",
         "if age is below 40:\n    a\nelse (age is at least 40, or missing)"),
    ):  # fmt: skip
        loaded = LoadedPolicy(Policy(np.eye(2)[actions], labels, ["a", "b"]), {"age": cut}, {})
        assert rule in prose_of(loaded)
        assert question in tree_text(loaded)
        assert loaded.act_many({"age": [1.0, 50.0, None]}).labels == ["ab"[i] for i in actions]
        assert loaded.act_many({"age": ["1", "50", "n/a"]}).labels == ["ab"[i] for i in actions]
