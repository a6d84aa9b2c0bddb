"""How stable clusters are: whether halves of the points are divided in the same way.

points --halves, at random--> clusters of each half --pairs of points--> together in both, together in either
"""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from sklearn_mcsg.clustering._points import cluster_sample, n_different, sampled_rows
from sklearn_mcsg.engine.parallel import progress

_SPLITS = 4  # into halves


def cluster_stability(
    points: np.ndarray,
    labels: np.ndarray,
    n_clusters: int,
    *,
    by_cosine: bool = False,
    n_neighbors: int = 15,
    sample_size: int = 20_000,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> np.ndarray:
    """Share of the pairs of each cluster that are together again when halves of the points are clustered.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_components)
        The points.
    labels : ndarray of shape (n_points,)
        Their clusters: 0, 1, ...; points with the label -1 are clustered again, but not counted.
    n_clusters : int
        Number of clusters.
    by_cosine : bool, default=False
        Whether points have unit length and are compared by the cosine.
    n_neighbors, sample_size, random_state, n_jobs, verbose : object
        As in `GroupClustering`.

    Returns
    -------
    stability : ndarray of shape (n_clusters,)
        From 0 to 1; NaN if no half has two points of a cluster.

    Notes
    -----
    Four times, the points (a sample of at most `sample_size`) are divided into halves at random, and each half is
    divided into the same number of clusters. A pair counts for a cluster if at least one of its points belongs to it
    and the two are together in the given clusters or in those of their half; the stability is the share of these pairs
    that are together in both. If only the pairs of the cluster itself counted, parts of a cluster that was divided for
    no reason would look stable, because halves often divide another cluster in place of it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg.clustering import cluster_points, cluster_stability
    >>> rng = np.random.default_rng(0)
    >>> points = 8 * np.eye(3)[np.arange(120) % 3] + rng.normal(size=(120, 3))
    >>> cluster_stability(points, cluster_points(points, 3, random_state=0).labels, 3, random_state=0)
    array([1., 1., 1.])
    """
    rng = check_random_state(random_state)
    rows = sampled_rows(len(points), sample_size, rng)
    pairs = np.zeros((3, n_clusters))
    with progress(verbose, 2 * _SPLITS, "clustering halves", " halves") as advance:
        for _ in range(_SPLITS):
            for half in np.array_split(rng.permutation(rows), 2):
                if len(half) < 2:
                    continue
                some = points[half]
                again, _ = cluster_sample(
                    some,
                    min(n_clusters, n_different(some)),
                    by_cosine=by_cosine,
                    n_neighbors=n_neighbors,
                    random_state=rng,
                    n_jobs=n_jobs,
                )
                pairs += _pairs_of(labels[half], again, n_clusters)
                advance(1)
    own, both, either = pairs
    return np.where(own > 0, both / np.maximum(either, 1), np.nan)


def _pairs_of(labels: np.ndarray, again: np.ndarray, k: int) -> np.ndarray:
    """Pairs with a point of each cluster: together in it, together in both partitions, and in at least one of them.

    There is one row for each of the three counts, and one column per cluster.
    """
    known = labels >= 0
    shared = np.zeros((k, int(again.max()) + 1))
    np.add.at(shared, (labels[known], again[known]), 1)
    sizes = shared.sum(axis=1)
    own = sizes * (sizes - 1) / 2
    both = (shared * (shared - 1) / 2).sum(axis=1)
    joined = (shared * (shared.sum(axis=0) - shared)).sum(axis=1)  # with points of other clusters
    return np.array([own, both, own + joined])
