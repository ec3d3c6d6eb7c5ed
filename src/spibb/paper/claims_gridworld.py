"""What section 3.1 says of the gridworld (Figure 1, Figure 8)."""

from __future__ import annotations

from functools import partial
from itertools import combinations, pairwise

from spibb.paper.claim import above, below, between, claim
from spibb.paper.competitors import (
    BASIC,
    HCPI,
    HCPI_DR,
    RAMDP,
    ROBUST,
    ROBUST_MDP,
    SPIBB,
    Boundary,
    Version,
)
from spibb.paper.evidence import (
    AbsentError,
    View,
    average,
    difference,
    distance,
    exact,
    largest,
    smallest,
)
from spibb.paper.reasons import (
    CODE,
    READING,
    Reason,
    curve_of,
    extremes,
    low_cells,
    numbers,
    on_sizes,
    rises,
)
from spibb.stats import Interval
from spibb.words import short

SAFE = -0.01
"""Safe: not below the baseline by more than 1 % of the way from it to the optimum."""
NEAR_OPTIMAL = 0.9
UNIFORM = 0.0522
"""Performance ρ of the uniform policy: what does worse avoids the goal."""
BOTH = PI_B, PI_LEQ_B = "pi-b", "pi-leq-b"
TEXT = SPIBB[1]
HEAT = "3.1, Figures 1b-c"
MEAN, TAIL = "3.1, Figure 1d", "3.1, Figure 1e"

SAID_HEAT = (
    "“We observe for SPIBB algorithms that the policy improvement is safe (at the slight "
    "exception of Π_b-SPIBB with a low N∧ on 10-trajectory datasets), that the bigger the N∧, "
    "the more conservative SPIBB gets, and that Π_≤b-SPIBB outperforms Π_b-SPIBB.”"
)
SAID_BASIC = (
    "“Basic RL improves the baseline on average, but not monotonically with the size of the "
    "dataset, and remains quite far from optimal … explained by the fairly frequent learning of "
    "catastrophic policies”"
)
SAID_HCPI = (
    "“HCPI is more conservative for small datasets but slightly outperforms Basic RL for bigger "
    "ones, still remaining away from optimal.”"
)
SAID_ROBUST = (
    "“Robust MDPs do even worse than Basic RL; in fact, they learn policies that remain at the "
    "center of the grid … and completely ignore the goal.”"
)
SAID_WINNERS = (
    "“Overall, RaMDP and Π_≤b-SPIBB win this benchmark based on mean performance, with Π_b-SPIBB "
    "not far behind.”"
)
SAID_TWENTY = (
    "“There, the algorithms are more conservative and therefore safe, while still achieving near "
    "optimality on big datasets.”"
)

gridworld = partial(claim, study="gridworld")


def wedge_cells(
    view: View, algorithm: str, version: Boundary = TEXT
) -> dict[tuple[int, int], Interval]:
    """The 1 %-CVaR of an N∧ heat map by (N∧, |D|)."""
    return {
        (n_wedge, size): view.at(key, "cvar1", size)
        for n_wedge, key in version.columns(view, algorithm).items()
        for size in view.sizes()
    }


def wedge_mean(view: View, algorithm: str, version: Boundary = TEXT) -> Interval:
    """The 1 %-CVaR of an algorithm, averaged over its N∧ heat map."""
    return average(list(wedge_cells(view, algorithm, version).values()))


def largest_lead(view: View, column: str, other: str, statistic: str) -> Interval:
    """The largest difference of two columns over sizes."""
    pairs = zip(view.curve(column, statistic), view.curve(other, statistic))
    return largest([difference(own, theirs) for own, theirs in pairs])


def largest_drop(curve: list[Interval]) -> Interval:
    """The largest fall from a size to any larger one."""
    if len(curve) < 2:
        raise AbsentError("second size")
    return largest([difference(before, after) for before, after in combinations(curve, 2)])


def _leq_b_lead(view: View, version: Boundary, statistic: str) -> Interval:
    """By how much Π_≤b leads Π_b with N∧ = 5, averaged over sizes."""
    return view.margin(version.at(PI_LEQ_B, 5), [version.at(PI_B, 5)], statistic)


gridworld(
    "grid-baseline", "3.1", "The baseline's performance is 0.4.",
    "distance of the baseline's exact ρ from 0.4", below(0.005),
    lambda view: distance(exact(view.results.baseline), exact(0.4)),
    quote="“a fixed stochastic policy with a 0.4 performance”", unit="ρ",
)  # fmt: skip

gridworld(
    "grid-optimum", "3.1", "The optimal performance is 0.6.",
    "distance of the exact ρ* from 0.6", below(0.005),
    lambda view: distance(exact(view.results.optimal), exact(0.6)),
    quote="“the optimal policy has a 0.6 performance”", unit="ρ",
)  # fmt: skip


def _why_leq_b_safe(view: View, released: bool) -> str:
    return low_cells(wedge_cells(view, PI_LEQ_B, SPIBB[not released]), SAFE)


gridworld(
    "grid-leq-b-safe", HEAT, "Π_≤b-SPIBB improves safely, whatever N_∧ and |D|.",
    "lowest 1 %-CVaR over all N_∧ and sizes", above(SAFE),
    lambda view, version: smallest(list(wedge_cells(view, PI_LEQ_B, version).values())),
    versions=SPIBB,
    quote=SAID_HEAT, why=Reason(_why_leq_b_safe), unit="1 %-CVaR",
)  # fmt: skip


def _b_safe(view: View, version: Boundary) -> Interval:
    cells = wedge_cells(view, PI_B, version)
    return smallest([cells[n, size] for n, size in cells if n > 10 or size > 10])


def _why_b_safe(view: View, released: bool) -> str:
    cells = wedge_cells(view, PI_B, SPIBB[not released])
    kept = {place: i for place, i in cells.items() if place[0] > 10 or place[1] > 10}
    return low_cells(kept, SAFE) + " (the exception of the paper not counted)"


gridworld(
    "grid-b-safe", HEAT, "Π_b-SPIBB improves safely, except for a low N_∧ on 10 trajectories.",
    "lowest 1 %-CVaR over all N_∧ and sizes but N_∧ ≤ 10 at |D| ≤ 10", above(SAFE),
    _b_safe, versions=SPIBB,
    quote=SAID_HEAT, why=Reason(_why_b_safe), unit="1 %-CVaR",
)  # fmt: skip


def _b_unsafe_low(view: View, version: Boundary) -> Interval:
    keys = version.columns(view, PI_B)
    sizes = view.sizes(at_most=10)
    return smallest([view.at(keys[n], "cvar1", size) for n in keys if n <= 10 for size in sizes])


def _why_b_unsafe(view: View, released: bool) -> str:
    cells = wedge_cells(view, PI_B, SPIBB[not released])
    few = {(n, size): i for (n, size), i in cells.items() if n <= 10 and size <= 10}
    return ", ".join(f"{short(round(i.value, 2))} with N∧ = {n}" for (n, _), i in few.items())


gridworld(
    "grid-b-unsafe-low", HEAT, "Π_b-SPIBB with a low N_∧ is slightly unsafe on 10 trajectories.",
    "lowest 1 %-CVaR over N_∧ ≤ 10 at |D| ≤ 10 (slightly: not below −0.25)", between(-0.25, 0),
    _b_unsafe_low, versions=SPIBB,
    quote=SAID_HEAT, why=Reason(_why_b_unsafe), unit="1 %-CVaR",
)  # fmt: skip

gridworld(
    "grid-conservative", HEAT, "The larger N_∧, the more conservative both SPIBB algorithms.",
    "largest rise of the mean from one N_∧ to the next larger, over sizes and both algorithms",
    below(0.01),
    lambda view, version: largest(
        [
            difference(view.at(more, "mean", size), view.at(less, "mean", size))
            for algorithm in BOTH
            for less, more in pairwise(version.columns(view, algorithm).values())
            for size in view.sizes()
        ]
    ),
    versions=SPIBB,
    quote=SAID_HEAT, unit="mean",
)  # fmt: skip

gridworld(
    "grid-leq-b-beats-b", HEAT, "Π_≤b-SPIBB outperforms Π_b-SPIBB.",
    "1 %-CVaR of Π_≤b minus that of Π_b, averaged over all N_∧ and sizes", above(0),
    lambda view, version: difference(
        wedge_mean(view, PI_LEQ_B, version), wedge_mean(view, PI_B, version)
    ),
    versions=SPIBB,
    quote=SAID_HEAT, unit="1 %-CVaR",
)  # fmt: skip

gridworld(
    "grid-basic-improves", MEAN, "Basic RL improves the baseline on average.",
    "lowest mean over sizes", above(0),
    lambda view: view.lowest(BASIC, "mean"),
    quote=SAID_BASIC, unit="mean",
)  # fmt: skip

gridworld(
    "grid-basic-not-monotone", MEAN, "Basic RL's mean does not rise steadily with |D|.",
    "largest fall of the mean from a size to a larger one", above(0),
    lambda view: largest_drop(view.curve(BASIC, "mean")),
    quote=SAID_BASIC, unit="mean",
)  # fmt: skip

gridworld(
    "grid-basic-catastrophes", MEAN,
    "Basic RL's mean suffers from catastrophic policies, learned fairly often.",
    "lowest 10 %-CVaR of Basic RL over |D| ≥ 100 (fairly often: the worst tenth is below the "
    "baseline)", below(0),
    lambda view: view.lowest(BASIC, "cvar10", view.sizes(at_least=100)),
    quote=SAID_BASIC, unit="10 %-CVaR",
)  # fmt: skip

gridworld(
    "grid-basic-far", MEAN, "Basic RL stays quite far from optimal.",
    "highest mean over sizes (quite far: below 0.9)", below(NEAR_OPTIMAL),
    lambda view: view.highest(BASIC, "mean"),
    quote=SAID_BASIC, unit="mean",
)  # fmt: skip

gridworld(
    "grid-hcpi-small", MEAN, "HCPI is more conservative than Basic RL on small data sets.",
    "mean of HCPI minus that of Basic RL, averaged over |D| ≤ 100", below(0),
    lambda view, version: view.margin(version.main, [BASIC], "mean", view.sizes(at_most=100)),
    versions=HCPI,
    quote=SAID_HCPI, unit="mean",
)  # fmt: skip

gridworld(
    "grid-hcpi-large", MEAN, "HCPI slightly outperforms Basic RL on bigger data sets.",
    "mean of HCPI minus that of Basic RL, averaged over |D| ≥ 1000 (slightly: below 0.25)",
    between(0, 0.25),
    lambda view, version: view.margin(version.main, [BASIC], "mean", view.sizes(at_least=1000)),
    versions=HCPI,
    quote=SAID_HCPI, unit="mean",
)  # fmt: skip


def _why_hcpi_far(view: View, released: bool) -> str:
    curve = curve_of(view, HCPI[not released].main, "mean")
    above = [size for size, interval in curve.items() if interval.value >= 0.9]
    return f"on {numbers(above)} trajectories"


gridworld(
    "grid-hcpi-far", MEAN, "HCPI stays away from optimal.",
    "highest mean over sizes (away: below 0.9)", below(NEAR_OPTIMAL),
    lambda view, version: view.highest(version.main, "mean"), versions=HCPI,
    quote=SAID_HCPI, why=Reason(_why_hcpi_far), unit="mean",
)  # fmt: skip


def _why_robust_mean(view: View, released: bool) -> str:
    return rises(curve_of(view, ROBUST_MDP[not released].main, "mean"), "mean")


gridworld(
    "grid-robust-worse-mean", "3.1, Figure 1d; B.2.3, Figure 6a",
    "Robust MDP does worse than Basic RL in mean.",
    "largest lead in mean of Robust MDP over Basic RL, over sizes", below(0),
    lambda view, version: largest_lead(view, version.main, BASIC, "mean"), versions=ROBUST_MDP,
    quote=SAID_ROBUST, why=Reason(_why_robust_mean), unit="mean",
)  # fmt: skip


def _why_robust_goal(view: View, released: bool) -> str:
    key = ROBUST_MDP[not released].main
    means, tails = curve_of(view, key, "mean"), curve_of(view, key, "cvar10")
    return f"{rises(means, 'mean')}, that of its worst tenth (10 %-CVaR) is {extremes(tails)}"


gridworld(
    "grid-robust-ignores-goal", MEAN,
    "Robust MDP stays where the data are and ignores the goal completely.",
    "mean performance ρ, averaged over sizes (ignores: below the uniform policy's 0.0522)",
    below(UNIFORM),
    lambda view, version: view.results.raw(view.overall(version.main, "mean")), versions=ROBUST_MDP,
    quote=SAID_ROBUST, why=Reason(_why_robust_goal), unit="ρ",
)  # fmt: skip


def _ramdp_high(view: View, version: Version) -> Interval:
    kappas = [kappa for kappa in version.columns(view, least=0) if kappa >= 0.004] or [0.004]
    return view.results.raw(largest([view.overall(version.at(k), "mean") for k in kappas]))


gridworld(
    "grid-ramdp-high", "3.1; B.2.4, Figure 7c",
    "With κ ≥ 0.004, RaMDP is too frightened to go near the goal.",
    "highest over κ ≥ 0.004 of the mean performance ρ, averaged over sizes (too frightened: "
    "below the uniform policy's 0.0522)", below(UNIFORM),
    _ramdp_high, versions=RAMDP,
    quote="“A similar behaviour is observed with RaMDP when its hyper-parameter is set too high "
    "(≥ 0.004).”",
    unit="ρ",
)  # fmt: skip


def _ramdp_low(view: View, version: Version) -> Interval:
    kappas = [kappa for kappa in version.columns(view, least=0) if kappa <= 0.002] or [0.002]
    curves, basic = [view.curve(version.at(k), "mean") for k in kappas], view.curve(BASIC, "mean")
    return largest([distance(a, b) for curve in curves for a, b in zip(curve, basic)])


gridworld(
    "grid-ramdp-low", "3.1; B.2.4, Figure 7a", "With κ ≤ 0.002, RaMDP behaves like Basic RL.",
    "largest distance of its mean from Basic RL's, over κ ≤ 0.002 and sizes (like: below 0.05)",
    below(0.05),
    _ramdp_low, versions=RAMDP,
    quote="“when it is set too low (≤ 0.002), RaMDP behaves like Basic RL”", unit="mean",
)  # fmt: skip

gridworld(
    "grid-ramdp-spot", "3.1, Figure 1d; B.2.4, Figure 7b",
    "In the tight spot κ = 0.003, RaMDP is very efficient.",
    "mean of RaMDP minus that of Basic RL, averaged over sizes (very efficient: above 0.05)",
    above(0.05),
    lambda view, version: view.margin(version.main, [BASIC], "mean"), versions=RAMDP,
    quote="“in the tight spot of 0.003, RaMDP is very efficient”", unit="mean",
)  # fmt: skip

gridworld(
    "grid-ramdp-wins", MEAN, "RaMDP is one of the two winners in mean.",
    "smallest lead in mean of RaMDP (κ = 0.003) over Basic RL, HCPI, Robust MDP and Π_b, "
    "averaged over sizes", above(0),
    lambda view, version: view.margin(
        version.main, [BASIC, HCPI_DR, ROBUST, TEXT.at(PI_B, 5)], "mean"
    ),
    versions=RAMDP,
    quote=SAID_WINNERS, unit="mean",
)  # fmt: skip

gridworld(
    "grid-leq-b-wins", MEAN, "Π_≤b-SPIBB is one of the two winners in mean.",
    "smallest lead in mean of Π_≤b (N_∧ = 5) over Basic RL, HCPI, Robust MDP and Π_b, averaged "
    "over sizes", above(0),
    lambda view, version: view.margin(
        version.at(PI_LEQ_B, 5), [BASIC, HCPI_DR, ROBUST, version.at(PI_B, 5)], "mean"
    ),
    versions=SPIBB,
    quote=SAID_WINNERS, unit="mean",
)  # fmt: skip

gridworld(
    "grid-b-close", MEAN, "Π_b-SPIBB is not far behind the winners in mean.",
    "mean of Π_≤b minus that of Π_b (N_∧ = 5), averaged over sizes (not far: below 0.1)",
    between(0, 0.1),
    lambda view, version: _leq_b_lead(view, version, "mean"), versions=SPIBB,
    quote=SAID_WINNERS, unit="mean",
)  # fmt: skip

gridworld(
    "grid-ramdp-catastrophes", "3.1, Figure 1e; B.2.4, Figures 7b, 7d",
    "RaMDP's good mean hides catastrophic runs on small data sets.",
    "lowest 1 %-CVaR of κ = 0.003 over |D| ≤ 20", below(0),
    lambda view, version: view.lowest(version.main, "cvar1", view.sizes(at_most=20)),
    versions=RAMDP,
    quote="“the very good mean performance of RaMDP hides some catastrophic runs where the "
    "trained policy under-performs for small datasets”",
    unit="1 %-CVaR",
)  # fmt: skip


def _why_leq_b_above(view: View, released: bool) -> str:
    return on_sizes(curve_of(view, SPIBB[not released].at(PI_LEQ_B, 5), "cvar1"), 0.0)


gridworld(
    "grid-leq-b-above", TAIL, "The 1 %-CVaR of Π_≤b-SPIBB stays above the baseline.",
    "lowest 1 %-CVaR of N_∧ = 5 over sizes", above(0),
    lambda view, version: view.lowest(version.at(PI_LEQ_B, 5), "cvar1"), versions=SPIBB,
    quote="“In contrast, Π_≤b-SPIBB's curve remains over the baseline.”",
    why=Reason(_why_leq_b_above), unit="1 %-CVaR",
)  # fmt: skip

gridworld(
    "grid-b-behind", TAIL, "Π_b-SPIBB is a bit behind Π_≤b-SPIBB in 1 %-CVaR.",
    "1 %-CVaR of Π_≤b minus that of Π_b (N_∧ = 5), averaged over sizes (a bit: below 0.25)",
    between(0, 0.25),
    lambda view, version: _leq_b_lead(view, version, "cvar1"), versions=SPIBB,
    quote="“Π_b-SPIBB is again a bit behind.”", unit="1 %-CVaR",
)  # fmt: skip


def _why_hcpi_safe(view: View, released: bool) -> str:
    return on_sizes(curve_of(view, HCPI[not released].main, "cvar1"), -0.1)


gridworld(
    "grid-hcpi-near-safe", TAIL, "HCPI is near safe.",
    "lowest 1 %-CVaR over sizes (near: above −0.1)", above(-0.1),
    lambda view, version: view.lowest(version.main, "cvar1"), versions=HCPI,
    quote="“HCPI also proves to be near safe.”",
    why=Reason(_why_hcpi_safe, CODE,
        "the correct estimator finds more to change",
    ),
    why_released=Reason(_why_hcpi_safe), unit="1 %-CVaR",
)  # fmt: skip


def _why_robust_tail(view: View, released: bool) -> str:
    return rises(curve_of(view, ROBUST_MDP[not released].main, "cvar1"), "1 %-CVaR")


gridworld(
    "grid-robust-off", "3.1, Figure 1e; B.2.3, Figure 6a",
    "Robust MDP's 1 %-CVaR is too bad to show on the graph.",
    "highest 1 %-CVaR over sizes (off the graph: below −1)", below(-1),
    lambda view, version: view.highest(version.main, "cvar1"), versions=ROBUST_MDP,
    quote="“its curve does not even show on the graph”", why=Reason(_why_robust_tail, CODE),
    why_released=Reason(None, READING,
        "the sentence does not say where the graph ends; −1 is our guess",
    ),
    unit="1 %-CVaR",
)  # fmt: skip

gridworld(
    "grid-basic-poor", TAIL, "Basic RL does poorly, at times even on very large data sets.",
    "lowest 1 %-CVaR of Basic RL over |D| ≥ 1000", below(0),
    lambda view: view.lowest(BASIC, "cvar1", view.sizes(at_least=1000)),
    quote="“explain why it does so poorly, even at times on very large datasets”", unit="1 %-CVaR",
)  # fmt: skip


def _why_twenty_safe(view: View, released: bool) -> str:
    curves = [curve_of(view, SPIBB[not released].at(name, 20), "cvar1") for name in BOTH]
    worst = {n: min((c[n] for c in curves), key=lambda i: i.value) for n in curves[0]}
    return on_sizes(worst, SAFE)


gridworld(
    "grid-20-safe", "3.1, Figure 1f", "With N_∧ = 20, both SPIBB algorithms are safe.",
    "lowest 1 %-CVaR of both over sizes", above(SAFE),
    lambda view, version: smallest(
        [i for name in BOTH for i in view.curve(version.at(name, 20), "cvar1")]
    ),
    versions=SPIBB,
    quote=SAID_TWENTY, why=Reason(_why_twenty_safe), unit="1 %-CVaR",
)  # fmt: skip

gridworld(
    "grid-20-conservative", "3.1, Figure 1f",
    "With N_∧ = 20, both SPIBB algorithms are more conservative than with 5.",
    "smallest loss in mean from N_∧ = 5 to 20, averaged over sizes, of both algorithms", above(0),
    lambda view, version: smallest(
        [view.margin(version.at(name, 5), [version.at(name, 20)], "mean") for name in BOTH]
    ),
    versions=SPIBB,
    quote=SAID_TWENTY, unit="mean",
)  # fmt: skip

gridworld(
    "grid-20-near-optimal", "3.1, Figure 1f",
    "With N_∧ = 20, both SPIBB algorithms are near optimal on big data sets.",
    "lowest mean of both over |D| ≥ 2000 (near: above 0.9)", above(NEAR_OPTIMAL),
    lambda view, version: smallest(
        [
            i for name in BOTH
            for i in view.curve(version.at(name, 20), "mean", view.sizes(at_least=2000))
        ]
    ),
    versions=SPIBB,
    quote=SAID_TWENTY, unit="mean",
)  # fmt: skip

gridworld(
    "grid-robust-worse-tail", "B.2.3, Figure 6a",
    "Robust MDP does worse than Basic RL in CVaR too.",
    "largest lead in 1 %-CVaR of Robust MDP over Basic RL, over sizes", below(0),
    lambda view, version: largest_lead(view, version.main, BASIC, "cvar1"), versions=ROBUST_MDP,
    quote="“worse tha[n] the policy trained with Basic RL on mean and also on CVaR. 1%-CVaR even "
    "falls down out of the figure.”",
    why=Reason(_why_robust_tail), unit="1 %-CVaR",
)  # fmt: skip
