"""Two samples of groups: the test against plain definitions, its level, its parts, and what it refuses."""

import re
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_mcsg import (
    LIKELIHOODS,
    GroupEmbedding,
    Groups,
    MeanVector,
    ModelComparisonSimilarity,
    adjust_pvalues,
    compare_samples,
    make_text_embedding,
    make_text_similarity,
)
from sklearn_mcsg.datasets import load_short_texts


def draw(seed, n_groups, shift=0.0, within=1.0, n_features=4):
    """Groups whose vectors depend on each other: each group has a mean of its own."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 16, size=n_groups)
    return [within * rng.normal(size=n_features) + rng.normal(shift, 1, (n, n_features)) for n in sizes]


def by_definition(likelihood, X, Y):
    """Minus twice the log likelihood ratio of all vectors in one model against two."""
    model = ModelComparisonSimilarity(likelihood)
    return model.pairwise([np.concatenate(X)], [np.concatenate(Y)], output="distance")[0, 0]


@pytest.mark.parametrize("likelihood", [name for name in LIKELIHOODS if name != "trend"])
def test_all_divisions_of_few_groups_by_the_definition(likelihood):
    X, Y = draw(0, 3), draw(1, 3, shift=0.5)
    found = compare_samples(X, Y, similarity=ModelComparisonSimilarity(likelihood))
    everything = X + Y
    expected = []
    for chosen in combinations(range(6), 3):
        others = [i for i in range(6) if i not in chosen]
        expected.append(by_definition(likelihood, [everything[i] for i in chosen], [everything[i] for i in others]))
    assert_allclose(found.permuted, expected, rtol=1e-9)
    assert_allclose(found.statistic, expected[0], rtol=1e-9)
    assert found.pvalue == np.mean(np.array(expected) >= expected[0] * (1 - 1e-9))


def test_vectors_keep_their_places_when_groups_are_pooled():
    X, Y = (
        [np.outer(np.linspace(-1, 1, 9), slope) + x[:1] for x in draw(i, 12)]
        for i, slope in enumerate((np.ones(4), -np.ones(4)))
    )
    assert compare_samples(X, Y, similarity=ModelComparisonSimilarity("trend"), random_state=0).pvalue <= 0.001
    assert compare_samples(X, Y, random_state=0).pvalue > 0.05  # the order is all that differs


def test_points_by_the_definition():
    X, Y = draw(0, 12), draw(1, 9, shift=0.3)
    embedding = GroupEmbedding(prior_strength=0.5)
    found = compare_samples(X, Y, similarity=embedding, n_permutations=50, random_state=0)
    points = embedding.fit_transform(X + Y)
    assert_allclose(found.statistic, np.square(points[:12].mean(axis=0) - points[12:].mean(axis=0)).sum(), rtol=1e-12)
    order = np.random.RandomState(0).permutation(21)
    first = points[order[:12]].mean(axis=0) - points[order[12:]].mean(axis=0)
    assert_allclose(found.permuted[1], np.square(first).sum(), rtol=1e-12)
    assert len(found.permuted) == 51


@pytest.mark.parametrize(
    "similarity",
    [
        *(ModelComparisonSimilarity(name, "tic") for name in LIKELIHOODS),
        ModelComparisonSimilarity(criterion="bayes"),
        *(ModelComparisonSimilarity(name, balanced=True) for name in LIKELIHOODS),
        *(GroupEmbedding(name, normalize=normalize) for name in LIKELIHOODS for normalize in (False, True)),
        GroupEmbedding(prior_strength=2, normalize=True),
    ],
    ids=str,
)
def test_parts_sum_to_the_statistic(similarity):
    X, Y = draw(0, 8), draw(1, 10, shift=0.5)
    weights = [np.arange(1.0, len(x) + 1) for x in X]
    found = compare_samples(
        Groups.from_list(X, weights=weights), Y, similarity=similarity, n_permutations=9, random_state=0
    )
    exactly = dict(rtol=1e-9, atol=1e-12)
    assert_allclose(sum(part.sum() for part in found.groups), found.statistic, **exactly)
    assert_allclose(sum(part.sum() for part in found.vectors), found.statistic, **exactly)
    assert [len(part) for part in found.groups] == [8, 10]
    assert_allclose(found.groups[0][0], found.vectors[0][: len(X[0])].sum(), **exactly)
    if found.features is not None:
        assert_allclose(found.features.sum(), found.statistic, **exactly)


@pytest.mark.parametrize("similarity", [None, GroupEmbedding()], ids=str)
def test_the_feature_that_differs_is_named(similarity):
    X, Y = draw(0, 40), [y + 1.5 * np.eye(4)[2] for y in draw(1, 40)]
    found = compare_samples(X, Y, similarity=similarity, random_state=0)
    assert found.pvalue == 0.001
    assert found.features.argmax() == 2
    assert "features: 2 +" in repr(found)


@pytest.mark.parametrize("similarity", [None, GroupEmbedding()], ids=str)
def test_the_level_holds_where_vectors_depend_on_each_other(similarity):
    """Of 60 tests at .1, more than 13 reject with a chance of 1 %. Vectors that are exchanged singly reject always."""
    pvalues = [
        compare_samples(
            draw(2 * i, 12), draw(2 * i + 1, 12), similarity=similarity, n_permutations=99, random_state=i
        ).pvalue
        for i in range(60)
    ]
    assert np.count_nonzero(np.array(pvalues) <= 0.1) <= 13
    single = ModelComparisonSimilarity(random_state=0).paired_test(*(np.concatenate(draw(i, 12)) for i in (0, 1)))
    assert single.pvalue <= 0.01


@pytest.mark.parametrize("similarity", [None, GroupEmbedding(), GroupEmbedding("trend")], ids=str)
def test_equal_samples_have_no_shares_of_rounding(similarity):
    X = draw(0, 8)
    found = compare_samples(X, X[::-1], similarity=similarity, n_permutations=99, random_state=0)
    assert found.pvalue == 1
    assert re.findall(r"[+-][0-9]+ %", repr(found)) == ["+0 %"] * 8


def test_samples_may_change_places():
    X, Y = draw(0, 9), draw(1, 7, shift=0.4)
    one, other = compare_samples(X, Y, random_state=0), compare_samples(Y, X, random_state=0)
    assert_allclose(one.statistic, other.statistic, rtol=1e-12)
    assert_allclose(one.groups[0], other.groups[1], rtol=1e-9, atol=1e-12)


TOPICS = ["music"], ["law", "weather"]


def test_texts_and_the_words_that_make_the_difference():
    texts = load_short_texts()
    topics = np.array(texts.target_names)[texts.target]
    music, rest = ([text for text, topic in zip(texts.data, topics, strict=True) if topic in some] for some in TOPICS)
    for pipeline in (make_text_embedding(), make_text_similarity()):
        found = compare_samples(rest, music, similarity=pipeline, n_permutations=99, random_state=0)
        assert found.pvalue == 0.01
        assert found.words
    found = compare_samples(rest, music, similarity=make_text_embedding(), n_permutations=99, random_state=0)
    assert_allclose(sum(part.sum() for part in found.words.values()), found.statistic, rtol=1e-5)
    assert {"guitar", "piano", "song", "band"} & set(list(found.words)[:10])
    assert "words:" in repr(found)


def test_the_given_estimator_is_left_as_it_is():
    similarity = ModelComparisonSimilarity()
    first = compare_samples(draw(0, 5), draw(1, 5), similarity=similarity, random_state=3)
    assert not hasattr(similarity, "n_groups_")
    assert_array_equal(compare_samples(draw(0, 5), draw(1, 5), random_state=3).permuted, first.permuted)


FEW = draw(0, 3)
BAD = {
    "one group": (
        dict(X=FEW, Y=FEW[:1]),
        ValueError,
        "Y must hold at least 2 groups, because groups are exchanged; got 1",
    ),
    "no permutations": (dict(X=FEW, Y=FEW, n_permutations=0), ValueError, "n_permutations must be a positive"),
    "other widths": (dict(X=FEW, Y=np.ones((2, 3, 2))), ValueError, "features"),
    "an empty group": (dict(X=FEW, Y=[*FEW, np.empty((0, 4))]), ValueError, r"Y\[3\] has no vectors: leave it out"),
    "another similarity": (
        dict(X=FEW, Y=FEW, similarity=MeanVector()),
        TypeError,
        "must be a ModelComparisonSimilarity or",
    ),
    "landmarks": (
        dict(X=FEW, Y=FEW, similarity=GroupEmbedding(method="landmarks")),
        ValueError,
        "An embedding by landmarks cannot be explained",
    ),
    "texts": (
        dict(X=["a text", "b"], Y=["c", "d"]),
        TypeError,
        r"X holds texts: pass similarity=make_text_embedding\(\)",
    ),
    "a tuple of texts": (dict(X=("a text", "b"), Y=("c", "d")), TypeError, "X holds texts: pass similarity="),
    "one text": (dict(X="a text", Y=["c", "d"], similarity=make_text_embedding()), TypeError, "X is a string"),
}


@pytest.mark.parametrize(("arguments", "error", "why"), BAD.values(), ids=BAD)
def test_bad_input_gets_a_sentence(arguments, error, why):
    with pytest.raises(error, match=why):
        compare_samples(**arguments)


# Families of tests --------------------------------------------------------------------------------------------------


def by_steps(pvalues, method):
    """The smallest level at which each test is rejected, found by going down or up the sorted p-values."""
    order, m = np.argsort(pvalues, kind="stable"), len(pvalues)
    adjusted = np.empty(m)
    for i in range(m):
        if method == "holm":
            least = max((m - j) * pvalues[order[j]] for j in range(i + 1))
        else:
            least = min(m / (j + 1) * pvalues[order[j]] for j in range(i, m))
        adjusted[order[i]] = min(1, least)
    return adjusted


@pytest.mark.parametrize("method", ["holm", "fdr"])
def test_adjusted_pvalues_by_the_definition(method):
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 7, 60):
        pvalues = np.round(rng.uniform(size=n) ** 3, 2)  # some are equal, some are 0
        found = adjust_pvalues(pvalues, method)
        assert_allclose(found, by_steps(pvalues, method), rtol=1e-12)
        assert (found >= pvalues).all()
        assert (found <= 1).all()


def test_adjusted_pvalues_of_a_published_example():
    """The fifteen p-values of Benjamini and Hochberg (1995, section 4.1), corrected by statsmodels' multipletests."""
    pvalues = [
        *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
        *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0),
    ]
    assert np.count_nonzero(adjust_pvalues(pvalues, "fdr") <= 0.05) == 4
    assert np.count_nonzero(adjust_pvalues(pvalues) <= 0.05) == 3
    assert_allclose(adjust_pvalues(pvalues)[:5], [0.0015, 0.0056, 0.0247, 0.114, 0.2211], rtol=1e-12)
    expected = [0.0015, 0.003, 0.0095, 0.035625, 0.0603, 0.0638571, 0.0638571, 0.0645, 0.0765]
    assert_allclose(adjust_pvalues(pvalues, "fdr")[:9], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1, np.nan],), "between 0 and 1, got nan at position 1. Leave out tests without a p-value"),
        (([0.1, 1.5],), "between 0 and 1, got 1.5 at position 1"),
        (([[0.1], [0.2]],), r"one-dimensional, one per test, got shape \(2, 1\)"),
        (([0.1], ["holm"]), r"method must be 'holm' or 'fdr', got \['holm'\]"),
        (([0.1], "bonferroni"), "method must be 'holm' or 'fdr', got 'bonferroni'"),
    ],
)
def test_bad_pvalues_get_a_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        adjust_pvalues(*arguments)


@pytest.mark.parametrize(
    ("pvalues", "error", "message"),
    [
        (np.ma.masked_array([0.1, 0.2], mask=[False, True]), TypeError, "pvalues is a masked array, whose mask would"),
        ([0.1, 0.2j], ValueError, "Complex data not supported: pvalues"),
        (["0.1"], TypeError, "pvalues must hold numbers, got dtype <U3"),
    ],
)
def test_pvalues_that_are_no_numbers_get_a_sentence(pvalues, error, message):
    with pytest.raises(error, match=message):
        adjust_pvalues(pvalues)


def test_more_permutations_than_memory_fail_at_once():
    X = list(np.random.default_rng(0).normal(size=(40, 3, 2)))
    for n_permutations in (10**11, 10**15, 10**30):  # at random, and all divisions
        with pytest.raises(ValueError, match="permutations take more memory than there is: choose fewer"):
            compare_samples(X[:20], X[20:], n_permutations=n_permutations)
