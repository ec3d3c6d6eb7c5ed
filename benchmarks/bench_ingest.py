"""Counts from a Parquet log: rows per second and per core, and peak memory, against pandas.

Run: python -m benchmarks.bench_ingest [rows] (10,000,000 rows unless told; 100,000,000 need 1 GB of
disk). Every measurement is a process of its own; rates are per second of processor time, since
the cores may be shared, and per second of the wall clock.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.alone import alone

ROWS = 10_000_000
WANTED = 15e6
"""Rows per second and core."""

MEASURE = """
import json, sys, time
{job}
wall, cpu = time.perf_counter(), time.process_time()
total = count(sys.argv[1])
print(json.dumps(dict(total=int(total), wall=time.perf_counter() - wall,
                      cpu=time.process_time() - cpu)))
"""
SPIBB = """
import spibb.ingest, spibb.sql.reading
def count(path):
    return spibb.ingest.count_log(path).n.sum()
"""
DERIVED = """
import spibb.ingest, pyarrow.parquet
def count(path):
    table = spibb.ingest.open_log(path)
    names = dict(table.names) | {"next_state": ()}
    return spibb.ingest.aggregate.LogTable(table.engine, names, {}).counts().n.sum()
import spibb.ingest.aggregate
"""
PANDAS = """
import pandas as pd
def count(path):
    frame = pd.read_parquet(path)
    frame["square"] = frame.reward**2
    keys = ["state", "action", "next_state", "terminated"]
    sums = frame.groupby(keys, observed=True).agg(
        n=("reward", "size"), total=("reward", "sum"), squares=("square", "sum"))
    frame[frame.step == 0].groupby("state", observed=True).size()
    return sums.n.sum()
"""


def write_log(path: Path, rows: int, text: bool, scattered: bool = False) -> None:
    """A walk over 200 states in episodes of 20 steps, 5 actions, some 5,000 outcomes.

    Episodes are numbered on, or their numbers are `scattered` over 32 bits.
    """
    import duckdb

    episode = "(i // 20) * 2654435761 % 4294967296" if scattered else "i // 20"

    state = "(hash(i // 20) % 10 + (i % 20) * 7 + (hash(i) % 4) * 3) % 200"
    following = "(hash(i // 20) % 10 + (i % 20 + 1) * 7 + (hash(i + 1) % 4) * 3) % 200"
    label = "'ward-' || {}" if text else "({})::INT"
    action = "'drug-' || hash(i * 7 + 3) % 5" if text else "(hash(i * 7 + 3) % 5)::INT"
    duckdb.connect().execute(
        f"""COPY (SELECT {episode} AS episode_id, (i % 20)::INT AS step,
        {label.format(state)} AS state, {action} AS action,
        (hash(i * 13) % 8 / 4.0)::DOUBLE AS reward, {label.format(following)} AS next_state,
        i % 20 = 19 AND hash(i) % 3 <> 0 AS terminated, i % 20 = 19 AND hash(i) % 3 = 0 AS truncated
        FROM range({rows}) AS t(i)) TO '{path}'"""
    )


def measure(job: str, path: Path, repeats: int) -> dict[str, float]:
    """The least disturbed of several processes."""
    runs = []
    for _ in range(repeats):
        command = [sys.executable, "-c", MEASURE.format(job=job), str(path)]
        taken = alone(command)
        runs.append(json.loads(taken.printed) | {"memory": taken.megabytes})
    return min(runs, key=lambda run: run["cpu"])


def report(name: str, rows: int, run: dict[str, float]) -> None:
    per_core, rate = rows / run["cpu"] / 1e6, rows / run["wall"] / 1e6
    print(f"{name:34} {per_core:6.1f} Mrows/s/core {rate:6.1f} Mrows/s {run['memory']:7.0f} MB")


def main(rows: int = ROWS) -> None:
    """Print a table; wanted: 15 million rows per second and core, below 1 GB."""
    with tempfile.TemporaryDirectory() as folder:
        for text in (False, True):
            path = Path(folder) / f"{'text' if text else 'integers'}.parquet"
            write_log(path, rows, text)
            kind = "text" if text else "integers"
            print(f"{rows:,} rows, labels are {kind}, {path.stat().st_size / 1e6:.0f} MB")
            report("  counts", rows, measure(SPIBB, path, 3))
            report("  counts, successors derived", rows, measure(DERIVED, path, 1))
            if rows <= 2 * ROWS:
                report("  pandas", rows, measure(PANDAS, path, 1))
        write_log(path, rows, text=True, scattered=True)
        report("  counts, episodes scattered", rows, measure(SPIBB, path, 2))
    print(f"wanted: {WANTED / 1e6:.0f} Mrows/s/core, below 1,000 MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
