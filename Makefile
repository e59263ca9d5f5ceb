# One command for each task. The first run makes .venv and installs into it; later runs reinstall only after a
# change of pyproject.toml or pins.txt.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PACKAGES := constraints solver tracer typecheck

.PHONY: help demo test test-all lint docs oracle coverage dtypes fuzz bench bench-check bench-baseline zoo host-diff compat clean

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

# The U-Net runs for multiples of 64 only, so the right verdict is `refined`, exit code 1. Python exits with 1
# after an uncaught exception too, so the demo also looks for a traceback.
demo: .venv/installed ## check a real model (examples/unet.py)
	@mkdir -p build
	@$(BIN)/anyshape check examples/unet.py:UNet --input "x: float32[batch, 3, h, w]" 2>build/demo-errors; \
	code=$$?; \
	cat build/demo-errors >&2; \
	if grep -q '^Traceback' build/demo-errors; then echo "demo: the check crashed" >&2; exit 1; fi; \
	if [ $$code -ne 1 ]; then echo "demo: expected 'refined', exit code 1, and got $$code" >&2; exit 1; fi

test: .venv/installed-dev ## the fast tests
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow"

test-all: .venv/installed-dev ## all tests, the slow ones included
	HYPOTHESIS_PROFILE=exploring $(BIN)/python -m pytest -q -n auto --dist worksteal

lint: .venv/installed-dev build/typing build/namespace ## ruff, mypy, import-linter
	$(BIN)/ruff check
	$(BIN)/mypy -p anyshape
	PYTHONPATH=build/namespace $(BIN)/lint-imports

# A warning fails: a link to a page or to a section that is not there, a docstring that cannot be read.
docs: .venv/installed-docs ## build the documentation as a site in build/site/
	$(BIN)/python docs/site/pages.py build/site-pages
	$(BIN)/sphinx-build -q -W --keep-going -c docs/site -d build/site-cache build/site-pages build/site

# `ORACLE="--op add --jobs 1"` passes options on.
oracle: .venv/installed-dev ## compare the rules with torch's own samples
	$(BIN)/python tests/oracle/run.py $(ORACLE)
	$(BIN)/python tests/oracle/run.py --layouts $(ORACLE)

coverage: .venv/installed-dev ## compare all rules with torch's samples, and write docs/coverage.md
	$(BIN)/python tests/oracle/run.py --write

# `DTYPES="--op add"` passes options on. tests/oracle/dtypes.py says how the table is made of the releases of torch.
dtypes: .venv/installed-dev ## list the operators and dtypes for which the rules differ from torch
	$(BIN)/python tests/oracle/dtypes.py compare $(DTYPES)

# `FUZZ="--programs 20000 --seed 7 --jobs 2 --only contents,casts"` passes options on.
fuzz: .venv/installed-dev ## check random programs, and compare the verdicts with eager runs; results in build/fuzz/
	$(BIN)/python -m benchmarks.fuzz $(FUZZ)

# `BENCH="models --models bert --export"` passes options on.
bench: .venv/installed-dev ## run the benchmarks; results in build/bench/ and benchmarks/results.md
	$(BIN)/python -m benchmarks.bench $(BENCH)

bench-check: .venv/installed-dev ## check that the costs of a check are within their limits
	$(BIN)/python -m benchmarks.gate

bench-baseline: .venv/installed-dev ## set these limits to the present costs
	$(BIN)/python -m benchmarks.gate --update

# `ZOO="--only timm -j 1"` passes options on.
zoo: .venv-zoo/installed ## check models of public packages against eager PyTorch (an environment of its own)
	.venv-zoo/bin/python benchmarks/zoo.py -j 2 --json build/zoo.json $(ZOO)

# `TORCH=2.14` names the release, the installed one if left out; `READ=1` notes that the replaced functions were read in it.
host-diff: .venv/installed-dev ## show what another release of torch changes for tracer/host/
	$(BIN)/python tests/host_releases.py $(if $(TORCH),--torch $(TORCH)) $(if $(READ),--read)

# `COMPAT=--again` runs only the tests that failed last; `COMPAT="tests/tracer -x"` passes arguments on to pytest, and
# then nothing is written.
compat: ## run the fast tests on other releases: make compat TORCH=2.14 PYTHON=3.13
	@test -n "$(TORCH)" || { echo "make compat TORCH=2.14 PYTHON=3.13" >&2; exit 2; }
	python3 tests/compat.py --torch $(TORCH) --python $(if $(filter file,$(origin PYTHON)),3.11,$(PYTHON)) $(COMPAT)

clean: ## remove the environment and everything generated
	rm -rf .venv .venv-zoo build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find $(PACKAGES) tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment. Each stamp says what .venv holds: the package, or the package and all that its tests need.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info < (3, 11) and sys.exit("Python 3.11 is needed: make PYTHON=...")'
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml pins.txt | $(BIN)/python
	$(PIP) install -q -c pins.txt -e ".[torch]"
	@touch $@

.venv/installed-dev: pyproject.toml pins.txt | $(BIN)/python
	$(PIP) install -q -c pins.txt -e ".[dev,torch,client,service,postgresql,telemetry,zoo,bench]"
	@touch $@ .venv/installed

.venv/installed-docs: pyproject.toml pins.txt | $(BIN)/python
	$(PIP) install -q -c pins.txt -e ".[docs,torch,client]"
	@touch $@ .venv/installed

# The zoo's own environment; docs/dependencies.md says why.
.venv-zoo/installed: pyproject.toml pins.txt
	@test -x .venv-zoo/bin/python || $(PYTHON) -m venv .venv-zoo
	.venv-zoo/bin/python -m pip --disable-pip-version-check install -q -c pins.txt -e ".[dev,torch,zoo,zoo-more]"
	@touch $@

# The trees that mypy and import-linter read; pyproject.toml says why.
build/typing build/namespace: Makefile $(wildcard typecheck/anyshape/*.py)
	@mkdir -p $@/anyshape
	@for package in $(PACKAGES); do ln -sfn ../../../$$package $@/anyshape/$$package; done
	@test $@ = build/namespace || ln -sf $(addprefix ../../../,$(wildcard typecheck/anyshape/*.py)) $@/anyshape
	@touch $@
