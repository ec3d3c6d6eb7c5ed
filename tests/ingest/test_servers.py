"""Real PostgreSQL and MariaDB, with users who may only read and whose passwords stay hidden."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from logs import COLUMNS, assert_same_counts_and_policy, hospital, write
from servers import PASSWORD, MariaDB, Postgres

from spibb import (
    Counts,
    InputError,
    Log,
    Source,
    count_log,
    estimate_baseline,
    read_log,
    read_policy,
    run,
)
from spibb.tables import long_form

TABLE = hospital(40)
LOG = Log.from_frame(TABLE, columns=COLUMNS)
TRUTH = Counts.from_log(LOG)
BASELINE = estimate_baseline(LOG, smoothing=1)
POLICY = long_form(LOG.states, LOG.actions, probability=BASELINE.probs)
SECRETS = (PASSWORD, "s3cr3t", "%41", "Kennwort")
"""What must be found nowhere: the password, and its beginning in any form."""
MAP = ["--state", "ward,severity", "--action", "drug"]


def same(source):
    """The counts where the log lies, and those of its rows."""
    assert_same_counts_and_policy(count_log(source, columns=COLUMNS), TRUTH)
    assert_same_counts_and_policy(Counts.from_log(read_log(source, columns=COLUMNS)), TRUTH)


@pytest.fixture(scope="module")
def postgres():
    running = Postgres({"visits": TABLE, 'a "b"; --': TABLE, "policy": POLICY})
    yield running
    running.stop()


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory):
    kinds = {"int64": "BIGINT", "double": "DOUBLE", "string": "VARCHAR(40)", "bool": "BOOLEAN"}
    made = []
    for name, table in (("visits", TABLE), ("policy", POLICY)):
        columns = ", ".join(f"`{field.name}` {kinds[str(field.type)]}" for field in table.schema)
        marks = ", ".join(["%s"] * table.num_columns)
        rows = [tuple(row.values()) for row in table.to_pylist()]
        made += [f"CREATE TABLE clinic.{name} ({columns})",
                 (f"INSERT INTO clinic.{name} VALUES ({marks})", rows)]  # fmt: skip
    running = MariaDB(tmp_path_factory.mktemp("maria"), made)
    yield running
    running.stop()


@pytest.fixture(params=["postgres", "mariadb"])
def server(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("CLINIC_SECRET", PASSWORD)


def test_a_reader_counts_and_reads(server):
    same(Source(server.url("$CLINIC_SECRET"), table="visits"))
    same(f"{server.url('${CLINIC_SECRET}')}#visits")
    same(Source(server.url("$CLINIC_SECRET"), query="SELECT * FROM visits WHERE step > 0;"))


def test_a_password_in_the_address_encoded_or_not(server):
    from urllib.parse import quote

    same(f"{server.url(quote(PASSWORD, safe=''))}#visits")
    same(Source(server.url("s3cr3t /@#?:%2541ü"), table="visits"))


def test_a_password_of_the_environment(postgres, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    same(f"{postgres.url()}#visits")


def test_a_password_of_the_environment_for_mysql(mariadb, monkeypatch):
    monkeypatch.setenv("MYSQL_PWD", PASSWORD)
    same(f"{mariadb.url()}#visits")


def test_a_password_file_for_mysql(mariadb, monkeypatch, tmp_path):
    mariadb.execute(
        "CREATE OR REPLACE USER plain@localhost IDENTIFIED BY 'Kennwort#1'",
        "GRANT SELECT ON clinic.* TO plain@localhost",
    )
    (tmp_path / ".my.cnf").write_text('[client]\npassword="Kennwort#1"\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    same(f"{mariadb.url().replace('reader', 'plain')}#visits")


def test_a_password_file(postgres, monkeypatch, tmp_path):
    path = tmp_path / "pgpass"
    escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
    path.write_text(f"*:*:*:reader:{escaped}\n", "utf-8")
    path.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(path))
    same(f"{postgres.url()}#visits")


def test_a_table_whose_name_needs_quotes_and_one_with_its_schema(postgres):
    same(Source(postgres.url("$CLINIC_SECRET"), table='a "b"; --'))
    same(Source(postgres.url("$CLINIC_SECRET"), table="public.visits"))


def test_a_policy_in_a_database(server):
    found = read_policy(Source(server.url("$CLINIC_SECRET"), table="policy"), LOG)
    assert found.row(LOG.states[0]) == BASELINE.row(LOG.states[0])


def test_bins_and_derived_successors_where_the_table_is(server):
    columns, bins = {"state": "severity", "action": "drug"}, {"severity": 2}
    source = Source(server.url("$CLINIC_SECRET"), table="visits")
    found = count_log(source, columns=columns, bins=bins)
    here = count_log(TABLE, columns=columns, bins=bins)
    assert_same_counts_and_policy(found, here)


@pytest.mark.parametrize(
    "query",
    ["DROP TABLE visits", "SELECT 1) AS asked; DROP TABLE visits; --", "CREATE TABLE x (i int)",
     "WITH gone AS (DELETE FROM visits RETURNING *) SELECT * FROM gone"],
)  # fmt: skip
def test_a_query_changes_nothing(server, query):
    with pytest.raises(InputError, match="cannot read"):
        count_log(Source(server.url("$CLINIC_SECRET"), query=query), columns=COLUMNS)
    same(Source(server.url("$CLINIC_SECRET"), table="visits"))


def test_mistakes_are_one_line_without_the_password(server):
    url = server.url("$CLINIC_SECRET")
    for source, told in [
        (Source(url), "is a database: name a table with --table"),
        (Source(url, table="visit"), r"no table 'visit' \(did you mean 'visits'"),
        (Source(url, table="nosuch.visits"), "cannot read"),
        (Source(server.url("wrong-s3cr3t"), table="visits"), "cannot read"),
        (Source(server.url("$NO_SUCH"), table="visits"), "variable NO_SUCH, which is not set"),
        (Source(url, table="visits", encoding="latin-1"), "is not text"),
        (Source(url, query="SELECT * FROM visits WHERE"), "cannot read"),
    ]:
        with pytest.raises(InputError, match=told) as raised:
            count_log(source, columns=COLUMNS)
        assert "\n" not in str(raised.value)
        assert not any(text in str(raised.value) for text in (*SECRETS, "reader"))


def test_a_missing_value_is_told_with_the_source(server):
    query = "SELECT episode_id, step, NULLIF(ward, 'north') AS ward, drug, reward FROM visits"
    columns = {"state": "ward", "action": "drug"}
    ward = TABLE.column("ward")[0].as_py()
    source = Source(server.url("$CLINIC_SECRET"), query=query.replace("north", ward))
    with pytest.raises(InputError, match=r"'ward' is missing in .* episode '.*' of ['\"]\w+://"):
        count_log(source, columns=columns)


def everything(folder, *done):
    """All that a command printed, and all files below a folder, as bytes."""
    printed = "".join(run.said for run in done).encode()
    return printed + b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_the_command_line_end_to_end_and_no_password_anywhere(server, commands, tmp_path):
    """The password test: improve, inspect, evaluate, compare; then every byte is searched."""
    from urllib.parse import quote

    url = server.url(quote(PASSWORD, safe=""))
    out = tmp_path / "work"
    out.mkdir()
    spibb = partial(commands.run, folder=out)
    improved = spibb("improve", url, "--table", "visits", "--baseline-table", "policy", *MAP,
                     "--n-wedge", "5", "--out", "improved")  # fmt: skip
    assert improved.code == 0, improved.err
    policy = f"{url}#policy"
    others = [
        spibb("inspect", f"{url}#visits", *MAP),
        spibb("evaluate", url, "--table", "visits", "--policy", "improved", "--behaviour", policy,
              *MAP),
        spibb("compare", "improved", "improved", "--log", f"{url}#visits", *MAP),
    ]  # fmt: skip
    assert [done.err for done in others if done.code] == []
    watched = spibb("monitor", "improved", url, "--table", "visits", "--lowest-return", "-9",
                    "--highest-return", "9", *MAP)  # fmt: skip
    assert "give only episodes that this policy made" in watched.err
    wrong = [
        spibb("improve", url, "--table", "nosuch", "--out", "x", *MAP),
        spibb("improve", url.replace("reader", "nobody"), "--table", "v", "--out", "x"),
        spibb("improve", url, url, "--out", "x"),
        spibb("inspect", "--n-wedge", url),
        spibb("inspect", url.replace("://", "+odd://")),
        spibb("improve", "nosuch.csv", "--baseline", url, "--out", "x"),
        spibb("evaluate", "nosuch.csv", "--policy", f"{url}#nosuch"),
    ]
    assert [(done.code, done.err.count("\n")) for done in wrong] == [(2, 1)] * len(wrong)
    assert sorted(path.name for path in out.iterdir()) == ["improved"]
    found = everything(out, improved, watched, *others, *wrong)
    for text in (*SECRETS, quote(PASSWORD, safe=""), "reader:", "user reader", "'reader'"):
        assert text.encode() not in found
    origin = json.loads((out / "improved" / "summary.json").read_text("utf-8"))["origin"]
    assert "://***@" in origin["command"]
    files = tmp_path / "files"
    write(TABLE, tmp_path / "log.parquet")
    write(POLICY, tmp_path / "policy.parquet")
    run(tmp_path / "log.parquet", files, baseline=tmp_path / "policy.parquet", columns=COLUMNS,
        n_wedge=5)  # fmt: skip
    theirs, ours = (
        (folder / "policy.csv").read_text("utf-8") for folder in (files, out / "improved")
    )
    assert theirs == ours


def test_python_writes_no_password_either(server, tmp_path):
    done = run(f"{server.url('s3cr3t /@#?:%2541ü')}#visits", tmp_path / "out", columns=COLUMNS)
    assert done.folder is not None
    found = everything(tmp_path) + repr(done).encode() + repr(Source(server.url("s3cr3t"))).encode()
    assert not [text for text in SECRETS if text.encode() in found]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="arguments stay as they are")
def test_the_list_of_processes_shows_no_password(tmp_path):
    """A server that never answers keeps the command waiting while its title is read."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        url = f"postgresql://reader:Kennwort@127.0.0.1:{port}/x?password=Kennwort"
        waiting = subprocess.Popen(
            [sys.executable, "-m", "spibb", "inspect", url, "--table", "t"], cwd=tmp_path,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            server.settimeout(120)
            connected, _ = server.accept()
            title = Path(f"/proc/{waiting.pid}/cmdline").read_bytes()
            time.sleep(0.1)
            connected.close()
        finally:
            waiting.kill()
            waiting.wait()
    assert b"127.0.0.1" in title
    assert b"Kennwort" not in title


def test_a_table_in_text_columns_says_what_to_do(postgres):
    postgres.execute(
        "CREATE TABLE IF NOT EXISTS texts AS SELECT episode_id, step, ward AS state, drug AS "
        "action, CAST(reward AS TEXT) AS reward, terminated FROM visits",
        "GRANT SELECT ON texts TO reader",
    )
    with pytest.raises(InputError, match="reward is text in column 'reward', expected numbers"):
        count_log(Source(postgres.url("$CLINIC_SECRET"), table="texts"))
    query = (
        "SELECT episode_id, step, state, action, reward::float8 AS reward, terminated FROM texts"
    )
    found = count_log(Source(postgres.url("$CLINIC_SECRET"), query=query))
    assert found.n.sum() > 0


def test_enumerations_numerics_and_domains_are_read(postgres):
    postgres.execute(
        "DO $$ BEGIN CREATE TYPE mood AS ENUM ('sad', 'fine'); CREATE DOMAIN points AS numeric; "
        "EXCEPTION WHEN duplicate_object THEN NULL; END $$",
        "DROP TABLE IF EXISTS moods",
        "CREATE TABLE moods AS SELECT i AS episode_id, 0 AS step, (ARRAY['sad', 'fine'])[1 + i % 2]"
        "::mood AS state, i % 3 AS action, (i / 4.0)::points AS reward, true AS terminated "
        "FROM generate_series(1, 12) AS i",
        "GRANT SELECT ON moods TO reader",
    )
    table = pa.table(
        {"episode_id": range(1, 13), "step": [0] * 12,
         "state": [["sad", "fine"][i % 2] for i in range(1, 13)],
         "action": [i % 3 for i in range(1, 13)], "reward": [i / 4 for i in range(1, 13)],
         "terminated": [True] * 12}
    )  # fmt: skip
    found = count_log(Source(postgres.url("$CLINIC_SECRET"), table="moods"))
    assert_same_counts_and_policy(found, count_log(table))
