# make demo   an environment, the package, and a few questions over the sample data it ships
# make test   the test dependencies, then ruff, mypy, the import contracts and pytest
# make quick  pytest alone, without tests that use a server or take more than a moment
# make nightly PART=stores   whole data sets, random programs, second servers, models; without PART the names of the parts
# make mutants  small changes of the engine, each of which a test should notice; MUTANTS='--number 50 --seed 1' says which
# make lint types contracts pytest   the parts of make test
# make site   the documentation as a site in build/site; a link to nothing is an error
# make format   ruff puts right what it can
# make clean    what builds and checkers leave goes
#
# PYTHON names the interpreters to make the environment from (the first that can is taken), VENV the environment's folder.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3 python3.13 python3.12 python3.11
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
PART ?=
MUTANTS ?=
MUTANTS_PYTHON ?= python3.13 python3.12 python3.14 python3
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start many processes: what one has compiled the others read, also where the environment says that nothing is written.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/build/pycache

.PHONY: help demo test compiled quick nightly mutants lint types contracts pytest site format clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: $(VENV)/.condgraph
	@$(BIN)/condgraph demo

# mypy takes two minutes of one core, so it runs beside the rest, which begins with reading the tests once: both workers find them
# compiled.
test: $(VENV)/.condgraph-dev
	@$(MAKE) --no-print-directory -j 2 types lint contracts compiled pytest

lint: $(VENV)/.condgraph-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.condgraph-dev
	$(BIN)/mypy

contracts: $(VENV)/.condgraph-dev
	$(BIN)/lint-imports --no-logo

compiled: $(VENV)/.condgraph-dev
	@$(BIN)/python -m pytest -q --collect-only >/dev/null || true

pytest: $(VENV)/.condgraph-dev
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup $(PYTEST_ARGS)

quick: $(VENV)/.condgraph-dev
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "not service and not slow and not data and not long" $(PYTEST_ARGS)

nightly:
	@.ci/nightly $(PART)

# On request, in an environment of its own: it needs Python 3.12 or later, which `MUTANTS_PYTHON` names.
mutants:
	@$(MAKE) --no-print-directory VENV=build/mutants-venv PYTHON="$(MUTANTS_PYTHON)" build/mutants-venv/bin/python
	build/mutants-venv/bin/python -m pip install -q --upgrade 'pip>=25.1'
	build/mutants-venv/bin/python -m pip install -q --group mutants -e .
	build/mutants-venv/bin/python tools/mutants.py $(MUTANTS)

site: $(VENV)/.condgraph-site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

format: $(VENV)/.condgraph-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# An environment that exists is used as it is.
$(VENV)/bin/python:
	@for python in $(PYTHON); do \
	  "$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  echo "making $(VENV) with $$("$$python" -V)"; \
	  exec "$$python" -m venv "$(VENV)"; \
	done; \
	echo "make: none of '$(PYTHON)' is a Python 3.11 or later that can make environments (venv with ensurepip)." >&2; \
	echo "make: on Debian 12 or later, and Ubuntu 24.04 or later: apt-get install python3 python3-venv" >&2; \
	echo "make: another interpreter is named so: make $(firstword $(MAKECMDGOALS) demo) PYTHON=/path/to/python3" >&2; \
	exit 1

# The version is read from the package when it is installed, so a new one is installed anew.
$(VENV)/.condgraph: pyproject.toml condgraph/__init__.py | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -e .
	@touch $@

# Python compiles what the tests import when they import it: for pip to compile everything takes as long as to unpack it.
$(VENV)/.condgraph-dev: pyproject.toml condgraph/__init__.py | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --no-compile --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install -q --no-compile --group dev -e .
	@touch $@ $(VENV)/.condgraph

$(VENV)/.condgraph-site: pyproject.toml | $(VENV)/.condgraph
	$(BIN)/python -m pip install -q --no-compile --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install -q --no-compile --group site
	@touch $@

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
