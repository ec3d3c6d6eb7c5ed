"""Parts of a study: what is damaged, foreign or there twice is refused by name."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import spibb
from spibb.errors import InputError
from spibb.experiments.parts import DIGITS, Chunk, part_files, store, stored_parts
from spibb.experiments.results import load_results
from spibb.experiments.runner import execute, plan
from spibb.experiments.spec import Column, Experiment
from spibb.experiments.workers import run_chunk

SPEC = Experiment("gridworld", (10, 20), (Column.parse("basic-rl"), Column.parse("pi-b:n_wedge=5")))


@pytest.fixture(scope="module")
def twelve(tmp_path_factory):
    """A study of twelve runs in four parts."""
    folder = tmp_path_factory.mktemp("twelve") / "rows"
    list(execute(plan(SPEC, folder, 12)))
    assert len(part_files(folder)) == 4
    return folder


@pytest.fixture
def rows(twelve, tmp_path):
    return Path(shutil.copytree(twelve, tmp_path / "rows"))


def add(folder: Path, chunk: Chunk, spec: Experiment = SPEC) -> Path:
    """A part as this version would have stored it."""
    return store(spec, folder, *run_chunk(spec, chunk))


def refused(folder: Path, message: str) -> None:
    """Neither continued nor aggregated, and nothing written."""
    before = sorted(folder.iterdir())
    for call in (lambda: plan(SPEC, folder, 20), lambda: load_results(folder)):
        with pytest.raises(InputError, match=message) as error:
            call()
        assert "move it out of the folder" in str(error.value)
        assert sorted(folder.iterdir()) == before


def test_what_is_stored_is_read_back(rows):
    stored = stored_parts(SPEC, rows)
    assert stored.chunks == [Chunk(0, 3), Chunk(3, 6), Chunk(6, 9), Chunk(9, 12)]
    assert {part.version for part in stored.parts} == {spibb.__version__}
    assert load_results(rows).runs == 12


def test_the_same_rows_give_the_same_file(twelve, tmp_path):
    again = add(tmp_path, Chunk(3, 6))
    assert again.name == part_files(twelve)[1].name
    assert again.read_bytes() == part_files(twelve)[1].read_bytes()


def test_every_flipped_bit_shows(rows):
    part = part_files(rows)[1]
    data = part.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.choice(len(data), 200, replace=False):
        flipped = bytearray(data)
        flipped[place] ^= 1 << rng.integers(8)
        part.write_bytes(flipped)
        assert stored_parts(SPEC, rows).damaged == (part,)
    with pytest.raises(InputError, match=f"{part.name}' is damaged: run the command"):
        load_results(rows)
    list(execute(plan(SPEC, rows, 12)))
    assert part.read_bytes() == data
    assert part.with_suffix(".broken").read_bytes() == flipped


def test_a_copy_under_the_name_of_other_runs_is_refused(rows):
    part = part_files(rows)[0]
    shutil.copy(part, rows / part.name.replace("000000000-000000003", "000000012-000000015"))
    refused(rows, r"part-000000012-.*' has runs 0 to 2, and its name says 12 to 14")


def test_a_renamed_part_is_refused(rows):
    part = part_files(rows)[3]
    part.rename(rows / part.name.replace("000000009-000000012", "000000012-000000015"))
    refused(rows, r"part-000000012-.*' has runs 9 to 11, and its name says 12 to 14")


@pytest.mark.parametrize("name", ["part-000000000-000000003.parquet", "part-0 (copy).parquet"])
def test_a_file_that_only_looks_like_a_part_is_refused(rows, name):
    shutil.copy(part_files(rows)[0], rows / name)
    refused(rows, "is not a part as spibb names them")


@pytest.mark.parametrize("chunk", [Chunk(2, 4), Chunk(0, 12), Chunk(11, 14), Chunk(4, 5)])
def test_parts_that_overlap_are_refused(rows, chunk):
    add(rows, chunk)
    refused(rows, r"part-.*' has runs that 'part-.*' has too")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 7}, "was made with seed 7, not 0"),
        ({"sizes": (10, 50)}, "belongs to another experiment"),
        ({"columns": SPEC.columns[::-1]}, "belongs to another experiment"),
        ({"max_steps": 40}, "belongs to another experiment"),
    ],
)
def test_a_part_of_another_experiment_is_refused(rows, change, message):
    add(rows, Chunk(12, 14), replace(SPEC, **change))
    refused(rows, f"part-000000012-.*' {message}")


def test_a_part_of_another_version_is_refused(rows, monkeypatch):
    monkeypatch.setattr(spibb, "__version__", "0.0.9")
    part = add(rows, Chunk(12, 14))
    monkeypatch.undo()
    refused(rows, f"{part.name}' was made by spibb 0.0.9, and 'part-000000009-.*' by ")


def test_a_study_of_another_version_is_aggregated_but_not_continued(rows, monkeypatch):
    first = load_results(rows)
    monkeypatch.setattr(spibb, "__version__", "9.9.9")
    with pytest.raises(
        InputError, match=r"was made by spibb .*, and this is 9\.9\.9: continue with"
    ):
        plan(SPEC, rows, 20)
    assert load_results(rows).cells == first.cells


def test_a_part_that_does_not_hold_its_runs_is_refused(rows):
    """As a file whose name and hash were made to fit would."""
    chunk, columns = run_chunk(SPEC, Chunk(12, 14))
    store(SPEC, rows, chunk, columns | {"run": columns["run"] // 13 * 13})
    refused(rows, "part-000000012-.*' does not have the rows of runs 12 to 13")


def test_a_table_from_elsewhere_is_refused(rows):
    import hashlib

    table = pq.read_table(part_files(rows)[0]).replace_schema_metadata({})
    pq.write_table(table, rows / "table")
    digest = hashlib.sha256((rows / "table").read_bytes()).hexdigest()[:16]
    (rows / "table").rename(rows / f"part-000000012-000000015-{digest}.parquet")
    refused(rows, "does not say what made it")


def test_a_changed_specification_does_not_fit_the_parts(rows):
    text = (rows / "experiment.toml").read_text()
    (rows / "experiment.toml").write_text(text.replace("max_steps = 50", "max_steps = 51"))
    with pytest.raises(InputError, match="belongs to another experiment"):
        load_results(rows)


def test_a_plan_is_stale_when_its_runs_are_stored(rows):
    first, second = plan(SPEC, rows, 20), plan(SPEC, rows, 20)
    list(execute(first))
    with pytest.raises(
        InputError, match=r"another process has stored runs 12 to 1\d .* in the meantime"
    ):
        list(execute(second))
    assert load_results(rows).runs == 20


def test_a_folder_in_work_is_refused(rows):
    """The first has stored a part and still has runs to do."""
    todo, also = plan(SPEC, rows, 20), plan(SPEC, rows, 20)
    steps = execute(todo)
    next(steps)
    for call in (lambda: plan(SPEC, rows, 20), lambda: next(execute(also))):
        with pytest.raises(InputError, match=r"rows' is being written by process \d+ on"):
            call()
    assert load_results(rows).runs > 12  # looking is allowed
    list(steps)
    assert load_results(rows).runs == 20


def test_specifications_differ_in_their_fingerprints():
    others = [
        replace(SPEC, seed=1), replace(SPEC, sizes=(10,)), replace(SPEC, columns=SPEC.columns[:1]),
        replace(SPEC, max_steps=51), replace(SPEC, study="gridworld-random"), SPEC,
    ]  # fmt: skip
    assert len({spec.fingerprint for spec in others}) == len(others)
    assert Experiment.from_toml(SPEC.to_toml()).fingerprint == SPEC.fingerprint


def test_a_part_whose_facts_are_no_text_is_refused(rows):
    """The name of the file fits what is in it, and the name of a fact is no UTF-8."""
    part = next(iter(part_files(rows)))
    table = pq.read_table(part)
    other = table.replace_schema_metadata({**table.schema.metadata, b"\xdf": b"x"})
    part.unlink()
    pq.write_table(other, rows / "other")
    digest = hashlib.sha256((rows / "other").read_bytes()).hexdigest()[:DIGITS]
    (rows / "other").rename(rows / f"{part.stem[:-DIGITS]}{digest}{part.suffix}")
    with pytest.raises(InputError, match="cannot be read"):
        stored_parts(SPEC, rows)
