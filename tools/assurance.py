"""The tables of docs/choosing.md and docs/assurance.md, from the rows of the assurance benchmark.

python tools/assurance.py runs/assurance [runs/assurance-long ...]

The rows of several folders are put together, e.g. of one with few episodes and many logs a cell and
of one with many episodes and fewer logs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from spibb.algorithms.auto import Auto
from spibb.experiments.assurance import (
    COLUMNS,
    PROTOTYPE,
    changed,
    covered,
    misled,
    supported,
    worse,
)
from spibb.experiments.parts import part_files
from spibb.paper.assured import CHOSE, PROMISED_FROM
from spibb.paper.assured_tables import gain_text, share_text
from spibb.stats import share_interval

AUTO, DELTA = Auto.name, Auto.delta
CELL = ["family", "quality", "size"]
NOTHING_TO_GAIN = "null"
ONE_SIDED = 0.9
"""The two-sided level whose upper limit is the one-sided 95 % limit."""


def read(folders: list[Path]) -> pd.DataFrame:
    """The rows of all folders."""
    parts = [part for folder in folders for part in part_files(folder)]
    if not parts:
        raise SystemExit("usage: python tools/assurance.py FOLDER...: no folder with rows is given")
    return pd.concat(map(pd.read_parquet, parts), ignore_index=True)


def by_family(rows: pd.DataFrame) -> list[str]:
    """A line per family: mean gain by size, and in brackets how often `auto` was worse."""
    sizes = sorted(rows["size"].unique())
    lines = ["| family | " + " | ".join(f"{n:,}" for n in sizes) + " |"]
    lines.append("|---" * (len(sizes) + 1) + "|")
    for family in rows["family"].unique():
        cells = []
        for size in sizes:
            part = rows[(rows["family"] == family) & (rows["size"] == size)]
            share = part[worse(AUTO)].mean()
            worse_too = f" (**{share_text(share)}**)" if share else ""
            cells.append(gain_text(part[AUTO].mean()) + worse_too)
        star = " *" if family in CHOSE else ""
        lines.append(f"| {family}{star} | " + " | ".join(cells) + " |")
    return lines


def how_often_worse(rows: pd.DataFrame) -> list[str]:
    """How often `auto` was worse, over all and by cell."""
    lines = []
    for name, part in (("all", rows), ("confirming", rows[~rows["family"].isin(CHOSE)])):
        n, bad = len(part), part[worse(AUTO)].sum()
        upper = share_interval(bad, n, ONE_SIDED).high
        lines.append(f"{name}: worse in {bad:.0f} of {n} (upper limit {upper:.2%})")
    cells = rows.groupby(CELL)[worse(AUTO)].agg(["sum", "count"])
    seen = {int(bad): int(n) for bad, n in cells["sum"].value_counts().items()}
    lines.append(f"cells: {len(cells)}; by worse logs: {seen}")
    over = cells[cells["sum"] > DELTA * cells["count"]]
    lines += [f"above delta: {row}" for row in over.reset_index().to_dict("records")]
    return lines


def by_size(rows: pd.DataFrame) -> list[str]:
    """Gains, verdicts and coverage by size."""
    lines = []
    for size, part in rows.groupby("size"):
        moved = part[part[changed(AUTO)] == 1]
        able = part[part["family"] != NOTHING_TO_GAIN]
        confirming = able[~able["family"].isin(CHOSE)]
        lines.append(
            f"{size}: gain {able[AUTO].mean():.3f} (confirming {confirming[AUTO].mean():.3f}), "
            f"prototype {able[PROTOTYPE].mean():.3f} ({confirming[PROTOTYPE].mean():.3f}), "
            f"supported {part[supported(AUTO)].mean():.1%}, "
            f"misled {part[misled(AUTO)].sum():.0f}, "
            f"sure gain reached {moved[covered(AUTO)].mean():.1%}"
        )
    return lines


def other_rules(rows: pd.DataFrame) -> list[str]:
    """How often every other column was worse, and what it gained."""
    lines = []
    able = rows[rows["family"] != NOTHING_TO_GAIN]
    for key in (key for key in COLUMNS if key != AUTO and key in rows):
        bad = rows[worse(key)]
        cells = rows.groupby(CELL)[worse(key)].mean()
        lines.append(
            f"{key}: worse in {bad.sum():.0f} of {len(rows)} ({bad.mean():.2%}), cells "
            f"above delta {int((cells > DELTA).sum())}, gain {able[key].mean():.3f}, by size "
            f"{able.groupby('size')[key].mean().round(2).tolist()}"
        )
    return lines


def main() -> None:
    """Print everything."""
    rows = read([Path(folder) for folder in sys.argv[1:]])
    for size, part in rows.groupby("size"):
        print(f"{size} episodes: {part['run'].nunique()} logs a cell, {len(part)} in all")
    print(f"{len(rows)} logs in all\n")
    promised = rows[rows["size"] >= PROMISED_FROM]
    tables = (by_family(rows), how_often_worse(promised), by_size(promised), other_rules(promised))
    print("\n\n".join("\n".join(lines) for lines in tables))


if __name__ == "__main__":
    main()
