"""A box-constrained MDP as the sweeps read it."""

from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from spibb.kernels.sparse.bounds import SLIVER, Box, Floats, Kept, Rows, free_mass

CHUNK = 256  # states swept by one thread at a time; their rows fit the second-level cache
BARRED = np.array([-np.inf, 0.0])  # added to q of an action that cannot, that can take mass
ZERO, ONE = np.uint64(0), np.uint64(1)


@njit(cache=True, forceinline=True)
def chunk_range(c: int, n_states: int) -> tuple[np.uint64, np.uint64]:
    """First state of chunk c, and the one after its last."""
    return np.uint64(c * CHUNK), np.uint64(min(n_states, (c + 1) * CHUNK))


class Task(NamedTuple):
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

    kept: Kept  # discounted mass that a policy keeps in a state, at least and at most
    kept_alone: Kept  # the same of single actions that some policy plays
    terms: int  # that a backup sums up at most


@njit(cache=True)
def _describe_chunk(task: Task, box: Box, v: Floats, facts: Floats, c: int) -> None:
    """Fill penalty, mass, space and v of chunk c, and facts[c].

    These are the least and most that policies keep, that single actions keep, the longest row,
    whether some action must be played, and whether some free one cannot take all the free mass.
    """
    indptr, _, probs, rewards, _, _, penalty, mass, space, discount = task
    lower, upper, _ = box
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
    facts[c, 0], facts[c, 1], facts[c, 2], facts[c, 3] = least, most, least_row, most_row
    facts[c, 4], facts[c, 5], facts[c, 6] = longest, held, tight


@njit(cache=True)
def _describe_serial(task: Task, box: Box, v: Floats, facts: Floats) -> None:
    for c in range(len(facts)):
        _describe_chunk(task, box, v, facts, c)


@njit(cache=True, parallel=True)
def _describe_parallel(task: Task, box: Box, v: Floats, facts: Floats) -> None:
    for c in prange(len(facts)):
        _describe_chunk(task, box, v, facts, c)


def describe(
    rows: Rows, rewards: Floats, discount: float, box: Box, parallel: bool
) -> tuple[Task, Facts, Floats]:
    """The task, facts about it, and values of its first step, from which to iterate."""
    n_states = len(rewards)
    task = Task(
        indptr=rows[0].astype(np.int64, copy=False).view(np.uint64),
        successors=rows[1].view(np.uint32),
        probs=rows[2],
        rewards=rewards,
        lower=box[0],
        upper=box[1],
        penalty=np.empty(rewards.shape, np.float32),
        mass=np.empty(n_states),
        space=np.empty(n_states, np.uint64),
        discount=discount,
    )
    v, facts = np.empty(n_states), np.empty((-(-n_states // CHUNK), 7))
    fill = _describe_parallel if parallel else _describe_serial
    fill(task, box, v, facts)
    least, _, least_alone, *_ = facts.min(axis=0).tolist()
    _, most, _, most_alone, longest, held, tight = facts.max(axis=0).tolist()
    task = task._replace(
        lower=box[0] if held else box[0][:0], upper=box[1] if tight else box[1][:0]
    )
    alone = min(least_alone, most_alone), most_alone
    terms = int(longest) + (rewards.shape[1] if held or tight else 0)
    return task, Facts((least, most), alone, terms), v
