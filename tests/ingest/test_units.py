"""One row of every unit counts: the same one whatever the source, the engine or the order of rows.

The oracle draws in plain Python; what is read is then what is read of the drawn rows alone.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import defaultdict
from hashlib import md5
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import spibb
from spibb import Counts, Log, count_log, open_log, read_log
from spibb.arrays import GRID
from spibb.cli.app import app
from spibb.errors import InputError
from spibb.ingest import aggregate, open_engine
from spibb.ingest.assumptions import doubts
from spibb.ingest.mapping import ColumnMap, read_mapping
from spibb.ingest.splitting import split_table
from spibb.monitoring.watch import chronological
from spibb.sql import duck_files

COLUMNS = {"state": "seg", "action": "item", "reward": "click", "action_prob": "p"}
UNIT = {**COLUMNS, "unit": "user_id"}
OPTIONS = "--bandit --state seg --action item --reward click --action-prob p"


def clicks(n=300, users=40, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "user_id": rng.integers(0, users, n), "site": rng.choice(["a", "b|c", "é"], n),
        "seg": rng.choice(["x", "yy", "Z", ""], n), "item": rng.integers(8, 12, n),
        "click": rng.choice([-1.5, 0.0, 0.1, 1e3], n), "p": rng.choice([0.25, 0.5], n),
        "age": rng.normal(50, 9, n).round(2), "when": rng.permutation(n),
    })  # fmt: skip


def hashed(*parts):
    return md5("|".join(map(str, parts)).encode()).hexdigest()


def number(digest):
    return int(digest[:8], 16)


def drawn(frame, unit=("user_id",), labels=("seg", "item"), numbers=("click", "p")):
    """The numbers of the rows that count, slowly."""
    rows = frame.to_dict("records")
    rewards = [row["click"] for row in rows]
    size = max(map(abs, rewards)) or 1.0
    low, span = min(rewards) / size, max(rewards) / size - min(rewards) / size
    total, units = 0, defaultdict(list)
    for i, row in enumerate(rows):
        point = math.floor((row["click"] / size - low) * (GRID / (span or 1.0)) + 0.5)
        total += number(hashed(*(row[c] for c in unit), *(row[c] for c in labels), point))
        key = [hashed(row[c]) for c in labels] + [row[c] for c in numbers] + [i]
        units[tuple(row[c] for c in unit)].append((key, i))
    salt = f"{len(rows)} {total}"
    chosen = [sorted(mine)[number(hashed(salt, *name)) % len(mine)][1]
              for name, mine in units.items()]  # fmt: skip
    return sorted(chosen)


def read_as(log):
    """All that a log holds, row by row."""
    return [
        (log.states[s], log.actions[a], r, p)
        for s, a, r, p in zip(log.state, log.action, log.reward, log.action_prob)
    ]


def sources(frame, tmp_path):
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    frame.to_json(tmp_path / "log.jsonl", orient="records", lines=True)
    with sqlite3.connect(tmp_path / "log.db") as connection:
        frame.to_sql("log", connection, index=False)
    connection.close()
    lazy = pl.from_pandas(frame).lazy()
    files = [tmp_path / "log.csv", tmp_path / "log.parquet", tmp_path / "log.jsonl"]
    return [*files, f"{tmp_path / 'log.db'}#log", frame, lazy, duckdb.from_df(frame)]


def spelt(frame):
    """A CSV file knows no empty text."""
    return frame.replace({"seg": {"": "none"}})


def test_the_drawn_rows_are_those_of_the_oracle_in_every_source(tmp_path):
    frame = spelt(clicks())
    expected = read_log(frame.iloc[drawn(frame)], columns=COLUMNS, bandit=True)
    assert len(expected) == frame["user_id"].nunique() < len(frame)
    for source in sources(frame, tmp_path):
        log = read_log(source, columns=UNIT, bandit=True)
        assert read_as(log) == read_as(expected), "in the order of the file"
        assert log.one_per == ("user_id",)
        counts = count_log(source, columns=UNIT, bandit=True)
        assert np.array_equal(counts.n, Counts.from_log(expected).n)
        assert counts.one_per == ("user_id",)
    assert read_as(Log.from_frame(frame, columns=UNIT, bandit=True)) == read_as(expected)


@pytest.mark.parametrize("seed", range(20))
def test_neither_the_order_of_rows_nor_equal_rows_matter(seed):
    frame = clicks(200, 12, seed).drop(columns=["age", "when"])
    frame = pd.concat([frame, frame[:50]], ignore_index=True)
    shuffled = frame.sample(frac=1, random_state=seed)
    columns = {**COLUMNS, "unit": ["site", "user_id"]}
    expected = frame.iloc[drawn(frame, unit=("site", "user_id"))]
    for source in (frame, shuffled):
        log = read_log(source, columns=columns, bandit=True)
        assert sorted(read_as(log)) == sorted(
            read_as(read_log(expected, columns=COLUMNS, bandit=True))
        )


def test_large_logs_and_copies_of_text_have_the_same_rows(tmp_path, monkeypatch):
    frame = spelt(clicks())
    frame.to_csv(tmp_path / "log.csv", index=False)
    expected = read_log(frame.iloc[drawn(frame)], columns=COLUMNS, bandit=True)
    monkeypatch.setattr(aggregate, "ORDER_UP_TO", 2)
    monkeypatch.setattr(duck_files, "WORTH_A_COPY", 0)
    table = open_log(tmp_path / "log.csv", columns=UNIT, bandit=True)
    assert table.undrawn is not None
    assert read_as(table.log()) == read_as(expected)
    assert np.array_equal(table.counts().n, Counts.from_log(expected).n)
    assert (table.rows, table.whole.rows) == (len(expected), len(frame))
    when = frame["when"].iloc[drawn(frame)]
    assert table.episode_order("when").tolist() == np.argsort(when).tolist()


def test_every_row_of_a_unit_is_as_likely_as_the_others():
    """Of 400 users with nine zeros and a one, about 40 show the one."""
    frame = pd.DataFrame({"user_id": np.repeat(np.arange(400), 10), "seg": "x", "item": 0,
                          "click": np.tile([1] + [0] * 9, 400), "p": 1.0})  # fmt: skip
    ones = read_log(frame, columns=UNIT, bandit=True).reward.sum()
    assert 20 < ones < 60


def test_the_draw_of_a_user_differs_between_logs():
    """The same users in other logs: names alone must not decide, for a place may tell the kind."""
    ones = np.zeros(10)
    for seed in range(100):
        frame = pd.DataFrame({"user_id": np.repeat(np.arange(11), 2), "seg": "x", "item": 0,
                              "click": np.tile([0.0, 1.0], 11), "p": 1.0})  # fmt: skip
        frame.loc[20:, "click"] = np.random.default_rng(seed).random(2)
        log = read_log(frame, columns=UNIT, bandit=True)
        ones += log.reward[:10]
    assert (ones > 30).all() and (ones < 70).all()


def test_bins_are_quantiles_of_the_rows_that_count(tmp_path):
    frame = spelt(clicks())
    columns, bins = {**COLUMNS, "state": ["seg", "age"]}, {"age": 3}
    rows = drawn(frame, labels=("seg", "item"), numbers=("click", "p", "age"))
    expected = open_log(frame.iloc[rows], columns=columns, bins=bins, bandit=True)
    for source in sources(frame, tmp_path):
        table = open_log(source, columns={**columns, "unit": "user_id"}, bins=bins, bandit=True)
        assert table.bins == expected.bins
        assert read_as(table.log()) == read_as(expected.log())


def test_vectors_have_units_too(tmp_path):
    frame = clicks()
    frame.to_csv(tmp_path / "log.csv", index=False)
    columns = {**COLUMNS, "state": ["age", "when"]}
    rows = drawn(frame, labels=("item",), numbers=("click", "p", "age", "when"))
    for source in (frame, tmp_path / "log.csv"):
        log = spibb.read_vectors(source, columns={**columns, "unit": "user_id"}, bandit=True)
        assert log.state.tolist() == frame[["age", "when"]].iloc[rows].to_numpy().tolist()


def test_a_unit_may_be_a_part_of_the_state():
    frame = clicks()
    columns = {**UNIT, "state": ["user_id", "seg"]}
    log = read_log(frame, columns=columns, bandit=True)
    assert len(log) == frame["user_id"].nunique() == len({user for user, _ in log.states.labels})
    with pytest.raises(InputError, match="column 'item' is mapped twice, to action and unit"):
        read_log(frame, columns={**COLUMNS, "unit": "item"}, bandit=True)


def test_a_column_called_unit_is_used_only_where_that_is_said():
    frame = clicks().rename(columns={"user_id": "unit"})
    assert len(read_log(frame, columns=COLUMNS, bandit=True)) == len(frame)
    log = read_log(frame, columns={**COLUMNS, "unit": "unit"}, bandit=True)
    assert len(log) == frame["unit"].nunique()


# ---- what is wrong with rows --------------------------------------------------------------------


def test_rows_that_are_not_drawn_are_checked_too(tmp_path):
    frame = spelt(clicks())
    wrong = next(i for i in range(5, len(frame)) if i not in drawn(frame))
    text = frame.astype({"click": object})
    text.loc[wrong, "click"] = "soon"
    text.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(InputError, match=f"reward .* in row {wrong} is 'soon', expected a number"):
        read_log(tmp_path / "log.csv", columns=UNIT, bandit=True)


def test_missing_units_are_refused_or_left_out():
    frame = clicks().astype({"user_id": object})
    frame.loc[[3, 7, 8], "user_id"] = None
    for missing in ("error", "as-level"):
        for columns in (UNIT, {**UNIT, "state": ["seg", "user_id"]}):
            with pytest.raises(InputError, match=r"'user_id' is missing in row 3 \(3 such"):
                read_log(frame, columns=columns, bandit=True, missing=missing)
    table = open_log(frame, columns=UNIT, bandit=True, missing="drop")
    whole = frame.dropna().astype({"user_id": int}).reset_index(drop=True)
    expected = read_log(whole.iloc[drawn(whole)], columns=COLUMNS, bandit=True)
    assert read_as(table.log()) == read_as(expected)
    said = {found.what: found.value for found in spibb.inspect_log(table).facts}
    assert said["Left out for missing values"] == f"3 of {len(frame)} rows"
    assert said["What counts"].startswith(f"{len(expected)} of {len(whole)} rows: one per user_id")


def test_units_are_text_or_whole_numbers():
    frame = clicks().assign(user_id=0.5)
    with pytest.raises(InputError, match=r"unit \(column 'user_id'\) in row 0 is 0\.5"):
        read_log(frame, columns=UNIT, bandit=True)


def test_a_log_of_episodes_has_no_unit(tmp_path):
    with pytest.raises(InputError, match="the episode is the unit: leave it out, or add --bandit"):
        read_log(clicks(), columns=UNIT)
    with pytest.raises(InputError, match="the episode is the unit"):
        split_table(open_engine(clicks()), ColumnMap({"unit": "user_id"}), 0.5, 0)


# ---- what is said -------------------------------------------------------------------------------


def said(frame, columns=COLUMNS):
    found = spibb.inspect_log(open_log(frame, columns=columns, bandit=True))
    return [f.value for f in found.facts if f.what == "What counts"]


def doubted(frame, columns=COLUMNS):
    return doubts(spibb.inspect_log(open_log(frame, columns=columns, bandit=True)).findings)


def test_a_log_says_how_many_rows_of_how_many_units_count():
    frame = clicks()
    n = frame["user_id"].nunique()
    assert said(frame, UNIT) == [f"{n} of 300 rows: one per user_id, drawn at random"]
    two = said(frame, {**COLUMNS, "unit": ["site", "user_id"]})[0]
    assert two.endswith("one per site and user_id, drawn at random")
    single = frame.drop_duplicates("user_id")
    assert said(single, UNIT) == [f"all {n} rows: every user_id has one"]


@pytest.mark.parametrize(
    "name", ["user_id", "User", "customerId", "patient", "session-id", "device_id", "subject no"]
)
def test_a_column_that_names_users_is_proposed_as_the_unit(name):
    frame = clicks().rename(columns={"user_id": name}).assign(visitor_id=range(300))
    (line,) = doubted(frame)
    option = f"'{name}'" if " " in name else name
    assert line == (
        f"the 300 rows have only {frame[name].nunique()} different values of {name}, and every "
        f"bound assumes independent rows; add --unit {option}"
    )


@pytest.mark.parametrize("command", ["inspect", "improve", "evaluate", "compare"])
def test_rows_of_one_user_are_a_doubt_beside_every_verdict(tmp_path, command):
    """In the first lines and in the report's headline; the grade stays, and nothing is repeated."""
    log, columns = tmp_path / "log.csv", {k: COLUMNS[k] for k in ("state", "action", "reward")}
    clicks().replace({"seg": {"": "q"}}).to_csv(log, index=False)
    done = spibb.run(log, tmp_path / "out", columns=columns, bandit=True)
    (doubt,) = done.verdict.doubts
    assert doubt in (tmp_path / "out" / "report.html").read_text("utf-8").split("<main>")[0]
    words = {
        "inspect": f"{log}", "improve": f"{log} --out {tmp_path}/new",
        "evaluate": f"{log} --policy {tmp_path}/out --behaviour estimate",
        "compare": f"{tmp_path}/out {tmp_path}/out --log {log}",
    }[command]  # fmt: skip
    options = "--bandit --state seg --action item --reward click"
    found = CliRunner().invoke(app, f"{command} {words} {options}".split())
    assert found.exit_code == 0, found.output
    first, *others = " ".join(found.output.split()).split("Doubt: ")
    assert len(others) == 1 and others[0].startswith(f"{doubt}.")
    begins = "Certified", "Supported", "Not supported: keep ", "Not judged. ", "Enough evidence"
    assert first.startswith(begins)
    assert "It assumes that" not in first
    assert "Nothing suspicious" not in found.output


def test_groups_of_users_columns_that_are_read_and_single_rows_are_not_proposed():
    frame = clicks()
    assert doubted(frame.assign(user_id=range(300))) == ()
    assert doubted(frame.drop(columns="user_id").assign(device=frame["site"])) == ()
    assert doubted(frame, {**COLUMNS, "state": "user_id"}) == ()


def test_the_coarser_of_two_units_is_proposed():
    frame = clicks().assign(session_id=np.arange(300) // 2)
    assert doubted(frame)[0].endswith("add --unit user_id")


def test_the_verdict_says_what_is_independent():
    frame = clicks(n=600, users=300)
    for columns, words in ((UNIT, "every user_id is an independent case"),
                           (COLUMNS, "name its column (--unit)")):  # fmt: skip
        log = read_log(frame.assign(p=0.25), columns=columns, bandit=True)
        result = spibb.improve(log, discount=0.0)
        assert any(words in clause for clause in result.verdict.assumptions)
        counted = spibb.Problem.from_counts(Counts.from_log(log), "estimate", discount=0.0)
        again = spibb.PiBSpibb(n_wedge=10).improve(counted)
        assert any(words in clause for clause in again.verdict.assumptions)


# ---- commands -----------------------------------------------------------------------------------


def run(command, code=0):
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == code, (done.output, done.exception)
    return " ".join(done.output.split())


@pytest.fixture
def improved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = spelt(clicks()).assign(p=0.25, click=lambda f: (f["click"] > 0).astype(int))
    frame.to_csv("clicks.csv", index=False)
    out = run(f"improve clicks.csv {OPTIONS} --unit user_id --out improved --v-max 1")
    return frame, out


def test_every_command_says_it_and_a_policy_remembers_its_unit(improved):
    frame, out = improved
    n = frame["user_id"].nunique()
    line = f"What counts: {n} of 300 rows: one per user_id, drawn at random."
    assert line in out
    summary = json.loads(Path("improved/summary.json").read_text())
    assert summary["transitions"] == n
    assert line in [f"{f['what']}: {f['value']}." for f in summary["findings"]]
    assert any("user_id is an independent case" in a for a in summary["verdict"]["assumptions"])
    assert "rows: one per user_id, drawn at random" in Path("improved/report.html").read_text()
    assert line in run("evaluate clicks.csv --policy improved")
    assert line in run("compare improved improved --log clicks.csv")
    assert f"{n} of 300 rows: one per user_id" in run(
        f"inspect clicks.csv {OPTIONS} --unit user_id"
    )
    spelt(clicks()).drop(columns="user_id").to_csv("other.csv", index=False)
    done = CliRunner().invoke(app, ["evaluate", "other.csv", "--policy", "improved"])
    assert "the log has no column 'user_id'" in str(done.exception)


def test_a_mapping_file_and_run_take_a_unit(improved):
    frame, _ = improved
    Path("map.toml").write_text(
        'bandit = true\n[columns]\nunit = ["site", "user_id"]\nstate = "seg"\naction = "item"\n'
        'reward = "click"\n'
    )
    reading = read_mapping("map.toml").reading
    done = spibb.run("clicks.csv", **reading)
    n = len(frame[["site", "user_id"]].drop_duplicates())
    assert done.inspection.rows == n
    assert f"{n} of 300 rows: one per site and user_id" in done.assumptions[-1].value


def test_a_monitored_unit_counts_with_its_first_row_which_stays(improved):
    """What was seen at one look must be what is seen at the next: only then it may be repeated."""
    frame, _ = improved
    columns = {**UNIT, "state": "seg"}
    for order in (None, "when"):
        seen = None
        for n in (100, 200, 300):
            so_far = frame if order is None else frame.sort_values("when")
            so_far = so_far[:n] if order is None else so_far[:n].sample(frac=1, random_state=0)
            log, how = chronological(open_log(so_far, columns=columns, bandit=True), order)
            first = (so_far if order is None else so_far.sort_values("when")).drop_duplicates(
                "user_id"
            )
            assert log.reward.tolist() == first["click"].tolist()
            assert seen is None or log.reward.tolist()[: len(seen)] == seen
            seen = log.reward.tolist()
            assert how == (
                f"by {order or 'row'}, the first row of every user_id ({len(first)} of {n})"
            )
    out = run("monitor improved clicks.csv --lowest-return 0 --highest-return 1")
    assert "the first row of every user_id" in out and "drawn at random" not in out


def test_a_split_keeps_the_rows_of_a_unit_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = spelt(clicks())
    frame.to_csv("clicks.csv", index=False)
    frame.sample(frac=1, random_state=3).to_parquet("other.parquet")
    assert "units (user_id)" in run("split clicks.csv --bandit --unit user_id --out one")
    run("split other.parquet --bandit --unit user_id --out other")
    run("split clicks.csv --bandit --unit site,user_id --out two")
    train, test = (pd.read_csv(f"one/{name}.csv") for name in ("train", "test"))
    assert len(train) + len(test) == len(frame), "no row is left out"
    assert set(train["user_id"]).isdisjoint(test["user_id"])
    assert set(pd.read_parquet("other/test.parquet")["user_id"]) == set(test["user_id"])
    names = [{*pd.read_csv(f"two/{name}.csv")[["site", "user_id"]].itertuples(index=False)}
             for name in ("train", "test")]  # fmt: skip
    assert names[0].isdisjoint(names[1])
    total = len(names[0]) + len(names[1])
    assert len(names[1]) == round(0.3 * total)
