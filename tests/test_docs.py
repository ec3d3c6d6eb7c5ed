"""The README's commands and example run as printed, and its links lead somewhere."""

from __future__ import annotations

import contextlib
import pkgutil
import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from parts import needed
from typer.testing import CliRunner

from spibb.cli.app import app

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """Fenced blocks of a language; the empty language holds commands.

    Blocks of all languages are paired, since the end of one looks like the start of another.
    """
    return [block for name, block in every_block(page) if re.fullmatch(language, name)]


def every_block(page: Path) -> list[tuple[str, str]]:
    """The language and the text of each fenced block, in the order of the page."""
    return re.findall(r"^```(.*)\n((?s:.*?))^```$", page.read_text("utf-8"), re.M)


def pages_with(language: str, start: str = "") -> list[Path]:
    """Pages that have a block of a language with a line that starts so."""
    return [page for page in PAGES if any(_lines(page, language, start))]


def _lines(page: Path, language: str, start: str) -> list[str]:
    lines = [line for block in blocks(page, language) for line in block.splitlines()]
    return [line for line in lines if line and line.startswith(start)]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_a_block_behind_another_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```math\nx\n```\n\nprose\n\n```\nspibb demo\n```\n\n```python\ny\n```\n")
    found = [blocks(page, language) for language in ("", "python", "(?:ba)?sh")]
    assert found == [["spibb demo\n"], ["y\n"], []]


def test_the_readme_example_runs_and_is_short(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (example,) = blocks(README, "python")
    assert len(example.splitlines()) <= 18
    exec(compile(example, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "true:      0.40 -> 0.5" in printed
    assert (tmp_path / "policy.csv").exists()


LANGUAGES = {"", "python", "sh", "bash", "text", "toml", "math", "mermaid", "sql"}


def test_blocks_are_in_languages_that_the_tests_know():
    """Python by another name would not be run."""
    found = {language for page in PAGES for language, _ in every_block(page)}
    assert found <= LANGUAGES


RUN = sorted({*pages_with("python"), *pages_with("", "spibb ")})


DEMO = "spibb demo --out demo"
VISITS = {
    "patient": [0, 0, 1, 1], "visit": [0, 1, 0, 1], "ward": ["A", "B", "B", "A"],
    "age": [20, 30, 40, 50], "drug": ["new", "none", "none", "new"], "gain": [0, 1, 1, 0],
    "left": [False, True, False, True],
}  # fmt: skip
VISITS = pd.DataFrame(VISITS)
"""What a server would have: `tests/ingest/test_warehouse.py` runs one."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the command writes with which most pages begin."""
    folder = tmp_path_factory.mktemp("demo")
    with contextlib.chdir(folder):
        run_command(DEMO)
    return folder / "demo"


SLOW = {"bandit.md"}


def pages(found: list[Path]) -> list:
    """Parameters, some of them slow."""
    return [
        pytest.param(page, id=name_of(page), marks=[pytest.mark.slow] * (page.name in SLOW))
        for page in found
    ]


@pytest.mark.parametrize("page", pages(RUN))
def test_a_page_runs_from_top_to_bottom_in_one_folder(page, demo, tmp_path, monkeypatch):
    """Its commands and its Python, as printed; the tutorial invites to a second run."""
    monkeypatch.chdir(tmp_path)
    if page.name == "deep.md":
        needed("jax")
        monkeypatch.setattr(sys, "argv", ["pole_log.py", "--episodes", "30"])
        runpy.run_path(str(ROOT / "examples/pole_log.py"), run_name="__main__")
    if page.name == "ingest.md":
        visits = SimpleNamespace(table=lambda name: VISITS)
        monkeypatch.setattr(needed("ibis").postgres, "connect", lambda **server: visits)
    for _ in range(2 if page.name == "tutorial.md" else 1):
        run_page(page, demo)


def run_page(page: Path, demo: Path) -> None:
    """Run what is printed; the blocks of Python are one session."""
    names: dict[str, object] = {}
    for language, block in every_block(page):
        if language == "python":
            exec(compile(block, page.name, "exec"), names)
        elif not language:
            for line in block.splitlines():
                if line == DEMO and not Path("demo").exists():
                    shutil.copytree(demo, "demo")
                elif line.startswith("spibb "):
                    run_command(line.split("#")[0])


def run_command(command: str) -> None:
    """Run a command, which must succeed."""
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == 0, f"{command}: {result.output} {result.exception}"


SMALLER = {
    "spibb experiment helicopter": "--runs 1 --sizes 500 --passes 1 --seeds 1 --episodes 20",
    "spibb experiment random-mdps": "--runs 1 --sizes 10 --etas 0.5 --column basic-rl --jobs 1",
    "spibb experiment assurance": "--runs 1 --sizes 30 --families near-null --column auto --jobs 1",
    "spibb figures": "",
    "spibb claims": "",
}
"""What makes a command of hours one of seconds; of an option given twice, the last counts."""
ELSEWHERE = ("pip install", "python examples/", "dask scheduler", "dask worker")
"""Examples are run by their own test, and a Dask cluster by that of the runner."""


def long_commands(page: Path) -> list[str]:
    """Those that are run here."""
    return [line for line in _lines(page, "(?:ba)?sh", "") if not line.startswith(ELSEWHERE)]


@pytest.mark.parametrize("page", list(filter(long_commands, PAGES)), ids=name_of)
def test_long_commands_run_as_printed_but_smaller(page, tmp_path, monkeypatch, commands):
    monkeypatch.chdir(tmp_path)
    if page.name == "deep.md":
        needed("jax")
    for line in long_commands(page):
        (extra,) = (extra for start, extra in SMALLER.items() if line.startswith(start))
        command = re.sub(r" --dask \S+", "", f"{line} {extra}")
        done = commands.run(*shlex.split(command)[1:])
        assert done.code == 0, f"{command}: {done.said}"


def test_the_two_commands_of_the_readme_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(r"^make (\w+)", README.read_text("utf-8"), re.M)
    assert len(targets) == 2
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_links_lead_to_files():
    links = [
        (page, target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8"))
        if not target.startswith("http")
    ]
    assert len(links) > 50
    broken = [f"{name_of(page)}: {to}" for page, to in links if not (page.parent / to).exists()]
    assert not broken


def test_every_page_of_a_capability_has_commands_or_code_that_run():
    pages = [*pages_with("python"), *pages_with("", "spibb "), *filter(long_commands, PAGES)]
    run = {name_of(page) for page in pages}
    capabilities = {
        "ingest",
        "inspect",
        "improve",
        "choosing",
        "report",
        "evaluate",
        "monitor",
        "production",
        "sceptic",
        "deep",
        "scaling",
    }
    assert {f"docs/{name}.md" for name in capabilities} <= run


def test_the_code_that_the_notation_names_exists():
    equations = (ROOT / "docs" / "notation.md").read_text().split("Equations and theorems")[1]
    names = re.findall(r"`(?:spibb\.)?([\w.]+)`", equations)
    assert len(names) > 5
    for name in names:
        assert pkgutil.resolve_name(_with_module(name)) is not None


def _with_module(name):
    """spibb.solve:optimise of solve.optimise."""
    module, _, attribute = f"spibb.{name}".rpartition(".")
    return f"{module}:{attribute}"


def test_the_tutorial_is_also_a_notebook():
    """Its cells are the blocks of the page, which run with all pages above."""
    import json

    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from notebook import notebook
    finally:
        sys.path.pop(0)
    page = ROOT / "docs" / "tutorial.md"
    stored = page.with_suffix(".ipynb").read_text("utf-8")
    assert stored == notebook(page.read_text("utf-8")), (
        "run python tools/notebook.py docs/tutorial.md"
    )
    cells = json.loads(stored)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code == [block.strip() for block in blocks(page, "python")]


def test_every_decision_has_a_theme_a_title_of_its_own_and_a_date():
    text = (ROOT / "docs/decisions.md").read_text(encoding="utf-8")
    themes = re.split(r"^## ", text, flags=re.M)
    assert "### " not in themes[0]
    titles = re.findall(r"^### (.+)$", text, re.M)
    dated = re.findall(r"^### (.+)\n\n\*2026-\d\d-\d\d\.\* \S", text, re.M)
    assert len(titles) > 60
    assert titles == dated
    assert len(set(titles)) == len(titles)
