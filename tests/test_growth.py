"""An index that grows stays good: it learns again, and finds what a new index of the same groups finds."""

import math
import tracemalloc
from copy import copy

import numpy as np
import pytest
from conftest import random_groups, traces_memory
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_mcsg import (
    GroupEmbedding,
    GroupNeighbors,
    ModelComparisonSimilarity,
    TextSearch,
    WordMoversDistance,
    make_text_embedding,
    update_index,
)
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.search import indexed
from sklearn_mcsg.text import tokenize


def made_texts(n, seed=0):
    """Random texts: two thirds of the words of each are of one topic of the bundled texts."""
    texts, topics = load_short_texts(return_X_y=True)
    words = np.array([word for text in texts for word in tokenize(text)])
    topic = np.array([y for text, y in zip(texts, topics, strict=True) for _ in tokenize(text)])
    own = [words[topic == name] for name in sorted(set(topics))]
    rng = np.random.default_rng(seed)

    def made():
        some, k = own[rng.integers(len(own))], rng.integers(6, 18)
        return " ".join([*some[rng.integers(len(some), size=k)], *words[rng.integers(len(words), size=k // 2)]])

    return [made() for _ in range(n)]


TEXTS = made_texts(10_000)
GLOVE, DEFAULT = "glove-6b-50d", ("wordllama", "glove-6b-50d")


def embedded(vectors, n=None):
    """An embedding, and the groups of texts by the same vectors."""
    vectorizer, embedding = make_text_embedding(vectors=vectors)
    return embedding, vectorizer.fit_transform(TEXTS[:n])


EMBEDDING, GROUPS = embedded(GLOVE)  # which has a sixth of the coordinates of the default


def shared(index, other, groups=GROUPS, n_queries=100, k=10):
    """Share of the nearest groups of some indexed groups that two indexes agree on."""
    n = index.n_groups_
    k = min(k, n - 1)
    queries = groups[np.random.default_rng(n).permutation(n)[:n_queries]]
    pairs = zip(*(one.kneighbors(queries, k, return_distance=False) for one in (index, other)), strict=True)
    return np.mean([np.isin(a, b).mean() for a, b in pairs])


@pytest.mark.parametrize(("vectors", "start"), [(GLOVE, 3), (GLOVE, 100), (GLOVE, 1000), (DEFAULT, 1000)])
def test_a_grown_index_finds_what_a_new_one_finds(vectors, start):
    """Also just before it learns again; after that they are the same."""
    embedding, groups = (EMBEDDING, GROUPS) if vectors == GLOVE else embedded(vectors, 1800)
    index = GroupNeighbors(embedding).fit(groups[:start])
    n_learnt, compared, agreed = start, 0, []

    def agreement(n):
        """Grow to n groups, and compare with a new index of these."""
        if n > index.n_groups_:
            index.partial_fit(groups[index.n_groups_ : n])
        return shared(index, GroupNeighbors(embedding, growth=None).fit(groups[:n]), groups)

    while index.n_groups_ < len(groups):
        learnt = index.similarity_
        last = min(len(groups), n_learnt + math.ceil(n_learnt * min(1, n_learnt / 6000)) - 1)  # before it learns again
        if n_learnt > 1.2 * compared:
            compared = n_learnt
            agreed.append([agreement(n) for n in (n_learnt, (n_learnt + last) // 2, last)])
        elif last > n_learnt:
            index.partial_fit(groups[index.n_groups_ : last])
        assert index.similarity_ is learnt
        if last < len(groups):
            index.partial_fit(groups[last : last + 1])
            assert index.similarity_ is not learnt
        n_learnt = last + 1
    after, _, before = np.transpose(agreed)
    assert min(after) > 0.999
    assert min(before) >= 0.9
    assert np.mean(agreed) >= 0.95


def test_learning_again_is_learning_from_all_groups():
    """Whatever came first, and however it was kept."""
    new = GroupEmbedding(whiten=0.5, prior_strength=0.5).fit(GROUPS[:300])
    index = GroupNeighbors(new).fit(GROUPS[:20])
    for some in (slice(20, 21), slice(21, 100), slice(100, 300)):
        index.partial_fit(GROUPS[some])
    expected = new.transform(GROUPS[:30])
    found = index.similarity_.transform(GROUPS[:30])
    assert_allclose(np.abs(found), np.abs(expected), atol=1e-5)  # in single precision
    assert_allclose(
        index.kneighbors(GROUPS[:9], 5)[0], GroupNeighbors(new).fit(GROUPS[:300]).kneighbors(GROUPS[:9])[0], atol=1e-5
    )


@pytest.mark.parametrize("likelihood", ["diag", "spherical", "full", "vmf", "trend"])
def test_every_likelihood_learns_again(likelihood, make_groups):
    X = make_groups(120, 3, (3, 9), weighted=True)
    embedding = GroupEmbedding(likelihood, prior_strength=0.5)
    index = GroupNeighbors(embedding, n_neighbors=4).fit(X[:10]).partial_fit(X[10:60]).partial_fit(X[60:])
    assert_allclose(
        index.kneighbors(X[:9])[0], GroupNeighbors(embedding, n_neighbors=4).fit(X).kneighbors(X[:9])[0], atol=1e-9
    )


def test_landmarks_learn_again(make_groups):
    pytest.importorskip("ot")
    X = make_groups(40, 3, (3, 6))
    embedding = GroupEmbedding(WordMoversDistance(), random_state=0)
    index = GroupNeighbors(embedding, n_neighbors=4).fit(X[:10]).partial_fit(X[10:25]).partial_fit(X[25:])
    assert_allclose(
        index.kneighbors(X[:9])[0], GroupNeighbors(embedding, n_neighbors=4).fit(X).kneighbors(X[:9])[0], atol=1e-9
    )


def test_a_window_that_moves_learns_again():
    """As many groups leave as come: the number of groups stays the same, but none of them is known."""
    index = GroupNeighbors(EMBEDDING).fit(GROUPS[:60])
    for start in range(0, 60, 10):
        index.partial_fit(GROUPS[60 + start : 70 + start]).remove(np.arange(10))
    new = GroupNeighbors(EMBEDDING).fit(GROUPS[60:120])
    index.partial_fit(GROUPS[120:121]).remove([60])
    index.partial_fit(GROUPS[120:123]).remove(np.arange(60, 63))
    assert_array_equal(index.n_groups_, 60)
    agreed = np.mean(
        [np.isin(a, b).mean() for a, b in zip(*(i.kneighbors(GROUPS[60:120], 5)[1] for i in (index, new)), strict=True)]
    )
    assert agreed > 0.9


@pytest.mark.parametrize("algorithm", ["exact", "approximate"])
def test_a_saved_index_learns_again(algorithm, tmp_path):
    index = GroupNeighbors(EMBEDDING, algorithm=algorithm).fit(GROUPS[:200])
    index.partial_fit(GROUPS[200:210]).save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index", mmap_mode="r")
    learnt = loaded.similarity_
    loaded.partial_fit(GROUPS[210:215])
    assert loaded.similarity_ is learnt
    loaded.partial_fit(GROUPS[215:225])
    assert loaded.similarity_ is not learnt
    new = GroupNeighbors(EMBEDDING, algorithm=algorithm).fit(GROUPS[:225])
    assert shared(loaded, new) > 0.999


def test_candidates_of_a_similarity_are_learnt_again():
    similarity = ModelComparisonSimilarity(output="centered", prior_strength=0.5, random_state=0)
    X = GROUPS[:1500]
    index = GroupNeighbors(similarity, n_neighbors=10, algorithm="approximate", n_candidates=20).fit(X[:30])
    for start in range(30, 1500, 245):
        index.partial_fit(X[start : start + 245])
    new = GroupNeighbors(similarity, n_neighbors=10, algorithm="approximate", n_candidates=20).fit(X)
    old = GroupNeighbors(similarity, n_neighbors=10, algorithm="approximate", n_candidates=20, growth=None).fit(X[:30])
    old.partial_fit(X[30:])
    grown, fresh, stale = (one.recall(n_queries=100, random_state=0) for one in (index, new, old))
    assert grown > fresh - 0.05 > stale + 0.05


# P-values -----------------------------------------------------------------------------------------------------------


def test_pvalues_are_drawn_again_when_groups_are_added():
    index = GroupNeighbors(EMBEDDING, n_neighbors=59).fit(GROUPS[:60])
    first = index.kneighbors(return_pvalue=True)[2]
    index.partial_fit(GROUPS[60:600])
    p = index.kneighbors(n_neighbors=599, return_pvalue=True)[2]
    assert 0.04 < np.mean(p <= 0.05) < 0.06
    assert first.min() >= 1 / (1 + 60 * 59 / 2) > p.min()


def test_an_embedding_that_learns_again_is_not_calibrated():
    index = GroupNeighbors(EMBEDDING).fit(GROUPS[:60])
    index.similarity_.calibrate(GROUPS[:60])
    assert index.partial_fit(GROUPS[60:200]).similarity_._null is None


# Texts --------------------------------------------------------------------------------------------------------------


def test_a_search_of_texts_learns_again(tmp_path):
    search = TextSearch(words=None).fit(TEXTS[:3])
    for start in range(3, 300, 27):
        search.partial_fit(TEXTS[start : start + 27])
    storage_path = tmp_path / "index"
    update_index(storage_path, TextSearch(words=None), TEXTS[:3])
    updated = update_index(storage_path, TextSearch(words=None), TEXTS[:300])
    assert updated.n_reused == 3
    new = TextSearch(words=None).fit(TEXTS[:300])
    expected = new.search(TEXTS[:50], 10).indices
    for grown in (search, updated.index):
        found = grown.search(TEXTS[:50], 10).indices
        assert np.mean([np.isin(a, b).mean() for a, b in zip(found, expected, strict=True)]) > 0.9


def test_a_copy_of_a_search_grows_alone():
    search = TextSearch().fit(TEXTS[:100])
    before = search.search(TEXTS[:5])
    copy(search).partial_fit(TEXTS[100:300])
    for a, b in zip(before, search.search(TEXTS[:5]), strict=True):
        assert_array_equal(a, b)


# Without sources ----------------------------------------------------------------------------------------------------


def test_an_index_without_sources_warns_when_it_has_doubled(tmp_path):
    GroupNeighbors(EMBEDDING, growth=None).fit(GROUPS[:100]).save(tmp_path / "index")
    index = GroupNeighbors.load(tmp_path / "index")
    index.partial_fit(GROUPS[100:199])
    with pytest.warns(
        UserWarning, match="learnt from 100 groups, and 100 were added since: its neighbours become worse"
    ):
        index.partial_fit(GROUPS[199:200])


def test_an_index_without_sources_cannot_be_told_to_learn_again():
    index = GroupNeighbors(EMBEDDING, growth=None).fit(GROUPS[:100]).set_params(growth=2.0)
    index.partial_fit(GROUPS[100:101])
    with pytest.raises(ValueError, match=r"100 groups, and 51 were added since: .*nothing was kept to learn from"):
        index.partial_fit(GROUPS[101:151])
    assert index.n_groups_ == 101


@pytest.mark.parametrize("growth", [1.0, 0, -2, "2", np.nan])
def test_bad_growth(growth):
    with pytest.raises(ValueError, match="growth"):
        GroupNeighbors(EMBEDDING, growth=growth).fit(GROUPS[:5])


# What it costs ------------------------------------------------------------------------------------------------------


def test_learning_is_amortised(monkeypatch):
    """Groups that are embedded again, from 2 to 500 groups one by one, and from there on by doubling."""
    embedded = []
    learn_again = indexed.learn_again

    def counted(embedding, sources, dtype):
        embedded.append(len(sources))
        return learn_again(embedding, sources, dtype)

    monkeypatch.setattr(indexed, "learn_again", counted)
    groups = random_groups(10_000, 2, (2, 4))  # when it learns depends on the number of groups alone
    index = GroupNeighbors(GroupEmbedding(prior_strength=0.5)).fit(groups[:2])
    for n in range(2, 500):
        index.partial_fit(groups[n : n + 1])
    for n in range(500, 10_000, 500):
        index.partial_fit(groups[n : n + 500])
    assert len(embedded) < 140
    assert sum(embedded) < 3.5 * 10_000


@traces_memory
@pytest.mark.parametrize("vectors", [GLOVE, DEFAULT])
def test_sources_of_texts_take_less_than_their_statistics(vectors):
    vectorizer, embedding = make_text_embedding(vectors=vectors)
    groups = vectorizer.fit_transform(TEXTS[:4000])
    tracemalloc.start()
    index = GroupNeighbors(embedding).fit(groups)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    points = index.n_groups_ * index.similarity_.n_components_ * 4
    n_coordinates = 3 * groups.n_features  # means, variances and slopes
    axes = 2 * 8 * n_coordinates**2  # components and scatter
    assert kept < points + axes + 0.3 * 8 * n_coordinates * len(groups)
