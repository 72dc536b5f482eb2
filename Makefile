# Everything runs in a virtual environment of its own, .venv, made when it is first needed. Only Python 3.11 or
# newer is needed beforehand: `make PYTHON=/path/to/python3 ...` chooses one.

VENV := .venv
BIN := $(VENV)/bin
OUT := reports/quick

# The first Python on the path that is new enough.
PYTHON := $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11 python,\
  $(shell $(name) -c 'import sys; sys.version_info >= (3, 11) and print("$(name)")' 2>/dev/null)))

# Modules are compiled once, whatever the environment says: a hundred processes import them, here and in `report`.
SUITE := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal

# What breaks first where Python or a library is another: each package through its front door.
SMOKE := $(addprefix tests/,graphs/test_ops.py dynamic/test_engine.py dynamic/test_native.py static/test_executable.py \
  static/test_jit.py engines compare/test_cli.py compare/test_cli_own.py compare/test_report.py docs/test_docs.py)

.DEFAULT_GOAL := help
.PHONY: help report test test-smoke test-situations test-native test-browser test-slow lint format bench docs notebooks clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 10

report: $(VENV)/installed  ## run the quick comparison anew and write its report
	PYTHONDONTWRITEBYTECODE= $(BIN)/graphduel run --quick --out $(OUT) --overwrite

test: $(VENV)/installed-test  ## run the tests that take a moment, some of every kind
	$(SUITE) -m 'not slow and not browser'

test-smoke: $(VENV)/installed-test  ## run a part of them, some for each package
	$(SUITE) -m 'not slow and not browser' $(SMOKE)

test-native: $(VENV)/installed-native  ## run the tests of native code, which needs LLVM
	$(SUITE) tests/static/native tests/compare/test_ladder.py $$(grep -rl helpers.backends tests --include=test_*.py)

test-browser: $(VENV)/installed-browser  ## drive a Chromium over the pages that people open
	$(BIN)/python -m pytest -m browser tests/browser

test-situations: .venv-situations/installed  ## run what people bring in PyTorch, JAX and TensorFlow, installed beside it
	PYTHONDONTWRITEBYTECODE= .venv-situations/bin/python -m pytest -n auto --dist worksteal -m peers tests/situations

test-slow: $(VENV)/installed-slow  ## run the others, those of ONNX, properties with more examples, and the tape's with the tape in Python
	HYPOTHESIS_PROFILE=thorough $(SUITE) -m '(slow or hypothesis) and not browser'
	$(SUITE) -m 'not slow' tests/onnx
	GRAPHDUEL_TAPE=python $(SUITE) -m 'not slow' tests/dynamic tests/engines tests/graphs/test_operands.py

lint: $(VENV)/installed-dev  ## check format, lint and types
	$(BIN)/python -m graphs.testing.stubs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/installed-dev  ## format the code and fix what lint can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/installed-test  ## run the benchmarks
	mkdir -p .benchmarks
	$(BIN)/python -m pytest benchmarks --benchmark-json .benchmarks/latest.json

docs: $(VENV)/installed-docs  ## build the site in build/site, and check its links
	$(BIN)/python -m docs.website.stage
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python -m docs.website.check

notebooks: $(VENV)/installed-slow  ## run the notebooks of examples/ and write their outputs into them
	$(BIN)/python -m docs.website.notebooks

clean:  ## remove the environment, caches and the quick report
	rm -rf .venv .venv-oldest .venv-newest .venv-situations .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	rm -rf build dist reports/quick
	find . -name __pycache__ -prune -exec rm -rf {} +

# Editable, so that an edit needs no new install; a changed pyproject.toml, setup.py or
# C file does, and the stamps see to it.
$(VENV)/installed: EXTRAS :=
$(VENV)/installed-test: EXTRAS := [test]
$(VENV)/installed-dev: EXTRAS := [dev]
$(VENV)/installed-native: EXTRAS := [test,native,onnx]
$(VENV)/installed-docs: EXTRAS := [docs]
$(VENV)/installed-slow: EXTRAS := [test,notebook,onnx-tests]
$(VENV)/installed-browser: EXTRAS := [test,browser]
$(VENV)/installed $(VENV)/installed-test $(VENV)/installed-dev $(VENV)/installed-native $(VENV)/installed-docs $(VENV)/installed-slow $(VENV)/installed-browser: pyproject.toml setup.py $(wildcard dynamic/loops/*) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary --editable '.$(EXTRAS)'
	@$(BIN)/python -c 'from dynamic import tapes; tapes.remedy() and print(tapes.remedy())'
	@touch $@

# TensorFlow in its build for the CPU, where there is one: 262 MB.
TENSORFLOW := 'tensorflow-cpu; platform_machine == "x86_64"' 'tensorflow; platform_machine != "x86_64"'

# Of PyTorch the version that the rows were written for, in its build for the CPU where the index has one.
.venv-situations/installed: pyproject.toml setup.py $(wildcard dynamic/loops/*)
	$(PYTHON) -m venv .venv-situations
	.venv-situations/bin/pip install --quiet --disable-pip-version-check --prefer-binary --editable '.[test]' \
	  torch==2.13.0 jax optax flax equinox keras $(TENSORFLOW) || { echo "test-situations did not run: pip cannot install \
	PyTorch 2.13.0, JAX and TensorFlow here; name an index that has them in PIP_EXTRA_INDEX_URL, and a folder with room in \
	TMPDIR" >&2; exit 1; }
	@touch $@

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "graphduel needs Python 3.11 or newer; install it, or say make PYTHON=..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
