"""`spibb act`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spibb.cli.waiting import new_console


def act(
    policy: Annotated[
        Path, typer.Argument(help="A policy file, or the folder that `spibb improve` wrote.")
    ],
    state: Annotated[
        list[str],
        typer.Option(help="The state's label, or column=value for each column; repeatable."),
    ],
) -> None:
    """Print the distribution over actions for a new case.

    Raw values of columns that were cut into bins are encoded as they were in training.
    """
    from spibb.cli.tables import print_actions
    from spibb.ingest.policy_files import load_policy, parse_case

    loaded = load_policy(policy)
    label = loaded.encode(parse_case(state, loaded.policy.states.names))
    print_actions(new_console(), label, loaded.row(label))
