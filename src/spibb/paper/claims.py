"""What the paper says, what the rows show: the claims of section 3 and appendices B to D.

They are those that a number can decide; `readings.UNTESTED` lists the others.

Appendix C consists of figures without further sentences; its figures are named where they show
what section 3 says.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from spibb import __version__
from spibb.experiments.results import Results
from spibb.experiments.spec import ASSURANCE
from spibb.files import write_text, write_whole
from spibb.paper import (  # noqa: F401 (each module registers its claims)
    claims_assurance,
    claims_gridworld,
    claims_helicopter,
    claims_hyperparameters,
    claims_random_behaviour,
    claims_random_mdps,
)
from spibb.paper.assured_tables import tables
from spibb.paper.claim import CLAIMS, Ruling
from spibb.paper.evidence import FEWEST_LOGS
from spibb.paper.provenance import experiment_commands
from spibb.paper.style import lowered

MARKDOWN, TABLE = "claims.md", "claims.csv"


def claims(results: Results) -> list[Ruling]:
    """The verdict of every claim about the study of these results."""
    study = results.experiment.study
    return [claim.decide(results) for claim in CLAIMS if claim.study == study]


def write_claims(results: Results, folder: Path) -> list[Ruling]:
    """Decide all claims from the results of a folder, and write claims.md and claims.csv there."""
    rulings = claims(results)
    text = markdown(results, rulings, folder)
    write_text(folder / MARKDOWN, text)
    write_whole(folder / TABLE, lambda path: _write_csv(rulings, path))
    return rulings


def markdown(results: Results, rulings: list[Ruling], folder: Path) -> str:
    """A page with one table, which says in what units its statistics are."""
    counts = Counter(ruling.verdict for ruling in rulings)
    found = ", ".join(f"{number} {name}" for name, number in counts.most_common())
    lines = [
        f"# Claims: {results.experiment.study}, {results.runs:,} runs",
        "",
        f"{len(rulings)} claims: {found}. Made by spibb {__version__} with",
        "",
        *(f"    {command}" for command in experiment_commands(results, folder)),
        f"    spibb claims {folder}",
        "",
        f"{_units(results)} A claim holds "
        "or fails if the whole 95 % interval is on one side of its limit. Intervals of a lowest "
        "or highest value allow for the number of values compared; a tail mean of fewer than ten "
        "runs decides nothing.",
        "",
        "| claim | where | what is claimed | decided by | value | verdict | from |",
        "|---|---|---|---|---|---|---|",
    ]
    more = tables(results) if results.experiment.study == ASSURANCE else []
    return "\n".join([*lines, *(_line(ruling) for ruling in rulings), "", *more])


def _units(results: Results) -> str:
    training = results.experiment.training
    if training is None:
        return "Performances are normalised (0: baseline, 1: optimum) unless ρ is named."
    rows = results.runs * training.seeds
    if training.one_log:
        return f"Performances are mean undiscounted returns of {rows:,} networks on one data set."
    return (
        f"Performances are mean undiscounted returns of {rows:,} networks, {training.seeds} on "
        f"each of {results.runs:,} data sets, after {training.passes[-1]:,} passes; intervals draw "
        f"whole data sets anew, and fewer than {FEWEST_LOGS} of these decide nothing."
    )


def _line(ruling: Ruling) -> str:
    cells = (
        ruling.id, ruling.where, ruling.sentence, ruling.statistic, ruling.value,
        f"**{ruling.verdict}**" + (f": {ruling.note}" if ruling.note else ""), ruling.basis,
    )  # fmt: skip
    return "| " + " | ".join(lowered(cell).replace("|", "\\|") for cell in cells) + " |"


def _write_csv(rulings: list[Ruling], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["id", "where", "sentence", "statistic", "value", "low", "high", "verdict", "note",
             "from"]
        )  # fmt: skip
        for v in rulings:
            numbers = (
                (v.interval.value, v.interval.low, v.interval.high) if v.interval else ("",) * 3
            )
            words = v.id, v.where, v.sentence, v.statistic
            writer.writerow([*words, *numbers, v.verdict, v.note, v.basis])
