# `make demo` and `make test` set up what they need, in .venv; nothing else of the machine is changed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check clean

demo: .venv/ready  ## a hook file stops a real tool call; needs no key
	@$(BIN)/python examples/demo.py

test: .venv/dev  ## the whole test suite
	$(BIN)/python -m pytest -q

check: .venv/dev  ## everything CI checks but the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

clean:
	rm -rf .venv .demo

.venv/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "agent_hooks needs Python 3.11 or newer; try: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/dev: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
