"""What section 3.3 and appendix B.2 say of the random MDPs (Figures 3, 7e-f, 10 and 11)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from spibb.paper.claim import above, below, between, claim
from spibb.paper.claims_gridworld import SAFE
from spibb.paper.competitors import BASIC, HCPI, HCPI_DR, RAMDP, ROBUST, ROBUST_MDP, Version
from spibb.paper.evidence import View, average, difference, largest, share_below, smallest
from spibb.paper.reasons import READING, Reason, behind, curve_of, numbers, on_sizes
from spibb.stats import Interval

PI_B, PI_LEQ_B = "pi-b:n_wedge=10", "pi-leq-b:n_wedge=10"
CONSERVATIVE = [HCPI_DR, ROBUST, PI_B, PI_LEQ_B]
BAD, GOOD = 0.1, 0.9
"""η of the bad and of the very good baseline."""
AT_BAD, AT_GOOD, TAIL = "3.3, Figure 3a", "3.3, Figure 3b", "3.3, Figure 3c"
WEDGES = "3.3, Figure 3f"

SAID_BAD = (
    "“Basic RL and RaMDP dominate the benchmark in mean, but also in safety (not shown). SPIBB "
    "algorithms are too conservative for small datasets but catch up on the bigger ones.”"
)
SAID_PODIUM = (
    "“On average, the podium is composed by Π_≤b-SPIBB, RaMDP, Π_b-SPIBB, followed closely by "
    "Basic RL.”"
)
SAID_TAIL = (
    "“all fail to be safe but the SPIBB algorithms. Note that a −0.5 normalized performance is "
    "still a good performance”"
)
SAID_MAP = (
    "“the former is unsafe in a large area of the map (where it is red, for high η or small "
    "datasets), while the latter is safe everywhere”"
)
SAID_STAINS = (
    "“the algorithm becomes slightly unsafe when N∧ gets too low. As it increases, the red "
    "stains disappear meaning that it becomes completely safe. The green sections show that it "
    "still allows for some policy improvement.”"
)

random_mdps = partial(claim, study="random-mdps")


def _why_bad_easy(view: View, released: bool) -> str:
    return on_sizes(curve_of(view, BASIC, "cvar1", BAD), SAFE)


random_mdps(
    "mdps-bad-easy", "3.3, Figure 11a", "With η = 0.1, Basic RL improves the baseline safely.",
    "lowest 1 %-CVaR of Basic RL over sizes", above(SAFE),
    lambda view: view.lowest(BASIC, "cvar1", eta=BAD),
    quote="“Since, the baseline is bad, it is an easy task to safely improve it.”",
    why=Reason(_why_bad_easy, READING,
        "the sentence names neither Basic RL nor all sizes; both are our test",
    ),
    unit="1 %-CVaR",
)  # fmt: skip

random_mdps(
    "mdps-bad-basic-mean", AT_BAD, "With η = 0.1, Basic RL dominates in mean.",
    "smallest lead in mean over HCPI, Robust MDP, Π_b and Π_≤b (N_∧ = 10), averaged over sizes",
    above(0),
    lambda view: view.margin(BASIC, CONSERVATIVE, "mean", eta=BAD),
    quote=SAID_BAD, unit="mean",
)  # fmt: skip

random_mdps(
    "mdps-bad-ramdp-mean", AT_BAD, "With η = 0.1, RaMDP dominates in mean.",
    "smallest lead in mean over HCPI, Robust MDP, Π_b and Π_≤b (N_∧ = 10), averaged over sizes",
    above(0),
    lambda view, version: view.margin(version.main, CONSERVATIVE, "mean", eta=BAD), versions=RAMDP,
    quote=SAID_BAD, unit="mean",
)  # fmt: skip


def _worst_rival(view: View, column: str, others: Sequence[str], eta: float) -> str:
    """The column with the highest average 1 %-CVaR, and how often this one is behind it."""
    best = max(others, key=lambda key: view.overall(key, "cvar1", eta=eta).value)
    names = {PI_B: "Π_b (N∧ = 10)", PI_LEQ_B: "Π_≤b (N∧ = 10)", ROBUST: "Robust MDP"}
    return f"behind {names.get(best, best)} {behind(view, column, best, 'cvar1', eta)}"


def _why_bad_basic(view: View, released: bool) -> str:
    return "Basic RL is " + _worst_rival(view, BASIC, CONSERVATIVE, BAD)


random_mdps(
    "mdps-bad-basic-tail", "3.3, Figure 11a", "With η = 0.1, Basic RL dominates in safety too.",
    "smallest lead in 1 %-CVaR over HCPI, Robust MDP, Π_b and Π_≤b (N_∧ = 10), averaged over "
    "sizes", above(0),
    lambda view: view.margin(BASIC, CONSERVATIVE, "cvar1", eta=BAD),
    quote=SAID_BAD, why=Reason(_why_bad_basic), unit="1 %-CVaR",
)  # fmt: skip


def _why_bad_ramdp(view: View, released: bool) -> str:
    return "RaMDP is " + _worst_rival(view, RAMDP[not released].main, CONSERVATIVE, BAD)


random_mdps(
    "mdps-bad-ramdp-tail", "3.3, Figure 11a", "With η = 0.1, RaMDP dominates in safety too.",
    "smallest lead in 1 %-CVaR over HCPI, Robust MDP, Π_b and Π_≤b (N_∧ = 10), averaged over "
    "sizes", above(0),
    lambda view, version: view.margin(version.main, CONSERVATIVE, "cvar1", eta=BAD), versions=RAMDP,
    quote=SAID_BAD, why=Reason(_why_bad_ramdp), unit="1 %-CVaR",
)  # fmt: skip

random_mdps(
    "mdps-bad-spibb-small", AT_BAD,
    "With η = 0.1, the SPIBB algorithms are too conservative on small data sets.",
    "larger lead in mean of Π_b and Π_≤b (N_∧ = 10) over Basic RL, averaged over |D| ≤ 50 (too "
    "conservative: below −0.1)", below(-0.1),
    lambda view: largest(_leads(view, view.sizes(at_most=50))),
    quote=SAID_BAD, unit="mean",
)  # fmt: skip

random_mdps(
    "mdps-bad-spibb-large", AT_BAD,
    "With η = 0.1, the SPIBB algorithms catch up on the bigger data sets.",
    "smaller lead in mean of Π_b and Π_≤b (N_∧ = 10) over Basic RL at the largest size, if that "
    "is 1000 or more (caught up: above −0.05)", above(-0.05),
    lambda view: smallest(_leads(view, view.sizes(at_least=1000)[-1:])),
    quote=SAID_BAD, unit="mean",
)  # fmt: skip

random_mdps(
    "mdps-good-leq-b-first", AT_GOOD, "With η = 0.9, Π_≤b-SPIBB has the best mean.",
    "smallest lead in mean over Basic RL, HCPI, Robust MDP and Π_b (N_∧ = 10), averaged over "
    "sizes", above(0),
    lambda view: view.margin(PI_LEQ_B, [BASIC, HCPI_DR, ROBUST, PI_B], "mean", eta=GOOD),
    quote=SAID_PODIUM, unit="mean",
)  # fmt: skip

random_mdps(
    "mdps-good-over-ramdp", AT_GOOD, "With η = 0.9, Π_≤b-SPIBB is ahead of RaMDP in mean.",
    "mean of Π_≤b (N_∧ = 10) minus that of RaMDP (κ = 0.003), averaged over sizes", above(0),
    lambda view, version: view.margin(PI_LEQ_B, [version.main], "mean", eta=GOOD), versions=RAMDP,
    quote=SAID_PODIUM, unit="mean",
)  # fmt: skip

random_mdps(
    "mdps-good-ramdp-second", AT_GOOD, "With η = 0.9, RaMDP is ahead of Π_b-SPIBB in mean.",
    "mean of RaMDP (κ = 0.003) minus that of Π_b (N_∧ = 10), averaged over sizes", above(0),
    lambda view, version: view.margin(version.main, [PI_B], "mean", eta=GOOD), versions=RAMDP,
    quote=SAID_PODIUM, unit="mean",
)  # fmt: skip

random_mdps(
    "mdps-good-basic-close", AT_GOOD,
    "With η = 0.9, Basic RL follows Π_b-SPIBB closely in mean.",
    "mean of Π_b (N_∧ = 10) minus that of Basic RL, averaged over sizes (closely: below 0.25)",
    between(0, 0.25),
    lambda view: view.margin(PI_B, [BASIC], "mean", eta=GOOD),
    quote=SAID_PODIUM, unit="mean",
)  # fmt: skip

random_mdps(
    "mdps-good-basic-unsafe", TAIL, "With η = 0.9, Basic RL fails to be safe.",
    "lowest 1 %-CVaR over sizes", below(SAFE),
    lambda view: view.lowest(BASIC, "cvar1", eta=GOOD),
    quote=SAID_TAIL, unit="1 %-CVaR",
)  # fmt: skip

random_mdps(
    "mdps-good-ramdp-unsafe", TAIL, "With η = 0.9, RaMDP fails to be safe.",
    "lowest 1 %-CVaR of κ = 0.003 over sizes", below(SAFE),
    lambda view, version: view.lowest(version.main, "cvar1", eta=GOOD), versions=RAMDP,
    quote=SAID_TAIL, unit="1 %-CVaR",
)  # fmt: skip

random_mdps(
    "mdps-good-robust-unsafe", TAIL, "With η = 0.9, Robust MDP fails to be safe.",
    "lowest 1 %-CVaR over sizes", below(SAFE),
    lambda view, version: view.lowest(version.main, "cvar1", eta=GOOD), versions=ROBUST_MDP,
    quote=SAID_TAIL, unit="1 %-CVaR",
)  # fmt: skip

random_mdps(
    "mdps-good-hcpi-unsafe", TAIL, "With η = 0.9, HCPI fails to be safe.",
    "lowest 1 %-CVaR over sizes", below(SAFE),
    lambda view, version: view.lowest(version.main, "cvar1", eta=GOOD), versions=HCPI,
    quote=SAID_TAIL, unit="1 %-CVaR",
)  # fmt: skip

random_mdps(
    "mdps-good-leq-b-safe", TAIL, "With η = 0.9, Π_≤b-SPIBB is safe.",
    "lowest 1 %-CVaR of N_∧ = 10 over sizes (the paper counts −0.5 as still good)", above(-0.5),
    lambda view: view.lowest(PI_LEQ_B, "cvar1", eta=GOOD),
    quote=SAID_TAIL, unit="1 %-CVaR",
)  # fmt: skip

random_mdps(
    "mdps-good-b-safe", TAIL, "With η = 0.9, Π_b-SPIBB is safe.",
    "lowest 1 %-CVaR of N_∧ = 10 over sizes (the paper counts −0.5 as still good)", above(-0.5),
    lambda view: view.lowest(PI_B, "cvar1", eta=GOOD),
    quote=SAID_TAIL, unit="1 %-CVaR",
)  # fmt: skip

random_mdps(
    "mdps-ramdp-area", "3.3, Figure 3d; B.2.4, Figure 7f",
    "RaMDP is unsafe in a large area of the map of |D| and η.",
    "share of the (η, |D|) whose 1 %-CVaR with κ = 0.003 is below −0.01 (large: above 0.2)",
    above(0.2),
    lambda view, version: share_below(_map(view, version.main), SAFE), versions=RAMDP,
    quote=SAID_MAP, unit="1 %-CVaR",
)  # fmt: skip

random_mdps(
    "mdps-ramdp-area-0.002", "B.2.4, Figure 7e", "RaMDP is as plainly unsafe with κ = 0.002.",
    "share of the (η, |D|) whose 1 %-CVaR with κ = 0.002 is below −0.01 (plainly: above 0.2)",
    above(0.2),
    lambda view, version: share_below(_map(view, version.at(0.002)), SAFE), versions=RAMDP,
    quote="“on the Random MDPs benchmark, the unsafety of RaMDP is much more obvious”",
    unit="1 %-CVaR",
)  # fmt: skip


def _ramdp_where(view: View, version: Version) -> Interval:
    small = view.sizes(at_most=20)
    high = [eta for eta in view.etas() if eta >= 0.7] or [GOOD]
    good = [i for eta in high for i in view.curve(version.main, "cvar1", eta=eta)]
    few = [i for eta in view.etas() for i in view.curve(version.main, "cvar1", small, eta)]
    return largest([smallest(good), smallest(few)])


random_mdps(
    "mdps-ramdp-where", "3.3, Figure 3d",
    "RaMDP is unsafe where η is high and where data sets are small.",
    "higher of two lowest 1 %-CVaR with κ = 0.003: over η ≥ 0.7, and over |D| ≤ 20", below(SAFE),
    _ramdp_where, versions=RAMDP,
    quote=SAID_MAP, unit="1 %-CVaR",
)  # fmt: skip


def _why_everywhere(view: View, released: bool) -> str:
    cells = [
        (size, interval)
        for eta in view.etas()
        for size, interval in curve_of(view, PI_LEQ_B, "cvar1", eta).items()
    ]
    low = [size for size, interval in cells if interval.value < SAFE]
    sizes = numbers(sorted(set(low)))
    return f"{len(low)} of {len(cells)} cells are below −0.01, on {sizes} trajectories"


random_mdps(
    "mdps-leq-b-safe-everywhere", "3.3, Figure 3e",
    "Π_≤b-SPIBB with N_∧ = 10 is safe everywhere on the map.",
    "lowest 1 %-CVaR over all η and sizes", above(SAFE),
    lambda view: smallest(_map(view, PI_LEQ_B)),
    quote=SAID_MAP,
    why=Reason(_why_everywhere, None,
        "the paper calls −0.5 still good with η = 0.9",
    ),
    unit="1 %-CVaR",
)  # fmt: skip

random_mdps(
    "mdps-low-wedge-unsafe", WEDGES,
    "With η = 0.9, Π_≤b-SPIBB becomes slightly unsafe when N_∧ is too low.",
    "lowest 1 %-CVaR of the smallest N_∧ over sizes (slightly: not below −0.5)",
    between(-0.5, SAFE),
    lambda view: view.lowest(_leq_b_wedges(view)[0], "cvar1", eta=GOOD),
    quote=SAID_STAINS, unit="1 %-CVaR",
)  # fmt: skip

random_mdps(
    "mdps-high-wedge-safe", WEDGES,
    "With η = 0.9, Π_≤b-SPIBB becomes completely safe as N_∧ grows.",
    "lowest 1 %-CVaR of the largest N_∧ over sizes", above(SAFE),
    lambda view: view.lowest(_leq_b_wedges(view)[-1], "cvar1", eta=GOOD),
    quote=SAID_STAINS, unit="1 %-CVaR",
)  # fmt: skip


def _stains_disappear(view: View) -> Interval:
    keys = _leq_b_wedges(view)
    worst = [view.lowest(key, "cvar1", eta=GOOD) for key in (keys[-1], keys[0])]
    return difference(*worst)


random_mdps(
    "mdps-stains-disappear", WEDGES,
    "With η = 0.9, the unsafe cells of Π_≤b-SPIBB disappear as N_∧ grows.",
    "lowest 1 %-CVaR of the largest N_∧ minus that of the smallest", above(0),
    _stains_disappear,
    quote=SAID_STAINS, unit="1 %-CVaR",
)  # fmt: skip

random_mdps(
    "mdps-still-improves", WEDGES,
    "With η = 0.9, Π_≤b-SPIBB still improves the baseline even where N_∧ makes it safe.",
    "highest 1 %-CVaR of the largest N_∧ over sizes (improves: above 0.05)", above(0.05),
    lambda view: view.highest(_leq_b_wedges(view)[-1], "cvar1", eta=GOOD),
    quote=SAID_STAINS, unit="1 %-CVaR",
)  # fmt: skip


def _robust_often_bad(view: View, version: Version) -> Interval:
    robust, basic = (average(_map(view, k, "mean")) for k in (version.main, BASIC))
    return difference(robust, basic)


random_mdps(
    "mdps-robust-often-bad", "B.2.3, Figure 10c",
    "On random MDPs, too, Robust MDP often does worse than Basic RL.",
    "mean of Robust MDP minus that of Basic RL, averaged over all η and sizes", below(0),
    _robust_often_bad, versions=ROBUST_MDP,
    quote="“This behaviour seem[s] to reproduce also frequently on the Random MDPs domain.”",
    unit="mean",
)  # fmt: skip


def _leads(view: View, sizes: list[int]) -> list[Interval]:
    """By how much each SPIBB algorithm leads Basic RL in mean with η = 0.1."""
    return [view.margin(key, [BASIC], "mean", sizes, BAD) for key in (PI_B, PI_LEQ_B)]


def _map(view: View, key: str, statistic: str = "cvar1") -> list[Interval]:
    """All cells of a column, over η and sizes."""
    return [i for eta in view.etas() for i in view.curve(key, statistic, eta=eta)]


def _leq_b_wedges(view: View) -> list[str]:
    """The columns of Π_≤b by increasing N∧."""
    return list(view.keys("pi-leq-b", "n_wedge").values())
