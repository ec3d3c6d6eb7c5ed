"""Experiment: what a study runs, as a frozen value that round-trips through TOML."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from spibb import checks
from spibb.algorithms import make
from spibb.algorithms.base import Algorithm
from spibb.envs.baselines import GRIDWORLD_BASELINES
from spibb.envs.families import FAMILIES
from spibb.errors import InputError
from spibb.files import sha256, write_text
from spibb.loading import flag, list_of, one_of, parse_toml, real, record, text, whole
from spibb.names import DQN

GRIDWORLDS = ("gridworld", "gridworld-random")
FINITE = (*GRIDWORLDS, "random-mdps")
HELICOPTER, ASSURANCE = "helicopter", "assurance"
STUDY_NAMES = (*FINITE, HELICOPTER, ASSURANCE)
Value = bool | int | float | str

_TRAINING = record(
    {},
    {
        "noises": list_of(real(0, math.inf, "[)"), least=1),
        "passes": list_of(whole(1), least=1),
        "seeds": whole(1),
        "episodes": whole(1),
        "one_log": flag(),
    },
)
_NETWORK = record({"path": text(), "sha256": text()})
FORM = record(
    {
        "study": one_of(*STUDY_NAMES),
        "sizes": list_of(whole(1), least=1),
        "columns": list_of(text(), least=1),
    },
    {
        "etas": list_of(real(0, 1)),
        "seed": whole(0),
        "max_steps": whole(1),
        "training": _TRAINING,
        "families": list_of(one_of(*FAMILIES), least=1),
        "baseline": text(),
        "network": _NETWORK,
    },
)
"""The form of experiment.toml."""


@dataclass(frozen=True)
class Dqn:
    """A column of the helicopter study: what its networks are trained for.

    N∧ = 0 and κ = 0 are plain DQN. `spibb.deep.SpibbDQN` does the rest; this alone reads the
    results of a study where JAX is not installed.
    """

    n_wedge: float = 0.0
    kappa: float = 0.0
    variant: str = "pi-b"

    def __post_init__(self) -> None:
        checks.n_wedge(self.n_wedge)
        checks.number("kappa", self.kappa, 0, math.inf, "[)")
        checks.choice("variant", self.variant, ("pi-b", "pi-leq-b"))


@dataclass(frozen=True)
class Column:
    """One algorithm with its hyper-parameters: a column of the results.

    Written ``name`` or ``name:option=value,option=value``, for example ``pi-b:n_wedge=5``. The name
    is one of the registry, or the import path of a class: ``module.Class``.
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
        column.check()
        return column

    @cached_property
    def key(self) -> str:
        """The written form."""
        options = ",".join(f"{name}={_written(value)}" for name, value in self.options)
        return f"{self.algorithm}:{options}" if options else self.algorithm

    def make(self) -> Algorithm:
        """The algorithm itself."""
        return make(self.algorithm, **dict(self.options))

    def dqn(self) -> Dqn:
        """What the networks of a column of the helicopter study are trained for."""
        checks.options(DQN, Dqn, dict(self.options))
        return Dqn(**dict(self.options))  # type: ignore[arg-type]

    def check(self) -> None:
        """Refuse what no algorithm accepts.

        A class from elsewhere is imported where it runs only: its results can be read without it.
        """
        if self.algorithm == DQN:
            self.dqn()
        elif "." not in self.algorithm:
            self.make()


@dataclass(frozen=True)
class Training:
    """How the helicopter study trains and tests networks.

    `noises` are noise factors of the helicopter, `passes` the numbers of passes over the data set
    after which networks are tested, `seeds` how many networks of each column are trained per data
    set, and `episodes` how many whole episodes test one. With `one_log`, all runs share a single
    data set, and differ in the seeds of their networks.
    """

    noises: tuple[float, ...] = (1.0,)
    passes: tuple[int, ...] = (2000,)
    seeds: int = 15
    episodes: int = 3000
    one_log: bool = False

    def __post_init__(self) -> None:
        for noise in self.noises:
            checks.number("noise", noise, 0, math.inf, "[)")
        for name, values in (
            ("passes", self.passes), ("seeds", (self.seeds,)), ("episodes", (self.episodes,)),
        ):  # fmt: skip
            for value in values:
                checks.positive(name, value)
        if not self.noises or not self.passes:
            raise InputError("training needs at least one noise factor and one number of passes")
        object.__setattr__(self, "noises", tuple(sorted(set(map(float, self.noises)))))
        object.__setattr__(self, "passes", tuple(sorted(set(map(int, self.passes)))))


@dataclass(frozen=True)
class NetworkFile:
    """A baseline of the helicopter in a file, which `spibb.deep.SoftmaxBaseline.save` wrote.

    The contents make it what it is: the same file in another place is the same baseline.
    """

    path: str = dataclasses.field(compare=False)
    sha256: str

    def __str__(self) -> str:
        return f"{self.path!r} with SHA-256 {self.sha256[:12]}…"

    @classmethod
    def of(cls, path: str) -> NetworkFile:
        """The file as it is now."""
        try:
            return cls(path, sha256(Path(path)))
        except OSError as error:
            raise InputError(
                f"cannot read baseline {path!r}: {error.strerror}; name an .npz file that "
                "SoftmaxBaseline.save wrote"
            ) from None


@dataclass(frozen=True)
class Experiment:
    """One study as it is run: its name, data-set sizes, columns, and the seed of all randomness.

    `sizes` are numbers of trajectories, for the helicopter of transitions. `etas` are the baselines
    of the random MDPs, and empty for the others. `training` is for the helicopter, `families` are
    the worlds of the assurance study, each of which cuts its episodes after a length of its own;
    `max_steps` cuts the others. `baseline` names that of a gridworld; None is the authors'.
    `network` is the helicopter's baseline; None is the one that comes with spibb.
    The number of runs is not part of it: it can be raised later.
    """

    study: str
    sizes: tuple[int, ...]
    columns: tuple[Column, ...]
    etas: tuple[float, ...] = ()
    seed: int = 0
    max_steps: int = 50
    training: Training | None = None
    families: tuple[str, ...] = ()
    baseline: str | None = None
    network: NetworkFile | None = None

    def __post_init__(self) -> None:
        checks.choice("study", self.study, STUDY_NAMES)
        if self.baseline is not None:
            if self.study not in GRIDWORLDS:
                raise InputError(f"{self.study} has no named baselines: leave baseline out")
            checks.choice("baseline", self.baseline, GRIDWORLD_BASELINES)
        if self.network is not None and self.study != HELICOPTER:
            raise InputError(f"{self.study} has no network as its baseline: leave network out")
        for size in self.sizes:
            checks.positive("size", size)
        for eta in self.etas:
            checks.number("eta", eta, 0, 1, "()")
        self._check_kind()
        self._check_families()
        keys = [column.key for column in self.columns]
        repeated = sorted({key for key in keys if keys.count(key) > 1})
        if repeated:
            raise InputError(f"column {repeated[0]!r} is listed twice: list it once")
        if not self.sizes or not self.columns:
            raise InputError("an experiment needs at least one size and one column")

    def _check_kind(self) -> None:
        """Networks belong to the helicopter, and the helicopter has nothing else."""
        deep = self.study == HELICOPTER
        if deep != (self.training is not None):
            raise InputError(
                f"the experiment {'lacks' if deep else 'has'} [training], which {self.study} "
                f"{'needs' if deep else 'does not know'}: {'add' if deep else 'remove'} it"
            )
        for column in self.columns:
            if (column.algorithm == DQN) != deep:
                raise InputError(
                    f"column {column.key!r} is not for {self.study}: its columns are "
                    + (f"{DQN}:n_wedge=…,kappa=…" if deep else "the algorithms for finite MDPs")
                )

    def _check_families(self) -> None:
        """The assurance study has families of worlds, and the others have none."""
        for family in self.families:
            checks.choice("family", family, tuple(FAMILIES))
        if len(set(self.families)) < len(self.families):
            raise InputError("a family is listed twice: list it once")
        if bool(self.families) != (self.study == ASSURANCE):
            raise InputError(
                f"{self.study} has families of worlds, and none is listed: list them"
                if self.study == ASSURANCE
                else f"{self.study} has no families of worlds: leave them out"
            )

    def _values(self) -> dict[str, Any]:
        """All entries that are set, in values that TOML and JSON have."""
        values = dataclasses.asdict(self) | {"columns": [column.key for column in self.columns]}
        if not self.families:
            del values["families"]
        return {name: value for name, value in values.items() if value is not None}

    def to_toml(self) -> str:
        """The spec as TOML text."""
        import tomli_w

        return tomli_w.dumps(self._values())

    @cached_property
    def fingerprint(self) -> str:
        """A hash that two specs share if and only if they are the same."""
        values = self._values()
        if self.network is not None:
            values["network"] = self.network.sha256
        text = json.dumps(values, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    def from_toml(cls, text: str, what: str = "the experiment") -> Experiment:
        """Read the TOML text of a spec; `what` is it for messages."""
        values = parse_toml(text, FORM, what, "fix it, or name another folder")
        try:
            values["columns"] = tuple(Column.parse(key) for key in values["columns"])
            for name in ("sizes", "etas", "families"):
                values[name] = tuple(values.get(name, ()))
            if "training" in values:
                values["training"] = Training(**values["training"])
            if "network" in values:
                values["network"] = NetworkFile(**values["network"])
            return cls(**values)
        except InputError as error:
            raise InputError(f"{what}: {error}") from None

    def write(self, path: Path) -> None:
        """Store the spec beside its results."""
        write_text(path, self.to_toml())


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return repr(value) if isinstance(value, float) and float(short) != value else short
