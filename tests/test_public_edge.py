"""The public edge explains itself: documented, with examples that run, and typed for users."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

import spibb
from spibb.simulate import simulate

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.MULTILINE | re.DOTALL
API = (ROOT / "docs/api.md").read_text("utf-8")
DOCUMENTED = set(re.findall(r"^::: (spibb[\w.]*)", API, re.M))
PUBLIC = [name for name in spibb.__all__ if name != "__version__"]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def imported(page: Path) -> set[str]:
    """Names of spibb that a script, or the Python blocks of a page, import or take from it."""
    text, found = page.read_text("utf-8"), set()
    blocks = [text] if page.suffix == ".py" else re.findall(r"^```python\n(.*?)^```", text, BLOCK)
    for block in blocks:
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("spibb"):
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
            dotted = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            if dotted and node.value.id == "spibb":
                found.add(f"spibb.{node.attr}")
    return found


def documented(name: str) -> bool:
    """Whether a name, the module that offers it, or something in it is on the page of the API."""
    parts = any(one.startswith(f"{name}.") for one in DOCUMENTED)
    return name in DOCUMENTED or parts or (name.rpartition(".")[0] in DOCUMENTED - {"spibb"})


def test_every_public_name_is_on_the_page_of_the_api():
    assert {f"spibb.{name}" for name in PUBLIC} <= DOCUMENTED


def test_type_checkers_see_the_same_names_in_the_same_places():
    """Editors read the imports below TYPE_CHECKING, Python reads the table."""
    tree = ast.parse(Path(spibb.__file__).read_text("utf-8"))
    (hints,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: node.module
        for node in hints.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == spibb._HOME | spibb._BEHIND


def test_every_name_that_pages_and_examples_import_is_on_the_page_of_the_api():
    used = {name for page in [*PAGES, *EXAMPLES] for name in imported(page)}
    assert {
        "spibb.envs.sepsis.icu_sepsis",
        "spibb.simulate.simulate",
        "spibb.envs.gridworld_mdp",
        "spibb.run",
    } <= used
    assert sorted(name for name in used if not documented(name)) == []


INTERNAL = {"architecture.md", "decisions.md"}
"""Pages about the code itself."""


def in_prose(page: Path) -> set[str]:
    """Names of spibb in the inline code of a page, outside its blocks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    return set(re.findall(r"`(spibb(?:\.\w+)+)", text))


def test_names_in_the_prose_of_pages_are_public_and_need_no_other_import():
    used = {name for page in PAGES if page.name not in INTERNAL for name in in_prose(page)}
    assert {"spibb.splits.split_episodes", "spibb.run", "spibb.Log"} <= used
    assert sorted(name for name in used if not documented(name)) == []
    taken = sorted(name for name in used if not name.startswith("spibb.deep"))  # needs an extra
    code = "import spibb; from operator import attrgetter as get; " + "; ".join(
        f"get({name.removeprefix('spibb.')!r})(spibb)" for name in taken
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_modules_on_the_page_of_the_api_need_no_import_of_their_own():
    names = sorted({name.split(".")[1] for name in DOCUMENTED} - {"deep"})  # needs an extra
    code = f"import spibb; print([n for n in {names} if not hasattr(spibb, n)], spibb.envs)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("[] <module 'spibb.envs'"), done.stderr


@pytest.fixture
def session(tmp_path, monkeypatch):
    """What the page of the API defines for its examples, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```python\n(.*?)^```", API, re.M | re.S)
    names: dict[str, object] = {"np": np}
    exec(block, names)
    return names


def examples(thing: object, name: str) -> list[doctest.DocTest]:
    """The examples of a function, or of a class and its methods."""
    return [test for test in doctest.DocTestFinder().find(thing, name) if test.examples]


SOURCES = [
    path
    for path in sorted((ROOT / "src/spibb").rglob("*.py"))
    if re.search(r"^ *>>> ", path.read_text("utf-8"), re.M)
]


def module_of(path: Path) -> str:
    """The dotted name of a file."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def all_examples(path: Path, names: dict[str, object]) -> list[doctest.DocTest]:
    """The examples of all texts of a file: DocTestFinder passes by cached properties."""
    texts = [
        (node.lineno, node.value.value)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    parse = doctest.DocTestParser().get_doctest
    return [
        parse(text, names, path.name, str(path), line)
        for line, text in texts
        if isinstance(text, str) and ">>> " in text
    ]


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_all_examples_of_a_module_run(path, session):
    if "deep" in path.parts:
        pytest.importorskip("jax")
    module = importlib.import_module(module_of(path))
    names = {**vars(module), **session}
    for test in all_examples(path, names):
        assert test.examples
        said: list[str] = []
        doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append)
        assert not said, "".join(said)


def test_examples_of_inner_modules_and_of_properties_run_too():
    assert {"spibb.checks.arguments", "spibb.bisection", "spibb.words", "spibb.errors",
            "spibb.columns.names"} <= {module_of(path) for path in SOURCES}  # fmt: skip
    path = ROOT / "src/spibb/labels/vocabularies.py"
    assert any("in_order" in test.examples[0].source for test in all_examples(path, {}))


@pytest.mark.parametrize("name", [*PUBLIC, "simulate"])
def test_every_public_name_has_an_example(name):
    thing = simulate if name == "simulate" else getattr(spibb, name)
    assert name in {test.name for test in examples(thing, name)}, f"{name} has no example"


MAIN = ("Log", "Policy", "Counts", "MDP", "Improvement", "Problem", "Sampler",
        "certificate.Certificate", "change_certificate.ChangeCertificate")  # fmt: skip
INNER = {"Counts.from_outcomes", "Counts.in_units", "MDP.paying", "MDP.check_fits",
         "Sampler.trusted_record"}  # fmt: skip
"""Methods that only the library calls."""


def documented_classes() -> list[str]:
    """The classes on the page of the API, by their names in the package."""
    names = [n for n in sorted(DOCUMENTED - TRAINED) if not n.startswith("spibb.deep")]
    return [n.removeprefix("spibb.") for n in names if inspect.isclass(pkgutil.resolve_name(n))]


TRAINED = {"spibb.running.VectorRun"}
"""What takes a network, and so seconds: docs/deep.md has the example."""
CLASSES = documented_classes()


def class_of(name: str) -> type:
    """A class by its name in the package."""
    found = pkgutil.resolve_name(f"spibb.{name}")
    assert isinstance(found, type)
    return found


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_of_the_api_has_an_example(name):
    kind = class_of(name)
    tests = examples(kind, kind.__name__)
    assert kind.__name__ in {test.name for test in tests}, f"{name} has no example"


def methods_of(kind: type) -> dict[str, object]:
    """The public methods that a class defines."""
    methods = {
        f"{kind.__name__}.{name}": getattr(found, "__func__", found)
        for name, found in vars(kind).items()
        if not name.startswith("_")
    }
    return {name: found for name, found in methods.items() if inspect.isfunction(found)}


@pytest.mark.parametrize("name", MAIN)
def test_methods_of_the_main_classes_list_their_parameters(name):
    for method, function in methods_of(class_of(name)).items():
        text = inspect.getdoc(function) or ""
        taken = [p for p in inspect.signature(function).parameters if p not in ("self", "cls")]
        lacking = [p for p in taken if not re.search(rf"^ +{p}: ", text, re.M)]
        assert method in INNER or not lacking, f"{method} says nothing of {lacking}"


@pytest.mark.parametrize("name", MAIN)
def test_methods_of_the_main_classes_have_examples(name):
    kind = class_of(name)
    tests = {test.name for test in examples(kind, kind.__name__)}
    assert sorted(set(methods_of(kind)) - INNER - tests) == []


FUNCTIONS = [name for name in PUBLIC if inspect.isfunction(getattr(spibb, name))]


@pytest.mark.parametrize(
    "name", [*FUNCTIONS, "forecast.forecast", "solve.optimise", "splits.split_episodes"]
)
def test_the_docstring_of_a_public_function_says_what_it_takes_and_returns(name):
    thing = attrgetter(name)(spibb)
    text = inspect.getdoc(thing) or ""
    for parameter in inspect.signature(thing).parameters:
        assert re.search(rf"\b{parameter}\b", text), f"{name} says nothing of {parameter}"
    assert "Returns:" in text


@pytest.mark.parametrize("name", [n for n in PUBLIC if inspect.isclass(getattr(spibb, n))])
def test_the_docstring_of_a_public_class_says_what_its_fields_are(name):
    thing = getattr(spibb, name)
    text = inspect.getdoc(thing) or ""
    if issubclass(thing, Exception):
        return
    assert re.search(r"^(Parameters|Attributes):$", text, re.M), f"{name} lists no fields"
    fields = [p for p in inspect.signature(thing).parameters if p not in ("args", "kwargs")]
    for parameter in fields:
        assert re.search(rf"^ +{parameter}: ", text, re.M), f"{name} says nothing of {parameter}"


WITH_EXAMPLES = {"envs", "envs.helicopter", "pseudocounts", "solve", "deep", "forecast", "splits"}


def test_every_module_of_the_api_has_an_example():
    assert {f"spibb.{name}" for name in WITH_EXAMPLES} <= {module_of(path) for path in SOURCES}


def test_the_guarantee_of_pi_b_is_that_of_the_certificate():
    """The formula in the docstring, evaluated, is the bound that the code gives."""
    assert "4 V_max/(1 − γ) · √(2/N∧ · log(2|X||A|2^|X|/δ)) − ρ(π, M̂) + ρ(π_b, M̂)" in (
        inspect.getdoc(spibb.PiBSpibb) or ""
    )
    log = spibb.Log.from_arrays(list("abab"), [0, 1, 1, 0], [0, 1, 0, 0], terminated=[0, 1, 0, 1])
    result = spibb.improve(log, spibb.Policy.uniform(["a", "b"], 2), discount=0.5, n_wedge=1)
    radius = np.sqrt(2 / 1 * np.log(2 * 2 * 2 * 2**2 / 0.1))
    wanted = 4 * result.problem.v_max / 0.5 * radius - result.value + result.baseline_value
    (bound,) = (b for b in result.certificate(0.1).bounds if b.name == "theorem-2")
    assert bound.zeta == pytest.approx(wanted, rel=1e-12)


USER = """
from pathlib import Path

import numpy as np

import spibb
from spibb.envs import gridworld_baseline, gridworld_mdp
from spibb.simulate import simulate

world, baseline = gridworld_mdp(), gridworld_baseline()
log: spibb.Log = simulate(world, baseline, 200, rng=np.random.default_rng(0))
problem: spibb.Problem = spibb.Problem.from_log(log, baseline, discount=0.95)
result: spibb.Improvement = spibb.PiBSpibb(n_wedge=10).improve(problem)
value: float = spibb.exact_value(world, result.policy)
row: dict[object, float] = result.policy.row(7)
print(result.certificate(delta=0.05), result.verdict.grade, value, row)
result.policy.save("policy.csv")
folder: Path = result.save("improved", force=True)
algorithm = spibb.Certified(lowest_return=0)
done: spibb.Run = spibb.run(log, baseline=baseline, algorithm=algorithm, seed=1)
found: tuple[str, ...] = tuple(finding.what for finding in done.findings)
again = spibb.improve(log, baseline, algorithm="auto")
reveal_type(again)
reveal_type(done.policy)
reveal_type(done.improvement)
reveal_type(done.inspection)
reveal_type(done.assessment)
reveal_type(spibb.run("log.csv", algorithm="dqn").policy)
print(again.reason, [candidate.lower for candidate in again.sweep])
"""
REVEALED = (
    (23, "algorithms.improvement.Improvement"),
    (24, "policy.Policy"),
    (25, "algorithms.improvement.Improvement"),
    (26, "inspection.Inspection"),
    (27, "report.assessment.Assessment"),
    (28, "deep.vector_policy.VectorPolicy"),
)


def python_of(page: Path) -> str:
    """The Python blocks of a page as one script, whose own functions need no annotations."""
    first = "# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=import-untyped"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    return "\n".join([first, *blocks])


@pytest.fixture(scope="module")
def typed(tmp_path_factory, pytestconfig):
    """What `mypy --strict` says of a user's script and of each page that has Python.

    It sees the package from outside, where py.typed ships. What it knows of other packages is kept
    for the next run.
    """
    folder = tmp_path_factory.mktemp("typed")
    (folder / "script.py").write_text(USER)
    for page in PAGES:
        if "```python" in page.read_text("utf-8"):
            (folder / f"page_{page.stem.replace('-', '_')}.py").write_text(python_of(page))
    scripts = sorted(path.name for path in folder.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir",
         str(pytestconfig.cache.mkdir("mypy")), "--config-file", os.devnull, *scripts],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
    )  # fmt: skip
    said: dict[str, list[str]] = {name: [] for name in scripts}
    for line in done.stdout.splitlines():
        if line.split(":")[0] in said:
            said[line.split(":")[0]].append(line)
    return said


@pytest.mark.slow
def test_the_script_of_a_user_is_typed(typed):
    assert (Path(spibb.__file__).parent / "py.typed").exists()
    assert typed["script.py"] == [
        f'script.py:{line}: note: Revealed type is "spibb.{kind}"' for line, kind in REVEALED
    ]


@pytest.mark.slow
def test_the_python_of_the_pages_is_typed(typed):
    pages = {name: said for name, said in typed.items() if name != "script.py"}
    assert len(pages) > 12 and "page_choosing.py" in pages
    assert {name: said for name, said in pages.items() if said} == {}


def test_install_lines_work_from_a_clone_and_name_extras_that_exist():
    """Nothing is on an index yet: `pip install spibb` would fetch something else."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [
        line
        for page in [*PAGES, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "src").rglob("*.py"))]
        for line in re.findall(r"pip install[^`#\n]*", page.read_text("utf-8"))
    ]
    assert len(lines) > 3
    for line in lines:
        assert not re.search(r"pip install (-\S+ )*[\"']?spibb\b", line), line
        for extras in re.findall(r"\.\[([\w,-]+)\]", line):
            assert set(extras.split(",")) <= set(project["optional-dependencies"]), line
