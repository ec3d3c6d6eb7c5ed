"""Bandit feedback with propensities, in the shape of the Open Bandit logs: import, judge, improve.

    python examples/open_bandit.py

The file is made up here: who was shown which item in which position, whether they clicked, and the
probability with which the item was shown. Horizon 1: every row is an episode that ends.
"""

import io

import numpy as np
import pandas as pd

import spibb

rng = np.random.default_rng(0)
users, positions = rng.choice(["young", "old"], 5000), rng.choice(["left", "right"], 5000)
items = rng.choice(["coat", "hat", "shoe"], 5000, p=[0.6, 0.3, 0.1])
taste = {("young", "shoe"): 0.10, ("old", "coat"): 0.06}
click = rng.random(5000) < [taste.get(pair, 0.02) for pair in zip(users, items)]
shown = pd.DataFrame({"user": users, "position": positions, "item_id": items, "click": click * 1})
shown["propensity_score"] = shown["item_id"].map({"coat": 0.6, "hat": 0.3, "shoe": 0.1})
file = io.StringIO(shown.to_csv(index=False))

log = spibb.from_bandit(
    pd.read_csv(file), state=["user", "position"], action="item_id", reward="click",
    action_prob="propensity_score",
)  # fmt: skip
baseline = spibb.estimate_baseline(log)
result = spibb.improve(log, baseline, discount=0.0, n_wedge=100)
for state in log.states.labels:
    shares = ", ".join(f"{item} {p:.2f}" for item, p in result.policy.row(state).items())
    print(f"{' '.join(state):12} {shares}")
estimates = spibb.off_policy_estimates(log, result.policy, discount=0.0, rng=rng)
print(f"clicks per display: {log.reward.mean():.4f}")
found = estimates["wis"].estimate
print(f"expected of the new policy {found.value:.4f}, by weighted importance sampling")
