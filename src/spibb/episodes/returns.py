"""What each episode of a log returned: kept beside a policy, to compare later episodes with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from spibb.arrays import to_arrow
from spibb.evaluate import MonteCarlo, mean_of, returns
from spibb.frozen import Frozen
from spibb.log import Transitions
from spibb.tables import write_table

FILE = "returns.parquet"
"""The discounted return of every episode of the log, in a result folder."""


@dataclass(frozen=True, eq=False)
class EpisodeReturns(Frozen):
    """Discounted returns [E] of episodes, of which `cut` were not recorded to their end.

    A cut episode counts with what was recorded.
    """

    values: np.ndarray
    cut: int

    @classmethod
    def of(cls, logs: Sequence[Transitions], discount: float) -> EpisodeReturns:
        """What all episodes of some logs earned."""
        found = np.concatenate([returns(log, discount) for log in logs])
        return cls(found, sum(int(log.truncated.sum()) for log in logs))

    @cached_property
    def mean(self) -> MonteCarlo:
        """The mean return with its standard error."""
        return mean_of(self.values)

    def write(self, folder: Path) -> None:
        """Write all returns into a folder."""
        import pyarrow as pa

        write_table(pa.table({"return": to_arrow(self.values)}), folder / FILE)
