# Everything runs in .venv, made here; only Python >= 3.11 and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check install --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help refresh test check format bench chaos clean

help: ## Show these lines
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' Makefile

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit("fitmart needs Python 3.11 or newer; set PYTHON=python3.12, say" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.made pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once, about a minute)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@$(PIP) --editable '.[dev]'
	@touch $@

refresh: $(VENV)/.run ## Harvest, build and publish data/fitmart.duckdb
	@$(BIN)/fitmart refresh

test: $(VENV)/.dev ## Run the tests
	@$(BIN)/pytest --ignore tests/chaos

check: $(VENV)/.dev ## Lint, format check, types, SQL lint
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@mkdir -p .mypy_cache/path && ln -sfn ../.. .mypy_cache/path/fitmart
	@MYPYPATH=.mypy_cache/path $(BIN)/mypy
	@$(BIN)/sqlfluff lint --nocolor --disable-progress-bar --processes 2 sql

format: $(VENV)/.dev ## Format the code
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

bench: $(VENV)/.dev ## Measure: ratios in one run
	@$(BIN)/python -m pytest tests/bench --override-ini 'python_files=bench_*.py' -s

chaos: $(VENV)/.dev ## Kill harvests and builds at many instants
	@$(BIN)/pytest tests/chaos

clean: ## Remove the environment and caches (not data/)
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info
