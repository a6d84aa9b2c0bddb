"""Search of texts by the embedding and by words: against slow and obvious scores, and what happens at the edges."""

import dataclasses
import math
import pickle
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import sklearn
from conftest import by_several_threads
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_mcsg import (
    Explanation,
    GroupEmbedding,
    GroupNeighbors,
    PairExplanation,
    TextSearch,
    make_text_embedding,
    make_text_similarity,
    storage,
    update_index,
)
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.search import nearest
from sklearn_mcsg.text import TokenisedTexts
from sklearn_mcsg.text._search import z_scores
from sklearn_mcsg.text._tokens import tokenize
from sklearn_mcsg.text.language import STOP_WORDS
from sklearn_mcsg.text.words import WordIndex, phrases_in, words_of

pytest.importorskip("bm25s")
Stemmer = pytest.importorskip("Stemmer")
pytestmark = by_several_threads

TEXTS = load_short_texts().data[:60]
QUERIES = ["storm in the north", "my puppy is ill", "What does the Zortanol cost?"]
NO_WORDS = "\u00a7 --- ..."
WEIGHTS = 20.0, 0.5


@pytest.fixture(scope="module")
def search():
    return TextSearch().fit(TEXTS)


def listed(texts, tokenizer=None):
    """The words of each text."""
    words = words_of(texts, tokenizer)
    return [[words.distinct[i] for i in words.numbers[start:stop]] for start, stop in pairwise(words.offsets)]


def counted(lists):
    """Lists of words, as words of texts."""
    return words_of([" ".join(words) for words in lists], str.split)


def slow_bm25(texts, query, k1=1.5, b=0.75):
    """BM25 as Lucene has it, word by word; texts and the query are lists of words.

    Texts consist of stop words if the query does, and otherwise of their other words.
    """
    light = bool(query) and query[0].endswith("(stop)")
    texts = [[word for word in words if word.endswith("(stop)") == light] for words in texts]
    mean_length = sum(map(len, texts)) / len(texts)
    scores = []
    for words in texts:
        counts, score = Counter(words), 0.0
        for word in query:
            n_texts = sum(word in other for other in texts)
            idf = math.log(1 + (len(texts) - n_texts + 0.5) / (n_texts + 0.5))
            score += idf * counts[word] / (counts[word] + k1 * (1 - b + b * len(words) / mean_length))
        scores.append(score)
    return np.array(scores)


def slow_unit(texts, query):
    """The BM25 score of a text of average length that has each word of the query once."""
    n_texts = [sum(word in other for other in texts) for word in query]
    return sum(math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for n in n_texts) / 2.5


def stemmed(lists):
    """The stems of lists of words; those of stop words are marked."""
    stem = Stemmer.Stemmer("english").stemWord
    return [[f"{stem(word)} (stop)" if word in STOP_WORDS else stem(word) for word in words] for words in lists]


def asked(query):
    """The words of a query that count, given as stems."""
    return [word for word in query if not word.endswith("(stop)")] or query


def slow_scores(distances, word_scores, unit, words, counted=True):
    """The sum for distances and words, over the texts that are counted."""
    z = (distances.mean(where=counted) - distances) / distances.std(where=counted)
    return z + words * (word_scores / unit) ** 2


def slow_search(texts, query, words):
    """Scores, distances and word scores of all texts for one query."""
    pipeline = make_text_embedding().fit(texts)
    distances = 1 - (pipeline.transform(texts) @ pipeline.transform([query]).T).ravel().astype(np.float64)
    stems, terms = stemmed(listed(texts)), asked(stemmed(listed([query]))[0])
    word_scores = slow_bm25(stems, terms)
    return slow_scores(distances, word_scores, slow_unit(stems, terms), words), distances, word_scores


# Words --------------------------------------------------------------------------------------------------------------


def test_words_are_in_lower_case_and_keep_what_has_no_vector():
    texts = ["The COVID-19 dose of Zortanol\u00ae isn't 1,000.5 mg!", "\u2603 ..."]
    assert listed(texts) == [["the", "covid", "19", "dose", "of", "zortanol", "is", "n't", "1,000.5", "mg"], []]
    assert listed(["A-b c"], str.split) == [["a", "b", "c"]]


def test_bm25_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    texts = [[f"w{i}" for i in rng.geometric(0.15, size=rng.integers(0, 12))] for _ in range(40)]
    queries = [["w1", "w3", "w3", "unheard"], ["unheard"], [], texts[7]]
    index = WordIndex.of(counted(texts), None)
    numbers = index.numbers(counted(queries))
    scores, units = index.scores(numbers), index.units(numbers)
    for query, row, unit in zip(queries, scores, units, strict=True):
        assert_allclose(row, slow_bm25(texts, query), rtol=1e-5, atol=1e-6)
        assert_allclose(unit, slow_unit(texts, query), rtol=1e-6)
    assert_array_equal(index.scores(index.own_numbers()), index.scores(index.numbers(counted(texts))))


def test_bm25_of_stems():
    index = WordIndex.of(words_of(TEXTS), "english")
    stems = stemmed(listed(TEXTS))
    queries = ["The storms of the seas", "raining RAINS rained", "to be or not to be", "what is a unicorn", ""]
    numbers = index.numbers(words_of(queries))
    for query, row, unit in zip(listed(queries), index.scores(numbers), index.units(numbers), strict=True):
        terms = asked(stemmed([query])[0])
        assert_allclose(row, slow_bm25(stems, terms), rtol=1e-5, atol=1e-6)
        assert_allclose(unit, slow_unit(stems, terms), rtol=1e-6)
    own = index.scores(index.own_numbers())
    assert_allclose(own[3], slow_bm25(stems, asked(stems[3])), rtol=1e-5, atol=1e-6)


def test_the_unit_is_the_score_of_a_text_of_average_length_with_each_word_once():
    index = WordIndex.of(counted([["cat", "dog"], ["tax", "sea"], ["ice", "sun"]]), None)
    numbers = index.numbers(counted([["cat", "dog"]]))
    assert_allclose(index.scores(numbers)[0, 0], index.units(numbers)[0], rtol=1e-6)


def test_a_stem_is_not_that_of_a_stop_word():
    index = WordIndex.of(words_of(["All is well.", "Two wells ran dry.", "The wells are deep."]), "english")
    assert (index.scores(index.numbers(words_of(["a well of water", "wells"])))[1] > 0).tolist() == [False, True, True]


def test_languages():
    texts = words_of(["Die H\u00e4user sind alt.", "Das Haus ist nicht neu.", "Etxea zaharra da."])
    german = WordIndex.of(texts, "german")
    assert (german.scores(german.numbers(words_of(["nicht das Haus"])))[0] > 0).tolist() == [True, True, False]
    basque = WordIndex.of(texts, "basque")
    assert len(basque.numbers(words_of(["etxe da"]))[0]) == 2, "stop words are not known, and count"
    written = WordIndex.of(texts, None)
    assert (written.scores(written.numbers(words_of(["das haus"])))[0] > 0).tolist() == [False, True, False]


def test_only_stop_words():
    search = TextSearch(n_neighbors=3).fit(TEXTS)
    found = search.search(["who was it", "who was it with a zebra"])
    assert found.word_scores[0].any()
    assert not found.word_scores[1].any()


@pytest.mark.parametrize(
    ("query", "phrases"),
    [
        ('"storm surge" near "the coast"', ["storm surge", "the coast"]),
        ("\u201cstorm surge\u201d, \u201ethe coast\u201c \u00abla mer\u00bb \u00bbdas Meer\u00ab", None),
        ('an "unbalanced quote', []),
        ('"first" and "second', ["first"]),
        ("the dog's bone and the cats' 'tail', rock 'n' roll, \u2018so\u2019", []),
        ('a 5" pipe, a 10" pipe', []),
        ('""', []),
        ("", []),
    ],
)
def test_phrases_of_queries(query, phrases):
    assert phrases_in(query) == (["storm surge", "the coast", "la mer", "das Meer"] if phrases is None else phrases)


def test_texts_with_phrases():
    rng = np.random.default_rng(0)
    texts = [[f"w{i}" for i in rng.integers(4, size=rng.integers(0, 12))] for _ in range(60)]
    index = WordIndex.of(counted(texts), None)
    n_found = 0
    for length in (1, 2, 3, 4):
        for _ in range(20):
            phrase = [f"w{i}" for i in rng.integers(4, size=length)]
            expected = [i for i, text in enumerate(texts) if f" {' '.join(phrase)} " in f" {' '.join(text)} "]
            assert index.texts_with(phrase).tolist() == expected
            n_found += len(expected)
    assert n_found > 500
    assert index.texts_with(["w1", "unheard"]).tolist() == []


def test_words_can_be_added():
    whole, grown = (WordIndex.of(words_of(texts), "english") for texts in (TEXTS[:9], TEXTS[:4]))
    for texts in (TEXTS[4:8], TEXTS[8:9], []):
        grown = grown.extended(words_of(texts))
    assert grown.vocabulary == whole.vocabulary
    assert grown.language == "english"
    assert_array_equal(grown.ids, whole.ids)
    assert_array_equal(grown.offsets, whole.offsets)


def test_texts_without_any_word_score_nothing():
    index = WordIndex.of(words_of(["", ""]), "english")
    numbers = index.numbers(words_of(["cat", ""]))
    assert_array_equal(index.scores(numbers), np.zeros((2, 2)))
    assert_allclose(index.units(numbers), [slow_unit([[], []], ["cat"]), 0], rtol=1e-6)
    assert index.texts_with(["cat"]).tolist() == []


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (WordIndex(["cat"], np.array([0, 1]), np.array([0, 2]), None), "indices must lie"),
        (WordIndex(["cat"], np.array([0, 0]), np.array([0, 1]), None), "offsets must rise"),
        (WordIndex(["cat"], np.array([0, 0]), np.array([0, 1, 2]), None), "the words of 1 texts are expected"),
    ],
)
def test_damaged_words_are_refused(damaged, message):
    with pytest.raises(ValueError, match=message):
        damaged.check(1)


@pytest.mark.parametrize("language", ["klingon", ["english"]])
def test_forged_languages_are_refused(language):
    search = TextSearch().fit(TEXTS)
    search.words_ = dataclasses.replace(search.words_, language=language)
    with pytest.raises(ValueError, match="is not known: choose one of"):
        search.__mcsg_check__()


def test_z_scores():
    rows = np.random.default_rng(0).normal(3, 2, size=(4, 50)).astype(np.float32)
    counted = np.ones(rows.shape, dtype=bool)
    counted[np.arange(4), np.arange(4)] = False
    found = z_scores(rows, counted)
    assert found.dtype == np.float32
    for row, z, chosen in zip(rows.astype(np.float64), found, counted, strict=True):
        assert_allclose(z, (row - row[chosen].mean()) / row[chosen].std(), rtol=1e-4, atol=1e-5)


def test_z_scores_of_equal_values_are_zero():
    eps = np.finfo(np.float32).eps
    noise = 1 + eps * np.array([0, 1, -1, 2], dtype=np.float32)
    assert_array_equal(np.abs(z_scores(np.array([[0, 0, 0, 0], noise], dtype=np.float32))) < 1e-3, True)
    assert_array_equal(z_scores(np.zeros((1, 1))), [[0]])


# Search -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", WEIGHTS)
def test_scores_are_those_of_the_definition(words):
    found = TextSearch(words=words).fit(TEXTS).search(QUERIES, n_neighbors=len(TEXTS))
    for i, query in enumerate(QUERIES):
        scores, distances, word_scores = slow_search(TEXTS, query, words)
        order = found.indices[i]
        assert_array_equal(np.sort(order), np.arange(len(TEXTS)))
        assert_allclose(found.scores[i], scores[order], atol=1e-4)
        assert_allclose(found.distances[i], distances[order], atol=1e-5)
        assert_allclose(found.word_scores[i], word_scores[order], atol=1e-5)
        assert (np.diff(found.scores[i]) <= 0).all()


@pytest.mark.parametrize("words", [*WEIGHTS, None])
def test_indexed_texts_do_not_find_themselves(words):
    search = TextSearch(words=words, n_neighbors=3).fit(TEXTS)
    found = search.search()
    assert found.indices.shape == (len(TEXTS), 3)
    assert not (found.indices == np.arange(len(TEXTS))[:, None]).any()
    pipeline = make_text_embedding().fit(TEXTS)
    for i in (0, 31):
        others = np.arange(len(TEXTS)) != i
        cosines = (pipeline.transform(TEXTS) @ pipeline.transform(TEXTS[i : i + 1]).T).ravel()
        scores = cosines - 1
        if words is not None:
            stems = stemmed(listed(TEXTS))
            terms = asked(stems[i])
            scores = slow_scores(1 - cosines, slow_bm25(stems, terms), slow_unit(stems, terms), words, others)
        best = np.argsort(np.where(others, -scores, np.inf))[:3]
        assert_array_equal(found.indices[i], best)
        assert_allclose(found.scores[i], scores[best], atol=1e-4)


@pytest.mark.parametrize("X", [None, TEXTS[:7]])
@pytest.mark.parametrize("words", WEIGHTS)
def test_blocks_change_nothing(search, X, words, monkeypatch):
    search = clone(search).set_params(words=words).fit(TEXTS)
    whole = search.search(X)
    monkeypatch.setattr(nearest, "ROWS", 3 * 8 * len(TEXTS))
    for a, b in zip(whole[:4], search.search(X)[:4], strict=True):
        assert_allclose(a, b, atol=1e-5)


def test_without_words_it_is_the_search_by_distance():
    search = TextSearch(words=None, n_neighbors=4).fit(TEXTS)
    distances, indices = GroupNeighbors(make_text_embedding(), n_neighbors=4).fit(TEXTS).kneighbors(QUERIES)
    found = search.search(QUERIES)
    assert_array_equal(found.indices, indices)
    assert_array_equal(found.distances, distances)
    assert_array_equal(found.scores, -distances)
    assert found.word_scores is None


def test_any_pipeline_that_compares_texts_can_be_searched():
    pipeline = make_text_similarity(random_state=0)
    found = TextSearch(pipeline, words=None).fit(TEXTS).search(QUERIES)
    assert_array_equal(found.indices, GroupNeighbors(pipeline).fit(TEXTS).kneighbors(QUERIES)[1])
    search = TextSearch(pipeline).fit(TEXTS)
    assert isinstance(search.explain(QUERIES[0], TEXTS[0]), Explanation)
    assert search.search(QUERIES).scores.max() > 3


def test_words_that_no_text_has_leave_the_decision_to_the_embedding(search):
    query = ["hurricane"]
    assert not any("hurricane" in words for words in listed(TEXTS))
    found = search.search(query, len(TEXTS))
    assert not found.word_scores.any()
    assert_array_equal(found.indices, search.index_.kneighbors(search.look_up(query), len(TEXTS))[1])


def test_equal_texts_are_told_apart_by_nothing():
    found = TextSearch(n_neighbors=2).fit(["the same old song"] * 5).search(["a song", "a tax"])
    assert_array_equal(found.indices, [[0, 1], [0, 1]])
    assert_array_equal(found.scores, np.repeat(found.scores[:, :1], 2, axis=1))
    assert_array_equal(found.scores[1], 0)


def test_names_without_a_vector_are_found():
    texts = [*TEXTS, "The dose of xqzvwortanol is safe."]
    assert TextSearch().fit(texts).search(["xqzvwortanol"]).indices[0, 0] == len(TEXTS)


def test_words_are_split_by_the_tokenizer_of_the_pipeline():
    pipeline = make_text_embedding().set_params(vectorizer__tokenizer=lambda text: text.split("|"))
    search = TextSearch(pipeline, n_neighbors=1).fit(["cat|dog", "tax|price", "sea|ice"])
    assert set(search.words_.vocabulary) == {"cat", "dog", "tax", "price", "sea", "ice"}
    assert search.search(["x|ice"]).indices.tolist() == [[2]]


def test_the_texts_of_a_query_have_their_own_order(search):
    queries = [QUERIES[:2], QUERIES[1::-1], [*QUERIES[:2], *QUERIES[:2]]]
    first, other, twice = zip(*search.search(queries, len(TEXTS))[:4], strict=True)
    for one, expected in zip(other, first, strict=True):
        assert_allclose(one, expected, rtol=1e-4, atol=1e-6)
    embedding = search.index_.similarity_
    pooled = search.vectorizer_.transform(QUERIES[:2]).pooled()
    cosines = embedding.pairwise(pooled, search.vectorizer_.transform(TEXTS), output="similarity")[0]
    assert_allclose(1 - first[2], cosines[first[0]], atol=1e-5)
    assert not np.allclose(twice[2], first[2], atol=1e-3), "with more words, the prior counts less"


@pytest.mark.parametrize("words", WEIGHTS)
def test_several_texts_are_one_query_by_their_pooled_words(words):
    search = TextSearch(make_text_embedding(likelihood="diag"), words=words).fit(TEXTS)
    together = search.search([QUERIES[:2], QUERIES[0]])
    joined = search.search([" ".join(QUERIES[:2]), QUERIES[0]])
    for a, b in zip(together[:4], joined[:4], strict=True):
        assert_allclose(a, b, atol=1e-5)
    assert search.look_up([QUERIES[:2]])[0].shape[0] == search.look_up(QUERIES[:2]).sizes.sum()
    pooled, whole = (search.explain(query, TEXTS[0]).similarity for query in (QUERIES[:2], " ".join(QUERIES[:2])))
    assert_allclose(pooled, whole, rtol=1e-5)


# Phrases ------------------------------------------------------------------------------------------------------------

PHRASED = [
    "The storm surge flooded the harbour.",
    "A surge of the storm.",
    "Storm-surge warnings were given for the coast.",
    "STORM SURGE: how high?",
    'They spoke of a storm. "Surge" was the word of the coast.',
    "The storm surges came at night.",
    "It rained.",
]


@pytest.mark.parametrize("words", [20.0, None])
def test_phrases_must_occur(words):
    search = TextSearch(words=words, n_neighbors=7).fit(PHRASED)
    query, quoted = "storm surge near the coast", '"storm surge" near the coast'
    plain, found = search.search([query]), search.search([quoted, query])
    containing = np.isin(plain.indices[0], [0, 2, 3, 4])
    assert_array_equal(found.indices[0, :4], plain.indices[0, containing])
    assert_array_equal(found.indices[1], plain.indices[0])
    for every, some in zip(plain[1:4], found[1:4], strict=True):
        if every is not None:  # a product of matrices may round one query as a row of two in another way
            assert_allclose(some[0, :4], every[0, containing], rtol=1e-6, atol=2e-6)
            assert_allclose(some[1], every[0], rtol=1e-6, atol=2e-6)
    assert_array_equal(found.indices[0, 4:], -1)
    assert np.isnan(found.scores[0, 4:]).all()
    assert np.isnan(found.distances[0, 4:]).all()
    assert search.search([quoted], 2).indices.shape == (1, 2)
    assert_array_equal(search.search(iter([quoted])).indices, found.indices[:1])
    both = search.search(['\u201cStorm surge\u201d and "the coast"']).indices[0]
    assert set(both[both >= 0]) == {2, 4}
    assert (search.search(['"..." storm']).indices >= 0).all(), "a phrase without words is none"


def test_a_phrase_that_no_text_contains():
    search = TextSearch(n_neighbors=2).fit(PHRASED)
    with pytest.warns(UserWarning, match='No text contains "the harbour" and "rained": nothing is found for that'):
        found = search.search(['"the harbour" "rained"', "storm"])
    assert found.indices[0].tolist() == [-1, -1]
    assert np.isnan(found.scores[0]).all()
    assert np.isnan(found.word_scores[0]).all()
    assert (found.indices[1] >= 0).all()
    with pytest.warns(UserWarning, match='No text contains "storm night"'):
        assert (search.search(['"storm night"']).indices == -1).all()
    with pytest.warns(UserWarning, match="Query 0 has no words|No text contains") as caught:
        found = search.search([NO_WORDS, '"rained night"', "storm"])
    assert len(caught) == 2
    assert [str(warning.filename) for warning in caught] == [__file__] * 2
    assert (found.indices[:2] == -1).all()


def test_quotes_of_texts_exclude_nothing():
    search = TextSearch(n_neighbors=6).fit(PHRASED)
    assert (search.search().indices >= 0).all()
    text = PHRASED[4]
    assert (search.search([[text], [text, "rain"]]).indices >= 0).all()
    assert (search.search(TokenisedTexts.of(PHRASED)).indices >= 0).all()
    found = search.search([text]).indices[0]
    assert set(found[found >= 0]) == {0, 1, 2, 3, 4}, "a string with quotes asks for the word in quotes"


def test_phrases_in_added_texts_and_saved_indexes(tmp_path):
    search = TextSearch(n_neighbors=2).fit(PHRASED).partial_fit(["A zebra crossing."])
    assert search.search(['"zebra crossing"']).indices.tolist() == [[7, -1]]
    storage.save(tmp_path / "index", search)
    loaded = storage.load(tmp_path / "index", TextSearch)
    assert loaded.search(['"zebra crossing"']).indices.tolist() == [[7, -1]]


def test_phrases_across_blocks(monkeypatch):
    search = TextSearch(n_neighbors=2).fit(PHRASED)
    queries = ["storm", '"storm surge"', "coast", "rain", '"surge of the"']
    whole = search.search(queries)
    monkeypatch.setattr(nearest, "ROWS", 2 * 8 * len(PHRASED))
    for a, b in zip(whole[:4], search.search(queries)[:4], strict=True):
        assert_allclose(a, b, atol=1e-5)
    assert whole.indices[4].tolist() == [1, -1]


def test_a_query_on_one_topic_is_not_led_astray_by_one_word():
    texts = load_short_texts()
    search = TextSearch(n_neighbors=10).fit(texts.data)
    first, second = search.search(["storm near the coast"], 2).indices[0]
    assert texts.data[first].startswith("Hurricanes")
    assert texts.data[second].startswith("Fog on the coast")
    on_topic = (texts.target[search.search().indices] == texts.target[:, None]).mean()
    alone = search.set_params(words=None).search().indices
    assert on_topic > (texts.target[alone] == texts.target[:, None]).mean() - 0.03


def test_explanation_sums_to_the_cosine(search):
    found = search.search(QUERIES[:1], 1)
    explanation = search.explain(QUERIES[0], TEXTS[found.indices[0, 0]])
    assert isinstance(explanation, PairExplanation)
    assert_allclose(explanation.similarity, 1 - found.distances[0, 0], atol=1e-5)
    assert explanation.labels[0] == ["storm", "in", "the", "north"]


# Texts without words, additions and mistakes ------------------------------------------------------------------------


def test_explanation_of_a_long_text_has_each_word_once():
    search = TextSearch(make_text_embedding(likelihood="diag")).fit(TEXTS)
    text = " ".join(TEXTS[:5] * 4)
    whole = search.explain(QUERIES[0], text)
    with sklearn.config_context(working_memory=0.01):
        condensed = search.explain(QUERIES[0], text)
    assert len(condensed.labels[1]) == len(set(whole.labels[1])) < len(whole.labels[1])
    assert_allclose(condensed.similarity, whole.similarity)
    assert [pair[:2] for pair in condensed.strongest()] == [pair[:2] for pair in whole.strongest()]


def test_words_of_a_long_text_are_read_in_pieces(monkeypatch):
    expected = listed([" ".join(TEXTS)])
    longest = []
    monkeypatch.setattr("sklearn_mcsg.text._tokens.CHARACTERS", 100)
    tokenizer = "sklearn_mcsg.text._tokenised.tokenize"
    monkeypatch.setattr(tokenizer, lambda text: longest.append(len(text)) or tokenize(text))
    assert listed([" ".join(TEXTS)]) == expected
    assert max(longest) < 200


def test_texts_without_words_are_never_found():
    texts = [NO_WORDS, *TEXTS[:8], "", *TEXTS[8:12]]
    with pytest.warns(UserWarning, match=r"2 of 14 texts have no words \(the first is text 0\) and are never found"):
        search = TextSearch().fit(texts)
    plain = TextSearch().fit(TEXTS[:12])
    found, expected = (s.search(QUERIES, 12) for s in (search, plain))
    assert search.n_texts_ == 14
    assert_array_equal(np.array(texts)[found.indices], np.array(TEXTS)[expected.indices])
    assert_array_equal(found.scores, expected.scores)
    with pytest.warns(UserWarning, match="1 of 2 texts"):
        search.partial_fit([NO_WORDS, "A zebra crossed the road."])
    assert search.search(["zebra"]).indices[0, 0] == 15
    with pytest.warns(UserWarning, match="1 of 1 texts"):
        search.partial_fit([NO_WORDS])
    assert (search.n_texts_, len(search.known_)) == (17, 13)


@pytest.mark.parametrize("words", [20.0, None])
def test_added_texts(words):
    grown = TextSearch(words=words).partial_fit(TEXTS[:50]).partial_fit(TEXTS[50:])
    found = grown.search(QUERIES, len(TEXTS))
    pipeline = make_text_embedding().fit(TEXTS)
    cosines = pipeline.transform(QUERIES) @ pipeline.transform(TEXTS).T
    assert_allclose(1 - found.distances, np.take_along_axis(cosines, found.indices, axis=1), atol=1e-5)
    if words is not None:
        stems = stemmed(listed(TEXTS))
        expected = [slow_bm25(stems, asked(query)) for query in stemmed(listed(QUERIES))]
        assert_allclose(found.word_scores, np.take_along_axis(np.array(expected), found.indices, axis=1), atol=1e-5)


@pytest.mark.thread_unsafe(reason="it traces the lines of one thread")
@pytest.mark.parametrize("words", [20.0, None])
def test_texts_are_added_in_one_step(words):
    """Whoever searches while texts are added, or interrupts that, has the texts from before or all of them."""
    search = TextSearch(words=words).fit(TEXTS[:50])
    found = [search.search(QUERIES, 3).indices]

    def at_each_line(frame, event, _):
        if event == "line":
            found.append(search.search(QUERIES, 3).indices)
        return at_each_line

    before = sys.gettrace()
    sys.settrace(lambda frame, *_: at_each_line if frame.f_code is TextSearch.partial_fit.__code__ else None)
    try:
        search.partial_fit(TEXTS[50:])
    finally:
        sys.settrace(before)
    last = search.search(QUERIES, 3).indices
    assert len(found) > 5
    assert (last != found[0]).any()
    for indices in found:
        assert_array_equal(indices, found[0] if (indices == found[0]).all() else last)


@pytest.mark.parametrize("words", [20.0, None])
def test_a_query_without_words_does_not_cancel_the_others(words):
    search = TextSearch(words=words).fit(TEXTS)
    with pytest.warns(UserWarning, match="Query 1 has no words: nothing is found for it"):
        some = search.search(["cat", NO_WORDS, "storm"], 3)
    alone = search.search(["cat", "storm"], 3)
    for part, expected in zip(some[:4], alone[:4], strict=True):
        if expected is not None:
            assert_array_equal(part[[0, 2]], expected)
    assert (some.indices[1] == -1).all()
    assert np.isnan(some.distances[1]).all()
    with pytest.raises(ValueError, match="No query has a word"):
        search.search([NO_WORDS])


def test_mistakes(search):
    with pytest.raises(TypeError, match="Query 0 must be a text or a list of texts, got bytes"):
        search.search([b"cat"])
    with pytest.raises(TypeError, match="Query 1 must be a text or a list of texts, got NoneType"):
        search.search(["cat", None])
    with pytest.raises(ValueError, match="Query 1 is an empty list"):
        search.search(["cat", []])
    with pytest.raises(ValueError, match="put a single query into a list"):
        search.search("cat")
    with pytest.raises(ValueError, match="n_neighbors=61 is more than the 60 texts"):
        search.search(["cat"], 61)
    with pytest.raises(ValueError, match="n_neighbors=60 is more than the 59 texts"):
        search.search(None, 60)
    with pytest.raises(ValueError, match="at least 2 texts that have words, got 1"):
        TextSearch().fit(["cat"])
    with pytest.raises(ValueError, match="string object received"):
        TextSearch().fit("cat")
    with pytest.raises(ValueError, match="string object received"):
        clone(search).fit(TEXTS).partial_fit("cat")
    with pytest.raises(ValueError, match="words"):
        TextSearch(words="many").fit(TEXTS)
    with pytest.raises(ValueError, match="words"):
        TextSearch(words=0).fit(TEXTS)
    with pytest.raises(ValueError, match="language='klingon' is not known: choose one of .*english.* or None"):
        TextSearch(language="klingon").fit(TEXTS)
    for table in (pd.DataFrame({"text": ["storm", "rain"]}), {"storm": 1}, np.array([["storm", "rain"]])):
        with pytest.raises(TypeError, match="A list of queries is expected, got (DataFrame|dict|ndarray)"):
            search.search(table)
    with pytest.raises(TypeError, match="pipeline must turn texts into groups first"):
        TextSearch(GroupEmbedding()).fit(TEXTS)
    with pytest.raises(NotFittedError):
        TextSearch().search(["cat"])


def test_bm25s_is_asked_for_before_any_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(ImportError, match=r"sklearn-mcsg\[text\].*words=None"):
        TextSearch().fit(iter(lambda: pytest.fail("texts were read"), None))
    assert TextSearch(words=None).fit(TEXTS).search(QUERIES).word_scores is None


def test_stems_are_asked_for_before_any_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(ImportError, match=r"sklearn-mcsg\[text\].*language=None"):
        TextSearch().fit(iter(lambda: pytest.fail("texts were read"), None))
    assert TextSearch(language=None).fit(TEXTS).search(QUERIES).word_scores.any()
    assert TextSearch(words=None).fit(TEXTS).search(['"the" storm']).word_scores is None


def test_a_saved_search_without_words_needs_no_stems(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    for _ in range(2):
        search = update_index(tmp_path / "index", TextSearch(words=None), TEXTS).index
        assert search.search(QUERIES).word_scores is None


@pytest.mark.filterwarnings("ignore:1 of 2 texts have no words")
def test_neighbours_of_an_empty_query_are_not_passed_off_as_near():
    index = GroupNeighbors(make_text_similarity(random_state=0)).fit(TEXTS)
    with pytest.warns(UserWarning, match="Query 1 is empty: its nearest groups say nothing about it"):
        index.kneighbors(["cat", NO_WORDS])
    index = GroupNeighbors(make_text_embedding()).fit(TEXTS)
    with pytest.warns(UserWarning, match="Query 1 is empty: its nearest groups say nothing about it"):
        index.kneighbors(["cat", NO_WORDS])


# Saved searches -----------------------------------------------------------------------------------------------------


def assert_same(a, b):
    for x, y in zip(a.search(QUERIES)[:4], b.search(QUERIES)[:4], strict=True):
        assert_array_equal(x, y)


def test_a_saved_search_is_updated(tmp_path, monkeypatch):
    path = tmp_path / "index"
    first = update_index(path, TextSearch(), TEXTS[:50])
    assert (first.n_reused, first.replaced) == (0, False)
    with monkeypatch.context() as patch:
        patch.setattr(TextSearch, "fit", lambda *_: pytest.fail("the index was made anew"))
        again = update_index(path, TextSearch(), TEXTS[:50], n_jobs=2)
        assert again.index.n_jobs == 2
        assert_same(again.index, first.index)
        grown = update_index(path, TextSearch(), TEXTS)
        assert (grown.n_reused, grown.replaced) == (50, False)
        assert_same(grown.index, first.index.partial_fit(TEXTS[50:]))
        assert_same(update_index(path, TextSearch(), TEXTS).index, grown.index)
    for params in ({"words": 5.0}, {"language": None}):
        other = update_index(path, TextSearch(**params), TEXTS)
        assert other.replaced
        assert_same(other.index, TextSearch(**params).fit(TEXTS))
        again = update_index(path, TextSearch(**params), [*TEXTS, "A zebra crossed the road."]).index
        assert again.words_.language == again.language == params.get("language", "english")
    assert update_index(path, TextSearch(words=None), TEXTS).replaced
    assert_same(update_index(path, TextSearch(words=None), TEXTS).index, TextSearch(words=None).fit(TEXTS))
    assert update_index(path, make_text_embedding(), TEXTS).replaced
    assert isinstance(update_index(path, make_text_embedding(), TEXTS).index, GroupNeighbors)


def test_a_search_that_lacks_texts_is_not_opened(search, tmp_path):
    broken = pickle.loads(pickle.dumps(search))
    for known, message in (
        (broken.known_[:-1], "60 texts with words are expected"),
        (broken.known_ + 1, "lie between"),
    ):
        broken.known_ = known
        storage.save(tmp_path / "index", broken)
        with pytest.raises(ValueError, match=f"damaged.*{message}"):
            storage.load(tmp_path / "index", TextSearch)


@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("klingon", "'klingon' is not known: choose one of"),
        (3, "language of a WordIndex is a int"),
        (["english"], "language of a WordIndex is a list"),
    ],
)
def test_a_forged_language_is_refused(search, tmp_path, language, message):
    forged = pickle.loads(pickle.dumps(search))
    object.__setattr__(forged.words_, "language", language)
    storage.save(tmp_path / "index", forged)
    with pytest.raises(ValueError, match=f"damaged.*{message}"):
        storage.load(tmp_path / "index", TextSearch)


def test_copies(search):
    assert_same(pickle.loads(pickle.dumps(search)), search)
    assert clone(search).get_params() == search.get_params()
    assert not clone(search).__mcsg_state__()


def test_an_index_is_updated_from_any_collection_of_texts(tmp_path):
    first = update_index(tmp_path / "index", TextSearch(), (text for text in TEXTS[:20]))
    assert (first.n_reused, first.index.n_texts_) == (0, 20)
    second = update_index(tmp_path / "index", TextSearch(), np.array(TEXTS[:30]))
    assert (second.n_reused, second.index.n_texts_) == (20, 30)
    with pytest.raises(ValueError, match="put a single text into a list"):
        update_index(tmp_path / "index", TextSearch(), TEXTS[0])


def test_a_weight_of_words_that_overflows_gets_a_sentence():
    with pytest.raises(ValueError, match="'words' parameter of TextSearch must be a float in the range"):
        TextSearch(words=1e39).fit(TEXTS)
    assert np.isfinite(TextSearch(words=1e9).fit(TEXTS).search(["goal"]).scores).all()
