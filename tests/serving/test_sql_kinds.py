"""Every kind of label against every kind of column: SQL decides as `act_many`, or gives NULL."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from test_sql_case import Duck, engine, postgres  # noqa: F401

from spibb import Bins, Policy, Vocabulary
from spibb.errors import InputError
from spibb.ingest.loaded import LoadedPolicy
from spibb.serving.sql_case import sql_of

BIG = 2**53
LABELS = {
    "whole": [0, 1, 7, 8, -3, BIG - 1, BIG, BIG + 1],
    "flags": [False, True],
    "texts of numbers": ["0", "1", "7", "007", "7.0", "7.5", "-3", "1e0", str(BIG), str(BIG + 1)],
    "texts of flags": ["True", "False", "true", "false", "1", "t"],
    "words": ["north", "inf", "Infinity", "nan", "NaN", "null", ""],
    "levels": ["7", "north", "(missing)"],
}
TEXTS = ["007", "7.4", "7.5", "7", " 7", "7 ", "8", "-3", "true", "TRUE", "True", "f", "no", "1",
         "north", "nan", "NaN", "inf", "", str(BIG + 1), "٧", "7_0", None]  # fmt: skip
FLOATS = [0.0, -0.0, 1.0, 7.0, 7.4, 7.5, 8.0, -3.0, 1e-5, float(BIG - 1), float("nan"), None]
COLUMNS = {
    "text": TEXTS,
    "VARCHAR(40)": TEXTS,
    "BOOLEAN": [True, False, None],
    "SMALLINT": [0, 1, 2, 7, 8, -3, None],
    "BIGINT": [0, 1, 7, BIG - 1, BIG, BIG + 1, None],
    "DOUBLE PRECISION": FLOATS,
    "REAL": [0.0, 1.0, 7.0, -3.0, float("nan"), None],
    "NUMERIC(24, 2)": [Decimal("7.00"), Decimal("7.50"), Decimal("-3"), Decimal(BIG + 1), None],
    "DATE": ["2020-01-01", None],
}


def both(engine, loaded, kind, values):  # noqa: F811
    """The decisions of the SQL and of Python, on the values as the engine has them."""
    engine.load(f"id BIGINT, state {kind}", list(enumerate(values)))
    names, rows = engine.ask(sql_of(loaded, dialect=engine.name, deterministic=True))
    rows = sorted(rows, key=lambda row: row[0])
    kept = [row[names.index("state")] for row in rows]
    found = [row[names.index("decision")] for row in rows]
    return found, loaded.act_many({"state": kept}, deterministic=True, unseen="empty").labels


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("labels", LABELS)
def test_sql_agrees_with_python_on_every_kind_of_column(engine, labels, kind):  # noqa: F811
    known = LABELS[labels]
    loaded = LoadedPolicy(Policy(np.eye(len(known)), known, [f"do {n!r}" for n in known]), {}, {})
    found, expected = both(engine, loaded, kind, COLUMNS[kind])
    assert found == expected


@pytest.mark.parametrize("labels", [[BIG, BIG + 1], [str(BIG), str(BIG + 1)]])
@pytest.mark.parametrize("kind", ["DOUBLE PRECISION", "REAL"])
def test_floats_that_python_refuses_get_null(engine, labels, kind):  # noqa: F811
    loaded = LoadedPolicy(Policy(np.eye(2), labels, ["wait", "treat"]), {}, {})
    with pytest.raises(InputError, match="too large for a float"):
        loaded.act_many({"state": [float(BIG)]})
    engine.load(f"id BIGINT, state {kind}", [(0, float(BIG))])
    assert engine.ask(sql_of(loaded, dialect=engine.name))[1][0][-1] is None


def test_fractions_of_32_bits_are_no_text_in_sql(engine):  # noqa: F811
    loaded = LoadedPolicy(Policy(np.eye(2), ["7.5", "7"], ["a", "b"]), {}, {})
    assert both(engine, loaded, "REAL", [7.5, 7.0]) == ([None, "b"], ["a", "b"])


@pytest.mark.parametrize("text", ["7.0", "1e0", "+7", "-0"])
def test_text_is_a_number_in_sql_only_as_plain_digits(engine, text):  # noqa: F811
    loaded = LoadedPolicy(Policy(np.eye(3), [0, 1, 7], ["a", "b", "c"]), {}, {})
    found, expected = both(engine, loaded, "TEXT", [text])
    assert found == [None] and expected != [None]


def test_text_in_a_column_that_is_cut(engine):  # noqa: F811
    cut = Bins((18, 40))
    policy = Policy(np.eye(3), Vocabulary(cut.labels, ("state",)), ["a", "b", "c"])
    loaded = LoadedPolicy(policy, {"state": cut}, {})
    texts = [
        "3",
        "18",
        "39.5",
        "1e3",
        "-1",
        ".5",
        "+40",
        "007",
        " 7",
        "7\t",
        "inf",
        " -Infinity",
        None,
    ]
    found, expected = both(engine, loaded, "TEXT", texts)
    assert found == expected and None not in expected[:-1]
    refused = ["seven", "true", "7_0", "\xa07"]
    for text in refused:
        with pytest.raises(InputError):
            loaded.act_many({"state": [text]})
    engine.load("id BIGINT, state TEXT", list(enumerate(refused)))
    rows = engine.ask(sql_of(loaded, dialect=engine.name))[1]
    assert [row[-1] for row in rows] == [None] * len(refused)
    engine.load("id BIGINT, state BOOLEAN", [(0, True)])
    if engine.name == "duckdb":
        assert engine.ask(sql_of(loaded, dialect=engine.name))[1][0][-1] == "a"
        assert loaded.best({"state": True}) == "a"
    else:
        with pytest.raises(Exception, match="cannot cast type boolean to double precision"):
            engine.ask(sql_of(loaded, dialect=engine.name))


@pytest.mark.parametrize("name", ["spibb_uniform", "decision"])
def test_a_table_that_has_a_name_of_the_query_is_refused(engine, name):  # noqa: F811
    loaded = LoadedPolicy(Policy([[0.5, 0.5]], ["s"], ["a", "b"]), {}, {})
    engine.load(f"state TEXT, {name} DOUBLE PRECISION", [("s", 0.9)])
    with pytest.raises(Exception, match=r"(?i)ambiguous"):
        engine.ask(sql_of(loaded, dialect=engine.name))


def test_bytes_are_no_text(engine):  # noqa: F811
    loaded = LoadedPolicy(Policy(np.eye(2), ["A", "\\x41"], ["a", "b"]), {}, {})
    kind = "BLOB" if engine.name == "duckdb" else "BYTEA"
    assert both(engine, loaded, kind, [b"A", b"\\x41", None]) == ([None] * 3, [None] * 3)


def test_a_text_of_an_enumeration_that_is_no_number_leaves_the_others_decided():
    cut = Bins((18,))
    policy = Policy(np.eye(2), Vocabulary(cut.labels, ("state",)), ["a", "b"])
    duck = Duck()
    duck.load("state ENUM('5', 'n/a x', '20')", [("5",), ("n/a x",), ("20",), (None,)])
    rows = duck.ask(sql_of(LoadedPolicy(policy, {"state": cut}, {})))[1]
    assert [row[-1] for row in rows] == ["a", None, "b", None]
