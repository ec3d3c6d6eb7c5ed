"""Rules: states with the same decision, joined where they differ in one column only.

A rule allows a set of values in each column of the state. All rules together describe the states
that the policy knows, each once and no other: what the log never showed stays without a decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spibb.arrays import PROBABILITY_ROUNDING
from spibb.binning import Bins
from spibb.decisions import likeliest, settled
from spibb.ingest.loaded import LoadedPolicy
from spibb.irregular_tables import MISSING_LABEL
from spibb.labels import Label, Vocabulary

Allowed = tuple[frozenset[int], ...]
"""For each column of the state, the codes of the values allowed there."""
Chances = tuple[tuple[int, float], ...]
"""Actions played, with their probabilities."""


@dataclass(frozen=True)
class StateColumn:
    """A column of the state: its values in order, and the bins behind them if it was cut.

    Where missing values are a level of their own, that is the last value.
    """

    name: str
    values: tuple[Label, ...]
    bins: Bins | None

    def parts(self, codes: Sequence[int]) -> tuple[list[int], bool]:
        """The codes of values that are there, and whether a missing one is allowed too."""
        missing = self.values[-1] == MISSING_LABEL and len(self.values) - 1 in codes
        return [code for code in codes if self.values[code] != MISSING_LABEL], missing


@dataclass(frozen=True)
class Rule:
    """What is done where every column has one of its values.

    `chances` are the actions played with their probabilities, in the order of their labels;
    `states` are the codes of the states that the rule describes.
    """

    allowed: tuple[tuple[int, ...], ...]
    chances: Chances
    states: tuple[int, ...]


def columns_of(loaded: LoadedPolicy) -> tuple[StateColumn, ...]:
    """The columns of the states; bins in their order, other values sorted."""
    names, labels = loaded.policy.states.names, loaded.policy.states.labels
    found = []
    for position, name in enumerate(names):
        cut = loaded.bins.get(name)
        present = {label[position] if len(names) > 1 else label for label in labels}
        level = (MISSING_LABEL,) if MISSING_LABEL in present else ()
        values = cut.labels if cut else tuple(sorted(present - {MISSING_LABEL}))
        found.append(StateColumn(name, (*values, *level), cut))
    return tuple(found)


def coded_states(loaded: LoadedPolicy, columns: Sequence[StateColumn]) -> np.ndarray:
    """The code of each state's value in each column [S, columns]."""
    index = [{value: code for code, value in enumerate(column.values)} for column in columns]
    labels = loaded.policy.states.labels
    rows = [label if len(columns) > 1 else (label,) for label in labels]
    return np.array([[index[i][part] for i, part in enumerate(row)] for row in rows])


def rules_of(loaded: LoadedPolicy, *, deterministic: bool) -> list[Rule]:
    """The rules of a policy; with `deterministic`, of the one that takes the likeliest action."""
    columns = columns_of(loaded)
    probs = loaded.policy.probs if deterministic else settled(loaded.policy.probs)
    chances = _chances(probs, loaded.policy.actions, deterministic)
    boxes: dict[tuple[Allowed, Chances], list[int]] = {
        (tuple(frozenset({code}) for code in row), chances[state]): [state]
        for state, row in enumerate(coded_states(loaded, columns).tolist())
    }
    for position in sorted(range(len(columns)), key=lambda i: -len(columns[i].values)):
        boxes = _joined(boxes, position)
    rules = [
        Rule(tuple(tuple(sorted(part)) for part in box), played, tuple(sorted(states)))
        for (box, played), states in boxes.items()
    ]
    return sorted(rules, key=lambda rule: rule.states[0])


def _chances(probs: np.ndarray, actions: Vocabulary, deterministic: bool) -> list[Chances]:
    """What each row plays, in the order in which `decisions.choose` goes through the actions."""
    if deterministic:
        return [((code, 1.0),) for code in likeliest(probs, actions).tolist()]
    order = actions.in_order.tolist()
    return [
        tuple((a, float(row[a])) for a in order if row[a] > PROBABILITY_ROUNDING) for row in probs
    ]


def _joined(
    boxes: dict[tuple[Allowed, Chances], list[int]], position: int
) -> dict[tuple[Allowed, Chances], list[int]]:
    """Boxes that differ in one column only, joined."""
    groups: dict[tuple[Allowed, Chances], list[tuple[Allowed, list[int]]]] = {}
    for (box, played), states in boxes.items():
        others = (*box[:position], frozenset[int](), *box[position + 1 :])
        groups.setdefault((others, played), []).append((box, states))
    joined = {}
    for (others, played), members in groups.items():
        values = frozenset[int]().union(*(box[position] for box, _ in members))
        box = (*others[:position], values, *others[position + 1 :])
        joined[box, played] = [state for _, states in members for state in states]
    return joined


def runs(codes: Sequence[int]) -> list[tuple[int, int]]:
    """Increasing codes as runs of neighbours, first and last: 1, 2, 3, 7 as (1, 3), (7, 7)."""
    found: list[tuple[int, int]] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1] = found[-1][0], code
        else:
            found.append((code, code))
    return found
