"""A policy from a file, with all that it takes to apply it to new cases."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spibb.binning import Bins
from spibb.cases import CaseEncoder
from spibb.checks import some
from spibb.decisions import Decisions, decide
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.ingest.mapping import ColumnMap
from spibb.ingest.whole_policy import digest, write_whole_policy
from spibb.irregular_tables import AS_LEVEL, MISSING_LABEL
from spibb.labels import Label, Vocabulary, sorted_places
from spibb.policy import Policy

NOT_SUPPORTED = "not supported"


class Loaded(Frozen):
    """A policy with all that it takes to apply it: to new cases, and to logs like its own.

    States are labels (`LoadedPolicy`) or vectors (`spibb.deep.VectorPolicy`).
    """

    if TYPE_CHECKING:

        @property
        def origin(self) -> Mapping[str, Any]:
            """Command, files and versions that it was made with; empty where not known."""

        @property
        def verdict(self) -> Mapping[str, Any] | None:
            """`grade`, `headline`, `sentence` and `level` of the verdict when it was made, if
            known."""

        @property
        def discount(self) -> float | None:
            """The one that it was made with, if known."""

        @property
        def own(self) -> ColumnMap:
            """How the log of the policy was read."""

        @property
        def state_names(self) -> tuple[str, ...]:
            """The columns of a state."""

        @property
        def number_names(self) -> tuple[str, ...]:
            """The columns of a state that hold numbers in a raw case."""

        @property
        def example(self) -> Label:
            """A state that the policy knows."""

        @property
        def sha256(self) -> str:
            """The hash of all of it."""

        def encode(self, case: Mapping[str, Any] | Label) -> Label:
            """The label of the state that a case is in."""

        def row(self, case: Mapping[str, Any] | Label) -> dict[Label, float]:
            """The distribution over actions for a case."""

        def act_many(
            self, cases: Any, *, seed: int = 0, deterministic: bool = False, unseen: str = "error",
            first_row: int = 0,
        ) -> Decisions:  # fmt: skip
            """An action for each of many cases."""

    def values(self, name: str) -> Collection[Label]:
        """The labels that states have in a column; none where it holds numbers."""
        return ()

    @property
    def empty_names(self) -> tuple[str, ...]:
        """The columns of a state in which an empty text is a value: elsewhere it is missing."""
        return tuple(name for name in self.state_names if "" in self.values(name))

    @property
    def doubt(self) -> str | None:
        """One line for whoever is about to use a policy whose verdict was "not supported"."""
        if self.verdict is None or self.verdict["grade"] != NOT_SUPPORTED:
            return None
        return f"the verdict on this policy was: {self.verdict['headline']}"

    def best(self, case: Mapping[str, Any] | Label) -> Label:
        """The most probable action for a case; of several, the one whose label sorts first."""
        row = self.row(case)
        labels = list(row)
        return max((labels[k] for k in sorted_places(labels)), key=lambda action: row[action])

    def complete(self, column_map: ColumnMap, present: Sequence[str]) -> ColumnMap:
        """How to read a log with the columns `present` as this policy's log was read.

        See `ColumnMap.under`: options win, and what contradicts the policy is refused.
        """
        return column_map.under(self.own, present)


@dataclass(frozen=True, eq=False)
class LoadedPolicy(Loaded):
    """A policy from a file, which encodes raw cases as the log was encoded.

    A case is a label of a state (``"mild"``, ``("ward-1", "[18, 40)")``), or a mapping from the
    columns of the state to raw values: ``{"ward": "ward-1", "age": 31}``. Both are read as cells of
    a file, one case as many: ``"3"`` is 3 where labels are numbers, and 3 is ``"3"`` where they are
    text.

    Parameters:
        policy: the policy itself.
        bins: how numeric columns of the state were cut.
        origin: command, files and versions that it was made with; empty where not known.
        visits: how often the log was in each state [S], if known.
        verdict: `grade`, `headline`, `sentence` and `level` of the verdict when it was made, if
            known; the level is δ, or the share of it that the verdict's gain has.
        discount: the one that it was made with, if known.
        reading: how its log was read, if known: columns, and what was done with rows.

    >>> _ = spibb.run(log, "improved", baseline=baseline, n_wedge=1, force=True)
    >>> loaded = spibb.load_policy("improved")
    >>> loaded.act_many({"state": ["mild", "severe"]}, deterministic=True).labels
    ['treat', 'treat']
    """

    policy: Policy
    bins: Mapping[str, Bins]
    origin: Mapping[str, Any]
    visits: np.ndarray | None = None
    verdict: Mapping[str, Any] | None = None
    discount: float | None = None
    reading: ColumnMap | None = None

    def __post_init__(self) -> None:
        for vocabulary in (self.policy.states, self.policy.actions):
            _check_bins(vocabulary, self.bins)
        known = {*self.policy.states.names, *self.policy.actions.names}
        if strange := sorted(set(self.bins) - known):
            raise InputError(
                f"bins are given for {some(strange)}, not a column of the policy: drop them"
            )
        self.freeze()

    def _facts(self) -> Mapping[str, Any]:
        """Sizes, and what is known of the policy."""
        grade = None if self.verdict is None else self.verdict["grade"]
        return {"states": self.policy.n_states, "actions": self.policy.n_actions,
                "bins": ", ".join(self.bins) or None, "verdict": grade}  # fmt: skip

    @cached_property
    def sha256(self) -> str:
        """The hash of all of it: two policies that decide alike from one origin have the same."""
        return digest(self)

    def save(self, path: str | Path) -> Path:
        """Write one file, ``.spibb``, with labels, bins, origin, verdict and hash.

        `load_policy` and every command that takes a policy read it, and compare it with its hash.
        """
        return write_whole_policy(self, Path(path))

    @property
    def state_names(self) -> tuple[str, ...]:
        """The columns of a state."""
        return self.policy.states.names

    @property
    def number_names(self) -> tuple[str, ...]:
        """The columns that are cut."""
        return tuple(name for name in self.state_names if name in self.bins)

    @property
    def example(self) -> Label:
        """The first of its states."""
        return self.policy.states[0]

    def values(self, name: str) -> Collection[Label]:
        """The labels that states have in a column."""
        return self.encoder.values(name)

    @property
    def own(self) -> ColumnMap:
        """How its log was read; one that knows missing values as a level reads them so."""
        names = {"state": self.policy.states.names, "action": self.policy.actions.names}
        known = self.reading or ColumnMap(said={"missing": AS_LEVEL} if self._has_level else {})
        return ColumnMap({**known.columns, **names}, self.bins, known.said)

    def complete(self, column_map: ColumnMap, present: Sequence[str]) -> ColumnMap:
        """As for any policy; one of unknown origin asks for nothing."""
        return super().complete(column_map, present) if self.origin else column_map

    @cached_property
    def _has_level(self) -> bool:
        """Whether missing values were a level of their own in the log."""
        labels = (*self.policy.states.labels, *self.policy.actions.labels)
        parts = (label if isinstance(label, tuple) else (label,) for label in labels)
        return any(MISSING_LABEL in part for part in parts)

    @cached_property
    def encoder(self) -> CaseEncoder:
        """From raw cases to states."""
        return CaseEncoder(self.policy.states, self.bins)

    def encode(self, case: Mapping[str, Any] | Label) -> Label:
        """The label of the state that a case is in."""
        return self.encoder.label(case)

    def row(self, case: Mapping[str, Any] | Label) -> dict[Label, float]:
        """The distribution over actions for a case; a state that was never seen has none.

        Unlike `Policy.row`, this reads the case as `act_many` does.
        """
        label = self.encode(case)
        if self.policy.states.find(label) is None:
            known = self.policy.states.labels
            raise InputError(
                f"state {label!r} is not in the policy, which knows {len(known)} states such as "
                f"{some(known[:3])}: the log never shows it, so follow the current policy"
            )
        return self.policy.row(label)

    def act_many(
        self,
        cases: Any,
        *,
        seed: int = 0,
        deterministic: bool = False,
        unseen: str = "error",
        first_row: int = 0,
    ) -> Decisions:
        """An action for each of many cases; raw values are cut as in training.

        Parameters:
            cases: a dataframe or a mapping with the columns of the state, a list of such mappings
                for one case each, or labels of states.
            seed: seed of the draws; that of a case depends on the seed and its row only.
            deterministic: take the most probable action, of several the one whose label sorts
                first, and draw nothing.
            unseen: ``"error"`` refuses cases in states that the policy does not know, and names
                their rows; ``"empty"`` gives them no action.
            first_row: number of the first case, where cases are decided in pieces.

        Returns:
            The actions, with the probability of each.
        """
        return decide(
            self.policy.probs, self.encoder, self.policy.actions, cases, seed=seed,
            deterministic=deterministic, unseen=unseen, first_row=first_row,
        )  # fmt: skip


def _check_bins(vocabulary: Vocabulary, bins: Mapping[str, Bins]) -> None:
    """Labels of a column that is cut must be its intervals: else no case would be in a state."""
    for position, name in enumerate(vocabulary.names):
        if name not in bins:
            continue
        single = len(vocabulary.names) == 1
        parts = {label if single else label[position] for label in vocabulary.labels}
        if wrong := [part for part in parts if part not in (*bins[name].labels, MISSING_LABEL)]:
            raise InputError(
                f"column {name!r} of the policy has the label {wrong[0]!r}, which is not one of "
                f"its bins {some(bins[name].labels, 3)}: write the policy again"
            )
