"""Make docs/results again from its tables: claims, figures, galleries and the page of the paper.

    python tools/results.py [runs/NAME …]

Each runs/NAME is a folder of rows; its specification and table first replace those of NAME here.
Parts of the assurance benchmark with other sizes or columns may lie in one folder.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from spibb.cli.commands.claims import claims
from spibb.experiments.results import results_table
from spibb.experiments.runner import SPEC, read_spec
from spibb.experiments.spec import ASSURANCE, FINITE
from spibb.paper.claims import TABLE, write_claims
from spibb.paper.figures import write_figures
from spibb.paper.stored import NUMBERS, read_results
from spibb.tables import write_table

DOCS = Path(__file__).resolve().parents[1] / "docs"
RESULTS, RUNS = DOCS / "results", Path("runs")
FAMILY, OURS, RELEASED = "gridworld-baselines", "-ours", "-released"
OPENING = "gridworld/figures/fig1e_benchmark_CVaR_maze_N=5.png"
"""The figure that opens the README."""


def take(rows: Path) -> None:
    """Replace a stored table by that of a folder of rows."""
    parts = rows.resolve().parts
    place = RESULTS.joinpath(*parts[parts.index(RUNS.name) + 1 :])
    place.mkdir(parents=True, exist_ok=True)
    results = read_results(rows)
    results.experiment.write(place / SPEC)
    write_table(results_table(results), place / NUMBERS)


def tables() -> Iterator[Path]:
    """Folders of results, but not those of the 22 baselines, in the order of their names."""
    found = sorted(path.parent.relative_to(RESULTS) for path in RESULTS.rglob(NUMBERS))
    return (name for name in found if name.parts[0] != FAMILY)


def remake(folder: Path) -> None:
    """Claims and figures of a folder; columns as released are drawn with the others."""
    write_claims(read_results(folder), folder)
    (folder / TABLE).unlink()
    if folder.name.endswith(RELEASED):
        return
    chosen = {path.stem for path in (folder / "figures").glob("*.png")}
    shutil.rmtree(folder / "figures", ignore_errors=True)
    released = folder.with_name(folder.name + RELEASED)
    others = [(released, read_results(released))] if released.is_dir() else []
    # of the helicopter's figures each folder has those that it is for
    only = None if folder.name.startswith(FINITE) else chosen
    link_back(write_figures(read_results(folder), folder, others, small=True, only=only)[-1])


def link_back(gallery: Path) -> None:
    """A gallery of the site leads to the page of results, which a gallery of a user lacks."""
    up = "../" * len(gallery.relative_to(RUNS).parent.parts)
    link = f'<body>\n<p><a href="{up}index.html">Results</a></p>'
    text = gallery.read_text(encoding="utf-8")
    gallery.write_text(text.replace("<body>", link, 1), encoding="utf-8")


def of_the_page(name: Path) -> bool:
    """Whether a folder is part of the page “Does the paper hold?”: a study of the paper.

    Of the gridworld, with the authors' baseline and without our algorithms.
    """
    spec = read_spec(RESULTS / name)
    return spec.study != ASSURANCE and not name.name.endswith(OURS) and spec.baseline is None


def main(rows: list[str]) -> None:
    """Take tables, then make everything that comes from them."""
    for folder in rows:
        take(Path(folder))
    with TemporaryDirectory() as place, contextlib.chdir(place):
        RUNS.symlink_to(RESULTS)  # so that pages show the commands with runs/NAME
        for name in tables():
            remake(RUNS / name)
    with contextlib.chdir(RESULTS):
        claims([*filter(of_the_page, tables()), Path(FAMILY)], html=Path("paper.md"))
    shutil.copy(RESULTS / OPENING, DOCS / "images" / "safety.png")


if __name__ == "__main__":
    main(sys.argv[1:])
