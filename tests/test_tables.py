"""Several tables as one: words in static models, tables of words and spelling, against an oracle word by word."""

import pickle
import shutil
from itertools import product

import numpy as np
import oracle
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from sklearn_mcsg import (
    EmbeddingVectorizer,
    GroupNeighbors,
    ModelComparisonSimilarity,
    TextSearch,
    explain_texts,
    make_text_embedding,
    make_text_similarity,
    update_index,
)
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.text import TokenisedTexts, coverage_of

pytestmark = pytest.mark.filterwarnings("ignore:.*have no words")

RNG = np.random.default_rng(0)


def table_of(words, width, dtype=np.float64):
    """Vectors of very different lengths."""
    lengths = RNG.uniform(0.02, 3, size=(len(words), 1))
    return dict(zip(words, (lengths * RNG.normal(size=(len(words), width))).astype(dtype), strict=True))


def pairs_of_letters(word):
    return [word[i : i + 2] for i in range(0, len(word), 2)]


def lower_pairs(word):
    return pairs_of_letters(word.lower())


PIECES = table_of(
    ["ca", "ts", "t", "do", "g", "th", "e", "ze", "br", "a", "Ca", "CA", "T", "Do", "Pa", "ri", "s", "€"], 4
)
OTHER_PIECES = table_of(["ca", "ts", "do", "5", "x"], 3)
FIRST = table_of(["the", "of", "cat", "a", "dog", "Paris", ".", "%", "cats", "zero"], 3)
SECOND = table_of(["the", "dog", "zebra", "paris", "12", "bank"], 2)
CASED, LOWERED = (pairs_of_letters, PIECES), (lower_pairs, PIECES)
ORACLES = {
    "cased": oracle.Static(pairs_of_letters, PIECES),
    "lowered": oracle.Static(lower_pairs, PIECES),
    "other": oracle.Static(pairs_of_letters, OTHER_PIECES),
    "first": oracle.Words(FIRST),
    "second": oracle.Words(SECOND),
    "spelling": "spelling",
}
SOURCES = {
    "cased": CASED,
    "lowered": LOWERED,
    "other": (pairs_of_letters, OTHER_PIECES),
    "first": FIRST,
    "second": SECOND,
    "spelling": "spelling",
}
KINDS = [
    "cased",
    "lowered",
    "cased first",
    "first cased",
    "lowered first",
    "first second",
    "second first",
    "first spelling",
    "spelling second",
    "cased spelling",
    "other cased",
    "cased first second",
    "first second spelling",
    "second other spelling first",
]
TEXTS = [
    "Cats cats chase the dog .",
    "the Zebra cat-zebra CAT zebras",
    "dog-the-Cat quagga of Paris",
    "paris PARIS 12 of 5 % for € 😀",
    "... -- ? •",
    "xylem",
    "",
]
TOKENS = [text.split() for text in TEXTS]


def vectors_of(kind):
    names = kind.split()
    return [SOURCES[name] for name in names] if len(names) > 1 else SOURCES[kind]


def parts_of(weighting):
    return () if weighting is None else (weighting,) if isinstance(weighting, str) else weighting


def assert_as_by_hand(groups, expected, rtol=1e-6):
    assert groups.sizes.tolist() == [len(text) for text in expected]
    every = [word for text in expected for word in text]
    assert groups.labels.tolist() == [word for word, *_ in every]
    assert_allclose(groups.rows(), [vector for _, vector, _ in every], rtol=rtol, atol=rtol)
    weights = np.ones(len(every)) if groups.weights is None else groups.weights
    assert_allclose(weights, [weight for *_, weight in every], rtol=rtol)


def by_hand(kind, frequencies="zipf", tokens=TOKENS, **params):
    defaults = {"lowercase": True, "unknown": "spelling", "unit_norm": True, "punctuation": False, "pad_token": None}
    params = {**defaults, "a": 1e-3, **params}
    params["weighting"] = parts_of(params["weighting"])
    return oracle.words_in_tables(tokens, [ORACLES[name] for name in kind.split()], params, frequencies)


def is_static(kind):
    return bool({"cased", "lowered", "other"} & set(kind.split()))


# Against the oracle -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unknown", ["spelling", "ignore"])
@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_words_are_side_by_side(kind, lowercase, unknown):
    weightings = [None, "norm", "auto", ("norm", len)]
    if {"first", "second"} & set(kind.split()):
        weightings += ["sif", ("sif", "norm")]
    for weighting, unit_norm, pad_token in product(weightings, [True, False], [None, "the"]):
        params = {"lowercase": lowercase, "unknown": unknown, "unit_norm": unit_norm, "pad_token": pad_token}
        vectorizer = EmbeddingVectorizer(vectors_of(kind), weighting=weighting, **params)
        auto = "norm" if is_static(kind) else ("sif", "norm")
        expected = by_hand(kind, weighting=auto if weighting == "auto" else weighting, **params)
        assert_as_by_hand(vectorizer.fit_transform(TEXTS), expected)
        assert vectorizer.known_words(TEXTS) == [[word for word, *_ in text] for text in expected]


@pytest.mark.parametrize("kind", KINDS)
def test_frequencies_of_words_in_several_tables(kind):
    counts = {"the": 6, "cats": 3, "Paris": 1}
    shares = {word: count / 10 for word, count in counts.items()}
    for given in (counts, shares):
        vectorizer = EmbeddingVectorizer(vectors_of(kind), weighting="sif", frequencies=given, a=0.1)
        assert_as_by_hand(vectorizer.fit_transform(TEXTS), by_hand(kind, shares, weighting="sif", a=0.1))
    vectorizer = EmbeddingVectorizer(vectors_of(kind), weighting=("sif", "norm"), frequencies=None, a=0.1).fit(TEXTS)
    written = [word for text in by_hand(kind, weighting=None) for word, *_ in text]
    learnt = {word: written.count(word) / len(written) for word in written}
    assert vectorizer.frequencies_ == pytest.approx(learnt)
    assert_as_by_hand(vectorizer.transform(TEXTS), by_hand(kind, learnt, weighting=("sif", "norm"), a=0.1))


@pytest.mark.parametrize("kind", ["cased", "cased first", "first second", "first spelling"])
def test_punctuation_counts_if_asked_for(kind):
    params = {"punctuation": True, "weighting": "norm"}
    assert_as_by_hand(EmbeddingVectorizer(vectors_of(kind), **params).fit_transform(TEXTS), by_hand(kind, **params))


def test_share_of_words_that_the_first_table_of_words_lacks():
    words = [token for text in TOKENS for token in text if oracle.counts_as_word(token)]
    for kind in KINDS:
        first = next((ORACLES[name] for name in kind.split() if name in ("first", "second")), None)
        vectorizer = EmbeddingVectorizer(vectors_of(kind)).fit(TEXTS)
        if first is None:
            vectors = [word for text in by_hand(kind, weighting=None) for word in text]
            expected = 1 - len(vectors) / len(words)
        else:
            expected = np.mean([first.own(word.lower()) is None for word in words])
        assert vectorizer.oov_rate_ == pytest.approx(expected), kind
        assert coverage_of(vectorizer, TEXTS).oov_rate == pytest.approx(expected), kind
        assert_array_equal(coverage_of(vectorizer, TEXTS).n_words, vectorizer.transform(TEXTS).sizes)


def test_a_list_of_one_table_is_this_table():
    for kind in ("first", "cased"):
        for unit_norm in (True, False):
            one, same = (
                EmbeddingVectorizer(vectors, unit_norm=unit_norm).fit_transform(TEXTS)
                for vectors in (SOURCES[kind], [SOURCES[kind]])
            )
            for name in ("offsets", "labels", "weights"):
                assert_array_equal(getattr(one, name), getattr(same, name))
            assert_array_equal(one.rows(), same.rows())


def test_vectors_have_unit_length_and_equal_halves():
    groups = EmbeddingVectorizer([CASED, FIRST], weighting=None).fit_transform(["cats the dog", "quagga"])
    halves = np.linalg.norm(groups.rows()[:, :4], axis=1), np.linalg.norm(groups.rows()[:, 4:], axis=1)
    assert_allclose(np.hypot(*halves), 1)
    assert_allclose(halves[0][:3], np.sqrt(0.5))
    assert halves[0][3] == 0, "no piece of it is known"
    assert_allclose(halves[1][3], 1, err_msg="it has one vector, by its spelling")


def test_unknown_words_of_one_half():
    texts = ["cats quagga", "zebra"]
    both = EmbeddingVectorizer([CASED, FIRST], unknown="ignore").fit(texts)
    assert both.known_words(texts) == [["cats"], ["zebra"]]
    assert_array_equal(both.transform(["zebra"])[0][:, 4:], 0)
    with pytest.raises(ValueError, match="Text 1 has the word 'zebra', which has no vector"):
        EmbeddingVectorizer([CASED, FIRST], unknown="error").fit(["cats", "zebra"])
    with pytest.raises(ValueError, match="Text 0 has the word 'zebra', which has no vector"):
        both.set_params(unknown="error").transform(["cats-zebra"])
    assert EmbeddingVectorizer(CASED, unknown="error").fit(["cats xylem"]).known_words(["cats xylem"]) == [["cats"]]


def test_compounds_are_one_word_in_several_tables():
    groups = EmbeddingVectorizer([CASED, FIRST], weighting=None).fit_transform(["the-cat"])
    assert groups.labels.tolist() == ["the-cat"]
    total = FIRST["the"] + FIRST["cat"]
    assert_allclose(groups[0][0, 4:], total / np.linalg.norm(total) / np.sqrt(2), rtol=1e-6)
    alone = EmbeddingVectorizer(FIRST).fit_transform(["the-cat"])
    assert alone.labels.tolist() == ["the", "cat"]


def test_case_belongs_to_the_tokenizer_of_a_static_model():
    texts = ["cat Cat CAT"]
    cased = EmbeddingVectorizer(CASED, weighting="norm").fit_transform(texts)
    lowered = EmbeddingVectorizer(LOWERED, weighting="norm").fit_transform(texts)
    assert cased.labels.tolist() == lowered.labels.tolist() == ["cat", "Cat", "CAT"]
    assert len({row.tobytes() for row in cased[0]}) == 3
    assert len({row.tobytes() for row in lowered[0]}) == 1
    for lowercase in (True, False):
        both = EmbeddingVectorizer([CASED, FIRST], lowercase=lowercase).fit_transform(["Paris paris"])[0][:, 4:]
        assert (both[0] == both[1]).all() == lowercase, "a table of words is asked as `lowercase` says"


def test_spelling_counts_without_regard_to_length():
    """Weight times vector is then the same, whatever the length of the word's vector."""
    vectorizer = EmbeddingVectorizer([FIRST, "spelling"], weighting="norm").fit(["the cat dog"])
    groups = vectorizer.transform(["the cat dog"])
    lengths = np.linalg.norm(groups[0][:, 3:], axis=1) * groups.weights
    long_enough = groups.weights > 0.1
    assert_allclose(lengths[long_enough], np.sqrt(0.5))
    assert long_enough.any()
    for vectors, weighting in (
        ([FIRST, "spelling"], None),
        ([FIRST, "spelling"], "sif"),
        ([CASED, "spelling"], "norm"),
    ):
        rows = EmbeddingVectorizer(vectors, weighting=weighting).fit_transform(["the cat dog"])[0]
        assert_allclose(np.linalg.norm(rows[:, rows.shape[1] // 2 :], axis=1), np.sqrt(0.5))


# What does not matter -----------------------------------------------------------------------------------------------


def assert_same_groups(left, right):
    assert_array_equal(left.offsets, right.offsets)
    assert_array_equal(left.labels, right.labels)
    assert_array_equal(left.rows(), right.rows())
    assert (left.weights is None) == (right.weights is None)
    if left.weights is not None:
        assert_array_equal(left.weights, right.weights)


@pytest.mark.parametrize("vectors", [*KINDS, "installed"])
def test_the_group_of_a_text_does_not_depend_on_other_texts(vectors):
    vectors = ("wordllama", "glove-6b-50d") if vectors == "installed" else vectors_of(vectors)
    together = EmbeddingVectorizer(vectors).fit(TEXTS)
    groups = together.transform(TEXTS)
    tokenised = TokenisedTexts.of(TEXTS)
    again = EmbeddingVectorizer(vectors).fit(["the dog"])
    again.transform(tokenised)
    for i, text in enumerate(TEXTS):
        if not any(map(oracle.counts_as_word, text.split())):
            continue
        alone = EmbeddingVectorizer(vectors).fit(["the dog"]).transform([text])
        assert_same_groups(alone, groups[[i]])
        assert_same_groups(together.transform([text, "the dog"])[[0]], groups[[i]])
        assert_same_groups(again.transform(tokenised[[i]]), groups[[i]])
    assert_same_groups(together.transform(TEXTS[::-1])[np.arange(len(TEXTS))[::-1]], groups)


@pytest.mark.parametrize("texts", [["..."], ["?", "", "--"], [""]])
@pytest.mark.parametrize("kind", KINDS)
def test_texts_without_words_are_empty_groups(kind, texts):
    for pad_token in (None, "the"):
        for fitted in (["the dog"], texts):
            vectorizer = EmbeddingVectorizer(vectors_of(kind), pad_token=pad_token).fit(fitted)
            groups = vectorizer.transform(texts)
            assert groups.sizes.tolist() == len(texts) * [0 if pad_token is None else 1]
            assert groups.n_features == sum(
                table.width for table in map(ORACLES.get, kind.split()) if table != "spelling"
            ) * (2 if "spelling" in kind.split() else 1)
        assert vectorizer.oov_rate_ == 0


@pytest.mark.parametrize("kind", ["cased", "cased first second", "first spelling"])
def test_batches_of_words_do_not_matter(kind):
    words = [a + b for a in PIECES for b in PIECES]
    texts = [" ".join(words), *TEXTS]
    expected = EmbeddingVectorizer(vectors_of(kind)).fit_transform(texts)
    for memory in (0.001, 0.01, 1):
        with sklearn.config_context(working_memory=memory):
            assert_same_groups(EmbeddingVectorizer(vectors_of(kind)).fit_transform(texts), expected)


def single(table):
    return {word: vector.astype(np.float32) for word, vector in table.items()}


def test_precision():
    for kind, width in (("cased first", 7), ("first second", 5), ("first spelling", 6), ("cased", 4)):
        for unit_norm in (True, False):
            double = EmbeddingVectorizer(vectors_of(kind), unit_norm=unit_norm).fit_transform(TEXTS)
            assert (double.output_dtype, double.n_features) == (np.float64, width)
            tables = {name: SOURCES[name] for name in kind.split()}
            tables |= {name: single(table) for name, table in tables.items() if isinstance(table, dict)}
            tables |= {name: (table[0], single(table[1])) for name, table in tables.items() if isinstance(table, tuple)}
            vectors = list(tables.values())
            groups = EmbeddingVectorizer(vectors, unit_norm=unit_norm).fit_transform(TEXTS)
            assert groups.output_dtype == groups.vectors.dtype == np.float32
            assert_allclose(groups.rows(), double.rows(), atol=1e-5)
            assert_allclose(groups.weights, double.weights, rtol=1e-5)
    mixed = EmbeddingVectorizer([(pairs_of_letters, single(PIECES)), FIRST]).fit_transform(TEXTS)
    assert mixed.output_dtype == np.float64
    half = {word: vector.astype(np.float16) for word, vector in FIRST.items()}
    assert EmbeddingVectorizer([half, SECOND, "spelling"]).fit_transform(TEXTS).output_dtype == np.float64
    assert EmbeddingVectorizer([half, "spelling"]).fit_transform(TEXTS).output_dtype == np.float32


@pytest.mark.parametrize("kind", KINDS)
def test_clones_and_pickles(kind):
    vectors = vectors_of(kind)
    vectorizer = EmbeddingVectorizer(vectors, frequencies=None).fit(TEXTS)
    twin = clone(vectorizer)
    assert twin.vectors is vectors
    assert not hasattr(twin, "oov_rate_")
    again = pickle.loads(pickle.dumps(vectorizer))
    assert_same_groups(again.transform(TEXTS), vectorizer.transform(TEXTS))


def test_pickles_of_names_are_small():
    for vectors in (("wordllama", "glove-6b-50d"), ["wordllama", "glove-6b-50d", "spelling"], ["wordllama"]):
        vectorizer = EmbeddingVectorizer(vectors).fit(load_short_texts().data)
        vectorizer.transform(["a cat"])
        dumped = pickle.dumps(vectorizer)
        assert len(dumped) < 2000
        assert_same_groups(pickle.loads(dumped).transform(TEXTS[:4]), vectorizer.transform(TEXTS[:4]))


def test_names_in_tuples_are_several_tables():
    pair, listed = (
        EmbeddingVectorizer(vectors).fit_transform(["a cat"])
        for vectors in (("wordllama", "glove-6b-50d"), ["wordllama", "glove-6b-50d"])
    )
    assert_same_groups(pair, listed)
    assert pair.n_features == 256 + 50
    other = EmbeddingVectorizer(("glove-6b-50d", "spelling")).fit_transform(["a cat"])
    assert other.n_features == 100
    words = EmbeddingVectorizer((["wordllama", "spelling"], np.eye(2))).fit_transform(["spelling of"])
    assert words.n_features == 2, "words and their vectors"


def test_the_default():
    default = EmbeddingVectorizer()
    assert default.vectors == ("wordllama", "glove-6b-50d")
    assert (default.weighting, default.punctuation, default.unknown) == ("auto", False, "spelling")
    text = ["The cat chased 3 Zortanols -- why?"]
    groups = default.fit_transform(text)
    assert groups.labels.tolist() == ["The", "cat", "chased", "3", "Zortanols", "why"]
    static, glove = (
        EmbeddingVectorizer(vectors, weighting="norm").fit_transform(text) for vectors in ("wordllama", "glove-6b-50d")
    )
    assert_allclose(groups.rows(), np.hstack([static.rows(), glove.rows()]) / np.sqrt(2), atol=1e-6)
    assert_allclose(groups.weights, static.weights)


def test_grid_search_over_tables():
    texts = ["the cat", "a dog", "cats of Paris", "the dogs", "cat dog", "zebra"] * 4
    pipe = Pipeline([("vectorizer", EmbeddingVectorizer(FIRST)), ("similarity", ModelComparisonSimilarity())])
    pipe.set_params(similarity__prior_strength=0.5)
    choices = [FIRST, [FIRST], [CASED, FIRST], [FIRST, SECOND, "spelling"], CASED]
    search = GridSearchCV(pipe, {"vectorizer__vectors": choices}, cv=2).fit(texts)
    assert [params["vectorizer__vectors"] for params in search.cv_results_["params"]] == choices
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    embedding = make_text_embedding(vectors=FIRST, whiten=0.5, spread=1).set_params(vectorizer__vectors=[CASED, FIRST])
    assert embedding.fit_transform(texts).shape[0] == len(texts)


def test_pipelines_of_several_tables():
    texts = load_short_texts().data[:30]
    for vectors in (["glove-6b-50d", "spelling"], ["glove-6b-50d", "wordllama"], [CASED, FIRST]):
        points = make_text_embedding(vectors=vectors).fit_transform(texts)
        assert_allclose(np.linalg.norm(points, axis=1), 1, rtol=1e-4)
        matrix = make_text_similarity(vectors=vectors, random_state=0).fit_transform(texts)
        assert np.isfinite(matrix).all()


# Mistakes -----------------------------------------------------------------------------------------------------------

ZERO = {"cat": [0.0, 0.0], "dog": [0.0, 0.0]}
MISTAKES = {
    "an empty list": (dict(vectors=[]), ValueError, "vectors is an empty list: name at least one table"),
    "an empty tuple": (dict(vectors=()), ValueError, "vectors is an empty|tuple"),
    "spelling alone": (dict(vectors="spelling"), ValueError, "'spelling' stands beside other vectors"),
    "spelling in a list alone": (dict(vectors=["spelling"]), ValueError, "'spelling' stands beside other vectors"),
    "spelling twice": (dict(vectors=["spelling", "spelling"]), ValueError, "'spelling' stands beside other vectors"),
    "zero vectors": (dict(vectors=ZERO), ValueError, "All 2 vectors are zero: choose a table that was trained"),
    "zero vectors in a list": (dict(vectors=[CASED, ZERO]), ValueError, "All 2 vectors are zero"),
    "zero pieces": (dict(vectors=(list, ZERO)), ValueError, "All 2 vectors are zero"),
    "no word in common": (
        dict(vectors=[FIRST, CASED, {"Katze": [1.0], "Hund": [2.0]}]),
        ValueError,
        "Tables 1 and 3 of vectors have no word in common: they cannot be used as one",
    ),
    "rarity of pieces": (
        dict(vectors=CASED, weighting="sif"),
        ValueError,
        "weighting='sif' with frequencies='zipf' needs words in order of frequency, and a static model has no order",
    ),
    "rarity of pieces and spelling": (
        dict(vectors=[CASED, "spelling"], weighting=("norm", "sif")),
        ValueError,
        "a static model has no order: pass frequencies as a mapping or None, or weighting='norm'",
    ),
    "a number in a list": (dict(vectors=[FIRST, 3]), TypeError, r"vectors must be .*or be a list of these, got int"),
    "a tuple of tables": (
        dict(vectors=((["a"], np.eye(1, 3)), (["a"], np.eye(1, 3)))),
        ValueError,
        "several tables are a list, must be one array",
    ),
    "a list in a list": (dict(vectors=[[FIRST]]), TypeError, "or be a list of these, got list"),
    "no such file": (dict(vectors=[FIRST, "nowhere.txt"]), ValueError, "'nowhere.txt' is neither an installed set"),
    "None": (dict(vectors=None), TypeError, "got NoneType"),
    "three in a tuple": (dict(vectors=(FIRST, SECOND, CASED)), TypeError, "got tuple"),
    "ids": (dict(vectors=(lambda word: [9], np.eye(3))), TypeError, "ids of the 3 rows .*; for the word 'Cats', got 9"),
    "ids, not pieces": (dict(vectors=[FIRST, (lambda word: [9], PIECES)]), TypeError, "for the word 'Cats', got 9"),
    "no list": (dict(vectors=(lambda word: 3, PIECES)), TypeError, "for the word 'Cats', got int, not a list"),
    "lists of lists": (
        dict(vectors=(lambda word: [[word]], PIECES)),
        TypeError,
        r"for the word 'Cats', got \['Cats'\]",
    ),
    "numbers as tokens": (
        dict(vectors=[CASED, FIRST], tokenizer=lambda text: [1]),
        TypeError,
        "must return strings; for text 0, got 1",
    ),
    "no tokens": (dict(vectors=CASED, tokenizer=lambda text: None), TypeError, "must return strings; for text 0"),
    "padding without a vector": (
        dict(vectors=CASED, pad_token="xylem"),
        ValueError,
        "pad_token 'xylem' has no vector: choose a word of the table",
    ),
    "punctuation": (dict(vectors=FIRST, punctuation=1), ValueError, "'punctuation' parameter"),
    "weighting": (dict(vectors=FIRST, weighting="automatic"), ValueError, "'weighting' parameter"),
    "weightings": (
        dict(vectors=FIRST, weighting=("auto", "norm")),
        ValueError,
        "'sif', 'norm', a callable.*got 'auto'",
    ),
    "a bad weight": (dict(vectors=[CASED, FIRST], weighting=lambda word: -1), ValueError, "gave -1.0 for 'Cats'"),
}


@pytest.mark.parametrize(("params", "error", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_get_a_sentence(params, error, message):
    with pytest.raises(error, match=message):
        EmbeddingVectorizer(**params).fit_transform(["Cats and dogs."])


def test_the_word_that_a_tokenizer_fails_for_is_named():
    def ids(word):
        return [9] if word == "dogs" else [1]

    with pytest.raises(TypeError, match="for the word 'dogs', got 9"):
        EmbeddingVectorizer((ids, np.eye(3))).fit(["Cats and", "dogs."])
    pieces = {"cats": [1.0]}
    with pytest.raises(TypeError, match="for the word 'and', got str, not a list"):
        EmbeddingVectorizer((lambda word: word if word == "and" else [word], pieces)).fit(["cats and dogs"])


def test_half_of_the_vectors_may_be_zero_without_weights_by_length():
    half = {"cat": [1.0, 0.0], "the": [0.0, 0.0], "a": [0.0, 0.0]}
    for vectors in ([half, {"cat": [1.0, 2.0]}], (str.split, half), half):
        assert len(EmbeddingVectorizer(vectors, weighting=None).fit_transform(["cat"])[0]) == 1
        with pytest.raises(ValueError, match="Half of the word vectors have length 0: weighting='norm' cannot be used"):
            EmbeddingVectorizer(vectors, weighting="norm").fit_transform(["cat"])


def test_sums_of_large_pieces_do_not_overflow():
    large = {"c": np.array([3e38, 1.0], np.float32), "a": np.array([3e38, -1.0], np.float32)}
    for vectors in ((list, large), [(list, large), {"ca": [1.0]}]):
        for weighting in ("norm", None):
            groups = EmbeddingVectorizer(vectors, weighting=weighting).fit_transform(["ca"])
            assert_allclose(groups[0][0, :2] / np.linalg.norm(groups[0][0, :2]), [1, 0], atol=1e-6)
    groups = EmbeddingVectorizer([large, {"c": [1.0]}], weighting=None).fit_transform(["c-a"])  # a sum of two words
    assert_allclose(groups[0][0, :2] / np.linalg.norm(groups[0][0, :2]), [1, 0], atol=1e-6)


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e-160, 1e160, 1e300])
def test_vectors_of_any_length_have_unit_length(size):
    table, texts = {"cat": [3.0, 4.0], "dog": [0.0, -1.0], "of": [1.0, 1.0]}, ["cat dog zortan", "of cat"]
    scaled = {word: size * np.array(vector) for word, vector in table.items()}
    for some, other in ((table, scaled), ([table, SECOND], [scaled, SECOND])):
        for weighting in (None, "norm"):
            truth, found = (EmbeddingVectorizer(x, weighting=weighting).fit_transform(texts) for x in (some, other))
            assert_allclose(found.rows(), truth.rows(), rtol=1e-12)
            assert_allclose(found.row_weights, truth.row_weights, rtol=1e-12)


# Saved indexes ------------------------------------------------------------------------------------------------------

SHORT = ["Cats and dogs.", "the cat sat", "dog dog of Paris", "the zebra, a cat"]


def write_words(path, table=FIRST):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{word} {' '.join(map('{:.4f}'.format, vector))}\n" for word, vector in table.items())
    path.write_text("".join(lines), encoding="utf8")
    return path


def files_of(folder):
    """A static model, and two files of words, as a list of sources."""
    pytest.importorskip("tokenizers")
    pytest.importorskip("safetensors")
    from test_static import save

    words = write_words(folder / "first.txt"), str(write_words(folder / "second.txt", SECOND))
    return [save(folder / "model"), *words]


def found_by(index):
    return index.kneighbors(["the dog", "Cats of Paris"])


def assert_finds_the_same(index, other):
    for one, expected in zip(found_by(index), found_by(other) if hasattr(other, "kneighbors") else other, strict=True):
        assert_allclose(one, expected)


@pytest.mark.parametrize("make", [make_text_embedding, make_text_similarity])
@pytest.mark.parametrize(
    "vectors",
    [
        ("wordllama", "glove-6b-50d"),
        ["wordllama", "glove-6b-50d"],
        ["glove-6b-50d", "spelling"],
        ("glove-6b-50d", "spelling"),
        ["wordllama"],
    ],
    ids=str,
)
def test_an_index_by_names(make, vectors, tmp_path):
    index = GroupNeighbors(make(vectors=vectors, random_state=0), n_neighbors=2).fit(SHORT)
    index.save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index")
    assert_finds_the_same(loaded, index)
    for pipeline in (loaded.similarity, loaded.similarity_):
        assert pipeline[0].vectors == vectors
        assert type(pipeline[0].vectors) is type(vectors)
    size = sum(file.stat().st_size for file in (tmp_path / "index").iterdir())
    assert size < 3e7, "the tables are not in it"


def test_an_index_by_arrays(tmp_path):
    words = list(FIRST), np.array(list(FIRST.values()))
    for vectors in ([words, "spelling"], [words, "glove-6b-50d"], [words, (list(SECOND), np.eye(6))]):
        index = GroupNeighbors(make_text_similarity(vectors=vectors, random_state=0), n_neighbors=2).fit(SHORT)
        index.save(tmp_path / "index")
        assert_finds_the_same(GroupNeighbors.load(tmp_path / "index"), index)
    index = GroupNeighbors(make_text_similarity(vectors=[words, CASED]), n_neighbors=2).fit(SHORT)
    with pytest.raises(TypeError, match="A saved index cannot hold a .* Give word vectors by name or path"):
        index.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("moved", ["stays", "together", "copied"])
def test_an_index_by_files(tmp_path, moved):
    vectors = [*files_of(tmp_path / "old"), "glove-6b-50d", "spelling"]
    index = GroupNeighbors(make_text_embedding(vectors=vectors), n_neighbors=2).fit(SHORT)
    index.save(tmp_path / "old" / "index")
    expected = found_by(index)
    if moved == "together":
        (tmp_path / "old").rename(tmp_path / "new")
    if moved == "copied":
        shutil.copytree(tmp_path / "old", tmp_path / "new")
        write_words(tmp_path / "old" / "first.txt", SECOND)
    folder = tmp_path / ("old" if moved == "stays" else "new")
    loaded = GroupNeighbors.load(folder / "index")
    assert_finds_the_same(loaded, expected)
    found = loaded.similarity_[0].vectors
    assert isinstance(found, list)
    assert found[3:] == ["glove-6b-50d", "spelling"]
    assert [str(folder) in str(path) for path in found[:3]] == [True, True, True]
    loaded.save(folder / "index")
    assert_finds_the_same(GroupNeighbors.load(folder / "index"), expected)


@pytest.mark.parametrize("alone", [True, False])
def test_a_fitted_vectorizer_does_not_need_its_files(tmp_path, alone):
    model, words, _ = files_of(tmp_path / "old")
    vectorizer = EmbeddingVectorizer(model if alone else [model, words]).fit(SHORT)
    expected = vectorizer.transform(SHORT)
    (tmp_path / "old").rename(tmp_path / "new")
    assert_same_groups(vectorizer.transform(SHORT), expected)


@pytest.mark.parametrize("changed", ["first.txt", "second.txt", "model/tokenizer.json", "model/model.safetensors"])
def test_changed_files_of_several_tables_get_a_sentence(tmp_path, changed):
    vectors = files_of(tmp_path)
    index = GroupNeighbors(make_text_similarity(vectors=vectors, random_state=0), n_neighbors=2).fit(SHORT)
    index.save(tmp_path / "index")
    loaded, pickled = GroupNeighbors.load(tmp_path / "index"), pickle.loads(pickle.dumps(index))
    with (tmp_path / changed).open("ab") as stream:
        stream.write({"first.txt": b"last 1 2 3\n", "second.txt": b"last 1 2\n"}.get(changed, b" "))
    name = changed.split("/")[-1]
    with pytest.raises(ValueError, match=f"index was made from .*{name}, which has changed since the index was saved"):
        GroupNeighbors.load(tmp_path / "index")
    if name != "model.safetensors":  # which cannot be read with a byte more
        for again in (loaded, pickled):
            with pytest.raises(ValueError, match=f"{name} has changed since the vectorizer was fitted: put back the"):
                again.kneighbors(["the dog"])
    with pytest.raises(ValueError, match=f"{name} has changed since it was read: fit again. Nothing was written"):
        index.save(tmp_path / "other")
    (tmp_path / changed).unlink()
    with pytest.raises(ValueError, match=f"index was made from .*{name}, which is missing: put back the file"):
        GroupNeighbors.load(tmp_path / "index")


def test_an_index_of_several_tables_is_updated(tmp_path):
    vectors = files_of(tmp_path)
    search = TextSearch(make_text_embedding(vectors=vectors), n_neighbors=2)
    update_index(tmp_path / "index", search, SHORT)
    again = update_index(tmp_path / "index", search, [*SHORT, "another zebra"])
    assert (again.n_reused, again.replaced) == (4, False)
    write_words(tmp_path / "first.txt", {**FIRST, "another": [1.0, 2.0, 3.0]})
    assert update_index(tmp_path / "index", search, SHORT).replaced
    other = TextSearch(make_text_embedding(vectors=vectors[:2]), n_neighbors=2)
    assert update_index(tmp_path / "index", other, SHORT).replaced
    assert not update_index(tmp_path / "index", other, SHORT).replaced


def test_a_vectorizer_that_is_not_fitted_is_saved(tmp_path):
    vectors = files_of(tmp_path)
    index = GroupNeighbors(make_text_embedding(vectors=vectors), n_neighbors=1).fit(SHORT)
    index.save(tmp_path / "index")
    given = GroupNeighbors.load(tmp_path / "index").similarity
    assert_allclose(clone(given).fit_transform(SHORT), make_text_embedding(vectors=vectors).fit_transform(SHORT))


def test_tables_of_a_list_are_opened_once(tmp_path, monkeypatch):
    from sklearn_mcsg.text import _static, sources

    reads = []
    words, model = sources.load_word_vectors, _static.read_files
    monkeypatch.setattr(sources, "load_word_vectors", lambda *args: reads.append(args) or words(*args))
    monkeypatch.setattr(_static, "read_files", lambda *args: reads.append(args) or model(*args))
    vectors = files_of(tmp_path)
    first = EmbeddingVectorizer(vectors).fit_transform(SHORT)
    assert_same_groups(EmbeddingVectorizer(vectors[::-1][::-1]).fit_transform(SHORT), first)
    EmbeddingVectorizer(vectors[1:]).fit(SHORT)
    assert len(reads) == 3


# The order of words, by the default ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def embedding():
    return make_text_embedding().fit(load_short_texts().data)


def test_order_counts_by_default(embedding):
    a, b = "dog bites man", "man bites dog"
    points = embedding.transform([a, b, "a dog has bitten a man"])
    cosines = points @ points.T
    assert cosines[0, 1] < 0.95
    explanation = explain_texts(embedding, a, b)
    assert explanation.similarity == pytest.approx(cosines[0, 1], abs=1e-5)
    assert explanation.order == pytest.approx(cosines[0, 1] - 1, abs=0.01), "without order they are equal"
    assert explanation.order < -0.02
    assert explanation.matrix.sum() == pytest.approx(explanation.similarity, abs=1e-6)
    same = explain_texts(embedding, a, a)
    assert (same.similarity, same.order) == (pytest.approx(1, abs=1e-6), pytest.approx(0, abs=1e-6))


def test_order_does_not_count_if_it_is_not_asked_for():
    texts = load_short_texts().data
    for params, error in (({"order": 0}, 2e-3), ({"likelihood": "diag"}, 1e-5)):  # deviations are from a line
        points = make_text_embedding(**params).fit(texts).transform(["dog bites man", "man bites dog"])
        assert points[0] @ points[1] == pytest.approx(1, abs=error)


def test_more_order_makes_more_of_a_difference():
    texts = load_short_texts().data
    cosines = []
    for order in (0, 0.25, 0.5, 1, 2):
        points = make_text_embedding(order=order).fit(texts).transform(["dog bites man", "man bites dog"])
        cosines.append(points[0] @ points[1])
    assert cosines == sorted(cosines, reverse=True)
