# `make demo` and `make test` set up what they need, in .venv; nothing else of the machine is changed.
PYTHON ?= python3
BIN := .venv/bin
# The tests start hundreds of processes; without bytecode, each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE
PEERS := pluggy blinker google_adk strands pydantic_ai uvicorn
# Only `make docs` needs it.
SITE := "mkdocs-material>=9.6,<10"
PACKAGE_strands := strands-agents
PACKAGE_pydantic_ai := pydantic-ai-slim
PACKAGE_google_adk := google-adk
# Type checkers, the newest versions' output, the models extra, and tests that no dependency concerns are left to `make test`:
# those read this repository, start processes, or call git and the file system. Of the commands, `run` and `rpc` are tried.
OLDEST_TESTS := tests --ignore=tests/test_architecture.py --ignore=tests/test_behaviours.py \
	--ignore=tests/test_benchmarks.py --ignore=tests/test_docs.py --ignore=tests/test_exports.py \
	--ignore=tests/test_security_page.py --ignore=tests/test_typing.py --ignore=tests/chaos --ignore=tests/checks \
	--ignore=tests/checkpoints --ignore=tests/clients --ignore=tests/examples --ignore=tests/hostile \
	--ignore=tests/installs --ignore=tests/remembering --ignore=tests/storage --ignore=tests/trust \
	--ignore=tests/guards/test_self_protection.py --ignore=tests/guards/test_effects.py \
	--ignore=tests/guards/test_program_table.py --ignore=tests/pipeline/test_patches.py \
	--ignore=tests/pipeline/test_unpacking.py --ignore-glob='tests/bridges/test_[!b]*.py' \
	--ignore-glob='tests/cli/test_[ab]*.py' --ignore-glob='tests/cli/test_cli_[!r]*.py' \
	--ignore-glob='tests/cli/test_cli_re*.py' --ignore-glob='tests/host/test_models_*.py' \
	--ignore-glob='tests/server/test_[!s]*.py'

.PHONY: demo test test-all test-page types-page pictures test-clients clients matrix check reference mutants bench bench-peers soak soak-events chaos explore fuzz crash oldest wheel docs man recording clean

demo: .venv/ready  ## a hook file stops a real tool call; needs no key
	@$(BIN)/python examples/demo.py

test: .venv/dev  ## the test suite without the group `slow`; a part: ARGS=tests/host
	$(BIN)/python -m pytest -q -n auto $(ARGS)

test-all: .venv/dev  ## the whole test suite, as CI runs it, without the groups `client` and `browser`
	$(BIN)/python -m pytest -q -n auto -m 'not client and not browser' $(ARGS)

test-clients: .venv/dev clients  ## our hooks in the real agents: all cells of the matrix in the fast ones, six in each other
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m 'client and not slow' tests/clients $(ARGS)

matrix: .venv/dev clients  ## every promise in every real agent, 40 minutes: writes docs/agents.md; two agents: ARGS="--only codex pi"; LATEST=1 prints the cells that newer versions change
	@$(if $(LATEST),cd tests && ../$(BIN)/python -m clients.installing --latest)
	@PYTHONPATH=tests $(BIN)/python -m clients.matrix $(if $(LATEST),--latest) $(ARGS)

clients: .venv/dev  ## the agents that run our hooks, from npm, as the lock files in tests/clients/locks say
	@cd tests && ../$(BIN)/python -m clients.installing $(if $(filter clients,$(MAKECMDGOALS)),$(ARGS))

test-page: .venv/dev .bench/page/ready  ## the page of `look` in Debian's chromium: a group of its own
	$(BIN)/python -m pytest -q -m browser tests/look $(ARGS)

pictures: .venv/dev  ## the screenshots of docs/look.md and of the README, by chromium
	@cd tests && ../$(BIN)/python -m look.pictures

types-page: .bench/page/ready  ## the JSDoc types of the page's modules, by TypeScript's checker
	@node .bench/page/node_modules/typescript/bin/tsc -p checks/page/tsconfig.json

check: .venv/dev  ## everything CI checks but the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python checks/prose.py

reference: .venv/dev  ## docs/reference.md from the docstrings, and the tables of docs/coming-from.md
	@$(BIN)/python -m checks.reference $(ARGS)

mutants: .venv/dev  ## whether the tests of the core notice each statement that is deleted; ARGS='--changed HEAD~3' for less
	@$(BIN)/python -m checks.mutants $(ARGS)

explore: .venv/dev  ## property tests, with 3,000 examples each, other ones each time
	$(BIN)/python -m pytest -q -n auto -m 'hypothesis and not client' --hypothesis-profile=explore

fuzz: .venv/dev  ## changed settings, payloads, commands, files …, 30 s each; ARGS='commands --seconds 600' for more
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check atheris 2>/dev/null || echo "atheris cannot be installed here"
	@$(BIN)/python -m checks.fuzz $(ARGS)

crash: .venv/dev  ## kills at each write of sessions, checkpoints, trust …, with strace; ARGS=--resume goes on after an interruption
	@$(BIN)/python -m checks.crash $(ARGS)

bench: .venv/dev  ## the cost of agent_hooks beside the installed peers; a whole run writes docs/performance.md
	@$(BIN)/python -m benchmarks --write docs/performance.md $(ARGS)

soak: .venv/dev  ## 100,000 calls with faults, 5,000 sessions of a server: memory and more stay flat; a tenth: ARGS='--part 10'
	@$(BIN)/python -m benchmarks.soaks $(ARGS)

soak-events: .venv/dev  ## 20 s of events, to see that memory does not grow; a whole day: make soak-events ARGS='--seconds 0'
	@$(BIN)/python -m benchmarks.soak $(ARGS)

chaos: .venv/dev  ## hooks that break in every way: no forbidden call runs, no result is lost; go on: make chaos ARGS=--resume
	@PYTHONPATH=tests $(BIN)/python -m chaos $(ARGS)

wheel: man  ## the wheel that people install, in dist/; then PIP_FIND_LINKS=$PWD/dist pip install agent-hooks-runtime
	@echo "building the wheel; this takes up to a minute"
	@rm -rf dist && $(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist . && ls dist

docs: .bench/docs/ready  ## README and docs/ as a site, in .bench/site; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 .bench/docs/bin/mkdocs build --strict --site-dir .bench/site
	@$(PYTHON) checks/site_requests.py .bench/site

man: .venv/ready  ## share/man/man1/agent-hooks.1, from the help texts; the wheel has it
	@mkdir -p share/man/man1 && $(BIN)/agent-hooks man > share/man/man1/agent-hooks.1

recording: .venv/dev  ## docs/assets/demo.svg, from a run in tmux
	@$(BIN)/python checks/recording.py

bench-peers: $(PEERS:%=.bench/%/ready) .bench/pi/ready .bench/claude-code-log/ready .bench/claude-replay/ready  ## other hook systems, each in an environment of its own; a line for each that cannot be installed

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

.bench/docs/ready:
	@rm -rf .bench/docs && $(PYTHON) -m venv .bench/docs \
		&& .bench/docs/bin/python -m pip install --quiet --disable-pip-version-check $(SITE) && touch $@

.bench/pi/ready:
	@mkdir -p .bench/pi && echo '{"private": true}' > .bench/pi/package.json && cd .bench/pi \
		&& npm install --silent --no-audit --no-fund --ignore-scripts @mariozechner/pi-coding-agent@0.27.9 \
		&& touch ready && echo "pi: installed" \
		|| { echo "pi: cannot be installed; it needs Node 20 and npm"; rm -rf $(CURDIR)/.bench/pi; }

.bench/page/ready: checks/page/package.json
	@mkdir -p .bench/page && cp checks/page/package.json checks/page/package-lock.json .bench/page/ \
		&& cd .bench/page && npm ci --silent --no-audit --no-fund --ignore-scripts && touch ready

.bench/claude-replay/ready:
	@mkdir -p .bench/claude-replay && npm install --silent --no-audit --no-fund --ignore-scripts --prefix .bench/claude-replay \
		claude-replay@0.9.0 && touch $@ && echo "claude-replay: installed" \
		|| { echo "claude-replay: cannot be installed; it needs Node and npm"; rm -rf .bench/claude-replay; }

.bench/oldest/ready: pyproject.toml constraints-oldest.txt
	rm -rf .bench/oldest
	$(PYTHON) -m venv .bench/oldest
	.bench/oldest/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints-oldest.txt --editable '.[http,otel,trio]' httpx2 pytest pytest-anyio pytest-xdist hypothesis jsonschema uv
	@touch $@
