"""One page that shows all figures of a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from spibb import __version__
from spibb.experiments.results import Results
from spibb.files import write_text
from spibb.paper.style import lowered
from spibb.report.filling import fill

if TYPE_CHECKING:
    from markupsafe import Markup

INDEX = "index.html"


@dataclass(frozen=True)
class Picture:
    """A figure that was drawn; a wide one takes two places."""

    number: str
    label: str
    stem: str
    caption: str
    alt: str
    wide: bool
    illustration: bool = False

    @property
    def address(self) -> str:
        """The file name without ending, as a relative address."""
        return quote(self.stem, safe="=")


@dataclass(frozen=True)
class Absent:
    """A figure that the columns of this folder cannot give."""

    number: str
    label: str
    caption: str
    missing: tuple[str, ...]


def symbols(caption: str) -> Markup:
    """A caption with its indices set lower."""
    from markupsafe import Markup, escape

    return Markup(lowered(str(escape(caption))))


def write_gallery(
    results: Results, folder: Path, pictures: list[Picture], absent: list[Absent],
    commands: list[str], svg: bool = True,
) -> Path:  # fmt: skip
    """Write index.html into the folder's figures; it refers to nothing outside."""
    page = fill(
        "gallery.html.jinja", {"symbols": symbols}, results=results,
        pictures=pictures, absent=absent, version=__version__,
        commands=commands, svg=svg,
    )  # fmt: skip
    path = folder / "figures" / INDEX
    write_text(path, page)
    return path
