# make run   sets itself up and runs the main job on an embedded default
# make test  sets itself up and runs lint, types, tests, and every experiment at its smallest
# With an NVIDIA card: make run TORCH=torch   (takes the GPU build instead of the CPU one)
# Also what needs Ray or TensorBoard: make test EXTRAS=ray,tensorboard
PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV ?= .venv
BIN := $(VENV)/bin
COMMA := ,
EXTRAS ?=
WITH := gcn,env,peer,live,docs,dev$(if $(EXTRAS),$(COMMA)$(EXTRAS))
READY := $(VENV)/.ready-$(subst =,_,$(TORCH))$(if $(EXTRAS),-$(subst $(COMMA),-,$(EXTRAS)))

.PHONY: run test check lint types tests reproduce docs attack bench clean

run: $(READY)
	$(BIN)/d2dfl compare --set data.allocation=labels:1 --set data.samples=40

test: check

check: lint types tests reproduce

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(READY)
	$(BIN)/mypy

tests: $(READY)
	$(BIN)/python -m pytest -n 2

# Every experiment of the paper, as small as it gets: that all of them run, not what they find.
reproduce: $(READY)
	@rm -rf build/reproduce-tiny && mkdir -p build
	$(BIN)/d2dfl reproduce all --scale tiny --out build/reproduce-tiny > build/reproduce.log 2>&1 || { tail -40 build/reproduce.log; exit 1; }
	$(BIN)/d2dfl report build/reproduce-tiny --out build/report.html

# The documentation as a site that needs no network: build/site/index.html.
docs: $(READY)
	PYTHONPATH=dev $(BIN)/python -m docsite

# Tries to lose a user's files and results, for an hour: docs/reliability.md.
attack: $(READY)
	$(BIN)/python benchmarks/attack/run.py

bench: $(READY)
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/growth.py

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "d2dfl needs Python 3.11 or newer; call: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	grep -v '^torch==' constraints.txt > $(VENV)/constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(VENV)/constraints.txt '$(TORCH)' -e '.[$(WITH)]'
	@touch $@

clean:
	rm -rf $(VENV) build runs .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
