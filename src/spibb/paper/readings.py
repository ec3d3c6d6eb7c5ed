"""The paper's own words behind each claim, and why a claim fails where it does.

Quotations are from the ICML 2019 paper with its supplement; … marks what was left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spibb.paper.claim import FAILS, HOLDS, Ruling

CODE = "paper's code"
BASELINE = "paper's baseline"
READING = "reading"
THRESHOLD = "threshold"
CONTRADICTED = "contradicted"
UNEXPLAINED = "cause not known"
CAUSES = {
    CONTRADICTED: "Our numbers say the opposite of the sentence.",
    CODE: "The released code differs from the text: the sentence fails for what the text "
    "describes, and holds as released, or nearly (then that version fails by a threshold).",
    BASELINE: "It depends on the baseline: with one like the paper's it holds, with ours it fails.",
    THRESHOLD: "The sentence gives no number; the limit is ours, and the margin is small.",
    READING: "The sentence is weaker than our test of it.",
    UNEXPLAINED: "Nobody has looked yet.",
}
"""What each cause means, in the order in which a page lists them."""

HEAT = (
    "“We observe for SPIBB algorithms that the policy improvement is safe (at the slight exception "
    "of Π_b-SPIBB with a low N∧ on 10-trajectory datasets), that the bigger the N∧, the more "
    "conservative SPIBB gets, and that Π_≤b-SPIBB outperforms Π_b-SPIBB.”"
)
BASIC = (
    "“Basic RL improves the baseline on average, but not monotonically with the size of the "
    "dataset, and remains quite far from optimal … explained by the fairly frequent learning of "
    "catastrophic policies”"
)
HCPI = (
    "“HCPI is more conservative for small datasets but slightly outperforms Basic RL for bigger "
    "ones, still remaining away from optimal.”"
)
ROBUST = (
    "“Robust MDPs do even worse than Basic RL; in fact, they learn policies that remain at the "
    "center of the grid … and completely ignore the goal.”"
)
SPOT = "“in the tight spot of 0.003, RaMDP is very efficient”"
WINNERS = (
    "“Overall, RaMDP and Π_≤b-SPIBB win this benchmark based on mean performance, with Π_b-SPIBB "
    "not far behind.”"
)
RANDOM = (
    "“Basic RL does not have its non-monotonic behaviour anymore, but both our algorithms … still "
    "significantly outperform their competitors”"
)
DIFFERENCES = (
    "“Basic RL becomes safe with 100 trajectories, RaMDP does not improve Basic RL anymore, and "
    "HCPI has more difficulty improving the baseline.”"
)
UNSAFE = "“they fail to be completely safe when N∧ ≤ 10 and |D| ≤ 20”"
BAD = (
    "“Basic RL and RaMDP dominate the benchmark in mean, but also in safety (not shown). SPIBB "
    "algorithms are too conservative for small datasets but catch up on the bigger ones.”"
)
PODIUM = (
    "“On average, the podium is composed by Π_≤b-SPIBB, RaMDP, Π_b-SPIBB, followed closely by "
    "Basic RL.”"
)
TAIL = (
    "“all fail to be safe but the SPIBB algorithms. Note that a −0.5 normalized performance is "
    "still a good performance”"
)
MAP = (
    "“the former is unsafe in a large area of the map (where it is red, for high η or small "
    "datasets), while the latter is safe everywhere”"
)
STAINS = (
    "“the algorithm becomes slightly unsafe when N∧ gets too low. As it increases, the red stains "
    "disappear meaning that it becomes completely safe. The green sections show that it still "
    "allows for some policy improvement.”"
)
COMPROMISE = (
    "“δ_hcpi = 1 yields the best result in mean, but turns out to be strongly unsafe for small "
    "datasets. δ_hcpi = 0.9 appears to offer the best compromise”"
)
DATASETS = (
    "“vanilla DQN (N∧ = 0) significantly worsens the baseline in mean and achieves the worst "
    "possible 10%-CVaR performance. SPIBB-DQN not only significantly improves the baseline in mean "
    "performance for N∧ ≥ 1, but also in 10%-CVaR when N∧ ≥ 8.”"
)
QUIET = (
    "“the baseline quickly gets more efficient when the noise is removed making the safe policy "
    "improvement task harder for SPIBB-DQN”"
)
LOUD = (
    "“as we get to higher noise factors, the stochasticity becomes too high to efficiently aim at "
    "the goal, but SPIBB algorithms still succeed at safely improving the baseline.”"
)
LIMITED = (
    "“although it slightly improves the DQN abysmal performance, the RaMDP performance is very "
    "limited, far under the baseline”"
)

QUOTES = {
    "grid-baseline": "“a fixed stochastic policy with a 0.4 performance”",
    "grid-optimum": "“the optimal policy has a 0.6 performance”",
    "grid-leq-b-safe": HEAT, "grid-b-safe": HEAT, "grid-b-unsafe-low": HEAT,
    "grid-conservative": HEAT, "grid-leq-b-beats-b": HEAT,
    "grid-basic-improves": BASIC, "grid-basic-not-monotone": BASIC,
    "grid-basic-catastrophes": BASIC, "grid-basic-far": BASIC,
    "grid-hcpi-small": HCPI, "grid-hcpi-large": HCPI, "grid-hcpi-far": HCPI,
    "grid-robust-worse-mean": ROBUST, "grid-robust-ignores-goal": ROBUST,
    "grid-ramdp-high": "“A similar behaviour is observed with RaMDP when its hyper-parameter is "
    "set too high (≥ 0.004).”",
    "grid-ramdp-low": "“when it is set too low (≤ 0.002), RaMDP behaves like Basic RL”",
    "grid-ramdp-spot": SPOT, "grid-ramdp-wins": WINNERS, "grid-leq-b-wins": WINNERS,
    "grid-b-close": WINNERS,
    "grid-ramdp-catastrophes": "“the very good mean performance of RaMDP hides some catastrophic "
    "runs where the trained policy under-performs for small datasets”",
    "grid-leq-b-above": "“In contrast, Π_≤b-SPIBB's curve remains over the baseline.”",
    "grid-b-behind": "“Π_b-SPIBB is again a bit behind.”",
    "grid-hcpi-near-safe": "“HCPI also proves to be near safe.”",
    "grid-robust-off": "“its curve does not even show on the graph”",
    "grid-basic-poor": "“explain why it does so poorly, even at times on very large datasets”",
    "grid-20": "“There, the algorithms are more conservative and therefore safe, while still "
    "achieving near optimality on big datasets.”",
    "grid-robust-worse-tail": "“worse tha[n] the policy trained with Basic RL on mean and also on "
    "CVaR. 1%-CVaR even falls down out of the figure.”",
    "search-optimistic": "“The former yields awful performances in our batch RL setting.”",
    "search-hcpi-estimators": "“they all behave more or less the same on the Gridworld domain”",
    "search-hcpi-1": COMPROMISE, "search-hcpi-compromise": COMPROMISE,
    "search-robust-insensitive": "“the behaviour of the algorithm is not much dependent on δ_rob”",
    "search-robust-test": "“it always fall[s] back on the baseline when the dataset is under "
    "50,000 trajectories”",
    "search-ramdp-test": "“RaMDP uses a safety test, which fails everytime similarly to that of "
    "Robust MDP”",
    "search-ramdp-best": "“there is a tight spot (κ_adj = 0.003) where it works quite well on the "
    "Gridworld domain”",
    "rand-basic-monotone": RANDOM, "rand-b-outperforms": RANDOM,
    "rand-leq-b-outperforms": RANDOM, "rand-spibb-over-ramdp": RANDOM,
    "rand-basic-safe": DIFFERENCES, "rand-basic-unsafe": DIFFERENCES,
    "rand-ramdp-no-gain": DIFFERENCES, "rand-hcpi-harder": DIFFERENCES,
    "rand-robust-off": "“Robust MDP still does not show on the 1%-CVaR figure.”",
    "rand-b-unsafe": UNSAFE, "rand-leq-b-unsafe": UNSAFE,
    "rand-b-beats": "“Π_b-SPIBB slightly outperforms Π_≤b-SPIBB”",
    "mdps-bad-easy": "“Since, the baseline is bad, it is an easy task to safely improve it.”",
    "mdps-bad": BAD,
    "mdps-good-leq-b-first": PODIUM, "mdps-good-over-ramdp": PODIUM,
    "mdps-good-ramdp-second": PODIUM, "mdps-good-basic-close": PODIUM,
    "mdps-good": TAIL,
    "mdps-ramdp-area": MAP, "mdps-ramdp-where": MAP, "mdps-leq-b-safe-everywhere": MAP,
    "mdps-ramdp-area-0.002": "“on the Random MDPs benchmark, the unsafety of RaMDP is much more "
    "obvious”",
    "mdps-low-wedge": STAINS, "mdps-high-wedge": STAINS, "mdps-stains": STAINS,
    "mdps-still": STAINS,
    "heli-dqn": DATASETS, "heli-spibb": DATASETS,
    "heli-noise-dqn": "“we observe that vanilla DQN performs abysmally”",
    "heli-noise-baseline": QUIET, "heli-noise-harder": QUIET,
    "heli-noise-aim": LOUD, "heli-noise-loud": LOUD,
    "heli-converged": "“The networks are trained for 2k passes on the dataset, and are fully "
    "converged by that time.”",
    "heli-single-dqn": "“vanilla DQN trains very different Q-networks and therefore very different "
    "policies depending on the random seed”",
    "heli-single-stable": "“In contrast, SPIBB-DQN shows stability for N∧ ≥ 4.”",
    "heli-ramdp-below": "“We also tried RaMDP with several values of κ_adj ∈ [0.001, 0.1] without "
    "any success.”",
    "heli-ramdp-far": LIMITED, "heli-ramdp-dqn": LIMITED,
    "mdps-robust-often-bad": "“This behaviour seem[s] to reproduce also frequently on the Random "
    "MDPs domain.”",
}  # fmt: skip
"""By the longest beginning of the claim's name."""

REASONS = {
    "grid-leq-b-safe": (
        CONTRADICTED,
        "on the authors' own baseline, N∧ = 7 and 10 on 10 trajectories end below it; N∧ = 5, "
        "which Figure 1e shows, does not",
    ),
    "grid-b-safe": (
        THRESHOLD, "on 20 trajectories, N∧ = 15: the exception reaches a little further",
    ),
    "grid-20-safe": (THRESHOLD, "on 10 and 20 trajectories only"),
    "grid-robust": (
        CONTRADICTED,
        "what the text describes reaches the goal from some hundreds of trajectories on",
    ),
    "grid-robust-ignores-goal-released": (
        CONTRADICTED,
        "on some logs the policy ends far below the baseline, on others near the optimum: a tenth "
        "of the pairs seen is left out by rounding",
    ),
    "grid-robust-off-correct": (
        CODE, "what the text describes reaches the goal from some hundreds of trajectories on",
    ),
    "grid-robust-off-released": (
        THRESHOLD, "where the graph ends is not printed; it is below −0.8 at every size",
    ),
    "rand-robust-off": (
        READING, "the curve is off the graph up to 1,000 trajectories, and comes back at 10,000",
    ),
    "mdps-bad-easy": (CONTRADICTED, "on 10 trajectories only; safe from 20 on"),
    "auto-probability": (
        CONTRADICTED,
        "the log that trained the policy also evaluates it; no command prints the probability",
    ),
    "mdps-bad-basic-tail": (
        THRESHOLD, "Basic RL is behind on the smallest data sets only, which the average includes",
    ),
    "mdps-bad-ramdp-tail": (
        THRESHOLD, "RaMDP is behind on the smallest data sets only, which the average includes",
    ),
    "mdps-leq-b-safe-everywhere": (
        THRESHOLD, "on 10 and 20 trajectories; its own scale calls −0.5 still good",
    ),
    "grid-hcpi-near-safe-correct": (
        CODE,
        "the correct estimator finds more to change, and loses most on 10 and 20 trajectories; "
        "safe from 50 on",
    ),
    "grid-hcpi-near-safe-released": (THRESHOLD, "on 10 and 20 trajectories only"),
    "grid-hcpi-far": (THRESHOLD, "the mean at 10,000 trajectories"),
    "search-hcpi-estimators-correct": (
        CODE,
        "the released doubly robust estimator is per-decision IS; the correct one changes the "
        "policy where the other two keep the baseline",
    ),
    "heli-noise-harder": (
        BASELINE,
        "our baseline gains little from silence; with one that was trained without noise, near "
        "optimal there as the authors' is, the sentence holds (helicopter/quiet)",
    ),
    "search-hcpi-estimators-released": (THRESHOLD, "on 10 trajectories with δ = 0.9 only"),
}  # fmt: skip
"""Cause and explanation of the claims that fail, by the longest beginning of the name."""

BEYOND = (
    "With random MDPs and η = 0.9, Robust MDP overtakes both SPIBB algorithms (N∧ = 10) in "
    "1 %-CVaR from 500 trajectories on.",
    "With data of the uniform policy, both SPIBB algorithms also lose with N∧ from 15 to 30 on 10 "
    "or 20 trajectories, by up to a quarter of the way to the optimum in 1 %-CVaR; the paper names "
    "N∧ ≤ 10 only. From N∧ = 50 on neither loses.",
    "RaMDP-DQN crashes with each κ of the paper's range, up to 0.1, and improves the baseline in "
    "mean with larger ones.",
)
"""What the results show and the paper does not say."""


CORRECT, RELEASED = "-correct", "-released"
"""Endings of the two versions of a claim."""


@dataclass(frozen=True)
class Cause:
    """Why a claim fails: the kind, and what is known of it."""

    kind: str
    why: str


def quote(id: str) -> str:
    """The paper's sentence behind a claim; empty where there is none."""
    return QUOTES.get(_longest(id, QUOTES), "")


def cause(ruling: Ruling, rulings: Sequence[Ruling]) -> Cause:
    """Why a claim fails: if the version as released holds, that; else what the table says."""
    twin = ruling.id.removesuffix(CORRECT) + RELEASED
    kind, why = REASONS.get(_longest(ruling.id, REASONS), (UNEXPLAINED, ""))
    for other in rulings:
        if ruling.id.endswith(CORRECT) and other.id == twin:
            if other.verdict == HOLDS:
                return Cause(CODE, f"as released it holds: {other.value}")
            if other.verdict == FAILS:
                why = f"as released: {other.value}; {why}"
    return Cause(kind, why)


def failing(rulings: Sequence[Ruling]) -> dict[str, list[tuple[Ruling, Cause]]]:
    """The failing claims by the kind of their cause, in the order of CAUSES."""
    found: dict[str, list[tuple[Ruling, Cause]]] = {kind: [] for kind in CAUSES}
    for ruling in rulings:
        if ruling.verdict == FAILS:
            why = cause(ruling, rulings)
            found[why.kind].append((ruling, why))
    return {kind: entries for kind, entries in found.items() if entries}


def _longest(id: str, table: Iterable[str]) -> str:
    return max((key for key in table if id.startswith(key)), key=len, default="")
