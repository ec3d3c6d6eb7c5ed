"""Data flows one way: a module imports only from above itself."""

from __future__ import annotations

import ast
import graphlib
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import spibb

ORDER = [
    "__init__", "names", "defaults", "errors", "grade", "showing", "frozen", "files", "words",
    "checks", "loading", "bisection", "kernels", "pseudocounts", "arrays", "labels", "tables",
    "binning", "irregular_tables", "columns", "time_order", "sql", "cases",
    "decisions", "policy", "log", "splits",
    "counts", "outcomes", "behaviour", "mdp", "estimate", "ties", "solve", "certificate",
    "change_certificate", "simulate", "evaluate", "bounds", "episodes", "changes", "assurance",
    "ope", "stats", "envs",
    "ingest", "forecast", "inspection", "algorithms", "sceptic", "verdict", "deep",
    "stored_policies", "serving", "monitoring", "report", "comparison", "running", "experiments",
    "paper", "cli", "__main__",
]  # fmt: skip
STANDARD = {"__future__", "collections", "functools", "math", "typing"}
ROOT = Path(spibb.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def part_of(path: Path) -> str:
    """The entry of ORDER that a file belongs to."""
    relative = path.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def module_of(path: Path) -> str:
    """The dotted name of a file; a package's is that of its __init__."""
    return ".".join(["spibb", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(
        ".__init__"
    )


@cache
def tree_of(path: Path) -> ast.Module:
    """The code of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All parts of the code of a file."""
    return list(ast.walk(tree_of(path)))


MODULES = {module_of(path): path for path in FILES}
HOMES = spibb._HOME | spibb._BEHIND
"""The module behind each name of the package itself."""


@cache
def imported_modules(path: Path) -> set[str]:
    """The files that a file imports, lazily or not, but not for type hints only."""
    hints = {
        id(inner)
        for node in nodes_of(path)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = set()
    for node in nodes_of(path):
        if id(node) in hints:
            continue
        if isinstance(node, ast.ImportFrom):
            found |= {_behind(str(node.module), alias.name) for alias in node.names}
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & set(MODULES)


def _behind(module: str, name: str) -> str:
    """The module that `from module import name` loads."""
    inside = f"{module}.{name}"
    home = HOMES.get(name) if module == "spibb" else None
    return home or (inside if inside in MODULES else module)


def imported_parts(path: Path) -> set[str]:
    """The entries of ORDER that a file imports."""
    return {part_of(MODULES[name]) for name in imported_modules(path)}


BACKWARDS = {
    ("algorithms/improvement.py", "save_result"),
    ("algorithms/improvement.py", "save_report"),
    ("algorithms/improvement.py", "judge"),
}
"""The only uses of what lies below: a result that can be judged, reported and saved by its own
methods. Everything else goes one way."""


def taken_from_the_package(path: Path) -> set[str]:
    """Names X of `spibb.X` in the code of a file, which are imported when they are first used."""
    nodes = nodes_of(path)
    whole = {  # `from spibb.kernels import spibb` is another
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "spibb"
    }
    return {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in whole
    } - {"__version__"}


def test_only_a_result_asks_what_lies_below_it():
    found = {
        (str(path.relative_to(ROOT)), name)
        for path in FILES
        for name in taken_from_the_package(path)
    }
    assert found == BACKWARDS


def test_no_file_imports_itself_in_a_circle_lazily_or_not():
    """Also within packages. What `spibb.name` finds is tested above."""
    graph = {name: imported_modules(path) - {name} for name, path in MODULES.items()}
    assert len(graph["spibb.algorithms"]) > 5
    assert "spibb.files" in graph["spibb.running.saving"]
    try:
        list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_the_page_of_the_architecture_names_every_module_of_the_top_level():
    page = (ROOT.parent.parent / "docs/architecture.md").read_text("utf-8")
    parts = [part for part in ORDER if not part.startswith("__")]
    names = {part: f"`{part}/`" if (ROOT / part).is_dir() else f"`{part}.py`" for part in parts}
    assert [name for name in names.values() if name not in page] == []
    assert [part for part in parts if not (ROOT / part).exists()
            and not (ROOT / f"{part}.py").exists()] == []  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_above_itself(path):
    part = part_of(path)
    assert part in ORDER, f"{part} is not in the order of dependency"
    if part == "__init__":
        return
    below = {p for p in imported_parts(path) if ORDER.index(p) > ORDER.index(part)}
    assert not below, f"{path.name} imports from below itself: {sorted(below)}"


def words_of(path: Path) -> set[str]:
    """The classes and the capitalised aliases of a file, without leading underscores.

    Not the options of the command line: an option has the name of what it sets.
    """
    found = set()
    for node in tree_of(path).body:
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.Assign) and not ast.unparse(node.value).startswith("Annotated["):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            found |= {name for name in names if re.match("_*[A-Z].*[a-z]", name)}
    return {name.lstrip("_") for name in found}


def test_one_word_names_one_thing():
    """A grid is an algorithm's: each has its own."""
    found = Counter(word for path in FILES for word in words_of(path))
    assert found["Verdict"] == found["Labels"] == 1
    assert {name for name, times in found.items() if times > 1} == {"Grid"}


def constants_of(path: Path) -> set[str]:
    """The constants that a file defines."""
    parts = [node for node in tree_of(path).body if isinstance(node, ast.Assign | ast.AnnAssign)]
    names = {node for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}
    return {node.id for node in names if isinstance(node.ctx, ast.Store) and node.id.isupper()}


def test_a_constant_that_is_imported_by_name_means_one_thing():
    """Each world has its own discount."""
    imported = {
        (node.module, alias.name)
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    constants = [(module, name) for module, path in MODULES.items() for name in constants_of(path)]
    found = Counter(name for module, name in constants if (module, name) in imported)
    assert {name for name, times in found.items() if times > 1} == {"DISCOUNT"}


IMPORTERS = {"__init__.py", "algorithms/__init__.py"}
"""Where modules are imported by names in text: those of the package, and an algorithm's path."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_are_imported_by_statements(path):
    """What is imported by a name in text escapes the tests above."""
    assert bool(by_text(path)) == (str(path.relative_to(ROOT)) in IMPORTERS)


def by_text(path: Path) -> set[str]:
    """The ways in which a file imports modules by text, and relative imports."""
    names = {node.id for node in nodes_of(path) if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes_of(path) if isinstance(node, ast.Attribute)}
    statements = [node for node in nodes_of(path) if isinstance(node, ast.ImportFrom)]
    names |= {alias.name for node in statements for alias in node.names}
    return names & {"import_module", "__import__"} | {"." for node in statements if node.level}


def test_what_a_file_imports_is_seen_however_it_is_written(tmp_path):
    path = tmp_path / "policy.py"
    path.write_text(
        """
import spibb as package
from importlib import import_module as load
from spibb import judge, run, solve

def _later():
    from . import verdict
    load("spibb.paper.claims")
    return package.improve

class _Plan: ...
Verdict = tuple[int, ...]
LIMIT = 3
"""
    )
    assert imported_modules(path) == {"spibb", "spibb.running", "spibb.solve", "spibb.verdict"}
    assert taken_from_the_package(path) == {"improve"}
    assert by_text(path) == {".", "import_module"}
    assert words_of(path) == {"Plan", "Verdict"}


@pytest.mark.parametrize("path", sorted((ROOT / "kernels").rglob("*.py")), ids=lambda p: p.name)
def test_kernels_import_numpy_and_numba_only(path):
    modules = {
        name.split(".")[0] if not name.startswith("spibb") else ".".join(name.split(".")[:2])
        for node in nodes_of(path)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import)
            else [node.module] if isinstance(node, ast.ImportFrom) else []
        )
    }  # fmt: skip
    compiler = {"llvmlite"} if path.name == "simd.py" else set()  # Numba's own
    assert modules <= {"numpy", "numba", "spibb.kernels"} | STANDARD | compiler


@pytest.mark.parametrize("path", sorted((ROOT / "kernels").rglob("*.py")), ids=lambda p: p.name)
def test_kernels_take_at_most_eight_arguments(path):
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef):
            assert len(node.args.args) <= 8, f"{path.name}: {node.name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_one_module_reads_structured_files(path):
    """Everything else gets their content checked, from spibb.loading."""
    readers = {"json.load", "json.loads", "np.load", "tomllib.load", "tomllib.loads"}
    calls = {ast.unparse(node) for node in nodes_of(path) if isinstance(node, ast.Attribute)}
    assert path.name == "loading.py" or not calls & readers


def test_importing_spibb_imports_nothing_heavy():
    import subprocess
    import sys

    code = "import spibb, sys; print(sorted({'numpy', 'numba', 'scipy', 'jax'} & set(sys.modules)))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"


def test_the_command_line_starts_without_numpy():
    import subprocess
    import sys

    code = "import spibb.cli.app, sys; print(sorted({'numpy', 'numba', 'rich'} & set(sys.modules)))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"


def test_every_public_name_can_be_imported():
    for name in spibb.__all__:
        assert getattr(spibb, name) is not None


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_one_module_knows_how_to_write_a_file_whole(path):
    """What is written any other way can be found half-written."""
    calls = {ast.unparse(node.func) for node in nodes_of(path) if isinstance(node, ast.Call)}
    own = {"os.replace", "os.link", "os.symlink", "os.fsync", "os.umask", "tempfile.mkstemp",
           "fcntl.flock", "hashlib.file_digest"}  # fmt: skip
    assert path.name == "files.py" or not calls & own


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_one_module_fills_templates(path):
    """Another environment might forget to escape labels."""
    assert path.name == "filling.py" or "jinja2" not in path.read_text(encoding="utf-8")


SHORT = {"free_box", "seen_first_box"}
"""Kernels that end within microseconds of being called."""


def test_kernels_return_plain_tuples_to_python():
    """Numba crashes where a signal (Ctrl-C) arrived in a kernel that returns a named tuple: Python
    code makes the tuple, the signal raises there, and Numba does not look for the exception."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in ROOT.rglob("*.py")}
    kernels = {path: tree for path, tree in trees.items() if ROOT / "kernels" in path.parents}
    compiled = [
        (path, node)
        for path, tree in kernels.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any("njit" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]
    tuples = {
        node.name
        for tree in kernels.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and "NamedTuple" in map(ast.unparse, node.bases)
    }
    named: set[str] = set()
    while True:  # also what returns the result of another kernel
        found = {
            node.name
            for _, node in compiled
            for back in ast.walk(node)
            if isinstance(back, ast.Return) and back.value is not None
            for call in ast.walk(back.value)
            if isinstance(call, ast.Call) and ast.unparse(call.func) in tuples | named
        }
        if found == named:
            break
        named = found
    assert "end_in" in named
    inside = {id(part) for _, node in compiled for part in ast.walk(node)}
    modules = {path.stem for path in kernels}
    called = {
        call.func.attr
        for tree in trees.values()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and id(call) not in inside
        and isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in modules
    } | {
        name.name
        for path, tree in trees.items() if path not in kernels
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("spibb.kernels.")
        for name in node.names
    }  # fmt: skip
    assert called & named <= SHORT
