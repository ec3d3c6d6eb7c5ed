"""`spibb act --cases`: all rows or none, as Python decides them, whatever the file."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from spibb import Bins, Policy, Vocabulary, load_policy
from spibb.cli.app import app
from spibb.decisions import settled
from spibb.errors import InputError
from spibb.ingest.loaded import LoadedPolicy
from spibb.serving.batch import decide_file
from spibb.sql.reading import read_table
from spibb.sql.sources import Source
from spibb.tables import write_table

AGES = Bins((18, 40))
WARDS = ["007", "o'brien", 'a "b", c', "=1+1", "Ω\nx", ""]


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    states = [(ward, age) for ward in WARDS for age in AGES.labels]
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(3), len(states))
    actions = Vocabulary([("x", 1), ("x", 2), ("y, z", 1)], ("drug", "dose"))
    policy = Policy(probs, Vocabulary(states, ("ward", "age")), actions)
    verdict = {"grade": "not supported", "headline": "Not supported: keep it"}
    LoadedPolicy(policy, {"age": AGES}, {}, verdict=verdict).save("p.spibb")
    n = 500
    cases = pa.table({
        "id": [f"{i:04d}" for i in range(n)], "age": rng.uniform(0, 90, n).round(3),
        "ward": [WARDS[i] for i in rng.integers(0, len(WARDS), n)], "note": [None, ""] * (n // 2),
    })  # fmt: skip
    write_table(cases, tmp_path / "cases.csv")
    write_table(cases, tmp_path / "cases.parquet")
    return tmp_path


def run(command, code=0):
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == code, (done.output, done.exception)
    return done


@pytest.mark.parametrize("options", ["", "--seed 7", "--deterministic"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_is_decided_as_python_decides_its_rows(home, ending, options):
    run(f"act p.spibb --cases cases.{ending} --out d.parquet {options}")
    cases, found = read_table("cases.parquet"), read_table("d.parquet")
    expected = load_policy("p.spibb").act_many(
        cases, seed=7 if "7" in options else 0, deterministic="det" in options
    )
    assert found.num_rows == cases.num_rows
    assert found.column_names[-3:] == ["decision_drug", "decision_dose", "decision_probability"]
    decided = list(zip(*(found.column(f"decision_{n}").to_pylist() for n in ("drug", "dose"))))
    assert decided == expected.labels
    np.testing.assert_array_equal(
        found.column("decision_probability"), settled(expected.probability)
    )
    assert found.column("id").to_pylist() == cases.column("id").to_pylist()
    assert found.column("ward").to_pylist() == cases.column("ward").to_pylist()
    assert found.column("note").to_pylist() == cases.column("note").to_pylist()


def test_a_csv_file_keeps_its_cells(home):
    run("act p.spibb --cases cases.csv --out d.csv")
    before = pd.read_csv("cases.csv", dtype=str, keep_default_na=False)
    after = pd.read_csv("d.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(after[before.columns], before)


def test_pieces_of_a_file_are_decided_as_the_whole(home):
    cases = read_table("cases.parquet")
    whole = load_policy("p.spibb").act_many(cases, seed=3).codes
    loaded = load_policy("p.spibb")
    parts = [loaded.act_many(cases[i : i + 70], seed=3, first_row=i) for i in range(0, 500, 70)]
    np.testing.assert_array_equal(np.concatenate([part.codes for part in parts]), whole)


def test_one_unknown_state_stops_all_or_is_left_empty(home):
    frame = pd.read_csv("cases.csv", dtype=str, keep_default_na=False)
    frame.loc[123, "ward"] = "nowhere"
    frame.to_csv("cases.csv", index=False, quoting=csv.QUOTE_ALL)
    done = run("act p.spibb --cases cases.csv --out d.csv", code=1)
    assert "a case is in a state that is not in the policy: row 123" in str(done.exception)
    assert not (home / "d.csv").exists()
    done = run("act p.spibb --cases cases.csv --out d.csv --unseen empty")
    assert "499 of 500 cases decided; 1 left empty" in " ".join(done.output.split())
    found = pd.read_csv("d.csv", dtype=str, keep_default_na=False)
    assert found.index[found["decision_drug"] == ""].tolist() == [123]
    assert found.loc[123, "decision_probability"] == ""


def test_a_policy_that_was_not_supported_says_so_on_stderr(home):
    for command in ("--cases cases.csv --out d.csv", "--state ward=007 --state age=3"):
        done = run(f"act p.spibb {command}")
        assert done.stderr == "spibb: the verdict on this policy was: Not supported: keep it\n"
        assert "verdict" not in done.stdout


def test_the_folder_of_improve_knows_its_verdict(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("demo --out demo --episodes 20")
    run("improve demo/log.csv --baseline demo/baseline.csv --out improved --n-wedge inf")
    done = run("act improved --state 3")
    assert done.stderr.startswith("spibb: the verdict on this policy was: Not supported")
    assert done.stderr.count("\n") == 1


def test_cases_in_other_encodings_and_with_other_separators(home):
    text = "ward;age\nΩ;3\n007;50\n".replace("Ω", "o'brien")
    (home / "other.csv").write_bytes(text.replace("007", "=1+1").encode("utf-16"))
    run("act p.spibb --cases other.csv --out d.csv --encoding utf-16 --separator ;")
    assert pd.read_csv("d.csv")["ward"].tolist() == ["o'brien", "=1+1"]


def test_cases_with_decimal_commas(tmp_path):
    """They are read as logs are, stay as they are written, and a point is not guessed at."""
    policy = LoadedPolicy(
        Policy(np.eye(2), ["(-inf, 40)", "[40, inf)"], ["x", "y"]).named(("age",), ("drug",)),
        {"age": Bins((40.0,))}, {},
    )  # fmt: skip
    cases, out = tmp_path / "cases.csv", tmp_path / "out.csv"
    cases.write_text("age;name\n39,5;Jörg\n40,5;Ann\n", encoding="latin-1")
    with pytest.raises(InputError, match=r"39,5.*read decimal commas with --decimal ,"):
        decide_file(policy, Source(cases, encoding="latin-1"), out, deterministic=True)
    decide_file(policy, Source(cases, encoding="latin-1", decimal=","), out, deterministic=True)
    assert out.read_text().splitlines() == [
        "age,name,decision,decision_probability", '"39,5",Jörg,x,1', '"40,5",Ann,y,1'
    ]  # fmt: skip
    cases.write_text("age;name\n1.234;Jörg\n")
    with pytest.raises(InputError, match=r"age is '1\.234', in row 0 .* has no point"):
        decide_file(policy, Source(cases, decimal=","), tmp_path / "no.csv")
    assert not (tmp_path / "no.csv").exists()
    cases.write_text("name\nJörg\n")
    with pytest.raises(InputError, match="no column 'age'"):
        decide_file(policy, Source(cases, decimal=",", separator=";"), tmp_path / "no.csv")
