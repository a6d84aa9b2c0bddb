"""Clusters of points, such as embeddings: communities, or a given number by k-means.

    points --nearest neighbours--> graph --Louvain--> communities
           --average linkage of a sample--> centres --k-means--> clusters

Finding the neighbours compares the compressed points of all pairs, which dominates from about a million points on. All
else is close to linear in the number of points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from sklearn_mcsg.clustering._communities import find_communities
from sklearn_mcsg.clustering._dendrogram import largest_first
from sklearn_mcsg.clustering._partition import centers_of, distances_of_rows, partition

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
        labels = partition(points, int(n_clusters), sample_size, rng, by_cosine=by_cosine)
    else:
        others = [float(factor * resolution) for factor in _ALTERNATIVES]
        labels, *found = find_communities(
            points,
            by_cosine=by_cosine,
            n_neighbors=n_neighbors,
            resolutions=[resolution, *others],
            random_state=rng,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        alternatives = {other: len(np.unique(communities)) for other, communities in zip(others, found, strict=True)}
    labels = largest_first(labels)
    centers = centers_of(points, labels, int(labels.max()) + 1, by_cosine=by_cosine)
    return PointClusters(labels, centers, distances_of_rows(points, centers[labels], by_cosine=by_cosine), alternatives)
