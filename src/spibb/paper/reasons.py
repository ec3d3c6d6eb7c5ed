"""Why claims fail: the kinds of causes, and texts whose numbers come from the results.

A cause follows one rule. `paper's code`, `paper's baseline` and `reading` were found by looking,
and stand beside the claim. Else, a claim fails by a `threshold` if its limit is ours, not the
paper's, and the value is within `CLOSE` of it; otherwise the sentence is `contradicted`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spibb.paper.evidence import AbsentError, View
from spibb.stats import Interval
from spibb.words import listed, short

CODE = "paper's code"
OTHER_BASELINE = "paper's baseline"
READING = "reading"
THRESHOLD = "threshold"
CONTRADICTED = "contradicted"
UNEXPLAINED = "not examined"
CLOSE = 0.1
"""How near to a limit of ours a value fails by a threshold: a tenth of the way from the baseline to
the optimum."""
CAUSES = {
    CONTRADICTED: "Our numbers say the opposite of the sentence.",
    CODE: "The released code differs from the text: the sentence fails for what the text "
    "describes, and holds as released, or nearly.",
    OTHER_BASELINE: "It depends on the baseline: with one like the paper's it holds, with ours it "
    "fails.",
    THRESHOLD: "The sentence gives no number; the limit is ours, and the value is within "
    f"{CLOSE:g} of it.",
    READING: "The sentence is weaker than our test of it.",
    UNEXPLAINED: "The value is beyond the limit; these results do not say why.",
}
"""What each cause means, in the order in which a page lists them."""

Explain = Callable[[View, bool], str]
"""From the results, and whether the version is the released one, to a sentence."""


@dataclass(frozen=True)
class Reason:
    """Why a claim fails, computed from what decided it; the kind, where the rule does not give it.

    `what` stands before or after the computed part, and holds whatever the numbers are.
    """

    explain: Explain | None = None
    kind: str | None = None
    what: str = ""

    def text(self, view: View, released: bool) -> str:
        """The explanation; without the part whose numbers are not there."""
        try:
            computed = self.explain(view, released) if self.explain else ""
        except AbsentError:
            computed = ""
        return "; ".join(part for part in (computed, self.what) if part)


def on_sizes(curve: Mapping[int, Interval], below: float) -> str:
    """Where a curve is below a limit: on 10 and 20 trajectories, of 10 sizes."""
    found = [size for size, interval in curve.items() if interval.value < below]
    return f"on {numbers(found)} trajectories" + (" only" if len(found) < len(curve) else "")


def low_cells(cells: Mapping[tuple[int, int], Interval], below: float) -> str:
    """The cells of an N∧ map below a limit: N∧ = 7 and 10 on 10 trajectories; …"""
    by_size: dict[int, list[int]] = {}
    for (n_wedge, size), interval in cells.items():
        if interval.value < below:
            by_size.setdefault(size, []).append(n_wedge)
    parts = [f"N∧ = {numbers(found)} on {size:,}" for size, found in sorted(by_size.items())]
    n = sum(map(len, by_size.values()))
    return f"{n} of {len(cells)} cells are below {short(below)}: {', '.join(parts)} trajectories"


def behind(view: View, column: str, other: str, statistic: str, eta: float | None) -> str:
    """At how many sizes a column is behind another, and where it is ahead."""
    own, theirs = curve_of(view, column, statistic, eta), curve_of(view, other, statistic, eta)
    ahead = [size for size in own if own[size].value >= theirs[size].value]
    found = f"at {len(own) - len(ahead)} of {len(own)} sizes"
    return found + (f", and ahead of it on {numbers(ahead)} trajectories" if ahead else "")


def curve_of(
    view: View, column: str, statistic: str, eta: float | None = None
) -> dict[int, Interval]:
    """Normalised performance of a column by size."""
    return dict(zip(view.sizes(), view.curve(column, statistic, eta=eta)))


def rises(curve: Mapping[int, Interval], name: str) -> str:
    """From which size on a curve is above the baseline."""
    sizes = list(curve)
    last = max((k for k, size in enumerate(sizes) if curve[size].value <= 0), default=-1)
    if last == len(sizes) - 1:
        return f"its {name} over sizes is {extremes(curve)}"
    return f"its {name} is above the baseline from {sizes[last + 1]:,} trajectories on"


def numbers(values: Sequence[float]) -> str:
    """10, 20 and 50."""
    return listed([f"{value:,g}" for value in values])


def extremes(curve: Mapping[int, Interval]) -> str:
    """The lowest and the highest value of a curve."""
    return range_of([interval.value for interval in curve.values()])


def range_of(values: Sequence[float]) -> str:
    """The lowest and the highest of some values: −0.1 to 0.3."""
    low, high = (short(round(extreme(values), 2)) for extreme in (min, max))
    return low if low == high else f"{low} to {high}"
