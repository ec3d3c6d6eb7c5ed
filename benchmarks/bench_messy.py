"""A messy export of two million rows: processor time and peak memory of `spibb improve`.

Run: python -m benchmarks messy, or python -m benchmarks.bench_messy [rows]. A CSV file in no order,
with times as steps, words for ends, columns that nobody needs, missing values and copies of rows;
and the same file without those two, for versions that refuse them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.alone import Taken, alone

ROWS = 2_000_000
SECONDS, MEGABYTES = 15, 500
"""Wanted."""
OPTIONS = [
    "--episode", "patient", "--step", "visited", "--state", "ward,age", "--action", "drug",
    "--reward", "gain", "--terminated", "left", "--bin", "age:5",
]  # fmt: skip
DIRTY = ["--missing", "as-level", "--duplicates", "drop"]


def write_export(path: Path, rows: int, dirty: bool) -> None:
    """Patients of ten visits in twelve wards; 1 % of the ages is missing, 0.5 % of the rows twice.

    The rows are in the order of a hash, as an export of several machines may be.
    """
    import duckdb

    age = "CASE WHEN hash(i * 3) % 100 = 0 THEN NULL ELSE 18 + hash(i // 10) % 70 END"
    plain = f"""SELECT 'p-' || (i // 10) AS patient,
        strftime(TIMESTAMP '2024-01-01' + INTERVAL 1 DAY * (i % 10) + INTERVAL 1 SECOND
                 * (hash(i // 10) % 86400)::INT, '%Y-%m-%d %H:%M:%S') AS visited,
        'ward ' || (hash(i * 5) % 12) AS ward, {age if dirty else age.replace("NULL", "40")} AS age,
        CASE WHEN hash(i * 7) % 3 = 0 THEN 'new drug' ELSE 'usual care' END AS drug,
        (hash(i * 11) % 200 / 100.0)::DECIMAL(4, 2) AS gain,
        CASE WHEN i % 10 = 9 THEN 'yes' ELSE 'no' END AS left,
        'seen by doctor ' || (hash(i * 13) % 900) || ', next call in two weeks' AS notes,
        md5(i::VARCHAR) AS record FROM range({rows}) AS t(i)"""
    again = f"UNION ALL SELECT * FROM ({plain}) WHERE hash(record) % 200 = 0" if dirty else ""
    connection = duckdb.connect(config={"memory_limit": "1GB"})
    connection.execute(
        f"COPY (SELECT * FROM ({plain} {again}) ORDER BY hash(record)) TO '{path}' (HEADER)"
    )


def measure(path: Path, options: list[str]) -> Taken:
    """What one process takes to improve from the export."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "spibb", "improve", str(path), *OPTIONS, *options]
        return alone([*command, "--out", f"{folder}/out"])


def main(rows: int = ROWS) -> None:
    """Print a table; wanted: 15 s of processor time and 500 MB."""
    with tempfile.TemporaryDirectory() as folder:
        for dirty in (False, True):
            path = Path(folder) / "export.csv"
            write_export(path, rows, dirty)
            size = path.stat().st_size / 1e6
            taken = measure(path, DIRTY if dirty else [])
            kind = "with missing values and copies" if dirty else "clean"
            print(
                f"{rows:,} rows {kind}, {size:.0f} MB: {taken.cpu:.1f} s of processor time, "
                f"{taken.wall:.1f} s on the clock, {taken.megabytes:.0f} MB",
                flush=True,
            )
    print(f"wanted: {SECONDS} s of processor time, {MEGABYTES} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
