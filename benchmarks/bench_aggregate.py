"""Means and tail means of a study's rows: time and peak memory as runs grow, against pandas.

Every measurement is a process of its own.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.alone import alone
from spibb.experiments.finite import GRIDWORLD_SIZES as SIZES
from spibb.experiments.parts import Chunk, store
from spibb.experiments.runner import SPEC
from spibb.experiments.spec import Column, Experiment

RUNS = 100_000, 1_000_000, 3_000_000
PER_PART = 20_000

MEASURE = """
import sys, time
from pathlib import Path
{job}
begin = time.perf_counter()
aggregate(Path(sys.argv[1]))
print(f"{{time.perf_counter() - begin:6.1f}} s")
"""
SPIBB = "from spibb.experiments.results import load_results as aggregate"
PANDAS = """
import pandas as pd
def tail_mean(values, share):
    return values.nsmallest(int(share * len(values))).mean()
def aggregate(folder):
    frame = pd.read_parquet(sorted(folder.glob("part-*.parquet")))
    value = (frame["basic-rl"].astype(float) - frame.baseline) / (frame.optimal - frame.baseline)
    for _, group in value.groupby(frame["size"]):
        [tail_mean(group, share) for share in (1, 0.1, 0.01, 0.001)]
"""


def write_rows(folder: Path, runs: int) -> None:
    """A study of one column whose values are noise."""
    experiment = Experiment("gridworld", SIZES, (Column.parse("basic-rl"),))
    experiment.write(folder / SPEC)
    rng = np.random.default_rng(0)
    n = PER_PART * len(SIZES)
    for start in range(0, runs, PER_PART):
        chunk = Chunk(start, start + PER_PART)
        columns = {
            "run": np.repeat(np.arange(start, chunk.stop, dtype=np.int32), len(SIZES)),
            "eta": np.full(n, np.nan),
            "size": np.tile(np.array(SIZES, dtype=np.int32), PER_PART),
            "baseline": np.full(n, 0.4),
            "optimal": np.full(n, 0.6),
            "basic-rl": rng.normal(0.5, 0.1, n).astype(np.float32),
        }
        store(experiment, folder, chunk, columns)


def main() -> None:
    for runs in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            write_rows(Path(folder), runs)
            for name, job in (("spibb, with intervals", SPIBB), ("pandas, without", PANDAS)):
                command = [sys.executable, "-c", MEASURE.format(job=job), folder]
                taken = alone(command)
                spent = f"{taken.printed} {taken.megabytes:6.0f} MB"
                print(f"{runs:>10,} runs of one column: {name:22} {spent}", flush=True)


if __name__ == "__main__":
    main()
