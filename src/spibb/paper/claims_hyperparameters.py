"""What section 3 and appendix B.2 say of the competitors and their hyper-parameters (gridworld)."""

from __future__ import annotations

from functools import partial
from itertools import combinations

from spibb.experiments.finite import ROBUST_DELTAS
from spibb.paper.claim import HCPI, RAMDP, ROBUST_VERSIONS, Keys, above, below, claim
from spibb.paper.evidence import View, average, difference, distance, largest, smallest
from spibb.stats import Interval

gridworld = partial(claim, study="gridworld")


@gridworld(
    "search-optimistic-awful", "B.2.1",
    "Basic RL that starts from optimistic values performs awfully.",
    "highest mean over sizes (awful: below the baseline)", below(0),
)  # fmt: skip
def _optimistic_awful(view: View) -> Interval:
    return largest(view.curve("basic-rl:unseen=optimistic", "mean"))


@gridworld(
    "search-hcpi-estimators", "B.2.2, Figures 5a-b",
    "The three estimators of HCPI behave more or less the same.",
    "largest distance between their means, over sizes, with δ = 0.1 and 0.9 (more or less the "
    "same: below 0.1)", below(0.1), versions=HCPI,
)  # fmt: skip
def _hcpi_estimators(view: View, key: Keys) -> Interval:
    gaps = []
    for delta in (0.1, 0.9):
        curves = [
            view.curve(key(delta).replace("=dr", f"={name}"), "mean")
            for name in ("is", "pdis", "dr")
        ]
        gaps += [
            distance(a, b) for one, other in combinations(curves, 2) for a, b in zip(one, other)
        ]
    return largest(gaps)


@gridworld(
    "search-hcpi-1-best", "B.2.2, Figure 5c", "δ = 1 gives HCPI its best mean.",
    "smallest lead in mean of δ = 1 over every other δ, averaged over sizes", above(0),
    versions=HCPI,
)  # fmt: skip
def _hcpi_1_best(view: View, key: Keys) -> Interval:
    return view.margin(key(1), [key(d) for d in _deltas(view, key) if d < 1], "mean")


@gridworld(
    "search-hcpi-1-unsafe", "B.2.2, Figure 5d",
    "HCPI with δ = 1 is strongly unsafe on small data sets.",
    "lowest 1 %-CVaR of δ = 1 over |D| ≤ 50 (strongly: below −0.25)", below(-0.25), versions=HCPI,
)  # fmt: skip
def _hcpi_1_unsafe(view: View, key: Keys) -> Interval:
    return smallest(view.curve(key(1), "cvar1", view.sizes(at_most=50)))


@gridworld(
    "search-hcpi-compromise-mean", "B.2.2, Figure 5c",
    "δ = 0.9 is HCPI's best compromise: it gains more than a lower δ.",
    "smallest lead in mean of δ = 0.9 over every lower δ, averaged over sizes", above(0),
    versions=HCPI,
)  # fmt: skip
def _hcpi_compromise_mean(view: View, key: Keys) -> Interval:
    return view.margin(key(0.9), [key(d) for d in _deltas(view, key) if d < 0.9], "mean")


@gridworld(
    "search-hcpi-compromise-tail", "B.2.2, Figure 5d",
    "δ = 0.9 is HCPI's best compromise: it is safer than δ = 1.",
    "1 %-CVaR of δ = 0.9 minus that of δ = 1, averaged over |D| ≤ 50", above(0), versions=HCPI,
)  # fmt: skip
def _hcpi_compromise_tail(view: View, key: Keys) -> Interval:
    sizes = view.sizes(at_most=50)
    chosen, bold = (average(view.curve(key(d), "cvar1", sizes)) for d in (0.9, 1))
    return difference(chosen, bold)


@gridworld(
    "search-robust-insensitive", "B.2.3, Figure 6b",
    "Robust MDP does not depend much on its δ.",
    "largest distance between the means of two δ at one size (not much: below 0.1)", below(0.1),
    versions=ROBUST_VERSIONS,
)  # fmt: skip
def _robust_insensitive(view: View, key: Keys) -> Interval:
    found = view.keys("robust-mdp", "delta", safety_test=False, **_version(key))
    keys = [column for delta, column in found.items() if delta in ROBUST_DELTAS]
    return largest(
        [
            distance(view.at(one, "mean", size), view.at(other, "mean", size))
            for one, other in combinations(keys, 2)
            for size in view.sizes()
        ]
    )


@gridworld(
    "search-robust-test", "3; B.2.3",
    "The safety test of Robust MDP always fails, which leaves the baseline.",
    "largest distance from the baseline of the mean with the safety test, over sizes",
    below(0.001),
)  # fmt: skip
def _robust_test(view: View) -> Interval:
    return _from_baseline(view.curve("robust-mdp:delta=0.1,safety_test=true", "mean"))


@gridworld(
    "search-ramdp-test", "3; B.2.4",
    "The safety test of RaMDP always fails, which leaves the baseline.",
    "largest distance from the baseline of the mean with the safety test, over sizes",
    below(0.001),
)  # fmt: skip
def _ramdp_test(view: View) -> Interval:
    return _from_baseline(view.curve("ramdp:kappa=0.003,safety_test=true", "mean"))


@gridworld(
    "search-ramdp-best", "3; B.2.4, Figure 7c", "κ = 0.003 is the best of the search for RaMDP.",
    "smallest lead in mean of κ = 0.003 over every other κ, averaged over sizes", above(0),
    versions=RAMDP,
)  # fmt: skip
def _ramdp_best(view: View, key: Keys) -> Interval:
    found = view.keys("ramdp", "kappa", **_version(key))
    others = [k for k in found.values() if k != key(0.003)]
    return view.margin(key(0.003), others, "mean")


def _deltas(view: View, key: Keys) -> list[float]:
    """The δ of HCPI in the results, for this version."""
    return list(view.keys("hcpi", "delta", estimator="dr", **_version(key)))


def _version(key: Keys) -> dict[str, bool]:
    """The option that tells a version as released from the correct one."""
    return {"released": True} if "released" in key(1) else {}


def _from_baseline(curve: list[Interval]) -> Interval:
    return largest([distance(cell, Interval(0, 0, 0)) for cell in curve])
