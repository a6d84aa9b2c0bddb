"""Summaries of clusters of texts."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklearn_mcsg import make_text_similarity, summarize_clusters
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.text import summaries as module


@pytest.fixture(scope="module")
def fitted():
    texts, topics = load_short_texts(return_X_y=True)
    return make_text_similarity(random_state=0).fit(texts), texts, topics


def test_typical_texts_are_near_the_others(fitted):
    pipeline, texts, topics = fitted
    distances = pipeline.transform(texts)
    for s in summarize_clusters(pipeline, texts, topics):
        assert_array_equal(np.sort(s.members), np.flatnonzero(topics == s.label))
        means = distances[np.ix_(s.members, s.members)].mean(axis=1)
        assert (np.diff(means) >= -1e-6).all(), "with the distance 0 to itself, in all of them"


def test_typical_texts_of_large_clusters_are_found_by_a_sample(fitted, monkeypatch):
    pipeline, texts, topics = fitted
    halves = np.isin(topics, [0, 3, 6, 10]).astype(int)
    whole = summarize_clusters(pipeline, texts, halves)
    monkeypatch.setattr(module, "_REFERENCES", 40)
    some = summarize_clusters(pipeline, texts, halves)
    for a, b in zip(whole, some, strict=True):
        tenth = len(a.members) // 10
        assert len(set(a.members[:tenth]) & set(b.members[:tenth])) > tenth / 3, "a tenth of them by chance"


def test_words_are_those_of_the_cluster(fitted):
    pipeline, texts, topics = fitted
    words = [set(text) for text in pipeline[0].known_words(texts)]
    for s in summarize_clusters(pipeline, texts, topics, n_words=4):
        assert len(s.words) == len(set(s.words)) == 4
        for word in s.words:
            has = np.array([word in text for text in words])
            assert has[s.members].mean() > has.mean()
            assert any(map(str.isalpha, word))


def test_order_of_texts_does_not_matter(fitted):
    pipeline, texts, topics = fitted
    order = np.random.default_rng(0).permutation(len(texts))
    turned = summarize_clusters(pipeline, [texts[i] for i in order], topics[order])
    plain = {s.label: s for s in summarize_clusters(pipeline, texts, topics)}
    for s in turned:
        assert s.words == plain[s.label].words
        assert set(order[s.members]) == set(plain[s.label].members)


@pytest.mark.parametrize("output", ["similarity", "distance", "divergence"])
def test_other_outputs(fitted, output):
    pipeline, texts, topics = fitted
    other = make_text_similarity(output=output).fit(texts)
    found = [s.members[0] for s in summarize_clusters(other, texts, topics)]
    worst = [s.members[-1] for s in summarize_clusters(other, texts, topics)]
    distances = pipeline.transform(texts)

    def spread(members):
        return np.mean([distances[i, topics == topics[i]].mean() for i in members])

    assert spread(found) < spread(worst)


def test_largest_first_and_lengths_checked(fitted):
    pipeline, texts, _ = fitted
    labels = np.repeat([7, 3], [100, 260])
    assert [(s.label, len(s.members)) for s in summarize_clusters(pipeline, texts, labels)] == [(3, 260), (7, 100)]
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        summarize_clusters(pipeline, texts, labels[:-1])


def test_a_text_without_known_words(fitted):
    pipeline = fitted[0]
    with pytest.warns(UserWarning, match="1 of 1 texts have no words"):
        (only,) = summarize_clusters(pipeline, ["\N{SNOWMAN}"], [0])
    assert only.words == []
    assert only.members.tolist() == [0]
