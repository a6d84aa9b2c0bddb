"""Compiled kernels for the segments of a sequence; importing this module loads numba.

A kernel computes one number for each segment that ends in a range of rows, for all rows at which it may begin. It goes
backwards from the end of the range and adds one row at a time to LANES segments with consecutive ends at once,

    n += w,    mean += (x - mean) w / n,    scatter += w (x - old mean) (x - new mean),

so no number is the difference of two large ones, whatever the mean of the sequence, and no memory is needed beside the
result. A segment does not begin empty: it contains the `n`, `mean` and `scatter` of pseudo-vectors or of a prior.

The result has one row for each row of the sequence from `first` on, at which a segment begins, and one column for each
row from `begin` on, with which it ends. Entries below the diagonal, which are not segments, keep their value.

Fast arithmetic knows no infinities: the logarithm of 0 is LOG_0.
"""

from __future__ import annotations

import numpy as np

from sklearn_mcsg.likelihoods.kernels import add_logarithms, compiled, take_exponents

LANES = 16
_EPS = float(np.finfo(np.float64).eps)
LOG_0 = -1e300
_SMALLEST = 1e-304  # smaller numbers have lost digits


@compiled
def _extend(n, share, weight, lane, lanes):
    """Add a row to the segments in some lanes: their weights, and the row's share of them."""
    for l in range(lane, lanes):
        n[l] += weight
        share[l] = weight / n[l]


@compiled
def segment_log_scatters(rows, weights, n, mean, scatter, ridge, first, begin, out):
    """Logarithms of each feature's scatter plus `ridge` times the weight, summed over features."""
    d = rows.shape[1]
    total, share = np.empty(LANES), np.empty(LANES)
    product, lowest, exponents = np.empty(LANES), np.empty(LANES), np.empty(LANES, np.int64)
    means, scatters = np.empty((d, LANES)), np.empty((d, LANES))
    for left in range(0, out.shape[1], LANES):
        lanes = min(LANES, out.shape[1] - left)
        total[:] = n
        for k in range(d):
            means[k], scatters[k] = mean[k], scatter[k]
        for t in range(begin + left + lanes - 1, first - 1, -1):
            lane, w = max(0, t - begin - left), weights[t]
            _extend(total, share, w, lane, lanes)
            product[:], lowest[:], exponents[:] = 1.0, 1.0, 0
            for k in range(d):
                x, m, s = rows[t, k], means[k], scatters[k]
                for l in range(lane, lanes):
                    delta = x - m[l]
                    m[l] += delta * share[l]
                    s[l] += w * delta * (x - m[l])
                    noisy = s[l] + ridge * total[l]
                    lowest[l] = min(lowest[l], noisy)
                    product[l] *= noisy
                take_exponents(product, exponents)
            result = out[t - first, left : left + lanes]
            result[lane:] = 0.0
            add_logarithms(product[lane:lanes], exponents[lane:lanes], 1.0, result[lane:])
            for l in range(lane, lanes):
                if lowest[l] < _SMALLEST:
                    result[l] = LOG_0


@compiled
def segment_scatters(rows, weights, n, mean, scatter, first, begin, out):
    """Scatter of all features together."""
    d = rows.shape[1]
    total, share, sums, means = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty((d, LANES))
    for left in range(0, out.shape[1], LANES):
        lanes = min(LANES, out.shape[1] - left)
        total[:], sums[:] = n, scatter
        for k in range(d):
            means[k] = mean[k]
        for t in range(begin + left + lanes - 1, first - 1, -1):
            lane, w = max(0, t - begin - left), weights[t]
            _extend(total, share, w, lane, lanes)
            for k in range(d):
                x, m = rows[t, k], means[k]
                for l in range(lane, lanes):
                    delta = x - m[l]
                    m[l] += delta * share[l]
                    sums[l] += w * delta * (x - m[l])
            out[t - first, left + lane : left + lanes] = sums[lane:lanes]


@compiled
def segment_log_dets(rows, weights, n, mean, scatter, ridge, first, begin, out):
    """Log determinants of the scatter matrices plus `ridge` times the weight, by Cholesky's method in all lanes.

    No pivot is below the ridge, in exact arithmetic.
    """
    d = rows.shape[1]
    total, share, deltas = np.empty(LANES), np.empty(LANES), np.empty((2, d, LANES))
    means, scatters, factor = np.empty((d, LANES)), np.empty((d, d, LANES)), np.empty((d, d, LANES))
    for left in range(0, out.shape[1], LANES):
        lanes = min(LANES, out.shape[1] - left)
        total[:] = n
        for i in range(d):
            means[i] = mean[i]
            for j in range(i + 1):
                scatters[i, j] = scatter[i, j]
        for t in range(begin + left + lanes - 1, first - 1, -1):
            lane, w = max(0, t - begin - left), weights[t]
            _extend(total, share, w, lane, lanes)
            for i in range(d):
                for l in range(lane, lanes):
                    deltas[0, i, l] = w * (rows[t, i] - means[i, l])
                    means[i, l] += (rows[t, i] - means[i, l]) * share[l]
                    deltas[1, i, l] = rows[t, i] - means[i, l]
            result = out[t - first, left : left + lanes]
            result[lane:] = 0.0
            for i in range(d):
                for j in range(i + 1):
                    s, f = scatters[i, j], factor[i, j]
                    for l in range(lane, lanes):
                        s[l] += deltas[0, i, l] * deltas[1, j, l]
                        f[l] = s[l]
            for j in range(d):
                pivot = factor[j, j]
                for k in range(j):
                    for l in range(lane, lanes):
                        pivot[l] -= factor[j, k, l] * factor[j, k, l]
                for l in range(lane, lanes):
                    floor = _EPS * (scatters[j, j, l] + ridge * total[l])
                    noisy = pivot[l] + ridge * total[l]
                    pivot[l] = noisy if noisy > floor else max(ridge * total[l], 0.0)
                    result[l] += np.log(pivot[l]) if pivot[l] > _SMALLEST else LOG_0
                    pivot[l] = np.sqrt(pivot[l])
                for i in range(j + 1, d):
                    f = factor[i, j]
                    for k in range(j):
                        for l in range(lane, lanes):
                            f[l] -= factor[i, k, l] * factor[j, k, l]
                    for l in range(lane, lanes):
                        f[l] = f[l] / pivot[l] if pivot[l] > _SMALLEST else 0.0


@compiled
def segment_gaps(rows, weights, n, mean, first, begin, out):
    """One minus the squared mean resultant length, not below rounding."""
    d = rows.shape[1]
    total, share, squares, resultants = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty((d, LANES))
    for left in range(0, out.shape[1], LANES):
        lanes = min(LANES, out.shape[1] - left)
        total[:] = n
        for k in range(d):
            resultants[k] = n * mean[k]
        for t in range(begin + left + lanes - 1, first - 1, -1):
            lane, w = max(0, t - begin - left), weights[t]
            _extend(total, share, w, lane, lanes)
            squares[:] = 0.0
            for k in range(d):
                x, r = w * rows[t, k], resultants[k]
                for l in range(lane, lanes):
                    r[l] += x
                    squares[l] += r[l] * r[l]
            for l in range(lane, lanes):
                gap = 1.0 - squares[l] / (total[l] * total[l])
                out[t - first, left + l] = min(max(gap, _EPS), 1.0)


@compiled
def cheapest_starts(best, costs, end, min_size, starts):
    """Append to the best partitions into 1, 2, ... segments those of the rows before `end`.

    `best[k, s]` is the least cost of k segments of the rows before s, very large if there are none, and `starts[k, s]`
    the row at which the last of them begins. `costs` are those of the segments that end before `end`, by their starts.
    """
    for k in range(1, best.shape[0]):
        before, least, start = best[k - 1], best[k, end], 0
        for t in range(end - min_size + 1):
            value = before[t] + costs[t]
            if value < least:
                least, start = value, t
        best[k, end], starts[k, end] = least, start


@compiled
def critical_penalty(table, min_size):
    """The same as `critical_penalty` of the room `segmentation`, which says what it computes."""
    n = table.shape[0]
    best, count = np.empty(n + 1), np.zeros(n + 1, np.int64)
    penalty = -1e300
    for cut in range(min_size, n - min_size + 1):
        penalty = max(penalty, table[n - 1, 0] - table[cut - 1, 0] - table[n - 1, cut])
    while True:
        best[:] = 1e300
        best[0] = 0.0
        for end in range(min_size, n + 1):
            start = 0
            for begin in range(end - min_size + 1):
                total = best[begin] + table[end - 1, begin]
                if total < best[end]:
                    best[end], start = total, begin
            best[end] += penalty
            count[end] = count[start] + 1
        n_boundaries = count[n] - 1
        gain = table[n - 1, 0] - (best[n] - penalty * count[n])
        if n_boundaries == 0 or gain <= n_boundaries * penalty + 1e-9 * abs(gain):
            return penalty
        penalty = gain / n_boundaries
