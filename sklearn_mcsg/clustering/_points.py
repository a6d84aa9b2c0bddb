"""Clusters of points, such as embeddings, of a given number or of one that is found.

    points --nearest neighbours--> graph --Louvain--> communities
           --averages with neighbours--> k-means from average linkage and from random points
    communities, clusters of k-means --modularity--> the best

All of it sees a sample of many points; the others join the nearest centre. A number is given, or found by splitting
the points into halves (`_number.py`). If it is found, clusters that are much larger and looser than the others are
divided.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.utils import check_array, check_random_state
from sklearn.utils.random import sample_without_replacement

from sklearn_mcsg._checks import check_positive_integer
from sklearn_mcsg._extras import has_extra, import_extra
from sklearn_mcsg.clustering._centers import center_distances, centers_of, nearest_center
from sklearn_mcsg.clustering._communities import find_k_communities, modularity, neighbour_graph
from sklearn_mcsg.clustering._dendrogram import largest_first, merges_before, tops_after
from sklearn_mcsg.clustering._margins import margins_of_points
from sklearn_mcsg.clustering._number import find_number
from sklearn_mcsg.engine.cosine import unit_length
from sklearn_mcsg.engine.parallel import ONE_BLAS_THREAD, progress

_ALTERNATIVES = (0.5, 2)  # times the resolution
_LINKED = 5000  # points that average linkage uses
_SMOOTHED = 2  # times that each point is averaged with its neighbours
_RANDOM_STARTS = 5  # of k-means
_FEWEST_NEIGHBORS = 3  # of a point in the graph; where clusters are too small for them, k-means sees the points alone
_LARGE = 3  # times the mean size of the other clusters


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
    second : ndarray of shape (n_points,)
        The other cluster whose centre is nearest to each point; -1 if there is only one cluster.
    margins : ndarray of shape (n_points,)
        How much farther this centre is than that of the own cluster; infinite if there is only one.
    alternatives : dict
        Number of clusters at half and at twice the resolution, by resolution, before loose clusters are divided; empty
        with a given number of clusters.
    """

    labels: np.ndarray
    centers: np.ndarray
    center_distances: np.ndarray
    second: np.ndarray
    margins: np.ndarray
    alternatives: dict[float, int]

    @classmethod
    def of(cls, points: np.ndarray, labels: np.ndarray, alternatives: dict[float, int], *, by_cosine: bool) -> Self:
        """Number given clusters by their sizes and measure them."""
        labels = largest_first(labels)
        centers = centers_of(points, labels, by_cosine)
        distances = center_distances(points, centers, labels, by_cosine)
        second, margins = margins_of_points(points, centers, labels, by_cosine)
        return cls(labels, centers, distances, second, margins, alternatives)


def cluster_points(
    points: np.ndarray,
    n_clusters: int | None = None,
    *,
    by_cosine: bool = False,
    n_neighbors: int = 15,
    resolution: float = 1.0,
    sample_size: int = 20_000,
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
        Number of clusters; ``None`` finds the number.
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
    points = check_array(points, dtype=[np.float64, np.float32], input_name="points")
    if n_clusters is not None:
        check_positive_integer(n_clusters, "n_clusters")
    check_number(n_clusters, len(points))
    rng = check_random_state(random_state)
    rows = sampled_rows(len(points), max(sample_size, n_clusters or 0), rng)
    sample = points if len(rows) == len(points) else points[rows]
    labels, alternatives = cluster_sample(
        sample,
        n_clusters,
        by_cosine=by_cosine,
        n_neighbors=n_neighbors,
        resolution=resolution,
        random_state=rng,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    if sample is not points:
        of_sample = largest_first(labels)  # without gaps, because k-means may find fewer clusters
        labels = nearest_center(points, centers_of(sample, of_sample, by_cosine))
        labels[rows] = of_sample
    return PointClusters.of(points, labels, alternatives, by_cosine=by_cosine)


def check_number(n_clusters: int | None, n_points: int) -> None:
    """Raise if there are fewer points than clusters, or if their number must be found and that needs a package."""
    if n_clusters is None:
        import_extra("sknetwork.clustering", "Finding the number of clusters", "set n_clusters")
    elif n_clusters > n_points:
        raise ValueError(f"n_clusters={n_clusters} is more than the {n_points} groups.")


def sampled_rows(n: int, size: int, random_state: np.random.RandomState) -> np.ndarray:
    """Up to `size` of n rows, drawn at random, in ascending order."""
    if n <= size:
        return np.arange(n)
    return np.sort(sample_without_replacement(n, size, random_state=random_state))


def cluster_sample(
    points: np.ndarray,
    n_clusters: int | None,
    *,
    by_cosine: bool,
    n_neighbors: int = 15,
    resolution: float = 1.0,
    random_state: np.random.RandomState,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> tuple[np.ndarray, dict[float, int]]:
    """The cluster of each of a moderate number of points, and the numbers of clusters at other resolutions.

    There are no more clusters than different points: equal ones would be divided at random.
    """
    seed = int(random_state.randint(2**31))
    most = n_different(points)
    if n_clusters is not None and n_clusters > most:
        groups = "All groups are equal" if most == 1 else f"Only {most} groups are different"
        warnings.warn(f"{groups}, so there are fewer clusters than n_clusters={n_clusters}.", stacklevel=4)
    alternatives: dict[float, int] = {}
    with progress(verbose, 3, "clustering", " steps") as advance:
        if n_clusters is None:
            found = find_number(points, n_neighbors, random_state, n_jobs, by_cosine=by_cosine)
            k = _times(found, resolution, most)
            alternatives = {float(f * resolution): _times(found, f * resolution, most) for f in _ALTERNATIVES}
        else:
            k = min(int(n_clusters), most)
        advance(1)
        near = min(n_neighbors, len(points) // (2 * k))  # most of them are in the same cluster, if it has the mean size
        if near < _FEWEST_NEIGHBORS:
            starts = _k_means(points, k, by_cosine, seed, at_random=False)
            labels = min(starts, key=lambda means: means.inertia_).labels_
            advance(2)
            return labels, alternatives
        divide = Division(points, neighbour_graph(points, near, n_jobs, by_cosine=by_cosine), by_cosine, seed)
        advance(1)
        labels = divide.into(k)
        if n_clusters is None:
            labels = divide.without_loose(labels)
        advance(1)
    return labels, alternatives


def n_different(points: np.ndarray) -> int:
    """Number of different points."""
    return len({point.tobytes() for point in points})


def _times(number: int, factor: float, most: int) -> int:
    return min(most, max(1, round(factor * number)))


@dataclass(frozen=True, eq=False)
class Division:
    """Ways to divide points into clusters.

    Attributes
    ----------
    points : ndarray of shape (n_points, n_components)
        The points.
    graph : csr_matrix of shape (n_points, n_points)
        The graph of their nearest neighbours.
    by_cosine : bool
        Whether points have unit length and are compared by the cosine.
    seed : int
        Determines what is random.
    """

    points: np.ndarray
    graph: sparse.csr_matrix
    by_cosine: bool
    seed: int

    def into(self, k: int) -> np.ndarray:
        """The cluster of each point: the most modular of communities, if there are as many, and clusters of k-means.

        Modularity is that at the resolution that finds k communities: at a smaller one it prefers few large clusters
        and many single points. Where k is smaller than the number at resolution 1, communities would have to merge
        against modularity, and are worse than clusters of k-means.
        """
        smoothed = _smoothed(self.points, self.graph, self.by_cosine)
        partitions = [means.labels_ for means in _k_means(smoothed, k, self.by_cosine, self.seed, at_random=True)]
        resolution = 1.0
        communities = find_k_communities(self.graph, k, self.seed) if has_extra("sknetwork.clustering") else None
        if communities is not None:
            partitions.append(communities[0])
            resolution = communities[1]
        return max(partitions, key=lambda labels: modularity(self.graph, labels, resolution))

    def without_loose(self, labels: np.ndarray) -> np.ndarray:
        """Divide a cluster that is three times as large as the others on average, and looser, until there is none.

        A cluster is looser if its points are farther from its centre, on average, than those of the others from theirs.
        Its parts are about as large as the others.
        """
        while labels.max() > 0:
            labels = largest_first(labels)
            centers = centers_of(self.points, labels, self.by_cosine)
            distances = center_distances(self.points, centers, labels, self.by_cosine)
            inside = labels == 0
            others = (~inside).sum() / labels.max()
            if inside.sum() < _LARGE * others or distances[inside].mean() <= distances[~inside].mean():
                break
            part = Division(self.points[inside], self.graph[inside][:, inside].tocsr(), self.by_cosine, self.seed)
            parts = part.into(round(inside.sum() / others))
            if not parts.any():
                break
            labels[inside] = np.where(parts, labels.max() + parts, 0)
        return labels


def _k_means(points: np.ndarray, k: int, by_cosine: bool, seed: int, *, at_random: bool) -> list[KMeans]:
    """K-means started from average linkage of a sample and, if wanted, at random.

    Where clusters are many and small, random starts have smaller sums of squares, but their clusters are worse.
    """
    rng = np.random.RandomState(seed)
    sample, size = points, max(_LINKED, k)
    if len(points) > size:
        sample = points[sampled_rows(len(points), size, rng)]
    with ONE_BLAS_THREAD:  # as k-means does itself, but not for several threads that overlap
        means = [KMeans(k, init=centers, n_init=1) for centers in _linked(sample, k, by_cosine)]
        if at_random:
            means.append(KMeans(k, n_init=_RANDOM_STARTS, random_state=rng))
        return [each.fit(points) for each in means]


def _smoothed(points: np.ndarray, graph: sparse.csr_matrix, by_cosine: bool) -> np.ndarray:
    """Points averaged with the weighted mean of their neighbours, twice.

    Averages have less noise: texts have hundreds of components of small variance, which outweigh the others.
    """
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    alone = degrees == 0
    mean = sparse.diags(1 / np.where(alone, 1, degrees)) @ graph + sparse.diags(alone.astype(float))
    mean = mean.astype(points.dtype)
    for _ in range(_SMOOTHED):
        near = mean @ points
        points = unit_length(unit_length(near) + points) if by_cosine else (near + points) / 2
    return points


def _linked(points: np.ndarray, k: int, by_cosine: bool) -> Iterator[np.ndarray]:
    """Centres of k clusters by average linkage, from one cut of its tree or two.

    A cut into k clusters may have most points in one of them and a few outliers in the others. The second cut has the
    fewest clusters of which k have at least half the mean size; its k largest clusters are taken.
    """
    if len(points) == 1:
        yield points
        return
    children = linkage(pdist(points, "sqeuclidean"), "average")[:, :2].astype(int)
    exactly = len(points) - k
    balanced = merges_before(children, k, len(points) / (2 * k))
    for n_merges in {exactly, exactly if balanced is None else balanced}:
        labels = largest_first(tops_after(children, n_merges))
        yield centers_of(points, labels, by_cosine)[:k]
