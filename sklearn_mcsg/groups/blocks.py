"""Groups in blocks of bounded size: whole groups, or pieces of large ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sklearn_mcsg._memory import VECTORS, count_within
from sklearn_mcsg.groups._groups import Groups


def block_rows(groups: Groups) -> int:
    """Number of vectors of which a few float64 copies fit into working memory and cache."""
    return count_within(32 * max(1, groups.n_features), VECTORS)


def blocks(groups: Groups) -> Iterator[slice]:
    """Slices of whole groups, each of at most `block_rows` vectors unless it is a single larger group."""
    n_rows = block_rows(groups)
    start = 0
    while start < len(groups):
        stop = group_of(groups, groups.offsets[start] + n_rows)
        stop = min(max(stop, start + 1), len(groups))
        yield slice(start, stop)
        start = stop


def pieces(groups: Groups, n_rows: int) -> Iterator[tuple[slice, Groups]]:
    """Pieces of at most `n_rows` vectors, each with the slice of its groups; large groups are divided."""
    for start in range(0, groups.n_rows, n_rows):
        rows = slice(start, min(start + n_rows, groups.n_rows))
        first = group_of(groups, start)
        last = int(np.searchsorted(groups.offsets, rows.stop))
        yield slice(first, last), groups._cut(rows, groups.offsets[first : last + 1])


def group_of(groups: Groups, row: int) -> int:
    """The group that holds a row; past the last row, the number of groups."""
    return int(np.searchsorted(groups.offsets, row, side="right")) - 1


def rows_of(groups: Groups, i: int) -> slice:
    """The rows of one group."""
    return groups._rows_of(i)


def per_vector(values: np.ndarray, groups: Groups) -> np.ndarray:
    """Values of groups, repeated for each of their vectors."""
    return np.repeat(values, groups.sizes, axis=0)
