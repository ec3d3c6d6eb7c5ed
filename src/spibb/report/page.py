"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from spibb import words
from spibb.algorithms.improvement import Improvement
from spibb.episodes.departures import MOVED
from spibb.ope import FEW_EPISODES
from spibb.report import charts
from spibb.report.assessment import Assessment
from spibb.report.changes import ChangedRow, changed, changes, other_states, unchanged
from spibb.report.coverage import Coverage, bins
from spibb.report.filling import FILTERS, fill
from spibb.sceptic import odds
from spibb.verdict.evidence import OBSERVED, SHRUNK

MAX_STATES = 300
"""Changed states shown; the policy file holds all."""
MAX_SOUGHT = 500_000
"""Characters of other states that a search looks at, the most visited first."""
LONGEST_SOUGHT = 500
"""Characters of a label that a search looks at."""
MAX_ACTIONS = 8
"""Actions shown per state, the likeliest first."""


@dataclass(frozen=True)
class ActionRow:
    """One action of a changed state."""

    action: str
    whole: str
    baseline: float
    new: float
    count: int
    why: str


@dataclass(frozen=True)
class StateRow:
    """One changed state: the summary, the glyph, and its actions."""

    change: ChangedRow
    state: str
    whole: str
    more: str
    less: str
    glyph: Markup
    actions: tuple[ActionRow, ...]
    actions_left_out: int


def render(assessment: Assessment) -> str:
    """The whole page."""
    result, values = assessment.result, value_lines(assessment)
    states = state_rows(assessment)
    return fill(
        "report.html.jinja", FILTERS, a=assessment, e=assessment.evidence, result=result,
        problem=result.problem,
        verdict=assessment.verdict, values_chart=_values_chart(values),
        gains_chart=_gains_chart(assessment), scope=_scope(assessment),
        states=states, n_changed=int(changed(result).sum()),
        others=other_states(result, {row.change.code for row in states}, MAX_SOUGHT),
        coverage=Coverage.of(result), coverage_chart=_coverage_chart(result),
        sweep_chart=_sweep_chart(assessment), few=FEW_EPISODES, n_wedge=assessment.n_wedge,
        odds=odds, **_overlap_charts(assessment), sure=words.level(assessment.evidence.delta),
        observed=OBSERVED, shrunk=SHRUNK, counted=words.counted, effective=words.effective,
    )  # fmt: skip


# ---- values -------------------------------------------------------------------------------------


def value_lines(assessment: Assessment) -> list[charts.Whisker]:
    """The mean return in the log, and both policies' values in the models drawn given it."""
    evidence = assessment.evidence
    believed = [
        charts.Whisker(label, value.mean, value.low, value.high, new=new)
        for label, value, new in (
            ("current policy, model", evidence.current, False),
            ("new policy, model", evidence.new, True),
        )
    ]
    earned = evidence.earned
    if earned is None or not np.isfinite(earned.standard_error):
        return believed
    reach = earned.reach
    log = charts.Whisker(OBSERVED, earned.mean, earned.mean - reach, earned.mean + reach, new=False)
    return [log, *believed]


def _values_chart(lines: Sequence[charts.Whisker]) -> Markup:
    said = "; ".join(
        f"{w.label} {words.number(w.value)}, {words.number(w.low)} to {words.number(w.high)}"
        for w in lines
    )
    return charts.whiskers(
        lines, f"Value per episode with {words.percent(0.95)} intervals: {said}."
    )


def _gains_chart(assessment: Assessment) -> Markup | None:
    """The distribution of the gain; nothing to draw where no state changes."""
    posterior = assessment.posterior
    if not changed(assessment.result).any():
        return None
    low, high = posterior.interval
    return charts.histogram(
        posterior.gains,
        f"Histogram of the gain over {len(posterior.gains):,} models drawn given the log: mean "
        f"{words.number(posterior.gain)}, {words.percent(0.95)} between {words.number(low)} and "
        f"{words.number(high)}.",
    )


def _scope(assessment: Assessment) -> str:
    """How many states change, and how much of the log's traffic they carry."""
    moved = assessment.evidence.changed
    if not moved.any():
        return unchanged(assessment.result.problem)
    visits = assessment.result.problem.counts.pairs.sum(axis=1)
    share = float(visits[moved].sum() / max(visits.sum(), 1))
    return (
        f"The new policy differs in {int(moved.sum()):,} of {len(visits):,} states, which account "
        f"for {words.percent(share)} of the log's decisions."
    )


# ---- what changes -------------------------------------------------------------------------------


def state_rows(assessment: Assessment) -> list[StateRow]:
    """The changed states of most impact, with their actions."""
    return [_state_row(assessment, change) for change in changes(assessment.result, MAX_STATES)]


def _state_row(assessment: Assessment, change: ChangedRow) -> StateRow:
    result, s = assessment.result, change.code
    problem = result.problem
    new, old = result.policy.probs[s], problem.baseline.probs[s]
    shown = np.argsort(-np.maximum(new, old), kind="stable")
    relevant = int(((new > 0) | (old > 0) | (problem.counts.pairs[s] > 0)).sum())
    shown = np.sort(shown[: min(MAX_ACTIONS, relevant)])
    rows = tuple(
        ActionRow(
            words.clipped(problem.actions[a]),
            words.clipped(problem.actions[a], LONGEST_SOUGHT), float(old[a]), float(new[a]),
            int(problem.counts.pairs[s, a]), _why(assessment, s, a),
        )
        for a in shown.tolist()
    )  # fmt: skip
    return StateRow(
        change, words.clipped(change.state), words.clipped(change.state, LONGEST_SOUGHT),
        words.clipped(change.more),
        words.clipped(change.less), charts.pairs_glyph(old[shown].tolist(), new[shown].tolist()),
        rows, relevant - len(rows),
    )  # fmt: skip


def _why(assessment: Assessment, s: int, a: int) -> str:
    """Why a pair's probability is what it is."""
    result, n_wedge = assessment.result, assessment.n_wedge
    new, old = result.policy.probs[s, a], result.problem.baseline.probs[s, a]
    moved = "raised" if new > old + MOVED else "lowered" if new < old - MOVED else "as before"
    if np.isnan(n_wedge):  # no number of visits decides
        return moved
    if not result.bootstrapped[s, a]:
        return f"trusted (≥\N{NO-BREAK SPACE}{n_wedge:g})"
    return f"{'lowered' if moved == 'lowered' else 'copied'} (<\N{NO-BREAK SPACE}{n_wedge:g})"


# ---- the evidence -------------------------------------------------------------------------------


def _coverage_chart(result: Improvement) -> Markup:
    shown = bins(result)
    said = ", ".join(f"{b.trusted + b.copied:,} seen {b.name} times" for b in shown)
    return charts.coverage(
        [(b.name, b.trusted, b.copied) for b in shown],
        f"Pairs of state and action by how often the log has them: {said}.",
    )


def _sweep_chart(assessment: Assessment) -> Markup | None:
    if not assessment.sweep:
        return None
    allowed = sum(candidate.lower > 0 for candidate in assessment.sweep)
    return charts.sweep_chart(
        assessment.sweep, assessment.chosen,
        f"Mean gain in drawn models with {words.percent(0.95)} interval for "
        f"{len(assessment.sweep)} candidates; {allowed} of them qualify. The table below has the "
        "numbers.",
    )  # fmt: skip


# ---- for the sceptic ----------------------------------------------------------------------------

WEIGHTS = (0.0, 1e-12, 0.01, 0.1, 1.0, 10.0, 100.0, np.inf)
WEIGHT_NAMES = ("0", "<0.01", "0.01–0.1", "0.1–1", "1–10", "10–100", "≥100")
SHOWN_STEPS = (1, 2, 3, 5, 10, 20, 30, 50)


def _overlap_charts(assessment: Assessment) -> dict[str, Markup | None]:
    """Importance weights of episodes, and how many steps they last."""
    found = None if assessment.sceptic is None else assessment.sceptic.overlap
    if found is None:
        return {"weights_chart": None, "effective_chart": None}
    heights = np.histogram(found.weights, WEIGHTS)[0].tolist()
    steps = [step for step in SHOWN_STEPS if step <= len(found.effective)]
    sizes = [(str(step), round(float(found.effective[step - 1])), 0) for step in steps]
    said = ", ".join(f"{n:,} at {name}" for n, name in zip(heights, WEIGHT_NAMES))
    lasting = ", ".join(f"{size:,} after {step}" for step, size, _ in sizes)
    return {
        "weights_chart": charts.coverage(
            [(name, n, 0) for name, n in zip(WEIGHT_NAMES, heights)],
            f"Episodes by importance weight: {said}.",
            "importance weight",
        ),
        "effective_chart": charts.coverage(
            sizes, f"Effective number of episodes by step: {lasting}.", "steps"
        ),
    }
