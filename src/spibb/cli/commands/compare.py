"""`spibb compare`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spibb.cli.options import DiscountOption, named, with_columns
from spibb.cli.progress import new_console, progress

if TYPE_CHECKING:
    from rich.console import Console

    from spibb.ingest.mapping import ColumnMap

    Show = Callable[[Console, Sequence[str]], None]


@with_columns
def compare(
    a: Annotated[
        str, typer.Argument(metavar="A", help="A policy: a file, or a folder of `spibb improve`.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="Another policy, or the baseline.")],
    log: Annotated[
        str | None, typer.Option(help="A log. Adds visits, values, and which policy is better.")
    ] = None,
    discount: DiscountOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the posterior draws.")] = 0,
    *,
    column_map: ColumnMap,
) -> None:
    """Say in which states two policies differ and by how much.

    With a log, also say what both are worth in models drawn from it, and whether the log supports
    replacing B by A.
    """
    from spibb.cli.logs import doubts_about, open_as, say_assumptions, say_discount
    from spibb.cli.terminal import say
    from spibb.errors import InputError
    from spibb.ingest.loaded import LoadedPolicy
    from spibb.monitoring.deployed import discount_for
    from spibb.stored_policies import load_together, policy_in

    console = new_console()
    with progress(console, "reading and comparing"):
        files = policy_in(a), policy_in(b)
        first, second = load_together(files, columns=column_map.columns)
        tables = [isinstance(policy, LoadedPolicy) for policy in (first, second)]
        if tables[0] != tables[1]:
            raise InputError(
                "one policy decides by labels of states and the other by vectors of numbers, so "
                "they have no state in common: compare policies of one kind"
            )
        policies = {named(a): first, named(b): second}
        gamma, source = discount_for(discount, policies if log is not None else {})
        table = None if log is None else open_as(log, column_map, first, second)
        trained = log is not None and _used(first, "log", log)
        said = trained and gamma == first.discount and _used(first, "baseline", b)
        both = (files[0], first), (files[1], second)
        doubts = doubts_about(table)
        if tables[0]:
            show = _compare_tables(*both, table, gamma, seed, trained, said)
        else:
            show = _compare_vectors(*both, table, gamma, seed)
    show(console, doubts)
    if trained:
        say(
            console,
            "This log trained A, so it adds no evidence to what `spibb improve` said. Compare with "
            "a log of other episodes.",
        )
    if table is not None:
        say_assumptions(console, table)
        say_discount(console, table, gamma, source)


def _used(policy: Any, role: str, file: str) -> bool:
    """Whether a policy was made with this very file as log or baseline, by the hash that it
    knows."""
    from spibb.report.origin import digest

    found = digest(file)
    used = ((source["role"], source["sha256"]) for source in policy.origin.get("sources", ()))
    return found is not None and (role, found) in used


def _compare_tables(
    a: tuple[Any, Any], b: tuple[Any, Any], table: Any, gamma: float, seed: int, trained: bool,
    said: bool,
) -> Show:  # fmt: skip
    """Compare two tables; the answer prints, with the verdict that A has if it is one on B."""
    from spibb.cli.terminal import print_comparison
    from spibb.report.comparison import compare as compare_policies

    records = None if table is None else table.log()
    left, right = (
        policy.policy if records is None else file.policy(records) for file, policy in (a, b)
    )
    found = compare_policies(left, right, records, discount=gamma, seed=seed, trained=trained)
    known = a[1].verdict if said else None
    return lambda console, doubts: print_comparison(console, found, doubts, known)


def _compare_vectors(
    a: tuple[Any, Any], b: tuple[Any, Any], table: Any, gamma: float, seed: int
) -> Show:
    """Compare two policies on vectors; the answer prints."""
    from spibb.cli.vectors import print_vector_comparison
    from spibb.deep.comparing import compare_vectors

    records = None if table is None else table.log()
    found = compare_vectors(a[1], b[1], records, discount=gamma, seed=seed)
    where = "the log's" if table is not None else "those that A was trained on"
    return lambda console, doubts: print_vector_comparison(console, found, where, doubts)
