"""The similarity of groups as a scikit-learn estimator, and as a function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import joblib
import numpy as np
from sklearn.utils import check_random_state

from sklearn_mcsg._checks import Count, check_positive_integer
from sklearn_mcsg._sklearn import Interval, StrOptions
from sklearn_mcsg.criteria import CRITERIA, Criterion
from sklearn_mcsg.engine import capabilities
from sklearn_mcsg.engine.comparer import Comparer
from sklearn_mcsg.engine.comparison import ModelComparison
from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.engine.outputs import OUTPUTS, choose_output
from sklearn_mcsg.engine.permutations import PermutationTest, permutation_test
from sklearn_mcsg.engine.results import in_precision
from sklearn_mcsg.explanation import VectorExplanation, explain_groups
from sklearn_mcsg.groups import Groups, GroupsLike, check_same_width, validate_group
from sklearn_mcsg.groups.checks import LARGEST_WEIGHT, check_indices
from sklearn_mcsg.likelihoods import LIKELIHOODS, Likelihood
from sklearn_mcsg.similarity.base import GroupSimilarity
from sklearn_mcsg.similarity.estimator import snapshot


class ModelComparisonSimilarity(GroupSimilarity):
    """Similarity of groups of vectors: did one model generate both, or two?

    The similarity of two groups is the difference of an information criterion between two separate models and one
    shared model, ``IC(A) + IC(B) - IC(A and B together)``: positive when one model explains both groups better than
    two [1]_.

    Parameters
    ----------
    likelihood : {"diag", "spherical", "full", "vmf", "trend"} or Likelihood, default="diag"
        The model of a group: a normal distribution with diagonal, spherical or full covariance, a von Mises-Fisher
        distribution of the vectors' directions, or, for ordered groups, a normal distribution around a line.
    criterion : {"aic", "tic", "bic", "bayes"} or Criterion, default="aic"
        The information criterion. Its penalty is the number of parameters (AIC), Takeuchi's trace, which also holds
        for misspecified models (TIC), or Schwarz's penalty (BIC). ``"bayes"`` has no penalty: it replaces the
        likelihood by the exact evidence under a conjugate prior, which is learnt from the fitted corpus unless the
        likelihood is an instance that has one.
    output : {"similarity", "distance", "divergence", "centered", "kernel"}, default="similarity"
        What to return for each pair. Estimators with ``metric="precomputed"`` need ``"distance"``, ``"divergence"`` or
        ``"centered"``: the default is a *similarity*. Estimators that take it for a distance give wrong results,
        often without an error.

        - ``"similarity"``: the difference above; unbounded, higher for more similar groups. Its matrix is not
          positive semi-definite in general.
        - ``"distance"``: ``(s(A, A) + s(B, B)) / 2 - s(A, B)``, floored at 0; 0 on the diagonal. Under AIC it is minus
          twice the log-likelihood ratio. It grows with the sizes of the groups: if these differ, use one of the
          next two.
        - ``"divergence"``: distance times ``(n + m) / (n m)``, which removes most of the dependence on the sizes of the
          groups, but not all; close to the squared Mahalanobis distance of the means.
        - ``"centered"``: one minus the cosine of the angle between the two groups, seen from the centre of the
          reference groups, in [0, 2]. It removes the part common to all distances, which is large on real text, and
          depends least on the sizes of the groups.
        - ``"kernel"``: ``exp(-distance / scale)`` of balanced groups, where the scale is the median distance of the
          reference groups: a positive definite kernel, for ``"diag"`` and ``"spherical"`` with AIC, BIC or Bayes.
    balanced : bool, default=False
        Whether every group counts as one observation: the weights of its vectors are scaled to sum to 1. Where there
        is a ``"kernel"``, which is always balanced, the root of the balanced ``"distance"`` is a metric.
    reg_covar : float, default=1e-6
        Variance of the isotropic noise around each vector. It allows groups of one vector and constant features. A
        warning says if it outweighs the variances of the vectors, which are then in too small a unit.
    prior_strength : float, default=0.0
        Number of pseudo-vectors in each model. They have the mean and variance of the fitted corpus and are added to
        every group. With a positive value, groups may be empty.
    penalty_scale : float, default=1.0
        Factor on the criterion's penalty.
    n_references : int, default=512
        Largest number of reference groups for ``"centered"`` and ``"kernel"``: all fitted groups, or a random sample of
        this size.
    random_state : int, RandomState instance or None, default=None
        Determines what is random: the sample of reference groups, the divisions of `paired_test` and, unless it has a
        `random_state` of its own, the pairs of `calibrate`. Pass an int for reproducible results.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib. They are threads, or workers of the active joblib backend.
    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    n_features_in_ : int
        Width of the vectors seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, when `X` was a data frame.
    n_groups_ : int
        Number of fitted groups.
    likelihood_ : Likelihood
        The likelihood, with its prior when the criterion uses one.
    criterion_ : Criterion
        The criterion.
    references_ : ndarray of int
        Indices of the reference groups of ``"centered"`` and ``"kernel"``.

    See Also
    --------
    model_comparison_similarity : The same as a function.
    GroupSimilarity : The base class, for a similarity of your own.

    Notes
    -----
    `X` may be a list, tuple or object array of (n_i, n_features) arrays, a 3-d array, `Groups` (which also carry
    weights), a column of lists of vectors, or an (n_groups, n_features) array: groups of one vector each.

    Parameters changed after `fit` take effect at the next `fit`, except `output`, `n_jobs` and `verbose`.

    `score_samples` and `score` choose among the Gaussian likelihoods without labels. Do not compare their values with
    those of ``"vmf"``, which is a density on the sphere, nor the values of different criteria with each other.

    References
    ----------
    .. [1] Francisco Vargas, Kamen Brestnichki and Nils Hammerla. Model Comparison for Semantic Grouping. ICML 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import ModelComparisonSimilarity
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(mean, size=(n, 5)) for mean, n in [(0, 8), (0, 12), (3, 10)]]
    >>> ModelComparisonSimilarity().pairwise(X).round(1)
    array([[  20. ,    6.1, -134.3],
           [   6.1,   20. , -128.9],
           [-134.3, -128.9,   20. ]])

    These are similarities. Clusterers and other estimators that take precomputed *distances* need another output:

    >>> from sklearn.cluster import AgglomerativeClustering
    >>> distances = ModelComparisonSimilarity(output="distance").fit_transform(X)
    >>> AgglomerativeClustering(2, metric="precomputed", linkage="average").fit_predict(distances)
    array([0, 0, 1])
    """

    _parameter_constraints: ClassVar[dict] = {
        "likelihood": [StrOptions(set(LIKELIHOODS)), Likelihood],
        "criterion": [StrOptions(set(CRITERIA)), Criterion],
        "output": [StrOptions(set(OUTPUTS))],
        "balanced": ["boolean"],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "prior_strength": [Interval(Real, 0, LARGEST_WEIGHT, closed="both")],
        "penalty_scale": [Interval(Real, 0, None, closed="left")],
        "n_references": [Count()],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _fitted_key: tuple

    def __init__(
        self,
        likelihood: str | Likelihood = "diag",
        criterion: str | Criterion = "aic",
        *,
        output: str = "similarity",
        balanced: bool = False,
        reg_covar: float = 1e-6,
        prior_strength: float = 0.0,
        penalty_scale: float = 1.0,
        n_references: int = 512,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.likelihood = likelihood
        self.criterion = criterion
        self.output = output
        self.balanced = balanced
        self.reg_covar = reg_covar
        self.prior_strength = prior_strength
        self.penalty_scale = penalty_scale
        self.n_references = n_references
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def explain(
        self, a: GroupsLike, b: GroupsLike, *, labels: Sequence[Sequence[str]] | None = None
    ) -> VectorExplanation:
        """Explain the similarity of two groups by their vectors.

        Parameters
        ----------
        a, b : array-like of shape (n_vectors, n_features), or Groups of one group
            The two groups.
        labels : pair of sequences, default=None
            Names of the vectors: of those of `a` and of those of `b`. ``None`` means the labels of the groups or, if
            they have none, positions.

        Returns
        -------
        explanation : VectorExplanation
            Parts that sum to the output ``"similarity"``.

        Examples
        --------
        >>> from sklearn_mcsg import ModelComparisonSimilarity
        >>> a, b = [[0.0, 1.0], [1.0, 2.0], [4.0, 4.0]], [[3.0, 4.0], [5.0, 3.0], [5.0, 6.0]]
        >>> ModelComparisonSimilarity().explain(a, b, labels=[["cat", "dog", "car"], ["bus", "van", "train"]])
        Similarity 0.05 of 3 and 3 vectors: vectors -7.95, penalty +8.00
          for:     car +3.81, bus +1.31
          against: train -2.18, cat -1.89, dog -0.97
          (compared with the average vector)
        """
        model, pair = self._read_two(a, b)
        return explain_groups(model, pair, labels)

    def _read_two(self, a: GroupsLike, b: GroupsLike) -> tuple[GroupModel, tuple[Groups, Groups]]:
        """The model of a group, and two validated single groups."""
        self = snapshot(self)
        self._validate_params()
        comparison: Any = self._comparison_for("similarity")
        one, other = (validate_group(x, allow_empty=self._allows_empty, name=name) for name, x in (("a", a), ("b", b)))
        check_same_width(one, other, "ab")
        if self._is_fitted:
            self._check_width(one)
        return comparison.model, (one, other)

    def paired_test(self, a: GroupsLike, b: GroupsLike, *, n_permutations: int = 999) -> PermutationTest:
        """Test whether one distribution generated both groups, by random divisions of their vectors.

        Under this hypothesis all divisions are exchangeable, so the test keeps its level for any distribution. If there
        are at most `n_permutations` divisions, all of them are used.

        Parameters
        ----------
        a, b : array-like of shape (n_vectors, n_features), or Groups of one group
            The two groups.
        n_permutations : int, default=999
            Number of permutations: random divisions of the vectors.

        Returns
        -------
        result : PermutationTest
            With `similarity` and `pvalue`, the share of divisions whose similarity is not higher.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_mcsg import ModelComparisonSimilarity
        >>> x = np.random.default_rng(0).normal(size=(12, 3))
        >>> ModelComparisonSimilarity(random_state=0).paired_test(x, x + 2).pvalue
        0.001
        """
        check_positive_integer(n_permutations, "n_permutations")
        model, (one, other) = self._read_two(a, b)
        return permutation_test(model, one, other, n_permutations, check_random_state(self.random_state))

    def score_samples(self, X: GroupsLike) -> np.ndarray:
        """Information criterion of each group, with the sign of the paper: lower is better.

        It is ``-2 (L - penalty)`` for AIC, TIC and BIC, and minus twice the log evidence for the Bayes factor. Do not
        compare values of ``"vmf"`` with those of the Gaussian likelihoods, nor values of different criteria.

        Parameters
        ----------
        X : groups
            Groups to score.

        Returns
        -------
        criterion : ndarray of shape (n_groups,)
        """
        self = snapshot(self)
        self._validate_params()
        comparison = self._comparison_for("similarity")
        groups = self._read(X, comparison, arrays=False)
        prepared = comparison.prepare(comparison.summarize(groups), "similarity")
        return in_precision(prepared.information, groups.output_dtype)

    def score(self, X: GroupsLike, y: object = None) -> float:
        """Negative mean of `score_samples`: higher is better, as `GridSearchCV` expects.

        It chooses among Gaussian likelihoods without labels; the restrictions of `score_samples` apply.

        Parameters
        ----------
        X : groups
            Groups to score.
        y : None
            Ignored.

        Returns
        -------
        score : float
        """
        return -float(np.mean(self.score_samples(X), dtype=np.float64))

    def _new_comparison(self) -> ModelComparison:
        """A comparison from the parameters, before anything is learnt."""
        model = self._new_model(self.balanced)
        return ModelComparison(model, self.prior_strength, self.n_references, self.random_state)

    def _fitted_attributes(self, comparer: Comparer) -> dict[str, Any]:
        comparison: Any = comparer.comparison
        return {
            **super()._fitted_attributes(comparer),
            "likelihood_": comparison.model.likelihood,
            "criterion_": comparison.model.criterion,
            "references_": comparison.references,
            "_fitted_key": self._model_key(),
        }

    def _check_unchanged(self) -> None:
        if self._model_key() != getattr(self, "_fitted_key", self._model_key()):
            raise ValueError(
                "likelihood, criterion, reg_covar or balanced has changed since fit: call fit with all groups."
            )

    def _model_key(self) -> tuple:
        """The parameters that the kept statistics depend on."""
        parts = (self.likelihood, self.criterion)
        keys = (p if isinstance(p, str) else (type(p), joblib.hash(p.get_params())) for p in parts)
        return *keys, self.reg_covar, self.balanced

    def __mcsg_state__(self) -> dict[str, Any]:
        self = snapshot(self)
        state = super().__mcsg_state__()
        if not state:
            return {}
        comparison: Any = self._comparer.comparison
        if comparison.corpus is not self._comparer.summaries:
            raise ValueError("The groups are not those that were learnt from: save the similarity that they came from.")
        if (comparison.prior_strength, comparison.model.penalty_scale) != (self.prior_strength, self.penalty_scale):
            raise ValueError("prior_strength or penalty_scale has changed since fit: call fit before saving.")
        return {**state, "references": self.references_}

    def _stored_comparison(self, state: dict[str, Any]) -> ModelComparison:
        references = check_indices(state["references"], len(state["summaries"]))
        return replace(self._new_comparison(), references=references)


def model_comparison_similarity(
    X: GroupsLike,
    Y: GroupsLike | None = None,
    *,
    likelihood: str | Likelihood = "diag",
    criterion: str | Criterion = "aic",
    output: str = "similarity",
    **params: Any,
) -> np.ndarray:
    """Compare all pairs of groups by model comparison.

    The function form of `ModelComparisonSimilarity.pairwise`. Anything to be learnt from a corpus is learnt
    from `X` and `Y` together.

    Parameters
    ----------
    X : groups
        Groups along the rows.
    Y : groups, default=None
        Groups along the columns; ``None`` means `X`.
    likelihood : str or Likelihood, default="diag"
        The model of a group.
    criterion : str or Criterion, default="aic"
        The information criterion.
    output : str, default="similarity"
        What to return for each pair.
    **params : dict
        Further parameters of `ModelComparisonSimilarity`.

    Returns
    -------
    matrix : ndarray of shape (n_groups_X, n_groups_Y)

    See Also
    --------
    ModelComparisonSimilarity : The estimator, which explains the parameters.

    Examples
    --------
    >>> from sklearn_mcsg import model_comparison_similarity
    >>> X = [[[0.0], [1.0], [2.0]], [[0.5], [1.5]], [[8.0], [9.0]]]
    >>> model_comparison_similarity(X, output="distance").round(2)
    array([[ 0.  ,  0.52, 17.18],
           [ 0.52,  0.  , 16.19],
           [17.18, 16.19,  0.  ]])
    """
    estimator = ModelComparisonSimilarity(likelihood, criterion, output=output, **params)
    estimator._validate_params()
    model = estimator._new_comparison().model
    if capabilities.needs_corpus(model, estimator.prior_strength, choose_output(output)):
        estimator.fit(X)
        if Y is not None:
            estimator.partial_fit(Y)
    return estimator.pairwise(X, Y)
