# Softmax Geometry: the whole pipeline as a graph. `make` alone prints help.
#
# Data goes one way: raw -> processed -> results -> figures -> README. A notebook depends on its own file, its parameters, the
# leaves and its chapter of lib/, and on the notebooks whose recorded results it reads (section "Edges").

PROFILE  ?= default
DATA     ?= $(SOFTGEOM_DATA)
PARAMS   ?=
USE_CONDA ?=
PYTHON   ?= python3
MODEL    ?=
OUT      ?= scans/$(if $(MODEL),$(notdir $(basename $(MODEL))),model)

TORCH    := torch==2.13.0
E        := executed/$(PROFILE)
LIB      := lib/softgeom
BOOK     := lib/compendium

ifeq ($(USE_CONDA),1)
CONDA    := $(firstword $(foreach tool,mamba micromamba conda,$(if $(shell command -v $(tool) 2>/dev/null),$(tool))))
PY       := .conda/bin/python
STAMP    := .conda/.stamp
else
PY       := .venv/bin/python
STAMP    := .venv/.stamp
endif

export SOFTGEOM_DATA := $(DATA)
export SOFTGEOM_PROFILE := $(PROFILE)
export PARAMS
export PYTHONNOUSERSITE := 1
unexport JUPYTER_PATH PYTHONPATH

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: help env all smoke test test-browser lint lab scan bench check readme report site claims pointer lock clean

help:
	@echo 'Softmax Geometry. The two commands that matter:'
	@echo '  make all             every figure and table (PROFILE=smoke|default|hour|paper; DATA=folder with raw data; -j2 for two at a time)'
	@echo '  make test            the test suite'
	@echo 'One notebook:          make 10_braid_counts, or with other values, into results/own: make 10_braid_counts PARAMS="seed=1 contexts=20"'
	@echo 'Your own model:        make scan MODEL=path-or-hub-id OUT=folder'
	@echo 'Reading and teaching:  make lab (JupyterLab), site (from the committed results, in build/html), report (from the run at hand)'
	@echo 'Checking:              make claims (each with its source, rule and verdict), check (papers and verdicts against ours), smoke, lint, test-browser, bench'
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

NOTEBOOKS := $(sort $(patsubst notebooks/%.ipynb,%,$(wildcard notebooks/[0-9]*.ipynb)))
LEAVES    := $(wildcard $(addprefix $(LIB)/,__init__.py colours.py source.py progress.py parallel.py layer.py rounding.py features/*.py) $(addprefix lib/compendium/,paths.py book.py style.py corpora/*.py))
CHECKPOINTS := $(wildcard $(LIB)/checkpoints/*.py)
MODELS      := $(wildcard $(LIB)/language_model/*.py lib/compendium/models/*.py)
BOTTLENECK  := $(wildcard $(LIB)/bottleneck/*.py $(LIB)/bottleneck/*/*.py $(BOOK)/drawing/bottleneck/*.py) $(CHECKPOINTS) $(BOOK)/models/scans.py $(BOOK)/keeping.py
MARGINS     := $(wildcard $(LIB)/margins/*.py) $(MODELS)
CIRCUITS    := $(wildcard $(LIB)/circuits/*.py) $(MODELS) $(CHECKPOINTS)
HARDMAX     := $(wildcard $(LIB)/hardmax/*.py)

all: $(if $(strip $(PARAMS)),only-one-notebook-takes-params) $(NOTEBOOKS:%=$(E)/%.ipynb)
	@echo "$(words $(NOTEBOOKS)) notebooks up to date: results/$(PROFILE), figures/$(PROFILE), executed/$(PROFILE)"

smoke:
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j2) all PROFILE=smoke

# Parameters are checked before anything runs: an unknown, missing or mistyped one stops everything here. Each notebook's values in this profile go
# into a file of their own, rewritten only when they change, so that a changed column concerns only the runs that read it.
RESOLVED := build/params/$(PROFILE)
$(RESOLVED)/.ok: $(wildcard params/*.yaml params/$(PROFILE).yaml) $(wildcard notebooks/*.ipynb) | $(STAMP)
	@$(PY) -m compendium check-params --profile $(PROFILE)
	@touch $@
$(RESOLVED)/%.json: $(RESOLVED)/.ok ;
.PRECIOUS: $(RESOLVED)/%.json

$(E)/%.ipynb: notebooks/%.ipynb $(RESOLVED)/%.json $(LEAVES) | $(STAMP)
	@PARAMS= $(PY) -m compendium run $* --profile $(PROFILE)

.PHONY: only-one-notebook-takes-params
only-one-notebook-takes-params:
	@echo 'PARAMS changes one notebook: make 10_braid_counts PARAMS="seed=1"'; exit 1

# With PARAMS the notebook runs into executed/own, results/own and figures/own, every time it is asked for.
.PHONY: $(NOTEBOOKS)
ifeq ($(strip $(PARAMS)),)
$(NOTEBOOKS): %: $(E)/%.ipynb
else
$(NOTEBOOKS): | $(STAMP) $(RESOLVED)/.ok
	@$(PY) -m compendium run $@ --profile $(PROFILE)
endif

# ---- Edges: what each notebook needs beyond its own file, its parameters and the leaves --------------------------------------
# (chapter A: bottleneck)
$(E)/10_braid_counts.ipynb: $(BOTTLENECK) $(wildcard data/reference/braid_*.csv)
$(E)/11_region_geometry.ipynb $(E)/12_first_scan.ipynb $(E)/13_random_layers.ipynb: $(BOTTLENECK)
$(E)/14_trained_layers.ipynb: $(BOTTLENECK) $(LIB)/language_model/tokens.py $(addprefix $(BOOK)/,victims.py statistics.py models/bags.py models/ngrams.py)
$(E)/15_imprisoned_characters.ipynb: $(BOTTLENECK) $(BOOK)/characters.py $(BOOK)/proportions.py
$(E)/16_model_survey.ipynb: $(BOTTLENECK) $(BOOK)/printed_scans.py $(wildcard data/reference/unargmaxable_*.csv)
$(E)/17_activation_range.ipynb: $(BOTTLENECK) $(BOOK)/characters.py data/reference/softmax_input_ranges.csv
$(E)/18_reachable_vocabulary.ipynb: $(BOTTLENECK) $(BOOK)/models/vocabularies.py

# (chapter B: margins)
$(E)/01_language_models.ipynb: $(MODELS)
$(E)/20_scalar_margins.ipynb: $(addprefix $(LIB)/margins/,scalar.py constrained.py) data/reference/scalar_coupling_population.csv
$(E)/21_attention_jacobian.ipynb: $(MARGINS)
$(E)/22_generative_process.ipynb: $(addprefix $(LIB)/margins/,scalar.py jacobian.py prior.py process.py)
$(E)/23_margin_sweep.ipynb: $(MARGINS)
$(E)/24_robustness.ipynb $(E)/25_support_tokens.ipynb: $(E)/23_margin_sweep.ipynb $(MARGINS)
$(E)/25_support_tokens.ipynb: $(E)/24_robustness.ipynb
$(E)/26_margin_audit.ipynb: $(LIB)/margins/intervals.py $(wildcard data/reference/margin_*.csv)

# (chapter C: circuits)
$(addprefix $(E)/,$(addsuffix .ipynb,30_normalisation 31_heads 32_residual_stream 33_feed_forward_memory)): $(E)/01_language_models.ipynb $(CIRCUITS)
$(E)/34_tokens_to_probability.ipynb: $(E)/01_language_models.ipynb $(CIRCUITS) $(BOTTLENECK)

# (chapter D: hardmax)
$(E)/40_clustering_theorem.ipynb $(E)/42_sentiment.ipynb: $(HARDMAX)
$(E)/43_leader_explanations.ipynb: $(E)/42_sentiment.ipynb $(HARDMAX)

# (summary: reads what all others recorded)
$(E)/90_summary.ipynb: $(wildcard claims/*.yaml) $(filter-out $(E)/90_summary.ipynb,$(NOTEBOOKS:%=$(E)/%.ipynb))

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

check: | $(STAMP)
	@$(PY) -m compendium check --profile $(PROFILE)

# Claims beside the sources' own sentences, with rule and verdict: make claims, or make claims ONLY='003 24_robustness 004-theorem-2'
claims: | $(STAMP)
	@$(PY) -m compendium claims $(ONLY)

# Where a sentence of a source stands: make pointer PAPER=003 SENTENCE='as its text has it'
pointer: | $(STAMP)
	@$(PY) -m compendium pointer '$(PAPER)' '$(SENTENCE)'

readme: | $(STAMP)
	@$(PY) -m compendium render-readme

lab: | $(STAMP)
	$(PY) -m jupyterlab --LabApp.default_url=/lab/tree/notebooks/start.ipynb

site: | $(STAMP)
	@$(PY) -m compendium site

report: | $(STAMP)
	@$(PY) -m compendium report --profile $(PROFILE)

scan: | $(STAMP)
	@test -n '$(MODEL)' || { echo 'which model? make scan MODEL=path-or-hub-id [OUT=folder]'; exit 1; }
	@$(PY) -m compendium scan '$(MODEL)' --out '$(OUT)'

bench: | $(STAMP)
	$(PY) benchmarks/run.py

clean:
	rm -rf executed build results/smoke results/lab results/own figures/smoke figures/lab figures/own .pytest_cache .mypy_cache .ruff_cache
