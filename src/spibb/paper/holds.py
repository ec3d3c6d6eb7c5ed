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
from spibb.paper.evidence import paper_sizes
from spibb.paper.provenance import experiment_commands
from spibb.paper.readings import UNTESTED, Cause, failing, unsaid
from spibb.paper.reasons import CAUSES
from spibb.paper.stored import joined, same_runs
from spibb.paper.style import lowered

TITLE = "Does the paper hold?"
WIDTH = 80
LEQ_B = "leq-b"
FIGURE = re.compile(r"Figures? (\d+)([a-z])(?:-([a-z]))?")


@dataclass(frozen=True, eq=False)
class Page:
    """Rulings on several studies, how often each holds over baselines, and where figures are.

    `amounts` says how much each folder holds. `family` gives the verdicts on each claim over a
    family of baselines, `places` the folder that decides a claim where folders are not joined.
    """

    rulings: list[Ruling]
    amounts: list[str]
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
        text = f"{counts[HOLDS]} hold, {counts[FAILS]} fail" + (f" ({why})" if why else "")
        sentences = len({ruling.quote for ruling in self.rulings} - {""})
        about = f"{sentences} sentences, {len(self.rulings)} tests of them"
        return f"{about}: {', '.join([text, *rest])}."

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
    studies = [
        f"{found.runs:,} runs: {'; '.join(experiment_commands(found, f))}" for f, found in results
    ]
    figures: dict[str, list[Path]] = {}
    for folder, _ in sorted(results, key=lambda pair: pair[1].runs):
        for path in sorted((folder / "figures").glob("fig*.png")):
            figures.setdefault(path.name.split("_")[0], []).append(path)
    amounts = list(dict.fromkeys(_amount(found) for _, found in results))
    return Page(rulings, amounts, studies, _over_baselines([r for _, r in family]), figures, places)


def _amount(results: Results) -> str:
    """How much a folder holds: gridworld: 20 runs, 2 of 10 sizes."""
    experiment = results.experiment
    wanted = paper_sizes(results)
    sizes = f"{len({*wanted} & {*experiment.sizes})} of the paper's {len(wanted)} sizes"
    training = experiment.training
    runs = f"{results.runs:,} runs"
    if training is not None:
        networks = f"{training.seeds} {'network' if training.seeds == 1 else 'networks'}"
        runs += f" of {networks} a column"
    return f"{experiment.study}: {runs}, {sizes}"


def _decided(group: Sequence[tuple[Path, Results]]) -> Iterator[tuple[Ruling, Path | None]]:
    """The ruling on each claim of a study, and the folder that gives it if the others do not.

    Finite studies are joined. Folders of networks differ in sizes, noise factors, passes and
    baselines: a claim is decided by the folder that can; of several, by one that shows its figure
    and has most numbers.
    """
    if group[0][1].experiment.training is None or len(group) == 1:
        yield from ((ruling, None) for ruling in claims(joined([found for _, found in group])))
        return
    folders = sorted(same_runs(group), key=lambda pair: -len(pair[1].cells))
    for several in zip(*([(r, place) for r in claims(found)] for place, found in folders)):
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
    lines += [line for text in page.amounts for line in _wrapped(text)]
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
        for line in _wrapped(f"{ruling.id}: {ruling.sentence} {_number(ruling)}{_marks(ruling)}")
    ]  # fmt: skip


def _number(ruling: Ruling) -> str:
    """The value, with the kind of number that it is: 1 %-CVaR 0.13 [0.11, 0.14]."""
    return f"{ruling.unit} {ruling.value}".strip()


def _marks(ruling: Ruling) -> str:
    """What stands in the way of a verdict, and which of the paper's sizes are not there."""
    lacking = ruling.view.lacking() if ruling.interval is not None else ""
    parts = [ruling.note, f"only {lacking}" if lacking else ""]
    return "".join(f"; {part}" for part in parts if part)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )


def _line(page: Page, ruling: Ruling, why: Cause) -> str:
    """What fails, by how much, and why."""
    parts = [
        f"{ruling.sentence} {_number(ruling)}{_marks(ruling)}",
        f"{ruling.margin:.2g} beyond the limit ({ruling.region})",
        why.why,
        page.baselines(ruling.id),
    ]
    return "; ".join(part for part in parts if part) + "."


def markdown(page: Page, folder: Path) -> str:
    """The page as Markdown in a folder, to which links to figures are relative."""
    lines = [f"# {TITLE}", "", f"**{page.summary}** {_INTRODUCTION}", ""]
    shown: set[Path] = set()
    for kind, entries in failing(page.rulings).items():
        lines += [f"## Fails: {kind}", "", CAUSES[kind], ""]
        for ruling, why in entries:
            lines += [f"**{ruling.id}** ({ruling.where})", "", f"> {lowered(_said(ruling))}", ""]
            lines += [f"- *{name}:* {lowered(text)}" for name, text in _facts(page, ruling, why)]
            lines += ["", *_picture(page.figure(ruling), ruling, folder, shown)]
    more = unsaid(page.rulings)
    if more:
        lines += [
            "## What the paper does not say",
            "",
            *(f"- {lowered(text)}" for text in more),
            "",
        ]
    for verdict in dict.fromkeys(r.verdict for r in page.rulings if r.verdict != FAILS):
        lines += [f"## {verdict.capitalize()}", ""]
        some = [r for r in page.rulings if r.verdict == verdict]
        lines += _beside_figures(page, some, folder, shown)
    lines += ["## Not tested", "", _UNTESTED, ""]
    lines += [f"- {where}: {lowered(said)} Not tested: {why}." for where, said, why in UNTESTED]
    lines += ["", "## Made with", "", *(f"- `{text}`" for text in page.studies), ""]
    return "\n".join(lines)


def _picture(image: Path | None, ruling: Ruling, folder: Path, shown: set[Path]) -> list[str]:
    """A figure that opens on a click; a link to it where the page has shown it already."""
    if image is None:
        return []
    path = _relative(image, folder)
    name = image.name.split("_")[0].removeprefix("fig")
    if image in shown:
        return [f"[Figure {name}]({path}), shown above.", ""]
    shown.add(image)
    return [f"[![{ruling.where}]({path}){{ width=560 }}]({path})", ""]


def _facts(page: Page, ruling: Ruling, why: Cause | None) -> list[tuple[str, str]]:
    """What was tested, what was found and, where it fails, why: names and sentences."""
    beyond = f", {ruling.margin:.2g} beyond the limit" if why else ""
    note = f" ({ruling.note})" if ruling.note else ""
    facts = {
        "Tested": f"{ruling.sentence} Decided by the {ruling.statistic}.",
        "Found": f"{ruling.value}{beyond}{note}.",
        "From": _source(page, ruling) + ".",
        "Why": f"{why.why}." if why else ".",
        "Other baselines": page.baselines(ruling.id) + ".",
    }
    return [(name, text) for name, text in facts.items() if text.strip(".")]


def _source(page: Page, ruling: Ruling) -> str:
    """Runs, sizes and, where folders are not joined, the folder that decided a claim."""
    place = page.places.get(ruling.id)
    where = f" ({place.parent.name}/{place.name})" if place else ""
    return f"{ruling.basis}{where}" if ruling.basis else ""


_INTRODUCTION = (
    "The empirical sentences of the paper that a number can decide were turned into numbers with "
    "95 % intervals; a test holds or fails if the whole interval is on one side of a limit. One "
    "sentence may need several tests, and where the released code differs from the text each is "
    "made for both. Performances are normalised (0: baseline, 1: optimum) unless ρ is named; those "
    "of the helicopter are mean undiscounted returns, from −1 to 10."
)
_UNTESTED = "Sentences of the paper that sound empirical, and why no number here decides them."


def _said(ruling: Ruling) -> str:
    return ruling.quote or "The paper does not say it."


def _beside_figures(
    page: Page, rulings: Sequence[Ruling], folder: Path, shown: set[Path]
) -> list[str]:
    """The claims below each figure that shows them; those without one come first."""
    by_figure: dict[Path | None, list[Ruling]] = {None: []}
    for ruling in rulings:
        by_figure.setdefault(page.figure(ruling), []).append(ruling)
    lines = []
    for image, group in by_figure.items():
        if group:
            lines += _picture(image, group[0], folder, shown)
            lines += _by_sentence(page, group)
    return lines


def _by_sentence(page: Page, rulings: Sequence[Ruling]) -> list[str]:
    """The paper's sentence once, and below it the tests of it."""
    lines = []
    for said in dict.fromkeys(_said(ruling) for ruling in rulings):
        lines += [f"> {lowered(said)}", ""]
        for ruling in rulings:
            if _said(ruling) == said:
                facts = dict(_facts(page, ruling, None))
                more = ("From", "Other baselines")
                rest = [f"{name}: {facts[name]}" for name in more if name in facts]
                text = " ".join([facts["Tested"], f"**{facts['Found']}**", *rest])
                lines.append(f"- {ruling.id} ({ruling.where}): {lowered(text)}")
        lines.append("")
    return lines


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def web(page: Page, folder: Path) -> str:
    """The page as one HTML file in a folder, readable by day and by night."""
    parts = [f"<h1>{TITLE}</h1><p><b>{html.escape(page.summary)}</b> {_INTRODUCTION}</p>"]
    for kind, entries in failing(page.rulings).items():
        parts.append(f"<h2>Fails: {kind}</h2><p>{CAUSES[kind]}</p>")
        parts += [_article(page, ruling, folder, why) for ruling, why in entries]
    listed = "".join(f"<li>{_set(text)}</li>" for text in unsaid(page.rulings))
    if listed:
        parts.append(f"<h2>What the paper does not say</h2><ul>{listed}</ul>")
    for verdict in dict.fromkeys(r.verdict for r in page.rulings if r.verdict != FAILS):
        parts.append(f"<h2>{verdict.capitalize()}</h2>")
        parts += [_article(page, r, folder) for r in page.rulings if r.verdict == verdict]
    left = "".join(f"<li>{w}: {_set(said)} Not tested: {why}.</li>" for w, said, why in UNTESTED)
    parts.append(f"<h2>Not tested</h2><p>{_UNTESTED}</p><ul>{left}</ul>")
    made = "".join(f"<li><code>{html.escape(text)}</code></li>" for text in page.studies)
    return _FRAME.format(title=TITLE, body="\n".join(parts) + f"<h2>Made with</h2><ul>{made}</ul>")


def _set(text: str) -> str:
    """A text in HTML, with its indices set lower."""
    return lowered(html.escape(text))


def _article(page: Page, ruling: Ruling, folder: Path, why: Cause | None = None) -> str:
    image = page.figure(ruling)
    path = _relative(image, folder) if image else ""
    shown = (
        f'<a href="{path}"><img loading="lazy" alt="{ruling.where}" src="{path}"></a>'
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
