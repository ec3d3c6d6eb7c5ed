"""A policy as one file: probabilities, labels, bins, origin, verdict, and a hash over all of it.

The file is JSON. Its hash is that of the content written without spaces and with sorted names, so
that one changed value anywhere is noticed, while indentation does not matter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spibb.binning import Bins
from spibb.errors import InputError
from spibb.files import write_text
from spibb.ingest.mapping import MAPPING, ColumnMap
from spibb.labels import LARGEST, LEAST, Label, Vocabulary
from spibb.loading import (
    Form,
    anything,
    either,
    flag,
    list_of,
    null,
    read_json,
    real,
    record,
    row,
    table_of,
    text,
    whole,
)
from spibb.policy import Policy
from spibb.tables import label_columns

if TYPE_CHECKING:
    from spibb.ingest.loaded import LoadedPolicy

ENDING = ".spibb"
FORMAT = 1
AGAIN = "export the policy again"
_PART = either(text(), flag(), whole(LEAST, LARGEST))
_LABELS = record(
    {"columns": list_of(text(), least=1), "labels": list_of(either(_PART, list_of(_PART, least=1)))}
)
STORED_VERDICT = record(
    {"grade": text(), "headline": text()}, {"sentence": text(), "level": real(0, 1, "()")}
)
"""What a policy knows of its verdict."""
_CONTENT: Mapping[str, Form] = {
    "state": _LABELS,
    "action": _LABELS,
    "bins": table_of(list_of(real(), least=1)),
    "probabilities": list_of(list_of(row(whole(0), real(0, 1, "[]")), least=1), least=1),
    "visits": either(null(), list_of(real(0, brackets="[)"))),
    "verdict": either(null(), STORED_VERDICT),
    "discount": either(null(), real(0, 1, "[)")),
    "origin": table_of(anything()),
    "reading": either(null(), MAPPING),
}
FORM = record({"spibb_policy": whole(FORMAT, FORMAT), "sha256": text(), **_CONTENT})
"""The form of the file: `probabilities` has for each state the actions played, as [code, π]."""


def write_whole_policy(loaded: LoadedPolicy, path: Path) -> Path:
    """Write the file whole; its path."""
    if path.suffix != ENDING:
        raise InputError(
            f"cannot write {path.name!r}: the name must end in {ENDING}; write {path.stem}{ENDING}"
        )
    for vocabulary in (loaded.policy.states, loaded.policy.actions):
        label_columns(vocabulary)  # refuses what no file gives back as it is
    head = {"spibb_policy": FORMAT, "sha256": loaded.sha256}
    content = json.dumps(head | _content(loaded), ensure_ascii=False, default=str)
    write_text(path, content + "\n")
    return path


def read_whole_policy(path: Path) -> dict[str, Any]:
    """The fields of a `LoadedPolicy`; the file is refused unless it is whole and as written."""
    what = repr(str(path))
    content = read_json(path, FORM, what, AGAIN)
    stored = {name: content[name] for name in _CONTENT}
    if _hash(stored) != content["sha256"]:
        raise InputError(f"{what} was changed after it was written, as its hash shows: {AGAIN}")
    states, actions = _vocabulary(content["state"], what), _vocabulary(content["action"], what)
    policy = Policy(_probs(content, len(states), len(actions), what), states, actions, what)
    visits = content["visits"]
    if visits is not None and len(visits) != len(states):
        raise InputError(
            f"{what} has visits of {len(visits)} states, expected {len(states)}: {AGAIN}"
        )
    return {
        "policy": policy,
        "bins": {name: Bins(tuple(edges)) for name, edges in content["bins"].items()},
        "origin": content["origin"],
        "visits": None if visits is None else np.array(visits, dtype=float),
        "verdict": content["verdict"],
        "discount": content["discount"],
        "reading": None if content["reading"] is None else ColumnMap.of(content["reading"]),
    }


def digest(loaded: LoadedPolicy) -> str:
    """The SHA-256 of a policy's content."""
    return _hash(_content(loaded))


def _hash(content: Mapping[str, Any]) -> str:
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(plain.encode()).hexdigest()


def _content(loaded: LoadedPolicy) -> dict[str, Any]:
    policy = loaded.policy
    return {
        "state": {"columns": list(policy.states.names), "labels": _written(policy.states)},
        "action": {"columns": list(policy.actions.names), "labels": _written(policy.actions)},
        "bins": {name: list(cut.edges) for name, cut in loaded.bins.items()},
        "probabilities": [
            [[int(a), float(p[a])] for a in np.flatnonzero(p).tolist()] for p in policy.probs
        ],
        "visits": None if loaded.visits is None else loaded.visits.tolist(),
        "verdict": None if loaded.verdict is None else dict(loaded.verdict),
        "discount": loaded.discount,
        "origin": dict(loaded.origin),
        "reading": None if loaded.reading is None else loaded.reading.content,
    }


def _written(vocabulary: Vocabulary) -> list[Label]:
    return [list(label) if isinstance(label, tuple) else label for label in vocabulary.labels]


def _vocabulary(stored: Mapping[str, Any], what: str) -> Vocabulary:
    names, labels = tuple(stored["columns"]), stored["labels"]
    for label in labels:
        parts = len(label) if isinstance(label, list) else 1
        if parts != len(names) or (isinstance(label, list) and parts == 1):
            raise InputError(
                f"{what} has the label {label!r}, expected {len(names)} parts: {AGAIN}"
            )
    return Vocabulary([tuple(x) if isinstance(x, list) else x for x in labels], names)


def _probs(content: Mapping[str, Any], n_states: int, n_actions: int, what: str) -> np.ndarray:
    """The rows [S, A]; every state has one, and every action is one of the policy's."""
    rows = content["probabilities"]
    if len(rows) != n_states:
        raise InputError(f"{what} has {len(rows)} rows for {n_states} states: {AGAIN}")
    probs = np.zeros((n_states, n_actions))
    for state, entries in enumerate(rows):
        codes = [code for code, _ in entries]
        if max(codes) >= n_actions or len(set(codes)) < len(codes):
            raise InputError(f"{what}: probabilities[{state}] names a wrong action: {AGAIN}")
        probs[state, codes] = [p for _, p in entries]
    return probs
