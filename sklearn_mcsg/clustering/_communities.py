"""Clusters of groups in their embedding: communities of the neighbour graph, or a given number by k-means.

    groups --embedding--> points --15 nearest neighbours--> graph --Louvain--> communities
                                 --average linkage of a sample--> centres --k-means--> clusters

Finding the neighbours compares the compressed points of all pairs, which dominates from about a million groups on. All
else is close to linear in the number of groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.metrics import euclidean_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import Tags, check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._memory import count_within
from sklearn_mcsg._sklearn import HasMethods, Interval
from sklearn_mcsg.clustering._dendrogram import merges_before, tops_after
from sklearn_mcsg.embedding.embedding import GroupEmbedding
from sklearn_mcsg.engine.cosine import compare_unit_rows, compare_units, unit_length
from sklearn_mcsg.engine.parallel import progress
from sklearn_mcsg.engine.points import PointSpace
from sklearn_mcsg.groups import GroupsLike
from sklearn_mcsg.search import candidates
from sklearn_mcsg.search.candidates import CandidateIndex

__all__ = ["GroupClustering"]

_EXACT_UP_TO = 50_000  # points whose neighbours are found by comparing all pairs
_INTERRUPTED_UP_TO = 20_000  # points whose communities are found within a second
_ALTERNATIVES = (0.5, 2)  # times the resolution
_CANDIDATES = 4  # for each neighbour, above
_BATCH_BYTES = 2**25  # of candidates at a time


class GroupClustering(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, BaseEstimator):
    """Cluster groups of vectors in their embedding, from a few to millions.

    Without a number of clusters, it finds communities in the graph of nearest neighbours, which also decide how many
    there are. With a number, it clusters a sample by average linkage and starts k-means on all groups from there, once
    from the cut into that many clusters and once from the first cut with that many clusters of at least half the mean
    size; the clusters with the smaller sum of distances are kept.

    Groups are near if their points in the embedding are. With ``normalize=True``, as in `make_text_embedding`, points
    have unit length and are compared by the cosine, which is best for texts.

    Parameters
    ----------
    n_clusters : int, default=None
        Number of clusters; ``None`` finds communities and their number.
    embedding : estimator, default=None
        A `GroupEmbedding`, or a pipeline that ends with one, such as `make_text_embedding` builds for texts. ``None``
        means ``GroupEmbedding(prior_strength=0.5)``.
    n_neighbors : int, default=15
        Number of neighbours of each group in the graph.
    resolution : float, default=1.0
        Larger values find more and smaller communities.
    sample_size : int, default=5000
        Largest number of groups that average linkage uses.
    random_state : int, RandomState instance or None, default=None
        Determines the order in which communities grow, and the sample.
    n_jobs : int, default=None
        Number of jobs for the neighbours of all groups.
    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    labels_ : ndarray of shape (n_groups,)
        The cluster of each group. The largest cluster is 0.
    n_clusters_ : int
        Number of clusters.
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_components)
        Mean of each cluster, or its mean direction if points have unit length.
    distances_ : ndarray of shape (n_groups,)
        Distance of each group to the centre of its cluster: Euclidean, or one minus the cosine if points have unit
        length.
    alternatives_ : dict
        Number of communities at half and at twice the resolution, by resolution; empty with a given number of clusters.
    embedding_ : estimator
        The fitted embedding.

    See Also
    --------
    ModelComparisonClustering : Clusters by comparing models of whole clusters; a tree, for up to 10,000 groups.

    Notes
    -----
    Communities are those of Louvain's method, which maximises modularity. They need scikit-network:
    ``pip install "sklearn-mcsg[text]"``. Above 50,000 groups their neighbours are found approximately if faiss is
    installed, and otherwise by comparing all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import GroupClustering
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(4 * np.eye(3, 6)[i % 3], size=(rng.integers(4, 12), 6)) for i in range(90)]
    >>> clustering = GroupClustering(random_state=0).fit(X)
    >>> clustering.n_clusters_
    3
    >>> len(set(zip(clustering.labels_.tolist(), range(3))))
    3
    >>> clustering.predict(X[:3]) == clustering.labels_[:3]
    array([ True,  True,  True])
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "embedding": [HasMethods(["fit_transform", "transform"]), None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "resolution": [Interval(Real, 0, None, closed="neither")],
        "sample_size": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        embedding: Any = None,
        n_neighbors: int = 15,
        resolution: float = 1.0,
        sample_size: int = 5000,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.embedding = embedding
        self.n_neighbors = n_neighbors
        self.resolution = resolution
        self.sample_size = sample_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: GroupsLike, y: object = None) -> Self:
        """Embed groups and cluster them.

        Parameters
        ----------
        X : groups, or input of the pipeline
            The groups.
        y : None
            Ignored.

        Returns
        -------
        self : GroupClustering
        """
        self._validate_params()
        embedding = GroupEmbedding(prior_strength=0.5) if self.embedding is None else clone(self.embedding)
        clusters = cluster_points(
            np.asarray(embedding.fit_transform(X)),
            self.n_clusters,
            n_neighbors=self.n_neighbors,
            resolution=self.resolution,
            sample_size=self.sample_size,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self.embedding_ = embedding
        self.alternatives_ = clusters.alternatives
        self.labels_ = clusters.labels
        self.n_clusters_ = len(clusters.centres)
        self.cluster_centers_ = clusters.centres
        self.distances_ = clusters.distances
        self._by_cosine = clusters.by_cosine
        return self

    def predict(self, X: GroupsLike) -> np.ndarray:
        """Find the cluster with the nearest centre for each group.

        Parameters
        ----------
        X : groups, or input of the pipeline
            New groups.

        Returns
        -------
        labels : ndarray of shape (n_groups,)
        """
        return self.transform(X).argmin(axis=1)

    def transform(self, X: GroupsLike) -> np.ndarray:
        """Distances of groups to the centres of all clusters, as in `distances_`.

        Parameters
        ----------
        X : groups, or input of the pipeline
            Groups.

        Returns
        -------
        distances : ndarray of shape (n_groups, `n_clusters_`)
        """
        check_is_fitted(self, "cluster_centers_")
        points = np.asarray(self.embedding_.transform(X))
        if self._by_cosine:
            return compare_units(points, self.cluster_centers_, "distance")
        return euclidean_distances(points, self.cluster_centers_)

    @property
    def n_features_in_(self) -> int:
        """Width of the vectors."""
        check_is_fitted(self, "embedding_")
        return self.embedding_.n_features_in_

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_


class PointClusters(NamedTuple):
    """Clusters of points, as `GroupClustering` describes them."""

    labels: np.ndarray  # the cluster of each point; the largest is 0
    centres: np.ndarray
    distances: np.ndarray  # of each point to the centre of its cluster
    alternatives: dict[float, int]  # number of communities by resolution
    by_cosine: bool  # whether points have unit length


def cluster_points(
    points: np.ndarray,
    n_clusters: int | None = None,
    *,
    n_neighbors: int = 15,
    resolution: float = 1.0,
    sample_size: int = 5000,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> PointClusters:
    """Cluster points, with the parameters of `GroupClustering`."""
    if n_clusters is not None and n_clusters > len(points):
        raise ValueError(f"n_clusters={n_clusters} is more than the {len(points)} groups.")
    rng = check_random_state(random_state)
    alternatives: dict[float, int] = {}
    if n_clusters is not None:
        labels = _partition(points, n_clusters, sample_size, rng)
    else:
        labels, *others = find_communities(
            points,
            n_neighbors=n_neighbors,
            resolutions=[factor * resolution for factor in (1, *_ALTERNATIVES)],
            random_state=rng,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        alternatives = {
            float(factor * resolution): len(np.unique(other))
            for factor, other in zip(_ALTERNATIVES, others, strict=True)
        }
    labels = _largest_first(labels)
    centres = _centres(points, labels, int(labels.max()) + 1)
    by_cosine = _are_units(points)
    own = centres[labels]
    distances = compare_unit_rows(points, own, "distance") if by_cosine else _lengths(points - own)
    return PointClusters(labels, centres, distances, alternatives, by_cosine)


def _partition(points: np.ndarray, k: int, sample_size: int, rng: np.random.RandomState) -> np.ndarray:
    """Clusters of k-means, started from average linkage of a sample."""
    sample, size = points, max(sample_size, k)
    if len(points) > size:
        sample = points[np.sort(rng.permutation(len(points))[:size])]
    found = [KMeans(k, init=centres, n_init=1).fit(points) for centres in _starts(sample, k)]
    return min(found, key=lambda means: _spread(points, means)).labels_


def find_communities(
    points: np.ndarray,
    *,
    n_neighbors: int = 15,
    resolutions: Sequence[float] = (1.0,),
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[np.ndarray]:
    """Communities in the graph of nearest neighbours of points.

    Two points are joined if either is among the nearest of the other. The weight of the edge is their cosine if points
    have unit length, and otherwise 1.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_components)
        The points.
    n_neighbors : int, default=15
        Number of neighbours.
    resolutions : sequence of float, default=(1.0,)
        Larger values find more communities.
    random_state : int, RandomState instance or None, default=None
        Determines the order in which communities grow.
    n_jobs : int, default=None
        Number of jobs.
    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    labels : list of ndarrays of shape (n_points,)
        The communities at each resolution.
    """
    if find_spec("sknetwork") is None:
        raise ImportError('Communities need scikit-network: pip install "sklearn-mcsg[text]", or set n_clusters.')
    graph = neighbour_graph(points, n_neighbors, n_jobs, verbose)
    if not graph.nnz:
        return [np.zeros(len(points), dtype=int) for _ in resolutions]
    seed = int(check_random_state(random_state).randint(2**31))  # one: each resolution gives what it gives alone
    tasks = [delayed(_louvain)(graph, resolution, seed) for resolution in resolutions]
    # many points in other processes, because compiled code that runs for a minute would not let Ctrl-C through
    backend: dict[str, Any] = {} if len(points) <= _INTERRUPTED_UP_TO else {"n_jobs": 2, "backend": "loky"}
    return list(Parallel(**backend)(tasks))


def _louvain(graph: sparse.csr_matrix, resolution: float, seed: int) -> np.ndarray:
    from sknetwork.clustering import Louvain

    return Louvain(resolution, shuffle_nodes=True, random_state=seed).fit_predict(graph).astype(int)


def neighbour_graph(points: np.ndarray, n_neighbors: int, n_jobs: int | None, verbose: int) -> sparse.csr_matrix:
    """The symmetric graph of nearest neighbours, weighted by cosines if points have unit length."""
    n = len(points)
    k = min(n_neighbors, n - 1)
    if n > _EXACT_UP_TO and candidates.is_available():
        distances, neighbours = _approximate_neighbours(points, k, n_jobs, verbose)
    else:
        search = NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=n_jobs).fit(points)
        distances, neighbours = search.kneighbors()
    weights = np.maximum(1 - distances**2 / 2, 0) if _are_units(points) else np.ones_like(distances)
    graph = sparse.csr_matrix((weights.ravel(), neighbours.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    graph.eliminate_zeros()
    return graph.maximum(graph.T).tocsr()


def _approximate_neighbours(
    points: np.ndarray, k: int, n_jobs: int | None, verbose: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distances and indices of the nearest neighbours among candidates."""
    index = CandidateIndex.learnt_from(PointSpace(None, directions=False), points)
    distances, neighbours = np.empty((len(points), k), points.dtype), np.empty((len(points), k), np.int64)
    step = count_within(points.itemsize * _CANDIDATES * k * points.shape[1], _BATCH_BYTES)
    with progress(verbose, len(points), "neighbours", " groups") as advance:
        for batch in gen_batches(len(points), step):
            rows = np.arange(batch.start, batch.stop)
            found = index.search(index.points(points[batch]), _CANDIDATES * k + 1, n_jobs)
            near = points[found]
            near -= points[batch, None]
            apart = _lengths(near)
            apart[found == rows[:, None]] = np.inf
            best = np.argpartition(apart, k - 1, axis=1)[:, :k]
            distances[batch] = np.take_along_axis(apart, best, axis=1)
            neighbours[batch] = np.take_along_axis(found, best, axis=1)
            advance(len(rows))
    return distances, neighbours


def _starts(points: np.ndarray, k: int) -> Iterator[np.ndarray]:
    """Centres of k clusters by average linkage, and of its k largest in the first cut that has k of half the mean size.

    A cut into k clusters may have most points in one of them and a few outliers in the others.
    """
    if len(points) == 1:
        yield points
        return
    children = linkage(pdist(points, "sqeuclidean"), "average")[:, :2].astype(int)
    exactly, balanced = len(points) - k, merges_before(children, k, len(points) / (2 * k))
    for n_merges in {exactly, exactly if balanced is None else balanced}:
        labels = _largest_first(tops_after(children, n_merges))
        yield _centres(points, labels, k)


def _spread(points: np.ndarray, means: KMeans) -> float:
    """Sum of the distances of points to their centres; squared, a few outliers would outweigh all others."""
    return means.inertia_ if _are_units(points) else _lengths(points - means.cluster_centers_[means.labels_]).sum()


def _largest_first(labels: np.ndarray) -> np.ndarray:
    """Labels renumbered by size; equal sizes in order of appearance."""
    _, first, labels, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(len(sizes), dtype=int)
    rank[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return rank[labels]


def _centres(points: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Mean of the points of each cluster, at unit length if the points are."""
    members = sparse.csr_array((np.ones(len(points), points.dtype), (labels, np.arange(len(points)))))[:n_clusters]
    sums = members @ points
    return unit_length(sums) if _are_units(points) else sums / members.sum(axis=1)[:, None]


def _are_units(points: np.ndarray) -> bool:
    """Whether points have unit length, or are at the centre."""
    lengths = _lengths(points)
    return bool((np.abs(lengths - 1) < 1e-5)[lengths > 0].all())


def _lengths(rows: np.ndarray) -> np.ndarray:
    """Euclidean length of each row."""
    return np.sqrt(np.einsum("...i,...i->...", rows, rows))
