"""Checks of arrays and numbers. Every message says what was wrong and what to do."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_array

from sklearn_mcsg.groups.arrays import refuse_arrays

FOR_TEXTS = "For texts use make_text_embedding or make_text_similarity."
_EXACT_INTEGER = 2**53  # double precision does not hold all integers beyond it
LARGEST_WEIGHT = 1e100  # of a group: products of two such weights are far from the limits of double precision


def check_group(array: Any, which: int | str) -> np.ndarray:
    """Check one group, given by its number or its name, and return it as a 2-d array of numbers."""
    name = f"Group {which}" if isinstance(which, int) else which
    if isinstance(array, str | bytes):
        raise TypeError(f"{name} is a string, but must be an array of vectors. {FOR_TEXTS}")
    if sparse.issparse(array):
        raise TypeError(f"{name} is a sparse matrix, but vectors must be dense: pass its toarray().")
    refuse_arrays(array, name)
    for values in (array, *(array if isinstance(array, list | tuple) else ())):
        refuse_masks(values, name)
    if is_missing(array):
        in_a_list = isinstance(which, int)
        advice = "leave it out, and its label if there are labels" if in_a_list else "pass its vectors"
        raise TypeError(f"{name} is missing, got {array!r}: {advice}.")
    try:
        array = np.asarray(array)
        if array.dtype == object and array.ndim == 1 and array.size:
            array = np.stack(array)
    except ValueError as error:
        raise ValueError(
            f"{name} has vectors of different numbers of features: a group is one array (n_vectors, n_features)."
        ) from error
    if array.ndim == 1 and array.size == 0:
        return np.empty((0, 0))
    if array.ndim != 2:
        advice = (
            "Pass a single vector x as x.reshape(1, -1), or groups of one vector each, the rows of X, as X[:, None]."
            if array.ndim < 2
            else "If it holds several groups, pass one of them."
        )
        raise ValueError(
            f"{name} has {array.ndim} dimension(s), but a group is a 2-d array (n_vectors, n_features). {advice}"
        )
    return check_numeric(array, name)


def check_numeric(array: np.ndarray, name: str) -> np.ndarray:
    """Check that an array holds real numbers, and keep its precision."""
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name}. Pass real and imaginary parts as features.")
    if array.dtype.kind == "O":
        try:
            return array.astype(np.float64)
        except (OverflowError, TypeError, ValueError) as error:
            raise TypeError(f"{name} must hold numbers, got objects: {error}") from error
    if array.dtype.kind not in "biuf":
        advice = f" {FOR_TEXTS}" if array.dtype.kind in "SU" and array.ndim > 1 else ""
        raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}.{advice}")
    return array


def refuse_masks(X: Any, name: str) -> None:
    """Raise if values of an array are masked: the mask would be lost."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise TypeError(
            f"{name} is a masked array, whose mask would be lost: pass plain arrays, without what is masked."
        )


def check_table(X: Any, name: str = "X") -> np.ndarray:
    """Check one vector per row and return them as a 2-d array of numbers.

    scikit-learn's `check_array` is asked about everything else: it changes the warning filters of the process for a
    moment, which threads that overlap would leave changed.
    """
    refuse_masks(X, name)
    try:
        table = np.asarray(X)
    except ValueError:
        table = None
        if any(isinstance(row, list | tuple) and row and isinstance(row[0], str | bytes) for row in X):
            raise TypeError(f"{name} holds strings, but must hold groups of vectors. {FOR_TEXTS}") from None
    _refuse_strings_beside_numbers(X, table, name)
    if table is not None and table.size and isinstance(table.flat[0], str | bytes):
        raise TypeError(f"{name} holds strings, but must hold groups of vectors. {FOR_TEXTS}")
    if table is not None and table.ndim < 2:
        raise ValueError(
            f"{name} holds numbers, but must hold groups of vectors. Reshape your data: {name}.reshape(1, -1) is one "
            f"group of one vector, and {name}.reshape(-1, 1, 1) are groups of one number each."
        )
    if table is not None and table.ndim > 2:
        raise ValueError(
            f"{name} has {table.ndim} dimensions, but at most three are allowed: (n_groups, n_vectors, n_features). "
            f"Reshape your data, for example to {name}.reshape({len(table)}, -1, {table.shape[-1]})."
        )
    if table is None or table.ndim != 2 or table.dtype.kind not in "biuf" or isinstance(X, np.matrix):
        return check_array(X, dtype="numeric", ensure_all_finite=False, input_name=name)
    return table


def _refuse_strings_beside_numbers(X: Any, table: np.ndarray | None, name: str) -> None:
    """Raise if some columns of a data frame hold strings and others do not."""
    if table is None or table.dtype != object or table.ndim != 2 or not len(table) or not hasattr(X, "columns"):
        return
    of_strings = [column for column, value in zip(X.columns, table[0], strict=True) if isinstance(value, str | bytes)]
    if 0 < len(of_strings) < table.shape[1]:
        column = of_strings[0]
        raise TypeError(
            f"{name} holds strings in the column {column!r}: leave it out. If it says which group a row belongs to, "
            f"pass Groups.from_labels({name}.drop(columns={column!r}), {name}[{column!r}])[0]."
        )


def check_widths(widths: dict[int, int], first: int, kind: str = "group") -> None:
    """Raise unless groups, given by their numbers, have the width of the first."""
    for i, width in widths.items():
        if width != widths[first]:
            raise ValueError(
                f"All vectors must have the same number of features, but {kind} {first} has {widths[first]} "
                f"and {kind} {i} has {width}: take the vectors of all {kind}s from one space."
            )


def check_indices(indices: ArrayLike, n_vectors: int) -> np.ndarray:
    """Check indices of rows of a table."""
    indices = as_array(indices, "indices")
    if indices.size == 0:
        indices = indices.astype(np.intp)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ValueError(f"indices must be a 1-d array of integers, got {indices.dtype} of shape {indices.shape}.")
    if indices.size and (indices.min() < 0 or indices.max() >= n_vectors):
        raise ValueError(f"indices must lie between 0 and {n_vectors - 1}, the last row of vectors.")
    return indices.astype(np.int64) if indices.dtype == np.uint64 else indices  # uint64 plus int64 would be float64


def check_offsets(offsets: ArrayLike, n_rows: int) -> np.ndarray:
    """Check that offsets rise from 0 to the number of rows."""
    offsets = as_array(offsets, "offsets")
    if offsets.ndim != 1 or offsets.size == 0 or offsets.dtype.kind not in "iu":
        raise ValueError(f"offsets must be a 1-d array of integers starting with 0, got {offsets!r}.")
    offsets = offsets.astype(np.int64, copy=False)
    if offsets[0] != 0 or offsets[-1] != n_rows or (np.diff(offsets) < 0).any():
        raise ValueError(
            f"offsets must rise from 0 to the number of rows, {n_rows}, got {offsets[0]} to {offsets[-1]}"
            f"{' with a decrease in between' if (np.diff(offsets) < 0).any() else ''}."
        )
    return offsets


def check_weights(weights: ArrayLike, offsets: np.ndarray) -> np.ndarray:
    """Check that there is one finite, non-negative weight for each row."""
    weights = check_numeric(as_array(weights, "weights"), "weights").astype(np.float64, copy=False)
    if weights.shape != (offsets[-1],):
        raise ValueError(f"weights must hold one number per vector, shape ({offsets[-1]},), got shape {weights.shape}.")
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        group = int(np.searchsorted(offsets, row, side="right")) - 1
        raise ValueError(f"Group {group} has weight {weights[row]}: weights must be finite and non-negative.")
    return weights


def check_positions(positions: ArrayLike, offsets: np.ndarray) -> np.ndarray:
    """Check that there is one finite position for each row."""
    positions = as_array(positions, "positions")
    if positions.dtype.kind in "mM":
        raise TypeError(
            f"positions must hold numbers, got {positions.dtype}: pass the seconds since the first one, which are "
            f"(t - t[0]) / np.timedelta64(1, 's') for the times t of a group."
        )
    positions = check_numeric(positions, "positions")
    if positions.shape != (offsets[-1],):
        raise ValueError(
            f"positions must hold one number per vector, shape ({offsets[-1]},), got shape {positions.shape}."
        )
    if positions.dtype.kind in "iu" and max(positions.max(initial=0), -int(positions.min(initial=0))) > _EXACT_INTEGER:
        positions = _from_the_first(positions, offsets)
    positions = positions.astype(np.float64, copy=False)
    wrong = ~np.isfinite(positions)
    if wrong.any():
        row = int(np.argmax(wrong))
        group = int(np.searchsorted(offsets, row, side="right")) - 1
        raise ValueError(f"Group {group} has position {positions[row]}: positions must be finite.")
    return positions


def _from_the_first(positions: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Twice the distance of each integer from the smallest of its group.

    Positions beyond 1 are scaled to the range of their group. Twice a distance is beyond 1 even where all are 0 or 1.
    """
    starts, sizes = offsets[:-1], np.diff(offsets)
    first = np.minimum.reduceat(positions, starts[sizes > 0])
    own = np.repeat(first, sizes[sizes > 0])
    return 2.0 * (positions.astype(np.uint64) - own.astype(np.uint64))  # which wraps to the right difference


def check_totals(totals: np.ndarray) -> None:
    """Raise unless the weights of each group sum to 0, or to a number whose products double precision can hold."""
    wrong = (totals != 0) & ~((totals >= 1 / LARGEST_WEIGHT) & (totals <= LARGEST_WEIGHT))
    if wrong.any():
        group = int(np.argmax(wrong))
        raise ValueError(
            f"Group {group} has weights that sum to {totals[group]:g}: the sum must be 0, or lie between "
            f"{1 / LARGEST_WEIGHT:g} and {LARGEST_WEIGHT:g}. Divide all weights by the largest one."
        )


def check_labels(labels: Iterable[object], n_rows: int) -> np.ndarray:
    """Check that there is one label for each row, and return them as an array of objects."""
    if isinstance(labels, str | bytes):
        raise TypeError("labels must be a list with one label per vector, got a string.")
    refuse_masks(labels, "labels")
    given = list(labels)
    if len(given) != n_rows:
        raise ValueError(f"labels must hold one label per vector, {n_rows} in all, got {len(given)}.")
    array = np.empty(n_rows, dtype=object)
    array[:] = given
    return array


def check_per_row(values: ArrayLike, name: str, n_rows: int) -> np.ndarray:
    """Check that there is one value for each row of a long table."""
    values = as_array(values, name)
    if values.shape != (n_rows,):
        raise ValueError(f"{name} must hold one value per row of X: got shape {values.shape} for {n_rows} rows.")
    return values


def check_row_labels(labels: ArrayLike, n_rows: int) -> np.ndarray:
    """Check that each row of a long table has a label, and return the labels."""
    names = check_per_row(labels, "labels", n_rows)
    if names.dtype.kind in "fcmM":
        missing = np.flatnonzero(names != names)
    elif names.dtype == object or not isinstance(labels, np.ndarray):  # NumPy may have made strings of missing ones
        missing = np.flatnonzero([is_missing(value) for value in np.asarray(labels, dtype=object)])
    else:
        return names
    if len(missing):
        raise ValueError(
            f"labels has no value for {len(missing)} of {n_rows} rows, the first is row {missing[0]}: leave these rows "
            f"out, or give them a label of their own."
        )
    return names


def number_labels(labels: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels in sorted order, and the number of each label among them; raise if they have no order."""
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise TypeError(
            f"labels must be of one kind, because they are sorted: {error}. Convert them, for example to strings."
        ) from error


def is_missing(value: Any) -> bool:
    """Whether a value of a column stands for none: None, NaN, NaT or NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Number | np.generic) and bool(value != value)


def check_consecutive(labels: np.ndarray) -> None:
    """Raise unless equal labels follow each other."""
    starts = np.flatnonzero(np.append(True, labels[1:] != labels[:-1])[: len(labels)])
    _, runs = number_labels(labels[starts])
    first = np.unique(runs, return_index=True)[1]
    resumed = starts[first[runs] != np.arange(len(runs))]
    if len(resumed):
        row = int(resumed[0])
        raise ValueError(
            f"The rows of label {labels[[row]].tolist()[0]!r} are not consecutive: they resume in row {row}, after "
            f"rows of another label. Sort the rows by label and time; if their order does not matter, leave "
            f"consecutive=False."
        )


def join_rows(name: str, parts: Sequence[ArrayLike] | None, sizes: list[int]) -> np.ndarray | None:
    """Join one array per group into one array, after checking their lengths."""
    if parts is None:
        return None
    n_parts = len(parts) if hasattr(parts, "__len__") else repr(parts)
    if n_parts != len(sizes):
        raise ValueError(f"{name} must hold one array per group: got {n_parts} for {len(sizes)} groups.")
    arrays = []
    for i, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        refuse_masks(part, f"{name} of group {i}")
        array = _as_labels(part) if name == "labels" else as_array(part, f"{name} of group {i}")
        if array.shape != (size,):
            raise ValueError(f"Group {i} has {size} vectors but {name} of shape {array.shape}.")
        arrays.append(array)
    return np.concatenate(arrays)


def _as_labels(values: Any) -> np.ndarray:
    """Labels as an array of objects: one that has a length is still one label."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__") or isinstance(values, np.ndarray):
        return np.asarray(values, dtype=object)
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def as_array(values: Any, name: str) -> np.ndarray:
    """Values as an array; raise if they have a mask, or are arrays of different lengths."""
    refuse_masks(values, name)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be one array, got sequences of different lengths.") from error


def warn_of_rows(n_rows: int, name: str, label: object = None) -> None:
    """Warn that each row of a table becomes a group of one vector, whose spread says nothing.

    One row is a query. `label` is the column of a data frame that looks like the labels of groups. The warning comes
    from one place, so that Python shows it once, and not for each method that reads the groups.
    """
    if n_rows < 2:
        return
    advice = (
        f"pass one group as [{name}], several groups as a list of arrays or as Groups.from_labels({name}, labels)[0], "
        f"and rows that are groups of their own as np.asarray({name})[:, None]"
        if label is None
        else f"if the column {label!r} says which group a row belongs to, pass "
        f"Groups.from_labels({name}.drop(columns={label!r}), {name}[{label!r}])[0]"
    )
    warnings.warn(f"{name} is a table, and each of its rows becomes a group of one vector: {advice}.", stacklevel=2)


def warn_of_padding(vectors: np.ndarray, offsets: np.ndarray, weights: np.ndarray | None = None) -> None:
    """Warn of vectors that are zero beside others of their group that are not, as padding is.

    Vectors of weight 0, of integers, and of a single feature are not padding.
    """
    if vectors.dtype.kind != "f" or vectors.shape[1] < 2:
        return
    zero = np.flatnonzero(vectors[:, 0] == 0)
    width = 1  # of the features that were compared with 0
    while len(zero) and width < vectors.shape[1]:
        zero = zero[~vectors[zero, width : 2 * width].any(axis=1)]
        width *= 2
    if weights is not None:
        zero = zero[weights[zero] > 0]
    warn_of_zeros(zero, offsets, stacklevel=5)


def warn_of_zeros(zero: np.ndarray, offsets: np.ndarray, stacklevel: int) -> None:
    """Warn of vectors that are zero, given by their rows, if others of their group are not."""
    groups = np.searchsorted(offsets, zero, side="right") - 1
    partly = np.bincount(groups, minlength=len(offsets) - 1) < np.diff(offsets)
    zero, groups = zero[partly[groups]], groups[partly[groups]]
    if len(zero):
        first = groups[0]
        what = "vector is" if len(zero) == 1 else "vectors are"
        warnings.warn(
            f"{len(zero)} {what} zero beside others that are not (the first is row {zero[0] - offsets[first]} of group "
            f"{first}). They count as vectors: if they are padding, drop them, or give them weight 0 with "
            f"Groups.from_list(arrays, weights=...).",
            stacklevel=stacklevel,
        )
