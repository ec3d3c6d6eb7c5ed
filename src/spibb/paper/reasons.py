"""Why claims fail, and what the paper does not say: texts whose numbers come from the results.

A cause follows one rule. `paper's code`, `paper's baseline` and `reading` were found by looking,
and are named below. Else, a claim fails by a `threshold` if its limit is ours, not the paper's,
and the value is within `CLOSE` of it; otherwise the sentence is `contradicted`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spibb.paper.claim import HOLDS, Ruling
from spibb.paper.claims_gridworld import BOTH, PI_B, PI_LEQ_B, SAFE, wedge_cells
from spibb.paper.claims_helicopter import noise_gains
from spibb.paper.claims_hyperparameters import estimator_gaps
from spibb.paper.claims_random_mdps import BAD, CONSERVATIVE, GOOD
from spibb.paper.claims_random_mdps import PI_B as PI_B_10
from spibb.paper.claims_random_mdps import PI_LEQ_B as PI_LEQ_B_10
from spibb.paper.competitors import BASIC, HCPI, RAMDP, ROBUST, ROBUST_MDP, SPIBB
from spibb.paper.evidence import AbsentError, View
from spibb.stats import Interval

CODE = "paper's code"
BASELINE = "paper's baseline"
READING = "reading"
THRESHOLD = "threshold"
CONTRADICTED = "contradicted"
UNEXPLAINED = "not examined"
CLOSE = 0.1
"""How near to a limit of ours a value fails by a threshold: a tenth of the way from the baseline to
the optimum."""
LIMITS_OF_THE_PAPER = (0.0, -0.5)
"""The baseline, a tie; and what section 3.3 calls still a good performance."""
CAUSES = {
    CONTRADICTED: "Our numbers say the opposite of the sentence.",
    CODE: "The released code differs from the text: the sentence fails for what the text "
    "describes, and holds as released, or nearly.",
    BASELINE: "It depends on the baseline: with one like the paper's it holds, with ours it fails.",
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


def limit_is_ours(ruling: Ruling) -> bool:
    """Whether the limit that a claim fails by is not one of the paper's."""
    region, interval = ruling.region, ruling.interval
    if interval is None:
        return False
    limit = region.lower if interval.value <= region.lower else region.upper
    return limit not in LIMITS_OF_THE_PAPER


def on_sizes(curve: Mapping[int, Interval], below: float) -> str:
    """Where a curve is below a limit: on 10 and 20 trajectories, of 10 sizes."""
    found = [size for size, interval in curve.items() if interval.value < below]
    return f"on {_words(found)} trajectories" + (" only" if len(found) < len(curve) else "")


def low_cells(cells: Mapping[tuple[int, int], Interval], below: float) -> str:
    """The cells of an N∧ map below a limit: N∧ = 7 and 10 on 10 trajectories; …"""
    by_size: dict[int, list[int]] = {}
    for (n_wedge, size), interval in cells.items():
        if interval.value < below:
            by_size.setdefault(size, []).append(n_wedge)
    parts = [f"N∧ = {_words(found)} on {size:,}" for size, found in sorted(by_size.items())]
    n = sum(map(len, by_size.values()))
    return f"{n} of {len(cells)} cells are below {_minus(below)}: {', '.join(parts)} trajectories"


def behind(view: View, column: str, other: str, statistic: str, eta: float | None) -> str:
    """At how many sizes a column is behind another, and where it is ahead."""
    own, theirs = _curve(view, column, statistic, eta), _curve(view, other, statistic, eta)
    ahead = [size for size in own if own[size].value >= theirs[size].value]
    found = f"at {len(own) - len(ahead)} of {len(own)} sizes"
    return found + (f", and ahead of it on {_words(ahead)} trajectories" if ahead else "")


def _worst_rival(view: View, column: str, others: Sequence[str], eta: float) -> str:
    """The column with the highest average 1 %-CVaR, and how often this one is behind it."""
    best = max(others, key=lambda key: view.overall(key, "cvar1", eta=eta).value)
    names = {PI_B_10: "Π_b (N∧ = 10)", PI_LEQ_B_10: "Π_≤b (N∧ = 10)", ROBUST: "Robust MDP"}
    return f"behind {names.get(best, best)} {behind(view, column, best, 'cvar1', eta)}"


def _curve(
    view: View, column: str, statistic: str, eta: float | None = None
) -> dict[int, Interval]:
    return dict(zip(view.sizes(), view.curve(column, statistic, eta=eta)))


def _leq_b_safe(view: View, released: bool) -> str:
    return low_cells(wedge_cells(view, PI_LEQ_B, SPIBB[not released]), SAFE)


def _b_safe(view: View, released: bool) -> str:
    cells = wedge_cells(view, PI_B, SPIBB[not released])
    kept = {place: i for place, i in cells.items() if place[0] > 10 or place[1] > 10}
    return low_cells(kept, SAFE) + " (the exception of the paper not counted)"


def _b_unsafe(view: View, released: bool) -> str:
    cells = wedge_cells(view, PI_B, SPIBB[not released])
    few = {(n, size): i for (n, size), i in cells.items() if n <= 10 and size <= 10}
    return ", ".join(f"{_minus(round(i.value, 2))} with N∧ = {n}" for (n, _), i in few.items())


def _leq_b_above(view: View, released: bool) -> str:
    return on_sizes(_curve(view, SPIBB[not released].at(PI_LEQ_B, 5), "cvar1"), 0.0)


def _twenty_safe(view: View, released: bool) -> str:
    curves = [_curve(view, SPIBB[not released].at(name, 20), "cvar1") for name in BOTH]
    worst = {n: min((c[n] for c in curves), key=lambda i: i.value) for n in curves[0]}
    return on_sizes(worst, SAFE)


def _robust_mean(view: View, released: bool) -> str:
    return _rises(_curve(view, ROBUST_MDP[not released].main, "mean"), "mean")


def _robust_tail(view: View, released: bool) -> str:
    return _rises(_curve(view, ROBUST_MDP[not released].main, "cvar1"), "1 %-CVaR")


def _robust_goal(view: View, released: bool) -> str:
    key = ROBUST_MDP[not released].main
    means, tails = _curve(view, key, "mean"), _curve(view, key, "cvar10")
    return f"{_rises(means, 'mean')}, that of its worst tenth (10 %-CVaR) is {_range(tails)}"


def _rises(curve: Mapping[int, Interval], name: str) -> str:
    """From which size on a curve is above the baseline."""
    sizes = list(curve)
    last = max((k for k, size in enumerate(sizes) if curve[size].value <= 0), default=-1)
    if last == len(sizes) - 1:
        return f"its {name} over sizes is {_range(curve)}"
    return f"its {name} is above the baseline from {sizes[last + 1]:,} trajectories on"


def _hcpi_safe(view: View, released: bool) -> str:
    return on_sizes(_curve(view, HCPI[not released].main, "cvar1"), -0.1)


def _hcpi_far(view: View, released: bool) -> str:
    curve = _curve(view, HCPI[not released].main, "mean")
    above = [size for size, interval in curve.items() if interval.value >= 0.9]
    return f"on {_words(above)} trajectories"


def _estimators(view: View, released: bool) -> str:
    gaps = estimator_gaps(view, HCPI[not released])
    far = sorted({(delta, size) for delta, size, gap in gaps if gap.value >= 0.1})
    by_delta = {d: [size for other, size in far if other == d] for d, _ in far}
    every = view.sizes()
    parts = [
        f"δ = {d:g} at every size"
        if sizes == every
        else f"δ = {d:g} on {_words(sizes)} trajectories"
        for d, sizes in by_delta.items()
    ]
    return f"further apart than 0.1 with {', '.join(parts)}"


def _bad_easy(view: View, released: bool) -> str:
    return on_sizes(_curve(view, BASIC, "cvar1", BAD), SAFE)


def _bad_basic(view: View, released: bool) -> str:
    return "Basic RL is " + _worst_rival(view, BASIC, CONSERVATIVE, BAD)


def _bad_ramdp(view: View, released: bool) -> str:
    return "RaMDP is " + _worst_rival(view, RAMDP[not released].main, CONSERVATIVE, BAD)


def _everywhere(view: View, released: bool) -> str:
    cells = [
        (size, interval)
        for eta in view.etas()
        for size, interval in _curve(view, PI_LEQ_B_10, "cvar1", eta).items()
    ]
    low = [size for size, interval in cells if interval.value < SAFE]
    sizes = _words(sorted(set(low)))
    return f"{len(low)} of {len(cells)} cells are below −0.01, on {sizes} trajectories"


def _noise(view: View, released: bool) -> str:
    baseline, ours = noise_gains(view)
    return (
        f"without noise our baseline gains {baseline:.2f}, but SPIBB-DQN gains "
        f"{_range_of(ours)}: it improves the baseline by more there"
    )


REASONS = {
    "grid-leq-b-safe": Reason(_leq_b_safe),
    "grid-b-safe": Reason(_b_safe),
    "grid-b-unsafe-low": Reason(_b_unsafe),
    "grid-leq-b-above": Reason(_leq_b_above),
    "grid-20-safe": Reason(_twenty_safe),
    "grid-robust-worse-mean": Reason(_robust_mean),
    "grid-robust-worse-tail": Reason(_robust_tail),
    "grid-robust-ignores-goal": Reason(_robust_goal),
    "grid-robust-off-correct": Reason(_robust_tail, CODE),
    "grid-robust-off-released": Reason(
        None, READING, "the sentence does not say where the graph ends; −1 is our guess"
    ),
    "mdps-bad-easy": Reason(
        _bad_easy, READING, "the sentence names neither Basic RL nor all sizes; both are our test"
    ),
    "auto-probability": Reason(
        None, CONTRADICTED,
        "the log that trained the policy also evaluates it; no command prints the probability",
    ),
    "auto-bound": Reason(
        None, CONTRADICTED,
        "models drawn from small logs are shrunk towards what actions have in common, which may "
        "flatter; the verdict warns below 100 episodes",
    ),
    "mdps-bad-basic-tail": Reason(_bad_basic),
    "mdps-bad-ramdp-tail": Reason(_bad_ramdp),
    "mdps-leq-b-safe-everywhere": Reason(
        _everywhere, None, "the paper calls −0.5 still good with η = 0.9"
    ),
    "grid-hcpi-near-safe-correct": Reason(
        _hcpi_safe, CODE, "the correct estimator finds more to change"
    ),
    "grid-hcpi-near-safe-released": Reason(_hcpi_safe),
    "grid-hcpi-far": Reason(_hcpi_far),
    "search-hcpi-estimators-correct": Reason(
        _estimators, CODE,
        "the released doubly robust estimator is per-decision IS; the correct one changes the "
        "policy where the other two keep the baseline",
    ),
    "search-hcpi-estimators-released": Reason(_estimators),
    "heli-noise-harder": Reason(
        _noise, BASELINE,
        "with a baseline that was trained without noise, near optimal there as the authors' is, "
        "the sentence holds (docs/results/helicopter/quiet)",
    ),
}  # fmt: skip
"""By the longest beginning of the claim's name."""


def beyond(rulings: Sequence[Ruling]) -> list[str]:
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
        _curve(view, key, "cvar1", GOOD) for key in (ROBUST, PI_B_10, PI_LEQ_B_10)
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
        f"With data of the uniform policy, SPIBB also loses with N∧ = {_words(wedges)} on "
        f"{_words(sizes)} trajectories, by up to {-worst:.2f} of the way to the optimum in "
        "1 %-CVaR; the paper names N∧ ≤ 10 only."
    )


def _words(values: Sequence[float]) -> str:
    """10, 20 and 50."""
    texts = [f"{value:,g}" for value in values]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _range(curve: Mapping[int, Interval]) -> str:
    return _range_of([interval.value for interval in curve.values()])


def _range_of(values: Sequence[float]) -> str:
    low, high = (_minus(round(extreme(values), 2)) for extreme in (min, max))
    return low if low == high else f"{low} to {high}"


def _minus(value: float) -> str:
    return f"{value:g}".replace("-", "−")
