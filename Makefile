# Each target sets up what it needs; on a fresh machine python3.11+, git and make are enough.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help setup demo test test-all check bench chaos storm docs lock clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# uv takes the lock itself; pip takes the same versions from requirements.txt, which
# is exported from the lock with hashes.
$(VENV)/.installed: pyproject.toml requirements.txt
	@if command -v uv >/dev/null 2>&1; then \
	    uv sync --quiet --locked; \
	else \
	    $(PYTHON) -m venv $(VENV) && \
	    $(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: -r requirements.txt && \
	    $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .; \
	fi
	@touch $@

setup: $(VENV)/.installed  ## make .venv with the locked dependencies

demo: setup  ## the whole way on a scratch store: backfill the samples, report, brief, recall
	$(BIN)/cortex demo

# A test run starts hundreds of processes. Each would compile all that it imports where bytecode is switched off
# and the installer left none: 3 of the 6 s of processor time that importing takes.
COMPILED := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/$(VENV)/bytecode

test: setup  ## the quick tests, under two minutes
	$(COMPILED) $(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow" tests/unit tests/store tests/process

test-all: setup  ## every test, and every property on all its examples
	$(COMPILED) HYPOTHESIS_PROFILE=full $(BIN)/python -m pytest -q -n auto --dist worksteal

check: setup  ## lint, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup  ## the table of numbers, against a baseline in the same run
	$(BIN)/python -m benchmarks.run

KILLS ?= 1000
chaos: setup  ## kill runs at every file operation and at random; KILLS=200 for fewer; then a year in one store
	$(BIN)/python -W ignore -m tests.chaos.harness --kills $(KILLS)
	$(BIN)/python -W ignore -m tests.chaos.year --nights 60

SESSIONS ?= 200
storm: setup  ## sessions that start and end with random kills; then eight processes on one store for a minute
	$(BIN)/python -W ignore -m tests.chaos.storm --sessions $(SESSIONS)
	$(BIN)/python -W ignore -m tests.chaos.crowd --seconds 60

docs: setup  ## print the generated pages again
	$(BIN)/python -m docs.generate

lock:  ## resolve again and export for pip
	uv lock
	uv export --quiet --locked --all-groups --no-emit-project --no-annotate --no-header -o requirements.txt

clean:  ## remove what make made
	rm -rf $(VENV) build dist .cortex-demo
