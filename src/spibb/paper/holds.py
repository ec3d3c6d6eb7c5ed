"""The page “Does the paper hold?”: failing claims first, by cause, each beside its figure."""

from __future__ import annotations

import html
import os
import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spibb.experiments.results import Results
from spibb.paper.claim import FAILS, HOLDS, Ruling
from spibb.paper.claims import claims
from spibb.paper.provenance import experiment_command
from spibb.paper.readings import BEYOND, CAUSES, Cause, failing, quote
from spibb.paper.stored import joined

TITLE = "Does the paper hold?"
WIDTH = 80
LEQ_B = "leq-b"
FIGURE = re.compile(r"Figures? (\d+)([a-z])(?:-([a-z]))?")


@dataclass(frozen=True, eq=False)
class Page:
    """Rulings on several studies, how often each holds over baselines, and where figures are.

    `family` gives the verdicts on each claim over a family of baselines.
    """

    rulings: list[Ruling]
    studies: list[str]
    family: dict[str, list[str]]
    figures: dict[str, Path]

    @property
    def summary(self) -> str:
        """What holds, what fails and why, in one sentence."""
        counts = Counter(ruling.verdict for ruling in self.rulings)
        kinds = {kind: len(entries) for kind, entries in failing(self.rulings).items()}
        why = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
        rest = [f"{n} {v}" for v, n in counts.items() if v not in (HOLDS, FAILS)]
        text = f"{counts[HOLDS]} hold, {counts[FAILS]} fail" + (f": {why}" if why else "")
        return "; ".join([text, *rest]) + "."

    def baselines(self, id: str) -> str:
        """On how many of the gridworld's baselines a claim holds; empty if that is not known."""
        verdicts = self.family.get(id, [])
        holds, fails, n = verdicts.count(HOLDS), verdicts.count(FAILS), len(verdicts)
        undecided = f", {n - holds - fails} undecided" if holds + fails < n else ""
        return f"holds on {holds} and fails on {fails} of {n} baselines{undecided}" if n else ""

    def figure(self, ruling: Ruling) -> Path | None:
        """The first figure that the claim names and some folder has.

        Of a pair of figures, the second is that of Π_≤b.
        """
        for number, first, last in FIGURE.findall(ruling.where):
            letter = last if last and LEQ_B in ruling.id else first
            if f"fig{number}{letter}" in self.figures:
                return self.figures[f"fig{number}{letter}"]
        return None


def gather(
    results: Sequence[tuple[Path, Results]], family: Sequence[tuple[Path, Results]] = ()
) -> Page:
    """Decide the claims of every study, whose folders may have different columns."""
    by_study: dict[str, list[Results]] = {}
    for _, found in results:
        by_study.setdefault(found.experiment.study, []).append(found)
    rulings = [ruling for group in by_study.values() for ruling in claims(joined(group))]
    studies = [f"{found.runs:,} runs: {experiment_command(found, f)}" for f, found in results]
    figures = {
        path.name.split("_")[0]: path
        for folder, found in sorted(results, key=lambda pair: pair[1].runs)
        for path in sorted((folder / "figures").glob("fig*.png"))
    }
    return Page(rulings, studies, _over_baselines([r for _, r in family]), figures)


def _over_baselines(family: Sequence[Results]) -> dict[str, list[str]]:
    """Per claim: the verdicts on the baselines whose results have it."""
    found: dict[str, list[str]] = {}
    for results in family:
        for ruling in claims(results):
            if ruling.interval is not None:
                found.setdefault(ruling.id, []).append(ruling.verdict)
    return found


def terminal(page: Page) -> str:
    """The page for a terminal of 80 columns."""
    lines = textwrap.wrap(page.summary, WIDTH)
    for kind, entries in failing(page.rulings).items():
        lines += ["", *textwrap.wrap(f"FAILS ({kind}): {CAUSES[kind]}", WIDTH)]
        for ruling, why in entries:
            lines += _wrapped(f"{ruling.id}: {_line(page, ruling, why)}")
    for verdict in dict.fromkeys(r.verdict for r in page.rulings if r.verdict != FAILS):
        lines += ["", verdict.upper()]
        lines += _listed([ruling for ruling in page.rulings if ruling.verdict == verdict])
    return "\n".join(lines)


def _listed(rulings: Sequence[Ruling]) -> list[str]:
    """Each with its number; names alone where there is none."""
    if all(ruling.interval is None for ruling in rulings):
        return _wrapped(", ".join(ruling.id for ruling in rulings))
    return [
        line for ruling in rulings
        for line in _wrapped(f"{ruling.id}: {ruling.sentence} {ruling.value}")
    ]  # fmt: skip


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )


def _line(page: Page, ruling: Ruling, why: Cause) -> str:
    """What fails, by how much, and why."""
    parts = [
        f"{ruling.sentence} {ruling.value}",
        f"{ruling.margin:.2g} beyond the limit ({ruling.region})",
        why.why,
        page.baselines(ruling.id),
    ]
    return "; ".join(part for part in parts if part) + "."


def markdown(page: Page, folder: Path) -> str:
    """The page as Markdown in a folder, to which links to figures are relative."""
    lines = [f"# {TITLE}", "", f"**{page.summary}** {_INTRODUCTION}", ""]
    for kind, entries in failing(page.rulings).items():
        lines += [f"## Fails: {kind}", "", CAUSES[kind], ""]
        for ruling, why in entries:
            lines += [f"**{ruling.id}** ({ruling.where}). The paper: {_said(ruling)}", ""]
            lines += [_line(page, ruling, why), f"Decided by: {ruling.statistic}.", ""]
            image = page.figure(ruling)
            if image is not None:
                lines += [f"![{ruling.where}]({_relative(image, folder)}){{ width=420 }}", ""]
    lines += ["## What the paper does not say", "", *(f"- {text}" for text in BEYOND), ""]
    for verdict in dict.fromkeys(r.verdict for r in page.rulings if r.verdict != FAILS):
        lines += [f"## {verdict.capitalize()}", ""]
        lines += _beside_figures(page, [r for r in page.rulings if r.verdict == verdict], folder)
    lines += ["## Made with", "", *(f"- {text}" for text in page.studies), ""]
    return "\n".join(lines)


_INTRODUCTION = (
    "Each empirical sentence of the paper on finite MDPs was turned into a number with a 95 % "
    "interval; it holds or fails if the whole interval is on one side of a limit. Performances are "
    "normalised (0: baseline, 1: optimum) unless ρ is named."
)
_HEAD = ["| claim | the paper | decided by | value | baselines |", "|---|---|---|---|---|"]


def _said(ruling: Ruling) -> str:
    return quote(ruling.id) or ruling.sentence


def _beside_figures(page: Page, rulings: Sequence[Ruling], folder: Path) -> list[str]:
    """A table of claims below each figure that shows them; those without one come first."""
    by_figure: dict[Path | None, list[Ruling]] = {None: []}
    for ruling in rulings:
        by_figure.setdefault(page.figure(ruling), []).append(ruling)
    lines = []
    for image, group in by_figure.items():
        if image is not None:
            lines += [f"![{group[0].where}]({_relative(image, folder)}){{ width=420 }}", ""]
        if group:
            lines += [*_HEAD, *(_row(page, ruling) for ruling in group), ""]
    return lines


def _row(page: Page, ruling: Ruling) -> str:
    cells = (
        f"{ruling.id} ({ruling.where})", f"{ruling.sentence} {quote(ruling.id)}", ruling.statistic,
        f"{ruling.value} {ruling.note}".strip(), page.baselines(ruling.id),
    )  # fmt: skip
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def web(page: Page, folder: Path) -> str:
    """The page as one HTML file in a folder, readable by day and by night."""
    parts = [f"<h1>{TITLE}</h1><p><b>{html.escape(page.summary)}</b> {_INTRODUCTION}</p>"]
    for kind, entries in failing(page.rulings).items():
        parts.append(f"<h2>Fails: {kind}</h2><p>{CAUSES[kind]}</p>")
        parts += [_article(page, ruling, folder, why) for ruling, why in entries]
    listed = "".join(f"<li>{html.escape(text)}</li>" for text in BEYOND)
    parts.append(f"<h2>What the paper does not say</h2><ul>{listed}</ul>")
    for verdict in dict.fromkeys(r.verdict for r in page.rulings if r.verdict != FAILS):
        parts.append(f"<h2>{verdict.capitalize()}</h2>")
        parts += [_article(page, r, folder) for r in page.rulings if r.verdict == verdict]
    made = "".join(f"<li><code>{html.escape(text)}</code></li>" for text in page.studies)
    return _FRAME.format(title=TITLE, body="\n".join(parts) + f"<h2>Made with</h2><ul>{made}</ul>")


def _article(page: Page, ruling: Ruling, folder: Path, why: Cause | None = None) -> str:
    image = page.figure(ruling)
    shown = (
        f'<img loading="lazy" alt="{ruling.where}" src="{_relative(image, folder)}">'
        if image else ""
    )  # fmt: skip
    known = [page.baselines(ruling.id), ruling.note]
    text = _line(page, ruling, why) if why else f"{ruling.sentence} {ruling.value}"
    details = "; ".join(filter(None, [ruling.statistic, *([] if why else known)]))
    return (
        f'<article id="{ruling.id}"><div><h3>{ruling.id}</h3><blockquote>'
        f"{html.escape(_said(ruling))} ({html.escape(ruling.where)})</blockquote>"
        f"<p>{html.escape(text)}</p><p><small>{html.escape(details)}</small></p></div>"
        f"{shown}</article>"
    )


_FRAME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: auto; padding: 1rem; }}
article {{ display: grid; grid-template-columns: 3fr 2fr; gap: 1rem; border-top: 1px solid #8888;
  padding: .7rem 0; }}
blockquote {{ margin: 0; font-style: italic; }}
img {{ max-width: 100%; background: white; align-self: center; }}
@media (max-width: 40rem) {{ article {{ display: block; }} }}
</style></head><body>
{body}
</body></html>
"""
