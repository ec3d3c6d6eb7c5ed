"""Sparse systems with zeros in the same places, against dense ones."""

from __future__ import annotations

import numpy as np
import pytest

from spibb.assurance.systems import Systems


@pytest.mark.parametrize("n_entries", [0, 1, 40, 400])
def test_solutions_are_those_of_dense_systems(n_entries):
    rng, size, n_systems = np.random.default_rng(n_entries), 30, 7
    row, column = rng.integers(size, size=(2, n_entries))  # some places twice, some rows empty
    entries = rng.random((n_systems, n_entries))
    dense = np.zeros((n_systems, size, size))
    np.add.at(dense, (slice(None), row, column), entries)
    scale = 0.999 / np.maximum(dense.sum(axis=2, keepdims=True), 1.0)
    entries *= scale[:, row, 0]
    right = rng.standard_normal((n_systems, size))
    found = Systems.of(row, column, size).solved(entries, right)
    wanted = np.linalg.solve(np.eye(size) - scale * dense, right[..., None])[..., 0]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_states_that_lead_to_themselves_only_are_solved():
    every = np.repeat(np.arange(5), 3)
    found = Systems.of(every, every, 5).solved(np.full((2, 15), 0.3), np.ones((2, 5)))
    np.testing.assert_allclose(found, 10.0)
