"""How sure clusters are: margins against plain definitions, stability of planted clusters, and rejected groups."""

from itertools import combinations

import numpy as np
import pytest
from conftest import COMBINATIONS, Exponential
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom
from sklearn.metrics.pairwise import cosine_distances, euclidean_distances
from sklearn.preprocessing import normalize

from sklearn_mcsg import GroupClustering, GroupEmbedding, Groups, ModelComparisonClustering
from sklearn_mcsg.clustering import cluster_points, cluster_stability
from sklearn_mcsg.clustering._points import PointClusters
from sklearn_mcsg.clustering._rejection import left_out_distances
from sklearn_mcsg.clustering._stability import _pairs_of
from sklearn_mcsg.groups import united


def draw(centres, labels, seed=0, spread=0.5, dtype=float):
    """Groups of ten vectors around the centres of their labels."""
    rng = np.random.default_rng(seed)
    d = len(centres[0])
    return [
        (np.asarray(centres[k]) + spread * rng.normal(size=d) + rng.normal(size=(10, d))).astype(dtype) for k in labels
    ]


# Margins ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("normalized", [False, True])
def test_margins_of_points_by_the_definition(normalized, dtype):
    X = draw(2 * np.eye(4, 6), np.arange(80) % 4, dtype=dtype)
    embedding = GroupEmbedding(prior_strength=0.5, normalize=normalized)
    clustering = GroupClustering(4, embedding=embedding, random_state=0).fit(X)
    distance = cosine_distances if normalized else euclidean_distances
    distances = distance(clustering.embedding_.transform(X), clustering.cluster_centers_)
    for i, label in enumerate(clustering.labels_):
        others = [k for k in range(4) if k != label]
        second = min(others, key=lambda k: distances[i, k])
        assert clustering.second_[i] == second
        assert_allclose(
            clustering.margins_[i], distances[i, second] - distances[i, label], atol=50 * np.finfo(dtype).eps
        )
    assert clustering.margins_.dtype == dtype


def test_a_margin_is_negative_where_the_other_centre_is_nearer():
    points = np.array([[0.0], [1], [2], [10], [11], [3], [4]])
    labels = np.array([0, 0, 0, 1, 1, 1, 0])
    found = PointClusters.of(points, labels, {}, by_cosine=False)
    assert_array_equal(found.margins < 0, [False] * 5 + [True, False])
    assert_allclose(found.margins[5], abs(3 - 7 / 4) - abs(3 - 8))


@pytest.mark.parametrize("clustering", [GroupClustering(1), ModelComparisonClustering(n_clusters=1)], ids=str)
def test_one_cluster_has_no_second(clustering):
    clustering.fit(draw(np.zeros((1, 3)), [0] * 12))
    assert_array_equal(clustering.second_, -1)
    assert_array_equal(clustering.margins_, np.inf)


def criterion_of(clustering, groups, labels):
    """Criterion of a partition, each cluster fitted to all vectors of its groups; empty clusters vanish."""
    model = clustering._model
    names, labels = np.unique(labels, return_inverse=True)
    return model.pooled_information(model.statistics(united(model.placed(groups), labels, len(names)))).sum()


@pytest.mark.parametrize(("likelihood", "criterion"), [*COMBINATIONS, (Exponential(), "aic")], ids=str)
@pytest.mark.parametrize("n_clusters", [3, None])
def test_margins_of_models_are_the_price_of_the_best_move(likelihood, criterion, n_clusters, make_groups):
    own = isinstance(likelihood, Exponential)
    X = make_groups(11, 3, sizes=(3, 7), spread=2)
    X = Groups(np.abs(X.vectors) + 0.1, X.offsets) if own else X
    clustering = ModelComparisonClustering(likelihood, criterion, n_clusters=n_clusters, prior_strength=0 if own else 4)
    clustering.fit(X)
    labels, k = clustering.labels_, clustering.n_clusters_
    before = criterion_of(clustering, X, labels)
    assert_allclose(before, clustering.evidence_[k - 1], rtol=1e-9)
    for i in range(len(X) if k > 1 else 0):
        prices = np.full(k, np.inf)
        for other in set(range(k)) - {int(labels[i])}:
            moved = labels.copy()
            moved[i] = other
            prices[other] = criterion_of(clustering, X, moved) - before
        assert_allclose(clustering.margins_[i], prices.min(), rtol=1e-7, atol=1e-7)
        assert_allclose(prices[clustering.second_[i]], prices.min(), rtol=1e-7, atol=1e-7)


def test_groups_between_clusters_have_small_margins():
    X = draw(6 * np.eye(2, 4), np.arange(40) % 2, spread=0) + draw([[3, 3, 0, 0]], [0], spread=0)
    for clustering in (GroupClustering(2, random_state=0), ModelComparisonClustering(n_clusters=2)):
        assert clustering.fit(X).margins_.argmin() == 40


# Stability ----------------------------------------------------------------------------------------------------------


def test_pairs_by_counting():
    rng = np.random.default_rng(0)
    labels, again = rng.integers(-1, 4, size=40), rng.integers(5, size=40)
    own, both, either = np.zeros((3, 4))
    for i, j in combinations(range(40), 2):
        for k in {int(labels[i]), int(labels[j])} if min(labels[i], labels[j]) >= 0 else ():
            here, there = labels[i] == labels[j], again[i] == again[j]
            own[k] += here
            both[k] += here and there
            either[k] += here or there
    for found, expected in zip(_pairs_of(labels, again, 4), (own, both, either), strict=True):
        assert_array_equal(found, expected)


@pytest.fixture(scope="module")
def planted_points():
    """Six clear clusters of fifty points of unit length."""
    rng = np.random.default_rng(0)
    truth = np.arange(300) % 6
    return normalize(normalize(rng.normal(size=(6, 60)))[truth] + 0.12 * rng.normal(size=(300, 60))), truth


def test_true_clusters_are_stable_and_parts_of_them_are_not(planted_points):
    points, truth = planted_points
    pytest.importorskip("sknetwork")
    found = cluster_points(points, 6, by_cosine=True, random_state=0)
    assert_array_equal(cluster_stability(points, found.labels, 6, by_cosine=True, random_state=0), 1)
    divided = np.where((truth == 0) & (np.arange(300) < 150), 6, truth)  # the first cluster in two
    stability = cluster_stability(points, divided, 7, by_cosine=True, random_state=0)
    assert stability[[0, 6]].max() < 0.5
    assert stability[1:6].min() > 0.6, "clusters that halves of the points divide in place of the first"
    merged = np.maximum(truth, 1) - 1  # the first two in one
    assert cluster_stability(points, merged, 5, by_cosine=True, random_state=0).min() < 0.9


def test_stability_of_groups():
    truth = np.arange(120) % 3
    X = draw(6 * np.eye(3, 5), truth)
    clustering = GroupClustering(3, random_state=0).fit(X)
    assert_array_equal(clustering.stability(X), 1)
    points = clustering.embedding_.transform(X)
    divided = GroupClustering(4, random_state=0).fit(X)
    expected = cluster_stability(points, divided.labels_, 4, random_state=0)
    assert_array_equal(divided.stability(X), expected)
    parts = [k for k in range(4) if (divided.labels_ == k).sum() < 40]
    assert expected[parts].max() < 0.6 < expected.max()
    assert_array_equal(GroupClustering(3, sample_size=60, random_state=0).fit(X).stability(X), 1)
    with pytest.raises(ValueError, match="stability takes the 120 groups that were fitted, got 7"):
        clustering.stability(X[:7])


def test_stability_of_few_and_of_equal_points():
    alone = cluster_stability(np.array([[0.0], [0], [0], [9]]), np.array([0, 0, 0, 1]), 2, random_state=0)
    assert alone[0] == 1
    assert np.isnan(alone[1])
    assert_array_equal(cluster_stability(np.ones((6, 2)), np.zeros(6, dtype=int), 1), 1)
    rejected = cluster_stability(np.arange(8.0)[:, None] // 4, np.array([0] * 4 + [-1] * 4), 2, random_state=0)
    assert_array_equal(rejected, [1, np.nan], "a cluster of which all points were rejected")
    for n in (1, 2, 3):
        assert np.isnan(cluster_stability(np.eye(n), np.arange(n), n, random_state=0)).all()
    assert np.isnan(cluster_stability(np.eye(9), np.arange(9) % 2, 2, sample_size=2, random_state=0)).all()


# Rejected groups ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_cosine", [False, True])
def test_left_out_distances_by_the_definition(by_cosine):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 4)) + 2
    points = normalize(points) if by_cosine else points
    labels = np.append(np.arange(29) % 3, 3)
    clusters = PointClusters.of(points, labels, {}, by_cosine=by_cosine)
    found = left_out_distances(clusters.center_distances, clusters.labels, by_cosine)
    for i in range(29):
        others = points[(labels == labels[i]) & (np.arange(30) != i)].mean(axis=0)
        distance = (cosine_distances if by_cosine else euclidean_distances)(points[[i]], others[None])[0, 0]
        assert_allclose(found[i], distance, rtol=1e-9)
    assert found[29] == np.inf


def simulate(seed, level, normalized, dtype=float, n_outliers=0, **params):
    """Labels of the fitted members and outliers, and of further members and outliers, of three clusters of 100."""
    rng = np.random.default_rng(seed)
    centres, truth = 12 * normalize(rng.normal(size=(3, 8))), np.arange(300) % 3
    far = [rng.normal(40 * normalize(rng.normal(size=(1, 8))), 1, size=(10, 8)).astype(dtype) for _ in range(50)]
    embedding = GroupEmbedding(prior_strength=0.5, normalize=normalized)
    clustering = GroupClustering(embedding=embedding, reject=True, level=level, random_state=0, **params)
    clustering.fit(draw(centres, truth, seed, dtype=dtype) + far[:n_outliers])
    new = clustering.predict(draw(centres, truth, seed + 1000, dtype=dtype))
    return clustering, np.split(clustering.labels_, [300]), new, clustering.predict(far[n_outliers:])


@pytest.mark.parametrize("level", [0.05, 0.2])
@pytest.mark.parametrize("normalized", [False, True])
def test_rejection_keeps_its_level(level, normalized):
    """Of 6000 groups in 20 runs; thresholds of one run have an error of their own, so its groups are not independent.

    The share that a threshold learnt from n = 300 members lets pass has a variance of level (1 - level) / n.
    """
    runs = [simulate(seed, level, normalized, n_clusters=3) for seed in range(20)]
    low, high = binom.interval(0.998, 6000 / 2, level)  # the variance of a share of new members is twice the binomial
    for labels in (np.concatenate([run[1][0] for run in runs]), np.concatenate([run[2] for run in runs])):
        assert low / 3000 <= np.mean(labels == -1) <= high / 3000
    assert np.mean(np.concatenate([run[3] for run in runs]) == -1) > 0.99


@pytest.mark.parametrize(
    "params", [{"n_clusters": 3}, {}, {"n_clusters": 3, "sample_size": 150}], ids=["given", "found", "sampled"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outliers_among_the_fitted_groups_are_rejected(params, dtype):
    pytest.importorskip("sknetwork")
    clustering, (members, outliers), new, far = simulate(0, 0.05, True, dtype, n_outliers=20, **params)
    assert clustering.n_clusters_ == 3
    assert np.mean(outliers == -1) >= 0.95
    assert np.mean(far == -1) >= 0.95
    for labels in (members, new):
        assert binom.cdf(np.count_nonzero(labels == -1), 300, 0.05) < 0.999
    assert clustering.thresholds_.dtype == clustering.center_distances_.dtype == dtype


def test_rejected_groups_are_those_beyond_the_threshold_of_their_cluster():
    X = draw(6 * np.eye(3, 5), np.arange(90) % 3)
    plain = GroupClustering(3, random_state=0).fit(X)
    assert_array_equal(plain.thresholds_, np.inf)
    clustering = GroupClustering(3, reject=True, level=0.3, random_state=0).fit(X)
    sizes = np.bincount(plain.labels_)[plain.labels_]
    left_out = plain.center_distances_ * sizes / (sizes - 1)
    beyond = left_out > clustering.thresholds_[plain.labels_]
    assert_array_equal(clustering.labels_, np.where(beyond, -1, plain.labels_))
    assert 0.2 <= beyond.mean() <= 0.3
    assert_array_equal(clustering.margins_, plain.margins_)
    distances = clustering.transform(X)
    expected = [-1 if row.min() > clustering.thresholds_[row.argmin()] else row.argmin() for row in distances]
    assert_array_equal(clustering.predict(X), expected)
    assert_array_equal(clustering.stability(X), 1, "rejected groups belong to no pair")


def test_small_and_equal_clusters_are_not_rejected():
    equal = [np.eye(3)] * 12 + [9 + np.eye(3)] * 12
    assert -1 not in GroupClustering(2, reject=True, random_state=0).fit_predict(equal)
    alone = [np.eye(3) + 0.01 * i for i in range(6)] + [np.full((4, 3), 50.0)]
    assert GroupClustering(2, reject=True, random_state=0).fit_predict(alone)[-1] == 1, "a cluster of its own"
    with pytest.raises(
        ValueError, match="Every cluster has only one group: thresholds are learnt by leaving groups out"
    ):
        GroupClustering(4, reject=True).fit(draw(np.eye(4), range(4)))


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, "some"])
def test_a_level_is_a_share(level):
    with pytest.raises(ValueError, match="'level' parameter of GroupClustering must be a float in the range"):
        GroupClustering(reject=True, level=level).fit(draw(np.eye(2), [0, 1] * 5))
