"""Two policies side by side, in memory or in files, and what a log says of one in B's place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from spibb import checks
from spibb.comparison.tables import Comparison as Comparison
from spibb.comparison.tables import Difference as Difference
from spibb.comparison.tables import compare_tables
from spibb.defaults import DISCOUNT
from spibb.errors import InputError
from spibb.ingest.assumptions import assumptions
from spibb.ingest.loaded import Loaded, LoadedPolicy
from spibb.ingest.mapping import ColumnMap
from spibb.ingest.vectors import VectorLog
from spibb.log import Log
from spibb.monitoring.deployed import discount_for
from spibb.policy import Policy
from spibb.report.origin import digest
from spibb.sql.sources import Source
from spibb.stored_policies import load_together, open_for, policy_of

if TYPE_CHECKING:
    from spibb.deep.comparing import VectorComparison
    from spibb.deep.vector_policy import VectorPolicy


@overload
def compare(
    a: Policy | LoadedPolicy,
    b: Policy | LoadedPolicy | str | Path | Source,
    log: Any = None,
    *,
    discount: float | None = None,
    seed: int = 0,
) -> Comparison: ...


@overload
def compare(
    a: VectorPolicy | str | Path | Source,
    b: Policy | Loaded | str | Path | Source,
    log: Any = None,
    *,
    discount: float | None = None,
    seed: int = 0,
) -> Comparison | VectorComparison: ...


def compare(
    a: Policy | Loaded | str | Path | Source,
    b: Policy | Loaded | str | Path | Source,
    log: Any = None,
    *,
    discount: float | None = None,
    seed: int = 0,
) -> Comparison | VectorComparison:
    """Say where two policies differ, and with a log what A gains in the place of B.

    Where the log is the file that trained A, it is no new evidence: the verdict takes the level at
    which `spibb improve` judged A. If B was the baseline too, `stored` is what it said.

    Parameters:
        a: a `Policy`, a policy that was loaded, a policy file, or a folder of ``spibb improve``.
        b: the same: another policy, or the baseline.
        log: a `Log` (or `VectorLog`), or whatever `open_log` takes, which is then read as the logs
            of the policies were; None compares the policies alone.
        discount: γ; None takes the one that the policies were made with, or 0.95.
        seed: seed of the posterior draws.

    Returns:
        A `Comparison`; a `VectorComparison` of policies on vectors.

    >>> done = spibb.run(log, "improved", baseline=baseline, discount=0.9, n_wedge=1, force=True)
    >>> found = spibb.compare("improved", baseline, log)
    >>> len(found.differences), found.discount, found.verdict.grade
    (1, 0.9, <Grade.NOT_SUPPORTED: 'not supported'>)
    """
    for name, policy in (("a", a), ("b", b)):
        if not isinstance(policy, Policy | Loaded | str | Path | Source):
            raise checks.wrong_type(name, policy, (Policy, LoadedPolicy, Source, str, Path))
    return compare_read(a, b, log, ColumnMap(), discount=discount, seed=seed)


def compare_read(
    a: Any, b: Any, log: Any, how: ColumnMap, *, discount: float | None, seed: int
) -> Comparison | VectorComparison:
    """The same, where options say how policies and log are read."""
    files = policy_of(a), policy_of(b)
    first, second = load_together(files, columns=how.columns)
    tables = [isinstance(policy, LoadedPolicy) for policy in (first, second)]
    if tables[0] != tables[1]:
        raise InputError(
            "one policy decides by labels of states and the other by vectors of numbers, so "
            "they have no state in common: compare policies of one kind"
        )
    checks.seed(seed)
    if log is None:
        return _found((files[0], first), (files[1], second), None, DISCOUNT, seed, None)
    gamma, source = discount_for(discount, {_named(a, "A"): first, _named(b, "B"): second})
    trained = _used(first, "log", log)
    table = None if isinstance(log, Log | VectorLog) else open_for(log, how, first, second)
    found = _found(
        (files[0], first), (files[1], second), log if table is None else table.log(),
        checks.discount(gamma), seed, (first.verdict or {}).get("level") if trained else None,
    )  # fmt: skip
    found = replace(
        found, trained=trained, discount=gamma, discount_from=source,
        assumptions=() if table is None else assumptions(table),
    )  # fmt: skip
    if table is not None and table.x.single:
        found = replace(found, discount_from=None)
    if isinstance(found, Comparison) and trained and gamma == first.discount:
        same = _used(first, "baseline", b) and _read_alike(first, table)
        found = replace(found, stored=first.verdict if same else None)
    return found


def _read_alike(policy: Loaded, table: Any) -> bool:
    """Whether a table is read as the policy's log was: other rewards are another question."""
    assert isinstance(policy, LoadedPolicy)
    labels = policy.policy.states.names, policy.policy.actions.names
    if policy.reading is None or (table.names["state"], table.names["action"]) != labels:
        return False
    return ColumnMap.read_by(table).content == policy.reading.content


def _found(
    a: tuple[Any, Loaded], b: tuple[Any, Loaded], log: Log | VectorLog | None, discount: float,
    seed: int, level: float | None,
) -> Comparison | VectorComparison:  # fmt: skip
    """Compare two policies of one kind, each in place and loaded."""
    if isinstance(a[1], LoadedPolicy) and isinstance(b[1], LoadedPolicy):
        if isinstance(log, VectorLog):
            raise InputError(
                "the log has vectors of numbers, and the policies decide by labels of states: give "
                "the table, or what spibb.read_log read"
            )
        left, right = a[1].policy, b[1].policy
        if log is not None:
            left, right = a[0].policy(log), b[0].policy(log)
        return compare_tables(left, right, log, discount=discount, seed=seed, level=level)
    if isinstance(log, Log):
        raise InputError(
            "the log has labels of states, and the policies decide by vectors of numbers: give the "
            "table, or what spibb.read_vectors read"
        )
    from spibb.deep.comparing import compare_vectors
    from spibb.deep.vector_policy import VectorPolicy

    assert isinstance(a[1], VectorPolicy)
    assert isinstance(b[1], VectorPolicy)
    return compare_vectors(a[1], b[1], log, discount=discount, seed=seed)


def _named(given: Any, otherwise: str) -> str:
    """What a policy is called: its file, if it is in one."""
    return Source.of(given).name if isinstance(given, str | Path | Source) else otherwise


def _used(policy: Loaded, role: str, given: Any) -> bool:
    """Whether a policy was made with this very file as log or baseline, by the hash that it
    knows."""
    found = digest(given) if isinstance(given, str | Path | Source) else None
    used = ((source["role"], source["sha256"]) for source in policy.origin.get("sources", ()))
    return found is not None and (role, found) in used
