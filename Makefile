# Every target creates .venv and installs what it needs; PYTHON chooses the interpreter.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench paper doc dist clean

demo: .venv/core
	$(BIN)/python doc/examples/demo.py

test: .venv/test
	$(BIN)/python -m pytest --cov

lint: .venv/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/bench
	$(BIN)/python benchmarks/speed.py

# make paper DATA=folder: sentences, vectors and counts laid out as the head of benchmarks/paper.py says
paper: .venv/bench
	@test -d "$(DATA)" || { echo "Say where the data are: make paper DATA=folder"; exit 1; }
	$(BIN)/python benchmarks/paper.py --data $(DATA)
	$(BIN)/python benchmarks/grouping.py --data $(DATA)

doc: .venv/doc
	$(BIN)/python -m sphinx -W --keep-going -b html doc doc/_build/html
	@echo "Open doc/_build/html/index.html"

dist: .venv/dist
	rm -rf dist
	$(BIN)/python -m build

clean:
	rm -rf .venv build dist doc/_build doc/generated *.egg-info

.venv/pip:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

.venv/core: .venv/pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/test .venv/doc: .venv/%: .venv/core
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	@touch $@

.venv/bench: .venv/core
	$(BIN)/python -m pip install --quiet --editable ".[text,wmd,plot]"
	@touch $@

.venv/lint: .venv/core
	$(BIN)/python -m pip install --quiet ruff mypy
	@touch $@

.venv/dist: .venv/pip
	$(BIN)/python -m pip install --quiet build
	@touch $@
