"""What a log cannot be is told in one line, by every way to read it; nothing is counted wrongly."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import spibb
from spibb import Counts, Log, Source, count_log, read_log, read_policy
from spibb.cli.app import main
from spibb.errors import InputError, masked, without_secrets
from spibb.sql.databases import answering
from spibb.sql.duck import SETTINGS, open_duckdb
from spibb.tables import write_table

GOOD = {
    "episode_id": [0, 0, 1, 1], "step": [0, 1, 0, 1], "state": ["a", "b", "a", "b"],
    "action": ["go", "stay", "stay", "go"], "reward": [0.0, 1.0, 0.5, 0.0],
    "next_state": ["b", "a", "b", "b"], "terminated": [False, True, False, False],
    "truncated": [False, False, False, True],
}  # fmt: skip
NAN, INF = float("nan"), float("inf")


def file(tmp_path, ending="parquet", **columns):
    path = tmp_path / f"log.{ending}"
    write_table(pa.table(GOOD | columns), path)
    return path


def messages(tmp_path, **columns):
    """What rows, counts and a frame say, which must be one line each, without the file's name."""
    path = file(tmp_path, **columns)
    found = []
    for read in (read_log, count_log, lambda p: Log.from_frame(pa.table(GOOD | columns))):
        with pytest.raises(InputError) as told:
            read(path)
        assert "\n" not in str(told.value)
        found.append(str(told.value).replace(f" of {str(path)!r}", ""))
    return found


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"step": [0.0, INF, 0.0, 1.0]}, "step in row 1 is inf, expected a finite number, or a"),
        ({"step": [0.0, NAN, 0.0, 1.0]}, "step in row 1 is nan, expected a finite number"),
        ({"state": pa.nulls(4)}, r"column 'state' is missing in row 0 \(4 such rows\)"),
        ({"action": pa.nulls(4, "string")}, r"column 'action' is missing in row 0 \(4 such rows\)"),
        ({"state": [0.0, NAN, 1.0, 2.0]}, r"column 'state' is missing in row 1 \(1 such row\)"),
        ({"action": [0.0, 1.0, 2.0, NAN]}, r"column 'action' is missing in row 3"),
        ({"episode_id": [0.0, 0.0, NAN, 1.0]}, "column 'episode_id' is missing in row 2"),
        ({"state": pa.array([1, 2**63, 1, 2], "uint64")}, "state in row 1 is 9223372036854775808"),
        ({"next_state": [0.5, 1.0, 1.0, 1.0], "state": [1.0] * 4}, "next_state in row 0 is 0.5"),
        ({"state": [{"a": 1}] * 4}, "column 'state' is of mixed types or nested"),
        ({"reward": [0.0, NAN, 0.0, 0.0]}, "reward in row 1 is nan, expected a finite number"),
        ({"reward": [0.0, -INF, 0.0, 0.0]}, "reward in row 1 is -inf, expected a finite number"),
        ({"reward": pa.array([0] * 4, "timestamp[us]")}, "reward is time in column 'reward'"),
        ({"action_prob": [0.5, NAN, 0.5, 0.5]}, r"action_prob in row 1 is nan, expected .*\(0, "),
        ({"step": ["2020-01-01 10:00", "2020-01-01 11:00Z", "2020-01-01", "2020-01-02"]},
         "step in row 1 is '2020-01-01 11:00Z', expected .* all with a time zone or none"),
    ],
)  # fmt: skip
def test_rows_counts_and_frames_refuse_alike(tmp_path, columns, message):
    found = messages(tmp_path, **columns)
    assert len(set(found)) == 1
    with pytest.raises(InputError, match=message):
        read_log(file(tmp_path, **columns))


def test_times_with_different_zones_are_in_the_order_of_time(tmp_path):
    """By their digits, 12:00+02:00 would come after 10:30+00:00."""
    steps = ["2020-01-01 12:00+02:00", "2020-01-01 10:30+00:00"]
    table = pa.table({
        "episode_id": [0, 0], "step": steps, "state": ["first", "second"], "action": ["x", "x"],
        "reward": [0.0, 0.0], "terminated": [False, True],
    })  # fmt: skip
    for ending in ("csv", "parquet"):
        write_table(table, tmp_path / f"log.{ending}")
        log = read_log(tmp_path / f"log.{ending}")
        assert [log.states[code] for code in log.state] == ["first", "second"]
        assert count_log(tmp_path / f"log.{ending}").starts.tolist() == [1, 0]


def test_nan_in_a_binned_column_of_a_parquet_file_is_in_no_bin(tmp_path):
    """The footer tells a range without NaN, and comparisons folded by it find none."""
    path = file(tmp_path, state=[1.0, NAN, 2.0, 30.0], next_state=[1.0] * 4)
    for read in (read_log, count_log):
        with pytest.raises(InputError, match="column 'state' is missing in row 1"):
            read(path, bins={"state": [10]})


def test_states_of_twelve_columns_are_counted_as_they_are(tmp_path):
    """40 to the twelfth is beyond 64 bits."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(40, size=(60, 12))
    kinds[:40] = np.arange(40)[:, None]
    drawn = kinds[np.concatenate([np.arange(60), rng.integers(60, size=500)])]
    names = [f"x{i}" for i in range(12)]
    n = len(drawn)
    table = pa.table({
        "episode_id": np.arange(n), "step": np.zeros(n, int), "action": ["go"] * n,
        "reward": np.ones(n), "terminated": np.ones(n, bool),
    } | {name: drawn[:, i] for i, name in enumerate(names)})  # fmt: skip
    write_table(table, tmp_path / "log.csv")
    wanted = tuple(sorted({tuple(row) for row in drawn.tolist()}))
    rows = Counts.from_log(read_log(tmp_path / "log.csv", columns={"state": names}))
    for counts in (rows, count_log(table, columns={"state": names})):
        assert counts.states.labels == wanted
        assert counts.n.sum() == n


@pytest.mark.parametrize("name", ["state", "action", "episode_id"])
@pytest.mark.parametrize("column", [[0.0, NAN], [None, 0], np.ma.array([0, 1], mask=[0, 1])])
def test_a_missing_label_in_an_array_is_refused(name, column):
    good = {"state": [0, 0], "action": [0, 0], "reward": [0, 0], "episode_id": [0, 1]}
    with pytest.raises(InputError, match=rf"{name} is missing in row [01] \(1 such row\)"):
        Log.from_arrays(**(good | {name: column}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"reward": np.ma.array([0.0, 9.0], mask=[0, 1])}, "reward is missing in row 1"),
        ({"reward": np.array([1j, 0])}, "reward holds something that is not a number"),
        ({"reward": [1 + 0j, 0]}, "reward holds something that is not a number"),
        ({"reward": np.array(["2020-01-01"] * 2, "datetime64[D]")}, "not a number"),
        ({"reward": np.array([1, 2], "timedelta64[s]")}, "not a number"),
        ({"reward": [[1], [1, 2]]}, "reward has rows of different lengths"),
        ({"terminated": np.ma.array([0, 1], mask=[0, 1])}, "terminated is missing in row 1"),
        ({"terminated": [{}, {}]}, "terminated holds something other than true/false"),
        ({"terminated": [[1], [1, 2]]}, "terminated has rows of different lengths"),
        ({"action_prob": np.ma.array([0.5, 1], mask=[1, 0])}, "action_prob is missing in row 0"),
        ({"step": [0, INF], "episode_id": [0, 0]}, "step in row 1 is inf, expected a finite"),
        ({"state": [{"a": 1}, {"a": 2}]}, "state holds values of type struct"),
        ({"state": ["a", "\ud800"]}, "state holds text that is not valid Unicode"),
        ({"state": [None, None]}, r"state is missing in row 0 \(2 such rows\)"),
        ({"state": [2**63, 0]}, "state holds a whole number beyond 64 bits"),
    ],
)
def test_what_an_array_cannot_be_is_told(columns, message):
    good = {"state": [0, 0], "action": [0, 0], "reward": [0, 0]}
    with pytest.raises(InputError, match=message):
        Log.from_arrays(**(good | columns))


def test_a_masked_successor_is_the_next_row():
    following = np.ma.array([7, 8], mask=[True, False])
    log = Log.from_arrays([1, 2], [0, 0], [0, 0], following, None, [False, True])
    assert [log.states[code] for code in log.next_state] == [2, 8]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"state": [1]}, "(frame|source) is a dict, expected"),
        ([1, 2], "(frame|source) is a list, expected"),
        (None, "(frame|source) is None, expected"),
        (pd.Series([1]), "(frame|source) is a Series, expected"),
        (np.zeros((2, 2)), "(frame|source) is an ndarray, expected"),
        (pd.DataFrame([[1, 2]], columns=["state", "state"]), "two columns of the frame have the"),
        (pa.table([[1], [2]], names=["state", "state"]), "two columns of the frame have the"),
        (
            pl.DataFrame({"state": [1], "State": [2]}),
            "2 columns with the same name, 'state', 'State'",
        ),
        (
            pd.DataFrame({"state": pd.Series(["\ud800"], dtype=object)}),
            "text that is not valid Unicode",
        ),
        (pd.DataFrame({"state": [2**70, "x"]}), "mixes types"),
        (pd.DataFrame(), "the frame has no columns"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_no_frame_is_told(frame, message):
    for read in (Log.from_frame, count_log):
        with pytest.raises(InputError, match=message) as told:
            read(frame)
        assert "\n" not in str(told.value)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_that_occurs_twice_in_a_file_is_refused_if_it_is_used(tmp_path, ending):
    names = [*GOOD, "State", "note", "note"]
    values = [*GOOD.values(), ["x"] * 4, [1] * 4, [2] * 4]
    path = tmp_path / f"log.{ending}"
    writers = {"csv": pyarrow.csv.write_csv, "parquet": pyarrow.parquet.write_table}
    writers[ending](pa.table(values, names=names), path)
    for read in (read_log, count_log):
        with pytest.raises(InputError, match="the log has several columns 'state': rename or drop"):
            read(path)
    writers[ending](pa.table(values[:-3] + values[-2:], names=names[:-3] + names[-2:]), path)
    assert Counts.from_log(read_log(path)).n.sum() == count_log(path).n.sum() == 4


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_missing_label_in_a_policy_file_is_never_served(tmp_path, ending, capsys, monkeypatch):
    path = tmp_path / f"policy.{ending}"
    table = pa.table(
        {"state": [0.0, 1.0, NAN], "action": ["x", "x", "y"], "probability": [1.0, 1.0, 1.0]}
    )
    write_table(table, path)
    with pytest.raises(InputError, match=r"state.*(missing|empty)"):
        read_policy(path)
    monkeypatch.setattr(sys, "argv", ["spibb", "act", str(path), "--state", "1"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_rewards_that_add_up_to_infinity_are_refused_by_all(tmp_path):
    for message in messages_of_counts(tmp_path, [1e308, 1e308, 1e308, 1e308]):
        assert message == "rewards add up to infinity: scale them down, by 1e-10 for example"


def messages_of_counts(tmp_path, reward):
    path = file(tmp_path, reward=reward, state=["a"] * 4, action=["x"] * 4, next_state=["a"] * 4)
    for count in (count_log, lambda p: Counts.from_log(read_log(p))):
        with pytest.raises(InputError) as told:
            count(path)
        yield str(told.value)


def test_large_rewards_are_counted_alike(tmp_path):
    path = file(tmp_path, reward=[1e300, -1e300, 0.0, 1e-300])
    one, other = count_log(path), Counts.from_log(read_log(path))
    np.testing.assert_array_equal(one.reward_sum, other.reward_sum)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann:s3cret@db.example/clinic",
        "connection to postgres://ann:p@s3cret/x@db:5432 failed",
        "could not connect: host=db user=ann password=s3cret dbname=clinic",
        "password = 's3cret word' is wrong",
        'token: "s3cret"',
        "mysql+pymysql://ann:s3cret@db?password=s3cret",
    ],
)
def test_no_message_repeats_a_password(text):
    assert "s3cret" not in str(InputError(text))
    assert "s3cret" not in without_secrets(text)


@pytest.mark.parametrize(
    "address",
    [
        "s3://bucket/x.csv?X-Amz-Signature=s3cret&region=us-east-1",
        "s3://bucket/x.csv?access_key=anneke&secret_key=s3cret&endpoint_override=h",
        "gs://bucket/x.csv?access_token=s3cret", "https://h/x.csv?sig=s3cret",
        "postgresql://127.0.0.1:1/clinic?user=anneke&password=s3cret",
        "mysql://anneke:s3cret@h/clinic?ssl_ca=x",
    ],
)  # fmt: skip
def test_addresses_of_every_kind_are_masked_and_stay_quoted(address):
    """In names, in commands that were quoted for a shell, and in messages of others."""
    shown = masked(address)
    assert Source(address).name == shown
    quoted = shlex.join(["spibb", "inspect", shown, "--table", "visits"])
    assert without_secrets(quoted) == quoted
    told = str(InputError(f"cannot read {shown!r} (a reason): check"))
    assert told == f"cannot read {shown!r} (a reason): check"
    for text in (shown, str(InputError(f"no such place: '{address}'"))):
        assert "s3cret" not in text and "anneke" not in text


def test_a_password_after_a_question_mark_may_have_any_signs():
    address = "postgresql://h/clinic?user=anneke&password=it's#s3cret#visits"
    assert masked(address) == "postgresql://h/clinic?***#visits"
    query = Source("postgresql://h/clinic?user=ann", query="SELECT * FROM visits")
    assert query.name == "postgresql://h/clinic?*** (SELECT * FROM visits)"


@pytest.mark.parametrize("end", ["", "'", "': there is no such file", "' (failed)", '"', "."])
def test_what_follows_a_password_stays(end):
    assert without_secrets(f"host=db password=it's{end}") == f"host=db password=***{end}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('FATAL: password authentication failed for user "bob"', "failed for user ***"),
        ('FATAL: role "bob" does not exist', "role *** does not exist"),
        ("(1045, \"Access denied for user 'bob'@'localhost' (using password: NO)\")",
         "for user *** (using"),
        ("für Benutzer »anneke« fehlgeschlagen", "»***« fehlgeschlagen"),
    ],
)  # fmt: skip
def test_a_database_names_nobody(text, told):
    with pytest.raises(InputError) as raised, answering(Source("postgresql://anneke@db/clinic")):
        raise RuntimeError(text)
    assert told in str(raised.value)
    assert "bob" not in str(raised.value) and "anneke" not in str(raised.value)


@pytest.mark.parametrize("text", ["fe_sendauth: no password supplied", "(using password: NO)"])
def test_where_a_password_may_come_from_is_told(text):
    told = r"PGPASSWORD or ~/\.pgpass .*MYSQL_PWD or ~/\.my\.cnf"
    with pytest.raises(InputError, match=told), answering(Source("mysql://anneke@db/clinic")):
        raise RuntimeError(text)


def test_a_password_in_the_place_of_a_file_is_not_repeated():
    with pytest.raises(InputError, match=r"cannot read .*\*\*\*@db") as told:
        count_log("postgresql://ann:s3cret@db/clinic.csv")
    assert "s3cret" not in str(told.value)
    assert "a password of 12 letters" in str(InputError("a password of 12 letters"))


def test_duckdb_loads_no_extension_from_outside():
    with open_duckdb() as connection:
        for name in (*SETTINGS, "TimeZone"):
            value = connection.execute(f"SELECT current_setting('{name}')").fetchone()[0]
            if name.endswith("extensions"):
                assert value is False, name
        loaded = connection.execute(
            "SELECT install_mode FROM duckdb_extensions() WHERE loaded"
        ).fetchall()
        assert {mode for (mode,) in loaded} <= {"STATICALLY_LINKED"}
        assert connection.execute("SELECT current_setting('TimeZone')").fetchone() == ("UTC",)


SPILL = """
import os, sys, tempfile
from pathlib import Path
from spibb.sql.databases import answering
from spibb.sql.duck import open_duckdb
connection = open_duckdb()
connection.execute("SET memory_limit = '30MB'; SET threads = 1")
connection.execute("CREATE TABLE t AS SELECT hash(i) AS x FROM range(6000000) r(i)")
connection.execute("SELECT x FROM t ORDER BY x LIMIT 1 OFFSET 5000000").fetchall()
folder, = Path(tempfile.gettempdir()).glob("spibb-*")
print(oct(folder.stat().st_mode & 0o777), sum(1 for path in folder.rglob("*") if path.is_file()))
"""


def test_spill_folders_are_private_and_go_at_exit(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", SPILL], capture_output=True, text=True, check=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    mode, files = run.stdout.split()
    assert mode == "0o700"
    assert int(files) > 0, "the query did not spill"
    assert list(tmp_path.iterdir()) == []


def test_reading_a_log_leaves_the_umask_alone(tmp_path):
    before = os.umask(0o027)
    try:
        path = file(tmp_path)
        count_log(path)
        spibb.Policy.uniform(2, 2).save(tmp_path / "policy.csv")
        assert stat.S_IMODE((tmp_path / "policy.csv").stat().st_mode) == 0o640
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)


def test_a_decimal_comma_leads_to_its_option(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "episode_id;step;state;action;reward;terminated\n0;0;a;x;-1,5;true\n1;0;a;y;2,5;true\n"
    )
    with pytest.raises(
        InputError, match=r"is '-1,5', expected .*; or read decimal commas with --d"
    ):
        read_log(path)


def test_a_line_that_cannot_be_read_says_why(tmp_path):
    text = file(tmp_path, "csv").read_text(encoding="utf-8")
    (tmp_path / "latin.csv").write_bytes(text.replace("stay", "stäy").encode("latin-1"))
    with pytest.raises(InputError, match=r"Invalid unicode .*--encoding latin-1"):
        read_log(tmp_path / "latin.csv")
    head, row, *_ = text.splitlines()
    lines = [f"{head},notes", *(f'{row},"{"x" * 9_000_000}"' for _ in range(3))]
    (tmp_path / "long.csv").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match="Maximum line size of 8388608 bytes exceeded") as told:
        read_log(tmp_path / "long.csv")
    assert "\n" not in str(told.value)


def test_a_long_cell_with_many_lines_is_read(tmp_path):
    """Notes of several megabytes, in quotes."""
    text = file(tmp_path, "csv").read_text(encoding="utf-8")
    head, *rows = text.splitlines()
    notes = "next line\n" * 400_000
    lines = [f"{head},notes", *(f'{row},"{notes}"' for row in rows)]
    (tmp_path / "long.csv").write_text("\n".join(lines), encoding="utf-8")
    found, wanted = read_log(tmp_path / "long.csv"), read_log(file(tmp_path))
    assert (found.state == wanted.state).all() and (found.reward == wanted.reward).all()


def log_of_ids(path, *ids):
    rows = "".join(f"{name},{step},a,x,1,1\n" for step, name in enumerate(ids))
    path.write_text(f"episode_id,step,state,action,reward,terminated\n{rows}")
    return path


@pytest.mark.parametrize(
    "ids", [("1", "1.0"), ("2.0", "a", "2"), ("-3.0", "-3"), ("10", "5", "10.0")]
)
@pytest.mark.parametrize("options", [{}, {"missing": "drop"}])
def test_one_number_does_not_name_an_episode_in_two_ways(ids, options, tmp_path):
    path = log_of_ids(tmp_path / "log.csv", *ids)
    for read in (read_log, count_log):
        with pytest.raises(
            InputError, match=r"\.0, expected the number without \.0, as other rows"
        ):
            read(path, **options)


@pytest.mark.parametrize(
    "ids", [("1.0", "2"), ("1.0", "2.0"), ("v1", "v1.0"), ("1.5", "1"), ("01", "1")]
)
def test_other_names_of_episodes_are_taken_as_they_are(ids, tmp_path):
    path = log_of_ids(tmp_path / "log.csv", *ids)
    assert read_log(path).n_episodes == 2
    assert count_log(path).n.sum() == 2
