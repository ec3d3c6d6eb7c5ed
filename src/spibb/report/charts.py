"""Small drawings for the report, as inline SVG that says in words what it shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape

from spibb.algorithms.candidate import Candidate
from spibb.words import short

WIDTH = 380
"""All charts are drawn this wide, so that their letters stay legible on a phone."""


@dataclass(frozen=True)
class Scale:
    """A linear map from values to places in a drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a value."""
        span = (self.high - self.low) or 1.0
        return round(self.start + (value - self.low) / span * (self.end - self.start), 1)


@dataclass(frozen=True)
class Whisker:
    """A value with an interval, in a labelled line; `new` draws it in the accent colour."""

    label: str
    value: float
    low: float
    high: float
    new: bool


def svg(height: float, description: str, parts: Iterable[str]) -> Markup:
    """Wrap a drawing; `description` is read aloud instead of it."""
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, height, description, Markup("".join(parts)))


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """A line of a class."""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="{style}"/>'


def rect(x: float, y: float, width: float, height: float, style: str) -> str:
    """A bar of a class."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="{style}"/>'


def text(x: float, y: float, words: str, style: str = "", anchor: str = "middle") -> str:
    """Escaped words."""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" class="{style}">{escape(words)}</text>'


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers between two limits."""
    step = 10.0 ** math.floor(math.log10((high - low) / wanted))
    step *= next(k for k in (1, 2, 5, 10) if (high - low) / (step * k) <= wanted)
    first = math.ceil(low / step)
    return [round(k * step, 12) for k in range(first, math.floor(high / step) + 1)]


def padded(values: Sequence[float]) -> tuple[float, float]:
    """Limits a little beyond all values, never empty."""
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) or max(abs(low), 1.0) * 0.1
    return low - margin, high + margin


def axis(scale: Scale, y: float, top: float) -> list[str]:
    """A horizontal axis with faint lines up to `top`."""
    parts = [line(scale.start, y, scale.end, y, "axis")]
    for tick in ticks(scale.low, scale.high):
        parts.append(line(scale(tick), top, scale(tick), y, "grid"))
        parts.append(text(scale(tick), y + 15, short(tick), "tick"))
    return parts


def whiskers(rows: Sequence[Whisker], description: str) -> Markup:
    """Values with intervals, one line each."""
    scale = Scale(*padded([x for row in rows for x in (row.value, row.low, row.high)]), 12, 368)
    bottom = 36 * len(rows) + 4
    parts = axis(scale, bottom, 4)
    for k, row in enumerate(rows):
        y, style = 36 * k + 27, "new" if row.new else "old"
        parts.append(text(12, y - 10, row.label, "label", "start"))
        parts.append(line(scale(row.low), y, scale(row.high), y, f"whisker {style}"))
        parts.append(f'<circle cx="{scale(row.value)}" cy="{y}" r="4.5" class="{style}"/>')
    return svg(bottom + 22, description, parts)


def histogram(gains: np.ndarray, description: str) -> Markup:
    """How the gain is distributed over drawn models: losses grey, gains in the accent colour."""
    low, high = padded([0.0, *np.quantile(gains, [0.002, 0.998]).tolist()])
    width = (high - low) / 34
    edges = width * np.arange(math.floor(low / width), math.ceil(high / width) + 1)
    heights = np.histogram(np.clip(gains, edges[0], edges[-1]), edges)[0]
    scale, tallest = Scale(float(edges[0]), float(edges[-1]), 12, 368), max(int(heights.max()), 1)
    parts = axis(scale, 110, 6)
    for left, right, count in zip(edges[:-1], edges[1:], heights.tolist()):
        tall = round(96 * count / tallest, 1)
        style = "new" if (left + right) / 2 > 0 else "old"
        across = scale(float(right)) - scale(float(left)) - 1
        if count:
            parts.append(rect(scale(float(left)) + 0.5, 110 - tall, across, tall, style))
    parts.append(line(scale(0), 0, scale(0), 110, "zero"))
    return svg(132, description, parts)


def coverage(
    bins: Sequence[tuple[str, int, int]], description: str, below: str = "times seen in the log"
) -> Markup:
    """Pairs by how often they were seen, (name, trusted, copied) per bin; `below` is the axis."""
    tallest = max(max(a + b for _, a, b in bins), 1)
    step = 356 / len(bins)
    parts = [line(12, 122, 368, 122, "axis")]
    for k, (name, trusted, copied) in enumerate(bins):
        x, centre = 12 + k * step + 3, round(12 + (k + 0.5) * step, 1)
        high, low = 94 * copied / tallest, 94 * trusted / tallest
        if copied:
            parts.append(rect(x, 122 - low - high, step - 6, high, "old"))
        if trusted:
            parts.append(rect(x, 122 - low, step - 6, low, "new"))
        parts.append(text(centre, round(117 - low - high, 1), f"{trusted + copied:,}", "tick"))
        parts.append(text(centre, 137, name, "tick"))
    parts.append(text(190, 153, below, "label"))
    return svg(158, description, parts)


def sweep_chart(sweep: Sequence[Candidate], chosen: Candidate | None, description: str) -> Markup:
    """Posterior mean gain with interval at every N∧; filled where a gain is sure."""
    thresholds = sorted({candidate.n_wedge for candidate in sweep})
    kinds = list(dict.fromkeys(candidate.algorithm for candidate in sweep))
    lows = [x for c in sweep for x in (*c.interval, c.gain)]
    scale = Scale(*padded([0.0, *lows]), 150, 8)
    step = 330 / len(thresholds)
    parts = [text(46 + 165, 184, "N∧", "label")]
    for tick in ticks(scale.low, scale.high, 4):
        parts.append(line(46, scale(tick), 376, scale(tick), "grid"))
        parts.append(text(42, scale(tick) + 4, short(tick), "tick", "end"))
    parts.append(line(46, scale(0), 376, scale(0), "zero"))
    for k, threshold in enumerate(thresholds):
        parts.append(text(round(46 + (k + 0.5) * step, 1), 168, f"{threshold:g}", "tick"))
    for candidate in sweep:
        place = thresholds.index(candidate.n_wedge) + 0.5
        shift = 4.5 * (2 * kinds.index(candidate.algorithm) - len(kinds) + 1)
        parts += _mark(candidate, chosen, round(46 + place * step + shift, 1), scale)
    return svg(190, description, parts)


def _mark(candidate: Candidate, chosen: Candidate | None, x: float, scale: Scale) -> list[str]:
    """One candidate: round for Π_b, square for Π_≤b, hollow where it does not qualify."""
    y, (low, high) = scale(candidate.gain), candidate.interval
    style = "new" if candidate.lower > 0 else "hollow"
    parts = [line(x, scale(low), x, scale(high), "whisker new thin")]
    if candidate == chosen:
        parts.append(f'<circle cx="{x}" cy="{y}" r="8.5" class="ring"/>')
    if candidate.algorithm == "pi-b":
        parts.append(f'<circle cx="{x}" cy="{y}" r="4" class="{style}"/>')
    else:
        parts.append(rect(x - 3.5, y - 3.5, 7, 7, style))
    return parts


def pairs_glyph(baseline: Sequence[float], new: Sequence[float]) -> Markup:
    """A row of a policy at a glance: for each action the baseline's bar and the new one."""
    width = 18 * len(new)
    parts = [line(0, 27.5, width, 27.5, "axis")]
    for k, (old, now) in enumerate(zip(baseline, new)):
        for x, share, style in ((18 * k + 2, old, "old"), (18 * k + 9, now, "new")):
            tall = round(26 * share, 1)
            if tall:
                parts.append(rect(x, 27 - tall, 6, tall, style))
    return Markup(
        '<svg class="glyph" viewBox="0 0 {} 28" width="{}" height="28" aria-hidden="true">{}</svg>'
    ).format(width, width, Markup("".join(parts)))
