"""The shape of the package: imports point one way, and texts and comparisons are not derived twice."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import sklearn_mcsg
from sklearn_mcsg import ModelComparisonSimilarity
from sklearn_mcsg.cli import main
from sklearn_mcsg.likelihoods import DiagonalGaussian
from sklearn_mcsg.text import _duplicates, _tokenised, wording

PACKAGE = Path(sklearn_mcsg.__file__).parent

# A module may import those above it, and those on its own line if they come first. `doc/developing.rst` draws this.
DRAWING = """
    _version _sklearn _checks
    groups _arrays _validation _folder storage
    priors
    likelihoods.kernels likelihoods.segment_kernels likelihoods.bessel likelihoods.normal likelihoods.statistics
    likelihoods.base
    likelihoods.diagonal likelihoods.spherical likelihoods.full likelihoods.vmf likelihoods
    criteria
    engine engine.blocks engine.arrays engine.parallel engine.prepared engine.outputs engine.dispatch engine.comparison
    engine.learnt engine.coordinates
    explanation pair_explanation calibration
    _cosine candidates
    _fitted _estimator base
    baselines similarity
    embedded _landmarks embedding
    pairs _search neighbors partitions duplicates _dendrogram _merging clustering communities hierarchy
    _classes classification _sequence segmentation
    text.tokens text.files text.static text.tables text.frequencies text.spelling text.wording text.lookup
    text.vectorizer text.recipes text.calibration text.duplicates text.terms text.summaries text.clusters text.words
    text.search text.indexes text
    datasets
    report.packing report.layout report.vocabulary report.content report.page report
    cli.terminal cli.corpus cli.shared cli.compare cli.search cli.cluster cli.dedupe cli.evaluate cli.options cli
    __main__
"""
ORDER = DRAWING.split()


def module_name(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {
    module_name(path): path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem != "__init__"
}


def imported(path):
    """Modules of the package that a file imports anywhere, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.split(".")[0] == "sklearn_mcsg":
                inner = name.removeprefix("sklearn_mcsg").removeprefix(".")
                yield inner if inner in MODULES else inner.rpartition(".")[0]


def test_every_module_has_its_place():
    assert sorted(ORDER) == sorted(MODULES)


@pytest.mark.parametrize("name", ORDER)
def test_imports_point_one_way(name):
    allowed = set(ORDER[: ORDER.index(name)])
    # a saved index may name any public class, which the lazy package then imports
    allowed |= {""} if name == "storage" else set()
    wrong = sorted(other for other in imported(MODULES[name]) if other not in allowed)
    assert not wrong


def own_names(tree):
    """Names that a module defines: functions, classes, fields and attributes that it sets."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


@pytest.mark.parametrize("name", ORDER)
def test_nothing_reaches_into_anothers_privates(name):
    tree = ast.parse(MODULES[name].read_text(encoding="utf8"))
    own = {"_parameter_constraints", *own_names(tree)}  # scikit-learn's name for the first
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            assert itself or node.attr in own, f"line {node.lineno}: {node.attr}"
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "sklearn":
            assert name == "_sklearn" or "._" not in node.module, f"line {node.lineno}: {node.module}"


@pytest.fixture
def calls(monkeypatch):
    """Counts calls of methods, with the length of what they were given."""
    found = []

    def count(cls, method, size=lambda *_: None):
        original = getattr(cls, method)

        def counted(self, *args, **kwargs):
            found.append((method, size(*args)))
            return original(self, *args, **kwargs)

        monkeypatch.setattr(cls, method, counted)

    count(DiagonalGaussian, "statistics", len)
    count(ModelComparisonSimilarity, "_new_comparison")
    return found


TEXTS = PACKAGE / "datasets" / "short_texts.csv"


@pytest.fixture
def readings(monkeypatch):
    """Counts texts that are split into tokens, texts that are folded, and look-ups of distinct tokens in a table."""
    found = Counter()

    def count(place, name):
        original = getattr(place, name)

        def counted(*args):
            found[name] += 1
            return original(*args)

        monkeypatch.setattr(place, name, counted)

    count(_tokenised, "tokenize")
    count(_tokenised, "_own_rows")
    original = wording.FOLDED.tokenizer
    folded = wording.FOLDED._replace(tokenizer=lambda text: found.update(fold=1) or original(text))
    monkeypatch.setattr(_duplicates, "FOLDED", folded)
    return found


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["dedupe", TEXTS], {"tokenize": 360, "fold": 360, "_own_rows": 1}),
        (["search", TEXTS, "my puppy is ill", "a storm"], {"tokenize": 360 + 2, "_own_rows": 2}),
        (["search", TEXTS, "my puppy is ill", "--exact"], {"tokenize": 360 + 1, "_own_rows": 2}),
        (["cluster", TEXTS, "--report", "report.html"], {"tokenize": 360, "_own_rows": 1}),
        (["compare", "a cat", "a kitten", "--corpus", TEXTS], {"tokenize": 360 + 2, "_own_rows": 2}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_texts_are_tokenised_and_looked_up_once(arguments, expected, readings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*map(str, arguments), "--quiet", "--format", "json"]) == 0
    assert readings == expected


def test_points_of_texts_are_computed_once(calls):
    assert main(["cluster", str(TEXTS), "--quiet", "--format", "json"]) == 0
    sizes = [size for name, size in calls if name == "statistics"]
    assert sizes == [360] * 3, "two passes to learn the embedding, and one for the points"


@pytest.mark.parametrize("call", ["pairwise", "paired", "score_samples", "explain", "paired_test"])
def test_an_unfitted_similarity_builds_one_comparison(call, calls, make_groups):
    X, Y = make_groups(3, 4), make_groups(3, 4, seed=1)
    arguments = {"score_samples": (X,), "explain": (X[0], Y[0]), "paired_test": (X[0], Y[0])}.get(call, (X, Y))
    getattr(ModelComparisonSimilarity(), call)(*arguments)
    assert [name for name, _ in calls].count("_new_comparison") == 1


def test_imports_inside_functions_are_seen(tmp_path):
    file = tmp_path / "module.py"
    file.write_text("def f():\n    from sklearn_mcsg.engine import blocks\n    import sklearn_mcsg.text._tokens\n")
    assert list(imported(file)) == ["engine.blocks", "text._tokens"]
