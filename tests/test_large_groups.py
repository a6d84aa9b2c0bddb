"""One large group: read in pieces, it has the same statistics in little memory, whatever it is made of."""

import tracemalloc

import numpy as np
import pytest
import sklearn
from conftest import COMBINATIONS, traces_memory
from numpy.testing import assert_allclose

from sklearn_mcsg import LIKELIHOODS, EmbeddingVectorizer, GroupEmbedding, Groups, ModelComparisonSimilarity
from sklearn_mcsg.groups.blocks import block_rows
from sklearn_mcsg.groups.regroup import condensed
from sklearn_mcsg.text import _tokens as tokens

every_combination = pytest.mark.parametrize(("likelihood", "criterion"), COMBINATIONS)


def one_large(n_rows, n_features=5, weighted=False, seed=0):
    """A large group between small ones."""
    rng = np.random.default_rng(seed)
    sizes = np.array([3, n_rows, 1, 6])
    weights = rng.uniform(0, 2, sizes.sum()) if weighted else None
    vectors = rng.normal(size=(sizes.sum(), n_features)) * (1 + np.arange(n_features)) + 2
    return Groups(vectors, np.concatenate([[0], np.cumsum(sizes)]), weights=weights)


@every_combination
@pytest.mark.parametrize("weighted", [False, True])
def test_pieces_make_the_whole(likelihood, criterion, weighted):
    groups = one_large(400, weighted=weighted)
    model = ModelComparisonSimilarity(likelihood, criterion, prior_strength=0.5)
    whole = model.fit_transform(groups), model.score_samples(groups)
    with sklearn.config_context(working_memory=0.01):
        assert 10 < block_rows(groups) < 100
        pieces = model.fit_transform(groups), model.score_samples(groups)
    for a, b in zip(whole, pieces, strict=True):
        assert_allclose(b, a, rtol=1e-9, atol=1e-8)


@every_combination
@pytest.mark.parametrize("weighted", [False, True])
def test_repeated_rows_of_a_table_are_counted(likelihood, criterion, weighted):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(30, 4)) + 1
    sizes = np.array([2, 0, 500, 5, 300, 4])
    indices = rng.integers(30, size=sizes.sum())
    weights = rng.uniform(0.1, 2, sizes.sum()) if weighted else None
    groups = Groups(table, np.concatenate([[0], np.cumsum(sizes)]), indices=indices, weights=weights)
    spread = Groups(table[indices], groups.offsets, weights=weights)
    model = ModelComparisonSimilarity(likelihood, criterion, prior_strength=0.5)
    expected = model.fit_transform(spread)
    with sklearn.config_context(working_memory=0.01):
        short = condensed(groups)
        assert short.sizes.tolist() == [2, 0, 30, 5, 30, 4]
        assert_allclose(short.totals, groups.totals)
        assert_allclose(model.fit_transform(groups), expected, rtol=1e-9, atol=1e-8)
    assert condensed(groups) is groups, "small groups stay as they are"


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_embedding_of_a_large_group(likelihood):
    groups = one_large(400)
    whole = GroupEmbedding(likelihood, prior_strength=0.5).fit_transform(groups)
    with sklearn.config_context(working_memory=0.01):
        assert_allclose(
            np.abs(GroupEmbedding(likelihood, prior_strength=0.5).fit_transform(groups)), np.abs(whole), atol=1e-7
        )


@traces_memory
@every_combination
def test_memory_does_not_grow_with_the_group(likelihood, criterion):
    groups = one_large(100_000, n_features=10)
    model = ModelComparisonSimilarity(likelihood, criterion, prior_strength=0.5)
    model.fit(groups[[0, 2]])
    tracemalloc.start()
    model.fit(groups)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2**20, "one copy of the vectors takes 7.6 MiB more than these pieces"


# Texts --------------------------------------------------------------------------------------------------------------

SAMPLE = (
    "They don't pay $1,000.50 in the U.S. - it's well-known... \u201cna\u00efve cafe\u0301\u201d\tat 5 o'clock\n"
    "\u0643\u0644\u0628 \u732b \U0001f431 a\u00a0b 90-day 20th  2/3 "
)


@pytest.mark.parametrize("size", [1, 7, 40])
def test_tokens_of_pieces_are_those_of_the_text(size, monkeypatch):
    text = SAMPLE * 5
    expected = tokens.tokenize(text)
    monkeypatch.setattr(tokens, "CHARACTERS", size)
    parts = list(tokens.pieces(text))
    assert "".join(parts) == text
    assert len(parts) > 5
    assert [token for part in parts for token in tokens.tokenize(part)] == expected
    assert list(tokens.pieces("x" * 100)) == ["x" * 100]


@traces_memory
def test_a_long_text_takes_little_memory(monkeypatch):
    vectors = {
        word: np.random.default_rng(i).normal(size=8) for i, word in enumerate(["the", "cat", "sat", "on", "a", "mat"])
    }
    text = "The cat sat on a big mat. " * 40_000  # a million characters, 280,000 tokens
    monkeypatch.setattr(tokens, "CHARACTERS", 2**14)
    vectorizer = EmbeddingVectorizer(vectors, frequencies=None).fit(["the cat"])
    tracemalloc.start()
    groups = vectorizer.transform([text, "a cat"])
    ModelComparisonSimilarity(prior_strength=0.5).fit(groups)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert groups.sizes.tolist() == [280_000, 2]
    assert peak < 48 * 280_000, "less than the token strings alone would take"
