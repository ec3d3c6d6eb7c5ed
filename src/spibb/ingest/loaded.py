"""A policy from a file, with all that it takes to apply it to new cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spibb.binning import Bins
from spibb.cases import CaseEncoder
from spibb.checks import InputError, some
from spibb.deciding import Decisions, decide
from spibb.ingest.mapping import ColumnMap
from spibb.labels import Label
from spibb.policy import Policy


@dataclass(frozen=True, eq=False)
class LoadedPolicy:
    """A policy from a file, which encodes raw cases as the log was encoded.

    A case is a label of a state (``"mild"``, ``("ward-1", "[18, 40)")``), or a mapping from the
    columns of the state to raw values: ``{"ward": "ward-1", "age": 31}``.

    Parameters:
        policy: the policy itself.
        bins: how numeric columns of the state were cut.
        origin: command, files and versions that it was made with; empty where not known.

    >>> _ = spibb.run(log, "improved", baseline=baseline, n_wedge=1, force=True)
    >>> loaded = spibb.load_policy("improved")
    >>> loaded.act_many({"state": ["mild", "severe"]}, deterministic=True).labels
    ['treat', 'treat']
    """

    policy: Policy
    bins: Mapping[str, Bins]
    origin: Mapping[str, Any]

    def complete(self, column_map: ColumnMap) -> ColumnMap:
        """Read a log as this policy's was read, in all that the mapping leaves open."""
        if not self.origin:
            return column_map
        names = {"state": self.policy.states.names, "action": self.policy.actions.names}
        return column_map.completed(names, self.bins)

    @cached_property
    def encoder(self) -> CaseEncoder:
        """From raw cases to states."""
        return CaseEncoder(self.policy.states, self.bins)

    def encode(self, case: Mapping[str, Any] | Label) -> Label:
        """The label of the state that a case is in."""
        return self.encoder.label(case)

    def row(self, case: Mapping[str, Any] | Label) -> dict[Label, float]:
        """The distribution over actions for a case; a state that was never seen has none."""
        label = self.encode(case)
        if self.policy.states.find(label) is None:
            known = self.policy.states.labels
            raise InputError(
                f"state {label!r} is not in the policy, which knows {len(known)} states such as "
                f"{some(known[:3])}: the log never showed it, so act as before"
            )
        return self.policy.row(label)

    def best(self, case: Mapping[str, Any] | Label) -> Label:
        """The most probable action for a case; the first of several."""
        row = self.row(case)
        return max(row, key=lambda action: row[action])

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
            cases: a dataframe or a mapping with the columns of the state, or labels of states.
            seed: seed of the draws; that of a case depends on the seed and its row only.
            deterministic: take the most probable action, the first of several, and draw nothing.
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
