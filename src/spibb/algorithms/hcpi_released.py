"""HCPI as released: the choice that the authors' code makes, on a log (see `HCPI`, 9)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spibb.algorithms.base import Problem
from spibb.kernels import hcpi, hcpi_released
from spibb.kernels.mixtures import N_LANES, Mixtures, mix
from spibb.kernels.tuples import Codebook, Episodes, Record
from spibb.log import Log


class Choice(NamedTuple):
    """The mixture taken: its place among the α, the lower bounds of all [11], its rows [S, A]."""

    lane: int
    bounds: np.ndarray
    probs: np.ndarray


def choose(problem: Problem, log: Log, grid: hcpi.Grid) -> Choice:
    """What the released code makes of a log, for a grid of one configuration."""
    record, baseline = as_record(log, len(problem.actions)), problem.baseline.probs.copy()
    model, trained, testing = hcpi.prepare(record, baseline, problem.discount, grid)
    mixtures = Mixtures(trained[1], baseline, grid.alphas)
    found = hcpi.test(record, testing, mixtures, model, int(grid.estimator[0]), 0.0, True)
    bounds, probs = np.empty(N_LANES), np.empty(baseline.shape)
    hcpi_released.lower_bounds(found, float(grid.quantile[0]), bounds)
    lane = hcpi_released.choose(bounds, float(grid.rival[0]))
    mix(mixtures, lane, probs)
    return Choice(lane, bounds, probs)


def as_record(log: Log, n_actions: int) -> Record:
    """A log as the compiled studies have it: every transition a code, sorted by its pair."""
    pair = log.state.astype(np.int64) * n_actions + log.action
    order = np.lexsort((log.next_state, pair))
    codes = np.empty(len(order), dtype=np.int32)
    codes[order] = np.arange(len(order))
    codebook = Codebook(
        log.state[order].astype(np.int64), log.action[order].astype(np.int32),
        log.next_state[order].astype(np.int32), log.reward[order].astype(float), pair[order],
    )  # fmt: skip
    lengths = np.diff(log.episode_starts)
    return Record(Episodes(codes, lengths), codebook, np.ones(len(order)))
