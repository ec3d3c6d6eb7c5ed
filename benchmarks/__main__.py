"""Every benchmark, or those named: python -m benchmarks [small solve ope …]."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

FOUND = {
    path.stem.removeprefix("bench_"): path for path in Path(__file__).parent.glob("bench_*.py")
}
"""The file of each benchmark."""


def listed() -> str:
    """The benchmarks with the first line of each; none is imported."""
    width = max(map(len, FOUND))
    return "\n".join(f"  {name:{width}}  {_first_line(FOUND[name])}" for name in sorted(FOUND))


def _first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]


def main() -> None:
    wanted = sys.argv[1:]
    if {"-h", "--help"} & set(wanted):
        print(f"{__doc__}\n\n{listed()}")
        return
    if unknown := [name for name in wanted if name not in FOUND]:
        print(f"no benchmark is called {unknown[0]!r}: name one of {', '.join(sorted(FOUND))}",
              file=sys.stderr)  # fmt: skip
        raise SystemExit(2)
    sys.argv = sys.argv[:1]
    for name in wanted or sorted(FOUND):
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.bench_{name}").main()


if __name__ == "__main__":
    main()
