"""The penalty for a boundary that keeps a level, from the same sequence in random order.

Let E(k) be the criterion of the best partition into k segments, without penalties for boundaries. The best partition
under a penalty for each boundary has boundaries if the penalty is below the sequence's

    critical penalty = max over k > 1 of (E(1) - E(k)) / (k - 1).

If nothing changes, all orders of the rows are equally probable. So a penalty that the critical penalties of a share
`level` of random orders exceed cuts a share `level` of sequences without change, whatever the distribution of their
rows is. Rows that depend on their neighbours are moved in blocks.

A boundary of the best partition gains at least the penalty: without it, the two segments beside it would be one. Its
p-value is the share of random orders whose critical penalty is at least its gain, and so at most the level.

    rows --random order--> rows --criteria of all segments--> table --critical penalty--> Null --> penalty, p-values
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sklearn_mcsg._lazy import lazy
from sklearn_mcsg.engine.model import GroupModel, raise_not_finite
from sklearn_mcsg.engine.parallel import progress
from sklearn_mcsg.likelihoods import load_segment_kernels
from sklearn_mcsg.segmentation._sequence import CompiledCosts, Costs, SquaredError, best_partition, choose_costs

FEWEST_BLOCKS = 6  # fewer have too few orders
_MOST_ROWS = 1000  # that are put into random order at a time; time grows with the square
_ROUNDING = 1e-9  # of critical penalties that are equal, but were computed in different orders
_LOST = 0.05  # share of the variance of long sums that blocks may lack, if there are enough of them
_NEAR = 200  # rows on each side of a boundary that its interval is computed from
_GROW_ROWS, _GROW_BLOCKS = 10, 8  # rows and blocks of the average segment, from which blocks may grow


@dataclass(frozen=True)
class Null:
    """Critical penalties of a sequence in random order.

    Of a sequence of many rows, pieces are put into random order. It counts as so many of them: its p-values are
    multiplied by their number.
    """

    penalties: np.ndarray  # in descending order
    n_pieces: float
    block_size: int
    unit: float  # of gains

    def penalty(self, level: float) -> float:
        """The smallest penalty under which a sequence without change is cut with probability `level` at most."""
        place = int(level * (1 + _ROUNDING) * (len(self.penalties) + 1) / self.n_pieces) - 1
        return float(self._rounded_up[place] * self.unit)

    def pvalues(self, gains: np.ndarray) -> np.ndarray:
        """Share of random orders whose critical penalty is not smaller than each gain; the given order counts, too."""
        as_large = (self._rounded_up >= gains[:, None] / self.unit).sum(axis=1)
        return np.minimum(1.0, (1 + as_large) / (len(self.penalties) + 1) * self.n_pieces)

    @property
    def _rounded_up(self) -> np.ndarray:
        return self.penalties + _ROUNDING * np.abs(self.penalties)


@dataclass(frozen=True)
class Chance:
    """What a sequence would be by chance: its rows in random order.

    Attributes
    ----------
    model : GroupModel
        The model of a segment.
    rows : Statistics
        Statistics of the rows, one group each.
    min_size, block_size, n_permutations, level, verbose
        See `ModelComparisonSegmenter`.
    seed : int
        Determines the orders.
    """

    model: GroupModel
    rows: Any
    min_size: int
    block_size: int | str
    n_permutations: int
    level: float
    seed: int
    verbose: int = 0

    def check(self) -> None:
        """Raise ValueError if so many random orders cannot hold the level."""
        n = len(self.rows)
        fewest = int(np.ceil(_n_pieces(n) / self.level * (1 - _ROUNDING))) - 1
        if self.n_permutations < fewest:
            raise ValueError(
                f"n_permutations={self.n_permutations} cannot show a p-value of {self.level} in a sequence of {n} "
                f"rows: it takes at least {fewest}."
            )
        if isinstance(self.block_size, int) and n < FEWEST_BLOCKS * self.block_size:
            raise ValueError(
                f"block_size={self.block_size} divides {n} rows into fewer than {FEWEST_BLOCKS} blocks, which have too "
                f"few orders: choose at most {max(1, n // FEWEST_BLOCKS)}."
            )

    @lazy
    def costs(self) -> Costs:
        return choose_costs(self.model, self.rows, self.n_permutations)

    @lazy
    def null(self) -> Null:
        self.check()
        with np.errstate(all="ignore"):
            null = self._calibrated()
        if not np.isfinite([*null.penalties, null.unit]).all():
            raise_not_finite("The criterion of a segment")
        return null

    def _calibrated(self) -> Null:
        if self.block_size == "growing":
            return self._grown()
        if isinstance(self.block_size, str):
            size, share = chosen_blocks(self.rows.mean, is_pooled=self._is_error)
        else:
            size, share = self.block_size, 1.0
        null = self._of_blocks(size, in_units=self._is_error and size == 1)
        own = self._penalty_of_cut()  # which dependence does not change
        return replace(null, penalties=(null.penalties + own) / share - own)

    def _penalty_of_cut(self) -> float:
        """The criterion's own penalty for one more segment, in the middle of the sequence."""
        n, unpenalized = len(self.rows), replace(self.model, penalty_scale=0.0)
        both = (
            type(self.costs)(model, self.rows).beginnings(np.arange(n)[None]) for model in (self.model, unpenalized)
        )
        (penalties,) = np.subtract(*both)
        return float(2 * penalties[n // 2 - 1] - penalties[-1])

    def _grown(self) -> Null:
        """Double the blocks as long as segments are long: for rows that resemble their neighbours at all distances."""
        n, null = len(self.rows), self._of_blocks(1)
        while True:
            penalized = self.costs.of(self.rows, null.penalty(self.level))
            found = 1 + len(best_partition(penalized, self.min_size)[0])
            size = null.block_size
            is_long = n / found >= max(_GROW_ROWS, _GROW_BLOCKS * size)
            if found == 1 or not is_long or n < 2 * size * FEWEST_BLOCKS:
                return null
            null = self._of_blocks(2 * size)

    def _of_blocks(self, block_size: int, in_units: bool = False) -> Null:
        """Critical penalties of random orders; gains in units of the difference of neighbours, or as they are."""
        rng, n = np.random.RandomState(self.seed), len(self.rows)
        critical: Any = critical_penalty
        if isinstance(self.costs, CompiledCosts):
            critical = load_segment_kernels().critical_penalty
        found = np.empty(self.n_permutations)
        with progress(self.verbose, self.n_permutations, "permuting", " orders") as advance:
            for i in range(self.n_permutations):
                order = random_order(n, block_size, rng)[:_MOST_ROWS]
                unit = neighbour_difference(self.rows.mean[order]) if in_units else 1.0
                found[i] = critical(self._table(order), self.min_size) / unit
                advance(1)
        unit = neighbour_difference(self.rows.mean) if in_units else 1.0
        return Null(np.sort(found)[::-1], _n_pieces(n), block_size, unit)

    @property
    def _is_error(self) -> bool:
        return isinstance(self.model.likelihood, SquaredError)

    def _table(self, order: np.ndarray) -> np.ndarray:
        """Criteria of all segments of some rows in a given order."""
        if not self._is_error:
            return self.costs.in_order(order)
        if len(self.rows) > _MOST_ROWS:
            return replace(self, rows=self.rows[order])._table(np.arange(len(order)))
        return squared_errors(self.products[np.ix_(order, order)], self.rows.n[order])

    @lazy
    def products(self) -> np.ndarray:
        """Products of all rows, around their mean and times their weights."""
        weights = self.rows.n
        weighted = weights[:, None] * (self.rows.mean - np.average(self.rows.mean, axis=0, weights=weights))
        return weighted @ weighted.T

    def interval(self, begin: int, place: int, end: int) -> tuple[int, int]:
        """First and last row that may be the true place of the only boundary between two rows.

        If the boundary is at row t, all orders of the rows before t, and of those from t on, are equally probable. Row
        t is part of the interval unless its criterion is worse than that of the best place by more than in a share 1 -
        level of these orders. Rows are taken as part of it up to a limit of this loss, which is found by bisection.
        """
        begin, end = max(begin, place - _NEAR), min(end, place + _NEAR)
        part = replace(self, rows=self.rows[begin:end], n_permutations=1)  # many short orders are pooled faster
        (criteria,) = part.of_cuts(np.arange(end - begin)[None])
        losses = criteria - criteria.min()
        ranked = np.argsort(losses, kind="stable")
        size, rng = self.null.block_size, np.random.RandomState(self.seed)

        def is_possible(rank: int) -> bool:
            i = int(ranked[rank])
            cut, rest = i + self.min_size, end - begin - i - self.min_size
            orders = [
                np.concatenate([random_order(cut, size, rng), cut + random_order(rest, size, rng)])
                for _ in range(self.n_permutations)
            ]
            permuted = part.of_cuts(np.array(orders))
            lost = permuted[:, i] - permuted.min(axis=1)
            n_as_bad = 1 + (lost >= losses[i] - _ROUNDING * (1 + losses[i])).sum()
            return bool(n_as_bad > self.level * (1 + self.n_permutations))

        inside = begin + self.min_size + ranked[: _first_false(is_possible, len(ranked))]
        return int(inside.min()), int(inside.max())

    def of_cuts(self, orders: np.ndarray) -> np.ndarray:
        """Criteria of all partitions of the rows into two segments, in each of several orders."""
        n, least = len(self.rows), self.min_size
        if self._is_error:
            tables = [self._table(order) for order in orders]
            before, after = np.array([t[:, 0] for t in tables]), np.array([t[-1] for t in tables])
        else:
            before, after = self.costs.beginnings(orders), self.costs.beginnings(orders[:, ::-1])[:, ::-1]
        return before[:, least - 1 : n - least] + after[:, least : n - least + 1]


def _n_pieces(n_rows: int) -> float:
    return max(1.0, n_rows / _MOST_ROWS)


def _first_false(function: Callable[[int], bool], n: int) -> int:
    """The first number below n, or n, for which a function is false; of a function that is true, then false."""
    low, high = 0, 1  # it is true at `low`
    while high < n and function(high):
        low, high = high, 2 * high
    high = min(high, n)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if function(middle) else (low, middle)
    return high


# Random orders ------------------------------------------------------------------------------------------------------


def random_order(n: int, block_size: int, rng: np.random.RandomState) -> np.ndarray:
    """The numbers below n in blocks of consecutive ones, of which the first begins anywhere, in random order."""
    rows = np.roll(np.arange(n), -rng.randint(block_size))
    blocks = [rows[begin : begin + block_size] for begin in range(0, n, block_size)]
    return np.concatenate([blocks[i] for i in rng.permutation(len(blocks))])


def chosen_blocks(rows: np.ndarray, is_pooled: bool) -> tuple[int, float]:
    """How many consecutive rows to keep together, and the share of the variance of long sums that remains.

    If correlations fall geometrically, half the mean squared difference of rows h apart is 1 - r^h, in units of the
    variance. Differences at h = 1 and 2 hence give r = d(2) / d(1) - 1, which a few changes of the mean hardly affect.
    The variance of the sum of a block then lacks a share 2 r / (1 - r²) / block_size of that of long blocks.
    Features that are summed are pooled; otherwise the most correlated one counts, less what the largest of so many has
    by chance.
    """
    n = len(rows)
    with np.errstate(all="ignore"):
        one, two = (_squared_differences(rows, lag, is_pooled) for lag in (1, 2))
        ratios = two / one
    chance = np.sqrt(4 * np.log(len(one)) / n)
    r = float(np.clip(ratios[np.isfinite(ratios)].max(initial=0) - 1 - chance, 0, 0.99))
    lacking = 2 * r / (1 - r**2)
    size = int(np.clip(round(lacking / _LOST), 1, max(1, n // FEWEST_BLOCKS)))
    return size, (1.0 if size == 1 else max(0.5, 1 - lacking / size))


# Critical penalties -------------------------------------------------------------------------------------------------


def neighbour_difference(rows: np.ndarray) -> float:
    """Mean squared difference of neighbouring rows: their variance, hardly affected by a few changes of the mean.

    In this unit a large change does not hide a small one, though both are part of the rows in random order. It is for
    single rows, because random order changes the neighbours at the ends of blocks only.
    """
    return float(_squared_differences(rows, 1, is_pooled=True)[0]) or 1.0


def _squared_differences(rows: np.ndarray, lag: int, is_pooled: bool) -> np.ndarray:
    """Mean squared differences of rows so far apart, of each feature or of all together, but for the largest tenth.

    The largest ones may be changes.
    """
    squares = np.square(rows[lag:] - rows[:-lag])
    if is_pooled:
        squares = squares.sum(axis=1, keepdims=True)
    return np.sort(squares, axis=0)[: max(1, len(squares) * 9 // 10)].mean(axis=0)


def critical_penalty(table: np.ndarray, min_size: int) -> float:
    """The largest penalty for a boundary below which the best partition has boundaries.

    `table[t - 1, s]` is the criterion of the segment from row s to row t - 1. The best partition under a penalty that
    is too small has a larger one: what it gains for each boundary. This is Dinkelbach's method (1967).
    """
    n = len(table)
    cuts = np.arange(min_size, n - min_size + 1)
    penalty = float((table[-1, 0] - table[cuts - 1, 0] - table[-1, cuts]).max())
    while True:
        best, count = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=np.intp)
        best[0] = 0.0
        for end in range(min_size, n + 1):
            totals = best[: end - min_size + 1] + table[end - 1, : end - min_size + 1]
            start = int(np.argmin(totals))
            best[end], count[end] = totals[start] + penalty, count[start] + 1
        n_boundaries = int(count[n]) - 1
        gain = table[-1, 0] - (best[n] - penalty * count[n])
        if n_boundaries == 0 or gain <= n_boundaries * penalty + _ROUNDING * abs(gain):
            return penalty
        penalty = float(gain / n_boundaries)


def squared_errors(products: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Squared errors of all segments of a sequence, by their ends and starts, from the products of weighted rows.

    The sum of squares around the mean of a segment is that around 0, less the square of its sum over its weight.
    """
    sums = np.zeros((len(products) + 1, len(products) + 1))
    with np.errstate(all="ignore"):  # above the diagonal are no segments
        products.cumsum(axis=0).cumsum(axis=1, out=sums[1:, 1:])
        own = np.diag(sums)
        squares, weight = (np.concatenate([[0.0], v.cumsum()]) for v in (np.diag(products) / weights, weights))
        squared_sums = own[1:, None] + own[:-1] - 2 * sums[1:, :-1]
        return squares[1:, None] - squares[:-1] - squared_sums / (weight[1:, None] - weight[:-1])
