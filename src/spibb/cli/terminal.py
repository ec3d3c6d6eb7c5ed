"""What the command line prints: tables, paths to copy, progress."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spibb.algorithms.candidate import Candidate
from spibb.algorithms.improvement import Improvement
from spibb.change_certificate import ChangeCertificate
from spibb.comparison import Comparison
from spibb.grade import Grade
from spibb.ingest.assumptions import doubts
from spibb.labels import Label
from spibb.ope import BoundedEstimate, OffPolicyReport
from spibb.ope.bounds import EXACT
from spibb.ope.estimate import Weakness
from spibb.report.assessment import Assessment
from spibb.report.changes import changed, changes, unchanged
from spibb.verdict import Evidence, Verdict
from spibb.verdict.criteria import FOUND, VARYING
from spibb.verdict.evidence import OBSERVED, SHRUNK
from spibb.words import (
    at_least,
    clipped,
    counted,
    effective,
    general,
    number,
    percent,
    signed,
    surely,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from spibb.cli.demo import DemoRow


CELL = 30
"""Characters of a label in a cell of a table: longer ones would make rows of many lines."""


def say(console: Console, text: str) -> None:
    """A sentence, wrapped, but never read as markup: it may hold a user's labels."""
    console.print(text, highlight=False, markup=False)


def say_path(console: Console, text: str) -> None:
    """A line to copy from: neither wrapped nor read as markup."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _label(label: Label) -> str:
    """A label for a cell of a table: short, and never read as markup."""
    from rich.markup import escape

    return escape(clipped(label, CELL))


def numbers_table(title: str, *columns: str) -> Table:
    """A table whose first column is text and the others numbers."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", overflow="fold")
    return table


def _without_frame(table: Table) -> None:
    """Leave out vertical lines, for tables of many columns."""
    from rich import box

    table.box = box.SIMPLE_HEAD
    table.pad_edge, table.padding = False, (0, 1, 0, 0)


def demo_table(rows: Iterable[DemoRow], title: str) -> Table:
    """The policies of the demonstration: the truth beside the estimates."""
    table = numbers_table(
        title, "policy", "true value", OBSERVED, "value in model", "verdict", "pairs copied"
    )
    for row in rows:
        copied = "" if row.pairs_copied is None else f"{row.pairs_copied:.0%}"
        observed = "" if row.observed is None else f"{row.observed:.4f}"
        table.add_row(
            row.name, f"{row.true_value:.4f}", observed, f"{row.estimated_value:.4f}", row.grade,
            copied,
        )  # fmt: skip
    return table


def print_conclusion(console: Console, report: OffPolicyReport, doubts: Sequence[str]) -> None:
    """What the estimates conclude, if anything, and what stands beside it."""
    if said := report.concluded(doubts):
        _print_first_line(console, said, favourable=report.favourable)
    _say_doubts(console, doubts)


def print_estimates(console: Console, report: OffPolicyReport, *, concluded: bool = True) -> None:
    """All estimators with their bounds, the sample behind them, and why a bound is missing.

    A warning that the conclusion gave already (`concluded`) is not repeated.
    """
    cut = f", {report.n_truncated} of them cut short" if report.n_truncated else ""
    title = (
        f"{counted(report.n_episodes, 'episode')}{cut}; lower bounds fail with probability "
        f"{report.delta:g}"
    )
    console.print(_estimates_table(title, report.rows))
    print_differences(console, report)
    if report.rows[0].estimate.weakness is not Weakness.FEW_EPISODES:  # which says the same
        size = (
            f"{effective(report.effective_sample_size)} of {counted(report.n_episodes, 'episode')}"
        )
        say(console, f"Effective sample size {size}")
    if report.warning and not (concluded and report.conclusion):
        console.print(f"Warning: {report.warning}", style="bold", highlight=False, markup=False)
    _say_missing_bounds(console, report)


def _say_missing_bounds(console: Console, report: OffPolicyReport) -> None:
    """Why bounds are missing, beyond the warning, each reason once and with its estimators."""
    unlimited: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for what, rows in (("", report.rows), (" (difference)", report.differences)):
        for row in rows:
            name, found = row.estimate.name, row.estimate
            for bound in row.bounds:
                exact = bound.name in EXACT and found.limit == -math.inf
                reason = f"{found.no_limit}; {found.remedy}" if exact else bound.refusal
                if bound.refusal and reason and reason != found.warning:
                    part = (unlimited if exact else others).setdefault(reason, [])
                    part.extend([] if name in part else [f"{name}{what}"])
    if unlimited:
        need = "need a limit below which no episode's term can fall"
        say(console, f"Missing bounds (–): {' and '.join(EXACT)} {need}.")
    reasons = (unlimited | others).items()
    if reasons:
        console.print(_clauses(f"{', '.join(dict.fromkeys(n))}: {why}" for why, n in reasons))


def print_differences(console: Console, report: OffPolicyReport) -> None:
    """What the policy gains over the one that made the log, with bounds."""
    title = (
        "Difference from the policy that made the log, which earned "
        f"{general(report.earned, 4)} per episode"
    )
    if report.differences:
        console.print(_estimates_table(title, report.differences))


def _estimates_table(title: str, rows: Sequence[BoundedEstimate]) -> Table:
    table = numbers_table(title, "estimator", "estimate", *(bound.name for bound in rows[0].bounds))
    for row in rows:
        cells = ["–" if bound.refusal else at_least(bound.value, 4) for bound in row.bounds]
        value = row.estimate.value
        table.add_row(row.estimate.name, "–" if value != value else general(value, 4), *cells)
    return table


def print_improvement(console: Console, assessment: Assessment) -> None:
    """The verdict, values, certificate and reason of an improvement, and the first changes."""
    result = assessment.result
    problem, n_changed = result.problem, int(changed(result).sum())
    print_verdict(console, assessment.verdict)
    print_values(console, assessment.evidence)
    say(
        console,
        f"{counted(int(problem.counts.pairs.sum()), 'transition')}, "
        f"{counted(len(problem.states), 'state')}, {counted(len(problem.actions), 'action')}; "
        f"baseline {FOUND[problem.baseline_source]}",
    )
    say(console, str(assessment.certificate))
    if isinstance(assessment.certificate, ChangeCertificate) and assessment.certificate.tests:
        console.print(change_tests(assessment.certificate))
    if report := assessment.held_out:
        doubt = f" Careful: {report.warning}." if report.warning else ""
        one = report.n_episodes == 1
        say(
            console,
            f"{counted(report.n_episodes, 'episode')} {'was' if one else 'were'} held out of "
            f"training. The next table is about {'it' if one else 'them'}; all numbers above are "
            f"about the other {problem.n_episodes:,}.{doubt}",
        )
        print_differences(console, report)
    if reason := assessment.evidence.no_held_out:
        say(console, f"The held-out episodes cannot test the policy: {reason}.")
    if assessment.swept:
        console.print(sweep_table(result.sweep, result.chosen))
    if reason := result.reason:
        say(console, f"{result.algorithm.name}: {reason}")
    if n_changed:
        console.print(_changes_table(result, n_changed))
    else:
        say(console, unchanged(problem))
    for sentence in () if assessment.sceptic is None else assessment.sceptic.sentences():
        say(console, sentence)


def with_letters(text: str) -> str:
    """The same of a policy A in place of B: neither need be the current one."""
    for policy, letter in (("current policy", "B"), ("new policy", "A")):
        text = text.replace(f"the {policy}", letter).replace(policy, letter)
    return text


def print_verdict(
    console: Console, verdict: Verdict, worded: Callable[[str], str] = lambda text: text
) -> None:
    """The grade with its sentence in the first line, doubts, what it assumes, what would raise it.

    `worded` names the policies otherwise.
    """
    _print_first_line(console, worded(str(verdict)), favourable=verdict.favourable)
    _say_doubts(console, map(worded, verdict.doubts))
    if verdict.assumptions:
        say(console, "It assumes that")
        console.print(_clauses([worded(clause) for clause in verdict.assumptions]))
    say(console, worded(verdict.advice))


def _print_first_line(console: Console, text: str, *, favourable: bool) -> None:
    """A verdict: what speaks for a change is green."""
    style = "bold green" if favourable else "bold"
    console.print(text, style=style, highlight=False, markup=False)


def _say_doubts(console: Console, doubts: Iterable[str]) -> None:
    for doubt in doubts:
        console.print(f"Doubt: {doubt}.", style="bold", highlight=False, markup=False)


def _clauses(clauses: Iterable[str]) -> Table:
    """A list, each clause wrapped behind its dash and never read as markup."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1, 0, 0))
    for clause in clauses:
        table.add_row("–", Text(clause))
    return table


def print_values(
    console: Console, evidence: Evidence, worded: Callable[[str], str] = lambda text: text
) -> None:
    """The mean return in the log, and what its models say."""
    table = numbers_table("Value per episode", "", "mean", percent(0.95))
    _without_frame(table)
    if (earned := evidence.earned) is not None:
        table.add_row(OBSERVED, number(earned.mean), f"± {number(earned.reach)}")
    for name, value, show in (
        ("current policy", evidence.current, number), ("new policy", evidence.new, number),
        ("gain", evidence.gain, signed),
    ):  # fmt: skip
        interval = f"{number(value.low)} to {number(value.high)}"
        table.add_row(f"{worded(name)}, model", show(value.mean), interval)
    for one in evidence.direct:
        table.add_row(f"gain, {one.what}", signed(one.gain), f"at least {surely(one.lower)}")
    console.print(table)
    say(console, worded(_behind_values(evidence)))


def _behind_values(evidence: Evidence) -> str:
    """What the values of an evidence rest on."""
    earned = evidence.earned
    log = f"The {OBSERVED} is not known: {evidence.no_estimates}."
    if earned is not None:
        cut = (
            f", {earned.cut:,} of them cut short; rewards after the cut are not counted"
            if earned.cut
            else ""
        )
        log = f"The log has {counted(earned.episodes, 'episode')}{cut}."
    recorded = (
        f" Other gains divide by the recorded probabilities: {VARYING}, so the model's gain "
        "is not trusted."
    )
    return (
        f"{log} Model intervals contain {percent(0.95)} of {len(evidence.posterior.gains):,} drawn "
        f"models. {SHRUNK}.{recorded if evidence.direct else ''}"
    )


OTHER_VERDICT = (
    "`spibb improve` judged A by another baseline or discount, and trains on parts of the log too, "
    "so that its verdict may differ."
)


def print_comparison(console: Console, found: Comparison) -> None:
    """What the log says of A in place of B, where they differ, and the first ten states."""
    doubted, said = doubts(found.assumptions), found.stored
    if found.verdict is not None and found.evidence is not None:
        if said is not None and "sentence" in said:
            text = with_letters(f"{said['headline']}. {said['sentence']}")
            _print_first_line(console, text, favourable=said["grade"] != Grade.NOT_SUPPORTED)
            _say_doubts(console, doubted)
        elif found.unjudged:
            say(console, f"Not judged. {found.verdict.sentence}")
            _say_doubts(console, doubted)
            say(console, found.verdict.remedy)
        else:
            print_verdict(console, replace(found.verdict, doubts=doubted), with_letters)
            if found.trained:
                say(console, OTHER_VERDICT)
        print_values(console, found.evidence, with_letters)
    say(
        console,
        f"{len(found.differences):,} of {found.common:,} common states differ, "
        f"{found.greedy_changed:,} in the most probable action; mean total variation "
        f"{found.mean_variation:.4g}",
    )
    if found.only_a or found.only_b:
        say(console, f"States of A alone: {found.only_a:,}; of B alone: {found.only_b:,}")
    if found.differences:
        console.print(_differences_table(found))


def _differences_table(found: Comparison) -> Table:
    with_visits = found.evidence is not None
    table = numbers_table(
        f"The largest by total variation{' × visits' if with_visits else ''}:",
        "state", "total variation", "most probable in A", "in B",
        *(["visits"] if with_visits else []),
    )  # fmt: skip
    _without_frame(table)
    table.columns[2].justify = table.columns[3].justify = "left"
    for row in found.differences[:10]:
        cells = [_label(row.state), f"{row.variation:.3f}", _label(row.greedy_a),
                 _label(row.greedy_b)]  # fmt: skip
        table.add_row(*cells, *([f"{row.visits:,}"] if with_visits else []))
    return table


def change_tests(certificate: ChangeCertificate) -> Table:
    """The tested changes, a state in each row, accepted ones first; summary.json has all."""
    cuts = f", {certificate.cuts}" if certificate.cuts else ""
    table = numbers_table(
        f"{counted(len(certificate.tests), 'change')} tested on {certificate.judging:,} other "
        f"episodes than those that chose; advantage per visit{cuts}:",
        "state", "avoid", "p", "advantage", "at least", "visits", "verdict",
    )  # fmt: skip
    _without_frame(table)
    table.columns[1].justify = table.columns[-1].justify = "left"
    ordered = sorted(certificate.tests, key=lambda test: test.adjusted_p_value)
    rows = [(one, change) for one in ordered for change in one.changes]
    for test, change in rows[:10]:
        results = ("", "", "", "", "in the same test")
        if change == test.changes[0]:
            results = (
                f"{test.adjusted_p_value:.2g}", general(test.advantage, 3),
                at_least(test.lower_bound), f"{test.visits:,}",
                "accepted" if test.accepted else test.lacks,
            )  # fmt: skip
        table.add_row(_label(change.state), ", ".join(map(_label, change.avoided)), *results)
    return table


def sweep_table(sweep: Sequence[Candidate], chosen: Candidate | None) -> Table:
    """Every candidate of a sweep over N∧; the chosen one is marked."""
    table = numbers_table(
        "Sweep over n_wedge: value in the best-fitting model; gain in drawn models, at least "
        "(delta shared among the candidates) and on average; off-policy value (wpdis, ± 95 %; "
        "same log, so optimistic); states changed",
        "", "n_wedge", "value", "gain ≥", "mean gain", "off-policy", "states",
    )  # fmt: skip
    _without_frame(table)
    for candidate in sweep:
        mark, off = "→ " if candidate == chosen else "  ", candidate.off_policy
        table.add_row(
            f"{mark}{candidate.algorithm}", f"{candidate.n_wedge:g}", general(candidate.value, 3),
            at_least(candidate.lower), general(candidate.gain, 3),
            "–" if off is None else f"{general(off.value, 3)} ± {off.interval[1] - off.value:.2g}",
            f"{candidate.states_changed:,}",
        )  # fmt: skip
    return table


def _changes_table(result: Improvement, n_changed: int) -> Table:
    table = numbers_table(
        f"{n_changed:,} of {len(result.v):,} states change; the largest by visits × gain:",
        "state", "visits", "mass moved", "more of", "less of", "gain in the model",
    )  # fmt: skip
    _without_frame(table)
    table.columns[3].justify = table.columns[4].justify = "left"
    for change in changes(result, 10):
        table.add_row(
            _label(change.state), f"{change.visits:,}", f"{change.moved:.2f}",
            _label(change.more), _label(change.less), general(change.gain, 4),
        )  # fmt: skip
    return table
