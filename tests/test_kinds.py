"""Kinds of texts in clusters: both tests against plain definitions, their level, planted differences, bad columns."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, fisher_exact

from sklearn_mcsg import adjust_pvalues, cluster_texts, compare_samples, make_text_embedding
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.text import KindComparison, KindInCluster, _kinds

pytestmark = pytest.mark.filterwarnings("ignore:.*have no words")

TOPICS = ["cat", "dog", "mouse", "bird", "fish", "horse"], ["tax", "bank", "share", "loan", "debt", "price"]


def word_vectors():
    rng = np.random.default_rng(0)
    return {word: 4 * np.eye(2, 5)[t] + rng.normal(size=5) for t, words in enumerate(TOPICS) for word in words}


def corpus(n, seed, topic_of=lambda i: i % 2, words_of=lambda i, words: words):
    """Texts of six words; the topic, and the words that a text draws from, may depend on its number."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(words_of(i, TOPICS[topic_of(i)]), size=6)) for i in range(n)]


def clustered(texts, **params):
    return cluster_texts(texts, 2, pipeline=make_text_embedding(vectors=word_vectors(), weighting=None, **params))


@pytest.fixture(scope="module")
def planted():
    """Of 120 texts, "a" has more of the first cluster, and in the second cluster words of its own."""
    kinds = np.array(list("ab" * 60))
    texts = corpus(
        120,
        0,
        topic_of=lambda i: int(i >= (84 if kinds[i] == "a" else 36)),
        words_of=lambda i, words: words if words[0] == "cat" else words[:4] if kinds[i] == "a" else words[2:],
    )
    return clustered(texts), kinds


def test_planted_differences_are_found(planted):
    clusters, kinds = planted
    found = clusters.compare(kinds)
    assert len(found) == 2
    assert found.kinds == ["a", "b"]
    animals = 0 if "cat" in " ".join(clusters.summaries[0].words) else 1
    first, second = found[animals], found[1 - animals]
    assert (first.kind, second.kind) == ("a", "b"), "of two kinds, the one that the cluster holds more of"
    assert max(first.share_adjusted, second.share_adjusted) < 1e-4
    assert first.content_adjusted > 0.05, "animals are the same words for both kinds"
    assert second.content_adjusted == 0.002
    assert set(second.words[:2]) == {"debt", "price"}
    assert {"tax", "bank"} <= set(second.other_words)
    assert f"more {', '.join(second.words)}; less {', '.join(second.other_words)}"[:30] in repr(found)
    assert second.difference.startswith("more ")
    assert first.difference == ""
    assert "<.001" in repr(found)


@pytest.mark.parametrize("n_kinds", [2, 3])
def test_both_tests_by_their_definitions(planted, n_kinds):
    clusters, _ = planted
    kinds = np.array(list("abc"))[np.random.default_rng(1).integers(n_kinds, size=120)]
    found = clusters.compare(kinds, n_permutations=99, random_state=3)
    assert len(found) == (2 if n_kinds == 2 else 6)
    state, order = np.random.RandomState(3), {}
    for cluster in range(2):  # what is drawn before the divisions
        order[cluster] = state.permutation(np.flatnonzero(clusters.labels == cluster))
    for row in found:
        inside, own = clusters.labels == row.cluster, kinds == row.kind
        table = [[(i & o).sum() for o in (own, ~own)] for i in (inside, ~inside)]
        assert_allclose(row.share_pvalue, fisher_exact(table).pvalue)
        assert row.n_texts == table[0][0]
        assert_allclose([row.share, row.share_elsewhere], [own[inside].mean(), own[~inside].mean()])
        groups = clusters.groups
        expected = compare_samples(
            groups[np.flatnonzero(inside & own)],
            groups[np.flatnonzero(inside & ~own)],
            similarity=clusters.pipeline[-1],
            n_permutations=99,
            random_state=state,
        )
        assert row.content_pvalue == expected.pvalue
        assert set(row.words + row.other_words) <= set(expected.words)
    for name in ("share", "content"):
        pvalues = [getattr(row, f"{name}_pvalue") for row in found]
        assert_array_equal([getattr(row, f"{name}_adjusted") for row in found], adjust_pvalues(pvalues))


def test_nothing_is_found_where_kinds_mean_nothing():
    """Of 60 runs at level .2, more than 21 have a corrected p-value up to it with a chance of 1 %."""
    shares, contents = [], []
    for seed in range(60):
        kinds = np.random.default_rng(seed).choice(["x", "y"], size=40)
        found = clustered(corpus(40, seed)).compare(kinds, n_permutations=99, random_state=seed)
        shares.append(min(row.share_adjusted for row in found))
        contents.append(np.nanmin([row.content_adjusted for row in found]))
    most = binom.ppf(0.99, 60, 0.2)
    for smallest in (shares, contents):
        assert np.count_nonzero(np.array(smallest) <= 0.2) <= most


def test_too_few_texts_of_a_kind_are_not_compared(planted):
    clusters, _ = planted
    kinds = np.full(120, "many", dtype=object)
    kinds[clusters.summaries[0].members[0]] = "rare"
    found = clusters.compare(kinds)
    assert np.isnan([row.content_pvalue for row in found]).all()
    assert np.isnan([row.content_adjusted for row in found]).all()
    assert all(row.words == row.other_words == [] for row in found)
    assert "  -" in repr(found)


def test_texts_without_words_and_one_cluster():
    texts = [*corpus(30, 0), "", ""]
    clusters = cluster_texts(texts, 1, pipeline=make_text_embedding(vectors=word_vectors(), weighting=None))
    found = clusters.compare(["a", "b"] * 16, n_permutations=19)
    (row,) = found
    assert "Kinds of texts in 1 cluster. " in repr(found)
    assert row.share_pvalue == 1
    assert np.isnan(row.share_elsewhere)
    assert 0 < row.content_pvalue <= 1


def test_large_clusters_are_sampled_and_components_fit_small_ones(planted, monkeypatch):
    clusters, kinds = planted
    monkeypatch.setattr(_kinds, "_MOST_TEXTS", 20)
    asked = []
    original = _kinds.compare_samples
    monkeypatch.setattr(
        _kinds, "compare_samples", lambda X, Y, **k: asked.append(len(X) + len(Y)) or original(X, Y, **k)
    )
    clusters.compare(kinds, n_permutations=19)
    assert asked == [20, 20]
    few = clustered(corpus(30, 0), n_components=8)
    assert len(few.compare(["a", "b"] * 15, n_permutations=19)) == 2


def test_divisions_grow_with_the_number_of_tests(planted, monkeypatch):
    clusters, _ = planted
    asked = set()
    original = _kinds.compare_samples

    def counted(*samples, n_permutations, **rest):
        asked.add(n_permutations)
        return original(*samples, n_permutations=9, **rest)

    monkeypatch.setattr(_kinds, "compare_samples", counted)
    clusters.compare(["a", "b"] * 60)
    assert asked == {999}
    clusters.compare(list("abcdefghijkl") * 10)
    assert asked == {999, 2399}


def test_the_result_is_a_sequence(planted):
    clusters, kinds = planted
    found = clusters.compare(kinds, n_permutations=19)
    assert isinstance(found, KindComparison)
    assert all(isinstance(row, KindInCluster) for row in found)
    assert found[0] is found.rows[0]
    assert repr(clusters.compare(kinds, n_permutations=19)) == repr(found)
    named = clusters.rename(0, "<zoo>").compare(kinds, n_permutations=19)
    assert "0 <zoo>" in repr(named)
    assert repr(clusters.compare(kinds == "a", n_permutations=19)).count("True") == 1


BAD = {
    "length": (["a", "b"], ValueError, "by must hold one kind per text: got 2 values for 120 texts"),
    "one kind": (["a"] * 120, ValueError, "by has only one kind of text, 'a': there is nothing to compare"),
    "too many": (range(120), ValueError, "120 different values, and at most 12 kinds are compared: merge rare kinds"),
    "none": ([None, *"ab" * 60][:120], ValueError, "no value for 1 of 120 texts, the first at position 0: leave"),
    "nan": ([1.0, np.nan] * 60, ValueError, "no value for 60 of 120 texts, the first at position 1"),
    "empty": (["a", "b", " "] * 40, ValueError, "no value for 40 of 120 texts"),
    "a name": ("topic", TypeError, "by must hold one kind per text, such as a column of a table, got 'topic'"),
    "a long text": ("x" * 10**6, TypeError, r"of a table, got 'x{59}\.$"),
    "a number": (5, TypeError, "by must hold one kind per text"),
}


@pytest.mark.parametrize(("by", "error", "message"), BAD.values(), ids=BAD)
def test_bad_columns_get_a_sentence(planted, by, error, message):
    with pytest.raises(error, match=message):
        planted[0].compare(by)
    with pytest.raises(ValueError, match="n_permutations must be a positive integer"):
        planted[0].compare(planted[1], n_permutations=0)


def test_missing_values_of_pandas(planted):
    pd = pytest.importorskip("pandas")
    column = pd.Series(["a", "b"] * 60, dtype="string")
    assert planted[0].compare(column, n_permutations=9).kinds == ["a", "b"]
    column[7] = pd.NA
    with pytest.raises(ValueError, match="the first at position 7"):
        planted[0].compare(column)


# Margins and stability of texts -------------------------------------------------------------------------------------


def test_margins_and_stability_of_texts():
    texts, topics = load_short_texts(return_X_y=True)
    clusters = cluster_texts(texts, 12)
    centres = np.array([clusters.points[clusters.labels == k].mean(axis=0) for k in range(12)])
    distances = 1 - clusters.points @ (centres / np.linalg.norm(centres, axis=1, keepdims=True)).T
    own = distances[np.arange(360), clusters.labels]
    distances[np.arange(360), clusters.labels] = np.inf
    assert_array_equal(clusters.second, distances.argmin(axis=1))
    assert_allclose(clusters.margins, distances.min(axis=1) - own, atol=1e-5)
    assert clusters.stability.shape == (12,)
    assert clusters.stability is clusters.stability
    wrong = np.array([np.bincount(topics[clusters.labels == k]).argmax() for k in range(12)])[clusters.labels] != topics
    assert clusters.margins[wrong].mean() < 0.6 * clusters.margins[~wrong].mean()
    merged = clusters.merge([0, 1])
    assert merged.second.max() == 10
    assert merged.stability.shape == (11,)
    assert merged.margins[clusters.labels == 5] == pytest.approx(clusters.margins[clusters.labels == 5], abs=0.5)


def test_a_planted_corpus_is_stable_unless_too_many_clusters_are_asked_for():
    rng = np.random.default_rng(0)
    vectors = {f"word{i}": 4 * np.eye(3, 12)[i % 3] + rng.normal(size=12) for i in range(300)}
    texts = [" ".join(f"word{3 * k + i % 3}" for k in rng.integers(100, size=8)) for i in range(150)]
    pipeline = make_text_embedding(vectors=vectors, weighting=None)
    assert_array_equal(cluster_texts(texts, 3, pipeline=pipeline).stability, 1)
    four = cluster_texts(texts, 4, pipeline=pipeline)
    parts = np.flatnonzero(np.bincount(four.labels) < 50)
    assert len(parts) == 2, "one of the three was divided"
    assert four.stability[parts].max() < 0.6
    assert np.delete(four.stability, parts).min() > 0.6
