"""A policy as one file: it comes back as it was, or not at all."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spibb
from spibb import Bins, Policy, Vocabulary, load_policy, read_policy
from spibb.errors import InputError
from spibb.ingest.loaded import LoadedPolicy

AGES = Bins((18, 40.5))
LABELS = [("o'brien", AGES.labels[0], 3), ('"\n;--', AGES.labels[2], -1), ("Ω", AGES.labels[1], 0)]


def example(seed=0):
    rng = np.random.default_rng(seed)
    states = Vocabulary(LABELS, ("ward", "age", "n"))
    actions = Vocabulary([("a", True), ("b", False)], ("drug", "more"))
    return LoadedPolicy(
        Policy(rng.dirichlet([0.3, 0.3], 3), states, actions), {"age": AGES},
        {"command": "spibb improve", "versions": [["spibb", "0.1.0"]]}, np.array([3.0, 0, 9]),
        {"grade": "not supported", "headline": "Not supported: keep the current policy"}, 0.9,
    )  # fmt: skip


def test_all_of_it_comes_back(tmp_path):
    loaded = example()
    loaded.save(tmp_path / "p.spibb")
    back = load_policy(tmp_path / "p.spibb")
    assert back.policy.states == loaded.policy.states
    assert back.policy.actions == loaded.policy.actions
    assert back.policy.states.names == ("ward", "age", "n")
    np.testing.assert_array_equal(back.policy.probs, loaded.policy.probs)
    np.testing.assert_array_equal(back.visits, loaded.visits)
    assert (back.bins, back.verdict, back.discount) == (loaded.bins, loaded.verdict, 0.9)
    assert back.origin == loaded.origin
    assert back.sha256 == loaded.sha256 == json.loads((tmp_path / "p.spibb").read_text())["sha256"]
    assert back.row({"ward": "Ω", "age": 30, "n": "0"}) == loaded.policy.row(LABELS[2])
    assert read_policy(tmp_path / "p.spibb").row(LABELS[0]) == loaded.policy.row(LABELS[0])
    assert "keep the current policy" in back.doubt


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.text(st.characters(exclude_categories=["Cs"]))), min_size=1,
                max_size=5, unique=True), st.integers(0, 99))  # fmt: skip
def test_any_text_is_a_label(tmp_path_factory, labels, seed):
    path = tmp_path_factory.mktemp("any") / "p.spibb"
    probs = np.random.default_rng(seed).dirichlet(np.ones(2), len(labels))
    made = LoadedPolicy(Policy(probs, labels, ["x", "y"]), {}, {})
    made.save(path)
    back = load_policy(path)
    assert back.policy.states == made.policy.states
    np.testing.assert_array_equal(back.policy.probs, made.policy.probs)


def rehashed(content):
    """The file with a hash that fits: as a careful forger would write it."""
    from spibb.ingest.whole_policy import _CONTENT, _hash

    return content | {"sha256": _hash({name: content.get(name) for name in _CONTENT})}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probabilities": [[[0, 1.0]]]}, "has 1 rows for 3 states"),
        ({"probabilities": [[[2, 1.0]], [[0, 1.0]], [[0, 1.0]]]}, r"probabilities\[0\] names a wr"),
        ({"probabilities": [[[0, 0.5], [0, 0.5]]] * 3}, r"probabilities\[0\] names a wrong"),
        ({"probabilities": [[[0, 0.5]]] * 3}, "sums to 0.5"),
        ({"probabilities": [[]] * 3}, r"probabilities\[0\] is \[\]"),
        ({"probabilities": [[[0, 1.5]]] * 3}, r"probabilities\[0\]\[0\]\[1\] is 1.5"),
        ({"visits": [1.0]}, "visits of 1 states, expected 3"),
        ({"visits": [-1.0, 0, 0]}, r"visits\[0\] is -1"),
        ({"bins": {"age": [18.0]}}, "label '.*', which is not one of its bins"),
        ({"bins": {"age": [2.0, 1.0]}}, "not increasing"),
        ({"bins": {"height": [2.0]}}, "bins are given for 'height', not a column of the policy"),
        ({"discount": 1.0}, "discount is 1.0"),
        ({"verdict": {"grade": 3, "headline": "x"}}, "verdict.grade is 3"),
        ({"state": {"columns": ["a"], "labels": [["x", "y"]]}}, "expected 1 parts"),
        ({"state": {"columns": ["a"], "labels": [1.5, 2, 3]}}, r"labels\[0\] is 1.5"),
        ({"state": {"columns": ["a"], "labels": ["x", "x", "y"]}}, "'x' is listed 2 times"),
        ({"state": {"columns": ["a"], "labels": ["x", 1, "y"]}}, "mixes labels"),
        ({"more": 1}, "unknown entry 'more'"),
    ],
)
def test_a_file_that_is_wrong_inside_is_refused_even_with_a_fitting_hash(change, message, tmp_path):
    path = tmp_path / "p.spibb"
    example().save(path)
    path.write_text(json.dumps(rehashed(json.loads(path.read_text()) | change)))
    with pytest.raises(InputError, match=message):
        load_policy(path)


def same_values(one, other):
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return False


def test_any_changed_value_is_noticed(tmp_path):
    path = tmp_path / "p.spibb"
    example().save(path)
    text = path.read_text()
    rng, refused = np.random.default_rng(0), 0
    places = [i for i, c in enumerate(text) if c.isalnum()]
    for place in rng.choice(places, 150, replace=False):
        other = "1" if text[place] != "1" else "2"
        path.write_text(text[:place] + other + text[place + 1 :])
        if same_values(path.read_text(), text):
            continue  # the 17th digit of a number may not matter
        with pytest.raises(InputError):
            load_policy(path)
        refused += 1
    assert refused > 140
    path.write_text(text[: len(text) // 2])
    with pytest.raises(InputError, match="is not JSON"):
        load_policy(path)


def test_every_command_takes_it(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from spibb.cli.app import app

    monkeypatch.chdir(tmp_path)
    run = CliRunner()
    for command in (
        "demo --out demo --episodes 60",
        "improve demo/log.csv --baseline demo/baseline.csv --out improved --discount 0.8",
    ):
        assert run.invoke(app, command.split()).exit_code == 0
    spibb.load_policy("improved").save("p.spibb")
    for command in (
        "act p.spibb --state 3",
        "compare p.spibb improved --log demo/log.csv",
        "evaluate demo/log.csv --policy p.spibb --behaviour demo/baseline.csv",
        "improve demo/log.csv --baseline p.spibb --out again",
    ):
        done = run.invoke(app, command.split())
        assert done.exit_code == 0, done.output
        if command.startswith(("evaluate", "compare")):
            assert "Discount 0.8, as stored with p.spibb" in done.output
    assert "0 of" in run.invoke(app, ["compare", "p.spibb", "improved"]).output
