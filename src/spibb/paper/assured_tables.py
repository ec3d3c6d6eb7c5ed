"""The assurance benchmark in tables: how often worse, and what gain, by family and size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spibb.experiments.assurance import changed, misled, supported, worse
from spibb.experiments.results import Cell, Results
from spibb.paper.assurance_figures import family_name, promised
from spibb.paper.assured import CHOSE, PROMISED_FROM, cells_of, mean_of, pooled
from spibb.paper.style import find, label, plain

SHOWN = ("auto", "certified", "certified:delta=0.2")


def tables(results: Results) -> list[str]:
    """Markdown: a table for each algorithm that promises something, and the cells above δ."""
    lines = []
    for key in SHOWN:
        column = find(results.experiment, key)
        if column is not None:
            lines += [f"**{plain(label(column))}**: truly worse, and mean gain", ""]
            lines += [*_table(results, key), ""]
    lines += ["Cells whose share of worse logs is above δ:", ""]
    lines += [_named(results, key) for key in SHOWN if find(results.experiment, key)]
    return [*lines, "", *_overall(results), ""]


def _table(results: Results, key: str) -> Iterator[str]:
    """Both numbers over the three baselines together, by family and size."""
    sizes = results.experiment.sizes
    yield "| family | " + " | ".join(f"{size:,}" for size in sizes) + " |"
    yield "|---|" + "---|" * len(sizes)
    for family in results.experiment.families:
        cells = [_cell(results, key, family, size) for size in sizes]
        yield f"| {family_name(family)} | " + " | ".join(cells) + " |"


def _cell(results: Results, key: str, family: str, size: int) -> str:
    share = pooled(cells_of(results, worse(key), size, size, family))
    gains = [mean_of(cell).value for cell in cells_of(results, key, size, size, family)]
    return (
        "–" if share is None else f"{share_text(share.value)}, {gain_text(float(np.mean(gains)))}"
    )


def _named(results: Results, key: str) -> str:
    """The cells above δ, the worst first; those that are surely above are in bold."""
    column = find(results.experiment, key)
    delta = promised(column) if column is not None else None
    found = [c for c in cells_of(results, worse(key)) if delta and mean_of(c).value > delta]
    found.sort(key=lambda cell: -mean_of(cell).value)
    names = [_name(cell, sure=mean_of(cell).low > (delta or 0.0)) for cell in found]
    return f"- **{key}**: " + ("; ".join(names) or "none") + "."


def _name(cell: Cell, *, sure: bool) -> str:
    hits = round(mean_of(cell).value * cell.runs)
    text = f"{cell.family}, {cell.quality} baseline, {cell.size:,} episodes: {hits} of {cell.runs}"
    return f"**{text}**" if sure else text


def _overall(results: Results) -> Iterator[str]:
    """All columns over all cells of at least 30 episodes."""
    yield "| all cells of at least 30 episodes | changed | truly worse | worst cell | mean gain |"
    yield "|---|---|---|---|---|"
    groups = {"": None, ", confirming families": CHOSE} if CHOSE else {"": None}
    for column in results.experiment.columns:
        for words, left_out in groups.items():
            if words and column.key != "auto":
                continue
            names = [f for f in results.experiment.families if not left_out or f not in left_out]
            yield _line(results, column.key, plain(label(column)) + words, names)
    for name, words in ((supported("auto"), "supported"), (misled("auto"), "supported and worse")):
        share = pooled(cells_of(results, name, PROMISED_FROM, 10**9))
        if share is not None:
            yield f"| verdict on auto: {words} | {share_text(share.value)} | | | |"


def _line(results: Results, key: str, words: str, families: list[str]) -> str:
    def cells(column: str) -> Iterator[Cell]:
        for family in families:
            yield from cells_of(results, column, PROMISED_FROM, 10**9, family)

    moved, lost = pooled(cells(changed(key))), pooled(cells(worse(key)))
    if moved is None or lost is None:
        return f"| {words} | – | – | – | – |"
    worst = max(mean_of(cell).value for cell in cells(worse(key)))
    gain = float(np.mean([mean_of(cell).value for cell in cells(key)]))
    shares = " | ".join(map(share_text, (moved.value, lost.value, worst)))
    return f"| {words} | {shares} | {gain_text(gain)} |"


def share_text(value: float) -> str:
    """A share with one digit; never 0 unless it is nothing."""
    return "< 0.1 %" if 0 < value < 0.0005 else f"{100 * value:.1f} %"


def gain_text(value: float) -> str:
    """A gain with two digits; 0 has no sign."""
    text = f"{value:.2f}"
    return text.replace("-", "−") if float(text) else "0.00"
