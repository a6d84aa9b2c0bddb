"""Clusters of points, such as embeddings: communities, or a given number by k-means.

    points --nearest neighbours--> graph --Louvain--> communities
           --average linkage of a sample--> centres --k-means--> clusters

Above 50,000 points, neighbours are found approximately. All steps are close to linear in the number of points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.random import sample_without_replacement

from sklearn_mcsg._extras import import_extra
from sklearn_mcsg._memory import POINTS
from sklearn_mcsg.clustering._communities import find_communities, neighbour_graph
from sklearn_mcsg.clustering._dendrogram import largest_first, merges_before, tops_after
from sklearn_mcsg.engine.cosine import compare_unit_rows, unit_length
from sklearn_mcsg.engine.parallel import ONE_BLAS_THREAD

_ALTERNATIVES = (0.5, 2)  # times the resolution


@dataclass(frozen=True, eq=False)
class PointClusters:
    """Clusters of points.

    Attributes
    ----------
    labels : ndarray of shape (n_points,)
        The cluster of each point. The largest cluster is 0; equally large ones are in order of first appearance.
    centers : ndarray of shape (n_clusters, n_components)
        Mean of each cluster, or its mean direction if points have unit length.
    center_distances : ndarray of shape (n_points,)
        Distance of each point to the centre of its cluster: Euclidean, or one minus the cosine if points have unit
        length.
    alternatives : dict
        Number of communities at half and at twice the resolution, by resolution; empty with a given number of clusters.
    """

    labels: np.ndarray
    centers: np.ndarray
    center_distances: np.ndarray
    alternatives: dict[float, int]


def cluster_points(
    points: np.ndarray,
    n_clusters: int | None = None,
    *,
    by_cosine: bool = False,
    n_neighbors: int = 15,
    resolution: float = 1.0,
    sample_size: int = 5000,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> PointClusters:
    """Cluster points.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_components)
        The points.
    n_clusters : int, default=None
        Number of clusters; ``None`` finds communities and their number.
    by_cosine : bool, default=False
        Whether points have unit length and are compared by the cosine.
    n_neighbors, resolution, sample_size, random_state, n_jobs, verbose : object
        As in `GroupClustering`.

    Returns
    -------
    clusters : PointClusters

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg.clustering import cluster_points
    >>> points = np.eye(3)[[0, 1, 1, 2, 1, 2]] + 0.01 * np.arange(6)[:, None]
    >>> cluster_points(points, 3).labels
    array([2, 0, 0, 1, 0, 1])
    """
    if n_clusters is not None and n_clusters > len(points):
        raise ValueError(f"n_clusters={n_clusters} is more than the {len(points)} groups.")
    rng = check_random_state(random_state)
    alternatives: dict[float, int] = {}
    if n_clusters is not None:
        labels = _partition(points, int(n_clusters), sample_size, rng, by_cosine)
    else:
        import_extra("sknetwork.clustering", "Finding the number of clusters", "set n_clusters")
        others = [float(factor * resolution) for factor in _ALTERNATIVES]
        graph = neighbour_graph(points, n_neighbors, n_jobs, verbose, by_cosine=by_cosine)
        labels, *found = find_communities(graph, [resolution, *others], rng, n_jobs)
        alternatives = {other: len(np.unique(communities)) for other, communities in zip(others, found, strict=True)}
    labels = largest_first(labels)
    centers = _centers(points, labels, int(labels.max()) + 1, by_cosine)
    return PointClusters(labels, centers, _center_distances(points, centers, labels, by_cosine), alternatives)


def _partition(
    points: np.ndarray, k: int, sample_size: int, random_state: np.random.RandomState, by_cosine: bool
) -> np.ndarray:
    """The cluster of each point, by k-means started from average linkage of a sample."""
    sample = points[sampled_rows(len(points), max(sample_size, k), random_state)]
    with ONE_BLAS_THREAD:  # as k-means does itself, but not for several threads that overlap
        found = [KMeans(k, init=centers, n_init=1).fit(points) for centers in _starts(sample, k, by_cosine)]
    return min(found, key=lambda means: _spread(points, means, by_cosine)).labels_


def sampled_rows(n: int, size: int, random_state: np.random.RandomState) -> np.ndarray:
    """Up to `size` of n rows, drawn at random, in ascending order."""
    if n <= size:
        return np.arange(n)
    return np.sort(sample_without_replacement(n, size, random_state=random_state))


def _centers(points: np.ndarray, labels: np.ndarray, n_clusters: int, by_cosine: bool) -> np.ndarray:
    """Mean of the points of each of the first clusters, at unit length if the points are."""
    members = sparse.csr_array((np.ones(len(points), points.dtype), (labels, np.arange(len(points)))))[:n_clusters]
    sums = members @ points
    return unit_length(sums) if by_cosine else sums / members.sum(axis=1)[:, None]


def _center_distances(points: np.ndarray, centers: np.ndarray, labels: np.ndarray, by_cosine: bool) -> np.ndarray:
    """Distance of each point to the centre of its cluster: Euclidean, or one minus the cosine."""
    distances = np.empty(len(points), points.dtype)
    for batch in gen_batches(len(points), POINTS):
        some, others = points[batch], centers[labels[batch]]
        distances[batch] = (
            compare_unit_rows(some, others, "distance") if by_cosine else np.linalg.norm(some - others, axis=1)
        )
    return distances


def _starts(points: np.ndarray, k: int, by_cosine: bool) -> Iterator[np.ndarray]:
    """Centres of k clusters by average linkage, and of its k largest in the first cut that has k of half the mean size.

    A cut into k clusters may have most points in one of them and a few outliers in the others.
    """
    if len(points) == 1:
        yield points
        return
    children = linkage(pdist(points, "sqeuclidean"), "average")[:, :2].astype(int)
    exactly = len(points) - k
    balanced = merges_before(children, k, len(points) / (2 * k))
    for n_merges in {exactly, exactly if balanced is None else balanced}:
        labels = largest_first(tops_after(children, n_merges))
        yield _centers(points, labels, k, by_cosine)


def _spread(points: np.ndarray, means: KMeans, by_cosine: bool) -> float:
    """Sum of the distances of points to their centres; squared, a few outliers would outweigh all others."""
    if by_cosine:
        return means.inertia_
    return _center_distances(points, means.cluster_centers_, means.labels_, by_cosine).sum()
