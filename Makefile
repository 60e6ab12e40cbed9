# Linkproof: `make run` and `make test` do all of the set-up themselves.

PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
POSTGRES_TEST_URL ?= postgres://postgres@127.0.0.1:5432/postgres

.DEFAULT_GOAL := help
.PHONY: help run test check bench fuzz format

help:
	@echo "make run     sync the sample catalogs, print a shortlist, serve on 127.0.0.1:$(PORT)"
	@echo "make test    every check and test that this machine can run"
	@echo "make check   linters, types, import contracts"
	@echo "make fuzz    200,000 damaged pastes through the evidence readers; COUNT= for another number"
	@echo "make bench   benchmarks, each a ratio against a peer measured in the same run"

.venv/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "Linkproof needs Python 3.11 or newer, this is %d.%d; set PYTHON=" % v[:2])'
	$(PYTHON) -m venv .venv

# A stamp is newer than what it was installed from, so a second run installs nothing.
.venv/run.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --editable .
	@touch $@

.venv/test.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --editable '.[test]'
	@touch .venv/run.stamp $@

run: .venv/run.stamp
	@PORT=$(PORT) $(BIN)/python manage.py quickstart

check: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/djlint templates --lint --quiet
	$(BIN)/python manage.py makemigrations --check --dry-run

test: check
	@$(BIN)/python -m tests.everything

bench: .venv/test.stamp
	@$(BIN)/python -m tests.bench

fuzz: .venv/test.stamp
	@$(BIN)/python -m tests.fuzz $(or $(COUNT),200000)

format: .venv/test.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/djlint templates --reformat --quiet
