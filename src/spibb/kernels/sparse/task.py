"""A box-constrained MDP as the sweeps read it."""

from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from spibb.kernels.sparse.bounds import SLIVER, Floats, Masses, free_mass
from spibb.kernels.tuples import Box, Rows

CHUNK = 256  # states swept by one thread at a time; their rows fit the second-level cache
BARRED = np.array([-np.inf, 0.0])  # added to q of an action that cannot, that can take mass
ZERO, ONE = np.uint64(0), np.uint64(1)


@njit(cache=True, forceinline=True)
def chunk_range(c: int, n_states: int) -> tuple[np.uint64, np.uint64]:
    """First state of chunk c, and the one after its last."""
    return np.uint64(c * CHUNK), np.uint64(min(n_states, (c + 1) * CHUNK))


class BoxedMDP(NamedTuple):
    """A box-constrained MDP."""

    indptr: NDArray[np.uint64]  # [S * A + 1]
    successors: NDArray[np.uint32]
    probs: Floats
    rewards: Floats  # [S, A]
    lower: Floats  # [S, A], or [0, A] if no action must be played
    upper: Floats  # [S, A], or [0, A] if every free action can take all the free mass
    penalty: NDArray[np.float32]  # 0 for actions that can take mass, -inf for others [S, A]
    mass: Floats  # to hand out [S]
    space: NDArray[np.uint64]  # that the row of a policy may need [S]
    discount: float


class Facts(NamedTuple):
    """What bounds and rounding depend on."""

    kept: Masses  # discounted mass that a policy keeps in a state, at least and at most
    kept_alone: Masses  # the same of single actions that some policy plays
    terms: int  # that a backup sums up at most


class Chunks(NamedTuple):
    """The same of each chunk of states [C], before the chunks are joined."""

    least: Floats  # that policies keep
    most: Floats
    least_row: Floats  # that single actions keep
    most_row: Floats
    longest: Floats  # row, in terms
    held: Floats  # whether some action must be played
    tight: Floats  # whether some free action cannot take all the free mass


@njit(cache=True)
def _describe_chunk(task: BoxedMDP, box: Box, v: Floats, found: Chunks, c: int) -> None:
    """Fill penalty, mass, space and v of chunk c, and what is found in it."""
    indptr, probs, rewards, discount = task.indptr, task.probs, task.rewards, task.discount
    penalty, mass, space = task.penalty, task.mass, task.space
    lower, upper = box.lower, box.upper
    n_actions = np.uint64(lower.shape[1])
    least, most, least_row, most_row = np.inf, 0.0, np.inf, 0.0
    held, tight, longest = False, False, ZERO
    first, end = chunk_range(c, v.size)
    for s in range(first, end):
        handed = free_mass(box, s)
        some = handed > 0.0
        kept, worst, best, value, highest = 0.0, np.inf, 0.0, 0.0, -np.inf
        fixed, widest, shares = ZERO, ZERO, False
        k = indptr[s * n_actions]
        for a in range(n_actions):
            stop = indptr[s * n_actions + a + ONE]
            length, total = stop - k, 0.0
            while k < stop:
                total += probs[k]
                k += ONE
            total *= discount
            room, reward, weight = upper[s, a] - lower[s, a], rewards[s, a], lower[s, a]
            free, plays = (room > 0.0) & some, weight > 0.0
            closed, unused = BARRED[np.uint64(free)], BARRED[np.uint64(free | plays)]
            penalty[s, a] = BARRED[np.uint64(free | (not some))]
            least_row, most_row = min(least_row, total - unused), max(most_row, total + unused)
            worst, best = min(worst, total - closed), max(best, total + closed)
            highest = max(highest, reward + closed)
            kept += weight * total
            value += weight * reward
            shares |= free & (room < handed - SLIVER)
            held |= plays
            fixed += length if plays else ZERO
            widest = max(widest, length if free else ZERO)
        entries = indptr[(s + ONE) * n_actions] - indptr[s * n_actions]
        needed = max(fixed + widest, entries if shares else ZERO)
        worst, highest = (worst, highest) if some else (0.0, 0.0)
        v[s] = value + handed * highest
        least, most = min(least, kept + handed * worst), max(most, kept + handed * best)
        longest, tight = max(longest, needed), tight | shares
        mass[s], space[s] = handed, needed
    found.least[c], found.most[c] = least, most
    found.least_row[c], found.most_row[c] = least_row, most_row
    found.longest[c], found.held[c], found.tight[c] = longest, held, tight


@njit(cache=True)
def _describe_serial(task: BoxedMDP, box: Box, v: Floats, found: Chunks) -> None:
    for c in range(len(found.least)):
        _describe_chunk(task, box, v, found, c)


@njit(cache=True, parallel=True)
def _describe_parallel(task: BoxedMDP, box: Box, v: Floats, found: Chunks) -> None:
    for c in prange(len(found.least)):
        _describe_chunk(task, box, v, found, c)


def describe(
    rows: Rows, rewards: Floats, discount: float, box: Box, parallel: bool
) -> tuple[BoxedMDP, Facts, Floats]:
    """The task, facts about it, and values of its first step, from which to iterate."""
    n_states = len(rewards)
    task = BoxedMDP(
        indptr=rows.indptr.astype(np.int64, copy=False).view(np.uint64),
        successors=rows.successors.view(np.uint32),
        probs=rows.probs,
        rewards=rewards,
        lower=box.lower,
        upper=box.upper,
        penalty=np.empty(rewards.shape, np.float32),
        mass=np.empty(n_states),
        space=np.empty(n_states, np.uint64),
        discount=discount,
    )
    v, found = np.empty(n_states), Chunks(*np.empty((len(Chunks._fields), -(-n_states // CHUNK))))
    fill = _describe_parallel if parallel else _describe_serial
    fill(task, box, v, found)
    held, tight = bool(found.held.any()), bool(found.tight.any())
    task = task._replace(
        lower=box.lower if held else box.lower[:0],
        upper=box.upper if tight else box.upper[:0],
    )
    kept = float(found.least.min()), float(found.most.max())
    most_alone = float(found.most_row.max())
    alone = min(float(found.least_row.min()), most_alone), most_alone
    terms = int(found.longest.max()) + (rewards.shape[1] if held or tight else 0)
    return task, Facts(kept, alone, terms), v
