"""The first step of training in a fresh process: little to compile, and the next has it already."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("deep_extra", exc_type=ImportError)

SCRIPT = """
import collections, json
import jax, numpy as np
from spibb.deep import DeepLog, SpibbDQN
from spibb.pseudocounts import NeighbourCounts
events = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: events.update([event.split("/")[-1]]))
rng = np.random.default_rng(0)
states, actions = rng.normal(size=(5000, 4)), rng.integers(0, 2, 5000)
fair = lambda x: np.full((len(x), 2), 0.5)
log = DeepLog(states, actions, rng.normal(size=5000), states, np.zeros(5000, bool), fair)
SpibbDQN(passes=1, n_wedge=5).train(log, NeighbourCounts(states, actions, 2))
print(json.dumps([events["compile_requests_use_cache"], events["cache_hits"]]))
"""


@pytest.mark.slow
def test_the_first_step_compiles_few_programs_and_the_next_process_only_the_quick_ones(tmp_path):
    """It took 20 s of a processor before programs were few and kept, and now 3, then 2."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "numba")
    found = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True,
                              check=True, env=environment)  # fmt: skip
        found.append(json.loads(done.stdout))
    kept = len(list((tmp_path / "spibb" / "jax").iterdir()))
    (asked, before), (again, hits) = found
    assert asked == again <= 30  # 23 now, most of them of a line
    assert (before, hits) == (0, kept) and kept > 0
    assert not list(tmp_path.rglob("*.nbi"))  # nothing was compiled by Numba
