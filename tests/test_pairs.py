"""Pairs of texts or groups as samples."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from sklearn_mcsg import (
    SIF,
    EmbeddingVectorizer,
    Groups,
    MeanVector,
    ModelComparisonSimilarity,
    PairSimilarity,
    WordMoversDistance,
)

RNG = np.random.default_rng(0)
WORDS = ["the", *(f"w{i}" for i in range(40))]
VECTORS = RNG.normal(size=(41, 6))
SENTENCES = [" ".join(RNG.choice(WORDS, 6)) for _ in range(40)]
PAIRS = list(zip(SENTENCES[:20], SENTENCES[20:], strict=True))
GOLD = RNG.normal(size=20)


def pipeline(similarity=None):
    vectorizer = EmbeddingVectorizer((WORDS, VECTORS), weighting=None)
    return Pipeline([("vectorizer", vectorizer), ("similarity", similarity or ModelComparisonSimilarity())])


@pytest.mark.parametrize("container", [list, np.array, pd.DataFrame, pl.DataFrame, lambda p: [list(x) for x in p]])
def test_containers_of_pairs(container):
    X = pl.DataFrame(PAIRS, orient="row") if container is pl.DataFrame else container(PAIRS)
    expected = pipeline()["similarity"].paired(
        *(pipeline()[:1].fit_transform([pair[side] for pair in PAIRS]) for side in (0, 1))
    )
    assert_allclose(PairSimilarity(pipeline()).fit(X).predict(X), expected)


def test_pairs_of_groups(make_groups):
    groups = make_groups(10)
    pairs = [(groups[i], groups[i + 1]) for i in range(9)]
    model = PairSimilarity(ModelComparisonSimilarity(prior_strength=1.0)).fit(pairs)
    assert model.estimator_.n_groups_ == 18
    assert_allclose(model.predict(pairs), model.estimator_.paired(groups[:9], groups[1:]))


def test_pairs_of_weighted_groups_keep_their_weights(make_groups):
    A, B = make_groups(9, weighted=True), make_groups(9, weighted=True, seed=1)
    pairs = [(A[[i]], B[i : i + 1]) for i in range(9)]
    model = PairSimilarity(ModelComparisonSimilarity(prior_strength=1.0))
    expected = ModelComparisonSimilarity(prior_strength=1.0).fit(Groups.concatenate([A, B])).paired(A, B)
    assert_allclose(model.fit(pairs).predict(pairs), expected)
    assert_allclose(model.predict(pairs[3:5]), expected[3:5])
    assert np.abs(model.predict(list(zip(A, B, strict=True))) - expected).max() > 1e-3, "arrays have no weights"
    search = GridSearchCV(model, {"estimator__likelihood": ["diag", "spherical"]}, cv=3).fit(pairs, np.arange(9))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    mixed = [(A[[0]], B[0]), (A[1], B[[1]])]
    assert model.predict(mixed).shape == (2,)
    with pytest.raises(ValueError, match="An element of pair 1 holds 9 groups.*: pass one of them as groups"):
        model.fit([pairs[0], (A, B[[1]])])
    with pytest.raises(ValueError, match=r"^An element of pair 0 has 1 dimension\(s\), but a group is a 2-d array"):
        model.fit([(A[[0]], B[1][0])])


@pytest.mark.parametrize(
    "similarity",
    [
        ModelComparisonSimilarity(),
        ModelComparisonSimilarity(output="distance"),
        ModelComparisonSimilarity(output="centered", prior_strength=0.5),
        MeanVector(),
        MeanVector("distance"),
        SIF(1),
        WordMoversDistance(),
    ],
    ids=repr,
)
def test_higher_is_more_similar_and_the_score_is_spearmans(similarity):
    same = (SENTENCES[0], SENTENCES[0])
    model = PairSimilarity(pipeline(similarity)).fit(PAIRS)
    predicted = model.predict([*PAIRS, same])
    assert (predicted[-1] > predicted[:-1]).all()
    assert model.score(PAIRS, GOLD) == pytest.approx(spearmanr(predicted[:-1], GOLD).statistic)


def test_search_over_likelihood_and_criterion():
    grid = {"estimator__similarity__likelihood": ["diag", "vmf"], "estimator__similarity__criterion": ["aic", "tic"]}
    search = GridSearchCV(PairSimilarity(pipeline()), grid, cv=3).fit(PAIRS, GOLD)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(PAIRS[:3]).shape == (3,)


def test_a_constant_scores_zero_with_a_warning():
    model = PairSimilarity(pipeline()).fit(PAIRS)
    same = [PAIRS[0]] * 4
    with pytest.warns(UserWarning, match="The prediction is constant"):
        assert model.score(same, [1, 2, 3, 4]) == 0
    with pytest.warns(UserWarning, match="y is constant"):
        assert model.score(PAIRS[:2], [1, 1]) == 0


def test_fitting_leaves_the_estimator_alone():
    pipe = pipeline()
    model = PairSimilarity(pipe).fit(PAIRS)
    assert not hasattr(pipe["similarity"], "n_groups_")
    assert model.estimator_["similarity"].n_groups_ == 40
    assert clone(model).estimator is not pipe


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([("a", "b"), ("c",)], "Sample 1 is not a pair"),
        (["ab", "cd"], "Sample 0 is not a pair: 'ab'"),
        (pd.DataFrame({"a": ["x"], "b": ["y"], "c": ["z"]}), "two columns, got 3"),
        ([], "no pairs"),
        ([1, 2], "Sample 0 is not a pair"),
    ],
    ids=["single", "strings", "three columns", "none", "numbers"],
)
def test_what_is_no_pair(X, message):
    with pytest.raises(ValueError, match=message):
        PairSimilarity(pipeline()).fit(X)


def test_columns_of_one_name():
    frame = pd.DataFrame(PAIRS, columns=["a", "a"])
    model = PairSimilarity(pipeline()).fit(frame)
    assert_allclose(model.predict(frame), model.predict(PAIRS))


def test_yes_or_no():
    model = PairSimilarity(pipeline()).fit(PAIRS)
    assert model.score(PAIRS, GOLD > 0) == model.score(PAIRS, (GOLD > 0).astype(float))


def test_errors():
    model = PairSimilarity(pipeline()).fit(PAIRS)
    with pytest.raises(ValueError, match="y holds NaN or infinity, first at pair 1"):
        model.score(PAIRS[:3], [1, np.nan, 2])
    with pytest.raises(ValueError, match="y must hold numbers"):
        model.score(PAIRS[:3], list("abc"))
    with pytest.raises(ValueError, match="got int"):
        model.predict(5)
    with pytest.raises(TypeError, match="needs a similarity with a method 'paired'.*LinearRegression"):
        PairSimilarity(LinearRegression()).fit(PAIRS)
    with pytest.raises(NotFittedError):
        PairSimilarity(pipeline()).predict(PAIRS)
    with pytest.raises(ValueError, match="inconsistent"):
        PairSimilarity(pipeline()).fit(PAIRS).score(PAIRS, [1, 2])
