"""What followed each visit of a state: returns that are bounded by declaration, cuts included."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from spibb import checks
from spibb.arrays import stable_order
from spibb.episodes.limits import discounted_steps, slack
from spibb.episodes.propensities import at_most
from spibb.errors import InputError
from spibb.log import Log, returns_to_go
from spibb.words import apart, counted


@dataclass(frozen=True)
class ReturnBounds:
    """No discounted return, counted from any step on, is below `low` or above `high`.

    `source` says what was declared; both are multiples of `unit`.
    """

    low: float
    high: float
    source: str
    unit: float = 1.0

    def __str__(self) -> str:
        low, high = apart(self.low * self.unit, self.high * self.unit)
        return f"[{low}, {high}] ({self.source})"

    @property
    def span(self) -> float:
        """How far apart two returns can be."""
        return self.high - self.low

    @property
    def slack(self) -> float:
        """What is beyond by no more is rounding."""
        return slack(self.low, self.high)

    def in_spans(self) -> ReturnBounds:
        """The same in units of about the span, so that squares of returns stay in range.

        The unit is a power of 2: dividing by it is exact.
        """
        unit = math.ldexp(1.0, math.frexp(self.span)[1] - 1)
        return replace(self, low=self.low / unit, high=self.high / unit, unit=unit)


@dataclass(frozen=True)
class Declared:
    """What a user may know of returns; every field is optional."""

    lowest_return: float | None = None
    highest_return: float | None = None
    lowest_reward: float | None = None
    highest_reward: float | None = None
    v_max: float | None = None
    horizon: int | None = None

    def bounds(self, discount: float) -> ReturnBounds:
        """The tightest bounds that the declarations give; an error names what is missing.

        Rewards in [r, R] over at most H steps (or for ever) give returns between
        min(r, r·s) and max(R, R·s), s = 1 + γ + … + γ^{H−1}: at least one step is made, and no
        more are counted after the end. An upper limit of the return is a lower one of its negative.
        """
        steps = discounted_steps(discount, self.horizon or math.inf)
        low = _highest_limit(
            "lowest", self.lowest_return, _negative(self.v_max), self.lowest_reward, steps
        )
        high = _highest_limit(
            "highest", _negative(self.highest_return), _negative(self.v_max),
            _negative(self.highest_reward), steps,
        )  # fmt: skip
        if not low[1] < -high[1]:
            least, most = apart(low[1], -high[1])
            raise InputError(
                f"the declared limits exclude every return: {low[0]} gives at least {least}, "
                f"{high[0]} at most {most}: check both"
            )
        names = " and ".join(dict.fromkeys((low[0], high[0])))
        within = f" over at most {counted(self.horizon, 'step')}" if self.horizon else ""
        return ReturnBounds(low[1], -high[1], f"from the declared {names}{within}")


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def _highest_limit(
    side: str, of_return: float | None, v_max: float | None, of_reward: float | None, steps: float
) -> tuple[str, float]:
    """The tightest of the lower limits that are declared, with its name."""
    limits = (
        (f"{side}_return", of_return),
        (f"{side}_reward", None if of_reward is None else min(of_reward, of_reward * steps)),
        ("v_max", v_max),
    )
    given = [(name, float(value)) for name, value in limits if value is not None]
    if not given:
        raise InputError(
            "certified needs limits that every return stays within, and the "
            f"{side} one is missing: give {side}_reward (with horizon, if episodes are short), "
            f"{side}_return or v_max (on the command line --option {side}_reward=…, or "
            "--v-max …); a log cannot prove a limit"
        )
    return max(given, key=lambda limit: limit[1])


@dataclass(frozen=True, eq=False)
class Visits:
    """The rows of a log, sorted by state, episode and step, with the returns that followed.

    `action`, `step`, `rank` (how many visits of the same state came before it in the episode) and
    `episode` [N]; the visits of state s are the rows starts[s] … starts[s + 1]. The return from a
    row on is `recorded` + `unseen`·R: `unseen` [N] is 0 where the episode was recorded to its end,
    and γ to the number of steps until it was cut elsewhere. R is the number `rest` [N] of the
    numbers that the log does not tell, which lie between `least` and `most`. `made` [N] is the
    recorded probability of the action, as large as its rounding allows, None without one.

    **Which cuts share a number.** Where the successor y of a cut is recorded, what follows has the
    mean V^{π_b}(y), whatever came before (Markov, and nothing was cut because of what would have
    followed): R = V^{π_b}(y) is one number, `rest` = y, for all episodes that were cut there. It
    keeps all their returns within the declared limits; if none does, the limits or the states are
    wrong, and each of these episodes has a number of its own, as those without a successor have.
    """

    action: np.ndarray
    step: np.ndarray
    rank: np.ndarray
    episode: np.ndarray
    recorded: np.ndarray
    unseen: np.ndarray
    rest: np.ndarray
    least: np.ndarray
    most: np.ndarray
    starts: np.ndarray
    made: np.ndarray | None

    @classmethod
    def of(cls, log: Log, discount: float, bounds: ReturnBounds, *, shared: bool = True) -> Visits:
        """Look up every row's future; an error names a return that contradicts the bounds.

        Without `shared` every cut episode has a number of its own.
        """
        episode, step, recorded, unseen = _futures(log, discount)
        _check(log, episode, recorded, unseen, bounds)
        rest, least, most = _rests(log, episode, recorded, unseen, bounds, shared)
        order = stable_order(log.state, len(log.states))  # rows stand by episode and step
        state, sorted_episode = log.state[order], episode[order]
        new = np.ones(len(log), dtype=bool)
        new[1:] = (np.diff(state) != 0) | (np.diff(sorted_episode) != 0)
        first = np.flatnonzero(new)
        rank = np.arange(len(log)) - np.repeat(first, np.diff(np.append(first, len(log))))
        return cls(
            log.action[order], step[order], rank, sorted_episode, recorded[order], unseen[order],
            rest[order], least, most, np.searchsorted(state, np.arange(len(log.states) + 1)),
            None if log.action_prob is None else at_most(log.action_prob)[order],
        )  # fmt: skip

    @property
    def low(self) -> np.ndarray:
        """The least that each return can be [N]."""
        return self.ends(slice(None))[0]

    @property
    def high(self) -> np.ndarray:
        """The most that each return can be [N]."""
        return self.ends(slice(None))[1]

    def ends(self, rows: slice | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The least and the most that the returns of some rows can be."""
        recorded, unseen, rest = self.recorded[rows], self.unseen[rows], self.rest[rows]
        return recorded + unseen * self.least[rest], recorded + unseen * self.most[rest]

    @property
    def lacks_values(self) -> bool:
        """Whether some episode was cut at a state whose value it lacks."""
        return bool(((self.unseen > 0) & (self.rest < self.n_states)).any())

    @property
    def how_cuts_count(self) -> str:
        """In words, at what returns of cut episodes count; empty where none was cut."""
        if self.lacks_values:
            return "cut episodes count at the worst value of the state where they were cut"
        return "cut episodes count at their worst" if (self.unseen > 0).any() else ""

    @property
    def n_states(self) -> int:
        """S: the numbers from S on are those of single episodes."""
        return len(self.starts) - 1

    def of_state(self, s: int) -> slice:
        """The rows of a state."""
        return slice(int(self.starts[s]), int(self.starts[s + 1]))

    def within(self, least: np.ndarray, most: np.ndarray) -> Visits:
        """The same, where the values of states lie between `least` and `most` [S]."""
        n, low, high = self.n_states, self.least.copy(), self.most.copy()
        low[:n], high[:n] = np.maximum(low[:n], least), np.minimum(high[:n], most)
        return replace(self, least=low, most=np.maximum(low, high))

    def valued(self, values: np.ndarray) -> Visits:
        """The same with guessed `values` [S] of states; a number of its own is their mean."""
        guess = np.full(len(self.least), np.average(values, weights=np.diff(self.starts)))
        guess[: self.n_states] = values
        return replace(self, least=guess, most=guess)


def check_returns(log: Log, discount: float, bounds: ReturnBounds) -> None:
    """No episode may contradict the bounds; the error names the first that does."""
    episode, _, recorded, unseen = _futures(log, discount)
    _check(log, episode, recorded, unseen, bounds)


def _futures(log: Log, discount: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Episode, step, recorded return and γ^k of what is not recorded, of every row [N]."""
    episode = log.episode
    cut = np.where(log.terminated[log.last_rows], 0.0, 1.0)[episode]
    unseen = cut * discount**log.remaining
    return episode, log.step, returns_to_go(log, discount), unseen


def _rests(
    log: Log, episode: np.ndarray, recorded: np.ndarray, unseen: np.ndarray, bounds: ReturnBounds,
    shared: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Which number each row lacks [N], and between what these lie [S + E]."""
    alone, size = len(log.states) + episode, len(log.states) + log.n_episodes
    reached = log.next_state[log.last_rows][episode]
    rest = np.where((reached >= 0) & shared & (unseen > 0), reached, alone)
    least, most = _ends(rest, size, recorded, unseen, bounds)
    rest = np.where((least > most)[rest], alone, rest)
    return rest, *_ends(rest, size, recorded, unseen, bounds)


def _ends(
    rest: np.ndarray, size: int, recorded: np.ndarray, unseen: np.ndarray, bounds: ReturnBounds
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most that each rest can be.

    All returns with that rest R stay within the limits: low ≤ recorded + unseen·R ≤ high.
    """
    cut = unseen > 0
    least, most = (np.full(size, float(end)) for end in (bounds.low, bounds.high))
    with np.errstate(over="ignore"):
        below = (bounds.low - bounds.slack - recorded[cut]) / unseen[cut]
        above = (bounds.high + bounds.slack - recorded[cut]) / unseen[cut]
    np.maximum.at(least, rest[cut], below)
    np.minimum.at(most, rest[cut], above)
    return least, most


def _check(
    log: Log, episode: np.ndarray, recorded: np.ndarray, unseen: np.ndarray, bounds: ReturnBounds
) -> None:
    """No return that was recorded to its end may leave the bounds; nor may any cut one.

    All returns of a cut episode lack the same rest: some rest must keep all of them within.
    """
    low, high = recorded + unseen * bounds.low, recorded + unseen * bounds.high
    bad = (high < bounds.low - bounds.slack) | (low > bounds.high + bounds.slack)
    if bad.any():
        row = int(np.argmax(bad))
        returned, *_ = apart(*(bounds.unit * end for end in (low[row], bounds.low, bounds.high)))
        start = f"{returned} from step"
        raise InputError(
            f"episode {episode[row]} returns {start} {row - log.episode_starts[episode[row]]} on, "
            f"outside the declared {bounds}: declare limits that every return stays within"
        )
    least, most = _ends(episode, log.n_episodes, recorded, unseen, bounds)
    if (least > most).any():
        raise InputError(
            f"episode {int(np.argmax(least > most))} was cut, and whatever followed, its return "
            f"from one of its steps on is outside the declared {bounds}: declare limits that "
            "every return stays within"
        )


def check_rewards(log: Log, declared: Declared) -> None:
    """No reward may leave its declared limits, no episode go beyond the horizon."""
    low, high = declared.lowest_reward, declared.highest_reward
    least = float(log.reward.min()) if low is None else low
    most = float(log.reward.max()) if high is None else high
    rounding = slack(least, most)
    _within("lowest_reward", low, log.reward, log.reward < least - rounding)
    _within("highest_reward", high, log.reward, log.reward > most + rounding)
    if declared.horizon is not None:
        _check_horizon(log, checks.positive("horizon", declared.horizon))


def _check_horizon(log: Log, horizon: int) -> None:
    """No episode may be longer, nor be cut at the horizon while the log says what came next."""
    lengths, last = log.lengths, log.last_rows
    goes_on = ~log.terminated[last] & (log.next_state[last] >= 0)
    if not (bad := lengths + goes_on > horizon).any():
        return
    episode = int(np.argmax(bad))
    goes = f" and goes on to {log.states.labels[log.next_state[last[episode]]]!r}"
    raise InputError(
        f"episode {episode} has {counted(int(lengths[episode]), 'step')}"
        f"{goes if goes_on[episode] else ''}, beyond the declared horizon {horizon} "
        f"({counted(int(bad.sum()), 'such episode')}): declare a larger one, or none, or mark real "
        "ends as terminated"
    )


def _within(name: str, limit: float | None, reward: np.ndarray, outside: np.ndarray) -> None:
    if outside.any():
        assert limit is not None
        row = int(np.argmax(outside))
        paid, declared = apart(reward[row], limit)
        raise InputError(
            f"reward {paid} in row {row} is outside the declared {name} {declared} "
            f"({checks.such_rows(outside.sum())}): declare a limit that every reward stays within"
        )
