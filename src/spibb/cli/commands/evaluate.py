"""`spibb evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spibb.cli.options import DiscountOption, LogArgument, with_columns
from spibb.cli.vectors import evaluate_vectors, is_vector_policy
from spibb.cli.waiting import ESTIMATORS, new_console, progress

if TYPE_CHECKING:
    from spibb.ingest.mapping import ColumnMap


@with_columns
def evaluate(
    log: LogArgument,
    policy: Annotated[
        str, typer.Option(help="The policy to evaluate: a table of state, action, probability.")
    ],
    behaviour: Annotated[
        str | None,
        typer.Option(
            help="The policy that made the log. Default: the column action_prob. estimate, or "
            "estimate:SMOOTHING, estimates it from this log."
        ),
    ] = None,
    discount: DiscountOption = None,
    delta: Annotated[float, typer.Option(help="Failure probability of the lower bounds.")] = 0.05,
    lowest_return: Annotated[
        float, typer.Option(help="No return can be below it. Exact bounds need it.")
    ] = 0.0,
    highest_return: Annotated[
        float,
        typer.Option(help="No return can be above it. Exact bounds of the difference need it."),
    ] = float("inf"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    *,
    column_map: ColumnMap,
) -> None:
    """Estimate what a policy would earn from a log that another policy made.

    Prints six off-policy estimates with four lower bounds each, and the same for the difference
    from what the log earned. A policy looks better than it is on the log that trained it: hold out
    some episodes for this.
    """
    if is_vector_policy(policy):
        evaluate_vectors(
            log, policy, behaviour, discount, column_map, delta=delta, lowest_return=lowest_return,
            highest_return=highest_return, seed=seed,
        )  # fmt: skip
        return
    import numpy as np

    from spibb.algorithms.baselines import behaviour_of, is_of_log
    from spibb.cli import terminal
    from spibb.ingest import column_names, read_log, read_policy
    from spibb.ingest.policy_files import load_policy
    from spibb.monitoring.deployed import discount_for
    from spibb.ope import off_policy_estimates

    console = new_console()
    with progress(console, "reading and evaluating", compiles=ESTIMATORS):
        loaded = load_policy(policy, columns=column_map.columns)
        column_map = loaded.complete(column_map, column_names(log))
        gamma, source = discount_for(discount, policy)
        records = read_log(log, **column_map.reading)
        made = None if behaviour is None else behaviour_of(behaviour, records)
        report = off_policy_estimates(
            records, read_policy(policy, records), made, gamma, delta=delta,
            lowest_return=lowest_return, highest_return=highest_return,
            rng=np.random.default_rng(seed),
        )  # fmt: skip
    terminal.print_estimates(console, report)
    if behaviour is not None and is_of_log(behaviour) and made is not None:
        terminal.say(console, "The behaviour was estimated from this log: the bounds do not "
                              "include the error of that.")  # fmt: skip
    terminal.say_path(console, f"Discount {gamma:g}, {source}")
