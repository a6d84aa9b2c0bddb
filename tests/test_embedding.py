"""Groups as vectors: the law of the coordinates, what is learnt, explanations, and everything that uses them."""

import pickle
import re
import time
import tracemalloc

import numpy as np
import oracle
import pandas as pd
import pytest
import sklearn
from conftest import Exponential, Ragged, by_one_thread, by_several_threads, traces_memory
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.linalg import logm, sqrtm
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import cosine_distances
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_mcsg import (
    LIKELIHOODS,
    Comparison,
    GroupEmbedding,
    GroupNeighbors,
    Groups,
    GroupSimilarity,
    MeanVector,
    ModelComparisonSimilarity,
    PairExplanation,
    PairSimilarity,
    VonMisesFisher,
    WordMoversDistance,
    explain_texts,
    find_duplicates,
    make_text_embedding,
    update_index,
)
from sklearn_mcsg.cli._terminal import word_pairs
from sklearn_mcsg.likelihoods import bessel

pytestmark = by_several_threads

WITH_COORDINATES = [name for name, likelihood in LIKELIHOODS.items() if likelihood().defines("coordinates")]
every_likelihood = pytest.mark.parametrize("likelihood", WITH_COORDINATES)


@every_likelihood
def test_squared_distances_approach_the_divergence(likelihood):
    """As all groups approach the model of the corpus, at the rate at which they do."""
    errors = []
    for size in (0.08, 0.02):
        rng = np.random.default_rng(1)
        base = rng.normal(size=(6000, 3)) * [0.7, 1.0, 1.4]
        base = (base - base.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(base.T, bias=True))).T
        arrays = []
        for repeats in rng.integers(1, 4, size=12):  # unequal sizes
            stretch = np.eye(3) + size * rng.normal(size=(3, 3))
            arrays.append(np.repeat(base @ stretch + size * rng.normal(size=3) + 1.5, repeats, axis=0))
        groups = Groups.from_list(arrays)
        points = GroupEmbedding(likelihood).fit_transform(groups)
        exact = ModelComparisonSimilarity(likelihood, output="divergence").pairwise(groups)
        upper = np.triu_indices(12, 1)
        errors.append(np.abs(squareform(pdist(points, "sqeuclidean"))[upper] / exact[upper] - 1).max())
    assert errors[0] < 0.5
    assert errors[1] < 0.4 * errors[0], "the error is of the order of the distance"
    assert errors[1] < 0.12


def raw_coordinates(likelihood, x, c, corpus, weights, eps):
    """Coordinates of a group by definition, from its vectors and those of the whole corpus."""
    if likelihood == "trend":
        return raw_coordinates_of_lines(x, c, corpus, weights, eps)
    m, n = np.average(corpus, axis=0, weights=weights), x.shape[1]
    mean = np.average(x, axis=0, weights=c)
    whole = np.cov(corpus.T, aweights=weights, bias=True) + eps * np.eye(n)
    own = np.cov(x.T, aweights=c, bias=True) + eps * np.eye(n)
    if likelihood == "diag":
        return np.r_[(mean - m) / np.sqrt(np.diag(whole)), np.log(np.diag(own) / np.diag(whole)) / np.sqrt(2)]
    if likelihood == "spherical":
        v0, v = np.trace(whole) / n, np.trace(own) / n
        return np.r_[(mean - m) / np.sqrt(v0), np.sqrt(n / 2) * np.log(v / v0)]
    root = np.linalg.inv(np.real(sqrtm(whole)))
    logarithm = np.real(logm(root @ own @ root))
    i, j = np.triu_indices(n)
    return np.r_[root @ (mean - m), logarithm[i, j] * np.where(i == j, np.sqrt(0.5), 1)]


def raw_coordinates_of_lines(x, c, corpus, weights, eps):
    """The same where places are the last column: deviations from the line of the corpus, and differences of slopes."""
    (slope0, value0), (slope, _) = (
        np.polyfit(y[:, -1], y[:, :-1], 1, w=np.sqrt(w)) for y, w in ((corpus, weights), (x, c))
    )
    whole, own = (y[:, :-1] - value0 - np.outer(y[:, -1], slope0) for y in (corpus, x))
    v0 = np.average(whole**2, axis=0, weights=weights) + eps
    mean = np.average(own, axis=0, weights=c)
    v = np.average((own - mean) ** 2, axis=0, weights=c) + eps
    length = np.sqrt(np.cov(corpus[:, -1], aweights=weights, bias=True))
    return np.r_[mean / np.sqrt(v0), np.log(v / v0) / np.sqrt(2), (slope - slope0) * length / np.sqrt(v0)]


@pytest.mark.parametrize("likelihood", ["diag", "spherical", "full", "trend"])
@pytest.mark.parametrize("whiten", [0, 0.5, 1])
def test_agrees_with_the_definition(likelihood, whiten, make_groups):
    groups = make_groups(30, 3, (4, 9), weighted=True)
    corpus = oracle.observed(likelihood, groups.pooled(), 0)
    every = (oracle.observed(likelihood, groups, i) for i in range(30))
    raw = np.array([raw_coordinates(likelihood, x, c, *corpus, 1e-6) for x, c in every])
    values, vectors = np.linalg.eigh(np.cov(raw.T))
    centred = (raw - raw.mean(axis=0)) @ vectors[:, ::-1] * values[::-1] ** (-whiten / 2)
    model = GroupEmbedding(likelihood, whiten=whiten).fit(groups)
    assert_allclose(np.abs(model.transform(groups)), np.abs(centred), rtol=1e-6, atol=1e-8)
    assert_allclose(model.explained_variance_, values[::-1], rtol=1e-8)
    largest = np.abs(model.components_).argmax(axis=1)
    assert (model.components_[np.arange(len(largest)), largest] > 0).all()


@pytest.mark.parametrize(("d", "kappa"), [(2, 0.3), (3, 5.0), (50, 200.0), (300, 1e6)])
def test_arc_length_by_quadrature(d, kappa):
    def integrand(t):
        return np.sqrt(bessel.mean_length_derivative(d * np.expm1(t), d)) * d * np.exp(t)

    truth = quad(integrand, 0, np.log1p(kappa / d), epsabs=1e-12, limit=500)[0]
    assert_allclose(bessel.arc_length(kappa, d), truth, rtol=1e-9)


def test_rotations_turn_directions_and_change_nothing(make_groups):
    groups = make_groups(20, 4, (3, 9))
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    turned = Groups(groups.vectors @ turn, groups.offsets)
    for likelihood in ("spherical", "full", "vmf"):
        distances = [pdist(GroupEmbedding(likelihood).fit_transform(g)) for g in (groups, turned)]
        assert_allclose(*distances, rtol=1e-7)


# What is learnt -----------------------------------------------------------------------------------------------------


@every_likelihood
def test_partial_fit_is_fit_around_the_same_model(likelihood, make_groups):
    groups = make_groups(40, 3, (2, 9), weighted=True)
    first = GroupEmbedding(likelihood, whiten=0.5, prior_strength=0.5).fit(groups[:25])
    parts = clone(first).partial_fit(groups[:25]).partial_fit(groups[25:30]).partial_fit(groups[30:])
    coordinates = np.vstack([first._space(groups[i : i + 1]) for i in range(40)])
    assert_allclose(parts.mean_, coordinates.mean(axis=0), rtol=1e-9, atol=1e-12)
    assert_allclose(parts.explained_variance_, np.linalg.eigvalsh(np.cov(coordinates.T))[::-1], rtol=1e-7, atol=1e-12)


@every_likelihood
def test_blocks_and_jobs_change_nothing(likelihood, make_groups):
    groups = make_groups(60, 3, (2, 9), weighted=True)
    model = GroupEmbedding(likelihood, whiten=0.5, prior_strength=0.5)
    truth = model.fit_transform(groups)
    with sklearn.config_context(working_memory=0.001):
        assert_allclose(clone(model).set_params(n_jobs=2).fit_transform(groups), truth, rtol=1e-8, atol=1e-9)
    assert_allclose(model.transform(groups[[7]])[0], truth[7], rtol=1e-9, atol=1e-11)


def test_jobs_that_end_in_another_order_do_not_change_the_last_digit():
    class SlowStart(Comparison):
        outputs = ("distance",)

        def summarize(self, groups):
            return groups.sum(groups.rows()) / groups.totals[:, None]

        def compare(self, left, right, output):
            time.sleep(0.2 * (left[0, 0] < -5))
            return np.square(left[:, None] - right).sum(axis=2)

    X = np.random.default_rng(0).normal(size=(60, 2, 3))
    X[0] = -6
    model = GroupEmbedding(GroupSimilarity(SlowStart()), n_landmarks=8, random_state=0)
    with sklearn.config_context(working_memory=0.001):
        assert_array_equal(clone(model).set_params(n_jobs=2).fit(X).mean_, model.fit(X).mean_)


def test_components_scaling_and_unit_length(make_groups):
    groups = make_groups(50, 4, (4, 9))
    whole = GroupEmbedding().fit_transform(groups)
    assert_allclose(GroupEmbedding(n_components=3).fit_transform(groups), whole[:, :3], atol=1e-10)
    assert_allclose(np.cov(GroupEmbedding(whiten=1).fit_transform(groups).T), np.eye(8), atol=1e-8)
    unit = GroupEmbedding(normalize=True).fit_transform(groups)
    assert_allclose(unit, whole / np.linalg.norm(whole, axis=1, keepdims=True), rtol=1e-9)
    means = GroupEmbedding(spread=0).fit_transform(groups)
    assert means.shape == (50, 4)
    flat = (groups.sum(groups.rows()) / groups.totals[:, None]) / np.sqrt(groups.vectors.var(axis=0) + 1e-6)
    assert_allclose(pdist(means), pdist(flat), rtol=1e-9)
    names = GroupEmbedding(n_components=2).fit(groups).get_feature_names_out()
    assert names.tolist() == ["groupembedding0", "groupembedding1"]
    frame = GroupEmbedding(n_components=2).set_output(transform="pandas").fit_transform(groups)
    assert isinstance(frame, pd.DataFrame)


def test_order_is_a_factor_on_slopes(make_groups):
    """Without it, an embedding by lines is one by means and variances about the slope of the corpus."""
    groups = make_groups(40, 3, (4, 9))
    arrays = [np.vstack([x, x[::-1]]) for x in groups]  # the slope of each is 0
    turned = [x + np.outer(np.linspace(-1, 1, len(x)) ** 3, k % 3 - 1 + np.zeros(3)) for k, x in enumerate(arrays)]
    without = GroupEmbedding("trend", order=0).fit_transform(arrays)
    assert_allclose(pdist(without), pdist(GroupEmbedding("diag").fit_transform(arrays)), rtol=1e-9)
    parts = [pdist(GroupEmbedding("trend", order=order).fit_transform(turned), "sqeuclidean") for order in (0, 1, 2)]
    assert_allclose(parts[2] - parts[0], 4 * (parts[1] - parts[0]), rtol=1e-7, atol=1e-9)
    assert (parts[1] > parts[0] + 1e-3).any()
    same = [GroupEmbedding("diag", order=order).fit_transform(turned) for order in (0, 1)]
    assert_array_equal(*same)
    landmarks = GroupEmbedding("trend", order=0.5, method="landmarks", prior_strength=1).fit_transform(turned)
    assert landmarks.shape[0] == 40


def test_reversed_groups_differ_by_their_slopes_alone():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(rng.integers(5, 9), 3)) for _ in range(30)]
    model = GroupEmbedding("trend", prior_strength=0.5).fit([*X, *(x[::-1] for x in X)])
    location, scale, order = np.split(model._space(Groups.from_list(X)), 3, axis=1)
    back = np.split(model._space(Groups.from_list([x[::-1] for x in X])), 3, axis=1)
    assert_allclose(back[0], location, atol=1e-12)
    assert_allclose(back[1], scale, atol=1e-12)
    assert_allclose(back[2], -order, atol=1e-12)


def test_float32_in_float32_out(make_groups):
    groups = make_groups(30, 4, (3, 9))
    single = Groups(groups.vectors.astype(np.float32), groups.offsets)
    embedded = GroupEmbedding().fit_transform(single)
    assert embedded.dtype == np.float32
    assert_allclose(np.abs(embedded), np.abs(GroupEmbedding().fit_transform(groups)), rtol=1e-3, atol=1e-4)


def test_a_group_at_the_mean_of_the_corpus_has_no_direction():
    x = np.random.default_rng(0).normal(size=(6, 2))
    model = GroupEmbedding(normalize=True, spread=0).fit([x + 1, x - 1])
    assert_allclose(model.transform([x]), 0, atol=1e-9)


@traces_memory
def test_wide_coordinates_are_computed_in_bounded_memory():
    rng = np.random.default_rng(0)
    groups = Groups(rng.normal(size=(8000, 24)), np.arange(0, 8001, 4))
    model = GroupEmbedding("full", prior_strength=1.0)
    tracemalloc.start()
    result = model.fit_transform(groups)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.shape == (2000, 24 + 24 * 25 // 2)
    assert peak < result.nbytes + 64 * 2**20, "2000 covariance matrices alone would take 9 MiB, several times over"


@traces_memory
def test_it_keeps_no_groups_and_streams(make_groups):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(500, 20)).astype(np.float32)
    groups = Groups(table, np.arange(0, 300_001, 10), indices=rng.integers(0, 500, 300_000))
    model = GroupEmbedding(prior_strength=0.5).fit(groups)
    assert len(pickle.dumps(model)) < 100_000
    tracemalloc.start()
    result = clone(model).fit_transform(groups)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < result.nbytes + 100 * 2**20


@traces_memory
def test_covariances_of_batches_are_merged_one_by_one():
    """Once those of all batches were kept until the last: 6 kB for each of a million texts."""
    rng = np.random.default_rng(0)
    groups = Groups(rng.normal(size=(4000, 100)).astype(np.float32), np.arange(0, 4001, 2))
    model = GroupEmbedding(prior_strength=0.5)
    with sklearn.config_context(working_memory=0.2):  # 32 groups at a time
        tracemalloc.start()
        model.fit(groups)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 12 * 8 * 200**2, "a few covariances of 200 coordinates, and not those of 63 batches"


@every_likelihood
def test_pickled_and_fitted_again(likelihood, make_groups):
    groups = make_groups(20, 3, (3, 9))
    model = GroupEmbedding(likelihood, prior_strength=0.5).fit(groups)
    assert_array_equal(pickle.loads(pickle.dumps(model)).transform(groups), model.transform(groups))


# Landmarks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "likelihood",
    [WordMoversDistance(), MeanVector(), Exponential(), ModelComparisonSimilarity("full", output="divergence")],
    ids=repr,
)
def test_landmarks_for_any_similarity(likelihood):
    rng = np.random.default_rng(0)
    X = [rng.gamma(2, size=(rng.integers(4, 9), 3)) * (1 + 4 * np.eye(3)[i % 3]) for i in range(30)]
    model = GroupEmbedding(likelihood, random_state=0, n_landmarks=20).fit(X)
    points = model.transform(X)
    assert adjusted_rand_score(np.arange(30) % 3, KMeans(3, n_init=5, random_state=0).fit_predict(points)) > 0.5
    assert_allclose(model.transform(X[:3]), points[:3], atol=1e-9)
    with pytest.raises(ValueError, match="landmarks cannot be explained"):
        model.explain(X[0], X[1])


CANCELLED = {
    "opposite": [[1.0, 0, 0], [-1, 0, 0]],
    "three": [[np.cos(t), np.sin(t), 0] for t in 2 * np.pi * np.arange(3) / 3],
    "any": [[0.48, 0.6, 0.64], [-0.48, -0.6, -0.64]],
}


@pytest.mark.parametrize("group", CANCELLED.values(), ids=CANCELLED)
def test_directions_that_cancel_are_explained(group):
    """Such a group has no mean direction, and rounding errors are none."""
    rng = np.random.default_rng(0)
    X = [rng.normal(rng.normal(size=3), size=(5, 3)) for _ in range(30)]
    model = GroupEmbedding("vmf").fit(X)
    explanation = model.explain(group, X[0])
    cosine = model.paired([group], [X[0]], output="similarity")[0]
    assert explanation.similarity == pytest.approx(cosine)
    assert explanation.matrix.sum() == pytest.approx(cosine)
    assert np.abs(explanation.matrix).max() < 10
    assert_allclose(model.transform([group]), model.transform([CANCELLED["opposite"]]), atol=1e-9)


@pytest.mark.parametrize("method", ["coordinates", "landmarks"])
def test_errors_say_where_a_group_is(method):
    """Groups are embedded in batches, and a group has a number in all of them."""
    X = np.random.default_rng(0).normal(size=(3000, 2, 3))
    model = GroupEmbedding(method=method, n_landmarks=10, random_state=0).fit(X[:50])
    X[2900, 0], X[2900, 1] = 1e160, -1e160
    with pytest.raises(ValueError, match="of group") as caught:
        model.transform(X)
    *_, number = re.search(r"of group (\d+)", str(caught.value)).groups()
    *_, start = re.findall(r"\d+", "".join(getattr(caught.value, "__notes__", ["0"])))
    assert int(number) + int(start) == 2900


def test_a_list_is_packed_once(make_groups, monkeypatch):
    X = list(make_groups(30, 3))
    original, packed = Groups.from_list.__func__, []
    monkeypatch.setattr(Groups, "from_list", classmethod(lambda *args: packed.append(1) or original(*args)))
    Z = GroupEmbedding().fit_transform(X)
    assert len(packed) == 1
    assert_allclose(GroupEmbedding().fit(X).transform(X), Z)


def test_landmarks_of_points_are_the_points():
    """Euclidean distances, squared, give back the configuration."""
    points = np.random.default_rng(0).normal(size=(40, 3))
    groups = Groups(points, np.arange(41))
    model = GroupEmbedding("spherical", method="landmarks", reg_covar=1.0).fit(groups)
    exact = ModelComparisonSimilarity("spherical", output="divergence", reg_covar=1.0).fit_transform(groups)
    embedded = squareform(pdist(model.transform(groups), "sqeuclidean"))
    assert spearmanr(embedded.ravel(), exact.ravel()).statistic > 0.99


# Comparing ----------------------------------------------------------------------------------------------------------


def test_pairwise_and_paired_are_cosines(make_groups):
    X, Y = make_groups(30, 3, (3, 9)), make_groups(30, 3, (3, 9), seed=1)
    model = GroupEmbedding(whiten=0.5, prior_strength=0.5).fit(X)
    expected = cosine_distances(model.transform(X), model.transform(Y))
    assert_allclose(model.pairwise(X, Y), expected, atol=1e-12)
    assert_allclose(model.paired(X, Y), np.diag(expected), atol=1e-12)
    assert_allclose(model.pairwise(X, Y, output="similarity"), 1 - expected, atol=1e-12)
    assert_array_equal(np.diag(model.pairwise(X)), 0)


def test_uses_take_it_as_they_take_a_similarity(make_groups, tmp_path):
    X, Y = make_groups(60, 3, (3, 9)), make_groups(5, 3, (3, 9), seed=1)
    embedding = GroupEmbedding(whiten=0.5, prior_strength=0.5, random_state=0)
    model = clone(embedding).fit(X)
    index = GroupNeighbors(embedding, n_neighbors=3).fit(X)
    distances, indices = index.kneighbors(Y)
    expected = model.pairwise(Y, X)
    assert_array_equal(indices, np.argsort(expected, axis=1, kind="stable")[:, :3])
    assert_allclose(distances, np.sort(expected, axis=1)[:, :3], atol=1e-9)
    assert isinstance(index.similarity_, GroupEmbedding)
    index.save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index")
    assert_array_equal(loaded.kneighbors(Y), index.kneighbors(Y))
    grown = loaded.set_params(growth=None).partial_fit(Y)
    assert_array_equal(grown.kneighbors(Y, 1, return_distance=False).ravel(), np.arange(60, 65))
    assert_array_equal(grown.remove(np.arange(60, 65)).kneighbors(Y), index.kneighbors(Y))
    copies = Groups.concatenate([X, X[:2]])
    found = find_duplicates(copies, threshold=1e-9, similarity=embedding)
    assert [members.tolist() for members in found] == [[0, 60], [1, 61]]
    found = find_duplicates(copies, level=1e-4, similarity=embedding)
    assert {0, 60} <= {int(i) for members in found for i in members}
    pairs = [(X[i], X[i + 1]) for i in range(59)]
    predicted = PairSimilarity(embedding).fit(pairs).predict(pairs)
    assert predicted.shape == (59,)
    p = index.similarity_.calibrate(X).pvalue(X[:59], X[1:])
    assert spearmanr(p, model.paired(X[:59], X[1:])).statistic > 0.95, "pairs of other sizes have other random pairs"


def test_scikit_learn_takes_the_points(planted):
    X, y = planted
    assert (
        adjusted_rand_score(y, make_pipeline(GroupEmbedding(), KMeans(3, n_init=3, random_state=0)).fit_predict(X)) == 1
    )
    assert cross_val_score(make_pipeline(GroupEmbedding(), LogisticRegression()), X, y, cv=3).mean() == 1


# One factor on the log variance of each feature -----------------------------------------------------------------------

PER_FEATURE = ["diag", "trend"]  # likelihoods with a variance of each feature
some_strengths = pytest.mark.parametrize("prior_strength", [0, 0.5])


@some_strengths
@pytest.mark.parametrize("likelihood", PER_FEATURE)
def test_equal_factors_are_one_factor(likelihood, prior_strength, make_groups):
    X = make_groups(30, 4, (4, 9), weighted=True)
    params = {"whiten": 0.5, "order": 0.5, "prior_strength": prior_strength}
    one = GroupEmbedding(likelihood, spread=0.7, **params).fit(X)
    for spread in (np.full(4, 0.7), [0.7] * 4, (0.7, 0.7, 0.7, 0.7), pd.Series([0.7] * 4)):
        each = GroupEmbedding(likelihood, spread=spread, **params).fit(X)
        assert_array_equal(each.transform(X), one.transform(X))
        assert_array_equal(each.components_, one.components_)
        for i, j in ((0, 1), (3, 3)):
            left, right = (model.explain(X[[i]], X[[j]]) for model in (each, one))
            assert_array_equal(left.matrix, right.matrix)
            assert left.order == right.order


@some_strengths
@pytest.mark.parametrize("likelihood", PER_FEATURE)
def test_factors_belong_to_the_variances_of_their_features(likelihood, prior_strength, make_groups):
    """Without rotation, the squared distance is a sum over coordinates, of which those of scale have the factors."""
    X = make_groups(20, 3, (4, 9), weighted=True)
    d, factors = 3, np.array([0.5, 0.0, 2.0])
    params = {"prior_strength": prior_strength, "order": 0.5}
    one = GroupEmbedding(likelihood, **params).fit(X)
    each = GroupEmbedding(likelihood, spread=factors, **params).fit(X)
    original = one.transform(X) @ one.components_
    scaled = original * np.r_[np.ones(d), factors, np.ones(original.shape[1] - 2 * d)]
    assert_allclose(pdist(each.transform(X)), pdist(scaled), rtol=1e-6)
    assert_allclose(each.transform(X) @ each.components_, scaled, atol=1e-6)


@some_strengths
@pytest.mark.parametrize("likelihood", PER_FEATURE)
def test_without_a_factor_the_variance_of_a_feature_does_not_count(likelihood, prior_strength):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 3)) * rng.uniform(0.5, 2, size=3) + rng.normal(size=3) for _ in range(30)]
    wider = [x.copy() for x in X]
    for x in wider:
        residual = oracle.residual_of_line(np.column_stack([x, np.linspace(-1, 1, 6)]), np.ones(6))
        x[:, 1] += 2 * residual[:, 1]  # the mean and the slope stay
    model = GroupEmbedding(likelihood, spread=[1, 0, 1], prior_strength=prior_strength, whiten=0.5).fit(X)
    assert_allclose(model.transform(wider), model.transform(X), atol=1e-9)
    other = GroupEmbedding(likelihood, spread=[0, 1, 0], prior_strength=prior_strength, whiten=0.5).fit(X)
    assert np.abs(other.transform(wider) - other.transform(X)).max() > 0.1
    nothing = GroupEmbedding(likelihood, spread=np.zeros(3), prior_strength=prior_strength).fit(X)
    assert_allclose(
        nothing.transform(X), GroupEmbedding(likelihood, spread=0, prior_strength=prior_strength).fit_transform(X)
    )


@some_strengths
@pytest.mark.parametrize("likelihood", PER_FEATURE)
def test_explanation_with_a_factor_for_each_feature(likelihood, prior_strength, make_groups):
    X = make_groups(40, 3, (4, 9), weighted=True)
    params = {"spread": np.array([0.3, 0.0, 1.7]), "order": 0.5, "whiten": 0.5}
    model = GroupEmbedding(likelihood, prior_strength=prior_strength, **params).fit(X)
    for i, j in ((0, 1), (3, 3), (7, 20)):
        explanation = model.explain(X[[i]], X[[j]])
        cosine = model.paired(X[[i]], X[[j]], output="similarity")[0]
        assert explanation.matrix.sum() == pytest.approx(cosine, abs=1e-9)
        if likelihood == "trend":
            expected, order = oracle.order_of_cosine(X, i, j, eps=1e-6, strength=prior_strength, **params)
            assert (explanation.similarity, explanation.order) == pytest.approx((expected, order), abs=1e-7)


@pytest.mark.parametrize("spread", [[0.5, 0.0, 2.0], np.array([1.0, 1, 0]), (1, 1, 1)])
def test_factors_are_saved_cloned_and_compared(spread, tmp_path, make_groups):
    X = make_groups(30, 3, (4, 9))
    embedding = GroupEmbedding("trend", spread=spread, prior_strength=0.5)
    assert clone(embedding).fit(X).transform(X).shape == embedding.fit(X).transform(X).shape
    assert "spread=" in repr(embedding)
    assert_array_equal(pickle.loads(pickle.dumps(embedding)).transform(X), embedding.transform(X))
    index = GroupNeighbors(clone(embedding), n_neighbors=3).fit(X[:20])
    index.save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index")
    assert_array_equal(loaded.kneighbors(X), index.kneighbors(X))
    assert_array_equal(loaded.similarity_.transform(X), index.similarity_.transform(X))
    assert_array_equal(loaded.similarity_.spread, spread)
    explanations = [one.similarity_.explain(X[[0]], X[[1]]) for one in (loaded, index)]
    assert_array_equal(explanations[0].matrix, explanations[1].matrix)
    loaded.partial_fit(X[20:])
    assert_array_equal(loaded.kneighbors(X), index.partial_fit(X[20:]).kneighbors(X))


def test_an_index_with_factors_is_updated(tmp_path):
    words = ["the", "cat", "dog", "tax"], np.random.default_rng(0).normal(size=(4, 3))
    texts = ["the cat", "dog cat", "tax tax the", "a zebra", "the dog"]
    for vectors in ([words, "spelling"], [words, "glove-6b-50d", "spelling"]):
        pipeline = make_text_embedding(vectors=vectors)
        update_index(tmp_path / "index", pipeline, texts[:3])
        again = update_index(tmp_path / "index", make_text_embedding(vectors=vectors), texts)
        assert (again.n_reused, again.replaced) == (3, False)
        width = pipeline["embedding"].spread.shape
        other = make_text_embedding(vectors=vectors, spread=np.ones(width))
        assert update_index(tmp_path / "index", other, texts).replaced


@pytest.mark.parametrize(
    ("spread", "sentence"),
    [
        (np.ones(2), r"spread must be a number or an array of shape \(3,\), .*got shape \(2,\)"),
        (np.ones(4), r"spread must be a number or an array of shape \(3,\), .*got shape \(4,\)"),
        (np.ones((1, 3)), r"an array of shape \(3,\), .*got shape \(1, 3\)"),
        ([1, -0.5, 1], "spread must not be negative, got -0.5"),
        ([1, np.nan, 1], "spread contains NaN"),
        ([1, np.inf, 1], "spread contains infinity"),
        ([1, 1e300, 1], r"spread must be at most 1e\+100, got 1e\+300"),
        (1e300, "'spread' parameter.*Got 1e\\+300"),
        (-1, "'spread' parameter.*Got -1"),
        (np.nan, "'spread' parameter.*Got nan"),
        ("wide", "'spread' parameter.*Got 'wide'"),
        (None, "'spread' parameter.*Got None"),
        ([], "0 sample"),
        (["a", "b", "c"], "could not convert string to float"),
    ],
)
@pytest.mark.parametrize("likelihood", PER_FEATURE)
def test_bad_factors_get_a_sentence(likelihood, spread, sentence, make_groups):
    with pytest.raises(ValueError, match=sentence):
        GroupEmbedding(likelihood, spread=spread).fit(make_groups(20, 3, (3, 9)))


def test_a_similarity_to_embed_is_validated(make_groups):
    with pytest.raises(ValueError, match="The 'output' parameter of MeanVector must be a str among"):
        GroupEmbedding(MeanVector("cosine")).fit(make_groups(20, 3, (3, 9)))


def test_true_is_not_a_number_of_landmarks(make_groups):
    with pytest.raises(ValueError, match="'n_landmarks' parameter.*Got True"):
        GroupEmbedding(method="landmarks", n_landmarks=True).fit(make_groups(20, 3, (3, 9)))


def test_a_factor_of_order_that_overflows_gets_a_sentence(make_groups):
    assert np.isfinite(GroupEmbedding("trend", order=1e100).fit_transform(make_groups(20, 3, (3, 9)))).all()
    with pytest.raises(ValueError, match=r"'order' parameter.*Got 1e\+300"):
        GroupEmbedding("trend", order=1e300).fit(make_groups(20, 3, (3, 9)))


def test_factors_need_coordinates(make_groups):
    X = make_groups(20, 3, (3, 9))
    ones = GroupEmbedding(method="landmarks", spread=np.ones(3), random_state=0).fit_transform(X)
    assert_array_equal(ones, GroupEmbedding(method="landmarks", random_state=0).fit_transform(X))
    with pytest.raises(ValueError, match="needs coordinates; with landmarks it must be 1"):
        GroupEmbedding(method="landmarks", spread=[1, 0, 1]).fit(X)
    with pytest.raises(ValueError, match=r"array of shape \(1,\), one factor for each coordinate of scale"):
        GroupEmbedding("spherical", spread=np.ones(3)).fit(X)


@pytest.mark.parametrize(
    "vectors", [("wordllama", "glove-6b-50d"), "wordllama", "glove-6b-50d", ["glove-6b-50d", "spelling"]], ids=str
)
@pytest.mark.parametrize("likelihood", [*LIKELIHOODS, WordMoversDistance(), MeanVector()], ids=str)
def test_recipe_of_every_likelihood(likelihood, vectors):
    """Or, where there are too many features, a sentence on these."""
    from sklearn_mcsg.datasets import load_short_texts

    if isinstance(likelihood, WordMoversDistance):
        pytest.importorskip("ot")
    texts = load_short_texts().data[:20]
    pipeline = make_text_embedding(likelihood=likelihood, vectors=vectors, random_state=0)
    if likelihood == "full" and vectors != "glove-6b-50d":
        with pytest.raises(ValueError, match=r"FullGaussian has coordinates up to 64 features, got \d+: .*landmarks"):
            pipeline.fit(texts)
    else:
        assert np.isfinite(pipeline.fit_transform(texts)).all()


# Explanations -------------------------------------------------------------------------------------------------------


@every_likelihood
@pytest.mark.parametrize("prior_strength", [0, 0.5])
def test_pairs_of_vectors_sum_to_the_cosine(likelihood, prior_strength, make_groups):
    X = make_groups(30, 3, (3, 9), weighted=True)
    model = GroupEmbedding(likelihood, whiten=0.5, spread=0.7, prior_strength=prior_strength, n_components=3).fit(X)
    for i, j in ((0, 1), (3, 3), (7, 20)):
        explanation = model.explain(X[[i]], X[[j]])
        cosine = model.paired(X[[i]], X[[j]], output="similarity")[0]
        assert explanation.matrix.shape == (X.sizes[i], X.sizes[j])
        assert_allclose(explanation.matrix.sum(), cosine, rtol=0, atol=1e-9)
        assert explanation.similarity == pytest.approx(cosine, abs=1e-9)
    single = Groups(X.vectors.astype(np.float32), X.offsets, weights=X.weights)
    model = clone(model).fit(single)
    cosine = model.paired(single[[0]], single[[1]], output="similarity")[0]
    assert_allclose(model.explain(single[[0]], single[[1]]).matrix.sum(), cosine, atol=1e-6)


@pytest.mark.parametrize("strength", [0, 0.5])
@pytest.mark.parametrize("placed", [False, True])
def test_order_is_what_the_cosine_has_beyond_that_of_average_slopes(strength, placed, make_groups):
    X = make_groups(40, 3, (4, 9), weighted=True)
    drift = np.concatenate([np.linspace(0, 1 + k % 3, n) for k, n in enumerate(X.sizes)])[:, None]
    positions = np.random.default_rng(0).uniform(-1, 3, size=X.n_rows) if placed else None
    X = Groups(X.vectors + drift, X.offsets, weights=X.weights, positions=positions)
    params = {"spread": 0.7, "order": 0.5, "whiten": 0.5}
    model = GroupEmbedding("trend", prior_strength=strength, **params).fit(X)
    for i, j in ((0, 1), (3, 3), (7, 20)):
        explanation, turned = model.explain(X[[i]], X[[j]]), model.explain(X[[j]], X[[i]])
        cosine, order = oracle.order_of_cosine(X, i, j, eps=1e-6, strength=strength, **params)
        assert explanation.similarity == pytest.approx(cosine, abs=1e-7)
        assert explanation.order == pytest.approx(order, abs=1e-7)
        assert explanation.order == pytest.approx(turned.order, abs=1e-12)
        assert explanation.matrix.sum() == pytest.approx(explanation.similarity, abs=1e-12)
    assert abs(model.explain(X[[0]], X[[0]]).order) < 1e-12, "a group is equal to itself with and without its order"
    without = GroupEmbedding("trend", order=0, whiten=0.5, prior_strength=strength).fit(X).explain(X[[0]], X[[1]])
    assert abs(without.order) < 1e-12
    assert "order +0.000 (without it: " in repr(without)


@pytest.mark.parametrize("prior_strength", [0, 0.5])
def test_reversed_groups_are_equal_without_their_order(prior_strength):
    """In a corpus without a slope of its own."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(rng.integers(5, 9), 3)) for _ in range(30)]
    model = GroupEmbedding("trend", prior_strength=prior_strength).fit([*X, *(x[::-1] for x in X)])
    explanation = model.explain(X[0], X[0][::-1])
    assert explanation.similarity - explanation.order == pytest.approx(1)
    assert -2 < explanation.order < -0.05
    assert f"  order {explanation.order:+.3f} (without it: 1.000)" in repr(explanation).splitlines()
    only = [X[0], X[0][::-1]] * 3  # nothing but their order distinguishes these groups
    explanation = GroupEmbedding("trend", prior_strength=prior_strength).fit(only).explain(*only[:2])
    assert explanation.order == pytest.approx(explanation.similarity) == pytest.approx(-1)


def test_groups_without_order_have_no_part_of_it(make_groups):
    X = make_groups(20, 3)
    explanation = GroupEmbedding(prior_strength=1).fit(X).explain(X[[0]], X[[1]])
    assert explanation.order is None
    assert "without it" not in repr(explanation) + explanation.to_html()


def test_order_of_words_is_shown():
    from sklearn_mcsg.datasets import load_short_texts

    pytest.importorskip("matplotlib").use("Agg")
    pipeline = make_text_embedding().fit(load_short_texts().data)
    explanation = explain_texts(pipeline, "dog bites man", "man bites dog")
    points = pipeline.transform(["dog bites man", "man bites dog"])
    assert explanation.similarity == pytest.approx(points[0] @ points[1], abs=1e-5)
    assert explanation.similarity < 0.9
    assert explanation.similarity - explanation.order == pytest.approx(1, abs=0.005)
    line = repr(explanation).splitlines()[1].strip()
    assert line.startswith(f"order {explanation.order:+.3f} (without it: ")
    assert line.capitalize() in explanation.to_html()
    assert line in explanation.plot().get_title("left")


def test_explanation_of_texts_names_the_words():
    from sklearn_mcsg.datasets import load_short_texts

    pipeline = make_text_embedding().fit(load_short_texts().data)
    explanation = explain_texts(pipeline, "A cat slept on the sofa.", "The kitten naps in an armchair.")
    assert explanation.labels[0] == ["A", "cat", "slept", "on", "the", "sofa"]
    strongest = [(a, b) for a, b, _ in explanation.strongest(3)]
    assert ("sofa", "armchair") in strongest
    assert ("cat", "kitten") in strongest
    assert "cat ~ kitten" in repr(explanation)
    html = explanation._repr_html_()
    assert html.count("<td") == explanation.matrix.size
    assert explanation.to_frame().loc["cat", "kitten"] > 0


def test_pairs_for_and_against_are_summed_by_their_words():
    matrix = np.array([[0.3, -0.1, 0.001], [0.0, -0.4, 0.2], [0.1, 0.05, 0.0]])
    labels = ["storm", "sofa", "storm"], ["storm", "rate", "\x1b[0mgale"]
    explanation = PairExplanation(matrix, np.eye(3), labels, (np.ones(3), np.ones(3)))
    strongest, weakest = explanation.strongest(9), explanation.weakest(9)
    assert [pair[:2] for pair in strongest] == [("storm", "storm"), ("sofa", labels[1][2]), ("storm", labels[1][2])]
    assert_allclose([value for *_, value in strongest], [0.4, 0.2, 0.001])
    assert [pair[:2] for pair in weakest] == [("sofa", "rate"), ("storm", "rate")]
    assert explanation.strongest(1) == strongest[:1]
    assert_allclose(explanation.vectors[0], [0.201, -0.2, 0.15])
    assert_allclose(explanation.vectors[1], [0.4, -0.45, 0.201])
    assert word_pairs(strongest) == "storm +0.40, sofa ~ [0mgale +0.20"
    assert word_pairs(explanation.weakest(1)) == "sofa ~ rate -0.40"


def test_explanation_escapes_and_draws():
    pytest.importorskip("matplotlib").use("Agg")
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(2, 3)) for _ in range(9)]
    explanation = GroupEmbedding(prior_strength=1).fit(X).explain(X[0], X[1], labels=[["<i>", "$x$"], ["&", "y"]])
    html = explanation.to_html()
    assert "<i>" not in html
    assert html.count("&lt;i&gt;") >= 2, "in the line of words and in the table"
    assert "</b>&ensp;" in html
    ax = explanation.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["<i>", "$x$"]
    ax.figure.canvas.draw()


# Texts --------------------------------------------------------------------------------------------------------------


def test_recipe_follows_the_kind_of_vectors(tmp_path):
    raw = make_text_embedding(vectors="glove-6b-50d")
    assert (raw["vectorizer"].weighting, raw["embedding"].whiten, raw["embedding"].spread) == ("auto", 0.5, 1)
    (tmp_path / "tokenizer.json").write_text("{}")
    for vectors in (tmp_path, [tmp_path], ["glove-6b-50d", tmp_path], ("wordllama", "glove-6b-50d")):
        static = make_text_embedding(vectors=vectors)
        assert (static["vectorizer"].weighting, static["embedding"].whiten, static["embedding"].spread) == (
            "auto",
            0.25,
            0.5,
        )
    assert make_text_embedding().get_params()["vectorizer__vectors"] == ("wordllama", "glove-6b-50d")
    assert make_text_embedding()["embedding"].get_params().items() > {"likelihood": "trend", "order": 0.5}.items()
    chosen = make_text_embedding(vectors=tmp_path, whiten=0.3, spread=2.0)
    assert (chosen["embedding"].whiten, chosen["embedding"].spread) == (0.3, 2.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'whitening'"):
        make_text_embedding(whitening=1)


def static_model(folder, vocabulary, vectors):
    """A static model as model2vec saves it."""
    tokenizers, numpy = pytest.importorskip("tokenizers"), pytest.importorskip("safetensors.numpy")
    model = tokenizers.models.WordPiece({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    numpy.save_file({"embeddings": vectors}, folder / "model.safetensors")
    return folder


def test_a_static_model_brings_its_own_tokens(tmp_path):
    words = ["[UNK]", "cat", "dog", "##s", "tax", "."]
    vectors = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    folder = static_model(tmp_path / "model", words, vectors)
    pipeline = make_text_embedding(vectors=folder)
    groups = pipeline[0].fit_transform(["Cats.", "zebra dog tax"])
    assert groups.split(groups.labels)[0].tolist() == ["Cats"]
    assert groups.split(groups.labels)[1].tolist() == ["dog", "tax"], "words without a known piece have no vector"
    cats = vectors[1] + vectors[3]
    assert_allclose(groups[0], [cats / np.linalg.norm(cats)], rtol=1e-6)
    norms = np.linalg.norm(vectors[1:], axis=1)  # of the pieces, without the unknown one
    expected = np.array([np.linalg.norm(cats), norms[1], norms[3]]) / np.median(norms)
    assert_allclose(groups.weights, expected, rtol=1e-6)
    assert pipeline[0].oov_rate_ == pytest.approx(1 / 4)
    assert pipeline.fit_transform(["Cats.", "dog tax", "tax"]).shape[0] == 3
    assert_array_equal(pickle.loads(pickle.dumps(pipeline)).transform(["cats"]), pipeline.transform(["cats"]))


def test_broken_static_models_get_a_sentence(tmp_path):
    words = ["[UNK]", "cat", "dog"]
    vectors = np.zeros((3, 4), dtype=np.float32)
    with pytest.raises(ValueError, match="must hold tokenizer.json and one .safetensors file"):
        make_text_embedding(vectors=tmp_path).fit(["a cat", "a dog"])
    short = static_model(tmp_path / "short", words, vectors[:2])
    with pytest.raises(ValueError, match=r"a row for each of the 3 tokens, got embeddings \(2, 4\)"):
        make_text_embedding(vectors=short).fit(["cat", "dog"])
    broken = static_model(tmp_path / "broken", words, vectors)
    (broken / "model.safetensors").write_bytes(b"junk")
    with pytest.raises(ValueError, match="cannot be read as a static model"):
        make_text_embedding(vectors=broken).fit(["cat", "dog"])


# Bad input ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"whiten": 1.5}, r"'whiten' parameter.*\[0.0, 1.0\].*1.5"),
        ({"whiten": -0.1}, "'whiten' parameter"),
        ({"n_components": 50}, r"n_components=50 is more than 6, the rank of the coordinates"),
        ({"likelihood": Exponential(), "method": "coordinates"}, "Exponential has no coordinates"),
        ({"method": "landmarks", "spread": 0.5}, "spread=0.5 needs coordinates"),
        ({"likelihood": "gamma"}, "'likelihood' parameter"),
    ],
)
def test_bad_parameters_get_a_sentence(params, sentence, make_groups):
    with pytest.raises(ValueError, match=sentence):
        GroupEmbedding(**params).fit(make_groups(20, 3, (3, 9)))


def test_bad_calls_get_a_sentence(make_groups):
    X = make_groups(20, 3, (3, 9))
    model = GroupEmbedding()
    with pytest.raises(NotFittedError):
        model.transform(X)
    with pytest.raises(ValueError, match="at least 2 groups .* got n_samples = 1"):
        model.fit(X[:1])
    with pytest.raises(ValueError, match="Group 1 has no vectors"):
        model.fit([np.ones((2, 3)), np.empty((0, 3))])
    model.fit(X)
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.transform(make_groups(4, 5))
    with pytest.raises(ValueError, match="got 20 and 3"):
        model.paired(X, X[:3])
    with pytest.raises(ValueError, match=r"output must be one of \['distance', 'similarity'\], got 'centered'"):
        model.pairwise(X, output="centered")
    with pytest.raises(ValueError, match="FullGaussian has coordinates up to 64 features, got 65"):
        GroupEmbedding("full").fit(make_groups(5, 65))
    with pytest.raises(ValueError, match="coordinate of group 1 is not a finite number"):
        GroupEmbedding("diag", reg_covar=0).fit([X[0], X[1][:1], X[2]])


@pytest.mark.parametrize("likelihood", ["diag", "spherical", "full"])
def test_vectors_beyond_the_range_of_squares_are_reported(make_groups, likelihood):
    with pytest.raises(ValueError, match="is not a finite number.*Rescale"):
        GroupEmbedding(likelihood).fit(make_groups(scale=1e160))


def test_constant_features_and_equal_groups_are_finite(make_groups):
    X = make_groups(10, 3, (3, 9))
    constant = Groups(X.vectors * [1, 0, 1], X.offsets)
    assert np.isfinite(GroupEmbedding(whiten=0.5).fit_transform(constant)).all()
    assert_array_equal(GroupEmbedding(whiten=1).fit_transform([np.eye(3)] * 4), 0)
    empty = GroupEmbedding(prior_strength=1).fit(X).transform([np.empty((0, 3)), X[0]])
    assert np.isfinite(empty).all()


CHECKED = [
    GroupEmbedding(),
    GroupEmbedding("spherical", prior_strength=0.5, whiten=0.5, normalize=True),
    GroupEmbedding("full", prior_strength=0.5),
    GroupEmbedding("vmf", prior_strength=0.5),
    GroupEmbedding(method="landmarks", prior_strength=0.5),
]


def expected_failures(estimator):
    embedding = getattr(estimator, "embedding", estimator)
    if embedding.likelihood == "vmf":
        return {"check_estimators_dtypes": "its integer data hold a zero vector, which has no direction"}
    return {}


@by_one_thread
@pytest.mark.filterwarnings("ignore:Skipping check:UserWarning", "ignore:X is a table")
@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class RaggedEmbedding(Ragged, GroupEmbedding):
    pass


@by_one_thread
@pytest.mark.filterwarnings("ignore:Skipping check:UserWarning", "ignore:X is a table")
@parametrize_with_checks([RaggedEmbedding("diag"), RaggedEmbedding("full", whiten=0.5)])
def test_scikit_learn_checks_on_ragged_groups(estimator, check):
    check(estimator)


def test_banerjees_concentration_has_coordinates_too(make_groups):
    X = make_groups(20, 3, (4, 9))
    near = [GroupEmbedding(VonMisesFisher(c)).fit_transform(X) for c in ("exact", "banerjee")]
    assert spearmanr(pdist(near[0]), pdist(near[1])).statistic > 0.99


@pytest.mark.parametrize("likelihood", [MeanVector(), "diag"])
def test_equal_groups_are_one_point(likelihood):
    X = [np.ones((2, 3))] * 5
    assert_array_equal(GroupEmbedding(likelihood).fit(X).transform(X[:2]), np.zeros((2, 1)))


def test_coordinates_that_are_not_rotated():
    rng = np.random.default_rng(0)
    X = [rng.normal(rng.normal(size=3), 1, size=(6, 3)) for _ in range(20)]
    rotated, plain = GroupEmbedding(prior_strength=1), GroupEmbedding(prior_strength=1, rotate=False)
    points, coordinates = rotated.fit_transform(X), plain.fit_transform(X)
    assert coordinates.shape == (20, 6)
    assert_allclose(rotated.components_ @ coordinates.T, points.T, atol=1e-12)
    assert_allclose(plain.pairwise(X), rotated.pairwise(X), atol=1e-12)
    assert_allclose(plain.explained_variance_, coordinates.var(axis=0, ddof=1), rtol=1e-12)
    assert_allclose(plain.explain(X[0], X[1]).matrix.sum(), 1 - plain.paired(X[:1], X[1:2])[0], rtol=1e-9)
    moved = [x + 5 * np.eye(3)[0] if i < 10 else x for i, x in enumerate(X)]
    assert_allclose(
        GroupEmbedding(rotate=False).fit(X).transform(moved)[:, [1, 2]],
        GroupEmbedding(rotate=False).fit(X).transform(X)[:, [1, 2]],
    )


NAMES = {
    "diag": ["location_x0", "location_x1", "scale_x0", "scale_x1"],
    "trend": ["location_x0", "location_x1", "scale_x0", "scale_x1", "order_x0", "order_x1"],
    "spherical": ["location_x0", "location_x1", "scale"],
    "full": ["location_x0", "location_x1", "scale0", "scale1", "scale2"],
    "vmf": ["location", "scale"],
}


@pytest.mark.parametrize("likelihood", NAMES)
def test_names_of_coordinates_that_are_not_rotated(likelihood):
    X = np.random.default_rng(0).normal(1, size=(9, 5, 2))
    embedding = GroupEmbedding(likelihood, rotate=False, prior_strength=1.0).fit(X)
    assert embedding.get_feature_names_out().tolist() == NAMES[likelihood]
    assert embedding.transform(X).shape[1] == len(NAMES[likelihood])
    rotated = GroupEmbedding(likelihood, prior_strength=1.0).fit(X)
    assert rotated.get_feature_names_out()[0] == "groupembedding0"
    rotated.set_params(rotate=False)
    assert rotated.get_feature_names_out()[0] == "groupembedding0", "the coordinates are rotated until the next fit"


def test_whitening_takes_effect_at_the_next_fit(make_groups):
    """Otherwise the random pairs of `calibrate` would be at other distances than the pairs that are asked about."""
    X = make_groups(60, 3, (3, 9))
    model = GroupEmbedding(random_state=0).fit(X).calibrate(X)
    points, pvalues = model.transform(X), model.pvalue(X[:30], X[30:])
    model.set_params(whiten=0.5)
    assert_array_equal(model.transform(X), points)
    assert_array_equal(model.pvalue(X[:30], X[30:]), pvalues)
    assert np.abs(model.fit(X).transform(X) - points).max() > 1e-3


@pytest.mark.filterwarnings("ignore:X is a table")
def test_names_of_coordinates_have_the_names_of_features():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 2)), columns=["width", "height"])
    embedding = GroupEmbedding(rotate=False, prior_strength=1.0).fit(X)
    assert embedding.get_feature_names_out().tolist() == [
        "location_width",
        "location_height",
        "scale_width",
        "scale_height",
    ]
    with pytest.raises(ValueError, match="feature"):
        embedding.get_feature_names_out(["height", "width"])
    frame = embedding.set_output(transform="pandas").transform(X)
    moved = embedding.transform(X.assign(width=X["width"] + 1))
    assert (moved != frame).any().tolist() == [True, False, True, False], "a coordinate is of the feature in its name"


@pytest.mark.parametrize("params", [dict(whiten=0.5), dict(n_components=2)])
def test_without_rotation_there_are_no_principal_axes(params):
    with pytest.raises(
        ValueError, match="rotate=False leaves coordinates as they are.*needs whiten=0 and n_components=None"
    ):
        GroupEmbedding(rotate=False, **params).fit(np.random.default_rng(0).normal(size=(5, 4, 3)))


def test_a_group_at_the_mean_of_the_corpus_has_no_direction_for_neighbours_either(make_groups):
    halves = [group + 3 for group in make_groups(8)]
    middle = np.concatenate([halves[0], -halves[0]])
    X = [*halves, *(-half for half in halves), middle]
    embedding = GroupEmbedding(spread=0)
    assert_allclose(embedding.fit(X).pairwise([middle], X)[0], 1)
    index = GroupNeighbors(embedding, n_neighbors=5).fit(X)
    assert_allclose(index.kneighbors([middle])[0], 1)


@pytest.mark.parametrize("again", ["fit", "partial_fit"])
def test_random_pairs_are_those_of_the_last_fit(make_groups, again):
    X = make_groups(60)
    embedding = GroupEmbedding().fit(X).calibrate(X)
    getattr(embedding, again)([9 * group for group in X])
    with pytest.raises(NotFittedError, match="call calibrate first"):
        embedding.pvalue(X[:2], X[2:4])


@pytest.mark.filterwarnings("ignore:X is a table")
def test_a_fit_that_fails_changes_nothing():
    named = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 2)), columns=["a", 1])
    embedding = GroupEmbedding()
    with pytest.raises(TypeError, match="string names"):
        embedding.fit(named)
    assert not [name for name in vars(embedding) if name.endswith("_")]


def test_an_embedded_similarity_with_a_prior_takes_empty_groups(make_groups):
    X = make_groups(9)
    X = [*X, X[0][:0]]
    similarity = ModelComparisonSimilarity(output="divergence", prior_strength=1)
    assert np.isfinite(GroupEmbedding(similarity).fit_transform(X)).all()
    with pytest.raises(ValueError, match="Group 9 has no vectors"):
        GroupEmbedding(similarity.set_params(prior_strength=0)).fit(X)
