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
from sklearn_mcsg.text.wording import fold

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


@pytest.mark.parametrize("split", [tokens.tokenize, fold])
@pytest.mark.parametrize("size", [50, 99, 400])
def test_tokens_of_pieces_are_those_of_the_text(size, split, monkeypatch):
    text = SAMPLE * 60
    expected = split(text)
    monkeypatch.setattr(tokens, "CHARACTERS", size)
    parts = list(tokens.pieces(text))
    assert "".join(parts) == text
    assert len(parts) > 5
    assert max(map(len, parts)) <= 2 * size
    assert [token for part in parts for token in split(part)] == expected


@pytest.mark.parametrize("unit", ["x", "\u732b", "\u0301", "1,", "a ", "\u044f ", "a\u2028"])
def test_no_piece_is_long(unit, monkeypatch):
    monkeypatch.setattr(tokens, "CHARACTERS", 40)
    text = unit * 1000
    parts = list(tokens.pieces(text))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= 80
    assert min(map(len, parts[:-1])) >= 40


WORDS = ["the", "cat", "sat", "on", "a", "mat"]


def drawn(letters):
    return "".join(np.random.default_rng(0).choice(list(letters), 333_000))


LONG = {  # a third of a million characters each
    "English": "The cat sat on a big mat. " * 13_000,
    "Russian": "Кот спит на диване. " * 17_000,
    "Chinese": "猫在垫子上睡觉。" * 42_000,
    "no spaces": drawn("abcdefghij0123456789"),
    "no spaces, Cyrillic": drawn("абвгде"),
    "marks": "a\u0301\u0323" * 111_000,
    "letters": "a " * 167_000,
    "punctuation": "。、" * 167_000,
}


@traces_memory
@pytest.mark.filterwarnings("ignore:.*have no words", "ignore:.*scripts that put no spaces between words")
@pytest.mark.filterwarnings("ignore:reg_covar=1e-06 outweighs")
@pytest.mark.parametrize("kind", LONG)
def test_a_long_text_takes_little_memory(kind, monkeypatch):
    vectors = {word: np.random.default_rng(i).normal(size=8) for i, word in enumerate(WORDS)}
    monkeypatch.setattr(tokens, "CHARACTERS", 2**13)
    vectorizer = EmbeddingVectorizer(vectors, frequencies=None).fit(["the cat"])
    n_tokens = len(tokens.tokenize(LONG[kind]))
    tracemalloc.start()
    groups = vectorizer.transform([LONG[kind], "a cat"])
    ModelComparisonSimilarity(prior_strength=0.5).fit(groups)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * 2**20 + 26 * n_tokens + 2 * len(LONG[kind]), "26 bytes per token, one batch, and one piece"
