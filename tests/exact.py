"""Policy iteration in rational arithmetic: exact values and exact ties, for tiny problems."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from oracles import dense_p

from spibb.mdp import MDP
from spibb.solve import Box

Table = list[list[Fraction]]


def fractions(table: np.ndarray) -> Table:
    """The numbers of a table [S, A], each as the fraction that it is."""
    return [[Fraction(float(x)) for x in row] for row in table]


def solved(matrix: Table, right: list[Fraction]) -> list[Fraction]:
    """Gauss–Jordan elimination."""
    n, rows = len(right), [[*row, b] for row, b in zip(matrix, right)]
    for k in range(n):
        top = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[top] = rows[top], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k])]
    return [row[n] for row in rows]


class Exact:
    """An MDP whose numbers are taken as the fractions that they are."""

    def __init__(self, mdp: MDP) -> None:
        self.p = [fractions(rows) for rows in dense_p(mdp)]
        self.r, self.discount = fractions(mdp.rewards), Fraction(mdp.discount)
        self.states = range(len(self.r))

    def values(self, pi: Table) -> list[Fraction]:
        """V^π [S]."""
        matrix = [
            [
                (s == t) - self.discount * sum(w * row[t] for w, row in zip(pi[s], self.p[s]))
                for t in self.states
            ]
            for s in self.states
        ]
        right = [sum(w * r for w, r in zip(pi[s], self.r[s])) for s in self.states]
        return solved(matrix, right)

    def q(self, v: list[Fraction]) -> Table:
        """Q = R + γ P v [S, A]."""
        return [
            [r + self.discount * sum(p * x for p, x in zip(row, v)) for r, row in zip(*both)]
            for both in zip(self.r, self.p)
        ]

    def optimum(self, box: Box) -> tuple[Table, list[Fraction]]:
        """The best policy of a box and its values; ties keep `start`, else the first action."""
        lower, upper, start = map(fractions, box)
        pi = start
        while True:
            v = self.values(pi)
            q = self.q(v)
            pi = [best_row(*rows) for rows in zip(q, lower, upper, start)]
            if all(dot(pi[s], q[s]) == v[s] for s in self.states):
                return pi, v


def dot(x: list[Fraction], y: list[Fraction]) -> Fraction:
    """Σ x y."""
    return sum((a * b for a, b in zip(x, y)), Fraction(0))


def best_row(
    q: list[Fraction], lower: list[Fraction], upper: list[Fraction], start: list[Fraction]
) -> list[Fraction]:
    """The best row between bounds: `start` if it is as good, else filled in order of q, index."""
    row, rest = list(lower), sum(start) - sum(lower)
    for a in sorted(range(len(q)), key=lambda a: (-q[a], a)):
        take = min(rest, upper[a] - lower[a])
        row[a], rest = row[a] + take, rest - take
    return start if dot(row, q) == dot(start, q) else row
