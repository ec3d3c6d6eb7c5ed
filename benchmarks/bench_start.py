"""What a user waits for: processor time of each command, with no compiled kernel on disk and after.

The package is a copy whose modules are byte-compiled, as after installing it.

Run: python -m benchmarks start
"""

from __future__ import annotations

import compileall
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import spibb

COLD = {"demo": 15.0, "improve": 10.0, "evaluate": 5.0}
WARM = {"improve": 1.5, "inspect": 1.0, "act": 0.4}
"""Seconds wanted."""
LOG, BASELINE = "demo/log.csv", "demo/baseline.csv"
COMMANDS = {
    "demo": ["demo", "--out", "demo"],
    "improve": ["improve", LOG, "--baseline", BASELINE, "--out", "improved", "--force"],
    "evaluate": ["evaluate", LOG, "--policy", "improved/policy.csv", "--behaviour", BASELINE],
    "inspect": ["inspect", LOG],
    "act": ["act", "improved", "--state", "7"],
}
PEER = ["-c", "import numpy, numba, pyarrow, duckdb, rich, typer"]


def seconds(arguments: list[str], folder: Path, kernels: Path) -> float:
    """Processor time of a Python process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], cwd=folder, check=True, capture_output=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(kernels), "PYTHONPATH": str(folder / "site")},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def install(site: Path) -> None:
    """Copy the package with its modules compiled, and no kernels."""
    no_caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(spibb.__file__).parent, site / "spibb", ignore=no_caches)
    compileall.compile_dir(site, quiet=1)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install(folder / "site")
        peer = min(seconds(PEER, folder, folder) for _ in range(3))
        print(f"importing what every command may use: {peer:.2f} s of processor time")
        heads = ("cold", "wanted", "warm", "wanted", "warm/import")
        print(f"{'command':10}" + "".join(f"{head:>12}" for head in heads))
        for command, arguments in COMMANDS.items():
            call = ["-m", "spibb", *arguments]
            cold = seconds(call, folder, folder / f"kernels-{command}")
            warm = min(seconds(call, folder, folder / f"kernels-{command}") for _ in range(3))
            cells = (cold, COLD.get(command), warm, WARM.get(command), warm / peer)
            row = "".join(f"{'' if cell is None else format(cell, '.2f'):>12}" for cell in cells)
            print(f"{command:10}{row}")


if __name__ == "__main__":
    main()
