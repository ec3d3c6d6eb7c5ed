"""A log as the compiled studies have it: episodes of outcome codes, and what each code means."""

from __future__ import annotations

import numpy as np

from spibb.kernels.tuples import Codebook, Episodes, Record
from spibb.log import Log
from spibb.solve import is_dense

TABLED_UP_TO = 1 << 20
"""Rows of a log up to which kernels may have a table of all of them: 192 bytes a row."""


def fits_tables(log: Log) -> bool:
    """Whether the kernels of the studies take a log: not too large, and all successors known."""
    small = len(log) <= TABLED_UP_TO and is_dense("auto", len(log.states))
    return small and bool(log.known.all())


def coded(log: Log, propensity: np.ndarray, unit: float = 1.0) -> Record:
    """Every row of a log is a code of its own; rewards are in units of `unit`."""
    codebook = Codebook(
        log.state.astype(np.int64), log.action.astype(np.int32), log.next_state.astype(np.int32),
        log.reward / unit, log.pair,
    )  # fmt: skip
    episodes = Episodes(np.arange(len(log), dtype=np.int32), log.lengths)
    return Record(episodes, codebook, np.array(propensity, dtype=np.float64))


def distinct(record: Record) -> Record:
    """The same with one code for rows that are alike, sorted by pairs and successors."""
    _, _, successor, reward, pair = book = record.codebook
    keys = record.propensity, reward, successor, pair
    order = np.lexsort(keys)
    first = np.ones(len(order), dtype=bool)
    first[1:] = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.cumsum(first) - 1
    kept = order[first]
    return Record(
        record.episodes._replace(codes=number[record.episodes.codes]),
        Codebook(*(column[kept] for column in book)), record.propensity[kept],
    )  # fmt: skip
