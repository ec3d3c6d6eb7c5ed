"""Many sparse systems with zeros in the same places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spibb.frozen import Frozen

NO_PIVOTS = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
"""I − γP is an M-matrix: elimination needs no pivots, in any order of the states."""


@dataclass(frozen=True, eq=False)
class Systems(Frozen):
    """I − Q for matrices Q with entries in the same places: ordered once, so that little fills in.

    `order` [S] is that of the states; `place` [K] says to which of the entries stored by column
    each of Q's belongs, `diagonal` [S] which are on the diagonal.
    """

    order: np.ndarray
    place: np.ndarray
    diagonal: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray

    @classmethod
    def of(cls, row: np.ndarray, column: np.ndarray, size: int) -> Systems:
        """For entries of Q at `row` and `column` [K]."""
        from scipy import sparse  # in the functions that need them: few commands solve large models
        from scipy.sparse.linalg import splu

        pattern = sparse.csc_matrix((np.full(len(row), 0.5), (row, column)), shape=(size, size))
        half = pattern / (2 * max(pattern.sum(axis=1).max(), 1.0))  # so that none is singular
        likely = sparse.identity(size, format="csc") - half
        number = splu(likely.tocsc(), permc_spec="MMD_AT_PLUS_A", **NO_PIVOTS).perm_c
        every = np.arange(size, dtype=np.int64)
        codes = np.concatenate([number[column], every]) * size
        codes += np.concatenate([number[row], every])
        entries, place = np.unique(codes, return_inverse=True)
        indptr = np.searchsorted(entries, np.arange(size + 1) * size)
        return cls(
            np.argsort(number), place[: len(row)], place[len(row) :],
            (entries % size).astype(np.int32), indptr.astype(np.int32),
        )  # fmt: skip

    def solved(self, entries: np.ndarray, right: np.ndarray) -> np.ndarray:
        """x [N, S] of (I − Q) x = b for Q's entries [N, K] and b [N, S]."""
        from scipy import sparse
        from scipy.sparse.linalg import splu

        size, found = len(self.order), np.empty(right.shape)
        # one matrix for all: to make another takes as long as to factor it
        matrix = sparse.csc_matrix((np.empty(len(self.indices)), self.indices, self.indptr),
                                   (size, size))  # fmt: skip
        for n, values in enumerate(entries):
            matrix.data[...] = -np.bincount(self.place, values, len(self.indices))
            matrix.data[self.diagonal] += 1.0
            factors = splu(matrix, permc_spec="NATURAL", **NO_PIVOTS)
            found[n, self.order] = factors.solve(right[n, self.order])
        return found
