"""Nothing is derived twice: texts, comparisons, points."""

from collections import Counter
from pathlib import Path

import pytest

import sklearn_mcsg
from sklearn_mcsg import ModelComparisonSimilarity
from sklearn_mcsg.cli import main
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.likelihoods import DiagonalGaussian, TrendGaussian
from sklearn_mcsg.text import _duplicates, _tokenised, sources, tokenize, wording
from sklearn_mcsg.text import _static as static
from sklearn_mcsg.text._lookup import TokenRows

PACKAGE = Path(sklearn_mcsg.__file__).parent


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
    count(TrendGaussian, "statistics", len)
    count(ModelComparisonSimilarity, "_new_comparison")
    return found


TEXTS = PACKAGE / "datasets" / "short_texts.csv"


@pytest.fixture
def readings(monkeypatch):
    """Counts texts that are split into tokens, texts that are folded, and look-ups of distinct tokens in a table."""
    found = Counter()

    def count(place, name, wrapped=lambda function: function):
        original = getattr(place, name)

        def counted(*args):
            found[name] += 1
            return original(*args)

        monkeypatch.setattr(place, name, wrapped(counted))

    count(_tokenised, "tokenize")
    count(TokenRows, "of", staticmethod)
    original = wording.FOLDED.tokenizer
    folded = wording.FOLDED._replace(tokenizer=lambda text: found.update(fold=1) or original(text))
    monkeypatch.setattr(_duplicates, "FOLDED", folded)
    return found


@pytest.fixture
def split(monkeypatch):
    """Counts how often each word is given to the tokenizer of a static model."""
    found = Counter()
    original = static._encoded
    sources._installed.cache_clear()
    monkeypatch.setattr(static, "_encoded", lambda *args: found.update(args[-1]) or original(*args))
    yield found
    sources._installed.cache_clear()


def different_words(texts):
    """Once each, without punctuation."""
    return Counter({token for text in texts for token in tokenize(text) if any(map(str.isalnum, token))})


@pytest.mark.parametrize(
    ("arguments", "expected", "others"),
    [
        (["dedupe", TEXTS], {"fold": 360}, None),
        (["dedupe", TEXTS, "--threshold", "0.6"], {"tokenize": 360, "fold": 360, "of": 1}, []),
        (
            ["search", TEXTS, "my puppy is ill", "my storm is ill"],
            {"tokenize": 360 + 2, "of": 2},
            ["my puppy is ill", "my storm is ill"],
        ),
        (["search", TEXTS, "my puppy is ill", "--exact"], {"tokenize": 360 + 1, "of": 2}, ["my puppy is ill"]),
        (["cluster", TEXTS, "--report", "report.html"], {"tokenize": 360, "of": 1}, []),
        (["segment", TEXTS], {"tokenize": 360, "of": 1}, []),
        (["compare", "a cat", "a kitten", "--corpus", TEXTS], {"tokenize": 360 + 2, "of": 2}, []),
    ],
    ids=lambda value: value[0] if isinstance(value, list) and value else "",
)
def test_texts_are_tokenised_and_looked_up_once(arguments, expected, others, readings, split, tmp_path, monkeypatch):
    """Words are split into pieces once: those of the corpus, and those of queries if one has a word that it lacks."""
    monkeypatch.chdir(tmp_path)
    assert main([*map(str, arguments), "--quiet", "--format", "json"]) == 0
    assert readings == expected
    assert split == ({} if others is None else different_words(load_short_texts().data) + different_words(others))


@pytest.mark.parametrize("likelihood", [[], ["--likelihood", "diag"]], ids=["default", "diag"])
def test_points_of_texts_are_computed_once(likelihood, calls):
    assert main(["cluster", str(TEXTS), *likelihood, "--quiet", "--format", "json"]) == 0
    sizes = [size for name, size in calls if name == "statistics"]
    assert sizes == [360] * 3, "two passes to learn the embedding, and one for the points"


@pytest.mark.parametrize("call", ["pairwise", "paired", "score_samples", "explain", "paired_test"])
def test_an_unfitted_similarity_builds_one_comparison(call, calls, make_groups):
    X, Y = make_groups(3, 4), make_groups(3, 4, seed=1)
    arguments = {"score_samples": (X,), "explain": (X[0], Y[0]), "paired_test": (X[0], Y[0])}.get(call, (X, Y))
    getattr(ModelComparisonSimilarity(), call)(*arguments)
    assert [name for name, _ in calls].count("_new_comparison") == 1
