"""The rows beside the results: the first 20 runs of each finite study, computed again.

Algorithms' values are stored as float32, far coarser than what another processor's linear algebra
changes, so they are compared to the bit. The baseline and the optimum of a world are float64 and
come from linear solves, whose last bits depend on the processor.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from spibb.experiments.finite import default_experiment
from spibb.experiments.parts import stored_parts
from spibb.experiments.runner import read_spec
from spibb.experiments.spec import FINITE
from spibb.experiments.workers import run_chunk

ROWS = Path(__file__).parents[2] / "docs" / "results" / "rows"
SOLVED = ("baseline", "optimal")
RUNS = 20


def parts(study):
    return stored_parts(default_experiment(study, "main"), ROWS / study).parts


@pytest.mark.parametrize("study", FINITE)
def test_the_stored_rows_are_the_first_runs_of_the_benchmark(study):
    assert read_spec(ROWS / study) == default_experiment(study, "main")
    assert [r for p in parts(study) for r in range(p.chunk.start, p.chunk.stop)] == [*range(RUNS)]


@pytest.mark.parametrize("study", FINITE)
def test_all_stored_rows_are_recomputed_to_the_bit(study):
    experiment = default_experiment(study, "main")
    for part in parts(study):
        stored = pq.read_table(part.path)
        _, computed = run_chunk(experiment, part.chunk)
        assert stored.column_names == [*computed]
        for name, values in computed.items():
            wanted, tolerance = stored[name].to_numpy(), 1e-12 if name in SOLVED else 0.0
            assert values.dtype == wanted.dtype
            np.testing.assert_allclose(values, wanted, rtol=tolerance, atol=0, err_msg=name)
