"""P-values of pairs of texts: counted as they say, at their level, and for the corpus that they name."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from sklearn_mcsg import (
    EmbeddingVectorizer,
    GroupEmbedding,
    MeanVector,
    ModelComparisonSimilarity,
    TextCalibration,
    calibrate_texts,
    make_text_embedding,
    make_text_similarity,
)

rng = np.random.default_rng(0)
WORDS = [f"w{i}" for i in range(400)]
VECTORS = WORDS, rng.normal(size=(400, 12)) + rng.normal(size=12)


def make_texts(n_texts, seed, words=WORDS, longest=20):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(words, rng.integers(2, longest))) for _ in range(n_texts)]


def make_pipelines():
    vectorizer = EmbeddingVectorizer(VECTORS, weighting=None)
    return [
        make_pipeline(vectorizer, GroupEmbedding(whiten=0.5, prior_strength=0.5, normalize=True)),
        make_pipeline(vectorizer, GroupEmbedding("spherical")),
        make_pipeline(vectorizer, ModelComparisonSimilarity(prior_strength=0.5, output="centered", random_state=0)),
        make_pipeline(vectorizer, ModelComparisonSimilarity(prior_strength=0.5)),
        make_pipeline(vectorizer, MeanVector()),
    ]


NAMES = ["embedding", "spherical", "centered", "similarity", "mean"]


def paired_distances(pipeline, a, b):
    """The slow and obvious way: look up, compare, and turn what is higher for nearer groups round."""
    values = pipeline[-1].paired(pipeline[:-1].transform(a), pipeline[:-1].transform(b))
    return -values if is_similarity(pipeline) else values


def is_similarity(pipeline):
    return getattr(pipeline[-1], "output", "distance") == "similarity"


@pytest.mark.parametrize("pipeline", make_pipelines(), ids=NAMES)
def test_pvalues_are_counted(pipeline):
    texts = [" ".join(np.random.default_rng(i).choice(WORDS, 8)) for i in range(60)]  # of one length: one window
    pipeline.fit(texts)
    calibration = calibrate_texts(pipeline, texts)
    left, right = np.triu_indices(60, 1)
    chance = paired_distances(pipeline, [texts[i] for i in left], [texts[i] for i in right])
    a, b = make_texts(30, 1), make_texts(30, 2)
    a[0] = b[0]
    expected = [(1 + (chance <= near).sum()) / (1 + len(chance)) for near in paired_distances(pipeline, a, b)]
    assert calibration.n_pairs == len(chance) == 1770
    assert calibration.null.window == 1770
    assert_allclose(calibration.pvalue(a, b), expected, atol=1.1 / 1771)  # float32 points: one rank
    assert calibration.pvalue(a[0], b[0]) == 1 / 1771
    assert_array_equal(calibration.pvalue(a[0], b), calibration.pvalue([a[0]] * 30, b))
    assert_array_equal(calibration.pvalue(a, b[3]), calibration.pvalue(a, [b[3]] * 30))
    groups = pipeline[:-1].transform(a)
    assert_array_equal(calibration.pvalue(groups, b), calibration.pvalue(a, b))
    assert_array_equal(calibration.similar(a, b, level=0.1), calibration.pvalue(a, b) <= 0.1)
    for level in (0.01, 0.29, 1771 / 1772):
        limit = calibration.threshold(level)
        nearer = chance < (-limit if is_similarity(pipeline) else limit) * (1 - 1e-6)
        assert abs((1 + nearer.sum()) / 1771 - min(level, 1770 / 1771)) <= 1.1 / 1771


@pytest.mark.parametrize("pipeline", make_pipelines(), ids=NAMES)
def test_held_out_texts_of_all_lengths_are_similar_as_often_as_the_level_says(pipeline):
    texts, fresh = make_texts(300, 1), make_texts(600, 2)
    calibration = calibrate_texts(pipeline.fit(texts), texts, cv=5, random_state=0)
    left = np.random.default_rng(3).integers(600, size=4000)
    right = (left + np.random.default_rng(4).integers(1, 600, size=4000)) % 600
    groups = pipeline[:-1].transform(fresh)
    p = calibration.pvalue(groups[left], groups[right])
    assert 0.035 <= (p <= 0.05).mean() <= 0.085  # 300 texts give a rough quantile
    size = groups.totals[left] * groups.totals[right] / (groups.totals[left] + groups.totals[right])
    for part in np.array_split(np.argsort(size), 4):
        assert 0.02 <= (p[part] <= 0.05).mean() <= 0.1


def test_folds_compare_texts_as_new_ones():
    """An embedding of few texts places these further apart than new ones: without folds, p-values are too small."""
    texts, fresh = make_texts(50, 1, longest=6), make_texts(600, 2, longest=6)
    pipeline = make_pipelines()[0].set_params(groupembedding__whiten=1.0).fit(texts)
    rejected = [
        (calibrate_texts(pipeline, texts, cv=cv, random_state=0).pvalue(fresh[:300], fresh[300:]) <= 0.1).mean()
        for cv in (None, 10)
    ]
    assert rejected[1] < 0.15 < 0.2 < rejected[0]


def test_the_corpus_that_is_asked_about_counts():
    """Texts of one topic are near each other by chance, and calibration on them knows it."""
    general, special = make_texts(200, 1), make_texts(200, 2, WORDS[:25])
    asked = make_texts(400, 3, WORDS[:25])
    pipeline = make_pipelines()[0].fit(general)
    shares = [
        (calibrate_texts(pipeline, corpus, random_state=0).pvalue(asked[:200], asked[200:]) <= 0.05).mean()
        for corpus in (general, special)
    ]
    assert shares[0] > 0.15
    assert shares[1] < 0.1


def test_reproducible_and_only_different_texts():
    texts = make_texts(200, 0)
    pipeline = make_pipelines()[0].fit(texts)
    one, other = (calibrate_texts(pipeline, texts, cv=4, n_pairs=900, random_state=7) for _ in range(2))
    assert_array_equal(one.null.distance, other.null.distance)
    assert one.n_pairs == 900
    twice = calibrate_texts(pipeline, [*texts, *texts, ""], n_pairs=10**6)
    assert twice.n_texts == 200
    assert twice.n_pairs == 200 * 199 // 2
    assert (twice.null.distance > 1e-6).all()


def test_what_is_not_a_list_of_texts_gets_a_sentence():
    pipeline = make_pipelines()[0].fit(make_texts(60, 0))
    with pytest.raises(TypeError, match="Text 0 is not a string but list.*Join its words"):
        calibrate_texts(pipeline, [["the", "cat"]] * 60)
    with pytest.raises(ValueError, match="A list or column of texts is expected, got DataFrame: pass one of its"):
        calibrate_texts(pipeline, pd.DataFrame({"text": make_texts(60, 0)}))


def test_sentences_name_the_corpus():
    texts = make_texts(60, 0)
    pipeline = make_pipelines()[0].fit(texts)
    calibration = calibrate_texts(pipeline, texts)
    assert isinstance(calibration, TextCalibration)
    assert repr(calibration) == "TextCalibration(1,770 random pairs from the 60 texts of the corpus, 60 texts)"
    named = calibrate_texts(pipeline, texts, name="headlines.txt")
    assert named.sentence(0.00553) == (
        "0.55 % of random pairs of similar length from headlines.txt are at least as near"
    )
    assert named.sentence(0.351).startswith("35 % of")


def test_what_cannot_be_calibrated():
    texts = make_texts(60, 0)
    pipeline = make_pipelines()[0]
    with pytest.raises(NotFittedError):
        calibrate_texts(pipeline, texts, cv=5)
    pipeline.fit(texts)
    with pytest.raises(ValueError, match="at least 50 different texts that have words, got 40"):
        calibrate_texts(pipeline, [*texts[:40], *texts[:40], "", "."])
    with pytest.raises(TypeError, match="must be a list of texts, got one text"):
        calibrate_texts(pipeline, texts[0])
    for cv in (1, 31, 2.5, "5"):
        with pytest.raises(ValueError, match=f"cv must be an integer between 2 and 30, .* got {cv!r}"):
            calibrate_texts(pipeline, texts, cv=cv)
    with pytest.raises(ValueError, match="n_pairs must be a positive integer"):
        calibrate_texts(pipeline, texts, n_pairs=0)
    for wrong in (pipeline[-1], pipeline[:1], make_pipeline(*pipeline[:1]), None):
        with pytest.raises(TypeError, match="needs a fitted pipeline that ends with a GroupEmbedding"):
            calibrate_texts(wrong, texts)
    calibration = calibrate_texts(pipeline, texts)
    with pytest.raises(ValueError, match="Text 1 of Y has no words"):
        calibration.pvalue(texts[:2], [texts[0], "."])
    with pytest.raises(ValueError, match="X must have at least one text"):
        calibration.pvalue(pipeline[:-1].transform(texts)[:0], texts)
    with pytest.raises(ValueError, match="the same number of texts, got 3 and 2"):
        calibration.pvalue(texts[:3], texts[:2])
    with pytest.raises(ValueError, match="level=0.001 is below the smallest p-value that 177 random pairs"):
        calibration.similar(texts[0], texts[1], level=0.001)


@pytest.mark.parametrize("make", [make_text_embedding, make_text_similarity])
def test_recipes(make):
    from sklearn_mcsg.datasets import load_short_texts

    texts = load_short_texts().data
    calibration = calibrate_texts(make(random_state=0).fit(texts), texts, cv=5, random_state=0)
    a, b = "A cat slept on the sofa.", ["The kitten naps in an armchair.", "Shares fell on Monday."]
    assert_array_equal(calibration.similar(a, b, level=0.02), [True, False])
