"""MDP: sparse transition rows, rewards per pair, an initial distribution and a discount."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spibb.arrays import owners
from spibb.checks import (
    check_present,
    column,
    discount,
    finite,
    narrow,
    positive,
    probability_rows,
    real_array,
    same_length,
    shown,
    sparse_rows,
    whole_array,
    whole_rows,
)
from spibb.columns import flag_column
from spibb.counts import END
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.kernels import dense
from spibb.kernels.tuples import Rows, Task
from spibb.labels import Label, Vocabulary, vocabulary
from spibb.outcomes import SUM_TOLERANCE, Outcomes, check_sums


@dataclass(frozen=True, eq=False)
class MDP(Frozen):
    """A finite MDP M = ⟨X, A, R, P, γ⟩ with sparse rows.

    `MDP.from_outcomes` and `estimate_mdp` make one. All arrays are read-only.

    Attributes:
        indptr: the successors of pair p = x·A + a are the entries indptr[p] … indptr[p + 1] of
            `successors` and `probs` [S·A + 1].
        successors: codes of the next states [K].
        probs: their probabilities [K]. A row may sum to less than one: the rest is the probability
            that the process ends there, and nothing is earned afterwards.
        rewards: expected rewards [S, A].
        initial: distribution of the first state [S].
        discount: γ in [0, 1).
        states: the labels of the states.
        actions: the labels of the actions.
        outcomes: what single transitions pay, which only a simulation needs: the solvers use the
            expectations. Where they are given (`from_outcomes`), rows and rewards are derived from
            them; without them every transition pays its pair's expectation.

    >>> mdp = spibb.MDP.from_outcomes(
    ...     state=[0, 0], action=[0, 1], prob=[1.0, 1.0], next_state=[0, 0], reward=[0, 1],
    ...     terminated=[True, True], initial=[1.0], n_actions=2, discount=0.9)
    >>> spibb.exact_value(mdp, spibb.Policy([[0.5, 0.5]]))
    0.5
    """

    indptr: np.ndarray
    successors: np.ndarray
    probs: np.ndarray
    rewards: np.ndarray
    initial: np.ndarray
    discount: float
    states: Vocabulary
    actions: Vocabulary
    outcomes: Outcomes | None = None

    def _facts(self) -> Mapping[str, Any]:
        """Sizes, and the discount."""
        n_states, n_actions = self.shape
        return {"states": n_states, "actions": n_actions, "transitions": len(self.successors),
                "discount": self.discount}  # fmt: skip

    @classmethod
    def from_outcomes(  # noqa: PLR0913 (one parameter per column)
        cls,
        state: Any,
        action: Any,
        prob: Any,
        next_state: Any,
        reward: Any,
        terminated: Any,
        *,
        initial: Any,
        n_actions: int,
        discount: float,
        states: Vocabulary | Sequence[Label] | None = None,
        actions: Vocabulary | Sequence[Label] | None = None,
    ) -> MDP:
        """Build from a list of outcomes (x, a, probability, x', reward, terminated), any order.

        A pair may have any number of outcomes: several ends that pay differently, and several
        rewards on the way to one successor, which makes rewards random. Where a pair's
        probabilities sum to less than 1, the rest is an end that pays nothing.

        Parameters:
            state: x of each outcome, a code 0, 1, ….
            action: a of each outcome, a code.
            prob: its probability given x and a.
            next_state: x', a code; not read where the process ends.
            reward: what it pays.
            terminated: whether the process ends with it.
            initial: probability of each state to be the first [S].
            n_actions: number of actions.
            discount: γ in [0, 1).
            states: labels of the states; 0, 1, … if None.
            actions: labels of the actions; 0, 1, … if None.

        Returns:
            The MDP.

        >>> coin = spibb.MDP.from_outcomes(
        ...     [0, 0], [0, 0], [0.5, 0.5], [0, 0], [1, 0], [True, False],
        ...     initial=[1.0], n_actions=1, discount=0.5,
        ... )
        >>> round(spibb.exact_value(coin, spibb.Policy([[1.0]])), 4)  # v = 1/2 + v/4
        0.6667
        """
        initial = column("initial", initial)
        shape = len(initial), positive("n_actions", n_actions)
        ends = flag_column(terminated, "terminated")
        if ends is None:
            raise InputError("terminated is None, expected true/false for every outcome: give it")
        prob, reward = column("prob", prob), column("reward", reward)
        same_length(state=state, action=action, prob=prob, next_state=next_state, reward=reward,
                    terminated=ends)  # fmt: skip
        finite(reward, "reward")
        _check_probs(prob)
        pair = _codes("state", state, shape[0]) * shape[1] + _codes("action", action, shape[1])
        successor = _successors(next_state, ends, shape[0])
        return cls.paying(
            Outcomes.from_list(pair, successor, prob, reward, shape),
            np.asarray(initial, dtype=np.float64),
            discount,
            vocabulary(shape[0] if states is None else states, "state"),
            vocabulary(shape[1] if actions is None else actions, "action"),
        )

    @classmethod
    def paying(
        cls,
        outcomes: Outcomes,
        initial: np.ndarray,
        discount: float,
        states: Vocabulary,
        actions: Vocabulary,
    ) -> MDP:
        """The MDP of given outcomes."""
        rewards = outcomes.expected_rewards
        return cls(*outcomes.rows, rewards, initial, discount, states, actions, outcomes)

    def __post_init__(self) -> None:
        for name in ("probs", "rewards", "initial"):
            object.__setattr__(self, name, real_array(f"{name} of the MDP", getattr(self, name)))
        for name in ("indptr", "successors"):
            object.__setattr__(self, name, whole_array(f"{name} of the MDP", getattr(self, name)))
        discount(self.discount)
        self._check_arrays()
        self._check_numbers()
        if self.outcomes is not None and not self._derived(self.outcomes):
            raise InputError(
                "the MDP's rows or rewards are not those of its outcomes: give new outcomes, or "
                "outcomes=None for transitions that pay their expectation"
            )

    def _check_arrays(self) -> None:
        """Kernels do not check indices: all that they index must exist."""
        n_states, n_actions = self.shape
        shapes = {
            "rewards": (n_states, n_actions), "initial": (n_states,),
            "indptr": (n_states * n_actions + 1,), "successors": self.probs.shape,
        }  # fmt: skip
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InputError(
                    f"{name} of the MDP has shape {getattr(self, name).shape}, expected {shape}: "
                    f"there are {n_states} states and {n_actions} actions"
                )
        _check_codes("successors", self.successors, n_states)
        sparse_rows(
            "the MDP", self.indptr, n_states * n_actions, successors=self.successors,
            probs=self.probs,
        )  # fmt: skip
        narrow(self)

    def _check_numbers(self) -> None:
        """Rows are distributions, up to what they leave for the end; rewards are finite."""
        _check_probs(self.probs)
        check_sums(np.bincount(owners(self.indptr), self.probs, self.rewards.size), self.shape[1])
        self._check_rewards()
        probability_rows(self.initial[None], ["initial"], self.states.labels, "the MDP's")
        object.__setattr__(self, "initial", whole_rows(self.initial[None])[0])
        self.freeze()

    def _check_rewards(self) -> None:
        if not np.isfinite(self.rewards).all():
            x, a = np.argwhere(~np.isfinite(self.rewards))[0]
            raise InputError(
                f"rewards of the MDP hold {self.rewards[x, a]} in state {self.states[x]!r}, action "
                f"{self.actions[a]!r}, expected finite numbers"
            )

    def _derived(self, outcomes: Outcomes) -> bool:
        """Whether rows and rewards are the very arrays that the outcomes gave."""
        ours, theirs = (*self.rows, self.rewards), (*outcomes.rows, outcomes.expected_rewards)
        return all(mine is derived for mine, derived in zip(ours, theirs))

    @property
    def shape(self) -> tuple[int, int]:
        """(S, A)."""
        return len(self.states), len(self.actions)

    def check_fits(self, array: np.ndarray, what: str) -> None:
        """Refuse an array that is not [S, A]: it was made for another MDP."""
        if array.shape != self.shape:
            raise InputError(
                f"{what} has shape {array.shape}, expected {self.shape}: one row per state and one "
                "column per action of the MDP"
            )

    @property
    def rows(self) -> Rows:
        """The rows of P, as the kernels take them."""
        return Rows(self.indptr, self.successors, self.probs)

    @property
    def task(self) -> Task:
        """The MDP as the kernels for small problems take it.

        All arrays are copies that may be written to: the one type that those are compiled for.
        """
        rows = Rows(self.indptr.copy(), self.successors.copy(), self.probs.copy())
        return Task(rows, self.rewards.copy(), self.discount, self.initial.copy())

    @cached_property
    def exits(self) -> np.ndarray:
        """Probability that a pair ends the process [S, A]: what its row leaves out."""
        return dense.left_out(self.indptr, self.probs).reshape(self.shape)

    @cached_property
    def paid(self) -> Outcomes:
        """What a simulation draws from: the outcomes, or rows that pay their expectation."""
        if self.outcomes is not None:
            return self.outcomes
        pairs = self.rewards.reshape(-1)
        return Outcomes.from_rows(
            self.rows, np.repeat(pairs, np.diff(self.indptr)), pairs, self.shape
        )


def _successors(next_state: Any, ends: np.ndarray, n_states: int) -> np.ndarray:
    """Codes of the next states [N], END where the process ends: they are not read there."""
    going_on = np.flatnonzero(~ends)
    given = np.asanyarray(next_state)
    if given.ndim == 0:
        raise InputError(f"next_state is {shown(next_state)}, expected one code per outcome")
    if given.ndim == 1:  # a masked entry is missing where the process goes on
        check_present(ends | ~np.ma.getmaskarray(given), "next_state")
    successor = np.full(len(ends), END, dtype=np.int64)
    successor[going_on] = _codes("next_state", given[going_on], n_states, going_on)
    return successor


def _codes(what: str, values: Any, size: int, rows: np.ndarray | None = None) -> np.ndarray:
    """Codes 0 … size − 1 [N]; `rows` are the outcomes that they belong to, if not all."""
    codes = whole_array(what, values)
    _check_codes(what, codes, size, rows)
    return codes.astype(np.int64)


def _check_codes(what: str, codes: np.ndarray, size: int, rows: np.ndarray | None = None) -> None:
    if len(codes) and (codes.min() < 0 or codes.max() >= size):
        bad = int(np.argmax((codes < 0) | (codes >= size)))
        row = bad if rows is None else rows[bad]
        raise InputError(
            f"{what} of outcome {row} is {codes[bad]}, expected a whole number from 0 to {size - 1}"
        )


def _check_probs(prob: np.ndarray) -> None:
    bad = ~((prob >= 0) & (prob <= 1 + SUM_TOLERANCE))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"prob of outcome {row} is {prob[row]:g}, expected a number in [0, 1]")
