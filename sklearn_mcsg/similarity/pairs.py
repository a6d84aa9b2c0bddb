"""Pairs as samples: similarities are scored against human judgements."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import bootstrap, rankdata, spearmanr
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from sklearn_mcsg._checks import check_share
from sklearn_mcsg.engine.comparer import ComparesGroups
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.groups import Groups, GroupsLike, validate_group
from sklearn_mcsg.groups.arrays import refuse_arrays
from sklearn_mcsg.similarity.estimator import split_pipeline


class PairSimilarity(MetaEstimatorMixin, BaseEstimator):
    """Similarity of pairs, scored against human judgements.

    A sample is a pair of texts, of arrays, or of `Groups` that hold one group each. `predict` gives the similarity of
    each pair and `score` its rank correlation with the given values, so that `GridSearchCV` can choose likelihood,
    criterion, weights and vectors.

    Parameters
    ----------
    estimator : estimator
        A similarity with a method `paired`, or a pipeline that ends with one.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.

    Notes
    -----
    `predict` negates outputs that grow with dissimilarity (``"distance"``, ``"divergence"``, ``"centered"``), so that
    higher always means more similar.

    Iterating over `Groups`, as `zip` does, yields plain arrays without weights. Pairs that keep them are
    ``[(A[[i]], B[[i]]) for i in range(len(A))]``.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import Pipeline
    >>> from sklearn_mcsg import EmbeddingVectorizer, ModelComparisonSimilarity, PairSimilarity
    >>> vectors = {"the": [1.0, 1.0], "cat": [3.0, 0.0], "kitten": [2.5, 0.5], "dog": [2.0, 1.0], "tax": [0.0, 4.0]}
    >>> pipe = Pipeline([("vectorizer", EmbeddingVectorizer(vectors)), ("similarity", ModelComparisonSimilarity())])
    >>> pairs = [("the cat", "the kitten"), ("the cat", "the dog"), ("the cat", "the tax"), ("a dog", "kitten")] * 3
    >>> search = GridSearchCV(
    ...     PairSimilarity(pipe), {"estimator__similarity__likelihood": ["diag", "spherical"]}, cv=3
    ... ).fit(pairs, [5, 4, 0, 3] * 3)
    >>> search.best_params_
    {'estimator__similarity__likelihood': 'diag'}
    """

    def __init__(self, estimator: BaseEstimator):
        self.estimator = estimator

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def fit(self, X: GroupsLike, y: object = None) -> Self:
        """Fit the estimator to the texts or groups on both sides.

        Parameters
        ----------
        X : array-like of shape (n_pairs, 2)
            Pairs: an array, a list of tuples or a frame of two columns.
        y : None
            Ignored.

        Returns
        -------
        self : PairSimilarity
        """
        last = split_pipeline(self.estimator)[1]
        if not hasattr(last, "paired"):
            raise TypeError(
                f"PairSimilarity needs a similarity with a method 'paired', or a pipeline ending with one, got "
                f"{type(last).__name__}."
            )
        left, right = _sides(X)
        both = Groups.concatenate([left, right]) if isinstance(left, Groups) else [*left, *right]
        self.estimator_ = clone(self.estimator).fit(both)
        return self

    def predict(self, X: GroupsLike) -> np.ndarray:
        """Similarity of each pair, higher for more similar ones.

        Parameters
        ----------
        X : array-like of shape (n_pairs, 2)
            Pairs.

        Returns
        -------
        similarity : ndarray of shape (n_pairs,)
        """
        check_is_fitted(self, "estimator_")
        before, similarity = split_pipeline(self.estimator_)
        sides = _sides(X)
        if before is not None:
            sides = tuple(before.transform(side) for side in sides)
        values = similarity.paired(*sides)
        output = getattr(similarity, "output", "distance" if isinstance(similarity, ComparesGroups) else "similarity")
        return values if output in OUTPUTS and OUTPUTS[output].higher_is_nearer else -values

    def score(self, X: GroupsLike, y: ArrayLike) -> float:
        """Spearman's rank correlation of the similarities with given values.

        Parameters
        ----------
        X : array-like of shape (n_pairs, 2)
            Pairs.
        y : array-like of shape (n_pairs,)
            Given similarity of each pair.

        Returns
        -------
        rho : float
            0, with a warning, if the similarities or `y` are constant.
        """
        try:
            y = column_or_1d(y).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must hold numbers that say how similar the pairs are: {error}.") from error
        if not np.isfinite(y).all():
            raise ValueError(f"y holds NaN or infinity, first at pair {int(np.argmin(np.isfinite(y)))}.")
        similarity = self.predict(X)
        check_consistent_length(similarity, y)
        constant = [name for name, v in (("The prediction", similarity), ("y", y)) if np.ptp(v) == 0]
        if constant:
            warnings.warn(f"{constant[0]} is constant, so pairs have no order: the score is 0.", stacklevel=2)
            return 0.0
        return float(spearmanr(similarity, y).statistic)


def spearman_interval(
    x: ArrayLike,
    y: ArrayLike,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[float, float, float]:
    """Spearman's rank correlation with a bootstrap confidence interval.

    Pairs are resampled with replacement; the interval is between percentiles of the resampled correlations.

    Parameters
    ----------
    x, y : array-like of shape (n_pairs,)
        The two values of each pair, for example human judgements and predicted similarities.
    confidence_level : float, default=0.95
        Coverage of the interval.
    n_resamples : int, default=1000
        Number of bootstrap samples.
    random_state : int, RandomState instance or None, default=None
        Determines what is random: the bootstrap samples. Pass an int for reproducible results.

    Returns
    -------
    correlation, low, high : float
        NaN if `x` or `y` is constant.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg.similarity.pairs import spearman_interval
    >>> rng = np.random.default_rng(0)
    >>> gold = rng.normal(size=200)
    >>> rho, low, high = spearman_interval(gold, gold + rng.normal(size=200), random_state=0)
    >>> low < rho < high
    True
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    check_consistent_length(x, y)
    check_share(confidence_level, "confidence_level")
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan, np.nan, np.nan
    rng = check_random_state(random_state)
    settings: Any = {"n_resamples": n_resamples, "confidence_level": confidence_level, "method": "percentile"}
    found = bootstrap((x, y), _rank_correlation, paired=True, batch=50, random_state=rng, **settings)
    low, high = found.confidence_interval
    return float(_rank_correlation(x, y)), float(low), float(high)


def _rank_correlation(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    """Spearman's correlation along an axis, 0 where a sample is constant."""
    x, y = (rankdata(values, axis=axis) - (values.shape[axis] + 1) / 2 for values in (x, y))
    norms = np.sqrt((x * x).sum(axis=axis) * (y * y).sum(axis=axis))
    return (x * y).sum(axis=axis) / np.where(norms > 0, norms, 1)


def _sides(X: Any) -> tuple[Any, Any]:
    """The left and the right elements of pairs: lists, or `Groups` if any element is."""
    refuse_arrays(X)
    left, right = _columns(X)
    refuse_arrays([*left, *right])
    if not any(isinstance(x, Groups) for x in (*left, *right)):
        return left, right
    return _joined(left), _joined(right)


def _joined(elements: list) -> Groups:
    groups = [validate_group(x, allow_empty=True, name=f"An element of pair {i}") for i, x in enumerate(elements)]
    return Groups.concatenate(groups)


def _columns(X: Any) -> tuple[list, list]:
    if hasattr(X, "columns"):
        columns = list(X.columns)
        if len(columns) != 2:
            raise ValueError(f"A frame of pairs must have two columns, got {len(columns)}.")
        if hasattr(X, "iloc"):
            return list(X.iloc[:, 0]), list(X.iloc[:, 1])
        return list(X[columns[0]]), list(X[columns[1]])
    if not isinstance(X, Iterable):
        raise ValueError(f"Pairs must be an array, a list of tuples or a frame of two columns, got {type(X).__name__}.")
    pairs = list(X)
    for i, pair in enumerate(pairs):
        if not isinstance(pair, Sequence | np.ndarray) or isinstance(pair, str | bytes) or len(pair) != 2:
            raise ValueError(f"Sample {i} is not a pair: {pair!r:.60}.")
    if not pairs:
        raise ValueError("There are no pairs: at least one is required (0 sample(s) found).")
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
