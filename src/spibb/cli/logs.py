"""What commands say of the log that they read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from spibb.ingest.assumptions import Finding
    from spibb.sql.typed import TypedTable


NO_DISCOUNT = "No discount: every episode is a single step"


def say_discount(console: Console, discount: float, source: str | None) -> None:
    """The discount that was used, and where it comes from; single steps have none."""
    from spibb.cli import terminal

    if source is None:
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


def doubts_about(table: TypedTable) -> tuple[str, ...]:
    """What makes every bound on a log doubtful."""
    from spibb.ingest.assumptions import assumptions, doubts

    return doubts(assumptions(table))
