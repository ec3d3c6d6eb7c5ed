"""DeepLog: transitions with vector states, and what the baseline would do after each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spibb import checks
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.ingest.mapping import ColumnNames
from spibb.ingest.vectors import VectorLog, read_vectors

StateFunction = Callable[[np.ndarray], Any]
"""States [M, d] to one number per action [M, A]: a baseline's probabilities, or pseudo-counts."""

SINGLE_PRECISION_TOLERANCE = 1e-4
"""How far from 1 a row of 32-bit probabilities may sum; it is then renormalised."""


@dataclass(frozen=True, eq=False, init=False)
class DeepLog(Frozen):
    """Transitions ⟨x_j, a_j, r_j, x'_j⟩ with x in R^d, and the baseline's rows at x and x'.

    `state`, `next_state` [N, d], `action`, `reward`, `terminated` [N], `baseline_probs` (None
    unless given) and `next_baseline_probs` [N, A]. A terminated row's next state has no value
    and may be missing (NaN); a truncated row is an ordinary one. `baseline` is kept for the
    trained policy, which asks it at every state that it meets.
    """

    state: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_state: np.ndarray
    terminated: np.ndarray
    next_baseline_probs: np.ndarray
    baseline_probs: np.ndarray | None
    baseline: StateFunction | None

    def __init__(
        self,
        state: Any,
        action: Any,
        reward: Any,
        next_state: Any,
        terminated: Any,
        baseline: StateFunction | None = None,
        *,
        baseline_probs: Any = None,
        next_baseline_probs: Any = None,
        n_actions: int | None = None,
    ) -> None:
        """Check the columns; give `baseline` (any callable), or its probabilities as arrays."""
        columns = _columns(state, action, reward, next_state, terminated)
        probs = _next_probs(columns, baseline, next_baseline_probs, n_actions)
        remedy = f"the baseline has {probs.shape[1]} actions"
        columns["action"] = checks.action_codes("action", columns["action"], probs.shape[1], remedy)
        if baseline_probs is not None:
            baseline_probs = distributions(baseline_probs, len(probs), "baseline_probs")
            _same_actions(baseline_probs, probs.shape[1], "baseline_probs")
        columns |= {"next_baseline_probs": probs, "baseline_probs": baseline_probs}
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        object.__setattr__(self, "baseline", baseline)
        self.freeze()

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        baseline: StateFunction,
        *,
        columns: ColumnNames | None = None,
    ) -> DeepLog:
        """The transitions of a table, read by the rules of `read_vectors`.

        `frame` is a dataframe, a file, or whatever else `open_log` takes. An action's code is the
        place of its label among the sorted labels. Rows that do not say what followed are left out.
        """
        return cls.from_vectors(read_vectors(frame, columns=columns), baseline)

    @classmethod
    def from_vectors(cls, log: VectorLog, baseline: StateFunction) -> DeepLog:
        """The transitions of a log whose successors are known."""
        rows = log.known
        if not rows.any():
            raise InputError(
                "no row of the log says what followed it: check episode_id, step and next_state"
            )
        return cls(
            log.state[rows], log.action[rows], log.reward[rows], log.next_state[rows],
            log.terminated[rows], baseline, n_actions=len(log.actions),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.state)

    def _facts(self) -> Mapping[str, Any]:
        """Sizes."""
        return {"transitions": len(self), "features": self.n_features, "actions": self.n_actions}

    @property
    def n_features(self) -> int:
        """Dimension d of a state."""
        return int(self.state.shape[1])

    @property
    def n_actions(self) -> int:
        """Number of actions A."""
        return int(self.next_baseline_probs.shape[1])


def matrix(values: Any, what: str, n_rows: int | None = None) -> np.ndarray:
    """An array [M, columns] of 64-bit numbers of its own, or a message that says what it is."""
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{what} cannot be read as a matrix of numbers ({error}): give a NumPy array"
        ) from None
    if array.ndim != 2 or (n_rows is not None and len(array) != n_rows) or not array.shape[1]:
        wanted = "M" if n_rows is None else n_rows
        raise InputError(
            f"{what} has shape {array.shape}, expected ({wanted}, columns): one row per state"
        )
    return array


def distributions(values: Any, n_rows: int, what: str) -> np.ndarray:
    """Rows [M, A] of probabilities; 32-bit ones are renormalised in 64 bits."""
    single = getattr(getattr(values, "dtype", None), "itemsize", 8) < 8
    probs = matrix(values, what, n_rows)
    if single:
        sums = probs.sum(axis=1, keepdims=True)
        near = np.abs(sums - 1) < SINGLE_PRECISION_TOLERANCE
        probs = np.where(near, probs / np.where(near, sums, 1.0), probs)
    checks.probability_rows(probs, range(n_rows), range(probs.shape[1]), what)
    return probs


def finite_states(states: np.ndarray, what: str) -> None:
    """Check that every state [d] is a vector of finite numbers; name the first that is not."""
    bad = ~np.isfinite(states)
    if bad.any():
        row, feature = np.argwhere(bad)[0]
        raise InputError(
            f"{what} in row {row}, feature {feature} is {states[row, feature]}, expected a finite "
            f"number: fix or drop the row ({checks.such_rows(bad.any(axis=1).sum())})"
        )


def _columns(
    state: Any, action: Any, reward: Any, next_state: Any, terminated: Any
) -> dict[str, Any]:
    state = matrix(state, "state")
    columns = {
        "state": state,
        "action": np.array(action),
        "reward": np.array(reward, dtype=np.float64),
        "next_state": matrix(next_state, "next_state"),
        "terminated": _flags(terminated),
    }
    checks.same_length(**columns)
    if not len(state):
        raise InputError("the log is empty: it needs at least one minibatch of transitions")
    if columns["next_state"].shape != state.shape:
        raise InputError(
            f"next_state has shape {columns['next_state'].shape} and state {state.shape}: "
            "give both the same features"
        )
    missing = columns["terminated"] & np.isnan(columns["next_state"]).any(axis=1)
    columns["next_state"][missing] = state[missing]  # any finite state: its value is not used
    finite_states(state, "state")
    finite_states(columns["next_state"], "next_state")
    checks.finite(columns["reward"], "reward")
    return columns


def _next_probs(
    columns: dict[str, Any], baseline: StateFunction | None, probs: Any, n_actions: int | None
) -> np.ndarray:
    if probs is None and baseline is None:
        raise InputError(
            "the log has no baseline: give a callable from states [M, d] to probabilities [M, A], "
            "or next_baseline_probs [N, A]"
        )
    what = "next_baseline_probs" if baseline is None or probs is not None else "baseline"
    if probs is None and baseline is not None:
        probs = baseline(columns["next_state"])
    rows = distributions(probs, len(columns["state"]), what)
    _same_actions(rows, n_actions, what)
    return rows


def _same_actions(rows: np.ndarray, n_actions: int | None, what: str) -> None:
    if n_actions is not None and rows.shape[1] != n_actions:
        raise InputError(
            f"{what} has {rows.shape[1]} columns, expected {n_actions}: one per action"
        )


def _flags(values: Any) -> np.ndarray:
    array = np.array(values)
    if array.ndim != 1 or array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise InputError("terminated holds something other than true/false or 0/1: check it")
    return array.astype(bool)
