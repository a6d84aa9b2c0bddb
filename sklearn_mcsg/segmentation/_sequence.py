"""The best partitions of a sequence into segments, by dynamic programming over the criteria of segments.

    rows --statistics--> Statistics, one group per row --Costs--> criterion of each segment --> best partitions

The criterion of a partition is the sum over its segments, so the best one that ends with a row follows from the best
ones that end before it. If the penalty never falls when rows are added, most starts can be pruned, as in PELT
(Killick, Fearnhead and Eckley 2012).
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np

from sklearn_mcsg._lazy import lazy
from sklearn_mcsg._memory import SEGMENTS
from sklearn_mcsg.criteria import CRITERIA, Criterion
from sklearn_mcsg.engine.dispatch import prefers_compiled
from sklearn_mcsg.engine.model import GroupModel, raise_not_finite
from sklearn_mcsg.engine.parallel import progress
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.likelihoods import Fit, Segments, SphericalGaussian, Statistics, load_segment_kernels, pooled_nbytes

_KERNELS = "sklearn_mcsg.likelihoods.segment_kernels"
_ROUNDING = 1e-10  # relative to the criterion: a start is kept if it loses by less
_NO_PARTITION = 1e300  # criterion where there is no partition
_INFINITE = 1e200


class SquaredError(SphericalGaussian):
    """Normal distribution of unit variance: twice its negative log-likelihood is the squared error, but for a constant.

    Segments then differ in their means only.
    """

    def log_likelihood(self, statistics: Any) -> np.ndarray:
        return -0.5 * statistics.scatter

    def vector_log_likelihood(self, statistics: Any, vectors: np.ndarray) -> np.ndarray:
        return -0.5 * np.square(vectors - statistics.mean[:, None]).sum(axis=2)


class Unpenalized(Criterion):
    """Twice the negative log-likelihood, which is comparable between partitions into the same number of segments."""

    def penalty(self, fit: Fit) -> float:
        return 0.0


class Costs(ABC):
    """Criteria of the segments of a sequence.

    Each segment contains the pseudo-vectors of the model once, and their own likelihood is subtracted, as in the
    clusters of `ModelComparisonClustering`. Each segment but one pays the penalty of a boundary.
    """

    def __init__(self, model: GroupModel, rows: Statistics, penalty: float = 0.0):
        self.model = model
        self.rows = rows
        self.penalty = penalty
        self.pseudo_likelihood = model.pseudo_likelihood

    def of(self, rows: Statistics, penalty: float = 0.0) -> Self:
        """The same for another sequence, or under another penalty."""
        return type(self)(self.model, rows, penalty)

    def in_order(self, order: np.ndarray) -> np.ndarray:
        """Criteria of all segments of some rows in a given order, without penalties: by their ends and starts."""
        return self.of(self.rows[order]).block(0, 0, len(order))

    @abstractmethod
    def block(self, first: int, begin: int, end: int) -> np.ndarray:
        """Criteria of the segments that end with the rows from `begin` to `end` - 1 and begin at `first` or later.

        There is one matrix row per end and one column per start. Entries of segments that would end before they begin
        have no meaning. Blocks must be asked for in order and without gaps.
        """

    @abstractmethod
    def beginnings(self, orders: np.ndarray) -> np.ndarray:
        """Criteria of the first 1, 2, ... rows in each of several orders; one row per order."""

    def cuts(self, orders: np.ndarray, min_size: int) -> np.ndarray:
        """Criteria of all partitions into two segments, without penalties, in each of several orders of all rows."""
        n = orders.shape[1]
        before, after = self.beginnings(orders), self.beginnings(orders[:, ::-1])[:, ::-1]
        return before[:, min_size - 1 : n - min_size] + after[:, min_size : n - min_size + 1] - 2 * self.penalty

    @abstractmethod
    def extend(self, best: np.ndarray, starts: np.ndarray, costs: np.ndarray, end: int, min_size: int) -> None:
        """Set the column `end` of the best criteria, by number of segments, and of the starts of the last segments."""

    def still_possible(self, best: np.ndarray, first: int, end: int) -> int:
        """The first row from `first` on at which the last segment may begin if it ends after row `end`."""
        return first

    def _criteria(self, statistics: Statistics | Segments) -> np.ndarray:
        with np.errstate(all="ignore"):
            return self.model.fitted(Fit(self.model.likelihood, statistics)) + (self.pseudo_likelihood + self.penalty)


class PooledCosts(Costs):
    """Criteria from pooled statistics, row after row: for any likelihood that pools without its vectors."""

    growing: Statistics | None = None  # the segments that end with the last row of the last block

    def block(self, first: int, begin: int, end: int) -> np.ndarray:
        with np.errstate(all="ignore"):
            costs = np.full((end - begin, end), np.nan)
            if begin == 0:
                self.growing = None
            for row in range(begin, end):
                one = self.rows[row : row + 1]
                segments = self.model.padded(one)
                if self.growing is not None:
                    grown = self.model.likelihood.pool(self.growing, one[np.zeros(row, dtype=int)])
                    segments = type(grown).concatenate([grown, segments])
                costs[row - begin, : row + 1] = self._criteria(segments)
                self.growing = segments
            return costs[:, first:]

    def beginnings(self, orders: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            segments = self.model.padded(self.rows[orders[:, 0]])
            costs = [self._criteria(segments)]
            for rows in orders.T[1:]:
                segments = self.model.likelihood.pool(segments, self.rows[rows])
                costs.append(self._criteria(segments))
            return np.stack(costs, axis=1)

    def extend(self, best: np.ndarray, starts: np.ndarray, costs: np.ndarray, end: int, min_size: int) -> None:
        totals = best[:-1, : len(costs)] + costs
        starts[1:, end] = totals.argmin(axis=1)
        best[1:, end] = np.minimum(totals.min(axis=1), _NO_PARTITION)


class CompiledCosts(Costs):
    """Criteria from the likelihood's `Segments`."""

    def __init__(self, model: GroupModel, rows: Statistics, penalty: float = 0.0):
        super().__init__(model, rows, penalty)
        self.empty = model.statistics(Groups(np.empty((0, rows.n_features)), [0, 0]))
        self.start = self.empty if model.pseudo is None else model.pseudo

    def block(self, first: int, begin: int, end: int) -> np.ndarray:
        return np.ascontiguousarray(self._criteria(self._segments(self.rows, self.start, first, begin, end)).T)

    def beginnings(self, orders: np.ndarray) -> np.ndarray:
        n = len(self.rows)
        backwards = (self.rows[order[::-1]] for order in orders)
        return np.stack([self._criteria(self._segments(rows, self.start, 0, n - 1, n))[::-1, 0] for rows in backwards])

    def extend(self, best: np.ndarray, starts: np.ndarray, costs: np.ndarray, end: int, min_size: int) -> None:
        load_segment_kernels().cheapest_starts(best, costs, end, min_size, starts)

    def still_possible(self, best: np.ndarray, first: int, end: int) -> int:
        """Prune starts that a start at `end` beats, whatever comes after.

        Let A be the rows from t to `end`, B rows after them, and P the pseudo-vectors. Beginning at t instead of at
        `end` gains at most

            IC(A) + IC(B) - IC(AB) = 2 (L(ABP) - L(BP) + L(P) - L(AP)) + 2 (penalty(A) + penalty(B) - penalty(AB)).

        L(ABP) - L(BP) is at most L(A), the maximum of the likelihood of A alone, and penalty(B) is at most penalty(AB).
        Hence t is beaten if best(t) + IC(A) minus this bound, which is best(t) - 2 L(A), is at least best(`end`). The
        same holds for the evidence, because that of A given B is at most the likelihood's maximum without noise.
        """
        with np.errstate(all="ignore"):
            if not self.model.criterion.grows or best[end] >= _INFINITE:
                return first
            noiseless: Any = {"reg_covar": 0.0} if self.model.criterion.uses_prior else {}
            segments: Any = self._segments(replace(self.rows, **noiseless), self.empty, first, end - 1, end)
            alone = -2 * self.model.likelihood.log_likelihood(segments)[:, 0]
            beaten = best[first:end] + alone > best[end] + _ROUNDING * (1 + abs(best[end]))
            return end if beaten.all() else first + int(np.argmin(beaten))

    def _segments(self, rows: Statistics, start: Statistics, first: int, begin: int, end: int) -> Segments:
        segments: Any = self.model.likelihood.segments
        return segments(self.model.likelihood, rows, start, first, begin, end)


class ErrorCosts(Costs):
    """Squared errors of rows in any order, from their products and cumulative sums.

    The sum of squares around the mean of a segment is that around 0, less the square of its sum over its weight. That
    costs digits where segments are far apart, so the best partition is not computed from it.
    """

    def in_order(self, order: np.ndarray) -> np.ndarray:
        if len(order) < len(self.rows):
            return self.of(self.rows[order]).in_order(np.arange(len(order)))
        return squared_errors(self.products[np.ix_(order, order)], self.squares[order], self.rows.n[order])

    @lazy
    def products(self) -> np.ndarray:
        """Products of all rows, around their mean and times their weights."""
        return self.weighted @ self.weighted.T

    @lazy
    def centred(self) -> np.ndarray:
        return self.rows.mean - np.average(self.rows.mean, axis=0, weights=self.rows.n)

    @lazy
    def weighted(self) -> np.ndarray:
        """Rows around their mean, times their weights."""
        return self.rows.n[:, None] * self.centred

    @lazy
    def squares(self) -> np.ndarray:
        """Squared length of each row around their mean, times its weight."""
        return (self.weighted * self.centred).sum(axis=1)

    def beginnings(self, orders: np.ndarray) -> np.ndarray:
        sums = np.stack([np.square(self.weighted[order].cumsum(axis=0)).sum(axis=1) for order in orders])
        return self.squares[orders].cumsum(axis=1) - sums / self.rows.n[orders].cumsum(axis=1) + self.penalty


class PooledErrors(ErrorCosts, PooledCosts):
    """Squared errors by NumPy."""


class CompiledErrors(ErrorCosts, CompiledCosts):
    """Squared errors in compiled code."""


def squared_errors(products: np.ndarray, squares: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Squared errors of all segments of a sequence, by their ends and starts.

    In come the products of weighted rows, the weighted squares of rows, and their weights.
    """
    sums = np.zeros((len(products) + 1, len(products) + 1))
    products.cumsum(axis=0).cumsum(axis=1, out=sums[1:, 1:])
    lengths = np.diag(sums)  # squared, of the sum of the first rows
    total, weight = (np.concatenate([[0.0], values.cumsum()]) for values in (squares, weights))
    squared_sums = lengths[1:, None] + lengths[:-1] - 2 * sums[1:, :-1]
    with np.errstate(all="ignore"):  # above the diagonal are no segments
        return total[1:, None] - total[:-1] - squared_sums / (weight[1:, None] - weight[:-1])


def position_penalty(model: GroupModel, n: int) -> float:
    """Penalty for one boundary at an unknown position among n rows, beside that for the parameters of the segments.

    To name the position takes log n nats, in a code as in a uniform prior (Davis, Lee and Rodriguez-Yam 2006).
    """
    return 2 * model.penalty_scale * float(np.log(n))


def choose_costs(model: GroupModel, rows: Statistics, n_orders: int = 1) -> Costs:
    """Compiled code where the likelihood has it and there is enough work, or where statistics cannot be pooled."""
    if rows.keeps_vectors:
        kinds = {name: kind() for name, kind in CRITERIA.items()}
        names = [repr(n) for n, kind in kinds.items() if kind.order == 2 and not kind.missing(model.likelihood)]
        raise ValueError(
            f"{type(model.criterion).__name__} of {type(model.likelihood).__name__} needs all vectors of every "
            f"segment: choose criterion={' or '.join(names)}, or likelihood='diag'."
        )
    segments: Any = model.likelihood.segments
    usable = segments is not None and segments.is_usable_for(model.likelihood, rows)
    pools = not getattr(rows, "factors", ())
    work = n_orders * len(rows) ** 2 / 2 * pooled_nbytes(rows, rows)
    is_compiled = usable and (prefers_compiled(work, _KERNELS in sys.modules) or not pools)
    if isinstance(model.likelihood, SquaredError):
        return CompiledErrors(model, rows) if is_compiled else PooledErrors(model, rows)
    return CompiledCosts(model, rows) if is_compiled else PooledCosts(model, rows)


def best_partition(costs: Costs, min_size: int, verbose: int = 0) -> tuple[np.ndarray, float]:
    """The boundaries of the partition with the least criterion, and that criterion."""
    n = len(costs.rows)
    best, starts = np.full(n + 1, _NO_PARTITION), np.zeros(n + 1, dtype=np.intp)
    best[0] = -costs.penalty
    for first, end, row in _last_segments(costs, min_size, verbose, best):
        totals = best[first : first + len(row)] + row
        i = int(np.argmin(totals))
        best[end], starts[end] = totals[i], first + i
        _check_finite(costs.model, best[end], end)
    return _boundaries(starts[None], 0, n), float(best[n])


def best_partitions(
    costs: Costs, min_size: int, n_segments: int, verbose: int = 0
) -> tuple[list[np.ndarray], np.ndarray]:
    """The boundaries of the best partitions into 1, 2, ... segments, and their criteria."""
    n = len(costs.rows)
    best = np.full((n_segments + 1, n + 1), _NO_PARTITION)
    starts = np.zeros((n_segments + 1, n + 1), dtype=np.int32)
    best[0, 0] = -costs.penalty
    for _, end, row in _last_segments(costs, min_size, verbose):
        _check_finite(costs.model, float(row.min()), end)
        costs.extend(best, starts, row, end, min_size)
    return [_boundaries(starts[1 : k + 1], k - 1, n) for k in range(1, n_segments + 1)], best[1:, n]


def _last_segments(
    costs: Costs, min_size: int, verbose: int, best: np.ndarray | None = None
) -> Iterator[tuple[int, int, np.ndarray]]:
    """For each end of a segment: the first start, the end, and the criterion of the segment from each start on.

    Given the best criteria so far, by end, starts that cannot be best any more are pruned.
    """
    n = len(costs.rows)
    first = begin = 0
    with progress(verbose, n, "segmenting", " rows") as advance:
        while begin < n:
            end = min(n, begin + int(np.clip(SEGMENTS // (begin - first + 1), 16, 256)))
            block = costs.block(first, begin, end)
            for stop in range(max(begin + 1, first + min_size), end + 1):
                yield first, stop, block[stop - begin - 1, : stop - min_size + 1 - first]
            if best is not None and end + 1 - min_size > first:
                first = costs.still_possible(best, first, end + 1 - min_size)
            advance(end - begin)
            begin = end


def _boundaries(starts: np.ndarray, k: int, end: int) -> np.ndarray:
    """Rows at which segments begin, without row 0, from the starts of the last segments.

    With several rows of starts, one per number of segments, the previous segments are those of the row before.
    """
    found = []
    while starts[k, end] > 0:
        end = int(starts[k, end])
        found.append(end)
        k = max(k - 1, 0)
    return np.array(found[::-1], dtype=np.intp)


def _check_finite(model: GroupModel, value: float, end: int) -> None:
    """Raise if a criterion is not finite."""
    if abs(value) < _INFINITE:
        return
    if model.reg_covar == 0 and model.pseudo is None and not value > 0:
        raise ValueError(
            f"A segment that ends before row {end} has an infinite likelihood under "
            f"{type(model.likelihood).__name__}: it does not vary in some direction. Set reg_covar > 0, "
            f"prior_strength > 0, or a larger min_size."
        )
    raise_not_finite(f"The criterion of a segment that ends before row {end}")
