"""Read and write policies in files."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from spibb.arrays import as_floats
from spibb.binning import Bins
from spibb.checks import finite, takes
from spibb.columns import check_given
from spibb.counts import Counts
from spibb.errors import InputError
from spibb.files import check_manifest, possible, read_manifest, sha256, write_text
from spibb.ingest.cells import Cells, read_cells
from spibb.ingest.loaded import LoadedPolicy
from spibb.ingest.mapping import MAPPING, ColumnMap, ColumnNames
from spibb.ingest.policy_cells import check_covers, policy_of_cells
from spibb.ingest.whole_policy import ENDING, STORED_VERDICT, read_whole_policy
from spibb.labels import Vocabulary, encode
from spibb.loading import anything, list_of, read_json, real, record, table_of, text, whole
from spibb.log import Log
from spibb.policy import Policy
from spibb.sql.sources import Source, check_readable

SIDECAR = "policy.json"
WRITTEN = ("policy.csv", "policy.parquet")
VECTORS = "policy.npz"
"""The policy in a result folder whose states are vectors."""
FORMAT = 1
FORM = record(
    {
        "format": whole(FORMAT, FORMAT),
        "state": list_of(text(), least=1),
        "action": list_of(text(), least=1),
        "bins": table_of(list_of(real(), least=1)),
        "files": table_of(text(), least=1),
    },
    {
        "origin": table_of(anything()),
        "discount": real(0, 1, "[)"),
        "verdict": STORED_VERDICT,
        "reading": MAPPING,
    },
    more=True,
)
"""The form of policy.json."""


@takes(path=(str, Source, Path), log=(type(None), Counts, Log))
def read_policy(path: str | Path | Source, log: Log | Counts | None = None) -> Policy:
    """Read a policy from a table `state, action, probability`, in any file that a log may be in.

    Pairs left out have probability 0; other columns are ignored. The file may name its columns as
    the log does, `state` and `action`, or as its own policy.json says.

    Parameters:
        path: a file, the folder that `spibb improve` wrote, a table of a database, or any other
            `Source`.
        log: a log or its counts. Labels then take the types and the column names of the log's, and
            every state of the log must have a row.

    Returns:
        The policy, with the labels of the file.

    >>> _ = baseline.save("baseline.csv")
    >>> spibb.read_policy("baseline.csv", log).row("mild")
    {'treat': 0.6, 'wait': 0.4}
    """
    return PolicyFile.of(path).policy(log)


@dataclass(frozen=True, eq=False)
class PolicyFile:
    """A policy on labels in place; it is read only once."""

    source: Source

    @classmethod
    def of(cls, path: str | Path | Source) -> PolicyFile:
        """A file, or that in the folder that `spibb improve` wrote."""
        return cls(policy_file(path))

    @cached_property
    def whole(self) -> LoadedPolicy | None:
        """What `LoadedPolicy.save` wrote; None for a table."""
        file = self.source.path
        if file is None or file.suffix != ENDING:
            return None
        return LoadedPolicy(**read_whole_policy(file))

    @cached_property
    def cells(self) -> Cells:
        """The table as it is written."""
        cells = read_cells(self.source)
        if cells.table.num_rows == 0:
            raise InputError(
                f"policy file {self.source.name!r} is empty: it needs one row per pair played"
            )
        return cells

    def columns(self) -> dict[str, Sequence[str]]:
        """The columns of state and action that it was written with, if it says so."""
        if self.whole is not None:
            policy = self.whole.policy
            return {"state": policy.states.names, "action": policy.actions.names}
        return dict(_own_names(self.source.path))

    def policy(self, log: Log | Counts | None = None) -> Policy:
        """As `read_policy` says."""
        if self.whole is not None:
            return _of_log(self.whole.policy, log, f"policy file {self.source.short!r}")
        if log is None:
            return self._labelled()
        return self._labelled(log.states.names, log.actions.names, log)

    def loaded(self, columns: ColumnNames) -> LoadedPolicy:
        """As `load_policy` says."""
        if self.whole is not None:
            return self.whole
        file = self.source.path
        content = None if file is None else _sidecar_of(file)
        if file is None or content is None:
            return LoadedPolicy(self._mapped(columns), {}, {})
        names = tuple(content["state"]), tuple(content["action"])
        bins = {name: Bins(tuple(edges)) for name, edges in content["bins"].items()}
        policy = policy_of_cells(self.cells, f"policy file {file.name!r}", *names)
        return LoadedPolicy(
            policy, bins, content.get("origin", {}), visits=_visits(self.cells, policy, file),
            verdict=content.get("verdict"), discount=content.get("discount"),
            reading=ColumnMap.of(content["reading"]) if "reading" in content else None,
        )  # fmt: skip

    def _mapped(self, columns: ColumnNames) -> Policy:
        """A table without policy.json, whose columns a mapping may name."""
        state, action = (
            None if given is None else (given,) if isinstance(given, str) else tuple(given)
            for given in (columns.get("state"), columns.get("action"))
        )  # fmt: skip
        if state is None and action is None:
            return self._labelled()
        return self._labelled(state or ("state",), action or ("action",))

    def _labelled(
        self,
        state_names: tuple[str, ...] | None = None,
        action_names: tuple[str, ...] | None = None,
        log: Log | Counts | None = None,
    ) -> Policy:
        cells, what = self.cells, f"policy file {self.source.short!r}"
        present = cells.table.column_names
        if state_names is None or action_names is None:
            state_names, action_names = _label_columns(present)
            _check_named(state_names, what)
            return policy_of_cells(cells, what, state_names, action_names, log)
        own = _own_names(self.source.path)
        states = _as_written(state_names, present, "state", own.get("state", ()))
        actions = _as_written(action_names, present, "action", own.get("action", ()))
        return policy_of_cells(cells, what, states, actions, log).named(state_names, action_names)


def _of_log(policy: Policy, log: Log | Counts | None, what: str) -> Policy:
    """The same policy with the column names of a log, whose states it must know."""
    if log is None:
        return policy
    check_covers(policy.states, log, what)
    return policy.named(log.states.names, log.actions.names)


def vector_policy_file(given: str | Path | Source) -> Path | None:
    """The .npz file of a policy on vectors: itself, or that in a result folder; None if none is."""
    path = possible(given) if isinstance(given, Path) else Source.of(given).path
    file = path / VECTORS if path is not None and path.is_dir() else path
    return file if file is not None and file.suffix == ".npz" and file.is_file() else None


def is_vector_policy(given: str | Path | Source) -> bool:
    """Whether a policy is one on vectors: an .npz file, or a folder that has one."""
    return vector_policy_file(given) is not None


def policy_file(given: str | Path | Source) -> Source:
    """The source itself, or the file in the folder that `spibb improve` wrote.

    What `spibb` wrote is in UTF-8 with decimal points, whatever the log is in.
    """
    source = Source.of(given)
    path = source.path
    if path is None or not path.is_dir():
        ours = path is not None and path.name in WRITTEN and path.with_name(SIDECAR).is_file()
        return Source(source.place) if ours else source
    if is_vector_policy(path):
        raise InputError(
            f"{str(path)!r} holds a policy on vectors (dqn), expected a table of states: in Python "
            "spibb.deep.load_vector_policy reads it, and its policy.onnx serves elsewhere"
        )
    check_manifest(path, ("policy.parquet", SIDECAR))
    return Source(path / "policy.parquet")


def _as_written(
    names: tuple[str, ...], present: Sequence[str], ours: str, own: Sequence[str]
) -> tuple[str, ...]:
    """The columns of a file behind a log's names: these, or ours, or those of its policy.json."""
    for others in ((ours,), tuple(own)):
        alike = len(others) == len(names) and set(others) <= set(present)
        if alike and not set(names) <= set(present):
            return others
    return names


def _own_names(path: Path | None) -> dict[str, list[str]]:
    """The names of state and action that policy.json has for a file; none where it lists none."""
    if path is None or not (sidecar := path.with_name(SIDECAR)).is_file():
        return {}
    content = read_json(sidecar, FORM, repr(str(sidecar)), "write the policy again, or delete it")
    listed = path.name in content["files"]
    return {name: content[name] for name in ("state", "action")} if listed else {}


def _label_columns(present: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns to the left of `action` (or of `action_0`, `action_1`, …), and these."""
    parts = tuple(name for name in present if re.fullmatch(r"action_\d+", name))
    actions = ("action",) if "action" in present or not parts else parts
    left = present[: list(present).index(actions[0])] if actions[0] in present else ()
    return tuple(name for name in left if name != "probability") or ("state",), actions


def _check_named(state_names: Sequence[str], what: str) -> None:
    """Refuse row numbers that a writer of tables put in front, without a name, as a state."""
    for name in state_names:
        if re.fullmatch(r"column\d+|Unnamed: \d+|__index_level_\d+__", name):
            raise InputError(
                f"{what} has a column without a name ({name!r}) before 'action', which looks like "
                "row numbers: leave it out (pandas: index=False), or name it"
            )


def describe_policy(
    folder: Path,
    states: Vocabulary,
    actions: Vocabulary,
    bins: Mapping[str, Bins],
    known: Mapping[str, Any],
) -> None:
    """Write policy.json beside the policy: how to read a case, and what is `known` of the policy.

    That is its `origin`, and if there are some its `verdict`, `discount` and `reading`.
    """
    content = {
        "format": FORMAT,
        "state": list(states.names),
        "action": list(actions.names),
        "bins": {column: list(cut.edges) for column, cut in bins.items()},
        "files": {
            name: sha256(folder / name) for name in WRITTEN
        },
        **known,
    }  # fmt: skip
    text = json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"
    write_text(folder / SIDECAR, text)


@takes(path=(str, Source, Path))
def load_policy(path: str | Path | Source, *, columns: ColumnNames | None = None) -> LoadedPolicy:
    """Load a policy file, or the folder that `spibb improve` wrote, with its encoders.

    Parameters:
        path: a policy file, or that folder.
        columns: the state's and the action's columns of a table that has no policy.json, as in
            `read_log`; otherwise they are `action` and all columns to the left of it.

    A file that `LoadedPolicy.save` wrote (``.spibb``) has it all; it is compared with its hash.

    Returns:
        The policy with `row(case)`, `best(case)` and `act_many(cases)`, which take raw values, cut
        as in training.

    >>> _ = spibb.run(log, "improved", baseline=baseline, n_wedge=1, force=True)
    >>> spibb.load_policy("improved").best({"state": "severe"})
    'treat'
    """
    columns = {} if columns is None else columns
    check_given(columns)
    return PolicyFile.of(path).loaded(columns)


def _sidecar_of(file: Path) -> dict[str, Any] | None:
    """What policy.json beside a policy file says of it, if anything; the file must fit it."""
    sidecar = file.with_name(SIDECAR)
    if file.name in read_manifest(file.parent):
        check_manifest(file.parent, (SIDECAR,))
    if not sidecar.is_file():
        return None
    content = read_json(sidecar, FORM, repr(str(sidecar)), "write the policy again, or delete it")
    expected = content["files"].get(file.name)
    if expected is None and file.name in WRITTEN:
        raise InputError(
            f"{str(sidecar)!r} does not list {file.name!r}, so its bins may not fit: write "
            "the policy again, or delete it"
        )
    if expected is None:
        return None
    check_readable(file)
    if sha256(file) != expected:
        raise InputError(
            f"{str(file)!r} was changed after {SIDECAR} was written, so its encoders may not "
            f"fit: restore it, or delete {SIDECAR}"
        )
    return content


def _visits(cells: Cells, policy: Policy, path: Path) -> np.ndarray | None:
    """How often the log was in each state [S]: the column `count`, where there is one."""
    if "count" not in cells.table.column_names:
        return None
    columns = [cells.column(name) for name in policy.states.names]
    state = encode(columns, policy.states, "states")
    counts = as_floats(cells.numbers("count"))
    finite(counts, f"policy file {path.name!r}: count")
    return np.bincount(state, weights=counts, minlength=policy.n_states)


def parse_case(
    texts: Sequence[str], names: Sequence[str], empty: Collection[str] = ()
) -> dict[str, str | None]:
    """Read ``ward=3`` and ``age=31``, or a plain label where a state has one column.

    ``ward=`` is a missing value, as an empty cell is, but for columns where a label is `empty`.
    """
    case = _written(texts, names)
    return {name: None if text == "" and name not in empty else text for name, text in case.items()}


def _written(texts: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """What is written for each column."""
    if len(names) == 1 and len(texts) == 1 and not texts[0].startswith(f"{names[0]}="):
        return {names[0]: texts[0]}
    case: dict[str, str] = {}
    for written in texts:
        name = next((name for name in names if written.startswith(f"{name}=")), None)
        if name is None:
            raise InputError(
                f"--state {written!r} is not understood: write column=value for each of "
                f"{', '.join(names)}"
            )
        if name in case:
            raise InputError(
                f"--state gives {name!r} twice, as {case[name]!r} and in {written!r}: give it once"
            )
        case[name] = written[len(name) + 1 :]
    _check_whole(texts, case, names)
    return case


def _check_whole(texts: Sequence[str], case: Mapping[str, str], names: Sequence[str]) -> None:
    """Refuse a case that lacks a column; the remedy has the values that one text gave together."""
    missing = next((name for name in names if name not in case), None)
    if missing is None:
        return
    starts = "|".join(re.escape(f"{name}=") for name in names)
    parts = [part for text in texts for part in re.split(rf"[,;\s]\s*(?={starts})", text)]
    given = {part.split("=")[0]: shlex.quote(part) for part in parts}
    options = " ".join(f"--state {given.get(name, f'{name}=…')}" for name in names)
    raise InputError(
        f"{missing!r} is missing: a state here is {', '.join(names)}, each with its own --state; "
        f"write {options}"
    )
