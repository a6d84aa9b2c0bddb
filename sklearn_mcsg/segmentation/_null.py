"""The penalty for a boundary that keeps a level, from the same sequence in random order.

Let E(k) be the criterion of the best partition into k segments, without penalties. With a penalty for each boundary,
the best partition is cut if the penalty is below the sequence's

    critical penalty = max over k > 1 of (E(1) - E(k)) / (k - 1).

If nothing changes, all orders of the rows are equally probable, so the critical penalty of the given order is like
those of random orders. The penalty is chosen so that a share `level` of these exceed it: then a sequence without change
is cut with probability `level` at most, whatever the distribution of its rows is. Rows that depend on their neighbours
are moved in blocks.

A boundary of the best partition gains at least the penalty: without it, the two segments beside it would be one. Its
p-value is the share of random orders whose critical penalty is at least its gain, or the critical penalty of the given
order if that is smaller, because no boundary can be more certain than that there is one at all. So it is at most the
level.

    rows --random order--> rows --criteria of all segments--> table --critical penalty--> Null --> penalty, p-values
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from sklearn_mcsg._lazy import lazy
from sklearn_mcsg.engine.model import GroupModel, raise_not_finite
from sklearn_mcsg.engine.parallel import progress
from sklearn_mcsg.likelihoods import load_segment_kernels
from sklearn_mcsg.segmentation._orders import FEWEST_BLOCKS, chosen_blocks, neighbour_difference, random_order
from sklearn_mcsg.segmentation._sequence import CompiledCosts, Costs, SquaredError, best_partition, choose_costs

LEVEL = 0.05  # where there is no criterion, unless another one is given
_MOST_ROWS = 1000  # that are put into random order at a time; time grows with the square
_MANY_ORDERS = 1e15  # too many for any computer
_ROUNDING = 1e-9  # of critical penalties that are equal, but were computed in different orders
_GROW_ROWS, _GROW_BLOCKS = 10, 8  # rows and blocks of the average segment, from which blocks may grow


@dataclass(frozen=True)
class Null:
    """Critical penalties of a sequence in random order.

    Of a long sequence, pieces are put into random order. Its p-values are multiplied by its length in such pieces.
    """

    penalties: np.ndarray  # in descending order
    length: float
    block_size: int
    unit: float  # in which the penalties are measured

    def penalty(self, level: float) -> float:
        """The smallest penalty under which a sequence without change is cut with probability `level` at most."""
        place = int(level * (1 + _ROUNDING) * (len(self.penalties) + 1) / self.length) - 1
        return float(self._rounded_up[max(place, 0)] * self.unit)

    def pvalues(self, gains: np.ndarray) -> np.ndarray:
        """Share of random orders whose critical penalty is not smaller than each gain; the given order counts, too."""
        as_large = (self._rounded_up >= gains[:, None] / self.unit).sum(axis=1)
        return np.minimum(1.0, (1 + as_large) / (len(self.penalties) + 1) * self.length)

    @property
    def _rounded_up(self) -> np.ndarray:
        return self.penalties + _ROUNDING * np.abs(self.penalties)


@dataclass(frozen=True)
class RandomOrders:
    """A sequence with its rows in random order.

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

    def too_few(self) -> str | None:
        """Why there are too few random orders for the level, or None."""
        n = len(self.rows)
        fewest = fewest_permutations(self.level, n)
        if self.n_permutations >= fewest:
            return None
        return (
            f"n_permutations={self.n_permutations} cannot show a p-value of {self.level} in a sequence of {n} rows: it "
            f"takes at least {fewest}."
        )

    def check_blocks(self) -> None:
        """Raise ValueError if blocks of the given size are too few."""
        n = len(self.rows)
        if isinstance(self.block_size, Integral) and n < FEWEST_BLOCKS * self.block_size:
            raise ValueError(
                f"block_size={self.block_size} divides {n} rows into fewer than {FEWEST_BLOCKS} blocks, which have too "
                f"few orders: choose at most {max(1, n // FEWEST_BLOCKS)}."
            )

    @lazy
    def costs(self) -> Costs:
        return choose_costs(self.model, self.rows, self.n_permutations)

    @lazy
    def null(self) -> Null:
        with np.errstate(all="ignore"):
            null = self._grown() if self.block_size == "growing" else self._calibrated()
        if not np.isfinite([*null.penalties, null.unit]).all():
            raise_not_finite("The criterion of a segment")
        return null

    def pvalues(self, gains: np.ndarray) -> np.ndarray:
        """P-values of boundaries, by what they gain; none is below that of the whole sequence."""
        return self.null.pvalues(np.minimum(gains, self.critical))

    @lazy
    def critical(self) -> float:
        """The critical penalty of the given order."""
        n, least = len(self.rows), self.min_size
        (whole,) = self.costs.beginnings(np.arange(n)[None])[:, -1]
        penalty = float(whole - self.costs.cuts(np.arange(n)[None], least).min())
        while True:
            boundaries, total = best_partition(self.costs.of(self.rows, penalty), least)
            gain, count = whole - total + penalty * len(boundaries), len(boundaries)
            if count == 0 or gain <= count * penalty + _ROUNDING * abs(gain):
                return penalty
            penalty = float(gain / count)

    def _calibrated(self) -> Null:
        """The null distribution of a given block size, or of one that the autocorrelation gives."""
        is_error = isinstance(self.model.likelihood, SquaredError)
        if isinstance(self.block_size, str):
            size, share = chosen_blocks(self.rows.mean, is_pooled=is_error)
        else:
            size, share = self.block_size, 1.0
        null = self._of_blocks(size, in_units=is_error and size == 1)
        if share == 1:
            return null
        own = self._penalty_of_cut()  # which dependence does not change
        return replace(null, penalties=(null.penalties + own) / share - own)

    def _penalty_of_cut(self) -> float:
        """The criterion's own penalty for one more segment, in the middle of the sequence."""
        order, unpenalized = np.arange(len(self.rows))[None], replace(self.model, penalty_scale=0.0)
        both = (choose_costs(model, self.rows).beginnings(order) for model in (self.model, unpenalized))
        (penalties,) = np.subtract(*both)
        return float(2 * penalties[len(penalties) // 2 - 1] - penalties[-1])

    def _grown(self) -> Null:
        """Double the blocks while segments are much longer: rows may resemble their neighbours at all distances."""
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
        """Critical penalties of random orders; in units of the difference of neighbours, or as they are."""
        rng, n = np.random.RandomState(self.seed), len(self.rows)
        piece = min(n, max(_MOST_ROWS, 2 * self.min_size))
        critical: Any = critical_penalty
        if isinstance(self.costs, CompiledCosts):
            critical = load_segment_kernels().critical_penalty
        found = np.empty(self.n_permutations)
        with progress(self.verbose, self.n_permutations, "permuting", " orders") as advance:
            for i in range(self.n_permutations):
                order = random_order(n, block_size, rng)[:piece]
                unit = neighbour_difference(self.rows.mean[order]) if in_units else 1.0
                found[i] = critical(self.costs.in_order(order), self.min_size) / unit
                advance(1)
        unit = neighbour_difference(self.rows.mean) if in_units else 1.0
        return Null(np.sort(found)[::-1], max(1.0, n / piece), block_size, unit)


def check_one_rule(n_segments: int | None, level: float | None) -> None:
    """Raise ValueError if both a number of segments and a level are given."""
    if n_segments is not None and level is not None:
        raise ValueError(f"level={level} finds the number of segments, and n_segments={n_segments} gives it: pass one.")


def fewest_permutations(level: float | None, n_rows: int) -> int:
    """The least number of random orders, up to 1e15, with which a p-value can be as small as a level.

    None is the usual level.
    """
    needed = max(1.0, n_rows / _MOST_ROWS) / (level or LEVEL) * (1 - _ROUNDING)
    return int(np.ceil(min(needed, _MANY_ORDERS))) - 1


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
