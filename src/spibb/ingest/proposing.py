"""What to add to a command so that a log that is not clean can be read."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from spibb.errors import FixableError, InputError
from spibb.handling import Handling
from spibb.ingest import open_log
from spibb.ingest.mapping import ColumnMap


def proposed(source: Any, column_map: ColumnMap) -> Handling | None:
    """How to read a table that is refused as it is; None where no way of reading helps.

    One thing is changed after the other, until the table can be read.
    """
    handling = column_map.handling
    while True:
        try:
            open_log(source, **replace(column_map, said=asdict(handling)).reading).counts()
            return handling
        except FixableError as error:
            better = replace(handling, **error.handling)
            if better == handling:
                return None
            handling = better
        except InputError:
            return None
