"""Agglomerative clustering of groups, in which every merge is a model comparison."""

from __future__ import annotations

from numbers import Integral
from typing import ClassVar, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._checks import Count
from sklearn_mcsg._memory import count_within
from sklearn_mcsg.clustering._dendrogram import largest_first, tops_after
from sklearn_mcsg.clustering._margins import margins_of_models
from sklearn_mcsg.clustering._merging import merge_all, prepare_clusters
from sklearn_mcsg.criteria import Criterion
from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.engine.pairs import all_pairs, prepare
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.groups import Groups, GroupsLike, united
from sklearn_mcsg.groups.regroup import balanced
from sklearn_mcsg.likelihoods import Likelihood
from sklearn_mcsg.similarity import ModelComparisonSimilarity
from sklearn_mcsg.similarity.estimator import GroupsEstimator, snapshot

_SIMILARITY = OUTPUTS["similarity"]
_SHARED = ("likelihood", "criterion", "balanced", "reg_covar", "prior_strength", "penalty_scale", "n_jobs", "verbose")


class ModelComparisonClustering(ClusterMixin, GroupsEstimator):
    """Agglomerative clustering of groups of vectors: merge clusters that one model explains better than two.

    Every cluster has a model fitted to all vectors of its groups. Each step merges the two clusters with the largest
    similarity ``IC(A) + IC(B) - IC(A and B together)``. Without `n_clusters`, merging stops when no pair has a positive
    similarity; this determines the number of clusters.

    Parameters
    ----------
    likelihood : {"diag", "spherical", "full", "vmf", "trend"} or Likelihood, default="diag"
        The model of a group: see `ModelComparisonSimilarity`. Clusters have the same model.
    criterion : {"aic", "tic", "bic", "bayes"} or Criterion, default="aic"
        The information criterion: see `ModelComparisonSimilarity`. Where clusters overlap, ``"bic"`` finds better
        numbers of clusters than ``"aic"``, which finds too many.
    n_clusters : int, default=None
        Number of clusters; ``None`` merges while the similarity is positive, that is while one model is better than
        two.
    balanced : bool, default=False
        Whether every group counts as one observation: the weights of its vectors are scaled to sum to 1.
    reg_covar : float, default=1e-6
        Variance of the isotropic noise around each vector. It allows groups of one vector and constant features. A
        warning says if it outweighs the variances of the vectors, which are then in too small a unit.
    prior_strength : float, default=4.0
        Number of pseudo-vectors in each model. They have the mean and variance of all groups together. They keep models
        of few vectors from overfitting, which AIC and BIC do not detect. With a positive value, groups may be empty.
    penalty_scale : float, default=1.0
        Factor on the criterion's penalty. Larger values give fewer clusters.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib. They are threads, or workers of the active joblib backend.
    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    labels_ : ndarray of shape (n_groups,)
        The cluster of each group. The largest cluster is 0; equally large ones are in order of first appearance.
    n_clusters_ : int
        Number of clusters.
    second_ : ndarray of shape (n_groups,)
        The second-best cluster of each group: the one to which it would move at the least cost; -1 if there is only
        one cluster.
    margins_ : ndarray of shape (n_groups,)
        This cost: the criterion of all clusters after the move minus that before it, in the units of `evidence_`. It is
        negative if the move would improve the criterion, because merges are never undone. With one cluster it is
        infinite.
    children_ : ndarray of shape (n_groups - 1, 2)
        The two nodes of each merge, as in scikit-learn's `AgglomerativeClustering`: a node below `n_groups_` is a
        group, any other is the cluster of the merge ``node - n_groups_``. The tree always ends in one cluster.
    distances_ : ndarray of shape (n_groups - 1,)
        Height of each merge: the similarity of the first merge minus that of this merge, raised where necessary so that
        heights increase.
    linkage_matrix_ : ndarray of shape (n_groups - 1, 4)
        The tree in the form of `scipy.cluster.hierarchy`, for `dendrogram` and `fcluster`.
    similarities_ : ndarray of shape (n_groups - 1,)
        The similarity of the two clusters of each merge: positive where one model is better than two.
    evidence_ : ndarray of shape (n_groups,)
        Criterion of the partition into k clusters at ``evidence_[k - 1]``, summed over its clusters; lower is better.
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
    texts; use ``balanced=True`` with AIC for them. Even so, larger corpora give more and finer clusters.

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
        **{name: ModelComparisonSimilarity._parameter_constraints[name] for name in _SHARED},
        "n_clusters": [Count(), None],
    }
    _model: GroupModel
    _clusters: Prepared
    _rejects: bool

    def __init__(
        self,
        likelihood: str | Likelihood = "diag",
        criterion: str | Criterion = "aic",
        *,
        n_clusters: int | None = None,
        balanced: bool = False,
        reg_covar: float = 1e-6,
        prior_strength: float = 4.0,
        penalty_scale: float = 1.0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.likelihood = likelihood
        self.criterion = criterion
        self.n_clusters = n_clusters
        self.balanced = balanced
        self.reg_covar = reg_covar
        self.prior_strength = prior_strength
        self.penalty_scale = penalty_scale
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: GroupsLike, y: object = None) -> Self:
        """Merge groups until one cluster is left, and cut the tree.

        Parameters
        ----------
        X : groups
            The groups, in any form that `validate_groups` takes.
        y : None
            Ignored.

        Returns
        -------
        self : ModelComparisonClustering
        """
        self._validate_params()
        groups = self._weighted(self._check_groups(X))
        n_groups = len(groups)
        if self.n_clusters is not None:
            _check_n_clusters(self.n_clusters, n_groups)
        start = self._new_model()  # not balanced: the weights of a cluster sum to its number of groups
        groups = start.placed(groups)
        statistics = start.statistics(groups)
        model = start.learnt_from(statistics, self.prior_strength)
        children, similarities = merge_all(model, groups, statistics, self.n_jobs, self.verbose)
        n_positive = int(np.argmax(np.append(similarities, 0.0) <= 0))  # merges before the first that is not
        n_clusters = n_groups - n_positive if self.n_clusters is None else int(self.n_clusters)
        labels = largest_first(tops_after(children, n_groups - n_clusters))
        clusters = prepare_clusters(model, model.statistics(united(groups, labels, n_clusters)))
        second, margins = margins_of_models(model, groups, statistics, clusters, labels, self.n_jobs)
        separate = model.pooled_information(statistics).sum()

        self._keep_features(X, groups)
        self.__dict__.update(
            n_groups_=n_groups,
            n_clusters_=n_clusters,
            labels_=labels,
            second_=second,
            margins_=margins,
            children_=children,
            distances_=_increasing(-similarities),
            similarities_=similarities,
            evidence_=(separate - np.cumsum([0, *similarities]))[::-1],
            _model=model,
            _clusters=clusters,
            _rejects=self.n_clusters is None,
        )
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
            The cluster of each fitted group, numbered as in `labels_`.
        """
        self = snapshot(self)
        check_is_fitted(self)
        _check_n_clusters(n_clusters, self.n_groups_)
        return largest_first(tops_after(self.children_, self.n_groups_ - n_clusters))

    def predict(self, X: GroupsLike) -> np.ndarray:
        """Find the most similar cluster for each group: the one whose model is most similar to that of the group.

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
        self = snapshot(self)
        check_is_fitted(self)
        groups = self._weighted(self._check_fitted_groups(X))
        labels = np.empty(len(groups), dtype=int)
        for batch in gen_batches(len(groups), count_within(8 * self.n_clusters_)):
            left = prepare(self._model, self._model.statistics(groups[batch], batch.start), _SIMILARITY)
            similarities = all_pairs(self._model, left, self._clusters, _SIMILARITY, n_jobs=self.n_jobs)
            nearest = similarities.argmax(axis=1)
            labels[batch] = np.where(similarities.max(axis=1) > 0, nearest, -1) if self._rejects else nearest
        return labels

    def _weighted(self, groups: Groups) -> Groups:
        """The groups with the weights that count."""
        return balanced(groups) if self.balanced else groups


def _check_n_clusters(n_clusters: int, n_groups: int) -> None:
    if not isinstance(n_clusters, Integral) or isinstance(n_clusters, bool) or not 1 <= n_clusters <= n_groups:
        raise ValueError(
            f"n_clusters must be between 1 and the number of groups (n_samples = {n_groups}), got {n_clusters!r}."
        )


def _increasing(heights: np.ndarray) -> np.ndarray:
    """Heights that start at 0 and strictly increase, by at least a rounding error."""
    heights = heights - heights[:1]
    steps = 4 * np.finfo(float).eps * heights.max(initial=1.0) * np.arange(len(heights))
    return np.maximum.accumulate(heights - steps) + steps
