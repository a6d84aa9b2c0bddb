"""Clusters of a corpus that lies in many parts, on a Dask cluster.

    part --load--> groups --embedding--> points, which stay on their worker
    a sample of all points --as on one machine--> clusters and their centres
    centres --> all parts --> the nearest centre of each point --> sizes and means of the clusters, merged in a tree

Only the sample, centres and sums travel, and labels if they are asked for. Dask embeds the part of a lost worker again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._checks import Count
from sklearn_mcsg._sklearn import HasMethods
from sklearn_mcsg.clustering._centers import centers_of, cluster_sums, nearest_center
from sklearn_mcsg.clustering._dendrogram import largest_first
from sklearn_mcsg.clustering._points import check_number, cluster_sample, sampled_rows
from sklearn_mcsg.embedding import GroupEmbedding
from sklearn_mcsg.engine.cosine import unit_length
from sklearn_mcsg.groups import GroupsLike
from sklearn_mcsg.search.workers import Cluster, Parts, clone_with_client


class PartitionedClustering(BaseEstimator):
    """Cluster a corpus in many parts, by the workers of a Dask cluster.

    The clusters are those that `GroupClustering` finds on one machine: a sample of all groups is clustered, and each of
    the others joins the cluster with the nearest centre. The points of each part stay in the memory of a worker.

    Parameters
    ----------
    n_clusters : int, default=None
        Number of clusters; ``None`` finds the number.
    embedding : GroupEmbedding, default=None
        How groups become points; ``None`` means ``GroupEmbedding(prior_strength=0.5)``. An embedding that is not fitted
        learns from all parts.
    load : callable, default=None
        Function from a part, such as the name of a file, to groups. It runs on the workers, and is sent to each once,
        so it may hold a table of word vectors. ``None`` means that the parts are groups.
    client : distributed.Client, default=None
        The cluster; ``None`` means the client created last.
    sample_size : int, default=20000
        Largest number of groups that are clustered together. Of more groups, a random sample is clustered, and each of
        the others joins the cluster with the nearest centre.
    random_state : int, RandomState instance or None, default=None
        Determines what is random: the sample, the halves, the order in which communities grow, and starts of k-means.
        Pass an int for reproducible results.

    Attributes
    ----------
    embedding_ : GroupEmbedding
        The fitted embedding.
    n_clusters_ : int
        Number of clusters.
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_components)
        Mean of each cluster, or its mean direction if points have unit length. The largest cluster is the first.
    cluster_sizes_ : ndarray of shape (`n_clusters_`,)
        Number of groups in each cluster.
    sizes_ : ndarray of shape (n_parts,)
        Number of groups in each part.

    See Also
    --------
    GroupClustering : The same clusters, on one machine.
    PartitionedNeighbors : Nearest groups of such a corpus.

    Examples
    --------
    Parts that are files of texts, and a cluster on one machine::

        from pathlib import Path

        from distributed import Client
        from sklearn_mcsg import PartitionedClustering, make_text_embedding

        vectorizer, embedding = make_text_embedding(n_components=256)
        vectorizer.fit(["my puppy is ill"])  # opens the word vectors; nothing is learnt from the text

        def load(path):
            return vectorizer.transform(path.read_text(encoding="utf8").splitlines())

        client = Client(n_workers=4, threads_per_worker=1)
        paths = sorted(Path("corpus").glob("*.txt"))
        clustering = PartitionedClustering(50, embedding=embedding, load=load, random_state=0).fit(paths)
        clustering.labels_of(0)  # of the texts in the first file
        clustering.predict(vectorizer.transform(["my puppy is ill"]))
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Count(), None],
        "embedding": [HasMethods(["fit"]), None],
        "load": [callable, None],
        "client": [HasMethods(["submit", "gather"]), None],
        "sample_size": [Count(2)],
        "random_state": ["random_state"],
    }
    _points: _PartPoints
    _placement: _Placement

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        embedding: GroupEmbedding | None = None,
        load: Callable[[Any], GroupsLike] | None = None,
        client: Any = None,
        sample_size: int = 20_000,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.n_clusters = n_clusters
        self.embedding = embedding
        self.load = load
        self.client = client
        self.sample_size = sample_size
        self.random_state = random_state

    def __sklearn_clone__(self) -> Self:
        return clone_with_client(self)

    def fit(self, X: Sequence[Any], y: object = None) -> Self:
        """Learn from all parts, embed each on a worker, and cluster the points.

        Parameters
        ----------
        X : sequence
            The parts, in the form that `load` takes.
        y : None
            Ignored.

        Returns
        -------
        self : PartitionedClustering
        """
        self._validate_params()
        embedding = GroupEmbedding(prior_strength=0.5) if self.embedding is None else self.embedding
        if not isinstance(embedding, GroupEmbedding):
            raise TypeError(
                f"embedding must be a GroupEmbedding, got {type(embedding).__name__}: steps before it, such as a "
                f"vectorizer, belong in load."
            )
        rng = check_random_state(self.random_state)
        parts = Parts(X, self.load, Cluster(self.client, "PartitionedClustering", _call))
        embedding = copy(embedding) if hasattr(embedding, "components_") else parts.fitted(embedding)
        points = _PartPoints(parts.cluster, parts.over(_embedded, parts.cluster.send(embedding)))
        n, by_cosine = int(points.sizes.sum()), embedding.normalize
        check_number(self.n_clusters, n)
        rows = sampled_rows(n, max(self.sample_size, self.n_clusters or 0), rng)
        sample = points.rows(rows)
        labels, _ = cluster_sample(sample, self.n_clusters, by_cosine=by_cosine, random_state=rng)
        labels = largest_first(labels)  # without gaps, because k-means may find fewer clusters
        placement = _Placement(rows, labels, centers_of(sample, labels, by_cosine))
        clusters = points.placed(placement)
        order = np.lexsort((clusters.first, -clusters.sizes))
        sums, sizes = clusters.sums[order], clusters.sizes[order]
        centers = unit_length(sums) if by_cosine else sums / sizes[:, None]
        self.__dict__.update(
            embedding_=embedding,
            cluster_centers_=centers.astype(sample.dtype),
            cluster_sizes_=sizes,
            n_clusters_=len(order),
            sizes_=points.sizes,
            _points=points,
            _placement=placement.numbered(order),
        )
        return self

    def labels_of(self, part: int) -> np.ndarray:
        """The cluster of each group of a part, from the worker that holds its points.

        Parameters
        ----------
        part : int
            The place of the part among those that were given to `fit`.

        Returns
        -------
        labels : ndarray of shape (n_groups,)
        """
        check_is_fitted(self, "cluster_centers_")
        if not 0 <= part < len(self.sizes_):
            raise ValueError(f"part={part!r} is not among the {len(self.sizes_)} parts, which count from 0.")
        return self._points.labels(part, self._placement)

    def predict(self, X: GroupsLike) -> np.ndarray:
        """Find the cluster with the nearest centre for each group.

        Parameters
        ----------
        X : groups
            New groups.

        Returns
        -------
        labels : ndarray of shape (n_groups,)
        """
        check_is_fitted(self, "cluster_centers_")
        return nearest_center(np.asarray(self.embedding_.transform(X)), self.cluster_centers_)


@dataclass(frozen=True, eq=False)
class _Placement:
    """The clusters of a sample, which all other points join.

    Attributes
    ----------
    rows : ndarray of shape (n_sampled,)
        Indices of the sample among all points, in ascending order.
    labels : ndarray of shape (n_sampled,)
        Their clusters.
    centers : ndarray of shape (n_clusters, n_components)
        Centres of the clusters.
    """

    rows: np.ndarray
    labels: np.ndarray
    centers: np.ndarray

    def __call__(self, points: np.ndarray, start: int) -> np.ndarray:
        """The cluster of each point of a part, the first of which has the index `start`."""
        labels = nearest_center(points, self.centers)
        sampled = slice(*np.searchsorted(self.rows, [start, start + len(points)]))
        labels[self.rows[sampled] - start] = self.labels[sampled]
        return labels

    def numbered(self, order: np.ndarray) -> _Placement:
        """The same clusters in another order."""
        return _Placement(self.rows, np.argsort(order)[self.labels], self.centers[order])


@dataclass(frozen=True, eq=False)
class _Clusters:
    """What is known of the points of each cluster.

    Attributes
    ----------
    sums : ndarray of shape (n_clusters, n_components)
        Sum of the points.
    sizes : ndarray of shape (n_clusters,)
        Number of points.
    first : ndarray of shape (n_clusters,)
        Index of the first point; the largest integer if there is none.
    """

    sums: np.ndarray
    sizes: np.ndarray
    first: np.ndarray

    @classmethod
    def merged(cls, *some: _Clusters) -> _Clusters:
        """Clusters of all points from those of disjoint parts."""
        sums, sizes = (sum(getattr(one, name) for one in some) for name in ("sums", "sizes"))
        return cls(sums, sizes, np.min([one.first for one in some], axis=0))


class _PartPoints:
    """The points of all parts, on the workers."""

    def __init__(self, cluster: Cluster, futures: list[Any]):
        self._cluster, self._futures = cluster, futures
        self.sizes = np.array(cluster.gather([cluster.submit(len, points) for points in futures]))
        self._starts = (np.cumsum(self.sizes) - self.sizes).tolist()

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Some points, given by their indices in ascending order."""
        places = np.searchsorted(rows, [*self._starts, self.sizes.sum()])
        chosen = zip(self._futures, self._starts, places[:-1], places[1:], strict=True)
        futures = [self._cluster.submit(_take, points, rows[a:b] - start) for points, start, a, b in chosen if b > a]
        return np.concatenate(self._cluster.gather(futures))

    def placed(self, placement: _Placement) -> _Clusters:
        """The clusters of all points."""
        sent, each = self._cluster.send(placement), zip(self._futures, self._starts, strict=True)
        futures = [self._cluster.submit(_clusters_in_part, points, start, sent) for points, start in each]
        return self._cluster.merged(futures, _Clusters.merged).result()

    def labels(self, part: int, placement: _Placement) -> np.ndarray:
        """The cluster of each point of a part."""
        points, start = self._futures[part], self._starts[part]
        return self._cluster.submit(_labels, points, start, self._cluster.send(placement)).result()


def _call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def _embedded(groups: GroupsLike, embedding: GroupEmbedding) -> np.ndarray:
    return np.asarray(embedding.transform(groups))


def _take(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return points[rows]


def _labels(points: np.ndarray, start: int, placement: _Placement) -> np.ndarray:
    return placement(points, start)


def _clusters_in_part(points: np.ndarray, start: int, placement: _Placement) -> _Clusters:
    """The clusters of the points of a part, the first of which has the index `start`."""
    labels, k = placement(points, start), len(placement.centers)
    first = np.full(k, np.iinfo(int).max)
    first[labels[::-1]] = start + np.arange(len(labels))[::-1]
    return _Clusters(cluster_sums(points, labels, k), np.bincount(labels, minlength=k), first)
