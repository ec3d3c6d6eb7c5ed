"""Read a log in the same way as the log that a policy was trained on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from spibb.ingest.assumptions import Finding
    from spibb.ingest.loaded import Loaded
    from spibb.ingest.mapping import ColumnMap
    from spibb.sql.typed import TypedTable


NO_DISCOUNT = "No discount: every episode is a single step"


def open_as(log: Any, column_map: ColumnMap, *policies: Loaded) -> Any:
    """Open a log with the columns, bins and handling of policies that must agree on them."""
    from spibb.ingest import column_names
    from spibb.ingest.mapping import ColumnMap
    from spibb.stored_policies import open_for

    present = column_names(log)
    wanted = [policy.complete(column_map, present) for policy in policies]
    return open_for(policies[0], log, reduce(ColumnMap.agreeing, wanted))


def say_discount(console: Console, table: TypedTable, discount: float, source: str) -> None:
    """The discount that was used, and where it comes from; single steps have none."""
    from spibb.cli import terminal

    if table.x.single:
        terminal.say(console, NO_DISCOUNT)
    else:
        terminal.say_path(console, f"Discount {discount:g}, {source}")


def say_assumptions(console: Console, table: TypedTable) -> None:
    """What the log does not say itself, and what was left out of it."""
    from spibb.ingest.assumptions import assumptions

    say_findings(console, assumptions(table))


def say_findings(console: Console, findings: Iterable[Finding]) -> None:
    """Each on its line; warnings stand beside the verdict already."""
    from spibb.cli import terminal
    from spibb.ingest.assumptions import WARNING

    for finding in findings:
        if finding.what != WARNING:
            terminal.say(console, f"{finding.what}: {finding.value}.")


def doubts_about(table: TypedTable | None) -> tuple[str, ...]:
    """What makes every bound on a log doubtful."""
    from spibb.ingest.assumptions import assumptions, doubts

    return () if table is None else doubts(assumptions(table))
