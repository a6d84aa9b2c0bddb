# Every target installs what it needs into .venv or .test; PYTHON chooses the interpreter.
PYTHON ?= python3
BIN := .venv/bin
TEXTS := sklearn_mcsg/datasets/short_texts.csv
unexport PYTHONPATH  # or pip would find the sources there, and install nothing

.PHONY: demo test coverage test-oldest chromium lint review bench bench-scale bench-segments paper frames bags certainty paper-pdf doc dist release-check clean

demo: .venv/text
	@mkdir -p demo
	$(call demonstrate,$(BIN)/mcsg,$(TEXTS),demo/report.html)
	@echo "Open demo/report.html in a browser."

define demonstrate
	$(1) cluster $(2) --report $(3)
	@echo
	$(1) search $(2) "sick puppy" "storm near the coast" "saving money for a pension" -k 3
	@echo
	$(1) compare "A cat slept on the sofa." "The kitten naps in an armchair."
	@echo
endef

# The built wheel is tested, in an environment of its own, away from the sources. The tests run on all cores, one process
# each: more threads inside them would only wait for each other.
test: dist chromium
	$(call test-wheel,.test/newest)

# The same, a quarter slower.
coverage: dist chromium
	$(call test-wheel,.test/newest,,--cov)

test-oldest: dist chromium
	$(call test-wheel,.test/oldest,--constraint tests/oldest.txt)

define test-wheel
	test -f $(1)/ready || { rm -rf $(1) && $(PYTHON) -m venv $(1)/venv \
	&& $(1)/venv/bin/python -m pip install --quiet --upgrade pip && touch $(1)/ready; }
	$(1)/venv/bin/python -m pip install --quiet "$$(echo dist/*.whl)[test]" $(2)
	$(1)/venv/bin/python -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	rm -rf $(1)/copy && mkdir $(1)/copy
	cp -r tests benchmarks doc README.md SECURITY.md pyproject.toml $(1)/copy
	rm -rf $(1)/copy/doc/_build $(1)/copy/doc/auto_examples $(1)/copy/doc/generated
	cd $(1)/copy && $(PYTEST) $(3) --pyargs tests README.md doc sklearn_mcsg
endef
# A thread that waits leaves its core to the other workers.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive \
	../venv/bin/python -m pytest --numprocesses auto --dist worksteal

# The report is tested in a browser; without one these tests are skipped.
chromium:
	@command -v chromium > /dev/null || command -v google-chrome > /dev/null || { test "$$(id -u)" = 0 \
	&& apt-get update -qq && apt-get install -qq --yes --no-install-recommends chromium > /dev/null; } \
	|| echo "There is no Chromium and installing it needs root on Debian: tests in a browser will be skipped."

lint: .venv/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The workflows, and the layout of the project. Neither needs a network.
review: .venv/review
	$(BIN)/zizmor --offline --pedantic .github
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/sp-repo-review .

bench: .venv/bench
	$(BIN)/python benchmarks/speed.py

bench-scale: .venv/bench
	$(BIN)/python benchmarks/speed.py --scale

# make bench-segments DATA=folder: documents laid out as the head of benchmarks/segments.py says; without them, the rest
bench-segments: .venv/bench
	$(BIN)/python benchmarks/segments.py $(if $(DATA),--data $(DATA))

# make paper DATA=folder: sentences, vectors and counts laid out as the head of benchmarks/paper.py says
paper: .venv/bench
	@test -d "$(DATA)" || { echo "Say where the data are: make paper DATA=folder"; exit 1; }
	$(BIN)/python benchmarks/paper.py --data $(DATA)
	$(BIN)/python benchmarks/order.py --data $(DATA)
	$(BIN)/python benchmarks/grouping.py --data $(DATA)
	$(BIN)/python benchmarks/levels.py --data $(DATA)
	$(BIN)/python benchmarks/search.py --data $(DATA)
	$(BIN)/python benchmarks/duplicates.py --data $(DATA)

# make frames DATA=folder: series laid out as the head of benchmarks/frames.py says. Its peers, tslearn and aeon, hold numba
# back, so they have an environment of their own.
frames:
	@test -d "$(DATA)" || { echo "Say where the data are: make frames DATA=folder"; exit 1; }
	test -d .test/frames || $(PYTHON) -m venv .test/frames
	.test/frames/bin/python -m pip install --quiet --editable . tslearn aeon
	.test/frames/bin/python benchmarks/frames.py --data $(DATA)

# make bags DATA=folder: bags laid out as the head of benchmarks/bags.py says
bags: .venv/bench
	@test -d "$(DATA)" || { echo "Say where the data are: make bags DATA=folder"; exit 1; }
	$(BIN)/python benchmarks/bags.py --data $(DATA)

# make certainty DATA=folder: running times with the news items in it; without them, with texts made of the bundled ones
certainty: .venv/bench
	$(BIN)/python benchmarks/certainty.py $(if $(DATA),--data $(DATA))

# The article on the package, in the form of the Journal of Open Source Software; pandoc and typst come from the package index
paper-pdf: .venv/article
	@mkdir -p doc/_build
	$(BIN)/python -c "import pypandoc; pypandoc.convert_file('doc/paper/paper.md', 'typst', outputfile='doc/_build/paper.typ', \
	extra_args=['--standalone', '--citeproc', '--bibliography=doc/paper/paper.bib', '--variable=papersize=a4', \
	'--metadata=author=The sklearn_mcsg developers'])"
	$(BIN)/python -c "import typst; typst.compile('doc/_build/paper.typ', output='doc/_build/paper.pdf', root='doc')"
	@echo "Open doc/_build/paper.pdf"

# make doc SPHINX="-t published": with a menu of versions, as the workflow doc.yml publishes them
doc: .venv/doc
	$(BIN)/python -m sphinx -W --keep-going -b html $(SPHINX) doc doc/_build/html
	@echo "Open doc/_build/html/index.html"

dist: .venv/dist
	rm -rf dist
	$(BIN)/python -m build

# The archives as users will install them: first without extras, then with word vectors for the demo.
release-check: dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python .ci/check_release.py dist
	$(call try-archive,.test/wheel,dist/*.whl)
	$(call try-archive,.test/sdist,dist/*.tar.gz)
	@echo "Ready to be released: $$(ls dist)"

define try-archive
	rm -rf $(1) && $(PYTHON) -m venv $(1)/venv && mkdir $(1)/away
	$(1)/venv/bin/python -m pip install --quiet --upgrade pip
	$(1)/venv/bin/python -m pip install --quiet $(2)
	$(1)/venv/bin/python -m pip check
	cd $(1)/away && ../venv/bin/python -I -c "from sklearn_mcsg import *; print(model_comparison_similarity([[[0, 1], [1, 0]], [[2, 2]]]))"
	$(1)/venv/bin/python -m pip install --quiet "$$(echo $(2))[text]"
	cp $(1)/venv/lib/python*/site-packages/$(TEXTS) $(1)/away
	$(call demonstrate,cd $(1)/away && ../venv/bin/python -I -m sklearn_mcsg,$(notdir $(TEXTS)),report.html)
	test -s $(1)/away/report.html
endef

clean:
	rm -rf .venv .test build demo dist doc/_build doc/auto_examples doc/generated doc/sg_execution_times.rst *.egg-info

.venv/pip:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

.venv/core: .venv/pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/text .venv/doc: .venv/%: .venv/core
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	@touch $@

.venv/bench: .venv/core
	$(BIN)/python -m pip install --quiet --editable ".[text,static,large,dask,wmd,plot,bench]"
	@touch $@

.venv/lint: .venv/core
	$(BIN)/python -m pip install --quiet --group lint
	@touch $@

.venv/dist .venv/review .venv/article: .venv/%: .venv/pip pyproject.toml
	$(BIN)/python -m pip install --quiet --group $*
	@touch $@
