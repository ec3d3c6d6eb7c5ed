"""Small worlds with random rewards or with costs, on which promises can be checked exactly.

Every world is a function of a generator that returns its MDP; worlds without random parts ignore
it. `SMALL` lists them by name, with the length at which an episode is cut. Rewards are paid per
outcome, so that simulated logs earn what the exact value says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from spibb.envs.baselines import blend
from spibb.envs.softening import softened_baseline
from spibb.errors import InputError
from spibb.mdp import MDP
from spibb.policy import Policy

Outcome = tuple[int, int, float, int, float, bool]
"""(x, a, probability, x', reward, terminated)."""
BASELINES = {"good": 0.9, "middling": 0.5, "uniform": 0.0}
"""How near the optimal value a baseline is, from the uniform policy's (0) to the optimum (1)."""
OwnBaseline = Callable[[MDP], Policy]


@dataclass(frozen=True)
class SmallWorld:
    """How to draw a world, after how many steps an episode is cut, and what its baselines are.

    `etas` are how near each baseline is to the optimum; `given` has those that are not made so.
    """

    make: Callable[[np.random.Generator], MDP]
    max_steps: int = 50
    etas: Mapping[str, float] = field(default_factory=lambda: BASELINES)
    given: Mapping[str, OwnBaseline] = field(default_factory=dict)
    randomisation: str = "multiply"

    def baseline(self, mdp: MDP, kind: str, rng: np.random.Generator) -> Policy:
        """The uniform policy, or the optimal one softened and randomised (appendix B.1.4).

        Where a policy without its best actions is still worth more than wanted, which happens in
        some random worlds, randomising cannot make it: the optimal policy then plays at random.
        """
        if kind in self.given:
            return self.given[kind](mdp)
        eta = self.etas[kind]
        if eta == 0:
            return Policy.uniform(mdp.states, mdp.actions)
        try:
            return softened_baseline(mdp, eta, rng, self.randomisation).policy
        except InputError:
            return blend(mdp, eta)


def _mdp(
    outcomes: Iterable[Outcome], initial: Sequence[float] | np.ndarray, n_actions: int, gamma: float
) -> MDP:
    columns = (np.array(column) for column in zip(*outcomes))
    return MDP.from_outcomes(*columns, initial=initial, n_actions=n_actions, discount=gamma)


def _at(state: int, n_states: int) -> np.ndarray:
    """The distribution that starts in one state."""
    return np.eye(n_states)[state]


def river_swim(rng: np.random.Generator, n: int = 6) -> MDP:
    """RiverSwim (Strehl & Littman 2008): swim against the current to 1, or drift to 0.005."""
    outcomes: list[Outcome] = []
    for x in range(n):
        outcomes.append((x, 0, 1.0, max(x - 1, 0), 0.005 * (x == 0), False))
        moves = {0: ((0, 0.4), (1, 0.6)), n - 1: ((-1, 0.4), (0, 0.6))}
        for step, prob in moves.get(x, ((-1, 0.05), (0, 0.6), (1, 0.35))):
            outcomes.append((x, 1, prob, x + step, float(x == n - 1 and step == 0), False))
    return _mdp(outcomes, (_at(0, n) + _at(1, n)) / 2, 2, 0.95)


def cliff(rng: np.random.Generator, *, costs: bool = True, width: int = 6, height: int = 3) -> MDP:
    """Walk along a cliff with a slip of 10 %: −1 a step and −20 for a fall, or ±1 at the end."""
    step, fall, goal = (-1.0, -20.0, 0.0) if costs else (0.0, -1.0, 1.0)
    outcomes: list[Outcome] = []
    ground = [(x, y) for y in range(height) for x in range(width) if y > 0 or x == 0]
    for x, y in ground:
        for a, (dx, dy) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
            for (ex, ey), prob in (((dx, dy), 0.9), ((dy, dx), 0.05), ((-dy, -dx), 0.05)):
                nx, ny = min(max(x + ex, 0), width - 1), min(max(y + ey, 0), height - 1)
                ended = ny == 0 and nx > 0
                paid = step if not ended else goal if nx == width - 1 else fall
                outcomes.append((x + width * y, a, prob, nx + width * ny, paid, ended))
    return _mdp(outcomes, _at(0, width * height), 4, 0.98)


def bernoulli_bandit(
    rng: np.random.Generator,
    contexts: int = 5,
    arms: int = 4,
    *,
    rates: tuple[float, float] = (0.1, 0.9),
    values: tuple[float, ...] = (1.0,),
) -> MDP:
    """One step per episode: an arm pays its value at a rate of its own, else 0."""
    rate = rng.uniform(*rates, (contexts, arms))
    value = rng.choice(values, (contexts, arms))
    outcomes = [
        (x, a, prob, 0, paid, True)
        for x in range(contexts)
        for a in range(arms)
        for prob, paid in ((rate[x, a], value[x, a]), (1 - rate[x, a], 0.0))
    ]
    return _mdp(outcomes, rng.dirichlet(np.full(contexts, 3.0)), arms, 0.9)


def rare_clicks(rng: np.random.Generator) -> MDP:
    """A bandit whose arms are clicked in 0.5 to 5 % of the cases, for 1, 2 or 5."""
    return bernoulli_bandit(rng, 5, 5, rates=(0.005, 0.05), values=(1.0, 2.0, 5.0))


def skewed_sales(rng: np.random.Generator, contexts: int = 4, arms: int = 4) -> MDP:
    """A bandit that sells in 40 % of the cases, for amounts whose largest are 30 times the mean."""
    size = np.exp(3.0 * np.linspace(-1, 1, 15) ** 3 + 1.2 * np.linspace(-1.8, 1.8, 15))
    mean = rng.uniform(5, 15, (contexts, arms))
    outcomes = [
        (x, a, prob, 0, paid, True)
        for x in range(contexts)
        for a in range(arms)
        for prob, paid in ((0.6, 0.0), *((0.4 / 15, s) for s in mean[x, a] * size / size.mean()))
    ]
    return _mdp(outcomes, rng.dirichlet(np.full(contexts, 3.0)), arms, 0.9)


def dense_random(
    rng: np.random.Generator,
    n_states: int = 15,
    n_actions: int = 3,
    *,
    costs: bool = False,
    hazard: float = 0.1,
) -> MDP:
    """Every state can follow every pair; 0/1 rewards (or −1/0) at rates of their own.

    Each step ends the episode with the same probability, so that a constant added to all rewards
    changes no comparison.
    """
    low = -1.0 if costs else 0.0
    outcomes: list[Outcome] = []
    for x in range(n_states):
        for a in range(n_actions):
            row, rate = (1 - hazard) * rng.dirichlet(np.ones(n_states)), rng.random()
            for paid, share in ((low + 1, rate), (low, 1 - rate)):
                outcomes += [(x, a, p * share, y, paid, False) for y, p in enumerate(row)]
                outcomes.append((x, a, hazard * share, 0, paid, True))
    return _mdp(outcomes, np.full(n_states, 1 / n_states), n_actions, 0.95)


def noisy_random(
    rng: np.random.Generator, n_states: int = 20, n_actions: int = 4, *, noise: float = 1.0
) -> MDP:
    """Three successors per pair; mean rewards N(0, ½²), each paid with noise of sd `noise`."""
    return _sparse_random(
        rng, (n_states, n_actions), 0.08, lambda: rng.normal(0, 0.5) + np.array(NOISE) * noise
    )


NOISE = (-(1.5**0.5), 0.0, 1.5**0.5)
"""Three equally likely values with mean 0 and variance 1."""


def rare_prizes(rng: np.random.Generator, n_states: int = 10, n_actions: int = 3) -> MDP:
    """Three successors per pair; up to 5 % of the steps pay 20, all others nothing."""
    return _sparse_random(
        rng, (n_states, n_actions), 0.1,
        lambda: np.where(np.arange(100) < rng.uniform(0, 5), 20.0, 0.0),
    )  # fmt: skip


def _sparse_random(
    rng: np.random.Generator, shape: tuple[int, int], hazard: float, paid: Callable[[], np.ndarray]
) -> MDP:
    """Three random successors per pair; `paid` gives a pair's equally likely rewards."""
    outcomes: list[Outcome] = []
    for x in range(shape[0]):
        for a in range(shape[1]):
            successors, rewards = rng.choice(shape[0], 3, replace=False), paid()
            for y, p in zip(successors.tolist(), (1 - hazard) * rng.dirichlet(np.ones(3))):
                outcomes += [(x, a, p / len(rewards), y, float(r), False) for r in rewards]
            outcomes.append((x, a, hazard, 0, 0.0, True))
    return _mdp(outcomes, _at(0, shape[0]), shape[1], 0.95)


def wet_chicken(rng: np.random.Generator, n: int = 10) -> MDP:
    """Paddle near a waterfall (after Tresp 1994): nearer pays more, over it you start again."""
    turbulence = ((-2, 0.1), (-1, 0.2), (0, 0.4), (1, 0.2), (2, 0.1))
    outcomes: list[Outcome] = []
    for x in range(n):
        for a, drift in enumerate((1, 0, -1)):
            for push, prob in turbulence:
                y = x + drift + push
                y = 0 if y >= n else max(y, 0)
                outcomes.append((x, a, prob, y, y / (n - 1), False))
    return _mdp(outcomes, _at(0, n), 3, 0.95)


def pit_chain(rng: np.random.Generator, n: int = 8) -> MDP:
    """Walk, run or leap along a chain to +10; the faster, the likelier a fall that costs 10."""
    outcomes: list[Outcome] = []
    for x in range(n):
        for a, (step, risk) in enumerate(((1, 0.01), (2, 0.08), (3, 0.2))):
            fall, y = risk * rng.uniform(0.5, 1.5), x + step
            outcomes.append((x, a, fall, 0, -10.0, True))
            if y >= n:
                outcomes.append((x, a, 1 - fall, 0, 10.0, True))
            else:
                outcomes.append((x, a, 0.9 * (1 - fall), y, -0.5, False))
                outcomes.append((x, a, 0.1 * (1 - fall), x, -0.5, False))
    return _mdp(outcomes, _at(0, n), 3, 0.95)


def near_null(rng: np.random.Generator, *, gap: float = 0.03) -> MDP:
    """Four states, two actions that differ by `gap` in their rate of a reward of 1, no more."""
    outcomes: list[Outcome] = []
    for x in range(4):
        row = 0.9 * rng.dirichlet(np.ones(4))
        better = int(rng.integers(2))
        for a in range(2):
            rate = 0.5 + (gap / 2 if a == better else -gap / 2)
            for paid, share in ((1.0, rate), (0.0, 1 - rate)):
                outcomes += [(x, a, p * share, y, paid, False) for y, p in enumerate(row)]
                outcomes.append((x, a, 0.1 * share, 0, paid, True))
    return _mdp(outcomes, np.full(4, 0.25), 2, 0.95)


def leaning(share: float) -> OwnBaseline:
    """A baseline that plays the first action with the given probability, the others alike."""

    def make(mdp: MDP) -> Policy:
        n_states, n_actions = mdp.shape
        row = np.full(n_actions, (1 - share) / (n_actions - 1))
        row[0] = share
        return Policy(np.tile(row, (n_states, 1)), mdp.states, mdp.actions)

    return make


SMALL: dict[str, SmallWorld] = {
    "river-swim": SmallWorld(river_swim, 40),
    "cliff-costs": SmallWorld(cliff, 100),
    "cliff-signs": SmallWorld(lambda rng: cliff(rng, costs=False), 100),
    "bernoulli-bandit": SmallWorld(bernoulli_bandit),
    "rare-clicks": SmallWorld(rare_clicks),
    "skewed-sales": SmallWorld(skewed_sales),
    "dense-rewards": SmallWorld(dense_random),
    "dense-costs": SmallWorld(lambda rng: dense_random(rng, costs=True)),
    "many-successors": SmallWorld(lambda rng: dense_random(rng, 40)),
    "noisy-rewards": SmallWorld(noisy_random),
    "rare-prizes": SmallWorld(rare_prizes),
    "wet-chicken": SmallWorld(wet_chicken, 40),
    "pit-chain": SmallWorld(pit_chain),
    "near-null": SmallWorld(near_null),
    "null": SmallWorld(
        lambda rng: near_null(rng, gap=0.0),
        given={"good": leaning(0.9), "middling": leaning(0.7)},
    ),
}
