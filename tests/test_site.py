"""The documentation site lists every page, and nothing that is not there."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

from parts import needed

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def pages(entry) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    children = entry if isinstance(entry, list) else entry.values()
    return [page for child in children for page in pages(child)]


def test_the_navigation_holds_every_page_once():
    site = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))
    listed = pages(site["project"]["nav"])
    written = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert len(listed) == len(set(listed))
    assert set(listed) == {page for page in written if not page.endswith("claims.md")}


def test_every_algorithm_has_a_page():
    from spibb.algorithms import REGISTRY

    assert {path.stem for path in (DOCS / "algorithms").glob("*.md")} == {*REGISTRY, "index"}


def test_formulas_of_docstrings_are_not_read_as_markup():
    """A pair of underscores would be emphasis, and braces attributes; indented lines are code."""
    markdown = needed("markdown")
    from spibb import algorithms

    for name, algorithm in algorithms.REGISTRY.items():
        page = markdown.markdown(inspect.getdoc(algorithm) or "", extensions=["attr_list"])
        odd = re.findall(r"<em[^>]*>[^<]*[_|(={][^<]*</em>|<em [^>]+>", page)
        assert not odd, f"{name}: {odd}"
