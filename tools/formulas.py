"""Formulas of the site: TeX in a math fence becomes MathML, which needs no script."""

from __future__ import annotations

from typing import Any

from latex2mathml.converter import convert


def fence(source: str, *_: Any, **__: Any) -> str:
    """The MathML of a fenced formula; called by pymdownx.superfences."""
    return f'<div class="formula">{convert(source.strip(), display="block")}</div>'
