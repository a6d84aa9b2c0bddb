"""The similarity of groups as a scikit-learn estimator, and as a function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from sklearn_mcsg._checks import check_positive_integer
from sklearn_mcsg._sklearn import Interval, StrOptions
from sklearn_mcsg.criteria import CRITERIA, Criterion
from sklearn_mcsg.engine.coordinates import Coordinates
from sklearn_mcsg.engine.learnt import Learnt
from sklearn_mcsg.engine.model import GroupModel, in_precision
from sklearn_mcsg.engine.outputs import OUTPUTS, choose_output
from sklearn_mcsg.engine.points import PointSpace
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.explanation import Explanation, explain_groups
from sklearn_mcsg.groups import Groups, GroupsLike, check_same_width, validate_group
from sklearn_mcsg.groups.arrays import ArrayKind
from sklearn_mcsg.groups.checks import check_indices
from sklearn_mcsg.likelihoods import LIKELIHOODS, Likelihood, Statistics
from sklearn_mcsg.similarity import calibration
from sklearn_mcsg.similarity.base import GroupSimilarity

__all__ = ["ModelComparisonSimilarity", "model_comparison_similarity"]

_SIMILARITY = OUTPUTS["similarity"]


class ModelComparisonSimilarity(GroupSimilarity[Learnt, Statistics, Prepared]):
    """Similarity of groups of vectors: did one model generate both, or two?

    The similarity of two groups is the difference of an information criterion between two separate models and one
    shared model, ``IC(A) + IC(B) - IC(A and B together)``: positive when one model explains both groups better than
    two [1]_.

    Parameters
    ----------
    likelihood : {"diag", "spherical", "full", "vmf"} or Likelihood, default="diag"
        The model of a group: a normal distribution with diagonal, spherical or full covariance, or a
        von Mises-Fisher distribution of the vectors' directions.
    criterion : {"aic", "tic", "bic", "bayes"} or Criterion, default="aic"
        The information criterion. Its penalty is the number of parameters (AIC), Takeuchi's trace, which also holds
        for misspecified models (TIC), or Schwarz's penalty (BIC). ``"bayes"`` has no penalty: it replaces the
        likelihood by the exact evidence under a conjugate prior, which is learnt from the fitted corpus unless the
        likelihood is an instance that has one.
    output : {"similarity", "distance", "divergence", "centered", "kernel"}, default="similarity"
        Values that `transform`, `pairwise` and `paired` return. Estimators with ``metric="precomputed"`` need
        ``"distance"``, ``"divergence"`` or ``"centered"``: the default is a *similarity*, which they would take for a
        distance, without an error and with wrong results.

        - ``"similarity"``: the difference above; unbounded, higher for more similar groups. It is not a positive
          semi-definite kernel in general.
        - ``"distance"``: ``(s(A, A) + s(B, B)) / 2 - s(A, B)``, floored at 0; 0 on the diagonal. Under AIC it is minus
          twice the log-likelihood ratio.
        - ``"divergence"``: distance times ``(n + m) / (n m)``, which removes most of the dependence on the sizes of the
          groups, but not all; close to the squared Mahalanobis distance of the means.
        - ``"centered"``: one minus the cosine of the angle between the two groups, seen from the centre of the
          reference groups, in [0, 2]. It removes the part common to all distances, which is large on real text.
        - ``"kernel"``: ``exp(-distance / scale)`` of balanced groups, where the scale is the median distance of the
          reference groups: a positive definite kernel, for ``"diag"`` and ``"spherical"`` with AIC, BIC or Bayes.
    balanced : bool, default=False
        Whether every group counts as one observation: the weights of its vectors are scaled to sum to 1. Where there
        is a ``"kernel"``, which is always balanced, the root of the balanced ``"distance"`` is a metric.
    reg_covar : float, default=1e-6
        Variance of the isotropic noise around each vector. It allows groups of one vector and constant features.
    prior_strength : float, default=0.0
        Number of pseudo-vectors, with the mean and variance of the fitted corpus, that are added to every group. With a
        positive value, groups may be empty.
    penalty_scale : float, default=1.0
        Factor on the criterion's penalty.
    n_references : int, default=512
        Largest number of reference groups for ``"centered"``: all fitted groups, or a random sample of this size.
    random_state : int, RandomState instance or None, default=None
        Determines the sample of reference groups. Pass an int for reproducible results.
    n_jobs : int, default=None
        Number of threads, or of workers of the active joblib backend.
    verbose : int, default=0
        Whether to show a progress bar.

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
        Indices of the reference groups of ``"centered"``.

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
    .. [1] Francisco Vargas, Kamen Brestnichki and Nils Hammerla. Model GroupModel for Semantic Grouping. ICML 2019.

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

    outputs = tuple(OUTPUTS)
    _takes_arrays = True
    _parameter_constraints: ClassVar[dict] = {
        "likelihood": [StrOptions(set(LIKELIHOODS)), Likelihood],
        "criterion": [StrOptions(set(CRITERIA)), Criterion],
        "output": [StrOptions(set(outputs))],
        "balanced": ["boolean"],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "prior_strength": [Interval(Real, 0, None, closed="left")],
        "penalty_scale": [Interval(Real, 0, None, closed="left")],
        "n_references": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

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

    # Hooks of the base class --------------------------------------------------------------------------------------

    def start(self, output: str | None = None) -> Learnt:
        """State given by the parameters alone; raise NotFittedError if `output` needs a fitted corpus."""
        comparison = self._new_comparison()
        comparison.check_output(OUTPUTS[self.output if output is None else output])
        reasons = [] if output is None else comparison.unlearnt(self.prior_strength, OUTPUTS[output])
        if reasons:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet, and {' and '.join(reasons)} must be learnt "
                f"from a corpus. Call 'fit' with appropriate arguments before using this estimator."
            )
        return Learnt(replace(comparison, n_jobs=self.n_jobs, verbose=self.verbose), choose_output(self.output))

    def summarize(self, learnt: Learnt, groups: Groups) -> Statistics:
        """Sufficient statistics of the groups."""
        return learnt.comparison.statistics(groups)

    def learn(self, summaries: Statistics, references: np.ndarray | None = None) -> Learnt:
        """Learn prior and pseudo-vectors from statistics, and draw reference groups unless they are given."""
        if references is None:
            references = np.arange(len(summaries))
            if len(references) > self.n_references:
                random_state = check_random_state(self.random_state)
                references = np.sort(random_state.choice(len(references), self.n_references, replace=False))
        start = self.start()
        comparison = start.comparison.completed(summaries, self.prior_strength)
        found: Any = {"comparison": comparison, "start": start.comparison, "prior_strength": self.prior_strength}
        return replace(start, statistics=summaries, references=references, **found)

    def carry(self, learnt: Learnt, summaries: Statistics | None) -> Learnt:
        """What was learnt, with the statistics of other groups or none."""
        return learnt.carried_to(summaries, OUTPUTS[self.output])

    def prepare(self, learnt: Learnt, summaries: Statistics, output: str) -> Prepared:
        """Compute the criteria of the groups."""
        if summaries is learnt.statistics:
            return learnt.fitted(OUTPUTS[output])
        return learnt.prepare(summaries, OUTPUTS[output])

    def compare(
        self,
        learnt: Learnt,
        left: Prepared,
        right: Prepared,
        output: str,
        dtype: np.dtype,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Compare all pairs; only half of them are computed if both sides are the same object."""
        chosen, other = OUTPUTS[output], None if right is left else right
        if isinstance(dtype, ArrayKind):
            return learnt.comparison_for(chosen).all_pairs_on_device(left, other, chosen, dtype)
        return learnt.comparison_for(chosen).all_pairs(left, other, chosen, dtype, out)

    def compare_rows(self, learnt: Learnt, left: Prepared, right: Prepared, output: str, dtype: np.dtype) -> np.ndarray:
        """Compare pairs of the same row."""
        compare = learnt.comparison_for(OUTPUTS[output]).row_by_row
        if isinstance(dtype, ArrayKind):
            return dtype.result(dtype.asarray(compare(left, right, OUTPUTS[output])))
        return compare(left, right, OUTPUTS[output], dtype)

    def learnt(self) -> Learnt:
        """The learnt state as a plain object; before `fit`, the state given by the parameters alone."""
        self._validate_params()
        if not self._is_fitted:
            return self.start()
        found = {"output": choose_output(self.output), "dtype": self._fitted.dtype, "null": self._fitted.null}
        return replace(self._learnt_for(self.output), **found)

    def _needs_corpus(self) -> bool:
        """Whether something has to be learnt from a corpus before groups can be compared."""
        self._validate_params()
        return bool(self._new_comparison().unlearnt(self.prior_strength, choose_output(self.output)))

    def point_space(self) -> PointSpace | None:
        """The likelihood's coordinates, if it has them and coordinates can represent the output."""
        learnt, output = self._learnt_for(self.output), OUTPUTS[self.output]
        likelihood = learnt.comparison.likelihood
        n_features = learnt.statistics.n_features
        if not output.can_be_embedded or not likelihood.has_coordinates(n_features):
            return None
        corpus = likelihood.pseudo_group(learnt.statistics, 1.0)
        return PointSpace(Coordinates(learnt.comparison.with_jobs(None), corpus, 1.0), output.is_angle)

    def sizes(self, prepared: Prepared) -> np.ndarray:
        """Total weight of each group: by chance, distances of small groups are larger."""
        return prepared.n

    def null_power(self, output: str) -> int:
        """The power of a normal variable that distances of random pairs resemble."""
        return OUTPUTS[output].null_power

    def _learnt_for(self, output: str) -> Learnt:
        learnt = super()._learnt_for(output).with_jobs(self.n_jobs, self.verbose)
        learnt.comparison.check_output(OUTPUTS[output])
        return learnt

    def _new_comparison(self) -> GroupModel:
        """A comparison from the parameters, before anything is learnt."""
        likelihood = LIKELIHOODS[self.likelihood]() if isinstance(self.likelihood, str) else clone(self.likelihood)
        criterion = CRITERIA[self.criterion]() if isinstance(self.criterion, str) else clone(self.criterion)
        comparison = GroupModel(likelihood, criterion, self.reg_covar, self.penalty_scale, balanced=self.balanced)
        comparison.check(self.prior_strength)
        return comparison

    def _set_fitted(self, summaries: Statistics, dtype: np.dtype, learnt: Learnt | None = None) -> None:
        super()._set_fitted(summaries, dtype, learnt)
        learnt = self._fitted.learnt
        self.likelihood_ = learnt.comparison.likelihood
        self.criterion_ = learnt.comparison.criterion
        self.references_ = learnt.references
        self._fitted_key = self._model_key()

    def __mcsg_state__(self) -> dict[str, Any]:
        """Learnt state, to be saved with the parameters; empty before `fit`."""
        state = super().__mcsg_state__()
        if not state:
            return {}
        if not len(self.references_):
            raise ValueError("The groups are not those that were learnt from: save the similarity that they came from.")
        return {**state, "references": self.references_}

    def _learn_from(self, state: dict[str, Any]) -> Learnt:
        return self.learn(state["summaries"], check_indices(state["references"], len(state["summaries"])))

    def _check_unchanged(self) -> None:
        if self._model_key() != self._fitted_key:
            raise ValueError(
                "likelihood, criterion, reg_covar or balanced has changed since fit: call fit with all groups."
            )

    def _model_key(self) -> tuple:
        """The parameters that the kept statistics depend on."""
        parts = (self.likelihood, self.criterion)
        keys = (p if isinstance(p, str) else (type(p), joblib.hash(p.get_params())) for p in parts)
        return *keys, self.reg_covar, self.balanced

    # Public methods -----------------------------------------------------------------------------------------------

    def explain(self, a: GroupsLike, b: GroupsLike, *, labels: Sequence[Sequence[str]] | None = None) -> Explanation:
        """Explain the similarity of two groups by their vectors.

        Parameters
        ----------
        a, b : array-like of shape (n_vectors, n_features), or Groups of one group
            The two groups.
        labels : pair of sequences, default=None
            Names of the vectors of `a` and `b`; ``None`` means the labels of the groups, or positions without labels.

        Returns
        -------
        explanation : Explanation
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
        return explain_groups(*self._read_two(a, b), labels)

    def _read_two(self, a: GroupsLike, b: GroupsLike) -> tuple[Learnt, Groups, Groups]:
        """The learnt state and two validated single groups."""
        self._validate_params()
        learnt = self._learnt_for("similarity")
        one, other = (
            validate_group(x, allow_empty=self.prior_strength > 0, name=name) for name, x in (("a", a), ("b", b))
        )
        check_same_width(one, other, "ab")
        return learnt, self.validate(one, "a"), self.validate(other, "b")

    def paired_test(self, a: GroupsLike, b: GroupsLike, *, n_permutations: int = 999) -> calibration.PermutationTest:
        """Test whether one distribution generated both groups, by random divisions of their vectors.

        Under this hypothesis all divisions are exchangeable, so the test keeps its level for any distribution. If there
        are at most `n_permutations` divisions, all of them are used.

        Parameters
        ----------
        a, b : array-like of shape (n_vectors, n_features), or Groups of length 1
            The two groups.
        n_permutations : int, default=999
            Number of random divisions.

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
        learnt, one, other = self._read_two(a, b)
        return calibration.permutation_test(learnt, one, other, n_permutations, check_random_state(self.random_state))

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
        self._validate_params()
        learnt = self._learnt_for("similarity")
        groups = self.validate(X)
        return in_precision(learnt.prepare(groups, _SIMILARITY).information, groups.output_dtype)

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
    if estimator._needs_corpus():
        estimator.fit(X)
        if Y is not None:
            estimator.partial_fit(Y)
    return estimator.pairwise(X, Y)
