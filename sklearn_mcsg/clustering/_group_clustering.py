"""Clustering of groups in their embedding, into a given number of clusters or one that is found."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClusterMixin, clone
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._checks import Count
from sklearn_mcsg._sklearn import HasMethods, Interval
from sklearn_mcsg.clustering._centers import distances_to_all
from sklearn_mcsg.clustering._points import cluster_points
from sklearn_mcsg.clustering._rejection import reject_points
from sklearn_mcsg.clustering._stability import cluster_stability
from sklearn_mcsg.embedding import GroupEmbedding
from sklearn_mcsg.groups import GroupsLike, validate_groups
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
    have unit length and are compared by the cosine, which suits texts.

    Parameters
    ----------
    n_clusters : int, default=None
        Number of clusters; ``None`` finds the number.
    embedding : estimator, default=None
        How groups become points: a `GroupEmbedding`, or a pipeline that ends with one, such as `make_text_embedding`
        builds for texts. ``None`` means ``GroupEmbedding(prior_strength=0.5)``.
    n_neighbors : int, default=15
        Number of neighbours: those of each group in the graph, at most half the mean size of the clusters. If that is
        less than three, there is no graph, and k-means sees each group alone.
    resolution : float, default=1.0
        Larger values find more and smaller clusters: the number of clusters that is found is multiplied by it.
    sample_size : int, default=20000
        Largest number of groups that are clustered together. Of more groups, a random sample is clustered, and each of
        the others joins the cluster with the nearest centre.
    reject : bool, default=False
        Whether groups may be rejected: those that are farther from the centre of their cluster than its threshold get
        the label -1, in `fit` and `predict`.
    level : float, default=0.05
        Accepted rate of false positives: groups of a cluster that are rejected. It determines the thresholds.
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
        The cluster of each group. The largest cluster is 0; equally large ones are in order of first appearance. With
        ``reject=True``, -1 marks groups that no cluster explains.
    n_clusters_ : int
        Number of clusters.
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_components)
        Mean of each cluster, or its mean direction if points have unit length.
    center_distances_ : ndarray of shape (n_groups,)
        Distance of each group to the centre of its cluster: Euclidean, or one minus the cosine if points have unit
        length.
    second_ : ndarray of shape (n_groups,)
        The second-best cluster of each group: the other cluster with the nearest centre; -1 if there is only one
        cluster.
    margins_ : ndarray of shape (n_groups,)
        Distance to the centre of the second-best cluster minus that to the centre of its own cluster, as `transform`
        returns them. A margin near 0 means that the group lies between two clusters. It is negative if the other centre
        is nearer: communities follow the neighbours of a group, not centres. With one cluster it is infinite.
    thresholds_ : ndarray of shape (`n_clusters_`,)
        Largest distance of an accepted group from the centre of each cluster; infinite without `reject`.
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
    1/4 to 45, the centres of the communities of one half assign the groups of the other, and the adjusted Rand index
    compares this with the communities of the other half. Of the resolutions whose index is at most 0.05 below the
    largest, the smallest gives the number. Resolutions whose modularity is below 0.8 of the largest do not count.
    Fewer than 20 groups are not split: their number is that of the communities at resolution 1.

    A cluster is divided if it is at least three times as large as the others on average, and its groups are farther
    from its centre than those of the others are from theirs. Its parts are about as large as the others.

    A threshold is the distance that a share `level` of the groups exceeds; outliers do not count. The distance of a
    group is that to the centre of the other groups of its cluster. Clusters may be narrow or wide, so a distance is
    measured in standard deviations above the median of its cluster. For that, distances are turned into the cube roots
    of their squares, which are close to normal. The standard deviation comes from the median and a lower quantile,
    which outliers hardly change; a group above six standard deviations is an outlier. A cluster of fewer than ten
    groups takes median and standard deviation from all groups, and a group that is alone is accepted. Centres,
    distances and margins are those of the clusters before groups are rejected.

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
        "n_clusters": [Count(), None],
        "embedding": [HasMethods(["fit_transform", "transform"]), None],
        "n_neighbors": [Count()],
        "resolution": [Interval(Real, 0, None, closed="neither")],
        "sample_size": [Count(2)],
        "reject": ["boolean"],
        "level": [Interval(Real, 0, 1, closed="neither")],
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
        reject: bool = False,
        level: float = 0.05,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.embedding = embedding
        self.n_neighbors = n_neighbors
        self.resolution = resolution
        self.sample_size = sample_size
        self.reject = reject
        self.level = level
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
        embedding = GroupEmbedding(prior_strength=0.5) if self.embedding is None else clone(self.embedding)
        if isinstance(embedding, GroupEmbedding) and not hasattr(X, "columns"):  # a data frame has names of features
            X = validate_groups(X, allow_empty=True)  # packed once: the embedding reads them twice
        points = np.asarray(embedding.fit_transform(X))
        by_cosine = _have_unit_length(points, embedding)
        clusters = cluster_points(
            points, self.n_clusters, by_cosine=by_cosine, resolution=self.resolution, **self._settings
        )
        labels, thresholds = clusters.labels, np.full(len(clusters.centers), np.inf, points.dtype)
        if self.reject:
            labels, thresholds = reject_points(points, clusters, self.level, by_cosine)
        self.__dict__.update(
            embedding_=embedding,
            labels_=labels,
            n_clusters_=len(clusters.centers),
            cluster_centers_=clusters.centers,
            center_distances_=clusters.center_distances,
            second_=clusters.second,
            margins_=clusters.margins,
            thresholds_=thresholds,
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
            With ``reject=True``, -1 marks groups that are farther from the nearest centre than its threshold.
        """
        self = snapshot(self)
        distances = self.transform(X)
        nearest = distances.argmin(axis=1)
        return np.where(distances.min(axis=1) <= self.thresholds_[nearest], nearest, -1)

    def stability(self, X: GroupsLike) -> np.ndarray:
        """How reliably each cluster is found again in halves of the groups.

        Parameters
        ----------
        X : groups, or input of the pipeline
            The groups that were fitted.

        Returns
        -------
        stability : ndarray of shape (`n_clusters_`,)
            From 0 to 1, the share of pairs that are together again; NaN if no half has two groups of a cluster.

        Notes
        -----
        Four times, the groups, at most `sample_size`, are divided into halves at random, and each half is divided into
        `n_clusters_` clusters. A pair counts for a cluster if at least one of its groups belongs to it and the two are
        together in the fitted clusters or in those of their half; the stability is the share of these pairs that are
        together in both. It is low for parts of a cluster that was divided for no reason, and for several clusters
        that were merged. This takes a few times as long as to divide the groups into a given number of clusters.
        """
        self = snapshot(self)
        check_is_fitted(self, "cluster_centers_")
        refuse_arrays(X)
        points = np.asarray(self.embedding_.transform(X))
        if len(points) != len(self.labels_):
            raise ValueError(
                f"stability takes the {len(self.labels_)} groups that were fitted, got {len(points)} groups."
            )
        return cluster_stability(points, self.labels_, self.n_clusters_, by_cosine=self._by_cosine, **self._settings)

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
        return distances_to_all(points, self.cluster_centers_, self._by_cosine)

    @property
    def _settings(self) -> dict[str, Any]:
        """Parameters of every clustering of these points."""
        names = "n_neighbors", "sample_size", "random_state", "n_jobs", "verbose"
        return {name: getattr(self, name) for name in names}

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
