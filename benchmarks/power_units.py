"""Several rows per user: how often a verdict is wrong, and right, with and without --unit.

Users have an effect on the reward that stays, and an action that stays or mostly does. Where no
action is better, "certified" and "supported" are wrong: both say that a change gains something.

Run: python -m benchmarks.power_units [logs per design]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import spibb

COLUMNS = {"state": "group", "action": "item", "reward": "click"}
LIMITS = {"lowest_reward": 0.0, "highest_reward": 1.0}
ALGORITHMS = {"certified": LIMITS, "pi-b": {}}


@dataclass(frozen=True)
class Design:
    """Users, rows of each, how often the action is drawn anew, and what the better one gains."""

    users: int
    rows: int
    anew: float
    gain: float = 0.0

    def draw(self, rng: np.random.Generator) -> pa.Table:
        """A log of two actions, each drawn with probability 1/2; who clicks mostly does."""
        user = np.repeat(np.arange(self.users), self.rows)
        habit = rng.beta(0.5, 0.5, self.users)[user]
        item = rng.integers(2, size=self.users)[user]
        item = np.where(rng.random(len(user)) < self.anew, rng.integers(2, size=len(user)), item)
        rate = habit * (1 - 2 * self.gain) + 2 * self.gain * item
        click = (rng.random(len(user)) < rate).astype(int)
        return pa.table({
            "user_id": user, "group": np.zeros(len(user), int), "item": item, "click": click,
        })  # fmt: skip


DESIGNS = (
    Design(60, 15, 0.0), Design(60, 15, 0.2), Design(300, 15, 0.0),
    Design(2000, 5, 0.0, 0.05), Design(2000, 5, 0.2, 0.05),
)  # fmt: skip


def grades(frame: pa.Table, columns: dict[str, str]) -> list[bool]:
    """Whether each algorithm's policy is certified, or supported."""
    log = spibb.Log.from_frame(frame, columns=columns, bandit=True)
    found = [
        spibb.improve(log, algorithm=name, discount=0.0, **options)
        for name, options in ALGORITHMS.items()
    ]
    return [result.verdict.favourable for result in found]


def main(logs: int = 200) -> None:
    """Print how many verdicts were favourable: all rows first, then one per user."""
    print(f"{'design':60}", "all rows, one per user:", *ALGORITHMS)
    for number, design in enumerate(DESIGNS):
        found = []
        for seed in range(logs):
            frame = design.draw(np.random.default_rng([number, seed]))
            unit = {**COLUMNS, "unit": "user_id"}
            found.append(grades(frame, COLUMNS) + grades(frame, unit))
        print(f"{design!s:60}", *np.sum(found, axis=0), f"of {logs}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
