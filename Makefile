PYTHON ?= python3
BIN := .venv/bin

.PHONY: install train test test-all test-gpu messages lint bench performance check-data page site \
	results release-check

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

train: install
	rm -rf runs/quickstart
	$(BIN)/probformer quickstart --out runs/quickstart

# Two processes of one thread each; a file's tests share what they train.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

test: install
	$(PYTEST)

test-all: test
	$(PYTEST) -m long

TESTS ?= tests

# The wording of all messages anew, after prose was mended: look at the difference.
messages: install
	PROBFORMER_WRITE_MESSAGES=1 $(PYTEST) -m '' $(TESTS)

test-gpu: install
	$(BIN)/python tests/run_gpu.py

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: install
	$(BIN)/python benchmarks/step.py $(BENCH)

DEVICE ?= cpu

performance: install
	$(BIN)/python benchmarks/performance.py --device $(DEVICE)

check-data: install
	$(BIN)/python tests/check_data.py "$(DATA)"

# What is built is kept in the repository: who uses the explorer needs no npm.
page:
	cd frontend && npm ci --no-audit --no-fund && npm run build

# What the theme says of versions of MkDocs to come is left out.
site: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

results: install
	{ for part in published starts better tried claims; do \
	    cat results/$$part.md; $(BIN)/probformer report results/$$part-*.jsonl --markdown; done; \
	  cat results/structure.md; $(BIN)/python benchmarks/structure_table.py; \
	  cat results/sentence.md; } > docs/results.part
	mv docs/results.part docs/results.md

release-check: install
	.ci/release-check
