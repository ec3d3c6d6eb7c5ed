"""Rows against counts on 5,000 damaged logs.

Run: python -m benchmarks fuzz, or python benchmarks/bench_fuzz.py [mutations] [seed]. The tests run
500 of another seed.
"""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

MUTATIONS = 5000
SEED = 2026


def main(mutations: int = MUTATIONS, seed: int = SEED) -> None:
    """Print each difference, and how many there were; wanted: none."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    differences = importlib.import_module("fuzz_logs").differences
    began, found = time.perf_counter(), 0
    for difference in differences(mutations, seed):
        print(difference, end="\n\n", flush=True)
        found += 1
    took = time.perf_counter() - began
    print(f"{mutations:,} damaged logs, seed {seed}: {found} differences ({took:.0f} s); wanted: 0")
    if found:
        sys.exit(1)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
