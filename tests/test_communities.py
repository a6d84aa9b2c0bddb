"""Clusters in the embedding: planted ones are found, large collections as small ones, and new groups are placed."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import cosine_distances, cosine_similarity, euclidean_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, normalize
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_mcsg import GroupClustering, GroupEmbedding, Groups, make_text_embedding
from sklearn_mcsg.clustering import _points, cluster_points
from sklearn_mcsg.clustering._centers import centers_of
from sklearn_mcsg.clustering._communities import find_communities, find_k_communities, modularity, neighbour_graph
from sklearn_mcsg.clustering._points import Division

pytest.importorskip("sknetwork")


def planted(n=300, k=6, d=8, seed=0):
    rng = np.random.default_rng(seed)
    centres = 3 * np.random.default_rng(7).normal(size=(k, d))
    sizes, truth = rng.integers(3, 9, n), rng.integers(k, size=n)
    vectors = np.repeat(centres[truth], sizes, axis=0) + rng.normal(size=(sizes.sum(), d))
    return Groups(vectors, np.concatenate([[0], np.cumsum(sizes)])), truth


@pytest.mark.parametrize("n_clusters", [None, 6])
def test_finds_planted_clusters_and_places_new_groups(n_clusters):
    X, truth = planted()
    clustering = GroupClustering(n_clusters, random_state=0).fit(X)
    assert clustering.n_clusters_ == 6
    assert adjusted_rand_score(truth, clustering.labels_) == 1
    assert_array_equal(clustering.predict(X), clustering.labels_)
    new, expected = planted(100, seed=1)
    assert adjusted_rand_score(expected, clustering.predict(new)) == 1
    assert (np.diff(np.bincount(clustering.labels_)) <= 0).all(), "the largest cluster is the first"


def test_centres_and_distances():
    X, _ = planted()
    clustering = GroupClustering(random_state=0).fit(X)
    points = clustering.embedding_.transform(X)
    centres = [points[clustering.labels_ == k].mean(axis=0) for k in range(6)]
    assert_allclose(clustering.cluster_centers_, centres, atol=1e-12)
    assert_allclose(clustering.transform(X), euclidean_distances(points, centres), atol=1e-7)
    assert_allclose(
        clustering.center_distances_, clustering.transform(X)[np.arange(300), clustering.labels_], atol=1e-7
    )
    assert clustering.get_feature_names_out().tolist() == [f"groupclustering{k}" for k in range(6)]


def test_normalized_embeddings_are_clustered_by_direction():
    X, _ = planted()
    embedding = GroupEmbedding(prior_strength=0.5, normalize=True)
    clustering = GroupClustering(embedding=embedding, random_state=0).fit(X)
    points = clustering.embedding_.transform(X)
    centres = [normalize(points[clustering.labels_ == k].mean(axis=0)[None])[0] for k in range(6)]
    assert_allclose(clustering.cluster_centers_, centres, atol=1e-12)
    assert_allclose(clustering.transform(X), cosine_distances(points, centres), atol=1e-12)
    assert_allclose(
        clustering.center_distances_, clustering.transform(X)[np.arange(300), clustering.labels_], atol=1e-12
    )


@pytest.mark.parametrize("n_clusters", [None, 4])
def test_levels_are_clusters(n_clusters):
    """Means in one direction differ in length alone, as readings of a sensor do."""
    rng = np.random.default_rng(0)
    level = np.arange(200) % 4
    X = [rng.normal(2 * k, size=(rng.integers(2, 15), 6)) for k in level]
    clustering = GroupClustering(n_clusters, random_state=0).fit(X)
    assert adjusted_rand_score(level, clustering.labels_) > 0.95
    assert_array_equal(clustering.predict(X), clustering.labels_)


def test_resolution_divides_further():
    X, _ = planted(400, k=3)
    numbers = [GroupClustering(resolution=r, random_state=0).fit(X).n_clusters_ for r in (0.1, 1, 5)]
    assert numbers == [1, 3, 15]


def test_alternatives_are_other_resolutions():
    X, _ = planted(400, k=3)
    clustering = GroupClustering(random_state=0).fit(X)
    half, one, double = (GroupClustering(resolution=r, random_state=0).fit(X).n_clusters_ for r in (0.5, 1, 2))
    assert one == clustering.n_clusters_ == 3
    assert clustering.alternatives_ == {0.5: half, 2.0: double} == {0.5: 2, 2.0: 6}
    assert GroupClustering(3).fit(X).alternatives_ == {}


def test_graph_is_symmetric_and_joins_the_nearest():
    points = normalize(np.random.default_rng(0).normal(size=(60, 5)))
    graph = neighbour_graph(points, 4, by_cosine=True)
    cosines = cosine_similarity(points)
    np.fill_diagonal(cosines, -1)
    near = np.zeros((60, 60), dtype=bool)
    np.put_along_axis(near, np.argsort(-cosines, axis=1)[:, :4], True, axis=1)
    expected = np.where((near | near.T) & (cosines > 0), cosines, 0)
    assert_allclose(graph.toarray(), expected, atol=1e-12)


def test_graph_of_points_of_any_length_has_no_weights():
    points = np.random.default_rng(0).normal(size=(60, 5))
    distances = euclidean_distances(points)
    np.fill_diagonal(distances, np.inf)
    near = np.zeros((60, 60), dtype=bool)
    np.put_along_axis(near, np.argsort(distances, axis=1)[:, :4], True, axis=1)
    assert_array_equal(neighbour_graph(points, 4, by_cosine=False).toarray(), near | near.T)


def test_a_sample_of_many_groups_is_clustered():
    X, truth = planted(900)
    sampled = GroupClustering(6, sample_size=150, random_state=0).fit(X)
    assert adjusted_rand_score(truth, sampled.labels_) == 1


def test_same_state_same_clusters():
    X, _ = planted(300, k=12)
    X = Groups(X.vectors + 4 * np.random.default_rng(0).normal(size=X.vectors.shape), X.offsets)
    model = GroupClustering(random_state=3)
    assert_array_equal(clone(model).fit(X).labels_, clone(model).fit(X).labels_)


def test_texts_through_a_pipeline():
    vectors = {
        f"{topic}{i}": np.eye(3)[t] * 4 + 0.5 * np.random.default_rng(i + 10 * t).normal(size=3)
        for t, topic in enumerate("abc")
        for i in range(5)
    }
    rng = np.random.default_rng(0)
    texts = [" ".join(f"{topic}{i}" for i in rng.integers(5, size=6)) for topic in "abc" * 10]
    clustering = GroupClustering(3, embedding=make_text_embedding(vectors=vectors, weighting=None)).fit(texts)
    assert adjusted_rand_score(list("abc" * 10), clustering.labels_) == 1
    assert clustering.predict(["b1 b2"])[0] == clustering.labels_[1]


def test_few_and_equal_groups():
    X, _ = planted(2)
    assert GroupClustering(random_state=0).fit(X).n_clusters_ in (1, 2)
    equal = GroupClustering(random_state=0).fit([np.eye(3)] * 5)
    assert_array_equal(equal.labels_, 0)
    assert cluster_points(np.eye(4)[[0, 0, 1, 1]], by_cosine=True, n_neighbors=2).labels.tolist() == [0, 0, 1, 1]
    assert_array_equal(find_communities(neighbour_graph(np.eye(3), 2, by_cosine=True), 1.0, 0), np.zeros(3))


@pytest.mark.parametrize("n_different", [1, 3])
def test_equal_groups_are_never_divided(n_different):
    X, _ = planted(n_different)
    repeated, truth = X[np.tile(np.arange(n_different), 20)], np.tile(np.arange(n_different), 20)
    found = GroupClustering(random_state=0).fit(repeated).labels_
    assert_array_equal(found, found[truth])
    why = "All groups are equal, so" if n_different == 1 else "Only 3 groups are different, so"
    with pytest.warns(UserWarning, match=f"^{why} there are fewer clusters than n_clusters=5"):
        clustering = GroupClustering(5, random_state=0).fit(repeated)
    assert_array_equal(clustering.labels_, truth)
    assert_array_equal(clustering.predict(repeated), truth)


def test_errors(monkeypatch):
    X, _ = planted(5)
    with pytest.raises(ValueError, match="n_clusters=6 is more than the 5 groups"):
        GroupClustering(6).fit(X)
    with pytest.raises(ValueError, match="'resolution' parameter"):
        GroupClustering(resolution=0).fit(X)
    monkeypatch.setitem(sys.modules, "sknetwork.clustering", None)
    with pytest.raises(ImportError, match=r'scikit-network: pip install "sklearn-mcsg\[text\]", or set n_clusters'):
        GroupClustering().fit(X)
    assert GroupClustering(2).fit(X).n_clusters_ == 2


@pytest.mark.filterwarnings("ignore:Skipping check:UserWarning", "ignore:X is a table")
@pytest.mark.filterwarnings("ignore:Only [0-9]+ groups are different")
@parametrize_with_checks(
    [
        GroupClustering(random_state=0),
        GroupClustering(3, reject=True, random_state=0),
        GroupClustering(3, embedding=GroupEmbedding(prior_strength=0.5, whiten=0.5), random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_clusters", [None, 6])
@pytest.mark.parametrize("normalized", [False, True])
def test_points_are_clustered_as_their_groups(n_clusters, normalized):
    X, _ = planted()
    embedding = GroupEmbedding(prior_strength=0.5, normalize=normalized)
    clustering = GroupClustering(n_clusters, embedding=embedding, random_state=0).fit(X)
    points = embedding.fit_transform(X)
    clusters = cluster_points(points, n_clusters, by_cosine=normalized, random_state=0)
    assert_array_equal(clusters.labels, clustering.labels_)
    assert_array_equal(clusters.centers, clustering.cluster_centers_)
    assert_array_equal(clusters.center_distances, clustering.center_distances_)
    assert clusters.alternatives == clustering.alternatives_


def test_an_embedding_says_whether_points_have_unit_length():
    """Without a parameter `normalize`, as in a function, the points show it."""
    X, _ = planted()
    for normalized in (False, True):
        embedding = GroupEmbedding(prior_strength=0.5, normalize=normalized)
        pipeline = make_pipeline(FunctionTransformer(), embedding)
        foreign = make_pipeline(embedding, FunctionTransformer())
        given, piped, shown = (
            GroupClustering(6, embedding=each, random_state=0).fit(X) for each in (embedding, pipeline, foreign)
        )
        assert_array_equal(piped.center_distances_, given.center_distances_)
        assert_array_equal(shown.center_distances_, given.center_distances_)


def clouds(n_clusters, n_points, noise=0.12, d=60, seed=0):
    """Points of unit length around directions, and their clusters."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n_points) % n_clusters)
    return normalize(normalize(rng.normal(size=(n_clusters, d)))[truth] + noise * rng.normal(size=(n_points, d))), truth


@pytest.mark.parametrize("by_cosine", [True, False])
@pytest.mark.parametrize("n_clusters", [4, 12, 40, 150])
def test_planted_numbers_are_found(n_clusters, by_cosine):
    """Modularity alone has a resolution limit: of 150 it finds about half."""
    points, truth = clouds(n_clusters, max(300, 16 * n_clusters))
    found = cluster_points(points, by_cosine=by_cosine, random_state=0)
    assert 0.85 * n_clusters <= len(found.centers) <= 1.15 * n_clusters
    assert adjusted_rand_score(truth, found.labels) > 0.9
    given = cluster_points(points, n_clusters, by_cosine=by_cosine, random_state=0)
    assert adjusted_rand_score(truth, given.labels) > 0.98
    communities = find_communities(neighbour_graph(points, 15, by_cosine=by_cosine), 1.0, 0)
    assert n_clusters < 150 or communities.max() + 1 < 90


def test_a_found_number_gives_the_clusters_of_the_given_number():
    points, _ = clouds(12, 300, noise=0.2)
    found = cluster_points(points, by_cosine=True, random_state=0)
    assert_array_equal(found.labels, cluster_points(points, len(found.centers), by_cosine=True, random_state=0).labels)


def test_modularity_is_that_of_all_pairs():
    points, truth = clouds(5, 80, noise=0.3)
    graph = neighbour_graph(points, 6, by_cosine=True)
    weights = graph.toarray()
    expected = np.outer(weights.sum(axis=1), weights.sum(axis=1)) / weights.sum()
    for resolution in (0.5, 1, 3):
        inside = (weights - resolution * expected)[truth[:, None] == truth].sum() / weights.sum()
        assert_allclose(modularity(graph, truth, resolution), inside, atol=1e-12)


def test_a_number_of_communities_is_given():
    points, _ = clouds(6, 400, noise=0.3)
    graph = neighbour_graph(points, 15, by_cosine=True)
    most_modular = int(find_communities(graph, 1.0, 0).max()) + 1
    assert find_k_communities(graph, most_modular - 1, 0) is None
    for k in range(most_modular, 40):
        labels, resolution = find_k_communities(graph, k, 0)
        assert_array_equal(np.unique(labels), np.arange(k))
        assert resolution >= 1
    assert find_k_communities(neighbour_graph(np.eye(3), 2, by_cosine=True), 2, 0) is None, "there are no edges"


def test_the_most_modular_partition_is_kept():
    points, _ = clouds(8, 400, noise=0.35)
    divide = Division(points, neighbour_graph(points, 15, by_cosine=True), True, seed=0)
    for k in (4, 8, 30):
        communities = find_k_communities(divide.graph, k, 0)
        resolution = 1.0 if communities is None else communities[1]
        smoothed = _points._smoothed(points, divide.graph, True)
        partitions = [means.labels_ for means in _points._k_means(smoothed, k, True, 0, at_random=True)]
        partitions += [] if communities is None else communities[:1]
        best = max(modularity(divide.graph, labels, resolution) for labels in partitions)
        assert modularity(divide.graph, divide.into(k), resolution) == best


def test_means_with_neighbours_by_hand():
    points, _ = clouds(3, 40, noise=0.3)
    for given, by_cosine in ((points, True), (3 * points, False)):
        graph = neighbour_graph(given, 5, by_cosine=by_cosine)
        expected = given
        for _ in range(2):
            near = graph.toarray() @ expected / graph.sum(axis=1).A1[:, None]
            expected = normalize(normalize(near) + expected) if by_cosine else (near + expected) / 2
        assert_allclose(_points._smoothed(given, graph, by_cosine), expected, rtol=1e-10)


def test_a_large_loose_cluster_is_divided():
    """Ten tight clusters, and a remainder of 40 % with a cluster inside; a large tight cluster stays whole."""
    rng = np.random.default_rng(0)
    tight, truth = clouds(10, 300, noise=0.05)
    inside = normalize(np.eye(60)[:1] + 0.05 * rng.normal(size=(40, 60)))
    remainder = normalize(np.vstack([inside, normalize(rng.normal(size=(160, 60))) + 0.3 * np.eye(60)[0]]))
    for large, divided in ((remainder, True), (normalize(np.eye(60)[:1] + 0.02 * rng.normal(size=(200, 60))), False)):
        points = np.vstack([tight, large])
        labels = np.append(truth, np.full(200, 10))
        divide = Division(points, neighbour_graph(points, 15, by_cosine=True), True, seed=0)
        parts = divide.without_loose(labels)
        assert adjusted_rand_score(parts[:300], truth) == 1, "the others stay as they are"
        assert (len(np.unique(parts[300:])) > 1) == divided
        assert not divided or np.bincount(parts[300:]).max() < 100
        assert len(set(parts[:300]) & set(parts[300:])) == 0
        assert not divided or np.bincount(parts[300:340]).max() > 30, "the cluster inside is nearly one of the parts"


def test_of_many_points_a_sample_is_clustered_and_the_others_join_the_nearest_centre():
    points, truth = clouds(5, 500, noise=0.2)
    found = cluster_points(points, 5, by_cosine=True, sample_size=150, random_state=0)
    assert adjusted_rand_score(truth, found.labels) > 0.98
    chosen = np.sort(np.random.RandomState(0).permutation(500)[:150])
    of_sample = cluster_points(points[chosen], 5, by_cosine=True, random_state=0).labels
    assert adjusted_rand_score(of_sample, found.labels[chosen]) == 1
    assert len(cluster_points(points, by_cosine=True, sample_size=150, random_state=0).centers) == 5


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_fewer_clusters_than_asked_for_leave_no_gaps():
    """Points that differ in the last digit are different, but one cluster for k-means."""
    points = np.array([[1.0, 2.0]] * 4 + [[np.nextafter(1, 2), 2.0]] * 4 + [[5.0, 7.0]])
    for seed in range(2):
        found = cluster_points(points, 3, sample_size=8, random_state=seed)
        assert np.isfinite(found.centers).all()
        assert_array_equal(np.unique(found.labels), np.arange(len(found.centers)))


def test_centres_of_many_points_in_single_precision():
    points = np.full((400_000, 2), [0.6, 0.8], np.float32)
    for by_cosine in (False, True):
        found = centers_of(points, np.zeros(len(points), int), by_cosine)
        assert found.dtype == np.float32
        assert_allclose(found, [[0.6, 0.8]], rtol=1e-6)


def test_bad_points_get_a_sentence():
    points, _ = clouds(3, 30)
    for n_clusters in (0, -2, 1.5):
        with pytest.raises((TypeError, ValueError), match="n_clusters must be"):
            cluster_points(points, n_clusters)
    with pytest.raises(ValueError, match="points contains NaN"):
        cluster_points([[np.nan, 1.0]], 1)
    found = cluster_points([[0, 0], [1, 0], [9, 9], [9, 8]], 2, random_state=0)
    assert found.labels.tolist() == [0, 0, 1, 1]
    assert_allclose(found.center_distances, 0.5)
    assert cluster_points([[1.0, 2.0]]).labels.tolist() == [0]


def test_many_small_clusters_of_a_given_number():
    """Clusters of four points have too few neighbours for a graph; random starts of k-means would merge many."""
    points, truth = clouds(60, 240, noise=0.08)
    assert adjusted_rand_score(truth, cluster_points(points, 60, by_cosine=True, random_state=0).labels) > 0.95


class CountedArray:
    """An array that counts how often it is read."""

    def __init__(self, array):
        self.array, self.n_read = array, 0

    def __array__(self, dtype=None, copy=None):
        self.n_read += 1
        return np.asarray(self.array, dtype=dtype)


def test_groups_are_packed_once():
    X = [CountedArray(x) for x in np.random.default_rng(0).normal(size=(30, 5, 3))]
    GroupClustering(2, random_state=0).fit(X)
    counts = [x.n_read for x in X]
    GroupEmbedding().fit(X)
    assert [x.n_read - n for x, n in zip(X, counts, strict=True)] == counts
