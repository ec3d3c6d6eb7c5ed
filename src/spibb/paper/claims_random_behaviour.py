"""What section 3.2 says of the gridworld with data from the uniform policy (Figures 2 and 9)."""

from __future__ import annotations

from functools import partial

from spibb.paper.claim import above, below, between, claim
from spibb.paper.claims_gridworld import SAFE, largest_drop, wedge_cells, wedge_mean
from spibb.paper.competitors import BASIC, HCPI, HCPI_DR, RAMDP, ROBUST, ROBUST_MDP
from spibb.paper.evidence import View, difference, smallest
from spibb.stats import Interval

BENCHMARK, HEAT = "3.2, Figure 2a", "3.2, Figures 2b-c"
PI_B, PI_LEQ_B = "pi-b:n_wedge=20", "pi-leq-b:n_wedge=20"

SAID_RANDOM = (
    "“Basic RL does not have its non-monotonic behaviour anymore, but both our algorithms … "
    "still significantly outperform their competitors”"
)
SAID_DIFFERENCES = (
    "“Basic RL becomes safe with 100 trajectories, RaMDP does not improve Basic RL anymore, and "
    "HCPI has more difficulty improving the baseline.”"
)
SAID_UNSAFE = "“they fail to be completely safe when N∧ ≤ 10 and |D| ≤ 20”"

random_behaviour = partial(claim, study="gridworld-random")


random_behaviour(
    "rand-basic-monotone", BENCHMARK, "Basic RL no longer worsens with more data.",
    "largest fall of the 1 %-CVaR of Basic RL from a size to a larger one "
    "(no longer: below 0.05)", below(0.05),
    lambda view: largest_drop(view.curve(BASIC, "cvar1")),
    quote=SAID_RANDOM, unit="1 %-CVaR",
)  # fmt: skip

random_behaviour(
    "rand-b-outperforms", BENCHMARK, "Π_b-SPIBB still outperforms the competitors.",
    "smallest lead in 1 %-CVaR of Π_b (N_∧ = 20) over Basic RL, HCPI and Robust MDP, averaged "
    "over sizes", above(0),
    lambda view: view.margin(PI_B, [BASIC, HCPI_DR, ROBUST], "cvar1"),
    quote=SAID_RANDOM, unit="1 %-CVaR",
)  # fmt: skip

random_behaviour(
    "rand-leq-b-outperforms", BENCHMARK, "Π_≤b-SPIBB still outperforms the competitors.",
    "smallest lead in 1 %-CVaR of Π_≤b (N_∧ = 20) over Basic RL, HCPI and Robust MDP, averaged "
    "over sizes", above(0),
    lambda view: view.margin(PI_LEQ_B, [BASIC, HCPI_DR, ROBUST], "cvar1"),
    quote=SAID_RANDOM, unit="1 %-CVaR",
)  # fmt: skip

random_behaviour(
    "rand-spibb-over-ramdp", BENCHMARK, "Both SPIBB algorithms outperform RaMDP.",
    "smaller lead in 1 %-CVaR of Π_b and Π_≤b (N_∧ = 20) over RaMDP (κ = 0.003), averaged over "
    "sizes", above(0),
    lambda view, version: smallest(
        [view.margin(own, [version.main], "cvar1") for own in (PI_B, PI_LEQ_B)]
    ),
    versions=RAMDP,
    quote=SAID_RANDOM, unit="1 %-CVaR",
)  # fmt: skip

random_behaviour(
    "rand-basic-safe-100", BENCHMARK, "Basic RL is safe from 100 trajectories on.",
    "lowest 1 %-CVaR of Basic RL over |D| ≥ 100", above(SAFE),
    lambda view: view.lowest(BASIC, "cvar1", view.sizes(at_least=100)),
    quote=SAID_DIFFERENCES, unit="1 %-CVaR",
)  # fmt: skip

random_behaviour(
    "rand-basic-unsafe-below", BENCHMARK, "Basic RL is not safe with fewer than 100 trajectories.",
    "1 %-CVaR of Basic RL at the largest size below 100", below(0),
    lambda view: view.at(BASIC, "cvar1", view.sizes(at_most=99)[-1]),
    quote=SAID_DIFFERENCES, unit="1 %-CVaR",
)  # fmt: skip

random_behaviour(
    "rand-ramdp-no-gain", BENCHMARK, "RaMDP does not improve on Basic RL any more.",
    "1 %-CVaR of RaMDP (κ = 0.003) minus that of Basic RL, averaged over sizes (no gain: below "
    "0.05)", below(0.05),
    lambda view, version: view.margin(version.main, [BASIC], "cvar1"), versions=RAMDP,
    quote=SAID_DIFFERENCES, unit="1 %-CVaR",
)  # fmt: skip

random_behaviour(
    "rand-hcpi-harder", BENCHMARK,
    "HCPI has more difficulty in improving the baseline: it no longer leads Basic RL.",
    "lead in mean of HCPI over Basic RL, averaged over |D| ≥ 1000, where it led with the "
    "baseline's data (3.1); one study does not hold its mean in the other", below(0),
    lambda view, version: view.margin(version.main, [BASIC], "mean", view.sizes(at_least=1000)),
    versions=HCPI,
    quote=SAID_DIFFERENCES, unit="mean",
)  # fmt: skip

random_behaviour(
    "rand-robust-off", BENCHMARK, "Robust MDP's 1 %-CVaR still does not show on the graph.",
    "highest 1 %-CVaR over sizes (off the graph: below −1)", below(-1),
    lambda view, version: view.highest(version.main, "cvar1"), versions=ROBUST_MDP,
    quote="“Robust MDP still does not show on the 1%-CVaR figure.”", unit="1 %-CVaR",
)  # fmt: skip

random_behaviour(
    "rand-b-unsafe-small", HEAT, "Π_b-SPIBB is not completely safe for N_∧ ≤ 10 and |D| ≤ 20.",
    "lowest 1 %-CVaR over N_∧ ≤ 10 and |D| ≤ 20", below(0),
    lambda view: smallest(_small(view, "pi-b")),
    quote=SAID_UNSAFE, unit="1 %-CVaR",
)  # fmt: skip

random_behaviour(
    "rand-leq-b-unsafe-small", HEAT,
    "Π_≤b-SPIBB is not completely safe for N_∧ ≤ 10 and |D| ≤ 20.",
    "lowest 1 %-CVaR over N_∧ ≤ 10 and |D| ≤ 20", below(0),
    lambda view: smallest(_small(view, "pi-leq-b")),
    quote=SAID_UNSAFE, unit="1 %-CVaR",
)  # fmt: skip

random_behaviour(
    "rand-b-beats-leq-b", HEAT, "Π_b-SPIBB now slightly outperforms Π_≤b-SPIBB.",
    "1 %-CVaR of Π_b minus that of Π_≤b, averaged over all N_∧ and sizes (slightly: below 0.25)",
    between(0, 0.25),
    lambda view: difference(wedge_mean(view, "pi-b"), wedge_mean(view, "pi-leq-b")),
    quote="“Π_b-SPIBB slightly outperforms Π_≤b-SPIBB”", unit="1 %-CVaR",
)  # fmt: skip


def _small(view: View, algorithm: str) -> list[Interval]:
    view.sizes(at_most=20)
    cells = wedge_cells(view, algorithm)
    return [cells[n, size] for n, size in cells if n <= 10 and size <= 20]
