"""Normal distribution with a full covariance matrix: statistics, model, and all pairs by batches of factorisations.

For all pairs, matrices of up to 64 rows are factorised several at a time in compiled code, larger ones by LAPACK.
Scatter is kept as rows F with F^T F = S, and log determinants come from their singular values: with fewer vectors than
features no d x d matrix is ever built, and the precision is that of the vectors, not of their squares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from sklearn_mcsg._lazy import lazy
from sklearn_mcsg.groups import Groups, offsets_of
from sklearn_mcsg.groups.blocks import block_rows, blocks, per_vector, pieces
from sklearn_mcsg.likelihoods._base import Likelihood, Segments, Unions, load_kernels
from sklearn_mcsg.likelihoods._priors import LOG_2PI, NormalWishart, check_prior, learn_shape, representable
from sklearn_mcsg.likelihoods._statistics import (
    KeptVectors,
    Statistics,
    by_blocks,
    corpus_mean,
    kept_vectors,
    mean_of,
    merge,
    padded,
    pseudo_vectors,
    unmerge,
)

_EPS = np.finfo(np.float64).eps
_COMPILED_RANK = 64  # larger matrices leave the processor's cache when several are factorised together
_MAX_DOUBT = 1e-9  # relative error of log determinants


@dataclass(frozen=True, eq=False)
class FullFactors(Statistics):
    """The scatter matrix of each group as F^T F, with as few rows F as its rank allows."""

    factors: tuple[Groups, ...]
    reg_covar: float

    def eigen(self, vectors: bool = False) -> tuple[np.ndarray, Any]:
        """Eigenvalues of the covariance in the span of the factors, and an orthonormal basis of that span.

        In directions outside this span, the eigenvalue is `reg_covar`.
        """
        factors = padded(self.factors) / np.sqrt(self.n)[:, None, None]
        if vectors:
            _, singular, basis = np.linalg.svd(factors, full_matrices=False)
        else:
            singular, basis = np.linalg.svd(factors, compute_uv=False), None
        rounding = _EPS * max(factors.shape[1:]) * singular.max(axis=1, initial=0)[:, None]
        return representable(np.where(singular > rounding, singular, 0) ** 2 + self.reg_covar), basis

    @property
    def scatter(self) -> np.ndarray:
        """Scatter matrix of each group."""
        factors = padded(self.factors)
        return factors.swapaxes(1, 2) @ factors

    @property
    def covariance(self) -> np.ndarray:
        """Covariance matrix of each group."""
        return self.scatter / self.n[:, None, None] + self.reg_covar * np.eye(self.n_features)

    def consolidated(self) -> FullFactors:
        rows = np.asarray(np.linalg.qr(padded(self.factors), mode="r"))
        return replace(super().consolidated(), factors=(_equal_sized(rows),))

    @property
    def log_det(self) -> np.ndarray:
        """Log determinant of the covariance."""
        eigenvalues, _ = self.eigen()
        log_det, outside = np.log(eigenvalues).sum(axis=1), self.n_features - eigenvalues.shape[1]
        return log_det + outside * np.log(self.reg_covar) if outside > 0 else log_det

    def log_det_posterior(self, prior: NormalWishart) -> np.ndarray:
        """Log determinant of the posterior scatter minus that of the prior's scatter."""
        _, _, factors = prior.united(self.n, self.mean, padded(self.factors))
        return np.log1p(np.linalg.svd(factors, compute_uv=False) ** 2).sum(axis=1)


class FullUnions(Unions[FullFactors]):
    """Determinants of all unions from Gram matrices, assembled from matrix products, or from scatter matrices."""

    compiled = ("gram_log_dets", "weighted_by_total")

    @classmethod
    def is_usable_for(cls, likelihood: Likelihood[FullFactors], left: FullFactors, right: FullFactors) -> bool:
        return not left.keeps_vectors  # the TIC needs the vectors under each pooled covariance

    @staticmethod
    def pair_nbytes(left: FullFactors, right: FullFactors) -> int:
        p, q = (sum(int(f.sizes.max(initial=0)) for f in side.factors) + 1 for side in (left, right))
        rank = min(p + q, left.n_features)
        return 512 + (8 * p * q if rank <= _COMPILED_RANK else 32 * rank**2)  # products, or matrices and their factors

    @lazy
    def _log_dets(self) -> tuple[np.ndarray, np.ndarray]:
        """Log determinants of the scatters with their noise, and a mask of the imprecise ones."""
        left, right = ((s.n, s.mean, padded(s.factors)) for s in (self.left, self.right))
        return _log_det_of_unions(left, right, self.n * self.left.reg_covar)

    @lazy
    def _posterior_log_dets(self) -> tuple[np.ndarray, np.ndarray]:
        """The same for the posterior scatters, in coordinates where the prior's scatter is the identity."""
        prior = self.likelihood.prior
        left = prior.united(self.left.n, self.left.mean, padded(self.left.factors))
        mean = prior.whitened(self.right.mean - prior.mean)
        right = self.right.n, mean, prior.whitened(padded(self.right.factors))
        return _log_det_of_unions(left, right, np.ones(self.shape))

    def imprecise(self, quantity: str) -> np.ndarray:
        _, imprecise = self._posterior_log_dets if quantity == "log_evidence" else self._log_dets
        return imprecise

    @property
    def log_det(self) -> np.ndarray:
        return self._log_dets[0] - self.n_features * np.log(self.n)

    def log_det_posterior(self, prior: NormalWishart) -> np.ndarray:
        return self._posterior_log_dets[0]


class FullSegments(Segments[FullFactors]):
    """Log determinants of the scatter matrices of segments, factorised in compiled code."""

    @property
    def log_det(self) -> np.ndarray:
        start, (factors,) = self.start, padded(self.start.factors)
        arguments = start.n[0], start.mean[0], factors.T @ factors, self.rows.reg_covar
        log_det = self.computed("segment_log_dets", self.rows.mean, *arguments)
        return log_det - self.n_features * np.log(self.n)

    def log_det_posterior(self, prior: NormalWishart) -> np.ndarray:
        """Log determinants of the posterior scatters minus that of the prior's scatter."""
        (n,), (mean,), (factors,) = prior.united(self.start.n, self.start.mean, padded(self.start.factors))
        rows, scatter = prior.whitened(self.rows.mean - prior.mean), factors.T @ factors + np.eye(len(mean))
        return self.computed("segment_log_dets", rows, n, mean, scatter, 0.0)


class FullGaussian(Likelihood[FullFactors]):
    r"""Normal distribution with a full covariance matrix (``"full"``).

    .. math::

        L = -\frac{n}{2} (d \ln 2\pi + \ln\det\Sigma + d), \quad \Sigma = S/n + \varepsilon I, \quad
        k = d + \frac{d(d+1)}{2}, \quad
        \mathrm{tr}(IJ^{-1}) = d + \frac12 \Big(\frac1n \sum_i \|\Sigma^{-1/2}(x_i - \mu)\|^4 - d\Big).

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

    unions = FullUnions
    segments = FullSegments
    max_coordinate_features = 64  # which have 2144 coordinates; their number grows with the square

    _parameter_constraints: ClassVar[dict] = {"prior": [NormalWishart, None]}

    def __init__(self, prior: NormalWishart | None = None):
        self.prior = prior

    def statistics(self, groups: Groups, *, reg_covar: float, order: int) -> FullFactors:
        check_prior(self.prior, NormalWishart, groups.n_features, scales=1)
        n, mean = by_blocks(groups, lambda block: mean_of(block, block.rows()))
        factors = [_factors(groups[block], n[block], mean[block]) for block in blocks(groups)]
        return FullFactors(n, mean, (Groups.concatenate(factors),), reg_covar, kept=kept_vectors(groups, order))

    def pool(self, a: FullFactors, b: FullFactors) -> FullFactors:
        u = merge(a, b)
        bridge = Groups(np.sqrt(u.between)[:, None] * u.delta, np.arange(len(u.n) + 1))
        return FullFactors(u.n, u.mean, (*a.factors, *b.factors, bridge), a.reg_covar, kept=u.kept)

    def unpool(self, a: FullFactors, b: FullFactors) -> FullFactors:
        u = unmerge(a, b)
        scatter = a.scatter - b.scatter + (u.between[:, None] * u.delta)[..., None] * u.delta[:, None]
        values, vectors = np.linalg.eigh(np.where(u.n[:, None, None] > 0, scatter, 0))
        rounding = 4 * _EPS * np.trace(a.scatter, axis1=1, axis2=2)[:, None]
        rows = np.sqrt(np.where(values > rounding, values, 0))[..., None] * vectors.swapaxes(1, 2)
        return FullFactors(u.n, u.mean, (_equal_sized(rows),), a.reg_covar, kept=u.kept)

    def log_likelihood(self, statistics: FullFactors | FullUnions | FullSegments) -> np.ndarray:
        return statistics.weighted(statistics.log_det, statistics.n_features * (LOG_2PI + 1), -0.5)

    def vector_log_likelihood(self, statistics: FullFactors, vectors: np.ndarray) -> np.ndarray:
        eigenvalues, basis = statistics.eigen(vectors=True)
        centred = vectors - statistics.mean[:, None]
        scores = centred @ basis.swapaxes(1, 2)
        square = ((np.square(scores) + statistics.reg_covar) / eigenvalues[:, None]).sum(axis=2)
        log_det = np.log(eigenvalues).sum(axis=1, keepdims=True)
        outside = statistics.n_features - eigenvalues.shape[1]
        if outside > 0:
            square += np.square(centred - scores @ basis).sum(axis=2) / statistics.reg_covar + outside
            log_det += outside * np.log(statistics.reg_covar)
        return -0.5 * (statistics.n_features * LOG_2PI + log_det + square)

    def n_parameters(self, n_features: int) -> int:
        return n_features + n_features * (n_features + 1) // 2

    def tic_penalty(self, statistics: FullFactors) -> np.ndarray:
        """Computed from the fourth power of the noisy Mahalanobis length; its mean over the noise has a closed form."""
        d = statistics.n_features
        eigenvalues, basis = statistics.eigen(vectors=True)
        outside = d - eigenvalues.shape[1]
        noise = statistics.reg_covar / eigenvalues
        trace, square_trace = noise.sum(axis=1) + outside, np.square(noise).sum(axis=1) + outside
        fourth = np.zeros(len(statistics))
        for pseudo_root, i, vectors, weights in _of_equal_size(statistics.kept):
            # coordinates in the eigenbasis, in standard deviations
            scale = np.sqrt(eigenvalues[i])[:, None]
            scores = (vectors - statistics.mean[i][:, None]) @ basis[i].swapaxes(1, 2) / scale
            square = np.square(scores).sum(axis=2)
            cross = (np.square(scores) * noise[i][:, None]).sum(axis=2)
            total, total_square = trace[i], square_trace[i]
            if pseudo_root is not None:
                root = basis[i] @ pseudo_root / scale.swapaxes(1, 2)
                inner = root @ root.swapaxes(1, 2)
                cross = cross + np.square(scores @ root).sum(axis=2)
                total = total + np.trace(inner, axis1=1, axis2=2)
                mixed = (np.diagonal(inner, axis1=1, axis2=2) * noise[i]).sum(axis=1)
                total_square = total_square + np.square(inner).sum((1, 2)) + 2 * mixed
            moments = (square + total[:, None]) ** 2 + 4 * cross + 2 * total_square[:, None]
            fourth[i] += (weights * moments).sum(axis=1)
        return d + 0.5 * (fourth / statistics.n - d)

    def log_evidence(self, statistics: FullFactors | FullUnions | FullSegments) -> np.ndarray:
        return self.prior.log_evidence(statistics, statistics.log_det_posterior(self.prior))

    def coordinates(self, statistics: FullFactors, corpus: FullFactors) -> tuple[np.ndarray, np.ndarray]:
        root = _inverse_root(corpus.covariance[0])
        logarithm = _log_matrix(root @ statistics.covariance @ root)
        return (statistics.mean - corpus.mean) @ root, _upper_triangle(logarithm)

    def coordinate_shares(
        self, statistics: FullFactors, corpus: FullFactors, vectors: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of the logarithm L of a covariance C, a vector with the share C_i of C has (C_i C^-1 L + L C^-1 C_i) / 2."""
        share = weights[:, None] / statistics.n
        root = _inverse_root(corpus.covariance[0])
        covariance = root @ statistics.covariance[0] @ root
        quotient = np.linalg.solve(covariance, _log_matrix(covariance[None])[0])
        centred = (vectors - statistics.mean) @ root
        noise = statistics.reg_covar * root @ root
        shares = share[..., None] * (centred[:, :, None] * centred[:, None] + noise) @ quotient
        shares = 0.5 * (shares + shares.swapaxes(1, 2))
        return share * ((vectors - corpus.mean) @ root), _upper_triangle(shares)

    def learn_prior(self, statistics: FullFactors) -> NormalWishart:
        d = statistics.n_features
        _, mean, deviation = corpus_mean(statistics)
        factors = statistics.factors[0]
        within, between = factors.sum(factors.rows() ** 2), statistics.n @ deviation**2
        kappa, alpha, variance = learn_shape(statistics.n, within, between, statistics.reg_covar)
        # the correlations within groups, shrunk as if by d more observations of independent features
        scatter = factors.rows().T @ factors.rows()
        shrinkage = d / (statistics.n.sum() + d)
        scale = np.sqrt(variance / np.where(np.diag(scatter) > 0, np.diag(scatter), 1))
        covariance = (1 - shrinkage) * scatter * np.outer(scale, scale)
        np.fill_diagonal(covariance, variance)
        return NormalWishart(mean, kappa, d - 1 + 2 * alpha, 2 * (alpha - 1) * covariance)

    def corpus_variances(self, statistics: FullFactors) -> np.ndarray:
        n, _, deviation = corpus_mean(statistics)
        return (np.square(statistics.factors[0].rows()).sum(axis=0) + statistics.n @ deviation**2) / n

    def pseudo_group(self, statistics: FullFactors, strength: float) -> FullFactors:
        n, mean, deviation = corpus_mean(statistics)
        rows = np.concatenate([statistics.factors[0].rows(), np.sqrt(statistics.n)[:, None] * deviation])
        root = np.linalg.qr(rows, mode="r") / np.sqrt(n)  # root.T @ root is the covariance
        factor = Groups(np.sqrt(strength) * root, [0, len(root)])
        kept = pseudo_vectors(mean, strength, root.T, statistics)
        return FullFactors(np.array([strength]), mean[None], (factor,), statistics.reg_covar, kept=kept)


def _equal_sized(rows: np.ndarray) -> Groups:
    """Groups from an (n_groups, n_rows, n_features) array."""
    n_groups, size, width = rows.shape
    return Groups(rows.reshape(-1, width), np.arange(n_groups + 1) * size)


def _inverse_root(matrix: np.ndarray) -> np.ndarray:
    """Inverse of the symmetric square root of a matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors / np.sqrt(values) @ vectors.T


def _log_matrix(matrices: np.ndarray) -> np.ndarray:
    """Logarithms of symmetric matrices."""
    values, vectors = np.linalg.eigh(matrices)
    return vectors * np.log(values)[:, None] @ vectors.swapaxes(1, 2)


def _upper_triangle(matrices: np.ndarray) -> np.ndarray:
    """Entries of symmetric matrices as vectors of half their squared norm: diagonal over the root of 2, and above."""
    i, j = np.triu_indices(matrices.shape[1])
    return matrices[:, i, j] * np.where(i == j, np.sqrt(0.5), 1.0)


def _of_equal_size(collections: tuple[KeptVectors, ...]) -> Iterator[tuple[Any, np.ndarray, np.ndarray, np.ndarray]]:
    """Kept vectors in pieces: their noise, indices of groups of equal size, (n, size, d) vectors, (n, size) weights."""
    for kept in collections:
        for owners, piece in pieces(kept.groups, block_rows(kept.groups)):
            for size in np.unique(piece.sizes[piece.sizes > 0]):
                chosen = np.flatnonzero(piece.sizes == size)
                some = piece[chosen]
                shape = len(chosen), int(size)
                vectors, weights = some.rows().reshape(*shape, -1), some.row_weights.reshape(shape)
                yield kept.noise, owners.start + chosen, vectors, weights


def _factors(groups: Groups, n: np.ndarray, mean: np.ndarray) -> Groups:
    """Rows F of each group with F^T F its scatter, from a block of groups or a single large one."""

    def centred(some: Groups, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        root = np.sqrt(some.row_weights)
        return root, root[:, None] * (some.rows() - per_vector(mean, some))

    if groups.n_rows <= block_rows(groups):
        root, rows = centred(groups, mean)
        return _compress(Groups(rows, groups.offsets), root / per_vector(np.sqrt(n), groups))
    triangle = np.empty((0, groups.n_features))
    for _, piece in pieces(groups, block_rows(groups)):
        triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, centred(piece, mean)[1]]), mode="r"))
    return Groups(triangle, [0, len(triangle)])


def _compress(factors: Groups, unit: np.ndarray) -> Groups:
    """Reduce the rows of each group by one, and to at most `n_features`, without changing F^T F.

    The rows of a group are centred, so they have no component along its part of `unit`, a unit vector. Reflecting that
    vector onto the first axis makes the first row 0 and changes the others as below. If there are more rows than
    features, their triangular factor replaces them.
    """
    sizes, d = factors.sizes, factors.n_features
    offsets = offsets_of(np.minimum(np.maximum(sizes - 1, 0), d))
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


def _log_det_of_unions(left: tuple, right: tuple, ridge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log determinants of ridge I + F^T F, with F the rows of both groups and of the bridge between their means.

    Also returns a mask of the pairs for which squaring has lost too much precision, for example because both groups
    hold the same vectors, far above the ridge. Groups whose variances along one axis agree may be equal. They are
    compared more precisely, because the distance of equal groups is 0.
    """
    d, rank = left[2].shape[2], left[2].shape[1] + right[2].shape[1] + 1
    log_det, doubt = (_by_lapack if min(d, rank) > _COMPILED_RANK else _by_lanes)(left, right, ridge)
    x, y = (np.square(f @ np.cos(np.arange(d))).sum(axis=1) / n for n, _, f in (left, right))
    equal = np.abs(x[:, None] - y) <= _MAX_DOUBT * (x[:, None] + y)
    limit = np.where(equal, 1e-3 * _MAX_DOUBT, _MAX_DOUBT)
    return log_det, ~(doubt <= limit * np.maximum(np.abs(log_det), d))


def _by_lanes(left: tuple, right: tuple, ridge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log determinants of small matrices in compiled code, and estimates of their rounding errors."""
    sizes = [(f.any(axis=2) * np.arange(1, f.shape[1] + 1)).max(axis=1, initial=0) for _, _, f in (left, right)]
    order = np.argsort(sizes[1], kind="stable")
    (n, mean, f), (m, mean_right, g) = left, (value[order] for value in right)
    p, q, ridge = sizes[0], sizes[1][order], ridge[:, order]
    d, centre = mean.shape[1], 0.5 * (mean.mean(axis=0) + mean_right.mean(axis=0))
    kernels = load_kernels()
    lanes = kernels.LANES
    most = np.repeat(np.maximum.reduceat(q, np.arange(0, len(q), lanes)), lanes)[: len(q)]
    outside = np.where(p[:, None] + most < d, d - (p[:, None] + q + 1), 0)
    log_det, doubt = np.empty(ridge.shape), np.empty(ridge.shape)
    if p.min() + most.min() < d:
        a, b = _with_means(f, p, mean - centre), _with_means(g, q, mean_right - centre)
        kernels.gram_log_dets(n, p, *a[1:], m, q, *b[1:], b[0] @ a[0].T, ridge, most, d, log_det, doubt)
    if p.max() + most.max() >= d:
        scatters = f.swapaxes(1, 2) @ f, g.swapaxes(1, 2) @ g
        kernels.scatter_log_dets(n, p, mean, scatters[0], m, most, mean_right, scatters[1], ridge, log_det, doubt)
    log_det += outside * np.log(ridge, where=outside > 0, out=np.zeros_like(ridge))
    back = np.argsort(order)
    return log_det[:, back], doubt[:, back]


def _with_means(factors: np.ndarray, sizes: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of all groups, the mean below those of each; the index of each group's first row; products of its rows."""
    rows = np.concatenate([factors, np.zeros_like(mean)[:, None]], axis=1)
    rows[np.arange(len(rows)), sizes] = mean
    filled = np.arange(rows.shape[1]) <= sizes[:, None]
    return rows[filled], offsets_of(sizes + 1)[:-1], rows @ rows.swapaxes(1, 2)


def _by_lapack(left: tuple, right: tuple, ridge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log determinants of large matrices by batches of factorisations, and estimates of their rounding errors.

    To first order, a rounding error E of the matrix M changes the result by tr(M^-1 E). The trace of M^-1 is about its
    rank times the sum of the inverse pivots, or less.
    """
    (n, mean, f), (m, mean_right, g) = left, right
    bridge = np.sqrt(n[:, None] * m / (n[:, None] + m))[..., None] * (mean_right - mean[:, None])
    (a, p, d), (b, q) = f.shape, g.shape[:2]
    if p + q + 1 <= d:
        matrix = np.empty((a, b, p + q + 1, p + q + 1))
        matrix[:, :, :p, :p] = (f @ f.swapaxes(1, 2))[:, None]
        matrix[:, :, p:-1, p:-1] = g @ g.swapaxes(1, 2)
        matrix[:, :, p:-1, :p] = (g.reshape(-1, d) @ f.reshape(-1, d).T).reshape(b, q, a, p).transpose(2, 0, 1, 3)
        matrix[:, :, -1, :p] = bridge @ f.swapaxes(1, 2)
        matrix[:, :, -1, p:-1] = np.einsum("abd,bqd->abq", bridge, g, optimize=True)
        matrix[:, :, -1, -1] = np.square(bridge).sum(axis=2)
    else:
        matrix = (f.swapaxes(1, 2) @ f)[:, None] + g.swapaxes(1, 2) @ g + bridge[..., None] * bridge[..., None, :]
    rank = matrix.shape[2]
    diagonal = np.einsum("abii->abi", matrix)
    diagonal += ridge[..., None]
    rounding = _EPS * diagonal.sum(axis=2)
    try:
        pivots = np.square(np.einsum("abii->abi", np.linalg.cholesky(matrix)))
    except np.linalg.LinAlgError:
        return np.zeros((a, b)), np.full((a, b), np.inf)
    log_det = np.log(pivots).sum(axis=2) + (d - rank) * np.log(ridge if rank < d else 1.0)
    return log_det, rank * rounding * (1 / pivots).sum(axis=2)
