"""Policy: rows of probabilities with the labels of their states and actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from spibb.cases import CaseEncoder
from spibb.checks import flag, probability_rows, real_array, some, takes, whole_rows
from spibb.decisions import Decisions, decide
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.labels import Label, Vocabulary, column_names, vocabulary


class HasPolicy(Protocol):
    """Anything with a policy: a `LoadedPolicy`, an `Improvement`, a `Run`."""

    @property
    def policy(self) -> Policy:
        """The policy."""


def inner_policy(given: Any) -> Policy | None:
    """A policy itself, or that of an object that has one; None for anything else."""
    found = given if isinstance(given, Policy) else getattr(given, "policy", None)
    return found if isinstance(found, Policy) else None


@dataclass(frozen=True, eq=False, init=False)
class Policy(Frozen):
    """A policy π(a|x): for each state, a distribution over actions.

    `probs` [S, A] is read-only; `states` and `actions` hold the labels. A row whose sum is off
    1 by up to 1e-6, as with numbers printed to six digits, is divided by its sum.

    Parameters:
        probs: rows [S, A] that sum to 1.
        states: labels of the rows; 0, 1, … if absent.
        actions: labels of the columns; 0, 1, … if absent.
        what: its name in messages.

    >>> policy = spibb.Policy([[0.6, 0.4]], states=["mild"], actions=["treat", "wait"])
    >>> policy.row("mild")
    {'treat': 0.6, 'wait': 0.4}
    >>> policy.sample("mild", rng=np.random.default_rng(0))
    'wait'
    """

    probs: np.ndarray
    states: Vocabulary
    actions: Vocabulary

    def __init__(
        self,
        probs: Any,
        states: Vocabulary | Sequence[Label] | None = None,
        actions: Vocabulary | Sequence[Label] | None = None,
        what: str = "policy",
    ) -> None:
        if hasattr(type(probs), "columns"):
            raise InputError(
                f"{what} is a table, whose labels would be lost: give the table itself as the "
                "baseline of a problem, or its numbers with states= and actions="
            )
        array = np.array(real_array(what, probs), order="C")
        if array.ndim != 2:
            raise InputError(f"{what} has shape {array.shape}, expected [states, actions]")
        states = vocabulary(array.shape[0] if states is None else states, "state")
        actions = vocabulary(array.shape[1] if actions is None else actions, "action")
        if array.shape != (len(states), len(actions)):
            raise InputError(
                f"{what} has shape {array.shape}, expected ({len(states)}, {len(actions)}): "
                "one row per state label, one column per action label"
            )
        probability_rows(array, states.labels, actions.labels, what)
        self._set(whole_rows(array), states, actions)

    def _set(self, probs: np.ndarray, states: Vocabulary, actions: Vocabulary) -> None:
        object.__setattr__(self, "probs", probs)
        object.__setattr__(self, "states", states)
        object.__setattr__(self, "actions", actions)
        self.freeze()

    @classmethod
    def trusted(cls, probs: np.ndarray, states: Vocabulary, actions: Vocabulary) -> Policy:
        """Wrap rows that an algorithm made and that need no check: no copy is made.

        Parameters:
            probs: rows [S, A] that sum to 1.
            states: labels of the rows.
            actions: labels of the columns.

        >>> rows = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> spibb.Policy.trusted(rows, log.states, log.actions).row("severe")
        {'treat': 0.0, 'wait': 1.0}
        """
        policy = cls.__new__(cls)
        policy._set(probs, states, actions)
        return policy

    @classmethod
    def uniform(
        cls, states: Vocabulary | Sequence[Label] | int, actions: Vocabulary | Sequence[Label] | int
    ) -> Policy:
        """The policy π̃ that plays every action equally often.

        Parameters:
            states: the states, or their number.
            actions: the actions, or their number.

        >>> spibb.Policy.uniform(["mild", "severe"], ["treat", "wait"]).row("mild")
        {'treat': 0.5, 'wait': 0.5}
        """
        states, actions = vocabulary(states, "state"), vocabulary(actions, "action")
        shape = (len(states), len(actions))
        return cls.trusted(np.full(shape, 1 / len(actions)), states, actions)

    def _facts(self) -> Mapping[str, Any]:
        """Sizes, and the first actions."""
        return {"states": self.n_states, "actions": self.n_actions,
                "labels": some(self.actions.labels, 4)}  # fmt: skip

    @property
    def n_states(self) -> int:
        """Number of states S."""
        return len(self.states)

    @property
    def n_actions(self) -> int:
        """Number of actions A."""
        return len(self.actions)

    def row(self, state: Label) -> dict[Label, float]:
        """The distribution over action labels in a state.

        Parameters:
            state: one of the labels in `states`, not a cell of a file: 3.0 is 3, but "3" is not,
                and true is not 1. `act_many` reads cells.

        Returns:
            The probability of each action.

        >>> baseline.row("mild")
        {'treat': 0.6, 'wait': 0.4}
        """
        return dict(zip(self.actions.labels, self.probs[self.states.code(state)].tolist()))

    @takes(rng=np.random.Generator)
    def sample(self, state: Label, *, rng: np.random.Generator) -> Label:
        """Draw an action. The draw does not depend on the order of the policy's actions.

        Parameters:
            state: one of the labels in `states`, as in `row`.
            rng: the source of random numbers.

        Returns:
            The label of the action.

        >>> rng = np.random.default_rng(0)
        >>> baseline.sample("mild", rng=rng), baseline.sample("mild", rng=rng)
        ('wait', 'treat')
        """
        order = self.actions.in_order
        cumulative = np.cumsum(self.probs[self.states.code(state)][order])
        place = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
        return self.actions[int(order[place])]

    def act_many(
        self,
        cases: Any,
        *,
        seed: int = 0,
        deterministic: bool = False,
        unseen: str = "error",
        first_row: int = 0,
    ) -> Decisions:
        """An action for each of many cases, millions per second.

        The draw of a case depends on the seed and its row only: cases that are decided in pieces,
        each with its `first_row`, get the actions that they get all at once. Nor does it depend on
        the order of the policy's actions, which a file does not keep.

        Parameters:
            cases: a dataframe or a mapping with the columns of the state, a list of such mappings
                for one case each, or labels of states. All are read as cells of a file: "3" is 3
                where labels are numbers, and 3 is "3" where they are text.
            seed: seed of the draws.
            deterministic: take the most probable action, of several the one whose label sorts
                first, and draw nothing.
            unseen: ``"error"`` refuses cases in states that the policy does not know, and names
                their rows; ``"empty"`` gives them no action.
            first_row: number of the first case.

        Returns:
            The actions, with the probability of each.

        >>> decided = baseline.act_many(["mild", "severe", "mild"], deterministic=True)
        >>> decided.labels, decided.probability.tolist()
        (['treat', 'treat', 'treat'], [0.6, 0.6, 0.6])
        """
        return decide(
            self.probs, self._encoder, self.actions, cases, seed=seed, deterministic=deterministic,
            unseen=unseen, first_row=first_row,
        )  # fmt: skip

    @cached_property
    def _encoder(self) -> CaseEncoder:
        return CaseEncoder(self.states)

    def named(self, states: tuple[str, ...], actions: tuple[str, ...]) -> Policy:
        """The same policy, with other names for the columns that its labels span.

        Parameters:
            states: the columns of a state.
            actions: the columns of an action.

        >>> baseline.named(("diagnosis",), ("treatment",)).states.names
        ('diagnosis',)
        """
        states, actions = column_names("states", states), column_names("actions", actions)
        if (self.states.names, self.actions.names) == (states, actions):
            return self
        return Policy.trusted(self.probs, self.states.named(states), self.actions.named(actions))

    @takes(states=Vocabulary, actions=Vocabulary)
    def aligned(self, states: Vocabulary, actions: Vocabulary, what: str = "policy") -> Policy:
        """The same policy with rows and columns in the order of other vocabularies.

        Whatever takes a policy together with an MDP, counts or a log calls this first: inside the
        library rows and columns always match. Every state asked for must have a row here; actions
        that this policy does not know get probability 0, and one that it plays may not be missing.

        Parameters:
            states: the states asked for.
            actions: the actions asked for.
            what: the policy's name in messages.

        >>> actions = spibb.Vocabulary(["wait", "refer", "treat"])
        >>> baseline.aligned(baseline.states, actions).row("mild")
        {'wait': 0.4, 'refer': 0.0, 'treat': 0.6}
        """
        if states == self.states and actions == self.actions:
            return self
        rows, columns = self.states.codes(states), self.actions.codes(actions)
        missing = [label for label, row in zip(states.labels, rows) if row < 0]
        if missing:
            raise InputError(
                f"{what} has no row for state {some(missing)} ({len(missing)} of {len(states)} "
                "states are absent): add the rows, or drop those states from the log"
            )
        chosen = self.probs[rows]
        self._check_kept(chosen, columns, states, actions, what)
        probs = np.where(columns >= 0, chosen[:, np.maximum(columns, 0)], 0.0)
        return Policy.trusted(np.ascontiguousarray(probs), states, actions)

    def _check_kept(
        self, chosen: np.ndarray, kept: np.ndarray, states: Vocabulary, actions: Vocabulary,
        what: str,
    ) -> None:  # fmt: skip
        """No action that is played in the chosen rows [S, A] may be left out."""
        lost = np.setdiff1d(np.arange(self.n_actions), kept)
        played = np.argwhere(chosen[:, lost] > 0)
        if len(played):
            s, a = played[0]
            raise InputError(
                f"{what} plays action {self.actions[int(lost[a])]!r} in state {states[int(s)]!r}, "
                f"which is not among the actions known there, such as "
                f"{some(actions.labels[:3])}: use the same labels"
            )

    @takes(path=(str, Path))
    def save(self, path: str | Path, *, spreadsheet_safe: bool = False) -> Path:
        """Write the table `state, action, probability` as .csv or .parquet, in long form.

        `read_policy` gives the same labels back.

        Parameters:
            path: the file.
            spreadsheet_safe: write an apostrophe before labels that a spreadsheet might execute,
                which begin with ``=``, ``+``, ``-`` or ``@``; one more column tells `read_policy`
                to take it away.

        Returns:
            The path of the file.

        >>> path = baseline.save("baseline.csv")
        >>> spibb.read_policy(path).row("severe")
        {'treat': 0.6, 'wait': 0.4}
        """
        from spibb import tables

        flag("spreadsheet_safe", spreadsheet_safe)
        table = tables.long_form(self.states, self.actions, probability=self.probs)
        table = tables.spreadsheet_safe(table) if spreadsheet_safe else table
        return tables.write_table(table, Path(path))
