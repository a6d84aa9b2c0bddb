"""Words and pairs of words that label clusters, against a count by hand."""

from collections import Counter
from itertools import pairwise
from math import log

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_mcsg import EmbeddingVectorizer
from sklearn_mcsg.text.language import STOP_WORDS
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


@pytest.fixture(scope="module", params=["wordllama and glove", "glove"])
def vectorizer(request):
    """With a static model, words are as they are written; without, in lower case."""
    own = {} if request.param != "glove" else {"vectors": "glove-6b-50d"}
    return EmbeddingVectorizer(**own).fit(TEXTS)


@pytest.fixture(scope="module")
def terms(vectorizer):
    return Terms.of(TEXTS, vectorizer)


def words_by_hand(text):
    words = text.replace(",", " ,").replace("!", " !").split()
    return [w if w.isalpha() and w.lower() not in STOP_WORDS else None for w in words]


def lowered(words):
    return [word and word.lower() for word in words]


def shown(vectorizer):
    """Each word as it is written most often inside sentences; without any, or without a static model, in lower case."""
    words = dict.fromkeys(word for text in TEXTS for word in lowered(words_by_hand(text)) if word)
    if vectorizer.vectors == "glove-6b-50d":
        return list(words)
    inside = Counter(word for text in TEXTS for word in words_by_hand(text)[1:] if word)
    forms = {word: [form for form in inside if form.lower() == word] for word in words}
    return [max(forms[word], key=inside.__getitem__, default=word) for word in words]


def test_words_and_frequent_pairs(terms, vectorizer):
    names = [*shown(vectorizer), "web server"]
    assert terms.names.tolist() == names, "a pair needs three texts, and neither word a stop word"
    assert_array_equal(terms.names[terms.parts[0]], ["web", "server"])
    for i, text in enumerate(TEXTS):
        words = lowered(words_by_hand(text))
        adjacent = {f"{a} {b}" for a, b in pairwise(words)}
        has = [name.lower() in words or name in adjacent for name in terms.names]
        assert_array_equal(terms.present[[i]].toarray()[0], has)


def test_words_are_shown_as_they_are_written_most_often():
    texts = ["iPhone or IPHONE", "The iPhone, the one", "web SERVER", "web SERVER", "Web Server", "iphone the"]
    for vectors, names in {
        ("wordllama", "glove-6b-50d"): {"iPhone", "web", "SERVER", "web SERVER"},
        "glove-6b-50d": {"iphone", "web", "server", "web server"},
    }.items():
        terms = Terms.of(texts, EmbeddingVectorizer(vectors).fit(texts))
        assert set(terms.names) == names
        counts = dict(zip(terms.names, terms.present.sum(axis=0).A1, strict=True))
        lower = {name.lower(): count for name, count in counts.items()}
        assert lower == {"iphone": 3, "web": 3, "server": 3, "web server": 3}


def test_capitals_at_the_beginning_of_sentences_do_not_count():
    texts = [
        "Dogs bark. Dogs run! in Paris. Cats sleep? Cats eat... Mice",
        "NASA and McDonald in Paris * Birds",
        "iPhone",
        "McDonald",
        '"Fish" said it. Fish',
    ]
    terms = Terms.of(texts, EmbeddingVectorizer().fit(texts))
    shown = "dogs bark run Paris cats sleep eat mice NASA McDonald birds iPhone fish said"
    assert terms.names.tolist() == shown.split()


def test_weights_are_those_of_the_vectors(terms, vectorizer):
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


def test_a_pair_takes_the_place_of_its_words(terms, vectorizer):
    first = terms.labels_of(np.array([0, 0, 0, 1, 1, 1, 1]), 9)[0]
    is_glove = vectorizer.vectors == "glove-6b-50d"
    assert first.index("web server") == (0 if is_glove else 1), "logs, in two pieces, has a long vector"
    assert not {"web", "server"} & set(first)
    assert set(lowered(first)) == {"web server", "house", "logs"}


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


@pytest.mark.parametrize("vectors", [None, "glove-6b-50d"])
def test_stop_words_and_numbers_are_no_terms_and_not_in_pairs(vectors):
    texts = ["your game for the 3d engine of 1999, and it\u2019s an mp3 player"] * 4 + ["what you do with www data"] * 3
    terms = Terms.of(texts, EmbeddingVectorizer(**({"vectors": vectors} if vectors else {})).fit(texts))
    assert set(terms.names) == {"game", "3d", "engine", "mp3", "player", "data", "3d engine", "mp3 player"}


def test_only_stop_words_give_no_label():
    terms = Terms.of(["the", "and you", "42"], EmbeddingVectorizer().fit(["the", "and you", "42"]))
    assert terms.labels_of(np.array([0, 0, 1]), 3) == [[], []]


def test_names_keep_their_case_after_dashes_and_inside_pairs():
    quotes = [
        f"{words} -- George Orwell"
        for words in ("All are equal", "War is peace", "Who controls the past", "It was cold")
    ]
    trips = ["a new train to New York", "new shoes in New York", "New York has trains", "we love New York"]
    names = Terms.of([*quotes, *trips], EmbeddingVectorizer().fit(quotes)).names.tolist()
    assert "George Orwell" in names
    assert "New York" in names
