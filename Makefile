# `make demo` runs the main job, `make test` everything that has to hold. Both set up .venv themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OLDEST := .venv-oldest
DOCS   := .venv-docs
DIST   := .venv-dist
JOBS   ?= 2

.PHONY: demo test oldest lint docs pages dist bench fuzz mutants study paper paper-full clean scale
.DEFAULT_GOAL := demo

# One stamp per set-up: quick the second time, done anew when the requirements change.
$(VENV)/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[report]'
	touch $@

$(VENV)/.test: pyproject.toml constraints-test.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints-test.txt -e '.[report,test]'
	touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/afape demo

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# COVERAGE=--cov also fails if the tests reach less of `src` than pyproject.toml says.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile $(COVERAGE)

# The fast part of the suite on the oldest dependencies that pyproject.toml allows, in an environment of its own. These use
# what is deprecated in newer packages below them, which is no fault of ours. Left out: what needs packages of the extra `agents`,
# and tests of labels with gaps whose exact action values are trees: in columns with NaN those of scikit-learn 1.5 answer otherwise.
$(OLDEST)/.test: pyproject.toml tests/oldest.py
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python tests/oldest.py report oldest > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -c $(OLDEST)/constraints.txt -e '.[report,oldest]'
	touch $@

oldest: $(OLDEST)/.test
	OMP_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest -q -n $(JOBS) --dist loadfile -m "not slow" \
		-W ignore::DeprecationWarning tests --ignore tests/agents --ignore tests/gym \
		--ignore tests/bad_input/test_every_argument.py --ignore tests/oracles/afabench_protocol.py \
		--ignore tests/estimators/test_label_gaps.py --ignore tests/estimators/test_label_gaps_graphs.py

# The site, in an environment of its own that has only what it needs; warnings are errors.
$(DOCS)/.docs: pyproject.toml
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

docs: $(DOCS)/.docs
	$(DOCS)/bin/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "Written to build/docs/index.html"

# Outputs and pictures in the pages, after numbers have changed.
pages: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python docs/make.py

# Archive and wheel, and the wheel in an empty environment with its dependencies from the package index.
dist: $(VENV)/.test
	rm -rf dist $(DIST)
	$(BIN)/python -m build
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[report]"
	cd $(DIST) && bin/afape demo --rows 2000 --report demo.html > demo.txt && test -s demo.html

bench: $(VENV)/.test
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/parts.py
	$(BIN)/python benchmarks/wide.py

# Ten million rows, and a cluster of two workers: about an hour on two idle cores.
scale: $(VENV)/.test
	$(BIN)/python benchmarks/scale.py memory
	$(BIN)/python benchmarks/scale.py cluster

fuzz: $(VENV)/.test
	$(BIN)/python tests/files/fuzz.py --inputs 100000

# How many small changes of the code the tests notice; continues an interrupted run.
mutants: $(VENV)/.test
	$(BIN)/python -m benchmarks.mutation

study: $(VENV)/.test
	$(BIN)/python -m studies coverage --jobs $(JOBS)
	$(BIN)/python -m studies mnar --jobs $(JOBS)
	$(BIN)/python -m studies bootstrap --draws 400 --jobs $(JOBS)
	$(BIN)/python -m studies labels --draws 300 --jobs $(JOBS)
	$(BIN)/python -m studies correction --jobs $(JOBS)
	$(BIN)/python -m studies robustness --draws 40 --jobs $(JOBS)
	$(BIN)/python -m studies seeds --draws 3 --jobs $(JOBS)
	$(BIN)/python -m studies values --draws 60 --jobs $(JOBS)
	$(BIN)/python -m studies outcomes --jobs $(JOBS)
	$(BIN)/python -m studies intervals --draws 400
	$(BIN)/python -m studies sizes --jobs $(JOBS)
	$(BIN)/python -m studies efficiency --jobs $(JOBS)
	$(BIN)/python -m studies support --jobs $(JOBS)
	$(BIN)/python -m studies blocks --jobs $(JOBS)

# The paper's experiments, about an hour on two cores. `make paper-full` repeats data sets of the paper's sizes, which takes days.
# Both continue where they were interrupted.
paper: $(VENV)/.test
	$(BIN)/afape reproduce all --jobs $(JOBS) --out studies/paper

paper-full: $(VENV)/.test
	$(BIN)/afape reproduce all --full --jobs $(JOBS) --out build/paper-full

clean:
	rm -rf $(VENV) $(OLDEST) $(DOCS) $(DIST) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
