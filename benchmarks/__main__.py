"""Every benchmark, or those named: python -m benchmarks [small solve ope …]."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def main() -> None:
    found = [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name[:6] == "bench_"]
    wanted = [f"bench_{name}" for name in sys.argv[1:]] or found
    sys.argv = sys.argv[:1]
    for name in wanted:
        print(f"\n== {name[6:]}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
