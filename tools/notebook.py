"""Write a documentation page as a notebook, so that both have one source.

python tools/notebook.py docs/tutorial.md
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.M | re.S)


def notebook(page: str) -> str:
    """The notebook of a page: its Python blocks are code, all between them is text."""
    cells, at = [], 0
    for block in BLOCK.finditer(page):
        cells += [_cell("markdown", page[at : block.start()]), _cell("code", block[1])]
        at = block.end()
    cells.append(_cell("markdown", page[at:]))
    kept = [{"id": f"cell-{n}", **cell} for n, cell in enumerate(c for c in cells if c["source"])]
    whole = {"cells": kept, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4,
             "nbformat_minor": 5}  # fmt: skip
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, text: str) -> dict[str, Any]:
    source = text.strip().splitlines(keepends=True)
    made: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": source}
    return made | ({"execution_count": None, "outputs": []} if kind == "code" else {})


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.with_suffix(".ipynb").write_text(notebook(path.read_text("utf-8")), "utf-8")
