"""Speed and memory, as ratios against a peer or a plain NumPy version in the same run."""
