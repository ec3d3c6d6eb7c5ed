"""The policy as SQL, run by DuckDB and by a real PostgreSQL, decides as Python does."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from parts import needed
from servers import start_postgres

from spibb import Bins, Policy, Vocabulary
from spibb.errors import InputError
from spibb.ingest.loaded import LoadedPolicy
from spibb.serving.sql_case import sql_of

AGES = Bins((-2.5, 18, 40.123456789012345, 1e15))
WARDS = [
    "plain", "o'brien", "''", 'say "hi"', "back\\slash\\n", "Ω≈ç\u0301√", "日本語", "tab\t, line\n",
    "007", "7", "NULL", "null", "", " lead", "trail ", "%_", "; DROP TABLE cases; --", "/* no */",
    "$1", "$$", "{x}", "E'x'", "true", "nan", "x" * 300, "😀",
]  # fmt: skip
NAMES = ('ward "x"; --\'', "Age", "n")


@pytest.fixture(scope="module")
def postgres():
    psycopg = needed("psycopg")
    _, running = start_postgres()
    with psycopg.connect(running.get_uri(), autocommit=True) as connection:
        yield connection
    running.cleanup()


class Duck:
    name = "duckdb"

    def __init__(self):
        self.connection = duckdb.connect()

    def load(self, types, rows):
        self.connection.execute(f"CREATE OR REPLACE TABLE cases ({types})")
        marks = f"({', '.join('?' * len(rows[0]))})"
        for some in (
            rows[i : i + 500] for i in range(0, len(rows), 500)
        ):  # row by row takes half a millisecond for each
            sql = f"INSERT INTO cases VALUES {', '.join([marks] * len(some))}"
            self.connection.execute(sql, [value for row in some for value in row])

    def ask(self, sql):
        found = self.connection.execute(sql)
        return [d[0] for d in found.description], found.fetchall()


class Postgres:
    name = "postgres"

    def __init__(self, connection):
        self.connection = connection
        connection.prepare_threshold = None  # the type of a column changes between questions

    def load(self, types, rows):
        self.connection.execute("DROP TABLE IF EXISTS cases")
        self.connection.execute(f"CREATE TABLE cases ({types})")
        with self.connection.cursor().copy("COPY cases FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def ask(self, sql):
        found = self.connection.execute(sql)
        return [d.name for d in found.description], found.fetchall()


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def engine(request):
    if request.param == "duckdb":
        return Duck()
    return Postgres(request.getfixturevalue("postgres"))


def nasty(seed=0, ones=False):
    rng = np.random.default_rng(seed)
    states = [(w, a, n) for w in WARDS for a in AGES.labels for n in (-(2**63), -1, 0, 7)]
    kept = [states[i] for i in rng.permutation(len(states))[:-40]]
    actions = Vocabulary([("go 'x'", 1), ("go 'x'", -2), ("NULL", 1), ("", 2**62)], ("do", "dose"))
    probs = rng.dirichlet(np.full(4, 0.3), 5)[rng.integers(0, 5, len(kept))]
    probs[::3] = np.eye(4)[rng.integers(0, 4, len(probs[::3]))]
    if ones:
        probs = np.eye(4)[rng.integers(0, 4, len(kept))]
    policy = Policy(probs, Vocabulary(kept, NAMES), actions)
    return LoadedPolicy(policy, {"Age": AGES}, {"command": "spibb improve 'x'\n--\n; DROP"})


def nasty_cases(n=3000):
    rng = np.random.default_rng(9)
    ages = [-1e300, -2.5, -2.4999999999999996, 18.0, 17.999999999999996, 40.123456789012345,
            40.12345678901234, 1e15, 1e300, 0.0, float("nan"), None]  # fmt: skip
    wards, numbers = [*WARDS, "unknown", "O'Brien", None], [-(2**63), -1, 0, 7, 8, None]
    return [
        (i, wards[rng.integers(len(wards))], ages[rng.integers(len(ages))],
         numbers[rng.integers(len(numbers))], float(rng.random()))
        for i in range(n)
    ]  # fmt: skip


TYPES = 'id BIGINT, "ward ""x""; --\'" {text}, "Age" DOUBLE PRECISION, n BIGINT, u DOUBLE PRECISION'


def decided(engine, loaded, **options):
    names, rows = engine.ask(sql_of(loaded, dialect=engine.name, **options))
    rows = sorted(rows)
    first = names.index("decision_do")
    assert names[first : first + 2] == ["decision_do", "decision_dose"]
    return [tuple(row[first : first + 2]) for row in rows]


def oracle(loaded, rows, choose):
    found = []
    for row in rows:
        case = dict(zip(NAMES, row[1:4]))
        try:
            label = loaded.encode(case)
            state = loaded.policy.states.code(label)
        except InputError:
            found.append((None, None))
            continue
        order = sorted(range(4), key=loaded.policy.actions.labels.__getitem__)
        place = choose(loaded.policy.probs[state][order], row[4])
        found.append(loaded.policy.actions[order[place]])
    return found


def test_sql_decides_as_python_with_nasty_labels(engine):
    loaded, rows = nasty(ones=True), nasty_cases()
    text = "TEXT" if engine.name == "postgres" else "VARCHAR"
    engine.load(TYPES.format(text=text), rows)
    expected = oracle(loaded, rows, lambda row, u: int(np.argmax(row)))
    found = decided(engine, loaded)
    assert found == expected
    undecided = sum(one[0] is None for one in expected)
    assert 500 < undecided < 2500  # both kinds of rows are there


def test_sql_draws_with_a_given_number_as_python_does(engine):
    loaded, rows = nasty(), nasty_cases()
    engine.load(TYPES.format(text="VARCHAR(400)"), rows)

    def first_beyond(row, u):
        return int(np.argmax(np.cumsum(row) / row.sum() > u))

    assert decided(engine, loaded, uniform="u") == oracle(loaded, rows, first_beyond)
    likeliest = oracle(loaded, rows, lambda row, u: int(np.argmax(row)))
    assert decided(engine, loaded, deterministic=True) == likeliest


def test_random_draws_are_made_once_per_row_and_have_the_right_frequencies(engine):
    n = 30_000
    actions = Vocabulary([("a", 1), ("b", 2), ("c", 3)], ("do", "dose"))
    loaded = LoadedPolicy(Policy([[0.2, 0.5, 0.3]], ["x"], actions), {}, {})
    engine.load("id BIGINT, state TEXT", [(0, "x")])
    engine.connection.execute(f"INSERT INTO cases SELECT i, 'x' FROM generate_series(1, {n}) t(i)")
    names, rows = engine.ask(sql_of(loaded, dialect=engine.name))
    pairs = [row[-2:] for row in rows]
    assert set(pairs) == {("a", 1), ("b", 2), ("c", 3)}  # both columns saw the same number
    shares = np.array([pairs.count(pair) for pair in (("a", 1), ("b", 2), ("c", 3))]) / len(rows)
    assert np.abs(shares - [0.2, 0.5, 0.3]).max() < 5 * 0.5 / np.sqrt(n)
    drawn = names.index("spibb_uniform")
    assert all((row[drawn] < 0.2) == (row[-2] == "a") for row in rows)


@pytest.mark.parametrize(("labels", "kind", "values", "expected"), [
    ([7, -3], "INTEGER", [7, -3, 5, None], ["do 0", "do 1", None, None]),
    ([7, -3], "DOUBLE PRECISION", [7.0, -3.0, 7.5, None], ["do 0", "do 1", None, None]),
    ([7, -3], "NUMERIC(10, 2)", [7, -3, 5, None], ["do 0", "do 1", None, None]),
    ([True, False], "BOOLEAN", [True, False, None], ["do 0", "do 1", None]),
    (["7", "007"], "INTEGER", [7, 8], ["do 0", None]),
    (["7", "007"], "VARCHAR", ["007", "7", "7.0"], ["do 1", "do 0", None]),
])  # fmt: skip
def test_numbers_and_text_are_kept_apart(engine, labels, kind, values, expected):
    loaded = LoadedPolicy(Policy(np.eye(2), labels, ["do 0", "do 1"]), {}, {})
    engine.load(f"id BIGINT, state {kind}", list(enumerate(values)))
    names, rows = engine.ask(sql_of(loaded, dialect=engine.name, table="cases"))
    assert [row[names.index("decision")] for row in sorted(rows)] == expected


def test_thousands_of_states(engine):
    n = 4000
    rng = np.random.default_rng(0)
    probs = np.eye(3)[rng.integers(0, 3, n)]
    probs[: n // 2] = rng.dirichlet(np.ones(3), n // 2)
    labels = [f"s{i}" for i in range(n)]
    loaded = LoadedPolicy(Policy(probs, labels, ["a", "b", "c"]), {}, {})
    picked = rng.integers(0, n, 50)
    engine.load("id BIGINT, state TEXT", [(i, f"s{code}") for i, code in enumerate(picked)])
    names, rows = engine.ask(sql_of(loaded, dialect=engine.name, deterministic=True))
    found = [row[names.index("decision")] for row in sorted(rows)]
    assert found == loaded.act_many([f"s{code}" for code in picked], deterministic=True).labels


def test_a_table_in_a_schema(engine):
    engine.load("id BIGINT, state TEXT", [(0, "x")])
    schema = "main" if engine.name == "duckdb" else "public"
    loaded = LoadedPolicy(Policy([[1.0]], ["x"], ["a"]), {}, {})
    _, rows = engine.ask(sql_of(loaded, dialect=engine.name, table=f"{schema}.cases"))
    assert rows == [(0, "x", "a")]


def test_a_label_that_sql_has_no_text_for_is_refused():
    loaded = LoadedPolicy(Policy([[1.0]], ["x\0"], ["a"]), {}, {})
    with pytest.raises(InputError, match="holds the character NUL"):
        sql_of(loaded)
    with pytest.raises(InputError, match="dialect is 'oracle': choose one of duckdb, postgres"):
        sql_of(LoadedPolicy(Policy([[1.0]], ["x"], ["a"]), {}, {}), dialect="oracle")


def test_a_missing_value_that_is_a_level_is_one_in_sql_too(engine):
    """Trained with --missing as-level: NULL, and NaN among numbers, are a state like others."""
    cut = Bins((18, 40))
    states = [(w, a, 1) for w in ("x", "(missing)") for a in (*cut.labels, "(missing)")]
    policy = Policy(np.eye(8), Vocabulary(states, ("w", "age", "n")), [f"do {i}" for i in range(8)])
    loaded = LoadedPolicy(policy, {"age": cut}, {})
    ages = [3.0, 18.0, 99.0, None, float("nan")]
    rows = [(i, w, a, 1) for i, (w, a) in enumerate((w, a) for w in ("x", None) for a in ages)]
    engine.load("id BIGINT, w TEXT, age DOUBLE PRECISION, n BIGINT", rows)
    for deterministic in (True, False):
        sql = sql_of(loaded, dialect=engine.name, deterministic=deterministic)
        names, found = engine.ask(sql)
        table = {name: [row[i] for row in rows] for i, name in enumerate(("id", "w", "age", "n"))}
        expected = loaded.act_many(table).labels
        assert [row[names.index("decision")] for row in sorted(found)] == expected
        assert None not in expected
        cases = [dict(zip(("w", "age", "n"), row[1:])) for row in rows]
        assert [loaded.best(case) for case in cases] == expected


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_types_are_asked_once_however_many_states_there_are(dialect):
    """In every WHEN they made 500 states of whole numbers slower than 500 of text."""
    asked = []
    for n in (3, 300):
        policy = Policy(np.eye(n), list(range(n)), [f"a{i}" for i in range(n)])
        sql = sql_of(LoadedPolicy(policy, {}, {}), dialect=dialect)
        assert sql.count("WHEN spibb_key_0 =") == n
        asked.append(sql.count("typeof("))
    assert asked[0] == asked[1] > 0


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_a_table_with_a_name_of_ours_is_ambiguous(dialect):
    policy = LoadedPolicy(Policy(np.eye(2), [1, 2], ["x", "y"]), {}, {})
    sql = sql_of(policy, dialect=dialect)
    assert "0 AS spibb_key_0" in sql
    if dialect == "duckdb":
        connection = duckdb.connect()
        connection.execute("CREATE TABLE cases AS SELECT 1 AS state, 7 AS spibb_key_0")
        with pytest.raises(duckdb.Error, match=r"(?i)ambiguous"):
            connection.sql(sql).fetchall()
        connection.execute("CREATE OR REPLACE TABLE cases AS SELECT 1 AS state, 7 AS id")
        assert connection.sql(sql).columns == ["state", "id", "decision"]
