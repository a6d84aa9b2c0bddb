"""A given number of clusters of points.

sample of points --average linkage--> centres --k-means of all points--> clusters
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans

from sklearn_mcsg.clustering._dendrogram import largest_first, merges_before, tops_after
from sklearn_mcsg.engine.cosine import compare_unit_rows, unit_length


def partition(
    points: np.ndarray, k: int, sample_size: int, random_state: np.random.RandomState, *, by_cosine: bool
) -> np.ndarray:
    """The cluster of each point, by k-means started from average linkage of a sample."""
    size = max(sample_size, k)
    sample = points
    if len(points) > size:
        sample = points[np.sort(random_state.permutation(len(points))[:size])]
    found = [KMeans(k, init=centers, n_init=1).fit(points) for centers in _starts(sample, k, by_cosine)]
    return min(found, key=lambda means: _spread(points, means, by_cosine)).labels_


def centers_of(points: np.ndarray, labels: np.ndarray, n_clusters: int, *, by_cosine: bool) -> np.ndarray:
    """Mean of the points of each of the first clusters, at unit length if the points are."""
    members = sparse.csr_array((np.ones(len(points), points.dtype), (labels, np.arange(len(points)))))[:n_clusters]
    sums = members @ points
    return unit_length(sums) if by_cosine else sums / members.sum(axis=1)[:, None]


def distances_of_rows(points: np.ndarray, others: np.ndarray, *, by_cosine: bool) -> np.ndarray:
    """Distances row by row: Euclidean, or one minus the cosine."""
    return compare_unit_rows(points, others, "distance") if by_cosine else np.linalg.norm(points - others, axis=1)


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
        yield centers_of(points, labels, k, by_cosine=by_cosine)


def _spread(points: np.ndarray, means: KMeans, by_cosine: bool) -> float:
    """Sum of the distances of points to their centres; squared, a few outliers would outweigh all others."""
    if by_cosine:
        return means.inertia_
    return distances_of_rows(points, means.cluster_centers_[means.labels_], by_cosine=False).sum()
