"""MDP: sparse transition rows, rewards per pair, an initial distribution and a discount."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spibb.checks import InputError, discount
from spibb.kernels import dense
from spibb.labels import Label, Vocabulary, vocabulary

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class MDP:
    """A finite MDP M = ⟨X, A, R, P, γ⟩ with sparse rows.

    The successors of pair p = x·A + a and their probabilities are the entries indptr[p] …
    indptr[p + 1] of `successors` and `probs` [K]. A row may sum to less than one: the rest is the
    probability that the process ends there, and nothing is earned afterwards. `rewards` [S, A]
    are expectations, `initial` [S] is the distribution of the first state. What a simulation pays
    in each single outcome may be given as `outcome_rewards` [K] and `exit_rewards` [S, A] (paid on
    ending); without them it pays the expectation.
    """

    indptr: np.ndarray
    successors: np.ndarray
    probs: np.ndarray
    rewards: np.ndarray
    initial: np.ndarray
    discount: float
    states: Vocabulary
    actions: Vocabulary
    outcome_rewards: np.ndarray | None = None
    exit_rewards: np.ndarray | None = None

    @classmethod
    def from_outcomes(  # noqa: PLR0913 (one parameter per column)
        cls,
        state: np.ndarray,
        action: np.ndarray,
        prob: np.ndarray,
        next_state: np.ndarray,
        reward: np.ndarray,
        terminated: np.ndarray,
        *,
        initial: np.ndarray,
        n_actions: int,
        discount: float,
        states: Vocabulary | Sequence[Label] | None = None,
        actions: Vocabulary | Sequence[Label] | None = None,
    ) -> MDP:
        """Build from a list of outcomes (x, a, probability, x', reward, terminated), any order.

        Outcomes with the same (x, a, x') must pay the same reward, as must all ends of one pair.
        """
        shape = len(initial), n_actions
        pair = np.asarray(state, dtype=np.int64) * n_actions + action
        total = np.bincount(pair, weights=prob, minlength=shape[0] * n_actions)
        if (total > 1 + 1e-9).any():
            p = int(np.argmax(total))
            raise InputError(
                f"outcomes of state {p // n_actions}, action {p % n_actions} sum to {total[p]:g}, "
                "expected at most 1"
            )
        expected = np.bincount(pair, weights=prob * reward, minlength=len(total)).reshape(shape)
        exits = np.zeros(len(total))
        exits[pair[terminated]] = reward[terminated]
        stays = ~np.asarray(terminated, dtype=bool) & (prob > 0)
        key = pair[stays] * shape[0] + np.asarray(next_state)[stays]
        distinct, first, where = np.unique(key, return_index=True, return_inverse=True)
        counts = np.bincount(distinct // shape[0], minlength=len(total))
        return cls(
            indptr=np.concatenate([[0], np.cumsum(counts)]),
            successors=(distinct % shape[0]).astype(np.int32),
            probs=np.bincount(where.reshape(-1), weights=prob[stays], minlength=len(distinct)),
            rewards=expected,
            initial=np.asarray(initial, dtype=np.float64),
            discount=discount,
            states=vocabulary(shape[0] if states is None else states, "state"),
            actions=vocabulary(n_actions if actions is None else actions, "action"),
            outcome_rewards=reward[stays][first].astype(np.float64),
            exit_rewards=exits.reshape(shape),
        )

    def __post_init__(self) -> None:
        discount(self.discount)

    @property
    def shape(self) -> tuple[int, int]:
        """(S, A)."""
        return len(self.states), len(self.actions)

    @property
    def rows(self) -> Rows:
        """(indptr, successors, probs), as the kernels take them."""
        return self.indptr, self.successors, self.probs

    @cached_property
    def exits(self) -> np.ndarray:
        """Probability that a pair ends the process [S, A]: what its row leaves out."""
        return dense.left_out(self.indptr, self.probs).reshape(self.shape)
