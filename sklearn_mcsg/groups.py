"""Groups: samples that are sets of vectors, packed into one array.

A collection of groups is stored like the rows of a sparse matrix: all vectors in one array, and
`offsets` saying where each group begins. Optional `indices` point into a shared table, so that a
million texts over one vocabulary store four bytes a word. Vectors are copied only to pack a list or to
join different tables, and never padded.

`validate_groups` is the library's one door: the only place that asks what `X` is.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.utils import check_array

from sklearn_mcsg._checks import check_group, check_indices, check_numeric, check_offsets

__all__ = ["Groups", "validate_groups"]

_CACHE_BYTES = 2**22  # beyond, passes over vectors wait for memory


class Groups:
    """A ragged collection of groups of vectors, packed and weighted.

    Group ``i`` consists of rows ``offsets[i]:offsets[i + 1]`` of `vectors` or, when `indices` is
    given, of ``vectors[indices]``. Vectors are used as they are: read-only and memory-mapped arrays
    work, integers and half precision too, and nothing is copied.

    Parameters
    ----------
    vectors : array-like of shape (n_vectors, n_features)
        The vectors, or the shared table they are taken from.
    offsets : array-like of int of shape (n_groups + 1,)
        Where each group begins, from 0 up to the number of rows; equal neighbours make an empty group.
    indices : array-like of int of shape (n_rows,), default=None
        Rows of the table `vectors`, group after group.
    weights : array-like of shape (n_rows,), default=None
        A non-negative weight for each row; ``None`` means 1. An integer weight is the same as repeating
        the vector, weight 0 the same as leaving it out.

    Notes
    -----
    `Groups` have a `shape` of ``(n_groups,)``, so scikit-learn's splitters and searches index them group by group, as
    ``groups[integers]``: weights and table are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import Groups
    >>> groups = Groups(np.arange(10.0).reshape(5, 2), offsets=[0, 2, 5])
    >>> len(groups), groups.sizes.tolist()
    (2, [2, 3])
    >>> groups[0]
    array([[0., 1.],
           [2., 3.]])
    >>> groups[[1, 0, 1]]
    Groups(n_groups=3, n_features=2, sizes=2..3, shared table of 5 rows)
    """

    index: Any = None  # row labels, where the groups come from a column of a frame

    def __init__(self, vectors: Any, offsets: Any, *, indices: Any = None, weights: Any = None):
        self.vectors = check_numeric(np.asarray(vectors), "vectors")
        if self.vectors.ndim != 2:
            raise ValueError(
                f"vectors must be a 2-dimensional array (n_vectors, n_features), got {self.vectors.ndim} "
                f"dimension(s). One group of vectors alone is Groups(vectors, offsets=[0, len(vectors)])."
            )
        self.indices = None if indices is None else check_indices(indices, len(self.vectors))
        rows = self.vectors if self.indices is None else self.indices
        self.offsets = check_offsets(offsets, len(rows))
        self.weights = None if weights is None else self._check_weights(weights)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: of a shared table larger than the groups, only the rows that they use."""
        state = dict(vars(self))
        if self.indices is not None and len(self.vectors) > len(self.indices):
            used, state["indices"] = np.unique(self.indices, return_inverse=True)
            state["vectors"] = self.vectors[used]
        return state

    @classmethod
    def _trusted(cls, vectors, offsets, indices, weights) -> Groups:
        """Assemble parts that come from validated groups."""
        groups = cls.__new__(cls)
        groups.vectors, groups.offsets, groups.indices, groups.weights = vectors, offsets, indices, weights
        return groups

    @classmethod
    def from_list(cls, arrays: Sequence[Any], weights: Sequence[Any] | None = None) -> Groups:
        """Pack a sequence of (n_i, n_features) arrays, one per group.

        Parameters
        ----------
        arrays : sequence of array-like of shape (n_i, n_features)
            The groups. A group without vectors is an array of shape (0, n_features), or ``[]``.
        weights : sequence of array-like of shape (n_i,), default=None
            Weights of the vectors, one array per group.

        Returns
        -------
        groups : Groups

        Examples
        --------
        >>> from sklearn_mcsg import Groups
        >>> Groups.from_list([[[1, 2], [3, 4]], [[5, 6]]], weights=[[1, 0.5], [2]])
        Groups(n_groups=2, n_features=2, sizes=1..2, weighted)
        """
        arrays = [check_group(array, i) for i, array in enumerate(arrays)]
        if not arrays:
            raise ValueError("The collection is empty: at least one group is required (0 sample(s) found).")
        width, first = next(((a.shape[1], i) for i, a in enumerate(arrays) if a.shape[1]), (0, 0))
        if width == 0:
            raise ValueError(
                f"No group has any vector with at least one feature: found 0 feature(s) "
                f"(shape=({len(arrays)}, 0)) while a minimum of 1 is required."
            )
        for i, array in enumerate(arrays):
            if array.shape[1] != width and array.size + array.shape[1] > 0:
                raise ValueError(
                    f"All vectors must have the same number of features, but group {first} has {width} "
                    f"and group {i} has {array.shape[1]}: take the vectors of all groups from one space."
                )
        offsets = np.cumsum([0, *map(len, arrays)])
        vectors = np.concatenate([array.reshape(-1, width) for array in arrays])
        if weights is not None:
            if len(weights) != len(arrays):
                raise ValueError(f"weights must hold one array per group: got {len(weights)} for {len(arrays)} groups.")
            for i, (w, array) in enumerate(zip(weights, arrays, strict=True)):
                if np.shape(w) != (len(array),):
                    raise ValueError(f"Group {i} has {len(array)} vectors but weights of shape {np.shape(w)}.")
        return cls(vectors, offsets, weights=None if weights is None else np.concatenate(weights))

    @classmethod
    def from_labels(cls, X: Any, labels: Any, weights: Any = None) -> tuple[Groups, np.ndarray]:
        """Gather the rows of a long table by label.

        Parameters
        ----------
        X : array-like of shape (n_vectors, n_features)
            One vector a row; it becomes the shared table and is not copied.
        labels : array-like of shape (n_vectors,)
            The group each row belongs to.
        weights : array-like of shape (n_vectors,), default=None
            Weights of the rows.

        Returns
        -------
        groups : Groups
            One group per distinct label, in sorted order of the labels.
        unique_labels : ndarray of shape (n_groups,)
            The label of each group.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_mcsg import Groups
        >>> groups, names = Groups.from_labels(np.eye(3), ["b", "a", "b"])
        >>> names.tolist(), groups.sizes.tolist()
        (['a', 'b'], [1, 2])
        """
        X = check_array(X, dtype="numeric", ensure_all_finite=False, input_name="X")
        labels = np.asarray(labels)
        if weights is not None and np.shape(weights) != X.shape[:1]:
            raise ValueError(f"weights must hold one number per row of X: got {np.shape(weights)} for {len(X)} rows.")
        if labels.shape != X.shape[:1]:
            raise ValueError(f"labels must hold one label per row of X: got shape {labels.shape} for {len(X)} rows.")
        unique_labels, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        order = np.argsort(codes, kind="stable")
        if weights is not None:
            weights = np.asarray(weights)[order]
        return cls(X, np.concatenate([[0], np.cumsum(counts)]), indices=order, weights=weights), unique_labels

    @classmethod
    def concatenate(cls, collections: Sequence[Groups]) -> Groups:
        """Put collections one after the other; vectors are copied only when their tables differ."""
        first, *others = collections
        if not others:
            return first
        shared = all(g.vectors is first.vectors for g in others)
        starts = np.cumsum([0, *(0 if shared else len(g.vectors) for g in collections[:-1])])
        indices = np.concatenate([g._row_indices() + start for g, start in zip(collections, starts, strict=True)])
        vectors = first.vectors if shared else np.concatenate([g.vectors for g in collections])
        weights = None
        if any(g.weights is not None for g in collections):
            weights = np.concatenate([np.ones(g.n_rows) if g.weights is None else g.weights for g in collections])
        sizes = np.concatenate([g.sizes for g in collections])
        return cls._trusted(vectors, np.concatenate([[0], np.cumsum(sizes)]), indices, weights)

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows in each group."""
        return np.diff(self.offsets)

    @property
    def n_features(self) -> int:
        """Width of the vectors."""
        return self.vectors.shape[1]

    @property
    def n_rows(self) -> int:
        """Number of vectors in all groups together."""
        return int(self.offsets[-1])

    @property
    def shape(self) -> tuple[int]:
        """``(n_groups,)``, so that scikit-learn indexes group by group."""
        return (len(self),)

    @property
    def totals(self) -> np.ndarray:
        """Sum of the weights in each group: the number of vectors when there are none."""
        return self.sizes.astype(np.float64) if self.weights is None else self.sum(np.ones(self.n_rows))

    @property
    def output_dtype(self) -> np.dtype:
        """float32 for single and half precision vectors, float64 otherwise."""
        return np.dtype(np.float32 if self.vectors.dtype in (np.float32, np.float16) else np.float64)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        sizes = self.sizes
        notes = [f"n_groups={len(self)}", f"n_features={self.n_features}"]
        if len(self):
            notes.append(f"sizes={sizes.min()}..{sizes.max()}")
        if self.indices is not None:
            notes.append(f"shared table of {len(self.vectors)} rows")
        if self.weights is not None:
            notes.append("weighted")
        return f"Groups({', '.join(notes)})"

    def __getitem__(self, key: Any) -> Any:
        """One group's vectors for an integer, a collection for a slice, integers or a mask."""
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]
        if isinstance(key, numbers.Integral) and not isinstance(key, bool):
            start, stop = self._bounds(key)
            return self.vectors[start:stop] if self.indices is None else self.vectors[self.indices[start:stop]]
        if isinstance(key, slice) and key.indices(len(self))[2] == 1:
            return self._slice(*key.indices(len(self))[:2])
        picked = np.arange(len(self))[key]
        if picked.ndim != 1:
            raise IndexError("Groups are indexed by an integer, a slice, or a 1-d array of integers or booleans.")
        sizes = self.sizes[picked]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.offsets[picked] - offsets[:-1], sizes) + np.arange(offsets[-1])
        indices = rows if self.indices is None else self.indices[rows]
        return self._trusted(self.vectors, offsets, indices, None if self.weights is None else self.weights[rows])

    def _bounds(self, i: Any) -> tuple[int, int]:
        if not -len(self) <= i < len(self):
            raise IndexError(f"Group {i} is out of range for {len(self)} groups.")
        i %= len(self)
        return self.offsets[i], self.offsets[i + 1]

    def _slice(self, first: int, last: int) -> Groups:
        last = max(first, last)
        start, stop = self.offsets[first], self.offsets[last]
        weights = None if self.weights is None else self.weights[start:stop]
        offsets = self.offsets[first : last + 1] - start
        if self.indices is None:
            return self._trusted(self.vectors[start:stop], offsets, None, weights)
        return self._trusted(self.vectors, offsets, self.indices[start:stop], weights)

    def _row_indices(self) -> np.ndarray:
        return np.arange(self.n_rows) if self.indices is None else self.indices

    def without_weightless(self) -> Groups:
        """The same groups less the vectors of weight 0, whose values then cannot matter."""
        if self.weights is None or self.weights.all():
            return self
        kept = self.weights > 0
        offsets = np.concatenate([[0], np.cumsum(kept)])[self.offsets]
        return self._trusted(self.vectors, offsets, self._row_indices()[kept], self.weights[kept])

    def blocks(self, copies: int = 4) -> Iterator[slice]:
        """Slices of whole groups whose float64 vectors fit `copies` times into the working memory, and into caches."""
        budget = min(get_config()["working_memory"] * 2**20, _CACHE_BYTES)
        rows = max(1, int(budget // (8 * copies * max(1, self.n_features))))
        start = 0
        while start < len(self):
            stop = int(np.searchsorted(self.offsets, self.offsets[start] + rows, side="right")) - 1
            stop = min(max(stop, start + 1), len(self))
            yield slice(start, stop)
            start = stop

    def pieces(self, n_rows: int) -> Iterator[tuple[slice, Groups]]:
        """Collections of at most `n_rows` vectors, with the groups they belong to: large groups come in parts."""
        for start in range(0, self.n_rows, n_rows):
            rows = slice(start, min(start + n_rows, self.n_rows))
            first = self.group_of(start)
            last = int(np.searchsorted(self.offsets, rows.stop))
            offsets = np.clip(self.offsets[first : last + 1], rows.start, rows.stop) - rows.start
            weights = None if self.weights is None else self.weights[rows]
            vectors, indices = (
                (self.vectors[rows], None) if self.indices is None else (self.vectors, self.indices[rows])
            )
            yield slice(first, last), self._trusted(vectors, offsets, indices, weights)

    def rows(self) -> np.ndarray:
        """All vectors in float64, group after group."""
        vectors = self.vectors if self.indices is None else self.vectors[self.indices]
        return vectors.astype(np.float64, copy=False)

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Weighted sum within each group of `values`, which has one row per vector."""
        if self.weights is not None:
            values = values * self.weights.reshape(-1, *[1] * (values.ndim - 1))
        totals = np.zeros((len(self), *values.shape[1:]))
        filled = self.sizes > 0
        if filled.any():
            totals[filled] = np.add.reduceat(values, self.offsets[:-1][filled], axis=0)
        return totals

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Repeat one value per group for each of its vectors."""
        return np.repeat(values, self.sizes, axis=0)

    def group_of(self, row: int) -> int:
        """The group that holds a row."""
        return int(np.searchsorted(self.offsets, row, side="right")) - 1

    def _check_weights(self, weights: Any) -> np.ndarray:
        weights = check_numeric(np.asarray(weights), "weights").astype(np.float64, copy=False)
        if weights.shape != (self.n_rows,):
            raise ValueError(
                f"weights must hold one number per vector, shape ({self.n_rows},), got shape {weights.shape}."
            )
        wrong = ~(np.isfinite(weights) & (weights >= 0))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"Group {self.group_of(row)} has weight {weights[row]}: weights must be finite and non-negative."
            )
        return weights


def validate_groups(X: Any, *, allow_empty: bool = False, name: str = "X") -> Groups:
    """Turn any accepted input into validated `Groups`.

    Parameters
    ----------
    X : groups
        A list, tuple or object array of (n_i, n_features) arrays; an (n_groups, n_vectors, n_features)
        array; `Groups`; a pandas, polars or Arrow column of lists of vectors; or an
        (n_groups, n_features) array or data frame, which means groups of one vector each.
    allow_empty : bool, default=False
        Whether groups without vectors, or whose weights sum to 0, are accepted.
    name : str, default="X"
        What errors call the input.

    Returns
    -------
    groups : Groups

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import validate_groups
    >>> validate_groups([np.ones((3, 2)), np.zeros((1, 2))])
    Groups(n_groups=2, n_features=2, sizes=1..3)
    >>> validate_groups(np.zeros((4, 2)))
    Groups(n_groups=4, n_features=2, sizes=1..1)
    """
    groups = _to_groups(X)
    if len(groups) == 0:
        raise ValueError("The collection is empty: at least one group is required (0 sample(s) found).")
    if groups.n_features == 0:
        raise ValueError(
            f"Found groups with 0 feature(s) (shape=({groups.n_rows}, 0)) while a minimum of 1 is required."
        )
    if not allow_empty:
        _check_filled(groups)
    _check_finite(groups, name)
    return groups


def _to_groups(X: Any) -> Groups:
    if isinstance(X, Groups):
        return X
    if sparse.issparse(X):
        raise TypeError("Groups of vectors are dense, but X is a sparse matrix: pass X.toarray().")
    if isinstance(X, str | bytes):
        raise TypeError(
            "X is a string; a collection of groups of vectors is required. Texts must be turned into vectors first."
        )
    if hasattr(X, "to_arrow") and not hasattr(X, "columns"):
        X = X.to_arrow()
    if hasattr(X, "to_pylist"):
        return _from_arrow(X)
    if hasattr(X, "columns") and X.shape[1] == 1 and len(X) and np.ndim(next(iter(X[X.columns[0]]))) > 0:
        return _to_groups(X[X.columns[0]])
    if hasattr(X, "iloc") and X.ndim == 1:
        X = list(X)
    if isinstance(X, np.ndarray) and X.ndim == 3:
        n_groups, size, width = check_numeric(X, "X").shape
        return Groups(X.reshape(n_groups * size, width), np.arange(n_groups + 1) * size)
    if _is_sequence_of_groups(X):
        return Groups.from_list(X)
    vectors = check_array(X, dtype="numeric", ensure_all_finite=False, input_name="X")
    return Groups(vectors, np.arange(len(vectors) + 1))


def _from_arrow(column: Any) -> Groups:
    """Pack an Arrow column of lists of vectors; its buffers are used as they are."""
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    try:
        vectors = column.flatten()
        widths = set(vectors.value_lengths().to_pylist())
        values = vectors.flatten().to_numpy(zero_copy_only=False)
    except (AttributeError, TypeError) as error:
        raise TypeError(f"An Arrow column of groups must hold lists of vectors, got type {column.type}.") from error
    if column.null_count or None in widths:
        raise ValueError("The Arrow column holds nulls: a group without vectors is an empty list.")
    if len(widths) > 1:
        raise ValueError(f"All vectors must have the same number of features, found {sorted(widths)}.")
    sizes = column.value_lengths().to_numpy(zero_copy_only=False)
    return Groups(values.reshape(-1, max(widths, default=0)), np.concatenate([[0], np.cumsum(sizes)]))


def _is_sequence_of_groups(X: Any) -> bool:
    """Whether X is a sequence whose samples are groups, rather than the rows of a 2-d array."""
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype == object
    if not isinstance(X, list | tuple):
        return False
    if len(X) == 0:
        return True
    sample = X[0]
    if isinstance(sample, list | tuple):
        return len(sample) == 0 or np.ndim(sample[0]) > 0
    return isinstance(sample, str | bytes | Groups) or np.ndim(sample) > 0 or sparse.issparse(sample)


def _check_filled(groups: Groups) -> None:
    void = groups.totals <= 0
    if not void.any():
        return
    first = np.flatnonzero(void)[:5].tolist()
    which = f"Group {first[0]}" if void.sum() == 1 else f"Groups {', '.join(map(str, first))}"
    more = f" and {void.sum() - len(first)} more" if void.sum() > len(first) else ""
    verb = "has" if void.sum() == 1 else "have"
    what = "no vectors" if not groups.sizes[first].any() else "no vectors of positive weight"
    raise ValueError(
        f"{which}{more} {verb} {what}. Remove them; or, for texts, set pad_token in EmbeddingVectorizer; or set "
        f"prior_strength > 0 in ModelComparisonSimilarity and fit, which gives every group pseudo-vectors of the "
        f"fitted corpus."
    )


def _check_finite(groups: Groups, name: str) -> None:
    """Raise naming the first group with a NaN or an infinity, reading the table or the rows, whichever is shorter."""
    if groups.vectors.dtype.kind != "f":
        return
    whole_table = groups.indices is None or len(groups.vectors) <= len(groups.indices)
    n_rows = len(groups.vectors) if whole_table else groups.n_rows
    step = max(1, int(get_config()["working_memory"] * 2**20 // (8 * groups.n_features)))
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        block = groups.vectors[rows] if whole_table else groups.vectors[groups._row_indices()[rows]]
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(block.sum(dtype=np.float64)):
                continue
        wrong = start + np.flatnonzero(~np.isfinite(block).all(axis=1))
        if whole_table and groups.indices is not None:
            wrong = np.flatnonzero(np.isin(groups.indices, wrong))
        if len(wrong):
            i = groups.group_of(wrong[0])
            kind = "NaN" if np.isnan(groups[i]).any() else "inf"
            raise ValueError(
                f"Input {name} contains {kind}: the first is in group {i}. Remove or replace such vectors."
            )
