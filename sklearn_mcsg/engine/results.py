"""Where results go: their precision, the library and device of their arrays, and an array to fill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.array_groups import ArrayGroups
from sklearn_mcsg.groups.arrays import ArrayKind


@dataclass(frozen=True, eq=False)
class Target:
    """Where a result goes.

    Attributes
    ----------
    dtype : dtype
        Precision of the result.
    kind : ArrayKind or None
        Library and device of its arrays; None means NumPy.
    out : ndarray or None
        The array to write a matrix to.
    """

    dtype: np.dtype
    kind: ArrayKind | None = None
    out: np.ndarray | None = None

    @classmethod
    def of(cls, *collections: Groups | ArrayGroups, dtype: np.dtype | None = None) -> Target:
        """The target for groups: float32 if all are of single precision; library and device are those of the first.

        `dtype` is the precision of further groups that take part.
        """
        dtypes = [groups.output_dtype for groups in collections]
        common = np.result_type(*dtypes, *([] if dtype is None else [dtype]))
        first = collections[0]
        if not isinstance(first, ArrayGroups):
            return cls(common)
        kind = first.kind.promoted(common)
        return cls(kind.dtype, kind)

    def finished(self, values: np.ndarray) -> Any:
        """Values of NumPy in the precision, the library and on the device of the target."""
        if self.kind is not None:
            return self.kind.result(self.kind.asarray(values))
        return in_precision(values, self.dtype)


DOUBLE = Target(np.dtype(np.float64))


def in_precision(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Values in the precision of the vectors; raise if they overflow."""
    with np.errstate(over="ignore"):
        cast = values.astype(dtype, copy=False)
    if cast is not values and not np.isfinite(cast).all():
        raise ValueError("A result exceeds the range of float32, the precision of the vectors: pass them as float64.")
    return cast


def empty_matrix(n_rows: int, n_columns: int, dtype: np.dtype) -> np.ndarray:
    """A matrix to fill; raise an error that says what to do if it is too large."""
    try:
        return np.empty((n_rows, n_columns), dtype=dtype)
    except MemoryError as error:
        need = n_rows * n_columns * dtype.itemsize / 2**30
        raise MemoryError(
            f"A matrix of {n_rows} x {n_columns} pairs takes {need:,.1f} GiB, more than is available. GroupNeighbors "
            f"keeps only the nearest groups, as a sparse graph; pairwise_chunked yields rows; pairwise(out=...) fills "
            f"a memory map."
        ) from error
