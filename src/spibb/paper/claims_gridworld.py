"""What section 3.1 says of the gridworld (Figure 1, Figure 8)."""

from __future__ import annotations

from functools import partial
from itertools import combinations, pairwise

from spibb.paper.claim import (
    HCPI,
    RAMDP,
    ROBUST_VERSIONS,
    Keys,
    above,
    below,
    between,
    claim,
    robust_key,
)
from spibb.paper.evidence import (
    View,
    average,
    difference,
    distance,
    largest,
    negative,
    smallest,
)
from spibb.stats import Interval

SAFE = -0.01
"""Safe: not below the baseline by more than 1 % of the way from it to the optimum."""
NEAR_OPTIMAL = 0.9
UNIFORM = 0.0522
"""Performance ρ of the uniform policy: what does worse avoids the goal."""
BASIC, ROBUST, HCPI_DR = (
    "basic-rl",
    "robust-mdp:delta=0.1,safety_test=false",
    "hcpi:delta=0.9,estimator=dr",
)
PI_B, PI_LEQ_B = "pi-b:n_wedge=5", "pi-leq-b:n_wedge=5"
HEAT = "3.1, Figures 1b-c"
MEAN, TAIL = "3.1, Figure 1d", "3.1, Figure 1e"

gridworld = partial(claim, study="gridworld")


def wedge_cells(view: View, algorithm: str, statistic: str) -> dict[tuple[float, int], Interval]:
    """The cells of an N∧ heat map by (N∧, |D|)."""
    return {
        (n_wedge, size): view.at(key, statistic, size)
        for n_wedge, key in view.keys(algorithm, "n_wedge").items()
        for size in view.sizes()
    }


def largest_drop(curve: list[Interval]) -> Interval:
    """The largest fall from a size to any larger one."""
    return largest([difference(before, after) for before, after in combinations(curve, 2)])


@gridworld(
    "grid-baseline", "3.1", "The baseline's performance is 0.4.",
    "distance of the baseline's exact ρ from 0.4", below(0.005),
)  # fmt: skip
def _baseline(view: View) -> Interval:
    gap = abs(view.results.baseline - 0.4)
    return Interval(gap, gap, gap)


@gridworld(
    "grid-optimum", "3.1", "The optimal performance is 0.6.",
    "distance of the exact ρ* from 0.6", below(0.005),
)  # fmt: skip
def _optimum(view: View) -> Interval:
    gap = abs(view.results.optimal - 0.6)
    return Interval(gap, gap, gap)


@gridworld(
    "grid-leq-b-safe", HEAT, "Π_≤b-SPIBB improves safely, whatever N_∧ and |D|.",
    "lowest 1 %-CVaR over all N_∧ and sizes", above(SAFE),
)  # fmt: skip
def _leq_b_safe(view: View) -> Interval:
    return smallest(list(wedge_cells(view, "pi-leq-b", "cvar1").values()))


@gridworld(
    "grid-b-safe", HEAT, "Π_b-SPIBB improves safely, except for a low N_∧ on 10 trajectories.",
    "lowest 1 %-CVaR over all N_∧ and sizes but N_∧ ≤ 10 at |D| ≤ 10", above(SAFE),
)  # fmt: skip
def _b_safe(view: View) -> Interval:
    cells = wedge_cells(view, "pi-b", "cvar1")
    return smallest([cells[n, size] for n, size in cells if n > 10 or size > 10])


@gridworld(
    "grid-b-unsafe-low", HEAT, "Π_b-SPIBB with a low N_∧ is slightly unsafe on 10 trajectories.",
    "lowest 1 %-CVaR over N_∧ ≤ 10 at |D| ≤ 10 (slightly: not below −0.25)", between(-0.25, 0),
)  # fmt: skip
def _b_unsafe_low(view: View) -> Interval:
    keys = view.keys("pi-b", "n_wedge")
    sizes = view.sizes(at_most=10)
    return smallest([view.at(keys[n], "cvar1", size) for n in keys if n <= 10 for size in sizes])


@gridworld(
    "grid-conservative", HEAT, "The larger N_∧, the more conservative both SPIBB algorithms.",
    "largest rise of the mean from one N_∧ to the next larger, over sizes and both algorithms",
    below(0.01),
)  # fmt: skip
def _conservative(view: View) -> Interval:
    return largest(
        [
            difference(view.at(more, "mean", size), view.at(less, "mean", size))
            for algorithm in ("pi-b", "pi-leq-b")
            for less, more in pairwise(view.keys(algorithm, "n_wedge").values())
            for size in view.sizes()
        ]
    )


@gridworld(
    "grid-leq-b-beats-b", HEAT, "Π_≤b-SPIBB outperforms Π_b-SPIBB.",
    "1 %-CVaR of Π_≤b minus that of Π_b, averaged over all N_∧ and sizes", above(0),
)  # fmt: skip
def _leq_b_beats_b(view: View) -> Interval:
    leq_b, b = (wedge_cells(view, name, "cvar1") for name in ("pi-leq-b", "pi-b"))
    return difference(average(list(leq_b.values())), average(list(b.values())))


@gridworld(
    "grid-basic-improves", MEAN, "Basic RL improves the baseline on average.",
    "lowest mean over sizes", above(0),
)  # fmt: skip
def _basic_improves(view: View) -> Interval:
    return smallest(view.curve(BASIC, "mean"))


@gridworld(
    "grid-basic-not-monotone", MEAN, "Basic RL's mean does not rise steadily with |D|.",
    "largest fall of the mean from a size to a larger one", above(0),
)  # fmt: skip
def _basic_not_monotone(view: View) -> Interval:
    return largest_drop(view.curve(BASIC, "mean"))


@gridworld(
    "grid-basic-catastrophes", MEAN,
    "Basic RL's mean suffers from catastrophic policies, learned fairly often.",
    "lowest 10 %-CVaR of Basic RL over |D| ≥ 100 (fairly often: the worst tenth is below the "
    "baseline)", below(0),
)  # fmt: skip
def _basic_catastrophes(view: View) -> Interval:
    return smallest(view.curve(BASIC, "cvar10", view.sizes(at_least=100)))


@gridworld(
    "grid-basic-far", MEAN, "Basic RL stays quite far from optimal.",
    "highest mean over sizes (quite far: below 0.9)", below(NEAR_OPTIMAL),
)  # fmt: skip
def _basic_far(view: View) -> Interval:
    return largest(view.curve(BASIC, "mean"))


@gridworld(
    "grid-hcpi-small", MEAN, "HCPI is more conservative than Basic RL on small data sets.",
    "mean of HCPI minus that of Basic RL, averaged over |D| ≤ 100", below(0), versions=HCPI,
)  # fmt: skip
def _hcpi_small(view: View, key: Keys) -> Interval:
    sizes = view.sizes(at_most=100)
    own, basic = (average(view.curve(c, "mean", sizes)) for c in (key(0.9), BASIC))
    return difference(own, basic)


@gridworld(
    "grid-hcpi-large", MEAN, "HCPI slightly outperforms Basic RL on bigger data sets.",
    "mean of HCPI minus that of Basic RL, averaged over |D| ≥ 1000 (slightly: below 0.25)",
    between(0, 0.25), versions=HCPI,
)  # fmt: skip
def _hcpi_large(view: View, key: Keys) -> Interval:
    sizes = view.sizes(at_least=1000)
    own, basic = (average(view.curve(c, "mean", sizes)) for c in (key(0.9), BASIC))
    return difference(own, basic)


@gridworld(
    "grid-hcpi-far", MEAN, "HCPI stays away from optimal.",
    "highest mean over sizes (away: below 0.9)", below(NEAR_OPTIMAL), versions=HCPI,
)  # fmt: skip
def _hcpi_far(view: View, key: Keys) -> Interval:
    return largest(view.curve(key(0.9), "mean"))


@gridworld(
    "grid-robust-worse-mean", "3.1, Figure 1d; B.2.3, Figure 6a",
    "Robust MDP does worse than Basic RL in mean.",
    "largest lead in mean of Robust MDP over Basic RL, over sizes", below(0),
    versions=ROBUST_VERSIONS,
)  # fmt: skip
def _robust_worse_mean(view: View, key: Keys) -> Interval:
    pairs = zip(view.curve(robust_key(key), "mean"), view.curve(BASIC, "mean"))
    return largest([difference(robust, basic) for robust, basic in pairs])


@gridworld(
    "grid-robust-ignores-goal", MEAN,
    "Robust MDP stays where the data are and ignores the goal completely.",
    "mean performance ρ, averaged over sizes (ignores: below the uniform policy's 0.0522)",
    below(UNIFORM), versions=ROBUST_VERSIONS,
)  # fmt: skip
def _robust_ignores_goal(view: View, key: Keys) -> Interval:
    return view.results.raw(view.overall(robust_key(key), "mean"))


@gridworld(
    "grid-ramdp-high", "3.1, Figure 1d; B.2.4, Figures 7c-d",
    "With κ ≥ 0.004, RaMDP is too frightened to go near the goal.",
    "highest over κ ≥ 0.004 of the mean performance ρ, averaged over sizes (too frightened: "
    "below the uniform policy's 0.0522)", below(UNIFORM), versions=RAMDP,
)  # fmt: skip
def _ramdp_high(view: View, key: Keys) -> Interval:
    keys = [key(kappa) for kappa in _kappas(view, key) if kappa >= 0.004] or [key(0.004)]
    return view.results.raw(largest([view.overall(k, "mean") for k in keys]))


@gridworld(
    "grid-ramdp-low", "3.1; B.2.4, Figure 7a", "With κ ≤ 0.002, RaMDP behaves like Basic RL.",
    "largest distance of its mean from Basic RL's, over κ ≤ 0.002 and sizes (like: below 0.05)",
    below(0.05), versions=RAMDP,
)  # fmt: skip
def _ramdp_low(view: View, key: Keys) -> Interval:
    keys = [key(kappa) for kappa in _kappas(view, key) if kappa <= 0.002] or [key(0.002)]
    basic = view.curve(BASIC, "mean")
    return largest([distance(a, b) for k in keys for a, b in zip(view.curve(k, "mean"), basic)])


@gridworld(
    "grid-ramdp-spot", "3.1, Figure 1d; B.2.4, Figure 7b",
    "In the tight spot κ = 0.003, RaMDP is very efficient.",
    "mean of RaMDP minus that of Basic RL, averaged over sizes (very efficient: above 0.05)",
    above(0.05), versions=RAMDP,
)  # fmt: skip
def _ramdp_spot(view: View, key: Keys) -> Interval:
    return view.margin(key(0.003), [BASIC], "mean")


@gridworld(
    "grid-ramdp-wins", MEAN, "RaMDP is one of the two winners in mean.",
    "smallest lead in mean of RaMDP (κ = 0.003) over Basic RL, HCPI, Robust MDP and Π_b, "
    "averaged over sizes", above(0), versions=RAMDP,
)  # fmt: skip
def _ramdp_wins(view: View, key: Keys) -> Interval:
    return view.margin(key(0.003), [BASIC, HCPI_DR, ROBUST, PI_B], "mean")


@gridworld(
    "grid-leq-b-wins", MEAN, "Π_≤b-SPIBB is one of the two winners in mean.",
    "smallest lead in mean of Π_≤b (N_∧ = 5) over Basic RL, HCPI, Robust MDP and Π_b, averaged "
    "over sizes", above(0),
)  # fmt: skip
def _leq_b_wins(view: View) -> Interval:
    return view.margin(PI_LEQ_B, [BASIC, HCPI_DR, ROBUST, PI_B], "mean")


@gridworld(
    "grid-b-close", MEAN, "Π_b-SPIBB is not far behind the winners in mean.",
    "mean of Π_≤b minus that of Π_b (N_∧ = 5), averaged over sizes (not far: below 0.1)",
    between(0, 0.1),
)  # fmt: skip
def _b_close(view: View) -> Interval:
    return view.margin(PI_LEQ_B, [PI_B], "mean")


@gridworld(
    "grid-ramdp-catastrophes", "3.1, Figure 1e; B.2.4, Figures 7b, 7d",
    "RaMDP's good mean hides catastrophic runs on small data sets.",
    "lowest 1 %-CVaR of κ = 0.003 over |D| ≤ 20", below(0), versions=RAMDP,
)  # fmt: skip
def _ramdp_catastrophes(view: View, key: Keys) -> Interval:
    return smallest(view.curve(key(0.003), "cvar1", view.sizes(at_most=20)))


@gridworld(
    "grid-leq-b-above", TAIL, "The 1 %-CVaR of Π_≤b-SPIBB stays above the baseline.",
    "lowest 1 %-CVaR of N_∧ = 5 over sizes", above(0),
)  # fmt: skip
def _leq_b_above(view: View) -> Interval:
    return smallest(view.curve(PI_LEQ_B, "cvar1"))


@gridworld(
    "grid-b-behind", TAIL, "Π_b-SPIBB is a bit behind Π_≤b-SPIBB in 1 %-CVaR.",
    "1 %-CVaR of Π_≤b minus that of Π_b (N_∧ = 5), averaged over sizes (a bit: below 0.25)",
    between(0, 0.25),
)  # fmt: skip
def _b_behind(view: View) -> Interval:
    return view.margin(PI_LEQ_B, [PI_B], "cvar1")


@gridworld(
    "grid-hcpi-near-safe", TAIL, "HCPI is near safe.",
    "lowest 1 %-CVaR over sizes (near: above −0.1)", above(-0.1), versions=HCPI,
)  # fmt: skip
def _hcpi_near_safe(view: View, key: Keys) -> Interval:
    return smallest(view.curve(key(0.9), "cvar1"))


@gridworld(
    "grid-robust-off", "3.1, Figure 1e; B.2.3, Figure 6a",
    "Robust MDP's 1 %-CVaR is too bad to show on the graph.",
    "highest 1 %-CVaR over sizes (off the graph: below −1)", below(-1),
    versions=ROBUST_VERSIONS,
)  # fmt: skip
def _robust_off(view: View, key: Keys) -> Interval:
    return largest(view.curve(robust_key(key), "cvar1"))


@gridworld(
    "grid-basic-poor", TAIL, "Basic RL does poorly, at times even on very large data sets.",
    "lowest 1 %-CVaR of Basic RL over |D| ≥ 1000", below(0),
)  # fmt: skip
def _basic_poor(view: View) -> Interval:
    return smallest(view.curve(BASIC, "cvar1", view.sizes(at_least=1000)))


@gridworld(
    "grid-20-safe", "3.1, Figure 1f", "With N_∧ = 20, both SPIBB algorithms are safe.",
    "lowest 1 %-CVaR of both over sizes", above(SAFE),
)  # fmt: skip
def _wedge_20_safe(view: View) -> Interval:
    return smallest([i for key in _wedge_20() for i in view.curve(key, "cvar1")])


@gridworld(
    "grid-20-conservative", "3.1, Figure 1f",
    "With N_∧ = 20, both SPIBB algorithms are more conservative than with 5.",
    "smallest loss in mean from N_∧ = 5 to 20, averaged over sizes, of both algorithms", above(0),
)  # fmt: skip
def _wedge_20_conservative(view: View) -> Interval:
    return smallest(
        [view.margin(few, [many], "mean") for few, many in zip((PI_B, PI_LEQ_B), _wedge_20())]
    )


@gridworld(
    "grid-20-near-optimal", "3.1, Figure 1f",
    "With N_∧ = 20, both SPIBB algorithms are near optimal on big data sets.",
    "lowest mean of both over |D| ≥ 2000 (near: above 0.9)", above(NEAR_OPTIMAL),
)  # fmt: skip
def _wedge_20_near_optimal(view: View) -> Interval:
    sizes = view.sizes(at_least=2000)
    return smallest([i for key in _wedge_20() for i in view.curve(key, "mean", sizes)])


@gridworld(
    "grid-robust-worse-tail", "B.2.3, Figure 6a",
    "Robust MDP does worse than Basic RL in CVaR too.",
    "largest lead in 1 %-CVaR of Robust MDP over Basic RL, over sizes", below(0),
    versions=ROBUST_VERSIONS,
)  # fmt: skip
def _robust_worse_tail(view: View, key: Keys) -> Interval:
    pairs = zip(view.curve(robust_key(key), "cvar1"), view.curve(BASIC, "cvar1"))
    return negative(smallest([difference(basic, robust) for robust, basic in pairs]))


def _wedge_20() -> tuple[str, str]:
    return "pi-b:n_wedge=20", "pi-leq-b:n_wedge=20"


def _kappas(view: View, key: Keys) -> list[float]:
    """The κ whose columns of this version are in the results."""
    present = {column.key: column for column in view.results.experiment.columns}
    kappas = {dict(c.options)["kappa"] for c in present.values() if c.algorithm == "ramdp"}
    return sorted(float(kappa) for kappa in kappas if key(float(kappa)) in present)
