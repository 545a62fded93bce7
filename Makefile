PYTHON ?= python3
BIN := .venv/bin

.PHONY: install test test-all lint bench

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

test: install
	$(BIN)/python -m pytest

test-all: test
	$(BIN)/python -m pytest -m long

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: install
	$(BIN)/python benchmarks/step.py $(BENCH)
