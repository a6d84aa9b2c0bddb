"""The shape of the package: rooms, what they open to each other, and what users see."""

import ast
import re
from graphlib import TopologicalSorter
from importlib import import_module
from inspect import isclass
from pathlib import Path
from types import ModuleType

import pytest
from sklearn.base import BaseEstimator

import sklearn_mcsg
from sklearn_mcsg.similarity.estimator import GroupsEstimator

PACKAGE = Path(sklearn_mcsg.__file__).parent

# A room may import those before it. `doc/developing.rst` draws this.
DRAWING = """
    _version _sklearn _checks _memory _extras _lazy _disk
    groups storage likelihoods criteria engine
    explanation similarity embedding search clustering classification segmentation samples
    text datasets report cli __main__
"""
ROOMS = DRAWING.split()
# Most names that `dir` shows of a class beyond those of `BaseEstimator`.
SHOWN = {"ModelComparisonSimilarity": 23, "GroupNeighbors": 16, "Groups": 20, "GroupEmbedding": 14}


def module_name(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module_name(path): path for path in PACKAGE.rglob("*.py")}
TREES = {name: ast.parse(path.read_text(encoding="utf8")) for name, path in MODULES.items()}
INSIDE = sorted(name for name in MODULES if name)


def room_of(name):
    return name.split(".")[0]


def imported(tree):
    """Modules of the package that a file imports anywhere, also inside functions."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.split(".")[0] == "sklearn_mcsg":
                inner = name.removeprefix("sklearn_mcsg").removeprefix(".")
                yield inner if inner in MODULES else inner.rpartition(".")[0]


def test_every_module_is_in_a_room():
    assert sorted(ROOMS) == sorted({room_of(name) for name in INSIDE})
    assert len(list(PACKAGE.glob("*.py"))) <= 10


@pytest.mark.parametrize("name", INSIDE)
def test_imports_point_one_way(name):
    allowed = set(ROOMS[: ROOMS.index(room_of(name)) + 1])
    # a saved index may name any public class, which the lazy package then imports
    allowed |= {""} if room_of(name) == "storage" else set()
    assert {room_of(other) for other in imported(TREES[name])} <= allowed


def test_no_module_imports_itself_by_a_detour():
    TopologicalSorter({name: set(imported(TREES[name])) - {""} for name in INSIDE}).prepare()


@pytest.mark.parametrize("name", INSIDE)
def test_what_begins_with_an_underscore_is_opened_by_its_room_only(name):
    for other in imported(TREES[name]):
        is_private = any(part.startswith("_") for part in other.split(".")[1:])
        assert not is_private or room_of(other) == room_of(name), other


def own_names(tree):
    """Names that a module defines: functions, classes, fields and attributes that it sets."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


@pytest.mark.parametrize("name", INSIDE)
def test_no_room_reaches_into_anothers_privates(name):
    """Also by inheritance, but for scikit-learn's names and those of the base class of all estimators of groups."""
    own = {"_validate_params", "_parameter_constraints", *vars(GroupsEstimator)}
    own |= {defined for other in INSIDE if room_of(other) == room_of(name) for defined in own_names(TREES[other])}
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            assert node.attr in own, f"line {node.lineno}: {node.attr}"
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "sklearn":
            assert name == "_sklearn" or "._" not in node.module, f"line {node.lineno}: {node.module}"


@pytest.mark.parametrize("room", [room for room in ROOMS if (PACKAGE / room).is_dir()])
def test_a_room_says_what_comes_in_and_what_goes_out(room):
    text = " ".join(ast.get_docstring(TREES[room]).split())
    assert re.search(r"In comes? .*[;.] [Oo]ut goe?s? ", text), text


def test_nothing_is_typed_as_any_self():
    wrong = [
        f"{name}, line {node.lineno}"
        for name in INSIDE
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.arg) and node.arg == "self" and node.annotation is not None
    ]
    assert not wrong


def test_modules_are_not_exported():
    assert not [name for name in sklearn_mcsg.__all__ if isinstance(getattr(sklearn_mcsg, name), ModuleType)]
    assert 45 <= len(sklearn_mcsg.__all__) <= 55
    assert import_module("sklearn_mcsg.datasets").load_short_texts


@pytest.mark.parametrize("name", SHOWN)
def test_what_a_class_shows(name):
    shown = {member for member in dir(getattr(sklearn_mcsg, name)) if not member.startswith("_")}
    assert len(shown - set(dir(BaseEstimator))) <= SHOWN[name]


@pytest.mark.parametrize("name", sorted(set(sklearn_mcsg.__all__) - {"__version__"}))
def test_every_exported_name_is_used_by_a_page(name):
    """Pages of the guide, or the one for developers where the name is there to be extended."""
    folder = Path(__file__).parent.parent / "doc"
    pages = [*folder.glob("guide/*.rst"), folder / "developing.rst", folder / "quickstart.rst"]
    assert any(re.search(rf"\b{name}\b", page.read_text(encoding="utf8")) for page in pages)


def test_public_classes_are_documented_with_their_rooms():
    for name in sklearn_mcsg.__all__:
        value = getattr(sklearn_mcsg, name)
        assert not isclass(value) or value.__doc__, name


def test_imports_inside_functions_are_seen():
    code = "def f():\n    from sklearn_mcsg.engine import pairs\n    import sklearn_mcsg.groups.blocks\n"
    assert list(imported(ast.parse(code))) == ["engine.pairs", "groups.blocks"]
