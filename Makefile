# Softmax Geometry: the whole pipeline as a graph. `make` alone prints help.
#
# Data goes one way: raw -> processed -> results -> figures -> README. A notebook depends on its own
# file, its parameters, the modules that it imports, the reference data that it names, and the
# notebooks whose results it reads.

PROFILE  ?= default
DATA     ?= $(SOFTGEOM_DATA)
PARAMS   ?=
USE_CONDA ?=
PYTHON   ?= python3
MODEL    ?=
OUT      ?=
ARGS     ?=
NAME     ?=
ONLY     ?=
PAPER    ?=
SENTENCE ?=

# What a user gives reaches programs through the environment, as it was typed: no shell and no make reads it as code.
override PROFILE := $(value PROFILE)
override PARAMS := $(value PARAMS)
override MODEL := $(value MODEL)
override OUT := $(value OUT)
override ARGS := $(value ARGS)
override NAME := $(value NAME)
override ONLY := $(value ONLY)
override PAPER := $(value PAPER)
override SENTENCE := $(value SENTENCE)
ifneq ($(origin DATA),file)
override DATA := $(value DATA)
endif
export PARAMS MODEL OUT ARGS NAME ONLY PAPER SENTENCE
export SOFTGEOM_DATA := $(DATA)
export SOFTGEOM_PROFILE := $(PROFILE)
ifeq ($(MAKELEVEL),0)
export SOFTGEOM_MAKE := $(shell echo $$PPID)# this make: what it started ends with it
endif

# A profile names folders, so it must be a plain word.
ODD      := .. ; & | < > ' " ` \ * ? ! { } [ ] ~ : = % ( ) $$
ifneq ($(words $(PROFILE))$(strip $(foreach sign,$(ODD),$(findstring $(sign),$(PROFILE)))),1)
$(error PROFILE must be one plain word: smoke, default, models, hour, paper, or own/NAME)
endif

TORCH    := torch==2.13.0

ifeq ($(USE_CONDA),1)
CONDA    := $(firstword $(foreach tool,mamba micromamba conda,$(if $(shell command -v $(tool) 2>/dev/null),$(tool))))
PY       := .conda/bin/python
STAMP    := .conda/.stamp
LAYERS   := light report test lint
$(foreach layer,$(LAYERS),$(eval $(layer)-stamp := $(STAMP)))
else
PY       := .venv/bin/python
STAMP    := .venv/.stamp
LAYERS   := light report test lint
$(foreach layer,$(LAYERS),$(eval $(layer)-stamp := .venv/.$(layer)))
endif

export PYTHONNOUSERSITE := 1
export PYTHONHASHSEED := 0
unexport JUPYTER_PATH PYTHONPATH PYTHONDONTWRITEBYTECODE# without bytecode each process compiles its packages anew, for twenty seconds

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: help env all smoke test test-kernels test-browser test-firefox test-core lint lab lessons grade scan audit check why dag readme report site claims pointer lock clean

help:
	@echo 'Softmax Geometry. The two commands that matter:'
	@echo '  make all             every figure and table (PROFILE=smoke|default|hour|paper; DATA=folder with raw data; MODELS=1 asks SmolLM2 and BirdNET too)'
	@echo '  make test            the test suite'
	@echo 'One notebook:          make 10_braid_counts, or with other values, into results/own: make 10_braid_counts PARAMS="seed=1 contexts=20"'
	@echo 'One chapter:           make bottleneck, margins, circuits, hardmax;  make why-10_braid_counts says what would run and why, make dag draws what needs what'
	@echo 'Your own model:        make scan MODEL=path-or-hub-id OUT=folder ARGS="--features auto"'
	@echo 'Reading and teaching:  make lab (JupyterLab; LIGHT=1 without PyTorch), lessons, site (from the committed results, in build/html), report (from the run at hand)'
	@echo '                       make grade ANSWERS=folder (judges what learners saved from the lessons on the site; TABLE=grades.csv)'
	@echo 'Checking:              make claims (each with its source, rule and verdict), check (papers and verdicts against ours), smoke, lint, test-browser, test-firefox, audit'
	@echo 'Upkeep:                make env (.venv; USE_CONDA=1 takes conda), readme, lock, clean'

# ---- Environment -----------------------------------------------------------------------------------------------------------
# PyTorch stands outside the hashed lock: this one plain line takes a local or CPU wheel where pip is configured for one,
# and the registry's own build on macOS and GPU machines. Its dependencies are few; the lock has most of them already.

# One lock holds everything; what a use needs of it is a part (lib/compendium/packages.py). `make env` is a reader's; `make test`, `lint`, `report` and
# `site` add what they need; `make lessons` and `make lab LIGHT=1` do without PyTorch.

env: $(STAMP)

READER   := lessons notebooks models ocr fast build
PIP      := -m pip install -qq --disable-pip-version-check --no-compile # errors alone; Python compiles what is imported, so an install takes a third of the time

NO_PIP   := { echo 'pip could not install the packages, its last lines say why: is there a network, or an index that pip knows? The same command goes on from here.'; exit 1; }
NO_PYTHON := { echo 'Python 3.11 or newer is needed: make env PYTHON=python3.12'; exit 1; }

define install
	@PYTHONPATH=lib $(PY) -m compendium.packages $(1) > .venv/part$(@F).txt
	@$(PY) $(PIP) --retries 2 --require-hashes -r .venv/part$(@F).txt || $(NO_PIP)
	@$(PY) $(PIP) --no-deps --no-build-isolation -e . || $(NO_PIP)
	+@$(MAKE) --no-print-directory clean-diffs
endef

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(NO_PYTHON)
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo 'the venv module is missing: apt-get install python3-venv, or make env USE_CONDA=1'; exit 1; }
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/.stamp: pyproject.toml requirements.lock | .venv/.made
	@echo 'setting up .venv, a minute or two, once, 2 GB: 1 of 2, the packages of the notebooks ...'
	$(call install,$(READER))
	@echo 'setting up .venv: 2 of 2, PyTorch ...'
	@$(PY) $(PIP) --retries 2 --report .venv/torch.json $(TORCH_FLAGS) $(TORCH) || $(NO_PIP)
	@touch $@

.venv/.light: pyproject.toml requirements.lock | .venv/.made
	@echo 'setting up .venv for lessons (half a minute, no PyTorch) ...'
	$(call install,lessons build)
	@touch $@

.venv/.report: pyproject.toml requirements.lock | .venv/.made
	@echo 'setting up .venv: what builds the site ...'
	$(call install,lessons notebooks report build)
	@touch $@

.venv/.test: pyproject.toml requirements.lock | .venv/.stamp
	@echo 'setting up .venv: what the tests need ...'
	$(call install,$(READER) dask report test)
	@touch $@

.venv/.lint: pyproject.toml requirements.lock | .venv/.stamp
	@echo 'setting up .venv: what lint needs ...'
	$(call install,$(READER) lint)
	@touch $@

.conda/.stamp: environment.yml pyproject.toml
	@test -n '$(CONDA)' || { echo 'USE_CONDA=1 needs mamba, micromamba or conda on the PATH'; exit 1; }
	$(CONDA) env create --yes --prefix ./.conda --file environment.yml
	@touch $@

# What a run or JupyterLab writes into a notebook never shows in git: it is stripped on its way into a commit.
STRIP := -m compendium.strip --keep-id --extra-keys 'metadata.papermill cell.metadata.papermill
.PHONY: clean-diffs
clean-diffs:
	@if git rev-parse --git-dir >/dev/null 2>&1; then git config filter.nbstripout.clean "$(PY) $(STRIP) metadata.language_info'"; fi

lock: | $(STAMP)
	@$(PY) $(PIP) uv || $(NO_PIP)
	$(PY) -m uv pip compile pyproject.toml $(addprefix --extra ,$(READER) dask report test lint) \
	  --universal --generate-hashes --no-emit-index-url --no-header --quiet --upgrade --output-file requirements.lock

# ---- Notebooks -------------------------------------------------------------------------------------------------------------
# Which notebook needs which is derived from their code (lib/compendium/edges.py); what is up to date
# does not run again, and two run at a time (-j1 or -j4 says otherwise): lib/compendium/schedule.py.

CHAPTERS  := bottleneck margins circuits hardmax
NOTEBOOKS := $(sort $(patsubst notebooks/%.ipynb,%,$(wildcard notebooks/[0-9]*.ipynb)))
ASKED      = $(filter $(NOTEBOOKS) $(CHAPTERS),$(MAKECMDGOALS))
RUN        = $(PY) -m compendium all --jobs $(or $(patsubst -j%,%,$(filter -j%,$(MAKEFLAGS))),2)
.PHONY: $(NOTEBOOKS) $(CHAPTERS)

# MODELS=1: then also the notebooks with a column for the profile `models`, which fetches SmolLM2-135M
# (93 MB) and BirdNET (by hash) and builds on what `default` made.
all: | $(STAMP)
	@$(RUN)
	@$(if $(MODELS),$(RUN) --profile models)

smoke:
	@$(MAKE) --no-print-directory all PROFILE=smoke

# With PARAMS one notebook runs into executed/own, results/own and figures/own, whenever it is asked for.
$(NOTEBOOKS) $(CHAPTERS): | $(STAMP)
	@$(RUN) $(ASKED)

# Why make would run a notebook, or not: make why NAME=24_robustness, or make why-24_robustness
why: | $(STAMP)
	@test -n "$$NAME" || { echo 'which notebook? make why NAME=24_robustness'; exit 1; }
	@$(PY) -m compendium why
why-%: | $(STAMP)
	@NAME='$*' $(PY) -m compendium why

# The graph of the notebooks as text that GitHub, JupyterLab and mermaid.live draw
dag: | $(STAMP)
	@$(PY) -m compendium edges

# ---- Everything else -------------------------------------------------------------------------------------------------------

# A thread each: OpenBLAS would split solves of three rows over threads that wait for one another (15 CPU s in place of 5 for tests/commands/test_verbs.py on a busy machine).
PYTEST   := OMP_NUM_THREADS=1 $(PY) -m pytest

test: | $(test-stamp)
	$(PYTEST) -n 2 --dist loadfile

# The numerical chapters as other processors compute them: the kernels of one without AVX, then of one without AVX-512. Equal numbers must not be
# ordered by how a library rounds its products.
OLDEST   := OPENBLAS_CORETYPE=Prescott MKL_ENABLE_INSTRUCTIONS=SSE4_2 ONEDNN_MAX_CPU_ISA=SSE41 ATEN_CPU_CAPABILITY=default NPY_DISABLE_CPU_FEATURES='X86_V3 X86_V4'
MIDDLE   := OPENBLAS_CORETYPE=Haswell MKL_ENABLE_INSTRUCTIONS=AVX2 ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 NPY_DISABLE_CPU_FEATURES=X86_V4
NUMERICAL := tests/hardmax tests/margins tests/circuits
test-kernels: | $(test-stamp)
ifneq ($(filter x86_64 amd64,$(shell uname -m)),)
	$(OLDEST) OMP_NUM_THREADS=1 $(PY) -W ignore::ImportWarning -m pytest -n 2 -W ignore::ImportWarning $(NUMERICAL)
	$(MIDDLE) OMP_NUM_THREADS=1 $(PY) -W ignore::ImportWarning -m pytest -n 2 -W ignore::ImportWarning $(NUMERICAL)
else
	@echo 'test-kernels: the variables that choose kernels are those of x86-64; nothing to do on this processor'
endif

test-browser: | $(test-stamp)
	$(PYTEST) tests/browser -m browser

# The same pages in the Firefox on the PATH (Debian: firefox-esr); what there is no Firefox for is skipped
test-firefox: | $(test-stamp)
	SOFTGEOM_BROWSER=firefox $(PYTEST) tests/browser -m browser

lint: | $(lint-stamp)
	$(PY) -m ruff check lib tests notebooks benchmarks tools
	$(PY) -m ruff format --check lib tests notebooks benchmarks tools
	$(PY) $(STRIP)' --verify notebooks/*.ipynb notebooks/lessons/*.ipynb
	$(PY) -m compendium check-claims
	$(PY) -m mypy
	$(PY) -m compendium render-readme --check
	$(PY) -m compendium edges --check

check: | $(STAMP)
	@$(PY) -m compendium check

# Claims beside the sources' own sentences, with rule and verdict: make claims, or make claims ONLY='003 24_robustness 004-theorem-2'
claims: | $(STAMP)
	@$(PY) -m compendium claims

# Where a sentence of a source stands: make pointer PAPER=003 SENTENCE='as its text has it'
pointer: | $(STAMP)
	@$(PY) -m compendium pointer

readme: | $(STAMP)
	@$(PY) -m compendium render-readme

# JupyterLab on one page and without questions (report/lab/overrides.json)
LAB = -m jupyterlab --LabApp.app_settings_dir='$(CURDIR)/report/lab' --ServerApp.root_dir='$(CURDIR)' \
  $(if $(filter 0,$(shell id -u)),--allow-root) --LabApp.default_url=/lab/tree/notebooks
lab: clean-diffs | $(if $(LIGHT),$(light-stamp),$(STAMP))
	@$(PY) $(LAB)/start.ipynb

lessons: clean-diffs | $(light-stamp)
	@$(PY) $(LAB)/start.ipynb

# What learners saved from the lessons' pages: make grade ANSWERS=folder TABLE=grades.csv
grade: | $(light-stamp)
	@PYTHONPATH=lib $(PY) -m classroom '$(ANSWERS)' $(if $(TABLE),--csv '$(TABLE)')

site: | $(report-stamp)
	@$(PY) -m compendium site

report: | $(report-stamp)
	@$(PY) -m compendium report

# Options of `softgeom scan` are given in ARGS, parameters of the notebook scan.ipynb in PARAMS:
# make scan MODEL=my.npz ARGS="--features auto --fail-on unargmaxable" PARAMS="patience=2500"
scan: | $(STAMP)
	@$(PY) -m compendium scan

# The core alone, in an environment of its own, at the lowest versions that pyproject.toml allows (BOUNDS=highest: at today's): needs a network
BOUNDS    ?= lowest-direct
CORETESTS := tests/bottleneck tests/checkpoints tests/commands tests/test_parallel.py tests/test_layer.py tests/test_features.py tests/test_writing.py
test-core:
	$(PYTHON) -m venv build/uv && build/uv/bin/python $(PIP) uv
	build/uv/bin/uv venv --quiet --clear --python $(PYTHON) build/core
	build/uv/bin/uv pip install --quiet --python build/core/bin/python --resolution $(BOUNDS) . 'pytest>=8.3' 'pytest-xdist>=3.6' 'hypothesis>=6.112' 'pyyaml>=6.0'
	cp -r tests tools pyproject.toml build/core/ && cd build/core && OMP_NUM_THREADS=1 bin/python -m pytest -n 2 $(CORETESTS)

# Known vulnerabilities of every pinned package of Python: needs a network. GitHub's Dependabot
# watches the actions and MathJax (.github/dependabot.yml).
AUDIT := build/audit/bin/pip-audit --strict --disable-pip
audit:
	$(PYTHON) -m venv build/audit && build/audit/bin/python $(PIP) pip-audit
	$(AUDIT) --require-hashes -r requirements.lock
	echo '$(TORCH)' > build/audit/torch.txt && $(AUDIT) --no-deps -r build/audit/torch.txt

clean:
	rm -rf executed build results/smoke results/lab results/own figures/smoke figures/lab figures/own .pytest_cache .mypy_cache .ruff_cache
