"""What the command line prints about policies on vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spibb.cli.progress import STEP_SUMS, progress
from spibb.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from spibb.deep.cases import Case
    from spibb.deep.comparing import VectorComparison
    from spibb.deep.improving import VectorImprovement
    from spibb.deep.judging import VectorDepartures
    from spibb.ingest.vectors import VectorLog
    from spibb.verdict import Verdict


DECIDES = "Where whole episodes say nothing, the verdict rests on changes made alone"
"""Which of two numbers on held-out episodes counts."""


def print_vectors(console: Console, result: VectorImprovement, verdict: Verdict) -> None:
    """The verdict, the settings, the current policy, and the most typical changes."""
    from spibb.cli import terminal
    from spibb.deep.cases import coverage, typical_cases
    from spibb.words import number, percent

    policy, covered = result.policy, coverage(result)
    terminal.print_verdict(console, verdict)
    terminal.say(
        console,
        f"{len(result.log):,} transitions in {result.log.n_episodes:,} episodes train, "
        f"{len(policy.features)} columns, {len(policy.actions)} actions; radius "
        f"{policy.radius:.3g} deviations, n_wedge {policy.n_wedge:g}: {percent(covered.changed)} "
        f"of the decisions change, {percent(covered.copied)} are copied because evidence is too "
        "thin",
    )
    if result.clone is None:
        terminal.say(console, "The current policy is the one given.")
    else:
        source = "recorded probabilities" if result.log.action_prob is not None else "the log"
        terminal.say(
            console,
            f"The current policy was cloned from {source} ({result.clone.kind}): log-loss "
            f"{number(result.clone.log_loss)} nats on decisions that it was not fitted to, against "
            f"{number(result.clone.marginal_loss)} for the frequencies alone",
        )
    if result.held_out is not None:
        terminal.print_differences(console, result.held_out)
        if result.held_out.warning:
            terminal.say(console, f"Careful: {result.held_out.warning}. {DECIDES}.")
    title = "Changed decisions by kind, each with its most typical case:"
    print_cases(console, typical_cases(result), title)
    if not covered.changed:
        terminal.say(console, "No decision changes: the new policy is the current one.")


def print_cases(console: Console, cases: Sequence[Case], title: str) -> None:
    """A table of typical cases, if there are any."""
    from rich.markup import escape

    from spibb.cli import terminal
    from spibb.words import clipped, number

    if not cases:
        return
    table = terminal.numbers_table(title, "less of", "more of", "share", "mass moved", "typically")
    for case in cases:
        where = ", ".join(f"{clipped(k)} {number(v)}" for k, v in case.state.items())
        table.add_row(
            escape(clipped(case.less)), escape(clipped(case.more)), f"{case.share:.1%}",
            f"{case.moved:.2f}", escape(where),
        )  # fmt: skip
    console.print(table)


def evaluate_vectors(
    console: Console, loaded: Any, records: VectorLog, gamma: float, *, doubts: Sequence[str],
    **given: Any,
) -> None:  # fmt: skip
    """The verdict on a policy on vectors, and off-policy estimates."""
    from dataclasses import replace

    import numpy as np

    from spibb.cli import terminal
    from spibb.deep.comparing import judged_on
    from spibb.deep.estimates import estimate_on
    from spibb.deep.judging import departures

    rng = np.random.default_rng(given.pop("seed"))
    with progress(console, "evaluating", compiles=STEP_SUMS):
        report = estimate_on(records, loaded, gamma, rng=rng, **given)
        single = departures(records, loaded, gamma, delta=report.delta, rng=rng)
        verdict = judged_on(records, loaded, single, report)
    terminal.print_verdict(console, replace(verdict, doubts=(*verdict.doubts, *doubts)))
    terminal.print_estimates(console, report, concluded=False)
    terminal.say(console, departures_line(single))
    made = "action_prob" if records.action_prob is not None else "the baseline stored with it"
    terminal.say_path(console, f"Probabilities of the logged actions: {made}")


def refuse_behaviour(behaviour: Any) -> None:
    """A policy on vectors knows who made its logs."""
    if behaviour is not None:
        raise InputError(
            "--behaviour is for tables: a policy on vectors is judged by the column action_prob, "
            "or by the baseline that is stored with it; leave it out"
        )


def print_vector_comparison(console: Console, found: VectorComparison) -> None:
    """What the log says of A in the place of B, and where the two policies differ."""
    from dataclasses import replace

    from spibb.cli import terminal
    from spibb.ingest.assumptions import doubts
    from spibb.words import percent

    where = "those that A was trained on"
    if found.verdict is not None:
        where, more = "the log's", doubts(found.assumptions)
        verdict = replace(found.verdict, doubts=(*found.verdict.doubts, *more))
        terminal.print_verdict(console, verdict, terminal.with_letters)
    terminal.say(
        console,
        f"At {found.states:,} states ({where}), {percent(found.differ)} of the decisions differ, "
        f"{percent(found.greedy_changed)} in the most probable action; mean total variation "
        f"{found.mean_variation:.4g}",
    )
    print_cases(console, found.cases, "From B to A by kind, each with its most typical case:")


def departures_line(found: VectorDepartures) -> str:
    """What the changes gain to the first order, in a sentence."""
    from spibb.episodes.departures import ALONE
    from spibb.words import signed, surely

    return (
        f"Gain of the changes ({ALONE}): {signed(found.gain)} per episode; lower bounds "
        f"{surely(found.student_t)} (student-t), {surely(found.bca)} (bca). {DECIDES}."
    )
