"""Decisions for many cases at once; how the cases are cut into batches does not change them.

Draws and ties go through the actions in the order of their labels, sorted. So they do not depend on
the order in which a policy has its actions: files give labels back sorted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from spibb import checks
from spibb.arrays import python_value, scrambled
from spibb.cases import UNKNOWN, CaseEncoder, case_columns
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.labels import Label, Vocabulary
from spibb.tables import label_columns

if TYPE_CHECKING:
    import pyarrow as pa

UNSEEN = ("error", "empty")
LISTED = 5
"""How many cases in unknown states a message names."""


@dataclass(frozen=True, eq=False)
class Decisions(Frozen):
    """An action for each of N cases.

    Parameters:
        codes: the actions' codes [N]; −1 where the policy does not know the state.
        probability: with which each was taken [N]; NaN where there is none.
        actions: the labels behind the codes.

    >>> policy = spibb.Policy([[1, 0], [0, 1]], ["mild", "severe"], ["treat", "wait"])
    >>> policy.act_many({"state": ["severe", "mild", "severe"]}).labels
    ['wait', 'treat', 'wait']
    """

    codes: np.ndarray
    probability: np.ndarray
    actions: Vocabulary

    def __len__(self) -> int:
        return len(self.codes)

    def _facts(self) -> Mapping[str, Any]:
        """How many, and how many without an action."""
        return {"cases": len(self), "undecided": int((self.codes < 0).sum())}

    @property
    def labels(self) -> list[Label]:
        """The action of each case; None where there is none."""
        return np.array([*self.actions.labels, None], dtype=object)[self.codes].tolist()

    @cached_property
    def columns(self) -> dict[str, pa.Array]:
        """The actions as Arrow columns, one for each column that a label spans."""
        import pyarrow as pa

        codes = pa.array(self.codes, mask=self.codes < 0)
        return {name: values.take(codes) for name, values in label_columns(self.actions).items()}


def decide(
    probs: np.ndarray, encoder: CaseEncoder, actions: Vocabulary, cases: Any, *,
    seed: int, deterministic: bool, unseen: str, first_row: int,
) -> Decisions:  # fmt: skip
    """One action for each case, drawn from its row of `probs` [S, A].

    The draw of a case depends on the seed and on the case's row, counted from `first_row`, and on
    nothing else: cases decided in pieces are decided as all at once.
    """
    check_unseen(unseen)
    state = encoder.codes(cases)
    unknown = state == UNKNOWN
    if unseen == "error" and unknown.any():
        raise _unknown_states(cases, encoder, np.flatnonzero(unknown), first_row)
    return choose(
        probs, state, actions, seed=seed, deterministic=deterministic, first_row=first_row
    )


def check_unseen(unseen: str) -> None:
    """Refuse what is neither "error" nor "empty"."""
    checks.choice("unseen", unseen, UNSEEN)


def choose(
    probs: np.ndarray, state: np.ndarray, actions: Vocabulary, *,
    seed: int, deterministic: bool, first_row: int,
) -> Decisions:  # fmt: skip
    """One action for each case [N], from the row of `probs` that its `state` [N] names.

    UNKNOWN has none.
    """
    checks.seed(seed)
    _check_row(first_row)
    unknown = state == UNKNOWN
    known = np.where(unknown, 0, state)
    if checks.flag("deterministic", deterministic):
        codes = likeliest(probs, actions)[known]
    else:
        uniform = uniforms(seed, first_row, len(state))
        codes = actions.in_order[draw(probs[:, actions.in_order], known, uniform)]
    chance = probs[known, codes]
    return Decisions(
        np.where(unknown, UNKNOWN, codes).astype(np.int32), np.where(unknown, np.nan, chance),
        actions,
    )  # fmt: skip


def likeliest(probs: np.ndarray, actions: Vocabulary) -> np.ndarray:
    """The most probable action of each row [S] of `probs` [S, A]; of several, the first label."""
    return actions.in_order[np.argmax(probs[:, actions.in_order], axis=1)]


def _check_row(first_row: Any) -> None:
    whole = isinstance(first_row, int | np.integer) and not isinstance(first_row, bool)
    if not whole or not 0 <= first_row < 2**62:
        raise InputError(
            f"first_row is {checks.shown(first_row)}, expected a whole number of at least 0: give "
            "how many cases came before"
        )


def settled(probs: np.ndarray) -> np.ndarray:
    """Probabilities of any shape as they are compared and written: 12 significant digits.

    What is beyond is rounding: 0.9999999999999999 is 1.
    """
    values, places = np.unique(probs, return_inverse=True)
    return np.array([float(f"{value:.12g}") for value in values])[places].reshape(probs.shape)


def uniforms(seed: int, first_row: int, n: int) -> np.ndarray:
    """A number in [0, 1) for each row [N], which depends on the seed and on the row alone."""
    begin = np.frombuffer(sha256(str(seed).encode()).digest()[:8], dtype="<u8").astype(np.uint64)
    with np.errstate(over="ignore"):
        rows = np.arange(first_row, first_row + n, dtype=np.uint64) + begin
        return np.asarray((scrambled(scrambled(rows)) >> np.uint64(11)) * 2.0**-53)


def draw(probs: np.ndarray, rows: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """The action [N] where the sum of a row's probabilities first exceeds a number in [0, 1).

    The search halves the row for all cases at once. An action of probability 0 is never drawn.
    """
    sums = np.cumsum(probs, axis=1)
    sums /= sums[:, -1:]
    low, n_actions = np.zeros(len(rows), dtype=np.int64), probs.shape[1]
    high, flat, start = np.full(len(rows), n_actions - 1), sums.reshape(-1), rows * n_actions
    for _ in range((n_actions - 1).bit_length()):
        middle = (low + high) >> 1
        beyond = flat[start + middle] <= uniform
        low = np.where(beyond, middle + 1, low)
        high = np.where(beyond, high, middle)
    return low


def _unknown_states(
    cases: Any, encoder: CaseEncoder, rows: np.ndarray, first_row: int
) -> InputError:
    """The refusal of cases in states that the policy does not know: the first ones, with rows."""
    columns = case_columns(cases, encoder.states.names)
    shown = []
    for row in rows[:LISTED].tolist():
        parts = tuple(python_value(column[row]) for column in columns)
        label = parts if len(parts) > 1 else parts[0]
        shown.append(f"row {row + first_row} ({checks.shown(label)})")
    more = f" and {len(rows) - LISTED} more" if len(rows) > LISTED else ""
    who = "a case is in a state that is" if len(rows) == 1 else f"{len(rows)} cases are in states"
    that = "" if len(rows) == 1 else " that are"
    return InputError(
        f"{who}{that} not in the policy: {', '.join(shown)}{more}; the log never shows them, so "
        "follow the current policy there, and decide the others with unseen='empty' (--unseen "
        "empty)"
    )
