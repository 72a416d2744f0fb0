# Daily work with bayessel. `make help` lists the targets; whichever runs first creates .venv and installs the project.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
READY := $(VENV)/.ready
# Dependencies installed; names of all source files.
INSTALLED := $(VENV)/.installed
SOURCES := $(VENV)/.sources
# What the interpreter and the type checkers see: models/ and diagnostics/ under the names they are imported by.
LINKS := build/__editable__.*

# Pytest workers (0: none) and further arguments: make test ARGS="tests/basis -k bias"
WORKERS ?= 2
ARGS ?=

# Compiled PyMC models are cached here between runs; a flag of yours that says otherwise wins.
comma := ,
export PYTENSOR_FLAGS := base_compiledir=$(CURDIR)/.cache/pytensor$(if $(PYTENSOR_FLAGS),$(comma)$(PYTENSOR_FLAGS))

# Collecting thousands of tests takes twice as long where their compiled files are not kept.
unexport PYTHONDONTWRITEBYTECODE

# Small problems on few cores: BLAS threads cost more than they give and make timings noisy.
docs test test-slow: export OPENBLAS_NUM_THREADS := 1
docs test test-slow: export OMP_NUM_THREADS := 1
docs test test-slow: export MKL_NUM_THREADS := 1

# Real data with published results, not part of the project: beside the checkout, unless BENCHMARK_DATA names a folder.
ifneq ($(wildcard ../shared/data),)
test-slow bench: export BENCHMARK_DATA ?= $(abspath ../shared/data)
endif

# The site goes into one folder. DOCS_EXECUTE=off builds pages without running their code.
SITE := build/site
export DOCS_JOBS ?= 1

.PHONY: help demo docs test test-slow lint format types bench measures ci lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## compare kernel widths on real data and write a report
	@$(BIN)/python examples/demo.py

docs: $(READY) $(VENV)/.docs ## build the site into build/site; pages that have not changed are not run again
	$(BIN)/python -m sphinx -b html -W --keep-going -q -j $(DOCS_JOBS) -d .cache/docs/doctrees $(ARGS) docs $(SITE)
	@echo "$(SITE)/index.html"

test: $(READY) ## the fast tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-slow: $(READY) ## the slow tests: many seeds, large problems, timings
	$(BIN)/python -m pytest -m slow $(ARGS)

lint: $(READY) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY) ## let ruff fix and format what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY) ## mypy, on the packages as they are imported
	@cd $(LINKS) && $(BIN)/mypy --config-file $(CURDIR)/pyproject.toml --cache-dir $(CURDIR)/.cache/mypy -p bayessel

bench: $(READY) ## time the engines beside their peers
	$(BIN)/python -m benchmarks $(ARGS)

measures: $(READY) ## size of the sources, names used twice, private imports: make measures ARGS="--rev main"
	@$(BIN)/python -m benchmarks.measures $(ARGS)

ci: ## what the continuous integration runs: lint, types, tests, site
	@bash .ci/run

lock: ## renew constraints.txt: the newest versions that fit, from a scratch environment
	@rm -rf .cache/lock && $(BIN)/python -m venv .cache/lock
	@.cache/lock/bin/python -m pip install --quiet --editable '.[dev,cluster,bench,docs]'
	@{ sed '/^[^#]/,$$d' constraints.txt; .cache/lock/bin/python -m pip freeze --all --exclude-editable --exclude pip; } > .cache/constraints.txt
	@mv .cache/constraints.txt constraints.txt && rm -rf .cache/lock

clean: ## remove caches and everything built or reported (.venv stays, and the links it imports)
	rm -rf .cache .pytest_cache dist report examples/output docs/api docs/gallery
	find . -path './build/*' -prune -not -path './$(LINKS)' -exec rm -rf {} +
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# uv when it is there, else the standard library's venv and pip; either way the versions of constraints.txt.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 12))
$(INSTALLED): pyproject.toml constraints.txt
	@command -v uv > /dev/null && uv=yes || uv=no; \
	if [ ! -x $(BIN)/python ]; then \
		python=; \
		for name in "python$$(cat .python-version)" python3 python3.13 python3.12; do \
			if "$$name" -c '$(NEW_ENOUGH)' 2> /dev/null; then python=$$name; break; fi; \
		done; \
		if [ -n "$$python" ]; then \
			echo "creating $(VENV) with $$("$$python" --version)"; \
			if [ $$uv = yes ]; then uv venv --quiet --python "$$("$$python" -c 'import sys; print(sys.executable)')" $(VENV); \
			else "$$python" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }; fi; \
		elif [ $$uv = yes ]; then uv venv --python "$$(cat .python-version)" $(VENV); \
		else \
			echo "bayessel needs Python 3.12 or newer; python3 here is $$(python3 --version 2> /dev/null || echo missing)." >&2; \
			echo "Install Python $$(cat .python-version), or uv, which brings one; then run make again." >&2; \
			exit 1; \
		fi; \
	elif ! $(BIN)/python -c '$(NEW_ENOUGH)'; then \
		echo "bayessel needs Python 3.12 or newer; $(VENV) has $$($(BIN)/python --version). Remove $(VENV) and run make again." >&2; \
		exit 1; \
	fi; \
	if [ $$uv = yes ]; then \
		uv pip install --quiet --python $(BIN)/python --constraints constraints.txt --editable '.[dev]'; \
	else \
		$(BIN)/python -m pip --version > /dev/null 2>&1 || $(BIN)/python -m ensurepip > /dev/null; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'; \
	fi
	@touch $@

# Rewritten only when a source file came or went, or the links are gone, so that they are renewed only then.
$(SOURCES): $(INSTALLED) FORCE
	@find bayessel models diagnostics -name '*.py' -o -name py.typed | LC_ALL=C sort > $@.now
	@if ls -d $(LINKS) > /dev/null 2>&1 && cmp -s $@.now $@; then rm $@.now; else mv $@.now $@; fi

$(READY): $(SOURCES)
	@if command -v uv > /dev/null; then \
		uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --reinstall-package bayessel --editable .; \
	else \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .; \
	fi
	@touch $@

# What the site needs beside the rest, when it is asked for.
$(VENV)/.docs: $(INSTALLED)
	@if command -v uv > /dev/null; then \
		uv pip install --quiet --python $(BIN)/python --constraints constraints.txt --editable '.[docs]'; \
	else \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'; \
	fi
	@touch $@ && touch $(READY)

FORCE:
