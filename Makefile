# Every target works on a fresh clone: it makes a virtual environment of the project's own and installs into it first.
# The installation is repeated only when pyproject.toml or constraints.txt changes.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CODE   := src experiments tests typing_tests benchmarks examples docs/conf.py docs/drawings
# As many processes as there are cores, each with one thread.
TESTS  := OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test lint types pytest slow planted faults evidence bench reproduce docs reference pictures dist clean

help:
	@echo "make demo    install, then run the whole story on generated data, into demo-out/"
	@echo "make test    install, then ruff, mypy --strict and the tests"
	@echo "make lint    ruff and mypy alone"
	@echo "make slow    known bugs planted in the source, each caught by its test; takes minutes"
	@echo "make planted the same as a table, in benchmarks/results/planted.md"
	@echo "make faults  kills, failing writes, races, interrupts, at length, and an hour of fuzzing (MINUTES=60)"
	@echo "make evidence the thorough audit, planted bugs, faults and an hour of fuzzing, on one page; takes hours"
	@echo "make bench   repeat the benchmarks and rewrite benchmarks/"
	@echo "make reproduce   the paper's experiments, claim by claim, into reproduction/; takes hours (PART=storage: seconds)"
	@echo "make docs    the documentation site, in build/site; open build/site/index.html"
	@echo "make dist    build wheel and sdist, check them, and install each into a fresh environment"
	@echo "make reference, make pictures   rewrite docs/cli.md from the commands' own help, and docs/pictures"
	@echo "make clean   remove the environment, caches and demo-out/"

demo: $(VENV)/.core
	$(BIN)/dpcipher demo --output demo-out

test: lint pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy

pytest: $(VENV)/.dev
	$(TESTS) --dist loadfile -m "not slow"

slow: $(VENV)/.dev
	$(TESTS) --dist worksteal -m slow

planted: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/planted.py

MINUTES ?= 60

faults: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/faults.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/fuzz.py --minutes $(MINUTES)

evidence: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/evidence.py

# Those that need nothing from outside; others: make bench BENCH="rows small" with the folders they name.
BENCH ?= plan cost scale coverage ledger size audit

bench: $(VENV)/.dev
	for name in $(BENCH); do echo "== $$name"; OMP_NUM_THREADS=1 $(BIN)/python "benchmarks/$$name.py" || exit 1; done

# Finished blocks are kept: run it again to go on after a kill. REPEATS=20 PART=experiment1 is a first look.
PART ?= all
REPEATS ?= 1000

reproduce: $(VENV)/.dev
	$(BIN)/python -m experiments.paper $(PART) --repeats $(REPEATS) --reading all

# Nothing is fetched, and a warning is an error.
docs: $(VENV)/.dev
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -c docs -d build/doctrees . build/site
	@echo "Open build/site/index.html"

reference: $(VENV)/.core
	$(BIN)/python -m dpcipher.cli.reference > docs/cli.md

pictures: $(VENV)/.core
	$(BIN)/python docs/drawings/draw.py

dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	.ci/install dist

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist demo-out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dpcipher needs Python 3.11 or later; try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "python3 -m venv failed; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable .
	@touch $@

$(VENV)/.dist: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[dist]'
	@touch $@ $(VENV)/.core

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.core
