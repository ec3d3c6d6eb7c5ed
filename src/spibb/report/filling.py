"""Pages from templates: one environment, in which text is never markup and no name is missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spibb import words

if TYPE_CHECKING:
    from jinja2 import BytecodeCache

FILTERS = {
    show.__name__: show
    for show in (words.number, words.signed, words.percent, words.clipped, words.at_least,
                 words.at_most, words.surely)
}  # fmt: skip
"""How values are shown."""
COMPILED = Path(__file__).parent / "__pycache__"


def fill(template: str, filters: Mapping[str, Callable[..., Any]], **names: Any) -> str:
    """The page that a file in `report/templates` gives with these filters and names."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("spibb.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, bytecode_cache=_compiled(COMPILED),
    )  # fmt: skip
    environment.filters |= filters
    return environment.get_template(template).render(**names)


def _compiled(folder: Path) -> BytecodeCache | None:
    """Templates as Python code, kept where Python keeps its own, if we may write there."""
    from jinja2 import FileSystemBytecodeCache

    writable = os.access(folder, os.W_OK)
    return FileSystemBytecodeCache(str(folder), "template-%s.cache") if writable else None
