# Each target sets up what it needs. A fresh machine needs git, make, Python 3.11 or newer with venv and pip (on Debian and
# Ubuntu the package python3-venv), and a package index; uv is used where it is there, and is not needed.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
PREFIX ?= $(HOME)/.local
INSTALLED := $(PREFIX)/share/cortex-lake
EXTRAS ?=

.PHONY: help install setup demo test test-all check bench chaos storm docs lock release clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# An environment is mended in place only if it was once made to its end; what an interrupted set-up left is made again.
# `.installed` is its last file, and goes before anything changes.
define environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Cortex needs Python 3.11 or newer. Name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@if [ -f "$(1)/.installed" ] && "$(1)/bin/python" -m pip --version >/dev/null 2>&1; then rm "$(1)/.installed"; \
	else rm -rf "$(1)" && $(PYTHON) -m venv "$(1)" || { \
	    echo "Python's venv failed. On Debian and Ubuntu install the package python3-venv, then run this again." >&2; exit 1; }; fi
endef
# Bytecode of every module is 150 MB, of which Cortex imports a part: Python writes that one itself.
PIP := -m pip --disable-pip-version-check install --no-compile --only-binary :all:

# Every version is in constraints.txt, so the resolver has nothing to choose and a newer release cannot get in.
install:  ## the command `cortex` for you, without uv or pipx; EXTRAS=report,s3 for more
	@if [ -e "$(PREFIX)/bin/cortex" ] && ! [ "$(PREFIX)/bin/cortex" -ef "$(INSTALLED)/bin/cortex" ]; then \
	    echo "$(PREFIX)/bin/cortex belongs to another installation. Take that out first, as the README's Uninstall says." >&2; exit 1; fi
	@echo "Cortex goes to $(INSTALLED): 320 MB to download, 940 MB on disk, one to three minutes."
	@echo "pip shows what it downloads, then says nothing for up to a minute while it unpacks."
	$(call environment,$(INSTALLED))
	@rm -rf build
	"$(INSTALLED)/bin/python" $(PIP) --constraint constraints.txt .$(if $(EXTRAS),[$(EXTRAS)])
	@mkdir -p "$(PREFIX)/bin" && ln -sf "$(INSTALLED)/bin/cortex" "$(PREFIX)/bin/cortex" && touch "$(INSTALLED)/.installed"
	@echo "Installed: $(PREFIX)/bin/cortex. Next: cortex setup"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) \
	    echo "$(PREFIX)/bin is not on your PATH. Add this line to ~/.profile, and type it here: export PATH=\"$(PREFIX)/bin:\$$PATH\"" ;; esac

# uv takes the lock itself. pip takes the same versions from requirements.txt, which is exported whole from the lock, with
# hashes: `--no-deps`, because a resolver has nothing to add, and that of pip 23 fails over `sqlalchemy[asyncio]`.
$(VENV)/.installed: pyproject.toml requirements.txt
	@echo "Setting up $(VENV) with all that tests need: 220 packages, 500 MB to download, 1.5 GB on disk, one to five minutes."
ifeq ($(UV),)
	$(call environment,$(VENV))
	@echo "pip shows what it downloads, then says nothing for up to a minute while it unpacks."
	$(BIN)/python $(PIP) --no-deps --require-hashes -r requirements.txt
	$(BIN)/python $(PIP) --no-deps --no-build-isolation --editable .
else
	@[ -f $@ ] && rm $@ || rm -rf $(VENV)
	uv sync --locked
endif
	@touch $@

setup: $(VENV)/.installed  ## make .venv with the locked dependencies

demo: setup  ## the whole way on a scratch store: backfill the samples, report, brief, recall
	$(BIN)/cortex demo

# A test run starts hundreds of processes. Each would compile all that it imports where bytecode is switched off
# and the installer left none: 3 of the 6 s of processor time that importing takes.
COMPILED := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/$(VENV)/bytecode

test: setup  ## the quick tests, under two minutes
	$(COMPILED) $(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow" tests/unit tests/store tests/process

test-all: setup  ## every test with all its cases, and every property on all its examples
	$(COMPILED) HYPOTHESIS_PROFILE=full EVERY_CASE=1 $(BIN)/python -m pytest -q -n auto --dist worksteal

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

docs: setup  ## print the generated modules and pages again
	$(BIN)/python -m docs.modules
	$(BIN)/python -m docs.generate

lock:  ## resolve again and export for pip; needs uv
	uv lock
	uv export --quiet --locked --all-groups --no-emit-project --no-annotate --no-header -o requirements.txt
	uv export --quiet --locked --no-dev --all-extras --no-emit-project --no-annotate --no-header --no-hashes -o constraints.txt

release: setup  ## wheel, sdist, constraints, notes and sums of the commit, checked, in dist/
	@rm -rf dist
	$(BIN)/python .ci/release.py

clean:  ## remove what make made
	rm -rf $(VENV) build dist .cortex-demo
