"""What is installed, and with what."""

import re
import runpy
import tomllib
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

import pytest

import sklearn_mcsg

ROOT = Path(__file__).parents[1]


def test_oldest_versions_are_the_bounds_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = dict(dependency.split(">=") for dependency in project["dependencies"])
    extras = project["optional-dependencies"]
    versions = [re.match(r"([\w-]+)[>=]=([\w.]+)", name) for name in extras["text"] + extras["large"]]
    optional = dict(version.groups() for version in versions if version)
    pins = dict(re.findall(r"^(\S+)==(\S+)$", (ROOT / "tests" / "oldest.txt").read_text(), flags=re.MULTILINE))
    assert pins.keys() == required.keys() | optional.keys()
    for name, bound in {**optional, **required}.items():
        assert f"{pins[name]}.".startswith(f"{bound}."), name


@pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="the workplace is not part of the archives")
def test_the_recipe_and_the_workflow_say_what_the_project_says(monkeypatch):
    release = runpy.run_path(str(ROOT / ".ci" / "check_release.py"))
    assert release["check_copies"]() == []
    read = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path, **kw: read(path, **kw).replace("numpy >=1.26", "numpy >=1.25"))
    assert release["check_copies"]() == ["the recipe and pyproject.toml require different versions"]


def test_what_the_package_holds():
    package = files("sklearn_mcsg")
    assert (package / "py.typed").is_file()
    assert (package / "datasets" / "short_texts.csv").is_file()
    scripts = [f"{name}.js" for name in ("data", "tree", "map", "clusters", "pair", "page")]
    for name in ("page.html", "page.css", *scripts):
        assert (package / "report" / "templates" / name).is_file()


def test_command_is_installed():
    (command,) = entry_points(group="console_scripts", name="mcsg")
    assert command.load() is sklearn_mcsg.cli.main


def test_public_names():
    assert len(sklearn_mcsg.__all__) == len(set(sklearn_mcsg.__all__))
    for name in sklearn_mcsg.__all__:
        assert getattr(sklearn_mcsg, name) is not None


def test_every_promise_names_a_test():
    """Each row of the tables in SECURITY.md ends with tests that exist."""
    lines = (ROOT / "SECURITY.md").read_text(encoding="utf8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) > 15
    for row in rows:
        named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", row)
        assert named, row
        for file, name in named:
            assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf8"), name
