"""A policy as a small decision tree, and the share of visits in which both decide alike.

The tree is grown by the usual greedy rule (CART): each split takes most of the Gini impurity away,
Σ_a p_a(1 − p_a) with p_a the share of visits whose likeliest action is a. Numbers and bins are
split at a threshold, other values into one and the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spibb.checks import positive
from spibb.decisions import likeliest
from spibb.errors import InputError
from spibb.frozen import Frozen
from spibb.ingest.loaded import LoadedPolicy
from spibb.irregular_tables import MISSING_LABEL
from spibb.labels import Vocabulary
from spibb.serving.prose import about, plain, written
from spibb.serving.rules import StateColumn, coded_states, columns_of
from spibb.words import percent

DEPTH = 4
"""Questions until a decision, at most: 16 leaves still fit on a page."""


@dataclass(frozen=True)
class Split:
    """A question about one column: is its code at most (or, for names, exactly) this one?"""

    column: int
    code: int
    ordered: bool

    def holds(self, codes: np.ndarray) -> np.ndarray:
        """The answer for each row of codes [N, columns]."""
        values = codes[:, self.column]
        return values <= self.code if self.ordered else values == self.code


@dataclass(frozen=True)
class Node:
    """A question with two ways on, or an action."""

    action: int
    weight: float
    agreeing: float
    split: Split | None = None
    yes: Node | None = None
    no: Node | None = None


@dataclass(frozen=True, eq=False)
class Tree(Frozen):
    """A tree over a policy's states, with what each decides [S].

    `fidelity` is the share of the log's visits in which the tree decides as the policy does, by its
    most probable action; of the states where the visits are not known.
    """

    root: Node
    columns: tuple[StateColumn, ...]
    decided: np.ndarray
    fidelity: float


def tree_of(loaded: LoadedPolicy, *, depth: int = DEPTH) -> Tree:
    """The tree of a policy whose states come from columns."""
    positive("depth", depth)
    columns = columns_of(loaded)
    if len(columns) == 1 and not _ordered(columns[0]):
        raise InputError(
            f"a state is one name here ({columns[0].name}), and a tree asks about columns: export "
            "rules instead"
        )
    actions = loaded.policy.actions
    codes, wanted = coded_states(loaded, columns), likeliest(loaded.policy.probs, actions)
    weights = np.ones(len(codes)) if loaded.visits is None else np.array(loaded.visits)
    if weights.sum() == 0:
        weights = np.ones(len(codes))
    mass = np.zeros((len(codes), len(actions)))
    mass[np.arange(len(codes)), wanted] = weights
    root = _grow(codes, mass, columns, actions, depth)
    decided = _decide(root, codes)
    fidelity = float(weights[decided == wanted].sum() / weights.sum())
    return Tree(root, columns, decided, fidelity)


def tree_text(loaded: LoadedPolicy, *, depth: int = DEPTH) -> str:
    """The tree in words, and how far it is the policy."""
    tree = tree_of(loaded, depth=depth)
    of = "states" if loaded.visits is None else "the log's visits"
    lines = [
        *about(loaded),
        f"A decision tree of depth {depth} at most. It takes the policy's most probable action in "
        f"{percent(tree.fidelity)} of {of}.",
        "It also gives an answer for states that the log never shows: follow the current policy "
        "there.",
        "",
        *_lines(tree.root, tree, loaded, ""),
    ]
    return plain(lines)


def _ordered(column: StateColumn) -> bool:
    """Whether the values are numbers: whole ones, or bins."""
    return column.bins is not None or type(column.values[0]) is int


def _grow(
    codes: np.ndarray, mass: np.ndarray, columns: tuple[StateColumn, ...], actions: Vocabulary,
    depth: int,
) -> Node:  # fmt: skip
    total = mass.sum(axis=0)
    action, weight = int(likeliest(total[None], actions)[0]), float(total.sum())
    leaf = Node(action, weight, float(total[action]))
    split = _best_split(codes, mass, columns) if depth > 0 and total.max() < weight else None
    if split is None:
        return leaf
    here = split.holds(codes)
    yes = _grow(codes[here], mass[here], columns, actions, depth - 1)
    no = _grow(codes[~here], mass[~here], columns, actions, depth - 1)
    if yes.split is None and no.split is None and yes.action == no.action:
        return leaf
    return Node(action, weight, leaf.agreeing, split, yes, no)


def _best_split(
    codes: np.ndarray, mass: np.ndarray, columns: tuple[StateColumn, ...]
) -> Split | None:
    """The question that leaves least impurity, the first of equal ones; None if all are one kind.

    One that takes nothing away by itself may still lead on: two columns may decide together.
    """
    best, found = np.inf, None
    for position, column in enumerate(columns):
        ordered = _ordered(column)
        table = np.zeros((len(column.values), mass.shape[1]))
        np.add.at(table, codes[:, position], mass)
        inside = np.cumsum(table, axis=0)[:-1] if ordered else table
        outside = table.sum(axis=0) - inside
        splits = (inside.sum(axis=1) > 0) & (outside.sum(axis=1) > 0)
        left = np.where(splits, _impurity(inside) + _impurity(outside), np.inf)
        if len(left) and left.min() < best * (1 - 1e-12):
            best, found = left.min(), Split(position, int(np.argmin(left)), ordered)
    return found


def _impurity(mass: np.ndarray) -> np.ndarray:
    """Weight times Gini impurity: W(1 − Σ p²), for masses [..., A]."""
    total = mass.sum(axis=-1)
    squares = (mass**2).sum(axis=-1)
    return np.asarray(total - squares / np.where(total > 0, total, 1.0))


def _decide(node: Node, codes: np.ndarray) -> np.ndarray:
    if node.split is None or node.yes is None or node.no is None:
        return np.full(len(codes), node.action)
    here, decided = node.split.holds(codes), np.empty(len(codes), dtype=np.int64)
    decided[here] = _decide(node.yes, codes[here])
    decided[~here] = _decide(node.no, codes[~here])
    return decided


def _lines(node: Node, tree: Tree, loaded: LoadedPolicy, indent: str) -> list[str]:
    if node.split is None or node.yes is None or node.no is None:
        action = written(loaded.policy.actions[node.action])
        share = node.agreeing / node.weight if node.weight > 0 else 0.0
        agrees = "" if share == 1 else f"  ({percent(share)} as the policy)"
        return [f"{indent}{action}{agrees}"]
    column = tree.columns[node.split.column]
    question, otherwise = _question(column, node.split)
    return [
        f"{indent}if {question}:",
        *_lines(node.yes, tree, loaded, indent + "    "),
        f"{indent}else ({otherwise}):",
        *_lines(node.no, tree, loaded, indent + "    "),
    ]


def _question(column: StateColumn, split: Split) -> tuple[str, str]:
    last = split.code == len(column.values) - 2
    if split.ordered and last and column.values[-1] == MISSING_LABEL:
        return f"{column.name} is there", f"{column.name} is missing"
    also = ", or missing" if split.ordered and column.values[-1] == MISSING_LABEL else ""
    if column.bins is not None:
        edge = column.bins.edge_names[split.code]
        return f"{column.name} is below {edge}", f"{column.name} is at least {edge}{also}"
    value = written(column.values[split.code])
    if split.ordered:
        return f"{column.name} is at most {value}", f"{column.name} is above {value}{also}"
    return f"{column.name} is {value}", f"{column.name} is not {value}"
