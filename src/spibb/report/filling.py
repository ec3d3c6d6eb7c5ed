"""Pages from templates: one environment, in which text is never markup and no name is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def fill(template: str, filters: Mapping[str, Callable[..., Any]], **names: Any) -> str:
    """The page that a file in `report/templates` gives with these filters and names."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("spibb.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= filters
    return environment.get_template(template).render(**names)
