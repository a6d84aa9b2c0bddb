"""The short texts: what the loader returns, what the file holds, and that topics can be found in it."""

import re
import sys
import unicodedata
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from sklearn_mcsg import EmbeddingVectorizer, make_text_similarity
from sklearn_mcsg.datasets import load_short_texts

TOPICS = [
    "animals",
    "astronomy",
    "computing",
    "cooking",
    "finance",
    "football",
    "gardening",
    "health",
    "law",
    "music",
    "travel",
    "weather",
]
PARAPHRASES = [
    ("Free to a good home", "Will somebody adopt"),
    ("Light from the Sun needs", "It takes sunlight"),
    ("Back up your files", "Make a copy of all"),
    ("Let the bread rise", "Cover the dough"),
    ("She pays off her credit card", "By clearing the whole card"),
    ("A late header", "In the closing minutes"),
    ("Water the seedlings", "Young plants are best"),
    ("If the fever lasts", "See your physician"),
    ("Both sides settled", "On the eve of the trial"),
    ("I have had the chorus", "That tune's refrain"),
    ("Breakfast is included", "The room price covers"),
    ("Heavy rain is expected", "Forecasters warn"),
]


@pytest.fixture(scope="module")
def texts():
    return load_short_texts()


@pytest.fixture(scope="module")
def ranked(texts):
    """Other texts from the nearest to the farthest, a row for each."""
    distances = make_text_similarity().fit_transform(texts.data).astype(float)
    np.fill_diagonal(distances, np.inf)
    return distances.argsort(axis=1)[:, :-1]


def words(text):
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return re.findall(r"[a-z0-9]+", plain)


def test_bunch(texts):
    assert set(texts) == {"data", "target", "frame", "target_names", "DESCR"}
    assert isinstance(texts.data, list)
    assert {type(text) for text in texts.data} == {str}
    assert texts.frame is None
    assert texts.target_names == TOPICS
    assert texts.target.shape == (360,)
    assert np.issubdtype(texts.target.dtype, np.integer)
    assert all(topic in texts.DESCR for topic in TOPICS)


def test_every_topic_has_thirty_texts(texts):
    assert_array_equal(np.bincount(texts.target), 30)


def test_topics_are_mixed(texts):
    assert np.mean(texts.target[1:] == texts.target[:-1]) < 0.2
    assert len(set(texts.target[:60])) == 12


def test_order_is_fixed(texts):
    again = load_short_texts()
    assert again.data == texts.data
    assert_array_equal(again.target, texts.target)
    assert texts.data[0].startswith("Hedgehogs roll")
    assert texts.data[-1].startswith("Wanted: web developer")


def test_return_x_y(texts):
    X, y = load_short_texts(return_X_y=True)
    assert texts.data == X
    assert_array_equal(y, texts.target)


def test_frames(texts):
    framed = load_short_texts(as_frame=True)
    assert isinstance(framed.data, pd.Series)
    assert isinstance(framed.target, pd.Series)
    assert (framed.data.name, framed.target.name) == ("text", "target")
    assert framed.data.tolist() == texts.data
    assert_array_equal(framed.target, texts.target)
    assert list(framed.frame.columns) == ["text", "target"]
    assert framed.frame.shape == (360, 2)
    X, y = load_short_texts(as_frame=True, return_X_y=True)
    pd.testing.assert_series_equal(X, framed.data)
    pd.testing.assert_series_equal(y, framed.target)


def test_pandas_is_needed_for_frames_alone(monkeypatch, texts):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert load_short_texts().data == texts.data
    with pytest.raises(ImportError, match="pip install pandas"):
        load_short_texts(as_frame=True)


def test_options_are_keywords():
    with pytest.raises(TypeError):
        load_short_texts(True)


def test_lengths(texts):
    counts = [len(text.split()) for text in texts.data]
    assert (min(counts), max(counts)) == (11, 20)


def test_texts_are_clean(texts):
    for text in texts.data:
        assert text.isprintable()
        assert text == unicodedata.normalize("NFC", text).strip()
        assert "  " not in text
        assert text[-1] in ".?"


def test_quoting_is_undone(texts):
    assert '"Offside!" yelled half the stadium, but the linesman kept his flag down.' in texts.data
    assert any("café" in text for text in texts.data)


def test_no_text_is_there_twice(texts):
    normalised = [frozenset(words(text)) for text in texts.data]
    assert len(set(normalised)) == 360
    # even paraphrases share less than half of their words
    assert max(len(a & b) / len(a | b) for a, b in combinations(normalised, 2)) < 0.5


def test_no_two_texts_begin_alike(texts):
    assert len({tuple(words(text)[:3]) for text in texts.data}) == 360


def test_no_word_gives_a_topic_away(texts):
    for topic in range(12):
        own = [set(words(text)) for text, t in zip(texts.data, texts.target, strict=True) if t == topic]
        for word in set.union(*own) - {"the", "a", "and", "of", "to", "in"}:
            assert sum(word in text for text in own) <= 15, word


def test_words_have_vectors(texts):
    vectorizer = EmbeddingVectorizer().fit(texts.data)
    assert vectorizer.oov_rate_ < 0.01
    known = vectorizer.known_words(texts.data)
    assert min(len({word for word in row if word.isalpha()}) for row in known) >= 4


def test_neighbours_share_the_topic(texts, ranked):
    votes = texts.target[ranked[:, :5]]
    predicted = [np.bincount(row, minlength=12).argmax() for row in votes]
    # 0.86 when all is well; vectors that belong to other words give at most 0.2, distances in disorder 0.1
    assert np.mean(predicted == texts.target) > 0.7


def test_paraphrases_are_neighbours(texts, ranked):
    found = []
    for pair in PARAPHRASES:
        a, b = ([i for i, text in enumerate(texts.data) if text.startswith(opening)] for opening in pair)
        assert len(a) == len(b) == 1
        assert texts.target[a] == texts.target[b]
        found.append(b[0] in ranked[a[0], :5] and a[0] in ranked[b[0], :5])
    # 8 of the 12 when all is well; a text drawn at random is among the five nearest once in 72 times
    assert sum(found) >= 6
