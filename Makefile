# Berth: `make up` runs everything on this machine, `make test` runs the whole suite.
# Variables of `make up`: PORT (8000), BERTH_DATA (var), DATABASE_URL, REDIS_URL.

PYTHON ?= python3
BIN := .venv/bin
RUN := $(BIN)/python
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: up test test-fast check bench setup setup-dev assets lock clean

up: setup
	@exec $(RUN) -m webapp.up

test: setup-dev
	@$(RUN) -m tests.run

test-fast: setup-dev
	@$(RUN) -m tests.run --fast

check: setup-dev
	@bin/check

bench: setup-dev
	@$(RUN) -m bench

setup: .venv/ready assets
	@$(RUN) -m webapp.embedded

setup-dev: .venv/ready-dev assets
	@$(RUN) -m webapp.embedded

assets: node_modules/.ready

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Berth needs Python 3.11 or newer; name one: make up PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv .venv \
	  || { echo "Python's venv module is missing (Debian: apt install python3-venv)" >&2; exit 1; }

.venv/ready: .venv/bin/python requirements.txt
	@echo "Installing what Berth needs into .venv …"
	@$(BIN)/pip install -qq -r requirements.txt
	@touch $@

.venv/ready-dev: .venv/ready requirements-dev.txt
	@echo "Installing what the tests need into .venv …"
	@$(BIN)/pip install -qq -r requirements-dev.txt
	@touch $@

# npm is used when it is there; else Node comes from a wheel, into the same .venv.
node_modules/.ready: package.json package-lock.json | .venv/ready
	@echo "Installing browser assets into node_modules …"
	@command -v npm >/dev/null || $(BIN)/pip install -qq -r requirements-node.txt
	@PATH="$$PATH:$(CURDIR)/$(BIN)" npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

lock:
	@for name in requirements requirements-host requirements-dev requirements-embedded requirements-node; do \
	  uv pip compile --quiet --python-version 3.11 --universal --no-header --annotation-style line $$name.in -o $$name.txt; done

clean:
	rm -rf .venv node_modules var
