"""What every kind of figure can say of itself, and the file formats it is written in."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from spibb.errors import InputError, install
from spibb.experiments.results import Results
from spibb.experiments.spec import Experiment
from spibb.files import write_whole
from spibb.paper.style import typeset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 130


class Plot(Protocol):
    """A kind of figure with its parameters; the results come last."""

    def missing(self, experiment: Experiment) -> tuple[str, ...]:
        """The columns without which it cannot be drawn, that the experiment lacks."""

    def draw(self, results: Results, title: str) -> Figure:
        """The drawing."""

    def describe(self, results: Results) -> str:
        """What the drawing shows, for those who do not see it."""


def has_matplotlib() -> bool:
    """Whether figures can be drawn: the core does without."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


NO_FIGURES = f"figures need matplotlib, which is not installed: {install('figures')}"


def require_matplotlib() -> None:
    """Refuse to draw where nothing can, and say what to install."""
    if not has_matplotlib():
        raise InputError(NO_FIGURES)


def empty_figure(width: float, height: float) -> Figure:
    """A figure of its own, outside pyplot's global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def set_title(figure: Figure, title: str) -> None:
    """A title in as many lines as the figure's width asks for, none of which breaks an equation.

    What stands in brackets at its end begins a line of its own if one line is not enough.
    """
    wide = int(figure.get_figwidth() * 12)
    whole = title.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    parts = [whole] if len(whole) <= wide else re.split(r" (?=\([^()]*\)$)", whole)
    lines = [line for part in parts for line in textwrap.wrap(part, wide)]
    figure.suptitle(typeset("\n".join(lines)), fontsize=10.5)


def save(figure: Figure, stem: Path, svg: bool = True) -> list[Path]:
    """Write PNG and perhaps SVG, each whole; the same drawing gives the same bytes.

    The canvases write by themselves: `Figure.savefig` would draw everything twice.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    png, drawing = (stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg"))
    canvas: Any = FigureCanvasAgg(figure)
    write_whole(png, lambda name: canvas.print_png(name, metadata={"Software": None}))
    if not svg:
        return [png]
    figure.set_layout_engine("none")  # the first drawing has placed everything
    vectors: Any = FigureCanvasSVG(figure)
    with mpl.rc_context({"svg.hashsalt": stem.name}):
        write_whole(drawing, lambda name: vectors.print_svg(name, metadata={"Date": None}))
    return [png, drawing]
