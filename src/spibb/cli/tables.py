"""What `spibb inspect` and `spibb act` print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from spibb.words import clipped

if TYPE_CHECKING:
    from rich.console import Console

    from spibb.forecast import Forecast
    from spibb.inspection import Inspection


def print_inspection(console: Console, inspection: Inspection) -> None:
    """What the log is good for, facts, the coverage histogram, and what is suspicious."""
    from spibb.ingest.assumptions import WARNING, doubts

    _print_forecast(console, inspection.forecast, inspection.rows)
    for doubt in doubts(inspection.assumptions):
        console.print(Text(f"Doubt: {doubt}.", "bold"))
    console.print()
    facts = Table("the log", "", show_edge=False)
    for finding in inspection.facts:
        facts.add_row(finding.what, finding.value)
    console.print(facts)
    console.print()
    console.print(_coverage_table(inspection))
    console.print()
    if not inspection.suspicions:
        console.print("Nothing suspicious.")
    for finding in (found for found in inspection.suspicions if found.what != WARNING):
        console.print(Text.assemble((f"{finding.what}: ", "bold"), finding.value, ";"))
        console.print(Text(f"  {finding.remedy}."))


def _print_forecast(console: Console, forecast: Forecast | None, rows: int) -> None:
    """The verdict on the log, in the first line."""
    from spibb.forecast import FORECAST_ROWS

    if forecast is None:
        too_many = f"No forecast: the log has {rows:,} rows, more than {FORECAST_ROWS:,}."
        console.print(Text(too_many, "bold"))
        return
    console.print(Text(str(forecast), "bold green" if forecast.now else "bold"))
    if not forecast.refusal:
        console.print(Text(forecast.premises))


def _coverage_table(inspection: Inspection) -> Table:
    table = Table("a pair of state and action was seen", "pairs", "rows", show_edge=False)
    brackets = [part.at_least for part in inspection.coverage]
    most = max(part.pairs for part in inspection.coverage) or 1
    table.add_column("")
    for part, following in zip(inspection.coverage, [*brackets[1:], None]):
        bar = "█" * round(20 * part.pairs / most)
        table.add_row(_times(part.at_least, following), f"{part.pairs:,}", f"{part.rows:,}", bar)
    return table


def _times(low: int, following: int | None) -> str:
    if following is None:
        return f"{low} times or more"
    if low < 2:
        return "never" if low == 0 else "once"
    return f"{low} to {following - 1} times"


def _typeset(label: Any) -> Any:
    """A label whose numbers have a true minus sign; text stays as it is."""
    if isinstance(label, tuple):
        return tuple(map(_typeset, label))
    return str(label).replace("-", "−") if isinstance(label, int | float) else label


def print_actions(console: Console, state: Any, row: Mapping[Any, float]) -> None:
    """A distribution over actions, the most probable first."""
    console.print(Text(f"In state {clipped(_typeset(state))}:"), soft_wrap=True)
    table = Table("action", "probability", show_edge=False)
    for action, probability in sorted(row.items(), key=lambda item: -item[1]):
        table.add_row(Text(clipped(action)), f"{probability:.4f}")
    console.print(table)
