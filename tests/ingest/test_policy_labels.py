"""Labels survive policy.csv and policy.parquet, or are refused by name when they are written."""

from __future__ import annotations

import csv
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spibb import Log, Policy, read_policy
from spibb.errors import InputError
from spibb.ingest.policy_files import load_policy
from spibb.tables import EXECUTED

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from([
    "", " ", "1", "-1", "007", "0.5", "1.50", "1e5", "nan", "inf", "true", "false", "True", "NULL",
    "NA", "None", "=1+1", "+1", "-x", "@x", "'", "'=x", "''", "\t=x", '"', '""', "a,b", "a;b",
    "a\nb", "a\r\nb", "\r", "#x", "\\", "\ufeff", "日本", "\x00",
])  # fmt: skip
NUMBERS = st.integers(-(2**63), 2**63 - 1)
PARTS = (TEXT, NUMBERS, st.booleans())


@st.composite
def labels(draw):
    """Distinct labels of one kind: text, numbers, true and false, or tuples of these."""
    kinds = draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=3))
    label = kinds[0] if len(kinds) == 1 else st.tuples(*kinds)
    return draw(st.lists(label, min_size=1, max_size=6, unique=True))


def rows(policy):
    """The policy as a mapping in which 1, True and "1" differ."""
    return {
        (repr(state), repr(action)): p
        for state in policy.states.labels
        for action, p in policy.row(state).items()
    }


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("safe", [False, True])
@given(states=labels(), actions=labels(), seed=st.integers(0, 10))
@example(states=[""], actions=["", " "], seed=0)
@example(states=["1", "2"], actions=[1, 2], seed=0)
@example(states=[("1", 1, True), ("2", 2, False)], actions=["=1", "'=1"], seed=0)
@settings(max_examples=30, deadline=None)
def test_every_label_survives_a_file(ending, safe, states, actions, seed):
    probs = np.random.default_rng(seed).dirichlet(np.ones(len(actions)), size=len(states))
    policy = Policy(probs, states, actions)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"policy.{ending}"
        policy.save(path, spreadsheet_safe=safe)
        found = read_policy(path)
        assert rows(found) == rows(policy)
        assert rows(load_policy(path).policy) == rows(policy)


@given(states=labels(), actions=labels())
@settings(max_examples=40, deadline=None)
def test_no_cell_of_a_safe_file_begins_as_a_formula(states, actions):
    policy = Policy.uniform(states, actions)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.csv"
        policy.save(path, spreadsheet_safe=True)
        with path.open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
    risky = {cell for cell in cells if cell[:1] and cell[0] in EXECUTED}
    assert all(cell[1:].isdigit() for cell in risky), "only negative numbers"


def test_a_safe_file_is_marked_and_a_plain_one_keeps_its_apostrophes(tmp_path):
    policy = Policy.uniform(["=cmd()", "plain"], ["'tis", "-"])
    policy.save(tmp_path / "safe.csv", spreadsheet_safe=True)
    lines = (tmp_path / "safe.csv").read_text().splitlines()
    assert lines[0] == '"state","action","probability","spreadsheet_safe"'
    assert lines[1] == '"\'=cmd()","\'\'tis",0.5,true'
    assert read_policy(tmp_path / "safe.csv").states.labels == ("=cmd()", "plain")
    (tmp_path / "plain.csv").write_text("state,action,probability\n'=x,go,1\n")
    assert read_policy(tmp_path / "plain.csv").states.labels == ("'=x",)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("label", "shown"),
    [
        (Decimal("0.5"), r"Decimal\('0.5'\)"), (b"x", "b'x'"), (2**63, "9223372036854775808"),
        (-(2**63) - 1, "-9223372036854775809"), ("\ud800", r"'\\ud800'"),
        (frozenset({1}), "frozenset"), ("x" * 100_001, "'xxx"),
        (np.datetime64("2020-01-01"), "datetime.date"),
    ],
)  # fmt: skip
def test_a_label_that_no_file_keeps_is_refused_when_it_is_written(tmp_path, ending, label, shown):
    path = tmp_path / f"policy.{ending}"
    for policy in (Policy([[1.0]], [label], ["go"]), Policy([[1.0]], ["a"], [("go", label)])):
        with pytest.raises(InputError, match=f"^cannot write (state|action_1) {shown}") as error:
            policy.save(path)
        assert len(str(error.value)) < 400
        assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_columns_of_one_name_are_refused_when_they_are_written(tmp_path):
    from spibb import Vocabulary

    for name in ("action", "probability", "spreadsheet_safe"):
        states = Vocabulary(("a",), (name,))
        with pytest.raises(InputError, match=f"two columns named '{name}': rename"):
            Policy([[1.0]], states, ["go"]).save(tmp_path / "policy.csv")


def test_with_a_log_labels_are_read_as_they_are_written_there(tmp_path):
    (tmp_path / "policy.csv").write_text("state,action,probability\n1.50,true,1\n2.5,true,1\n")
    log = Log.from_arrays(["1.50", "2.5"], ["true"] * 2, [0, 1])
    policy = read_policy(tmp_path / "policy.csv", log)
    assert policy.states.labels == ("1.50", "2.5")
    assert policy.actions.labels == ("true",)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_quotes_decide_what_is_text(tmp_path, separator):
    lines = ['"state",action,probability', '"1",2,0.25', '"1",3,0.75']
    (tmp_path / "p.csv").write_text("\n".join(lines).replace(",", separator) + "\n")
    policy = read_policy(tmp_path / "p.csv")
    assert policy.states.labels == ("1",)
    assert policy.actions.labels == (2, 3)


def test_improve_writes_a_safe_file_on_request(tmp_path, monkeypatch, capsys):
    import sys

    from spibb.cli.app import main

    (tmp_path / "log.csv").write_text(
        "episode_id,step,state,action,reward,terminated\n0,0,=1+1,-x,1,1\n1,0,=1+1,@y,0,1\n"
    )
    monkeypatch.chdir(tmp_path)
    for flags in ([], ["--spreadsheet-safe"]):
        words = ["spibb", "improve", "log.csv", "--out", f"out{len(flags)}", *flags]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code, capsys.readouterr().err
    assert '"=1+1","-x"' in (tmp_path / "out0" / "policy.csv").read_text()
    assert '"\'=1+1","\'-x"' in (tmp_path / "out1" / "policy.csv").read_text()
    plain, safe = (load_policy(tmp_path / f"out{i}" / "policy.csv").policy for i in (0, 1))
    assert rows(plain) == rows(safe)
    assert safe.states.labels == ("=1+1",)


@pytest.mark.parametrize(
    "states",
    [
        pa.array(["a", "a", "b", "b"]), pa.array([7, 7, -3, -3]), pa.array([1, 1, 2, 2], pa.int8()),
        pa.array([True, True, False, False]), pa.array(["a", "a", "b", "b"], pa.large_string()),
        pa.array(["a", "a", "b", "b"]).dictionary_encode(),
        pa.array([2.0, 2.0, 1.0, 1.0]), pa.array([2, 2, 1, 1], pa.decimal128(3, 0)),
    ],
    ids=lambda states: str(states.type),
)  # fmt: skip
@pytest.mark.parametrize("rows", [2, 100], ids=["row groups", "one"])
def test_parquet_keeps_labels_of_every_type(tmp_path, states, rows):
    """Plain columns are read without DuckDB, all others with it."""
    probabilities = {"action": pa.array(["x", "y"] * 2), "probability": [0.25, 0.75, 1.0, 0.0]}
    table = pa.table({"state": states} | probabilities)
    pyarrow.parquet.write_table(table, tmp_path / "p.parquet", row_group_size=rows)
    found = read_policy(tmp_path / "p.parquet")
    assert sorted(found.states.labels) == sorted(set(states.to_pylist()))
    given = type(states[0].as_py())
    kind = given if given in (str, bool) else int
    assert [type(label) for label in found.states.labels] == [kind, kind]
    assert found.row(states[0].as_py()) == {"x": 0.25, "y": 0.75}
    assert found.row(states[2].as_py()) == {"x": 1.0, "y": 0.0}


def test_a_damaged_parquet_file_is_named(tmp_path):
    (tmp_path / "p.parquet").write_bytes(b"PAR1 and nothing more PAR1")
    with pytest.raises(
        InputError, match=r"cannot read .*p\.parquet.*: check that it is a complete Parquet"
    ):
        read_policy(tmp_path / "p.parquet")


def test_names_that_differ_in_case_are_refused_in_parquet_too(tmp_path):
    names = ["state", "State", "action", "probability"]
    table = pa.table([["a"], ["b"], ["x"], [1.0]], names=names)
    pyarrow.parquet.write_table(table, tmp_path / "p.parquet")
    with pytest.raises(InputError, match="twice"):
        read_policy(tmp_path / "p.parquet")
