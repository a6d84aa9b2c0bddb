"""Normal distribution with a variance for each feature: statistics, model, and all pairs by compiled kernels.

Every vector carries isotropic noise of variance `reg_covar`, so that variances are ``scatter / n + reg_covar`` and
fourth moments follow in closed form. Pseudo-vectors of a prior are normally distributed around the corpus mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from sklearn_mcsg.groups import Groups
from sklearn_mcsg.likelihoods._base import ArrayUnions, Likelihood, RangeError, Segments, Unions, load_kernels
from sklearn_mcsg.likelihoods._priors import LOG_2PI, NormalGamma, check_prior, learn_shape, representable
from sklearn_mcsg.likelihoods._statistics import Statistics, centred_sums, corpus_mean, merge_moments, unmerge_moments


@dataclass(frozen=True, eq=False)
class DiagonalMoments(Statistics):
    """Centred power sums of each feature; the third and fourth only if needed."""

    m2: np.ndarray
    m3: np.ndarray | None = None
    m4: np.ndarray | None = None
    reg_covar: float = field(kw_only=True)

    @property
    def moments(self) -> tuple[np.ndarray, ...]:
        """Weight, mean and power sums, as far as they are kept."""
        higher = () if self.m3 is None or self.m4 is None else (self.m3, self.m4)
        return self.n, self.mean, self.m2, *higher

    @property
    def variance(self) -> np.ndarray:
        return representable(self.m2 / self.n[:, None] + self.reg_covar)

    @property
    def log_variance(self) -> np.ndarray:
        """Log variances, summed over features."""
        return np.log(self.variance).sum(axis=1)

    @property
    def kurtosis(self) -> np.ndarray:
        """Kurtoses of the vectors with their noise, summed over features."""
        variance = representable(self.variance, 1e-150)  # its square is used
        noise = self.reg_covar / variance
        fourth: Any = self.m4
        return (fourth / self.n[:, None] / variance / variance + noise * (6 - 3 * noise)).sum(axis=1)

    def log_rate(self, prior: NormalGamma) -> np.ndarray:
        """Logarithms of the posterior rates, summed over features."""
        _, _, doubled = prior.united(self.n, self.mean, self.m2)
        return np.log(0.5 * doubled).sum(axis=1)


class DiagonalUnions(Unions[DiagonalMoments]):
    """Sums over features for all unions, by compiled kernels, or by pooling if the range is too wide for products."""

    compiled = ("log_products_float64", "weighted_by_total")
    _kurtosis: np.ndarray | None = None

    @staticmethod
    def pair_nbytes(left: DiagonalMoments, right: DiagonalMoments) -> int:
        return 32  # small, so that blocks are large and preparing both sides costs little

    @property
    def log_variance(self) -> np.ndarray:
        """Log variances, summed over features: a new array each time, which the caller may overwrite."""
        sides = self._noisy_sides()
        if not sides.has_fourth:
            return sides.log_products(times=self.n_features)
        log_variance, self._kurtosis = sides.log_products_and_kurtosis(times=self.n_features)
        return log_variance

    @property
    def kurtosis(self) -> np.ndarray:
        """Kurtoses, summed over features; they are computed together with the log variances."""
        if self._kurtosis is None:
            _, self._kurtosis = self._noisy_sides().log_products_and_kurtosis(times=self.n_features)
        return self._kurtosis

    def log_rate(self, prior: NormalGamma) -> np.ndarray:
        left = prior.united(self.left.n, self.left.mean, self.left.m2)
        sides = ScaledSides.of(left, (self.right.n, self.right.mean, self.right.m2), self.dtype)
        return sides.log_products() - self.n_features * np.log(2)

    def _noisy_sides(self) -> ScaledSides:
        def noisy(s: Any) -> tuple[np.ndarray, ...]:
            n, eps = s.n[:, None], s.reg_covar
            # third moments by 2/3 and fourth moments over 6, as the kernel takes them
            fourth = () if s.m4 is None else (s.m3 * (2 / 3), s.m4 / 6 + eps * s.m2 + 0.5 * eps**2 * n)
            return s.n, s.mean, s.m2 + n * eps, *fourth

        return ScaledSides.of(noisy(self.left), noisy(self.right), self.dtype)


class DiagonalArrayUnions(ArrayUnions[DiagonalMoments]):
    """Log variances of all unions, summed over features."""

    @property
    def log_variance(self) -> np.ndarray:
        return self.summed_logs(self.left.m2, self.right.m2, self.left.reg_covar)


class DiagonalSegments(Segments[DiagonalMoments]):
    """Log scatters of segments, summed over features by a compiled kernel."""

    @classmethod
    def is_usable_for(cls, likelihood: Likelihood[DiagonalMoments], rows: DiagonalMoments) -> bool:
        return rows.m4 is None

    @property
    def log_variance(self) -> np.ndarray:
        """Log variances, summed over features."""
        (n,), (mean,), (m2,) = self.start.n, self.start.mean, self.start.m2
        sums = self.computed("segment_log_scatters", self.rows.mean, n, mean, m2, self.rows.reg_covar)
        return sums - self.n_features * np.log(self.n)

    def log_rate(self, prior: NormalGamma) -> np.ndarray:
        """Logarithms of the posterior rates, summed over features."""
        (n,), (mean,), (m2,) = prior.united(self.start.n, self.start.mean, self.start.m2)
        sums = self.computed("segment_log_scatters", self.rows.mean, n, mean, m2, 0.0)
        return sums - self.n_features * np.log(2)


class DiagonalGaussian(Likelihood[DiagonalMoments]):
    r"""Normal distribution with a separate variance for each feature (``"diag"``).

    .. math::

        L = -\frac{n}{2} \sum_k (\ln 2\pi\sigma_k^2 + 1), \quad \sigma_k^2 = M_{2,k}/n + \varepsilon, \quad
        k = 2d, \quad \mathrm{tr}(IJ^{-1}) = d + \frac12 \sum_k (\mathrm{kurtosis}_k - 1).

    Parameters
    ----------
    prior : NormalGamma, default=None
        Prior for ``criterion="bayes"``; ``None`` learns it from the fitted corpus.

    Examples
    --------
    >>> from sklearn_mcsg import DiagonalGaussian
    >>> DiagonalGaussian().n_parameters(300)
    600
    """

    unions = DiagonalUnions
    segments = DiagonalSegments
    array_unions = DiagonalArrayUnions
    has_kernel = True
    has_feature_coordinates = True

    _parameter_constraints: ClassVar[dict] = {"prior": [NormalGamma, None]}

    def __init__(self, prior: NormalGamma | None = None):
        self.prior = prior

    def statistics(self, groups: Groups, *, reg_covar: float, order: int) -> DiagonalMoments:
        check_prior(self.prior, NormalGamma, groups.n_features, scales=groups.n_features)
        return DiagonalMoments(*centred_sums(groups, order), reg_covar=reg_covar)

    def statistics_of_moments(
        self, n: np.ndarray, mean: np.ndarray, m2: np.ndarray, reg_covar: float
    ) -> DiagonalMoments:
        return DiagonalMoments(n, mean, m2, reg_covar=reg_covar)

    def pool(self, a: DiagonalMoments, b: DiagonalMoments) -> DiagonalMoments:
        return DiagonalMoments(*merge_moments(a.moments, b.moments), reg_covar=a.reg_covar)

    def unpool(self, a: DiagonalMoments, b: DiagonalMoments) -> DiagonalMoments:
        return DiagonalMoments(*unmerge_moments(a.moments, b.moments), reg_covar=a.reg_covar)

    def log_likelihood(self, statistics: Any) -> np.ndarray:
        return statistics.weighted(statistics.log_variance, statistics.n_features * (LOG_2PI + 1), -0.5)

    def vector_log_likelihood(self, statistics: DiagonalMoments, vectors: np.ndarray) -> np.ndarray:
        variance = statistics.variance[:, None]
        square = np.square(vectors - statistics.mean[:, None]) + statistics.reg_covar
        return -0.5 * (LOG_2PI + np.log(variance) + square / variance)

    def n_parameters(self, n_features: int) -> int:
        return 2 * n_features

    def tic_penalty(self, statistics: DiagonalMoments | DiagonalUnions) -> np.ndarray:
        return 0.5 * (statistics.kurtosis + statistics.n_features)

    def log_evidence(self, statistics: DiagonalMoments | DiagonalUnions | DiagonalSegments) -> np.ndarray:
        return self.prior.log_evidence(statistics, statistics.log_rate(self.prior), scales=statistics.n_features)

    def balance(self, statistics: DiagonalMoments) -> DiagonalMoments:
        n = statistics.n[:, None]
        m2 = np.divide(statistics.m2, n, out=np.zeros_like(statistics.m2), where=n > 0)
        return replace(statistics, n=np.sign(statistics.n), m2=m2)

    def coordinates(self, statistics: DiagonalMoments, corpus: DiagonalMoments) -> tuple[np.ndarray, np.ndarray]:
        location = (statistics.mean - corpus.mean) / np.sqrt(corpus.variance)
        return location, np.log(statistics.variance / corpus.variance) / np.sqrt(2)

    def coordinate_shares(
        self, statistics: DiagonalMoments, corpus: DiagonalMoments, vectors: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        share = weights[:, None] / statistics.n
        square = np.square(vectors - statistics.mean) + statistics.reg_covar
        _, scale = self.coordinates(statistics, corpus)
        return share * (vectors - corpus.mean) / np.sqrt(corpus.variance), share * square / statistics.variance * scale

    def learn_prior(self, statistics: DiagonalMoments) -> NormalGamma:
        _, mean, deviation = corpus_mean(statistics)
        between = statistics.n @ deviation**2
        kappa, alpha, variance = learn_shape(statistics.n, statistics.m2, between, statistics.reg_covar)
        return NormalGamma(mean, kappa, alpha, (alpha - 1) * variance)

    def corpus_variances(self, statistics: DiagonalMoments) -> np.ndarray:
        n, _, deviation = corpus_mean(statistics)
        return (statistics.m2.sum(axis=0) + statistics.n @ deviation**2) / n

    def pseudo_group(self, statistics: DiagonalMoments, strength: float) -> DiagonalMoments:
        mean, variance = corpus_mean(statistics)[1], self.corpus_variances(statistics)[None]
        higher = () if statistics.m4 is None else (np.zeros_like(variance), 3 * strength * variance**2)
        moments = np.array([strength]), mean[None], strength * variance, *higher
        return DiagonalMoments(*moments, reg_covar=statistics.reg_covar)


@dataclass(frozen=True, eq=False)
class FeatureScale:
    """How features are scaled and padded for the kernels that sum log scatters over them.

    A kernel multiplies `step` scatters before it extracts the exponent. For feature k, all pooled scatters lie between
    `low` (the two smallest scatters) and `high` (the two largest, and the farthest means at the largest weight). Each
    feature is scaled by a power of two that moves the geometric mean of the two to 1, so scatters lie within
    2^(+-bits) and a product of `step` of them within 2^(+-step bits), which must not leave the exponent's range
    2^(+-room). Two more bits allow for the rounding of the scale and for the running product, which is in [1, 2).

    Attributes
    ----------
    exponents : ndarray of shape (n_features,)
        Powers of two that means are multiplied by; scatters are multiplied by their squares.
    centre : ndarray of shape (n_features,) or float
        What is subtracted from means.
    step : int
        Number of features whose scatters are multiplied before the exponent is extracted.
    dtype : dtype
        Precision of the kernel.
    """

    exponents: np.ndarray
    centre: Any
    step: int
    dtype: np.dtype

    @classmethod
    def of(
        cls,
        low: np.ndarray,
        high: np.ndarray,
        first: np.ndarray,
        last: np.ndarray,
        product: float,
        dtype: np.dtype,
        has_fourth: bool = False,
    ) -> FeatureScale:
        """The scale for scatters from `low` to `high`; raise `RangeError` if they differ too widely for products.

        `first` and `last` are the least and the largest means, `product` is that of the largest weights.
        """
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            middle = 0.25 * np.log2(low) + 0.25 * np.log2(high)
            bits = (0.5 * np.log2(high / low)).max() + 2
        if has_fourth or bits > 20 or product > 2.0**126:  # too wide a range for single precision
            dtype = np.dtype(np.float64)
        room = 250 if has_fourth else np.finfo(dtype).maxexp - 4  # less for fourth moments: they multiply squares
        if not 2 * bits <= room:
            raise RangeError
        # 16 features at a time, unless 8 at a time need less padding
        step = 2 * int(min(16 if -len(low) % 16 == -len(low) % 8 else 8, room / bits) // 2)
        return cls(-np.round(middle), 0.5 * (first + last) if dtype == np.float32 else 0.0, step, dtype)

    @property
    def unscaled(self) -> float:
        """What the scale adds to each sum of log scatters, with the opposite sign."""
        return -2 * np.log(2) * self.exponents.sum()

    def padded(self, values: np.ndarray, power: int, rows: int, transposed: bool) -> np.ndarray:
        """Numbers of groups in the unit of a power of means, in the form that the kernels take.

        The left side gets more rows, the right side is transposed. Padding multiplies products by 1 and adds 0 to sums.
        """
        n_groups, d = values.shape
        shape = n_groups + rows, d + -d % self.step
        array = np.zeros(shape[::-1] if transposed else shape, self.dtype)
        view = array.T if transposed else array
        view[:, d:] = 1.0 if power == 2 and not transposed else 0.0
        view[n_groups:, :d] = 1
        own = view[:n_groups, :d]
        single, double = 2.0**self.exponents, 4.0**self.exponents
        factor, *others = {1: (single,), 2: (double,), 3: (single, double), 4: (double, double)}[power]
        np.multiply(values, factor, out=own, casting="same_kind")
        for further in others:
            own *= further
        return array


@dataclass(frozen=True, eq=False)
class ScaledSides:
    """Moments of two collections of groups, scaled and padded for the kernels that sum log scatters over features.

    Attributes
    ----------
    left, right : list of ndarray
        Weights, means, scatters and, if given, higher moments; the right side is transposed.
    n_left : int
        Number of left groups, without padding.
    scale : FeatureScale
        The scale of the features.
    """

    left: list[np.ndarray]
    right: list[np.ndarray]
    n_left: int
    scale: FeatureScale

    @classmethod
    def of(cls, left: tuple, right: tuple, dtype: np.dtype) -> ScaledSides:
        """Scale both sides; raise `RangeError` if their scatters differ too widely for products.

        Both sides are (weights, means, scatters[, third moments by 2/3, fourth moments over 6]).
        """
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            product = left[0].max() * right[0].max()
            weight = product / (left[0].max() + right[0].max())
            first = np.minimum(left[1].min(axis=0), right[1].min(axis=0))
            last = np.maximum(left[1].max(axis=0), right[1].max(axis=0))
            low = left[2].min(axis=0) + right[2].min(axis=0)
            high = left[2].max(axis=0) + right[2].max(axis=0) + weight * (last - first) ** 2
        scale = FeatureScale.of(low, high, first, last, product, dtype, has_fourth=len(left) > 3)

        def padded(side: tuple, transposed: bool) -> list[np.ndarray]:
            n, mean, *moments = side
            rows = 0 if transposed else -len(n) % load_kernels().ROWS
            arrays = (
                scale.padded(m, power, rows, transposed) for power, m in enumerate((mean - scale.centre, *moments), 1)
            )
            return [np.concatenate([n, np.ones(rows)]).astype(scale.dtype), *arrays]

        return cls(padded(left, False), padded(right, True), len(left[0]), scale)

    @property
    def has_fourth(self) -> bool:
        """Whether fourth moments are given."""
        return len(self.left) > 3

    def log_products(self, times: int = 0) -> np.ndarray:
        """Sums of the log scatters of all unions over the features, minus `times` the log total weight.

        If `times` is the number of features, they are log variances.
        """
        (log_products,) = self._computed(f"log_products_{self.scale.dtype.name}", times, 1)
        return log_products

    def log_products_and_kurtosis(self, times: int) -> list[np.ndarray]:
        """The same, and the kurtoses summed over the features."""
        return self._computed("log_products_and_kurtosis", times, 2)

    def _computed(self, kernel: str, times: int, n_results: int) -> list[np.ndarray]:
        results = [np.empty((len(self.left[0]), len(self.right[0]))) for _ in range(n_results)]
        scale = self.scale
        getattr(load_kernels(), kernel)(*self.left, *self.right, scale.step, times, scale.unscaled, *results)
        return [result[: self.n_left] for result in results]
