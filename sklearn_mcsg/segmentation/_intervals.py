"""Confidence intervals of boundaries, by permutation tests of every place that they could have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sklearn_mcsg.segmentation._null import RandomOrders
from sklearn_mcsg.segmentation._orders import random_order
from sklearn_mcsg.segmentation._sequence import choose_costs

_NEAR = 200  # rows on each side of a boundary from which its interval is computed first
_ROUNDING = 1e-9  # relative to the range of criteria; of those that are equal, but computed in different orders


def interval(orders: RandomOrders, begin: int, place: int, end: int) -> tuple[int, int]:
    """First and last row that may be the true place of a boundary between `begin` and `end` that was found at `place`.

    The rows near it suffice, unless the interval reaches the last of them: then twice as many are looked at.
    """
    near, least = _NEAR, orders.min_size
    while True:
        left, right = max(begin, place - near), min(end, place + near)
        first, last = _interval_within(orders, left, right)
        if (left == begin or first > left + least) and (right == end or last < right - least):
            return first, last
        near *= 2


def _interval_within(orders: RandomOrders, begin: int, end: int) -> tuple[int, int]:
    """First and last row that may be the true place of the only boundary between `begin` and `end`.

    If the boundary is at row t, all orders of the rows before t, and of those from t on, are equally probable. The loss
    of row t is its criterion minus that of the best row. Row t is part of the interval unless its loss in the given
    order is larger than in a share 1 - level of these orders. Rows are ranked by their losses, and bisection finds the
    last one that is part of the interval.
    """
    least = orders.min_size
    costs = choose_costs(orders.model, orders.rows[begin:end])
    (criteria,) = costs.cuts(np.arange(end - begin)[None], least)
    losses, rounding = criteria - criteria.min(), _ROUNDING * np.ptp(criteria)
    ranked = np.argsort(losses, kind="stable")
    size, rng = orders.null.block_size, np.random.RandomState(orders.seed)

    def is_possible(rank: int) -> bool:
        i = int(ranked[rank])
        cut, rest = i + least, end - begin - i - least
        permuted = [
            np.concatenate([random_order(cut, size, rng), cut + random_order(rest, size, rng)])
            for _ in range(orders.n_permutations)
        ]
        found = costs.cuts(np.array(permuted), least)
        lost = found[:, i] - found.min(axis=1)
        n_as_bad = 1 + (lost >= losses[i] - rounding).sum()
        return bool(n_as_bad > orders.level * (1 + orders.n_permutations))

    inside = begin + least + ranked[: _count_true(is_possible, len(ranked))]
    return int(inside.min()), int(inside.max())


def _count_true(function: Callable[[int], bool], n: int) -> int:
    """For how many of 0, ..., n - 1 a function is true, if it is true at 0 and false from some number on."""
    low, high = 0, 1  # it is true at `low`
    while high < n and function(high):
        low, high = high, 2 * high
    high = min(high, n)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if function(middle) else (low, middle)
    return high
