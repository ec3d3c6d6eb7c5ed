"""Why claims fail, which sentences no claim tests, and what the paper does not say.

Quotations are from the ICML 2019 paper with its supplement; … marks what was left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spibb.paper.claim import FAILS, HOLDS, Ruling
from spibb.paper.claims_gridworld import BOTH, SAFE, wedge_cells
from spibb.paper.claims_random_mdps import GOOD, PI_B, PI_LEQ_B
from spibb.paper.competitors import ROBUST
from spibb.paper.evidence import AbsentError, View
from spibb.paper.reasons import (
    CAUSES,
    CLOSE,
    CODE,
    CONTRADICTED,
    THRESHOLD,
    UNEXPLAINED,
    Reason,
    curve_of,
    numbers,
)

LIMITS_OF_THE_PAPER = (0.0, -0.5)
"""The baseline, a tie; and what section 3.3 calls still a good performance."""

UNTESTED = (
    ("3", "“we only report the best performance we found (δ_hcpi = 0.9, δ_rob = 0.1 …)”",
     "best in which sense is not said; that of κ_adj = 0.003 is tested by its mean"),
    ("3.1", "“even in big datasets, some state-action pairs are observed only once or twice”",
     "the stored rows hold performances, not counts"),
    ("3.4", "“SPIBB is efficient at dealing with stochasticity, the noise attenuation reduces its "
     "usefulness”", "it explains a sentence that is tested (heli-noise-harder)"),
    ("4", "Π_b-SPIBB “run[s] as fast as a vanilla model-based RL algorithm”",
     "times depend on the machine"),
    ("4", "Π_≤b-SPIBB is “better and safer on a wide range of domains”",
     "it sums up what is tested for each domain"),
    ("B.1", "“the optimal value-function is on average 0.6 and with a surprising low variance, "
     "which amounts to an average horizon of 10”",
     "no result of the studies: over 200 random MDPs drawn here the mean is 0.598, with a standard "
     "deviation of 0.054"),
    ("B.1", "“We tried out various values for those parameters and found little sensitivity”",
     "we have the paper's random MDPs only: 25 states, 4 actions, 4 next states"),
    ("B.2.2", "The Bernstein bound is too conservative and the bootstrap too slow for HCPI.",
     "the paper shows no result of theirs"),
    ("B.2.3", "Robust MDP falls back on the baseline with fewer than 50,000 trajectories.",
     "tested up to 10,000 only, where the studies end"),
    ("B.2.4", "“the Gridworld domain is favorable to RaMDP”", "a supposition, and as such marked"),
    ("D.4", "DQN has a mean of “1.7 on this dataset vs. −0.5 reported in the main document”",
     "the data set is not published"),
    ("E", "“Any difference visible with the naked eye is significant.”",
     "a visual impression cannot be tested; the intervals here say it for each claim"),
    ("E", "How long the released code takes.", "times depend on the machine"),
)  # fmt: skip
"""Sentences that no claim tests: where, what is said, and why not. Without quotes: in our words."""

CORRECT, RELEASED = "-correct", "-released"
"""Endings of the two versions of a claim."""


@dataclass(frozen=True)
class Cause:
    """Why a claim fails: the kind, and what is known of it."""

    kind: str
    why: str


def cause(ruling: Ruling, rulings: Sequence[Ruling]) -> Cause:
    """Why a claim fails: what was found by looking, or else the rule of `reasons`."""
    released = ruling.id.endswith(RELEASED)
    reason = ruling.why
    why = [_beside(_twin(ruling, rulings)), reason.text(ruling.view, released)]
    return Cause(_kind(ruling, reason, rulings), "; ".join(part for part in why if part))


def _kind(ruling: Ruling, reason: Reason, rulings: Sequence[Ruling]) -> str:
    twin = _twin(ruling, rulings)
    as_released = twin if twin is not None and twin.id.endswith(RELEASED) else None
    if reason.kind is not None:
        return reason.kind
    held = as_released is not None and as_released.verdict == HOLDS
    if limit_is_ours(ruling) and ruling.margin <= CLOSE:
        # where the versions are far apart, the code decides and not where the limit is
        return CODE if held and _far_apart(ruling, as_released) else THRESHOLD
    if held:
        return CODE
    return CONTRADICTED if reason.explain is not None else UNEXPLAINED


def _far_apart(one: Ruling, other: Ruling | None) -> bool:
    """Whether the values of two versions differ by more than a threshold explains."""
    if other is None or one.interval is None or other.interval is None:
        return False
    return abs(one.interval.value - other.interval.value) > CLOSE


def _twin(ruling: Ruling, rulings: Sequence[Ruling]) -> Ruling | None:
    """The other version of a claim, if these results decide it."""
    name, _, version = ruling.id.rpartition("-")
    other = {"correct": RELEASED, "released": CORRECT}.get(version)
    found = (r for r in rulings if other and r.id == name + other and r.verdict in (HOLDS, FAILS))
    return next(found, None)


def _beside(twin: Ruling | None) -> str:
    """What the other version gives."""
    if twin is None:
        return ""
    which = "as released" if twin.id.endswith(RELEASED) else "as the text describes"
    return f"{which} it {twin.verdict}: {twin.value}"


def failing(rulings: Sequence[Ruling]) -> dict[str, list[tuple[Ruling, Cause]]]:
    """The failing claims by the kind of their cause, in the order of CAUSES."""
    found: dict[str, list[tuple[Ruling, Cause]]] = {kind: [] for kind in CAUSES}
    for ruling in rulings:
        if ruling.verdict == FAILS:
            why = cause(ruling, rulings)
            found[why.kind].append((ruling, why))
    return {kind: entries for kind, entries in found.items() if entries}


def limit_is_ours(ruling: Ruling) -> bool:
    """Whether the limit that a claim fails by is not one of the paper's."""
    region, interval = ruling.region, ruling.interval
    if interval is None:
        return False
    limit = region.lower if interval.value <= region.lower else region.upper
    return limit not in LIMITS_OF_THE_PAPER


def unsaid(rulings: Sequence[Ruling]) -> list[str]:
    """What these results show and the paper does not say; nothing where they are too few."""
    views = {r.view.results.experiment.study: View(r.view.results) for r in rulings}
    found = []
    for study, say in (("random-mdps", _robust_overtakes), ("gridworld-random", _also_lose)):
        if study in views:
            try:
                text = say(views[study])
            except AbsentError:
                continue
            if text and not views[study].shortage() and not views[study].lacking():
                found.append(text)
    verdicts = {ruling.id: ruling.verdict for ruling in rulings}
    if verdicts.get("heli-ramdp-below") == verdicts.get("heli-ramdp-beyond") == HOLDS:
        found.append(
            "RaMDP-DQN is below the baseline with each κ of the paper's range, up to 0.1, and "
            "improves the baseline in mean with some larger ones."
        )
    return found


def _robust_overtakes(view: View) -> str:
    """From which size on Robust MDP is ahead of both SPIBB algorithms, with η = 0.9."""
    robust, *spibb = (
        curve_of(view, key, "cvar1", GOOD) for key in (ROBUST, PI_B, PI_LEQ_B)
    )  # fmt: skip
    sizes = list(robust)
    ahead = [all(robust[n].low > curve[n].high for curve in spibb) for n in sizes]
    last = max((k for k, leads in enumerate(ahead) if not leads), default=-1)
    if last == len(sizes) - 1:
        return ""
    return (
        "With random MDPs and η = 0.9, Robust MDP overtakes both SPIBB algorithms (N∧ = 10) in "
        f"1 %-CVaR from {sizes[last + 1]:,} trajectories on."
    )


def _also_lose(view: View) -> str:
    """Where SPIBB loses beyond the N∧ ≤ 10 that the paper names, with data of another policy."""
    low = {
        (n, size): interval
        for name in BOTH
        for (n, size), interval in wedge_cells(view, name).items()
        if n > 10 and interval.high < SAFE
    }
    if not low:
        return ""
    wedges, sizes = (sorted({place[k] for place in low}) for k in (0, 1))
    worst = min(interval.value for interval in low.values())
    return (
        f"With data of the uniform policy, SPIBB also loses with N∧ = {numbers(wedges)} on "
        f"{numbers(sizes)} trajectories, by up to {-worst:.2f} of the way to the optimum in "
        "1 %-CVaR; the paper names N∧ ≤ 10 only."
    )
