"""Neighbours of all points: exact if there are few, and nearly so among the lists of an inverted file."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_mcsg.clustering._communities import neighbour_graph
from sklearn_mcsg.search import inverted
from sklearn_mcsg.search.inverted import nearest_points


def planted(n=3000, k=30, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return (3 * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))).astype(np.float32)


def exact(points, k):
    """Distances and indices of the nearest other points, sorted by distance and then by index."""
    points = points.astype(np.float64)
    distances = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    np.fill_diagonal(distances, np.inf)
    indices = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, indices, axis=1), indices


@pytest.fixture
def lists(monkeypatch):
    """Few points are put into short lists, and each is compared with an eighth of all."""
    for name, value in {"_EXACT_POINTS": 0, "_LIST": 32, "_PROBES": 16, "_BLOCK": 500}.items():
        monkeypatch.setattr(inverted, name, value)


def recall(found, expected):
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, expected, strict=True)])


def test_few_points_are_compared_with_all():
    points = planted(300)
    distances, indices = nearest_points(points, 7)
    expected, nearest = exact(points, 7)
    assert_array_equal(indices, nearest)
    assert_allclose(distances, expected, rtol=1e-5)


def test_recall_of_planted_points(lists):
    points = planted()
    distances, indices = nearest_points(points, 15)
    expected, nearest = exact(points, 15)
    assert recall(indices, nearest) > 0.95
    apart = points[indices].astype(np.float64) - points[:, None]
    assert_allclose(distances, np.sqrt((apart**2).sum(axis=2)), rtol=1e-5)
    assert (np.diff(distances, axis=1) >= 0).all()
    assert (distances >= expected * (1 - 1e-5)).all()
    assert not (indices == np.arange(len(points))[:, None]).any()
    assert distances.dtype == np.float32


def test_edges_of_the_graph(lists, monkeypatch):
    points = planted()
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    found = neighbour_graph(points, 15, by_cosine=True)
    monkeypatch.setattr(inverted, "_EXACT_POINTS", len(points))
    expected = neighbour_graph(points, 15, by_cosine=True)
    assert (found > 0).multiply(expected > 0).nnz > 0.95 * expected.nnz
    assert (found != found.T).nnz == 0
    assert found.dtype == np.float32
    assert found.indices.dtype == np.int32, "half the memory"


def test_more_lists_are_nearer_to_the_truth(lists, monkeypatch):
    points = np.random.default_rng(0).normal(size=(2000, 40)).astype(np.float32)  # no clusters at all
    nearest, found = exact(points, 10)[1], []
    for n_probes in (4, 16, 40, 1000):
        monkeypatch.setattr(inverted, "_PROBES", n_probes)
        found.append(recall(nearest_points(points, 10)[1], nearest))
    assert (np.diff(found) > 0).all()
    assert found[-1] > 0.999, "all lists"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_nothing_is_random_and_jobs_change_nothing(n_jobs, lists):
    points = planted()
    for found, expected in zip(nearest_points(points, 15, n_jobs), nearest_points(points, 15), strict=True):
        assert_array_equal(found, expected)


@pytest.mark.parametrize("n_different", [1, 3])
def test_equal_points(n_different, lists):
    """Lists of equal points are not longer than others, so their comparison is not quadratic either."""
    points = np.random.default_rng(0).normal(size=(n_different, 5))[np.arange(2000) % n_different]
    distances, indices = nearest_points(points, 15)
    assert_array_equal(distances, 0)
    assert not (indices == np.arange(2000)[:, None]).any()
    assert_array_equal(points[indices], np.broadcast_to(points[:, None], (2000, 15, 5)))
    assert all(len(set(row)) == 15 for row in indices.tolist())


@pytest.mark.parametrize("points", [planted(), np.zeros((1000, 3)), np.repeat(planted(50), 40, axis=0)])
def test_every_point_is_in_one_short_list(points, lists):
    found = inverted._Lists.of(points)
    assert_array_equal(np.sort(found.members), np.arange(len(points)))
    sizes = np.diff(found.starts)
    assert sizes.min() >= 1
    assert sizes.max() <= 32
    assert len(sizes) == len(found.centres)
    for centre, start, stop in zip(found.centres, found.starts[:-1], found.starts[1:], strict=True):
        members = points[found.members[start:stop]]
        squares = ((members[:, None] - found.centres) ** 2).sum(axis=2)
        assert (((members - centre) ** 2).sum(axis=1) <= squares.min(axis=1) + 1e-3).all()


def test_more_neighbours_than_members_of_near_lists(lists, monkeypatch):
    monkeypatch.setattr(inverted, "_LIST", 2)
    monkeypatch.setattr(inverted, "_PROBES", 1)
    points = planted(200)
    for k in (60, 199):
        distances, indices = nearest_points(points, k)
        assert np.isfinite(distances).all()
        assert all(len(set(row) - {i}) == k for i, row in enumerate(indices.tolist()))
    assert_allclose(distances, exact(points, 199)[0], rtol=1e-4)


def test_fewer_points_than_neighbours(lists):
    points = planted(5)
    graph = neighbour_graph(points, 15, by_cosine=False)
    assert_array_equal(graph.toarray(), 1 - np.eye(5))


def test_points_far_from_the_origin_keep_their_digits(lists):
    """And clusters far from each other: squares of single precision would not tell their points apart."""
    rng = np.random.default_rng(0)
    points = (1e4 + 1e4 * np.arange(4)[rng.integers(4, size=800), None] + rng.normal(size=(800, 6))).astype(np.float32)
    assert recall(nearest_points(points, 10)[1], exact(points, 10)[1]) > 0.95
