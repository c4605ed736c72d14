# make demo   an environment, the package, and a few questions over the sample data it ships
# make test   the test dependencies, then ruff, mypy, the import contracts and pytest
#
# PYTHON is the interpreter that the environment is made from, VENV the environment's folder.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= $(firstword $(foreach name,python3.13 python3.12 python3.11 python3,$(shell command -v $(name))))
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test check pytest format clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: $(VENV)/.condgraph
	@$(BIN)/condgraph demo

test: check pytest

check: $(VENV)/.condgraph-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

pytest: $(VENV)/.condgraph-dev
	$(BIN)/python -m pytest -q -n 2 $(PYTEST_ARGS)

format: $(VENV)/.condgraph-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# An environment that somebody else made is used as it is.
$(VENV)/bin/python:
	@if [ -z "$(PYTHON)" ]; then echo "make: no python3 found: install Python 3.11 or later" >&2; exit 1; fi
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: $(PYTHON) is $$("$(PYTHON)" -V 2>&1), and condgraph needs Python 3.11 or later; name another: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: $(PYTHON) cannot make environments (no ensurepip); on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	"$(PYTHON)" -m venv "$(VENV)"

$(VENV)/.condgraph: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -e .
	@touch $@

$(VENV)/.condgraph-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -e '.[dev]'
	@touch $@ $(VENV)/.condgraph

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
