"""The tree of clusters: its cuts nest and contain the partition, and its BIC is that of each cut."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import cut_tree, linkage
from sklearn.metrics import adjusted_rand_score

from sklearn_mcsg.clustering import ClusterTree
from sklearn_mcsg.clustering import tree as tree_module


def clouds(n=90, k=3, p=8, seed=0, noise=0.3):
    """Points of unit length around k centres, in clusters of falling size, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.choice(k, size=n, p=np.arange(k, 0, -1) / (k * (k + 1) / 2)))
    labels[:k] = np.arange(k)
    sizes = np.bincount(labels)
    labels = np.argsort(np.argsort(-sizes, kind="stable"))[labels]
    points = np.eye(k, p)[labels] + noise * rng.normal(size=(n, p))
    return points / np.linalg.norm(points, axis=1, keepdims=True), labels


def same_partition(a, b):
    return adjusted_rand_score(a, b) == 1.0


def direct_bic(points, labels):
    """BIC of one partition, from the density of each point under its own cluster."""
    points = points[:, :20]
    n, p = points.shape
    k = labels.max() + 1
    means = np.array([points[labels == c].mean(axis=0) for c in range(k)])
    shares = np.bincount(labels) / n
    squares = (points - means[labels]) ** 2 + 1e-6  # expected, with the noise around every point
    variance = squares.mean(axis=0)
    log_density = np.log(shares[labels]).sum() - 0.5 * (np.log(2 * np.pi * variance) + squares / variance).sum()
    return -2 * log_density + np.log(n) * (k * p + p + k - 1)


def leaves_below(tree, node):
    if node < tree.n_leaves:
        return [node]
    return sorted(leaf for child in tree.children[node - tree.n_leaves] for leaf in leaves_below(tree, child))


@pytest.mark.parametrize(("n", "k", "n_leaves"), [(90, 3, 30), (90, 3, 90), (90, 1, 20), (40, 20, 5), (40, 4, 1000)])
def test_laws_of_the_tree(n, k, n_leaves):
    points, labels = clouds(n, k)
    tree = ClusterTree.around(points, labels, n_leaves=n_leaves, random_state=0)
    most = min(n, max(n_leaves, 2 * k))
    assert tree.n_leaves == most == len(np.unique(tree.leaf_of))
    assert sorted(tree.children.ravel()) == list(range(2 * most - 2))
    assert (tree.children < most + np.arange(most - 1)[:, None]).all()
    assert (np.diff(tree.heights) >= 0).all()
    assert tree.n_clusters == k
    assert_array_equal(tree.cut(k), labels)
    finer = tree.cut(most)
    assert same_partition(finer, tree.leaf_of)
    for number in range(most, 0, -1):
        cut = tree.cut(number)
        sizes = np.bincount(cut)
        assert len(sizes) == number
        assert (np.diff(sizes) <= 0).all()
        assert len(np.unique(np.column_stack([cut, finer]), axis=0)) == max(number, len(np.unique(finer)))
        for label, node in enumerate(tree.nodes(number)):
            assert_array_equal(leaves_below(tree, node), np.unique(tree.leaf_of[cut == label]))
        finer = cut


@pytest.mark.parametrize(("n", "k", "p"), [(60, 3, 8), (60, 4, 30), (25, 25, 4)])
def test_bic_is_that_of_each_cut(n, k, p):
    points, labels = clouds(n, k, max(p, k))
    tree = ClusterTree.around(points, labels, n_leaves=n)
    expected = [direct_bic(points, tree.cut(number)) for number in range(1, n + 1)]
    assert_allclose(tree.bic, expected, rtol=1e-9)


def test_best_number_is_that_of_clear_clusters():
    points, labels = clouds(300, 5, noise=0.1)
    tree = ClusterTree.around(points, np.zeros(300, int), n_leaves=40)
    assert tree.best_number == 5
    assert adjusted_rand_score(tree.cut(5), labels) > 0.95
    assert ClusterTree.around(points, labels).best_number == 5


@pytest.mark.parametrize("seed", range(5))
def test_one_cluster_gives_the_tree_of_wards_linkage(seed):
    points, _ = clouds(50, 3, seed=seed)
    tree = ClusterTree.around(points, np.zeros(50, int), n_leaves=50)
    expected = linkage(points, "ward")
    assert_allclose(tree.heights, expected[:, 2], rtol=1e-10)
    for k, cut in zip(range(50, 0, -1), cut_tree(expected).T, strict=True):
        assert same_partition(tree.cut(k), cut)


def test_clusters_are_merged_by_wards_criterion():
    points, labels = clouds(80, 6)
    tree = ClusterTree.around(points, labels, n_leaves=12)
    for k in range(6, 1, -1):
        before, after = tree.cut(k), tree.cut(k - 1)

        def cost(a, b, labels=before):
            left, right = points[labels == a], points[labels == b]
            gap = np.linalg.norm(left.mean(axis=0) - right.mean(axis=0))
            return np.sqrt(2 * len(left) * len(right) / (len(left) + len(right))) * gap

        costs = {(a, b): cost(a, b) for a in range(k) for b in range(a)}
        pairs = {(a, b) for a, b in costs if len(set(after[(before == a) | (before == b)])) == 1}
        assert pairs == {min(costs, key=costs.get)}


def test_large_clusters_are_divided_by_a_sample(monkeypatch):
    points, labels = clouds(400, 4, noise=0.1)
    monkeypatch.setattr(tree_module, "_SAMPLE", 40)
    tree = ClusterTree.around(points, labels, n_leaves=16, random_state=0)
    assert tree.n_leaves == 16
    assert np.bincount(tree.leaf_of).min() > 0
    assert_array_equal(tree.cut(4), labels)
    again = ClusterTree.around(points, labels, n_leaves=16, random_state=0)
    assert_array_equal(tree.leaf_of, again.leaf_of)
    # a division of one cluster of four clouds by a sample finds the clouds
    one = ClusterTree.around(points, np.zeros(400, int), n_leaves=4, random_state=0)
    assert adjusted_rand_score(one.leaf_of, labels) > 0.9


def test_float32_gives_the_tree_of_float64():
    points, labels = clouds(90, 3)
    small = ClusterTree.around(points.astype(np.float32), labels)
    tree = ClusterTree.around(points.astype(np.float32).astype(np.float64), labels)
    assert_array_equal(small.leaf_of, tree.leaf_of)
    assert_allclose(small.heights, tree.heights, rtol=1e-5)


@pytest.mark.parametrize(("n", "labels"), [(1, [0]), (2, [0, 0]), (2, [0, 1]), (12, [0] * 12), (12, range(12))])
def test_equal_points(n, labels):
    tree = ClusterTree.around(np.ones((n, 3)), np.array(labels))
    assert tree.n_leaves == n
    assert np.isfinite(tree.bic).all()
    assert (tree.heights == 0).all()
    assert tree.best_number == 1, "no division lowers the BIC of equal points"
    assert_array_equal(tree.cut(1), np.zeros(n))
    assert_array_equal(np.sort(tree.cut(n)), np.arange(n))


POINTS = np.eye(4)


@pytest.mark.parametrize(
    ("points", "labels", "params", "message"),
    [
        (POINTS, [0, 1], {}, "inconsistent numbers of samples"),
        (POINTS, [0, 1, 3, 1], {}, "without gaps"),
        (POINTS, [-1, 0, 1, 1], {}, "without gaps"),
        (POINTS, [0.0, 1, 0, 1], {}, "labels must be a 1-d array of integers"),
        (np.full((4, 4), np.nan), [0, 1, 0, 1], {}, "points contains NaN"),
        (POINTS, [0, 1, 0, 1], {"n_leaves": 0}, "n_leaves must be a positive integer"),
    ],
)
def test_errors_say_what_is_wrong(points, labels, params, message):
    with pytest.raises(ValueError, match=message):
        ClusterTree.around(points, labels, **params)


@pytest.mark.parametrize("k", [0, 5])
def test_cuts_have_bounds(k):
    tree = ClusterTree.around(POINTS, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="n_clusters must be between 1 and 4"):
        tree.cut(k)
