# Everything starts from a plain Python 3.11+; the first command that needs .venv makes it.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: help demo test slurm figures lint bench docs console lock clean
.DEFAULT_GOAL := help

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Rota needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	@echo "Setting up .venv (once; a minute or two)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY) ## the main job on a bundled example: what to run, how long people wait, and a page to look at
	@$(BIN)/rota plan examples/paper.toml --output demo/ --force
	@printf '\nThe page: file://%s/demo/plan.html\nThe policy: demo/plan.json\n' '$(CURDIR)'

test: $(READY) ## the whole test suite
	$(BIN)/python -m pytest -n auto

slurm: ## install Slurm from Debian's packages, as root: its tests run a cluster on loopback, and are skipped without it
	@if command -v slurmctld >/dev/null && command -v munged >/dev/null; then echo "Slurm is installed"; else \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge; fi

figures: $(READY) ## the paper's figures redrawn, in fast mode (some minutes), in build/figures
	$(BIN)/rota reproduce all --fast --force --output build/figures

lint: $(READY) ## ruff, mypy --strict, and the layers of the architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.venv/bench: $(READY)
	@echo "Installing the peers to compare with (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,bench]'
	@touch $@

bench: .venv/bench ## benchmarks against named peers, in one run
	$(BIN)/python -m benchmarks

docs: $(READY) ## the documentation as HTML, in docs/_build
	$(BIN)/sphinx-build --quiet --fail-on-warning --builder html docs docs/_build

console: $(READY) ## put what the commands print now into the pages that show them
	ROTA_RENEW_CONSOLE=1 $(BIN)/python -m pytest tests/docs/test_console.py tests/docs/test_notebook.py

lock: $(READY) ## pin the newest versions that fit pyproject.toml
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --all-extras --upgrade --no-annotate --quiet \
	  --custom-compile-command 'make lock' pyproject.toml --output-file constraints.txt

clean: ## remove .venv and everything that was made
	rm -rf .venv demo docs/_build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
