"""Baselines against plain formulas, and the surface they share with the model comparison."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import cosine_similarity

from sklearn_mcsg import SIF, Groups, MeanVector, WordMoversDistance

BASELINES = [MeanVector(), SIF(), SIF(n_components=1), WordMoversDistance()]
every_baseline = pytest.mark.parametrize("baseline", BASELINES, ids=repr)


def members(groups, i):
    rows = slice(groups.offsets[i], groups.offsets[i + 1])
    return groups[i], np.ones(len(groups[i])) if groups.weights is None else groups.weights[rows]


@pytest.mark.parametrize("weighted", [False, True])
def test_mean_vector(make_groups, weighted):
    groups = make_groups(weighted=weighted)
    means = np.array([np.average(x, axis=0, weights=w) for x, w in (members(groups, i) for i in range(len(groups)))])
    assert_allclose(MeanVector().embed(groups), means)
    assert_allclose(MeanVector().pairwise(groups), cosine_similarity(means))
    assert_allclose(MeanVector("distance").pairwise(groups), 1 - cosine_similarity(means), atol=1e-12)


@pytest.mark.parametrize("n_components", [0, 1, 2])
def test_sif(make_groups, n_components):
    groups, new = make_groups(20, weighted=True), make_groups(5, weighted=True, seed=1)

    def embedding(groups):
        return np.array(
            [(w[:, None] * x).sum(axis=0) / len(x) for x, w in (members(groups, i) for i in range(len(groups)))]
        )

    fitted = SIF(n_components).fit(groups)
    directions = np.linalg.svd(embedding(groups), full_matrices=False)[2][:n_components]
    expected = embedding(new) - embedding(new) @ directions.T @ directions
    assert_allclose(fitted.embed(new), expected, atol=1e-10)
    assert_allclose(np.abs((fitted.components_ * directions).sum(axis=1)), 1)
    assert_allclose(fitted.embed(new) @ directions.T, 0, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [5, 300])
def test_sif_has_no_cosines_of_rounding_errors(dtype, n_features):
    """Groups along the removed direction have no direction left, as zero vectors have none."""
    direction = np.random.default_rng(0).normal(size=n_features)
    X = [np.array([scale * direction], dtype) for scale in (1, 2, 3, 5, 7, -11)]
    assert_array_equal(SIF(1).fit(X).transform(X), 0)


@pytest.mark.parametrize("baseline", [MeanVector(), SIF(1)])
def test_vectors_of_weight_0_do_not_count(baseline, make_groups):
    groups = make_groups(9)
    more = Groups.from_list([np.vstack([x, x + 1]) for x in groups], [np.repeat([1.0, 0.0], len(x)) for x in groups])
    assert_allclose(baseline.fit_transform(more), baseline.fit_transform(groups), atol=1e-12)


def transport(x, a, y, b):
    """The definition: a linear programme over the moves."""
    cost = np.sqrt(((x[:, None] - y) ** 2).sum(axis=2))
    rows, columns = np.indices(cost.shape)
    constraints = np.concatenate(
        [rows.ravel() == np.arange(len(x))[:, None], columns.ravel() == np.arange(len(y))[:, None]]
    )
    return linprog(cost.ravel(), A_eq=constraints, b_eq=np.concatenate([a / a.sum(), b / b.sum()])).fun


@pytest.mark.parametrize("weighted", [False, True])
def test_word_movers_distance(make_groups, weighted):
    groups = make_groups(5, sizes=(1, 5), weighted=weighted)
    expected = [[transport(*members(groups, i), *members(groups, j)) for j in range(5)] for i in range(5)]
    assert_allclose(WordMoversDistance().pairwise(groups), expected, atol=1e-7)
    assert_allclose(WordMoversDistance(n_jobs=2).pairwise(groups), expected, atol=1e-7)


def test_integer_weights_are_repetitions(make_groups):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(n, 3)) for n in (2, 3, 4)]
    weights = [rng.integers(0, 3, size=len(x)) + (np.arange(len(x)) == 0) for x in arrays]
    weighted = Groups.from_list(arrays, weights=weights)
    repeated = Groups.from_list([np.repeat(x, w, axis=0) for x, w in zip(arrays, weights, strict=True)])
    for baseline in (MeanVector(), WordMoversDistance()):
        assert_allclose(baseline.pairwise(weighted), baseline.pairwise(repeated), atol=1e-9)


@every_baseline
def test_one_surface(baseline, make_groups):
    groups, new = make_groups(10, weighted=True), make_groups(4, weighted=True, seed=1)
    fitted = baseline.fit(groups)
    square = fitted.pairwise(groups)
    assert_allclose(square, square.T, atol=1e-12)
    assert_allclose(fitted.transform(new), fitted.pairwise(new, groups))
    assert_allclose(baseline.fit_transform(groups), square, atol=1e-12)
    assert_allclose(fitted.paired(new, groups[:4]), np.diag(fitted.pairwise(new, groups[:4])), atol=1e-12)
    near, far = (fitted.pairwise(groups, output=output) for output in ("similarity", "distance"))
    assert_array_equal(near.argmax(axis=1), np.arange(10))
    assert_array_equal(far.argmin(axis=1), np.arange(10))
    assert_allclose(fitted.transform(new[:1]), fitted.transform(new)[:1])
    assert len(fitted.get_feature_names_out()) == 10


@every_baseline
def test_precision(baseline, make_groups):
    single = baseline.fit_transform(make_groups(dtype=np.float32))
    assert single.dtype == np.float32
    assert_allclose(single, baseline.fit_transform(make_groups()), rtol=1e-4, atol=1e-4)


@every_baseline
def test_errors(baseline, make_groups):
    groups = make_groups()
    baseline.fit(groups)
    with pytest.raises(ValueError, match=r"output must be one of \['distance', 'similarity'\], got 'centered'"):
        baseline.pairwise(groups, output="centered")
    with pytest.raises(ValueError, match="as many groups in Y as in X, got 8 and 2"):
        baseline.paired(groups, groups[:2])
    with pytest.raises(ValueError, match="X has 2 features, but .* is expecting 4"):
        baseline.transform(np.ones((3, 2, 2)))
    with pytest.raises(ValueError, match=r"Group 1 has no vectors\..*pad_token"):
        baseline.fit([np.ones((2, 3)), np.ones((0, 3))])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_cosines_do_not_depend_on_the_scale(scale, make_groups):
    groups = make_groups()
    scaled = Groups(scale * groups.vectors, groups.offsets)
    for model in (MeanVector("similarity"), MeanVector("distance")):
        assert_allclose(model.pairwise(scaled), model.pairwise(groups), atol=1e-12)
        assert_allclose(model.paired(scaled, groups), model.paired(groups, groups), atol=1e-12)


def test_what_must_be_fitted():
    X = np.random.default_rng(0).normal(size=(4, 3, 2))
    assert MeanVector().pairwise(X).shape == (4, 4)
    assert SIF().pairwise(X).shape == (4, 4)
    with pytest.raises(NotFittedError):
        SIF(n_components=1).pairwise(X)
    with pytest.raises(NotFittedError):
        MeanVector().transform(X)
    with pytest.raises(ValueError, match="n_components=3 is too large for 4 groups of 2 features"):
        SIF(n_components=3).fit(X)


def test_components_must_be_those_fitted():
    X = np.random.default_rng(0).normal(size=(4, 3, 2))
    with pytest.raises(ValueError, match="n_components has changed since fit"):
        SIF().fit(X).set_params(n_components=1).transform(X)


def test_widths_must_agree_before_fit():
    with pytest.raises(ValueError, match="X has 2 features, but Y has 3"):
        MeanVector().pairwise(np.ones((2, 2, 2)), np.ones((2, 2, 3)))


def test_the_extra_is_named_when_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(ImportError, match=r"sklearn-mcsg\[wmd\]"):
        WordMoversDistance().pairwise(np.ones((2, 2, 2)))


def test_no_components_after_fitting_some_is_an_error_too():
    X = np.random.default_rng(0).normal(size=(9, 4, 3))
    model = SIF(n_components=1).fit(X).set_params(n_components=0)
    with pytest.raises(ValueError, match="n_components has changed since fit"):
        model.transform(X)


def test_rows_that_are_nearly_equal_keep_their_order_in_single_precision():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 50)).astype(np.float32)
    steps = 1e-4 * np.arange(1, 6, dtype=np.float32)
    other = x + steps[:, None] * rng.normal(size=50).astype(np.float32)
    distances = MeanVector("distance").paired(np.repeat(x, 5, axis=0)[:, None], other[:, None])
    assert distances.dtype == np.float32
    assert_allclose(distances / distances[0], np.arange(1, 6) ** 2, rtol=0.02)


def test_a_mean_of_zero_has_cosine_zero_with_all():
    X = np.array([[[1.0, 2.0], [-1.0, -2.0]], [[1.0, 0.0], [3.0, 1.0]]])
    assert_allclose(MeanVector().pairwise(X), [[0, 0], [0, 1]], atol=1e-12)
    assert_allclose(MeanVector("distance").pairwise(X), [[0, 1], [1, 0]], atol=1e-12)
    assert_allclose(MeanVector("distance").paired(X[[0, 0, 1]], X[[1, 0, 1]]), [1, 1, 0], atol=1e-12)


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-500, 2.0**-60, 2.0**500, 2.0**1018])
@every_baseline
def test_units_do_not_matter(make_groups, baseline, scale):
    groups = make_groups(weighted=True)
    scaled = Groups(scale * groups.vectors, groups.offsets, weights=groups.weights)
    unit = scale if isinstance(baseline, WordMoversDistance) else 1.0
    expected, found = clone(baseline).fit(groups), clone(baseline).fit(scaled)
    assert_array_equal(found.pairwise(scaled) / unit, expected.pairwise(groups))
    assert_array_equal(found.paired(scaled, scaled[::-1]) / unit, expected.paired(groups, groups[::-1]))


@every_baseline
def test_numbers_beyond_double_precision_are_reported(baseline):
    X = [np.full((4, 3), 1e308), np.full((4, 3), -1e308)]
    named = "distance of group 0 and group 1" if isinstance(baseline, WordMoversDistance) else "mean of group 0"
    with pytest.raises(ValueError, match=f"The {named} is not a finite number.*Rescale"):
        clone(baseline).fit(X).pairwise(X)


def test_distances_beyond_single_precision_are_reported():
    X = [np.full((1, 2), 3e38, dtype=np.float32), np.full((1, 2), -3e38, dtype=np.float32)]
    for compare in (WordMoversDistance().pairwise, lambda X: WordMoversDistance().paired(X[:1], X[1:])):
        with pytest.raises(ValueError, match="exceeds the range of float32"):
            compare(X)
