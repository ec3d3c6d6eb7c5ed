# make demo | test | check | bench | docs | results | dist: each makes .venv first, once; later runs start at once.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check format bench docs results dist clean

demo: .venv/core
	$(BIN)/spibb demo

test: .venv/dev
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

check: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/dev
	$(BIN)/python -m benchmarks

docs: .venv/docs
	PYTHONPATH=tools $(BIN)/zensical build --clean --strict

# Claims, figures and pages of docs/results from its tables; RUNS="runs/NAME …" takes new tables first.
results: .venv/core
	$(BIN)/python tools/results.py $(RUNS)

# Builds wheel and source archive, checks them, and runs the demo from the wheel alone.
dist: .venv/dev
	rm -rf dist build/alone
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv build/alone
	build/alone/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd build && alone/bin/spibb --version && alone/bin/spibb demo --out alone/demo

clean:
	rm -rf .venv build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/python:
	$(PYTHON) -c 'import sys; sys.exit("spibb needs Python 3.11 or newer: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	touch $@

.venv/core: .venv/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[figures]"
	touch $@

.venv/dev: .venv/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch .venv/core $@

.venv/docs: .venv/core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@
