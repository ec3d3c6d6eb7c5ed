"""What a log could certify, foretold without training."""

from __future__ import annotations

import math

import numpy as np
import pytest
from typer.testing import CliRunner

from spibb.cli.app import app
from spibb.forecast import JUDGING, forecast
from spibb.log import Log
from spibb.tables import log_table, write_table


def coins(n: int, good: float, seed: int = 0) -> Log:
    """One decision per episode in one of four places; in two of them action b pays `good`."""
    rng = np.random.default_rng(seed)
    place, action = rng.integers(4, size=n), rng.integers(2, size=n)
    reward = (rng.random(n) < 0.3 + good * action * (place < 2)).astype(float)
    return Log.from_arrays(
        place.tolist(), ["ab"[a] for a in action.tolist()], reward,
        terminated=np.ones(n, dtype=bool),
    )  # fmt: skip


def test_two_of_four_states_have_enough():
    found = forecast(coins(2000, 0.5))
    assert (found.states, found.now) == (4, 2)
    assert str(found).startswith("Enough evidence to certify a change in 2 of the 4 states")


def test_noise_has_nothing_now():
    assert [forecast(coins(400, 0.0, seed)).now for seed in range(10)] == [0] * 10


def test_a_single_state_agrees_with_the_arithmetic():
    """a pays 0 and b pays 1, half of the time each: X = ½ always, so λ = 0.95/c, c = ½."""
    n = 8
    log = Log.from_arrays(["s"] * n, ["a", "b"] * (n // 2), [0.0, 1.0] * (n // 2),
                          terminated=np.ones(n, dtype=bool))  # fmt: skip
    bet = 1.9
    evidence = JUDGING * n * (bet * 0.5 - bet**2 * 0.25 / 2)
    found = forecast(log)
    assert found.now == 0
    assert found.more_episodes == math.ceil(n * (math.log(1 / 0.05) / evidence - 1))
    assert found.then == 1


def test_more_episodes_need_fewer_more():
    small, large = (forecast(coins(n, 0.3)) for n in (100, 2000))
    assert small.now <= large.now
    assert large.now == 2


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_constant_reward_has_no_prospect(reward):
    log = Log.from_arrays(["s"] * 20, ["a", "b"] * 10, [reward] * 20, terminated=[True] * 20)
    assert str(forecast(log)) == (
        "Enough evidence to certify a change in 0 of the 1 states with logged decisions; "
        "more episodes like these would hardly add one."
    )


def test_inspect_ends_in_it(tmp_path):
    log = coins(2000, 0.5)
    write_table(log_table(log), tmp_path / "log.csv")
    printed = CliRunner().invoke(app, ["inspect", str(tmp_path / "log.csv")])
    assert printed.exit_code == 0, printed.output
    assert str(forecast(log)) in " ".join(printed.output.split())


def test_inspect_takes_the_discount_of_the_forecast(tmp_path):
    write_table(log_table(coins(2000, 0.5)), tmp_path / "log.csv")
    words = ["inspect", str(tmp_path / "log.csv"), "--discount", "0.5"]
    assert "(discount 0.5, delta 0.05)" in " ".join(CliRunner().invoke(app, words).output.split())
