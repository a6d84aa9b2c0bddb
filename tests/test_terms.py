"""Words and pairs of words that label clusters, against a count by hand."""

from itertools import pairwise
from math import log

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_mcsg import EmbeddingVectorizer
from sklearn_mcsg.text.terms import Terms, _are_forms

TEXTS = [
    "The web server of the house",
    "A web server, and the web!",
    "web server logs",
    "red wine 1999",
    "The red house",
    "house red",
    "",
]


@pytest.fixture(scope="module")
def terms():
    return Terms.of(TEXTS, EmbeddingVectorizer().fit(TEXTS))


def words_by_hand(text):
    return [w if w.isalpha() else None for w in text.lower().replace(",", " ,").replace("!", " !").split()]


def test_words_and_frequent_pairs(terms):
    expected = dict.fromkeys(w for text in TEXTS for w in words_by_hand(text) if w)
    assert terms.names.tolist() == [*expected, "web server"], "a pair needs three texts, and neither word a stop word"
    assert_array_equal(terms.names[terms.parts[0]], ["web", "server"])
    for i, text in enumerate(TEXTS):
        words = words_by_hand(text)
        adjacent = {f"{a} {b}" for a, b in pairwise(words)}
        has = [name in words or name in adjacent for name in terms.names]
        assert_array_equal(terms.present[[i]].toarray()[0], has)


def test_weights_are_those_of_the_vectors(terms):
    vectorizer = EmbeddingVectorizer().fit(TEXTS)
    for word, weight in zip(terms.names[:-1], terms.weights, strict=False):
        assert_allclose(weight, vectorizer.transform([word]).weights[0], rtol=1e-12)
    assert terms.weights[-1] == min(terms.weights[terms.parts[0]])


def test_score_is_class_based_tf_idf(terms):
    labels = np.array([0, 0, 0, 1, 1, 1, 1])
    counts = terms.counts(labels, 2)
    has = terms.present.toarray()
    assert_array_equal(counts, [has[:3].sum(axis=0), has[3:].sum(axis=0)])
    score = {
        name: weight * here / 4 * log(1 + 3.5 / everywhere)
        for name, weight, here, everywhere in zip(terms.names, terms.weights, counts[1], has.sum(axis=0), strict=True)
    }
    expected = [name for name in sorted(score, key=lambda name: -score[name]) if score[name] > 0]
    assert terms.best(counts[1], 4, 3.5, 99) == expected
    assert terms.labels_of(labels, 2)[1] == expected[:2]


def test_a_pair_takes_the_place_of_its_words(terms):
    first = terms.labels_of(np.array([0, 0, 0, 1, 1, 1, 1]), 9)[0]
    assert first[0] == "web server"
    assert not {"web", "server"} & set(first)
    assert set(first) == {"web server", "the", "of", "house", "a", "and", "logs"}


def test_a_pair_needs_words_that_mostly_occur_in_it():
    texts = ["green tea"] * 3 + ["green leaf", "tea pot", "green field", "black tea"] * 2
    terms = Terms.of(texts, EmbeddingVectorizer().fit(texts))
    assert "green tea" in terms.names
    (best,) = terms.labels_of(np.zeros(len(texts), dtype=int), 99)
    assert "green tea" not in best
    assert {"green", "tea"} < set(best)


def test_forms_of_one_word_are_named_once():
    assert _are_forms("game", "games")
    assert _are_forms("boxes", "boxes")
    assert not _are_forms("car", "cars"), "short words differ more often than not: form, for"
    assert not _are_forms("part", "partner")
    texts = ["games", "game", "games of chess"]
    terms = Terms.of(texts, EmbeddingVectorizer().fit(texts))
    (best,) = terms.labels_of(np.zeros(3, dtype=int), 99)
    assert {"games", "game"} & set(best) == {"games"}


def test_texts_without_words_and_words_without_vectors():
    vectors = {"cat": [1.0, 0.0], "dog": [0.0, 1.0]}
    vectorizer = EmbeddingVectorizer(vectors, frequencies=None, unknown="ignore").fit(["cat"])
    terms = Terms.of(["cat unicorn", "dog", "?"], vectorizer)
    assert terms.names.tolist() == ["cat", "unicorn", "dog"]
    assert terms.weights[1] == 1
    nothing = Terms.of(["?", ""], vectorizer)
    assert nothing.labels_of(np.array([0, 1]), 3) == [[], []]
    own = EmbeddingVectorizer(vectors, tokenizer=lambda text: text.split("|"), lowercase=False, frequencies=None)
    assert Terms.of(["cat|Dog"], own.fit(["cat"])).names.tolist() == ["cat", "Dog"]
