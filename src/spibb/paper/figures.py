"""All figures of an experiment, from its stored rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spibb.experiments.results import STATISTICS, Results
from spibb.experiments.spec import FINITE, Experiment
from spibb.files import disk_errors, sweep
from spibb.paper.gallery import Absent, Picture, write_gallery
from spibb.paper.paper_figures import PaperFigure, paper_figures
from spibb.paper.plot import require_matplotlib, save
from spibb.paper.provenance import experiment_commands
from spibb.paper.stored import joined

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE = 9.0
"""Inches from which a figure takes two places of the gallery."""
DATA = {
    "gridworld": "gridworld, data of the baseline",
    "gridworld-random": "gridworld, data of the uniform policy",
    "random-mdps": "random MDPs, data of the baselines",
    "helicopter": "helicopter, data of the baseline",
}
"""What the logs of a study are."""


def write_figures(
    results: Results, folder: Path, others: Sequence[tuple[Path, Results]] = (),
    small: bool = False, only: Collection[str] | None = None,
) -> list[Path]:  # fmt: skip
    """Write every figure of the paper that the results can give, and a gallery page.

    `others` are folders whose columns are drawn too; `small` leaves out SVG and the supplementary
    figures of the finite studies, which are many; `only` are the file names, without ending, of
    those to draw. PNG and SVG go to figures/ by the paper's figure
    number and what they show, with figures/index.html last in the list. Figures whose columns are
    absent are listed there.
    """
    require_matplotlib()
    _make(folder / "figures")
    sources = [(folder, results), *others]
    results = joined([found for _, found in sources])
    paths, pictures, absent = [], [], []
    for figure in paper_figures(results.experiment.study):
        if small and figure.supplementary and results.experiment.study in FINITE:
            continue
        if only is not None and figure.stem not in only:
            continue
        missing = figure.plot.missing(results.experiment)
        if missing:
            absent.append(Absent(figure.number, figure.label, figure.caption, missing))
            continue
        drawing = drawn(figure, results)
        paths += save(drawing, folder / "figures" / figure.stem, svg=not small)
        pictures.append(_picture(figure, results, wide=drawing.get_figwidth() > WIDE))
    commands = [c for place, found in sources for c in experiment_commands(found, place)]
    commands.append(" --with ".join(["spibb figures " + str(folder), *(str(f) for f, _ in others)]))
    return [*paths, write_gallery(results, folder, pictures, absent, commands, not small)]


def _make(folder: Path) -> None:
    with disk_errors(folder):
        folder.mkdir(exist_ok=True)
        sweep(folder)


def drawn(figure: PaperFigure, results: Results) -> Figure:
    """A figure under a title that says what was run."""
    made = f"{_data(results.experiment)}, {_amount(results)}{_too_few(figure, results)}"
    title = f"Figure {figure.number}: {figure.caption.rstrip('.')}"
    return figure.plot.draw(results, title if figure.illustration else f"{title} ({made})")


def _data(experiment: Experiment) -> str:
    """The logs in a title; a baseline from a file is told apart from ours."""
    if experiment.network is not None:
        return f"{experiment.study}, data of the baseline {_short(experiment.network.path)}"
    return DATA.get(experiment.study, experiment.study)


def _short(path: str) -> str:
    """A file by its folder and name: quiet/baseline.npz."""
    return "/".join(Path(path).parts[-2:])


def _amount(results: Results) -> str:
    """How much was run, for a title."""
    training = results.experiment.training
    if training is None:
        return f"{results.runs:,} runs"
    if training.one_log:
        return f"{results.runs * training.seeds:,} networks on one data set"
    return f"{_number(results.runs, 'data set')} × {_number(training.seeds, 'network')}"


def _too_few(figure: PaperFigure, results: Results) -> str:
    """A warning where the tail of a finite study's figure is less than one run: its worst."""
    shares = [share for name, share in STATISTICS.items() if name in figure.statistics]
    few = shares and results.runs * min(shares) < 1
    return ", too few for this tail" if few else ""


def _number(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def _picture(figure: PaperFigure, results: Results, wide: bool) -> Picture:
    alt = figure.plot.describe(results)
    return Picture(
        figure.number, figure.label, figure.stem, figure.caption, alt, wide, figure.illustration
    )
