"""The similarity of groups as a scikit-learn estimator, and as a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._base import ComparisonEstimator
from sklearn_mcsg._calibration import ThresholdMixin
from sklearn_mcsg._pairwise import OUTPUTS, in_precision, rows_per_chunk
from sklearn_mcsg._statistics import Statistics
from sklearn_mcsg.criteria import CRITERIA, Criterion
from sklearn_mcsg.explanation import Explanation, explain_pair
from sklearn_mcsg.likelihoods import LIKELIHOODS, Likelihood

__all__ = ["ModelComparisonSimilarity", "model_comparison_similarity"]


class ModelComparisonSimilarity(ThresholdMixin, ComparisonEstimator):
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
        What a model costs: the number of parameters; Takeuchi's trace, right also for wrong models; Schwarz's
        penalty; or nothing, with the exact evidence under a conjugate prior in place of the likelihood. ``"bayes"``
        learns its prior from the fitted corpus unless the likelihood is an instance that has one.
    output : {"similarity", "distance", "divergence", "centered"}, default="similarity"
        What `transform`, `pairwise` and `paired` return:

        - ``"similarity"``: as above, unbounded, higher for more similar groups. As a kernel it is not positive
          semi-definite in general.
        - ``"distance"``: ``(s(A, A) + s(B, B)) / 2 - s(A, B)``, floored at 0; 0 on the diagonal. Under AIC it is minus
          twice the log-likelihood ratio.
        - ``"divergence"``: distance times ``(n + m) / (n m)``, free of the groups' sizes; close to the squared
          Mahalanobis distance of the means.
        - ``"centered"``: one minus the cosine of the two groups as seen from the centre of the reference groups, in
          [0, 2]. The common part of all distances, large on real text, is gone.
    reg_covar : float, default=1e-6
        Variance of the isotropic noise around each vector. It keeps groups of one vector and constant features finite.
    prior_strength : float, default=0.0
        Number of pseudo-vectors, with the mean and variance of the fitted corpus, added to every group. With a positive
        value groups may be empty.
    penalty_scale : float, default=1.0
        Factor on the criterion's penalty.
    n_references : int, default=512
        Number of fitted groups that ``"centered"`` refers to: all of them, or a random sample of this size.
    random_state : int, RandomState instance or None, default=None
        Determines that sample. Pass an int for reproducible results.
    n_jobs : int, default=None
        Number of threads, or of workers of the active joblib backend.
    verbose : int, default=0
        Verbosity of the computation of pairs.

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
        The fitted groups that ``"centered"`` refers to.

    See Also
    --------
    model_comparison_similarity : The same as a function.

    Notes
    -----
    `X` may be a list, tuple or object array of (n_i, n_features) arrays, a 3-d array, `Groups` (which also carry
    weights), a column of lists of vectors, or an (n_groups, n_features) array: groups of one vector each.

    Parameters changed after `fit` take effect at the next `fit`, except `output`, `n_jobs` and `verbose`.

    `score_samples` and `score` choose among the Gaussian likelihoods without labels. Never compare ``"vmf"``, a density
    on the sphere, with them, nor different criteria with each other.

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
    """

    _parameter_constraints: ClassVar[dict] = {
        "likelihood": [StrOptions(set(LIKELIHOODS)), Likelihood],
        "criterion": [StrOptions(set(CRITERIA)), Criterion],
        "output": [StrOptions(set(OUTPUTS))],
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
        self.reg_covar = reg_covar
        self.prior_strength = prior_strength
        self.penalty_scale = penalty_scale
        self.n_references = n_references
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the groups that `transform` compares with, and learn from them what the parameters ask for.

        Parameters
        ----------
        X : groups
            The corpus, in any form listed under Notes.
        y : None
            Ignored.

        Returns
        -------
        self : ModelComparisonSimilarity
        """
        self._validate_params()
        comparison = self._new_comparison()
        groups = self._check_groups(X)
        self._set_fitted(comparison, comparison.statistics(groups), groups.output_dtype)
        self._keep_features(X, groups)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Append groups to the fitted ones.

        The result is that of one `fit` on all groups: everything learnt from the corpus (prior, pseudo-vectors,
        references) is learnt anew from all groups seen so far, so earlier results that depend on it change.

        Parameters
        ----------
        X : groups
            Further groups.
        y : None
            Ignored.

        Returns
        -------
        self : ModelComparisonSimilarity
        """
        if not hasattr(self, "_comparison"):
            return self.fit(X)
        self._validate_params()
        self._check_unchanged()
        groups = self._check_fitted_groups(X)
        statistics = Statistics.concatenate([self._statistics, self._comparison.statistics(groups)])
        dtype = np.result_type(self._dtype, groups.output_dtype)
        return self._set_fitted(self._new_comparison(), statistics, dtype)

    def transform(self, X: Any) -> np.ndarray:
        """Compare groups with the fitted ones.

        Parameters
        ----------
        X : groups
            Groups to compare.

        Returns
        -------
        matrix : ndarray of shape (n_groups_X, `n_groups_`)
            The chosen output for each pair.
        """
        check_is_fitted(self)
        return self._indexed(X, self._compare(self._read(X, self.output)))

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit to groups and compare them with each other: ``pairwise(X)`` at the price of one pass.

        Parameters
        ----------
        X : groups
            The corpus.
        y : None
            Ignored.

        Returns
        -------
        matrix : ndarray of shape (n_groups, n_groups)
            The chosen output for each pair.
        """
        self.fit(X)
        return self._indexed(
            X, self._active().all_pairs(self._fitted_side(self.output), None, self.output, self._dtype)
        )

    def pairwise(
        self, X: Any, Y: Any = None, *, output: str | None = None, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Compare all pairs of groups.

        Works before `fit` unless something has to be learnt from a corpus: ``prior_strength > 0``, ``"bayes"`` without
        a given prior, and ``"centered"``.

        Parameters
        ----------
        X : groups
            Groups along the rows.
        Y : groups, default=None
            Groups along the columns; ``None`` means `X`, of which only half the pairs are computed.
        output : str, default=None
            One of the outputs, in place of the parameter `output`.
        out : ndarray of shape (n_groups_X, n_groups_Y), default=None
            Where to put the matrix, for example a memory map: of the result's precision, float32 when all vectors are
            float32 and float64 otherwise.

        Returns
        -------
        matrix : ndarray of shape (n_groups_X, n_groups_Y)
        """
        left, right, output, dtype = self._prepare_sides(X, Y, output)
        if out is not None:
            _check_out(out, (len(left), len(left if right is None else right)), dtype)
        return self._active().all_pairs(left, right, output, dtype, out)

    def pairwise_chunked(
        self, X: Any, Y: Any = None, *, output: str | None = None, reduce_func: Callable | None = None
    ) -> Iterator[Any]:
        """Compare all pairs of groups, a few rows of the matrix at a time.

        Rows follow each other in chunks that fit into ``sklearn.get_config()["working_memory"]``, as in
        `sklearn.metrics.pairwise_distances_chunked`.

        Parameters
        ----------
        X : groups
            Groups along the rows.
        Y : groups, default=None
            Groups along the columns; ``None`` means `X`.
        output : str, default=None
            One of the outputs, in place of the parameter `output`.
        reduce_func : callable, default=None
            Called as ``reduce_func(chunk, start)`` with the chunk and its first row; what it returns is yielded in
            place of the chunk.

        Yields
        ------
        chunk : ndarray of shape (n_rows, n_groups_Y), or what `reduce_func` returns

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_mcsg import ModelComparisonSimilarity
        >>> X = np.random.default_rng(0).normal(size=(5, 4, 3))
        >>> def nearest(chunk, start):
        ...     return chunk.argmax(axis=1)
        >>> np.concatenate(list(ModelComparisonSimilarity().pairwise_chunked(X, reduce_func=nearest)))
        array([0, 1, 2, 3, 4])
        """
        left, right, output, dtype = self._prepare_sides(X, Y, output)
        right = left if right is None else right
        comparison = self._active()
        rows = rows_per_chunk(dtype.itemsize * len(right))

        def chunks() -> Iterator[Any]:
            for batch in gen_batches(len(left), rows):
                chunk = comparison.all_pairs(left[batch], right, output, dtype)
                if Y is None and output != "similarity":
                    chunk[np.arange(len(chunk)), np.arange(batch.start, batch.stop)] = 0
                yield chunk if reduce_func is None else reduce_func(chunk, batch.start)

        return chunks()

    def paired(self, X: Any, Y: Any, *, output: str | None = None) -> np.ndarray:
        """Compare groups row by row.

        Parameters
        ----------
        X, Y : groups
            Collections of the same length.
        output : str, default=None
            One of the outputs, in place of the parameter `output`.

        Returns
        -------
        values : ndarray of shape (n_groups,)
        """
        left, right, output, dtype = self._prepare_sides(X, Y, output, paired=True)
        return self._active().row_by_row(left, right, output, dtype)

    def explain(self, a: Any, b: Any, *, labels: Sequence[Sequence[Any]] | None = None) -> Explanation:
        """Explain the similarity of two groups by their vectors.

        Parameters
        ----------
        a, b : array-like of shape (n_vectors, n_features), or Groups of one group
            The two groups.
        labels : pair of sequences, default=None
            Names of the vectors of `a` and of `b`; ``None`` means their positions.

        Returns
        -------
        explanation : Explanation
            Parts that sum to the output ``"similarity"``.
        """
        return explain_pair(self, a, b, labels)

    def score_samples(self, X: Any) -> np.ndarray:
        """Information criterion of each group in the paper's sign: lower is better.

        It is ``-2 (L - penalty)`` for AIC, TIC and BIC and minus twice the log evidence for the Bayes factor. Values of
        ``"vmf"`` and of the Gaussian likelihoods, or of different criteria, must not be compared.

        Parameters
        ----------
        X : groups
            Groups to score.

        Returns
        -------
        criterion : ndarray of shape (n_groups,)
        """
        groups = self._read(X, "similarity")
        return in_precision(self._prepare(groups, "similarity").alone, groups.output_dtype)

    def score(self, X: Any, y: Any = None) -> float:
        """Negative mean of `score_samples`: higher is better, as `GridSearchCV` expects.

        It chooses among Gaussian likelihoods without labels. ``"vmf"``, a density on the sphere, must not be compared
        with them, nor different criteria with each other.

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


def _check_out(out: Any, shape: tuple[int, int], dtype: np.dtype) -> None:
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype or not out.flags.writeable:
        got = f"shape {out.shape}, {out.dtype}" if isinstance(out, np.ndarray) else type(out).__name__
        state = ", read-only" if isinstance(out, np.ndarray) and not out.flags.writeable else ""
        raise ValueError(f"out must be a writeable array of shape {shape} and {dtype}, got {got}{state}.")


def model_comparison_similarity(
    X: Any,
    Y: Any = None,
    *,
    likelihood: str | Likelihood = "diag",
    criterion: str | Criterion = "aic",
    output: str = "similarity",
    **params: Any,
) -> np.ndarray:
    """Compare all pairs of groups by model comparison.

    The function form of `ModelComparisonSimilarity.pairwise`. What has to be learnt from a corpus is learnt from all
    groups given, `X` and `Y` together.

    Parameters
    ----------
    X : groups
        Groups along the rows.
    Y : groups, default=None
        Groups along the columns; ``None`` means `X`.
    likelihood : str or Likelihood, default="diag"
        The model of a group.
    criterion : str or Criterion, default="aic"
        What a model costs.
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
    if estimator._learns(estimator._new_comparison(), output):
        estimator.fit(X)
        if Y is not None:
            estimator.partial_fit(Y)
    return estimator.pairwise(X, Y)
