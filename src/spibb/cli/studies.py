"""What `spibb experiment` prints: cost and progress."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING

from spibb.cli.stopping import Stopped, unwrapped

if TYPE_CHECKING:
    from rich.console import Console

    from spibb.experiments.parts import Chunk
    from spibb.experiments.runner import Plan

BAR = 20
"""Width that leaves room for the longest name of a study in 80 columns."""


def cost(todo: Plan, workers: int, dask: str | None) -> str:
    """What is stored, what is left, and how long it may take."""
    stored = f"{todo.experiment.study}: {todo.done:,} of {todo.runs:,} runs are stored"
    if not todo.missing:
        return f"{stored}; nothing to do"
    seconds = todo.missing * todo.seconds_per_run / workers
    where = "one process" if workers == 1 else f"{workers} processes"
    took = "" if dask else f", about {_duration(seconds)} on {where}"
    each = _duration(todo.seconds_per_run)
    return f"{stored}; {todo.missing:,} to do, {each} each on one core{took}"


def _duration(seconds: float) -> str:
    if seconds < 2:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _rate(speed: float | None) -> str:
    if not speed:
        return ""
    return f"{speed:.1f}/s" if speed >= 0.1 else f"{speed * 3600:.0f}/h"


def show_progress(console: Console, todo: Plan, chunks: Generator[Chunk, None, None]) -> None:
    """Draw a bar, named after the study, while chunks of runs arrive.

    A signal ends it: what arrived is stored, and the message says how far it came.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from spibb.experiments.runner import stored_runs

    columns = (
        TextColumn("{task.description}"), BarColumn(BAR), MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress, closing(chunks):
        task = progress.add_task(todo.experiment.study, total=todo.missing, rate="")
        try:
            with unwrapped():
                for chunk in chunks:
                    rate = _rate(progress.tasks[0].speed)
                    progress.update(task, advance=len(chunk), rate=rate)
        except (Stopped, KeyboardInterrupt) as stop:
            number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
            stored = stored_runs(todo)  # a signal may come between storing and counting a part
            note = f"{stored:,} of {todo.runs:,} runs are stored; the same command continues"
            raise Stopped(number, note) from None
