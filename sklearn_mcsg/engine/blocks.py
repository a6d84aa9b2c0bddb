"""How much of a matrix is computed at a time: one budget, from scikit-learn's `working_memory`."""

from __future__ import annotations

from collections.abc import Iterator

from sklearn import get_config

CACHE_BYTES = 2**25  # of the temporary arrays of a block: larger ones gain nothing from the processor's caches
_SMALL_SQUARE = 256  # groups: of squares on the diagonal, half is computed in vain


def count_within(nbytes: int, most: float = float("inf")) -> int:
    """How many items of `nbytes` each fit into the working memory, or into `most` bytes if that is less; at least 1."""
    return max(1, int(min(get_config()["working_memory"] * 2**20, most) // max(1, nbytes)))


def rectangle(rows: slice, columns: slice, height: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of at most that many rows and columns."""
    for i in range(rows.start, rows.stop, height):
        for j in range(columns.start, columns.stop, width):
            yield slice(i, min(i + height, rows.stop)), slice(j, min(j + width, columns.stop))


def triangle(rows: slice, step: int) -> Iterator[tuple[slice, slice]]:
    """Blocks on and above the diagonal: one square off it and two smaller triangles, down to small squares."""
    size = rows.stop - rows.start
    if size <= min(step, _SMALL_SQUARE):
        yield rows, rows
        return
    middle = rows.start + size // 2
    yield from rectangle(slice(rows.start, middle), slice(middle, rows.stop), step, step)
    yield from triangle(slice(rows.start, middle), step)
    yield from triangle(slice(middle, rows.stop), step)


def matrix_blocks(n_rows: int, n_columns: int, symmetric: bool, pair_nbytes: int) -> list[tuple[slice, slice]]:
    """The blocks of a matrix, with pairs that take `pair_nbytes` each, temporary arrays included."""
    count = count_within(pair_nbytes, CACHE_BYTES)
    step = max(1, int(count**0.5))
    if symmetric:
        return list(triangle(slice(0, n_rows), step))
    height = min(n_rows, step)
    return list(rectangle(slice(0, n_rows), slice(0, n_columns), height, max(1, count // height)))
