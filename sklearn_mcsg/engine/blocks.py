"""Blocks of a matrix that fit into scikit-learn's `working_memory`."""

from __future__ import annotations

from collections.abc import Iterator

from sklearn_mcsg._memory import PAIRS, count_within

_SMALL_SQUARE = 256  # groups: blocks on the diagonal stay small, because half of each is wasted


def rectangle(rows: slice, columns: slice, height: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of at most `height` rows and `width` columns."""
    for i in range(rows.start, rows.stop, height):
        for j in range(columns.start, columns.stop, width):
            yield slice(i, min(i + height, rows.stop)), slice(j, min(j + width, columns.stop))


def triangle(rows: slice, step: int) -> Iterator[tuple[slice, slice]]:
    """Blocks on and above the diagonal: one off-diagonal square and two smaller triangles, recursively."""
    size = rows.stop - rows.start
    if size <= min(step, _SMALL_SQUARE):
        yield rows, rows
        return
    middle = rows.start + size // 2
    yield from rectangle(slice(rows.start, middle), slice(middle, rows.stop), step, step)
    yield from triangle(slice(rows.start, middle), step)
    yield from triangle(slice(middle, rows.stop), step)


def matrix_blocks(
    n_rows: int, n_columns: int, symmetric: bool, pair_nbytes: int, most: int = PAIRS
) -> list[tuple[slice, slice]]:
    """Blocks of `most` bytes of a matrix of pairs that take `pair_nbytes` each, temporary arrays included."""
    count = count_within(pair_nbytes, most)
    step = max(1, int(count**0.5))
    if symmetric:
        return list(triangle(slice(0, n_rows), step))
    height = min(n_rows, step)
    return list(rectangle(slice(0, n_rows), slice(0, n_columns), height, max(1, count // height)))
