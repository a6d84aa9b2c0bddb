"""Compiled kernels for all pairs; importing this module loads numba.

The kernels of the diagonal model sum a function of the pooled moments over the features,

    scatter[k] = C_i[k] + C_j[k] + w (mu_i[k] - mu_j[k])^2,    w = n_i n_j / (n_i + n_j),

for every left group i and right group j. Three techniques make them nearly as fast as a matrix product:

1. One logarithm per pair. The scatters are multiplied, and every few features the exponent bits of the running product
   are moved to an integer, so that the product neither overflows nor underflows. The caller scales the features to
   ensure this.
2. Contiguous memory access. The right side is stored feature by feature, so that the inner loop runs over WIDTH right
   groups with vector instructions, for four left groups at a time if there are enough registers.
3. Tiles of TILE left groups and WIDTH right groups. A few features of the right groups stay in the innermost caches
   while all left groups of the tile are processed.

The caller pads the left side to a multiple of ROWS and the features to a multiple of `step`. Kernels start no threads:
they release the interpreter lock, and joblib distributes blocks of pairs.

The other kernels process the result of a matrix product. Those of the full covariance factorise small matrices.
"""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from typing import Any

import numba
import numpy as np
from numba.core.caching import FunctionCache
from numba.extending import overload
from numba.np.numpy_support import as_dtype

ROWS, TILE, WIDTH = 4, 32, 256
_NARROW_TILE = 16  # TILE of the kernel that keeps more numbers per pair
_OPTIONS: Any = {"fastmath": {"contract", "nsz", "arcp", "nnan", "ninf"}, "error_model": "numpy"}
_LAYOUTS = {  # unsigned and signed integers of the same width, bits of the fraction, exponent of 1
    np.float64: (np.uint64, np.int64, 52, 1023),
    np.float32: (np.uint32, np.int32, 23, 127),
}
LEAST_REACH = 1e-20  # of the weight, as in `_trend`: places that vary less have no slope
LANES = 8  # matrices that are factorised together
_TINY, _EPS = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).eps)
_SQRT_2, _LOG_2 = math.sqrt(2.0), math.log(2.0)


class _DiskCache(FunctionCache):
    """The compiled code of one function on disk. It saves the time to compile; none of its faults stops a comparison.

    A file that cannot be read, as a crash may leave it, is replaced. If the folder cannot be written to, this process
    goes on without it.
    """

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # reading a damaged pickle may raise any
            self._replace(error)
            return None

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except Exception as error:
            self.disable()
            _say_once("kept", f"Compiled code cannot be kept in {self.cache_path} ({error}): {_EACH_PROCESS}")

    def _replace(self, error):
        """Forget the files; compiling writes them again."""
        with suppress(OSError):  # `save_overload` will meet it again, and say so
            self.flush()
            _say_once("damaged", f"Compiled code in {self.cache_path} is damaged ({error}). It is compiled again.")


_EACH_PROCESS = (
    "every process compiles again, which takes a few seconds. Set the environment variable NUMBA_CACHE_DIR to a folder "
    "that can be written to."
)
_said: set[str] = set()


def _say_once(what: str, message: str) -> None:
    """Warn once in a process: there are many functions and files, and one cause."""
    if what not in _said:
        _said.add(what)
        warnings.warn(message, UserWarning, stacklevel=3)


def compiled(function):
    """Compile a function, and cache the result on disk if possible.

    The cache key includes the values that the function closes over. These must be plain, not compiled functions.
    """
    dispatcher = numba.njit(function, nogil=True, **_OPTIONS)
    try:
        dispatcher._cache = _DiskCache(function)
    except RuntimeError:
        _say_once("kept", f"Compiled code cannot be kept anywhere on disk: {_EACH_PROCESS}")
    return dispatcher


def take_exponents(numbers, exponents):
    """Scale positive numbers to [1, 2) and add their exponents to integers; for compiled code only."""


@overload(take_exponents, jit_options=_OPTIONS)
def _take_exponents(numbers, exponents):
    unsigned, signed, fraction_bits, bias = _LAYOUTS[as_dtype(numbers.dtype).type]
    shift, fraction = unsigned(fraction_bits), unsigned((1 << fraction_bits) - 1)
    one, bias = unsigned(bias << fraction_bits), signed(bias)

    def take_exponents(numbers, exponents):
        bits = numbers.view(unsigned)
        for j in range(len(bits)):
            b = bits[j]
            exponents[j] += signed(b >> shift) - bias
            bits[j] = (b & fraction) | one

    return take_exponents


@compiled
def add_logarithms(numbers, exponents, factor, out):
    """Add factor times log(x 2^e) for each number x in [1, 2) and its exponent e.

    The series of the inverse hyperbolic tangent around sqrt(2) needs no branches and compiles to vector instructions.
    """
    for j in range(len(out)):
        x = np.float64(numbers[j])
        s = (x - _SQRT_2) / (x + _SQRT_2)
        z = s * s
        y = z * (z * (z * (z * (z / 21 + 1 / 19) + 1 / 17) + 1 / 15) + 1 / 13) + 1 / 11
        y = z * (z * (z * (z * (z * y + 1 / 9) + 1 / 7) + 1 / 5) + 1 / 3)
        out[j] += factor * (2 * s + 2 * s * y + (exponents[j] + 0.5) * _LOG_2)


@compiled
def _subtract_log_total(n, n_right, times, total, exponents, out):
    """Subtract a multiple of the logarithm of the total weight for each pair of one group with several others."""
    for j in range(len(n_right)):
        total[j] = n + n_right[j]
        exponents[j] = 0
    take_exponents(total, exponents)
    add_logarithms(total, exponents, -times, out)


@compiled
def _tiles(n_left, n_right, height):
    """First row, number of rows, first column and number of columns of each tile, one row per tile."""
    tiles = np.empty((-(-n_left // height) * -(-n_right // WIDTH), 4), np.int64)
    count = 0
    for top in range(0, n_left, height):
        for start in range(0, n_right, WIDTH):
            tiles[count, 0], tiles[count, 1] = top, min(height, n_left - top)
            tiles[count, 2], tiles[count, 3] = start, min(WIDTH, n_right - start)
            count += 1
    return tiles


def _log_products(dtype):
    """Compile, for a dtype, the sum of a constant and log scatters minus a multiple of the log total weight."""
    signed = _LAYOUTS[dtype][1]

    @compiled
    def kernel(n, mu, scatter, n_right, mu_right, scatter_right, step, times, constant, out):
        d, m = mu_right.shape
        product, weight = np.empty((TILE, WIDTH), dtype), np.empty((TILE, WIDTH), dtype)
        exponent = np.empty((TILE, WIDTH), signed)
        total, total_exponent = np.empty(WIDTH), np.empty(WIDTH, np.int64)
        for tile in _tiles(n.shape[0], m, TILE):
            top, height, start, width = tile[0], tile[1], tile[2], tile[3]
            stop = start + width
            for r in range(height):
                for j in range(width):
                    other = n_right[start + j]
                    weight[r, j] = n[top + r] * other / (n[top + r] + other)
                    product[r, j] = 1
                    exponent[r, j] = 0
            for k0 in range(0, d, step):
                for r in range(0, height, ROWS):
                    i = top + r
                    p0, p1, p2, p3 = product[r], product[r + 1], product[r + 2], product[r + 3]
                    w0, w1, w2, w3 = weight[r], weight[r + 1], weight[r + 2], weight[r + 3]
                    for k in range(k0, k0 + step, 2):
                        mu_a, mu_b = mu_right[k, start:stop], mu_right[k + 1, start:stop]
                        sc_a, sc_b = scatter_right[k, start:stop], scatter_right[k + 1, start:stop]
                        m0a, m1a, m2a, m3a = mu[i, k], mu[i + 1, k], mu[i + 2, k], mu[i + 3, k]
                        m0b, m1b, m2b, m3b = mu[i, k + 1], mu[i + 1, k + 1], mu[i + 2, k + 1], mu[i + 3, k + 1]
                        s0a, s1a, s2a, s3a = scatter[i, k], scatter[i + 1, k], scatter[i + 2, k], scatter[i + 3, k]
                        s0b, s1b = scatter[i, k + 1], scatter[i + 1, k + 1]
                        s2b, s3b = scatter[i + 2, k + 1], scatter[i + 3, k + 1]
                        for j in range(width):
                            x, y, u, v = mu_a[j], mu_b[j], sc_a[j], sc_b[j]
                            p0[j] *= (u + s0a + w0[j] * (x - m0a) ** 2) * (v + s0b + w0[j] * (y - m0b) ** 2)
                            p1[j] *= (u + s1a + w1[j] * (x - m1a) ** 2) * (v + s1b + w1[j] * (y - m1b) ** 2)
                            p2[j] *= (u + s2a + w2[j] * (x - m2a) ** 2) * (v + s2b + w2[j] * (y - m2b) ** 2)
                            p3[j] *= (u + s3a + w3[j] * (x - m3a) ** 2) * (v + s3b + w3[j] * (y - m3b) ** 2)
                    for q in range(r, r + ROWS):
                        take_exponents(product[q, :width], exponent[q])
            for r in range(height):
                row = out[top + r, start:stop]
                row[:] = constant
                add_logarithms(product[r], exponent[r], 1.0, row)
                _subtract_log_total(n[top + r], n_right[start:stop], times, total[:width], total_exponent, row)

    return kernel


def _trend_log_products(dtype):
    """Compile, for a dtype, the same sum for lines.

    Let e be the difference of two means, d that of their mean places, and b and c the slopes of the two lines, whose
    places have the scatters p and q. The scatter of a union about its line exceeds those of its parts by

        pq / (p + q) (c - b)^2 + w (p + q) / (p + q + w d^2) (e - d (p b + q c) / (p + q))^2:

    the difference of the slopes, and that of the means from what the common slope explains. If no part has a slope, a
    line goes through both means or, if their places are equal, their difference counts as in the diagonal model.
    """
    signed = _LAYOUTS[dtype][1]

    @compiled
    def kernel(
        n, place, reach, mu, beta, scatter,
        n_right, place_right, reach_right, mu_right, beta_right, scatter_right,
        step, times, constant, out,
    ):  # fmt: skip
        d, m = mu_right.shape
        product, exponent = np.empty((TILE, WIDTH), dtype), np.empty((TILE, WIDTH), signed)
        state = np.empty((TILE, 4, WIDTH), dtype)
        total, total_exponent = np.empty(WIDTH), np.empty(WIDTH, np.int64)
        for tile in _tiles(n.shape[0], m, TILE):
            top, height, start, width = tile[0], tile[1], tile[2], tile[3]
            stop = start + width
            for r in range(height):
                i = top + r
                for j in range(width):
                    other, q = n_right[start + j], reach_right[start + j]
                    both, p = n[i] + other, reach[i] + q
                    weight, apart = n[i] * other / both, place_right[start + j] - place[i]
                    union = p + weight * apart * apart
                    share = q / p if p > 0 else 0.0
                    varies = union > LEAST_REACH * both
                    state[r, 0, j] = weight * (p / union) if varies else weight
                    state[r, 1, j] = reach[i] * share
                    state[r, 2, j] = apart * (1 - share) if varies else 0.0
                    state[r, 3, j] = apart * share if varies else 0.0
                    product[r, j] = 1
                    exponent[r, j] = 0
            for k0 in range(0, d, step):
                for r in range(0, height, 2):
                    i = top + r
                    p0, p1 = product[r], product[r + 1]
                    w0, w1, v0, v1 = state[r, 0], state[r + 1, 0], state[r, 1], state[r + 1, 1]
                    f0, f1, g0, g1 = state[r, 2], state[r + 1, 2], state[r, 3], state[r + 1, 3]
                    for k in range(k0, k0 + step, 2):
                        mu_a, mu_b = mu_right[k, start:stop], mu_right[k + 1, start:stop]
                        be_a, be_b = beta_right[k, start:stop], beta_right[k + 1, start:stop]
                        sc_a, sc_b = scatter_right[k, start:stop], scatter_right[k + 1, start:stop]
                        m0a, m1a, m0b, m1b = mu[i, k], mu[i + 1, k], mu[i, k + 1], mu[i + 1, k + 1]
                        b0a, b1a, b0b, b1b = beta[i, k], beta[i + 1, k], beta[i, k + 1], beta[i + 1, k + 1]
                        s0a, s1a, s0b, s1b = scatter[i, k], scatter[i + 1, k], scatter[i, k + 1], scatter[i + 1, k + 1]
                        for j in range(width):
                            x, y, b, c, u, v = mu_a[j], mu_b[j], be_a[j], be_b[j], sc_a[j], sc_b[j]
                            p0[j] *= (
                                u + s0a + v0[j] * (b - b0a) ** 2 + w0[j] * (x - m0a - f0[j] * b0a - g0[j] * b) ** 2
                            ) * (v + s0b + v0[j] * (c - b0b) ** 2 + w0[j] * (y - m0b - f0[j] * b0b - g0[j] * c) ** 2)
                            p1[j] *= (
                                u + s1a + v1[j] * (b - b1a) ** 2 + w1[j] * (x - m1a - f1[j] * b1a - g1[j] * b) ** 2
                            ) * (v + s1b + v1[j] * (c - b1b) ** 2 + w1[j] * (y - m1b - f1[j] * b1b - g1[j] * c) ** 2)
                    take_exponents(product[r, :width], exponent[r])
                    take_exponents(product[r + 1, :width], exponent[r + 1])
            for r in range(height):
                row = out[top + r, start:stop]
                row[:] = constant
                add_logarithms(product[r], exponent[r], 1.0, row)
                _subtract_log_total(n[top + r], n_right[start:stop], times, total[:width], total_exponent, row)

    return kernel


@compiled
def log_products_and_kurtosis(
    n, mu, m2, m3, m4, n_right, mu_right, m2_right, m3_right, m4_right, step, times, constant, out, kurtosis
):
    """Sum log scatters, minus a multiple of the log total weight, and fourth moments over squared scatters.

    Let e be the difference of two means, a and b = 1 - a the shares of the two groups in the total weight, and w that
    of the squared difference. Pebay's formula for the pooled fourth moment is

        M4 = m4 + m4' + 6 [ae (ae m2' + 2/3 m3') + be (be m2 - 2/3 m3) + w (1 - 3ab) e^4 / 6],

    where the right side is marked. The caller multiplies third moments by 2/3 and divides fourth moments by 6. Two
    features share a division.
    """
    d, m = mu_right.shape
    state, exponent = np.empty((_NARROW_TILE, 5, WIDTH)), np.empty((_NARROW_TILE, WIDTH), np.int64)
    for tile in _tiles(n.shape[0], m, _NARROW_TILE):
        top, height, start, width = tile[0], tile[1], tile[2], tile[3]
        stop = start + width
        for r in range(height):
            for j in range(width):
                a = n[top + r] / (n[top + r] + n_right[start + j])
                w = a * n_right[start + j]
                state[r, 0, j], state[r, 1, j], exponent[r, j] = 1, 0, 0
                state[r, 2, j], state[r, 3, j], state[r, 4, j] = w, w * (1 - 3 * a * (1 - a)) / 6, a
        for k0 in range(0, d, step):
            for r in range(height):
                product, total = state[r, 0], state[r, 1]
                weight, quartic, share = state[r, 2], state[r, 3], state[r, 4]
                for k in range(k0, k0 + step, 2):
                    mean_x, mean_y = mu_right[k, start:stop], mu_right[k + 1, start:stop]
                    c2_x, c2_y = m2_right[k, start:stop], m2_right[k + 1, start:stop]
                    c3_x, c3_y = m3_right[k, start:stop], m3_right[k + 1, start:stop]
                    c4_x, c4_y = m4_right[k, start:stop], m4_right[k + 1, start:stop]
                    centre_x, centre_y = mu[top + r, k], mu[top + r, k + 1]
                    b2_x, b2_y = m2[top + r, k], m2[top + r, k + 1]
                    b3_x, b3_y = m3[top + r, k], m3[top + r, k + 1]
                    b4_x, b4_y = m4[top + r, k], m4[top + r, k + 1]
                    for j in range(width):
                        w, q, a = weight[j], quartic[j], share[j]
                        e, f = mean_x[j] - centre_x, mean_y[j] - centre_y
                        e2, f2 = e * e, f * f
                        scatter_x, scatter_y = c2_x[j] + b2_x + w * e2, c2_y[j] + b2_y + w * f2
                        ae, af = a * e, a * f
                        be, bf = e - ae, f - af
                        fourth_x = c4_x[j] + b4_x + ae * (ae * c2_x[j] + c3_x[j]) + be * (be * b2_x - b3_x)
                        fourth_y = c4_y[j] + b4_y + af * (af * c2_y[j] + c3_y[j]) + bf * (bf * b2_y - b3_y)
                        fourth_x += q * e2 * e2
                        fourth_y += q * f2 * f2
                        both = scatter_x * scatter_y
                        inverse = 1 / both
                        product[j] *= both
                        inverse_x, inverse_y = inverse * scatter_y, inverse * scatter_x
                        total[j] += fourth_x * inverse_x * inverse_x + fourth_y * inverse_y * inverse_y
                take_exponents(product[:width], exponent[r])
        for r in range(height):
            row = out[top + r, start:stop]
            row[:] = constant
            add_logarithms(state[r, 0], exponent[r], 1.0, row)
            for j in range(width):
                kurtosis[top + r, start + j] = 6 * state[r, 1, j] * (n[top + r] + n_right[start + j])
                exponent[r, j] = 0
            _subtract_log_total(n[top + r], n_right[start:stop], times, state[r, 2, :width], exponent[r], row)


@compiled
def pooled_variance(squares, n, scatter, n_right, scatter_right, n_features):
    """Turn squared distances of means into variances of the unions, in place."""
    for i in range(len(n)):
        for j in range(len(n_right)):
            total = n[i] + n_right[j]
            between = max(squares[i, j], 0.0) * (n[i] * n_right[j] / total)
            squares[i, j] = (scatter[i] + scatter_right[j] + between) / (total * n_features)


@compiled
def gap_of_resultants(squares, n, n_right):
    """Turn squared lengths of resultants into 1 minus squared mean resultant lengths, in place."""
    for i in range(len(n)):
        for j in range(len(n_right)):
            total = n[i] + n_right[j]
            squares[i, j] = 1.0 - min(max(squares[i, j] / (total * total), 0.0), 1.0)


@compiled
def piecewise_cubic(position, pieces, inverse_step):
    """Replace positions, which are at most 0, by the values of cubic pieces on an even grid from 0 down."""
    step = 1.0 / inverse_step
    for i in range(position.shape[0]):
        for j in range(position.shape[1]):
            k = int(-position[i, j] * inverse_step)
            x = -position[i, j] - k * step
            position[i, j] = ((pieces[k, 0] * x + pieces[k, 1]) * x + pieces[k, 2]) * x + pieces[k, 3]


@compiled
def add_moments(products, shift, squares, weights, starts, sums):
    """Add the weighted sums of v, v^2 and |y|^2 v to those of each pair of groups: v is a product less y's shift.

    Two vectors at a time share the passes over the sums.
    """
    for g in range(len(starts) - 1):
        first, second, third = sums[0, g], sums[1, g], sums[2, g]
        stop = starts[g + 1]
        for x in range(starts[g], stop, 2):
            y = min(x + 1, stop - 1)
            one, other, s, t, c = products[x], products[y], shift[x], shift[y], weights[x]
            e = weights[y] if y > x else 0.0
            cq, eq = c * squares[x], e * squares[y]
            for j in range(len(first)):
                v, w = one[j] - s, other[j] - t
                cv, ew = c * v, e * w
                first[j] += cv + ew
                second[j] += cv * v + ew * w
                third[j] += cq * v + eq * w


@compiled
def add_moments_about_unions(projected, distances, n, n_right, totals, sums):
    """Add sums over the vectors of left groups, about the means of all unions.

    Let y be a vector of a left group minus the group's mean, D the right mean minus the left mean, and s the share of
    the right group. The vector minus the mean of the union is y - sD, and sums over y give

        sum |y - sD|^2 = sum |y|^2 - 2s sum y.D + s^2 N |D|^2,
        sum |y - sD|^4 = sum |y|^4 + 4 s^2 sum (y.D)^2 - 4s sum |y|^2 y.D + 2 s^2 |D|^2 sum |y|^2
                         - 4 s^3 |D|^2 sum y.D + N s^4 |D|^4.

    `projected` are the sums of y.D, (y.D)^2 and |y|^2 y.D, `distances` the squares of D, and `totals` N, sum |y|^2 and
    sum |y|^4 of each left group. N and both results are added to `sums`.
    """
    for i in range(len(n)):
        weight, squares, fourth = totals[i]
        for j in range(len(n_right)):
            share = n_right[j] / (n[i] + n_right[j])
            square = share * share
            step, shift = square * max(distances[i, j], 0.0), share * projected[0, i, j]
            sums[0, i, j] += weight
            sums[1, i, j] += squares - 2 * shift + weight * step
            sums[2, i, j] += (
                fourth
                + 4 * (square * projected[1, i, j] - share * projected[2, i, j])
                + step * (2 * squares - 4 * shift + weight * step)
            )


@compiled
def add_axial_squares(products, shift, weights, starts, inverse, expected, noise, sums):
    """Add sums over noisy unit vectors u of mean squares along the direction m of each union, minus E, and across it.

    t = u.m is a product plus the vector's shift, times the inverse of the resultant. `noise` holds the length, the
    transverse and the axial moment of `AxialMoments`, whose `squares` these are, and the number of features.
    """
    length, transverse, axial, n_features = noise
    turned, spread = 1 - n_features * transverse, (n_features - 1) * transverse
    for g in range(len(starts) - 1):
        factor, mean, along, across = inverse[g], expected[g], sums[0, g], sums[1, g]
        for x in range(starts[g], starts[g + 1]):
            product, s, c = products[x], shift[x], weights[x]
            for j in range(len(factor)):
                t = (product[j] + s) * factor[j]
                u, rest = length * t - mean[j], (1 - t) * (1 + t)
                along[j] += c * (u * u + (transverse - axial) * rest + axial)
                across[j] += c * (turned * rest + spread)


@compiled
def weighted_by_total(values, constant, n, n_right, factor):
    """Add a constant and multiply by the total weight of each pair and a factor, in place."""
    for i in range(len(n)):
        for j in range(len(n_right)):
            values[i, j] = (values[i, j] + constant) * (factor * (n[i] + n_right[j]))


@compiled
def _eliminate(matrices, ranks, ridge, log_det, doubt):
    """Log determinants of LANES matrices plus multiples of the identity, and estimates of their rounding errors.

    The entries (x, y) of all matrices are contiguous, so that one vector instruction serves several pairs. Only lower
    triangles are read, and destroyed; rows beyond the rank of a matrix must be 0. An error E of a matrix M changes the
    result by tr(M^-1 E), to first order, and the trace of M^-1 is about its rank times the sum of the inverse pivots;
    `doubt` holds the size of what was subtracted within the entries, to which the traces are added.
    """
    product, exponent = np.ones(LANES), np.zeros(LANES, np.int64)
    inverses, row, rank = np.zeros(LANES), np.empty(LANES), ranks.max()
    for c in range(rank):
        for w in range(LANES):
            matrices[c, c, w] += ridge[w] if c < ranks[w] else 0.0
            doubt[w] += matrices[c, c, w]
    for c in range(rank):
        for w in range(LANES):
            pivot = max(matrices[c, c, w], _TINY)
            product[w] *= pivot if c < ranks[w] else 1.0
            matrices[c, c, w] = 1 / pivot if c < ranks[w] else 0.0
            inverses[w] += matrices[c, c, w]
        take_exponents(product, exponent)
        for x in range(c + 1, rank):
            for w in range(LANES):
                row[w] = matrices[x, c, w] * matrices[c, c, w]
            for y in range(c + 1, x + 1):
                for w in range(LANES):
                    matrices[x, y, w] -= row[w] * matrices[y, c, w]
    log_det[:] = 0
    add_logarithms(product, exponent, 1.0, log_det)
    for w in range(LANES):
        doubt[w] *= _EPS * ranks[w] * inverses[w]


@compiled
def gram_log_dets(
    n, sizes, starts, own, n_right, sizes_right, starts_right, own_right, products, ridge, most, d, out, doubts
):
    """Log determinants of ridge I + F F^T, where F holds the rows of both groups and their bridge.

    The bridge is the root of n n' / (n + n') times the difference of the means, which stand below each group's rows.
    `own` has the products of rows of a group, `products` those of right rows with left rows. `most` is the largest size
    in each tile of LANES right groups; where it gives more rows than features, `scatter_log_dets` computes the pairs.
    """
    a, b = ridge.shape
    matrices, ranks = np.empty((d, d, LANES)), np.empty(LANES, np.int64)
    log_det, doubt, shift = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for start in range(0, b, LANES):
        for i in range(a):
            p, left = sizes[i], starts[i]
            if p + 1 + most[start] > d:
                continue
            for w in range(LANES):
                j = min(start + w, b - 1)
                q, first = sizes_right[j], starts_right[j]
                weight = n[i] * n_right[j] / (n[i] + n_right[j])
                root, squares = math.sqrt(weight), own[i, p, p] + own_right[j, q, q]
                for x in range(p):
                    for y in range(x + 1):
                        matrices[x, y, w] = own[i, x, y]
                    matrices[p, x, w] = root * (products[first + q, left + x] - own[i, p, x])
                matrices[p, p, w] = weight * max(squares - 2 * products[first + q, left + p], 0.0)
                for x in range(q):
                    for y in range(p):
                        matrices[p + 1 + x, y, w] = products[first + x, left + y]
                    matrices[p + 1 + x, p, w] = root * (own_right[j, q, x] - products[first + x, left + p])
                    for y in range(x + 1):
                        matrices[p + 1 + x, p + 1 + y, w] = own_right[j, x, y]
                for x in range(p + 1 + q, p + 1 + most[start]):
                    matrices[x, : x + 1, w] = 0
                doubt[w], shift[w], ranks[w] = weight * squares, ridge[i, j], p + 1 + q
            _eliminate(matrices, ranks, shift, log_det, doubt)
            for j in range(start, min(start + LANES, b)):
                out[i, j], doubts[i, j] = log_det[j - start], doubt[j - start]


@compiled
def scatter_log_dets(n, sizes, means, scatters, n_right, most, means_right, scatters_right, ridge, out, doubts):
    """Log determinants of ridge I + F^T F for the pairs that `gram_log_dets` leaves, from scatter matrices."""
    (a, b), d = ridge.shape, means.shape[1]
    matrices, right, bridge = np.empty((d, d, LANES)), np.empty((d, d, LANES)), np.empty((d, LANES))
    log_det, doubt, shift, ranks = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.full(LANES, d)
    for start in range(0, b, LANES):
        for w in range(LANES):
            right[:, :, w] = scatters_right[min(start + w, b - 1)]
        for i in range(a):
            if sizes[i] + 1 + most[start] <= d:
                continue
            for w in range(LANES):
                j = min(start + w, b - 1)
                root = math.sqrt(n[i] * n_right[j] / (n[i] + n_right[j]))
                doubt[w], shift[w] = 0, ridge[i, j]
                for x in range(d):
                    bridge[x, w] = root * (means_right[j, x] - means[i, x])
            for x in range(d):
                for y in range(x + 1):
                    for w in range(LANES):
                        matrices[x, y, w] = scatters[i, x, y] + right[x, y, w] + bridge[x, w] * bridge[y, w]
            _eliminate(matrices, ranks, shift, log_det, doubt)
            for j in range(start, min(start + LANES, b)):
                out[i, j], doubts[i, j] = log_det[j - start], doubt[j - start]


log_products_float64, log_products_float32 = _log_products(np.float64), _log_products(np.float32)
trend_log_products_float64, trend_log_products_float32 = (
    _trend_log_products(np.float64),
    _trend_log_products(np.float32),
)


def are_loaded(names: tuple[str, ...]) -> bool:
    """Whether functions have been compiled, or loaded from disk, for some argument types."""
    return all(globals()[name].signatures for name in names)
