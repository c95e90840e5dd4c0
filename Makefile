# Two commands are all that anybody needs: `make check` and `make test`.
# Everything is installed into .venv, from the lock file; `make` does it when it is needed.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# Measurements and traces that are no part of the project, where their folder lies beside it.
DATA := $(or $(KUAYU_DATA),$(wildcard ../shared/data))

export PYTHONPATH :=
# Thousands of processes are started by tests; each would compile all modules anew where this is set.
export PYTHONDONTWRITEBYTECODE :=
export NO_MKDOCS_2_WARNING := 1

NEW_ENOUGH = $(PYTHON) -c 'import sys; sys.exit("Kuayu needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; try make PYTHON=python3.11") if sys.version_info < (3, 11) else None'

.DEFAULT_GOAL := help
.PHONY: help check test quick schemas drift changes lint lint-spec types contracts docs serve-docs standard mutants benchmark \
        benchmark-baseline benchmark-ingest benchmark-jobs benchmark-latency benchmark-scheduling report results results-check submissions \
        engines verify verify-all licences sbom audit lock clean

help: ## Show what can be made.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

check: $(READY) ## Serve the reference, test it over HTTP, write build/check/report.html (LEVEL=quick or full: longer).
	$(BIN)/kuayu check $(if $(LEVEL),--level $(LEVEL)) $(if $(SEED),--seed $(SEED)) $(CHECK)

# Many tests wait for processes, so that two more than there are processors keep these busy.
WORKERS := $(shell expr $$(nproc) + 2)
ALONE := $(shell grep -rl --include='test_*.py' 'mark\.alone' tests)
MATRIX := tests/mutants/test_matrix.py

# The matrix mostly waits, and what it plays has to be in time, so that it begins first and all others stand back for it.
test: $(READY) ## Run all tests (a Chromium is installed where there is none and root may).
	@sh .ci/chromium
	@mkdir -p build/tests; failed=0; \
	$(BIN)/pytest -m matrix --junitxml build/tests/matrix.xml $(MATRIX) >build/tests/matrix.log 2>&1 & matrix=$$!; \
	nice $(BIN)/pytest -m "not alone and not matrix" --numprocesses $(WORKERS) --dist loadfile \
	  --junitxml build/tests/beside.xml || failed=1; \
	wait $$matrix || failed=1; cat build/tests/matrix.log; \
	$(BIN)/pytest -m alone --junitxml build/tests/alone.xml $(ALONE) || failed=1; \
	$(BIN)/python .ci/slowest build/tests; \
	exit $$failed

quick: $(READY) ## Style, types, and the tests of what changed since the last commit (SINCE=COMMIT: since that).
	$(BIN)/python .ci/quick $(SINCE)

schemas: $(READY) ## Generate the published schemas from spec/.
	PYTHONPATH=spec $(BIN)/python -m generator

drift: $(READY) ## Fail where the published schemas are not what spec/ leads to.
	PYTHONPATH=spec $(BIN)/python -m generator --check

changes: $(READY) ## Show what differs from the standard of an earlier commit: breaking, additive, editorial (SINCE=COMMIT).
	PYTHONPATH=spec $(BIN)/python -m changes $(or $(SINCE),HEAD)

lint-spec: $(READY) ## Check the text of the standard: its language, both languages, terms, registers and references.
	PYTHONPATH=spec $(BIN)/python -m lint

lint: $(READY) ## Check style, and the licences of all that is installed.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(BIN)/python .ci/licences >/dev/null

licences: $(READY) ## Print the licences of all that is installed.
	@$(BIN)/python .ci/licences

sbom: $(READY) ## Write build/sbom.json: a bill of materials of all that is installed (CycloneDX).
	@mkdir -p build && $(BIN)/python .ci/sbom

audit: $(READY) ## Ask PyPI for known vulnerabilities of the pinned versions; say so where nobody answers.
	@$(BIN)/python .ci/audit

types: $(READY) ## Check types.
	$(BIN)/mypy
	$(BIN)/mypy docs/hooks

contracts: $(READY) ## Check that imports go one way.
	PYTHONPATH=schemas:conformance:reference_impl:training $(BIN)/lint-imports

docs: $(READY) standard ## Build the site into build/site, with the draft as documents.
	$(BIN)/mkdocs build --strict --site-dir build/site

serve-docs: $(READY) ## Show the site while you write.
	$(BIN)/mkdocs serve

# pandoc, Typst and a reader of YAML, in an environment of their own: who reads the draft needs nothing else of the project.
DOCUMENT := build/standard/venv

standard: $(DOCUMENT)/.ready ## Write the draft as one document, DOCX and PDF in both languages, and its drafting report.
	PYTHONPATH=spec $(DOCUMENT)/bin/python -m document

$(DOCUMENT)/.ready: spec/document/requirements.lock
	$(NEW_ENOUGH)
	$(PYTHON) -m venv $(DOCUMENT)
	@$(DOCUMENT)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
	  --only-binary :all: --requirement $< || { \
	  echo "pip found no index with the packages of $<; set PIP_INDEX_URL to one, or PIP_FIND_LINKS to a folder" >&2; exit 1; }
	touch $@

# Ray is no part of the lock: whoever uses it has the cluster's. It stays beside the environment, so that no other run finds it.
RAY := build/engines/ray

engines: $(READY) $(RAY)/.ready ## Test the engines on real Ray and Slurm (installs Ray, and Debian's Slurm where root may).
	@sh .ci/slurm
	PYTHONPATH=$(RAY) $(BIN)/pytest tests/engine/runs/test_ray.py tests/engine/runs/test_slurm.py \
	  tests/service/test_ten_minutes_on_clusters.py tests/scheduling/test_workers.py

$(RAY)/.ready: tests/engine/runs/ray-requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(RAY) --requirement $<
	touch $@

mutants: $(READY) ## Run the kill matrix; writes build/mutants/matrix.json and matrix.html.
	PYTHONPATH=tests $(BIN)/python -m mutants.matrix

# The time of a processor is counted, and of one thread, so that other work beside it changes little.
BENCHMARK = OMP_NUM_THREADS=1 $(BIN)/pytest tests/benchmarks --benchmark-only --benchmark-quiet -rfE
BASELINE := tests/benchmarks/baseline.json

benchmark: $(READY) ## Measure what fits in one process; fail where a median is twice that of the stored baseline.
	$(BENCHMARK) --benchmark-compare=$(BASELINE) --benchmark-compare-fail=median:100% \
	  -W "ignore:Benchmark machine_info is different"

benchmark-baseline: $(READY) ## Measure the stored baseline anew, on a quiet machine.
	$(BENCHMARK) --benchmark-json=$(BASELINE)

benchmark-ingest: $(READY) ## Measure ingest beside the raw store's limit, in one run; writes build/ingest.json.
	mkdir -p build && $(BIN)/python tests/benchmarks/ingest.py --json build/ingest.json

benchmark-jobs: $(READY) ## Measure submissions and dispatches of jobs through eight domains; writes build/jobs.json (QUEUED=50000: longer).
	mkdir -p build && $(BIN)/python tests/benchmarks/jobs.py --json build/jobs.json $(if $(QUEUED),--queued $(QUEUED) --seconds 120)

benchmark-latency: $(READY) ## Measure decisions by stage and over HTTP, whole states and patches; writes build/latency.json.
	$(BIN)/python tests/benchmarks/patched_states.py --epochs 300 --large 60 --json build/latency.json

benchmark-scheduling: $(READY) ## Measure the compiled world of scheduling beside aims and peers; writes build/speed.json.
	$(BIN)/python tests/benchmarks/speed.py

# Of the next run, written down before it (decision 28); whatever it says is what is published.
REPORT_SEED := 20261231

report: $(READY) ## Make the confirmatory run: everything at level full; it goes on where it was broken off.
	-$(BIN)/kuayu check --level full --seed $(REPORT_SEED) $(if $(DATA),--data $(DATA)) -o build/report --resume
	$(BIN)/python docs/hooks/results.py keep build/report confirmatory
	$(MAKE) results

results: $(READY) ## Write what follows from the committed runs: the table, the badge, README's lines.
	$(BIN)/python docs/hooks/results.py table

verify: $(READY) ## Judge committed runs again where they or what judges them changed, and a sample (REMEMBER=1: write that down).
	$(BIN)/python docs/hooks/results.py verify $(if $(DATA),--data $(DATA)) $(if $(REMEMBER),--remember)

verify-all: $(READY) ## Judge every committed run of the suite again from its transcript.
	$(BIN)/python docs/hooks/results.py verify --all $(if $(DATA),--data $(DATA))

results-check: $(READY) ## Fail where the table, the badge or README's lines do not follow from the committed runs.
	$(BIN)/python docs/hooks/results.py table --check

submissions: $(READY) ## Check what vendors handed in: schema, digests, names, and each transcript judged again.
	$(BIN)/kuayu conformance check-submission $(if $(DATA),--data $(DATA)) docs/results/submissions/*

# PyTorch is built in several ways, with and without CUDA; which one pip takes is the machine's affair, and so its hash.
TORCH := $(shell sed -n 's/^ *"\(torch==[^"]*\)",$$/\1/p' pyproject.toml)

lock: ## Resolve the pinned versions anew, with hashes; what stays out says [tool.uv] in pyproject.toml.
	$(PYTHON) -m venv build/lock && build/lock/bin/pip install --quiet uv
	build/lock/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --no-annotate \
	  --no-emit-index-url --no-emit-find-links --generate-hashes --no-emit-package torch --quiet \
	  --output-file requirements.lock
	build/lock/bin/uv pip compile spec/document/requirements.in --universal --python-version 3.11 --no-annotate \
	  --no-emit-index-url --no-emit-find-links --generate-hashes --quiet --output-file spec/document/requirements.lock

clean: ## Remove what was made.
	rm -rf build dist site $(VENV)

$(READY): requirements.lock pyproject.toml
	$(NEW_ENOUGH)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes \
	  --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --no-build-isolation \
	  --editable .
	@# What takes long on one processor goes on beside each other: numba's code, and the bytecode of all that is installed,
	@# of which what holds the syntax of later Pythons cannot be compiled, which is no error.
	$(BIN)/python -m kuayu_conformance.testbed.scheduling.core & compiled=$$!; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps $(TORCH) && \
	{ $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true; } && \
	wait $$compiled
	touch $@
