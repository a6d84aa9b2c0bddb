"""Agglomerative clustering of groups, in which every merge is a model comparison."""

from __future__ import annotations

from math import isqrt
from numbers import Integral
from typing import ClassVar, Self

import numpy as np
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import squareform
from sklearn.base import ClusterMixin
from sklearn.metrics import silhouette_score
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._memory import count_within
from sklearn_mcsg._sklearn import Interval, StrOptions
from sklearn_mcsg.clustering._dendrogram import tops_after
from sklearn_mcsg.clustering.merging import merge_all, prepare_clusters, similarities_along
from sklearn_mcsg.criteria import Criterion
from sklearn_mcsg.engine.learnt import Learnt
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.groups import Groups, GroupsLike
from sklearn_mcsg.groups.regroup import balanced, united
from sklearn_mcsg.likelihoods import Likelihood
from sklearn_mcsg.similarity.estimator import GroupsEstimator
from sklearn_mcsg.similarity.model import ModelComparisonSimilarity
from sklearn_mcsg.storage import register

__all__ = ["ModelComparisonClustering", "choose_n_clusters"]


@register
class ModelComparisonClustering(ClusterMixin, GroupsEstimator):
    """Agglomerative clustering of groups of vectors: merge clusters that one model explains better than two.

    Every cluster has a model fitted to all vectors of its groups. Each step merges the two clusters with the largest
    similarity ``IC(A) + IC(B) - IC(A and B together)``. Without `n_clusters`, merging stops when no pair has a positive
    similarity; this determines the number of clusters.

    Parameters
    ----------
    likelihood : {"diag", "spherical", "full", "vmf"} or Likelihood, default="diag"
        The model of a cluster, as in `ModelComparisonSimilarity`.
    criterion : {"aic", "tic", "bic", "bayes"} or Criterion, default="aic"
        The information criterion, as in `ModelComparisonSimilarity`. Where clusters overlap, ``"bic"`` finds better
        numbers of clusters than ``"aic"``, which finds too many.
    n_clusters : int, default=None
        Number of clusters; ``None`` merges while the similarity is positive, that is while one model is better than
        two.
    linkage : {"pooled", "average"}, default="pooled"
        How two clusters are compared:

        - ``"pooled"``: by the models fitted to all their vectors.
        - ``"average"``: by the mean of `output` over the pairs of their groups. It needs `n_clusters` and the full
          matrix of pairs in memory.
    output : {"distance", "divergence", "centered"}, default="distance"
        The dissimilarity of groups for ``linkage="average"``, as in `ModelComparisonSimilarity`.
    observations : {"vectors", "groups"}, default="vectors"
        Unit of independent observation. With ``"groups"`` each group counts as one observation, however many vectors it
        has: the weights of its vectors are scaled to sum to 1.
    reg_covar : float, default=1e-6
        Variance of the isotropic noise around each vector.
    prior_strength : float, default=4.0
        Number of pseudo-vectors, with the mean and variance of all groups together, in the model of every cluster. They
        keep models of few vectors from overfitting, which AIC and BIC do not detect. With a positive value, groups may
        be empty.
    penalty_scale : float, default=1.0
        Factor on the criterion's penalty; larger values give fewer clusters.
    n_references : int, default=512
        Largest number of reference groups for ``output="centered"``.
    random_state : int, RandomState instance or None, default=None
        Determines the reference groups. Pass an int for reproducible results.
    n_jobs : int, default=None
        Number of threads, or of workers of the active joblib backend, for the comparison of all groups.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_groups,)
        The cluster of each group, numbered in order of first appearance.
    n_clusters_ : int
        Number of clusters.
    children_ : ndarray of shape (n_groups - 1, 2)
        The two nodes of each merge, as in scikit-learn's `AgglomerativeClustering`: a node below `n_groups_` is a
        group, any other is the cluster of the merge ``node - n_groups_``. The tree always ends in one cluster.
    distances_ : ndarray of shape (n_groups - 1,)
        Height of each merge: the average dissimilarity or, for ``"pooled"``, the similarity of the first merge minus
        that of this merge, raised where necessary so that heights increase.
    linkage_matrix_ : ndarray of shape (n_groups - 1, 4)
        The tree in the form of `scipy.cluster.hierarchy`, for `dendrogram` and `fcluster`.
    similarities_ : ndarray of shape (n_groups - 1,)
        The similarity of the two clusters of each merge by their models: positive where one model is better than two.
    evidence_ : ndarray of shape (n_groups,)
        Criterion of each partition, summed over its clusters: ``evidence_[k - 1]`` is for k clusters. Lower is better.
    n_features_in_ : int
        Width of the vectors seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, when `X` was a data frame.
    n_groups_ : int
        Number of groups.

    See Also
    --------
    ModelComparisonSimilarity : The similarity, for any clustering with ``metric="precomputed"``.

    Notes
    -----
    Each cluster's model contains the pseudo-vectors of `prior_strength` once, however many groups it has. They are not
    data: their own likelihood is subtracted from the criterion of the cluster.

    The evidence finds the right number of clusters if the model is right, that is, if the vectors of a cluster are
    drawn independently from one distribution. The words of one text are correlated, so merging stops far too early on
    texts; use ``observations="groups"`` with AIC for them. Even so, larger corpora give more and finer clusters.

    Merging takes time O(n_groups^2 n_features) and memory O(n_groups n_features) if statistics can be merged without
    the vectors. The vectors are needed for ``"full"``, and with ``"tic"`` for all likelihoods except ``"diag"``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import ModelComparisonClustering
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(mean, size=(n, 5)) for mean, n in [(0, 8), (3, 10), (0, 12), (3, 9), (0, 11)]]
    >>> clustering = ModelComparisonClustering().fit(X)
    >>> clustering.labels_
    array([0, 1, 0, 1, 0])
    >>> clustering.predict([rng.normal(3, size=(6, 5)), rng.normal(9, size=(6, 5))])
    array([ 1, -1])
    >>> clustering.cut(1)
    array([0, 0, 0, 0, 0])
    """

    _parameter_constraints: ClassVar[dict] = {
        **{k: v for k, v in ModelComparisonSimilarity._parameter_constraints.items() if k != "balanced"},
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "linkage": [StrOptions({"pooled", "average"})],
        "output": [StrOptions({name for name, output in OUTPUTS.items() if not output.higher_is_nearer})],
        "observations": [StrOptions({"vectors", "groups"})],
    }

    def __init__(
        self,
        likelihood: str | Likelihood = "diag",
        criterion: str | Criterion = "aic",
        *,
        n_clusters: int | None = None,
        linkage: str = "pooled",
        output: str = "distance",
        observations: str = "vectors",
        reg_covar: float = 1e-6,
        prior_strength: float = 4.0,
        penalty_scale: float = 1.0,
        n_references: int = 512,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.likelihood = likelihood
        self.criterion = criterion
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.output = output
        self.observations = observations
        self.reg_covar = reg_covar
        self.prior_strength = prior_strength
        self.penalty_scale = penalty_scale
        self.n_references = n_references
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: GroupsLike, y: object = None) -> Self:
        """Merge groups until one cluster is left, and cut the tree.

        Parameters
        ----------
        X : groups
            The groups, in any form that `ModelComparisonSimilarity` takes.
        y : None
            Ignored.

        Returns
        -------
        self : ModelComparisonClustering
        """
        self._validate_params()
        if self.linkage == "average" and self.n_clusters is None:
            raise ValueError(
                "Average linkage has no stopping rule: set n_clusters, or linkage='pooled', which finds the number of "
                "clusters."
            )
        groups = self._observed(self._check_groups(X))
        if self.n_clusters is not None:
            _check_n_clusters(self.n_clusters, len(groups))
        model = self._new_similarity().fit(groups)
        learnt = model.learnt()
        comparison, statistics = learnt.comparison, learnt.statistics
        if self.linkage == "average":
            children, heights = _average_linkage(learnt)
            similarities = similarities_along(comparison, groups, statistics, children)
        else:
            children, similarities = merge_all(comparison, groups, statistics)
            heights = _increasing(-similarities)
        merged = len(groups) - self.n_clusters if self.n_clusters else _count_positive(similarities)
        labels = _labels(children, merged)
        separate = prepare_clusters(comparison, statistics).information.sum()
        pooled = united(groups, labels, len(groups) - merged)
        clusters = prepare_clusters(comparison, comparison.statistics(pooled))

        self._keep_features(X, groups)
        self.n_groups_ = len(groups)
        self.n_clusters_ = len(clusters)
        self.labels_ = labels
        self.children_ = children
        self.distances_ = heights
        self.similarities_ = similarities
        self.evidence_ = (separate - np.cumsum([0, *similarities]))[::-1]
        self._comparison = comparison
        self._clusters = clusters
        self._members = model if self.linkage == "average" else None
        self._rejects = self.n_clusters is None
        return self

    @property
    def linkage_matrix_(self) -> np.ndarray:
        """The tree in the form of `scipy.cluster.hierarchy`."""
        sizes = np.ones(2 * self.n_groups_ - 1)
        for t, pair in enumerate(self.children_):
            sizes[self.n_groups_ + t] = sizes[pair].sum()
        return np.column_stack([self.children_, self.distances_, sizes[self.n_groups_ :]])

    def cut(self, n_clusters: int) -> np.ndarray:
        """Cut the fitted tree at another number of clusters.

        Parameters
        ----------
        n_clusters : int
            Number of clusters.

        Returns
        -------
        labels : ndarray of shape (n_groups,)
            The cluster of each fitted group, numbered in order of first appearance.
        """
        check_is_fitted(self)
        _check_n_clusters(n_clusters, self.n_groups_)
        return _labels(self.children_, self.n_groups_ - n_clusters)

    def predict(self, X: GroupsLike) -> np.ndarray:
        """Find the most similar cluster for each group.

        With ``linkage="pooled"``, this is the cluster whose model is most similar to that of the group. With
        ``linkage="average"``, it is the cluster whose groups have the smallest mean dissimilarity to the group.

        Parameters
        ----------
        X : groups
            New groups.

        Returns
        -------
        labels : ndarray of shape (n_groups_X,)
            The cluster of each group. Without `n_clusters`, -1 marks groups that have no positive similarity to any
            cluster.
        """
        check_is_fitted(self)
        groups = self._observed(self._check_fitted_groups(X))
        columns = self.n_clusters_ if self._members is None else self.n_groups_
        batches = gen_batches(len(groups), count_within(8 * columns))
        return np.concatenate([self._predict(groups[batch]) for batch in batches])

    def _predict(self, groups: Groups) -> np.ndarray:
        """The cluster of each validated group."""
        if self._members is not None:
            matrix = self._members.transform(groups).astype(np.float64, copy=False)
            member_of = np.eye(self.n_clusters_)[self.labels_]
            return np.argmin(matrix @ (member_of / member_of.sum(axis=0)), axis=1)
        comparison, similarity = self._comparison, OUTPUTS["similarity"]
        left = comparison.prepare(comparison.statistics(groups), similarity)
        similarities = comparison.all_pairs(left, self._clusters, similarity)
        return np.where(self._rejects & (similarities.max(axis=1) <= 0), -1, similarities.argmax(axis=1))

    def _observed(self, groups: Groups) -> Groups:
        """The groups, with weights that sum to the number of observations in each group."""
        return groups if self.observations == "vectors" else balanced(groups)

    def _new_similarity(self) -> ModelComparisonSimilarity:
        """A similarity of groups with the same parameters."""
        names = ModelComparisonSimilarity().get_params(deep=False).keys() & self.get_params(deep=False).keys()
        params = {name: getattr(self, name) for name in names}
        if self.linkage == "pooled":
            params["output"] = "similarity"
        return ModelComparisonSimilarity(**params)


def choose_n_clusters(
    clustering: ModelComparisonClustering,
    distances: np.ndarray,
    *,
    sample: np.ndarray | None = None,
    max_clusters: int | None = None,
) -> int:
    """Choose the number of clusters of a fitted tree by the silhouette.

    Parameters
    ----------
    clustering : ModelComparisonClustering
        The fitted clustering.
    distances : ndarray of shape (n_sample, n_sample)
        Distances between the fitted groups, or between those in `sample`, for example with ``output="centered"``.
    sample : ndarray of int of shape (n_sample,), default=None
        Indices of the fitted groups in `distances`; ``None`` means all.
    max_clusters : int, default=None
        Largest number to try; ``None`` means the square root of the number of groups, but at least 8.

    Returns
    -------
    n_clusters : int
        The number with the largest mean silhouette, at least 2. It is 1 if all distances are 0, and the number found by
        the evidence if there are fewer than three groups.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import ModelComparisonClustering, ModelComparisonSimilarity, choose_n_clusters
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(5 * (i % 3), size=(8, 4)) for i in range(30)]
    >>> distances = ModelComparisonSimilarity(output="centered").fit_transform(X)
    >>> choose_n_clusters(ModelComparisonClustering().fit(X), distances)
    3
    """
    check_is_fitted(clustering)
    n_groups = clustering.n_groups_
    sample = np.arange(n_groups) if sample is None else np.asarray(sample)
    if distances.shape != (len(sample), len(sample)):
        raise ValueError(f"distances must have shape ({len(sample)}, {len(sample)}), got {distances.shape}.")
    if n_groups < 3:
        return clustering.n_clusters_
    if not distances.any():
        return 1
    most = max(8, isqrt(n_groups)) if max_clusters is None else max_clusters
    scores = {}
    for n_clusters in range(2, min(n_groups - 1, most) + 1):
        labels = clustering.cut(n_clusters)[sample]
        if 1 < len(np.unique(labels)) < len(sample):
            scores[n_clusters] = silhouette_score(distances, labels, metric="precomputed")
    return max(scores, key=scores.__getitem__, default=1)


def _check_n_clusters(n_clusters: int, n_groups: int) -> None:
    if not isinstance(n_clusters, Integral) or isinstance(n_clusters, bool) or not 1 <= n_clusters <= n_groups:
        raise ValueError(
            f"n_clusters must be between 1 and the number of groups (n_samples = {n_groups}), got {n_clusters!r}."
        )


def _average_linkage(learnt: Learnt) -> tuple[np.ndarray, np.ndarray]:
    """Merges of the fitted groups by average linkage, and their heights."""
    if len(learnt.statistics) == 1:
        return np.empty((0, 2), dtype=np.intp), np.empty(0)
    groups = learnt.fitted(learnt.output)
    matrix = learnt.comparison.all_pairs(groups, None, learnt.output, learnt.dtype)
    tree = scipy_linkage(squareform(matrix, checks=False), "average")
    return tree[:, :2].astype(np.intp), tree[:, 2]


def _increasing(heights: np.ndarray) -> np.ndarray:
    """Heights that start at 0 and strictly increase, by at least a rounding error."""
    if len(heights) == 0:
        return heights
    heights = heights - heights[0]
    steps = 4 * np.finfo(float).eps * max(1.0, heights.max()) * np.arange(len(heights))
    return np.maximum.accumulate(heights - steps) + steps


def _count_positive(similarities: np.ndarray) -> int:
    """Number of merges before the first one without a positive similarity."""
    return int(np.argmax(np.append(similarities, 0.0) <= 0))


def _labels(children: np.ndarray, n_merged: int) -> np.ndarray:
    """The cluster of each group after some merges, numbered in order of first appearance."""
    _, first, labels = np.unique(tops_after(children, n_merged), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels]
