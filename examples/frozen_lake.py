"""FrozenLake in ten lines: log a policy that wanders, improve it, play both.

    python examples/frozen_lake.py

A uniform policy crosses the lake in 1.6 % of its attempts. 5,000 of them teach a better one.
"""

import gymnasium
import numpy as np

import spibb

env, rng = gymnasium.make("FrozenLake-v1"), np.random.default_rng(0)
baseline = spibb.Policy(np.full((16, 4), 0.25))
log = spibb.collect(env, baseline, 5000, rng=rng)
result = spibb.improve(log, baseline, discount=0.99, n_wedge=20)
for name, policy in {"uniform": baseline, "improved": result.policy}.items():
    played = spibb.collect(env, policy, 1000, rng=rng)
    print(f"{name:9} crosses the lake in {played.reward.sum() / 10:.1f} % of 1,000 attempts")
print(result.certificate())
