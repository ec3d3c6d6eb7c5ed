"""What section 3 and appendix B.2 say of the competitors and their hyper-parameters (gridworld)."""

from __future__ import annotations

from functools import partial
from itertools import combinations

from spibb.experiments.finite import ROBUST_DELTAS
from spibb.paper.claim import above, below, claim
from spibb.paper.competitors import HCPI, RAMDP, ROBUST_MDP, Version
from spibb.paper.evidence import View, distance, exact, largest
from spibb.paper.reasons import CODE, Reason, numbers
from spibb.stats import Interval

SAID_COMPROMISE = (
    "“δ_hcpi = 1 yields the best result in mean, but turns out to be strongly unsafe for small "
    "datasets. δ_hcpi = 0.9 appears to offer the best compromise”"
)

gridworld = partial(claim, study="gridworld")


gridworld(
    "search-optimistic-awful", "B.2.1",
    "Basic RL that starts from optimistic values performs awfully.",
    "highest mean over sizes (awful: below the baseline)", below(0),
    lambda view: view.highest("basic-rl:unseen=optimistic", "mean"),
    quote="“The former yields awful performances in our batch RL setting.”", unit="mean",
)  # fmt: skip


def estimator_gaps(view: View, version: Version) -> list[tuple[float, int, Interval]]:
    """δ, |D|, and the distance between the means of two estimators of HCPI."""
    gaps = []
    for delta in (0.1, 0.9):
        columns = [version.at(delta, estimator=name) for name in ("is", "pdis", "dr")]
        curves = [view.curve(column, "mean") for column in columns]
        gaps += [
            (delta, size, distance(a, b))
            for one, other in combinations(curves, 2)
            for size, a, b in zip(view.sizes(), one, other)
        ]
    return gaps


def _why_estimators(view: View, released: bool) -> str:
    gaps = estimator_gaps(view, HCPI[not released])
    far = sorted({(delta, size) for delta, size, gap in gaps if gap.value >= 0.1})
    by_delta = {d: [size for other, size in far if other == d] for d, _ in far}
    every = view.sizes()
    parts = [
        f"δ = {d:g} at every size"
        if sizes == every
        else f"δ = {d:g} on {numbers(sizes)} trajectories"
        for d, sizes in by_delta.items()
    ]
    return f"further apart than 0.1 with {', '.join(parts)}"


gridworld(
    "search-hcpi-estimators", "B.2.2, Figure 5b and Figure 5a",
    "The three estimators of HCPI behave more or less the same.",
    "largest distance between their means, over sizes, with δ = 0.1 and 0.9 (more or less the "
    "same: below 0.1)", below(0.1),
    lambda view, version: largest([gap for *_, gap in estimator_gaps(view, version)]),
    versions=HCPI,
    quote="“they all behave more or less the same on the Gridworld domain”",
    why=Reason(_why_estimators, CODE,
        "the released doubly robust estimator is per-decision IS; the correct one changes the "
        "policy where the other two keep the baseline",
    ),
    why_released=Reason(_why_estimators), unit="mean",
)  # fmt: skip

gridworld(
    "search-hcpi-1-best", "B.2.2, Figure 5c", "δ = 1 gives HCPI its best mean.",
    "smallest lead in mean of δ = 1 over every other δ, averaged over sizes", above(0),
    lambda view, version: _lead_over_lower(view, version, 1), versions=HCPI,
    quote=SAID_COMPROMISE, unit="mean",
)  # fmt: skip

gridworld(
    "search-hcpi-1-unsafe", "B.2.2, Figure 5d",
    "HCPI with δ = 1 is strongly unsafe on small data sets.",
    "lowest 1 %-CVaR of δ = 1 over |D| ≤ 50 (strongly: below −0.25)", below(-0.25),
    lambda view, version: view.lowest(version.at(1), "cvar1", view.sizes(at_most=50)),
    versions=HCPI,
    quote=SAID_COMPROMISE, unit="1 %-CVaR",
)  # fmt: skip

gridworld(
    "search-hcpi-compromise-mean", "B.2.2, Figure 5c",
    "δ = 0.9 is HCPI's best compromise: it gains more than a lower δ.",
    "smallest lead in mean of δ = 0.9 over every lower δ, averaged over sizes", above(0),
    lambda view, version: _lead_over_lower(view, version, 0.9), versions=HCPI,
    quote=SAID_COMPROMISE, unit="mean",
)  # fmt: skip

gridworld(
    "search-hcpi-compromise-tail", "B.2.2, Figure 5d",
    "δ = 0.9 is HCPI's best compromise: it is safer than δ = 1.",
    "1 %-CVaR of δ = 0.9 minus that of δ = 1, averaged over |D| ≤ 50", above(0),
    lambda view, version: view.margin(
        version.at(0.9), [version.at(1)], "cvar1", view.sizes(at_most=50)
    ),
    versions=HCPI,
    quote=SAID_COMPROMISE, unit="1 %-CVaR",
)  # fmt: skip


def _robust_insensitive(view: View, version: Version) -> Interval:
    keys = [key for delta, key in version.columns(view).items() if delta in ROBUST_DELTAS]
    return largest(
        [
            distance(view.at(one, "mean", size), view.at(other, "mean", size))
            for one, other in combinations(keys, 2)
            for size in view.sizes()
        ]
    )


gridworld(
    "search-robust-insensitive", "B.2.3, Figure 6b",
    "Robust MDP does not depend much on its δ.",
    "largest distance between the means of two δ at one size (not much: below 0.1)", below(0.1),
    _robust_insensitive, versions=ROBUST_MDP,
    quote="“the behaviour of the algorithm is not much dependent on δ_rob”", unit="mean",
)  # fmt: skip

gridworld(
    "search-robust-test", "3; B.2.3",
    "The safety test of Robust MDP always fails, which leaves the baseline.",
    "largest distance from the baseline of the mean with the safety test, over sizes",
    below(0.001),
    lambda view: _from_baseline(view.curve("robust-mdp:delta=0.1,safety_test=true", "mean")),
    quote="“it always fall[s] back on the baseline when the dataset is under 50,000 trajectories”",
    unit="mean",
)  # fmt: skip

gridworld(
    "search-ramdp-test", "3; B.2.4",
    "The safety test of RaMDP always fails, which leaves the baseline.",
    "largest distance from the baseline of the mean with the safety test, over sizes",
    below(0.001),
    lambda view: _from_baseline(view.curve("ramdp:kappa=0.003,safety_test=true", "mean")),
    quote="“RaMDP uses a safety test, which fails everytime similarly to that of Robust MDP”",
    unit="mean",
)  # fmt: skip


def _ramdp_best(view: View, version: Version) -> Interval:
    others = [key for key in version.columns(view).values() if key != version.main]
    return view.margin(version.main, others, "mean")


gridworld(
    "search-ramdp-best", "3; B.2.4, Figure 7c", "κ = 0.003 is the best of the search for RaMDP.",
    "smallest lead in mean of κ = 0.003 over every other κ, averaged over sizes", above(0),
    _ramdp_best, versions=RAMDP,
    quote="“In the main text, we only report the best performance we found (δ_hcpi = 0.9, δ_rob "
    "= 0.1, and κ_adj = 0.003)”",
    unit="mean",
)  # fmt: skip


def _lead_over_lower(view: View, version: Version, delta: float) -> Interval:
    """By how much the mean of a δ is above that of every lower one."""
    lower = [key for other, key in version.columns(view).items() if other < delta]
    return view.margin(version.at(delta), lower, "mean")


def _from_baseline(curve: list[Interval]) -> Interval:
    return largest([distance(cell, exact(0)) for cell in curve])
