"""The calibration study: `python -m spibb.paper.calibration --runs 1000 --out calibration`.

Stops and continues: a setting whose rows are stored is not simulated again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet
import typer

from spibb.experiments.calibration import SETTINGS, Setting, choices, reliability, simulate_setting
from spibb.paper.plot import save
from spibb.paper.reliability import reliability_figure
from spibb.tables import write_table


def stored_rows(setting: Setting, runs: int, seed: int, folder: Path) -> pa.Table:
    """The rows of a setting, simulated if they are not stored yet."""
    path = folder / "rows" / f"{setting.name}-runs={runs}-seed={seed}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(simulate_setting(setting, runs, seed), path)
    return pyarrow.parquet.read_table(path)


def calibrate(
    runs: Annotated[int, typer.Option(help="Logs per setting.")] = 1000,
    out: Annotated[Path, typer.Option(help="Folder for rows, tables and figure.")] = Path(
        "calibration"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed of all logs.")] = 0,
) -> None:
    """Compare the posterior probability of improvement with the truth, in simulation."""
    bins: list[dict[str, Any]] = []
    chosen: list[dict[str, Any]] = []
    for setting in SETTINGS:
        rows = stored_rows(setting, runs, seed, out)
        name = {"world": setting.world, "eta": setting.eta, "size": setting.size}
        bins += [name | row for row in reliability(rows)]
        chosen.append(name | choices(rows))
        typer.echo(f"{setting.name}: {_said(chosen[-1])}")
    write_table(pa.Table.from_pylist(bins), out / "bins.csv")
    write_table(pa.Table.from_pylist(chosen), out / "choices.csv")
    save(reliability_figure(bins, runs), out / "reliability")
    typer.echo(f"Written: {out}/bins.csv, choices.csv, reliability.png, reliability.svg")


def _said(row: dict[str, Any]) -> str:
    return (
        f"auto gains {row['auto_gain']:.3f} and is worse in {row['auto_worse']:.1%}; "
        f"N∧ = 5 gains {row['fixed_gain']:.3f} and is worse in {row['fixed_worse']:.1%}"
    )


if __name__ == "__main__":
    typer.run(calibrate)
