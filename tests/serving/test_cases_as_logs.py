"""Cases are in the states that a log with the same rows has, whatever holds the rows."""

from __future__ import annotations

import csv
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from parts import needed

import spibb
from spibb import Policy, Vocabulary, load_policy
from spibb.cases import CaseEncoder
from spibb.errors import InputError
from spibb.ingest.loaded import LoadedPolicy
from spibb.ingest.policy_files import parse_case
from spibb.serving.batch import decide_file
from spibb.serving.sql_case import sql_of
from spibb.sql.reading import read_table
from spibb.sql.sources import Source
from spibb.tables import write_table

ROWS = pa.table({
    "ward": ["b", None, "a", "ü", "b", None], "grade": [1.0, 2.0, 1.0, None, 2.0, 2.0],
    "age": [3.5, None, 18.0, 40.25, 99.0, 3.5], "action": list("xyxyxy"), "reward": [0, 1] * 3,
})  # fmt: skip
STATE = ["ward", "grade", "age"]


def policy_of(source, state=STATE, bins=None, missing="as-level"):
    """The states of a log, and a policy whose actions say which state a case is in."""
    log = spibb.read_log(source, columns={"state": state}, bins=bins or {}, bandit=True,
                         missing=missing)  # fmt: skip
    names = [str(label) for label in log.states.labels]
    policy = Policy(np.eye(len(names)), log.states, names)
    return [names[code] for code in log.state], LoadedPolicy(policy, log.bins, {})


def text_file(path, quoting, separator=",", decimal=".", encoding="utf-8"):
    frame = ROWS.to_pandas()
    frame.to_csv(path, index=False, sep=separator, decimal=decimal, encoding=encoding,
                 quoting=quoting)  # fmt: skip
    return Source(path, encoding=encoding, separator=separator, decimal=decimal)


def workbook(path):
    needed("openpyxl")
    ROWS.to_pandas().to_excel(path, index=False)
    return path


def table_file(path):
    write_table(ROWS, path)
    return path


def json_file(path):
    ROWS.to_pandas().to_json(path, orient="records", lines=path.suffix == ".jsonl")
    return path


WRITERS = {
    "all cells quoted": lambda at: text_file(at / "log.csv", csv.QUOTE_ALL),
    "few cells quoted": lambda at: text_file(at / "log.csv", csv.QUOTE_MINIMAL),
    "tabs": lambda at: text_file(at / "log.tsv", csv.QUOTE_ALL, "\t"),
    "decimal commas": lambda at: text_file(at / "log.csv", csv.QUOTE_ALL, ";", ",", "latin-1"),
    "parquet": lambda at: table_file(at / "log.parquet"),
    "json": lambda at: json_file(at / "log.json"),
    "lines of json": lambda at: json_file(at / "log.jsonl"),
    "workbook": lambda at: workbook(at / "log.xlsx"),
}


@pytest.mark.parametrize("bins", [{}, {"age": [18, 40]}], ids=["labels", "bins"])
@pytest.mark.parametrize("writer", WRITERS)
def test_a_policy_knows_the_rows_that_trained_it(tmp_path, writer, bins):
    source = WRITERS[writer](tmp_path)
    state = STATE if bins else STATE[:2]
    wanted, loaded = policy_of(source, state, bins)
    assert any("(missing)" in label for label in wanted)
    found = decide_file(loaded, source, tmp_path / "out.csv", deterministic=True)
    assert found.labels == wanted
    rows = read_table(tmp_path / "out.csv")
    assert rows.column("ward").to_pylist() == ROWS.column("ward").to_pylist()


COMMAS = {
    "text": (["1,5", "1.5", "Smith,John", "x"], ["1,5", "1.5", "Smith,John", "x"]),
    "a point": (["1,5", "1.5"], ["1,5", "1.5"]),
    "numbers": (["1,5", "2,5", "3"], ["1.5", "2.5", "3"]),
    "a level": (["1,5", "2,5", ""], ["1.5", "2.5", "(missing)"]),
    "whole": (["1,0", "2,0"], [1, 2]),
}


@pytest.mark.parametrize("kind", COMMAS)
def test_commas_become_points_where_a_column_holds_numbers_only(tmp_path, kind):
    """In logs, policies, cases and SQL alike: what is written differently stays apart."""
    written, labels = COMMAS[kind]
    rows = [f"{ward};{act};{act},5" for ward in written for act in (0, 1)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["ward;action;reward", *rows]) + "\n", "utf-8")
    source = Source(path, separator=";", decimal=",")
    states, loaded = policy_of(source, ["ward"])
    assert states == [str(label) for label in labels for _ in (0, 1)]
    assert set(loaded.policy.states.labels) == set(labels)
    decided = decide_file(loaded, source, tmp_path / "out.csv", deterministic=True)
    assert decided.labels == states
    cases = pa.table({"ward": [None if label == "(missing)" else label for label in labels]})
    connection = duckdb.connect()
    connection.register("cases", cases)
    found = connection.sql(sql_of(loaded, deterministic=True)).fetchall()
    assert [row[-1] for row in found] == states[::2]
    path.write_text(path.read_text().replace("reward", "probability").replace(",5\n", ",0\n"))
    if kind != "a level":
        assert set(spibb.read_policy(source).states.labels) == set(labels)


@pytest.mark.parametrize("end", ["END", "1.5"])
def test_what_follows_an_end_decides_nothing_about_commas(tmp_path, end):
    path = tmp_path / "log.csv"
    path.write_text(f"episode_id;step;state;action;reward;next_state;terminated\n"
                    f"0;0;1,5;x;0,5;2,5;0\n0;1;2,5;x;1,5;{end};1\n")  # fmt: skip
    log = spibb.read_log(Source(path, separator=";", decimal=","))
    assert log.states.labels == ("1.5", "2.5")


def test_decisions_on_cases_with_decimal_commas_are_a_log_with_decimal_commas(tmp_path):
    source = text_file(tmp_path / "log.csv", csv.QUOTE_ALL, ";", ",")
    loaded = policy_of(source)[1]
    even = Policy(np.full(loaded.policy.probs.shape, 1 / 6), loaded.policy.states, list("uvwxyz"))
    decide_file(LoadedPolicy(even, loaded.bins, {}), source, tmp_path / "decided.csv")
    columns = {"state": STATE, "action": "decision", "action_prob": "decision_probability"}
    decided = Source(tmp_path / "decided.csv", decimal=",")
    read = spibb.read_log(decided, columns=columns, bandit=True, missing="as-level")
    np.testing.assert_allclose(read.action_prob, 1 / 6)


def test_an_empty_cell_is_a_label_only_where_the_policy_has_it(tmp_path):
    table = pa.table({"ward": ["", "a", None], "action": ["x"] * 3, "reward": [0, 1, 0]})
    path = tmp_path / "cases.csv"
    path.write_text('ward\n""\na\n')
    _, both = policy_of(table, ["ward"])
    assert decide_file(both, path, tmp_path / "1.csv", deterministic=True).labels == ["", "a"]
    _, level = policy_of(table.slice(1), ["ward"])
    decided = decide_file(level, path, tmp_path / "2.csv", deterministic=True)
    assert decided.labels == ["(missing)", "a"]
    assert (tmp_path / "2.csv").read_text().splitlines()[1].startswith('"",')


FRAMES = {
    "pandas objects": lambda values: pd.DataFrame({"s": pd.Series(values, dtype=object)}),
    "pandas text": lambda values: pd.DataFrame({"s": pd.Series(values, dtype="string")}),
    "polars": lambda values: pl.DataFrame({"s": values}),
    "arrow": lambda values: pa.table({"s": values}),
    "lists": lambda values: {"s": values},
}


@pytest.mark.parametrize("frame", FRAMES)
def test_frames_of_text_have_missing_values_as_in_logs(frame):
    """None, NaN and pandas.NA are missing; an empty text is a text."""
    nothing = [None, float("nan"), pd.NA] if frame.startswith("pandas") else [None]
    values = ["a", *nothing, "b"]
    given = FRAMES[frame](values)
    table = {"s": values} if frame == "lists" else given
    extra = {"action": ["x"] * len(values), "reward": [0.0] * len(values)}
    log = pa.table({"s": [*"a", *[None] * len(nothing), "b"], **extra})
    wanted, loaded = policy_of(log, ["s"])
    assert wanted == ["a", *["(missing)"] * len(nothing), "b"]
    assert loaded.act_many(table, deterministic=True).labels == wanted
    assert [loaded.best({"s": value}) for value in values] == wanted
    empty = FRAMES[frame](["a", "", None])
    assert loaded.act_many(empty, unseen="empty").labels == ["a", None, "(missing)"]


@pytest.mark.parametrize("bins", [{}, {"s": [1.5]}], ids=["labels", "bins"])
@pytest.mark.parametrize("kind", ["float64", "Float64", "Int64", "object", "polars"])
def test_frames_of_numbers_have_missing_values_as_in_logs(kind, bins):
    values = [1, None, 2]
    frame = (
        pl.DataFrame({"s": [1.0, float("nan"), 2.0]})
        if kind == "polars"
        else pd.DataFrame({"s": pd.Series(values, dtype=kind)})
    )
    log = pa.table({"s": values, "action": ["x"] * 3, "reward": [0.0] * 3})
    wanted, loaded = policy_of(log, ["s"], bins)
    assert "(missing)" in wanted
    assert loaded.act_many(frame, deterministic=True).labels == wanted
    missing = [float("nan"), None, pd.NA, np.float32("nan")]
    assert [loaded.best({"s": value}) for value in missing] == ["(missing)"] * 4


CUT = spibb.Bins((0.0, 5.0))
WRITTEN = [" 5", "5 ", "\t5", "05", "-007", "+5", "5.", ".5", "5e0", "1E-3", "1e400", "-1e400",
           "inf", "-Inf", "+INF", "Infinity", " -infinity ", "1" * 400]  # fmt: skip
NO_NUMBERS = ["1_000", "\u0665", "\uff15", "\xa05", "\x1c5", "+ 5", "5e", ".", "0x10", "true",
              "1,5", "5 5", "infinit", "five", "+nan"]  # fmt: skip
WORDS = ["", "NA", " na ", "NaN", "null", "-", "?"]


def cut_policy(level=True):
    labels = (*CUT.labels, *(["(missing)"] if level else []))
    states = spibb.Vocabulary(labels, ("b",))
    return LoadedPolicy(Policy(np.eye(len(labels)), states, labels), {"b": CUT}, {})


def in_log(values, missing="as-level"):
    """The labels that a log has where its column is cut."""
    table = pa.table({"b": values, "action": ["x"] * len(values), "reward": [0.0] * len(values)})
    log = spibb.read_log(table, columns={"state": "b"}, bins={"b": CUT.edges}, bandit=True,
                         missing=missing)  # fmt: skip
    return [log.states[code] for code in log.state]


def in_sql(values):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("cases", pa.table({"b": values}))
    return [row[-1] for row in connection.sql(sql_of(cut_policy(), deterministic=True)).fetchall()]


@pytest.mark.parametrize("values", [
    WRITTEN, [np.inf, -np.inf, 5.0, -0.0, 1e300], [True, False], [Decimal("4.99"), Decimal(5)],
    [2**63 - 1, 0],
], ids=["text", "floats", "flags", "decimals", "whole"])  # fmt: skip
def test_a_column_that_is_cut_has_the_same_numbers_in_logs_cases_and_sql(values):
    wanted = in_log(values)
    assert set(wanted) <= set(CUT.labels)
    for loaded in (cut_policy(), cut_policy(level=False)):
        assert loaded.act_many({"b": values}, deterministic=True).labels == wanted
        assert [loaded.best({"b": value}) for value in values] == wanted
    assert in_sql(values) == wanted


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number_in_a_log_is_none_in_cases_and_sql(text):
    with pytest.raises(InputError):
        in_log(["5", text])
    with pytest.raises(InputError, match=r"expected a number .* in row 1 of the cases"):
        cut_policy().act_many({"b": ["5", text]})
    assert in_sql(["5", text]) == ["[5, inf)", None]


@pytest.mark.parametrize("word", WORDS)
def test_words_for_a_missing_number_are_missing_in_cases_too(word):
    """Without a level for them such rows are unknown: the others can still be decided."""
    assert in_log(["5", word]) == ["[5, inf)", "(missing)"]
    assert in_log(["5", word], missing="drop") == ["[5, inf)"]
    assert cut_policy().act_many({"b": ["5", word]}).labels == ["[5, inf)", "(missing)"]
    without = cut_policy(level=False)
    assert without.act_many({"b": ["5", word]}, unseen="empty").labels == ["[5, inf)", None]
    with pytest.raises(InputError, match="'b' is missing: give a value"):
        without.encode({"b": word})


def test_an_empty_value_on_the_command_line_is_missing_as_an_empty_cell_is():
    names = ("ward", "age")
    assert parse_case(["ward=", "age=3"], names) == {"ward": None, "age": "3"}
    assert parse_case(["ward=", "age="], names, ["ward"]) == {"ward": "", "age": None}
    assert CaseEncoder(spibb.Vocabulary(["(missing)", "a"])).label({"label": None}) == "(missing)"


@pytest.mark.parametrize("huge", [2**63, 2**64])
def test_whole_numbers_beyond_64_bits_are_text_for_one_case_and_for_many(huge, tmp_path):
    policy = Policy([[1.0, 0.0], [0.0, 1.0]], Vocabulary([str(huge), "x"], ("state",)), ["a", "b"])
    policy.save(tmp_path / "policy.csv")
    loaded = load_policy(tmp_path / "policy.csv")
    assert loaded.best(huge) == "a"
    assert loaded.act_many([huge], deterministic=True).labels == ["a"]
    assert loaded.act_many([{"state": huge}], deterministic=True).labels == ["a"]
