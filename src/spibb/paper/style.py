"""How columns and statistics are named and drawn, the same in every figure."""

from __future__ import annotations

from dataclasses import dataclass

from spibb.experiments.results import Results
from spibb.experiments.spec import Column, Experiment

STATISTIC_NAMES = {
    "mean": "mean",
    "cvar10": "10 %-CVaR",
    "cvar1": "1 %-CVaR",
    "cvar0.1": "0.1 %-CVaR",
}
Dashes = str | tuple[int, tuple[float, ...]]


@dataclass(frozen=True)
class Style:
    """Colour, marker and dashes of a curve: one colour per algorithm, in all figures.

    Versions of an algorithm differ in marker and dashes; those as released have hollow markers.
    """

    colour: str
    marker: str
    dashes: Dashes = "-"
    hollow: bool = False

    def dashes_of(self, tail: bool) -> Dashes:
        """The dashes of a mean, or of a tail mean, where a figure shows both."""
        if self.hollow:
            return "-." if tail else ":"
        return "--" if tail else "-"


# The palette of Okabe & Ito, whose colours differ for every common colour vision.
STYLES = {
    "pi-b": Style("#0072B2", "o"),
    "pi-leq-b": Style("#D55E00", "s"),
    "basic-rl": Style("#000000", "^", "--"),
    "auto": Style("#882255", "*"),
    "certified": Style("#332288", "h"),
    "ramdp": Style("#009E73", "D", "-."),
    "ramdp released": Style("#009E73", "v", ":", hollow=True),
    "robust-mdp": Style("#CC79A7", "P", (0, (5, 1, 1, 1, 1, 1))),
    "robust-mdp released": Style("#CC79A7", "<", ":", hollow=True),
    "hcpi": Style("#56B4E9", "X", (0, (3, 1, 1, 1))),
    "hcpi released": Style("#56B4E9", ">", ":", hollow=True),
    "hcpi is": Style("#1F5F8B", "^", (0, (3, 1, 1, 1))),
    "hcpi pdis": Style("#2E8FC4", "d", (0, (3, 1, 1, 1))),
}
OTHER_STYLES = tuple(
    Style(colour, marker, (0, (1, 1)))
    for colour, marker in zip(("0.45", "#882255", "#999933", "#332288", "#44AA99"), "*h<p>")
)
"""Styles of algorithms that the paper does not have, in colours of Tol's muted palette."""

NAMES = {
    "pi-b": r"$\Pi_b$-SPIBB",
    "pi-leq-b": r"$\Pi_{\leq b}$-SPIBB",
    "basic-rl": "Basic RL",
    "ramdp": "RaMDP",
    "robust-mdp": "Robust MDP",
    "hcpi": "HCPI",
    "spibb.experiments.assurance.OldRule": "rule of version 0.0",
    "spibb.experiments.prototype.Prototype": "prototype of auto",
}
TYPESET = (("Π_b", r"$\Pi_b$"), ("Π_≤b", r"$\Pi_{\leq b}$"), ("N_∧", r"$N_\wedge$"))
OPTIONS = {"n_wedge": r"$N_\wedge$", "kappa": "κ", "delta": "δ", "eta": "η"}
ESTIMATORS = {
    "is": "importance sampling",
    "pdis": "per-decision IS",
    "dr": "doubly robust",
}


def style(column: Column, number: int = 0) -> Style:
    """The style of a column; `number` tells apart those of unknown algorithms."""
    options = dict(column.options)
    variant = "released" if options.get("released") else options.get("estimator", "")
    known = STYLES.get(f"{column.algorithm} {variant}") or STYLES.get(column.algorithm)
    return known or OTHER_STYLES[number % len(OTHER_STYLES)]


def label(column: Column) -> str:
    """A column as a legend names it; safety tests are named where one is made, as in the paper."""
    options = dict(column.options)
    released = options.pop("released", False)
    estimator = options.pop("estimator", None)
    tested = options.pop("safety_test", False)
    parts = [NAMES.get(column.algorithm, column.algorithm.rpartition(".")[2])]
    if estimator is not None:
        parts.append(ESTIMATORS.get(str(estimator), str(estimator)))
    parts += [f"{OPTIONS.get(name, name)} = {value}" for name, value in options.items()]
    return (
        ", ".join(parts) + (" (as released)" if released else "") + (", tested" if tested else "")
    )


def plain(text: str) -> str:
    """A label without mathematical typesetting, for captions and alternative texts."""
    for written, typeset_form in TYPESET:
        text = text.replace(typeset_form, written)
    return text


def lowered(text: str) -> str:
    """A text with its indices set lower, as HTML and Markdown do it: N_∧, also written N∧."""
    text = text.replace("N∧", "N_∧")
    for index in ("∧", "≤b", "b", "hcpi", "rob", "adj"):
        text = text.replace(f"_{index}", f"<sub>{index}</sub>")
    return text


def typeset(text: str) -> str:
    """A caption with its symbols set as mathematics, for titles."""
    for written, typeset_form in TYPESET:
        text = text.replace(written, typeset_form)
    return text


def find(experiment: Experiment, key: str) -> Column | None:
    """The column of that key, if the experiment has it."""
    return next((column for column in experiment.columns if column.key == key), None)


def fewer_runs(results: Results, key: str) -> str:
    """How many runs a column has, where others have more: [10,000 runs]."""
    runs = max((cell.runs for cell in results.cells if cell.column == key), default=results.runs)
    return f" [{runs:,} runs]" if runs < results.runs else ""


def short_size(size: int) -> str:
    """10, 200, 1k, 10k."""
    return f"{size // 1000}k" if size >= 1000 and size % 1000 == 0 else str(size)


def statistic_name(statistics: tuple[str, ...]) -> str:
    """Names of statistics, joined: mean and 1 %-CVaR."""
    return " and ".join(STATISTIC_NAMES[name] for name in statistics)
