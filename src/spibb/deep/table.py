"""A log and its pseudo-counts as the table of numbers that the trainer draws from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spibb.deep.log import DeepLog, StateFunction, matrix
from spibb.deep.trainer import pack
from spibb.errors import InputError

if TYPE_CHECKING:
    from spibb.deep.dqn import SpibbDQN


def table(
    log: DeepLog,
    counts: StateFunction | None,
    configs: Sequence[SpibbDQN],
    next_counts: Any,
    taken_counts: Any,
) -> np.ndarray:
    """The log and its pseudo-counts as the trainer's table; counts only where they matter."""
    some = any(0 < config.n_wedge < math.inf for config in configs)
    adjusted = any(config.kappa > 0 for config in configs)
    return pack(
        {
            "states": log.state,
            "next_states": log.next_state,
            "next_baseline_probs": log.next_baseline_probs,
            "next_counts": _next_counts(log, counts, next_counts, some),
            "actions": log.action,
            "rewards": log.reward,
            "continues": ~log.terminated,
            "penalties": _penalties(log, counts, taken_counts) if adjusted else np.zeros(len(log)),
        }
    )


def _next_counts(
    log: DeepLog, counts: StateFunction | None, given: Any, needed: bool
) -> np.ndarray:
    shape = (len(log), log.n_actions)
    if given is None and not needed:
        return np.zeros(shape)
    if given is None:
        given = _ask(counts, "next_counts [N, A]")(log.next_state)
    return _counts(given, shape, "next_counts")


def _penalties(log: DeepLog, counts: StateFunction | None, given: Any) -> np.ndarray:
    """1/√Ñ(x_j, a_j) [N]."""
    if given is None:
        at_states = _ask(counts, "taken_counts [N]")(log.state)
        at_states = _counts(at_states, (len(log), log.n_actions), "counts")
        given = at_states[np.arange(len(log)), log.action]
    taken = _counts(np.reshape(given, (len(log), -1)), (len(log), 1), "taken_counts")[:, 0]
    if (taken == 0).any():
        row = int(np.argmax(taken == 0))
        raise InputError(
            f"taken_counts in row {row} is 0, expected a positive number: kappa divides by the "
            "root of the pseudo-count of a pair that the log contains"
        )
    return 1 / np.sqrt(taken)


def _ask(counts: StateFunction | None, array: str) -> StateFunction:
    if counts is None:
        raise InputError(
            f"n_wedge or kappa needs pseudo-counts: give counts, a callable from states [M, d] to "
            f"[M, A], or {array}"
        )
    return counts


def _counts(values: Any, shape: tuple[int, int], what: str) -> np.ndarray:
    rows = matrix(values, what, shape[0])
    if rows.shape != shape:
        raise InputError(f"{what} has shape {rows.shape}, expected {shape}: one column per action")
    bad = ~(rows >= 0)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise InputError(
            f"{what} in row {row}, column {column} is {rows[row, column]:g}, expected a number "
            "of at least 0: fix the pseudo-counts"
        )
    return rows
