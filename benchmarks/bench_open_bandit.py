"""Verdicts on files of the shape of the Open Bandit logs, against the simulated truth.

Run: python -m benchmarks open_bandit, or python benchmarks/bench_open_bandit.py [files] [design].
A file has the columns timestamp, item_id, position, click, propensity_score, user features and
affinities. Its logging policy shows items at random, or as Thompson sampling would, with
probabilities that change from day to day. In half of the files one item is better for one group of
users; in the others all items are alike. A verdict agrees with the truth if it is certified or
supported exactly where there is something to gain, and then the new policy truly gains.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

FILES = 200
WANTED = 0.95
DAYS = 7
ROUNDING = 1e-9
CERTIFIED = {"algorithm": "certified", "lowest_reward": 0, "highest_reward": 1}


@dataclass(frozen=True)
class Design:
    """What files are drawn from: sizes, click rates, and how the log was made."""

    name: str
    rows: int
    items: int
    groups: int
    rate: float
    lift: float
    thompson: bool


CHOSEN_ON = (
    Design("random, 6 items", 150_000, 6, 3, 0.004, 4.0, thompson=False),
    Design("thompson, 6 items", 150_000, 6, 3, 0.004, 4.0, thompson=True),
)
"""Designs on which everything was tried."""
CONFIRMED_ON = (
    Design("random, 10 items", 100_000, 10, 2, 0.0035, 5.0, thompson=False),
    Design("thompson, 5 items", 80_000, 5, 4, 0.0045, 4.0, thompson=True),
)
"""Designs that nothing was tried on."""


@dataclass(frozen=True)
class World:
    """Click rates [groups, positions, items], and what the log's policy plays on each day."""

    clicks: np.ndarray
    shown: np.ndarray
    better: bool

    @classmethod
    def draw(cls, design: Design, better: bool, rng: np.random.Generator) -> World:
        """Positions and groups differ; if `better`, so does one item in one group."""
        base = design.rate * rng.uniform(0.7, 1.3, (design.groups, 3, 1))
        clicks = np.repeat(base, design.items, axis=2)
        if better:
            clicks[rng.integers(design.groups), :, rng.integers(design.items)] *= design.lift
        shown = np.full((DAYS, design.items), 1 / design.items)
        if design.thompson:
            shown = 0.3 * shown + 0.7 * rng.dirichlet(np.full(design.items, 5.0), DAYS)
        return cls(clicks, shown, better)

    def gain(self, policy: dict[tuple[int, str], dict[int, float]]) -> float:
        """Clicks per display of a policy by (position, group), less those of the log's."""
        groups, positions, items = self.clicks.shape
        logged = self.shown.mean(axis=0)
        gains = [
            self.clicks[g, p]
            @ (np.array([policy[p + 1, f"g{g}"].get(i, 0.0) for i in range(items)]) - logged)
            for g in range(groups)
            for p in range(positions)
        ]
        return float(np.mean(gains))


def write_file(path: Path, design: Design, world: World, rng: np.random.Generator) -> None:
    """A CSV file as the Open Bandit data has them."""
    n = design.rows
    day = np.sort(rng.integers(DAYS, size=n))
    group, position = rng.integers(design.groups, size=n), rng.integers(3, size=n)
    below = world.shown.cumsum(axis=1)[day]
    item = np.minimum((rng.random(n)[:, None] > below).sum(axis=1), design.items - 1)
    click = rng.random(n) < world.clicks[group, position, item]
    second = np.sort(rng.integers(86_400, size=n)) + 86_400 * day
    when = np.datetime64("2019-11-24T00:00:00") + second.astype("timedelta64[s]")
    columns = {
        "": np.arange(n), "timestamp": np.char.add(when.astype(str), "+00:00"), "item_id": item,
        "position": position + 1, "click": click.astype(int),
        "propensity_score": world.shown[day, item],
        "user_feature_0": np.char.add("g", group.astype(str)),
        **{f"user_feature_{k}": rng.integers(9, size=n) for k in range(1, 4)},
        **{f"user-item_affinity_{k}": rng.random(n).round(2) for k in range(design.items)},
    }  # fmt: skip
    pyarrow.csv.write_csv(pa.table(columns), path)


def verdict_on(path: Path, world: World, **options: Any) -> tuple[str, float]:
    """The grade of `spibb.run`, and what the policy truly gains."""
    import spibb

    done = spibb.run(
        path, bandit=True, columns={
            "state": ["position", "user_feature_0"], "action": "item_id", "reward": "click",
            "action_prob": "propensity_score",
        }, **options,
    )  # fmt: skip
    table = {state: done.policy.row(state) for state in done.policy.states.labels}
    return str(done.verdict.grade), world.gain(table)


def grades(design: Design, files: int, seed: int, **options: Any) -> Counter[tuple[str, str, str]]:
    """How often each truth, grade and true gain came together."""
    seen: Counter[tuple[str, str, str]] = Counter()
    for child in np.random.SeedSequence(seed).spawn(files):
        rng = np.random.default_rng(child)
        world = World.draw(design, bool(child.spawn_key[-1] % 2), rng)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "clicks.csv"
            write_file(path, design, world, rng)
            grade, gain = verdict_on(path, world, **options)
        truth = "better" if world.better else "alike"
        seen[truth, grade, "gains" if gain > ROUNDING else "no gain"] += 1
    return seen


def agreeing(seen: Counter[tuple[str, str, str]]) -> int:
    """How many verdicts agree with the truth."""
    return sum(
        n
        for (truth, grade, gain), n in seen.items()
        if (truth == "alike" if grade == "not supported" else (truth, gain) == ("better", "gains"))
    )


def main(files: int = FILES, which: str = "all") -> None:
    """Print how many verdicts agree of so many files per group of designs; wanted: 95 %."""
    groups = {"chosen": CHOSEN_ON, "confirmed": CONFIRMED_ON}
    failed = False
    for name, designs in groups.items():
        if which not in ("all", name):
            continue
        each, total = files // len(designs), 0
        for number, design in enumerate(designs):
            began = time.process_time()
            seen = grades(design, each, seed=number, **CERTIFIED)
            agreed, took = agreeing(seen), time.process_time() - began
            print(f"{name} on {design}: {agreed} of {each} agree ({took:.0f} s)", flush=True)
            for (truth, grade, gain), n in sorted(seen.items()):
                print(f"  items {truth}: {grade}, truly {gain}: {n}", flush=True)
            total += agreed
        failed |= name == "confirmed" and total < WANTED * each * len(designs)
    sys.exit(1 if failed else None)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else FILES, (*sys.argv[2:3], "all")[0])
