# Softmax Geometry: every figure and table from data and code. `make` alone prints help.
#
# data/raw -> data/processed -> results -> figures -> pages. A notebook depends on its own file, its parameters,
# the library folders of its chapter, and the notebooks whose results it reads.

PYTHON    ?= python3
PROFILE   := $(or $(value PROFILE),$(if $(filter smoke,$(MAKECMDGOALS)),smoke,default))
NOTEBOOKS := $(sort $(patsubst notebooks/%.ipynb,%,$(wildcard notebooks/[0-9]*.ipynb)))
# What users type reaches programs through the environment as it was typed: neither make nor a shell reads it as code
TYPED := PROFILE DATA PARAMS MODEL OUT ARGS ANSWERS TABLE ONLY
$(foreach name,$(TYPED),$(eval override $(name) := $$(value $(name))))
export $(TYPED)
export SOFTGEOM_DATA := $(or $(DATA),$(SOFTGEOM_DATA))
ifneq ($(words $(PROFILE))$(filter-out smoke default full paper,$(PROFILE:own/%=smoke)),1)
$(error PROFILE must be smoke, default, full, paper, or own/NAME for notebooks/params/own/NAME.yaml)
endif
export SOFTGEOM_PROFILE := $(PROFILE)
export PYTHONNOUSERSITE := 1
unexport JUPYTER_PATH PYTHONPATH PYTHONDONTWRITEBYTECODE
# two notebooks at a time, before `--`, behind which variables follow; -j1 or -j4 on the command line wins
MAKEFLAGS := $(subst -- ,-j2 -- ,$(MAKEFLAGS) -- )
.PHONY: help env all smoke bottleneck margins circuits hardmax $(NOTEBOOKS) FORCE
.PHONY: check claims readme scan site lab lessons grade test test-browser lint lock clean

help:
	@echo 'make all       every figure and table; a second run makes only what has changed'
	@echo 'make margins   one chapter (bottleneck, margins, circuits, hardmax); make 10_braid_counts PARAMS="seed=1": one notebook'
	@echo '               for these: PROFILE=smoke|default|full|paper, DATA=folder with raw data, -j4, USE_CONDA=1'
	@echo 'make test      the test suite; make smoke: every notebook, as small as it goes'
	@echo 'make scan MODEL=path-or-hub-id OUT=folder ARGS="--features auto"      scans a model and writes a report'
	@echo 'make lab       JupyterLab; make lessons: without PyTorch; make grade ANSWERS=folder TABLE=grades.csv'
	@echo 'make check     our numbers beside the papers; make claims ONLY=003; make site: the pages, in build/html'
	@echo 'make env, lint, test-browser, readme, lock, clean'
# ---- Environment: one lock with hashes, of which each layer installs its part (lib/compendium/packages.py) ----------
ifeq ($(USE_CONDA),1)
PY    := .conda/bin/python
layer  = .conda/.stamp
else
PY    := .venv/bin/python
layer  = .venv/.$1
endif
PIP       := $(PY) -m pip install -qq --disable-pip-version-check --no-compile --retries 2
NO_PIP    := { echo 'pip could not install the packages, its last lines say why: is there a network?'; exit 1; }
NO_PYTHON := { echo 'Python 3.11 or newer, with venv, is needed: make env PYTHON=python3.12, or USE_CONDA=1'; exit 1; }
STRIP     := --keep-id --extra-keys 'metadata.papermill cell.metadata.papermill metadata.language_info'
lessons-extras   := lessons build
site-extras      := lessons notebooks report build
notebooks-extras := lessons notebooks models ocr fast build
tests-extras     := $(notebooks-extras) dask report test lint

env: $(call layer,notebooks)
.venv/.tests: | .venv/.notebooks
.venv/.%: pyproject.toml scanner/pyproject.toml requirements.lock | .venv/.made
	@echo 'installing into .venv, once, a minute or two: packages for $* ...'
	@PYTHONPATH=lib $(PY) -m compendium.packages $($*-extras) > .venv/part.$*.txt
	@$(PIP) --require-hashes -r .venv/part.$*.txt || $(NO_PIP)
	@$(PIP) --no-deps --no-build-isolation -e scanner -e . || $(NO_PIP)
# PyTorch is outside the lock, so that pip takes the build that fits the machine
	@$(if $(filter notebooks,$*),$(PIP) $(TORCH_FLAGS) torch==2.13.0 || $(NO_PIP))
	@git config filter.nbstripout.clean "$(PY) -m nbstripout $(STRIP)" || true
	@touch $@
.venv/.made:
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(NO_PYTHON)
	@$(PYTHON) -m venv .venv && touch $@
.conda/.stamp: environment.yml pyproject.toml scanner/pyproject.toml
	$(or $(CONDA),conda) env create --yes --prefix ./.conda --file environment.yml && touch $@

# ---- Notebooks: executed/PROFILE/NAME.ipynb appears when every cell succeeded ---------------------------------------
executed = $(patsubst %,executed/$(PROFILE)/%.ipynb,$(filter $1,$(NOTEBOOKS)))
code     = $(foreach folder,$1,$(wildcard lib/$(folder)/*.py lib/$(folder)/*/*.py))
scanner  = $(wildcard scanner/src/softgeom/*.py scanner/src/softgeom/*/*.py)

all smoke: $(call executed,%)
	@echo "up to date: results/$$SOFTGEOM_PROFILE, figures/$$SOFTGEOM_PROFILE, executed/$$SOFTGEOM_PROFILE"
bottleneck: $(call executed,1% 5%)
margins: $(call executed,2%)
circuits: $(call executed,3%)
hardmax: $(call executed,4%)
executed/$(PROFILE)/%.ipynb: notebooks/%.ipynb notebooks/params/%.yaml | $(call layer,notebooks)
	@$(PY) -m compendium.run $*
ifeq ($(PARAMS),)
$(NOTEBOOKS): %: executed/$(PROFILE)/%.ipynb
else
$(NOTEBOOKS): | $(call layer,notebooks)
	@$(PY) -m compendium.run $@
$(if $(filter $(NOTEBOOKS) scan,$(MAKECMDGOALS)),,$(error PARAMS changes one notebook: make 10_braid_counts PARAMS="seed=1"))
endif
$(call executed,%): $(wildcard $(patsubst %,scanner/src/softgeom/%.py,arrays colours parallel source threads writing) \
  lib/compendium/*.py lib/compendium/claims/*.py data/reference/*.csv)
$(call executed,01% 14% 17% 28% 3% 46%): $(call code,papers/circuits papers/language_model) $(scanner)
$(call executed,11% 20% 21% 40%): $(call code,papers/explorers)
$(call executed,1% 5% 32% 35%): $(call code,papers/bottleneck) $(scanner)
$(call executed,2% 90%): $(call code,papers/margins papers/language_model)
$(call executed,4%): $(call code,papers/hardmax)
$(call executed,18% 30% 52%): $(wildcard results/bench/*.csv)
FORMULAS := 10% 11% 13% 20% 21% 22% 27% 90%# these read neither corpora nor models
READERS  := $(call executed,$(filter-out $(FORMULAS),$(NOTEBOOKS)))
$(READERS): executed/data-folder $(call code,compendium/corpora compendium/models)
$(call executed,28% 3%): $(call executed,01%)
$(call executed,16%): $(call executed,18%)
$(call executed,24% 25% 29%): $(call executed,23%)
$(call executed,23% 24% 25% 29%): $(wildcard results/full/barrier_sweep/*)
$(call executed,43% 44% 45%): $(call executed,42%)
$(call executed,90%): $(call executed,$(filter-out 90%,$(NOTEBOOKS))) $(wildcard data/claims/*.yaml)
executed/data-folder: FORCE# the files of DATA; written anew only when they are others
	+@mkdir -p executed; find -L "$$SOFTGEOM_DATA" -type f -exec ls -ln {} + 2>/dev/null | sort > $@.now; \
	  cmp -s $@.now $@ || cp $@.now $@
# ---- Everything else -----------------------------------------------------------------------------------------------
check claims readme scan: | $(call layer,notebooks)
site: | $(call layer,site)
check claims readme scan site:
	@$(PY) -m compendium $(@:readme=render-readme)
JUPYTER = $(PY) -m jupyterlab --LabApp.app_settings_dir='$(CURDIR)/docs/site/lab' --ServerApp.root_dir='$(CURDIR)' \
  $(if $(filter 0,$(shell id -u)),--allow-root) --LabApp.default_url=/lab/tree/notebooks/start.ipynb
lab: | $(call layer,notebooks)
lessons grade: | $(call layer,lessons)
lab lessons:
	@$(JUPYTER)
grade:
	@$(PY) -m classroom "$$ANSWERS" $${TABLE:+--csv "$$TABLE"}
# one thread each: OpenBLAS would split solves of three rows over threads that wait for one another
PYTEST := OMP_NUM_THREADS=1 $(PY) -m pytest
test: | $(call layer,tests)
	$(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder
test-browser: | $(call layer,tests)
	$(PYTEST) tests/browser -m browser
lint: | $(call layer,tests)
	$(PY) -m ruff check lib scanner tests notebooks
	$(PY) -m ruff format --check lib scanner tests notebooks
	$(PY) -m nbstripout $(STRIP) --verify notebooks/*.ipynb notebooks/lessons/*.ipynb
	$(PY) -m compendium check-claims
	$(PY) -m mypy
	$(PY) -m compendium render-readme --check
lock: | $(call layer,notebooks)
	@$(PIP) uv
	$(PY) -m uv pip compile pyproject.toml scanner/pyproject.toml $(addprefix --extra ,$(tests-extras)) \
	  --universal --generate-hashes --no-emit-index-url --no-header --quiet --upgrade --output-file requirements.lock
clean:
	rm -rf executed build results/smoke results/own figures/smoke figures/own .pytest_cache .mypy_cache .ruff_cache
