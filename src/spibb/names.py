"""The names of the algorithms, for code that must list them without importing them."""

ALGORITHMS = (
    "pi-b", "pi-leq-b", "auto", "certified", "basic-rl", "hcpi", "ramdp", "robust-mdp", "arbrm",
    "model-free",
)  # fmt: skip
"""Those of the registry, the most useful first."""
DQN = "dqn"
"""What trains a network on vectors; it takes no `Problem`, and is in `spibb.deep`."""
