"""`spibb evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spibb.cli.options import DiscountOption, LogArgument, named, with_columns
from spibb.cli.progress import STEP_SUMS, new_console, progress
from spibb.cli.vectors import evaluate_vectors, refuse_behaviour

if TYPE_CHECKING:
    from rich.console import Console

    from spibb.ingest.mapping import ColumnMap
    from spibb.ingest.policy_files import PolicyFile

Policy = Annotated[
    str, typer.Option(help="The policy to evaluate: a table of state, action, probability.")
]
Behaviour = Annotated[
    str | None,
    typer.Option(
        help="The policy that made the log. Default: the column action_prob. estimate, or "
        "estimate:SMOOTHING, estimates it from this log."
    ),
]
Delta = Annotated[float, typer.Option(help="Failure probability of the lower bounds.")]
LowestReturn = Annotated[
    float | None, typer.Option(help="Lowest possible return. Exact bounds need it.")
]
HighestReturn = Annotated[
    float,
    typer.Option(help="Highest possible return. Exact bounds of the difference need it."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")]


@with_columns
def evaluate(
    log: LogArgument,
    policy: Policy,
    behaviour: Behaviour = None,
    discount: DiscountOption = None,
    delta: Delta = 0.05,
    lowest_return: LowestReturn = None,
    highest_return: HighestReturn = float("inf"),
    seed: Seed = 0,
    *,
    column_map: ColumnMap,
) -> None:
    """Estimate what a policy would earn from a log that another policy made.

    Prints six off-policy estimates with four lower bounds each, and the same for the difference
    from the log's mean return. A policy looks better than it is on the log that trained it, so
    evaluate it on episodes that were held out.
    """
    import numpy as np

    from spibb.cli.logs import doubts_about, say_assumptions, say_discount
    from spibb.monitoring.deployed import discount_for
    from spibb.stored_policies import VectorFile, open_for, policy_in

    console = new_console()
    bounds: dict[str, Any] = {
        "delta": delta,
        "lowest_return": lowest_return,
        "highest_return": highest_return,
    }
    with progress(console, "reading"):
        file = policy_in(policy)
        loaded = file.loaded(column_map.columns)
        if isinstance(file, VectorFile):
            refuse_behaviour(behaviour)
        gamma, source = discount_for(discount, {named(policy): loaded})
        table = open_for(log, column_map, loaded)
        records: Any = table.log()
        doubts = doubts_about(table)
    if isinstance(file, VectorFile):
        evaluate_vectors(console, loaded, records, gamma, doubts=doubts, seed=seed, **bounds)
    else:
        bounds["rng"] = np.random.default_rng(seed)
        _evaluate(console, file, records, gamma, behaviour, doubts, bounds)
    say_assumptions(console, table)
    say_discount(console, gamma, None if table.x.single else source)


def _evaluate(
    console: Console, file: PolicyFile, records: Any, gamma: float, behaviour: str | None,
    doubts: Sequence[str], bounds: dict[str, Any],
) -> None:  # fmt: skip
    """Off-policy estimates of a table."""
    from spibb.cli import terminal
    from spibb.ingest.baselines import behaviour_of, is_of_log
    from spibb.ope import off_policy_estimates

    with progress(console, "evaluating", compiles=STEP_SUMS):
        made = None if behaviour is None else behaviour_of(behaviour, records)
        report = off_policy_estimates(records, file.policy(records), made, gamma, **bounds)
    terminal.print_conclusion(console, report, doubts)
    terminal.print_estimates(console, report)
    if behaviour is not None and is_of_log(behaviour) and made is not None:
        terminal.say(console, "The behaviour was estimated from this log: the bounds do not "
                              "include the error of that estimate.")  # fmt: skip
