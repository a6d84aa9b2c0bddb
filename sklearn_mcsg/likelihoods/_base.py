"""Base classes of likelihoods: statistics of groups, their pooling, and the fit of the best model.

    groups --statistics--> Statistics, one row per group --------------------+
                                                                             +--> Fit --> criterion
    two collections --pool--> Statistics, one row per pair ------------------+
                    --unions--> Unions, one matrix entry per pair (faster) --+
    a sequence --segments--> Segments, one matrix entry per segment ---------+

A likelihood defines each formula once, in terms of quantities such as `n` or `variance`, which it takes from the
statistics. For single groups and pooled pairs these are arrays with one row per group; for `Unions` they are matrices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import gen_batches

from sklearn_mcsg._lazy import lazy
from sklearn_mcsg._memory import REPAIRS, count_within
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.arrays import namespace_of
from sklearn_mcsg.likelihoods._statistics import Statistics, Weighted
from sklearn_mcsg.storage import register

S = TypeVar("S", bound=Statistics)


@cache
def load_kernels() -> ModuleType:
    """The compiled kernels. The first call loads numba, so it is delayed until a matrix needs them."""
    from sklearn_mcsg.likelihoods import kernels

    return kernels


@cache
def load_segment_kernels() -> ModuleType:
    """The compiled kernels for segments of a sequence, which load numba."""
    from sklearn_mcsg.likelihoods import segment_kernels

    return segment_kernels


class Likelihood(BaseEstimator, ABC, Generic[S]):
    """A family of models for groups of vectors; subclass it to add one.

    A subclass must define four methods: `statistics` of groups, `pool` for the statistics of their unions,
    `log_likelihood` at its maximum, and `n_parameters`. All others are optional, and each enables a use:

    ================================  ============================================================================
    `tic_penalty`                     the criterion ``"tic"``
    `log_evidence`, `learn_prior`     the criterion ``"bayes"``, together with a parameter `prior`
    `pseudo_group`                    ``prior_strength > 0``
    `vector_log_likelihood`           `ModelComparisonSimilarity.explain`
    `unpool`                          probabilities of `ModelComparisonClassifier`, and removing groups from it
    `coordinates`                     `GroupEmbedding` without landmarks, together with `pseudo_group`
    `coordinate_shares`               `GroupEmbedding.explain`
    `balance`                         the output ``"kernel"``, if `has_kernel`; arrays of other libraries, if balanced
    `statistics_of_moments`           arrays of other libraries than NumPy, if `array_unions` is set
    `corpus_variances`                a warning if `reg_covar` outweighs the variances of a corpus
    `for_pairs`                       numbers of each group that are computed once, before it is compared with others
    ================================  ============================================================================

    Class attributes are optional too:

    =========================  ===================================================================================
    `unions`                   a subclass of `Unions`, which compares all pairs faster than pooling each pair
    `segments`                 a subclass of `Segments`, which does so for the segments of a sequence
    `array_unions`             a subclass of `ArrayUnions`, which does so for arrays of other libraries than NumPy
    `max_coordinate_features`  the most features for which `coordinates` is defined; ``None`` means any number
    `has_feature_coordinates`  whether the coordinates of each kind are those of the features, one after the other
    `has_kernel`               whether distances of balanced groups are conditionally negative definite
    `uses_positions`           whether the places of vectors in their groups matter: groups then have `positions`, and
                               methods that take vectors also get ``positions=``, the place of each, and
                               `statistics_of_moments` gets lines
    =========================  ===================================================================================

    Subclasses, and their subclasses of `Statistics`, are stored by name in saved indexes. Import the module that
    defines them before loading an index.

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

    unions: ClassVar[type[Unions] | None] = None
    segments: ClassVar[type[Segments] | None] = None
    array_unions: ClassVar[type[ArrayUnions] | None] = None
    max_coordinate_features: ClassVar[int | None] = None
    has_feature_coordinates: ClassVar[bool] = False
    has_kernel: ClassVar[bool] = False
    uses_positions: ClassVar[bool] = False
    prior: Any  # of likelihoods that define `log_evidence`

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        register(cls)

    @abstractmethod
    def statistics(self, groups: Groups, *, reg_covar: float, order: int) -> S:
        """Sufficient statistics of each group, with moments up to `order` (2, or 4 for the TIC)."""

    @abstractmethod
    def pool(self, a: S, b: S) -> S:
        """Statistics of the union of each group in `a` with the group of the same row in `b`."""

    def unpool(self, a: S, b: S) -> S:
        """Statistics of each group in `a` without the vectors of the group of the same row in `b`: undoes `pool`."""
        raise TypeError(f"{type(self).__name__} defines no unpool, which leaving groups out of a model needs.")

    @abstractmethod
    def log_likelihood(self, statistics: S) -> np.ndarray:
        """Log-likelihood of each group at its maximum."""

    @abstractmethod
    def n_parameters(self, n_features: int) -> int:
        """Number of free parameters."""

    def tic_penalty(self, statistics: S) -> np.ndarray:
        """Trace of the score's covariance times the inverse information, tr(I J^-1), of each group."""
        raise TypeError(f"{type(self).__name__} defines no tic_penalty.")

    def log_evidence(self, statistics: S) -> np.ndarray:
        """Log marginal likelihood of each group under `self.prior`."""
        raise TypeError(f"{type(self).__name__} defines no log_evidence.")

    def learn_prior(self, statistics: S) -> object:
        """The prior for `log_evidence`, estimated from the groups of a corpus."""
        raise TypeError(f"{type(self).__name__} defines no learn_prior.")

    def pseudo_group(self, statistics: S, strength: float) -> S:
        """Statistics of one group of `strength` pseudo-vectors with the mean and variance of a corpus."""
        raise TypeError(f"{type(self).__name__} defines no pseudo_group.")

    def corpus_variances(self, statistics: S) -> np.ndarray:
        """Variance of each feature of a corpus, without `reg_covar`, which is added to it."""
        raise TypeError(f"{type(self).__name__} defines no corpus_variances.")

    def statistics_of_moments(self, n: np.ndarray, mean: np.ndarray, m2: np.ndarray, reg_covar: float) -> S:
        """Statistics from sizes, means and centred sums of squares; with `array_unions`, other arrays are accepted.

        If `uses_positions`, the squares are those about a line along each group. Three more arguments describe it: its
        slope, the mean of the places, and their centred sum of squares.
        """
        raise TypeError(f"{type(self).__name__} defines no statistics_of_moments.")

    def vector_log_likelihood(self, statistics: S, vectors: np.ndarray) -> np.ndarray:
        """Log density of each vector, expected over its noise, under the best model of each group in `statistics`.

        The shape is (n_groups, n_vectors), or (n_groups, n_vectors, n_features) if it is a sum over features.
        The weighted sum over a group's own vectors is the group's `log_likelihood`.
        """
        raise TypeError(f"{type(self).__name__} defines no vector_log_likelihood, which an explanation needs.")

    def for_pairs(self, statistics: S) -> S:
        """Statistics with what the fit of all pairs needs to know of each group; what they have already is kept."""
        return statistics

    def balance(self, statistics: S) -> S:
        """Statistics of the same groups with weights that sum to 1 in each; empty groups stay empty."""
        raise TypeError(f"{type(self).__name__} defines no balance.")

    def coordinates(self, statistics: S, corpus: S) -> tuple[np.ndarray, ...]:
        """Coordinates of location, of scale and, if there are any, of order, one row per group.

        In these coordinates a comparison is a squared distance. They are those of the Fisher metric at `corpus`, the
        statistics of one group with the corpus' mean and variance.
        """
        raise TypeError(f"{type(self).__name__} defines no coordinates.")

    def coordinate_shares(
        self, statistics: S, corpus: S, vectors: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Part of each vector of one group in its coordinates; the pseudo-vectors of a prior have the rest."""
        raise TypeError(f"{type(self).__name__} defines no coordinate_shares, which an explanation by pairs needs.")

    def places_of(self, groups: Groups) -> dict[str, np.ndarray]:
        """The keyword arguments that methods take beside the vectors of groups: their places, if these matter."""
        return {"positions": groups.row_positions} if self.uses_positions else {}

    def has_coordinates(self, n_features: int) -> bool:
        """Whether the class defines coordinates for this number of features."""
        most = self.max_coordinate_features
        return self.defines("coordinates") and (most is None or n_features <= most)

    def defines(self, method: str) -> bool:
        """Whether the class defines one of the optional methods."""
        return getattr(type(self), method) is not getattr(Likelihood, method)


@dataclass(frozen=True, eq=False)
class Fit:
    """A likelihood fitted to groups: the quantities that criteria use, computed on demand.

    All arrays have the same shape: ``(n_groups,)`` for single groups, ``(n_left, n_right)`` for the unions of all pairs
    of two collections.

    Parameters
    ----------
    likelihood : Likelihood
        The likelihood.
    statistics : Statistics, Unions or Segments
        Statistics of the groups.
    shape : tuple of int, default=None
        Shape of the results, with entries in row-major order; ``None`` keeps the shape of the statistics.

    Attributes
    ----------
    n : ndarray
        Total weight of each group.
    n_features, n_parameters : int
        Number of features, and of free parameters of the model.
    log_likelihood, tic_penalty, log_evidence : ndarray
        As the likelihood's methods of the same names return them.
    """

    likelihood: Likelihood
    statistics: Statistics | Unions | Segments | ArrayUnions
    shape: tuple[int, ...] | None = None

    @property
    def n(self) -> np.ndarray:
        return self._shaped(self.statistics.n)

    @property
    def n_features(self) -> int:
        return self.statistics.n_features

    @property
    def n_parameters(self) -> int:
        return self.likelihood.n_parameters(self.n_features)

    @lazy
    def log_likelihood(self) -> np.ndarray:
        return self._computed("log_likelihood")

    @lazy
    def tic_penalty(self) -> np.ndarray:
        return self._computed("tic_penalty")

    @lazy
    def log_evidence(self) -> np.ndarray:
        return self._computed("log_evidence")

    def _computed(self, quantity: str) -> np.ndarray:
        if isinstance(self.statistics, Unions):
            return self._shaped(self.statistics.compute(quantity))
        return self._shaped(getattr(self.likelihood, quantity)(self.statistics))

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values if self.shape is None else values.reshape(self.shape)


def fit_pairs(likelihood: Likelihood[S], left: S, right: S) -> Fit:
    """Fit the union of every left group with every right group by pooling each pair."""
    i, j = np.divmod(np.arange(len(left) * len(right)), len(right))
    return Fit(likelihood, likelihood.pool(left[i], right[j]), (len(left), len(right)))


def pooled_nbytes(left: Statistics, right: Statistics) -> int:
    """Bytes that pooling and fitting may take for each pair, temporary arrays included."""
    return 4 * (left.row_nbytes + right.row_nbytes)


class RangeError(ArithmeticError):
    """The numbers of some groups differ too widely for a fast formula; `Unions` then pools all pairs."""


class AllPairs(Weighted, Generic[S]):
    """Total weights of the union of every left group with every right group."""

    left: S
    right: S

    @property
    def n(self) -> np.ndarray:
        return self.left.n[:, None] + self.right.n[None, :]

    @property
    def n_features(self) -> int:
        return self.left.n_features


class Unions(AllPairs[S], ABC):
    """Statistics of the union of every left group with every right group, as matrices.

    A subclass computes the quantities that its likelihood's formulas use, faster than by pooling each pair.

    Attributes
    ----------
    compiled : tuple of str
        Compiled functions that it calls. Small matrices use them only if they are loaded already.
    """

    compiled: ClassVar[tuple[str, ...]] = ()

    def __init__(self, likelihood: Likelihood[S], left: S, right: S, dtype: np.dtype):
        self.likelihood, self.dtype = likelihood, dtype
        self.left = likelihood.for_pairs(left)
        self.right = self.left if right is left else likelihood.for_pairs(right)

    @classmethod
    def is_usable_for(cls, likelihood: Likelihood[S], left: S, right: S) -> bool:
        """Whether it supports these statistics."""
        return True

    @staticmethod
    @abstractmethod
    def pair_nbytes(left: S, right: S) -> int:
        """Bytes that it may take for each pair, temporary arrays included."""

    def imprecise(self, quantity: str) -> np.ndarray | None:
        """Mask of pairs for which a computed quantity has lost too many digits; None means no pairs."""
        return None

    def compute(self, quantity: str) -> np.ndarray:
        """A quantity by the likelihood's formula; by pooling, for the pairs where the formula is imprecise."""
        try:
            values = getattr(self.likelihood, quantity)(self)
            wrong = self.imprecise(quantity)
        except RangeError:
            values, wrong = np.empty(self.shape), np.ones(self.shape, dtype=bool)
        if wrong is None or not wrong.any():
            return values
        indices = np.argwhere(wrong)
        for batch in gen_batches(len(indices), count_within(self.left.row_nbytes + self.right.row_nbytes, REPAIRS)):
            i, j = indices[batch].T
            pooled = self.likelihood.pool(self.left[i], self.right[j])
            values[i, j] = getattr(self.likelihood, quantity)(pooled)
        return values

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.left), len(self.right)

    def weighted(self, values: np.ndarray, constant: float = 0.0, factor: float = 1.0) -> np.ndarray:
        """Values plus a constant, times a factor and the total weights; values may be overwritten."""
        if not self.compiled:
            return super().weighted(values, constant, factor)
        load_kernels().weighted_by_total(values, constant, self.left.n, self.right.n, factor)
        return values

    def of_total(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """A function of the total weights, evaluated once for each pair of distinct weights."""
        (a, i), (b, j) = (np.unique(side.n, return_inverse=True) for side in (self.left, self.right))
        if 4 * len(a) * len(b) > len(self.left) * len(self.right):
            return super().of_total(function)
        return function(a[:, None] + b)[np.ix_(i, j)]


class ArrayUnions(AllPairs[S]):
    """Statistics of the union of every left group with every right group, in arrays of any library.

    A subclass computes the quantities that its likelihood's formulas use, by functions of the array API alone.
    """

    def __init__(self, left: S, right: S):
        self.left, self.right, self.xp = left, right, namespace_of(left.mean)

    def between(self) -> np.ndarray:
        """Scatter between the two groups of each union, feature by feature."""
        square = self.left.mean[:, None, :] - self.right.mean[None, :, :]
        square *= square
        square *= (self.left.n[:, None] * self.right.n[None, :] / self.n)[:, :, None]
        return square

    def summed_logs(self, left: np.ndarray, right: np.ndarray, noise: float) -> np.ndarray:
        """Log variances of all unions, summed over features, from the scatters within the groups of both sides."""
        scatter = self.between()
        scatter += left[:, None, :]
        scatter += right[None, :, :]
        scatter /= self.n[:, :, None]
        scatter += noise
        return self.xp.sum(self.xp.log(scatter), axis=2)


class Segments(Weighted, Generic[S]):
    """Statistics of segments of a sequence: those that end with a row from `begin` to `end` - 1.

    Entry (i, j) of a matrix belongs to the segment from row `first` + i to row `begin` + j. Where that is no segment,
    because it would end before it begins, the entry has no meaning. A subclass computes the quantities that its
    likelihood's formulas use.

    Parameters
    ----------
    likelihood : Likelihood
        The likelihood.
    rows : Statistics
        Statistics of the rows of the sequence, one group each.
    start : Statistics
        One group of pseudo-vectors, which every segment contains; or one empty group.
    first, begin, end : int
        Rows of the sequence, as above.
    """

    def __init__(self, likelihood: Likelihood[S], rows: S, start: S, first: int, begin: int, end: int):
        self.likelihood, self.rows, self.start = likelihood, rows, start
        self.first, self.begin, self.end = first, begin, end

    @classmethod
    def is_usable_for(cls, likelihood: Likelihood[S], rows: S) -> bool:
        """Whether it supports these statistics."""
        return True

    @property
    def shape(self) -> tuple[int, int]:
        return self.end - self.first, self.end - self.begin

    @property
    def n_features(self) -> int:
        return self.rows.n_features

    @lazy
    def n(self) -> np.ndarray:
        totals = np.concatenate([[0.0], np.cumsum(self.rows.n[self.first : self.end])])
        n = totals[1 + self.begin - self.first :] - totals[:-1, None] + self.start.n
        return np.maximum(n, self.rows.n.min(), out=n)  # where there is no segment

    def of_total(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """A function of the total weights, evaluated once for each number of rows if all have the same weight."""
        (height, width), weight = self.shape, self.rows.n[0]
        if (self.rows.n != weight).any():
            return super().of_total(function)
        values = function(self.start.n + weight * np.arange(1, height + 1))
        sizes = self.begin - self.first + np.arange(width) - np.arange(height)[:, None]
        return values[np.maximum(sizes, 0)]

    def computed(self, kernel: str, rows: np.ndarray, *start: Any, fill: float = 0.0) -> np.ndarray:
        """The result of a compiled kernel for all segments, begun with weight, mean and scatter."""
        out = np.full(self.shape, fill)
        arguments = np.ascontiguousarray(rows), np.ascontiguousarray(self.rows.n), *start, self.first, self.begin
        getattr(load_segment_kernels(), kernel)(*arguments, out)
        return out
