"""Clusters of a corpus that lies in many parts, on a Dask cluster.

    part --load--> groups --embedding--> points, which stay on their worker
    a sample of all points --average linkage--> means
    means --> all parts --> sums of the points nearest to each mean --> merged in a tree --> new means, until they stay

Only the sample, means and sums travel, and labels if they are asked for. Dask embeds the part of a lost worker again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._memory import POINTS
from sklearn_mcsg._sklearn import HasMethods, Interval
from sklearn_mcsg.clustering._points import _starts, sampled_rows
from sklearn_mcsg.embedding import GroupEmbedding
from sklearn_mcsg.engine.cosine import unit_length
from sklearn_mcsg.groups import GroupsLike
from sklearn_mcsg.search.inverted import nearest_centres
from sklearn_mcsg.search.workers import Cluster, Parts, clone_with_client

_MAX_ITER, _TOL = 300, 1e-4  # as in scikit-learn's k-means


class PartitionedClustering(BaseEstimator):
    """Divide a corpus in many parts into a given number of clusters, by the workers of a Dask cluster.

    The clusters are those of k-means started from average linkage of a sample, as `GroupClustering` finds them on one
    machine. The points of each part stay in the memory of a worker.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    embedding : GroupEmbedding, default=None
        How groups become points; ``None`` means ``GroupEmbedding(prior_strength=0.5)``. An embedding that is not fitted
        learns from all parts.
    load : callable, default=None
        Function from a part, such as the name of a file, to groups. It runs on the workers, and is sent to each once,
        so it may hold a table of word vectors. ``None`` means that the parts are groups.
    client : distributed.Client, default=None
        The cluster; ``None`` means the client created last.
    sample_size : int, default=5000
        Largest number of groups that average linkage uses.
    random_state : int, RandomState instance or None, default=None
        Determines what is random: the sample. Pass an int for reproducible results.

    Attributes
    ----------
    embedding_ : GroupEmbedding
        The fitted embedding.
    n_clusters_ : int
        Number of clusters. It is less than `n_clusters` only if fewer groups differ.
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_components)
        Mean of each cluster, or its mean direction if points have unit length. The largest cluster is the first.
    cluster_sizes_ : ndarray of shape (`n_clusters_`,)
        Number of groups in each cluster.
    sizes_ : ndarray of shape (n_parts,)
        Number of groups in each part.

    See Also
    --------
    GroupClustering : Clusters on one machine, which can also find their number.
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
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "embedding": [HasMethods(["fit"]), None],
        "load": [callable, None],
        "client": [HasMethods(["submit", "gather"]), None],
        "sample_size": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int,
        *,
        embedding: GroupEmbedding | None = None,
        load: Callable[[Any], GroupsLike] | None = None,
        client: Any = None,
        sample_size: int = 5000,
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
        rng, k = check_random_state(self.random_state), int(self.n_clusters)
        parts = Parts(X, self.load, Cluster(self.client, "PartitionedClustering", _call))
        embedding = copy(embedding) if hasattr(embedding, "components_") else parts.fitted(embedding)
        points = _PartPoints(parts.cluster, parts.over(_embedded, parts.cluster.send(embedding)), embedding.normalize)
        n = int(points.sizes.sum())
        if k > n:
            raise ValueError(f"n_clusters={k} is more than the {n} groups.")
        sample = points.rows(sampled_rows(n, max(self.sample_size, k), rng))
        found = [points.k_means(means) for means in _starts(sample, k, points.by_cosine)]
        means, clusters = min(found, key=lambda each: each[1].spread)
        order = np.lexsort((clusters.first, -clusters.sizes))[: np.count_nonzero(clusters.sizes)]
        if len(order) < k:
            warnings.warn(
                f"{len(order)} clusters were found instead of {k}: no more groups differ.",
                ConvergenceWarning,
                stacklevel=2,
            )
        sums, sizes = clusters.sums[order], clusters.sizes[order]
        self.embedding_, self._points, self._means = embedding, points, means[order]
        self.cluster_centers_ = (unit_length(sums) if points.by_cosine else sums / sizes[:, None]).astype(sample.dtype)
        self.cluster_sizes_, self.n_clusters_, self.sizes_ = sizes, len(order), points.sizes
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
        return self._points.labels(part, self._means)

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
        return _labels(np.asarray(self.embedding_.transform(X)), self.cluster_centers_)


@dataclass(frozen=True, eq=False)
class _Clusters:
    """What k-means has to know about the points that are nearest to each mean.

    Attributes
    ----------
    sums : ndarray of shape (n_clusters, n_components)
        Sum of the points.
    sizes : ndarray of shape (n_clusters,)
        Number of points.
    first : ndarray of shape (n_clusters,)
        Index of the first point; the largest integer if there is none.
    spread : float
        Sum of the distances of all points to their means, squared if points have unit length.
    """

    sums: np.ndarray
    sizes: np.ndarray
    first: np.ndarray
    spread: float

    @classmethod
    def merged(cls, *some: _Clusters) -> _Clusters:
        """Clusters of all points from those of disjoint parts."""
        sums, sizes, spread = (sum(getattr(one, name) for one in some) for name in ("sums", "sizes", "spread"))
        return cls(sums, sizes, np.min([one.first for one in some], axis=0), spread)


Farthest = tuple[np.ndarray, np.ndarray, np.ndarray]  # squared distances, points, and their clusters


class _PartPoints:
    """The points of all parts, on the workers, and k-means of them."""

    def __init__(self, cluster: Cluster, futures: list[Any], by_cosine: bool):
        self._cluster, self._futures, self.by_cosine = cluster, futures, by_cosine
        facts = cluster.gather([cluster.submit(_facts, points) for points in futures])
        sizes, sums, squares = zip(*facts, strict=True)
        self.sizes = np.array(sizes)
        self._starts = (np.cumsum(self.sizes) - self.sizes).tolist()
        n, mean = self.sizes.sum(), np.sum(sums, axis=0) / self.sizes.sum()
        self._tolerance = _TOL * max(0.0, sum(squares) / n - mean @ mean) / len(mean)

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Some points, given by their indices in ascending order."""
        places = np.searchsorted(rows, [*self._starts, self.sizes.sum()])
        chosen = zip(self._futures, self._starts, places[:-1], places[1:], strict=True)
        futures = [self._cluster.submit(_take, points, rows[a:b] - start) for points, start, a, b in chosen if b > a]
        return np.concatenate(self._cluster.gather(futures))

    def labels(self, part: int, means: np.ndarray) -> np.ndarray:
        """The nearest mean of each point of a part."""
        return self._cluster.submit(_labels, self._futures[part], self._cluster.send(means)).result()

    def k_means(self, means: np.ndarray) -> tuple[np.ndarray, _Clusters]:
        """Means that k-means reaches from the given ones as scikit-learn's does, and their clusters."""
        dtype, means = means.dtype, means.astype(np.float64)
        for _ in range(_MAX_ITER):
            clusters = self._with_members(means.astype(dtype))
            old, has_members = means.copy(), clusters.sizes > 0
            means[has_members] = clusters.sums[has_members] / clusters.sizes[has_members, None]
            if ((means - old) ** 2).sum() <= self._tolerance:
                break
        return means.astype(dtype), self._clusters(means.astype(dtype))

    def _clusters(self, means: np.ndarray) -> _Clusters:
        sent = self._cluster.send(means)
        return self._reduced(_clusters_in_part, _Clusters.merged, sent, self.by_cosine)

    def _with_members(self, means: np.ndarray) -> _Clusters:
        """The clusters around means; one without members takes over one of the points farthest from their means."""
        clusters = self._clusters(means)
        empty = np.flatnonzero(clusters.sizes == 0)
        if len(empty):
            sent = self._cluster.send(means)
            squares, points, owners = self._reduced(_farthest_in_part, partial(_farthest, len(empty)), sent, len(empty))
            for cluster, square, point, owner in zip(empty, squares, points, owners, strict=False):
                if square > 0:
                    clusters.sums[owner] -= point
                    clusters.sizes[owner] -= 1
                    clusters.sums[cluster], clusters.sizes[cluster] = point, 1
        return clusters

    def _reduced(self, function: Callable, merge: Callable, *args: Any) -> Any:
        """The merged results of a function for the points of each part, the index of the first, and arguments."""
        each = zip(self._futures, self._starts, strict=True)
        futures = [self._cluster.submit(function, points, start, *args) for points, start in each]
        return self._cluster.merged(futures, merge).result()


def _call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def _embedded(groups: GroupsLike, embedding: GroupEmbedding) -> np.ndarray:
    return np.asarray(embedding.transform(groups))


def _facts(points: np.ndarray) -> tuple[int, np.ndarray, float]:
    """Number, sum and sum of squares of points."""
    return len(points), points.sum(axis=0, dtype=np.float64), float(np.einsum("ij,ij->", points, points, dtype=float))


def _take(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return points[rows]


def _labels(points: np.ndarray, means: np.ndarray) -> np.ndarray:
    """The nearest mean of each point."""
    return nearest_centres(points, means, 1)[:, 0].astype(int)


def _clusters_in_part(points: np.ndarray, start: int, means: np.ndarray, by_cosine: bool) -> _Clusters:
    """The points of a part that are nearest to each mean; the first point has the index `start` in the corpus."""
    k, labels = len(means), _labels(points, means)
    sums, spread = np.zeros(means.shape), 0.0
    for batch in gen_batches(len(points), POINTS):
        some = points[batch].astype(np.float64)
        squares = ((some - means[labels[batch]]) ** 2).sum(axis=1)
        spread += float((squares if by_cosine else np.sqrt(squares)).sum())
        sums += sparse.csr_array((np.ones(len(some)), (labels[batch], np.arange(len(some)))), (k, len(some))) @ some
    first = np.full(k, np.iinfo(int).max)
    first[labels[::-1]] = start + np.arange(len(labels))[::-1]
    return _Clusters(sums, np.bincount(labels, minlength=k), first, spread)


def _farthest_in_part(points: np.ndarray, start: int, means: np.ndarray, n: int) -> Farthest:
    """The points of a part that are farthest from their means."""
    labels = _labels(points, means)
    batches = gen_batches(len(points), POINTS)
    squares = np.concatenate([((points[batch] - means[labels[batch]]) ** 2).sum(axis=1) for batch in batches])
    return _farthest(n, (squares, points, labels))


def _farthest(n: int, *some: Farthest) -> Farthest:
    """The n farthest points of all, in descending order of distance."""
    squares, points, labels = (np.concatenate(arrays) for arrays in zip(*some, strict=True))
    far = np.argsort(-squares, kind="stable")[:n]
    return squares[far], points[far], labels[far]
