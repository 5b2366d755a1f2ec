# Only python3 (3.11+) and make are presumed; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 3
CASES ?= 0

# Java's classes as it has loaded them before: Spark starts in half the time. Ignored while it is not there.
CLASSES := $(VENV)/spark.jsa
export EVERVIEW_CLASS_ARCHIVE := $(CURDIR)/$(CLASSES)

# Whatever the environment says, modules are compiled once: tests start hundreds of Pythons.
export PYTHONDONTWRITEBYTECODE :=

# The browser that the console is tested in, and how it is installed where it is missing.
CHROMIUM ?= /usr/bin/chromium
INSTALL := apt-get install --yes --quiet --no-install-recommends chromium
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo -n)

.PHONY: help demo docs references test browser check format bench long keep-regressions clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -hE '^[a-z.-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-17s %s\n", $$1, $$2}'

.venv: $(VENV)/.installed  ## only the environment, all extras

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Everview needs Python 3.11 or newer; $(PYTHON) is older. Set PYTHON=..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: .venv  ## a mission of nine sites, live; ARGS=--fast for half a minute, ARGS=--keep to look around
	@$(BIN)/python -m everview.demo $(ARGS)

$(CLASSES): $(VENV)/.installed
	@$(BIN)/python -m everview.engines.spark.class_archive $@ || echo "tests run without it, somewhat slower"

test: .venv $(CLASSES)  ## the whole test suite
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup

browser: .venv  ## the tests of the console in a real browser: Debian's chromium, installed if missing
	@test -x $(CHROMIUM) || $(AS_ROOT) sh -c '$(INSTALL) || { apt-get update && $(INSTALL); }' || { echo "There is no $(CHROMIUM): install Debian's package chromium, or set CHROMIUM=/path/of/one" >&2; exit 1; }
	@$(BIN)/python -c 'import playwright' 2>/dev/null || $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt --editable '.[browser]'
	CHROMIUM=$(CHROMIUM) $(BIN)/python -m pytest tests/browser --numprocesses 2 --dist loadgroup

check: .venv  ## formatting, lint, types, import layers, links in the documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/zensical build --clean --strict

docs: .venv  ## the documentation as pages, in build/site
	$(BIN)/zensical build --clean --strict

references: .venv  ## write the references of the documentation from the code
	$(BIN)/python -m references

format: .venv  ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv  ## all benchmarks, or one: make bench BENCH=provenance
	$(BIN)/python -m benchmarks $(BENCH)

long: .venv  ## long random runs: make long AREA=algebra CASES=100000 (0: until stopped); AREA=processes CASES=1 SECONDS=600
	$(BIN)/python -m tests.long $(or $(AREA),algebra) --cases $(CASES) $(if $(SECONDS),--seconds $(SECONDS))

keep-regressions: .venv  ## copy Hypothesis' failing examples to where they are committed
	mkdir -p tests/regressions/hypothesis && cp -r .hypothesis/examples/. tests/regressions/hypothesis/

clean:  ## remove the environment and caches
	rm -rf $(VENV) build .cache .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache spark-warehouse
