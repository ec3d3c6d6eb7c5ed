"""The page “Does the paper hold?”: failing claims first, by cause, each beside its figure."""

from __future__ import annotations

import html
import os
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spibb.experiments.results import Results
from spibb.paper.claim import ABSENT, FAILS, HOLDS, NOT_ENOUGH, Ruling
from spibb.paper.claims import claims
from spibb.paper.provenance import experiment_command
from spibb.paper.readings import BEYOND, CAUSES, Cause, failing, quote
from spibb.paper.stored import joined, same_runs
from spibb.paper.style import lowered

TITLE = "Does the paper hold?"
WIDTH = 80
LEQ_B = "leq-b"
FIGURE = re.compile(r"Figures? (\d+)([a-z])(?:-([a-z]))?")


@dataclass(frozen=True, eq=False)
class Page:
    """Rulings on several studies, how often each holds over baselines, and where figures are.

    `family` gives the verdicts on each claim over a family of baselines, `places` the folder that
    decides a claim where folders are not joined.
    """

    rulings: list[Ruling]
    studies: list[str]
    family: dict[str, list[str]]
    figures: dict[str, list[Path]]
    places: dict[str, Path]

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
        """The first figure that the claim names and some folder has, best the one that decides.

        Of a pair of figures, the second is that of Π_≤b.
        """
        for number, first, last in FIGURE.findall(ruling.where):
            letter = last if last and LEQ_B in ruling.id else first
            found = self.figures.get(f"fig{number}{letter}", [])
            place = self.places.get(ruling.id)
            own = [path for path in found if place and path.is_relative_to(place)]
            if found:
                return (own or found)[-1]
        return None


def gather(
    results: Sequence[tuple[Path, Results]], family: Sequence[tuple[Path, Results]] = ()
) -> Page:
    """Decide the claims of every study, whose folders may have different columns."""
    by_study: dict[str, list[tuple[Path, Results]]] = {}
    for folder, found in results:
        by_study.setdefault(found.experiment.study, []).append((folder, found))
    rulings: list[Ruling] = []
    places: dict[str, Path] = {}
    for group in by_study.values():
        for ruling, place in _decided(group):
            rulings.append(ruling)
            if place is not None:
                places[ruling.id] = place
    studies = [f"{found.runs:,} runs: {experiment_command(found, f)}" for f, found in results]
    figures: dict[str, list[Path]] = {}
    for folder, _ in sorted(results, key=lambda pair: pair[1].runs):
        for path in sorted((folder / "figures").glob("fig*.png")):
            figures.setdefault(path.name.split("_")[0], []).append(path)
    return Page(rulings, studies, _over_baselines([r for _, r in family]), figures, places)


def _decided(group: Sequence[tuple[Path, Results]]) -> Iterator[tuple[Ruling, Path | None]]:
    """The ruling on each claim of a study, and the folder that gives it if the others do not.

    Finite studies are joined. Folders of networks differ in sizes, noise factors, passes and
    baselines: a claim is decided by the folder that can; of several, by one that shows its figure
    and has most numbers.
    """
    if group[0][1].experiment.training is None or len(group) == 1:
        yield from ((ruling, None) for ruling in claims(joined([found for _, found in group])))
        return
    apart = sorted(same_runs(group), key=lambda pair: -len(pair[1].cells))
    for several in zip(*([(r, place) for r in claims(found)] for place, found in apart)):
        yield min(several, key=_rank)


def _rank(decided: tuple[Ruling, Path]) -> tuple[int, bool]:
    """Low for a folder that decides a claim, and shows the figure that the claim is about."""
    ruling, place = decided
    stems = (f"fig{number}{letter}_*" for number, letter, _ in FIGURE.findall(ruling.where))
    shown = any(any((place / "figures").glob(stem)) for stem in stems)
    return {ABSENT: 2, NOT_ENOUGH: 1}.get(ruling.verdict, 0), not shown


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
    return "\n".join(lines).replace("N_∧", "N∧")


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
            lines += [f"**{ruling.id}** ({ruling.where})", "", f"> {lowered(_said(ruling))}", ""]
            lines += [f"- *{name}:* {lowered(text)}" for name, text in _facts(page, ruling, why)]
            lines += [""]
            image = page.figure(ruling)
            if image is not None:
                lines += [f"![{ruling.where}]({_relative(image, folder)}){{ width=420 }}", ""]
    lines += ["## What the paper does not say", "", *(f"- {lowered(text)}" for text in BEYOND), ""]
    for verdict in dict.fromkeys(r.verdict for r in page.rulings if r.verdict != FAILS):
        lines += [f"## {verdict.capitalize()}", ""]
        lines += _beside_figures(page, [r for r in page.rulings if r.verdict == verdict], folder)
    lines += ["## Made with", "", *(f"- `{text}`" for text in page.studies), ""]
    return "\n".join(lines)


def _facts(page: Page, ruling: Ruling, why: Cause | None) -> list[tuple[str, str]]:
    """What was tested, what was found and, where it fails, why: names and sentences."""
    beyond = f", {ruling.margin:.2g} beyond the limit" if why else ""
    place = page.places.get(ruling.id)
    where = f" ({place.parent.name}/{place.name})" if place else ""
    note = f" ({ruling.note})" if ruling.note else ""
    facts = {
        "Tested": f"{ruling.sentence} Decided by the {ruling.statistic}.",
        "Found": f"{ruling.value}{beyond}{note}{where}.",
        "Why": f"{why.why}." if why else ".",
        "Other baselines": page.baselines(ruling.id) + ".",
    }
    return [(name, text) for name, text in facts.items() if text.strip(".")]


_INTRODUCTION = (
    "Each empirical sentence of the paper was turned into a number with a 95 % interval; it holds "
    "or fails if the whole interval is on one side of a limit. Performances are normalised "
    "(0: baseline, 1: optimum) unless ρ is named; those of the helicopter are mean undiscounted "
    "returns, from −1 to 10."
)
_HEAD = ["| claim | the paper | decided by | value | baselines |", "|---|---|---|---|---|"]


def _said(ruling: Ruling) -> str:
    return quote(ruling.id) or "The paper does not say it."


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
    return "| " + " | ".join(lowered(cell).replace("|", "\\|") for cell in cells) + " |"


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def web(page: Page, folder: Path) -> str:
    """The page as one HTML file in a folder, readable by day and by night."""
    parts = [f"<h1>{TITLE}</h1><p><b>{html.escape(page.summary)}</b> {_INTRODUCTION}</p>"]
    for kind, entries in failing(page.rulings).items():
        parts.append(f"<h2>Fails: {kind}</h2><p>{CAUSES[kind]}</p>")
        parts += [_article(page, ruling, folder, why) for ruling, why in entries]
    listed = "".join(f"<li>{_set(text)}</li>" for text in BEYOND)
    parts.append(f"<h2>What the paper does not say</h2><ul>{listed}</ul>")
    for verdict in dict.fromkeys(r.verdict for r in page.rulings if r.verdict != FAILS):
        parts.append(f"<h2>{verdict.capitalize()}</h2>")
        parts += [_article(page, r, folder) for r in page.rulings if r.verdict == verdict]
    made = "".join(f"<li><code>{html.escape(text)}</code></li>" for text in page.studies)
    return _FRAME.format(title=TITLE, body="\n".join(parts) + f"<h2>Made with</h2><ul>{made}</ul>")


def _set(text: str) -> str:
    """A text in HTML, with its indices set lower."""
    return lowered(html.escape(text))


def _article(page: Page, ruling: Ruling, folder: Path, why: Cause | None = None) -> str:
    image = page.figure(ruling)
    shown = (
        f'<img loading="lazy" alt="{ruling.where}" src="{_relative(image, folder)}">'
        if image else ""
    )  # fmt: skip
    facts = "".join(
        f"<dt>{name}</dt><dd>{_set(text)}</dd>" for name, text in _facts(page, ruling, why)
    )
    return (
        f'<article id="{ruling.id}"><div><h3>{ruling.id}</h3><blockquote>'
        f"{_set(_said(ruling))} ({html.escape(ruling.where)})</blockquote>"
        f"<dl>{facts}</dl></div>{shown}</article>"
    )


_FRAME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: auto; padding: 1rem; }}
article {{ display: grid; grid-template-columns: 3fr 2fr; gap: 1rem; border-top: 1px solid #8888;
  padding: .7rem 0; }}
blockquote {{ margin: 0; font-style: italic; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .2rem .8rem; margin: .5rem 0; }}
dt {{ font-weight: 600; }}
dd {{ margin: 0; }}
img {{ max-width: 100%; background: white; align-self: center; }}
@media (max-width: 40rem) {{ article {{ display: block; }} }}
</style></head><body>
{body}
</body></html>
"""
