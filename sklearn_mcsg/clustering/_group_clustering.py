"""Clustering of groups in their embedding, into a given number of clusters or one that is found."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClusterMixin, clone
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._sklearn import HasMethods, Interval
from sklearn_mcsg.clustering._points import cluster_points
from sklearn_mcsg.embedding import GroupEmbedding
from sklearn_mcsg.engine.cosine import compare_units
from sklearn_mcsg.groups import GroupsLike
from sklearn_mcsg.groups.arrays import refuse_arrays
from sklearn_mcsg.similarity.estimator import GroupsTransformer, snapshot, split_pipeline

_ROUNDING = 1e-5  # of the length of points of unit length


class GroupClustering(ClusterMixin, GroupsTransformer):
    """Cluster groups of vectors in their embedding, from a few to millions.

    Of several partitions into a number of clusters it keeps the one with the largest modularity on the graph of nearest
    neighbours: the communities of this graph, and clusters of k-means that starts from average linkage and at random.
    K-means sees each group averaged with its neighbours. Without a number, it finds as many clusters as are found again
    in random halves of the groups, and divides a cluster that is much larger and looser than the others.

    Groups are near if their points in the embedding are. With ``normalize=True``, as in `make_text_embedding`, points
    have unit length and are compared by the cosine, which is best for texts.

    Parameters
    ----------
    n_clusters : int, default=None
        Number of clusters; ``None`` finds the number.
    embedding : estimator, default=None
        How groups become points: a `GroupEmbedding`, or a pipeline that ends with one, such as `make_text_embedding`
        builds for texts. ``None`` means ``GroupEmbedding(prior_strength=0.5)``.
    n_neighbors : int, default=15
        Number of neighbours: those of each group in the graph; at most half the mean size of the clusters. If that is
        less than three, k-means sees the groups alone.
    resolution : float, default=1.0
        Larger values find more and smaller clusters: the number of clusters that is found is multiplied by it.
    sample_size : int, default=20000
        Largest number of groups that are clustered together. Of more groups, a random sample is clustered, and each of
        the others joins the cluster with the nearest centre.
    random_state : int, RandomState instance or None, default=None
        Determines what is random: the sample, the halves, the order in which communities grow, and starts of k-means.
        Pass an int for reproducible results.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib. They find the neighbours of groups.
    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    labels_ : ndarray of shape (n_groups,)
        The cluster of each group. The largest cluster is 0; equally large ones are in order of first appearance.
    n_clusters_ : int
        Number of clusters.
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_components)
        Mean of each cluster, or its mean direction if points have unit length.
    center_distances_ : ndarray of shape (n_groups,)
        Distance of each group to the centre of its cluster: Euclidean, or one minus the cosine if points have unit
        length.
    alternatives_ : dict
        Number of clusters at half and at twice the resolution, by resolution, before loose clusters are divided; empty
        with a given number of clusters.
    embedding_ : estimator
        The fitted embedding.

    See Also
    --------
    ModelComparisonClustering : Clusters by comparing models of whole clusters; a tree, for up to 10,000 groups.
    PartitionedClustering : A given number of clusters of a corpus in many parts, on a Dask cluster.

    Notes
    -----
    Communities are those of Louvain's method, which needs scikit-network: ``pip install "sklearn-mcsg[text]"``. Without
    it, a number must be given, and k-means finds the clusters. K-means also finds them if the number is smaller than
    that of the communities with the largest modularity.

    The number is found as follows. Four times, up to 4000 groups are split into halves at random. At resolutions from
    1/4 to 45, the communities of one half place the groups of the other by the nearest centre, and the adjusted Rand
    index compares this with the communities of the other half. Of the resolutions whose index is at most 0.05 below the
    largest, the smallest gives the number. Resolutions whose modularity is below 0.8 of the largest do not count.

    A cluster is divided if it is at least three times as large as the others on average, and its groups are farther
    from its centre than those of the others are from theirs. Its parts are about as large as the others.

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
    _by_cosine: bool

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        embedding: Any = None,
        n_neighbors: int = 15,
        resolution: float = 1.0,
        sample_size: int = 20_000,
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
        refuse_arrays(X)
        settings = self.get_params(deep=False)
        given = settings.pop("embedding")
        embedding = GroupEmbedding(prior_strength=0.5) if given is None else clone(given)
        points = np.asarray(embedding.fit_transform(X))
        by_cosine = _have_unit_length(points, embedding)
        clusters = cluster_points(points, by_cosine=by_cosine, **settings)
        self.__dict__.update(
            embedding_=embedding,
            labels_=clusters.labels,
            n_clusters_=len(clusters.centers),
            cluster_centers_=clusters.centers,
            center_distances_=clusters.center_distances,
            alternatives_=clusters.alternatives,
            _by_cosine=by_cosine,
        )
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
        """Distances of groups to the centres of all clusters, as in `center_distances_`.

        Parameters
        ----------
        X : groups, or input of the pipeline
            Groups.

        Returns
        -------
        distances : ndarray of shape (n_groups, `n_clusters_`)
        """
        self = snapshot(self)
        check_is_fitted(self, "cluster_centers_")
        refuse_arrays(X)
        points = np.asarray(self.embedding_.transform(X))
        if self._by_cosine:
            return compare_units(points, self.cluster_centers_, "distance")
        return cdist(points, self.cluster_centers_).astype(points.dtype, copy=False)

    @property
    def n_features_in_(self) -> int:
        """Width of the vectors."""
        check_is_fitted(self, "embedding_")
        return self.embedding_.n_features_in_

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_


def _have_unit_length(points: np.ndarray, embedding: Any) -> bool:
    """Whether an embedding scales its points to unit length: its last step says so, or the points show it."""
    _, last = split_pipeline(embedding)
    normalize = getattr(last, "normalize", None)
    if isinstance(normalize, bool):
        return normalize
    lengths = np.linalg.norm(points, axis=1)
    return bool((np.abs(lengths[lengths > 0] - 1) < _ROUNDING).all())
