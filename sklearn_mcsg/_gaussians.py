"""Gaussian likelihoods: diagonal, spherical and full covariance.

Every vector carries isotropic noise of variance `reg_covar`, so that variances are ``scatter / n + reg_covar`` and
fourth moments follow in closed form. Pseudo-vectors of a prior are normally distributed around the corpus mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln, multigammaln

from sklearn_mcsg._all_pairs import PAIR_NBYTES, DiagonalPairs, FullPairs, SphericalPairs, full_nbytes, product_nbytes
from sklearn_mcsg._likelihood import Fit, Likelihood, kept_parts, pseudo_parts
from sklearn_mcsg._statistics import (
    Part,
    Statistics,
    by_blocks,
    centred_sums,
    corpus_mean,
    mean_of,
    merge,
    padded,
    sum_over_parts,
)
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.priors import NormalGamma, NormalWishart, check_prior, learn_shape

_LOG_2PI = np.log(2 * np.pi)


def _representable(variance: np.ndarray, least: float = 1e-304) -> np.ndarray:
    """NaN in place of variances so small that they have lost their digits; 0 stays 0."""
    return np.where((variance > 0) & (variance < least), np.nan, variance)


@dataclass(frozen=True, eq=False)
class _Moments(Statistics):
    """Centred power sums of each feature; the third and fourth only when asked for."""

    m2: np.ndarray
    m3: np.ndarray | None
    m4: np.ndarray | None
    reg_covar: float

    @property
    def variance(self) -> np.ndarray:
        return _representable(self.m2 / self.n[:, None] + self.reg_covar)


class DiagonalGaussian(Likelihood):
    r"""Normal distribution with a variance of its own for each feature (``"diag"``).

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

    def __init__(self, prior: NormalGamma | None = None):
        self.prior = prior

    def statistics(self, groups: Groups, *, reg_covar: float, order: int) -> _Moments:
        check_prior(self.prior, NormalGamma, groups.n_features, scales=groups.n_features)
        n, mean, m2, *higher = centred_sums(groups, order)
        m3, m4 = higher or (None, None)
        return _Moments(n, mean, m2, m3, m4, reg_covar)

    def pool(self, a: _Moments, b: _Moments) -> _Moments:
        u = merge(a, b)
        square = u.delta**2
        m2 = a.m2 + b.m2 + u.between[:, None] * square
        if a.m3 is None or a.m4 is None:
            return _Moments(u.n, u.mean, m2, None, None, a.reg_covar)
        left, right, between = u.left[:, None], u.right[:, None], u.between[:, None]
        m3 = a.m3 + b.m3 + between * (left - right) * square * u.delta + 3 * u.delta * (left * b.m2 - right * a.m2)
        m4 = (
            a.m4
            + b.m4
            + between * (left**2 - left * right + right**2) * square**2
            + 6 * square * (left**2 * b.m2 + right**2 * a.m2)
            + 4 * u.delta * (left * b.m3 - right * a.m3)
        )
        return _Moments(u.n, u.mean, m2, m3, m4, a.reg_covar)

    def pooled(self, a: _Moments, b: _Moments, precision: np.dtype | None = None) -> Fit:
        return super().pooled(a, b) if precision is None else DiagonalPairs(self, a, b, precision)

    def pair_nbytes(self, a: _Moments, b: _Moments, precision: np.dtype | None = None) -> int:
        return super().pair_nbytes(a, b) if precision is None else PAIR_NBYTES

    def log_likelihood(self, statistics: _Moments) -> np.ndarray:
        return -0.5 * statistics.n * (np.log(statistics.variance) + _LOG_2PI + 1).sum(axis=1)

    def vector_log_likelihood(self, statistics: _Moments, vectors: np.ndarray) -> np.ndarray:
        variance = statistics.variance[:, None]
        square = np.square(vectors - statistics.mean[:, None]) + statistics.reg_covar
        return -0.5 * (_LOG_2PI + np.log(variance) + square / variance)

    def n_parameters(self, n_features: int) -> int:
        return 2 * n_features

    def tic_penalty(self, statistics: _Moments) -> np.ndarray:
        variance = _representable(statistics.variance, 1e-150)  # fourth moments are its square
        noise = statistics.reg_covar / variance
        kurtosis = statistics.m4 / statistics.n[:, None] / variance / variance + noise * (6 - 3 * noise)
        return statistics.n_features + 0.5 * (kurtosis - 1).sum(axis=1)

    def log_evidence(self, statistics: _Moments) -> np.ndarray:
        return _normal_gamma_evidence(self.prior, statistics, statistics.m2, features=1).sum(axis=1)

    def learn_prior(self, statistics: _Moments) -> NormalGamma:
        _, mean, deviation = corpus_mean(statistics)
        between = statistics.n @ deviation**2
        kappa, alpha, variance = learn_shape(statistics.n, statistics.m2, between, statistics.reg_covar)
        return NormalGamma(mean, kappa, alpha, (alpha - 1) * variance)

    def pseudo_group(self, statistics: _Moments, strength: float) -> _Moments:
        n, mean, deviation = corpus_mean(statistics)
        variance = (statistics.m2.sum(axis=0) + statistics.n @ deviation**2)[None] / n
        m3, m4 = (None, None) if statistics.m4 is None else (np.zeros_like(variance), 3 * strength * variance**2)
        return _Moments(np.array([strength]), mean[None], strength * variance, m3, m4, statistics.reg_covar)


def _normal_gamma_evidence(prior: Any, statistics: Any, scatter: np.ndarray, features: int) -> np.ndarray:
    """Log evidence of each group and scale, each scale shared by `features` features."""
    n = statistics.n[:, None]
    kappa = prior.kappa + n
    shift = (statistics.mean - prior.mean) ** 2
    if features > 1:
        shift = shift.sum(axis=1, keepdims=True)
    alpha = prior.alpha + 0.5 * features * n
    beta = prior.beta + 0.5 * (scatter + prior.kappa * n / kappa * shift)
    return (
        -0.5 * features * n * _LOG_2PI
        + 0.5 * features * np.log(prior.kappa / kappa)
        + gammaln(alpha)
        - gammaln(prior.alpha)
        + prior.alpha * np.log(prior.beta)
        - alpha * np.log(beta)
    )


@dataclass(frozen=True, eq=False)
class _Scatter(Statistics):
    """Scatter of all features together, and the vectors when fourth moments are needed."""

    scatter: np.ndarray
    parts: tuple[Part, ...]
    reg_covar: float

    @property
    def variance(self) -> np.ndarray:
        return _representable(self.scatter / (self.n * self.n_features) + self.reg_covar)


class SphericalGaussian(Likelihood):
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

    def __init__(self, prior: NormalGamma | None = None):
        self.prior = prior

    def statistics(self, groups: Groups, *, reg_covar: float, order: int) -> _Scatter:
        check_prior(self.prior, NormalGamma, groups.n_features, scales=1)
        n, mean, m2 = centred_sums(groups, 2)
        return _Scatter(n, mean, m2.sum(axis=1), kept_parts(groups, order), reg_covar)

    def pool(self, a: _Scatter, b: _Scatter) -> _Scatter:
        u = merge(a, b)
        scatter = a.scatter + b.scatter + u.between * np.square(u.delta).sum(axis=1)
        return _Scatter(u.n, u.mean, scatter, a.parts + b.parts, a.reg_covar)

    def pooled(self, a: _Scatter, b: _Scatter, precision: np.dtype | None = None) -> Fit:
        return super().pooled(a, b) if precision is None else SphericalPairs(self, a, b)

    def pair_nbytes(self, a: _Scatter, b: _Scatter, precision: np.dtype | None = None) -> int:
        return super().pair_nbytes(a, b) if precision is None else product_nbytes(a, b)

    def log_likelihood(self, statistics: _Scatter) -> np.ndarray:
        return -0.5 * statistics.n * statistics.n_features * (np.log(statistics.variance) + _LOG_2PI + 1)

    def vector_log_likelihood(self, statistics: _Scatter, vectors: np.ndarray) -> np.ndarray:
        d, variance = statistics.n_features, statistics.variance[:, None]
        square = np.square(vectors - statistics.mean[:, None]).sum(axis=2) + d * statistics.reg_covar
        return -0.5 * (d * (_LOG_2PI + np.log(variance)) + square / variance)

    def n_parameters(self, n_features: int) -> int:
        return n_features + 1

    def tic_penalty(self, statistics: _Scatter) -> np.ndarray:
        d = statistics.n_features

        def term(vectors: np.ndarray, rows: Groups, block: slice, spread: float | None) -> np.ndarray:
            variance = rows.spread(statistics.variance[block])
            square = np.square(vectors - rows.spread(statistics.mean[block])).sum(axis=1) / (d * variance)
            noise = (statistics.reg_covar + (spread or 0.0)) / variance
            return 0.5 * d * (square + noise - 1) ** 2 + noise**2 + 2 * noise * square

        return d + sum_over_parts(statistics.parts, term) / statistics.n

    def log_evidence(self, statistics: _Scatter) -> np.ndarray:
        scatter = statistics.scatter[:, None]
        return _normal_gamma_evidence(self.prior, statistics, scatter, statistics.n_features)[:, 0]

    def learn_prior(self, statistics: _Scatter) -> NormalGamma:
        _, mean, deviation = corpus_mean(statistics)
        between = statistics.n @ np.square(deviation).sum(axis=1, keepdims=True)
        kappa, alpha, variance = learn_shape(
            statistics.n, statistics.scatter[:, None], between, statistics.reg_covar, statistics.n_features
        )
        return NormalGamma(mean, kappa, alpha, (alpha - 1) * variance)

    def pseudo_group(self, statistics: _Scatter, strength: float) -> _Scatter:
        n, mean, deviation = corpus_mean(statistics)
        scatter = (statistics.scatter.sum() + statistics.n @ np.square(deviation).sum(axis=1)) / n
        parts = pseudo_parts(mean, strength, scatter / len(mean), statistics)
        return _Scatter(np.array([strength]), mean[None], strength * scatter[None], parts, statistics.reg_covar)


@dataclass(frozen=True, eq=False)
class _Factors(Statistics):
    """The scatter matrix of each group as F^T F, with as few rows F as its rank allows."""

    factors: tuple[Groups, ...]
    parts: tuple[Part, ...]
    reg_covar: float


class FullGaussian(Likelihood):
    r"""Normal distribution with a full covariance matrix (``"full"``).

    .. math::

        L = -\frac{n}{2} (d \ln 2\pi + \ln\det\Sigma + d), \quad \Sigma = S/n + \varepsilon I, \quad
        k = d + \frac{d(d+1)}{2}, \quad
        \mathrm{tr}(IJ^{-1}) = d + \frac12 \Big(\frac1n \sum_i \|\Sigma^{-1/2}(x_i - \mu)\|^4 - d\Big).

    Scatter is kept as rows F with F^T F = S, and ln det comes from their singular values: with fewer vectors than
    features no d x d matrix is ever built, and precision is that of the vectors, not of their squares.

    Parameters
    ----------
    prior : NormalWishart, default=None
        Prior for ``criterion="bayes"``; ``None`` learns it from the fitted corpus.

    Examples
    --------
    >>> from sklearn_mcsg import FullGaussian
    >>> FullGaussian().n_parameters(10)
    65
    """

    def __init__(self, prior: NormalWishart | None = None):
        self.prior = prior

    def statistics(self, groups: Groups, *, reg_covar: float, order: int) -> _Factors:
        check_prior(self.prior, NormalWishart, groups.n_features, scales=1)
        factors = []

        def block_means(block: Groups) -> tuple[np.ndarray, ...]:
            vectors = block.rows()
            n, mean = mean_of(block, vectors)
            root = np.ones(block.n_rows) if block.weights is None else np.sqrt(block.weights)
            rows = root[:, None] * (vectors - block.spread(mean))
            factors.append(_compress(Groups(rows, block.offsets), root / block.spread(np.sqrt(n))))
            return n, mean

        n, mean = by_blocks(groups, block_means)
        return _Factors(n, mean, (Groups.concatenate(factors),), kept_parts(groups, order), reg_covar)

    def pool(self, a: _Factors, b: _Factors) -> _Factors:
        u = merge(a, b)
        bridge = Groups(np.sqrt(u.between)[:, None] * u.delta, np.arange(len(u.n) + 1))
        return _Factors(u.n, u.mean, (*a.factors, *b.factors, bridge), a.parts + b.parts, a.reg_covar)

    def pooled(self, a: _Factors, b: _Factors, precision: np.dtype | None = None) -> Fit:
        return super().pooled(a, b) if a.parts or precision is None else FullPairs(self, a, b)

    def pair_nbytes(self, a: _Factors, b: _Factors, precision: np.dtype | None = None) -> int:
        return super().pair_nbytes(a, b) if a.parts or precision is None else full_nbytes(a, b)

    def _eigen(self, statistics: _Factors, vectors: bool = False) -> tuple[np.ndarray, Any]:
        """Eigenvalues of the covariance in the span of the factors, and that span's orthonormal basis.

        In the directions outside of it, if any, the eigenvalue is `reg_covar`.
        """
        factors, _ = padded(statistics.factors)
        factors /= np.sqrt(statistics.n)[:, None, None]
        if vectors:
            _, singular, basis = np.linalg.svd(factors, full_matrices=False)
        else:
            singular, basis = np.linalg.svd(factors, compute_uv=False), None
        rounding = np.finfo(float).eps * max(factors.shape[1:]) * singular.max(axis=1, initial=0)[:, None]
        return _representable(np.where(singular > rounding, singular, 0) ** 2 + statistics.reg_covar), basis

    def log_likelihood(self, statistics: _Factors) -> np.ndarray:
        d = statistics.n_features
        eigenvalues, _ = self._eigen(statistics)
        log_det = np.log(eigenvalues).sum(axis=1)
        if eigenvalues.shape[1] < d:
            log_det += (d - eigenvalues.shape[1]) * np.log(statistics.reg_covar)
        return -0.5 * statistics.n * (d * (_LOG_2PI + 1) + log_det)

    def vector_log_likelihood(self, statistics: _Factors, vectors: np.ndarray) -> np.ndarray:
        eigenvalues, basis = self._eigen(statistics, vectors=True)
        centred = vectors - statistics.mean[:, None]
        scores = centred @ basis.swapaxes(1, 2)
        square = ((np.square(scores) + statistics.reg_covar) / eigenvalues[:, None]).sum(axis=2)
        log_det = np.log(eigenvalues).sum(axis=1, keepdims=True)
        outside = statistics.n_features - eigenvalues.shape[1]
        if outside > 0:
            square += np.square(centred - scores @ basis).sum(axis=2) / statistics.reg_covar + outside
            log_det += outside * np.log(statistics.reg_covar)
        return -0.5 * (statistics.n_features * _LOG_2PI + log_det + square)

    def n_parameters(self, n_features: int) -> int:
        return n_features + n_features * (n_features + 1) // 2

    def tic_penalty(self, statistics: _Factors) -> np.ndarray:
        d = statistics.n_features
        eigenvalues, basis = self._eigen(statistics, vectors=True)
        outside = d - eigenvalues.shape[1]
        noise = statistics.reg_covar / eigenvalues
        trace, square_trace = noise.sum(axis=1) + outside, np.square(noise).sum(axis=1) + outside
        fourth = np.zeros(len(statistics))
        for part in statistics.parts:
            vectors, weights = padded([part.rows])
            # coordinates in the eigenbasis, in standard deviations
            scale = np.sqrt(eigenvalues)[:, None]
            scores = (vectors - statistics.mean[:, None]) @ basis.swapaxes(1, 2) / scale
            square = np.square(scores).sum(axis=2)
            cross = (np.square(scores) * noise[:, None]).sum(axis=2)
            total, total_square = trace, square_trace
            if part.noise is not None:
                spread = basis @ part.noise / scale.swapaxes(1, 2)
                inner = spread @ spread.swapaxes(1, 2)
                cross = cross + np.square(scores @ spread).sum(axis=2)
                total = total + np.trace(inner, axis1=1, axis2=2)
                total_square = (
                    square_trace
                    + np.square(inner).sum((1, 2))
                    + 2 * (np.diagonal(inner, axis1=1, axis2=2) * noise).sum(axis=1)
                )
            moments = (square + total[:, None]) ** 2 + 4 * cross + 2 * total_square[:, None]
            fourth += (weights * moments).sum(axis=1)
        return d + 0.5 * (fourth / statistics.n - d)

    def log_evidence(self, statistics: _Factors) -> np.ndarray:
        prior: Any = self.prior
        d, n = statistics.n_features, statistics.n
        root = np.linalg.cholesky(np.asarray(prior.scatter, dtype=np.float64))
        factors, _ = padded(statistics.factors)
        kappa, dof = prior.kappa + n, prior.dof + n
        bridge = np.sqrt(prior.kappa * n / kappa)[:, None] * (statistics.mean - prior.mean)
        rows = np.concatenate([factors, bridge[:, None]], axis=1)
        whitened = solve_triangular(root, rows.reshape(-1, d).T, lower=True).T.reshape(rows.shape)
        log_det_prior = 2 * np.log(np.diag(root)).sum()
        log_det = log_det_prior + np.log1p(np.linalg.svd(whitened, compute_uv=False) ** 2).sum(axis=1)
        return (
            -0.5 * n * d * np.log(np.pi)
            + 0.5 * d * np.log(prior.kappa / kappa)
            + multigammaln(0.5 * dof, d)
            - multigammaln(0.5 * prior.dof, d)
            + 0.5 * prior.dof * log_det_prior
            - 0.5 * dof * log_det
        )

    def learn_prior(self, statistics: _Factors) -> NormalWishart:
        d = statistics.n_features
        _, mean, deviation = corpus_mean(statistics)
        factors = statistics.factors[0]
        within, between = factors.sum(factors.rows() ** 2), statistics.n @ deviation**2
        kappa, alpha, variance = learn_shape(statistics.n, within, between, statistics.reg_covar)
        # the correlations within groups, shrunk as by d more observations of independent features
        scatter = factors.rows().T @ factors.rows()
        shrinkage = d / (statistics.n.sum() + d)
        spread = np.sqrt(variance / np.where(np.diag(scatter) > 0, np.diag(scatter), 1))
        covariance = (1 - shrinkage) * scatter * np.outer(spread, spread)
        np.fill_diagonal(covariance, variance)
        return NormalWishart(mean, kappa, d - 1 + 2 * alpha, 2 * (alpha - 1) * covariance)

    def pseudo_group(self, statistics: _Factors, strength: float) -> _Factors:
        n, mean, deviation = corpus_mean(statistics)
        rows = np.concatenate([statistics.factors[0].rows(), np.sqrt(statistics.n)[:, None] * deviation])
        root = np.linalg.qr(rows, mode="r") / np.sqrt(n)  # root.T @ root is the covariance
        factor = Groups(np.sqrt(strength) * root, [0, len(root)])
        parts = pseudo_parts(mean, strength, root.T, statistics)
        return _Factors(np.array([strength]), mean[None], (factor,), parts, statistics.reg_covar)


def _compress(factors: Groups, unit: np.ndarray) -> Groups:
    """Reduce the rows of each group to one less, and never more than features, with the same products.

    `unit` holds a unit vector for each group along which, for its rows are centred, they have no component. The
    reflection of that vector onto the first axis makes the first row 0 and changes the others as below; more rows than
    features become their triangular factor.
    """
    sizes, d = factors.sizes, factors.n_features
    kept = np.minimum(np.maximum(sizes - 1, 0), d)
    offsets = np.concatenate([[0], np.cumsum(kept)])
    rows = np.empty((offsets[-1], d))
    for size in np.unique(sizes[sizes > 1]):
        chosen = np.flatnonzero(sizes == size)
        block = factors[chosen].rows().reshape(-1, size, d)
        if size > d:
            block = np.asarray(np.linalg.qr(block, mode="r"))
        else:
            u = unit[factors.offsets[chosen][:, None] + np.arange(size)]
            block = block[:, 1:] - (u[:, 1:] / (1 + u[:, :1]))[..., None] * block[:, :1]
        targets = offsets[chosen][:, None] + np.arange(block.shape[1])
        rows[targets.ravel()] = block.reshape(-1, d)
    return Groups(rows, offsets)
