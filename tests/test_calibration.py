"""Thresholds: the level of a test is what it says, and its power is more."""

from itertools import combinations

import numpy as np
import pytest
from conftest import random_groups
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_mcsg import (
    LIKELIHOODS,
    GroupEmbedding,
    Groups,
    MeanVector,
    ModelComparisonSimilarity,
    calibrate_texts,
)
from sklearn_mcsg.engine.chance import NullDistribution
from sklearn_mcsg.engine.outputs import OUTPUTS


def corpus(n_groups, seed, sizes=(2, 25)):
    """Groups around centres of their own, of very different sizes."""
    return random_groups(n_groups, sizes=sizes, spread=1.5, seed=seed)


def held_out_pairs(groups, seed, n_pairs=4000):
    rng = np.random.default_rng(seed)
    left = rng.integers(len(groups), size=n_pairs)
    return left, (left + rng.integers(1, len(groups), size=n_pairs)) % len(groups)


@pytest.mark.filterwarnings("ignore:.*have no direction")
@pytest.mark.parametrize(
    ("likelihood", "output"),
    [*(("diag", output) for output in OUTPUTS), *((name, "distance") for name in LIKELIHOODS if name != "diag")],
)
def test_random_pairs_are_similar_as_often_as_the_level_says(likelihood, output):
    model = ModelComparisonSimilarity(likelihood, output=output, prior_strength=0.5, random_state=0)
    model.fit(corpus(600, 0)).calibrate()
    fresh = corpus(600, 1)
    left, right = held_out_pairs(fresh, 2)
    p = model.pvalue(fresh[left], fresh[right])
    assert 0.03 <= (p <= 0.05).mean() <= 0.07
    size = fresh.sizes[left] * fresh.sizes[right] / (fresh.sizes[left] + fresh.sizes[right])
    short = size < np.quantile(size, 0.25)
    for part in (short, ~short):
        assert 0.02 <= (p[part] <= 0.05).mean() <= 0.08


def test_embeddings_compare_pairs_of_similar_size():
    """Without that, .02 of the pairs of the smallest quarter would pass and .083 of the largest."""
    one, other, fresh = (random_groups(600, 12, sizes=(2, 40), spread=0.3, seed=seed) for seed in (0, 3, 1))
    model = GroupEmbedding(random_state=0).fit(one).calibrate(other)
    left, right = held_out_pairs(fresh, 2)
    p = model.pvalue(fresh[left], fresh[right])
    size = fresh.sizes[left] * fresh.sizes[right] / (fresh.sizes[left] + fresh.sizes[right])
    for part in np.array_split(np.argsort(size), 4):
        assert 0.03 <= (p[part] <= 0.05).mean() <= 0.07
    with pytest.raises(ValueError, match="row by row"):
        model.pvalue(fresh, fresh[:3])


def test_groups_of_one_model_are_found():
    rng = np.random.default_rng(0)
    model = ModelComparisonSimilarity(output="distance", random_state=0).fit(corpus(500, 0, (8, 20))).calibrate()
    centres = rng.normal(scale=1.5, size=(200, 4))
    one, other = ([rng.normal(c, 1, size=(10, 4)) for c in centres] for _ in range(2))
    assert model.similar(one, other, level=0.05).mean() > 0.9
    assert model.similar(one, other[::-1], level=0.05).mean() < 0.1


def test_pvalues_are_shares_of_random_pairs():
    size, distance = np.arange(300.0), np.tile([1.0, 2.0, 3.0], 100)
    null = NullDistribution.of(size[::-1], distance)
    p = null.pvalue(np.array([0.0, 150.0, 299.0]), np.array([0.5, 2.0, 3.0]))
    assert p[0] == 1 / 101
    assert p[1] == pytest.approx(2 / 3, abs=0.02)
    assert p[2] == 1


@pytest.mark.parametrize("output", ["distance", "divergence"])
@pytest.mark.parametrize("sizes", [(2, 3), (2, 50)])
def test_levels_hold_where_sizes_are_tied(output, sizes):
    def make(seed, n_groups):
        rng = np.random.default_rng(seed)
        counts = np.repeat(sizes, n_groups // 2)
        return Groups.from_list([rng.normal(rng.normal(size=5), 1, size=(k, 5)) for k in counts])

    model = ModelComparisonSimilarity(output=output, random_state=0).fit(make(0, 1000)).calibrate()
    fresh = make(1, 2000)
    first, second = np.arange(0, 1000, 2), np.arange(1, 1000, 2)
    for left, right in ((first, second), (first, 1000 + first), (1000 + first, 1000 + second)):
        assert 0.025 <= (model.pvalue(fresh[left], fresh[right]) <= 0.05).mean() <= 0.085


@pytest.mark.filterwarnings("ignore:.*groups to calibrate with")
def test_few_groups_cannot_claim_small_pvalues():
    groups = corpus(6, 0)
    model = ModelComparisonSimilarity(random_state=0).fit(groups)
    with pytest.warns(UserWarning, match="Only 6 groups to calibrate with"):
        model.calibrate()
    assert model.pvalue(groups, groups).min() >= 1 / 16
    with pytest.raises(ValueError, match="level=0.01 is below the smallest p-value that 15 random pairs"):
        model.similar(groups, groups)


@pytest.mark.parametrize("output", ["distance", "divergence"])
def test_thresholds_leave_about_their_level_below(output):
    groups = corpus(400, 0)
    model = ModelComparisonSimilarity(output=output, random_state=0).fit(groups).calibrate()
    fresh = corpus(600, 1)
    left, right = held_out_pairs(fresh, 2, n_pairs=20_000)
    size = fresh.totals[left] * fresh.totals[right] / (fresh.totals[left] + fresh.totals[right])
    values = model.paired(fresh[left], fresh[right])
    for level in (0.1, 0.01):
        assert level / 2 <= (values <= model._null.threshold(size, level)).mean() <= 2 * level


def test_calibration_on_other_groups_and_reproducible():
    groups = corpus(100, 0)
    model = ModelComparisonSimilarity(random_state=0).fit(groups[:50])
    fixed = model.calibrate(groups, n_pairs=500).pvalue(groups[:9], groups[9:18])
    np.testing.assert_array_equal(model.calibrate(groups, n_pairs=500).pvalue(groups[:9], groups[9:18]), fixed)


def test_what_must_be_calibrated():
    groups = corpus(60, 0)
    model = ModelComparisonSimilarity(random_state=0)
    with pytest.raises(NotFittedError):
        model.calibrate()
    model.fit(groups)
    with pytest.raises(NotFittedError, match="call calibrate first"):
        model.pvalue(groups, groups)
    model.calibrate()
    with pytest.raises(NotFittedError, match="call calibrate first"):
        model.set_params(output="distance").pvalue(groups, groups)
    with pytest.raises(NotFittedError, match="call calibrate first"):
        model.calibrate().fit(groups).pvalue(groups, groups)
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        model.calibrate().similar(groups, groups, level=1.5)
    with pytest.raises(ValueError, match="at least two groups"):
        model.calibrate(groups[:1])
    for n_pairs in (0, 2.5, None):
        with pytest.raises(ValueError, match="n_pairs must be a positive integer"):
            model.calibrate(n_pairs=n_pairs)
    with pytest.raises(ValueError, match="n_permutations must be a positive integer"):
        model.paired_test(groups[0], groups[1], n_permutations=0)
    with pytest.raises(ValueError, match="row by row"):
        model.pvalue(groups, groups[:3])


@pytest.mark.parametrize("likelihood", ["diag", "vmf"])
def test_permutations_are_exact_in_their_level(likelihood):
    rng = np.random.default_rng(0)
    model = ModelComparisonSimilarity(likelihood, random_state=0)
    p = [model.paired_test(x[:5], x[5:], n_permutations=39).pvalue for x in rng.standard_t(2, size=(150, 9, 3))]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 2.6 * np.sqrt(0.05 * 0.95 / 150)
    assert np.mean(np.array(p) <= 0.5) == pytest.approx(0.5, abs=0.11)
    assert model.paired_test(rng.normal(size=(9, 3)), rng.normal(4, 1, size=(9, 3))).pvalue <= 0.01


def test_all_divisions_of_few_vectors():
    x = np.array([[0.0], [0.5], [1.0], [6.0], [7.0], [8.5]])
    model = ModelComparisonSimilarity()
    result = model.paired_test(x[:3], x[3:])
    similarity = [model.paired([x[list(rows)]], [np.delete(x, rows, axis=0)])[0] for rows in combinations(range(6), 3)]
    assert result.similarity == pytest.approx(model.paired([x[:3]], [x[3:]])[0])
    assert result.pvalue == np.mean(np.array(similarity) <= result.similarity + 1e-9)
    assert result.pvalue == 2 / 20


def test_permutation_of_weighted_vectors_and_errors():
    rng = np.random.default_rng(0)
    a = Groups.from_list([rng.normal(size=(6, 2))], weights=[rng.uniform(0.5, 2, 6)])
    b = Groups.from_list([rng.normal(size=(7, 2)) + 3], weights=[rng.uniform(0.5, 2, 7)])
    model = ModelComparisonSimilarity(random_state=0)
    result = model.paired_test(a, b)
    assert result.pvalue <= 0.01
    assert result.similarity == pytest.approx(model.paired(a, b)[0])
    with pytest.raises(ValueError, match="a holds 2 groups, but must be a single group"):
        model.paired_test(Groups.concatenate([a, a]), b)
    with pytest.raises(ValueError, match="a has 2 features, but b has 3"):
        model.paired_test(a, np.ones((4, 3)))


def test_permutations_leave_vectors_of_weight_0_out():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 2)), rng.normal(size=(3, 2))
    weightless = Groups.from_list([[*a, *np.full((4, 2), 9.0)]], weights=[[1, 1, 0, 0, 0, 0]])
    for model in map(ModelComparisonSimilarity, ("diag", "full", "vmf")):
        assert_allclose(model.paired_test(weightless, b), model.paired_test(a, b), rtol=1e-12)
        assert_allclose(model.paired_test(b, weightless), model.paired_test(b, a), rtol=1e-12)


def test_calibration_goes_with_other_groups():
    """The random pairs are those of the corpus, whatever groups are kept."""
    X, a, b = corpus(80, 0), corpus(5, 1), corpus(5, 2)
    model = ModelComparisonSimilarity(output="distance").fit(X).calibrate(random_state=0)
    np.testing.assert_array_equal(model.with_groups(X[:5]).pvalue(a, b), model.pvalue(a, b))


def test_pvalues_do_not_depend_on_rounding():
    """A pair that is among the random pairs is as near as itself, however its distance was computed."""
    rng = np.random.default_rng(0)
    distance = rng.uniform(size=500)
    null = NullDistribution.of(np.ones(500), distance)
    p = null.pvalue(np.ones(500), distance)
    for factor in (1 - 1e-12, 1 + 1e-12):
        np.testing.assert_array_equal(null.pvalue(np.ones(500), factor * distance), p)


@pytest.mark.parametrize("name", ["similarity", "embedding", "texts"])
def test_the_old_name_of_pvalue(name):
    groups = corpus(60, 0)
    if name == "similarity":
        model = ModelComparisonSimilarity(random_state=0).fit(groups).calibrate()
    elif name == "embedding":
        model = GroupEmbedding(random_state=0).fit(groups).calibrate(groups)
    else:
        pipeline = make_pipeline(FunctionTransformer(), MeanVector()).fit(groups)
        model = calibrate_texts(pipeline, groups, random_state=0)
    with pytest.warns(FutureWarning, match="It has been called pvalue since 0.2; the old name will be removed in 0.3"):
        old = model.p_value(groups[:9], groups[9:18])
    np.testing.assert_array_equal(old, model.pvalue(groups[:9], groups[9:18]))
