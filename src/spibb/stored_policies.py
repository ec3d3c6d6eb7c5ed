"""Policies of either kind: states that are labels in a table, or vectors for a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spibb.errors import InputError
from spibb.ingest import column_names, open_log
from spibb.ingest.aggregate import LogTable
from spibb.ingest.loaded import Loaded, LoadedPolicy
from spibb.ingest.mapping import ColumnMap, ColumnNames
from spibb.ingest.policy_files import PolicyFile, is_vector_policy
from spibb.ingest.vectors import VectorTable, open_vectors
from spibb.log import Log
from spibb.policy import Policy
from spibb.sql.sources import Source

if TYPE_CHECKING:
    from spibb.episodes.conformity import Conformity


@dataclass(frozen=True, eq=False)
class VectorFile:
    """A policy on vectors in place."""

    place: Path

    def columns(self) -> dict[str, Sequence[str]]:
        """None that a table of labels could have."""
        return {}

    def loaded(self, columns: ColumnNames) -> Loaded:
        """The policy, whose columns are its own."""
        need_deep()
        from spibb.deep.vector_policy import load_vector_policy

        return load_vector_policy(self.place)


@dataclass(frozen=True, eq=False)
class InMemory:
    """A policy that is loaded already."""

    known: Loaded

    def columns(self) -> dict[str, Sequence[str]]:
        """None that a table must have."""
        return {}

    def loaded(self, columns: ColumnNames) -> Loaded:
        """The policy as it is."""
        return self.known

    def policy(self, log: Log) -> Policy:
        """The table of one on labels."""
        assert isinstance(self.known, LoadedPolicy)
        return self.known.policy


def policy_of(given: str | Path | Source | Policy | Loaded) -> PolicyFile | VectorFile | InMemory:
    """A policy in place, or in memory."""
    if isinstance(given, Policy):
        return InMemory(LoadedPolicy(given, {}, {}))
    return InMemory(given) if isinstance(given, Loaded) else policy_in(given)


def policy_in(path: str | Path | Source) -> PolicyFile | VectorFile:
    """A policy on labels or on vectors, in place."""
    if not is_vector_policy(path):
        return PolicyFile.of(path)
    place = Source.of(path).path
    assert place is not None
    return VectorFile(place)


def load_any(path: str | Path | Source) -> Loaded:
    """Load a policy on labels or on vectors."""
    return policy_in(path).loaded({})


def load_together(
    files: Sequence[PolicyFile | VectorFile | InMemory], *, columns: ColumnNames
) -> tuple[Loaded, ...]:
    """Load policies of one problem: plain tables may have the columns of one that knows them."""
    known: ColumnNames = next(filter(None, (file.columns() for file in files)), {})
    return tuple(file.loaded({**known, **columns}) for file in files)


def open_for(source: Any, column_map: ColumnMap, *policies: Loaded) -> LogTable | VectorTable:
    """A log in place, with the states of policies, labels or vectors: it is read as their logs
    were, on which they must agree."""
    present = column_names(source)
    wanted = [policy.complete(column_map, present) for policy in policies]
    reading = reduce(ColumnMap.agreeing, wanted).reading
    if isinstance(policies[0], LoadedPolicy):
        return open_log(source, **reading)
    del reading["bins"]
    return open_vectors(source, **reading)


def need_deep() -> None:
    """Refuse, with the way to it, where what trains networks is not installed."""
    try:
        import spibb.deep  # noqa: F401
    except ImportError as error:
        raise InputError(str(error)) from None


def conformity_of(loaded: Loaded, log: Any) -> Conformity:
    """Compare a log's decisions with a policy; see `spibb.episodes.conformity`."""
    if isinstance(loaded, LoadedPolicy):
        from spibb.episodes.conformity import conformity

        return conformity(log, loaded.policy)
    from spibb.deep.conforming import conformity_on
    from spibb.deep.vector_policy import VectorPolicy

    assert isinstance(loaded, VectorPolicy)
    return conformity_on(log, loaded)
