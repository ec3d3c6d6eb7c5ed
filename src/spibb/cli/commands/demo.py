"""`spibb demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spibb.cli.progress import SOLVER, new_console, progress


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the report, picture, log and baseline.")
    ] = Path("spibb-demo"),
    episodes: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Number of trajectories in the log.")
    ] = 200,
    n_wedge: Annotated[
        float, typer.Option(help="Minimum visits before a state–action pair is trusted.")
    ] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the log.")] = 1,
) -> None:
    """Simulate a log of a gridworld, improve the policy that made it, compare with the truth."""
    console = new_console()
    with progress(console, "drawing a log and improving its policy", compiles=SOLVER):
        from spibb.cli import terminal
        from spibb.cli.demo import run_demo, write_demo
        from spibb.paper.plot import NO_FIGURES
        from spibb.report.folder import claim

        with claim(out, force=True) as held:
            result = run_demo(episodes, n_wedge, seed)
            files = write_demo(result, held)
    title = f"Gridworld, {episodes} trajectories, n_wedge {n_wedge:g}"
    console.print(terminal.demo_table(result.rows, title))
    for name, improvement in result.results.items():
        terminal.say(console, f"{name}: {improvement.certificate()}")
    picture = (
        f"Picture of the policies: {files.picture}"
        if files.picture
        else f"No picture: {NO_FIGURES}"
    )
    terminal.say_path(console, f"\n{picture}")
    terminal.say_path(console, f"Report of pi-b: {files.report}")
    terminal.say_path(console, "The same from files:")
    terminal.say_path(console, f"  {files.command}")
    terminal.say_path(console, "Then, with episodes that the new policy made:")
    terminal.say_path(console, f"  {files.monitor}")
