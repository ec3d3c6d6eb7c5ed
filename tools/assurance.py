"""The tables of docs/choosing.md and docs/assurance.md, from the rows of the bench.

python tools/assurance.py runs/assurance
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from scipy.special import betaincinv

SHAPED = {
    "river-swim", "cliff-signs", "cliff-costs", "bernoulli-bandit", "rare-clicks", "dense-rewards",
    "noisy-rewards", "pit-chain", "near-null", "null",
}  # fmt: skip
"""The families that shaped the rule of `auto`; the others confirm it."""
PROMISED_FROM = 30
CELL = ["family", "quality", "size"]
PROTOTYPE, OLD = "spibb.experiments.prototype.Prototype", "spibb.experiments.assurance.OldRule"


def upper(worse: float, n: int) -> float:
    """The one-sided 95 % limit of a share (Clopper and Pearson)."""
    return 1.0 if worse == n else float(betaincinv(worse + 1, n - worse, 0.95))


def by_family(rows: pd.DataFrame) -> list[str]:
    """A line per family: mean gain by size, and in brackets how often `auto` was worse."""
    sizes = sorted(rows["size"].unique())
    lines = ["| family | " + " | ".join(f"{n:,}" for n in sizes) + " |"]
    lines.append("|---" * (len(sizes) + 1) + "|")
    for family in rows["family"].unique():
        cells = []
        for size in sizes:
            part = rows[(rows["family"] == family) & (rows["size"] == size)]
            share = part["worse:auto"].mean()
            cells.append(
                f"{part['auto'].mean():.2f}".replace("-", "−")
                + (f" (**{100 * share:.1f} %**)" if share else "")
            )
        star = " *" if family in SHAPED else ""
        lines.append(f"| {family}{star} | " + " | ".join(cells) + " |")
    return lines


def worse(rows: pd.DataFrame) -> list[str]:
    """How often `auto` was worse, over all and by cell."""
    lines = []
    for name, part in (("all", rows), ("confirming", rows[~rows["family"].isin(SHAPED)])):
        n, bad = len(part), part["worse:auto"].sum()
        lines.append(f"{name}: worse in {bad:.0f} of {n} (upper limit {upper(bad, n):.2%})")
    cells = rows.groupby(CELL)["worse:auto"].agg(["sum", "count"])
    lines.append(f"cells: {len(cells)}; by worse logs: {dict(cells['sum'].value_counts())}")
    over = cells[cells["sum"] > 0.05 * cells["count"]]
    lines += [f"above delta: {row}" for row in over.reset_index().to_dict("records")]
    return lines


def rest(rows: pd.DataFrame) -> list[str]:
    """Gains, verdicts and coverage by size, and the other rules."""
    lines = []
    some = rows[rows["family"] != "null"]
    for size, part in rows.groupby("size"):
        moved, able = part[part["changed:auto"] == 1], some[some["size"] == size]
        confirming = able[~able["family"].isin(SHAPED)]
        lines.append(
            f"{size}: gain {able['auto'].mean():.3f} (confirming {confirming['auto'].mean():.3f}), "
            f"prototype {able[PROTOTYPE].mean():.3f} ({confirming[PROTOTYPE].mean():.3f}), "
            f"supported {part['supported:auto'].mean():.1%}, "
            f"misled {part['misled:auto'].sum():.0f}, "
            f"sure gain reached {moved['covered:auto'].mean():.1%}"
        )
    others = (OLD, PROTOTYPE, "certified", "certified:delta=0.2", "pi-b:n_wedge=5",
              "pi-b:n_wedge=20", "pi-leq-b:n_wedge=5", "pi-leq-b:n_wedge=20",
              "basic-rl")  # fmt: skip
    for key in (one for one in others if one in rows):
        worse_of = rows[f"worse:{key}"]
        cells = rows.groupby(CELL)[f"worse:{key}"].mean()
        lines.append(
            f"{key}: worse in {worse_of.sum():.0f} of {len(rows)} ({worse_of.mean():.2%}), cells "
            f"above delta {int((cells > 0.05).sum())}, gain {some[key].mean():.3f}, by size "
            f"{some.groupby('size')[key].mean().round(2).tolist()}"
        )
    return lines


def main() -> None:
    """Print everything."""
    rows = pd.concat(map(pd.read_parquet, sorted(Path(sys.argv[1]).glob("part-*.parquet"))))
    print(f"{rows['run'].nunique()} logs a cell, {len(rows)} in all\n")
    promised = rows[rows["size"] >= PROMISED_FROM]
    print("\n".join([*by_family(rows), "", *worse(promised), "", *rest(promised)]))


if __name__ == "__main__":
    main()
