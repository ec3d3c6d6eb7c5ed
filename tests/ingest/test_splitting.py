"""`spibb split`: whole episodes, each in one file, the same ones whatever the order or the file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from spibb.cli.app import app
from spibb.errors import InputError
from spibb.ingest import open_engine
from spibb.ingest.mapping import ColumnMap
from spibb.ingest.splitting import split_table
from spibb.tables import write_table


def table(n=60, name="episode_id", ids=None):
    rng = np.random.default_rng(0)
    episodes = rng.integers(0, 12, n)
    return pa.table({
        name: [ids[e] for e in episodes] if ids else episodes, "step": np.arange(n),
        "note": ["007", "a, \"b\"\nc", "", "=1", None] * (n // 5),
        "x": rng.normal(size=n), "when": pa.array(np.arange(n), pa.timestamp("us")),
    })  # fmt: skip


def run(command, code=0):
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == code, (done.output, done.exception)
    return done


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 0.99), st.integers(0, 50), st.integers(2, 40))
def test_every_row_is_in_one_part_and_every_episode_whole(share, seed, n):
    rows = table(n * 5)
    parts = split_table(open_engine(rows), ColumnMap(), share, seed)
    train, test = (set(part.column("episode_id").to_pylist()) for part in (parts.train, parts.test))
    assert not train & test and train and test
    assert (len(train), len(test)) == (parts.train_episodes, parts.test_episodes)
    steps = parts.train.column("step").to_pylist() + parts.test.column("step").to_pylist()
    assert sorted(steps) == list(range(n * 5))
    total = len(train) + len(test)
    assert len(test) == min(max(round(share * total), 1), total - 1)


@pytest.mark.parametrize("ids", [None, [f"p '{i}'" for i in range(12)], list("αβγδεζηθικλμ")])
def test_the_split_does_not_depend_on_the_order_or_the_kind_of_the_file(ids, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = table(ids=ids)
    write_table(rows, tmp_path / "log.csv")
    write_table(rows, tmp_path / "log.parquet")
    shuffled = rows.take(np.random.default_rng(1).permutation(len(rows)))
    write_table(shuffled, tmp_path / "other.csv")
    found = []
    for name, ending in (("log.csv", "csv"), ("log.parquet", "parquet"), ("other.csv", "csv")):
        out = f"out-{name}"
        run(f"split {name} --share 0.4 --seed 3 --out {out}")
        read = pd.read_csv if ending == "csv" else pd.read_parquet
        found.append({str(e) for e in read(tmp_path / out / f"test.{ending}")["episode_id"]})
    assert found[0] == found[1] == found[2]
    run("split log.csv --share 0.4 --seed 4 --out again")
    assert {str(e) for e in pd.read_csv("again/test.csv")["episode_id"]} != found[0]


def test_cells_columns_types_and_order_stay_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = table(name="Fall")
    write_table(rows, tmp_path / "log.csv")
    write_table(rows, tmp_path / "log.parquet")
    run("split log.csv --out a --episode Fall")
    run("split log.parquet --out b --episode Fall")
    whole = pd.read_csv("log.csv", dtype=str, keep_default_na=False)
    for part in ("train", "test"):
        cells = pd.read_csv(f"a/{part}.csv", dtype=str, keep_default_na=False)
        expected = whole[whole["Fall"].isin(set(cells["Fall"]))].reset_index(drop=True)
        pd.testing.assert_frame_equal(cells, expected)
        typed = pa.parquet.read_table(f"b/{part}.parquet")
        assert typed.schema.types == rows.schema.types
        mine = rows.filter(pa.compute.is_in(rows["Fall"], typed["Fall"].unique()))
        assert typed.equals(mine.cast(typed.schema))


def test_both_files_or_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(table(), tmp_path / "log.csv")
    done = run("split log.csv --share 0.25")
    assert "split/train.csv: 9 episodes" in done.output and "test.csv: 3 episodes" in done.output
    assert sorted(p.name for p in (tmp_path / "split").iterdir()) == [
        "manifest.sha256", "test.csv", "train.csv",
    ]  # fmt: skip
    before = (tmp_path / "split" / "test.csv").read_bytes()
    import spibb.sql.writing as writing

    real = writing.write_table

    def broken(rows, path):
        if "test" in path.name:
            raise OSError(28, "No space left on device")
        real(rows, path)

    write_table(table(), tmp_path / "log.parquet")
    monkeypatch.setattr(writing, "write_table", broken)
    done = run("split log.parquet --out broken", code=1)
    assert isinstance(done.exception, InputError) and not (tmp_path / "broken").exists()
    assert (tmp_path / "split" / "test.csv").read_bytes() == before


def test_rows_of_a_bandit_log_are_split_one_by_one_whatever_their_order(tmp_path, monkeypatch):
    """Equal rows are common there, and must not all go to one file."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"segment": rng.integers(0, 2, 400), "item": rng.integers(0, 2, 400),
                         "click": rng.integers(0, 2, 400)})  # fmt: skip
    rows.to_csv("clicks.csv", index=False)
    rows.sample(frac=1, random_state=1).to_csv("other.csv", index=False)
    counts = []
    for name in ("clicks", "other"):
        done = run(f"split {name}.csv --bandit --share 0.25 --out {name}")
        assert f"{name}/test.csv: 100 episodes, 100 rows" in done.output
        test = pd.read_csv(f"{name}/test.csv")
        counts.append(test.value_counts().sort_index())
        both = pd.concat([test, pd.read_csv(f"{name}/train.csv")])
        assert both.value_counts().sort_index().equals(rows.value_counts().sort_index())
    assert counts[0].equals(counts[1]) and len(counts[0]) == 8
