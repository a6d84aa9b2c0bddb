"""Centres of clusters of points, and the distances of points to them."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import pairwise_distances_argmin
from sklearn.utils import gen_batches

from sklearn_mcsg._memory import POINTS
from sklearn_mcsg.engine.cosine import compare_unit_rows, compare_units, unit_length


def centers_of(points: np.ndarray, labels: np.ndarray, by_cosine: bool) -> np.ndarray:
    """Mean of the points of each cluster, at unit length if the points are."""
    sizes = np.bincount(labels)
    sums = cluster_sums(points, labels, len(sizes))
    return (unit_length(sums) if by_cosine else sums / sizes[:, None]).astype(points.dtype, copy=False)


def cluster_sums(points: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Sum of the points of each cluster, in double precision."""
    sums = np.zeros((n_clusters, points.shape[1]))
    for batch in gen_batches(len(points), POINTS):
        some = points[batch].astype(np.float64, copy=False)
        places = labels[batch], np.arange(len(some))
        sums += sparse.csr_array((np.ones(len(some)), places), (n_clusters, len(some))) @ some
    return sums


def center_distances(points: np.ndarray, centers: np.ndarray, labels: np.ndarray, by_cosine: bool) -> np.ndarray:
    """Distance of each point to the centre of its cluster: Euclidean, or one minus the cosine."""
    distances = np.empty(len(points), points.dtype)
    for batch in gen_batches(len(points), POINTS):
        some, others = points[batch], centers[labels[batch]]
        distances[batch] = (
            compare_unit_rows(some, others, "distance") if by_cosine else np.linalg.norm(some - others, axis=1)
        )
    return distances


def distances_to_all(points: np.ndarray, centers: np.ndarray, by_cosine: bool) -> np.ndarray:
    """Distance of each point to each centre: Euclidean, or one minus the cosine."""
    if by_cosine:
        return compare_units(points, centers, "distance")
    return cdist(points, centers).astype(points.dtype, copy=False)


def nearest_center(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The nearest centre of each point."""
    return pairwise_distances_argmin(points, centers).astype(int, copy=False)
