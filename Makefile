# `make demo` and `make test` set up what they need, in .venv. Nothing else of the machine is changed.
PYTHON ?= python3
BIN := .venv/bin
# The tests start hundreds of processes. Without bytecode, each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check docs bench nightly clean help

demo: .venv/ready  ## show a hook file that stops a real tool call, without an API key
	@$(BIN)/python examples/demo.py

test: .venv/dev  ## run the tests without the slow ones (a part: ARGS=tests/host)
	$(BIN)/python -m pytest -q -n auto --dist loadfile $(ARGS)

check: .venv/dev  ## check format, lint, types and prose
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m checks.prose

docs: .venv/dev  ## build README and docs/ as a site in .bench/site
	@$(BIN)/python -m checks.docs

bench: .venv/dev  ## measure speed and memory, and write docs/performance.md (a part: ARGS='--quick dispatch')
	@$(BIN)/python -m benchmarks --write $(ARGS)

nightly:  ## run the long checks of .ci/nightly (some steps: ARGS='chaos fuzz')
	@.ci/nightly $(ARGS)

clean:  ## remove all that the other targets have made
	rm -rf .venv .demo .bench

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile

.venv/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "agent_hooks needs Python 3.11 or newer; try: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/dev: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
