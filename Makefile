# Everything runs in a private environment that the targets make by themselves. All they need is Python 3.11 or newer
# with pip; uv and the packages come from the package index that pip is set up for.
#
#   make test PYTHON=python3.13       another interpreter, in an environment of its own
#   make test ARGS="-k unique -x"     more arguments for the program that a target runs
#
# The tests start a Postgres and a Valkey of their own. What else they can run on, each with `make test` or `test-all`:
#
#   make test WINDLASS_TEST_POSTGRES=postgres://...     one that runs; each test has a schema of its own in that database
#   make test WINDLASS_TEST_POSTGRES_BIN=/usr/lib/postgresql/15/bin     one that they start from these programs
#   make test-all WINDLASS_TEST_PGBOUNCER=1 ARGS="-k pgbouncer"     theirs, through PgBouncer in transaction mode
#   make test WINDLASS_TEST_REDIS=redis://...     one that runs; each test has a prefix of its own
#   make test WINDLASS_TEST_REDIS_BIN=/usr/bin/redis-server     one that they start from this program
#   make test-all WINDLASS_TEST_SLATEDB=1     SlateDB in memory, in files and in a bucket, opened and served
#   make test-all WINDLASS_TEST_CLUSTER=1 ARGS="-k 'cluster or spread'"     a Cluster of three that they start
#   make test-all WINDLASS_TEST_CHROMIUM=/path/to/chromium ARGS=tests/browser     where the browser is, for the tests of pages

PYTHON ?= python3
ARGS ?=
# Tests wait a lot, for leases and servers: half as many again as there are cores keep them busy.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(8, 3 * (os.cpu_count() or 1) // 2))')

# One environment per interpreter: .venv for the usual one, .venv-python3.13 for PYTHON=python3.13.
ifeq ($(PYTHON),python3)
VENV ?= .venv
else
VENV ?= .venv-$(notdir $(PYTHON))
endif

# What `make test` leaves out; pyproject.toml says what each of these markers means.
QUICK := not (on_request or variant or exhaustive or fault or program or slow)

RUN := $(VENV)/bin/python
UV := .tools/bin/uv
CHECKED := $(wildcard src tests benchmarks examples proofs docs/examples.py docs/screenshots.py docs/staged_shop.py)

# Neither an active environment nor a user's own packages may reach in; uv never fetches an interpreter.
# Bytecode is kept whatever the user prefers: tests start many processes, and each would compile all that it loads.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE
export UV_PYTHON_DOWNLOADS := never

# pip only ever writes into .tools: its advice about other places does not apply.
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_REQUIRE_VIRTUALENV := 0
export PIP_ROOT_USER_ACTION := ignore

.DEFAULT_GOAL := help
.PHONY: help statement demo screenshots test test-all test-lowest check format lint imports types mypy pyright examples bench proof build clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.ready ## watch a shop's jobs survive processes that are killed
	$(RUN) -m windlass demo $(if $(BREAK),--without $(BREAK)) $(ARGS)

screenshots: $(VENV)/.ready ## take the pictures of the dashboard that the docs show; needs Chromium
	$(RUN) -m docs.screenshots

test: $(VENV)/.ready ## run the tests that take four minutes: every behaviour on every store
	$(RUN) -W error -m pytest -n $(WORKERS) -m "$(QUICK)" $(ARGS)

test-all: $(VENV)/.ready ## run all tests but those marked `on_request`
	$(RUN) -W error -m pytest -n $(WORKERS) -m "not on_request" $(ARGS)

test-lowest: ## run the tests with the oldest versions that pyproject.toml allows
	UV_RESOLUTION=lowest-direct $(MAKE) test VENV=$(VENV)-lowest

check: lint imports types examples ## run every check but the tests

format: $(VENV)/.ready-check ## format the code and mend what can be mended by itself
	$(RUN) -m ruff check --fix-only --quiet
	$(RUN) -m ruff format

lint: $(VENV)/.ready-check ## check formatting and style
	$(RUN) -m ruff format --check
	$(RUN) -m ruff check

imports: $(VENV)/.ready-check ## check which way the imports point
	$(VENV)/bin/lint-imports --no-cache --no-logo

types: mypy pyright ## check the types, strictly, with mypy and pyright

mypy: $(VENV)/.ready-check
	$(RUN) -m mypy $(CHECKED)

pyright: $(VENV)/.ready-check
	$(RUN) -m pyright --pythonpath $(RUN) $(CHECKED)

examples: $(VENV)/.ready-check ## run every example of the README, the docs and the docstrings
	$(RUN) -m pytest --quiet -p docs.examples README.md docs src

bench: $(VENV)/.ready-bench ## measure Windlass beside its peers, or one thing alone: make bench PART=...
	$(RUN) -m benchmarks$(if $(PART),.studies.$(subst -,_,$(PART))) $(ARGS)

proof: $(VENV)/.ready ## run one long campaign against a promise: make proof PART=...
	$(RUN) -m proofs $(PART) $(ARGS)

statement: $(VENV)/.ready ## print a SQL statement in full: make statement STORE=sqlite NAME=claim
	@$(RUN) -c "from windlass.stores.$(STORE).statements import sql; print(sql('$(NAME)'))"

build: $(UV) ## build the wheels and the source archive into dist/
	$(UV) build --quiet --out-dir dist
	$(UV) build --quiet --out-dir dist --wheel packaging/windlass-conformance

clean: ## delete all that these targets made
	rm -rf .venv .venv-* .tools dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --target needs neither root nor the venv module, and works where the system keeps its Python to itself.
$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Windlass needs Python 3.11 or newer, this is " + sys.version.split()[0] + ". Name another one: make PYTHON=/path/to/python3.12")'
	$(PYTHON) -m pip install --quiet --no-user --upgrade --target .tools uv

$(VENV)/.ready: pyproject.toml | $(UV)
	python=$$($(PYTHON) -c 'import sys; print(sys.executable)') && $(UV) venv --quiet --clear --python "$$python" $(VENV)
	$(UV) pip install --quiet --python $(VENV) --editable . --group test
	@touch $@

$(VENV)/.ready-bench: $(VENV)/.ready
	$(UV) pip install --quiet --python $(VENV) --group bench --group bench-postgres --group bench-redis
	for peer in arq saq; do \
		$(UV) venv --quiet --allow-existing --python $(RUN) $(VENV)/peers/$$peer \
			&& $(UV) pip install --quiet --python $(VENV)/peers/$$peer --group bench-$$peer || exit 1; \
	done
	@$(UV) pip install --quiet --python $(VENV) --only-binary honker --group bench-native 2>/dev/null \
		|| echo "honker has no wheel for this system: measured without it"
	@$(UV) pip install --quiet --python $(VENV) --group bench-oban 2>/dev/null \
		|| echo "oban cannot be installed here: measured without it"
	@touch $@

$(VENV)/.ready-check: $(VENV)/.ready
	$(UV) pip install --quiet --python $(VENV) --group check
	@touch $@
