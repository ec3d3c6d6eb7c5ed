"""Experiment: what a study runs, as a frozen value that round-trips through TOML."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from spibb import checks
from spibb.algorithms import make
from spibb.algorithms.base import Algorithm
from spibb.errors import InputError
from spibb.tables import write_whole

SUITES = ("gridworld", "gridworld-random", "random-mdps")
Value = bool | int | float | str


@dataclass(frozen=True)
class Column:
    """One algorithm with its hyper-parameters: a column of the results.

    Written ``name`` or ``name:option=value,option=value``, for example ``pi-b:n_wedge=5``.
    """

    algorithm: str
    options: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Column:
        """Read the written form, and check that the algorithm accepts it."""
        name, _, rest = text.partition(":")
        pairs = []
        for item in filter(None, rest.split(",")):
            key, equals, value = item.partition("=")
            if not equals:
                raise InputError(f"column {text!r}: {item!r} has no '=': write option=value")
            pairs.append((key.strip().replace("-", "_"), checks.parse_value(value.strip())))
        column = cls(name.strip(), tuple(sorted(pairs)))
        column.make()
        return column

    @cached_property
    def key(self) -> str:
        """The written form."""
        options = ",".join(f"{name}={_written(value)}" for name, value in self.options)
        return f"{self.algorithm}:{options}" if options else self.algorithm

    def make(self) -> Algorithm:
        """The algorithm itself."""
        return make(self.algorithm, **dict(self.options))


@dataclass(frozen=True)
class Experiment:
    """A study: its suite, data-set sizes, columns, and the seed of all randomness.

    `sizes` are numbers of trajectories. `etas` are the baselines of the random MDPs, and empty for
    the gridworlds. `max_steps` cuts trajectories. The number of runs is no part of it: it can be
    raised later.
    """

    suite: str
    sizes: tuple[int, ...]
    columns: tuple[Column, ...]
    etas: tuple[float, ...] = ()
    seed: int = 0
    max_steps: int = 50

    def __post_init__(self) -> None:
        checks.choice("suite", self.suite, SUITES)
        for size in self.sizes:
            checks.positive("size", size)
        for eta in self.etas:
            checks.number("eta", eta, 0, 1, "()")
        keys = [column.key for column in self.columns]
        repeated = sorted({key for key in keys if keys.count(key) > 1})
        if repeated:
            raise InputError(f"column {repeated[0]!r} is listed twice: list it once")
        if not self.sizes or not self.columns:
            raise InputError("an experiment needs at least one size and one column")

    def to_toml(self) -> str:
        """The spec as TOML text."""
        lines = [f"suite = {_toml(self.suite)}", f"seed = {self.seed}"]
        lines += [f"max_steps = {self.max_steps}", f"sizes = {_toml(list(self.sizes))}"]
        lines += [f"etas = {_toml(list(self.etas))}", "columns = ["]
        lines += [f"  {_toml(column.key)}," for column in self.columns]
        return "\n".join([*lines, "]", ""])

    @classmethod
    def from_toml(cls, text: str) -> Experiment:
        """Read the TOML text of a spec."""
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"the experiment is not TOML: {error}") from None
        known = {field.name for field in dataclasses.fields(cls)}
        for name in values:
            if name not in known:
                hint = checks.did_you_mean(name, known)
                raise InputError(f"the experiment has an unknown entry {name!r}{hint}: remove it")
        values["columns"] = tuple(Column.parse(key) for key in values.get("columns", ()))
        for name in ("sizes", "etas"):
            values[name] = tuple(values.get(name, ()))
        return cls(**values)

    def write(self, path: Path) -> None:
        """Store the spec beside its results."""
        text = self.to_toml()
        write_whole(path, lambda name: Path(name).write_text(text, encoding="utf-8"))


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _toml(value: str | Sequence[Any]) -> str:
    """A TOML string, or a list of numbers."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return "[" + ", ".join(str(item) for item in value) + "]"
