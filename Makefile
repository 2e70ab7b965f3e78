# `make demo` and `make test` set up what they need, in .venv; nothing else of the machine is changed.
PYTHON ?= python3
BIN := .venv/bin
CLAUDE_CODE := 2.1.329
PEERS := pluggy blinker google_adk strands pydantic_ai uvicorn
PACKAGE_strands := strands-agents
PACKAGE_pydantic_ai := pydantic-ai-slim
PACKAGE_google_adk := google-adk
# Type checkers, what shows the newest versions' output, and the models extra are left to `make test`; httpx2 is a client.
OLDEST_TESTS := tests --ignore=tests/test_typing.py --ignore=tests/test_docs.py --ignore=tests/test_benchmarks.py \
	--ignore-glob='tests/host/test_models_*.py' --ignore=tests/cli/test_cli_models.py \
	--ignore=tests/examples/test_examples_models.py --ignore=tests/checks

.PHONY: demo test test-clients clients check mutants bench bench-peers soak explore oldest clean

demo: .venv/ready  ## a hook file stops a real tool call; needs no key
	@$(BIN)/python examples/demo.py

test: .venv/dev  ## the whole test suite
	$(BIN)/python -m pytest -q -n auto

test-clients: .venv/dev clients  ## our hooks in the real agents, which are told what to do by a model on this machine
	$(BIN)/python -m pytest -q -n 2 -m client tests/clients

clients: .bench/clients/claude-code/ready  ## the agents that run our hooks, of a pinned version, from npm

check: .venv/dev  ## everything CI checks but the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python checks/prose.py

mutants: .venv/dev  ## whether the tests of the core notice each statement that is deleted; ARGS='--changed HEAD~3' for less
	@$(BIN)/python -m checks.mutants $(ARGS)

explore: .venv/dev  ## property tests, with 3,000 examples each, other ones each time
	$(BIN)/python -m pytest -q -n auto -m 'hypothesis and not client' --hypothesis-profile=explore

bench: .venv/dev  ## the cost of agent_hooks beside the installed peers; a whole run writes docs/performance.md
	@$(BIN)/python -m benchmarks --write docs/performance.md $(ARGS)

soak: .venv/dev  ## 20 s of events, to see that memory does not grow; a whole day: make soak ARGS='--seconds 0'
	@$(BIN)/python -m benchmarks.soak $(ARGS)

bench-peers: $(PEERS:%=.bench/%/ready) .bench/pi/ready  ## other hook systems, each in an environment of its own; a line for each that cannot be installed

oldest: .bench/oldest/ready  ## the tests, with the oldest versions that pyproject.toml promises
	.bench/oldest/bin/python -m pytest -q -n auto $(OLDEST_TESTS)

clean:
	rm -rf .venv .demo .bench

.venv/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "agent_hooks needs Python 3.11 or newer; try: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/dev: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

.bench/%/ready:
	@$(PYTHON) -m venv .bench/$* \
		&& .bench/$*/bin/python -m pip install --quiet --disable-pip-version-check $(or $(PACKAGE_$*),$*) \
		&& touch $@ && echo "$*: installed" || { echo "$*: cannot be installed"; rm -rf .bench/$*; }

.bench/pi/ready:
	@mkdir -p .bench/pi && echo '{"private": true}' > .bench/pi/package.json && cd .bench/pi \
		&& npm install --silent --no-audit --no-fund --ignore-scripts @mariozechner/pi-coding-agent@0.27.9 \
		&& touch ready && echo "pi: installed" \
		|| { echo "pi: cannot be installed; it needs Node 20 and npm"; rm -rf $(CURDIR)/.bench/pi; }

.bench/clients/claude-code/ready: Makefile
	rm -rf $(@D)
	mkdir -p $(@D) && echo '{"private": true}' > $(@D)/package.json
	cd $(@D) && npm install --silent --no-audit --no-fund @anthropic-ai/claude-code@$(CLAUDE_CODE)
	test "$$($(@D)/node_modules/.bin/claude --version)" = "$(CLAUDE_CODE) (Claude Code)"
	@touch $@

.bench/oldest/ready: pyproject.toml constraints-oldest.txt
	rm -rf .bench/oldest
	$(PYTHON) -m venv .bench/oldest
	.bench/oldest/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints-oldest.txt --editable '.[http,otel,trio]' httpx2 pytest pytest-anyio pytest-xdist hypothesis jsonschema
	@touch $@
