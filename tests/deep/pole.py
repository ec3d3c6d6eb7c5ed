"""The pole of `examples/pole_log.py`, whose truth is known."""

import importlib.util
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "pole_log.py"
_spec = importlib.util.spec_from_file_location("pole_log", EXAMPLE)
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
FEATURES, current, mean_length, table = (
    getattr(_module, name) for name in ("FEATURES", "current", "mean_length", "table")
)
