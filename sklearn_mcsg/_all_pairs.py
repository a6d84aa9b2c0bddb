"""All pairs of two collections at once, for each likelihood: fast ways to the same numbers as pooling pair by pair.

Each class is a `Fit` to the union of every group on the left with every group on the right, as matrices.

* Diagonal: the compiled kernels of `_kernels`.
* Full: Gram matrices from matrix products, factored in batches.
* Spherical and von Mises-Fisher: one matrix product, then a function of one number a pair. Their TIC needs the
  projections of one side's vectors on the other side's means: one matrix product more, by blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.interpolate import CubicHermiteSpline, CubicSpline
from scipy.linalg import solve_triangular
from scipy.special import gammaln, multigammaln
from sklearn.utils import gen_batches

from sklearn_mcsg import _special
from sklearn_mcsg._likelihood import Fit, Likelihood, lazy
from sklearn_mcsg._statistics import padded
from sklearn_mcsg.groups import Groups

_LOG_2PI = np.log(2 * np.pi)
_EPS = np.finfo(np.float64).eps
_NODES = 1024.0  # of the tables, a unit
_PROJECTIONS = 2**19  # of vectors on means at a time
PAIR_NBYTES = 32  # blocks large enough to forget the preparation of both sides


class Pairs(Fit):
    """The unions of all pairs, as matrices of one row per left and one column per right group."""

    def __init__(self, likelihood: Likelihood, left: Any, right: Any):
        self.likelihood, self.left, self.right = likelihood, left, right

    @property
    def n(self) -> np.ndarray:
        return self.left.n[:, None] + self.right.n

    @property
    def n_parameters(self) -> int:
        return self.likelihood.n_parameters(self.left.n_features)

    def repair(self, values: np.ndarray, wrong: np.ndarray, quantity: str) -> np.ndarray:
        """Compute a quantity again, by pooling, for the pairs where the fast way has lost its precision."""
        indices = np.argwhere(wrong)
        step = max(1, 2**22 // (self.left.row_nbytes + self.right.row_nbytes))
        for batch in gen_batches(len(indices), step) if len(indices) else ():
            i, j = indices[batch].T
            values[i, j] = getattr(Fit(self.likelihood, self.likelihood.pool(self.left[i], self.right[j])), quantity)
        return values


def product_nbytes(left: Any, right: Any) -> int:
    """Bytes a pair for a matrix product and a few passes over the block, more of them for the TIC."""
    return 256 if left.parts else 128


def _sum_over_vectors(function: Callable, rows: Groups, near: Any, far: Any) -> np.ndarray:
    """Two sums over the vectors of each near group, for each far group, from projections of a bounded size."""
    sums = np.zeros((2, len(near), len(far)))
    for owners, piece in rows.pieces(max(1, _PROJECTIONS // len(far))):
        sums[:, owners] += function(piece, near[owners], far, owners)
    return sums


def _of_total(function: Any, n: np.ndarray, m: np.ndarray) -> np.ndarray:
    """A function of the total weights of all pairs, evaluated once for each pair of distinct weights."""
    (a, i), (b, j) = (np.unique(weights, return_inverse=True) for weights in (n, m))
    if 4 * len(a) * len(b) > len(n) * len(m):
        return function(n[:, None] + m)
    return function(a[:, None] + b)[np.ix_(i, j)]


def _with_prior(prior: Any, statistics: Any, scatter: np.ndarray, features: int = 1) -> tuple[np.ndarray, ...]:
    """Weights, means and scatters of groups united with a Normal-Gamma prior's own pseudo-vectors."""
    n = statistics.n[:, None]
    total = prior.kappa + n
    shift = statistics.mean - prior.mean
    mean = prior.mean + n / total * shift
    square = shift**2 if features == 1 else np.square(shift).sum(axis=1, keepdims=True)
    return total[:, 0], mean, 2 * np.asarray(prior.beta) + scatter + prior.kappa * n / total * square


def _normal_gamma(fit: Pairs, prior: Any, log_beta: np.ndarray, scales: int, features: int) -> np.ndarray:
    """Log evidence from the summed logarithms of the posterior rates."""

    def by_weight(n: np.ndarray) -> np.ndarray:
        alpha = prior.alpha + 0.5 * features * n
        log_ratio = 0.5 * features * np.log(prior.kappa / (prior.kappa + n)) + gammaln(alpha) - gammaln(prior.alpha)
        return scales * (log_ratio - 0.5 * features * n * _LOG_2PI)

    rates = np.broadcast_to(np.log(prior.beta), scales).sum()
    alpha = prior.alpha + 0.5 * features * fit.n
    return _of_total(by_weight, fit.left.n, fit.right.n) + prior.alpha * rates - alpha * log_beta


class DiagonalPairs(Pairs):
    """Compiled sums over features in a given precision; pair by pair where the range is too wide for products."""

    def __init__(self, likelihood: Likelihood, left: Any, right: Any, precision: np.dtype):
        super().__init__(likelihood, left, right)
        self.precision = precision

    @lazy
    def _sums(self) -> tuple[np.ndarray, ...]:
        """Log variances and, where fourth moments are kept, kurtoses: summed over features, noise included."""

        def noisy(s: Any) -> tuple[np.ndarray, ...]:
            n, eps = s.n[:, None], s.reg_covar
            fourth = () if s.m4 is None else (s.m3, s.m4 + 6 * eps * s.m2 + 3 * eps**2 * n)
            return s.n, s.mean, s.m2 + n * eps, *fourth

        return _sum_over_features(noisy(self.left), noisy(self.right), self.precision, self.left.n_features)

    @lazy
    def log_likelihood(self) -> np.ndarray:
        if not self._sums:
            return self._one_by_one("log_likelihood")
        from sklearn_mcsg import _kernels

        sums, unscaled, *_ = self._sums
        constant = self.left.n_features * (_LOG_2PI + 1) - unscaled
        _kernels.weighted_by_total(sums, constant, self.left.n, self.right.n, -0.5)
        return sums

    @lazy
    def tic_penalty(self) -> np.ndarray:
        if not self._sums:
            return self._one_by_one("tic_penalty")
        return 0.5 * (self._sums[2] + self.left.n_features)

    @lazy
    def log_evidence(self) -> np.ndarray:
        prior: Any = self.likelihood.prior
        left, right = _with_prior(prior, self.left, self.left.m2), (self.right.n, self.right.mean, self.right.m2)
        sums = _sum_over_features(left, right, self.precision)
        if not sums:
            return self._one_by_one("log_evidence")
        d = self.left.n_features
        return _normal_gamma(self, prior, sums[0] - (sums[1] + d * np.log(2)), scales=d, features=1)

    def _one_by_one(self, quantity: str) -> np.ndarray:
        shape = len(self.left), len(self.right)
        return self.repair(np.empty(shape), np.ones(shape, dtype=bool), quantity)


def _sum_over_features(left: tuple, right: tuple, precision: np.dtype, times: int = 0) -> tuple[Any, ...]:
    """Hand (weights, means, scatters and, if any, third and fourth moments) to a kernel.

    Each feature is scaled by a power of two so that its pooled scatters lie around 1. Returns the log scatters, what
    that scaling has added to them, and the kurtoses; nothing when the scatters spread too widely even so. Log scatters
    are less `times` the log total weight: with `times` the number of features, they are log variances.
    """
    from sklearn_mcsg import _kernels  # loads numba

    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        weight = left[0].max() * right[0].max() / (left[0].max() + right[0].max())
        ends = [
            np.minimum(left[1].min(axis=0), right[1].min(axis=0)),
            np.maximum(left[1].max(axis=0), right[1].max(axis=0)),
        ]
        low = left[2].min(axis=0) + right[2].min(axis=0)
        high = left[2].max(axis=0) + right[2].max(axis=0) + weight * (ends[1] - ends[0]) ** 2
        middle, bits = 0.25 * np.log2(low) + 0.25 * np.log2(high), (0.5 * np.log2(high / low)).max() + 2
    fourth = len(left) > 3
    if fourth or bits > 20:  # more than single precision can hold beside each other
        precision = np.dtype(np.float64)
    room = 250 if fourth else np.finfo(precision).maxexp - 4  # fourth moments are multiplied by squares
    centre = 0.5 * (ends[0] + ends[1]) if precision == np.float32 else 0.0
    if not 2 * bits <= room:
        return ()
    step = 2 * int(min(16 if -len(low) % 16 == -len(low) % 8 else 8, room / bits) // 2)
    scale = -np.round(middle)
    prepared = partial(_prepared, scale=scale, centre=centre, step=step, precision=precision)
    count = len(left[0])
    arguments: Any = *prepared(left, 1, transposed=False), *prepared(right, 0, transposed=True), step, times
    out = np.empty((len(arguments[0]), len(right[0])))
    unscaled = 2 * np.log(2) * scale.sum()
    if not fourth:
        _kernels.log_products[precision](*arguments, out)
        return out[:count], unscaled
    kurtosis = np.empty_like(out)
    _kernels.log_products_and_kurtosis(*arguments, out, kurtosis)
    return out[:count], unscaled, kurtosis[:count]


def _prepared(
    side: tuple, filler: float, transposed: bool, scale: np.ndarray, centre: Any, step: int, precision: np.dtype
) -> list[np.ndarray]:
    """Scaled and padded arrays: padding multiplies by 1 and adds nothing."""
    from sklearn_mcsg import _kernels  # loads numba

    n, mean, *moments = side
    factors = [2.0**scale, 4.0**scale]  # of means and scatters
    rows = 0 if transposed else -len(n) % _kernels.ROWS
    powers = [(mean - centre, factors[:1]), (moments[0], factors[1:])]
    powers += list(zip(moments[1:], (factors, factors[1:] * 2), strict=False))
    arrays = [np.concatenate([n, np.ones(rows)]).astype(precision)]
    for order, (power, multipliers) in enumerate(powers):
        shape = len(n) + rows, len(scale) + -len(scale) % step
        array = np.zeros(shape[::-1] if transposed else shape, precision)
        view = array.T if transposed else array
        view[:, len(scale) :] = filler if order == 1 else 0
        view[len(n) :, : len(scale)] = 1
        np.multiply(power, multipliers[0], out=view[: len(n), : len(scale)], casting="same_kind")
        for multiplier in multipliers[1:]:
            view[: len(n), : len(scale)] *= multiplier
        arrays.append(array)
    return arrays


class SphericalPairs(Pairs):
    """One matrix product for the distances of the means, and one more for the projections of vectors on them."""

    @lazy
    def log_likelihood(self) -> np.ndarray:
        from sklearn_mcsg import _kernels  # loads numba

        values = np.log(self._variance, out=None if self.left.parts else self._variance)
        _kernels.weighted_by_total(values, _LOG_2PI + 1, self.left.n, self.right.n, -0.5 * self.left.n_features)
        return values

    @lazy
    def _variance(self) -> np.ndarray:
        a, b = self.left, self.right
        noise = a.n_features * a.reg_covar
        sides = ((x.n, x.mean, x.scatter + x.n * noise) for x in (a, b))
        variance, self._cancelled = _pooled_variance(*sides)
        return variance

    @lazy
    def tic_penalty(self) -> np.ndarray:
        """Mean fourth power of the distance to the pooled mean, expanded around the means of the groups."""
        d, total = self.left.n_features, self._variance * self.left.n_features
        fourth, mixed = 0.0, 0.0
        for near, far, turn in ((self.left, self.right, np.asarray), (self.right, self.left, np.transpose)):
            for part in near.parts:
                noise = near.reg_covar + (part.noise or 0.0)
                sums = _sum_over_vectors(_distances_to_pooled_mean, part.rows, near, far)
                second, quartic = turn(sums[0]), turn(sums[1])
                weight = turn(part.rows.totals[:, None])
                fourth = fourth + quartic + 2 * d * noise * second + weight * (d * noise) ** 2
                mixed = mixed + d * weight * noise**2 + 2 * noise * second
        penalty = d + (0.5 * d * (fourth / total**2 - self.n) + d * mixed / total**2) / self.n
        extreme = np.abs(np.log10(total)) > 70  # squares of squares leave double precision
        return self.repair(penalty, self._cancelled | extreme, "tic_penalty")

    @lazy
    def log_evidence(self) -> np.ndarray:
        prior: Any = self.likelihood.prior
        d = self.left.n_features
        n, mean, scatter = _with_prior(prior, self.left, self.left.scatter[:, None], features=d)
        right = self.right.n, self.right.mean, self.right.scatter
        variance, _ = _pooled_variance((n, mean, scatter[:, 0]), right)
        variance *= 0.5 * d * (n[:, None] + self.right.n)
        return _normal_gamma(self, prior, np.log(variance), scales=1, features=d)


def _pooled_variance(left: tuple, right: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Variances of all unions, and where the means are too close to each other, seen from their centre.

    |x - y|^2 is |x|^2 + |y|^2 - 2 x.y in one matrix product; where that cancels it comes from x - y itself.
    """
    from sklearn_mcsg import _kernels  # loads numba

    (n, mean, s), (m, mean_right, t) = left, right
    d = mean.shape[1]
    centre = 0.5 * (mean.mean(axis=0) + mean_right.mean(axis=0))
    x, y = mean - centre, mean_right - centre
    p, q = np.square(x).sum(axis=1), np.square(y).sum(axis=1)
    variance = _outer_squares(x, p, y, q, -2.0)
    _kernels.pooled_variance(variance, n, s, m, t, d)
    rounding = 1e11 * _EPS * np.sqrt(d)
    if rounding * (p.max() + q.max()) * max(n.max(), m.max()) <= s.min() + t.min():
        return variance, np.zeros((1, 1), dtype=bool)
    total = n[:, None] + m
    weight = n[:, None] * m / total
    cancelled = rounding * weight * (p[:, None] + q) > variance * total * d
    indices = np.argwhere(cancelled)
    for batch in gen_batches(len(indices), max(1, 2**19 // d)) if len(indices) else ():
        i, j = indices[batch].T
        between = weight[i, j] * np.square(mean[i] - mean_right[j]).sum(axis=1)
        variance[i, j] = (s[i] + t[j] + between) / (total[i, j] * d)
    return variance, cancelled


def _outer_squares(x: np.ndarray, p: np.ndarray, y: np.ndarray, q: np.ndarray, factor: float) -> np.ndarray:
    """The matrix p + q + factor x.y in one product, with p and q as two features more."""
    return np.column_stack([x, p, np.ones_like(p)]) @ np.column_stack([factor * y, np.ones_like(q), q]).T


def _distances_to_pooled_mean(rows: Groups, near: Any, far: Any, _: slice) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sums of |x - mean|^2 and |x - mean|^4 over the vectors x of each near group, for each union's mean.

    With y = x minus the near group's mean and the union's mean at g delta from it,
    |x - mean|^2 = |y|^2 - 2 g y.delta + g^2 |delta|^2; only the sum of (y.delta)^2 needs the vectors once more.
    """
    share = far.n / (near.n[:, None] + far.n)
    y = rows.rows() - rows.spread(near.mean)
    square = np.square(y).sum(axis=1)
    means = far.mean - near.mean.mean(axis=0)
    own = near.mean - near.mean.mean(axis=0)
    first, third = rows.sum(y), rows.sum(square[:, None] * y)
    second, fourth = rows.sum(square)[:, None], rows.sum(square**2)[:, None]
    along = share * (first @ means.T - (first * own).sum(axis=1)[:, None])
    along_third = share * (third @ means.T - (third * own).sum(axis=1)[:, None])
    projections = y @ means.T
    projections -= (y * rows.spread(own)).sum(axis=1)[:, None]
    quadratic = share**2 * rows.sum(np.square(projections, out=projections))
    step = share**2 * np.maximum(
        np.square(own).sum(axis=1)[:, None] + np.square(means).sum(axis=1) - 2 * own @ means.T, 0
    )
    weight = rows.totals[:, None]
    moved = second - 2 * along + weight * step
    return moved, fourth - 4 * along_third + 2 * step * second + 4 * quadratic - 4 * step * along + weight * step**2


class FullPairs(Pairs):
    """Determinants from Gram matrices of all rows, put together from matrix products, or from scatter matrices."""

    @lazy
    def log_likelihood(self) -> np.ndarray:
        n, d = self.n, self.left.n_features
        left, right = ((s.n, s.mean, padded(s.factors)[0]) for s in (self.left, self.right))
        log_det, wrong = _log_det_of_unions(left, right, n * self.left.reg_covar)
        values = -0.5 * n * (d * (_LOG_2PI + 1 - np.log(n)) + log_det)
        return self.repair(values, wrong, "log_likelihood")

    @lazy
    def log_evidence(self) -> np.ndarray:
        """In coordinates where the prior's scatter is the identity, with the prior mean as `kappa` more vectors."""
        prior: Any = self.likelihood.prior
        d = self.left.n_features
        root = np.linalg.cholesky(np.asarray(prior.scatter, dtype=np.float64))

        def whitened(x: np.ndarray) -> np.ndarray:
            return solve_triangular(root, x.reshape(-1, d).T, lower=True).T.reshape(x.shape)

        (a, x, f), (b, y, g) = (
            (s.n, whitened(s.mean - prior.mean), whitened(padded(s.factors)[0])) for s in (self.left, self.right)
        )
        total = prior.kappa + a
        bridge = np.sqrt(prior.kappa * a / total)[:, None] * x
        left = total, (a / total)[:, None] * x, np.concatenate([f, bridge[:, None]], axis=1)
        log_det, wrong = _log_det_of_unions(left, (b, y, g), np.ones((len(a), len(b))))
        log_det_prior = 2 * np.log(np.diag(root)).sum()

        def by_weight(n: np.ndarray) -> np.ndarray:
            dof = 0.5 * (prior.dof + n)
            log_gamma = multigammaln(dof, d) - multigammaln(0.5 * prior.dof, d)
            return log_gamma + 0.5 * d * (np.log(prior.kappa / (prior.kappa + n)) - n * np.log(np.pi))

        values = _of_total(by_weight, a, b) - 0.5 * (self.n * log_det_prior + (prior.dof + self.n) * log_det)
        return self.repair(values, wrong, "log_evidence")


def full_nbytes(left: Any, right: Any) -> int:
    """Bytes a pair for its Gram or scatter matrix, and for the factor of it."""
    rows = sum(int(f.sizes.max(initial=0)) for f in (*left.factors, *right.factors)) + 2
    return 512 + 32 * min(rows, left.n_features) ** 2


def _log_det_of_unions(left: tuple, right: tuple, ridge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log determinants of ridge I + F^T F, F the rows of both groups and of the bridge between their means.

    Also where squares have cost too much precision, as when both groups hold the same vectors far above the ridge: to
    first order, a rounding of the matrix moves the result by its trace with the inverse.
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
        return np.empty((a, b)), np.ones((a, b), dtype=bool)
    log_det = np.log(pivots).sum(axis=2) + (d - rank) * np.log(ridge if rank < d else 1.0)
    return log_det, rounding * (1 / pivots).sum(axis=2) > 1e-9 * np.maximum(np.abs(log_det), 1)


class DirectionPairs(Pairs):
    """One matrix product for the resultants, then tables of functions of their length."""

    @lazy
    def _gap(self) -> np.ndarray:
        """One minus the squared mean resultant length."""
        from sklearn_mcsg import _kernels  # loads numba

        x, y = (s.n[:, None] * s.mean for s in (self.left, self.right))
        gap = _outer_squares(x, np.square(x).sum(axis=1), y, np.square(y).sum(axis=1), 2.0)
        _kernels.gap_of_resultants(gap, self.left.n, self.right.n)
        return gap

    def _lookup(self, name: str) -> np.ndarray:
        from sklearn_mcsg import _kernels

        position = np.log(self._gap)
        table = _vmf_table(self.left.n_features, float(np.ceil(1 - position.min())))
        _kernels.piecewise_cubic(position, table[name], _NODES)
        return position

    @lazy
    def log_likelihood(self) -> np.ndarray:
        from sklearn_mcsg import _kernels  # loads numba

        values = self._lookup("log_likelihood")
        _kernels.weighted_by_total(values, 0.0, self.left.n, self.right.n, 1.0)
        return values

    @lazy
    def tic_penalty(self) -> np.ndarray:
        along, across = np.zeros((2, len(self.left), len(self.right)))
        for near, far, turn in ((self.left, self.right, np.asarray), (self.right, self.left, np.transpose)):
            for rows, cloud in self.likelihood.clouds(near):
                spread = partial(self._spread, cloud, turn(np.sqrt(1 - self._gap)))
                sums = _sum_over_vectors(spread, rows, near, far)
                along += turn(sums[0])
                across += turn(sums[1])
        return (along / np.exp(self._lookup("log_slope")) + np.exp(self._lookup("log_ratio")) * across) / self.n

    def _spread(
        self, cloud: Any, length: np.ndarray, rows: Groups, near: Any, far: Any, owners: slice
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sums over vectors of the squared error along the resultant and of the square across it."""
        d, length = near.n_features, length[owners]
        unit = self.likelihood.directions(rows)
        t = unit @ (far.n[:, None] * far.mean).T
        t += (rows.spread(near.n) * (unit * rows.spread(near.mean)).sum(axis=1))[:, None]
        resultant = (near.n[:, None] + far.n) * length
        t /= rows.spread(np.where(resultant > 0, resultant, 1))
        rest = (1 - t) * (1 + t)
        error = cloud.length * t - rows.spread(length)
        along = rows.sum(error**2 + cloud.transverse * rest + cloud.axial * t**2)
        return along, rows.sum((1 - d * cloud.transverse) * rest + (d - 1) * cloud.transverse)


@cache
def _vmf_table(n_features: int, end: float) -> dict[str, np.ndarray]:
    """Functions of a mean resultant length R, in the variable -log(1 - R^2) in which they are smooth at both ends."""
    position = np.arange(int(end * _NODES) + 2) / _NODES
    length, gap = np.sqrt(-np.expm1(-position)), np.exp(-position)
    kappa = _special.concentration(length, n_features)
    value = -kappa * gap / (1 + length) - _special.log_normalizer(kappa, n_features)
    ratio = np.divide(kappa, length, out=np.full_like(kappa, n_features), where=length > 0)
    slope = _special.mean_length_derivative(kappa, n_features)
    splines = {
        "log_likelihood": CubicHermiteSpline(position, value, 0.5 * ratio * gap),
        "log_ratio": CubicSpline(position, np.log(ratio)),
        "log_slope": CubicSpline(position, np.log(slope)),
    }
    return {name: np.ascontiguousarray(spline.c.T) for name, spline in splines.items()}
