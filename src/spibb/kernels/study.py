"""One data set of a finite study in one compiled call: all columns of all algorithms.

An algorithm brings a grid of configurations: a named tuple whose class has a function `kernel()`.
That gives a compiled function of (data, grid, pis), which fills `pis` [M, S, A] with the policies
of the grid. The first part of a grid has one entry per configuration, which may be none. This file
only arranges: it knows no algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from spibb.kernels import counting, dense
from spibb.kernels.sampling import first_states, histogram
from spibb.kernels.tuples import Data

OURS = "spibb.kernels."


@njit(cache=True)
def read(record, baseline: np.ndarray, discount: float, v_max: float):
    """What episodes say, as algorithms take it."""
    codes, lengths = record.episodes
    visits = histogram(codes, len(record.codebook.pair))
    model, low, high = counting.estimate(visits, record.codebook, baseline.shape, discount)
    starts = first_states(codes, lengths, record.codebook.state, len(baseline))
    initial = np.empty(len(starts))
    for s in range(len(starts)):
        initial[s] = starts[s] / len(lengths)
    return Data(model, baseline.copy(), initial, low, high, v_max, record)


HEAD = '''
def train(record, baseline, task, v_max, grids, size):
    """The policies that algorithms make of one data set, and their performances in `task`.

    The `grids` have `size` configurations together.
    """
    data = read(record, baseline, task.discount, v_max)
    pis = np.empty((size, *baseline.shape))
    begin = 0
'''
CALL = """
    end = begin + len(grids[{i}][0])
    kernel_{i}(data, grids[{i}], pis[begin:end])
    begin = end
"""
TAIL = """
    return pis, dense.performances(task, pis)
"""


class Trained(NamedTuple):
    """The policies of all configurations [M, S, A], and ρ(π, M) of each in the true M [M]."""

    policies: np.ndarray
    performances: np.ndarray


def trainer(grids: Sequence[Any]) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """The compiled call for these grids; their kernels are all that it depends on."""
    return _trainer(tuple(grid.kernel() for grid in grids))


@cache
def _trainer(kernels: tuple[Any, ...]) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """The call is written out, one block per kernel, because kernels that are inlined into one
    function compile in half of the time of kernels that are called.

    It is stored on the disk if all kernels are ours: a stored call does not notice that a kernel
    elsewhere was edited.
    """
    source = HEAD + "".join(CALL.format(i=i) for i in range(len(kernels))) + TAIL
    names: dict[str, Any] = {
        "__name__": __name__,
        "np": np,
        "dense": dense,
        "read": read,
    }
    names |= {f"kernel_{i}": kernel for i, kernel in enumerate(kernels)}
    exec(compile(source, __file__, "exec"), names)
    ours = all(kernel.__module__.startswith(OURS) for kernel in kernels)
    made: Callable[..., tuple[np.ndarray, np.ndarray]] = njit(cache=ours)(names["train"])
    return made
