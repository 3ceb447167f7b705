# Softmax Geometry: the whole pipeline as a graph. `make` alone prints help.
#
# Data goes one way: raw -> processed -> results -> figures -> README. A notebook depends on its own file, its parameters, the modules that it
# imports, the reference data that it names, and the notebooks whose results it reads: lib/compendium/edges.py derives these edges from the code.

PROFILE  ?= default
DATA     ?= $(SOFTGEOM_DATA)
PARAMS   ?=
USE_CONDA ?=
PYTHON   ?= python3
MODEL    ?=
OUT      ?=
NAME     ?=
ONLY     ?=
PAPER    ?=
SENTENCE ?=

# What a user gives reaches programs through the environment, as it was typed: no shell and no make reads it as code.
override PROFILE := $(value PROFILE)
override PARAMS := $(value PARAMS)
override MODEL := $(value MODEL)
override OUT := $(value OUT)
override NAME := $(value NAME)
override ONLY := $(value ONLY)
override PAPER := $(value PAPER)
override SENTENCE := $(value SENTENCE)
ifneq ($(origin DATA),file)
override DATA := $(value DATA)
endif
export PARAMS MODEL OUT NAME ONLY PAPER SENTENCE
export SOFTGEOM_DATA := $(DATA)
export SOFTGEOM_PROFILE := $(PROFILE)

# A profile names folders, so it must be a plain word.
ODD      := .. ; & | < > ' " ` \ * ? ! { } [ ] ~ : = % ( ) $$
ifneq ($(words $(PROFILE))$(strip $(foreach sign,$(ODD),$(findstring $(sign),$(PROFILE)))),1)
$(error PROFILE must be one plain word: smoke, default, hour, paper, or own/NAME)
endif

TORCH    := torch==2.13.0
E        := executed/$(PROFILE)

ifeq ($(USE_CONDA),1)
CONDA    := $(firstword $(foreach tool,mamba micromamba conda,$(if $(shell command -v $(tool) 2>/dev/null),$(tool))))
PY       := .conda/bin/python
STAMP    := .conda/.stamp
else
PY       := .venv/bin/python
STAMP    := .venv/.stamp
endif

export PYTHONNOUSERSITE := 1
unexport JUPYTER_PATH PYTHONPATH

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: help env all smoke test test-browser lint lab scan bench mutants check why readme report site claims pointer lock clean

help:
	@echo 'Softmax Geometry. The two commands that matter:'
	@echo '  make all             every figure and table (PROFILE=smoke|default|hour|paper; DATA=folder with raw data; -j2 for two at a time)'
	@echo '  make test            the test suite'
	@echo 'One notebook:          make 10_braid_counts, or with other values, into results/own: make 10_braid_counts PARAMS="seed=1 contexts=20"'
	@echo 'One chapter:           make bottleneck, margins, circuits, hardmax;  make why-10_braid_counts says what would run and why'
	@echo 'Your own model:        make scan MODEL=path-or-hub-id OUT=folder'
	@echo 'Reading and teaching:  make lab (JupyterLab), site (from the committed results, in build/html), report (from the run at hand)'
	@echo 'Checking:              make claims (each with its source, rule and verdict), check (papers and verdicts against ours), smoke, lint, test-browser, bench, mutants'
	@echo 'Upkeep:                make env (.venv; USE_CONDA=1 takes conda), readme, lock, clean'

# ---- Environment -----------------------------------------------------------------------------------------------------------
# PyTorch stands outside the hashed lock: this one plain line takes a local or CPU wheel where pip is configured for one,
# and the registry's own build on macOS and GPU machines. Its dependencies are few; the lock has most of them already.

env: $(STAMP)

.venv/.stamp: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Python 3.11 or newer is needed: make env PYTHON=python3.12'; exit 1; }
	@echo 'setting up .venv (about two minutes, 2.5 GB with PyTorch) ...'
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(PY) -m pip install --quiet --disable-pip-version-check $(TORCH_FLAGS) $(TORCH)
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.conda/.stamp: environment.yml pyproject.toml
	@test -n '$(CONDA)' || { echo 'USE_CONDA=1 needs mamba, micromamba or conda on the PATH'; exit 1; }
	$(CONDA) env create --yes --prefix ./.conda --file environment.yml
	@touch $@

lock: | $(STAMP)
	$(PY) -m pip install --quiet uv
	$(PY) -m uv pip compile pyproject.toml --extra notebooks --extra ocr --extra dask --extra report --extra test --extra lint --extra build \
	  --universal --generate-hashes --no-emit-index-url --no-header --quiet --upgrade --output-file requirements.lock

# ---- Notebooks -------------------------------------------------------------------------------------------------------------

CHAPTERS  := bottleneck margins circuits hardmax
NOTEBOOKS := $(sort $(patsubst notebooks/%.ipynb,%,$(wildcard notebooks/[0-9]*.ipynb)))
all: $(if $(strip $(PARAMS)),only-one-notebook-takes-params) $(NOTEBOOKS:%=$(E)/%.ipynb)
	@echo "$(words $(NOTEBOOKS)) notebooks up to date: results/$(PROFILE), figures/$(PROFILE), executed/$(PROFILE)"

smoke:
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j2) all PROFILE=smoke

# Parameters are checked before anything runs: an unknown, missing or mistyped one stops everything here. Each notebook's values in this profile go
# into a file of their own, rewritten only when they change, so that a changed column concerns only the runs that read it.
RESOLVED := build/params/$(PROFILE)
$(RESOLVED)/.ok: $(wildcard params/*.yaml params/$(PROFILE).yaml) $(wildcard notebooks/*.ipynb) | $(STAMP)
	@$(PY) -m compendium check-params
	@touch $@
$(RESOLVED)/%.json: $(RESOLVED)/.ok ;
.PRECIOUS: $(RESOLVED)/%.json

$(E)/%.ipynb: notebooks/%.ipynb $(RESOLVED)/%.json | $(STAMP)
	@PARAMS= $(PY) -m compendium run $*

.PHONY: only-one-notebook-takes-params
only-one-notebook-takes-params:
	@echo 'PARAMS changes one notebook: make 10_braid_counts PARAMS="seed=1"'; exit 1

# ---- Edges: what each notebook needs beyond its own file and its parameters, derived from the code --------------------------
ifneq ($(filter all $(NOTEBOOKS) $(CHAPTERS) executed/%,$(MAKECMDGOALS)),)
include build/edges.mk
endif
build/edges.mk: $(wildcard notebooks/[0-9]*.ipynb data/reference/* $(foreach n,* */* */*/* */*/*/*,lib/$n.py))
	@mkdir -p build && PYTHONPATH=lib $(firstword $(wildcard $(PY)) $(PYTHON)) -m compendium.edges $@ || { echo 'Python 3.11 or newer is needed: make PYTHON=python3.12 ...'; exit 1; }

# With PARAMS the notebook runs into executed/own, results/own and figures/own, every time it is asked for.
.PHONY: $(NOTEBOOKS) $(CHAPTERS)
ifeq ($(strip $(PARAMS)),)
$(NOTEBOOKS): %: $(E)/%.ipynb
else
.SECONDEXPANSION:
$(NOTEBOOKS): $$(UPSTREAM_$$@) | $(STAMP) $(RESOLVED)/.ok
	@$(PY) -m compendium run $@
endif

# One chapter, with what it needs: make bottleneck
bottleneck: $(filter $(E)/1%,$(NOTEBOOKS:%=$(E)/%.ipynb))
margins:    $(filter $(E)/2%,$(NOTEBOOKS:%=$(E)/%.ipynb))
circuits:   $(filter $(E)/3%,$(NOTEBOOKS:%=$(E)/%.ipynb))
hardmax:    $(filter $(E)/4%,$(NOTEBOOKS:%=$(E)/%.ipynb))

# Why make would run a notebook, or not: make why NAME=24_robustness, or make why-24_robustness
why: | $(STAMP) $(RESOLVED)/.ok
	@test -n "$$NAME" || { echo 'which notebook? make why NAME=24_robustness'; exit 1; }
	@$(PY) -m compendium why
why-%: | $(STAMP) $(RESOLVED)/.ok
	@NAME='$*' $(PY) -m compendium why

# ---- Everything else -------------------------------------------------------------------------------------------------------

test: | $(STAMP)
	$(PY) -m pytest -n 2 --dist loadfile -m 'not browser'

test-browser: | $(STAMP)
	$(PY) -m pytest tests/browser -m browser

lint: | $(STAMP)
	$(PY) -m ruff check lib tests notebooks benchmarks
	$(PY) -m ruff format --check lib tests notebooks benchmarks
	$(PY) -m nbstripout --verify --extra-keys 'metadata.papermill cell.metadata.papermill' notebooks/*.ipynb notebooks/lessons/*.ipynb
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

lab: | $(STAMP)
	$(PY) -m jupyterlab --LabApp.default_url=/lab/tree/notebooks/start.ipynb

site: | $(STAMP)
	@$(PY) -m compendium site

report: | $(STAMP)
	@$(PY) -m compendium report

# Everything else that the notebook scan.ipynb takes is given in PARAMS: make scan MODEL=my.npz PARAMS="features=ball bound=10"
scan: | $(STAMP)
	@test -n "$$MODEL" || { echo 'which model? make scan MODEL=path-or-hub-id [OUT=folder]'; exit 1; }
	@$(PY) -m compendium scan

mutants: | $(STAMP)
	$(PY) tools/mutants.py $(if $(EACH),--each $(EACH)) $(if $(ONLY),--only $(ONLY))

bench: | $(STAMP)
	$(PY) benchmarks/run.py

torture: | $(STAMP)
	cd tools && SOFTGEOM_CACHE=$$(mktemp -d) ../$(PY) -m torture files --out ../results/torture/files.csv
	cd tools && ../$(PY) -m torture hub --out ../results/torture/hub.csv
	cd tools && for work in scan jobs dask train; do ../$(PY) -m torture.kills $$work --kills 75 --out ../results/torture/kills_$$work.csv || exit 1; done

clean:
	rm -rf executed build results/smoke results/lab results/own figures/smoke figures/lab figures/own .pytest_cache .mypy_cache .ruff_cache
