"""What a likelihood is: statistics of groups, their pooling, and the fit of the best model to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_mcsg._statistics import Part
from sklearn_mcsg.groups import Groups


class lazy:
    """`functools.cached_property` without its lock, which before Python 3.12 all instances share across threads."""

    def __init__(self, function: Callable[[Any], Any]):
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self.function.__name__] = self.function(instance)
        return value


class Likelihood(BaseEstimator, ABC):
    """A family of models for groups of vectors; subclass it to add one.

    A subclass must define `statistics`, `pool`, `log_likelihood` and `n_parameters`. Each of the others adds
    what its name says: `tic_penalty` the criterion ``"tic"``, `log_evidence` and `learn_prior` the criterion
    ``"bayes"``, `pseudo_group` the option ``prior_strength``, `vector_log_likelihood` the method `explain`.

    Examples
    --------
    A model of positive features, each exponentially distributed:

    >>> import numpy as np
    >>> from sklearn_mcsg import Likelihood, ModelComparisonSimilarity, Statistics
    >>> class Exponential(Likelihood):
    ...     def statistics(self, groups, *, reg_covar, order):
    ...         return Statistics(n=groups.totals, mean=groups.sum(groups.rows()) / groups.totals[:, None])
    ...     def pool(self, a, b):
    ...         n = a.n + b.n
    ...         return Statistics(n=n, mean=(a.n[:, None] * a.mean + b.n[:, None] * b.mean) / n[:, None])
    ...     def log_likelihood(self, statistics):
    ...         return -statistics.n * (np.log(statistics.mean) + 1).sum(axis=1)
    ...     def n_parameters(self, n_features):
    ...         return n_features
    >>> similarity = ModelComparisonSimilarity(Exponential(), "bic")
    >>> similarity.pairwise([[[1.0], [2.0]], [[9.0], [8.0], [11.0]]]).round(2)
    array([[ 0.  , -3.04],
           [-3.04,  0.41]])
    """

    @abstractmethod
    def statistics(self, groups: Groups, *, reg_covar: float, order: int) -> Any:
        """Sufficient statistics of each group, with moments up to `order` (2, or 4 for the TIC)."""

    @abstractmethod
    def pool(self, a: Any, b: Any) -> Any:
        """Statistics of the union of each group in `a` with the same row's group in `b`."""

    @abstractmethod
    def log_likelihood(self, statistics: Any) -> np.ndarray:
        """Log-likelihood of each group at its maximum."""

    @abstractmethod
    def n_parameters(self, n_features: int) -> int:
        """Number of free parameters."""

    def tic_penalty(self, statistics: Any) -> np.ndarray:
        """Trace of the score's covariance times the inverse information, tr(I J^-1), of each group."""
        raise TypeError(f"{type(self).__name__} defines no tic_penalty.")

    def log_evidence(self, statistics: Any) -> np.ndarray:
        """Log marginal likelihood of each group under `self.prior`."""
        raise TypeError(f"{type(self).__name__} defines no log_evidence.")

    def learn_prior(self, statistics: Any) -> Any:
        """The prior, for `log_evidence`, that a corpus suggests."""
        raise TypeError(f"{type(self).__name__} defines no learn_prior.")

    def pseudo_group(self, statistics: Any, strength: float) -> Any:
        """Statistics of one group of `strength` pseudo-vectors with the mean and variance of a corpus."""
        raise TypeError(f"{type(self).__name__} defines no pseudo_group.")

    def vector_log_likelihood(self, statistics: Any, vectors: np.ndarray) -> np.ndarray:
        """Log density of each vector, expected over its noise, under the best model of each group in `statistics`.

        The shape is (n_groups, n_vectors), and (n_groups, n_vectors, n_features) where it is a sum over features.
        Weighted and summed over a group's own vectors it is the group's `log_likelihood`.
        """
        raise TypeError(
            f"{type(self).__name__} defines no vector_log_likelihood, the log density of single vectors, which an "
            f"explanation needs."
        )

    def defines(self, method: str) -> bool:
        """Whether the class defines one of the optional methods."""
        return getattr(type(self), method) is not getattr(Likelihood, method)

    def pooled(self, a: Any, b: Any, precision: np.dtype | None = None) -> Fit:
        """The fit to the union of every group in `a` with every group in `b`, row after row of `a`.

        Likelihoods with a faster way to all pairs override it. `precision` is that of the result, or None where there
        are too few pairs for compiled code to pay.
        """
        i, j = np.divmod(np.arange(len(a) * len(b)), len(b))
        return Fit(self, self.pool(a[i], b[j]))

    def pair_nbytes(self, a: Any, b: Any, precision: np.dtype | None = None) -> int:
        """Bytes that `pooled` may take for each pair, temporary arrays included."""
        return 4 * (a.row_nbytes + b.row_nbytes)


class Fit:
    """A likelihood fitted to groups: what a criterion may ask for, computed when asked.

    Attributes
    ----------
    n : ndarray of shape (n_groups,)
        Total weight of each group.
    n_parameters : int
        Free parameters of the model.
    log_likelihood, tic_penalty, log_evidence : ndarray of shape (n_groups,)
        As the likelihood's methods of the same names return them.
    """

    def __init__(self, likelihood: Likelihood, statistics: Any):
        self.likelihood = likelihood
        self.statistics = statistics

    @property
    def n(self) -> np.ndarray:
        return self.statistics.n

    @property
    def n_parameters(self) -> int:
        return self.likelihood.n_parameters(self.statistics.n_features)

    @lazy
    def log_likelihood(self) -> np.ndarray:
        return self.likelihood.log_likelihood(self.statistics)

    @lazy
    def tic_penalty(self) -> np.ndarray:
        return self.likelihood.tic_penalty(self.statistics)

    @lazy
    def log_evidence(self) -> np.ndarray:
        return self.likelihood.log_evidence(self.statistics)


def kept_parts(groups: Groups, order: int) -> tuple[Part, ...]:
    """The vectors themselves, by reference, where moments of higher order are asked for."""
    return (Part(groups),) if order > 2 else ()


def pseudo_parts(location: np.ndarray, strength: float, noise: Any, statistics: Any) -> tuple[Part, ...]:
    """Pseudo-vectors as one weighted vector with noise, where the statistics keep vectors at all."""
    if not statistics.parts:
        return ()
    return (Part(Groups(location[None], [0, 1], weights=[strength]), noise),)
