"""The paper's own words behind each claim, and the cause of those that fail.

Quotations are from the ICML 2019 paper with its supplement; … marks what was left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spibb.paper.claim import FAILS, HOLDS, Ruling
from spibb.paper.reasons import (
    CAUSES,
    CLOSE,
    CODE,
    CONTRADICTED,
    REASONS,
    THRESHOLD,
    UNEXPLAINED,
    Reason,
    limit_is_ours,
)

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
BEST = (
    "“In the main text, we only report the best performance we found (δ_hcpi = 0.9, δ_rob = 0.1, "
    "and κ_adj = 0.003)”"
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
    "search-ramdp-best": BEST,
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
     "what the eye sees is no number; the intervals here say it for each claim"),
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


def quote(id: str) -> str:
    """The paper's sentence behind a claim; empty where there is none."""
    return QUOTES.get(_longest(id, QUOTES), "")


def cause(ruling: Ruling, rulings: Sequence[Ruling]) -> Cause:
    """Why a claim fails: what was found by looking, or else the rule of `reasons`."""
    released = ruling.id.endswith(RELEASED)
    reason = REASONS.get(_longest(ruling.id, REASONS), Reason())
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
        return CODE if held and _apart(ruling, as_released) else THRESHOLD
    if held:
        return CODE
    return CONTRADICTED if reason.explain is not None else UNEXPLAINED


def _apart(one: Ruling, other: Ruling | None) -> bool:
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


def _longest(id: str, table: Iterable[str]) -> str:
    return max((key for key in table if id.startswith(key)), key=len, default="")
