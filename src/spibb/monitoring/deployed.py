"""What a result folder knows of the policy that was deployed and of the log before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spibb import checks
from spibb.arrays import from_arrow
from spibb.defaults import DISCOUNT
from spibb.episodes.returns import FILE
from spibb.errors import InputError
from spibb.files import check_manifest, possible, read_manifest
from spibb.frozen import Frozen
from spibb.ingest.loaded import Loaded
from spibb.loading import either, null, read_json, real, record, row
from spibb.sql.reading import read_table
from spibb.stored_policies import load_any

SUMMARY = "summary.json"
FORM = record(
    {"discount": real(0, 1, "[)")},
    {"return_limits": either(null(), row(real(), real()))},
    more=True,
)
AGAIN = "write the folder again with spibb improve"


@dataclass(frozen=True, eq=False)
class Deployed(Frozen):
    """A policy, the discount it was made for, and the returns [E] of the log it was made from.

    `limits` of every return were declared when it was made; None if none were.
    """

    loaded: Loaded
    discount: float
    returns: np.ndarray
    limits: tuple[float, float] | None


def load_deployed(folder: str | Path) -> Deployed:
    """Read the folder that `spibb improve` wrote."""
    folder = possible(folder)
    if not folder.is_dir():
        what = "a file" if folder.is_file() else "not there"
        raise InputError(f"{str(folder)!r} is {what}, expected the folder that spibb improve wrote")
    loaded = load_any(folder)
    check_manifest(folder, (SUMMARY, FILE))
    content = read_json(folder / SUMMARY, FORM, repr(str(folder / SUMMARY)), AGAIN)
    limits = content.get("return_limits")
    returns = _read_returns(folder)
    return Deployed(loaded, content["discount"], returns, None if limits is None else tuple(limits))


def discount_for(given: float | None, policies: Mapping[str, Loaded]) -> tuple[float, str]:
    """The discount to judge policies with, and from where: given, or the one they were made with.

    Policies that `spibb improve` wrote know theirs; if they differ, one must be given.
    """
    if given is not None:
        return given, "as given"
    known = {name: one.discount for name, one in policies.items() if one.discount is not None}
    if len(set(known.values())) > 1:
        said = " and ".join(f"{found:g} ({path})" for path, found in known.items())
        raise InputError(f"the policies were made with discounts {said}: give --discount")
    if not known:
        return DISCOUNT, "the default"
    path, found = next(iter(known.items()))
    return found, f"as stored with {path}"


def _read_returns(folder: Path) -> np.ndarray:
    path = folder / FILE
    listed = read_manifest(folder)
    if not path.is_file() or (listed and FILE not in listed):
        raise InputError(
            f"{str(folder)!r} has no {FILE}: nothing to compare with; {AGAIN}, from a log of fewer "
            "rows if it was too large to keep its episodes"
        )
    table = read_table(path)
    if "return" not in table.column_names:
        raise InputError(f"{str(path)!r} has no column 'return': {AGAIN}")
    column = table.column("return")
    values = from_arrow(column) if column.type == "double" else column.to_numpy()
    found = checks.column(f"{str(path)!r}: return", values)
    checks.finite(found, f"{str(path)!r}: return")
    return np.array(found)
