"""Compiled kernels for all pairs; importing this module loads numba.

Those of the diagonal model sum a function of the pooled moments over the features,

    scatter[k] = C_i[k] + C_j[k] + w (mu_i[k] - mu_j[k])^2,    w = n_i n_j / (n_i + n_j),

for every group i on the left and j on the right. Two ideas bring them near the speed of a matrix product:

1. One logarithm a pair. The scatters are multiplied, and every few features the exponent bits of the running product
   move into an integer, so that it can neither overflow nor underflow. The caller scales the features to make sure.
2. Tiles of ROWS groups on the left against WIDTH on the right, which is stored feature by feature: the inner loop is
   one vectorised sweep over memory that stays in the first cache, and two features share each load of the product.

The caller pads the left side to a multiple of ROWS and the features to a multiple of `step`. No kernel starts threads:
they release the interpreter lock, and blocks of pairs are joblib's to distribute.

The others, at the end, are passes over what a matrix product has left.
"""

from __future__ import annotations

import math

import numba
import numpy as np

ROWS, WIDTH, NARROW = 4, 512, 256  # tiles that the first cache holds
_FAST = {"contract", "nsz", "arcp", "nnan", "ninf"}
_LAYOUTS = {  # unsigned and signed integers of the same width, bits of the fraction, exponent of 1
    np.float64: (np.uint64, np.int64, 52, 1023),
    np.float32: (np.uint32, np.int32, 23, 127),
}


def _compile(function):
    """Compile without interpreter lock, keeping the result on disk where that is possible."""
    options = {"nogil": True, "fastmath": _FAST, "error_model": "numpy"}
    try:
        return numba.njit(function, cache=True, **options)
    except RuntimeError:  # no place to write to
        return numba.njit(function, **options)


def _log_products(dtype):
    """Compile the sum of log scatters for a precision."""
    unsigned, signed, fraction_bits, bias = _LAYOUTS[dtype]
    shift, fraction = unsigned(fraction_bits), unsigned((1 << fraction_bits) - 1)
    one, bias, log_2 = unsigned(bias << fraction_bits), signed(bias), math.log(2.0)

    @_compile
    def kernel(n, mu, scatter, n_right, mu_right, scatter_right, step, out):
        d, m = mu_right.shape
        product = np.empty((ROWS, WIDTH), dtype)
        bits = product.view(unsigned)
        exponent = np.empty((ROWS, WIDTH), signed)
        weight = np.empty((ROWS, WIDTH), dtype)
        p0, p1, p2, p3 = product[0], product[1], product[2], product[3]
        w0, w1, w2, w3 = weight[0], weight[1], weight[2], weight[3]
        for i in range(0, n.shape[0], ROWS):
            for start in range(0, m, WIDTH):
                width = min(WIDTH, m - start)
                for r in range(ROWS):
                    for j in range(width):
                        other = n_right[start + j]
                        weight[r, j] = n[i + r] * other / (n[i + r] + other)
                        product[r, j] = 1
                        exponent[r, j] = 0
                for k0 in range(0, d, step):
                    for k in range(k0, k0 + step, 2):
                        mu_a, mu_b = mu_right[k, start : start + width], mu_right[k + 1, start : start + width]
                        sc_a, sc_b = (
                            scatter_right[k, start : start + width],
                            scatter_right[k + 1, start : start + width],
                        )
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
                    for r in range(ROWS):
                        for j in range(width):
                            b = bits[r, j]
                            exponent[r, j] += signed(b >> shift) - bias
                            bits[r, j] = (b & fraction) | one
                for r in range(ROWS):
                    for j in range(width):
                        out[i + r, start + j] = math.log(product[r, j]) + exponent[r, j] * log_2

    return kernel


def _log_products_and_kurtosis():
    """Compile the sums of log scatters and of fourth moments over squared scatters, in double precision.

    The pooled fourth moment is Pebay's, with a and b the shares of the two groups in the total weight. Two features
    share one division.
    """
    unsigned, signed, fraction_bits, bias = _LAYOUTS[np.float64]
    shift, fraction = unsigned(fraction_bits), unsigned((1 << fraction_bits) - 1)
    one, log_2 = unsigned(bias << fraction_bits), math.log(2.0)

    @_compile
    def kernel(n, mu, m2, m3, m4, n_right, mu_right, m2_right, m3_right, m4_right, step, out, kurtosis):
        d, m = mu_right.shape
        rows = np.empty((8, NARROW))
        product, total, weight, quartic = rows[0], rows[1], rows[2], rows[3]
        square_a, square_b, cross_a, cross_b = rows[4], rows[5], rows[6], rows[7]
        bits, exponent = product.view(unsigned), np.empty(NARROW, signed)
        for i in range(n.shape[0]):
            for start in range(0, m, NARROW):
                width = min(NARROW, m - start)
                stop = start + width
                for j in range(width):
                    a = n[i] / (n[i] + n_right[start + j])
                    b = 1 - a
                    weight[j] = a * n_right[start + j]
                    quartic[j] = weight[j] * (1 - 3 * a * b)
                    square_a[j], square_b[j], cross_a[j], cross_b[j] = 6 * a * a, 6 * b * b, 4 * a, 4 * b
                    product[j], total[j], exponent[j] = 1, 0, 0
                for k0 in range(0, d, step):
                    for k in range(k0, k0 + step, 2):
                        mu_0, mu_1 = mu_right[k, start:stop], mu_right[k + 1, start:stop]
                        p_0, p_1 = m2_right[k, start:stop], m2_right[k + 1, start:stop]
                        q_0, q_1 = m3_right[k, start:stop], m3_right[k + 1, start:stop]
                        r_0, r_1 = m4_right[k, start:stop], m4_right[k + 1, start:stop]
                        c0, c1, p0, p1 = mu[i, k], mu[i, k + 1], m2[i, k], m2[i, k + 1]
                        q0, q1, r0, r1 = m3[i, k], m3[i, k + 1], m4[i, k], m4[i, k + 1]
                        for j in range(width):
                            e = mu_0[j] - c0
                            e2 = e * e
                            s = p_0[j] + p0 + weight[j] * e2
                            f = r_0[j] + r0 + e2 * (quartic[j] * e2 + square_a[j] * p_0[j] + square_b[j] * p0)
                            f += e * (cross_a[j] * q_0[j] - cross_b[j] * q0)
                            h = mu_1[j] - c1
                            h2 = h * h
                            t = p_1[j] + p1 + weight[j] * h2
                            g = r_1[j] + r1 + h2 * (quartic[j] * h2 + square_a[j] * p_1[j] + square_b[j] * p1)
                            g += h * (cross_a[j] * q_1[j] - cross_b[j] * q1)
                            both = s * t
                            product[j] *= both
                            total[j] += (f * t * t + g * s * s) / (both * both)
                    for j in range(width):
                        b64 = bits[j]
                        exponent[j] += signed(b64 >> shift) - bias
                        bits[j] = (b64 & fraction) | one
                for j in range(width):
                    out[i, start + j] = math.log(product[j]) + exponent[j] * log_2
                    kurtosis[i, start + j] = total[j] * (n[i] + n_right[start + j])

    return kernel


@_compile
def pooled_variance(squares, n, scatter, n_right, scatter_right, n_features):
    """Turn squared distances of means into variances of the unions, in place."""
    for i in range(len(n)):
        for j in range(len(n_right)):
            total = n[i] + n_right[j]
            between = max(squares[i, j], 0.0) * (n[i] * n_right[j] / total)
            squares[i, j] = (scatter[i] + scatter_right[j] + between) / (total * n_features)


@_compile
def gap_of_resultants(squares, n, n_right):
    """Turn squared lengths of resultants into 1 minus squared mean resultant lengths, in place."""
    for i in range(len(n)):
        for j in range(len(n_right)):
            total = n[i] + n_right[j]
            squares[i, j] = 1.0 - min(max(squares[i, j] / (total * total), 0.0), 1.0)


@_compile
def piecewise_cubic(position, pieces, inverse_step):
    """Put in the place of negative positions the values of cubic pieces on an even grid from 0 down."""
    step = 1.0 / inverse_step
    for i in range(position.shape[0]):
        for j in range(position.shape[1]):
            k = int(-position[i, j] * inverse_step)
            x = -position[i, j] - k * step
            position[i, j] = ((pieces[k, 0] * x + pieces[k, 1]) * x + pieces[k, 2]) * x + pieces[k, 3]


@_compile
def weighted_by_total(values, constant, n, n_right, factor):
    """Add a constant and multiply by the total weight of each pair and a factor, in place."""
    for i in range(len(n)):
        for j in range(len(n_right)):
            values[i, j] = (values[i, j] + constant) * (factor * (n[i] + n_right[j]))


log_products = {np.dtype(precision): _log_products(precision) for precision in _LAYOUTS}
log_products_and_kurtosis = _log_products_and_kurtosis()
