"""A policy as rules that people read."""

from __future__ import annotations

from collections.abc import Sequence

from spibb.checks import one_line
from spibb.ingest.loaded import LoadedPolicy
from spibb.labels import Label
from spibb.serving.rules import Rule, StateColumn, columns_of, rules_of, runs
from spibb.words import percent

MANY = 12
"""More values than these are counted in a rule rather than listed, if they are all there are."""


def prose_of(loaded: LoadedPolicy, *, deterministic: bool = False) -> str:
    """Rules in words, the most visited first, each with its states and its share of the visits."""
    columns, rules = columns_of(loaded), rules_of(loaded, deterministic=deterministic)
    ordered = sorted(rules, key=lambda rule: -_weight(loaded, rule.states))
    lines = [*about(loaded), ""]
    for number, rule in enumerate(ordered, 1):
        lines.append(f"{number}. If {condition(rule, columns)}{_share(loaded, rule)}:")
        lines.append(f"   {_decision(loaded, rule)}")
    lines += ["", "In any other state: the log never shows it, so follow the current policy."]
    return plain(lines)


def plain(lines: Sequence[str]) -> str:
    """Lines of a text file; spaces that do not break are for pages."""
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ") + "\n"


def about(loaded: LoadedPolicy) -> list[str]:
    """What the policy is, its verdict, how it was made, and its hash."""
    policy = loaded.policy
    lines = [
        f"A policy of {policy.n_states} states ({', '.join(policy.states.names)}) and "
        f"{policy.n_actions} actions ({', '.join(policy.actions.names)})."
    ]
    if loaded.verdict is not None:
        lines.append(f"Verdict: {loaded.verdict['headline']}.")
    if "command" in loaded.origin:
        lines.append(f"Made by: {loaded.origin['command']}")
    return [one_line(line) for line in (*lines, f"SHA-256: {loaded.sha256}")]


def condition(rule: Rule, columns: Sequence[StateColumn]) -> str:
    """Where the rule applies; what has alternatives stands in brackets."""
    parts = [
        f"{column.name} is {_allowed(column, codes)}"
        for column, codes in zip(columns, rule.allowed)
    ]
    if len(parts) > 1:
        parts = [f"({part})" if " or " in part or " and " in part else part for part in parts]
    return " and ".join(parts)


def _allowed(column: StateColumn, codes: Sequence[int]) -> str:
    there, missing = column.parts(codes)
    parts = (
        [] if not there else [_interval(column, there) if column.bins else _values(column, there)]
    )
    return ", or ".join([*parts, *(["missing"] if missing else [])])


def _values(column: StateColumn, codes: Sequence[int]) -> str:
    if len(codes) == len(column.values) > MANY:
        return f"any of the {len(codes)} known values"
    shown = [written(column.values[code]) for code in codes]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _interval(column: StateColumn, codes: Sequence[int]) -> str:
    assert column.bins is not None
    edges, parts = column.bins.edge_names, []
    for first, last in runs(codes):
        low = f"at least {edges[first - 1]}" if first > 0 else ""
        high = f"below {edges[last]}" if last < len(edges) else ""
        parts.append(" and ".join(part for part in (low, high) if part) or "any number")
    return ", or ".join(parts)


def written(label: Label) -> str:
    """A label as it is read: text in quotes where it would be mistaken for something else."""
    if isinstance(label, tuple):
        return " · ".join(map(written, label))
    plain = isinstance(label, str) and label and label.replace("-", "").replace("_", "").isalnum()
    number = isinstance(label, str) and label.lstrip("-").isdigit()
    return repr(label) if isinstance(label, str) and (not plain or number) else str(label)


def _decision(loaded: LoadedPolicy, rule: Rule) -> str:
    ordered = sorted(rule.chances, key=lambda pair: -pair[1])
    named = [(written(loaded.policy.actions[code]), chance) for code, chance in ordered]
    if len(named) == 1:
        return named[0][0]
    return ", ".join(f"{action} {percent(chance)}" for action, chance in named)


def _share(loaded: LoadedPolicy, rule: Rule) -> str:
    n = len(rule.states)
    states = "" if n == 1 else f"{n} states"
    visits = ""
    if loaded.visits is not None and loaded.visits.sum() > 0:
        share = _weight(loaded, rule.states) / float(loaded.visits.sum())
        visits = f"{percent(share)} of the log's visits"
    inside = ", ".join(part for part in (states, visits) if part)
    return f" ({inside})" if inside else ""


def _weight(loaded: LoadedPolicy, states: Sequence[int]) -> float:
    """Visits of some states; their number where visits are not known."""
    if loaded.visits is None:
        return float(len(states))
    return float(loaded.visits[list(states)].sum())
