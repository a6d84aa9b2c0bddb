"""Normal distribution with one variance for all features: statistics, model, and all pairs by matrix products.

All pairs take one matrix product for the distances of the means. The TIC needs the projections of one side's vectors
on the other side's means: one more matrix product, by blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import gen_batches

from sklearn_mcsg._lazy import lazy
from sklearn_mcsg._memory import REPAIRS, count_within
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.blocks import per_vector
from sklearn_mcsg.likelihoods._base import ArrayUnions, Likelihood, Segments, Unions, load_kernels
from sklearn_mcsg.likelihoods._priors import LOG_2PI, NormalGamma, check_prior, learn_shape, representable
from sklearn_mcsg.likelihoods._statistics import (
    Statistics,
    centred_sums,
    corpus_mean,
    kept_vectors,
    merge,
    outer_squares,
    products_with_means,
    pseudo_vectors,
    sum_over_vectors,
    unmerge,
)

_LOST_DIGITS = 1e11 * np.finfo(np.float64).eps  # beyond it, squares that cancel leave fewer than 11 digits
_MAX_EXPONENT = 70  # decimal exponent of variances beyond which their fourth powers leave double precision


@dataclass(frozen=True, eq=False)
class SphericalScatter(Statistics):
    """Scatter of all features together, and the vectors when fourth moments are needed."""

    scatter: np.ndarray
    reg_covar: float

    @property
    def variance(self) -> np.ndarray:
        return representable(self.scatter / (self.n * self.n_features) + self.reg_covar)

    @property
    def log_variance(self) -> np.ndarray:
        return np.log(self.variance)

    def log_rate(self, prior: NormalGamma) -> np.ndarray:
        """Logarithm of the posterior rate."""
        _, _, doubled = prior.united(self.n, self.mean, self.scatter[:, None], self.n_features)
        return np.log(0.5 * doubled[:, 0])

    def moments(self) -> Iterator[tuple[Any, ...]]:
        """Weight, sums of q = |x - mean|^2 / (d variance) and of q^2, and noise / variance, of all kept vectors."""
        variance = self.variance

        def term(vectors: np.ndarray, piece: Groups, owners: slice) -> np.ndarray:
            square = np.square(vectors - per_vector(self.mean[owners], piece)).sum(axis=1)
            square /= per_vector(self.n_features * variance[owners], piece)
            return np.column_stack([square, square**2])

        for kept in self.kept:
            second, fourth = sum_over_vectors(kept.groups, term).T
            yield kept.groups.totals, second, fourth, (self.reg_covar + (kept.noise or 0.0)) / variance


class SphericalUnions(Unions[SphericalScatter]):
    """Variances of all unions from one matrix product, and moments of vectors around their means from another."""

    compiled = ("pooled_variance", "weighted_by_total")

    @staticmethod
    def pair_nbytes(left: SphericalScatter, right: SphericalScatter) -> int:
        return 128  # a few passes over the block, after a matrix product

    @lazy
    def _pooled(self) -> tuple[np.ndarray, np.ndarray, Any]:
        return self._pool()

    def _pool(self) -> tuple[np.ndarray, np.ndarray, Any]:
        noise = self.n_features * self.left.reg_covar
        left, right = ((x.n, x.mean, x.scatter + x.n * noise) for x in (self.left, self.right))
        return _pooled_variance(left, right, keep=self.left.keeps_vectors)

    @property
    def log_variance(self) -> np.ndarray:
        """Log variances: a new array each time, which the caller may overwrite."""
        if self.left.keeps_vectors:  # the TIC needs the variances too
            return np.log(self._pooled[0])
        variance, _, _ = self._pool()
        return np.log(variance, out=variance)

    def log_rate(self, prior: NormalGamma) -> np.ndarray:
        d = self.n_features
        n, mean, doubled = prior.united(self.left.n, self.left.mean, self.left.scatter[:, None], d)
        variance, *_ = _pooled_variance((n, mean, doubled[:, 0]), (self.right.n, self.right.mean, self.right.scatter))
        return np.log(0.5 * d * (n[:, None] + self.right.n) * variance)

    def moments(self) -> Iterator[tuple[Any, ...]]:
        variance, _, distances = self._pooled
        inverse = 1 / (variance * self.n_features)
        left = _moments_about_unions(self.left, self.right, distances)
        right = left if self.right is self.left else _moments_about_unions(self.right, self.left, distances.T)
        none = np.zeros((3, 1, 1))
        for noise in {**left, **right}:
            weight, second, fourth = left.get(noise, none) + right.get(noise, none).swapaxes(1, 2)
            second *= inverse
            fourth *= inverse
            fourth *= inverse
            yield weight, second, fourth, (self.left.reg_covar + (noise or 0.0)) / variance

    def imprecise(self, quantity: str) -> np.ndarray | None:
        if quantity != "tic_penalty":
            return None
        variance, cancelled, _ = self._pooled
        return cancelled | (np.abs(np.log10(variance * self.n_features)) > _MAX_EXPONENT)


class SphericalArrayUnions(ArrayUnions[SphericalScatter]):
    """Log variances of all unions."""

    @property
    def log_variance(self) -> np.ndarray:
        scatter = self.xp.sum(self.between(), axis=2) + self.left.scatter[:, None] + self.right.scatter[None, :]
        return self.xp.log(scatter / (self.n * self.n_features) + self.left.reg_covar)


class SphericalSegments(Segments[SphericalScatter]):
    """Scatters of segments, by a compiled kernel."""

    @property
    def scatter(self) -> np.ndarray:
        (n,), (mean,), (scatter,) = self.start.n, self.start.mean, self.start.scatter
        return self.computed("segment_scatters", self.rows.mean, n, mean, scatter)

    @property
    def log_variance(self) -> np.ndarray:
        return np.log(representable(self.scatter / (self.n * self.n_features) + self.rows.reg_covar))

    def log_rate(self, prior: NormalGamma) -> np.ndarray:
        """Logarithms of the posterior rates."""
        start = self.start.n, self.start.mean, self.start.scatter[:, None]
        (n,), (mean,), ((doubled,),) = prior.united(*start, self.n_features)
        return np.log(0.5 * self.computed("segment_scatters", self.rows.mean, n, mean, doubled))


class SphericalGaussian(Likelihood[SphericalScatter]):
    r"""Normal distribution with one variance for all features (``"spherical"``).

    .. math::

        L = -\frac{nd}{2} (\ln 2\pi\sigma^2 + 1), \quad \sigma^2 = \sum_k M_{2,k}/(nd) + \varepsilon, \quad
        k = d + 1, \quad \mathrm{tr}(IJ^{-1}) = d + \frac{\mathrm{Var}(\|x - \mu\|^2)}{2 d \sigma^4}.

    Parameters
    ----------
    prior : NormalGamma, default=None
        Prior for ``criterion="bayes"``; ``None`` learns it from the fitted corpus.

    Examples
    --------
    >>> from sklearn_mcsg import SphericalGaussian
    >>> SphericalGaussian().n_parameters(300)
    301
    """

    unions = SphericalUnions
    segments = SphericalSegments
    array_unions = SphericalArrayUnions
    has_kernel = True

    _parameter_constraints: ClassVar[dict] = {"prior": [NormalGamma, None]}

    def __init__(self, prior: NormalGamma | None = None):
        self.prior = prior

    def statistics(self, groups: Groups, *, reg_covar: float, order: int) -> SphericalScatter:
        check_prior(self.prior, NormalGamma, groups.n_features, scales=1)
        n, mean, m2 = centred_sums(groups, 2)
        return SphericalScatter(n, mean, m2.sum(axis=1), reg_covar, kept=kept_vectors(groups, order))

    def statistics_of_moments(
        self, n: np.ndarray, mean: np.ndarray, m2: np.ndarray, reg_covar: float
    ) -> SphericalScatter:
        return SphericalScatter(n, mean, m2.sum(axis=1), reg_covar)

    def pool(self, a: SphericalScatter, b: SphericalScatter) -> SphericalScatter:
        u = merge(a, b)
        scatter = a.scatter + b.scatter + u.between * np.square(u.delta).sum(axis=1)
        return SphericalScatter(u.n, u.mean, scatter, a.reg_covar, kept=u.kept)

    def unpool(self, a: SphericalScatter, b: SphericalScatter) -> SphericalScatter:
        u = unmerge(a, b)
        scatter = u.remainder(a.scatter - b.scatter + u.between * np.square(u.delta).sum(axis=1), a.scatter)
        return SphericalScatter(u.n, u.mean, scatter, a.reg_covar, kept=u.kept)

    def for_pairs(self, statistics: SphericalScatter) -> SphericalScatter:
        """For each vector: its deviation from the group's mean along that mean, and the square of the deviation."""
        if all(kept.values is not None for kept in statistics.kept):
            return statistics
        centre = statistics.mean.mean(axis=0)
        own = statistics.mean - centre

        def values(vectors: np.ndarray, piece: Groups, owners: slice) -> list[np.ndarray]:
            y = vectors - per_vector(statistics.mean[owners], piece)
            return [(y * per_vector(own[owners], piece)).sum(axis=1), np.square(y).sum(axis=1)]

        return replace(statistics, kept=tuple(kept.with_values(values, 2, centre) for kept in statistics.kept))

    def log_likelihood(self, statistics: SphericalScatter | SphericalUnions | SphericalSegments) -> np.ndarray:
        return statistics.weighted(statistics.log_variance, LOG_2PI + 1, -0.5 * statistics.n_features)

    def vector_log_likelihood(self, statistics: SphericalScatter, vectors: np.ndarray) -> np.ndarray:
        d, variance = statistics.n_features, statistics.variance[:, None]
        square = np.square(vectors - statistics.mean[:, None]).sum(axis=2) + d * statistics.reg_covar
        return -0.5 * (d * (LOG_2PI + np.log(variance)) + square / variance)

    def n_parameters(self, n_features: int) -> int:
        return n_features + 1

    def tic_penalty(self, statistics: SphericalScatter | SphericalUnions) -> np.ndarray:
        """Computed from the noisy squared distances, whose mean square is (q + noise)^2 + 2/d (noise^2 + 2 noise q)."""
        d, n = statistics.n_features, statistics.n
        squares, cross = -n, 0.0
        for weight, second, fourth, noise in statistics.moments():
            mixed = noise * (2 * second + weight * noise)
            squares = squares + fourth + mixed
            cross = cross + mixed
        return d + (0.5 * d * squares + cross) / n

    def log_evidence(self, statistics: SphericalScatter | SphericalUnions | SphericalSegments) -> np.ndarray:
        return self.prior.log_evidence(statistics, statistics.log_rate(self.prior), features=statistics.n_features)

    def balance(self, statistics: SphericalScatter) -> SphericalScatter:
        n = statistics.n
        scatter = np.divide(statistics.scatter, n, out=np.zeros_like(n), where=n > 0)
        return replace(statistics, n=np.sign(n), scatter=scatter)

    def coordinates(self, statistics: SphericalScatter, corpus: SphericalScatter) -> tuple[np.ndarray, np.ndarray]:
        location = (statistics.mean - corpus.mean) / np.sqrt(corpus.variance)[:, None]
        scale = np.sqrt(statistics.n_features / 2) * np.log(statistics.variance / corpus.variance)
        return location, scale[:, None]

    def coordinate_shares(
        self, statistics: SphericalScatter, corpus: SphericalScatter, vectors: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        share = weights[:, None] / statistics.n
        square = (np.square(vectors - statistics.mean) + statistics.reg_covar).mean(axis=1, keepdims=True)
        _, scale = self.coordinates(statistics, corpus)
        return share * (vectors - corpus.mean) / np.sqrt(corpus.variance), share * square / statistics.variance * scale

    def learn_prior(self, statistics: SphericalScatter) -> NormalGamma:
        _, mean, deviation = corpus_mean(statistics)
        between = statistics.n @ np.square(deviation).sum(axis=1, keepdims=True)
        kappa, alpha, variance = learn_shape(
            statistics.n, statistics.scatter[:, None], between, statistics.reg_covar, statistics.n_features
        )
        return NormalGamma(mean, kappa, alpha, (alpha - 1) * variance)

    def corpus_variances(self, statistics: SphericalScatter) -> np.ndarray:
        n, mean, deviation = corpus_mean(statistics)
        scatter = statistics.scatter.sum() + statistics.n @ np.square(deviation).sum(axis=1)
        return np.full(len(mean), scatter / n / len(mean))

    def pseudo_group(self, statistics: SphericalScatter, strength: float) -> SphericalScatter:
        mean, variances = corpus_mean(statistics)[1], self.corpus_variances(statistics)
        kept = pseudo_vectors(mean, strength, variances[0], statistics)
        scatter = strength * variances.sum(keepdims=True)
        return SphericalScatter(np.array([strength]), mean[None], scatter, statistics.reg_covar, kept=kept)


def _pooled_variance(left: tuple, right: tuple, keep: bool = False) -> tuple[np.ndarray, np.ndarray, Any]:
    """Variances of all unions, a mask of the pairs whose means are so close that squares cancel, squared distances.

    |x - y|^2 = |x|^2 + |y|^2 - 2 x.y takes one matrix product; where that cancels, it is computed from x - y.
    """
    (n, mean, s), (m, mean_right, t) = left, right
    d = mean.shape[1]
    centre = 0.5 * (mean.mean(axis=0) + mean_right.mean(axis=0))
    x, y = mean - centre, mean_right - centre
    p, q = np.square(x).sum(axis=1), np.square(y).sum(axis=1)
    variance = outer_squares(x, p, y, q, -2.0)
    distances = variance.copy() if keep else None
    load_kernels().pooled_variance(variance, n, s, m, t, d)
    rounding = _LOST_DIGITS * np.sqrt(d)
    if rounding * (p.max() + q.max()) * max(n.max(), m.max()) <= s.min() + t.min():
        return variance, np.zeros((1, 1), dtype=bool), distances
    total = n[:, None] + m
    weight = n[:, None] * m / total
    cancelled = rounding * weight * (p[:, None] + q) > variance * total * d
    indices = np.argwhere(cancelled)
    for batch in gen_batches(len(indices), count_within(8 * d, REPAIRS)) if len(indices) else ():
        i, j = indices[batch].T
        between = weight[i, j] * np.square(mean[i] - mean_right[j]).sum(axis=1)
        variance[i, j] = (s[i] + t[j] + between) / (total[i, j] * d)
    return variance, cancelled, distances


def _moments_about_unions(
    near: SphericalScatter, far: SphericalScatter, distances: np.ndarray
) -> dict[Any, np.ndarray]:
    """Sums of 1, |x - mean|^2 and |x - mean|^4 over the vectors x of each near group, for each union's mean.

    They are separate for vectors with different noise. `distances` are those of the means, squared.
    """

    def deviations(piece: Groups, owners: slice, _: np.ndarray) -> np.ndarray:
        return piece.rows() - per_vector(near.mean[owners], piece)

    sums: dict[Any, np.ndarray] = {}
    for kept in near.kept:
        projected = np.zeros((3, len(near), len(far)))
        for owners, piece, numbers, products in products_with_means(kept, far.mean - kept.centre, deviations):
            load_kernels().add_moments(products, *numbers.T, piece.row_weights, piece.offsets, projected[:, owners])
        squares = kept.values.rows()[:, 1]
        totals = np.column_stack([kept.groups.totals, kept.groups.sum(np.column_stack([squares, squares**2]))])
        total = sums.setdefault(kept.noise, np.zeros((3, len(near), len(far))))
        load_kernels().add_moments_about_unions(projected, distances, near.n, far.n, totals, total)
    return sums
