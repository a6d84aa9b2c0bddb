"""Groups: samples that are sets of vectors, packed into one array.

A collection of groups is stored like the rows of a sparse matrix: all vectors in one array, and `offsets` that say
where each group begins. Optional `indices` point into a shared table, so that a million texts over one vocabulary
store four bytes per word. Vectors are never padded. They are copied only to pack a list, to join different tables, or
if one row of a table has several names.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from sklearn_mcsg.groups import checks
from sklearn_mcsg.groups.arrays import refuse_arrays

Rows: TypeAlias = slice | np.ndarray | Sequence[int]  # which rows to take
GroupsLike: TypeAlias = "Groups | ArrayLike | Sequence[ArrayLike]"  # what `validate_groups` accepts


class Groups:
    """A ragged collection of groups of vectors, packed, weighted and labelled.

    Group ``i`` consists of rows ``offsets[i]:offsets[i + 1]`` of `vectors` or, when `indices` is given, of
    ``vectors[indices]``. Vectors are not copied: arrays may be read-only or memory-mapped, and hold integers or
    half-precision numbers. Arrays of objects become double precision.

    Parameters
    ----------
    vectors : array-like of shape (n_vectors, n_features)
        The vectors, or the shared table they are taken from.
    offsets : array-like of int of shape (n_groups + 1,)
        Where each group begins, from 0 up to the number of rows. Two equal offsets make an empty group.
    indices : array-like of int of shape (n_rows,), default=None
        Rows of the table `vectors`, group after group.
    weights : array-like of shape (n_rows,), default=None
        Weights of the vectors: one for each row, not negative; ``None`` means 1. An integer weight has the same effect
        as repeating the vector; weight 0 has the same effect as leaving it out. The weights of a group must sum to 0,
        or to a number between 1e-100 and 1e+100.
    labels : array-like of shape (n_rows,), default=None
        Names of the vectors: one for each row, such as the word that a vector stands for. Explanations and summaries
        show them.
    positions : array-like of shape (n_rows,), default=None
        Positions of the vectors in their groups: one number for each row, from -1 to 1, for a likelihood of ordered
        groups (``"trend"``). If any of them is outside, as time stamps are, those of each group are scaled so that the
        first is -1 and the last 1; equal ones become 0. ``None`` means the order of the vectors: vector t of n, counted
        from 0, is at 2 (t + 1/2) / n - 1.

    Notes
    -----
    `Groups` have a `shape` of ``(n_groups,)``, so scikit-learn's splitters and searches index them group by group, as
    ``groups[integers]``. Weights, labels, positions and the table are kept.

    A vector keeps its position when its group is pooled with others, or when vectors of weight 0 are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import Groups
    >>> groups = Groups(np.arange(10.0).reshape(5, 2), offsets=[0, 2, 5], labels=list("abcde"))
    >>> len(groups), groups.sizes.tolist()
    (2, [2, 3])
    >>> groups[0]
    array([[0., 1.],
           [2., 3.]])
    >>> groups[[1, 0, 1]]
    Groups(n_groups=3, n_features=2, sizes=2..3, shared table of 5 rows, labelled)
    >>> groups[[1]].labels.tolist()
    ['c', 'd', 'e']
    """

    index: object = None  # row labels of the data frame that the groups come from
    positions: np.ndarray | None = None  # of rows; None means the order of the vectors

    def __init__(
        self,
        vectors: ArrayLike,
        offsets: ArrayLike,
        *,
        indices: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        labels: Iterable[object] | None = None,
        positions: ArrayLike | None = None,
    ):
        refuse_arrays(vectors, "vectors")
        self.vectors = checks.check_numeric(checks.as_array(vectors, "vectors"), "vectors")
        if self.vectors.ndim != 2:
            raise ValueError(
                f"vectors must be a 2-dimensional array (n_vectors, n_features), got {self.vectors.ndim} "
                f"dimension(s). For a single group, call Groups(vectors, offsets=[0, len(vectors)])."
            )
        self.indices = None if indices is None else checks.check_indices(indices, len(self.vectors))
        rows = self.vectors if self.indices is None else self.indices
        self.offsets = checks.check_offsets(offsets, len(rows))
        self.weights = None if weights is None else checks.check_weights(weights, self.offsets)
        if self.weights is not None:
            with np.errstate(over="ignore"):
                checks.check_totals(self.totals)
        self.positions = None
        if positions is not None:
            self.positions = self._scaled(checks.check_positions(positions, self.offsets))
        self._names = None if labels is None else self._table_names(checks.check_labels(labels, self.n_rows))

    def _scaled(self, positions: np.ndarray) -> np.ndarray:
        """Positions from -1 to 1: as they are, or those of each group from its first to its last."""
        if not positions.size or np.abs(positions).max() <= 1:
            return positions
        starts = self.offsets[:-1][self.sizes > 0]
        sizes = self.sizes[self.sizes > 0]
        first, last = np.minimum.reduceat(positions, starts), np.maximum.reduceat(positions, starts)
        # halves, because differences of large numbers may overflow
        middle, half = 0.5 * first + 0.5 * last, 0.5 * last - 0.5 * first
        centred = positions - np.repeat(middle, sizes)
        half = np.repeat(half, sizes)
        return np.clip(np.divide(centred, half, out=np.zeros(len(centred)), where=half > 0), -1, 1)

    def _table_names(self, labels: np.ndarray) -> np.ndarray:
        """Names of the table's rows; if a row has several names, the table is expanded first."""
        if self.indices is None:
            return labels
        names = np.empty(len(self.vectors), dtype=object)
        names[self.indices] = labels
        if (names[self.indices] == labels).all():
            return names
        self.vectors = self.vectors[self.indices]
        self.indices = None
        return labels

    def __getstate__(self) -> dict[str, Any]:
        """State to pickle; a shared table larger than the groups is reduced to the rows that they use."""
        state = dict(vars(self))
        if self.indices is not None and len(self.vectors) > len(self.indices):
            used, state["indices"] = np.unique(self.indices, return_inverse=True)
            state["vectors"] = self.vectors[used]
            state["_names"] = None if self._names is None else self._names[used]
        return state

    @classmethod
    def from_list(
        cls,
        arrays: Sequence[ArrayLike],
        weights: Sequence[ArrayLike] | None = None,
        labels: Sequence[ArrayLike] | None = None,
        positions: Sequence[ArrayLike] | None = None,
    ) -> Groups:
        """Pack a sequence of (n_i, n_features) arrays, one per group.

        Parameters
        ----------
        arrays : sequence of array-like of shape (n_i, n_features)
            The groups. A group without vectors is an array of shape (0, n_features), or ``[]``.
        weights : sequence of array-like of shape (n_i,), default=None
            Weights of the vectors: one array per group.
        labels : sequence of array-like of shape (n_i,), default=None
            Names of the vectors: one list per group.
        positions : sequence of array-like of shape (n_i,), default=None
            Positions of the vectors in their groups: one array per group, which may hold time stamps. ``None`` means
            the order of the vectors.

        Returns
        -------
        groups : Groups

        Notes
        -----
        Vectors that are zero beside others of their group give a warning, because they may be padding.

        Examples
        --------
        >>> from sklearn_mcsg import Groups
        >>> Groups.from_list([[[1, 2], [3, 4]], [[5, 6]]], weights=[[1, 0.5], [2]])
        Groups(n_groups=2, n_features=2, sizes=1..2, weighted)
        """
        checked = [checks.check_group(array, i) for i, array in enumerate(arrays)]
        if not checked:
            raise ValueError("The collection is empty: at least one group is required (0 sample(s) found).")
        filled = [i for i, array in enumerate(checked) if array.shape[1]]
        if not filled:
            raise ValueError(
                f"No group has any vector with at least one feature: found 0 feature(s) "
                f"(shape=({len(checked)}, 0)) while a minimum of 1 is required."
            )
        width = checked[filled[0]].shape[1]
        # an empty list has shape (0, 0)
        checks.check_widths({i: a.shape[1] for i, a in enumerate(checked) if a.shape != (0, 0)}, filled[0])
        vectors = np.concatenate([array.reshape(-1, width) for array in checked])
        sizes = [len(array) for array in checked]
        row_weights = checks.join_rows("weights", weights, sizes)
        row_labels = checks.join_rows("labels", labels, sizes)
        row_positions = checks.join_rows("positions", positions, sizes)
        groups = cls(vectors, offsets_of(sizes), weights=row_weights, labels=row_labels, positions=row_positions)
        checks.warn_of_padding(groups.vectors, groups.offsets, groups.weights)
        return groups

    @classmethod
    def from_labels(
        cls,
        X: ArrayLike,
        labels: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        positions: ArrayLike | None = None,
        consecutive: bool = False,
    ) -> tuple[Groups, np.ndarray]:
        """Group the rows of a long table by their labels.

        Parameters
        ----------
        X : array-like of shape (n_vectors, n_features)
            One vector per row. It becomes the shared table and is not copied.
        labels : array-like of shape (n_vectors,)
            The group that each row belongs to. None may be missing.
        weights : array-like of shape (n_vectors,), default=None
            Weights of the vectors: one for each row.
        positions : array-like of shape (n_vectors,), default=None
            Positions of the vectors in their groups: one number for each row, such as a time stamp. ``None`` means the
            order of the rows of each label.
        consecutive : bool, default=False
            Whether to raise an error unless the rows of each label are consecutive, as those of a series must be.

        Returns
        -------
        groups : Groups
            One group per distinct label, in sorted order of the labels. Rows stay in their order.
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
        refuse_arrays(X)
        if getattr(labels, "ndim", 1) == 2 and np.ndim(X) == 1:
            raise ValueError("The vectors come before the labels: pass Groups.from_labels(vectors, labels).")
        table = checks.check_table(X)
        names = checks.check_row_labels(labels, len(table))
        if consecutive:
            checks.check_consecutive(names)
        unique_labels, codes = checks.number_labels(names)
        order = np.argsort(codes, kind="stable")
        if weights is not None:
            weights = checks.check_per_row(weights, "weights", len(table))[order]
        if positions is not None:
            positions = checks.check_per_row(positions, "positions", len(table))[order]
        return cls(
            table, offsets_of(np.bincount(codes)), indices=order, weights=weights, positions=positions
        ), unique_labels

    @classmethod
    def concatenate(cls, collections: Sequence[Groups]) -> Groups:
        """Join collections one after the other; vectors are copied only when their tables differ.

        If only some collections have labels, the vectors of the others are labelled None. If only some have positions,
        those of the others are their order.

        Parameters
        ----------
        collections : sequence of Groups
            The collections, of vectors with the same number of features.

        Returns
        -------
        groups : Groups
        """
        if len(collections) == 0:
            raise ValueError("There is nothing to join: pass at least one collection.")
        first, *others = collections
        if not others:
            return first
        checks.check_widths({i: g.n_features for i, g in enumerate(collections)}, 0, "collection")
        sizes = np.concatenate([g.sizes for g in collections])
        weights = None
        if any(g.weights is not None for g in collections):
            weights = np.concatenate([g.row_weights for g in collections])
        positions = None
        if any(g.positions is not None for g in collections):
            positions = np.concatenate([g.row_positions for g in collections])
        if all(g.vectors is first.vectors and g._names is first._names for g in others):
            indices = np.concatenate([g.row_indices for g in collections])
            return packed(first.vectors, offsets_of(sizes), indices, weights, first._names, positions)
        starts = offsets_of([len(g.vectors) for g in collections])[:-1]
        indices = np.concatenate(
            [np.add(g.row_indices, start, dtype=np.int64) for g, start in zip(collections, starts, strict=True)]
        )
        vectors = np.concatenate([g.vectors for g in collections])
        names = None
        if any(g._names is not None for g in collections):
            names = np.concatenate([[None] * len(g.vectors) if g._names is None else g._names for g in collections])
        return packed(vectors, offsets_of(sizes), indices, weights, names, positions)

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
        """Sum of the weights in each group; without weights, its number of vectors."""
        return self.sizes.astype(np.float64) if self.weights is None else self._sum_rows(self.weights)

    @property
    def row_weights(self) -> np.ndarray:
        """Weight of each row, 1 where no weights are given."""
        return np.ones(self.n_rows) if self.weights is None else self.weights

    @property
    def row_positions(self) -> np.ndarray:
        """Place of each row in its group, from -1 to 1: its position or, where none are given, its order."""
        if self.positions is not None:
            return self.positions
        return places_in_order(self.sizes)

    @property
    def row_indices(self) -> np.ndarray:
        """Row of the table for each vector."""
        return np.arange(self.n_rows) if self.indices is None else self.indices

    @property
    def labels(self) -> np.ndarray | None:
        """Name of each row, group after group, or None if the vectors have no names."""
        if self._names is None or self.indices is None:
            return self._names
        return self._names[self.indices]

    @property
    def output_dtype(self) -> np.dtype:
        """float32 for single and half precision vectors, float64 otherwise."""
        return np.dtype(np.float32 if self.vectors.dtype in (np.float32, np.float16) else np.float64)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        notes = [f"n_groups={len(self)}", f"n_features={self.n_features}"]
        if len(self):
            notes.append(f"sizes={self.sizes.min()}..{self.sizes.max()}")
        if self.indices is not None:
            notes.append(f"shared table of {len(self.vectors)} rows")
        if self.weights is not None:
            notes.append("weighted")
        if self._names is not None:
            notes.append("labelled")
        if self.positions is not None:
            notes.append("with positions")
        return f"Groups({', '.join(notes)})"

    @overload
    def __getitem__(self, key: int) -> np.ndarray: ...

    @overload
    def __getitem__(self, key: Rows) -> Groups: ...

    def __getitem__(self, key: Any) -> np.ndarray | Groups:
        """The vectors of one group for an integer; `Groups` for a slice, integers or a mask."""
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]
        if isinstance(key, numbers.Integral) and not isinstance(key, bool):
            own = self._rows_of(int(key))
            return self.vectors[own] if self.indices is None else self.vectors[self.indices[own]]
        if isinstance(key, slice) and key.indices(len(self))[2] == 1:
            first, last, _ = key.indices(len(self))
            last = max(first, last)
            return self._cut(slice(self.offsets[first], self.offsets[last]), self.offsets[first : last + 1])
        picked = np.arange(len(self))[key]
        if picked.ndim != 1:
            raise IndexError("Groups are indexed by an integer, a slice, or a 1-d array of integers or booleans.")
        sizes = self.sizes[picked]
        offsets = offsets_of(sizes)
        rows = np.repeat(self.offsets[picked] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return self._take(rows, offsets)

    def _rows_of(self, i: int) -> slice:
        """The rows of one group."""
        if not -len(self) <= i < len(self):
            raise IndexError(f"Group {i} is out of range for {len(self)} groups.")
        i %= len(self)
        return slice(self.offsets[i], self.offsets[i + 1])

    def _cut(self, rows: slice, offsets: np.ndarray) -> Groups:
        """Select consecutive rows without copying; `offsets` count from the first row of this collection.

        Where rows are part of a group, their places are kept only if they are positions: see `placed`.
        """
        offsets = np.clip(offsets, rows.start, rows.stop) - rows.start
        weights = None if self.weights is None else self.weights[rows]
        positions = None if self.positions is None else self.positions[rows]
        if self.indices is not None:
            return packed(self.vectors, offsets, self.indices[rows], weights, self._names, positions)
        names = None if self._names is None else self._names[rows]
        return packed(self.vectors[rows], offsets, None, weights, names, positions)

    def _take(self, rows: np.ndarray, offsets: np.ndarray) -> Groups:
        """Select any rows; the table stays the same. Places are kept as by `_cut`."""
        indices = rows if self.indices is None else self.indices[rows]
        weights = None if self.weights is None else self.weights[rows]
        positions = None if self.positions is None else self.positions[rows]
        return packed(self.vectors, offsets, indices, weights, self._names, positions)

    def pooled(self, labels: ArrayLike | None = None) -> Groups:
        """Pool groups: one group with all vectors of the groups that share a label.

        A pooled group is a query for several groups at once, or the prototype of a class or cluster. Its model is
        exactly the one fitted to all the vectors.

        Parameters
        ----------
        labels : array-like of shape (n_groups,), default=None
            A label for each group; ``None`` pools all groups into one.

        Returns
        -------
        groups : Groups
            One group per distinct label, in sorted order of the labels, with vectors in their order. The table is
            shared; weights and names of vectors are kept, and so are the positions that they had in their own groups.

        Examples
        --------
        >>> from sklearn_mcsg import Groups
        >>> groups = Groups.from_list([[[1.0], [2.0]], [[5.0]], [[3.0]]])
        >>> groups.pooled(["b", "a", "b"])
        Groups(n_groups=2, n_features=1, sizes=1..3, shared table of 4 rows, with positions)
        >>> groups.pooled()[0].ravel()
        array([1., 2., 5., 3.])
        >>> groups.pooled().positions
        array([-0.5,  0.5,  0. ,  0. ])
        """
        if labels is None:
            return united(placed(self))
        if np.shape(labels) != self.shape:
            raise ValueError(f"labels must hold one label per group: got {np.shape(labels)} for {len(self)} groups.")
        names, codes = checks.number_labels(labels)
        return united(placed(self), codes, len(names))

    def rows(self) -> np.ndarray:
        """All vectors in float64, group after group."""
        vectors = self.vectors if self.indices is None else self.vectors[self.indices]
        return vectors.astype(np.float64, copy=False)

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Weighted sum of `values`, which has one row per vector, within each group."""
        if self.weights is not None:
            values = values * self.weights.reshape(-1, *[1] * (values.ndim - 1))
        return self._sum_rows(values)

    def _sum_rows(self, values: np.ndarray) -> np.ndarray:
        """Sum of values within each group, whatever the weights."""
        totals = np.zeros((len(self), *values.shape[1:]))
        filled = self.sizes > 0
        if filled.any():
            totals[filled] = np.add.reduceat(values, self.offsets[:-1][filled], axis=0)
        return totals

    def split(self, values: Any) -> list[Any]:
        """Split values, one per row, into one part per group."""
        return [values[start:stop] for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True)]


def packed(
    vectors: np.ndarray,
    offsets: np.ndarray,
    indices: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    names: np.ndarray | None = None,
    positions: np.ndarray | None = None,
) -> Groups:
    """Groups from parts that are known to be valid; `names` has one name per row of `vectors`."""
    groups = Groups.__new__(Groups)
    vars(groups).update(
        vectors=vectors, offsets=offsets, indices=indices, weights=weights, _names=names, positions=positions
    )
    return groups


def placed(groups: Groups) -> Groups:
    """The groups with positions: call it before groups are torn apart or joined, where places matter."""
    if groups.positions is not None:
        return groups
    return packed(groups.vectors, groups.offsets, groups.indices, groups.weights, groups._names, groups.row_positions)


def united(groups: Groups, codes: np.ndarray | None = None, n_groups: int = 1) -> Groups:
    """Merge the groups that have the same code, from 0 to `n_groups` - 1; without codes, all of them.

    Unused codes give empty groups. Vectors keep their places only if these are positions: see `placed`.
    """
    codes = np.zeros(len(groups), dtype=int) if codes is None else codes
    is_sorted = (codes[:-1] <= codes[1:]).all()
    picked = groups if is_sorted else groups[np.argsort(codes, kind="stable")]
    sizes = np.bincount(codes, weights=groups.sizes, minlength=n_groups).astype(int)
    offsets = offsets_of(sizes)
    return packed(picked.vectors, offsets, picked.indices, picked.weights, picked._names, picked.positions)


def places_in_order(sizes: np.ndarray) -> np.ndarray:
    """Places of the vectors of groups of given sizes, from -1 to 1, by their order alone: evenly spaced, around 0."""
    within = np.arange(sizes.sum()) - np.repeat(offsets_of(sizes)[:-1], sizes)
    return (2 * within + 1) / np.repeat(sizes, sizes) - 1


def offsets_of(sizes: ArrayLike) -> np.ndarray:
    """Offsets of consecutive parts from their sizes: the start of each, and the end of the last."""
    return np.concatenate([[0], np.cumsum(sizes)])
