"""The page for developers: its journeys are the calls that are made, and the files and rooms it names exist."""

import os
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from test_rooms import DRAWING, PACKAGE

import sklearn_mcsg
from sklearn_mcsg.cli import main
from sklearn_mcsg.datasets import load_short_texts

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "doc" / "developing.rst").read_text(encoding="utf8")
STEP = r"\d+\. .+\n(?:   .+\n)*"
JOURNEYS = re.findall(rf"^From ([\w ]+), ``(.+?)``:\n\n((?:{STEP})+)", PAGE, re.MULTILINE)


def called(journey):
    """Names of the functions of the package that a journey calls, in the order of their first calls."""
    names, folder = {}, f"{PACKAGE}{os.sep}"

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(folder):
            names[frame.f_code.co_qualname] = names.get(frame.f_code.co_qualname, len(names))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        journey()
    finally:
        sys.setprofile(before)
    return list(names)


def travels(line, folder):
    """The function that makes a journey, which the page writes as a line of Python or of the shell."""
    texts, rng = load_short_texts().data[:60], np.random.default_rng(0)
    if line.startswith("mcsg "):
        file = folder / "texts.txt"
        file.write_text("\n".join(texts), encoding="utf8")
        places = {"FILE": str(file), "PAGE": str(folder / "page.html")}
        return lambda: main([places.get(word, word) for word in shlex.split(line)[1:]])
    groups = [rng.normal(size=(5, 3)) for _ in range(300)]
    names = {
        **{name: getattr(sklearn_mcsg, name) for name in sklearn_mcsg.__all__},
        "X": rng.normal(size=(40, 2)) if "Segmenter" in line else groups if "approximate" in line else groups[:20],
        "Y": groups[:3],
        "texts": texts,
        "queries": texts[:3],
    }
    return lambda: eval(line, names)


def test_there_are_five_journeys():
    assert len(JOURNEYS) == 5


@pytest.mark.parametrize(("line", "steps"), [pytest.param(*rest, id=title) for title, *rest in JOURNEYS])
def test_a_journey_calls_its_steps_in_order(line, steps, tmp_path):
    names = [re.match(r"\d+\. ``([\w.]+)``", step)[1] for step in re.findall(STEP, steps)]
    assert len(names) > 5
    assert [name for name in called(travels(line, tmp_path)) if name in names] == names


def test_the_page_draws_the_rooms():
    drawn = re.search(r"::\n\n((?:    .*\n)+)", PAGE[PAGE.index("The house\n") :])[1]
    assert drawn.split() == DRAWING.split()


def test_the_page_names_files_that_exist():
    names = {name.split()[0] for name in re.findall(r"``([\w./]+\.(?:py|pyi|rst|txt|js|toml))``", PAGE)}
    folders = [
        PACKAGE,
        PACKAGE.parent,
        PACKAGE / "report" / "templates",
        ROOT,
        ROOT / "tests",
        ROOT / "doc",
        ROOT / "benchmarks",
    ]
    missing = [name for name in names if not any((folder / name).exists() for folder in folders)]
    assert not missing
    assert len(names) > 40
