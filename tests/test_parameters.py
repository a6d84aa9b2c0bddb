"""One word per thing: a parameter means the same everywhere, and where its default differs the page says why."""

import inspect
import re
from ast import literal_eval
from collections import defaultdict
from pathlib import Path

import pytest

import sklearn_mcsg

PAGE = (Path(__file__).parent.parent / "doc" / "developing.rst").read_text(encoding="utf8")
OVERRIDES = "Overrides the parameter `{}`"  # a method's parameter that takes the place of the estimator's


def rows_of_table(name):
    """Cells of each row of a list table of the page, without its head."""
    body = re.search(rf"^\.\. list-table:: {name}\n(.*?)(?=^\S)", PAGE, re.MULTILINE | re.DOTALL)[1]
    rows = re.split(r"^   \* - ", body, flags=re.MULTILINE)[2:]
    return [[" ".join(cell.split()) for cell in re.split(r"^     -", row, flags=re.MULTILINE)] for row in rows]


def literals(text):
    return re.findall(r"``(.+?)``", text)


SHARED = {literals(name)[0]: row for name, *row in rows_of_table("Shared parameters")}
SEVERAL = {name for row in rows_of_table("Parameters of several meanings") for name in literals(row[0])}


def described(docstring):
    """Parameters in a docstring of numpydoc, with the first sentence of each: up to a period, semicolon or colon."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", inspect.cleandoc(docstring or ""), re.MULTILINE | re.DOTALL
    )
    entries = re.split(r"^(\S.*?) : .*\n", section[1], flags=re.MULTILINE)[1:] if section else []
    for names, text in zip(entries[::2], entries[1::2], strict=True):
        sentence = re.split(r"[.;:](?:\s|$)", " ".join(text.split()))[0]
        yield from ((name, sentence) for name in names.split(", "))


def callables():
    """Exported classes and functions, and methods of these classes, each once, by their names."""
    for name in sklearn_mcsg.__all__:
        value = getattr(sklearn_mcsg, name)
        if callable(value):
            yield name, value
        if inspect.isclass(value):
            members = (getattr(value, member) for member in dir(value) if not member.startswith("_"))
            own = (member for member in members if getattr(member, "__module__", "").startswith("sklearn_mcsg"))
            yield from ((member.__qualname__, member) for member in own if callable(member))


CALLABLES = dict(callables())
MEANINGS = defaultdict(lambda: defaultdict(list))
for place, function in CALLABLES.items():
    for parameter, meaning in described(function.__doc__):
        if meaning not in ("Ignored", OVERRIDES.format(parameter)):
            MEANINGS[parameter][meaning].append(place)
USES = {parameter: sum(map(len, meanings.values())) for parameter, meanings in MEANINGS.items()}


def test_docstrings_are_read():
    text = """Do it.

    Parameters
    ----------
    a, b : int
        Numbers: both
        whole.
    *c : list of str, default=None
        Names, e.g.the first; or none.

    Returns
    -------
    d : int
        A number.
    """
    assert list(described(text)) == [("a", "Numbers"), ("b", "Numbers"), ("*c", "Names, e.g.the first")]
    assert not list(described("Nothing."))
    assert USES["n_jobs"] > 10
    assert "GroupNeighbors.kneighbors" in CALLABLES


@pytest.mark.parametrize("name", sorted(name for name, uses in USES.items() if uses > 1))
def test_the_same_parameter_has_the_same_meaning(name):
    meanings = MEANINGS[name]
    assert len(meanings) == 1 or name in SEVERAL, dict(meanings)


@pytest.mark.parametrize("name", sorted(SEVERAL))
def test_the_page_lists_parameters_that_have_several_meanings(name):
    assert len(MEANINGS[name]) > 1
    assert name not in SHARED


def defaults_of(name):
    """The default of a parameter in each place that has one."""
    places = (place for places in MEANINGS[name].values() for place in places)
    parameters = {place: inspect.signature(CALLABLES[place]).parameters.get(name) for place in places}
    return {
        place: one.default for place, one in parameters.items() if one and one.default is not inspect.Parameter.empty
    }


def is_shared(name):
    """Whether at least two exported classes or functions have a parameter with a default; methods do not count."""
    return sum("." not in place for place in defaults_of(name)) > 1


@pytest.mark.parametrize("name", sorted(filter(is_shared, MEANINGS)))
def test_the_page_lists_shared_parameters(name):
    assert name in SHARED or name in SEVERAL


@pytest.mark.parametrize("name", sorted(SHARED))
def test_the_page_gives_the_meaning_of_a_shared_parameter(name):
    assert [SHARED[name][0].replace("``", "`")] == [meaning.replace("``", "`") for meaning in MEANINGS[name]]


@pytest.mark.parametrize("name", sorted(SHARED))
def test_the_page_gives_the_defaults_of_a_shared_parameter(name):
    _, default, elsewhere = SHARED[name]
    expected = literal_eval(*literals(default))
    others = {}
    for value, places in re.findall(r"``([^`]+)`` in ((?:``[\w.]+``(?:, | and )?)+)", elsewhere):
        others |= dict.fromkeys(literals(places), literal_eval(value))
    found = defaults_of(name)
    assert {place: given for place, given in found.items() if given != expected} == others
    assert expected in found.values()
